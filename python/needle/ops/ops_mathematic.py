"""Mathematical ops: each class says its result on arrays and, right below, its gradient with
Tensors.

A class is followed by the function that users call. Chapters: elementwise with a scalar,
elementwise with a Tensor, elementwise of one Tensor, shape, reduction, linear algebra.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from needle.autograd import Tensor, TensorOp, python_number
from needle.backend_ndarray import layout
from needle.backend_selection import array_api
from needle.errors import ShapeError
from needle.ops.ops_comparison import equal, greater, greater_equal, less, less_equal

__all__ = [
    "Abs",
    "AddScalar",
    "BroadcastTo",
    "Clip",
    "Cos",
    "DivScalar",
    "EWiseAdd",
    "EWiseDiv",
    "EWiseMul",
    "EWisePow",
    "Exp",
    "Log",
    "MatMul",
    "Max",
    "Min",
    "MulScalar",
    "Negate",
    "Permute",
    "PowerScalar",
    "ReLU",
    "Reshape",
    "Sigmoid",
    "Sin",
    "Sqrt",
    "Summation",
    "Tanh",
    "Transpose",
    "abs",
    "add",
    "add_scalar",
    "broadcast_to",
    "clip",
    "cos",
    "divide",
    "divide_scalar",
    "exp",
    "flatten",
    "log",
    "matmul",
    "max",
    "mean",
    "min",
    "mul_scalar",
    "multiply",
    "negate",
    "permute",
    "power",
    "power_scalar",
    "relu",
    "reshape",
    "sigmoid",
    "sin",
    "sqrt",
    "squeeze",
    "summation",
    "tanh",
    "transpose",
    "unsqueeze",
]

Shape = tuple[int, ...]


# --- elementwise with a scalar ---


class ScalarOp(TensorOp):
    """An op with one number; a numpy scalar becomes a Python one, so that it never widens the
    result.
    """

    def __init__(self, scalar: Any) -> None:
        self.scalar = scalar if type(scalar) in (float, int) else python_number(scalar)


class AddScalar(ScalarOp):
    def compute(self, a):
        return a + self.scalar

    def gradient(self, out_grad, node):
        return out_grad


def add_scalar(a: Tensor, scalar: float) -> Tensor:
    """Return a + scalar."""
    return AddScalar(scalar)(a)


class MulScalar(ScalarOp):
    def compute(self, a):
        return a * self.scalar

    def gradient(self, out_grad, node):
        return out_grad * self.scalar


def mul_scalar(a: Tensor, scalar: float) -> Tensor:
    """Return a * scalar."""
    return MulScalar(scalar)(a)


class DivScalar(ScalarOp):
    def compute(self, a):
        return a / self.scalar

    def gradient(self, out_grad, node):
        return out_grad / self.scalar


def divide_scalar(a: Tensor, scalar: float) -> Tensor:
    """Return a / scalar."""
    return DivScalar(scalar)(a)


class PowerScalar(ScalarOp):
    def compute(self, a):
        return a**self.scalar

    def gradient(self, out_grad, node):
        if self.scalar == 0:  # the rule below would give 0 * inf at a = 0
            return out_grad * 0
        return out_grad * self.scalar * power_scalar(node.inputs[0], self.scalar - 1)


def power_scalar(a: Tensor, scalar: float) -> Tensor:
    """Return a ** scalar."""
    return PowerScalar(scalar)(a)


# --- elementwise with a Tensor ---


class ElementwiseOp(TensorOp):
    """An op on two Tensors of one shape; unequal ones are broadcast first, by their own nodes."""

    name: str  # as users call it, for errors

    def __call__(self, a: Any, b: Any) -> Tensor:  # type: ignore[override]  # two, not any number
        if a.shape != b.shape:
            shape = layout.broadcast_shapes(a.shape, b.shape, self.name)
            a, b = broadcast_to(a, shape), broadcast_to(b, shape)
        return Tensor.make_from_op(self, (a, b))


class EWiseAdd(ElementwiseOp):
    name = "add"

    def compute(self, a, b):
        return a + b

    def gradient(self, out_grad, node):
        return out_grad, out_grad


def add(a: Tensor, b: Tensor) -> Tensor:
    """Return a + b."""
    return EWiseAdd()(a, b)


class EWiseMul(ElementwiseOp):
    name = "multiply"

    def compute(self, a, b):
        return a * b

    def gradient(self, out_grad, node):
        a, b = node.inputs
        # A constant, such as a mask, needs none.
        return out_grad * b if a.requires_grad else None, out_grad * a if b.requires_grad else None


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """Return a * b, element by element."""
    return EWiseMul()(a, b)


class EWiseDiv(ElementwiseOp):
    name = "divide"

    def compute(self, a, b):
        return a / b

    def gradient(self, out_grad, node):
        a, b = node.inputs
        grad_a = out_grad / b if a.requires_grad else None
        grad_b = -out_grad * a / (b * b) if b.requires_grad else None
        return grad_a, grad_b


def divide(a: Tensor, b: Tensor) -> Tensor:
    """Return a / b, element by element."""
    return EWiseDiv()(a, b)


class EWisePow(ElementwiseOp):
    name = "power"

    def compute(self, a, b):
        return a**b

    def gradient(self, out_grad, node):
        a, b = node.inputs
        # At a = 0 the factors of zero have limits: 0 * 0 ** -1 is 0, and so is 0 ** b * log(0).
        zero = equal(a, 0)
        grad_a = out_grad * b * a ** (b - 1 + zero * equal(b, 0)) if a.requires_grad else None
        grad_b = out_grad * node * log(a + zero) if b.requires_grad else None
        return grad_a, grad_b


def power(a: Tensor, b: Tensor) -> Tensor:
    """Return a ** b, element by element."""
    return EWisePow()(a, b)


# --- elementwise of one Tensor ---


class Negate(TensorOp):
    def compute(self, a):
        return -a

    def gradient(self, out_grad, node):
        return -out_grad


def negate(a: Tensor) -> Tensor:
    """Return -a."""
    return Negate()(a)


class Log(TensorOp):
    def compute(self, a):
        return array_api.log(a)

    def gradient(self, out_grad, node):
        return out_grad / node.inputs[0]


def log(a: Tensor) -> Tensor:
    """Return the natural logarithm."""
    return Log()(a)


class Exp(TensorOp):
    def compute(self, a):
        return array_api.exp(a)

    def gradient(self, out_grad, node):
        return out_grad * node


def exp(a: Tensor) -> Tensor:
    """Return e ** a."""
    return Exp()(a)


class Sqrt(TensorOp):
    def compute(self, a):
        return array_api.sqrt(a)

    def gradient(self, out_grad, node):
        return out_grad / (node * 2)


def sqrt(a: Tensor) -> Tensor:
    """Return the square root."""
    return Sqrt()(a)


class Sin(TensorOp):
    def compute(self, a):
        return array_api.sin(a)

    def gradient(self, out_grad, node):
        return out_grad * cos(node.inputs[0])


def sin(a: Tensor) -> Tensor:
    """Return the sine of an angle in radians."""
    return Sin()(a)


class Cos(TensorOp):
    def compute(self, a):
        return array_api.cos(a)

    def gradient(self, out_grad, node):
        return -out_grad * sin(node.inputs[0])


def cos(a: Tensor) -> Tensor:
    """Return the cosine of an angle in radians."""
    return Cos()(a)


class Tanh(TensorOp):
    def compute(self, a):
        return array_api.tanh(a)

    def gradient(self, out_grad, node):
        return out_grad * (1 - node * node)  # d/dx tanh = 1 - tanh²


def tanh(a: Tensor) -> Tensor:
    """Return the hyperbolic tangent."""
    return Tanh()(a)


class Sigmoid(TensorOp):
    def compute(self, a):
        return array_api.sigmoid(a)

    def gradient(self, out_grad, node):
        return out_grad * node * (1 - node)  # d/dx s = s (1 - s)


def sigmoid(a: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-a))."""
    return Sigmoid()(a)


class ReLU(TensorOp):
    def compute(self, a):
        return array_api.maximum(a, 0)

    def gradient(self, out_grad, node):
        return out_grad * greater(node.inputs[0], 0)


def relu(a: Tensor) -> Tensor:
    """Return max(a, 0); its gradient at 0 is 0."""
    return ReLU()(a)


class Abs(TensorOp):
    def compute(self, a):
        return array_api.abs(a)

    def gradient(self, out_grad, node):
        a = node.inputs[0]
        return out_grad * greater(a, 0) - out_grad * less(a, 0)


def abs(a: Tensor) -> Tensor:  # noqa: A001 - numpy's name
    """Return |a|; its gradient at 0 is 0."""
    return Abs()(a)


class Clip(TensorOp):
    def __init__(self, low: float | None = None, high: float | None = None) -> None:
        self.low = None if low is None else python_number(low)
        self.high = None if high is None else python_number(high)

    def compute(self, a):
        if self.low is not None:
            a = array_api.maximum(a, self.low)
        return a if self.high is None else array_api.minimum(a, self.high)

    def gradient(self, out_grad, node):
        a = node.inputs[0]
        if self.low is not None:
            out_grad = out_grad * greater_equal(a, self.low)
        return out_grad if self.high is None else out_grad * less_equal(a, self.high)


def clip(a: Tensor, low: float | None = None, high: float | None = None) -> Tensor:
    """Return `a` limited to [low, high]; the gradient is 0 where it was limited.

    Raises:
        ShapeError: if neither limit is given, or low > high.
    """
    if low is None and high is None:
        raise ShapeError("[clip] give a low limit, a high one, or both")
    if low is not None and high is not None and low > high:
        raise ShapeError(f"[clip] the low limit {low} is above the high limit {high}")
    return Clip(low, high)(a)


# --- shape ---


class Transpose(TensorOp):
    def __init__(self, axes: Sequence[int] | None = None) -> None:
        self.axes = axes

    def compute(self, a):
        order = list(range(len(a.shape)))
        first, second = (-1, -2) if self.axes is None else self.axes
        order[first], order[second] = order[second], order[first]
        return array_api.permute(a, order)

    def gradient(self, out_grad, node):
        return transpose(out_grad, self.axes)


def transpose(a: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """Swap two axes of `a` (default: the last two); `permute` takes a full order.

    Raises:
        ShapeError: if `axes` is not a pair of axes of `a`.
    """
    if axes is None and a.ndim < 2:
        raise ShapeError(f"[transpose] shape {a.shape} has no two axes to swap")
    if axes is not None:
        axes = tuple(axes)
        if len(axes) != 2:
            raise ShapeError(
                f"[transpose] {axes} is not a pair; transpose swaps two axes, permute takes a "
                "full order"
            )
        for axis in axes:
            layout.normalize_axes(axis, a.ndim, "transpose")
    return Transpose(axes)(a)


class Permute(TensorOp):
    def __init__(self, axes: Iterable[int]) -> None:
        self.axes = tuple(axes)

    def compute(self, a):
        return array_api.permute(a, self.axes)

    def gradient(self, out_grad, node):
        return permute(out_grad, tuple(self.axes.index(axis) for axis in range(len(self.axes))))


def permute(a: Tensor, axes: Iterable[int]) -> Tensor:
    """Return `a` with its axes in the order `axes`; ShapeError unless each axis is named once."""
    axes = tuple(axes)
    if len(axes) != a.ndim:
        raise ShapeError(f"[permute] {axes} does not name each of {a.ndim} axes once")
    layout.normalize_axes(axes, a.ndim, "permute")
    return Permute(axis % a.ndim for axis in axes)(a)


class Reshape(TensorOp):
    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def compute(self, a):
        return array_api.reshape(a, self.shape)

    def gradient(self, out_grad, node):
        return reshape(out_grad, node.inputs[0].shape)


def reshape(a: Tensor, shape: Any) -> Tensor:
    """Return a's elements in another shape; one size may be -1; ShapeError if the counts differ."""
    target = (shape,) if not isinstance(shape, Iterable) else tuple(shape)
    return Reshape(layout.resolve_reshape(a.shape, target))(a)


def flatten(a: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return `a` with the axes from `start_dim` to `end_dim`, both included, made one."""
    if a.ndim == 0:
        return reshape(a, (1,))
    (start,) = layout.normalize_axes(start_dim, a.ndim, "flatten")
    (end,) = layout.normalize_axes(end_dim, a.ndim, "flatten")
    if start > end:
        raise ShapeError(f"[flatten] start_dim {start_dim} comes after end_dim {end_dim}")
    return reshape(a, (*a.shape[:start], math.prod(a.shape[start : end + 1]), *a.shape[end + 1 :]))


def squeeze(a: Tensor, axis: Any = None) -> Tensor:
    """Drop axes of size 1: all of them, or those in `axis` (ShapeError if one has another size)."""
    if axis is None:
        return reshape(a, tuple(size for size in a.shape if size != 1))
    axes = layout.normalize_axes(axis, a.ndim, "squeeze")
    if any(a.shape[i] != 1 for i in axes):
        raise ShapeError(f"[squeeze] axes {axes} of shape {a.shape} are not all of size 1")
    return reshape(a, layout.reduced_shape(a.shape, axes, keepdims=False))


def unsqueeze(a: Tensor, axis: int) -> Tensor:
    """Insert an axis of size 1 at `axis` of the result."""
    (position,) = layout.normalize_axes(axis, a.ndim + 1, "unsqueeze")
    return reshape(a, (*a.shape[:position], 1, *a.shape[position:]))


class BroadcastTo(TensorOp):
    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def compute(self, a):
        return array_api.broadcast_to(a, self.shape)

    def gradient(self, out_grad, node):
        return _sum_to(out_grad, node.inputs[0].shape)


def broadcast_to(a: Tensor, shape: Any) -> Tensor:
    """Return `a` stretched to `shape` by numpy's rule, without a copy; `a` itself if it has that
    shape.
    """
    shape = layout.as_shape(shape, "broadcast_to")
    if a.shape == shape:
        return a
    layout.broadcast_strides(a.shape, a.shape, shape)  # refuses what does not fit, with a message
    return BroadcastTo(shape)(a)


def _sum_to(grad: Tensor, shape: Shape) -> Tensor:
    """Sum a gradient over the axes that broadcasting `shape` added or stretched."""
    added = len(grad.shape) - len(shape)
    stretched = (
        i + added for i, size in enumerate(shape) if size == 1 and grad.shape[i + added] != 1
    )
    axes = (*range(added), *stretched)
    return reshape(summation(grad, axes), shape) if axes else grad


# --- reduction ---


class Summation(TensorOp):
    def __init__(self, axes: Any = None, keepdims: bool = False) -> None:
        self.axes = axes
        self.keepdims = keepdims

    def compute(self, a):
        return array_api.sum(a, self.axes, self.keepdims)

    def gradient(self, out_grad, node):
        return _spread(out_grad, node.inputs[0].shape, self.axes)


def summation(a: Tensor, axes: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum over `axes`: None for all, an int, or several; negative ones count from the
    end.
    """
    return Summation(_reduction_axes(a, axes, "sum"), keepdims)(a)


def mean(a: Tensor, axes: Any = None, keepdims: bool = False) -> Tensor:
    """Return the mean over `axes`; ShapeError over an empty axis."""
    axes = _reduction_axes(a, axes, "mean")
    count = 1
    for axis in layout.normalize_axes(axes, a.ndim, "mean"):
        count *= a.shape[axis]
    if count == 0:
        raise ShapeError(f"[mean] shape {a.shape} is empty along {axes}; a mean needs an element")
    return divide_scalar(summation(a, axes, keepdims), count)


class Extremum(TensorOp):
    """What Max and Min share: the gradient goes to the extreme elements, those that tie share it
    evenly.
    """

    def __init__(self, axes: Any = None, keepdims: bool = False) -> None:
        self.axes = axes
        self.keepdims = keepdims

    def gradient(self, out_grad, node):
        a = node.inputs[0]
        chosen = equal(a, _spread(node.detach(), a.shape, self.axes))
        ties = summation(chosen, self.axes, self.keepdims)
        return _spread(out_grad / ties, a.shape, self.axes) * chosen


class Max(Extremum):
    def compute(self, a):
        return array_api.max(a, self.axes, self.keepdims)


def max(a: Tensor, axes: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A001 - numpy's name
    """Return the maximum over `axes`; ShapeError over an empty axis."""
    return Max(nonempty_axes(a, axes, "max"), keepdims)(a)


class Min(Extremum):
    def compute(self, a):
        return array_api.min(a, self.axes, self.keepdims)


def min(a: Tensor, axes: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A001 - numpy's name
    """Return the minimum over `axes`; ShapeError over an empty axis."""
    return Min(nonempty_axes(a, axes, "min"), keepdims)(a)


def _reduction_axes(a: Tensor, axes: Any, op: str) -> Shape | None:
    """Return `axes` checked and normalised; None stays None."""
    if axes is None:
        return None
    normalized = layout.normalize_axes(axes, a.ndim, op)
    if not normalized:
        raise ShapeError(f"[{op}] no axes given; use axes=None for all axes")
    return normalized


def nonempty_axes(a: Tensor, axes: Any, op: str) -> Shape | None:
    """Return `axes` checked and normalised; ShapeError over an empty axis."""
    reduced = _reduction_axes(a, axes, op)
    if any(a.shape[axis] == 0 for axis in layout.normalize_axes(reduced, a.ndim, op)):
        raise ShapeError(
            f"[{op}] shape {a.shape} is empty along {axes}; the result needs an element"
        )
    return reduced


def _spread(reduced: Tensor, shape: Shape, axes: Any) -> Tensor:
    """Return a reduction's result stretched back over the axes that were reduced."""
    kept = layout.reduced_shape(
        shape, layout.normalize_axes(axes, len(shape), "sum"), keepdims=True
    )
    return broadcast_to(reshape(reduced, kept), shape)


# --- linear algebra ---


class MatMul(TensorOp):
    def compute(self, a, b):
        return a @ b

    def gradient(self, out_grad, node):
        a, b = node.inputs
        # An operand that lacks leading axes, or has size 1 there, was used once for each: sum those
        # uses.
        grad_a = _sum_to(matmul(out_grad, transpose(b)), a.shape) if a.requires_grad else None
        grad_b = _sum_to(matmul(transpose(a), out_grad), b.shape) if b.requires_grad else None
        return grad_a, grad_b


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix product (..., m, n) @ (..., n, p); leading axes broadcast, a vector is a
    row or a column.

    Raises:
        ShapeError: if the inner sizes differ or an operand has no axes.
    """
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(
            f"[matmul] operands need an axis: {a.shape} @ {b.shape}; use * for a number"
        )
    inner = b.shape[0] if b.ndim == 1 else b.shape[-2]
    if a.shape[-1] != inner:
        raise ShapeError(f"[matmul] inner sizes differ: {a.shape} @ {b.shape}")
    if a.ndim == 1:
        return squeeze(matmul(unsqueeze(a, 0), b), -1 if b.ndim == 1 else -2)
    if b.ndim == 1:
        return squeeze(matmul(a, unsqueeze(b, 1)), -1)
    layout.broadcast_shapes(a.shape[:-2], b.shape[:-2], "matmul")
    return MatMul()(a, b)
