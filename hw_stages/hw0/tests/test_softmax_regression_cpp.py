"""hw0.softmax_regression_cpp: the epoch in C++, against the formula of its gradient."""

import numpy as np
from softmax_problem import expected_theta, problem

from needle_course.testing import close, graded


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
