"""Stage hw0: softmax regression and a two-layer network in NumPy.

Relies on NumPy alone. The C++ twin of `softmax_regression_epoch` is in simple_ml_ext.cpp; `make` in
the folder above builds it. Run `python src/simple_ml.py DATA_DIR` there to train on the digits in
DATA_DIR.
"""

import gzip
import struct
import sys
from pathlib import Path

import numpy as np

try:
    from simple_ml_ext import softmax_regression_epoch_cpp
except ImportError:  # not built yet; only train_softmax(cpp=True) needs it
    softmax_regression_epoch_cpp = None


def add(x, y):
    """Return `x + y`, for numbers and for arrays."""
    ### BEGIN SOLUTION hw0.add
    return x + y
    ### END SOLUTION


def parse_mnist(image_filename, label_filename):
    """Read a pair of gzipped IDX files, images and labels.

    Returns `(X, y)`: X float32 (n, rows * columns), each byte divided by 255; y uint8 (n,).
    Raises ValueError for files that are not such a pair.
    """
    ### BEGIN SOLUTION hw0.parse_mnist
    with gzip.open(image_filename, "rb") as file:
        image_magic, count, rows, columns = struct.unpack(">4I", file.read(16))
        pixels = np.frombuffer(file.read(), dtype=np.uint8)
    with gzip.open(label_filename, "rb") as file:
        label_magic, label_count = struct.unpack(">2I", file.read(8))
        y = np.frombuffer(file.read(), dtype=np.uint8)
    check_idx(image_filename, image_magic, 2051, len(pixels), count * rows * columns)
    check_idx(label_filename, label_magic, 2049, len(y), label_count)
    if count != label_count:
        raise ValueError(f"[parse_mnist] {count} images but {label_count} labels")
    X = pixels.reshape(count, rows * columns).astype(np.float32) / 255
    return X, y.copy()  # frombuffer's array is read-only
    ### END SOLUTION


def check_idx(filename, magic, expected_magic, size, expected_size):
    """Raise ValueError if an IDX file has another magic number or length than it should."""
    if magic != expected_magic:
        raise ValueError(f"[parse_mnist] {filename}: magic number {magic}, not {expected_magic}")
    if size != expected_size:
        raise ValueError(f"[parse_mnist] {filename}: {size} bytes, its header says {expected_size}")


def softmax_loss(Z, y):
    """Return the softmax loss of logits Z (n, k) for labels y (n,).

    The mean over the rows of log(sum exp Z_i) - Z[i, y_i].
    """
    ### BEGIN SOLUTION hw0.softmax_loss
    return np.mean(np.log(np.exp(Z).sum(axis=1)) - Z[np.arange(len(y)), y])
    ### END SOLUTION


def softmax_gradient(Z, y):
    """Return softmax(Z) - onehot(y), (n, k): n times the gradient of `softmax_loss` by Z."""
    ### BEGIN SOLUTION hw0.softmax_gradient
    G = np.exp(Z)
    G /= G.sum(axis=1, keepdims=True)
    G[np.arange(len(y)), y] -= 1
    return G
    ### END SOLUTION


def softmax_regression_epoch(X, y, theta, lr=0.1, batch=100):
    """Run one epoch of SGD for softmax regression, in the order of the rows; change theta in place.

    X float32 (m, n), y uint8 (m,), theta (n, k). A short last batch is averaged over its own rows.
    """
    ### BEGIN SOLUTION hw0.softmax_regression_epoch
    for start in range(0, len(X), batch):
        X_batch, y_batch = X[start : start + batch], y[start : start + batch]
        G = softmax_gradient(X_batch @ theta, y_batch)  # (b, k)
        theta -= lr / len(X_batch) * (X_batch.T @ G)
    ### END SOLUTION


def nn_epoch(X, y, W1, W2, lr=0.1, batch=100):
    """Run one epoch of SGD for the network relu(X W1) W2; change both weights in place.

    X float32 (m, n), y uint8 (m,), W1 (n, d), W2 (d, k). Both gradients use the weights before the
    step.
    """
    ### BEGIN SOLUTION hw0.nn_epoch
    for start in range(0, len(X), batch):
        X_batch, y_batch = X[start : start + batch], y[start : start + batch]
        Z1 = np.maximum(X_batch @ W1, 0)  # (b, d)
        G2 = softmax_gradient(Z1 @ W2, y_batch)  # (b, k)
        G1 = (Z1 > 0) * (G2 @ W2.T)  # (b, d)
        W1 -= lr / len(X_batch) * (X_batch.T @ G1)
        W2 -= lr / len(X_batch) * (Z1.T @ G2)
    ### END SOLUTION


def loss_err(h, y):
    """Return the softmax loss of logits h (n, k) and the share of rows that they get wrong."""
    return softmax_loss(h, y), np.mean(h.argmax(axis=1) != y)


def train_softmax(X_tr, y_tr, X_te, y_te, epochs=10, lr=0.5, batch=100, cpp=False):
    """Train softmax regression from zero weights; print loss and error after each epoch."""
    if cpp and softmax_regression_epoch_cpp is None:
        raise RuntimeError("[train_softmax] simple_ml_ext is not built; run make")
    step = softmax_regression_epoch_cpp if cpp else softmax_regression_epoch
    theta = np.zeros((X_tr.shape[1], int(y_tr.max()) + 1), dtype=np.float32)
    print_header()
    for epoch in range(epochs):
        step(X_tr, y_tr, theta, lr=lr, batch=batch)
        print_row(epoch, loss_err(X_tr @ theta, y_tr), loss_err(X_te @ theta, y_te))


def train_nn(X_tr, y_tr, X_te, y_te, hidden_dim=500, epochs=10, lr=0.5, batch=100):
    """Train the two-layer network from random weights; print loss and error after each epoch."""
    classes = int(y_tr.max()) + 1
    np.random.seed(0)
    W1 = np.random.randn(X_tr.shape[1], hidden_dim).astype(np.float32) / hidden_dim**0.5
    W2 = np.random.randn(hidden_dim, classes).astype(np.float32) / classes**0.5
    print_header()
    for epoch in range(epochs):
        nn_epoch(X_tr, y_tr, W1, W2, lr=lr, batch=batch)
        train, test = (np.maximum(X @ W1, 0) @ W2 for X in (X_tr, X_te))
        print_row(epoch, loss_err(train, y_tr), loss_err(test, y_te))


def print_header():
    """Print the head of the table that the training loops fill."""
    print("| Epoch | Train Loss | Train Err | Test Loss | Test Err |")


def print_row(epoch, train, test):
    """Print one epoch's (loss, error) on the training and on the test set."""
    print("|  {:>4} |    {:.5f} |   {:.5f} |   {:.5f} |  {:.5f} |".format(epoch, *train, *test))


def main():
    """Train both models on the digits in the folder that the command line names, or in data/."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "data")
    sets = [
        array
        for name in ("train", "t10k")
        for array in parse_mnist(
            folder / f"{name}-images-idx3-ubyte.gz", folder / f"{name}-labels-idx1-ubyte.gz"
        )
    ]
    print("Training softmax regression")
    train_softmax(*sets, epochs=10, lr=0.2)
    print("\nTraining a two-layer network of 100 hidden units")
    train_nn(*sets, hidden_dim=100, epochs=20, lr=0.2)


if __name__ == "__main__":
    main()
