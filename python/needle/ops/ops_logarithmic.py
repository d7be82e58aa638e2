"""Ops on logarithms of sums: the largest element is taken out first, so that no exponential
overflows.
"""

from typing import Any

from needle.autograd import Tensor, TensorOp
from needle.backend_ndarray import layout
from needle.backend_selection import array_api
from needle.ops.ops_mathematic import broadcast_to, exp, nonempty_axes, reshape, summation

__all__ = ["LogSoftmax", "LogSumExp", "logsoftmax", "logsumexp", "softmax"]


class LogSumExp(TensorOp):
    """log(sum(exp(a))) over `axes`, which are dropped."""

    def __init__(self, axes: Any = None) -> None:
        self.axes = axes

    def compute(self, a):
        largest = array_api.max(a, self.axes, True)
        total = array_api.sum(array_api.exp(a - largest), self.axes, True)
        result = array_api.log(total) + largest
        axes = layout.normalize_axes(self.axes, len(a.shape), "logsumexp")
        return array_api.reshape(result, layout.reduced_shape(a.shape, axes, keepdims=False))

    def gradient(self, out_grad, node):
        a = node.inputs[0]
        axes = layout.normalize_axes(self.axes, a.ndim, "logsumexp")
        kept = layout.reduced_shape(a.shape, axes, keepdims=True)
        softmax_of_a = exp(a - reshape(node, kept))
        return reshape(out_grad, kept) * softmax_of_a


def logsumexp(a: Tensor, axes: Any = None) -> Tensor:
    """Return log(sum(exp(a))) over `axes` (None for all, an int, or several), stable at any
    magnitude.
    """
    return LogSumExp(nonempty_axes(a, axes, "logsumexp"))(a)


class LogSoftmax(TensorOp):
    """a - log(sum(exp(a))) along `axis`."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def compute(self, a):
        shifted = a - array_api.max(a, self.axis, True)
        return shifted - array_api.log(array_api.sum(array_api.exp(shifted), self.axis, True))

    def gradient(self, out_grad, node):
        total = summation(out_grad, self.axis, keepdims=True)
        return out_grad - exp(node) * broadcast_to(total, node.shape)


def logsoftmax(a: Tensor, axis: int = -1) -> Tensor:
    """Return the logarithm of the softmax of `a` along `axis` (default: the last), stable at any
    magnitude.
    """
    nonempty_axes(a, axis, "logsoftmax")
    return LogSoftmax(axis)(a)


def softmax(a: Tensor, axis: int = -1) -> Tensor:
    """Return exp(a) / sum(exp(a)) along `axis` (default: the last): positive, summing to 1."""
    return exp(logsoftmax(a, axis))
