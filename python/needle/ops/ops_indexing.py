"""Ops that take parts of Tensors, join them or choose between them.

Their gradients go back the same way: a part to its place, a whole to its parts.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from needle.autograd import Tensor, TensorOp
from needle.backend_ndarray import layout
from needle.backend_selection import array_api
from needle.errors import IndexingError, ShapeError
from needle.ops.ops_device import check_devices
from needle.ops.ops_mathematic import broadcast_to, permute, reshape

__all__ = [
    "AddRows",
    "Concatenate",
    "PlaceSlice",
    "TakeRows",
    "TakeSlice",
    "Where",
    "concatenate",
    "getitem",
    "take",
    "where",
]

Shape = tuple[int, ...]


class TakeSlice(TensorOp):
    """The part that one slice an axis selects; the rank stays."""

    def __init__(self, slices: tuple[slice, ...]) -> None:
        self.slices = slices

    def compute(self, a):
        return a[self.slices]

    def gradient(self, out_grad, node):
        return PlaceSlice(self.slices, node.inputs[0].shape)(out_grad)


class PlaceSlice(TensorOp):
    """Zeros of `shape` with the input written into the part that `slices` select: TakeSlice
    backwards.
    """

    def __init__(self, slices: tuple[slice, ...], shape: Shape) -> None:
        self.slices = slices
        self.shape = shape

    def compute(self, a):
        out = array_api.full_like(a, 0, shape=self.shape)
        out[self.slices] = a
        return out

    def gradient(self, out_grad, node):
        return TakeSlice(self.slices)(out_grad)


def getitem(a: Tensor, idxs: Any) -> Tensor:
    """Return the part that integers, slices, `...` and None select; an integer's axis drops, None
    adds one.

    A single array or list of integers takes these places of the first axis, as `take` does; one of
    booleans, the places where it is true.

    Raises:
        IndexingError: for an index outside its axis, too many indices, or another kind of index.
    """
    if isinstance(idxs, list) or (isinstance(idxs, np.ndarray) and idxs.ndim > 0):
        return _take(a, _without_mask(np.asarray(idxs), a.shape), 0, "getitem")
    entries = idxs if isinstance(idxs, tuple) else (idxs,)
    expanded = layout.expand_index(tuple(entry for entry in entries if entry is not None), a.ndim)
    slices = []
    for axis, entry in enumerate(expanded):
        bounds = layout.normalize_slice(entry, a.shape[axis], axis)
        if layout.slice_length(bounds) == 0:
            bounds = slice(0, 0, 1)
        # A negative step that runs through element 0 stops at None: -1 would count from the end.
        slices.append(slice(bounds.start, None, bounds.step) if bounds.stop < 0 else bounds)
    shape = _indexed_shape(a.shape, entries, expanded)
    part = TakeSlice(tuple(slices))(a)
    return part if part.shape == shape else reshape(part, shape)


def _indexed_shape(shape: Shape, entries: tuple[Any, ...], expanded: tuple[Any, ...]) -> Shape:
    """Return the shape that an index with integers and None gives, as numpy does."""
    sizes: list[int | None] = [  # None for an axis that an integer drops
        layout.slice_length(layout.normalize_slice(entry, shape[axis], axis))
        if isinstance(entry, slice)
        else None
        for axis, entry in enumerate(expanded)
    ]
    position = 0
    result: list[int] = []
    for entry in entries:
        taken = 1
        if entry is None:
            result.append(1)
            taken = 0
        elif entry is Ellipsis:
            taken = len(shape) - sum(e is not None and e is not Ellipsis for e in entries)
        result += [size for size in sizes[position : position + taken] if size is not None]
        position += taken
    return (*result, *(size for size in sizes[position:] if size is not None))


class TakeRows(TensorOp):
    """The rows of a matrix that a Tensor of whole numbers names: (n, d) -> (count, d)."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    def compute(self, a):
        return array_api.take_rows(a, self.rows.realize_cached_data())

    def gradient(self, out_grad, node):
        return AddRows(self.rows, node.inputs[0].shape[0])(out_grad)


class AddRows(TensorOp):
    """Zeros of (n, d) with each row of the input added at its number: TakeRows backwards."""

    def __init__(self, rows: Tensor, n: int) -> None:
        self.rows = rows
        self.n = n

    def compute(self, a):
        return array_api.add_rows(a, self.rows.realize_cached_data(), self.n)

    def gradient(self, out_grad, node):
        return TakeRows(self.rows)(out_grad)


def take(a: Tensor, indices: Any, axis: int = 0) -> Tensor:
    """Return the parts of `a` at `indices` along `axis`, whose place in the shape theirs takes.

    Args:
        a: any shape, at most 2 ** 24 along `axis`.
        indices: a Tensor of whole numbers, a numpy array or a list of integers, of any shape;
            negative ones count from the end. They get no gradient.
        axis: where `a` is indexed.

    Raises:
        IndexingError: for an index outside the axis or not whole, or an axis that `a` lacks.
        ShapeError: for a longer axis.
    """
    values = indices.numpy() if isinstance(indices, Tensor) else np.asarray(indices)
    if isinstance(indices, Tensor):
        broken = values[values != np.rint(values)]  # a NaN too
        if broken.size:
            raise IndexingError(f"[take] index {broken[0]} is no whole number; round it first")
    elif values.dtype.kind not in "iu" and values.size:
        raise IndexingError(f"[take] indices of type {values.dtype}; give integers or a Tensor")
    return _take(a, values, axis, "take")


# Floats hold whole numbers up to here without a gap.
MOST_ROWS = 2**24


def _take(a: Tensor, indices: np.ndarray, axis: int, op: str) -> Tensor:
    """Run `take` on whole numbers, as any type; `op` names who asks."""
    (axis,) = layout.normalize_axes(axis, a.ndim, op)
    rows = Tensor(
        _from_the_start(indices, a.shape[axis], axis, op).reshape(-1),
        device=a.device,
        dtype="float32",
        requires_grad=False,
    )
    if axis:
        a = permute(a, (axis, *(i for i in range(a.ndim) if i != axis)))
    rest = a.shape[1:]
    matrix = a if a.ndim == 2 else reshape(a, (a.shape[0], prod(rest)))
    taken = TakeRows(rows)(matrix)  # (count, d)
    if indices.ndim != 1 or len(rest) != 1:
        taken = reshape(taken, (*indices.shape, *rest))
    if axis:  # back between the axes that were before and after it
        ndim = indices.ndim
        before = range(ndim, ndim + axis)
        taken = permute(taken, (*before, *range(ndim), *range(ndim + axis, taken.ndim)))
    return taken


def _from_the_start(indices: np.ndarray, size: int, axis: int, op: str) -> np.ndarray:
    """Return indices into an axis of `size` elements, with the negative ones counted from the
    start.
    """
    if size > MOST_ROWS:
        raise ShapeError(
            f"[{op}] axis {axis} has {size} elements; indices reach {MOST_ROWS} of them"
        )
    if indices.size == 0:
        return indices.astype(np.float32)
    if indices.min() < -size or indices.max() >= size:
        outside = indices[(indices < -size) | (indices >= size)]
        raise IndexingError(
            f"[{op}] index {outside[0]:.0f} is out of range for axis {axis} of size {size}"
        )
    whole = indices.astype(np.int64)
    return np.where(whole < 0, whole + size, whole)


def _without_mask(index: np.ndarray, shape: Shape) -> np.ndarray:
    """Return an array index as places on the first axis of `shape`."""
    if index.dtype == bool:
        if index.shape != shape[:1]:
            raise IndexingError(
                f"[getitem] a mask of shape {index.shape} for shape {shape}; it needs one entry "
                "for each place on axis 0"
            )
        return np.flatnonzero(index)
    if index.dtype.kind not in "iu" and index.size:
        raise IndexingError(
            f"[getitem] cannot index axis 0 with an array of {index.dtype}; use integers or "
            "booleans"
        )
    return index


class Concatenate(TensorOp):
    """Tensors joined along an axis that they have."""

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def compute(self, *args):
        shape = list(args[0].shape)
        shape[self.axis] = sum(a.shape[self.axis] for a in args)
        out = array_api.full_like(args[0], 0, shape=tuple(shape))
        for a, part in zip(args, self._parts([a.shape for a in args]), strict=True):
            out[part] = a
        return out

    def gradient(self, out_grad, node):
        return tuple(
            TakeSlice(part)(out_grad) for part in self._parts([x.shape for x in node.inputs])
        )

    def _parts(self, shapes: list[Shape]) -> list[tuple[slice, ...]]:
        """Return where each input lies in the result."""
        parts = []
        start = 0
        for shape in shapes:
            whole = [slice(0, size) for size in shape]
            whole[self.axis] = slice(start, start + shape[self.axis])
            start += shape[self.axis]
            parts.append(tuple(whole))
        return parts


def concatenate(args: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Return the Tensors joined along `axis`.

    Raises:
        ShapeError: if there are none, or their other sizes differ.
    """
    tensors = tuple(args)
    if not tensors:
        raise ShapeError("[concatenate] no Tensors given")
    shapes = [x.shape for x in tensors]
    (axis,) = layout.normalize_axes(axis, len(shapes[0]), "concatenate")
    if (
        len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) > 1
        or len({len(s) for s in shapes}) > 1
    ):
        raise ShapeError(f"[concatenate] shapes {shapes} differ in more than axis {axis}")
    check_devices("concatenate", *tensors)
    return Concatenate(axis)(*tensors)


class Where(TensorOp):
    def __init__(self, condition: Tensor) -> None:
        self.condition = condition

    def compute(self, a, b):
        return array_api.where(self.condition.realize_cached_data(), a, b)

    def gradient(self, out_grad, node):
        # Chosen, not multiplied: an inf or NaN in the part that was not taken must not reach its
        # gradient.
        return where(self.condition, out_grad, 0), where(self.condition, 0, out_grad)


def where(condition: Tensor, a: Any, b: Any) -> Tensor:
    """Return elements of `a` where the condition is not 0, else of `b`; the three broadcast."""
    tensors = [x for x in (a, b, condition) if isinstance(x, Tensor)]
    like = tensors[0] if tensors else Tensor(condition, requires_grad=False)
    condition, a, b = (x if isinstance(x, Tensor) else like._constant(x) for x in (condition, a, b))
    shape = layout.broadcast_shapes(a.shape, b.shape, "where")
    shape = layout.broadcast_shapes(condition.shape, shape, "where")
    mask = broadcast_to(condition.detach(), shape)
    return Where(mask)(broadcast_to(a, shape), broadcast_to(b, shape))
