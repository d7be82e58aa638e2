"""Function: an operation of your own, with `forward` and `backward` on raw arrays.

The short way to a differentiable operation. An op of the library's kind (`autograd.Op`, see `ops/`)
says its gradient with Tensors, and so can be differentiated again.
"""

from copy import copy
from typing import Any

from needle.autograd import Tensor, TensorTuple, TensorTupleOp, Value
from needle.backend_selection import NDArray, array_api
from needle.errors import GraphError, NeedleError

__all__ = ["Function"]


class Function(TensorTupleOp):
    """A differentiable function of any number of inputs and outputs.

        class Square(needle.Function):
            def forward(self, x):
                self.x = x
                return x * x

            def backward(self, out_grad):
                return 2 * self.x * out_grad

        y = Square()(x)

    Arrays are what `needle.array_api` computes on: NDArrays, or numpy's under NEEDLE_BACKEND=np.
    Numpy arrays and numbers may be returned too. Each call works on a copy of the instance, so
    that what `forward` keeps in `self` belongs to that call.
    """

    def forward(self, *arrays: Any) -> Any:
        """Return the output for the inputs' arrays, or a tuple of several."""
        raise NotImplementedError

    def backward(self, *out_grads: Any) -> Any:
        """Return the gradient for each input, of its shape; one for each output comes in.

        Several inputs get a tuple; None stands for an input that needs no gradient.
        """
        raise NotImplementedError

    def __call__(self, *inputs: Any) -> Any:
        """Return the output as a Tensor, or several as a tuple of Tensors.

        Raises:
            NeedleError: if no input is a Tensor.
        """
        like = next((x for x in inputs if isinstance(x, Tensor)), None)
        if like is None:
            raise NeedleError(
                f"[{type(self).__name__}] no input is a Tensor; wrap one in needle.Tensor"
            )
        tensors = tuple(x if isinstance(x, Tensor) else like._constant(x) for x in inputs)
        function = copy(self)
        outputs = TensorTuple.make_from_op(function, tensors)
        outputs.realize_cached_data()  # what forward returns says whether it is one or several
        return outputs[0] if function._single_output else outputs.tuple()

    def compute(self, *arrays: Any) -> tuple[Any, ...]:
        """Run `forward`; called by the graph."""
        result = self.forward(*arrays)
        self._single_output = not isinstance(result, tuple | list)
        results = [result] if self._single_output else result
        return tuple(_as_array(value, arrays[0]) for value in results)

    def gradient(self, out_grad: Any, node: Value) -> tuple[Any, ...]:
        """Run `backward`; called by the engine."""
        step = _Backward(self, len(out_grad))
        # The inputs come along so that a second differentiation is noticed, and refused.
        grads = step(*out_grad, *node.inputs)
        grads.realize_cached_data()
        if len(step.present) != len(node.inputs):
            raise GraphError(
                f"[{type(self).__name__}.backward] returned {len(step.present)} gradients for "
                f"{len(node.inputs)} inputs; one each, or None"
            )
        parts = iter(grads)
        return tuple(next(parts) if present else None for present in step.present)


class _Backward(TensorTupleOp):
    """A Function's backward as an op: what it computes cannot be differentiated again."""

    def __init__(self, function: Function, num_out_grads: int) -> None:
        self.function = function
        self.num_out_grads = num_out_grads
        self.present: list[bool] = []  # which inputs got a gradient

    def compute(self, *args: Any) -> tuple[Any, ...]:
        out_grads = args[: self.num_out_grads]
        result = self.function.backward(*out_grads)
        grads = result if isinstance(result, tuple | list) else [result]
        self.present = [grad is not None for grad in grads]
        return tuple(_as_array(grad, out_grads[0]) for grad in grads if grad is not None)

    def gradient(self, out_grad: Any, node: Value) -> Any:
        name = type(self.function).__name__
        raise GraphError(
            f"[{name}] its backward works on raw arrays and has no gradient of its own; write an "
            "Op, whose gradient uses Tensors, to differentiate twice"
        )


def _as_array(value: Any, like: Any) -> Any:
    """Return what a Function computed as an array; numpy's results go to like's device."""
    if isinstance(value, NDArray):
        return value
    return array_api.array(value, dtype=like.dtype, device=getattr(like, "device", None))
