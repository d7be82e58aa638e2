"""The ops as operators and methods of a Tensor, under the names that users of numpy know.

A few lines each; `ops/` says what they do and how they are differentiated. `autograd.py` derives
Tensor from this class; `self` is Any because to a type checker it is no Tensor yet.
"""

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from needle.errors import DtypeError, ShapeError

if TYPE_CHECKING:
    from needle.autograd import Tensor

__all__ = ["REAL", "TensorMethods", "python_number"]

ops: Any = None  # needle.ops, which cannot be imported before Tensor is there: autograd.py sets it

# What an operator takes for a number: the usual types first, the abstract one is slow to ask.
REAL = (float, int, Real)


class TensorMethods:
    """What `x + y`, `x.sum()`, `x.reshape((2, -1))` and the like mean."""

    ### SINCE full
    __slots__ = ()

    ### END SINCE
    # --- operators: a number is a scalar op ---

    def __add__(self: Any, other: Any) -> "Tensor":
        if isinstance(other, TensorMethods):
            return ops.EWiseAdd()(self, other)
        if isinstance(other, REAL):
            return ops.AddScalar(other)(self)
        ### SINCE full
        if isinstance(other, np.ndarray):
            return ops.add(self, self._constant(other))
        ### END SINCE
        return NotImplemented

    __radd__ = __add__

    def __sub__(self: Any, other: Any) -> "Tensor":
        if isinstance(other, TensorMethods):
            return ops.EWiseAdd()(self, ops.Negate()(other))
        if isinstance(other, REAL):
            return ops.AddScalar(-python_number(other))(self)
        ### SINCE full
        if isinstance(other, np.ndarray):
            # Negated as a Tensor: unsigned integers and booleans of numpy have no negative.
            return self - self._constant(other)
        ### END SINCE
        return NotImplemented

    def __rsub__(self: Any, other: Any) -> "Tensor":
        return (-self) + other

    def __mul__(self: Any, other: Any) -> "Tensor":
        if isinstance(other, TensorMethods):
            return ops.EWiseMul()(self, other)
        if isinstance(other, REAL):
            return ops.MulScalar(other)(self)
        ### SINCE full
        if isinstance(other, np.ndarray):
            return ops.multiply(self, self._constant(other))
        ### END SINCE
        return NotImplemented

    __rmul__ = __mul__

    def __truediv__(self: Any, other: Any) -> "Tensor":
        if isinstance(other, TensorMethods):
            return ops.EWiseDiv()(self, other)
        if isinstance(other, REAL):
            return ops.DivScalar(other)(self)
        ### SINCE full
        if isinstance(other, np.ndarray):
            return ops.divide(self, self._constant(other))
        ### END SINCE
        return NotImplemented

    def __rtruediv__(self: Any, other: Any) -> "Tensor":
        if isinstance(other, REAL):
            return ops.divide(self._constant(other), self)
        ### SINCE full
        if isinstance(other, np.ndarray):
            return ops.divide(self._constant(other), self)
        ### END SINCE
        return NotImplemented

    def __pow__(self: Any, other: Any) -> "Tensor":
        if isinstance(other, TensorMethods):
            return ops.EWisePow()(self, other)
        if isinstance(other, REAL):
            return ops.PowerScalar(other)(self)
        ### SINCE full
        if isinstance(other, np.ndarray):
            return ops.power(self, self._constant(other))
        ### END SINCE
        return NotImplemented

    def __rpow__(self: Any, other: Any) -> "Tensor":
        if isinstance(other, REAL):
            return ops.power(self._constant(other), self)
        ### SINCE full
        if isinstance(other, np.ndarray):
            return ops.power(self._constant(other), self)
        ### END SINCE
        return NotImplemented

    def __matmul__(self: Any, other: Any) -> "Tensor":
        ### SINCE full
        if isinstance(other, np.ndarray):
            other = self._constant(other)
        ### END SINCE
        return ops.matmul(self, other) if isinstance(other, TensorMethods) else NotImplemented

    ### SINCE full
    def __rmatmul__(self: Any, other: Any) -> "Tensor":
        return (
            ops.matmul(self._constant(other), self)
            if isinstance(other, np.ndarray)
            else NotImplemented
        )

    ### END SINCE
    def __neg__(self: Any) -> "Tensor":
        return ops.Negate()(self)

    ### SINCE full
    def __abs__(self: Any) -> "Tensor":
        return ops.abs(self)

    def __lt__(self: Any, other: Any) -> "Tensor":
        return ops.less(self, other)

    def __le__(self: Any, other: Any) -> "Tensor":
        return ops.less_equal(self, other)

    def __gt__(self: Any, other: Any) -> "Tensor":
        return ops.greater(self, other)

    def __ge__(self: Any, other: Any) -> "Tensor":
        return ops.greater_equal(self, other)

    def __getitem__(self: Any, idxs: Any) -> "Tensor":
        """Return the part that integers (their axis drops), slices, `...` and None select."""
        return ops.getitem(self, idxs)

    ### END SINCE
    # --- elementwise ---

    def exp(self: Any) -> "Tensor":
        """Return e to the power of each element."""
        return ops.exp(self)

    def log(self: Any) -> "Tensor":
        """Return the natural logarithm of each element."""
        return ops.log(self)

    ### SINCE full
    def sqrt(self: Any) -> "Tensor":
        """Return the square root of each element."""
        return ops.sqrt(self)

    def sin(self: Any) -> "Tensor":
        """Return the sine of each element, in radians."""
        return ops.sin(self)

    def cos(self: Any) -> "Tensor":
        """Return the cosine of each element, in radians."""
        return ops.cos(self)

    def tanh(self: Any) -> "Tensor":
        """Return the hyperbolic tangent of each element."""
        return ops.tanh(self)

    def sigmoid(self: Any) -> "Tensor":
        """Return 1 / (1 + exp(-x)) of each element."""
        return ops.sigmoid(self)

    def relu(self: Any) -> "Tensor":
        """Return max(x, 0) of each element."""
        return ops.relu(self)

    def softmax(self: Any, dim: int = -1) -> "Tensor":
        """Return exp(x) / sum(exp(x)) along `dim`."""
        return ops.softmax(self, dim)

    def abs(self: Any) -> "Tensor":
        """Return the absolute value of each element."""
        return ops.abs(self)

    def clip(self: Any, low: float | None = None, high: float | None = None) -> "Tensor":
        """Return the elements limited to [low, high]."""
        return ops.clip(self, low, high)

    ### END SINCE
    # --- shape ---

    ### SINCE full
    @property
    def T(self: Any) -> "Tensor":  # noqa: N802 - the name that everybody knows
        """The Tensor with all its axes in reverse order."""
        return ops.permute(self, tuple(reversed(range(self.ndim))))

    ### END SINCE
    def broadcast_to(self: Any, shape: Any) -> "Tensor":
        """Return this Tensor stretched to `shape`, without a copy."""
        return ops.broadcast_to(self, shape)

    def reshape(self: Any, *shape: Any) -> "Tensor":
        """Return the elements in another shape, a tuple or numbers; one size may be -1."""
        return ops.reshape(self, _one_or_many(shape))

    ### SINCE full
    view = reshape  # no promise that memory is shared, as reshape makes none

    def flatten(self: Any, start_dim: int = 0, end_dim: int = -1) -> "Tensor":
        """Return the elements with the axes from `start_dim` to `end_dim` made one."""
        return ops.flatten(self, start_dim, end_dim)

    ### END SINCE
    def transpose(self: Any, *axes: Any) -> "Tensor":
        """Swap two axes, a pair or two numbers (default: the last two)."""
        return ops.transpose(self, _one_or_many(axes) if axes else None)

    ### SINCE hw4
    def permute(self: Any, *axes: Any) -> "Tensor":
        """Return the axes in the order `axes`, a tuple or numbers."""
        return ops.permute(self, _one_or_many(axes))

    ### END SINCE
    ### SINCE full
    def squeeze(self: Any, axis: Any = None) -> "Tensor":
        """Drop axes of size 1: all of them, or those named."""
        return ops.squeeze(self, axis)

    def unsqueeze(self: Any, axis: int) -> "Tensor":
        """Insert an axis of size 1."""
        return ops.unsqueeze(self, axis)

    ### END SINCE
    # --- reductions ---

    ### UNTIL hw5
    # def sum(self: Any, axes: Any = None, keepdims: bool = False) -> "Tensor":
    #     """Return the sum over `axes` (None for all, an int, or several)."""
    #     return ops.summation(self, axes, keepdims)
    #
    ### END UNTIL
    ### SINCE full
    # axis and dim are synonyms of axes, keepdim is one of keepdims
    def sum(
        self: Any,
        axes: Any = None,
        keepdims: bool = False,
        *,
        axis: Any = None,
        dim: Any = None,
        keepdim: bool = False,
    ) -> "Tensor":
        """Return the sum over `axes` (None for all, an int, or several)."""
        return ops.summation(self, _one_of(axes, axis, dim), keepdims or keepdim)

    def mean(
        self: Any,
        axes: Any = None,
        keepdims: bool = False,
        *,
        axis: Any = None,
        dim: Any = None,
        keepdim: bool = False,
    ) -> "Tensor":
        """Return the mean over `axes`."""
        return ops.mean(self, _one_of(axes, axis, dim), keepdims or keepdim)

    def max(
        self: Any,
        axes: Any = None,
        keepdims: bool = False,
        *,
        axis: Any = None,
        dim: Any = None,
        keepdim: bool = False,
    ) -> "Tensor":
        """Return the maximum over `axes`; elements that tie share the gradient evenly."""
        return ops.max(self, _one_of(axes, axis, dim), keepdims or keepdim)

    def min(
        self: Any,
        axes: Any = None,
        keepdims: bool = False,
        *,
        axis: Any = None,
        dim: Any = None,
        keepdim: bool = False,
    ) -> "Tensor":
        """Return the minimum over `axes`; elements that tie share the gradient evenly."""
        return ops.min(self, _one_of(axes, axis, dim), keepdims or keepdim)

    def var(
        self: Any,
        axes: Any = None,
        keepdims: bool = False,
        *,
        correction: int = 0,
        axis: Any = None,
        dim: Any = None,
        keepdim: bool = False,
    ) -> "Tensor":
        """Return the mean square deviation over `axes`: its sum over n - correction."""
        axes = _one_of(axes, axis, dim)
        return ops.var(self, axes, keepdims or keepdim, correction)

    def std(
        self: Any,
        axes: Any = None,
        keepdims: bool = False,
        *,
        correction: int = 0,
        axis: Any = None,
        dim: Any = None,
        keepdim: bool = False,
    ) -> "Tensor":
        """Return the standard deviation over `axes`, the root of `var`."""
        axes = _one_of(axes, axis, dim)
        return ops.std(self, axes, keepdims or keepdim, correction)

    def argmax(
        self: Any, axis: int | None = None, keepdims: bool = False, *, dim: int | None = None
    ) -> "Tensor":
        """Return where the maximum along `axis` is (None: in the flattened Tensor), a constant."""
        return ops.argmax(self, _one_of(axis, dim), keepdims)

    def argmin(
        self: Any, axis: int | None = None, keepdims: bool = False, *, dim: int | None = None
    ) -> "Tensor":
        """Return where the minimum along `axis` is (None: in the flattened Tensor), a constant."""
        return ops.argmin(self, _one_of(axis, dim), keepdims)

    ### END SINCE
    # --- products ---

    def matmul(self: Any, other: "Tensor") -> "Tensor":
        """Return the matrix product with `other`."""
        return ops.matmul(self, other)


def _one_or_many(values: tuple[Any, ...]) -> Any:
    """Return the arguments of f(2, 3), or the one sequence of f((2, 3))."""
    return values[0] if len(values) == 1 and not isinstance(values[0], int) else values


def python_number(scalar: Any) -> Any:
    """Return a number as Python's own: one of numpy's would widen a float32 result.

    Raises:
        DtypeError: for a Tensor, whose gradient would be lost.
    """
    if isinstance(scalar, TensorMethods):
        raise DtypeError("[scalar] got a Tensor; use the op for two Tensors, e.g. a + b")
    value = np.asarray(scalar).item()
    return value if isinstance(value, int) else float(value)


### SINCE full
def _one_of(*synonyms: Any) -> Any:
    """Return the one of several synonyms that was given; ShapeError if several were."""
    given = [value for value in synonyms if value is not None]
    if len(given) > 1:
        raise ShapeError("[axes] give one of axes, axis and dim")
    return given[0] if given else None


### END SINCE
