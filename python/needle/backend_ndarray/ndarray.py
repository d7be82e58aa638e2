"""NDArray: an n-dimensional view of a flat buffer on a device.

Views come from `layout.py` and share memory; numbers come from the device's strided kernels
(`interface.py`). Every shape and device is checked here, once, before a kernel is called.
"""

import builtins
import math
from collections.abc import Iterable
from numbers import Number, Real
from operator import attrgetter
from typing import Any

import numpy as np

from needle.backend_ndarray import layout
from needle.backend_ndarray.device import BackendDevice, as_device, default_device
from needle.backend_ndarray.dlpack import export_values
from needle.errors import DeviceError, DtypeError, ExchangeError, ShapeError

__all__ = [
    "NDArray",
    "array",
    "empty",
    "full",
    "full_like",
]

Shape = tuple[int, ...]


class NDArray:
    """An array with shape, strides and offset (in elements) over a flat buffer `_handle` on
    `_device`.

    `NDArray(other, device=None)` copies another NDArray, a numpy array or anything array-like.
    Reshape, permute, broadcast_to, slicing and flip return views that share the buffer.
    """

    # _layout is what kernels are given: None for a whole compact buffer, else (shape, strides,
    # offset).
    __slots__ = ("_device", "_handle", "_layout", "_offset", "_shape", "_strides")
    _device: BackendDevice
    _handle: Any
    _layout: tuple[Shape, Shape, int] | None
    _offset: int
    _shape: Shape
    _strides: Shape

    __array_ufunc__ = None  # numpy on the left leaves the operator to us
    __hash__ = None  # type: ignore[assignment]  # == compares elements

    def __init__(
        self, other: Any, device: BackendDevice | str | None = None, dtype: Any = None
    ) -> None:
        if isinstance(other, NDArray):
            device = other._device if device is None else device
            dtype = other.dtype if dtype is None else dtype
            other = other.numpy()
        made = array(other, dtype=dtype, device=device)
        for field in NDArray.__slots__:
            setattr(self, field, getattr(made, field))

    @staticmethod
    def make(
        shape: Iterable[int],
        strides: Iterable[int] | None = None,
        device: BackendDevice | None = None,
        handle: Any = None,
        offset: int = 0,
        dtype: Any = None,
    ) -> "NDArray":
        """Return an array over `handle`, or over a fresh uninitialised buffer if there is none.

        Raises:
            ShapeError: if the view leaves the buffer or `strides` has another length than `shape`.
        """
        shape = layout.as_shape(shape, "make")
        device = default_device() if device is None else device
        strides = layout.compact_strides(shape) if strides is None else tuple(strides)
        if len(strides) != len(shape):
            raise ShapeError(f"[make] {len(strides)} strides for {len(shape)} axes; give one each")
        if handle is None:
            handle = device.allocate(math.prod(shape), device.check_dtype(dtype, "make"))
        if 0 not in shape:
            low, high = layout.view_bounds(shape, strides, offset)
            if low < 0 or high >= handle.size:
                raise ShapeError(
                    f"[make] view touches elements {low}..{high} of a buffer of {handle.size}"
                )
        return _view(device, handle, shape, strides, offset)

    # --- what it is ---

    # Read at every op, so without a Python call.
    shape = property(attrgetter("_shape"), doc="The size of each axis.")

    @property
    def strides(self) -> Shape:
        """How many elements apart neighbours along each axis lie."""
        return self._strides

    @property
    def device(self) -> BackendDevice:
        """The device that holds the buffer."""
        return self._device

    @property
    def dtype(self) -> str:
        """The element type's name."""
        dtypes = self._device.dtypes
        return dtypes[0] if len(dtypes) == 1 else self._handle.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._shape)

    @property
    def flat(self) -> "NDArray":
        """A view with one axis; writing to it writes to this array (ShapeError unless compact)."""
        return self.reshape((self.size,))

    @staticmethod
    def compact_strides(shape: Shape) -> Shape:
        """Return the strides of a row-major array of `shape`."""
        return layout.compact_strides(tuple(shape))

    def __repr__(self) -> str:
        return f"NDArray({self.numpy()}, device={self._device})"

    def __str__(self) -> str:
        return str(self.numpy())

    def __len__(self) -> int:
        if not self._shape:
            raise ShapeError("[len] an array without axes has no length")
        return self._shape[0]

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def item(self) -> float:
        """Return the only element as a Python float; ShapeError if there are several."""
        if self.size != 1:
            raise ShapeError(
                f"[item] shape {self._shape} has {self.size} elements; only a single one is a "
                "number"
            )
        return self.numpy().item()

    def numpy(self) -> np.ndarray:
        """Return a fresh C-contiguous copy on the host."""
        return self._device.to_numpy(self._handle, self._shape, self._strides, self._offset)

    ### UNTIL hw5
    # def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    #     """Return a copy on the host, for numpy."""
    #     return np.asarray(self.numpy(), dtype)
    #
    ### END UNTIL
    ### SINCE full
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return a numpy array over the memory itself, or a copy if `dtype`, `copy` or the device
        ask for one; ExchangeError if `copy` is False then.
        """
        reachable = hasattr(self._device, "host_view")
        values = self._host_view("array") if reachable else self.numpy()
        wanted = values.dtype if dtype is None else np.dtype(dtype)
        if copy is False and not (reachable and wanted == values.dtype):
            raise ExchangeError(
                f"[array] {self.dtype} on {self._device} needs a copy as {wanted} for numpy; leave "
                "out copy=False"
            )
        return values.astype(wanted, copy=bool(copy))

    def __dlpack__(self, **keywords: Any) -> Any:
        """Return a DLPack capsule over the memory itself, for `from_dlpack` of other libraries;
        ExchangeError where the host cannot reach it. A flipped view is copied.
        """
        return export_values(self._host_view("dlpack"), **keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._host_view("dlpack").__dlpack_device__()

    def _host_view(self, op: str) -> np.ndarray:
        """Return a numpy array over the memory itself; read-only if elements share theirs."""
        if not hasattr(self._device, "host_view"):
            raise ExchangeError(
                f"[{op}] the memory of {self._device} is out of reach; move it with .to(cpu())"
            )
        flat = self._device.host_view(self._handle)
        if self.size == 0:
            return flat[:0].reshape(self._shape)
        step = flat.itemsize
        strides = tuple(stride * step for stride in self._strides)
        view: np.ndarray = np.ndarray(self._shape, flat.dtype, flat, self._offset * step, strides)
        view.flags.writeable = not self._is_stretched()
        return view

    ### END SINCE
    def _is_stretched(self) -> bool:
        """Tell whether a broadcast axis makes elements share memory."""
        return any(s == 0 and n > 1 for s, n in zip(self._strides, self._shape, strict=True))

    def to(self, device: BackendDevice | str) -> "NDArray":
        """Return this array on `device`: itself if it is there already, else a copy."""
        device = as_device(device)
        return (
            self if device == self._device else array(self.numpy(), dtype=self.dtype, device=device)
        )

    ### SINCE full
    def __reduce__(self) -> tuple[Any, ...]:
        return array, (self.numpy(), self.dtype, self._device)

    ### END SINCE
    # --- memory order ---

    def is_compact(self) -> bool:
        """Tell whether this is the whole buffer in row-major order."""
        return self._layout is None

    def compact(self) -> "NDArray":
        """Return a compact array with these elements: itself if it is compact already."""
        if self._layout is None:
            return self
        return compact_result(
            self._device, self._device.copy(self._handle, self._layout), self._shape
        )

    def fill(self, value: float) -> None:
        """Set every element to `value`, in place."""
        self[...] = value

    # --- views ---

    def as_strided(self, shape: Iterable[int], strides: Iterable[int]) -> "NDArray":
        """Return a view with any shape and strides from this view's offset; ShapeError if it leaves
        the buffer.
        """
        return NDArray.make(shape, strides, self._device, self._handle, self._offset)

    def reshape(self, new_shape: int | Iterable[int], *more: int) -> "NDArray":
        """Return a view with the same elements in another shape; one size may be -1.

        Raises:
            ShapeError: if the element counts differ or this array is not compact.
        """
        target = (new_shape, *more) if not isinstance(new_shape, Iterable) else tuple(new_shape)
        shape = layout.resolve_reshape(self._shape, target)
        if self._layout is not None:
            raise ShapeError(
                f"[reshape] a view of shape {self._shape} is not compact; call compact() first"
            )
        ### BEGIN SOLUTION hw3.ndarray.reshape
        return _view(self._device, self._handle, shape, layout.compact_strides(shape), self._offset)
        ### END SOLUTION

    def permute(self, new_axes: Iterable[int]) -> "NDArray":
        """Return a view with the axes in the order `new_axes`."""
        axes = tuple(new_axes)
        if layout.normalize_axes(axes, self.ndim, "permute") != tuple(range(self.ndim)):
            raise ShapeError(f"[permute] {axes} does not name each of {self.ndim} axes once")
        ### BEGIN SOLUTION hw3.ndarray.permute
        shape = tuple(self._shape[axis] for axis in axes)
        strides = tuple(self._strides[axis] for axis in axes)
        return _view(self._device, self._handle, shape, strides, self._offset)
        ### END SOLUTION

    def broadcast_to(self, new_shape: Iterable[int]) -> "NDArray":
        """Return a view stretched to `new_shape`: stride 0 along stretched and added axes."""
        shape = layout.as_shape(new_shape, "broadcast_to")
        layout.check_broadcast(self._shape, shape)
        ### BEGIN SOLUTION hw3.ndarray.broadcast_to
        added = len(shape) - self.ndim
        sizes = zip(self._shape, shape[added:], self._strides, strict=True)
        kept = tuple(0 if size != wanted else stride for size, wanted, stride in sizes)
        return _view(self._device, self._handle, shape, (0,) * added + kept, self._offset)
        ### END SOLUTION

    ### SINCE hw4
    def flip(self, axes: int | Iterable[int]) -> "NDArray":
        """Return a view with the order along `axes` reversed: negative strides from the far end."""
        flipped = layout.normalize_axes(axes, self.ndim, "flip")
        if self.size == 0:
            return self
        ### BEGIN SOLUTION hw4.ndarray.flip
        offset = self._offset + builtins.sum(
            (self._shape[axis] - 1) * self._strides[axis] for axis in flipped
        )
        strides = tuple(-s if axis in flipped else s for axis, s in enumerate(self._strides))
        return _view(self._device, self._handle, self._shape, strides, offset)
        ### END SOLUTION

    ### END SINCE

    def process_slice(self, index: slice | int, dim: int) -> slice:
        """Return an index of axis `dim` as a slice with explicit start, stop and step."""
        return layout.normalize_slice(index, self._shape[dim], dim)

    def __getitem__(self, idxs: Any) -> "NDArray":
        """Return the view that integers, slices and `...` select; an integer keeps its axis, with
        size 1.
        """
        entries = layout.expand_index(idxs, self.ndim)
        slices = [self.process_slice(entry, axis) for axis, entry in enumerate(entries)]
        ### BEGIN SOLUTION hw3.ndarray.getitem
        shape = tuple(layout.slice_length(s) for s in slices)
        offset = self._offset
        if 0 not in shape:
            offset += builtins.sum(
                s.start * stride for s, stride in zip(slices, self._strides, strict=True)
            )
        strides = tuple(s.step * stride for s, stride in zip(slices, self._strides, strict=True))
        return _view(self._device, self._handle, shape, strides, offset)
        ### END SOLUTION

    def __setitem__(self, idxs: Any, other: Any) -> None:
        """Write a number or an array that broadcasts to the selected view (axes of size 1 may be
        missing).
        """
        target = self[idxs]
        size = target.size
        if size and target._is_stretched():
            raise ShapeError(
                "[setitem] cannot write to a broadcast view: its elements share memory; "
                "compact() it"
            )
        place = (target._shape, target._strides, target._offset)
        if _is_number(other):
            if size:
                self._device.scalar_setitem(size, float(other), self._handle, *place)
            return
        source = as_operand(other, self, "setitem")
        if [n for n in source._shape if n != 1] == [n for n in target._shape if n != 1]:
            source = source.compact().reshape(target._shape)
        ### SINCE full
        source = _stretch(source, target._shape, "setitem")
        ### END SINCE
        ### UNTIL hw5
        # source = source.broadcast_to(target._shape)
        ### END UNTIL
        if size == 0:
            return
        # A copy first: source and target may overlap in one buffer.
        if source._layout is not None or source._handle is self._handle:
            source = compact_result(
                self._device, self._device.copy(source._handle, source._layout), source._shape
            )
        self._device.ewise_setitem(source._handle, self._handle, *place)

    def __iter__(self) -> Any:
        """Iterate over the first axis; each part keeps it, with size 1."""
        return (self[i] for i in range(len(self)))

    # --- elementwise ---

    def __add__(self, other: Any) -> "NDArray":
        return _binary(self, other, "add")

    __radd__ = __add__

    def __sub__(self, other: Any) -> "NDArray":
        return _binary(self, other, "sub")

    def __rsub__(self, other: Any) -> "NDArray":
        return _reflected(other, self, "sub")

    def __mul__(self, other: Any) -> "NDArray":
        return _binary(self, other, "mul")

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "NDArray":
        return _binary(self, other, "div")

    def __rtruediv__(self, other: Any) -> "NDArray":
        return _reflected(other, self, "div")

    def __pow__(self, other: Any) -> "NDArray":
        return _binary(self, other, "power")

    ### SINCE full
    def __rpow__(self, other: Any) -> "NDArray":
        return _reflected(other, self, "power")

    ### END SINCE
    def __neg__(self) -> "NDArray":
        return unary(self, "neg")

    ### SINCE full
    def __abs__(self) -> "NDArray":
        return unary(self, "abs")

    ### END SINCE
    def __eq__(self, other: Any) -> Any:
        return _binary(self, other, "eq")

    def __ne__(self, other: Any) -> Any:
        return _binary(self, other, "ne")

    def __lt__(self, other: Any) -> "NDArray":
        return _binary(self, other, "lt")

    def __le__(self, other: Any) -> "NDArray":
        return _binary(self, other, "le")

    def __gt__(self, other: Any) -> "NDArray":
        return _binary(self, other, "gt")

    def __ge__(self, other: Any) -> "NDArray":
        return _binary(self, other, "ge")

    def maximum(self, other: Any) -> "NDArray":
        """Return the larger of two elements; NaN if either is NaN."""
        return _larger_or_smaller(self, other, "maximum")

    ### SINCE full
    def minimum(self, other: Any) -> "NDArray":
        """Return the smaller of two elements; NaN if either is NaN."""
        return _larger_or_smaller(self, other, "minimum")

    ### END SINCE
    def log(self) -> "NDArray":
        """Return the natural logarithm of each element."""
        return unary(self, "log")

    def exp(self) -> "NDArray":
        """Return e to the power of each element."""
        return unary(self, "exp")

    def tanh(self) -> "NDArray":
        """Return the hyperbolic tangent of each element."""
        return unary(self, "tanh")

    # --- reductions and products ---

    def sum(self, axis: int | Iterable[int] | None = None, keepdims: bool = False) -> "NDArray":
        """Return the sum over `axis` (None for all axes, an int, or several)."""
        return _reduce(self, axis, keepdims, "sum")

    def max(self, axis: int | Iterable[int] | None = None, keepdims: bool = False) -> "NDArray":
        """Return the maximum over `axis`; NaN where one is met; ShapeError over an empty axis."""
        return _reduce(self, axis, keepdims, "max")

    ### SINCE full
    def min(self, axis: int | Iterable[int] | None = None, keepdims: bool = False) -> "NDArray":
        """Return the minimum over `axis`; NaN where one is met; ShapeError over an empty axis."""
        return _reduce(self, axis, keepdims, "min")

    ### END SINCE
    def __matmul__(self, other: Any) -> "NDArray":
        """Return the matrix product over the last two axes; leading axes broadcast.

        Raises:
            ShapeError: if an operand has fewer than two axes or the inner sizes differ.
        """
        other = as_operand(other, self, "matmul")
        a_shape, b_shape = self._shape, other._shape
        if len(a_shape) < 2 or len(b_shape) < 2:
            raise ShapeError(
                f"[matmul] operands need two axes or more: {a_shape} @ {b_shape}; reshape a "
                "vector first"
            )
        if a_shape[-1] != b_shape[-2]:
            raise ShapeError(f"[matmul] inner sizes differ: {a_shape} @ {b_shape}")
        batch = a_shape[:-2]
        if batch != b_shape[:-2]:
            batch = layout.broadcast_shapes(batch, b_shape[:-2], "matmul")
        handle = self._device.batched_matmul(
            self._handle, _matrix_layout(self, batch), other._handle, _matrix_layout(other, batch)
        )
        return compact_result(self._device, handle, (*batch, a_shape[-2], b_shape[-1]))

    def __rmatmul__(self, other: Any) -> "NDArray":
        return as_operand(other, self, "matmul") @ self

    ### SINCE hw4
    def pad(self, axes: Iterable[tuple[int, int]]) -> "NDArray":
        """Return a compact copy with zeros around it: one (before, after) pair for each axis."""
        pairs = [tuple(pair) for pair in axes]
        if len(pairs) != self.ndim or any(
            len(pair) != 2 or builtins.min(pair) < 0 for pair in pairs
        ):
            raise ShapeError(
                f"[pad] {pairs} for shape {self._shape}; give one (before, after) pair an axis, "
                "not negative"
            )
        ### BEGIN SOLUTION hw4.ndarray.pad
        sizes = list(zip(self._shape, pairs, strict=True))
        shape = tuple(before + n + after for n, (before, after) in sizes)
        out = full(shape, 0.0, dtype=self.dtype, device=self._device)
        out[tuple(slice(before, before + n) for n, (before, _) in sizes)] = self
        return out
        ### END SOLUTION

    ### END SINCE


_new = object.__new__


def _view(device: BackendDevice, handle: Any, shape: Shape, strides: Shape, offset: int) -> NDArray:
    """Return an NDArray over an existing buffer; the caller has checked that the view fits."""
    view = _new(NDArray)
    view._device = device
    view._handle = handle
    view._shape = shape
    view._strides = strides
    view._offset = offset
    whole = offset == 0 and math.prod(shape) == handle.size and layout.is_row_major(shape, strides)
    view._layout = None if whole else (shape, strides, offset)
    return view


### SINCE full
def _stretch(a: NDArray, shape: Shape, op: str) -> NDArray:
    """Return a view of `a` stretched to `shape`; BroadcastError from `op` if it does not fit."""
    strides = layout.broadcast_strides(a._shape, a._strides, shape, op)
    return _view(a._device, a._handle, shape, strides, a._offset)


### END SINCE
def compact_result(device: BackendDevice, handle: Any, shape: Shape) -> NDArray:
    """Return an NDArray over a buffer that holds exactly `shape`, row-major."""
    result = _new(NDArray)
    result._device = device
    result._handle = handle
    result._shape = shape
    result._strides = layout.compact_strides(shape)
    result._offset = 0
    result._layout = None
    return result


def _is_number(value: Any) -> bool:
    """Tell whether an operand is one real number (a numpy scalar and a 0-d numpy array too)."""
    if type(value) is float or type(value) is int:
        return True
    if isinstance(value, np.generic | np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "biuf"
    return isinstance(value, Real)


def as_operand(other: Any, like: NDArray, op: str) -> NDArray:
    """Return an array operand on like's device: NDArrays as they are, numpy arrays copied there."""
    if type(other) is not NDArray:
        if not isinstance(other, np.ndarray | list | tuple | Number | np.generic):
            raise DtypeError(
                f"[{op}] an operand is a {type(other).__name__}; use an NDArray, numpy array or "
                "number"
            )
        return array(other, dtype=like.dtype, device=like._device)
    if other._device is not like._device and other._device != like._device:
        raise DeviceError(
            f"[{op}] operands on {like._device} and {other._device}; move one with .to(device)"
        )
    if len(like._device.dtypes) > 1 and other.dtype != like.dtype:
        raise DtypeError(f"[{op}] operands of {like.dtype} and {other.dtype}; give both one dtype")
    return other


def _binary(a: NDArray, b: Any, name: str) -> Any:
    """Run the elementwise kernel `name` on an array and an array or number, with numpy's
    broadcasting.
    """
    device = a._device
    if type(b) is not NDArray:
        if _is_number(b):
            handle = getattr(device, name + "_scalar")(a._handle, a._layout, float(b))
            return compact_result(device, handle, a._shape)
        if not isinstance(b, np.ndarray):
            return NotImplemented
        b = as_operand(b, a, name)
    elif b._device is not device or len(device.dtypes) > 1:
        b = as_operand(b, a, name)
    if a._shape != b._shape:
        shape = layout.broadcast_shapes(a._shape, b._shape, name)
        ### SINCE full
        a, b = _stretch(a, shape, name), _stretch(b, shape, name)
        ### END SINCE
        ### UNTIL hw5
        # a, b = a.broadcast_to(shape), b.broadcast_to(shape)
        ### END UNTIL
    handle = getattr(device, name)(a._handle, a._layout, b._handle, b._layout)
    return compact_result(device, handle, a._shape)


def _reflected(a: Any, b: NDArray, name: str) -> Any:
    """Run `name` with a number or numpy array on the left."""
    if _is_number(a):
        a = float(a)
    elif not isinstance(a, np.ndarray):
        return NotImplemented
    return _binary(array(a, dtype=b.dtype, device=b._device), b, name)


def _larger_or_smaller(a: NDArray, b: Any, name: str) -> NDArray:
    """Run maximum or minimum; a method, it raises where an operator says NotImplemented."""
    return _binary(a, b if _is_number(b) else as_operand(b, a, name), name)


def unary(a: NDArray, name: str) -> NDArray:
    """Run the elementwise kernel `name` on one array."""
    device = a._device
    return compact_result(device, getattr(device, name)(a._handle, a._layout), a._shape)


def _reduce(a: NDArray, axis: Any, keepdims: bool, name: str) -> NDArray:
    """Run a reduction kernel: the reduced axes go last in the layout, nothing is copied."""
    axis = tuple(axis) if isinstance(axis, Iterable) else axis
    if isinstance(axis, tuple) and not axis:
        raise ShapeError(f"[{name}] no axes given; use axis=None for all axes")
    axes = layout.normalize_axes(axis, a.ndim, name)
    shape, strides = a._shape, a._strides
    if name != "sum" and any(shape[i] == 0 for i in axes):
        raise ShapeError(
            f"[{name}] shape {shape} is empty along {axes}; a maximum or minimum needs an element"
        )
    order = (*(i for i in range(len(shape)) if i not in axes), *axes)
    permuted = (tuple(shape[i] for i in order), tuple(strides[i] for i in order), a._offset)
    handle = getattr(a._device, name)(a._handle, permuted, len(axes))
    return compact_result(a._device, handle, layout.reduced_shape(shape, axes, keepdims))


def _matrix_layout(a: NDArray, batch: Shape) -> tuple[Shape, Shape, int]:
    """Return a's layout with its leading axes stretched to `batch`."""
    shape = (*batch, *a._shape[-2:])
    ### SINCE full
    return shape, layout.broadcast_strides(a._shape, a._strides, shape), a._offset
    ### END SINCE
    ### UNTIL hw5
    # strides = a._strides if shape == a._shape else a.broadcast_to(shape)._strides
    # return shape, strides, a._offset
    ### END UNTIL


# --- creation ---


def array(a: Any, dtype: Any = None, device: BackendDevice | str | None = None) -> NDArray:
    """Copy anything array-like to a device (default: `default_device()`), converting to `dtype`.

    Raises:
        DtypeError: for values that are not real numbers, or a dtype that the device does not carry.
    """
    device = default_device() if device is None else as_device(device)
    name = device.check_dtype(dtype, "array")
    values = np.asarray(a)
    if values.dtype.kind not in "biuf":
        raise DtypeError(f"[array] values of type {values.dtype} are not real numbers")
    out = empty(values.shape, dtype=name, device=device)
    device.from_numpy(np.ascontiguousarray(values, dtype=name), out._handle)
    return out


def empty(shape: Any, dtype: Any = None, device: BackendDevice | str | None = None) -> NDArray:
    """Return an uninitialised array."""
    device = default_device() if device is None else as_device(device)
    sizes = layout.as_shape(shape, "empty")
    handle = device.allocate(math.prod(sizes), device.check_dtype(dtype, "empty"))
    return compact_result(device, handle, sizes)


def full(
    shape: Any, fill_value: float, dtype: Any = None, device: BackendDevice | str | None = None
) -> NDArray:
    """Return an array with every element equal to `fill_value`."""
    out = empty(shape, dtype=dtype, device=device)
    out._device.fill(out._handle, float(fill_value))
    return out


def full_like(a: NDArray, fill_value: float, shape: Any = None) -> NDArray:
    """Return an array on a's device and of its dtype, of its shape unless another is given."""
    return full(a._shape if shape is None else shape, fill_value, dtype=a.dtype, device=a._device)
