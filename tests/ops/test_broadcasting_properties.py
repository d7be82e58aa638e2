"""Drawn shapes, axes and indices: values equal numpy's, gradients are what sums of copies say."""

import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from needle import ops
from needle.errors import BroadcastError
from tests.gradcheck import constant64, tensor64

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
FULL_SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4)


def values(shape, offset=0.0):
    """Return different numbers, none of them 0."""
    return np.arange(1.0, math.prod(shape) + 1).reshape(shape) / 8 + offset


def summed_to(grad, shape):
    """Return a gradient summed over the axes that broadcasting `shape` added or stretched."""
    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))
    stretched = tuple(i for i, n in enumerate(shape) if n == 1)
    return grad.sum(axis=stretched, keepdims=True)


def assert_same(tensor, expected):
    assert tensor.shape == np.shape(expected) and tensor.dtype == "float64"
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-12, atol=1e-12)


BINARY = {
    "add": (np.add, lambda a, b: (1 + 0 * b, 1 + 0 * a)),
    "multiply": (np.multiply, lambda a, b: (b, a)),
    "divide": (np.divide, lambda a, b: (1 / b, -a / b**2)),
    "power": (np.power, lambda a, b: (b * a ** (b - 1), a**b * np.log(a))),
}


@pytest.mark.parametrize("op", BINARY)
@hypothesis.given(
    shapes=hnp.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_side=4, max_dims=4)
)
def test_elementwise_ops_broadcast_and_sum_back(op, shapes):
    reference, derivatives = BINARY[op]
    a, b = (values(shape, 0.5) for shape in shapes.input_shapes)
    x, y = tensor64(a), tensor64(b)
    out = getattr(ops, op)(x, y)
    assert_same(out, reference(a, b))
    out_grad = values(shapes.result_shape, -1.0)
    out.backward(constant64(out_grad))
    for leaf, derivative in zip((x, y), derivatives(a, b), strict=True):
        assert_same(leaf.grad, summed_to(out_grad * derivative, leaf.shape))


@hypothesis.given(
    shapes=hnp.mutually_broadcastable_shapes(num_shapes=3, min_side=0, max_side=3, max_dims=3)
)
def test_where_broadcasts_and_sums_back(shapes):
    mask, a, b = (values(shape) for shape in shapes.input_shapes)
    mask = (mask * 8).astype(int) % 2
    x, y = tensor64(a), tensor64(b)
    out = ops.where(constant64(mask), x, y)
    assert_same(out, np.where(mask, a, b))
    out_grad = values(shapes.result_shape, -1.0)
    out.backward(constant64(out_grad))
    assert_same(x.grad, summed_to(out_grad * (mask != 0), x.shape))
    assert_same(y.grad, summed_to(out_grad * (mask == 0), y.shape))


@hypothesis.given(SHAPES, SHAPES)
def test_shapes_that_numpy_refuses_are_refused(first, second):
    try:
        expected = np.broadcast_shapes(first, second)
    except ValueError:
        with pytest.raises(BroadcastError, match=r"\[add\] shapes"):
            constant64(np.ones(first)) + constant64(np.ones(second))
        return
    assert (constant64(np.ones(first)) + constant64(np.ones(second))).shape == expected


@hypothesis.given(st.data(), SHAPES)
def test_broadcast_to_any_shape(data, target):
    kept = data.draw(st.integers(0, len(target)))
    shape = tuple(1 if data.draw(st.booleans()) else n for n in target[kept:])
    x = tensor64(values(shape))
    y = ops.broadcast_to(x, target)
    assert_same(y, np.broadcast_to(values(shape), target))
    y.backward(constant64(values(target, -1.0)))
    assert_same(x.grad, summed_to(values(target, -1.0), shape))


@st.composite
def shapes_and_axes(draw):
    """Draw a shape without empty axes, and axes as a user writes them."""
    shape = draw(FULL_SHAPES)
    axes = draw(hnp.valid_tuple_axes(len(shape), min_size=1))
    if len(axes) == 1 and draw(st.booleans()):
        return shape, axes[0]
    return shape, draw(st.sampled_from([axes, None]))


@pytest.mark.parametrize("op", ["sum", "mean", "max", "min"])
@hypothesis.given(case=shapes_and_axes(), keepdims=st.booleans())
def test_reductions_over_any_axes(op, case, keepdims):
    shape, axes = case
    a = values(shape)
    x = tensor64(a)
    y = getattr(x, op)(axes, keepdims)
    expected = getattr(np, op)(a, axis=axes, keepdims=keepdims)
    assert_same(y, expected)
    y.backward(constant64(values(y.shape, -1.0)))
    kept = getattr(np, op)(a, axis=axes, keepdims=True)
    spread = np.broadcast_to(values(y.shape, -1.0).reshape(kept.shape), shape)
    factor = {"sum": 1, "mean": kept.size / a.size}.get(op, a == kept)
    assert_same(x.grad, spread * factor)


@hypothesis.given(shapes_and_axes())
def test_logsumexp_over_any_axes(case):
    shape, axes = case
    a = values(shape)
    x = tensor64(a)
    y = ops.logsumexp(x, axes)
    assert_same(y, np.log(np.exp(a).sum(axis=axes)))
    y.backward()
    assert_same(x.grad, np.exp(a) / np.exp(a).sum(axis=axes, keepdims=True))


@hypothesis.given(st.data(), SHAPES)
def test_any_basic_index(data, shape):
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    a = values(shape)
    x = tensor64(a)
    y = x[index]
    assert_same(y, a[index])
    out_grad = values(y.shape, -1.0)
    y.backward(constant64(out_grad))
    expected = np.zeros(shape)
    expected[index] = out_grad
    assert_same(x.grad, expected)


@hypothesis.given(st.data(), SHAPES)
def test_any_permutation_and_reshape(data, shape):
    order = data.draw(st.permutations(range(len(shape))))
    x = tensor64(values(shape))
    y = x.permute(order)
    assert_same(y, values(shape).transpose(order))
    flat = y.reshape((-1,) if y.size else (0,))
    assert_same(flat, values(shape).transpose(order).reshape(-1))
    out_grad = values(flat.shape)
    flat.backward(constant64(out_grad))
    inverse = np.argsort(order)
    assert_same(x.grad, out_grad.reshape(y.shape).transpose(inverse.astype(int)))


@hypothesis.given(
    shapes=hnp.mutually_broadcastable_shapes(
        signature="(m,n),(n,p)->(m,p)", min_side=0, max_side=3, max_dims=2
    )
)
def test_matmul_of_any_batches(shapes):
    a, b = (values(shape, -1.0) for shape in shapes.input_shapes)
    x, y = tensor64(a), tensor64(b)
    out = x @ y
    assert_same(out, a @ b)
    out_grad = values(shapes.result_shape)
    out.backward(constant64(out_grad))
    for leaf, wide in (
        (x, out_grad @ np.swapaxes(b, -1, -2)),
        (y, np.swapaxes(a, -1, -2) @ out_grad),
    ):
        lead = leaf.shape[:-2]
        batch = wide.sum(axis=tuple(range(wide.ndim - 2 - len(lead))))
        stretched = tuple(i for i, n in enumerate(lead) if n == 1)
        assert_same(leaf.grad, batch.sum(axis=stretched, keepdims=True))


@hypothesis.given(st.data(), FULL_SHAPES)
def test_concatenate_undoes_slicing(data, shape):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, shape[axis]), max_size=3)))
    bounds = [0, *cuts, shape[axis]]
    index = [slice(None)] * len(shape)
    x = tensor64(values(shape))
    parts = []
    for start, stop in zip(bounds, bounds[1:], strict=False):
        index[axis] = slice(start, stop)
        parts.append(x[tuple(index)])
    y = ops.concatenate(parts, axis)
    assert_same(y, values(shape))
    y.backward(constant64(values(shape, -1.0)))
    assert_same(x.grad, values(shape, -1.0))
