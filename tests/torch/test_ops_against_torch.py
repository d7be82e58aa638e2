"""Every public op against PyTorch's: values and gradients for a random out_grad, on every device.

Convolution and pooling, whose cases are many, are in test_conv_against_torch.py.
"""

import numpy as np
import pytest

import needle as ndl
from needle import ops

pytestmark = pytest.mark.torch

# Checked elsewhere: constants (compared with numpy's), ops that PyTorch lacks, other files.
ELSEWHERE = {
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "argmax", "argmin"),
    *("make_tuple", "tuple_get_item", "fused_add_scalars", "to_device"),
    *("dilate", "undilate", "conv", "max_pool", "avg_pool"),
}

MASK = np.array([[1, 0, 1], [0, 0, 1]], np.float32)
IDS = np.array([[2, 0], [1, 2]])


def normal(rng, shape):
    return rng.standard_normal(shape).astype(np.float32)


def positive(rng, shape):
    return rng.uniform(0.5, 2, shape).astype(np.float32)


# name -> (needle's call, PyTorch's call with the module first, shapes, how to draw)
CASES = {
    "negate": (ops.negate, lambda t, a: -a, ((2, 3),), normal),
    "exp": (ops.exp, lambda t, a: t.exp(a), ((2, 3),), normal),
    "log": (ops.log, lambda t, a: t.log(a), ((2, 3),), positive),
    "sqrt": (ops.sqrt, lambda t, a: t.sqrt(a), ((2, 3),), positive),
    "sin": (ops.sin, lambda t, a: t.sin(a), ((2, 3),), normal),
    "cos": (ops.cos, lambda t, a: t.cos(a), ((2, 3),), normal),
    "tanh": (ops.tanh, lambda t, a: t.tanh(a), ((2, 3),), normal),
    "sigmoid": (ops.sigmoid, lambda t, a: t.sigmoid(a), ((2, 3),), normal),
    "relu": (ops.relu, lambda t, a: t.relu(a), ((2, 3),), normal),
    "abs": (ops.abs, lambda t, a: t.abs(a), ((2, 3),), normal),
    "clip": (lambda a: ops.clip(a, -0.5, 0.7), lambda t, a: a.clamp(-0.5, 0.7), ((4, 5),), normal),
    "add_scalar": (lambda a: ops.add_scalar(a, 2.5), lambda t, a: a + 2.5, ((3,),), normal),
    "mul_scalar": (lambda a: ops.mul_scalar(a, -2.5), lambda t, a: a * -2.5, ((3,),), normal),
    "divide_scalar": (lambda a: ops.divide_scalar(a, 0.3), lambda t, a: a / 0.3, ((3,),), normal),
    "power_scalar": (lambda a: ops.power_scalar(a, 3), lambda t, a: a**3, ((3,),), normal),
    "add": (ops.add, lambda t, a, b: a + b, ((2, 1, 3), (4, 1)), normal),
    "multiply": (ops.multiply, lambda t, a, b: a * b, ((2, 1, 3), (4, 1)), normal),
    "divide": (ops.divide, lambda t, a, b: a / b, ((2, 3), (3,)), positive),
    "power": (ops.power, lambda t, a, b: a**b, ((2, 3), (2, 1)), positive),
    "matmul": (ops.matmul, lambda t, a, b: a @ b, ((2, 1, 3, 4), (5, 4, 2)), normal),
    "transpose": (
        lambda a: ops.transpose(a, (0, 2)),
        lambda t, a: a.transpose(0, 2),
        ((2, 3, 4),),
        normal,
    ),
    "permute": (
        lambda a: ops.permute(a, (2, 0, 1)),
        lambda t, a: a.permute(2, 0, 1),
        ((2, 3, 4),),
        normal,
    ),
    "reshape": (
        lambda a: ops.reshape(a, (4, -1)),
        lambda t, a: a.reshape(4, -1),
        ((2, 3, 4),),
        normal,
    ),
    "flatten": (lambda a: ops.flatten(a, 1), lambda t, a: a.flatten(1), ((2, 3, 4),), normal),
    "squeeze": (lambda a: ops.squeeze(a, 1), lambda t, a: a.squeeze(1), ((2, 1, 4),), normal),
    "unsqueeze": (lambda a: ops.unsqueeze(a, -1), lambda t, a: a.unsqueeze(-1), ((2, 3),), normal),
    "broadcast_to": (
        lambda a: ops.broadcast_to(a, (4, 2, 3)),
        lambda t, a: t.broadcast_to(a, (4, 2, 3)),
        ((2, 1),),
        normal,
    ),
    "flip": (lambda a: ops.flip(a, (0, 2)), lambda t, a: a.flip(0, 2), ((2, 3, 4),), normal),
    "summation": (
        lambda a: ops.summation(a, (0, 2)),
        lambda t, a: a.sum((0, 2)),
        ((2, 3, 4),),
        normal,
    ),
    "mean": (lambda a: ops.mean(a, -1, True), lambda t, a: a.mean(-1, True), ((2, 3),), normal),
    "max": (lambda a: ops.max(a, (0, 2)), lambda t, a: a.amax((0, 2)), ((2, 3, 4),), normal),
    "min": (lambda a: ops.min(a, 1), lambda t, a: a.amin(1), ((2, 3, 4),), normal),
    "var": (lambda a: ops.var(a, 1, correction=1), lambda t, a: a.var(1), ((4, 3),), normal),
    "std": (lambda a: ops.std(a, 0), lambda t, a: a.std(0, correction=0), ((4, 3),), normal),
    "logsumexp": (
        lambda a: ops.logsumexp(a * 50, (0, 2)),
        lambda t, a: t.logsumexp(a * 50, (0, 2)),
        ((2, 3, 4),),
        normal,
    ),
    "logsoftmax": (
        lambda a: ops.logsoftmax(a * 50),
        lambda t, a: t.log_softmax(a * 50, -1),
        ((3, 4),),
        normal,
    ),
    "softmax": (lambda a: ops.softmax(a, 0), lambda t, a: t.softmax(a, 0), ((3, 4),), normal),
    "getitem": (
        lambda a: ops.getitem(a, (1, slice(None, None, 2), None, -1)),
        lambda t, a: a[1, ::2, None, -1],
        ((3, 4, 5),),
        normal,
    ),
    "take": (lambda a: ops.take(a, IDS), lambda t, a: a[t.from_numpy(IDS)], ((3, 4),), normal),
    "concatenate": (
        lambda a, b: ops.concatenate([a, b, a], 1),
        lambda t, a, b: t.cat([a, b, a], 1),
        ((2, 3), (2, 1)),
        normal,
    ),
    "stack": (
        lambda a, b: ops.stack([a, b, a], 1),
        lambda t, a, b: t.stack([a, b, a], 1),
        ((2, 3), (2, 3)),
        normal,
    ),
    "split": (
        lambda a: ops.split(a, 1)[2] * ops.split(a, 1)[0],
        lambda t, a: t.unbind(a, 1)[2] * t.unbind(a, 1)[0],
        ((2, 3, 4),),
        normal,
    ),
    "where": (
        lambda a, b: ops.where(MASK, a, b),
        lambda t, a, b: t.where(t.from_numpy(MASK) != 0, a, b),
        ((2, 3), (3,)),
        normal,
    ),
}


def test_every_op_is_compared():
    assert {name for name in ops.__all__ if name[0].islower()} - ELSEWHERE == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(device, torch, rng, name):
    ours, theirs, shapes, draw = CASES[name]
    arrays = [draw(rng, shape) for shape in shapes]
    inputs = [ndl.Tensor(a, device=device) for a in arrays]
    twins = [torch.tensor(a, requires_grad=True) for a in arrays]
    y, expected = ours(*inputs), theirs(torch, *twins)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y.numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-5)
    out_grad = normal(rng, y.shape)
    y.backward(ndl.Tensor(out_grad, device=device, requires_grad=False))
    expected.backward(torch.from_numpy(out_grad))
    for x, twin in zip(inputs, twins, strict=True):
        np.testing.assert_allclose(x.grad.numpy(), twin.grad.numpy(), rtol=1e-4, atol=1e-5)
