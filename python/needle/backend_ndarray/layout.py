"""Pure functions on shapes, strides and indices: what a view is, with no array in sight.

Shapes and strides are tuples of ints; strides and offsets count elements. `ndarray.py` builds every
view from these.
"""

import math
import operator
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from needle.errors import BroadcastError, IndexingError, ShapeError

__all__ = [
    "as_integers",
    "as_shape",
    "broadcast_shapes",
    "broadcast_strides",
    "check_broadcast",
    "compact_strides",
    "expand_index",
    "is_row_major",
    "normalize_axes",
    "normalize_slice",
    "reduced_shape",
    "resolve_reshape",
    "slice_length",
    "view_bounds",
    "window_view",
]

Shape = tuple[int, ...]

# A training step asks the same questions about the same shapes, each time.
remembered = lru_cache(maxsize=4096)


def as_integers(shape: int | Iterable[Any], op: str) -> Shape:
    """Return an int or several as a tuple of ints; ShapeError if it is not one."""
    try:
        listed = shape if isinstance(shape, Iterable) else (shape,)
        return tuple(map(operator.index, listed))
    except TypeError:
        raise ShapeError(f"[{op}] {shape!r} is not a shape; give integers, e.g. (2, 3)") from None


def as_shape(shape: int | Iterable[Any], op: str) -> Shape:
    """Return `shape` as a tuple of ints; ShapeError if it is not one or a size is negative."""
    sizes = as_integers(shape, op)
    if any(size < 0 for size in sizes):
        raise ShapeError(f"[{op}] shape {sizes} has a negative size")
    return sizes


### SINCE hw3
@remembered
def compact_strides(shape: Shape) -> Shape:
    """Return the row-major strides of `shape`: the last axis steps by one element."""
    strides = []
    stride = 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= size
    return tuple(reversed(strides))


def is_row_major(shape: Shape, strides: Shape) -> bool:
    """Tell whether the elements lie in row-major order without gaps (an axis of size 1 may have any
    stride).
    """
    if strides == compact_strides(shape) or 0 in shape:
        return True
    expected = compact_strides(shape)
    return all(
        size == 1 or stride == want
        for size, stride, want in zip(shape, strides, expected, strict=True)
    )


def view_bounds(shape: Shape, strides: Shape, offset: int) -> tuple[int, int]:
    """Return the lowest and highest element that a non-empty view touches."""
    reach = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    return offset + sum(r for r in reach if r < 0), offset + sum(r for r in reach if r > 0)


### SINCE hw4
### SINCE hw4
@remembered
def window_view(
    shape: Shape, strides: Shape, kernel: tuple[int, int], stride: tuple[int, int]
) -> tuple[Shape, Shape]:
    """Return the shape (N, OH, OW, KH, KW, C) and the strides of the windows of (N, H, W, C).

    A window begins at every `stride`-th row and column where a whole one fits.
    """
    ### BEGIN SOLUTION hw4.window_view
    n, h, w, c = shape
    along_n, along_h, along_w, along_c = strides
    counts = ((h - kernel[0]) // stride[0] + 1, (w - kernel[1]) // stride[1] + 1)
    steps = (along_h * stride[0], along_w * stride[1])
    return (n, *counts, *kernel, c), (along_n, *steps, along_h, along_w, along_c)
    ### END SOLUTION


### END SINCE
### END SINCE
### END SINCE
def normalize_axes(axes: Any, ndim: int, op: str) -> Shape:
    """Return `axes` (None for all, an int, or several; negative ones count from the end) as a
    sorted tuple.
    """
    if axes is None:
        return tuple(range(ndim))
    listed = (axes,) if not isinstance(axes, Iterable) else tuple(axes)
    result = []
    for axis in listed:
        try:
            index = operator.index(axis)
        except TypeError:
            raise ShapeError(f"[{op}] axis {axis!r} is not an integer") from None
        if not -ndim <= index < ndim:
            raise IndexingError(f"[{op}] axis {index} is out of range for {ndim} axes")
        result.append(index % ndim)
    if len(set(result)) != len(result):
        raise ShapeError(f"[{op}] an axis is repeated in {tuple(listed)}")
    return tuple(sorted(result))


@remembered
def reduced_shape(shape: Shape, axes: Shape, keepdims: bool) -> Shape:
    """Return the shape left when `axes` (normalised) are reduced away, or kept as size 1."""
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def resolve_reshape(shape: Shape, target: Sequence[Any], op: str = "reshape") -> Shape:
    """Return `target` with a single -1 replaced by what is left of `shape`'s elements.

    Raises:
        ShapeError: if the element counts differ or more than one size is -1.
    """
    sizes = list(as_integers(target, op))
    total = math.prod(shape)
    if sizes.count(-1) == 1:
        known = -math.prod(sizes)
        if known != 0:
            sizes[sizes.index(-1)] = total // known
    if any(size < 0 for size in sizes) or math.prod(sizes) != total:
        raise ShapeError(
            f"[{op}] {shape} has {total} elements, {tuple(target)} has another number; sizes "
            "must agree"
        )
    return tuple(sizes)


@remembered
def broadcast_shapes(a: Shape, b: Shape, op: str) -> Shape:
    """Return the shape that numpy's rule gives two operands; ShapeError if they do not fit."""
    ndim = max(len(a), len(b))
    padded_a, padded_b = (1,) * (ndim - len(a)) + a, (1,) * (ndim - len(b)) + b
    if any(x != y and x != 1 and y != 1 for x, y in zip(padded_a, padded_b, strict=True)):
        raise BroadcastError(
            f"[{op}] shapes {a} and {b} do not fit; sizes must be equal or 1, counted from the "
            "right"
        )
    return tuple(y if x == 1 else x for x, y in zip(padded_a, padded_b, strict=True))


@remembered
def check_broadcast(shape: Shape, target: Shape, op: str = "broadcast_to") -> None:
    """Raise BroadcastError unless each size of `shape`, from the right, is 1 or the target's."""
    added = len(target) - len(shape)
    if added < 0 or any(s not in (1, t) for s, t in zip(shape, target[added:], strict=True)):
        raise BroadcastError(
            f"[{op}] {shape} cannot become {target}; each size must be 1 or the "
            "target's, from the right"
        )


### SINCE hw3
### SINCE full
@remembered
def broadcast_strides(
    shape: Shape, strides: Shape, target: Shape, op: str = "broadcast_to"
) -> Shape:
    """Return the strides of `shape` seen as `target`: 0 where an axis is stretched or added on the
    left.

    Raises:
        BroadcastError: if an axis is neither 1 nor the target's size.
    """
    check_broadcast(shape, target, op)
    added = len(target) - len(shape)
    kept = (
        0 if s != t else stride for s, t, stride in zip(shape, target[added:], strides, strict=True)
    )
    return (0,) * added + tuple(kept)


### END SINCE
def normalize_slice(index: slice | int, size: int, axis: int = 0) -> slice:
    """Return `index` as a slice with explicit start, stop and step for an axis of `size` elements.

    An int becomes the slice of that one element; negative numbers count from the end. A negative
    step leaves `stop` at -1 when it runs through element 0, so read the result with `slice_length`,
    not with `range(size)[...]`.

    Raises:
        IndexingError: for an int outside the axis, a step of zero or an index of another type.
    """
    if isinstance(index, slice):
        try:
            return slice(*index.indices(size))
        except (TypeError, ValueError) as error:
            raise IndexingError(f"[getitem] {index} is no slice for axis {axis}: {error}") from None
    try:
        if isinstance(index, bool):
            raise TypeError  # no 0 or 1: numpy takes it for a mask
        position = operator.index(index)
    except TypeError:
        kind = type(index).__name__
        raise IndexingError(
            f"[getitem] cannot index axis {axis} with a {kind}; use integers and slices"
        ) from None
    if not -size <= position < size:
        raise IndexingError(
            f"[getitem] index {position} is out of range for axis {axis} of size {size}"
        )
    position %= size
    return slice(position, position + 1, 1)


def slice_length(index: slice) -> int:
    """Return how many elements a normalised slice takes."""
    return len(range(index.start, index.stop, index.step))


def expand_index(index: Any, ndim: int) -> tuple[Any, ...]:
    """Return `index` as a tuple with one entry an axis: `...` and missing entries become full
    slices.
    """
    entries = index if isinstance(index, tuple) else (index,)
    missing = ndim - sum(entry is not Ellipsis for entry in entries)
    if missing < 0:
        raise IndexingError(f"[getitem] {ndim - missing} indices for {ndim} axes")
    ellipses = [i for i, entry in enumerate(entries) if entry is Ellipsis]
    if len(ellipses) > 1:
        raise IndexingError("[getitem] more than one ... in an index")
    at = ellipses[0] if ellipses else len(entries)
    return entries[:at] + (slice(None),) * missing + entries[at + 1 :]


### END SINCE
