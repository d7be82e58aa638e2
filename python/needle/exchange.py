"""Tensors over the memory of numpy, PyTorch, JAX and other libraries that speak DLPack.

The other direction is `numpy.asarray(tensor)` and each library's own `from_dlpack(tensor)`.
"""

from typing import Any

from needle.autograd import Tensor
from needle.backend_selection import array_api

__all__ = ["from_dlpack"]


def from_dlpack(
    x: Any, *, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """Return a Tensor over the memory of `x`, an array of another library on the host.

    Each sees what the other writes, until one of them is gone; a recorded graph does not notice.

    Args:
        x: anything with `__dlpack__`: float32 on `cpu()`, also float64 on `cpu_numpy()`.
        device: default: `default_device()`.
        copy: True for memory of its own, False to forbid it. None copies where sharing is not
            safe: memory that is read-only (JAX's is) or misaligned.
        requires_grad: whether `backward` computes a gradient for it.

    Raises:
        DtypeError: for another dtype, or an `x` without `__dlpack__`.
        ExchangeError: if the memory cannot be reached, or not be shared with `copy=False`.
    """
    array = array_api.from_dlpack(x, device=device, copy=copy)
    return Tensor.make_const(array, requires_grad=requires_grad)
