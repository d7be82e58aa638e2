"""Arrays on devices: NDArray over the cpu, cuda and cpu_numpy backends.

Read `interface.py` (what a backend provides), then `ndarray.py` (what a view is).
"""

### UNTIL hw3
# from typing import Any
#
### END UNTIL
from needle.backend_ndarray.array_api import (
    broadcast_to,
    exp,
    flip,
    log,
    maximum,
    reshape,
    sum,
    tanh,
)
from needle.backend_ndarray.device import (
    BackendDevice,
    all_devices,
    as_device,
    cpu,
    cpu_numpy,
    cuda,
    cuda_checked,
    cuda_emulated,
    default_device,
)
from needle.backend_ndarray.ndarray import NDArray, array, empty, full

__all__ = [
    "BackendDevice",
    "NDArray",
    "all_devices",
    "array",
    "as_device",
    "broadcast_to",
    "cpu",
    "cpu_numpy",
    "cuda",
    "cuda_checked",
    "cuda_emulated",
    "default_device",
    "empty",
    "exp",
    "flip",
    "full",
    "log",
    "maximum",
    "reshape",
    "sum",
    "tanh",
]

### UNTIL hw3
# def maximum(a: NDArray, b: Any) -> NDArray:
#     """Return the larger of two elements."""
#     return a.maximum(b)
#
#
# def log(a: NDArray) -> NDArray:
#     """Return the natural logarithm of each element."""
#     return a.log()
#
#
# def exp(a: NDArray) -> NDArray:
#     """Return e to the power of each element."""
#     return a.exp()
#
#
# def tanh(a: NDArray) -> NDArray:
#     """Return the hyperbolic tangent of each element."""
#     return a.tanh()
#
#
# def sum(a: NDArray, axis: Any = None, keepdims: bool = False) -> NDArray:  # noqa: A001 - numpy's name
#     """Return the sum over `axis`."""
#     return a.sum(axis, keepdims)
#
#
# def reshape(a: NDArray, new_shape: Any) -> NDArray:
#     """Return a's elements in another shape: a view if `a` is compact, else of a copy."""
#     return a.compact().reshape(new_shape)
#
#
# def broadcast_to(a: NDArray, new_shape: Any) -> NDArray:
#     """Return a view of `a` stretched to `new_shape`."""
#     return a.broadcast_to(new_shape)
### END UNTIL
