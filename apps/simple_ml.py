"""Softmax loss and a two-layer network trained by hand, on Tensors: what the course's first stage
asks for.
"""

import numpy as np

import needle as ndl
from needle.data import parse_mnist

__all__ = ["loss_err", "nn_epoch", "parse_mnist", "softmax_loss"]


def softmax_loss(Z: ndl.Tensor, y_one_hot: ndl.Tensor) -> ndl.Tensor:
    """Return the mean cross-entropy of logits `Z` (n, k) against one-hot labels (n, k); not
    stabilised.
    """
    log_sum = ndl.log(ndl.summation(ndl.exp(Z), axes=(1,)))
    picked = ndl.summation(Z * y_one_hot, axes=(1,))
    # Row by row first: the difference of two large totals would lose float32 digits.
    return ndl.summation(log_sum - picked) / Z.shape[0]


def nn_epoch(
    X: np.ndarray, y: np.ndarray, W1: ndl.Tensor, W2: ndl.Tensor, lr: float = 0.1, batch: int = 100
) -> tuple[ndl.Tensor, ndl.Tensor]:
    """Run one epoch of SGD, in order, on the network relu(X W1) W2; return the new (W1, W2).

    X is (n, d) and y (n,) integers below k; W1 is (d, h), W2 is (h, k).
    """
    classes = W2.shape[1]
    device = W1.device
    for start in range(0, len(X), batch):
        rows = slice(start, start + batch)
        x = ndl.Tensor(X[rows], device=device, requires_grad=False)
        one_hot = ndl.Tensor(np.eye(classes)[y[rows]], device=device, requires_grad=False)
        loss = softmax_loss(ndl.relu(x @ W1) @ W2, one_hot)
        loss.backward()
        W1 = ndl.Tensor(W1.numpy() - lr * W1.grad.numpy(), device=device)
        W2 = ndl.Tensor(W2.numpy() - lr * W2.grad.numpy(), device=device)
    return W1, W2


def loss_err(h: ndl.Tensor, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the softmax loss of logits `h` (n, k) against labels `y` (n,), and the error rate."""
    one_hot = ndl.Tensor(np.eye(h.shape[1])[y], device=h.device, requires_grad=False)
    return softmax_loss(h, one_hot).numpy(), float(np.mean(h.numpy().argmax(axis=1) != y))
