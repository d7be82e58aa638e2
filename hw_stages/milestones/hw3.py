"""Milestone of hw3: softmax regression with its gradient written by hand, on your own arrays and
kernels. Your CPU kernels learn digits; your CUDA kernels do the same steps and must agree.

python milestones/hw3.py [MY_DIGIT.png]
"""

import os

import basis
import digit
import digits
import numpy as np
import table

os.environ["NEEDLE_BACKEND"] = "np"  # NDArray alone is used here; Tensors come to it in hw4

from needle import backend_ndarray as nd

CLASSES, LR, BATCH, EPOCHS = 10, 0.2, 100, 10
SHARED_STEPS = 10


def softmax(logits: nd.NDArray) -> nd.NDArray:
    """Return exp(logits) / sum(exp(logits)) of each row (rows, classes)."""
    largest = logits.max(axis=1, keepdims=True)
    weights = (logits - largest.broadcast_to(logits.shape)).exp()
    return weights / weights.sum(axis=1, keepdims=True).broadcast_to(logits.shape)


def train(X: nd.NDArray, targets: nd.NDArray, theta: nd.NDArray, steps: int) -> nd.NDArray:
    """Return theta (pixels, classes) after `steps` steps of SGD from its start.

    X is (rows, pixels), targets are one-hot (rows, classes).
    """
    for step in range(steps):
        start = step * BATCH % X.shape[0]
        part = slice(start, start + BATCH)
        x, wanted = X[part, :], targets[part, :]  # views: no digit is copied
        gradient = x.permute((1, 0)) @ (softmax(x @ theta) - wanted)
        theta = theta - gradient * (LR / x.shape[0])
    return theta


def error(X: nd.NDArray, theta: nd.NDArray, y: np.ndarray) -> float:
    """Return the share of digits that theta gets wrong."""
    return float(np.mean((X @ theta).numpy().argmax(axis=1) != y))


def main() -> None:
    """Train on the CPU, compare a few steps with CUDA, and say what a digit is taken for."""
    path, mine = digit.own_digit(basis.SAMPLE)
    (X, y), (X_test, y_test) = (digits.load(part) for part in ("train", "t10k"))
    targets = np.eye(CLASSES, dtype=np.float32)[y]
    start = np.zeros((X.shape[1], CLASSES), dtype=np.float32)

    cpu = nd.cpu()
    table.header()
    theta = nd.array(start, device=cpu)
    on_cpu = nd.array(X, device=cpu), nd.array(targets, device=cpu)
    steps = len(X) // BATCH * EPOCHS
    theta = train(*on_cpu, theta, steps)
    table.line(
        f"softmax regression on {cpu}",
        error(on_cpu[0], theta, y),
        error(nd.array(X_test, device=cpu), theta, y_test),
    )
    print(f"{path.name}: {digit.verdict((nd.array(mine.reshape(1, -1)) @ theta).numpy())}")

    cuda = nd.cuda() if nd.cuda().enabled() else nd.cuda_emulated()
    results = [
        train(
            nd.array(X[: BATCH * SHARED_STEPS], device=device),
            nd.array(targets[: BATCH * SHARED_STEPS], device=device),
            nd.array(start, device=device),
            SHARED_STEPS,
        ).numpy()
        for device in (cpu, cuda)
    ]
    distance = np.abs(results[0] - results[1]).max()
    print(f"\n{SHARED_STEPS} steps on {cpu} and on {cuda}: weights differ by {distance:.1e}")
    if distance > 1e-5:
        raise SystemExit("that is more than rounding: one of the two has a mistake")


if __name__ == "__main__":
    main()
