"""Which arrays the library computes on: our NDArray, or raw numpy as in the stages before it.

`array_api` is the module of array functions that every op's compute uses. Where there is a choice,
the environment variable NEEDLE_BACKEND ("nd", the default, or "np") makes it, once, at import; both
provide the same names.
"""

import os
from types import ModuleType
from typing import Any

### UNTIL hw3
# from needle import backend_numpy as array_api
# from needle.backend_numpy import Device, NDArray, all_devices, as_device, cpu, default_device
### END UNTIL
from needle.errors import NeedleError

__all__ = [
    "BACKEND",
    "Device",
    "NDArray",
    "all_devices",
    "array_api",
    "as_device",
    "cpu",
    "cpu_numpy",
    "cuda",
    "cuda_checked",
    "cuda_emulated",
    "default_device",
]

### UNTIL hw3
# BACKEND = "np"
### END UNTIL
### SINCE hw4
BACKEND = os.environ.get("NEEDLE_BACKEND", "nd")

array_api: ModuleType
# Any, for the two choices have different types.
NDArray: Any
Device: Any
all_devices: Any
as_device: Any
cpu: Any
default_device: Any

if BACKEND == "nd":
    from needle.backend_ndarray import array_api
    from needle.backend_ndarray.device import BackendDevice as Device
    from needle.backend_ndarray.device import (
        all_devices,
        as_device,
        cpu,
        cpu_numpy,
        cuda,
        cuda_checked,
        cuda_emulated,
        default_device,
    )
    from needle.backend_ndarray.ndarray import NDArray
elif BACKEND == "np":
    from needle import backend_numpy as array_api
    from needle.backend_ndarray.device import cpu_numpy, cuda, cuda_checked, cuda_emulated
    from needle.backend_numpy import Device, NDArray, all_devices, as_device, cpu, default_device
else:
    raise NeedleError(f'[needle] NEEDLE_BACKEND is {BACKEND!r}; it must be "nd" or "np"')
### END SINCE
