"""The specification of a backend: each kernel of `interface.py` in about one line of numpy.

The compiled backends are tested against this file. It relies on numpy alone, runs everywhere as
`cpu_numpy()`, and is the only backend that also carries float64, which gradient checks want.
"""

from typing import Any

import numpy as np

from needle.errors import OutOfMemoryError

__device_name__ = "numpy"

quietly = np.errstate(all="ignore")  # inf and NaN are results here, not warnings


class Array:
    """A flat buffer of `size` numbers, not initialised."""

    __slots__ = ("array",)

    def __init__(self, size: int, dtype: str = "float32") -> None:
        try:
            self.array = np.empty(size, dtype)
        except (MemoryError, ValueError, OverflowError):
            raise OutOfMemoryError(f"[cpu_numpy] no room for an array of {size} elements") from None

    ### SINCE full
    @classmethod
    def of(cls, values: np.ndarray) -> "Array":
        """Wrap fresh values, row-major."""
        wrapped = cls.__new__(cls)
        wrapped.array = np.ascontiguousarray(values).reshape(-1)
        return wrapped

    ### END SINCE
    @property
    def size(self) -> int:
        """The number of elements."""
        return self.array.size

    @property
    def dtype(self) -> str:
        """The name of the elements' type."""
        return self.array.dtype.name

    def ptr(self) -> int:
        """Return the address of element 0."""
        return self.array.ctypes.data


Layout = tuple[tuple[int, ...], tuple[int, ...], int] | None


def view(a: Array, layout: Layout) -> np.ndarray:
    """Return what a layout shows of a buffer; numpy refuses one that leaves it."""
    if layout is None:
        return a.array
    shape, strides, offset = layout
    if 0 in shape:
        return np.empty(shape, a.array.dtype)
    step = a.array.itemsize
    return np.ndarray(
        shape, a.array.dtype, a.array, offset * step, tuple(stride * step for stride in strides)
    )


### SINCE full
def views(*operands: Any) -> list[np.ndarray]:
    """Return what array, layout, array, layout ... show; a whole buffer takes the shape of the
    others.
    """
    arrays, layouts = operands[::2], operands[1::2]
    shape = next((layout[0] for layout in layouts if layout is not None), -1)
    pairs = zip(arrays, layouts, strict=True)
    return [a.array.reshape(shape) if layout is None else view(a, layout) for a, layout in pairs]


### END SINCE
@quietly
def number(a: Array, value: float) -> Any:
    """Return `value` in a's type, so that a scalar never widens a result."""
    return a.array.dtype.type(value)


@quietly
def exponents(x: np.ndarray, value: float) -> np.ndarray:
    """Return `value` once an element: a lone 0.5 means sqrt to numpy, which differs at -inf."""
    return np.full(x.shape, value, x.dtype)


### SINCE full
def truth(a: Array, mask: np.ndarray) -> Array:
    """Return a comparison as 1.0 and 0.0 in a's type."""
    return Array.of(mask.astype(a.array.dtype))


### END SINCE
# Course kernels: compact buffers, the caller gives the output.


def to_numpy(a: Array, shape, strides, offset):
    return view(a, (shape, strides, offset)).copy(order="C")


def from_numpy(array: np.ndarray, out: Array):
    out.array[:] = array.reshape(-1)


@quietly
def fill(out: Array, value):
    out.array.fill(value)


def compact(a: Array, out: Array, shape, strides, offset):
    out.array[:] = view(a, (shape, strides, offset)).reshape(-1)


def ewise_setitem(a: Array, out: Array, shape, strides, offset):
    view(out, (shape, strides, offset))[...] = a.array.reshape(shape)


@quietly
def scalar_setitem(size, value, out: Array, shape, strides, offset):
    view(out, (shape, strides, offset))[...] = value


@quietly
def ewise_add(a: Array, b: Array, out: Array):
    out.array[:] = a.array + b.array


@quietly
def ewise_mul(a: Array, b: Array, out: Array):
    out.array[:] = a.array * b.array


@quietly
def ewise_div(a: Array, b: Array, out: Array):
    out.array[:] = a.array / b.array


def ewise_maximum(a: Array, b: Array, out: Array):
    out.array[:] = np.maximum(a.array, b.array)


def ewise_eq(a: Array, b: Array, out: Array):
    out.array[:] = a.array == b.array


def ewise_ge(a: Array, b: Array, out: Array):
    out.array[:] = a.array >= b.array


@quietly
def scalar_add(a: Array, value, out: Array):
    out.array[:] = a.array + number(a, value)


@quietly
def scalar_mul(a: Array, value, out: Array):
    out.array[:] = a.array * number(a, value)


@quietly
def scalar_div(a: Array, value, out: Array):
    out.array[:] = a.array / number(a, value)


@quietly
def scalar_power(a: Array, value, out: Array):
    out.array[:] = np.power(a.array, exponents(a.array, value))


def scalar_maximum(a: Array, value, out: Array):
    out.array[:] = np.maximum(a.array, number(a, value))


def scalar_eq(a: Array, value, out: Array):
    out.array[:] = a.array == number(a, value)


def scalar_ge(a: Array, value, out: Array):
    out.array[:] = a.array >= number(a, value)


@quietly
def ewise_log(a: Array, out: Array):
    out.array[:] = np.log(a.array)


@quietly
def ewise_exp(a: Array, out: Array):
    out.array[:] = np.exp(a.array)


def ewise_tanh(a: Array, out: Array):
    out.array[:] = np.tanh(a.array)


@quietly
def matmul(a: Array, b: Array, out: Array, m, n, p):
    out.array[:] = (a.array.reshape(m, n) @ b.array.reshape(n, p)).reshape(-1)


@quietly
def reduce_sum(a: Array, out: Array, reduce_size):
    out.array[:] = a.array.reshape(out.size, reduce_size).sum(axis=1)


def reduce_max(a: Array, out: Array, reduce_size):
    out.array[:] = a.array.reshape(out.size, reduce_size).max(axis=1)


### SINCE full
# Strided kernels: they walk layouts and return a fresh compact Array.


@quietly
def add(a: Array, a_layout, b: Array, b_layout):
    return Array.of(np.add(*views(a, a_layout, b, b_layout)))


@quietly
def add_scalar(a: Array, a_layout, value):
    return Array.of(view(a, a_layout) + number(a, value))


@quietly
def sub(a: Array, a_layout, b: Array, b_layout):
    return Array.of(np.subtract(*views(a, a_layout, b, b_layout)))


@quietly
def sub_scalar(a: Array, a_layout, value):
    return Array.of(view(a, a_layout) - number(a, value))


@quietly
def mul(a: Array, a_layout, b: Array, b_layout):
    return Array.of(np.multiply(*views(a, a_layout, b, b_layout)))


@quietly
def mul_scalar(a: Array, a_layout, value):
    return Array.of(view(a, a_layout) * number(a, value))


@quietly
def div(a: Array, a_layout, b: Array, b_layout):
    return Array.of(np.divide(*views(a, a_layout, b, b_layout)))


@quietly
def div_scalar(a: Array, a_layout, value):
    return Array.of(view(a, a_layout) / number(a, value))


@quietly
def power(a: Array, a_layout, b: Array, b_layout):
    return Array.of(np.power(*views(a, a_layout, b, b_layout)))


@quietly
def power_scalar(a: Array, a_layout, value):
    x = view(a, a_layout)
    return Array.of(np.power(x, exponents(x, value)))


def maximum(a: Array, a_layout, b: Array, b_layout):
    return Array.of(np.maximum(*views(a, a_layout, b, b_layout)))


def maximum_scalar(a: Array, a_layout, value):
    return Array.of(np.maximum(view(a, a_layout), number(a, value)))


def minimum(a: Array, a_layout, b: Array, b_layout):
    return Array.of(np.minimum(*views(a, a_layout, b, b_layout)))


def minimum_scalar(a: Array, a_layout, value):
    return Array.of(np.minimum(view(a, a_layout), number(a, value)))


def eq(a: Array, a_layout, b: Array, b_layout):
    return truth(a, np.equal(*views(a, a_layout, b, b_layout)))


def eq_scalar(a: Array, a_layout, value):
    return truth(a, view(a, a_layout) == number(a, value))


def ne(a: Array, a_layout, b: Array, b_layout):
    return truth(a, np.not_equal(*views(a, a_layout, b, b_layout)))


def ne_scalar(a: Array, a_layout, value):
    return truth(a, view(a, a_layout) != number(a, value))


def lt(a: Array, a_layout, b: Array, b_layout):
    return truth(a, np.less(*views(a, a_layout, b, b_layout)))


def lt_scalar(a: Array, a_layout, value):
    return truth(a, view(a, a_layout) < number(a, value))


def le(a: Array, a_layout, b: Array, b_layout):
    return truth(a, np.less_equal(*views(a, a_layout, b, b_layout)))


def le_scalar(a: Array, a_layout, value):
    return truth(a, view(a, a_layout) <= number(a, value))


def gt(a: Array, a_layout, b: Array, b_layout):
    return truth(a, np.greater(*views(a, a_layout, b, b_layout)))


def gt_scalar(a: Array, a_layout, value):
    return truth(a, view(a, a_layout) > number(a, value))


def ge(a: Array, a_layout, b: Array, b_layout):
    return truth(a, np.greater_equal(*views(a, a_layout, b, b_layout)))


def ge_scalar(a: Array, a_layout, value):
    return truth(a, view(a, a_layout) >= number(a, value))


def neg(a: Array, a_layout):
    return Array.of(-view(a, a_layout))


def abs(a: Array, a_layout):  # noqa: A001 - the contract's name
    return Array.of(np.abs(view(a, a_layout)))


@quietly
def sqrt(a: Array, a_layout):
    return Array.of(np.sqrt(view(a, a_layout)))


@quietly
def exp(a: Array, a_layout):
    return Array.of(np.exp(view(a, a_layout)))


@quietly
def log(a: Array, a_layout):
    return Array.of(np.log(view(a, a_layout)))


@quietly
def sin(a: Array, a_layout):
    return Array.of(np.sin(view(a, a_layout)))


@quietly
def cos(a: Array, a_layout):
    return Array.of(np.cos(view(a, a_layout)))


def tanh(a: Array, a_layout):
    return Array.of(np.tanh(view(a, a_layout)))


@quietly
def sigmoid(a: Array, a_layout):
    one = number(a, 1)
    return Array.of(one / (one + np.exp(-view(a, a_layout))))


def copy(a: Array, a_layout):
    return Array.of(view(a, a_layout).copy())


def where(condition: Array, c_layout, a: Array, a_layout, b: Array, b_layout):
    mask, x, y = views(condition, c_layout, a, a_layout, b, b_layout)
    return Array.of(np.where(mask != 0, x, y))


def take_rows(a: Array, a_layout, indices: Array, i_layout):
    return Array.of(view(a, a_layout)[view(indices, i_layout).astype(np.intp)])


@quietly
def add_rows(a: Array, a_layout, indices: Array, i_layout, rows):
    matrix = view(a, a_layout)
    out = np.zeros((rows, matrix.shape[1]), matrix.dtype)
    np.add.at(out, view(indices, i_layout).astype(np.intp), matrix)
    return Array.of(out)


def last_axes(count: int) -> tuple[int, ...]:
    """Return the numbers of the last `count` axes, counted from the end."""
    return tuple(range(-count, 0))


@quietly
def sum(a: Array, a_layout, count):  # noqa: A001 - the contract's name
    return Array.of(view(a, a_layout).sum(axis=last_axes(count)))


def max(a: Array, a_layout, count):  # noqa: A001 - the contract's name
    return Array.of(view(a, a_layout).max(axis=last_axes(count)))


def min(a: Array, a_layout, count):  # noqa: A001 - the contract's name
    return Array.of(view(a, a_layout).min(axis=last_axes(count)))


@quietly
def batched_matmul(a: Array, a_layout, b: Array, b_layout):
    return Array.of(view(a, a_layout) @ view(b, b_layout))


# Memory: numpy's own allocator serves this backend, there is no pool.


def memory_stats():
    return {"live_bytes": 0, "cached_bytes": 0, "hits": 0, "misses": 0}


def empty_cache():
    pass


def host_view(a: Array):
    return a.array


def array_over(array: np.ndarray):
    return Array.of(array)


### END SINCE
