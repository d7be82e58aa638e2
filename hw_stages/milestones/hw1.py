"""Milestone of hw1: a network of two layers learns digits by your own automatic differentiation.

python milestones/hw1.py [MY_DIGIT.png]
"""

import os

import basis
import digit
import digits
import numpy as np
import table

os.environ["NEEDLE_BACKEND"] = "np"

import needle as ndl
from simple_ml import loss_err, nn_epoch

CLASSES, HIDDEN, EPOCHS = 10, 100, 20


def main() -> None:
    """Train, print the errors now and then, and what the network takes a digit for."""
    path, mine = digit.own_digit(basis.SAMPLE)
    (X, y), test = (digits.load(part) for part in ("train", "t10k"))
    rng = np.random.default_rng(0)
    W1 = ndl.Tensor(rng.standard_normal((X.shape[1], HIDDEN), dtype="float32") / HIDDEN**0.5)
    W2 = ndl.Tensor(rng.standard_normal((HIDDEN, CLASSES), dtype="float32") / CLASSES**0.5)

    def logits(X: np.ndarray) -> ndl.Tensor:
        return ndl.relu(ndl.Tensor(X) @ W1) @ W2

    table.header()
    for epoch in range(1, EPOCHS + 1):
        W1, W2 = nn_epoch(X, y, W1, W2, lr=0.2, batch=100)
        if epoch % 5 == 0:
            errors = loss_err(logits(X), y)[1], loss_err(logits(test[0]), test[1])[1]
            table.line(f"two layers, epoch {epoch}", *errors)
    print(f"\n{path.name}: {digit.verdict(logits(mine.reshape(1, -1)).numpy())}")


if __name__ == "__main__":
    main()
