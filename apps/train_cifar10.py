"""Train a model on small photographs: python apps/train_cifar10.py --help lists the options."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import needle as ndl
from needle import nn

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "data")]  # imported by path too
from cut_pictures import BATCHES, picture_batches  # noqa: E402

import options  # noqa: E402
from models import ResNet9, SmallCNN  # noqa: E402
from training import Run, Score, evaluate, train_epoch  # noqa: E402

CHANNELS, SIDE, CLASSES = 3, 32, 10


def linear() -> nn.Module:
    """Return one linear layer: the baseline."""
    return nn.Sequential(nn.Flatten(), nn.Linear(CHANNELS * SIDE * SIDE, CLASSES))


def cnn() -> nn.Module:
    """Return a network with two convolutions."""
    return SmallCNN(CHANNELS, SIDE, CLASSES)


MODELS = {"resnet9": ResNet9, "cnn": cnn, "linear": linear}
SUITS = {
    "resnet9": options.Suits("adam", 0.002, decay=0.8),
    "cnn": options.Suits("adam", 0.002, decay=0.8),
    "linear": options.Suits("adam", 0.001, decay=0.8),
}


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options, with the defaults that depend on the model filled in."""
    parser = options.parser_for(
        "Train a model on small colour photographs.",
        "cifar10",
        list(MODELS),
        BATCHES,
        "batch files in CIFAR-10's format",
        epochs=15,
        batch=100,
    )
    return options.parse(parser, arguments, SUITS)


def train(args: argparse.Namespace) -> list[tuple[Score, Score]]:
    """Train as the options say, saving after every epoch; return (train, test) scores by epoch."""
    device = options.device_of(args)
    np.random.seed(args.seed)
    if args.data_dir == BATCHES:
        picture_batches()  # cut from the photographs when they are first asked for
    changes = [ndl.data.RandomFlipHorizontal(), ndl.data.RandomCrop()]
    train_set = ndl.data.CIFAR10Dataset(args.data_dir, train=True, transforms=changes)
    test_set = ndl.data.CIFAR10Dataset(args.data_dir, train=False)
    train_loader = ndl.data.DataLoader(train_set, args.batch_size, shuffle=True, device=device)
    test_loader = ndl.data.DataLoader(test_set, args.batch_size, device=device)
    model = MODELS[args.model]().to(device)
    opt = options.OPTIMIZERS[args.optimizer](model.parameters(), lr=args.lr)
    headline = (
        f"{args.model} on {device}: {len(train_set)} photographs to train on,"
        f" {len(test_set)} to test,"
        f" {options.settings(args)}"
    )
    return Run(args, headline, model, opt).go(
        lambda title, ctrl_c: train_epoch(model, train_loader, opt, title, ctrl_c),
        lambda: evaluate(model, test_loader),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; an error that the user can mend is one line."""
    with options.errors_in_one_line("train_cifar10"):
        train(parse_arguments(arguments))


if __name__ == "__main__":
    main()
