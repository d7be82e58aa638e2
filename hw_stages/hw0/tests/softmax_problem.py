"""What both tests of the softmax regression epoch share: random rows, and the right theta."""

import numpy as np


def problem(rng, rows, dtype=np.float32):
    """Return X float32 (rows, 6), y uint8 (rows,) of 4 classes and theta (6, 4)."""
    X = rng.standard_normal((rows, 6)).astype(np.float32)
    y = rng.integers(0, 4, rows, dtype=np.uint8)
    return {"X": X, "y": y, "theta": rng.standard_normal((6, 4)).astype(dtype)}


def expected_theta(X, y, theta, lr, batch):
    """Return theta after one epoch, in float64."""
    theta = theta.astype(np.float64)
    for start in range(0, len(X), batch):
        rows = X[start : start + batch].astype(np.float64)
        one_hot = np.eye(theta.shape[1])[y[start : start + batch]]
        odds = np.exp(rows @ theta)
        G = odds / odds.sum(axis=1, keepdims=True) - one_hot
        theta = theta - lr / len(rows) * rows.T @ G
    return theta
