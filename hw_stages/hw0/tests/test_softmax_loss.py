"""hw0.softmax_loss: the mean over the rows of log(sum exp Z) - Z[i, y_i]."""

import numpy as np

from needle_course.testing import close, graded


def expected_loss(Z, y):
    """Return the softmax loss, in float64."""
    Z = np.asarray(Z, np.float64)
    return np.mean(
        [np.log(np.exp(row).sum()) - row[label] for row, label in zip(Z, y, strict=True)]
    )


@graded("hw0.softmax_loss::undecided")
class Undecided:
    """Logits that are all zero give log(k)."""

    def inputs(rng):
        return {"Z": np.zeros((8, 10)), "y": rng.integers(0, 10, 8, dtype=np.uint8)}

    def probe(simple_ml, inputs):
        return {"loss": simple_ml.softmax_loss(**inputs)}

    def check(inputs, outputs):
        close("the loss", outputs["loss"], np.log(10))


@graded("hw0.softmax_loss::random_logits")
class RandomLogits:
    """The mean over the rows for random logits and labels."""

    def inputs(rng):
        return {"Z": rng.standard_normal((50, 7)), "y": rng.integers(0, 7, 50, dtype=np.uint8)}

    def probe(simple_ml, inputs):
        return {"loss": simple_ml.softmax_loss(**inputs)}

    def check(inputs, outputs):
        close("the loss", outputs["loss"], expected_loss(**inputs))


@graded("hw0.softmax_loss::inputs_stay")
class InputsStay:
    """The logits and labels that were given do not change."""

    def inputs(rng):
        Z = rng.standard_normal((6, 4)).astype(np.float32)
        return {"Z": Z, "y": rng.integers(0, 4, 6, dtype=np.uint8)}

    def probe(simple_ml, inputs):
        Z, y = inputs["Z"].copy(), inputs["y"].copy()
        return {"loss": simple_ml.softmax_loss(Z, y), "Z": Z, "y": y}

    def check(inputs, outputs):
        close("the loss", outputs["loss"], expected_loss(**inputs), rtol=1e-4)
        close("Z afterwards", outputs["Z"], inputs["Z"], rtol=0, atol=0)
        close("y afterwards", outputs["y"], inputs["y"], rtol=0, atol=0)
