"""Mathematical ops: each class says its result on arrays and, right below, its gradient with
Tensors.

A class is followed by the function that users call. Chapters: elementwise with a scalar,
elementwise with a Tensor, elementwise of one Tensor, shape, reduction, linear algebra.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from needle.autograd import Tensor, TensorOp
from needle.backend_ndarray import layout
from needle.backend_selection import array_api
from needle.errors import ShapeError
from needle.ops.ops_comparison import equal, greater
from needle.tensor_methods import python_number

__all__ = [
    "AddScalar",
    "BroadcastTo",
    "DivScalar",
    "EWiseAdd",
    "EWiseDiv",
    "EWiseMul",
    "EWisePow",
    "Exp",
    "Log",
    "MatMul",
    "MulScalar",
    "Negate",
    "Permute",
    "PowerScalar",
    "ReLU",
    "Reshape",
    "Summation",
    "Transpose",
    "add",
    "add_scalar",
    "broadcast_to",
    "divide",
    "divide_scalar",
    "exp",
    "flatten",
    "log",
    "matmul",
    "mul_scalar",
    "multiply",
    "negate",
    "permute",
    "power",
    "power_scalar",
    "relu",
    "reshape",
    "squeeze",
    "summation",
    "transpose",
    "unsqueeze",
]

Shape = tuple[int, ...]


# --- what several gradients share ---


### BEGIN SOLUTION hw1.gradient_shapes
def sum_to(grad: Tensor, shape: Shape) -> Tensor:
    """Sum a gradient over the axes that broadcasting `shape` added or stretched."""
    added = len(grad.shape) - len(shape)
    stretched = (
        i + added for i, size in enumerate(shape) if size == 1 and grad.shape[i + added] != 1
    )
    axes = (*range(added), *stretched)
    return reshape(summation(grad, axes), shape) if axes else grad


def spread(reduced: Tensor, shape: Shape, axes: Any) -> Tensor:
    """Return a reduction's result stretched back over the axes that were reduced."""
    kept = layout.reduced_shape(
        shape, layout.normalize_axes(axes, len(shape), "sum"), keepdims=True
    )
    return broadcast_to(reshape(reduced, kept), shape)


### STUB
# # Functions that several of your gradients use can stand here.
### END SOLUTION


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
        ### BEGIN SOLUTION hw1.div_scalar.compute
        return a / self.scalar
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw1.div_scalar.gradient
        return out_grad / self.scalar
        ### END SOLUTION


def divide_scalar(a: Tensor, scalar: float) -> Tensor:
    """Return a / scalar."""
    return DivScalar(scalar)(a)


class PowerScalar(ScalarOp):
    def compute(self, a):
        ### BEGIN SOLUTION hw1.power_scalar.compute
        return a**self.scalar
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw1.power_scalar.gradient
        if self.scalar == 0:  # the rule below would give 0 * inf at a = 0
            return out_grad * 0
        return out_grad * self.scalar * power_scalar(node.inputs[0], self.scalar - 1)
        ### END SOLUTION


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
        ### BEGIN SOLUTION hw1.ewise_div.compute
        return a / b
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw1.ewise_div.gradient
        a, b = node.inputs
        grad_a = out_grad / b if a.requires_grad else None
        grad_b = -out_grad * a / (b * b) if b.requires_grad else None
        return grad_a, grad_b
        ### END SOLUTION


def divide(a: Tensor, b: Tensor) -> Tensor:
    """Return a / b, element by element."""
    return EWiseDiv()(a, b)


class EWisePow(ElementwiseOp):
    name = "power"

    def compute(self, a, b):
        ### BEGIN SOLUTION hw1.ewise_pow.compute
        return a**b
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw1.ewise_pow.gradient
        a, b = node.inputs
        # At a = 0 the factors of zero have limits: 0 * 0 ** -1 is 0, and so is 0 ** b * log(0).
        zero = equal(a, 0)
        grad_a = out_grad * b * a ** (b - 1 + zero * equal(b, 0)) if a.requires_grad else None
        grad_b = out_grad * node * log(a + zero) if b.requires_grad else None
        return grad_a, grad_b
        ### END SOLUTION


def power(a: Tensor, b: Tensor) -> Tensor:
    """Return a ** b, element by element."""
    return EWisePow()(a, b)


# --- elementwise of one Tensor ---


class Negate(TensorOp):
    def compute(self, a):
        ### BEGIN SOLUTION hw1.negate.compute
        return -a
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw1.negate.gradient
        return -out_grad
        ### END SOLUTION


def negate(a: Tensor) -> Tensor:
    """Return -a."""
    return Negate()(a)


class Log(TensorOp):
    def compute(self, a):
        ### BEGIN SOLUTION hw1.log.compute
        return array_api.log(a)
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw1.log.gradient
        return out_grad / node.inputs[0]
        ### END SOLUTION


def log(a: Tensor) -> Tensor:
    """Return the natural logarithm."""
    return Log()(a)


class Exp(TensorOp):
    def compute(self, a):
        ### BEGIN SOLUTION hw1.exp.compute
        return array_api.exp(a)
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw1.exp.gradient
        return out_grad * node
        ### END SOLUTION


def exp(a: Tensor) -> Tensor:
    """Return e ** a."""
    return Exp()(a)


class ReLU(TensorOp):
    def compute(self, a):
        ### BEGIN SOLUTION hw1.relu.compute
        return array_api.maximum(a, 0)
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw1.relu.gradient
        return out_grad * greater(node.inputs[0], 0)
        ### END SOLUTION


def relu(a: Tensor) -> Tensor:
    """Return max(a, 0); its gradient at 0 is 0."""
    return ReLU()(a)


# --- shape ---


class Transpose(TensorOp):
    def __init__(self, axes: Sequence[int] | None = None) -> None:
        self.axes = axes

    def compute(self, a):
        ### BEGIN SOLUTION hw1.transpose.compute
        order = list(range(len(a.shape)))
        first, second = (-1, -2) if self.axes is None else self.axes
        order[first], order[second] = order[second], order[first]
        return array_api.permute(a, order)
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw1.transpose.gradient
        return transpose(out_grad, self.axes)
        ### END SOLUTION


def transpose(a: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """Swap two axes of `a` (default: the last two).

    Raises:
        ShapeError: if `axes` is not a pair of axes of `a`.
    """
    if axes is None and a.ndim < 2:
        raise ShapeError(f"[transpose] shape {a.shape} has no two axes to swap")
    if axes is not None:
        axes = tuple(axes)
        if len(axes) != 2:
            ### UNTIL hw3
            # raise ShapeError(f"[transpose] {axes} is not a pair; transpose swaps two axes")
            ### END UNTIL
            ### SINCE hw4
            raise ShapeError(
                f"[transpose] {axes} is not a pair; transpose swaps two axes, permute takes a "
                "full order"
            )
            ### END SINCE
        for axis in axes:
            layout.normalize_axes(axis, a.ndim, "transpose")
    return Transpose(axes)(a)


### SINCE hw4
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


### END SINCE
class Reshape(TensorOp):
    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def compute(self, a):
        ### BEGIN SOLUTION hw1.reshape.compute
        return array_api.reshape(a, self.shape)
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw1.reshape.gradient
        return reshape(out_grad, node.inputs[0].shape)
        ### END SOLUTION


def reshape(a: Tensor, shape: Any) -> Tensor:
    """Return a's elements in another shape; one size may be -1; ShapeError if the counts differ."""
    target = (shape,) if not isinstance(shape, Iterable) else tuple(shape)
    return Reshape(layout.resolve_reshape(a.shape, target))(a)


### SINCE full
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


### END SINCE
class BroadcastTo(TensorOp):
    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def compute(self, a):
        ### BEGIN SOLUTION hw1.broadcast_to.compute
        return array_api.broadcast_to(a, self.shape)
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw1.broadcast_to.gradient
        return sum_to(out_grad, node.inputs[0].shape)
        ### END SOLUTION


def broadcast_to(a: Tensor, shape: Any) -> Tensor:
    """Return `a` stretched to `shape` by numpy's rule, without a copy; `a` itself if it has that
    shape; BroadcastError if it does not fit.
    """
    shape = layout.as_shape(shape, "broadcast_to")
    if a.shape == shape:
        return a
    layout.check_broadcast(a.shape, shape)
    return BroadcastTo(shape)(a)


# --- reduction ---


class Summation(TensorOp):
    def __init__(self, axes: Any = None, keepdims: bool = False) -> None:
        self.axes = axes
        self.keepdims = keepdims

    def compute(self, a):
        ### BEGIN SOLUTION hw1.summation.compute
        return array_api.sum(a, self.axes, self.keepdims)
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw1.summation.gradient
        return spread(out_grad, node.inputs[0].shape, self.axes)
        ### END SOLUTION


def summation(a: Tensor, axes: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum over `axes`: None for all, an int, or several; negative ones count from the
    end.
    """
    return Summation(reduction_axes(a, axes, "sum"), keepdims)(a)


def reduction_axes(a: Tensor, axes: Any, op: str) -> Shape | None:
    """Return `axes` checked and normalised; None stays None."""
    if axes is None:
        return None
    normalized = layout.normalize_axes(axes, a.ndim, op)
    if not normalized:
        raise ShapeError(f"[{op}] no axes given; use axes=None for all axes")
    return normalized


### SINCE hw2
def nonempty_axes(a: Tensor, axes: Any, op: str) -> Shape | None:
    """Return `axes` checked and normalised; ShapeError over an empty axis."""
    reduced = reduction_axes(a, axes, op)
    if any(a.shape[axis] == 0 for axis in layout.normalize_axes(reduced, a.ndim, op)):
        raise ShapeError(
            f"[{op}] shape {a.shape} is empty along {axes}; the result needs an element"
        )
    return reduced


### END SINCE
# --- linear algebra ---


class MatMul(TensorOp):
    def compute(self, a, b):
        ### BEGIN SOLUTION hw1.matmul.compute
        return a @ b
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw1.matmul.gradient
        a, b = node.inputs
        # An operand that lacks leading axes, or has size 1 there, was used once for each: sum those
        # uses.
        grad_a = sum_to(matmul(out_grad, transpose(b)), a.shape) if a.requires_grad else None
        grad_b = sum_to(matmul(transpose(a), out_grad), b.shape) if b.requires_grad else None
        return grad_a, grad_b
        ### END SOLUTION


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix product (..., m, n) @ (..., n, p); leading axes broadcast.

    Raises:
        ShapeError: if the inner sizes differ or an operand lacks axes.
    """
    ### UNTIL hw5
    # if a.ndim < 2 or b.ndim < 2:
    #     raise ShapeError(f"[matmul] operands need two axes: {a.shape} @ {b.shape}; reshape them")
    # if a.shape[-1] != b.shape[-2]:
    #     raise ShapeError(f"[matmul] inner sizes differ: {a.shape} @ {b.shape}")
    ### END UNTIL
    ### SINCE full
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(
            f"[matmul] operands need an axis: {a.shape} @ {b.shape}; use * for a number"
        )
    inner = b.shape[0] if b.ndim == 1 else b.shape[-2]
    if a.shape[-1] != inner:
        raise ShapeError(f"[matmul] inner sizes differ: {a.shape} @ {b.shape}")
    if a.ndim == 1:  # a vector is a row on the left, a column on the right
        return squeeze(matmul(unsqueeze(a, 0), b), -1 if b.ndim == 1 else -2)
    if b.ndim == 1:
        return squeeze(matmul(a, unsqueeze(b, 1)), -1)
    ### END SINCE
    layout.broadcast_shapes(a.shape[:-2], b.shape[:-2], "matmul")
    return MatMul()(a, b)
