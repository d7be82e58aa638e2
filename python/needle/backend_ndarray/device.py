"""Devices: a backend module, its kernels as attributes, and the reason where one is missing.

`cpu()`, `cuda()` and `cpu_numpy()` always answer with the same object; `default_device()` is
`cpu()` if it was built. The cuda kernels also run on the processor: `cuda_emulated()`. Kernels are
described in `interface.py`, arrays in `ndarray.py`.
"""

import importlib
import importlib.machinery
import importlib.util
import logging
import os
import sys
import warnings
from difflib import get_close_matches
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from needle.backend_ndarray import interface, ndarray_backend_numpy
from needle.backend_ndarray.course_kernels import strided_kernels
from needle.errors import DeviceError, DtypeError, MissingKernelError

__all__ = [
    "BackendDevice",
    "all_devices",
    "as_device",
    "cpu",
    "cpu_numpy",
    "cuda",
    "cuda_checked",
    "cuda_emulated",
    "default_device",
]

# What NEEDLE_CUDA_DEVICE may name, and the module that `cuda()` then runs.
CUDA_MODULES = {
    "": "ndarray_backend_cuda",
    "emulated": "ndarray_backend_cuda_emulated",
    "checked": "ndarray_backend_cuda_checked",
}


class BackendDevice:
    """A place where arrays live and kernels run; hashable, picklable, equal by name and module.

    Args:
        name: "cpu", "cuda", "cpu_numpy", "cuda_emulated" or "cuda_checked".
        mod: the backend module, or None if there is none.
        reason: why `mod` is None.
        dtypes: the element types that its arrays carry, the default first.
    """

    def __init__(
        self,
        name: str,
        mod: ModuleType | None,
        *,
        reason: str = "",
        dtypes: tuple[str, ...] = ("float32",),
    ) -> None:
        self.name = name
        self.mod = mod
        self.reason = reason
        self.dtypes = dtypes
        if mod is not None:
            # Attributes of the instance: a kernel call then costs one dictionary look-up.
            for kernel in (*interface.kernel_names(), "Array", "__tile_size__"):
                if hasattr(mod, kernel):
                    setattr(self, kernel, getattr(mod, kernel))
            if not hasattr(mod, "copy"):  # a module of the course's kernels alone
                vars(self).update(strided_kernels(mod))

    def __getattr__(self, kernel: str) -> Any:
        if kernel.startswith("__"):
            raise AttributeError(kernel)
        if self.mod is None:
            raise MissingKernelError(self._unavailable())
        near = get_close_matches(kernel, interface.kernel_names() & vars(self).keys(), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise MissingKernelError(f"[{self.name}] has no kernel {kernel}{hint}")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BackendDevice) and self.name == other.name and self.mod is other.mod
        )

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"{self.name}()"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_device, (self.name,)

    def _unavailable(self) -> str:
        available = ", ".join(str(device) for device in all_devices() if device.enabled())
        return f"[{self.name}] not available: {self.reason}; available: {available}"

    @property
    def emulated(self) -> bool:
        """Whether cuda kernels run on the processor here."""
        return hasattr(self.mod, "__emulated__")

    def enabled(self) -> bool:
        """Tell whether a kernel can run here."""
        return self.mod is not None

    def check_dtype(self, dtype: Any, op: str) -> str:
        """Return `dtype` (None for the default) as a name; DtypeError if this device does not carry
        it.
        """
        if not self.enabled():
            raise DeviceError(self._unavailable())
        if dtype is None:
            return self.dtypes[0]
        if isinstance(dtype, str) and dtype in self.dtypes:
            return dtype
        try:
            name = np.dtype(dtype).name
        except TypeError:
            name = repr(dtype)
        if name not in self.dtypes:
            carried = " and ".join(self.dtypes)
            raise DtypeError(
                f"[{op}] {self} carries {carried}, not {name}; float64 lives on cpu_numpy()"
            )
        return name

    def allocate(self, size: int, dtype: str) -> Any:
        """Return an uninitialised flat Array of a dtype that `check_dtype` has accepted."""
        return self.Array(size) if len(self.dtypes) == 1 else self.Array(size, dtype)

    def rand(self, *shape: int, dtype: Any = "float32") -> Any:
        """Return uniform numbers from [0, 1): one draw of numpy's global generator."""
        return self._place(np.random.rand(*shape), dtype)

    def randn(self, *shape: int, dtype: Any = "float32") -> Any:
        """Return standard normal numbers: one draw of numpy's global generator."""
        return self._place(np.random.randn(*shape), dtype)

    def one_hot(self, n: int, i: Any, dtype: Any = "float32") -> Any:
        """Return rows of the n x n identity matrix picked by the integers `i`."""
        return self._place(np.eye(n, dtype="float32")[i], dtype)

    def empty(self, shape: Any, dtype: Any = None) -> Any:
        """Return an uninitialised NDArray."""
        from needle.backend_ndarray import ndarray

        return ndarray.empty(shape, dtype=dtype, device=self)

    def full(self, shape: Any, fill_value: float, dtype: Any = None) -> Any:
        """Return an NDArray with every element equal to `fill_value`."""
        from needle.backend_ndarray import ndarray

        return ndarray.full(shape, fill_value, dtype=dtype, device=self)

    def _place(self, values: np.ndarray, dtype: Any) -> Any:
        from needle.backend_ndarray import ndarray

        return ndarray.array(values, dtype=dtype, device=self)


def _load_native(name: str) -> tuple[ModuleType | None, str]:
    """Import a compiled backend; return it, or None and the reason why there is none."""
    ### SINCE full
    folder = os.environ.get("NEEDLE_MODULE_DIR")  # a sanitizer build lives outside the package
    ### END SINCE
    full_name = f"needle.backend_ndarray.{name}"
    try:
        spec = importlib.util.find_spec(full_name)
        ### SINCE full
        if folder:
            finder = importlib.machinery.FileFinder(
                folder,
                (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
            )
            spec = finder.find_spec(full_name)
        ### END SINCE
        if spec is None:
            ### SINCE full
            if name != "ndarray_backend_cuda":
                return None, f"{name} is not built; run `make build`"
            ### END SINCE
            return None, f"{name} is not built"
        module = sys.modules.get(full_name)
        if module is None:
            module = importlib.util.module_from_spec(spec)
            sys.modules[full_name] = module
            assert spec.loader is not None  # noqa: S101 - a found module has a loader
            spec.loader.exec_module(module)
    except Exception as error:  # a broken build must not stop `import needle`
        sys.modules.pop(full_name, None)
        reason = f"{name} is built but does not load: {error}"
        warnings.warn(f"[needle] {reason}", RuntimeWarning, stacklevel=2)
        return None, reason
    return module, ""


@cache
def cpu() -> BackendDevice:
    """Return the device of the C++ kernels (float32)."""
    module, reason = _load_native("ndarray_backend_cpu")
    return BackendDevice("cpu", module, reason=reason)


def _cuda_device(name: str, module_name: str) -> BackendDevice:
    """Return a device over a module of the cuda kernels, or without one if they cannot run."""
    module, reason = _load_native(module_name)
    if module is not None:
        reason = module.unavailable()
    return BackendDevice(name, None if reason else module, reason=reason)


@cache
def cuda() -> BackendDevice:
    """Return the CUDA device (float32); `reason` says why where there is none.

    NEEDLE_CUDA_DEVICE=emulated, or checked, in the environment puts the emulated device, or the
    checked one, in its place; its `emulated` tells.
    """
    chosen = os.environ.get("NEEDLE_CUDA_DEVICE", "")
    if chosen not in CUDA_MODULES:
        reason = f"NEEDLE_CUDA_DEVICE is {chosen!r}; it may be emulated, checked or empty"
        return BackendDevice("cuda", None, reason=reason)
    device = _cuda_device("cuda", CUDA_MODULES[chosen])
    if device.emulated:
        logging.getLogger("needle").warning(
            "[needle] cuda() is emulated on the processor: NEEDLE_CUDA_DEVICE=%s", chosen
        )
    return device


@cache
def cuda_emulated() -> BackendDevice:
    """Return the device that runs the cuda kernels on the processor, much slower than `cpu()`."""
    return _cuda_device("cuda_emulated", CUDA_MODULES["emulated"])


@cache
def cuda_checked() -> BackendDevice:
    """Return the same with every access to memory checked, slower still: it finds races, reads of
    what was never written, and accesses out of bounds, and names the line.
    """
    return _cuda_device("cuda_checked", CUDA_MODULES["checked"])


@cache
def cpu_numpy() -> BackendDevice:
    """Return the device of the specification, written in numpy (float32 and float64)."""
    return BackendDevice("cpu_numpy", ndarray_backend_numpy, dtypes=("float32", "float64"))


def default_device() -> BackendDevice:
    """Return `cpu()` if it is built, else `cpu_numpy()`."""
    return cpu() if cpu().enabled() else cpu_numpy()


def all_devices() -> list[BackendDevice]:
    """Return every device that programs run on, enabled or not."""
    return [cpu(), cuda(), cpu_numpy()]


def as_device(device: BackendDevice | str) -> BackendDevice:
    """Return a device by its name ("cpu", "cuda", "cpu_numpy", "cuda_emulated", "cuda_checked"), or
    as it is.
    """
    if isinstance(device, BackendDevice):
        return device
    factories = {
        "cpu": cpu,
        "cuda": cuda,
        "cpu_numpy": cpu_numpy,
        "cuda_emulated": cuda_emulated,
        "cuda_checked": cuda_checked,
    }
    if device not in factories:
        raise DeviceError(f"[device] {device!r} is no device; use one of {', '.join(factories)}")
    return factories[device]()
