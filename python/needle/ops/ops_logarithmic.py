"""Ops on logarithms of sums: the largest element is taken out first, so that no exponential
overflows.
"""

from typing import Any

from needle.autograd import Tensor, TensorOp
from needle.backend_selection import array_api
from needle.ops.ops_mathematic import broadcast_to, exp, nonempty_axes, reshape, summation

__all__ = ["LogSoftmax", "LogSumExp", "logsoftmax", "logsumexp", "softmax"]


class LogSumExp(TensorOp):
    """log(sum(exp(a))) over `axes`, which are dropped."""

    def __init__(self, axes: Any = None) -> None:
        self.axes = (axes,) if isinstance(axes, int) else axes

    def compute(self, a):
        ### BEGIN SOLUTION hw2.log_sum_exp.compute
        largest = array_api.max(a, self.axes, True)
        total = array_api.sum(array_api.exp(a - largest), self.axes)
        return array_api.log(total) + array_api.reshape(largest, total.shape)
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw2.log_sum_exp.gradient
        a = node.inputs[0]
        kept = list(a.shape)
        for axis in range(len(kept)) if self.axes is None else self.axes:
            kept[axis] = 1
        softmax_of_a = exp(a - broadcast_to(reshape(node, kept), a.shape))
        return broadcast_to(reshape(out_grad, kept), a.shape) * softmax_of_a
        ### END SOLUTION


def logsumexp(a: Tensor, axes: Any = None) -> Tensor:
    """Return log(sum(exp(a))) over `axes` (None for all, an int, or several), stable at any
    magnitude.
    """
    ### SINCE full
    axes = nonempty_axes(a, axes, "logsumexp")
    ### END SINCE
    return LogSumExp(axes)(a)


class LogSoftmax(TensorOp):
    """a - log(sum(exp(a))) along `axis`."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def compute(self, a):
        ### BEGIN SOLUTION hw2.log_softmax.compute
        shifted = a - array_api.max(a, self.axis, True)
        return shifted - array_api.log(array_api.sum(array_api.exp(shifted), self.axis, True))
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw2.log_softmax.gradient
        total = summation(out_grad, self.axis, keepdims=True)
        return out_grad - exp(node) * broadcast_to(total, node.shape)
        ### END SOLUTION


def logsoftmax(a: Tensor, axis: int = -1) -> Tensor:
    """Return the logarithm of the softmax of `a` along `axis` (default: the last), stable at any
    magnitude.
    """
    ### SINCE full
    nonempty_axes(a, axis, "logsoftmax")
    ### END SINCE
    return LogSoftmax(axis)(a)


### SINCE full
def softmax(a: Tensor, axis: int = -1) -> Tensor:
    """Return exp(a) / sum(exp(a)) along `axis` (default: the last): positive, summing to 1."""
    return exp(logsoftmax(a, axis))


### END SINCE
