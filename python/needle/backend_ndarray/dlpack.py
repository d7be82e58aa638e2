"""numpy arrays out to DLPack and in from it, where that is safe.

DLPack is how Python's array libraries hand each other memory. numpy does the work; NDArray joins in
through numpy arrays over its memory (`ndarray.py`, `exchange.py`).
"""

from typing import Any

import numpy as np

from needle.errors import DtypeError, ExchangeError

__all__ = ["export_values", "shared_values"]


def export_values(values: np.ndarray, **keywords: Any) -> Any:
    """Return a DLPack capsule over the memory of `values`, as `__dlpack__` does.

    Flipped values are copied: PyTorch ends the process when it meets a negative stride.

    Raises:
        ExchangeError: for flipped values with `copy=False`.
    """
    if any(stride < 0 for stride in values.strides):
        if keywords.get("copy") is False:
            raise ExchangeError("[dlpack] a flipped view needs a copy; leave out copy=False")
        values = values.copy()
    return values.__dlpack__(**keywords)


def shared_values(x: Any, copy: bool | None, dtypes: tuple[str, ...], carrier: Any) -> np.ndarray:
    """Return a writable numpy array over the memory of `x`, which lives as long, or a copy.

    Args:
        x: an array on the host that has `__dlpack__`.
        copy: True for a copy, False to forbid it. None copies where sharing is not safe: memory
            that is read-only, since our arrays may be written to, or misaligned.
        dtypes: those that `carrier` carries.
        carrier: the device that asks.

    Raises:
        DtypeError: for another dtype, or an `x` without `__dlpack__`.
        ExchangeError: if the memory cannot be reached, or not be shared with `copy=False`.
    """
    if not hasattr(x, "__dlpack__"):
        raise DtypeError(
            f"[from_dlpack] a {type(x).__name__} has no __dlpack__; use needle.Tensor to copy"
        )
    try:
        values = np.from_dlpack(x)
    except (BufferError, RuntimeError) as error:
        raise ExchangeError(f"[from_dlpack] {error}") from error
    if values.dtype.name not in dtypes:
        raise DtypeError(
            f"[from_dlpack] {carrier} carries {' and '.join(dtypes)}, not {values.dtype}; convert "
            "the array first, or copy it with needle.Tensor"
        )
    sharable = values.flags.writeable and values.flags.aligned
    if copy is False and not sharable:
        raise ExchangeError(
            "[from_dlpack] read-only or misaligned memory cannot be shared; leave out copy=False"
        )
    return values if sharable and not copy else values.copy()
