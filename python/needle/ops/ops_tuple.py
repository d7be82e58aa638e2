"""Ops that make, take apart or return a TensorTuple."""

from collections.abc import Iterable

from needle.autograd import Tensor, TensorOp, TensorTuple, TensorTupleOp, Value
from needle.backend_ndarray import layout
from needle.backend_selection import array_api
from needle.errors import ShapeError
from needle.ops.ops_device import check_devices

__all__ = [
    "FusedAddScalars",
    "MakeTensorTuple",
    "Split",
    "Stack",
    "TupleGetItem",
    "fused_add_scalars",
    "make_tuple",
    "split",
    "stack",
    "tuple_get_item",
]


class MakeTensorTuple(TensorTupleOp):
    """Put several Tensors into one TensorTuple."""

    def compute(self, *args):
        return tuple(args)

    def gradient(self, out_grad, node):
        return tuple(out_grad[i] for i in range(len(out_grad)))


def make_tuple(*args: Tensor) -> TensorTuple:
    """Return a TensorTuple of the given Tensors."""
    return MakeTensorTuple()(*args)


class TupleGetItem(TensorOp):
    """Take one Tensor out of a TensorTuple."""

    def __init__(self, index: int) -> None:
        self.index = index

    def __call__(self, a: Value, fold_const: bool = True) -> Tensor:  # type: ignore[override]
        if fold_const and isinstance(a.op, MakeTensorTuple):
            return a.inputs[self.index]  # type: ignore[return-value]
        return Tensor.make_from_op(self, [a])

    def compute(self, a):
        return a[self.index]

    def gradient(self, out_grad, node):
        parts = node.inputs[0].realize_cached_data()
        grads = [Tensor.make_const(array_api.full_like(part, 0.0)) for part in parts]
        grads[self.index] = out_grad
        return make_tuple(*grads)


def tuple_get_item(value: TensorTuple, index: int) -> Tensor:
    """Return the Tensor at `index`."""
    return TupleGetItem(index)(value)


class FusedAddScalars(TensorTupleOp):
    """Add two numbers to one Tensor: (a + c0, a + c1)."""

    def __init__(self, c0: float, c1: float) -> None:
        self.c0 = c0
        self.c1 = c1

    def compute(self, a):
        return a + self.c0, a + self.c1

    def gradient(self, out_grad, node):
        return out_grad[0] + out_grad[1]


def fused_add_scalars(x: Tensor, c0: float, c1: float) -> TensorTuple:
    """Return (x + c0, x + c1)."""
    return FusedAddScalars(c0, c1)(x)


### SINCE hw4
class Stack(TensorOp):
    """Join the Tensors of one TensorTuple along an axis of their own."""

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def compute(self, parts):
        ### BEGIN SOLUTION hw4.stack.compute
        shape = list(parts[0].shape)
        shape.insert(self.axis, len(parts))
        out = array_api.full_like(parts[0], 0, shape=tuple(shape))
        before = (slice(None),) * self.axis
        for i, part in enumerate(parts):
            out[(*before, i, ...)] = part
        return out
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw4.stack.gradient
        return split(out_grad, self.axis)  # one TensorTuple, for the one input
        ### END SOLUTION


def stack(args: Iterable[Tensor], axis: int = 0) -> Tensor:
    """Return Tensors of one shape (a list, tuple or TensorTuple) joined along a new axis.

    Raises:
        ShapeError: if there are none, or their shapes differ.
    """
    parts = args if isinstance(args, TensorTuple) else make_tuple(*args)
    shapes = [part.shape for part in parts.realize_cached_data()]
    if not shapes:
        raise ShapeError("[stack] no Tensors given")
    if len(set(shapes)) > 1:
        raise ShapeError(f"[stack] shapes {shapes} differ; they must be equal")
    ### SINCE full
    check_devices("stack", *parts)
    ### END SINCE
    (axis,) = layout.normalize_axes(axis, len(shapes[0]) + 1, "stack")
    return Stack(axis)(parts)


class Split(TensorTupleOp):
    """Take a Tensor apart along an axis: as many Tensors as the axis has elements."""

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def compute(self, a):
        ### BEGIN SOLUTION hw4.split.compute
        shape = (*a.shape[: self.axis], *a.shape[self.axis + 1 :])
        before = (slice(None),) * self.axis
        return tuple(
            array_api.reshape(a[(*before, slice(i, i + 1))], shape)
            for i in range(a.shape[self.axis])
        )
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw4.split.gradient
        return stack(out_grad, self.axis)
        ### END SOLUTION


def split(a: Tensor, axis: int) -> TensorTuple:
    """Return a TensorTuple of the parts of `a` along `axis`, which the parts lack."""
    (axis,) = layout.normalize_axes(axis, a.ndim, "split")
    return Split(axis)(a)


### END SINCE
