"""hw1.softmax_loss: the mean over the rows, and its gradient."""

import numpy as np

from needle_course.testing import close, graded


def problem(rng, rows, classes, dtype=np.float64):
    """Return logits Z and one-hot rows, both (rows, classes)."""
    one_hot = np.eye(classes, dtype=dtype)[rng.integers(0, classes, rows)]
    return {"Z": rng.standard_normal((rows, classes)).astype(dtype), "one_hot": one_hot}


def expected_loss(Z, one_hot):
    """Return the loss in float64, row by row."""
    Z = np.asarray(Z, np.float64)
    return np.mean(np.log(np.exp(Z).sum(axis=1)) - (Z * one_hot).sum(axis=1))


def loss_of(ndl, inputs):
    """Return the logits as a Tensor and their loss."""
    import simple_ml

    Z = ndl.Tensor(inputs["Z"])
    return Z, simple_ml.softmax_loss(Z, ndl.Tensor(inputs["one_hot"], requires_grad=False))


@graded("hw1.softmax_loss::undecided")
class Undecided:
    """Logits that are all zero give log(k)."""

    def inputs(rng):
        return {**problem(rng, 6, 10), "Z": np.zeros((6, 10))}

    def probe(ndl, inputs):
        return {"loss": loss_of(ndl, inputs)[1].numpy()}

    def check(inputs, outputs):
        close("the loss", outputs["loss"], np.log(10))


@graded("hw1.softmax_loss::random_logits")
class RandomLogits:
    """The mean over the rows, a Tensor of shape ()."""

    def inputs(rng):
        return problem(rng, 12, 5)

    def probe(ndl, inputs):
        return {"loss": loss_of(ndl, inputs)[1].numpy()}

    def check(inputs, outputs):
        close("the loss", outputs["loss"], expected_loss(**inputs))


@graded("hw1.softmax_loss::gradient")
class Gradient:
    """Its gradient by Z is (softmax(Z) - one_hot) / n."""

    def inputs(rng):
        return problem(rng, 7, 4)

    def probe(ndl, inputs):
        Z, loss = loss_of(ndl, inputs)
        loss.backward()
        return {"grad": Z.grad.numpy()}

    def check(inputs, outputs):
        odds = np.exp(inputs["Z"])
        expected = (odds / odds.sum(axis=1, keepdims=True) - inputs["one_hot"]) / 7
        close("gradient of Z", outputs["grad"], expected, **inputs)


@graded("hw1.softmax_loss::float32")
class Float32:
    """Many rows of large float32 logits: the loss is float32 and right to a thousandth."""

    def inputs(rng):
        given = problem(rng, 3000, 10, np.float32)
        return {**given, "Z": (given["Z"] + 20).astype(np.float32)}

    def probe(ndl, inputs):
        return {"loss": loss_of(ndl, inputs)[1].numpy()}

    def check(inputs, outputs):
        expected = expected_loss(**inputs)
        close("the loss", outputs["loss"], expected, rtol=0, atol=1e-3, dtype="float32")
