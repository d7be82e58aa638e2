"""Layers as functions, for users of `torch.nn.functional`: what a layer does, its weights given.

Weights have the shapes that needle's layers hold: `F.linear(x, layer.weight, layer.bias)` is
`layer(x)`. What needs no weights is the layer itself, made on the spot.
"""

from typing import Any

from needle import init, ops
from needle.autograd import Tensor
from needle.nn.nn_basic import CrossEntropyLoss, Dropout, MSELoss
from needle.nn.nn_conv import TO_NCHW, TO_NHWC, AvgPool2d, MaxPool2d, check_images
from needle.nn.nn_transformer import MultiHeadAttention
from needle.ops import relu, sigmoid, tanh

__all__ = [
    "avg_pool2d",
    "conv2d",
    "cross_entropy",
    "dropout",
    "embedding",
    "layer_norm",
    "linear",
    "log_softmax",
    "max_pool2d",
    "mse_loss",
    "one_hot",
    "relu",
    "scaled_dot_product_attention",
    "sigmoid",
    "softmax",
    "tanh",
]


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """Return probabilities of x's shape that sum to 1 along `dim`: `nn.Softmax`."""
    return ops.softmax(x, dim)


def log_softmax(x: Tensor, dim: int = -1) -> Tensor:
    """Return the logarithm of `softmax`, stable at any magnitude."""
    return ops.logsoftmax(x, dim)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Map (..., in) by weight (in, out) and bias (out,) or (1, out) to (..., out): `nn.Linear`."""
    y = x @ weight
    return y if bias is None else y + bias.reshape(bias.shape[-1])


def conv2d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0
) -> Tensor:
    """Map images (N, C_in, H, W) by weight (KH, KW, C_in, C_out) to (N, C_out, OH, OW): `nn.Conv`.

    `ops.conv` is the same on (N, H, W, C).
    """
    check_images("conv2d", x)
    y = ops.conv(x.permute(TO_NHWC), weight, stride, padding)
    return (y if bias is None else y + bias).permute(TO_NCHW)


def max_pool2d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Tensor:
    """Return the maximum of every window of images (N, C, H, W): `nn.MaxPool2d`."""
    return MaxPool2d(kernel_size, stride, padding)(x)


def avg_pool2d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Tensor:
    """Return the mean of every window of images (N, C, H, W): `nn.AvgPool2d`."""
    return AvgPool2d(kernel_size, stride, padding)(x)


def embedding(ids: Any, weight: Tensor) -> Tensor:
    """Map ids of any shape (...) to their rows of weight (n, dim), (..., dim): `nn.Embedding`."""
    return ops.take(weight, ids)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Normalise the last axis, then scale and shift by weight and bias (dim,): `nn.LayerNorm`."""
    centred = x - x.mean(-1, keepdims=True)
    deviation = (x.var(-1, keepdims=True) + eps).sqrt()
    return centred / deviation * weight + bias


def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Zero each element with probability `p` and scale the rest: `nn.Dropout`."""
    layer = Dropout(p)
    layer.train(training)
    return layer(x)


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0, is_causal: bool = False
) -> Tensor:
    """Return softmax(q kᵀ / √D) v for q, k, v (B, H, T, D): `nn.MultiHeadAttention`."""
    attention = MultiHeadAttention(
        dropout=dropout_p, causal=is_causal, device=q.device, dtype=q.dtype
    )
    return attention(q, k, v)[0]


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Return the mean cross-entropy with labels or probabilities: `nn.CrossEntropyLoss`."""
    return CrossEntropyLoss()(logits, target)


def mse_loss(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the mean of (prediction - target)²: `nn.MSELoss`."""
    return MSELoss()(prediction, target)


def one_hot(labels: Tensor, num_classes: int) -> Tensor:
    """Map labels (...) in 0 .. num_classes - 1 to (..., num_classes): 1 at the label, else 0."""
    return init.one_hot(num_classes, labels, device=labels.device, dtype=labels.dtype)
