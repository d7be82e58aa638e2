"""Models that several programs train: networks of convolutions, and a language model.

mlp_resnet.py holds the residual perceptron.
"""

from typing import Any

import needle as ndl
from needle import nn

__all__ = ["LanguageModel", "ResNet9", "SmallCNN", "detached"]


class ResNet9(nn.Module):
    """A residual network for images (B, 3, 32, 32), to logits (B, 10) (He et al. 2016)."""

    def __init__(self, device: Any = None, dtype: Any = "float32") -> None:
        super().__init__()

        def block(channels_in: int, channels_out: int, size: int, stride: int) -> nn.Module:
            return nn.Sequential(
                nn.Conv(channels_in, channels_out, size, stride, device=device, dtype=dtype),
                nn.BatchNorm2d(channels_out, device=device, dtype=dtype),
                nn.ReLU(),
            )

        def residual(channels: int) -> nn.Module:
            return nn.Residual(
                nn.Sequential(block(channels, channels, 3, 1), block(channels, channels, 3, 1))
            )

        self.layers = nn.Sequential(
            block(3, 16, 7, 4),  # (B, 16, 8, 8)
            block(16, 32, 3, 2),  # (B, 32, 4, 4)
            residual(32),
            block(32, 64, 3, 2),  # (B, 64, 2, 2)
            block(64, 128, 3, 2),  # (B, 128, 1, 1)
            residual(128),
            nn.Flatten(),
            nn.Linear(128, 128, device=device, dtype=dtype),
            nn.ReLU(),
            nn.Linear(128, 10, device=device, dtype=dtype),
        )

    def forward(self, x: ndl.Tensor) -> ndl.Tensor:
        """Map images (B, 3, 32, 32) to logits (B, 10)."""
        return self.layers(x)


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


class LanguageModel(nn.Module):
    """Predict each next word: an embedding, a sequence model, and a linear layer to the words.

    `seq_model` is "rnn", "lstm", "gru" or "transformer". A transformer works at the width of the
    embedding, `hidden_size` is that of its inner layers, and it reads `seq_len` words at most.
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
        recurrent = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
        if seq_model not in (*recurrent, "transformer"):
            raise ndl.NeedleError(
                f"[LanguageModel] seq_model is {seq_model!r};"
                f" it is one of {', '.join(recurrent)}, transformer"
            )
        kind: dict[str, Any] = {"device": device, "dtype": dtype}
        sizes = (embedding_size, hidden_size, num_layers)
        self.embedding = nn.Embedding(output_size, embedding_size, **kind)
        if seq_model == "transformer":
            self.seq_model = nn.Transformer(*sizes, sequence_len=seq_len, **kind)
        else:
            self.seq_model = recurrent[seq_model](*sizes, **kind)
        width = embedding_size if seq_model == "transformer" else hidden_size
        self.linear = nn.Linear(width, output_size, **kind)

    def forward(self, x: ndl.Tensor, h: Any = None) -> tuple[ndl.Tensor, Any]:
        """Map word ids (T, B) and a hidden state (None to start) to logits (T * B, output_size) and
        the next hidden state.
        """
        output, h = self.seq_model(self.embedding(x), h)  # (T, B, width)
        steps, batch, width = output.shape
        return self.linear(output.reshape((steps * batch, width))), h


def detached(h: Any) -> Any:
    """Return a hidden state (a Tensor, or an LSTM's pair) without the graph that it came from."""
    return tuple(part.detach() for part in h) if isinstance(h, tuple) else h.detach()
