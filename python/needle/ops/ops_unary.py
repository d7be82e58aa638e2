"""More elementwise ops of one Tensor: roots, waves, squashing functions and limits.

Each class says its result on arrays and, right below, its gradient with Tensors.
"""

from needle.autograd import Tensor, TensorOp
from needle.backend_selection import array_api
from needle.errors import ShapeError
from needle.ops.ops_comparison import greater, greater_equal, less, less_equal
from needle.tensor_methods import python_number

__all__ = [
    "Abs",
    "Clip",
    "Cos",
    "Sigmoid",
    "Sin",
    "Sqrt",
    "Tanh",
    "abs",
    "clip",
    "cos",
    "sigmoid",
    "sin",
    "sqrt",
    "tanh",
]


### SINCE full
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


### END SINCE
### SINCE hw4
class Tanh(TensorOp):
    def compute(self, a):
        ### BEGIN SOLUTION hw4.tanh.compute
        return array_api.tanh(a)
        ### END SOLUTION

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw4.tanh.gradient
        return out_grad * (1 - node * node)  # d/dx tanh = 1 - tanh²
        ### END SOLUTION


def tanh(a: Tensor) -> Tensor:
    """Return the hyperbolic tangent."""
    return Tanh()(a)


class Sigmoid(TensorOp):
    def compute(self, a):
        ### UNTIL hw5
        ### BEGIN SOLUTION hw4.sigmoid.compute
        # return 1 / (1 + array_api.exp(-a))
        ### END SOLUTION
        ### END UNTIL
        ### SINCE full
        return array_api.sigmoid(a)
        ### END SINCE

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw4.sigmoid.gradient
        return out_grad * node * (1 - node)  # d/dx s = s (1 - s)
        ### END SOLUTION


def sigmoid(a: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-a))."""
    return Sigmoid()(a)


### END SINCE
### SINCE full
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


### END SINCE
