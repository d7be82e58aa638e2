"""TransformerLayer: what it creates, in which order, and the two halves with their dropouts."""

import numpy as np
from transformer_in_numpy import drawn_layer, missing_parameters, random, transformer_layer

from needle_course.testing import GradedTest, close, equal, fail, graded, gradient_of

FEATURES, HEADS, DIM, HIDDEN = 6, 2, 4, 10


def draw(rng, batch=2, time=4, features=FEATURES):
    return {"x": random(rng, batch, time, features), "seed": int(rng.integers(10**6))}


def make(ndl, seed, features=FEATURES, heads=HEADS, dim=DIM, hidden=HIDDEN, **settings):
    np.random.seed(seed)
    return ndl.nn.TransformerLayer(features, heads, dim, hidden, **settings)


def parameters(seed, features=FEATURES, heads=HEADS, dim=DIM, hidden=HIDDEN):
    return drawn_layer(np.random.RandomState(seed), features, heads * dim, hidden)


def value_test(name, sizes, **settings):
    """Return the test of the output of a new layer without dropout."""

    def probe(ndl, inputs):
        layer = make(ndl, inputs["seed"], *sizes, **settings)
        return {"y": layer(ndl.Tensor(inputs["x"])).numpy()}

    def check(inputs, outputs):
        of = parameters(inputs["seed"], *sizes)
        expected = transformer_layer(of, inputs["x"], sizes[1], **settings)
        close("the output", outputs["y"], expected, rtol=1e-3, atol=1e-4)

    return GradedTest(
        f"hw5.transformer_layer::{name}",
        lambda rng: draw(rng, features=sizes[0]),
        probe,
        check,
        f"The output of a new layer, {name.replace('_', ' ')}.",
    )


VALUE_TESTS = [
    value_test("causal_by_default", (FEATURES, HEADS, DIM, HIDDEN)),
    value_test("not_causal", (FEATURES, HEADS, DIM, HIDDEN), causal=False),
    value_test("other_sizes", (8, 4, 2, 5), causal=True),
]


@graded("hw5.transformer_layer::creation")
class Creation:
    """The parameters under a seed: attention first, then the two Linears, weight before bias."""

    def inputs(rng):
        return {"seed": int(rng.integers(10**6))}

    def probe(ndl, inputs):
        layer = make(ndl, inputs["seed"])
        following = np.random.rand()
        return {"parameters": [p.numpy() for p in layer.parameters()], "next": following}

    def check(inputs, outputs):
        draws = np.random.RandomState(inputs["seed"])
        expected = drawn_layer(draws, FEATURES, HEADS * DIM, HIDDEN)
        missing = missing_parameters(outputs["parameters"], expected)
        if missing:
            shapes = ", ".join(f"{name} {expected[name].shape}" for name in missing)
            fail("after np.random.seed some parameters have other numbers or shapes", shapes)
        equal("the number of parameters", len(outputs["parameters"]), len(expected))
        close("the next random number", outputs["next"], draws.rand())


@graded("hw5.transformer_layer::gradient")
class Gradient:
    """The gradient of the input for a random out_grad; every parameter gets one."""

    def inputs(rng):
        return draw(rng, 1, 3) | {"out_grad": random(rng, 1, 3, FEATURES)}

    def probe(ndl, inputs):
        layer = make(ndl, inputs["seed"])
        x = ndl.Tensor(inputs["x"])
        layer(x).backward(ndl.Tensor(inputs["out_grad"]))
        used = [p.grad is not None and p.grad.shape == p.shape for p in layer.parameters()]
        return {"x": x.grad.numpy(), "used": sum(used)}

    def check(inputs, outputs):
        of = parameters(inputs["seed"])
        (expected,) = gradient_of(
            lambda x: transformer_layer(of, x, HEADS), [inputs["x"]], inputs["out_grad"]
        )
        close("gradient of x", outputs["x"], expected, rtol=5e-3, atol=5e-4)
        equal("the number of parameters with a gradient", outputs["used"], len(of))


@graded("hw5.transformer_layer::dropout")
class AllDropouts:
    """Dropout in training: on the probabilities, after attention, after ReLU, after the second
    Linear, drawn in this order.
    """

    def inputs(rng):
        return draw(rng)

    def probe(ndl, inputs):
        layer = make(ndl, inputs["seed"], dropout=0.3)
        np.random.seed(inputs["seed"] + 1)
        y = layer(ndl.Tensor(inputs["x"]))
        return {"y": y.numpy(), "next": np.random.rand()}

    def check(inputs, outputs):
        draws = np.random.RandomState(inputs["seed"] + 1)
        of = parameters(inputs["seed"])
        expected = transformer_layer(of, inputs["x"], HEADS, p=0.3, draws=draws)
        close("the output", outputs["y"], expected, rtol=1e-3, atol=1e-4)
        close("the next random number", outputs["next"], draws.rand())


@graded("hw5.transformer_layer::eval_ignores_dropout")
class EvalIgnoresDropout:
    """After eval() nothing is dropped and no random number is drawn."""

    def inputs(rng):
        return draw(rng)

    def probe(ndl, inputs):
        layer = make(ndl, inputs["seed"], dropout=0.5)
        layer.eval()
        np.random.seed(7)
        y = layer(ndl.Tensor(inputs["x"]))
        return {"y": y.numpy(), "next": np.random.rand()}

    def check(inputs, outputs):
        expected = transformer_layer(parameters(inputs["seed"]), inputs["x"], HEADS)
        close("the output", outputs["y"], expected, rtol=1e-3, atol=1e-4)
        close("the next random number", outputs["next"], np.random.RandomState(7).rand())
