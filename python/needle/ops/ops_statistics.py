"""What a Tensor's numbers are like: mean, variance and deviation, the extremes and where they
are.
"""

from typing import Any

import numpy as np

from needle.autograd import Tensor, TensorOp
from needle.backend_ndarray import layout
from needle.backend_selection import array_api
from needle.errors import ShapeError
from needle.ops.ops_comparison import equal
from needle.ops.ops_mathematic import (
    broadcast_to,
    divide_scalar,
    nonempty_axes,
    reduction_axes,
    spread,
    summation,
)
from needle.ops.ops_unary import sqrt

__all__ = ["Max", "Min", "argmax", "argmin", "max", "mean", "min", "std", "var"]


def mean(a: Tensor, axes: Any = None, keepdims: bool = False) -> Tensor:
    """Return the mean over `axes`; ShapeError over an empty axis."""
    axes = reduction_axes(a, axes, "mean")
    count = 1
    for axis in layout.normalize_axes(axes, a.ndim, "mean"):
        count *= a.shape[axis]
    if count == 0:
        raise ShapeError(f"[mean] shape {a.shape} is empty along {axes}; a mean needs an element")
    return divide_scalar(summation(a, axes, keepdims), count)


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
    most_lost = correction if correction > 0 else 0
    if count <= most_lost:
        raise ShapeError(
            f"[var] shape {a.shape} has {count} elements along {axes}; a variance with correction "
            f"{correction} needs more than {most_lost}"
        )
    centred = a - broadcast_to(mean(a, axes, keepdims=True), a.shape)
    return divide_scalar(summation(centred * centred, axes, keepdims), count - correction)


def std(a: Tensor, axes: Any = None, keepdims: bool = False, correction: int = 0) -> Tensor:
    """Return the standard deviation over `axes`: the square root of `var`."""
    return sqrt(var(a, axes, keepdims, correction))


class Extremum(TensorOp):
    """What Max and Min share: the gradient goes to the extreme elements, those that tie share it
    evenly.
    """

    def __init__(self, axes: Any = None, keepdims: bool = False) -> None:
        self.axes = axes
        self.keepdims = keepdims

    def gradient(self, out_grad, node):
        a = node.inputs[0]
        chosen = equal(a, spread(node.detach(), a.shape, self.axes))
        ties = summation(chosen, self.axes, self.keepdims)
        return spread(out_grad / ties, a.shape, self.axes) * chosen


class Max(Extremum):
    def compute(self, a):
        return array_api.max(a, self.axes, self.keepdims)


def max(a: Tensor, axes: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A001 - numpy's name
    """Return the maximum over `axes`; ShapeError over an empty axis."""
    return Max(nonempty_axes(a, axes, "max"), keepdims)(a)


class Min(Extremum):
    def compute(self, a):
        return array_api.min(a, self.axes, self.keepdims)


def min(a: Tensor, axes: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A001 - numpy's name
    """Return the minimum over `axes`; ShapeError over an empty axis."""
    return Min(nonempty_axes(a, axes, "min"), keepdims)(a)


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
