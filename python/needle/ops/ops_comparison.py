"""Comparisons: 0 and 1 in the operands' dtype, on their device, without a gradient."""

from numbers import Real
from typing import Any

import numpy as np

from needle.autograd import Tensor
from needle.backend_selection import array_api
from needle.errors import DtypeError
from needle.ops.ops_device import check_devices
from needle.tensor_methods import python_number

__all__ = ["equal", "greater", "greater_equal", "less", "less_equal", "not_equal"]


def _compared(a: Tensor, b: Any, compare: Any) -> Tensor:
    """Return a comparison of a Tensor with a Tensor or number as a constant of 0 and 1 in a's
    dtype.
    """
    if isinstance(b, Tensor):
        ### SINCE full
        check_devices("compare", a, b)
        ### END SINCE
        b = b.realize_cached_data()
    elif isinstance(b, Real):
        b = python_number(b)
    ### SINCE full
    elif not isinstance(b, np.ndarray):
        raise DtypeError(
            f"[compare] a Tensor and a {type(b).__name__}; give a Tensor, number or numpy array"
        )
    ### END SINCE
    result = compare(a.realize_cached_data(), b)
    return Tensor.make_const(
        array_api.array(result, dtype=a.dtype, device=a.device) if _is_mask(result) else result
    )


def _is_mask(result: Any) -> bool:
    """Tell whether a comparison came out as numpy's booleans."""
    return isinstance(result, np.ndarray | np.generic)


def equal(a: Tensor, b: Any) -> Tensor:
    """Return 1 where a == b, else 0."""
    return _compared(a, b, lambda x, y: x == y)


### SINCE full
def not_equal(a: Tensor, b: Any) -> Tensor:
    """Return 1 where a != b, else 0."""
    return _compared(a, b, lambda x, y: x != y)


def less(a: Tensor, b: Any) -> Tensor:
    """Return 1 where a < b, else 0."""
    return _compared(a, b, lambda x, y: x < y)


def less_equal(a: Tensor, b: Any) -> Tensor:
    """Return 1 where a <= b, else 0."""
    return _compared(a, b, lambda x, y: x <= y)


### END SINCE
def greater(a: Tensor, b: Any) -> Tensor:
    """Return 1 where a > b, else 0."""
    return _compared(a, b, lambda x, y: x > y)


### SINCE full
def greater_equal(a: Tensor, b: Any) -> Tensor:
    """Return 1 where a >= b, else 0."""
    return _compared(a, b, lambda x, y: x >= y)


### END SINCE
