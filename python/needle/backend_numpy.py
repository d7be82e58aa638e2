"""Raw numpy as the arrays of the library (NEEDLE_BACKEND=np): any float type, one device.

The stages before the arrays exist are taught on it. It provides the same functions as
`backend_ndarray/ndarray.py`, so an op's compute is written once for both.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from needle.backend_ndarray import layout
from needle.backend_ndarray.dlpack import export_values, shared_values
from needle.errors import DeviceError, DtypeError

__all__ = [
    "CPUDevice",
    "Device",
    "NDArray",
    "abs",
    "add_rows",
    "all_devices",
    "array",
    "as_device",
    "broadcast_to",
    "compact",
    "cos",
    "cpu",
    "default_device",
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

NDArray = np.ndarray


class Device:
    """A place where arrays live; under numpy there is one."""


class CPUDevice(Device):
    """The memory of this process, with numpy's arrays."""

    def __repr__(self) -> str:
        return "needle.cpu()"

    def __hash__(self) -> int:
        return hash(repr(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CPUDevice)

    def enabled(self) -> bool:
        """Tell whether a kernel can run here: always."""
        return True

    ### SINCE full
    def zeros(self, *shape: int, dtype: Any = "float32") -> np.ndarray:
        """Return zeros."""
        return np.zeros(shape, dtype)

    def ones(self, *shape: int, dtype: Any = "float32") -> np.ndarray:
        """Return ones."""
        return np.ones(shape, dtype)

    def rand(self, *shape: int, dtype: Any = "float32") -> np.ndarray:
        """Return uniform numbers from [0, 1): one draw of numpy's global generator."""
        return np.asarray(np.random.rand(*shape), dtype)

    def randn(self, *shape: int, dtype: Any = "float32") -> np.ndarray:
        """Return standard normal numbers: one draw of numpy's global generator."""
        return np.asarray(np.random.randn(*shape), dtype)

    def one_hot(self, n: int, i: Any, dtype: Any = "float32") -> np.ndarray:
        """Return rows of the n x n identity matrix picked by the integers `i`."""
        return np.eye(n, dtype=dtype)[i]

    def empty(self, shape: Any, dtype: Any = "float32") -> np.ndarray:
        """Return an uninitialised array."""
        return np.empty(shape, dtype)

    def full(self, shape: Any, fill_value: Any, dtype: Any = "float32") -> np.ndarray:
        """Return an array with every element equal to `fill_value`."""
        return np.full(shape, fill_value, dtype)

    ### END SINCE


def cpu() -> CPUDevice:
    """Return the one device."""
    return CPUDevice()


def default_device() -> CPUDevice:
    """Return the one device."""
    return cpu()


def all_devices() -> list[CPUDevice]:
    """Return every device."""
    return [cpu()]


def as_device(device: Any) -> Any:
    """Return a device by its name, or as it is."""
    if device == "cpu" or isinstance(device, Device):
        return cpu()
    raise DeviceError(f"[device] {device!r} is no device under NEEDLE_BACKEND=np; only cpu() is")


quietly = np.errstate(all="ignore")  # inf and NaN are results here, not warnings


def array(a: Any, dtype: Any = None, device: Any = None) -> np.ndarray:
    """Copy anything array-like, keeping numpy's natural type unless `dtype` is given.

    Raises:
        DtypeError: for values that are not real numbers.
    """
    values = np.array(a, dtype=dtype)
    if values.dtype.kind not in "biuf":
        raise DtypeError(f"[array] values of type {values.dtype} are not real numbers")
    return values


### SINCE full
def from_dlpack(x: Any, device: Any = None, copy: bool | None = None) -> np.ndarray:
    """Return an array over the memory of `x`, or a copy, as `shared_values` says."""
    device = cpu() if device is None else as_device(device)
    return shared_values(x, copy, ("float32", "float64"), device)


def empty(shape: Any, dtype: Any = None, device: Any = None) -> np.ndarray:
    """Return an uninitialised array."""
    return np.empty(shape, "float32" if dtype is None else dtype)


### END SINCE
def full(shape: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> np.ndarray:
    """Return an array with every element equal to `fill_value`."""
    return np.full(shape, fill_value, "float32" if dtype is None else dtype)


def full_like(a: np.ndarray, fill_value: Any, shape: Any = None) -> np.ndarray:
    """Return an array of a's type, of its shape unless another is given."""
    return np.full(a.shape if shape is None else shape, fill_value, a.dtype)


### SINCE full
def compact(a: np.ndarray) -> np.ndarray:
    """Return a C-contiguous array with a's elements."""
    return np.ascontiguousarray(a).reshape(a.shape)


### END SINCE
def reshape(a: np.ndarray, new_shape: Any) -> np.ndarray:
    """Return a's elements in another shape."""
    return np.reshape(a, new_shape)


def broadcast_to(a: np.ndarray, new_shape: Any) -> np.ndarray:
    """Return a view of `a` stretched to `new_shape`."""
    return np.broadcast_to(a, new_shape)


def permute(a: np.ndarray, axes: Any) -> np.ndarray:
    """Return a view of `a` with its axes in the order `axes`."""
    return np.transpose(a, axes)


### SINCE hw4
def flip(a: np.ndarray, axes: Any) -> np.ndarray:
    """Return a view of `a` with the order along `axes` reversed."""
    return np.flip(a, axes)


### END SINCE
### SINCE full
def pad(a: np.ndarray, axes: Iterable[tuple[int, int]]) -> np.ndarray:
    """Return a copy of `a` with zeros around it."""
    return np.pad(a, tuple(axes))


def windows(a: np.ndarray, kernel: tuple[int, int], stride: tuple[int, int]) -> np.ndarray:
    """Return a view (N, OH, OW, KH, KW, C) of the windows of `a` (N, H, W, C); they may overlap."""
    view = layout.window_view(a.shape, a.strides, kernel, stride)
    return np.lib.stride_tricks.as_strided(a, *view)


### END SINCE
def maximum(a: Any, b: Any) -> Any:
    """Return the larger of two elements; NaN if either is NaN."""
    return np.maximum(a, b)


### SINCE full
def minimum(a: Any, b: Any) -> Any:
    """Return the smaller of two elements; NaN if either is NaN."""
    return np.minimum(a, b)


### END SINCE
@quietly
def log(a: Any) -> Any:
    """Return the natural logarithm of each element."""
    return np.log(a)


@quietly
def exp(a: Any) -> Any:
    """Return e to the power of each element."""
    return np.exp(a)


### SINCE hw4
def tanh(a: Any) -> Any:
    """Return the hyperbolic tangent of each element."""
    return np.tanh(a)


### END SINCE
### SINCE full
@quietly
def sqrt(a: Any) -> Any:
    """Return the square root of each element."""
    return np.sqrt(a)


def sin(a: Any) -> Any:
    """Return the sine of each element, in radians."""
    return np.sin(a)


def cos(a: Any) -> Any:
    """Return the cosine of each element, in radians."""
    return np.cos(a)


@quietly
def sigmoid(a: Any) -> Any:
    """Return 1 / (1 + exp(-a)) of each element."""
    return 1 / (1 + np.exp(-a))


def abs(a: Any) -> Any:  # noqa: A001 - numpy's name
    """Return the absolute value of each element."""
    return np.abs(a)


### END SINCE
def sum(a: Any, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A001 - numpy's name
    """Return the sum over `axis`."""
    return np.sum(a, axis=axis, keepdims=keepdims)


### SINCE hw2
def max(a: Any, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A001 - numpy's name
    """Return the maximum over `axis`."""
    return np.max(a, axis=axis, keepdims=keepdims)


### END SINCE
### SINCE full
def min(a: Any, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A001 - numpy's name
    """Return the minimum over `axis`."""
    return np.min(a, axis=axis, keepdims=keepdims)


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return elements of `a` where the condition is not 0, else of `b`; the three broadcast."""
    return np.where(np.asarray(condition) != 0, a, b)


def take_rows(a: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return the rows of the matrix `a` that the list of whole numbers `indices` names."""
    return a[indices.astype(np.intp)]


@quietly
def add_rows(a: np.ndarray, indices: np.ndarray, rows: int) -> np.ndarray:
    """Return a matrix of zeros with `rows` rows and each row of `a` added at its index."""
    out = np.zeros((rows, a.shape[1]), a.dtype)
    np.add.at(out, indices.astype(np.intp), a)
    return out


def to_dlpack(a: np.ndarray, **keywords: Any) -> Any:
    """Return a DLPack capsule over a's memory, or of a copy if it is flipped."""
    return export_values(a, **keywords)


### END SINCE
