"""Moving a Tensor between devices is recorded: the gradient comes back."""

import numpy as np
import pytest

import needle as ndl
from needle.backend_selection import BACKEND
from needle.errors import DeviceError, DtypeError


def test_to_itself_is_the_tensor(device):
    x = ndl.Tensor([1.0], device=device)
    assert x.to(device) is x and x.to(device.name if BACKEND == "nd" else "cpu") is x


@pytest.mark.skipif(BACKEND == "np", reason="of several devices")
@pytest.mark.parametrize("name", ["cpu", "cpu_numpy", "cuda"])
def test_there_and_back(device, name, rng):
    other = ndl.as_device(name)
    if not other.enabled():
        pytest.skip(other.reason)
    values = rng.standard_normal((2, 3)).astype(np.float32)
    x = ndl.Tensor(values, device=device)
    moved = x.permute((1, 0)).to(name)  # a view: strides do not travel
    assert moved.device == other
    np.testing.assert_array_equal(moved.numpy(), values.T)
    weights = rng.standard_normal((3, 2)).astype(np.float32)
    moved.backward(ndl.Tensor(weights, device=other))
    assert x.grad.device == device
    np.testing.assert_array_equal(x.grad.numpy(), weights.T)


@pytest.mark.skipif(BACKEND == "np", reason="of several devices")
def test_a_gradient_that_crossed_can_be_differentiated():
    x = ndl.Tensor([3.0], device="cpu_numpy")
    moved = x.to("cpu")
    y = moved * moved * moved
    y.backward()
    x.grad.backward()
    assert x.grad.numpy().tolist() == [18.0]  # d/dx 3x²


@pytest.mark.skipif(BACKEND == "np", reason="of several devices")
def test_refusals():
    x = ndl.Tensor([1.0], device="cpu_numpy", dtype="float64")
    with pytest.raises(DtypeError, match="float64"):
        x.to("cpu")
    with pytest.raises(DeviceError, match=r"\[device\] 'tpu' is no device"):
        x.to("tpu")


@pytest.mark.skipif(BACKEND == "np", reason="of several devices")
@pytest.mark.parametrize(
    ("op", "call"),
    [
        ("conv", lambda a, b: ndl.conv(a, b)),
        ("stack", lambda a, b: ndl.stack([a, b])),
        ("concatenate", lambda a, b: ndl.concatenate([a, b])),
        ("compare", lambda a, b: a > b),
        ("add", lambda a, b: a + b),
        ("matmul", lambda a, b: a @ b),
        ("where", lambda a, b: ndl.where(a, a, b)),
    ],
)
def test_two_devices_in_one_op(op, call):
    a, b = (ndl.ones(3, 3, 3, 3, device=name) for name in ("cpu", "cpu_numpy"))
    with pytest.raises(DeviceError, match=rf"\[{op}\] operands on cpu\(\) and cpu_numpy\(\); move"):
        call(a, b)
