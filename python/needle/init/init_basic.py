"""Tensors of random, constant or one-hot values.

Random numbers come from numpy's global generator, one draw of the full shape a call, on every
device: seeding `np.random` makes a run repeatable, and the order of calls is part of the contract.
"""

from typing import Any

import numpy as np

from needle.autograd import Tensor
from needle.backend_selection import BACKEND, array_api, as_device, default_device
from needle.errors import IndexingError

__all__ = [
    "constant",
    "one_hot",
    "ones",
    "ones_like",
    "rand",
    "randb",
    "randn",
    "zeros",
    "zeros_like",
]


def _tensor(values: np.ndarray, device: Any, dtype: Any, requires_grad: bool) -> Tensor:
    """Return `values` as a leaf."""
    ### SINCE hw4
    # Our arrays have no booleans: there a mask is 0 and 1 in the default dtype.
    if BACKEND == "nd" and dtype == "bool":
        dtype = None
    ### END SINCE
    return Tensor(values, device=device, dtype=dtype, requires_grad=requires_grad)


def rand(
    *shape: int,
    low: float = 0.0,
    high: float = 1.0,
    device: Any = None,
    dtype: Any = "float32",
    requires_grad: bool = False,
) -> Tensor:
    """Return uniform numbers from [low, high)."""
    return _tensor(
        np.asarray(np.random.rand(*shape)) * (high - low) + low, device, dtype, requires_grad
    )


def randn(
    *shape: int,
    mean: float = 0.0,
    std: float = 1.0,
    device: Any = None,
    dtype: Any = "float32",
    requires_grad: bool = False,
) -> Tensor:
    """Return normal numbers with the given mean and standard deviation."""
    return _tensor(np.asarray(np.random.randn(*shape)) * std + mean, device, dtype, requires_grad)


### SINCE hw2
def randb(
    *shape: int,
    p: float = 0.5,
    device: Any = None,
    dtype: Any = "bool",
    requires_grad: bool = False,
) -> Tensor:
    """Return 1 with probability `p`, else 0."""
    return _tensor(np.asarray(np.random.rand(*shape)) <= p, device, dtype, requires_grad)


### END SINCE
def constant(
    *shape: int,
    c: float = 1.0,
    device: Any = None,
    dtype: Any = "float32",
    requires_grad: bool = False,
) -> Tensor:
    """Return a Tensor with every element equal to `c`."""
    device = default_device() if device is None else as_device(device)
    return Tensor.make_const(
        array_api.full(shape, c, dtype=dtype, device=device), requires_grad=requires_grad
    )


def ones(
    *shape: int, device: Any = None, dtype: Any = "float32", requires_grad: bool = False
) -> Tensor:
    """Return ones."""
    return constant(*shape, c=1.0, device=device, dtype=dtype, requires_grad=requires_grad)


def zeros(
    *shape: int, device: Any = None, dtype: Any = "float32", requires_grad: bool = False
) -> Tensor:
    """Return zeros."""
    return constant(*shape, c=0.0, device=device, dtype=dtype, requires_grad=requires_grad)


def ones_like(array: Tensor, *, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return ones of array's shape and dtype, on its device unless another is given."""
    device = array.device if device is None else device
    return ones(*array.shape, device=device, dtype=array.dtype, requires_grad=requires_grad)


def zeros_like(array: Tensor, *, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return zeros of array's shape and dtype, on its device unless another is given."""
    device = array.device if device is None else device
    return zeros(*array.shape, device=device, dtype=array.dtype, requires_grad=requires_grad)


def one_hot(
    n: int, i: Tensor, device: Any = None, dtype: Any = "float32", requires_grad: bool = False
) -> Tensor:
    """Return a one-hot vector of length `n` for each integer in `i`: shape (*i.shape, n).

    Raises:
        IndexingError: if an integer is not in 0 .. n-1.
    """
    indices = i.numpy().astype("int32")
    if indices.size and (indices.min() < 0 or indices.max() >= n):
        raise IndexingError(f"[one_hot] label {_outside(indices, n)} is not one of 0..{n - 1}")
    device = i.device if device is None else as_device(device)
    hits = indices[..., np.newaxis] == np.arange(n)  # (*i.shape, n), without an n x n identity
    return Tensor.make_const(
        array_api.array(hits, dtype=dtype, device=device), requires_grad=requires_grad
    )


def _outside(indices: np.ndarray, n: int) -> int:
    """Return the first index that is not in 0 .. n-1."""
    return int(indices[(indices < 0) | (indices >= n)].flat[0])
