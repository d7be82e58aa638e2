"""hw1.forward: what each op computes, against numpy."""

import numpy as np

from needle_course.testing import GradedTest, close, graded


def normal(*shapes):
    """Return `inputs` that draws arrays a, b, ... of these shapes."""
    return lambda rng: {
        name: rng.standard_normal(shape) for name, shape in zip("abc", shapes, strict=False)
    }


def positive(*shapes):
    """Return `inputs` that draws arrays between 0.5 and 2."""
    return lambda rng: {
        name: rng.uniform(0.5, 2, shape) for name, shape in zip("abc", shapes, strict=False)
    }


def forward_test(name, doc, inputs, ours, expected):
    """Return a test that `ours(ndl, *tensors)` computes what `expected(*arrays)` does.

    Both return a list; the arrays that were given must not change.
    """

    def probe(ndl, given):
        tensors = [ndl.Tensor(array) for array in given.values()]
        results = [result.numpy() for result in ours(ndl, *tensors)]
        return {"results": results, "inputs": [tensor.numpy() for tensor in tensors]}

    def check(given, outputs):
        wanted = expected(*given.values())
        for i, (result, want) in enumerate(zip(outputs["results"], wanted, strict=True)):
            close(f"result {i}" if len(wanted) > 1 else "the result", result, want, **given)
        for what, after in zip(given, outputs["inputs"], strict=True):
            close(f"{what} afterwards", after, given[what], rtol=0, atol=0)

    return GradedTest(f"hw1.forward::{name}", inputs, probe, check, doc)


EXPONENTS = (3, 2.5, 1, 0, -1, -0.5)

TESTS = [
    forward_test(
        "divide_scalar",
        "a / scalar, as a function and as an operator.",
        normal((3, 4)),
        lambda ndl, a: [ndl.divide_scalar(a, scalar=3), a / -0.25],
        lambda a: [a / 3, a / -0.25],
    ),
    forward_test(
        "power_scalar",
        "a ** scalar for whole, fractional and negative numbers and for 0.",
        positive((3, 4)),
        lambda ndl, a: [ndl.power_scalar(a, n) for n in EXPONENTS] + [a**2],
        lambda a: [a**n for n in EXPONENTS] + [a**2],
    ),
    forward_test(
        "divide",
        "a / b, element by element.",
        positive((2, 3), (2, 3)),
        lambda ndl, a, b: [ndl.divide(a, b), a / b],
        lambda a, b: [a / b, a / b],
    ),
    forward_test(
        "power",
        "a ** b, element by element.",
        positive((2, 3), (2, 3)),
        lambda ndl, a, b: [ndl.power(a, b), a**b],
        lambda a, b: [a**b, a**b],
    ),
    forward_test(
        "negate",
        "-a.",
        normal((3, 4)),
        lambda ndl, a: [ndl.negate(a), -a],
        lambda a: [-a, -a],
    ),
    forward_test(
        "log",
        "The natural logarithm.",
        positive((3, 4)),
        lambda ndl, a: [ndl.log(a)],
        lambda a: [np.log(a)],
    ),
    forward_test(
        "exp",
        "e ** a.",
        normal((3, 4)),
        lambda ndl, a: [ndl.exp(a)],
        lambda a: [np.exp(a)],
    ),
    forward_test(
        "relu",
        "max(a, 0).",
        lambda rng: {"a": np.round(rng.standard_normal((4, 5)), 1) * (rng.random((4, 5)) < 0.8)},
        lambda ndl, a: [ndl.relu(a)],
        lambda a: [np.maximum(a, 0)],
    ),
    forward_test(
        "transpose",
        "Two axes change places: the last two, or those that are named; the others stay.",
        normal((2, 3, 4)),
        lambda ndl, a: [
            ndl.transpose(a),
            ndl.transpose(a, axes=(0, 1)),
            a.transpose((-1, 0)),
            a.transpose((2, 1)),
        ],
        lambda a: [
            np.swapaxes(a, 1, 2),
            np.swapaxes(a, 0, 1),
            np.swapaxes(a, 2, 0),
            np.swapaxes(a, 2, 1),
        ],
    ),
    forward_test(
        "reshape",
        "The same elements in row-major order in another shape.",
        normal((2, 3, 4)),
        lambda ndl, a: [ndl.reshape(a, (4, 6)), a.reshape((3, -1)), ndl.reshape(a, (24,))],
        lambda a: [a.reshape(4, 6), a.reshape(3, 8), a.reshape(24)],
    ),
    forward_test(
        "broadcast_to",
        "numpy's rule: axes of size 1 are stretched, axes are added on the left.",
        normal((2, 1), (3,), ()),
        lambda ndl, a, b, c: [
            ndl.broadcast_to(a, (2, 3)),
            a.broadcast_to((4, 2, 3)),
            ndl.broadcast_to(b, shape=(2, 3)),
            ndl.broadcast_to(c, (2, 3)),
        ],
        lambda a, b, c: [
            np.broadcast_to(a, (2, 3)),
            np.broadcast_to(a, (4, 2, 3)),
            np.broadcast_to(b, (2, 3)),
            np.broadcast_to(c, (2, 3)),
        ],
    ),
    forward_test(
        "summation",
        "The sum over all axes (shape ()), over one, over several; negative axes count from the "
        "end.",
        normal((2, 3, 4)),
        lambda ndl, a: [
            ndl.summation(a),
            a.sum(),
            ndl.summation(a, axes=1),
            ndl.summation(a, axes=(0, 2)),
            a.sum(-1),
            a.sum((-1, 0)),
        ],
        lambda a: [a.sum(), a.sum(), a.sum(1), a.sum((0, 2)), a.sum(2), a.sum((0, 2))],
    ),
    forward_test(
        "summation_keepdims",
        "With keepdims=True the axes that are summed stay, with size 1.",
        normal((2, 3, 4)),
        lambda ndl, a: [
            ndl.summation(a, axes=1, keepdims=True),
            a.sum((0, -1), keepdims=True),
            a.sum(keepdims=True),
        ],
        lambda a: [
            a.sum(1, keepdims=True),
            a.sum((0, 2), keepdims=True),
            a.sum(keepdims=True),
        ],
    ),
    forward_test(
        "matmul",
        "The product of two matrices.",
        normal((3, 4), (4, 5)),
        lambda ndl, a, b: [ndl.matmul(a, b), a @ b],
        lambda a, b: [a @ b, a @ b],
    ),
    forward_test(
        "matmul_batches",
        "With further axes on the left: one product for each, as numpy's @ broadcasts.",
        normal((2, 3, 4), (2, 4, 5), (4, 6)),
        lambda ndl, a, b, c: [a @ b, a @ c, c.transpose() @ b],
        lambda a, b, c: [a @ b, a @ c, c.T @ b],
    ),
    forward_test(
        "operators",
        "Subtraction, and a number on the left.",
        positive((2, 3), (2, 3)),
        lambda ndl, a, b: [a - b, a - 1, 1 - a, 6 / a, 2**a],
        lambda a, b: [a - b, a - 1, 1 - a, 6 / a, 2**a],
    ),
    forward_test(
        "broadcasting",
        "Operands of unequal shapes are broadcast.",
        positive((2, 3), (3,), (2, 1)),
        lambda ndl, a, b, c: [a / b, a / c, b / c, a**b, c - b],
        lambda a, b, c: [a / b, a / c, b / c, a**b, c - b],
    ),
]


@graded("hw1.forward::float32")
class Float32:
    """float32 stays float32, also where the scalar is one of numpy's."""

    def inputs(rng):
        return {"a": rng.uniform(1, 2, (2, 3)).astype(np.float32)}

    def probe(ndl, inputs):
        a = ndl.Tensor(inputs["a"])
        two = np.float64(2)
        results = [a / two, a**two, -a, a / a, a**a, ndl.log(a), ndl.exp(a), ndl.relu(a)]
        results += [a.transpose(), a.reshape((6,)), a.broadcast_to((2, 2, 3)), a.sum(1)]
        results += [a @ a.transpose()]
        return {"dtypes": [str(result.dtype) for result in results], "quotient": (a / two).numpy()}

    def check(inputs, outputs):
        close("a / 2", outputs["quotient"], inputs["a"] / np.float32(2), dtype="float32")
        wrong = [dtype != "float32" for dtype in outputs["dtypes"]]
        close("results that are not float32", np.array(wrong), np.zeros(len(wrong), bool))
