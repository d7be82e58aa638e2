"""Ops that make, take apart or return a TensorTuple."""

from needle.autograd import Tensor, TensorOp, TensorTuple, TensorTupleOp, Value
from needle.backend_selection import array_api

__all__ = [
    "FusedAddScalars",
    "MakeTensorTuple",
    "TupleGetItem",
    "fused_add_scalars",
    "make_tuple",
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
