"""hw0.softmax_regression_cpp: the epoch in C++, against the formula of its gradient."""

import numpy as np

from needle_course.testing import close, graded


def problem(rng, rows):
    """Return X float32 (rows, 6), y uint8 (rows,) of 4 classes and theta float32 (6, 4)."""
    X = rng.standard_normal((rows, 6)).astype(np.float32)
    y = rng.integers(0, 4, rows, dtype=np.uint8)
    return {"X": X, "y": y, "theta": rng.standard_normal((6, 4)).astype(np.float32)}


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


def stepped(simple_ml, inputs, lr, batch):
    """Run the C++ epoch on a copy of theta; return what it made of it."""
    theta = inputs["theta"].copy()
    simple_ml.softmax_regression_epoch_cpp(inputs["X"], inputs["y"], theta, lr=lr, batch=batch)
    return {"theta": theta}


@graded("hw0.softmax_regression_cpp::one_batch")
class OneBatch:
    """One batch: theta goes lr times against the gradient of the loss."""

    def inputs(rng):
        return problem(rng, 10)

    def probe(simple_ml, inputs):
        return stepped(simple_ml, inputs, lr=1.0, batch=10)

    def check(inputs, outputs):
        close("theta", outputs["theta"], expected_theta(**inputs, lr=1.0, batch=10), 1e-4, 1e-5)


@graded("hw0.softmax_regression_cpp::batches_in_order")
class BatchesInOrder:
    """Several batches in the order of the rows; a short last one is averaged over its own rows."""

    def inputs(rng):
        return problem(rng, 23)

    def probe(simple_ml, inputs):
        return stepped(simple_ml, inputs, lr=0.5, batch=10)

    def check(inputs, outputs):
        close("theta", outputs["theta"], expected_theta(**inputs, lr=0.5, batch=10), 1e-4, 1e-5)


@graded("hw0.softmax_regression_cpp::batch_beyond_the_rows")
class BatchBeyondTheRows:
    """A batch larger than the data is one short batch; no row, no step."""

    def inputs(rng):
        return problem(rng, 7)

    def probe(simple_ml, inputs):
        empty = {"X": inputs["X"][:0], "y": inputs["y"][:0], "theta": inputs["theta"]}
        return {
            "theta": stepped(simple_ml, inputs, lr=0.5, batch=100)["theta"],
            "untouched": stepped(simple_ml, empty, lr=0.5, batch=100)["theta"],
        }

    def check(inputs, outputs):
        close("theta", outputs["theta"], expected_theta(**inputs, lr=0.5, batch=100), 1e-4, 1e-5)
        close("theta after no rows", outputs["untouched"], inputs["theta"], rtol=0, atol=0)


@graded("hw0.softmax_regression_cpp::digits_in_size")
class DigitsInSize:
    """Rows as long as an image and ten classes, as many as the digits have."""

    def inputs(rng):
        X = rng.random((60, 784)).astype(np.float32)
        y = rng.integers(0, 10, 60, dtype=np.uint8)
        return {"X": X, "y": y, "theta": np.zeros((784, 10), np.float32)}

    def probe(simple_ml, inputs):
        return stepped(simple_ml, inputs, lr=0.1, batch=20)

    def check(inputs, outputs):
        close("theta", outputs["theta"], expected_theta(**inputs, lr=0.1, batch=20), 1e-3, 1e-5)
