"""Train a model on handwritten digits: python apps/train_mnist.py --help lists the options."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import needle as ndl
from needle import nn

sys.path.append(str(Path(__file__).parent))  # imported by path too, as `apps.train_mnist`
import options  # noqa: E402
from mlp_resnet import MLPResNet  # noqa: E402
from models import SmallCNN  # noqa: E402
from training import Run, Score, evaluate, train_epoch  # noqa: E402

DIGITS = options.ROOT / "data" / "digits"
SIDE, CLASSES = 28, 10
PIXELS = SIDE * SIDE


def softmax_regression() -> nn.Module:
    """Return one linear layer."""
    return nn.Sequential(nn.Flatten(), nn.Linear(PIXELS, CLASSES))


def mlp() -> nn.Module:
    """Return a network with one hidden layer of 100."""
    return nn.Sequential(nn.Flatten(), nn.Linear(PIXELS, 100), nn.ReLU(), nn.Linear(100, CLASSES))


def mlp_resnet() -> nn.Module:
    """Return a residual network with batch normalisation and dropout."""
    return MLPResNet(PIXELS)


def cnn() -> nn.Module:
    """Return a network with two convolutions."""
    return nn.Sequential(ChannelFirst(), SmallCNN(1, SIDE, CLASSES))


class ChannelFirst(nn.Module):
    """Turn grey images from NHWC into NCHW."""

    def forward(self, x: ndl.Tensor) -> ndl.Tensor:
        """Map (B, H, W, 1) to (B, 1, H, W)."""
        batch, height, width, channels = x.shape
        return x.reshape((batch, channels, height, width))  # one channel: the order is the same


MODELS = {"mlp": mlp, "softmax": softmax_regression, "resnet": mlp_resnet, "cnn": cnn}
SUITS = {
    "mlp": options.Suits("sgd", 0.5),
    "softmax": options.Suits("sgd", 0.2),
    "resnet": options.Suits("adam", 0.002),
    "cnn": options.Suits("adam", 0.002),
}


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options, with the defaults that depend on the model filled in."""
    parser = options.parser_for(
        "Train a model on handwritten digits.",
        "mnist",
        list(MODELS),
        DIGITS,
        "IDX files",
        epochs=10,
        batch=100,
    )
    return options.parse(parser, arguments, SUITS)


def load_digits(folder: Path, part: str) -> ndl.data.MNISTDataset:
    """Return the "train" or "t10k" part of a set of digits."""
    return ndl.data.MNISTDataset(
        folder / f"{part}-images-idx3-ubyte.gz", folder / f"{part}-labels-idx1-ubyte.gz"
    )


def train(args: argparse.Namespace) -> list[tuple[Score, Score]]:
    """Train as the options say, saving after every epoch; return (train, test) scores by epoch."""
    device = options.device_of(args)
    np.random.seed(args.seed)
    train_set, test_set = (load_digits(args.data_dir, part) for part in ("train", "t10k"))
    train_loader = ndl.data.DataLoader(train_set, args.batch_size, shuffle=True, device=device)
    test_loader = ndl.data.DataLoader(test_set, args.batch_size, device=device)
    model = MODELS[args.model]().to(device)
    opt = options.OPTIMIZERS[args.optimizer](model.parameters(), lr=args.lr)
    headline = (
        f"{args.model} on {device}: {len(train_set)} digits to train on, {len(test_set)} to test,"
        f" {options.settings(args)}"
    )
    return Run(args, headline, model, opt).go(
        lambda title, ctrl_c: train_epoch(model, train_loader, opt, title, ctrl_c),
        lambda: evaluate(model, test_loader),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; an error that the user can mend is one line."""
    with options.errors_in_one_line("train_mnist"):
        train(parse_arguments(arguments))


if __name__ == "__main__":
    main()
