"""The ops as methods of a Tensor, under the names that users of numpy and PyTorch know.

One line each; `ops/` says what they do and how they are differentiated. `autograd.py` derives
Tensor from this class; `self` is Any because to a type checker it is no Tensor yet.
"""

from typing import TYPE_CHECKING, Any

from needle.errors import ShapeError

if TYPE_CHECKING:
    from needle.autograd import Tensor

__all__ = ["TensorMethods"]

ops: Any = None  # needle.ops, which cannot be imported before Tensor is there: autograd.py sets it


class TensorMethods:
    """What `x.sum()`, `x.reshape(2, -1)` and the like mean."""

    __slots__ = ()

    # --- elementwise ---

    def exp(self: Any) -> "Tensor":
        """Return e to the power of each element."""
        return ops.exp(self)

    def log(self: Any) -> "Tensor":
        """Return the natural logarithm of each element."""
        return ops.log(self)

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

    # --- shape ---

    @property
    def T(self: Any) -> "Tensor":  # noqa: N802 - the name that everybody knows
        """The Tensor with all its axes in reverse order."""
        return ops.permute(self, tuple(reversed(range(self.ndim))))

    def broadcast_to(self: Any, shape: Any) -> "Tensor":
        """Return this Tensor stretched to `shape`, without a copy."""
        return ops.broadcast_to(self, shape)

    def reshape(self: Any, *shape: Any) -> "Tensor":
        """Return the elements in another shape, a tuple or numbers; one size may be -1."""
        return ops.reshape(self, _one_or_many(shape))

    view = reshape  # no promise that memory is shared, as reshape makes none

    def flatten(self: Any, start_dim: int = 0, end_dim: int = -1) -> "Tensor":
        """Return the elements with the axes from `start_dim` to `end_dim` made one."""
        return ops.flatten(self, start_dim, end_dim)

    def transpose(self: Any, *axes: Any) -> "Tensor":
        """Swap two axes, a pair or two numbers (default: the last two)."""
        return ops.transpose(self, _one_or_many(axes) if axes else None)

    def permute(self: Any, *axes: Any) -> "Tensor":
        """Return the axes in the order `axes`, a tuple or numbers."""
        return ops.permute(self, _one_or_many(axes))

    def squeeze(self: Any, axis: Any = None) -> "Tensor":
        """Drop axes of size 1: all of them, or those named."""
        return ops.squeeze(self, axis)

    def unsqueeze(self: Any, axis: int) -> "Tensor":
        """Insert an axis of size 1."""
        return ops.unsqueeze(self, axis)

    # --- reductions: axis and dim are synonyms of axes, keepdim is one of keepdims ---

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

    # --- products ---

    def matmul(self: Any, other: "Tensor") -> "Tensor":
        """Return the matrix product with `other`."""
        return ops.matmul(self, other)


def _one_or_many(values: tuple[Any, ...]) -> Any:
    """Return the arguments of f(2, 3), or the one sequence of f((2, 3))."""
    return values[0] if len(values) == 1 and not isinstance(values[0], int) else values


def _one_of(*synonyms: Any) -> Any:
    """Return the one of several synonyms that was given; ShapeError if several were."""
    given = [value for value in synonyms if value is not None]
    if len(given) > 1:
        raise ShapeError("[axes] give one of axes, axis and dim")
    return given[0] if given else None
