"""Layers for images in NCHW, as users of PyTorch hand them over; the ops below compute in NHWC.

A layer permutes its input to NHWC and its result back; both are views.
"""

import math
from typing import Any

from needle import init, ops
from needle.autograd import Tensor
from needle.errors import ShapeError
from needle.nn.nn_basic import BatchNorm1d, Module, Parameter
from needle.ops.ops_conv import Pair, pool_settings, window_settings

__all__ = [
    "TO_NCHW",
    "TO_NHWC",
    "AvgPool2d",
    "BatchNorm2d",
    "Conv",
    "MaxPool2d",
    "check_images",
]

TO_NHWC = (0, 2, 3, 1)
TO_NCHW = (0, 3, 1, 2)


class Conv(Module):
    """Convolution with weight (KH, KW, in_channels, out_channels) and bias (out_channels,).

    Sizes are an int or an (h, w) pair. Without `padding` it is kernel_size // 2, which keeps the
    image's size for an odd kernel and stride 1.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Pair,
        stride: int | Pair = 1,
        bias: bool = True,
        device: Any = None,
        dtype: Any = "float32",
        *,
        padding: int | Pair | None = None,
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size, self.stride, self.padding = window_settings(
            kernel_size, stride, 0 if padding is None else padding, "Conv"
        )
        kh, kw = self.kernel_size
        if padding is None:
            self.padding = (kh // 2, kw // 2)
        if min(in_channels, out_channels) < 1:
            raise ShapeError(
                f"[Conv] in_channels={in_channels}, out_channels={out_channels}; both begin at 1"
            )
        ### BEGIN SOLUTION hw4.conv_layer.init
        fan_in = in_channels * kh * kw
        self.weight = Parameter(
            init.kaiming_uniform(
                fan_in,
                out_channels * kh * kw,
                shape=(kh, kw, in_channels, out_channels),
                device=device,
                dtype=dtype,
            )
        )
        self.bias = None
        if bias:
            bound = 1 / math.sqrt(fan_in)
            self.bias = Parameter(
                init.rand(out_channels, low=-bound, high=bound, device=device, dtype=dtype)
            )
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        """Map (N, in_channels, H, W) to (N, out_channels, OH, OW).

        Raises:
            ShapeError: if `x` has another rank or number of channels, or is smaller than the
                kernel.
        """
        check_images("Conv", x, self.in_channels)
        ### BEGIN SOLUTION hw4.conv_layer.forward
        y = ops.conv(ops.permute(x, TO_NHWC), self.weight, self.stride, self.padding)
        if self.bias is not None:
            y = y + self.bias.broadcast_to(y.shape)
        return ops.permute(y, TO_NCHW)
        ### END SOLUTION

    ### SINCE full
    def extra_repr(self) -> str:
        """Return the sizes."""
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, padding={self.padding}, bias={self.bias is not None}"
        )

    ### END SINCE


class BatchNorm2d(BatchNorm1d):
    """BatchNorm1d of each channel over the batch and all pixels."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (N, dim, H, W) to the same shape: with the batch's statistics in training, else with
        the running ones.

        Raises:
            ShapeError: if `x` has another rank or number of channels, or no pixel.
        """
        check_images("BatchNorm2d", x, self.dim)
        n, c, h, w = x.shape
        if n * h * w == 0:
            raise ShapeError(f"[BatchNorm2d] input {x.shape} has no pixel to take statistics of")
        rows = ops.permute(x, TO_NHWC).reshape((n * h * w, c))
        return ops.permute(super().forward(rows).reshape((n, h, w, c)), TO_NCHW)


### SINCE full
class _Pool2d(Module):
    """What the pooling layers share: the sizes of the windows."""

    def __init__(
        self,
        kernel_size: int | Pair,
        stride: int | Pair | None = None,
        padding: int | Pair = 0,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = pool_settings(
            kernel_size, stride, padding, type(self).__name__
        )

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxPool2d(_Pool2d):
    """The maximum of every window; stride None is the kernel size."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (N, C, H, W) to (N, C, OH, OW)."""
        check_images("MaxPool2d", x)
        y = ops.max_pool(x.permute(TO_NHWC), self.kernel_size, self.stride, self.padding)
        return y.permute(TO_NCHW)


class AvgPool2d(_Pool2d):
    """The mean of every window, the zeros of the padding included; stride None is the kernel
    size.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Map (N, C, H, W) to (N, C, OH, OW)."""
        check_images("AvgPool2d", x)
        y = ops.avg_pool(x.permute(TO_NHWC), self.kernel_size, self.stride, self.padding)
        return y.permute(TO_NCHW)


### END SINCE
def check_images(name: str, x: Tensor, channels: int | None = None) -> None:
    """Raise ShapeError unless `x` is (N, channels, H, W), with any number of channels for None."""
    if x.ndim != 4 or channels not in (None, x.shape[1]):
        wanted = "channels" if channels is None else channels
        raise ShapeError(f"[{name}] input {x.shape} is not (batch, {wanted}, height, width)")
