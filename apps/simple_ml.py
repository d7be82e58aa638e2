"""Training loops as the course asks for them, beginning with a two-layer network by hand.

Those of models seed numpy's generator and return (accuracy, mean loss), by sample.
"""

### UNTIL hw1
# import gzip
### END UNTIL
import sys
from pathlib import Path
from typing import Any

import numpy as np

import needle as ndl
from needle import nn
from needle.data import parse_mnist

### SINCE hw4
sys.path.append(str(Path(__file__).parent))  # imported by path too, as `apps.simple_ml`
from models import LanguageModel, ResNet9, detached  # noqa: E402

### END SINCE

__all__ = [
    "LanguageModel",
    "ResNet9",
    "epoch_general_cifar10",
    "epoch_general_ptb",
    "evaluate_cifar10",
    "evaluate_ptb",
    "loss_err",
    "nn_epoch",
    "parse_mnist",
    "softmax_loss",
    "train_cifar10",
    "train_ptb",
]

# --- a two-layer network by hand ---

### UNTIL hw1
# def parse_mnist(image_filename: Any, label_filename: Any) -> tuple[np.ndarray, np.ndarray]:
#     """Read gzipped IDX files: images float32 (n, rows * columns) in 0..1, labels uint8 (n,)."""
#     with gzip.open(label_filename) as labels, gzip.open(image_filename) as images:
#         y = np.frombuffer(labels.read(), np.uint8, offset=8).copy()
#         pixels = np.frombuffer(images.read(), np.uint8, offset=16)
#     return np.float32(pixels.reshape(len(y), -1)) / np.float32(255), y
#
#
### END UNTIL


def softmax_loss(Z: ndl.Tensor, y_one_hot: ndl.Tensor) -> ndl.Tensor:
    """Return the mean cross-entropy of logits `Z` (n, k) against one-hot labels (n, k); not
    stabilised.
    """
    ### BEGIN SOLUTION hw1.softmax_loss
    log_sum = ndl.log(ndl.summation(ndl.exp(Z), axes=(1,)))
    picked = ndl.summation(Z * y_one_hot, axes=(1,))
    # Row by row first: the difference of two large totals would lose float32 digits.
    return ndl.summation(log_sum - picked) / Z.shape[0]
    ### END SOLUTION


def nn_epoch(
    X: np.ndarray, y: np.ndarray, W1: ndl.Tensor, W2: ndl.Tensor, lr: float = 0.1, batch: int = 100
) -> tuple[ndl.Tensor, ndl.Tensor]:
    """Run one epoch of SGD, in order, on the network relu(X W1) W2; return the new (W1, W2).

    X is (m, n) and y (m,) integers below k; W1 is (n, d), W2 is (d, k).
    """
    ### BEGIN SOLUTION hw1.nn_epoch
    classes = W2.shape[1]
    device = W1.device
    for start in range(0, len(X), batch):
        rows = slice(start, start + batch)
        x = ndl.Tensor(X[rows], device=device, requires_grad=False)
        targets = np.eye(classes, dtype=W2.dtype)[y[rows]]
        one_hot = ndl.Tensor(targets, device=device, requires_grad=False)
        loss = softmax_loss(ndl.relu(x @ W1) @ W2, one_hot)
        loss.backward()
        W1 = ndl.Tensor(W1.numpy() - lr * W1.grad.numpy(), device=device)
        W2 = ndl.Tensor(W2.numpy() - lr * W2.grad.numpy(), device=device)
    return W1, W2
    ### END SOLUTION


def loss_err(h: ndl.Tensor, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the softmax loss of logits `h` (n, k) against labels `y` (n,), and the error rate."""
    one_hot = ndl.Tensor(np.eye(h.shape[1], dtype=h.dtype)[y], device=h.device, requires_grad=False)
    return softmax_loss(h, one_hot).numpy(), float(np.mean(h.numpy().argmax(axis=1) != y))


### SINCE hw4
# --- images ---


def epoch_general_cifar10(
    dataloader: ndl.data.DataLoader,
    model: nn.Module,
    loss_fn: nn.Module = nn.SoftmaxLoss(),  # noqa: B008 - it has no state
    opt: ndl.optim.Optimizer | None = None,
) -> tuple[float, float]:
    """Go through the data once, training if there is an optimizer; return (accuracy, mean loss)."""
    ### BEGIN SOLUTION hw4.epoch_general_cifar10
    np.random.seed(4)
    model.train() if opt else model.eval()
    correct, total_loss, samples = 0, 0.0, 0
    for x, y in dataloader:
        logits = model(x)
        loss = loss_fn(logits, y)
        if opt:
            opt.reset_grad()
            loss.backward()
            opt.step()
        correct += int((logits.numpy().argmax(axis=1) == y.numpy()).sum())
        total_loss += loss.item() * y.shape[0]
        samples += y.shape[0]
    return correct / samples, total_loss / samples
    ### END SOLUTION


def train_cifar10(
    model: nn.Module,
    dataloader: ndl.data.DataLoader,
    n_epochs: int = 1,
    optimizer: type[ndl.optim.Optimizer] = ndl.optim.Adam,
    lr: float = 0.001,
    weight_decay: float = 0.001,
    loss_fn: type[nn.Module] = nn.SoftmaxLoss,
) -> tuple[float, float]:
    """Train for `n_epochs`; return the last one's (accuracy, mean loss)."""
    np.random.seed(4)
    opt = optimizer(model.parameters(), lr=lr, weight_decay=weight_decay)
    for _ in range(n_epochs):
        result = epoch_general_cifar10(dataloader, model, loss_fn(), opt)
    return result


def evaluate_cifar10(
    model: nn.Module, dataloader: ndl.data.DataLoader, loss_fn: type[nn.Module] = nn.SoftmaxLoss
) -> tuple[float, float]:
    """Return (accuracy, mean loss) in evaluation mode."""
    np.random.seed(4)
    ### UNTIL hw5
    # return epoch_general_cifar10(dataloader, model, loss_fn())
    ### END UNTIL
    ### SINCE full
    with ndl.no_grad():
        return epoch_general_cifar10(dataloader, model, loss_fn())
    ### END SINCE


# --- text ---


def epoch_general_ptb(
    data: np.ndarray,
    model: nn.Module,
    seq_len: int = 40,
    loss_fn: nn.Module = nn.SoftmaxLoss(),  # noqa: B008 - it has no state
    opt: ndl.optim.Optimizer | None = None,
    clip: float | None = None,
    device: Any = None,
    dtype: Any = "float32",
) -> tuple[float, float]:
    """Go through `data` (rows, B) once in windows of `seq_len` rows, training if there is an
    optimizer, with gradients of norm `clip` at most; return (accuracy, mean loss).

    The hidden state goes on from window to window, without its graph: gradients end at a window's
    start (truncated backpropagation through time).
    """
    ### BEGIN SOLUTION hw4.epoch_general_ptb
    np.random.seed(4)
    model.train() if opt else model.eval()
    hidden = None
    correct, total_loss, words = 0, 0.0, 0
    for start in range(0, len(data) - 1, seq_len):
        x, y = ndl.data.get_batch(data, start, seq_len, device=device, dtype=dtype)
        logits, hidden = model(x, hidden)
        hidden = detached(hidden)
        loss = loss_fn(logits, y)
        if opt:
            opt.reset_grad()
            loss.backward()
            if clip is not None:
                opt.clip_grad_norm(clip)
            opt.step()
        correct += int((logits.numpy().argmax(axis=1) == y.numpy()).sum())
        total_loss += loss.item() * y.shape[0]
        words += y.shape[0]
    return correct / words, total_loss / words
    ### END SOLUTION


def train_ptb(
    model: nn.Module,
    data: np.ndarray,
    seq_len: int = 40,
    n_epochs: int = 1,
    optimizer: type[ndl.optim.Optimizer] = ndl.optim.SGD,
    lr: float = 4.0,
    weight_decay: float = 0.0,
    loss_fn: type[nn.Module] = nn.SoftmaxLoss,
    clip: float | None = None,
    device: Any = None,
    dtype: Any = "float32",
) -> tuple[float, float]:
    """Train for `n_epochs`; return the last one's (accuracy, mean loss)."""
    np.random.seed(4)
    opt = optimizer(model.parameters(), lr=lr, weight_decay=weight_decay)
    for _ in range(n_epochs):
        result = epoch_general_ptb(data, model, seq_len, loss_fn(), opt, clip, device, dtype)
    return result


def evaluate_ptb(
    model: nn.Module,
    data: np.ndarray,
    seq_len: int = 40,
    loss_fn: type[nn.Module] = nn.SoftmaxLoss,
    device: Any = None,
    dtype: Any = "float32",
) -> tuple[float, float]:
    """Return (accuracy, mean loss) in evaluation mode."""
    np.random.seed(4)
    ### UNTIL hw5
    # return epoch_general_ptb(data, model, seq_len, loss_fn(), device=device, dtype=dtype)
    ### END UNTIL
    ### SINCE full
    with ndl.no_grad():
        return epoch_general_ptb(data, model, seq_len, loss_fn(), device=device, dtype=dtype)
    ### END SINCE


### END SINCE
