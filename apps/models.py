"""Models that several programs train: networks of convolutions, and a language model.

mlp_resnet.py holds the residual perceptron.
"""

from typing import Any

import needle as ndl
from needle import nn

__all__ = [
    "SEQUENCE_MODELS",
    "ConvBN",
    "LanguageModel",
    "ResNet9",
    "SmallCNN",
    "detached",
    "sequence_model",
]


class ConvBN(nn.Sequential):
    """A convolution, a batch norm of its channels, and ReLU."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int,
        device: Any = None,
        dtype: Any = "float32",
    ) -> None:
        ### BEGIN SOLUTION hw4.conv_bn.init
        super().__init__(
            nn.Conv(in_channels, out_channels, kernel_size, stride, device=device, dtype=dtype),
            nn.BatchNorm2d(out_channels, device=device, dtype=dtype),
            nn.ReLU(),
        )
        ### END SOLUTION


class ResNet9(nn.Module):
    """A residual network for images (B, 3, 32, 32), to logits (B, 10) (He et al. 2016)."""

    def __init__(self, device: Any = None, dtype: Any = "float32") -> None:
        super().__init__()
        ### BEGIN SOLUTION hw4.resnet9.init
        place: dict[str, Any] = {"device": device, "dtype": dtype}

        def residual(channels: int) -> nn.Module:
            blocks = (ConvBN(channels, channels, 3, 1, **place) for _ in range(2))
            return nn.Residual(nn.Sequential(*blocks))

        self.layers = nn.Sequential(
            ConvBN(3, 16, 7, 4, **place),  # (B, 16, 8, 8)
            ConvBN(16, 32, 3, 2, **place),  # (B, 32, 4, 4)
            residual(32),
            ConvBN(32, 64, 3, 2, **place),  # (B, 64, 2, 2)
            ConvBN(64, 128, 3, 2, **place),  # (B, 128, 1, 1)
            residual(128),
            nn.Flatten(),
            nn.Linear(128, 128, **place),
            nn.ReLU(),
            nn.Linear(128, 10, **place),
        )
        ### END SOLUTION

    def forward(self, x: ndl.Tensor) -> ndl.Tensor:
        """Map images (B, 3, 32, 32) to logits (B, 10)."""
        ### BEGIN SOLUTION hw4.resnet9.forward
        return self.layers(x)
        ### END SOLUTION


### SINCE full
class SmallCNN(nn.Module):
    """Two convolutions, each followed by a pooling that halves the side, and a linear layer."""

    def __init__(
        self,
        channels: int,
        side: int,
        classes: int,
        widths: tuple[int, int] = (16, 32),
        device: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        first, second = widths
        self.layers = nn.Sequential(
            nn.Conv(channels, first, 3, device=device, dtype=dtype),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv(first, second, 3, device=device, dtype=dtype),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(second * (side // 4) ** 2, classes, device=device, dtype=dtype),
        )

    def forward(self, x: ndl.Tensor) -> ndl.Tensor:
        """Map images (B, channels, side, side) to logits (B, classes)."""
        return self.layers(x)


### END SINCE
SEQUENCE_MODELS: dict[str, Any] = {
    "rnn": nn.RNN,
    "lstm": nn.LSTM,
    ### SINCE full
    "gru": nn.GRU,
    ### END SINCE
    ### SINCE hw5
    "transformer": nn.Transformer,
    ### END SINCE
}


def sequence_model(
    kind: str, embedding_size: int, hidden_size: int, num_layers: int, seq_len: int, **place: Any
) -> tuple[nn.Module, int]:
    """Return a sequence model that takes (seq, batch, embedding_size), and the width of its output.

    `kind` is a key of SEQUENCE_MODELS; `place` is device and dtype. A recurrent one has the width
    `hidden_size` and reads any length; `seq_len` is there for those that read no further.
    """
    if kind not in SEQUENCE_MODELS:
        raise ndl.NeedleError(
            f"[LanguageModel] seq_model is {kind!r}; it is one of {', '.join(SEQUENCE_MODELS)}"
        )
    sizes = (embedding_size, hidden_size, num_layers)
    ### SINCE hw5
    if kind == "transformer":  # as wide as the embedding; hidden_size is that of its inner layers
        return nn.Transformer(*sizes, sequence_len=seq_len, **place), embedding_size
    ### END SINCE
    return SEQUENCE_MODELS[kind](*sizes, **place), hidden_size


class LanguageModel(nn.Module):
    """Predict each next word: an embedding, a sequence model, and a linear layer to the words.

    `seq_model` is a key of SEQUENCE_MODELS; `sequence_model` says what the sizes mean to each.
    """

    def __init__(
        self,
        embedding_size: int,
        output_size: int,
        hidden_size: int,
        num_layers: int = 1,
        seq_model: str = "rnn",
        seq_len: int = 40,
        device: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        ### BEGIN SOLUTION hw4.language_model.init
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.embedding = nn.Embedding(output_size, embedding_size, **place)
        self.seq_model, width = sequence_model(
            seq_model, embedding_size, hidden_size, num_layers, seq_len, **place
        )
        self.linear = nn.Linear(width, output_size, **place)
        ### END SOLUTION

    def forward(self, x: ndl.Tensor, h: Any = None) -> tuple[ndl.Tensor, Any]:
        """Map word ids (T, B) and a hidden state (None to start) to logits (T * B, output_size) and
        the next hidden state.
        """
        ### BEGIN SOLUTION hw4.language_model.forward
        output, h = self.seq_model(self.embedding(x), h)  # (T, B, width)
        steps, batch, width = output.shape
        return self.linear(output.reshape((steps * batch, width))), h
        ### END SOLUTION


def detached(h: Any) -> Any:
    """Return a hidden state (a Tensor, or an LSTM's pair) without the graph that it came from."""
    return tuple(part.detach() for part in h) if isinstance(h, tuple) else h.detach()
