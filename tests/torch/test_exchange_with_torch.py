"""Memory shared with PyTorch through DLPack, both ways."""

import gc

import numpy as np
import pytest

import needle as ndl

DEVICES = ("cpu", "cpu_numpy")  # whose memory the host reaches

pytestmark = pytest.mark.torch

VIEWS = {
    "whole": lambda x: x,
    "part": lambda x: x[1:, 2:5],
    "every second": lambda x: x[::2, 1::3],
    "row": lambda x: x[2],
    "number": lambda x: x[2, 3],
    "empty": lambda x: x[2:2],
}


@pytest.mark.parametrize("name", VIEWS)
def test_to_torch(name, device, torch):
    x = ndl.Tensor(np.arange(24).reshape(4, 6), device=device)
    view = VIEWS[name](x)
    there = torch.from_dlpack(view)
    np.testing.assert_array_equal(there.numpy(), view.numpy())
    there -= 100
    np.testing.assert_array_equal(view.numpy(), there.numpy())


def test_transposed_and_broadcast_to_torch(device, torch):
    x = ndl.Tensor(np.arange(3, dtype=np.float32).reshape(1, 3), device=device)
    there = torch.from_dlpack(ndl.transpose(x))
    there[2, 0] = 9
    assert x.numpy()[0, 2] == 9
    stretched = torch.from_dlpack(ndl.broadcast_to(x, (2, 3)))
    np.testing.assert_array_equal(stretched.numpy(), [[0, 1, 9]] * 2)


def test_a_flipped_view_does_not_end_the_process(device, torch):
    """PyTorch has no negative strides; it gets a copy."""
    x = ndl.Tensor(np.arange(4), device=device, dtype="float32")
    flipped = ndl.Tensor.make_const(ndl.array_api.flip(x.realize_cached_data(), 0))
    np.testing.assert_array_equal(torch.from_dlpack(flipped).numpy(), [3, 2, 1, 0])


def test_torch_keeps_our_memory(device, torch):
    there = torch.from_dlpack(ndl.Tensor(np.full((50, 50), 3.0), device=device))
    gc.collect()
    others = [ndl.Tensor(np.zeros((50, 50)), device=device) for _ in range(4)]
    assert there.sum().item() == 7500
    del others


@pytest.mark.parametrize("name", VIEWS)
def test_from_torch(name, device, torch):
    values = torch.arange(24.0).reshape(4, 6)
    view = VIEWS[name](values)
    x = ndl.from_dlpack(view, device=device)
    assert x.shape == tuple(view.shape)
    view += 100
    np.testing.assert_array_equal(x.numpy(), view.numpy())
    x.realize_cached_data()[...] = 5
    np.testing.assert_array_equal(view.numpy(), np.full(tuple(view.shape), 5))


def test_from_torch_keeps_its_memory(device, torch):
    x = ndl.from_dlpack(torch.full((50, 50), 3.0).T, device=device)
    gc.collect()
    others = [torch.zeros(50, 50) for _ in range(4)]
    assert x.sum().item() == 7500
    del others


def test_gradients_cross_over(device, torch):
    """A loss of PyTorch's on our output, and its gradient into our graph."""
    x = ndl.Tensor(np.array([1.0, 2.0, 3.0]), device=device)
    y = x * x
    there = torch.from_dlpack(y).requires_grad_()
    (there * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    y.backward(ndl.from_dlpack(there.grad, device=device))
    np.testing.assert_array_equal(x.grad.numpy(), [2, 40, 600])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda torch: torch.arange(3), ndl.DtypeError, "not int64; convert the array first"),
        (lambda torch: torch.ones(3, dtype=torch.bfloat16), ndl.ExchangeError, "dtype"),
        (lambda torch: torch.ones(3, requires_grad=True), ndl.ExchangeError, r"use .*detach\(\)"),
        (lambda torch: torch.ones(3, device="meta"), ndl.ExchangeError, "meta"),
    ],
    ids=["int64", "bfloat16", "requires_grad", "meta device"],
)
def test_messages(make, error, message, device, torch):
    with pytest.raises(error, match=rf"\[from_dlpack\] .*{message}"):
        ndl.from_dlpack(make(torch), device=device)
