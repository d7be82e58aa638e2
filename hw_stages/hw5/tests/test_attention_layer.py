"""AttentionLayer: norms and projections around attention, heads side by side."""

import numpy as np
from transformer_in_numpy import attention_layer, random

from needle_course.testing import GradedTest, close, graded, gradient_of

# name: heads, dim_head, sizes of q, k, v and the output, queries, keys, causal
KINDS = {
    "causal": (2, 3, (6, 6, 6, 6), 5, 5, True),
    "not_causal": (2, 3, (6, 6, 6, 6), 5, 5, False),
    "one_head": (1, 4, (6, 6, 6, 6), 3, 3, True),
    "more_heads_than_features": (4, 2, (5, 5, 5, 5), 3, 3, False),
    "other_keys_and_values": (2, 4, (6, 5, 7, 9), 3, 5, False),
}


def draw(rng, heads, dim, sizes, queries, keys, batch=2):
    """Return random parameters by name, and inputs q, k and v."""
    of = {}
    for name, features in zip("qkv", sizes[:3], strict=True):
        of[f"prenorm_{name}.weight"] = random(rng, features) * 0.3 + 1
        of[f"prenorm_{name}.bias"] = random(rng, features) * 0.3
        of[f"{name}_projection.weight"] = random(rng, features, heads * dim) * 0.5
    of["out_projection.weight"] = random(rng, heads * dim, sizes[3]) * 0.5
    times = (queries, keys, keys)
    arrays = [random(rng, batch, t, n) for t, n in zip(times, sizes[:3], strict=True)]
    return {"of": of, **dict(zip("qkv", arrays, strict=True))}


def make(ndl, of, heads, dim, sizes, **settings):
    """Return a layer with the given parameters."""
    q, k, v, out = sizes
    layer = ndl.nn.AttentionLayer(
        q, heads, dim, k_features=k, v_features=v, out_features=out, **settings
    )
    for name, value in of.items():
        part, parameter = name.split(".")
        getattr(getattr(layer, part), parameter).data = ndl.Tensor(value, dtype="float32")
    return layer


def kind_test(name, heads, dim, sizes, queries, keys, causal):
    """Return the test of the output with one kind of layer."""

    def probe(ndl, inputs):
        layer = make(ndl, inputs["of"], heads, dim, sizes, causal=causal)
        y = layer(*(ndl.Tensor(inputs[x]) for x in "qkv"))
        return {"y": y.numpy()}

    def check(inputs, outputs):
        q, k, v = (inputs[x] for x in "qkv")
        expected = attention_layer(inputs["of"], q, k, v, heads, causal)
        close("the output", outputs["y"], expected, rtol=1e-3, atol=1e-4)

    return GradedTest(
        f"hw5.attention_layer::{name}",
        lambda rng: draw(rng, heads, dim, sizes, queries, keys),
        probe,
        check,
        f"The output, {name.replace('_', ' ')}.",
    )


KIND_TESTS = [kind_test(name, *kind) for name, kind in KINDS.items()]


@graded("hw5.attention_layer::missing_means_q")
class MissingMeansQ:
    """Without k and v both are q; without v alone, v is q. Causal unless told otherwise."""

    def inputs(rng):
        return draw(rng, 2, 3, (6, 6, 6, 6), 4, 4)

    def probe(ndl, inputs):
        layer = make(ndl, inputs["of"], 2, 3, (6, 6, 6, 6))
        q, k = ndl.Tensor(inputs["q"]), ndl.Tensor(inputs["k"])
        return {"one": layer(q).numpy(), "two": layer(q, k).numpy()}

    def check(inputs, outputs):
        of, q, k = inputs["of"], inputs["q"], inputs["k"]
        close("layer(q)", outputs["one"], attention_layer(of, q, q, q, 2), rtol=1e-3, atol=1e-4)
        close("layer(q, k)", outputs["two"], attention_layer(of, q, k, q, 2), rtol=1e-3, atol=1e-4)


@graded("hw5.attention_layer::gradients")
class Gradients:
    """The gradients of q, k, v and of every parameter for a random out_grad."""

    def inputs(rng):
        return draw(rng, 2, 2, (4, 4, 4, 3), 3, 3, batch=1) | {"out_grad": random(rng, 1, 3, 3)}

    def probe(ndl, inputs):
        layer = make(ndl, inputs["of"], 2, 2, (4, 4, 4, 3))
        arrays = [ndl.Tensor(inputs[x]) for x in "qkv"]
        layer(*arrays).backward(ndl.Tensor(inputs["out_grad"]))
        gradients = dict(zip("qkv", (x.grad.numpy() for x in arrays), strict=True))
        for name in inputs["of"]:
            part, parameter = name.split(".")
            gradients[name] = getattr(getattr(layer, part), parameter).grad.numpy()
        return gradients

    def check(inputs, outputs):
        names = list(inputs["of"])

        def output(q, k, v, *values):
            return attention_layer(dict(zip(names, values, strict=True)), q, k, v, 2)

        arrays = [inputs[x] for x in "qkv"] + list(inputs["of"].values())
        expected = gradient_of(output, arrays, inputs["out_grad"])
        for name, gradient in zip([*"qkv", *names], expected, strict=True):
            close(f"gradient of {name}", outputs[name], gradient, rtol=5e-3, atol=5e-4)


@graded("hw5.attention_layer::dropout")
class DropoutInside:
    """Dropout falls on the probabilities and nowhere else: one draw of (B, H, T, S)."""

    def inputs(rng):
        drawn = draw(rng, 2, 3, (6, 6, 6, 6), 4, 4)
        return drawn | {"seed": int(rng.integers(10**6))}

    def probe(ndl, inputs):
        layer = make(ndl, inputs["of"], 2, 3, (6, 6, 6, 6), dropout=0.3)
        np.random.seed(inputs["seed"])
        y = layer(ndl.Tensor(inputs["q"])).numpy()
        following = np.random.rand()
        layer.eval()
        return {"y": y, "next": following, "eval": layer(ndl.Tensor(inputs["q"])).numpy()}

    def check(inputs, outputs):
        of, q = inputs["of"], inputs["q"]
        draws = np.random.RandomState(inputs["seed"])
        expected = attention_layer(of, q, q, q, 2, p=0.3, draws=draws)
        close("the output in training", outputs["y"], expected, rtol=1e-3, atol=1e-4)
        close("the next random number", outputs["next"], draws.rand())
        expected = attention_layer(of, q, q, q, 2)
        close("the output after eval()", outputs["eval"], expected, rtol=1e-3, atol=1e-4)


@graded("hw5.attention_layer::later_steps_change_nothing")
class LaterSteps:
    """With causal, an output depends on no later input."""

    def inputs(rng):
        return draw(rng, 2, 3, (6, 6, 6, 6), 5, 5)

    def probe(ndl, inputs):
        layer = make(ndl, inputs["of"], 2, 3, (6, 6, 6, 6))
        x = inputs["q"].copy()
        before = layer(ndl.Tensor(x)).numpy()
        x[:, 3:, 0] += 3
        return {"before": before, "after": layer(ndl.Tensor(x)).numpy()}

    def check(inputs, outputs):
        before, after = outputs["before"][:, :3], outputs["after"][:, :3]
        close("the output of the first three steps", after, before, rtol=1e-4, atol=1e-5)
