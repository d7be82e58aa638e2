"""The functions on arrays that an op's compute uses, under the names of `backend_numpy.py`.

One list for both, so that an op is written once for NDArray and for raw numpy.
"""

from collections.abc import Iterable
from typing import Any

from needle.backend_ndarray import layout
from needle.backend_ndarray.exchange import from_dlpack
from needle.backend_ndarray.ndarray import (
    NDArray,
    array,
    as_operand,
    compact_result,
    empty,
    full,
    full_like,
    unary,
)
from needle.errors import DeviceError, ShapeError

__all__ = [
    "abs",
    "add_rows",
    "array",
    "broadcast_to",
    "compact",
    "cos",
    "empty",
    "exp",
    "flip",
    "from_dlpack",
    "full",
    "full_like",
    "log",
    "max",
    "maximum",
    "min",
    "minimum",
    "pad",
    "permute",
    "reshape",
    "sigmoid",
    "sin",
    "sqrt",
    "sum",
    "take_rows",
    "tanh",
    "to_dlpack",
    "where",
    "windows",
]


def compact(a: NDArray) -> NDArray:
    """Return a compact array with a's elements: `a` itself if it is compact."""
    return a.compact()


def reshape(a: NDArray, new_shape: Iterable[int]) -> NDArray:
    """Return a's elements in another shape: a view if `a` is compact, else of a copy."""
    ### BEGIN SOLUTION hw4.array_api.reshape
    return a.compact().reshape(new_shape)
    ### END SOLUTION


def broadcast_to(a: NDArray, new_shape: Iterable[int]) -> NDArray:
    """Return a view of `a` stretched to `new_shape`."""
    ### BEGIN SOLUTION hw4.array_api.broadcast_to
    return a.broadcast_to(new_shape)
    ### END SOLUTION


def permute(a: NDArray, axes: Iterable[int]) -> NDArray:
    """Return a view of `a` with its axes in the order `axes`."""
    ### BEGIN SOLUTION hw4.array_api.permute
    return a.permute(axes)
    ### END SOLUTION


def flip(a: NDArray, axes: int | Iterable[int]) -> NDArray:
    """Return a view of `a` with the order along `axes` reversed."""
    return a.flip(axes)


def pad(a: NDArray, axes: Iterable[tuple[int, int]]) -> NDArray:
    """Return a compact copy of `a` with zeros around it."""
    return a.pad(axes)


def windows(a: NDArray, kernel: tuple[int, int], stride: tuple[int, int]) -> NDArray:
    """Return a view (N, OH, OW, KH, KW, C) of the windows of `a` (N, H, W, C); they may overlap."""
    return a.as_strided(*layout.window_view(a.shape, a.strides, kernel, stride))


def maximum(a: NDArray, b: Any) -> NDArray:
    """Return the larger of two elements; NaN if either is NaN."""
    ### BEGIN SOLUTION hw4.array_api.maximum
    return a.maximum(b)
    ### END SOLUTION


### SINCE full
def minimum(a: NDArray, b: Any) -> NDArray:
    """Return the smaller of two elements; NaN if either is NaN."""
    return a.minimum(b)


### END SINCE
def log(a: NDArray) -> NDArray:
    """Return the natural logarithm of each element."""
    ### BEGIN SOLUTION hw4.array_api.log
    return a.log()
    ### END SOLUTION


def exp(a: NDArray) -> NDArray:
    """Return e to the power of each element."""
    ### BEGIN SOLUTION hw4.array_api.exp
    return a.exp()
    ### END SOLUTION


def tanh(a: NDArray) -> NDArray:
    """Return the hyperbolic tangent of each element."""
    ### BEGIN SOLUTION hw4.array_api.tanh
    return a.tanh()
    ### END SOLUTION


### SINCE full
def sqrt(a: NDArray) -> NDArray:
    """Return the square root of each element."""
    return unary(a, "sqrt")


def sin(a: NDArray) -> NDArray:
    """Return the sine of each element, in radians."""
    return unary(a, "sin")


def cos(a: NDArray) -> NDArray:
    """Return the cosine of each element, in radians."""
    return unary(a, "cos")


def sigmoid(a: NDArray) -> NDArray:
    """Return 1 / (1 + exp(-a)) of each element."""
    return unary(a, "sigmoid")


def abs(a: NDArray) -> NDArray:  # noqa: A001 - numpy's name
    """Return the absolute value of each element."""
    return unary(a, "abs")


### END SINCE
def sum(a: NDArray, axis: Any = None, keepdims: bool = False) -> NDArray:  # noqa: A001 - numpy's name
    """Return the sum over `axis`."""
    ### BEGIN SOLUTION hw4.array_api.sum
    return a.sum(axis, keepdims)
    ### END SOLUTION


def max(a: NDArray, axis: Any = None, keepdims: bool = False) -> NDArray:  # noqa: A001 - numpy's name
    """Return the maximum over `axis`."""
    ### BEGIN SOLUTION hw4.array_api.max
    return a.max(axis, keepdims)
    ### END SOLUTION


### SINCE full
def min(a: NDArray, axis: Any = None, keepdims: bool = False) -> NDArray:  # noqa: A001 - numpy's name
    """Return the minimum over `axis`."""
    return a.min(axis, keepdims)


def where(condition: NDArray, a: Any, b: Any) -> NDArray:
    """Return elements of `a` where the condition is not 0, else of `b`; the three broadcast."""
    a, b = as_operand(a, condition, "where"), as_operand(b, condition, "where")
    shape = layout.broadcast_shapes(condition._shape, a._shape, "where")
    shape = layout.broadcast_shapes(shape, b._shape, "where")
    parts = [part.broadcast_to(shape) for part in (condition, a, b)]
    arguments = [argument for part in parts for argument in (part._handle, part._layout)]
    return compact_result(condition._device, condition._device.where(*arguments), shape)


def take_rows(a: NDArray, indices: NDArray) -> NDArray:
    """Return the rows of the matrix `a` that the list of whole numbers `indices` names.

    Raises:
        IndexingError: for a number that names no row (`cpu_numpy()` counts negative ones from the
            end).
    """
    _check_rows(a, indices, "take_rows")
    handle = a._device.take_rows(a._handle, _place(a), indices._handle, indices._layout)
    return compact_result(a._device, handle, (indices._shape[0], a._shape[1]))


def add_rows(a: NDArray, indices: NDArray, rows: int) -> NDArray:
    """Return a matrix of zeros with `rows` rows and each row of `a` added at its index."""
    _check_rows(a, indices, "add_rows")
    if indices._shape[0] != a._shape[0]:
        raise ShapeError(
            f"[add_rows] {indices._shape[0]} indices for {a._shape[0]} rows; each row needs one"
        )
    handle = a._device.add_rows(a._handle, _place(a), indices._handle, indices._layout, rows)
    return compact_result(a._device, handle, (rows, a._shape[1]))


def to_dlpack(a: NDArray, **keywords: Any) -> Any:
    """Return a DLPack capsule over a's memory."""
    return a.__dlpack__(**keywords)


def _check_rows(a: NDArray, indices: NDArray, op: str) -> None:
    """Raise unless `a` is a matrix and `indices` a list beside it."""
    if a.ndim != 2 or indices.ndim != 1:
        raise ShapeError(
            f"[{op}] shapes {a._shape} and {indices._shape}; a matrix and a list of indices are "
            "needed"
        )
    if indices._device != a._device:
        raise DeviceError(
            f"[{op}] a matrix on {a._device} and indices on {indices._device}; move one with "
            ".to(device)"
        )


def _place(a: NDArray) -> tuple[Any, ...]:
    """Return a's layout in full, also where it is compact."""
    return a._shape, a._strides, a._offset


### END SINCE
