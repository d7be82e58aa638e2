"""The gradient check itself: each kind of mistake is found, and the message says where."""

import numpy as np
import pytest

from needle import ops
from needle.autograd import Tensor, TensorOp
from tests.gradcheck import check_gradients, check_values


class Product(TensorOp):
    """a * b with a gradient that a test chooses."""

    def __init__(self, gradient):
        self.chosen = gradient

    def compute(self, a, b):
        return a * b

    def gradient(self, out_grad, node):
        return self.chosen(out_grad, *node.inputs)


@pytest.fixture
def inputs(rng):
    return rng.uniform(0.5, 2, (2, 3)), rng.uniform(0.5, 2, (2, 3))


def product(gradient):
    """Return a function of two Tensors; its lambda makes failures name the op."""
    return lambda a, b: Product(gradient)(a, b)


def test_a_right_gradient_passes(inputs, rng):
    check_gradients(product(lambda g, a, b: (g * b, g * a)), *inputs, rng=rng)


@pytest.mark.parametrize(
    ("gradient", "i"),
    [
        (lambda g, a, b: (g * b, g * a * 2), 1),
        (lambda g, a, b: (-g * b, g * a), 0),
        (lambda g, a, b: (g * a, g * b), 0),
        (lambda g, a, b: (b * 1, a * 1), 0),
        (lambda g, a, b: (g * b, g * a * 1.0001), 1),
        (lambda g, a, b: (g * b, (g * a).sum(0).broadcast_to((2, 3))), 1),
    ],
    ids=["doubled", "sign", "swapped", "out_grad ignored", "slightly off", "summed"],
)
def test_a_wrong_gradient_is_found(gradient, i, inputs, rng):
    message = rf"\[Product\] input {i}, element \(\d, \d\): expected -?\d\S*, got -?\d\S*; \d of 6"
    with pytest.raises(AssertionError, match=message):
        check_gradients(product(gradient), *inputs, rng=rng)


def test_a_single_wrong_element_is_named(inputs, rng):
    spike = np.zeros((2, 3))
    spike[1, 2] = 0.5
    wrong = product(lambda g, a, b: (g * b + spike, g * a))
    with pytest.raises(AssertionError, match=r"\[Product\] input 0, element \(1, 2\): .*1 of 6"):
        check_gradients(wrong, *inputs, rng=rng)


def test_a_gradient_that_is_nan_is_found(inputs, rng):
    wrong = product(lambda g, a, b: (g * b, g * a * np.nan))
    with pytest.raises(AssertionError, match=r"input 1, element .*got nan"):
        check_gradients(wrong, *inputs, rng=rng)


def test_a_missing_gradient_is_found(inputs, rng):
    with pytest.raises(AssertionError, match=r"\[Product\] input 1 got no gradient"):
        check_gradients(product(lambda g, a, b: (g * b, None)), *inputs, rng=rng)


def test_a_forgotten_graph_is_found(inputs, rng):
    with pytest.raises(AssertionError, match=r"\[.*\] forgot the graph"):
        check_gradients(lambda a, b: (a * b).detach(), *inputs, rng=rng)


def test_a_wrong_dtype_is_found(inputs, rng):
    def narrow(g, a, b):
        return Tensor((g * b).numpy(), dtype="float32", device=g.device), g * a

    with pytest.raises(AssertionError, match=r"\[Product\] input 0: dtype float32"):
        check_gradients(product(narrow), *inputs, rng=rng)


def test_tuples_and_keywords_are_checked(rng):
    def scaled(x, *, factor):
        return ops.fused_add_scalars(x * factor, 1.0, 2.0)

    check_gradients(scaled, rng.standard_normal(3), rng=rng, factor=3.0)
    check_values(scaled, lambda x, factor: (x * factor + 1, x * factor + 2), [1.0], factor=3.0)
    with pytest.raises(AssertionError, match=r"\[scaled\] output 1, element \(0,\): expected 6"):
        check_values(scaled, lambda x, factor: (x * factor + 1, x * factor + 3), [1.0], factor=3.0)
    with pytest.raises(AssertionError, match="2 outputs, expected 1"):
        check_values(scaled, lambda x, factor: x * factor, [1.0], factor=3.0)


def test_a_wrong_shape_is_found():
    with pytest.raises(
        AssertionError, match=r"\[negate\] output 0: shape \(1, 2\), expected \(2,\)"
    ):
        check_values(ops.negate, lambda x: -x[0], [[1.0, 2.0]])
