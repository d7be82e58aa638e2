"""Positions of extremes, which are constants, and the limits of variance and flatten."""

import numpy as np
import pytest

from needle import ops
from needle.autograd import Tensor
from needle.errors import ShapeError


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_positions(device, rng, name, axis, keepdims):
    values = rng.integers(0, 3, (4, 5)).astype(np.float32)  # with ties: the first one counts
    x = Tensor(values, device=device)
    got = getattr(x, name)(axis, keepdims)
    expected = getattr(np, name)(values, axis=axis, keepdims=keepdims)
    assert got.shape == expected.shape and got.numpy().tolist() == expected.tolist()
    assert got.device == device and got.dtype == "float32" and not got.requires_grad
    assert getattr(ops, name)(x, axis, keepdims).numpy().tolist() == expected.tolist()


def test_position_along_dim(device):
    assert Tensor([[1.0, 3.0], [4.0, 2.0]], device=device).argmax(dim=1).numpy().tolist() == [1, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.argmax(2), r"\[argmax\] axis 2"),
        (lambda x: x[:0].argmax(0), r"\[argmax\] shape \(0, 3\) is empty along 0"),
        (lambda x: x.argmax(0, dim=1), r"\[axes\] give one of axes, axis and dim"),
        (lambda x: x.sum(0, axis=1), r"\[axes\] give one of axes, axis and dim"),
        (lambda x: x.var(0, correction=2), r"\[var\] shape \(2, 3\) has 2 elements along 0"),
        (lambda x: x[:0].std(0), r"\[var\] shape \(0, 3\) has 0 elements along 0"),
        (lambda x: x.flatten(1, 0), r"\[flatten\] start_dim 1 comes after end_dim 0"),
        (lambda x: x.flatten(2), r"\[flatten\] axis 2"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ShapeError, match=message):
        call(Tensor(np.ones((2, 3), np.float32)))
