"""What a Tensor's numbers are like: variance and deviation, made of other ops, and where the
extremes are.
"""

from typing import Any

import numpy as np

from needle.autograd import Tensor
from needle.backend_ndarray import layout
from needle.backend_selection import array_api
from needle.errors import ShapeError
from needle.ops.ops_mathematic import (
    broadcast_to,
    divide_scalar,
    mean,
    nonempty_axes,
    sqrt,
    summation,
)

__all__ = ["argmax", "argmin", "std", "var"]


def var(a: Tensor, axes: Any = None, keepdims: bool = False, correction: int = 0) -> Tensor:
    """Return the mean square deviation from the mean over `axes`.

    Args:
        correction: what is taken from the count n before the division: 0 for the biased variance
            (numpy's default), 1 for the unbiased one (PyTorch's).

    Raises:
        ShapeError: if there are not more than `correction` elements to take it of.
    """
    count = 1
    for axis in layout.normalize_axes(axes, a.ndim, "var"):
        count *= a.shape[axis]
    if count <= max(correction, 0):
        raise ShapeError(
            f"[var] shape {a.shape} has {count} elements along {axes}; a variance with correction "
            f"{correction} needs more than {max(correction, 0)}"
        )
    centred = a - broadcast_to(mean(a, axes, keepdims=True), a.shape)
    return divide_scalar(summation(centred * centred, axes, keepdims), count - correction)


def std(a: Tensor, axes: Any = None, keepdims: bool = False, correction: int = 0) -> Tensor:
    """Return the standard deviation over `axes`: the square root of `var`."""
    return sqrt(var(a, axes, keepdims, correction))


def argmax(a: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the position of the maximum along `axis` (None: in the flattened Tensor).

    The first one if several tie. Positions are whole numbers of a's dtype, on its device, and a
    constant: they have no gradient. ShapeError over an empty axis.
    """
    return _position(a, axis, keepdims, np.argmax, "argmax")


def argmin(a: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the position of the minimum along `axis` (None: in the flattened Tensor), like
    `argmax`.
    """
    return _position(a, axis, keepdims, np.argmin, "argmin")


def _position(a: Tensor, axis: int | None, keepdims: bool, search: Any, op: str) -> Tensor:
    """Search on the host: positions go to a person or into an index next."""
    nonempty_axes(a, axis, op)
    found = np.asarray(search(a.numpy(), axis=axis, keepdims=keepdims))
    return Tensor.make_const(array_api.array(found, dtype=a.dtype, device=a.device))
