"""hw0.two_layer: one epoch of SGD for relu(X W1) W2, against the formulas of both gradients."""

import numpy as np

from needle_course.testing import close, equal, graded


def problem(rng, rows, dtype=np.float32):
    """Return X float32 (rows, 6), y uint8 (rows,) of 4 classes, W1 (6, 5) and W2 (5, 4)."""
    X = rng.standard_normal((rows, 6)).astype(np.float32)
    W1, W2 = rng.standard_normal((6, 5)), rng.standard_normal((5, 4))
    y = rng.integers(0, 4, rows, dtype=np.uint8)
    return {"X": X, "y": y, "W1": W1.astype(dtype), "W2": W2.astype(dtype)}


def expected_weights(X, y, W1, W2, lr, batch):
    """Return (W1, W2) after one epoch, in float64."""
    W1, W2 = W1.astype(np.float64), W2.astype(np.float64)
    for start in range(0, len(X), batch):
        rows = X[start : start + batch].astype(np.float64)
        hidden = np.maximum(rows @ W1, 0)
        odds = np.exp(hidden @ W2)
        G2 = odds / odds.sum(axis=1, keepdims=True)
        G2 -= np.eye(W2.shape[1])[y[start : start + batch]]
        G1 = (hidden > 0) * (G2 @ W2.T)
        step = lr / len(rows)
        W1, W2 = W1 - step * rows.T @ G1, W2 - step * hidden.T @ G2
    return W1, W2


def stepped(simple_ml, inputs, **options):
    """Run the epoch on copies; return what came of it."""
    X, y, W1, W2 = (inputs[name].copy() for name in ("X", "y", "W1", "W2"))
    result = simple_ml.nn_epoch(X, y, W1, W2, **options)
    return {"W1": W1, "W2": W2, "returned": repr(result), "X": X}


@graded("hw0.two_layer::one_step")
class OneStep:
    """One batch: both weights go against their gradients, which both use the old weights."""

    def inputs(rng):
        return problem(rng, 10)

    def probe(simple_ml, inputs):
        return stepped(simple_ml, inputs, lr=1.0, batch=10)

    def check(inputs, outputs):
        W1, W2 = expected_weights(**inputs, lr=1.0, batch=10)
        close("W2", outputs["W2"], W2, 1e-4, 1e-5)
        close("W1", outputs["W1"], W1, 1e-4, 1e-5)


@graded("hw0.two_layer::batches_in_order")
class BatchesInOrder:
    """Several batches in the order of the rows, the last one short."""

    def inputs(rng):
        return problem(rng, 23)

    def probe(simple_ml, inputs):
        return stepped(simple_ml, inputs, lr=0.2, batch=10)

    def check(inputs, outputs):
        W1, W2 = expected_weights(**inputs, lr=0.2, batch=10)
        close("W1", outputs["W1"], W1, 1e-3, 1e-4)
        close("W2", outputs["W2"], W2, 1e-3, 1e-4)


@graded("hw0.two_layer::in_place")
class InPlace:
    """The arrays W1 and W2 themselves change, keep their dtype, and nothing is returned."""

    def inputs(rng):
        return problem(rng, 8)

    def probe(simple_ml, inputs):
        return stepped(simple_ml, inputs, lr=0.1, batch=4)

    def check(inputs, outputs):
        W1, W2 = expected_weights(**inputs, lr=0.1, batch=4)
        close("W1", outputs["W1"], W1, 1e-3, 1e-4, dtype="float32")
        close("W2", outputs["W2"], W2, 1e-3, 1e-4, dtype="float32")
        equal("what the epoch returns", outputs["returned"], "None")
        close("X afterwards", outputs["X"], inputs["X"], rtol=0, atol=0)


@graded("hw0.two_layer::float64_and_defaults")
class Float64AndDefaults:
    """float64 weights work too; lr is 0.1 and batch is 100 where none is given."""

    def inputs(rng):
        return problem(rng, 130, np.float64)

    def probe(simple_ml, inputs):
        return stepped(simple_ml, inputs)

    def check(inputs, outputs):
        W1, W2 = expected_weights(**inputs, lr=0.1, batch=100)
        close("W1", outputs["W1"], W1, 1e-4, 1e-6)
        close("W2", outputs["W2"], W2, 1e-4, 1e-6)
