"""Milestone of hw0: two models that learn digits in NumPy, and what they take your own digit for.

python milestones/hw0.py [MY_DIGIT.png]
"""

import sys

import basis
import digit
import digits
import numpy as np
import table

sys.path.insert(0, str(basis.ROOT / "src"))  # before apps/simple_ml.py, which later stages have

import simple_ml

CLASSES, HIDDEN = 10, 100


def softmax_regression(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the weights (pixels, 10) after ten epochs."""
    theta = np.zeros((X.shape[1], CLASSES), dtype=np.float32)
    for _ in range(10):
        simple_ml.softmax_regression_epoch(X, y, theta, lr=0.2, batch=100)
    return theta


def two_layers(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights (pixels, HIDDEN) and (HIDDEN, 10) after twenty epochs."""
    rng = np.random.default_rng(0)
    W1 = rng.standard_normal((X.shape[1], HIDDEN), dtype=np.float32) / HIDDEN**0.5
    W2 = rng.standard_normal((HIDDEN, CLASSES), dtype=np.float32) / CLASSES**0.5
    for _ in range(20):
        simple_ml.nn_epoch(X, y, W1, W2, lr=0.2, batch=100)
    return W1, W2


def main() -> None:
    """Train both, print their errors, and what they take a digit for."""
    path, mine = digit.own_digit(basis.SAMPLE)
    train, test = (simple_ml.parse_mnist(*digits.files(part)) for part in ("train", "t10k"))
    table.header()
    theta = softmax_regression(*train)
    table.line(
        "softmax regression", *(simple_ml.loss_err(X @ theta, y)[1] for X, y in (train, test))
    )
    W1, W2 = two_layers(*train)
    logits = [np.maximum(X @ W1, 0) @ W2 for X, _ in (train, test)]
    table.line(
        "a network of two layers",
        simple_ml.loss_err(logits[0], train[1])[1],
        simple_ml.loss_err(logits[1], test[1])[1],
    )

    print(f"\n{path.name}, as the models see it:\n{digit.as_text(mine)}")
    x = mine.reshape(1, -1)
    print(f"softmax regression: {digit.verdict(x @ theta)}")
    print(f"two layers:         {digit.verdict(np.maximum(x @ W1, 0) @ W2)}")


if __name__ == "__main__":
    main()
