"""A residual multi-layer perceptron on MNIST: what the course's second stage ends with."""

import sys
from pathlib import Path

import numpy as np

import needle as ndl
from needle import nn


def ResidualBlock(  # noqa: N802 - the contract's name: it reads like a layer
    dim: int, hidden_dim: int, norm: type[nn.Module] = nn.BatchNorm1d, drop_prob: float = 0.1
) -> nn.Module:
    """Return relu(x + two linear layers of x), for x of shape (B, dim)."""
    ### BEGIN SOLUTION hw2.residual_block
    body = nn.Sequential(
        nn.Linear(dim, hidden_dim),
        norm(hidden_dim),
        nn.ReLU(),
        nn.Dropout(drop_prob),
        nn.Linear(hidden_dim, dim),
        norm(dim),
    )
    return nn.Sequential(nn.Residual(body), nn.ReLU())
    ### END SOLUTION


def MLPResNet(  # noqa: N802 - the contract's name: it reads like a layer
    dim: int,
    hidden_dim: int = 100,
    num_blocks: int = 3,
    num_classes: int = 10,
    norm: type[nn.Module] = nn.BatchNorm1d,
    drop_prob: float = 0.1,
) -> nn.Module:
    """Return a classifier of inputs (B, ...) with `dim` numbers each, giving logits (B,
    num_classes).
    """
    ### BEGIN SOLUTION hw2.mlp_resnet
    return nn.Sequential(  # made in the order of execution: so the random numbers are given out
        nn.Flatten(),
        nn.Linear(dim, hidden_dim),
        nn.ReLU(),
        *(ResidualBlock(hidden_dim, hidden_dim // 2, norm, drop_prob) for _ in range(num_blocks)),
        nn.Linear(hidden_dim, num_classes),
    )
    ### END SOLUTION


def epoch(
    dataloader: ndl.data.DataLoader, model: nn.Module, opt: ndl.optim.Optimizer | None = None
) -> tuple[float, float]:
    """Go through the data once, training if there is an optimizer; return (error rate, mean loss)
    by sample.
    """
    ### BEGIN SOLUTION hw2.epoch
    np.random.seed(4)
    model.train() if opt else model.eval()
    loss_fn = nn.SoftmaxLoss()
    errors, total_loss, samples = 0, 0.0, 0
    for x, y in dataloader:
        logits = model(x)
        loss = loss_fn(logits, y)
        if opt:
            opt.reset_grad()
            loss.backward()
            opt.step()
        errors += int((logits.numpy().argmax(axis=1) != y.numpy()).sum())
        total_loss += loss.item() * len(x)
        samples += len(x)
    return errors / samples, total_loss / samples
    ### END SOLUTION


def train_mnist(
    batch_size: int = 100,
    epochs: int = 10,
    optimizer: type[ndl.optim.Optimizer] = ndl.optim.Adam,
    lr: float = 0.001,
    weight_decay: float = 0.001,
    hidden_dim: int = 100,
    data_dir: str | Path = "data",
) -> tuple[float, float, float, float]:
    """Train MLPResNet; return the last epoch's (train error, train loss, test error, test loss)."""
    ### BEGIN SOLUTION hw2.train_mnist
    np.random.seed(4)
    loaders = {}
    for part in ("train", "t10k"):
        images = Path(data_dir) / f"{part}-images-idx3-ubyte.gz"
        labels = Path(data_dir) / f"{part}-labels-idx1-ubyte.gz"
        dataset = ndl.data.MNISTDataset(images, labels)
        loaders[part] = ndl.data.DataLoader(dataset, batch_size, shuffle=part == "train")
    model = MLPResNet(784, hidden_dim)
    opt = optimizer(model.parameters(), lr=lr, weight_decay=weight_decay)
    for _ in range(epochs):
        train_error, train_loss = epoch(loaders["train"], model, opt)
    test_error, test_loss = epoch(loaders["t10k"], model)
    return train_error, train_loss, test_error, test_loss
    ### END SOLUTION


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else "data/digits"
    train_error, train_loss, test_error, test_loss = train_mnist(data_dir=folder)
    print(
        f"train error {train_error:.4f}, loss {train_loss:.4f};"
        f" test error {test_error:.4f}, loss {test_loss:.4f}"
    )
