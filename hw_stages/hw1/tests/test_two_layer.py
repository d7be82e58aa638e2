"""hw1.two_layer: one epoch of SGD on relu(X W1) W2, against the formulas of both gradients."""

import numpy as np

from needle_course.testing import close, equal, graded


def problem(rng, rows):
    """Return X (rows, 6), labels y uint8 (rows,) of 4 classes, W1 (6, 5) and W2 (5, 4)."""
    return {
        "X": rng.standard_normal((rows, 6)),
        "y": rng.integers(0, 4, rows, dtype=np.uint8),
        "W1": rng.standard_normal((6, 5)) / 2,
        "W2": rng.standard_normal((5, 4)) / 2,
    }


def expected_weights(X, y, W1, W2, lr, batch):
    """Return (W1, W2) after one epoch, in float64."""
    X, W1, W2 = (array.astype(np.float64) for array in (X, W1, W2))
    for start in range(0, len(X), batch):
        rows = X[start : start + batch]
        hidden = np.maximum(rows @ W1, 0)
        odds = np.exp(hidden @ W2)
        G2 = odds / odds.sum(axis=1, keepdims=True)
        G2 = (G2 - np.eye(W2.shape[1])[y[start : start + batch]]) / len(rows)
        G1 = (hidden > 0) * (G2 @ W2.T)
        W1, W2 = W1 - lr * rows.T @ G1, W2 - lr * hidden.T @ G2
    return W1, W2


def trained(ndl, inputs, epochs=1, **options):
    """Train for some epochs; return the new weights."""
    import simple_ml

    W1, W2 = ndl.Tensor(inputs["W1"]), ndl.Tensor(inputs["W2"])
    for _ in range(epochs):
        W1, W2 = simple_ml.nn_epoch(inputs["X"], inputs["y"], W1, W2, **options)
    return {"W1": W1.numpy(), "W2": W2.numpy()}


@graded("hw1.two_layer::one_step")
class OneStep:
    """One batch: both weights go against their gradients."""

    def inputs(rng):
        return problem(rng, 10)

    def probe(ndl, inputs):
        return trained(ndl, inputs, lr=1.0, batch=10)

    def check(inputs, outputs):
        W1, W2 = expected_weights(**inputs, lr=1.0, batch=10)
        close("W2", outputs["W2"], W2)
        close("W1", outputs["W1"], W1)


@graded("hw1.two_layer::batches_in_order")
class BatchesInOrder:
    """Several batches in the order of the rows; a short last one is averaged over its own rows."""

    def inputs(rng):
        return problem(rng, 23)

    def probe(ndl, inputs):
        return trained(ndl, inputs, lr=0.5, batch=10)

    def check(inputs, outputs):
        W1, W2 = expected_weights(**inputs, lr=0.5, batch=10)
        close("W1", outputs["W1"], W1)
        close("W2", outputs["W2"], W2)


@graded("hw1.two_layer::defaults")
class Defaults:
    """lr is 0.1 and batch is 100 where none is given."""

    def inputs(rng):
        return problem(rng, 120)

    def probe(ndl, inputs):
        return trained(ndl, inputs)

    def check(inputs, outputs):
        W1, W2 = expected_weights(**inputs, lr=0.1, batch=100)
        close("W1", outputs["W1"], W1)
        close("W2", outputs["W2"], W2)


@graded("hw1.two_layer::missing_class")
class MissingClass:
    """A batch need not have every class: W2 says how many there are."""

    def inputs(rng):
        given = problem(rng, 8)
        return {**given, "y": (given["y"] % 2).astype(np.uint8)}

    def probe(ndl, inputs):
        return trained(ndl, inputs, lr=0.5, batch=4)

    def check(inputs, outputs):
        W1, W2 = expected_weights(**inputs, lr=0.5, batch=4)
        close("W1", outputs["W1"], W1)
        close("W2", outputs["W2"], W2)


@graded("hw1.two_layer::epochs")
class Epochs:
    """The weights that come back are Tensors that the next epoch trains on."""

    def inputs(rng):
        return problem(rng, 12)

    def probe(ndl, inputs):
        return trained(ndl, inputs, epochs=3, lr=0.2, batch=5)

    def check(inputs, outputs):
        W1, W2 = inputs["W1"], inputs["W2"]
        for _ in range(3):
            W1, W2 = expected_weights(inputs["X"], inputs["y"], W1, W2, lr=0.2, batch=5)
        close("W1", outputs["W1"], W1)
        close("W2", outputs["W2"], W2)


@graded("hw1.two_layer::digits")
class Digits:
    """Five epochs on 500 digits of data/digits: fewer than one in four is wrong."""

    seconds = 1.0

    def inputs(rng):
        return {"W1": rng.standard_normal((784, 30)) / 30**0.5, "W2": np.zeros((30, 10))}

    def probe(ndl, inputs):
        import simple_ml

        X, y = simple_ml.parse_mnist(
            "data/digits/train-images-idx3-ubyte.gz", "data/digits/train-labels-idx1-ubyte.gz"
        )
        X, y = X[:500], y[:500]
        W1, W2 = (ndl.Tensor(inputs[name].astype(np.float32)) for name in ("W1", "W2"))
        for _ in range(5):
            W1, W2 = simple_ml.nn_epoch(X, y, W1, W2, lr=0.2, batch=20)
        logits = np.maximum(X @ W1.numpy(), 0) @ W2.numpy()
        return {"good": bool(np.mean(logits.argmax(axis=1) != y) < 0.25), "rows": len(X)}

    def check(inputs, outputs):
        equal("the number of images", outputs["rows"], 500)
        equal("an error rate below 0.25", outputs["good"], True)
