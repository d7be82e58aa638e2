"""Tanh, sigmoid, stack, split, flip, dilate and undilate: values and gradients."""

import numpy as np

from needle_course.testing import GradedTest, close, equal, graded, gradient_of


def random(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def dilated(a, axes, dilation):
    """Return `a` with zeros after every element along the axes."""
    step = dilation + 1
    shape = [n * step if axis in axes else n for axis, n in enumerate(a.shape)]
    out = np.zeros(shape)
    out[every(a.ndim, axes, step)] = a
    return out


def every(ndim, axes, step):
    return tuple(slice(None, None, step if axis in axes else 1) for axis in range(ndim))


def undilated(a, axes, dilation):
    return a[every(a.ndim, axes, dilation + 1)]


# name: (the op, the same in numpy, shape of its input)
OPS = {
    "tanh": (lambda ndl, a: ndl.tanh(a), np.tanh, (3, 5)),
    "sigmoid": (lambda ndl, a: ndl.sigmoid(a), sigmoid, (3, 5)),
    "flip_one_axis": (lambda ndl, a: ndl.flip(a, (1,)), lambda a: np.flip(a, 1), (2, 4, 3)),
    "flip_two_axes": (
        lambda ndl, a: ndl.flip(a, (0, 2)),
        lambda a: np.flip(a, (0, 2)),
        (2, 4, 3),
    ),
    "dilate_one_axis": (
        lambda ndl, a: ndl.dilate(a, (1,), 2),
        lambda a: dilated(a, (1,), 2),
        (2, 3),
    ),
    "dilate_two_axes": (
        lambda ndl, a: ndl.dilate(a, (1, 2), 1),
        lambda a: dilated(a, (1, 2), 1),
        (2, 3, 2, 2),
    ),
    "dilate_by_nothing": (lambda ndl, a: ndl.dilate(a, (0,), 0), lambda a: a * 1.0, (3, 2)),
    "undilate_one_axis": (
        lambda ndl, a: ndl.undilate(a, (0,), 2),
        lambda a: undilated(a, (0,), 2),
        (6, 2),
    ),
    "undilate_two_axes": (
        lambda ndl, a: ndl.undilate(a, (0, 2), 1),
        lambda a: undilated(a, (0, 2), 1),
        (4, 3, 2),
    ),
}


def op_test(name, op, function, shape):
    """Return the test of one op: its value, and its gradient for a random out_grad."""

    def inputs(rng):
        a = random(rng, *shape)
        return {"a": a, "out_grad": random(rng, *function(a).shape)}

    def probe(ndl, inputs):
        a, out_grad = ndl.Tensor(inputs["a"]), ndl.Tensor(inputs["out_grad"])
        y = op(ndl, a)
        y.backward(out_grad)
        return {"value": y.numpy(), "grad": a.grad.numpy(), "out_grad": out_grad.numpy()}

    def check(inputs, outputs):
        a = inputs["a"]
        close("the value", outputs["value"], function(a.astype(np.float64)), 1e-5, 1e-6, a=a)
        (grad,) = gradient_of(function, [a], inputs["out_grad"])
        close("the gradient", outputs["grad"], grad, rtol=1e-4, atol=1e-5, a=a)
        equal("out_grad, which a gradient leaves alone", outputs["out_grad"], inputs["out_grad"])

    doc = f"The value and the gradient of {name.replace('_', ' ')}."
    return GradedTest(f"hw4.shape_ops::{name}", inputs, probe, check, doc)


TESTS = [op_test(name, *entry) for name, entry in OPS.items()]


@graded("hw4.shape_ops::large_arguments")
class LargeArguments:
    """tanh and sigmoid of large numbers are -1, 0 or 1, and never NaN."""

    def inputs(rng):
        return {"a": np.array([-300.0, -50.0, 0.0, 50.0, 300.0], dtype=np.float32)}

    def probe(ndl, inputs):
        outputs = {}
        for name in ("tanh", "sigmoid"):
            a = ndl.Tensor(inputs["a"])
            y = getattr(ndl, name)(a)
            y.backward()
            outputs[name], outputs[f"{name}_grad"] = y.numpy(), a.grad.numpy()
        return outputs

    def check(inputs, outputs):
        close("tanh", outputs["tanh"], [-1, -1, 0, 1, 1])
        close("the gradient of tanh", outputs["tanh_grad"], [0, 0, 1, 0, 0])
        close("sigmoid", outputs["sigmoid"], [0, 0, 0.5, 1, 1])
        close("the gradient of sigmoid", outputs["sigmoid_grad"], [0, 0, 0.25, 0, 0])


def stack_test(axis):
    """Return the test of stack along one axis."""

    def inputs(rng):
        out_shape = np.stack([np.zeros((2, 4))] * 3, axis).shape
        return {
            **{f"x{i}": random(rng, 2, 4) for i in range(3)},
            "out_grad": random(rng, *out_shape),
        }

    def probe(ndl, inputs):
        parts = [ndl.Tensor(inputs[f"x{i}"]) for i in range(3)]
        y = ndl.stack(parts, axis)
        y.backward(ndl.Tensor(inputs["out_grad"]))
        return {"value": y.numpy(), "grads": [part.grad.numpy() for part in parts]}

    def check(inputs, outputs):
        expected = np.stack([inputs[f"x{i}"] for i in range(3)], axis)
        equal("the value", outputs["value"], expected)
        for i in range(3):
            expected = np.take(inputs["out_grad"], i, axis)
            close(f"the gradient of part {i}", outputs["grads"][i], expected)

    doc = f"stack of three Tensors (2, 4) along axis {axis}, and its gradient."
    return GradedTest(f"hw4.shape_ops::stack_axis_{axis}", inputs, probe, check, doc)


def split_test(axis):
    """Return the test of split along one axis; each part goes into the sum with other weights."""

    def inputs(rng):
        a = random(rng, 2, 3, 4)
        return {"a": a, "weights": random(rng, *np.moveaxis(a, axis, 0).shape)}

    def probe(ndl, inputs):
        a = ndl.Tensor(inputs["a"])
        parts = ndl.split(a, axis)
        values = [part.numpy() for part in parts]
        total = None
        for part, weights in zip(parts, inputs["weights"], strict=True):
            term = (part * ndl.Tensor(weights, requires_grad=False)).sum()
            total = term if total is None else total + term
        total.backward()
        return {"values": values, "kind": type(parts).__name__, "grad": a.grad.numpy()}

    def check(inputs, outputs):
        equal("the type of the result", outputs["kind"], "TensorTuple")
        for i, part in enumerate(np.moveaxis(inputs["a"], axis, 0)):
            equal(f"part {i}", outputs["values"][i], part)
        expected = np.moveaxis(inputs["weights"], 0, axis)
        close("the gradient", outputs["grad"], expected)

    doc = f"split of (2, 3, 4) along axis {axis}, and its gradient."
    return GradedTest(f"hw4.shape_ops::split_axis_{axis}", inputs, probe, check, doc)


TESTS += [stack_test(axis) for axis in range(3)]
TESTS += [split_test(axis) for axis in range(3)]


@graded("hw4.shape_ops::one_part_of_a_split")
class OnePartOfASplit:
    """If only one part is used, the gradient of the others is zero."""

    def inputs(rng):
        return {"a": random(rng, 4, 3), "out_grad": random(rng, 3)}

    def probe(ndl, inputs):
        a = ndl.Tensor(inputs["a"])
        ndl.split(a, 0)[2].backward(ndl.Tensor(inputs["out_grad"]))
        return {"grad": a.grad.numpy()}

    def check(inputs, outputs):
        expected = np.zeros((4, 3))
        expected[2] = inputs["out_grad"]
        close("the gradient", outputs["grad"], expected)


@graded("hw4.shape_ops::stack_of_a_split")
class StackOfASplit:
    """stack undoes split, and the gradient comes through both."""

    def inputs(rng):
        return {"a": random(rng, 3, 2, 4), "out_grad": random(rng, 3, 2, 4)}

    def probe(ndl, inputs):
        a = ndl.Tensor(inputs["a"])
        y = ndl.stack(ndl.split(a, 1), 1)
        y.backward(ndl.Tensor(inputs["out_grad"]))
        return {"value": y.numpy(), "grad": a.grad.numpy()}

    def check(inputs, outputs):
        equal("the value", outputs["value"], inputs["a"])
        close("the gradient", outputs["grad"], inputs["out_grad"])


@graded("hw4.shape_ops::stacked_parts_are_copied")
class StackedPartsAreCopied:
    """A stack has memory of its own: writing to it leaves the parts alone."""

    def inputs(rng):
        return {"a": random(rng, 2, 2)}

    def probe(ndl, inputs):
        a = ndl.Tensor(inputs["a"])
        y = ndl.stack([a, a], 0)
        array = y.realize_cached_data()
        array[0:1, 0:2, 0:2] = 0.0
        return {"a": a.numpy(), "second": y.numpy()[1]}

    def check(inputs, outputs):
        equal("the part", outputs["a"], inputs["a"])
        equal("its other place in the stack", outputs["second"], inputs["a"])
