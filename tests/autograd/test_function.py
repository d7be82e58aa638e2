"""Function: forward and backward on raw arrays, any number of inputs and outputs."""

import gc
import weakref

import numpy as np
import pytest

import needle as ndl
from needle import autograd
from needle.backend_selection import array_api
from needle.errors import GraphError, NeedleError
from needle.recording import no_grad
from tests.gradcheck import check_gradients, check_values, constant64, tensor64


class Cube(ndl.Function):
    def forward(self, x):
        self.x = x
        return x * x * x

    def backward(self, out_grad):
        return 3 * self.x * self.x * out_grad


class SumAndProduct(ndl.Function):
    """Two inputs of one shape, two outputs."""

    def forward(self, a, b):
        self.a, self.b = a, b
        return a + b, a * b

    def backward(self, sum_grad, product_grad):
        return sum_grad + self.b * product_grad, sum_grad + self.a * product_grad


class MaskedExp(ndl.Function):
    """An input that has no gradient: the mask."""

    def forward(self, x, mask):
        self.y, self.mask = array_api.exp(x), mask
        return self.y * mask

    def backward(self, out_grad):
        return out_grad * self.y * self.mask, None


class OnTheHost(ndl.Function):
    """What numpy computes comes back to the device."""

    def forward(self, x):
        self.x = np.array(x)
        return np.sinh(self.x)

    def backward(self, out_grad):
        return np.array(out_grad) * np.cosh(self.x)


CASES = {
    "one-input": (lambda x: Cube()(x), lambda x: x**3, ((2, 3),)),
    "no-axes": (lambda x: Cube()(x), lambda x: x**3, ((),)),
    "two-outputs": (SumAndProduct(), lambda a, b: (a + b, a * b), ((3,), (3,))),
    "composed": (
        lambda a, b: Cube()(SumAndProduct()(a, b)[1]) + a,
        lambda a, b: (a * b) ** 3 + a,
        ((2, 2), (2, 2)),
    ),
    "on-the-host": (OnTheHost(), np.sinh, ((2, 3),)),
    "one-instance-twice": (
        lambda x: (lambda f: f(x) + f(x * 2))(Cube()),
        lambda x: 9 * x**3,
        ((3,),),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name, rng):
    call, reference, shapes = CASES[name]
    arrays = [rng.standard_normal(shape) for shape in shapes]
    check_values(call, reference, *arrays)
    check_gradients(call, *arrays, rng=rng)


def test_an_input_without_a_gradient(rng):
    x, mask = tensor64(rng.standard_normal(3)), tensor64([1.0, 0.0, 1.0])
    MaskedExp()(x, mask).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(x.numpy()) * [1, 0, 1])
    assert mask.grad is None


def test_numbers_and_numpy_arrays_are_constants():
    x = tensor64([1.0, 2.0])
    total, product = SumAndProduct()(x, np.array([3.0, 4.0]))
    assert total.numpy().tolist() == [4, 6] and product.numpy().tolist() == [3, 8]
    product.backward()
    assert x.grad.numpy().tolist() == [3, 4]


def test_only_one_of_two_outputs_is_used():
    a, b = tensor64([2.0]), tensor64([5.0])
    _, product = SumAndProduct()(a, b)
    product.backward()
    assert (a.grad.item(), b.grad.item()) == (5.0, 2.0)


def test_devices(device):
    x = ndl.Tensor([1.0, 2.0], device=device, dtype="float32")
    for function, value, slope in (
        (Cube(), [1.0, 8.0], [3.0, 12.0]),
        (OnTheHost(), np.sinh([1, 2]), np.cosh([1, 2])),
    ):
        y = function(x)
        assert y.device == device and y.dtype == "float32"
        np.testing.assert_allclose(y.numpy(), value, rtol=1e-6)
        y.backward()
        assert x.grad.device == device
        np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-6)


def test_without_recording():
    with no_grad():
        y = Cube()(tensor64([2.0]))
    assert y.item() == 8 and not y.requires_grad and y.op is None
    assert not Cube()(constant64([2.0])).requires_grad


def test_lazily():
    with ndl.using_config("lazy", True):
        y = Cube()(tensor64([2.0]))
        assert y.item() == 8


def test_its_gradient_cannot_be_differentiated():
    x = tensor64([2.0])
    y = Cube()(x)
    y.backward()
    with pytest.raises(GraphError, match=r"\[Cube\] its backward works on raw arrays"):
        x.grad.backward()
    with pytest.raises(GraphError, match=r"\[Cube\] its backward works on raw arrays"):
        y.backward(create_graph=True)
        x.grad.backward()


class Wrong(ndl.Function):
    def __init__(self, grads):
        self.grads = grads

    def forward(self, a, b):
        return a * b

    def backward(self, out_grad):
        return self.grads(out_grad)


@pytest.mark.parametrize(
    ("grads", "message"),
    [
        (lambda g: g, r"\[Wrong.backward\] returned 1 gradients for 2 inputs"),
        (lambda g: (g, g, g), r"\[Wrong.backward\] returned 3 gradients for 2 inputs"),
        (lambda g: (g, array_api.sum(g)), r"gradient 1 has shape \(\), its input \(2,\)"),
    ],
)
def test_wrong_gradients(grads, message):
    y = Wrong(grads)(tensor64([1.0, 2.0]), tensor64([1.0, 2.0]))
    with pytest.raises(GraphError, match=message):
        y.backward()


def test_without_a_tensor():
    with pytest.raises(NeedleError, match=r"\[Cube\] no input is a Tensor"):
        Cube()(np.ones(2))


def test_forward_is_yours_to_write():
    with pytest.raises(NotImplementedError):
        ndl.Function()(tensor64([1.0]))


def test_no_cycles():
    gc.collect()
    gc.disable()
    try:
        before = autograd.TENSOR_COUNTER
        x = tensor64([1.0, 2.0])
        y = Cube()(SumAndProduct()(x, x)[0])
        y.backward()
        alive = weakref.ref(y)
        del y
        assert alive() is None
        del x
        assert before == autograd.TENSOR_COUNTER
    finally:
        gc.enable()
