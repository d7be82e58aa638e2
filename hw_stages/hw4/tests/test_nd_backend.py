"""The ops of hw1 and hw2 on NDArray: values and gradients, one test an op; flip and pad.

Elementwise ops get a transposed input: a view whose elements do not lie in order.
"""

import numpy as np

from needle_course.testing import GradedTest, close, equal, graded, gradient_of

# name: (the op, the same in numpy, shapes of its inputs)
OPS = {
    "add": (lambda ndl, a, b: ndl.add(ndl.transpose(a), b), lambda a, b: a.T + b, [(4, 3), (3, 4)]),
    "add_scalar": (
        lambda ndl, a: ndl.add_scalar(ndl.transpose(a), 2.5),
        lambda a: a.T + 2.5,
        [(3, 4)],
    ),
    "multiply": (
        lambda ndl, a, b: ndl.multiply(a, ndl.transpose(b)),
        lambda a, b: a * b.T,
        [(2, 3), (3, 2)],
    ),
    "mul_scalar": (
        lambda ndl, a: ndl.mul_scalar(ndl.transpose(a), -1.5),
        lambda a: a.T * -1.5,
        [(3, 4)],
    ),
    "divide": (
        lambda ndl, a, b: ndl.divide(a, ndl.transpose(b)),
        lambda a, b: a / b.T,
        [(4, 3), (3, 4)],
    ),
    "divide_scalar": (
        lambda ndl, a: ndl.divide_scalar(ndl.transpose(a), 4),
        lambda a: a.T / 4,
        [(3, 2)],
    ),
    "power_scalar": (
        lambda ndl, a: ndl.power_scalar(ndl.transpose(a), 3),
        lambda a: a.T**3,
        [(2, 5)],
    ),
    "negate": (lambda ndl, a: ndl.negate(ndl.transpose(a)), lambda a: -a.T, [(5, 2)]),
    "log": (lambda ndl, a: ndl.log(a), np.log, [(3, 4)]),
    "exp": (lambda ndl, a: ndl.exp(a), np.exp, [(3, 4)]),
    "transpose": (
        lambda ndl, a: ndl.transpose(a, (0, 2)),
        lambda a: a.swapaxes(0, 2),
        [(2, 3, 4)],
    ),
    "reshape": (lambda ndl, a: ndl.reshape(a, (6, 2)), lambda a: a.reshape(6, 2), [(3, 4)]),
    "reshape_of_a_view": (
        lambda ndl, a: ndl.reshape(ndl.transpose(a), (2, 6)),
        lambda a: a.T.reshape(2, 6),
        [(3, 4)],
    ),
    "broadcast_to": (
        lambda ndl, a: ndl.broadcast_to(a, (4, 3, 5)),
        lambda a: np.broadcast_to(a, (4, 3, 5)),
        [(3, 1)],
    ),
    "summation": (lambda ndl, a: ndl.summation(a), np.sum, [(3, 4)]),
    "summation_of_one_axis": (
        lambda ndl, a: ndl.summation(a, axes=(1,)),
        lambda a: a.sum(axis=1),
        [(3, 4, 2)],
    ),
    "summation_of_two_axes": (
        lambda ndl, a: ndl.summation(a, axes=(0, 2)),
        lambda a: a.sum(axis=(0, 2)),
        [(3, 4, 2)],
    ),
    "matmul": (lambda ndl, a, b: ndl.matmul(a, b), np.matmul, [(3, 5), (5, 4)]),
    "logsumexp": (
        lambda ndl, a: ndl.logsumexp(a, axes=(1,)),
        lambda a: np.log(np.exp(a).sum(axis=1)),
        [(4, 6)],
    ),
}


def op_test(name, op, function, shapes):
    """Return the test of one op: its value, its gradients, and that both are NDArrays."""

    def inputs(rng):
        values = {f"x{i}": rng.uniform(0.5, 2, shape) for i, shape in enumerate(shapes)}
        out_shape = np.shape(function(*values.values()))
        arrays = {**values, "out_grad": rng.standard_normal(out_shape)}
        return {key: value.astype(np.float32) for key, value in arrays.items()}

    def probe(ndl, inputs):
        tensors = [ndl.Tensor(inputs[f"x{i}"]) for i in range(len(shapes))]
        y = op(ndl, *tensors)
        y.backward(ndl.Tensor(inputs["out_grad"]))
        arrays = [tensor.realize_cached_data() for tensor in (y, *(t.grad for t in tensors))]
        return {
            "value": y.numpy(),
            "grads": [tensor.grad.numpy() for tensor in tensors],
            "on_our_arrays": all(isinstance(array, ndl.NDArray) for array in arrays),
        }

    def check(inputs, outputs):
        values = [inputs[f"x{i}"] for i in range(len(shapes))]
        equal("that every result is an NDArray", outputs["on_our_arrays"], True)
        got = np.asarray(outputs["value"])
        expected = function(*(value.astype(np.float64) for value in values))
        if np.size(expected) == 1:  # () and (1,) are both a full sum
            got = got.reshape(np.shape(expected))
        close("the value", got, expected, rtol=1e-4, atol=1e-5)
        for i, grad in enumerate(gradient_of(function, values, inputs["out_grad"])):
            close(f"the gradient of input {i}", outputs["grads"][i], grad, rtol=1e-3, atol=1e-4)

    words = name.replace("_", " ")
    doc = f"The value and the gradients of {words} on NDArray."
    return GradedTest(f"hw4.nd_backend::{name}", inputs, probe, check, doc)


TESTS = [op_test(name, *entry) for name, entry in OPS.items()]


@graded("hw4.nd_backend::relu")
class Relu:
    """relu and its gradient on NDArray, with elements of both signs."""

    def inputs(rng):
        return {
            "a": rng.standard_normal((4, 5)).astype(np.float32),
            "out_grad": rng.standard_normal((4, 5)).astype(np.float32),
        }

    def probe(ndl, inputs):
        a = ndl.Tensor(inputs["a"])
        y = ndl.relu(a)
        y.backward(ndl.Tensor(inputs["out_grad"]))
        return {"value": y.numpy(), "grad": a.grad.numpy()}

    def check(inputs, outputs):
        a = inputs["a"]
        close("the value", outputs["value"], np.maximum(a, 0), a=a)
        close("the gradient", outputs["grad"], inputs["out_grad"] * (a > 0), a=a)


@graded("hw4.nd_backend::stable_logsumexp")
class StableLogSumExp:
    """logsumexp of large numbers stays finite: the maximum is subtracted first."""

    def inputs(rng):
        return {"a": (rng.standard_normal((3, 4)) + 200).astype(np.float32)}

    def probe(ndl, inputs):
        return {"value": ndl.logsumexp(ndl.Tensor(inputs["a"]), axes=(1,)).numpy()}

    def check(inputs, outputs):
        a = inputs["a"].astype(np.float64)
        expected = 200 + np.log(np.exp(a - 200).sum(axis=1))
        close("the value", outputs["value"], expected, rtol=1e-5)


@graded("hw4.nd_backend::array_functions")
class ArrayFunctions:
    """permute, tanh, max and maximum of array_api, on arrays that are not compact."""

    def inputs(rng):
        return {"a": rng.standard_normal((2, 3, 4)).astype(np.float32)}

    def probe(ndl, inputs):
        api = ndl.array_api
        a = api.permute(ndl.NDArray(inputs["a"]), (2, 0, 1))
        return {
            "permute": a.numpy(),
            "tanh": api.tanh(a).numpy(),
            "max": api.max(a, axis=1).numpy(),
            "kept": api.max(a, axis=1, keepdims=True).numpy(),
            "sum_kept": api.sum(a, axis=0, keepdims=True).numpy(),
            "maximum": api.maximum(a, api.permute(ndl.NDArray(-inputs["a"]), (2, 0, 1))).numpy(),
        }

    def check(inputs, outputs):
        a = inputs["a"].transpose(2, 0, 1)
        close("permute", outputs["permute"], a)
        close("tanh", outputs["tanh"], np.tanh(a))
        close("max over axis 1", outputs["max"], a.max(axis=1))
        close("max with keepdims", outputs["kept"], a.max(axis=1, keepdims=True))
        close("sum with keepdims", outputs["sum_kept"], a.sum(axis=0, keepdims=True), atol=1e-5)
        close("maximum of two arrays", outputs["maximum"], np.maximum(a, -a))


@graded("hw4.nd_backend::flip")
class Flip:
    """NDArray.flip along one and several axes, also of a slice."""

    def inputs(rng):
        return {"a": rng.standard_normal((3, 4, 5)).astype(np.float32)}

    def probe(ndl, inputs):
        a = ndl.NDArray(inputs["a"])
        return {
            "first": a.flip((0,)).numpy(),
            "two": a.flip((0, 2)).numpy(),
            "slice": a[1:3, 0:4:2, 1:4].flip((1, 2)).numpy(),
            "twice": a.flip((1,)).flip((1,)).numpy(),
        }

    def check(inputs, outputs):
        a = inputs["a"]
        equal("flip((0,))", outputs["first"], np.flip(a, 0))
        equal("flip((0, 2))", outputs["two"], np.flip(a, (0, 2)))
        equal("flip((1, 2)) of a slice", outputs["slice"], np.flip(a[1:3, ::2, 1:4], (1, 2)))
        equal("a flip of a flip", outputs["twice"], a)


@graded("hw4.nd_backend::flip_is_a_view")
class FlipIsAView:
    """What is written to the flipped array shows in the array itself."""

    def inputs(rng):
        return {"a": rng.standard_normal((3, 2)).astype(np.float32)}

    def probe(ndl, inputs):
        a = ndl.NDArray(inputs["a"])
        a.flip((0,))[0:1, 0:2] = 7.0
        return {"a": a.numpy()}

    def check(inputs, outputs):
        expected = inputs["a"].copy()
        expected[-1] = 7
        equal("the array after a write to row 0 of its flip", outputs["a"], expected)


@graded("hw4.nd_backend::pad")
class Pad:
    """NDArray.pad with different numbers of zeros on each side, and that it copies."""

    def inputs(rng):
        return {"a": rng.uniform(1, 2, (2, 3, 4)).astype(np.float32)}

    def probe(ndl, inputs):
        a = ndl.NDArray(inputs["a"])
        padded = a.pad(((0, 0), (1, 2), (3, 0)))
        nothing = a.permute((2, 1, 0)).pad(((0, 0), (0, 0), (0, 0)))
        nothing[0:1, 0:1, 0:1] = -1.0
        return {"padded": padded.numpy(), "nothing": nothing.numpy(), "a": a.numpy()}

    def check(inputs, outputs):
        a = inputs["a"]
        equal("pad", outputs["padded"], np.pad(a, ((0, 0), (1, 2), (3, 0))))
        expected = a.transpose(2, 1, 0).copy()
        expected[0, 0, 0] = -1
        equal("a copy without zeros, written to", outputs["nothing"], expected)
        equal("the array that was padded", outputs["a"], a)
