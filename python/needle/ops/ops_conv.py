"""Convolution and pooling of images (N, H, W, C), and the ops on axes that go with them.

Each sees its input through one strided view of all windows, (N, OH, OW, KH, KW, C), which
`array_api.windows` makes. `Windows` is that view as an op, `Fold` is its gradient.
"""

import math
import operator
from collections.abc import Iterable
from itertools import product
from typing import Any

from needle.autograd import Tensor, TensorOp
from needle.backend_ndarray import layout
from needle.backend_selection import array_api
from needle.errors import ShapeError
from needle.ops.ops_comparison import equal
from needle.ops.ops_device import check_devices
from needle.ops.ops_indexing import PlaceSlice
from needle.ops.ops_mathematic import (
    broadcast_to,
    matmul,
    permute,
    reshape,
    transpose,
)
from needle.ops.ops_statistics import max  # noqa: A004 - numpy's name

__all__ = [
    "AvgPool",
    "Conv",
    "Dilate",
    "Flip",
    "MaxPool",
    "Pair",
    "UnDilate",
    "avg_pool",
    "conv",
    "dilate",
    "flip",
    "max_pool",
    "pool_settings",
    "undilate",
    "window_settings",
]

Pair = tuple[int, int]  # along height and width
Shape = tuple[int, ...]


# --- axes ---


class Flip(TensorOp):
    def __init__(self, axes: Shape) -> None:
        self.axes = axes

    def compute(self, a):
        ### BEGIN SOLUTION hw4.flip.compute
        return array_api.flip(a, self.axes)
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw4.flip.gradient
        return flip(out_grad, self.axes)
        ### END SOLUTION


def flip(a: Tensor, axes: int | Iterable[int]) -> Tensor:
    """Return `a` with the order along `axes` reversed."""
    return Flip(layout.normalize_axes(axes, a.ndim, "flip"))(a)


class Dilate(TensorOp):
    def __init__(self, axes: Shape, dilation: int) -> None:
        self.axes = axes
        self.dilation = dilation

    def compute(self, a):
        ### BEGIN SOLUTION hw4.dilate.compute
        step = self.dilation + 1
        shape = tuple(n * step if axis in self.axes else n for axis, n in enumerate(a.shape))
        out = array_api.full_like(a, 0, shape=shape)
        out[_every(step, self.axes, len(shape))] = a
        return out
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw4.dilate.gradient
        return undilate(out_grad, self.axes, self.dilation)
        ### END SOLUTION


def dilate(a: Tensor, axes: int | Iterable[int], dilation: int) -> Tensor:
    """Return `a` with `dilation` zeros after every element along `axes`, the last one too.

    Axes that `a` lacks are ignored.

    Raises:
        ShapeError: if `dilation` is negative.
    """
    return Dilate(_dilated_axes(a, axes, dilation, "dilate"), dilation)(a)


class UnDilate(TensorOp):
    def __init__(self, axes: Shape, dilation: int) -> None:
        self.axes = axes
        self.dilation = dilation

    def compute(self, a):
        ### BEGIN SOLUTION hw4.undilate.compute
        return a[_every(self.dilation + 1, self.axes, len(a.shape))]
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### UNTIL hw5
        ### BEGIN SOLUTION hw4.undilate.gradient
        # return dilate(out_grad, self.axes, self.dilation)
        ### END SOLUTION
        ### END UNTIL
        ### SINCE full
        # Not by dilate: the input may end before the zeros that follow its last kept element.
        a = node.inputs[0]
        return PlaceSlice(_every(self.dilation + 1, self.axes, a.ndim), a.shape)(out_grad)
        ### END SINCE


def undilate(a: Tensor, axes: int | Iterable[int], dilation: int) -> Tensor:
    """Return every (dilation + 1)-th element along `axes`, from the first: what `dilate` spread.

    Axes that `a` lacks are ignored.

    Raises:
        ShapeError: if `dilation` is negative.
    """
    return UnDilate(_dilated_axes(a, axes, dilation, "undilate"), dilation)(a)


def _every(step: int, axes: Shape, ndim: int) -> tuple[slice, ...]:
    """Return the index of every `step`-th element along `axes`."""
    return tuple(slice(None, None, step if axis in axes else 1) for axis in range(ndim))


def _dilated_axes(a: Tensor, axes: int | Iterable[int], dilation: int, op: str) -> Shape:
    """Return the axes that `a` has, normalised."""
    if dilation < 0:
        raise ShapeError(f"[{op}] dilation is {dilation}; the number of zeros is not negative")
    listed = (axes,) if not isinstance(axes, Iterable) else tuple(axes)
    return layout.normalize_axes([axis for axis in listed if axis < a.ndim], a.ndim, op)


# --- windows ---


def _windows_of(a: Any, kernel: Pair, stride: Pair, padding: Pair) -> Any:
    """Return the windows of an array (N, H, W, C) that has zeros around it."""
    if padding != (0, 0):
        top, left = padding
        a = array_api.pad(a, ((0, 0), (top, top), (left, left), (0, 0)))
    return array_api.windows(a, kernel, stride)


class WindowOp(TensorOp):
    """An op on the windows of an input (N, H, W, C)."""

    def __init__(self, kernel: Pair, stride: Pair, padding: Pair) -> None:
        self.kernel = kernel
        self.stride = stride
        self.padding = padding


class Windows(WindowOp):
    """All windows of a zero-padded input: (N, H, W, C) -> (N, OH, OW, KH, KW, C)."""

    def compute(self, a):
        return _windows_of(a, self.kernel, self.stride, self.padding)

    def gradient(self, out_grad, node):
        return Fold(self.stride, self.padding, node.inputs[0].shape)(out_grad)


class Fold(TensorOp):
    """Windows backwards: each element is added to the one of `shape` that it was taken from.

    What no window covers stays 0; what fell on the padding is dropped.
    """

    def __init__(self, stride: Pair, padding: Pair, shape: Shape) -> None:
        self.stride = stride
        self.padding = padding
        self.shape = shape

    def compute(self, a):
        ### BEGIN SOLUTION hw4.fold.compute
        kernel = a.shape[3:5]
        n, h, w, c = self.shape
        top, left = self.padding
        out = array_api.full_like(a, 0, shape=(n, h + 2 * top, w + 2 * left, c))
        windows = array_api.windows(out, kernel, self.stride)
        for i, j in product(*map(range, kernel)):
            # Windows overlap, but no two have the same element at (i, j).
            windows[..., i : i + 1, j : j + 1, :] += a[..., i : i + 1, j : j + 1, :]
        return out[:, top : top + h, left : left + w, :]
        ### END SOLUTION

    def gradient(self, out_grad, node):
        kernel = node.inputs[0].shape[3:5]
        return Windows(kernel, self.stride, self.padding)(out_grad)


def window_settings(
    kernel_size: Any, stride: Any, padding: Any, op: str
) -> tuple[Pair, Pair, Pair]:
    """Return kernel size, stride and padding as (h, w) pairs; ShapeError if one is out of range."""
    kernel = _as_pair(kernel_size, "kernel size", op)
    stride = _as_pair(stride, "stride", op)
    padding = _as_pair(padding, "padding", op)
    if min(*kernel, *stride) < 1 or min(padding) < 0:
        raise ShapeError(
            f"[{op}] kernel size {kernel}, stride {stride}, padding {padding}; the first two "
            "begin at 1, padding at 0"
        )
    return kernel, stride, padding


def _as_pair(value: Any, what: str, op: str) -> Pair:
    """Return an int or an (h, w) pair as a pair; ShapeError if it is neither."""
    try:
        pair = tuple(map(operator.index, value if isinstance(value, Iterable) else (value, value)))
    except TypeError:
        pair = ()
    if len(pair) != 2:
        raise ShapeError(f"[{op}] {what} {value!r} is neither an int nor an (h, w) pair of ints")
    return pair


def _check_a_window_fits(a: Tensor, kernel: Pair, padding: Pair, op: str) -> None:
    if any(k > n + 2 * p for k, n, p in zip(kernel, a.shape[1:3], padding, strict=True)):
        raise ShapeError(
            f"[{op}] input {a.shape} with padding {padding} is smaller than the kernel {kernel}; "
            "there is no output"
        )


# --- convolution ---


class Conv(TensorOp):
    def __init__(self, stride: int | Pair = 1, padding: int | Pair = 0) -> None:
        self.stride = _as_pair(stride, "stride", "conv")
        self.padding = _as_pair(padding, "padding", "conv")

    def compute(self, a, b):
        ### BEGIN SOLUTION hw4.conv.compute
        kh, kw, c_in, c_out = b.shape
        windows = _windows_of(a, (kh, kw), self.stride, self.padding)
        n, oh, ow = windows.shape[:3]
        # The one copy, "im2col": a row for each output pixel, holding what its window sees. At
        # stride 1 it is KH * KW times as large as the input; for a kernel of one pixel, a view.
        rows = array_api.reshape(windows, (n * oh * ow, kh * kw * c_in))
        out = rows @ array_api.reshape(b, (kh * kw * c_in, c_out))
        return array_api.reshape(out, (n, oh, ow, c_out))
        ### END SOLUTION

    def gradient(self, out_grad, node):
        a, b = node.inputs
        grad_a = self._input_gradient(out_grad, a, b) if a.requires_grad else None
        grad_b = self._weight_gradient(out_grad, a, b) if b.requires_grad else None
        return grad_a, grad_b

    def _input_gradient(self, out_grad, a, b):
        ### SINCE full
        reach = (b.shape[0] - 1 - self.padding[0], b.shape[1] - 1 - self.padding[1])
        if self.stride == (1, 1) and min(reach) >= 0:
            # A pixel was seen by the windows that end `kernel - 1` before it to those that begin
            # at it: a convolution with the flipped kernel, from c_out to c_in.
            return Conv(1, reach)(out_grad, transpose(flip(b, (0, 1)), (2, 3)))
        ### END SINCE
        ### BEGIN SOLUTION hw4.conv.input_gradient
        kh, kw, c_in, c_out = b.shape
        n, oh, ow, _ = out_grad.shape
        weight = reshape(b, (kh * kw * c_in, c_out))
        rows = matmul(reshape(out_grad, (n * oh * ow, c_out)), transpose(weight))
        windows = reshape(rows, (n, oh, ow, kh, kw, c_in))
        return Fold(self.stride, self.padding, a.shape)(windows)
        ### END SOLUTION

    def _weight_gradient(self, out_grad, a, b):
        ### BEGIN SOLUTION hw4.conv.weight_gradient
        kh, kw, c_in, c_out = b.shape
        n, oh, ow, _ = out_grad.shape
        windows = Windows((kh, kw), self.stride, self.padding)(a)
        rows = reshape(windows, (n * oh * ow, kh * kw * c_in))
        grad = matmul(transpose(rows), reshape(out_grad, (n * oh * ow, c_out)))
        return reshape(grad, b.shape)
        ### END SOLUTION


def conv(a: Tensor, b: Tensor, stride: int | Pair = 1, padding: int | Pair = 1) -> Tensor:
    """Return the convolution of images (N, H, W, C_in) with a weight (KH, KW, C_in, C_out).

    The kernel is not flipped, as everywhere in deep learning. Stride and padding are an int or an
    (h, w) pair; the result is (N, OH, OW, C_out) with OH = (H + 2 * padding - KH) // stride + 1.
    Rows that the stride leaves over at the end are not seen.

    Raises:
        ShapeError: if the shapes do not fit, stride < 1, padding < 0, or there is no output.
    """
    if a.ndim != 4 or b.ndim != 4:
        raise ShapeError(
            f"[conv] input {a.shape} and weight {b.shape}; give (N, H, W, C_in) and "
            "(KH, KW, C_in, C_out)"
        )
    if a.shape[3] != b.shape[2]:
        raise ShapeError(
            f"[conv] input {a.shape} has {a.shape[3]} channels, weight {b.shape} takes {b.shape[2]}"
        )
    ### SINCE full
    check_devices("conv", a, b)
    ### END SINCE
    kernel, stride, padding = window_settings(b.shape[:2], stride, padding, "conv")
    _check_a_window_fits(a, kernel, padding, "conv")
    return Conv(stride, padding)(a, b)


### SINCE full
# --- pooling ---


# Pooling puts the axes of a window first, (KH, KW, N, OH, OW, C), and its result (N, OH, OW, C)
# broadcasts over them.
KERNEL_FIRST = (3, 4, 0, 1, 2, 5)
KERNEL_BACK = (2, 3, 4, 0, 1, 5)


class MaxPool(WindowOp):
    def compute(self, a):
        return array_api.max(self._windows(a), (0, 1))

    def gradient(self, out_grad, node):
        a = node.inputs[0]
        windows = Tensor.make_const(self._windows(a.realize_cached_data()))
        # Where several are the maximum, only the first keeps the highest rank of its window.
        ranks = out_grad._constant(range(math.prod(self.kernel), 0, -1))
        rank = equal(windows, node) * reshape(ranks, (*self.kernel, 1, 1, 1, 1))
        first = equal(rank, max(rank, (0, 1)))
        return Fold(self.stride, self.padding, a.shape)(permute(out_grad * first, KERNEL_BACK))

    def _windows(self, a):
        if self.padding != (0, 0):
            n, h, w, c = a.shape
            top, left = self.padding
            lowest = float("-inf")
            framed = array_api.full_like(a, lowest, shape=(n, h + 2 * top, w + 2 * left, c))
            framed[:, top : top + h, left : left + w, :] = a
            a = framed
        return array_api.permute(array_api.windows(a, self.kernel, self.stride), KERNEL_FIRST)


class AvgPool(WindowOp):
    def compute(self, a):
        windows = _windows_of(a, self.kernel, self.stride, self.padding)
        return array_api.sum(windows, (3, 4)) / math.prod(self.kernel)

    def gradient(self, out_grad, node):
        share = broadcast_to(out_grad / math.prod(self.kernel), (*self.kernel, *node.shape))
        fold = Fold(self.stride, self.padding, node.inputs[0].shape)
        return fold(permute(share, KERNEL_BACK))


def max_pool(
    a: Tensor,
    kernel_size: int | Pair,
    stride: int | Pair | None = None,
    padding: int | Pair = 0,
) -> Tensor:
    """Return the maximum of every window of images (N, H, W, C), channel by channel.

    Sizes are an int or an (h, w) pair; stride None is the kernel size. The padding is -inf. The
    gradient goes to the first maximum of a window, in reading order, as in PyTorch.

    Raises:
        ShapeError: if `a` has another rank, a size is out of range, the padding is more than half
            of the kernel, or there is no output.
    """
    return MaxPool(*_pooled_by(a, kernel_size, stride, padding, "max_pool"))(a)


def avg_pool(
    a: Tensor,
    kernel_size: int | Pair,
    stride: int | Pair | None = None,
    padding: int | Pair = 0,
) -> Tensor:
    """Return the mean of every window of images (N, H, W, C), channel by channel.

    Sizes are an int or an (h, w) pair; stride None is the kernel size. The padding's zeros count,
    as by default in PyTorch.

    Raises:
        ShapeError: as `max_pool`.
    """
    return AvgPool(*_pooled_by(a, kernel_size, stride, padding, "avg_pool"))(a)


def _pooled_by(
    a: Tensor, kernel_size: Any, stride: Any, padding: Any, op: str
) -> tuple[Pair, Pair, Pair]:
    """Return kernel size, stride and padding as pairs, checked against the input."""
    if a.ndim != 4:
        raise ShapeError(f"[{op}] input {a.shape} is not (N, H, W, C)")
    kernel, stride, padding = pool_settings(kernel_size, stride, padding, op)
    _check_a_window_fits(a, kernel, padding, op)
    return kernel, stride, padding


def pool_settings(kernel_size: Any, stride: Any, padding: Any, op: str) -> tuple[Pair, Pair, Pair]:
    """Return kernel size, stride and padding as (h, w) pairs; ShapeError if one is out of range.

    A window that lay in the padding alone would have no maximum.
    """
    stride = kernel_size if stride is None else stride
    kernel, stride, padding = window_settings(kernel_size, stride, padding, op)
    if any(2 * p > k for p, k in zip(padding, kernel, strict=True)):
        raise ShapeError(f"[{op}] padding {padding} is more than half of the kernel size {kernel}")
    return kernel, stride, padding


### END SINCE
