"""hw0.softmax_regression: one epoch of SGD in NumPy, against the formula of its gradient."""

import numpy as np
from softmax_problem import expected_theta, problem

from needle_course.testing import close, equal, graded


def stepped(simple_ml, inputs, **options):
    """Run the epoch on a copy of theta; return what came of it."""
    X, y, theta = (inputs[name].copy() for name in ("X", "y", "theta"))
    result = simple_ml.softmax_regression_epoch(X, y, theta, **options)
    return {"theta": theta, "returned": repr(result), "X": X, "y": y}


@graded("hw0.softmax_regression::one_batch")
class OneBatch:
    """One batch: theta goes lr times against the gradient of the loss."""

    def inputs(rng):
        return problem(rng, 10)

    def probe(simple_ml, inputs):
        return stepped(simple_ml, inputs, lr=1.0, batch=10)

    def check(inputs, outputs):
        close("theta", outputs["theta"], expected_theta(**inputs, lr=1.0, batch=10), 1e-4, 1e-5)


@graded("hw0.softmax_regression::batches_in_order")
class BatchesInOrder:
    """Several batches in the order of the rows; a short last one is averaged over its own rows."""

    def inputs(rng):
        return problem(rng, 23)

    def probe(simple_ml, inputs):
        return stepped(simple_ml, inputs, lr=0.5, batch=10)

    def check(inputs, outputs):
        close("theta", outputs["theta"], expected_theta(**inputs, lr=0.5, batch=10), 1e-4, 1e-5)


@graded("hw0.softmax_regression::in_place")
class InPlace:
    """The array theta itself changes, keeps its dtype, and nothing is returned; X and y stay."""

    def inputs(rng):
        return problem(rng, 12)

    def probe(simple_ml, inputs):
        return stepped(simple_ml, inputs, lr=0.2, batch=4)

    def check(inputs, outputs):
        expected = expected_theta(**inputs, lr=0.2, batch=4)
        close("theta", outputs["theta"], expected, 1e-4, 1e-5, dtype="float32")
        equal("what the epoch returns", outputs["returned"], "None")
        close("X afterwards", outputs["X"], inputs["X"], rtol=0, atol=0)
        close("y afterwards", outputs["y"], inputs["y"], rtol=0, atol=0)


@graded("hw0.softmax_regression::float64_and_defaults")
class Float64AndDefaults:
    """A float64 theta works too; lr is 0.1 and batch is 100 where none is given."""

    def inputs(rng):
        return problem(rng, 130, np.float64)

    def probe(simple_ml, inputs):
        return stepped(simple_ml, inputs)

    def check(inputs, outputs):
        close("theta", outputs["theta"], expected_theta(**inputs, lr=0.1, batch=100), 1e-5, 1e-6)
