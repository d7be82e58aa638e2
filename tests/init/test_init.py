"""needle.init: values against numpy, what a call draws from numpy's stream, devices and dtypes."""

import math

import numpy as np
import pytest

import needle as ndl
from needle import init
from needle.errors import DtypeError, IndexingError, NeedleError

# How each random factory is called, and the same numbers from numpy: one draw of the full shape.
RANDOM = {
    "rand": (lambda **kw: init.rand(3, 4, **kw), lambda: np.random.rand(3, 4)),
    "rand in a range": (
        lambda **kw: init.rand(5, low=-2, high=3, **kw),
        lambda: np.random.rand(5) * 5 - 2,
    ),
    "rand of shape ()": (lambda **kw: init.rand(**kw), lambda: np.random.rand()),
    "rand of nothing": (lambda **kw: init.rand(0, 3, **kw), lambda: np.random.rand(0, 3)),
    "randn": (lambda **kw: init.randn(3, 4, **kw), lambda: np.random.randn(3, 4)),
    "randn moved": (
        lambda **kw: init.randn(2, 3, mean=4, std=0.5, **kw),
        lambda: np.random.randn(2, 3) * 0.5 + 4,
    ),
    "randb": (lambda **kw: init.randb(40, **kw), lambda: np.random.rand(40) <= 0.5),
    "randb with p": (
        lambda **kw: init.randb(8, 9, p=0.2, **kw),
        lambda: np.random.rand(8, 9) <= 0.2,
    ),
    "xavier_uniform": (
        lambda **kw: init.xavier_uniform(3, 5, gain=1.5, **kw),
        lambda: (np.random.rand(3, 5) * 2 - 1) * 1.5 * math.sqrt(6 / (3 + 5)),
    ),
    "xavier_normal": (
        lambda **kw: init.xavier_normal(3, 5, gain=0.3, **kw),
        lambda: np.random.randn(3, 5) * 0.3 * math.sqrt(2 / (3 + 5)),
    ),
    "xavier_uniform of a shape": (
        lambda **kw: init.xavier_uniform(3, 5, shape=(2, 3, 4), **kw),
        lambda: (np.random.rand(2, 3, 4) * 2 - 1) * math.sqrt(6 / (3 + 5)),
    ),
    "xavier_normal of a shape": (
        lambda **kw: init.xavier_normal(3, 5, shape=(7,), **kw),
        lambda: np.random.randn(7) * math.sqrt(2 / (3 + 5)),
    ),
    "kaiming_uniform of a shape": (
        lambda **kw: init.kaiming_uniform(6, 5, shape=(3, 1, 2, 5), **kw),
        lambda: (np.random.rand(3, 1, 2, 5) * 2 - 1) * math.sqrt(2) * math.sqrt(3 / 6),
    ),
    "kaiming_normal of a shape": (
        lambda **kw: init.kaiming_normal(6, 5, (2, 3, 5), **kw),
        lambda: np.random.randn(2, 3, 5) * math.sqrt(2) / math.sqrt(6),
    ),
    "kaiming_uniform": (
        lambda **kw: init.kaiming_uniform(3, 5, **kw),
        lambda: (np.random.rand(3, 5) * 2 - 1) * math.sqrt(2) * math.sqrt(3 / 3),
    ),
    "kaiming_normal": (
        lambda **kw: init.kaiming_normal(6, 5, **kw),
        lambda: np.random.randn(6, 5) * math.sqrt(2) / math.sqrt(6),
    ),
}
CONSTANT = {
    "constant": (lambda **kw: init.constant(2, 3, c=-1.5, **kw), np.full((2, 3), -1.5)),
    "ones": (lambda **kw: init.ones(2, 3, **kw), np.ones((2, 3))),
    "ones of shape ()": (lambda **kw: init.ones(**kw), np.ones(())),
    "zeros": (lambda **kw: init.zeros(0, 3, **kw), np.zeros((0, 3))),
}


several_devices = pytest.mark.skipif(ndl.BACKEND == "np", reason="there is one device")


def case(table):
    return pytest.mark.parametrize("name", table)


@case(RANDOM)
def test_random_numbers_are_one_draw_of_numpys_generator(device, name):
    make, expected = RANDOM[name]
    np.random.seed(3)
    tensor = make(device=device)
    after = np.random.rand()
    np.random.seed(3)
    np.testing.assert_allclose(tensor.numpy(), np.asarray(expected()), rtol=1e-6, atol=1e-7)
    assert np.random.rand() == after, "another number of draws than one of the full shape"


@case(CONSTANT)
def test_constants_draw_nothing(device, name):
    make, expected = CONSTANT[name]
    np.random.seed(3)
    tensor = make(device=device)
    assert np.random.rand() == np.random.RandomState(3).rand()
    assert tensor.shape == expected.shape
    np.testing.assert_array_equal(tensor.numpy(), expected)


@case(RANDOM | CONSTANT)
def test_results_are_float32_leaves_on_the_device_without_gradient(device, name):
    make, _ = (RANDOM | CONSTANT)[name]
    tensor = make(device=device)
    assert tensor.device == device
    boolean = ndl.BACKEND == "np" and name.startswith("randb")  # our arrays have no booleans
    assert tensor.numpy().dtype == (np.bool_ if boolean else np.float32)
    assert tensor.is_leaf() and not tensor.requires_grad
    assert make(device=device, requires_grad=True).requires_grad


@case(RANDOM | CONSTANT)
def test_without_a_device_tensors_lie_on_the_default_one(name):
    make, _ = (RANDOM | CONSTANT)[name]
    assert make().device == ndl.default_device()


@several_devices
@pytest.mark.parametrize(
    "make", [init.rand, init.randn, init.ones, init.constant, init.kaiming_normal]
)
def test_float64_lives_on_cpu_numpy_alone(make):
    assert make(2, 3, device="cpu_numpy", dtype="float64").numpy().dtype == np.float64
    if ndl.cpu().enabled():
        with pytest.raises(DtypeError, match="float32, not float64"):
            make(2, 3, device="cpu", dtype="float64")


def test_randb_is_one_where_the_draw_is_at_most_p(device, monkeypatch):
    draws = np.array([0.0, 0.25, np.nextafter(0.25, 1), 1.0])
    monkeypatch.setattr(np.random, "rand", lambda *shape: draws)
    np.testing.assert_array_equal(init.randb(4, p=0.25, device=device).numpy(), [1, 1, 0, 0])


@pytest.mark.parametrize("like, value", [(init.ones_like, 1), (init.zeros_like, 0)])
def test_like_keeps_shape_dtype_and_device(device, like, value):
    model = ndl.Tensor(np.full((2, 3), 7.0), device=device)
    tensor = like(model)
    np.testing.assert_array_equal(tensor.numpy(), np.full((2, 3), value))
    assert tensor.device == device and tensor.dtype == model.dtype and not tensor.requires_grad
    assert like(model, requires_grad=True).requires_grad


@several_devices
@pytest.mark.parametrize("like", [init.ones_like, init.zeros_like])
def test_like_goes_where_it_is_told(device, like):
    model = ndl.Tensor([1.0], device=device)
    assert like(model, device="cpu_numpy").device == ndl.cpu_numpy()


@several_devices
@pytest.mark.parametrize("like", [init.ones_like, init.zeros_like])
def test_like_keeps_float64(like):
    model = ndl.Tensor([1.0], device="cpu_numpy", dtype="float64")
    assert like(model).numpy().dtype == np.float64


@pytest.mark.parametrize("initialiser", [init.kaiming_uniform, init.kaiming_normal])
def test_kaiming_knows_relu_alone(initialiser):
    with pytest.raises(NeedleError, match=r"\[kaiming\] nonlinearity 'tanh'.*only 'relu'"):
        initialiser(3, 4, nonlinearity="tanh")


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32])
@pytest.mark.parametrize(
    "labels", [2, [0, 2, 1, 1], [[3, 0, 1], [1, 2, 3]], np.zeros((0,)), np.zeros((2, 0))]
)
def test_one_hot_adds_an_axis(device, labels, dtype):
    labels = np.asarray(labels, dtype)
    tensor = init.one_hot(4, ndl.Tensor(labels, device=device))
    expected = (labels[..., np.newaxis] == np.arange(4)).astype(np.float32)
    assert tensor.shape == (*labels.shape, 4)
    assert tensor.device == device and not tensor.requires_grad
    assert tensor.numpy().dtype == np.float32
    np.testing.assert_array_equal(tensor.numpy(), expected)


@pytest.mark.parametrize("label", [10, -1, 300])
def test_one_hot_refuses_a_label_that_is_no_class(device, label):
    labels = ndl.Tensor([3.0, label, 9.0], device=device)
    with pytest.raises(IndexingError, match=rf"\[one_hot\] label {label} is not one of 0\.\.9"):
        init.one_hot(10, labels)


@several_devices
def test_one_hot_goes_where_it_is_told(device):
    labels = ndl.Tensor([0.0, 1.0], device=device)
    assert init.one_hot(2, labels, device="cpu_numpy").device == ndl.cpu_numpy()
    assert init.one_hot(2, labels, device="cpu_numpy", dtype="float64").numpy().dtype == np.float64
