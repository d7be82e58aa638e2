"""NDArrays over the memory of other libraries.

The other direction is `__dlpack__` and `__array__` of `ndarray.py`.
"""

from typing import Any

from numpy.lib.stride_tricks import as_strided

from needle.backend_ndarray import layout
from needle.backend_ndarray.device import BackendDevice, as_device, default_device
from needle.backend_ndarray.dlpack import shared_values
from needle.backend_ndarray.ndarray import NDArray
from needle.errors import ExchangeError

__all__ = ["from_dlpack"]


def from_dlpack(
    x: Any, device: BackendDevice | str | None = None, copy: bool | None = None
) -> NDArray:
    """Return an array over the memory of `x`, of any shape and strides, or over a copy.

    `device` is `cpu()` or `cpu_numpy()` (default: `default_device()`); the rest and the errors are
    those of `shared_values`.
    """
    device = default_device() if device is None else as_device(device)
    device.check_dtype(None, "from_dlpack")  # tells why a device is missing
    if not hasattr(device, "array_over"):
        raise ExchangeError(
            f"[from_dlpack] {device} cannot share the host's memory; use needle.Tensor to copy"
        )
    values = shared_values(x, copy, device.dtypes, device)
    if values.size == 0:
        return NDArray.make(values.shape, None, device, device.array_over(values.reshape(-1)))
    strides = tuple(stride // values.itemsize for stride in values.strides)
    low, high = layout.view_bounds(values.shape, strides, 0)
    upwards: Any = tuple(slice(None, None, -1 if stride < 0 else 1) for stride in strides)
    # All memory from the lowest element to the highest, whatever lies between them.
    flat = as_strided(values[(*upwards, ...)], (high - low + 1,), (values.itemsize,))
    return NDArray.make(values.shape, strides, device, device.array_over(flat), -low)
