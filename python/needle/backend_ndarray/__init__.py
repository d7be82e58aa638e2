"""Arrays on devices: NDArray over the cpu, cuda and cpu_numpy backends.

Read `interface.py` (what a backend provides), then `ndarray.py` (what a view is).
"""

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
