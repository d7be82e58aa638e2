"""MultiHeadAttention: values, gradients, the causal mask, dropout on the probabilities."""

import numpy as np
from transformer_in_numpy import attention, random

from needle_course.testing import GradedTest, close, equal, graded, gradient_of

# name: (causal, heads, queries, keys, dim)
SIZES = {
    "every_key": (False, 2, 4, 4, 3),
    "more_keys_than_queries": (False, 3, 2, 5, 4),
    "more_queries_than_keys": (False, 1, 5, 2, 8),
    "one_query_one_key": (False, 2, 1, 1, 3),
    "causal": (True, 2, 5, 5, 3),
    "causal_one_step": (True, 1, 1, 1, 2),
    "causal_last_queries": (True, 2, 2, 6, 3),
}


def draw(rng, heads, queries, keys, dim, batch=2):
    shapes = [(batch, heads, time, dim) for time in (queries, keys, keys)]
    return dict(zip("qkv", (random(rng, *shape) for shape in shapes), strict=True))


def tensors(ndl, inputs):
    return [ndl.Tensor(inputs[name]) for name in "qkv"]


def value_test(name, causal, *sizes):
    """Return the test of the result and the probabilities at one size."""

    def probe(ndl, inputs):
        module = ndl.nn.MultiHeadAttention(causal=causal)
        result, probs = module(*tensors(ndl, inputs))
        return {"result": result.numpy(), "probs": probs.numpy()}

    def check(inputs, outputs):
        result, probs = attention(inputs["q"], inputs["k"], inputs["v"], causal)
        close("probs", outputs["probs"], probs, rtol=1e-4, atol=1e-6)
        close("the result", outputs["result"], result, rtol=1e-4, atol=1e-5)

    return GradedTest(
        f"hw5.attention::{name}",
        lambda rng: draw(rng, *sizes),
        probe,
        check,
        f"The result and the probabilities, {name.replace('_', ' ')}.",
    )


def gradient_test(causal):
    """Return the test of the gradients of q, k and v for a random out_grad."""

    def inputs(rng):
        drawn = draw(rng, 2, 3, 3, 2, batch=1)
        return drawn | {"out_grad": random(rng, 1, 2, 3, 2)}

    def probe(ndl, inputs):
        q, k, v = tensors(ndl, inputs)
        result, _ = ndl.nn.MultiHeadAttention(causal=causal)(q, k, v)
        result.backward(ndl.Tensor(inputs["out_grad"]))
        return {"q": q.grad.numpy(), "k": k.grad.numpy(), "v": v.grad.numpy()}

    def check(inputs, outputs):
        expected = gradient_of(
            lambda q, k, v: attention(q, k, v, causal)[0],
            [inputs[name] for name in "qkv"],
            inputs["out_grad"],
        )
        for name, gradient in zip("qkv", expected, strict=True):
            close(f"gradient of {name}", outputs[name], gradient, rtol=1e-3, atol=1e-5)

    name = "gradient_causal" if causal else "gradient"
    what = "with the causal mask" if causal else "with all keys"
    return GradedTest(
        f"hw5.attention::{name}", inputs, probe, check, f"The gradients of q, k and v, {what}."
    )


TESTS = [value_test(name, *sizes) for name, sizes in SIZES.items()]
TESTS += [gradient_test(causal=False), gradient_test(causal=True)]


@graded("hw5.attention::large_scores")
class LargeScores:
    """Scores of thousands: probabilities stay numbers, and so do gradients."""

    def inputs(rng):
        drawn = draw(rng, 1, 3, 4, 4)
        return {name: value * 100 for name, value in drawn.items()}

    def probe(ndl, inputs):
        q, k, v = tensors(ndl, inputs)
        result, probs = ndl.nn.MultiHeadAttention(causal=True)(q, k, v)
        result.backward()
        finite = [np.isfinite(x.grad.numpy()).all() for x in (q, k, v)]
        return {"probs": probs.numpy(), "finite": [bool(each) for each in finite]}

    def check(inputs, outputs):
        _, probs = attention(inputs["q"], inputs["k"], inputs["v"], causal=True)
        close("probs", outputs["probs"], probs, rtol=1e-2, atol=1e-3)
        equal("the gradients of q, k and v are finite", outputs["finite"], [True] * 3)


@graded("hw5.attention::later_keys_change_nothing")
class LaterKeys:
    """With causal, what comes after a query's time changes nothing in its result."""

    def inputs(rng):
        return draw(rng, 2, 5, 5, 3)

    def probe(ndl, inputs):
        module = ndl.nn.MultiHeadAttention(causal=True)
        q, k, v = (inputs[name].copy() for name in "qkv")
        before, _ = module(*(ndl.Tensor(x) for x in (q, k, v)))
        k[:, :, 3:], v[:, :, 3:] = 5, -7
        after, _ = module(*(ndl.Tensor(x) for x in (q, k, v)))
        return {"before": before.numpy(), "after": after.numpy()}

    def check(inputs, outputs):
        before, after = outputs["before"], outputs["after"]
        close("the first three results", after[:, :, :3], before[:, :, :3])
        changed = np.abs(after[:, :, 3:] - before[:, :, 3:]).max(axis=3) > 1e-3
        equal("later results change", changed, np.ones(changed.shape, dtype=bool))


@graded("hw5.attention::dropout")
class DropoutOnProbabilities:
    """Dropout falls on the probabilities: one draw of their shape; they are returned after it."""

    def inputs(rng):
        return draw(rng, 2, 4, 5, 3) | {"seed": int(rng.integers(10**6))}

    def probe(ndl, inputs):
        module = ndl.nn.MultiHeadAttention(dropout=0.4)
        np.random.seed(inputs["seed"])
        result, probs = module(*tensors(ndl, inputs))
        return {"result": result.numpy(), "probs": probs.numpy(), "next": np.random.rand()}

    def check(inputs, outputs):
        draws = np.random.RandomState(inputs["seed"])
        q, k, v = (inputs[name] for name in "qkv")
        result, probs = attention(q, k, v, p=0.4, draws=draws)
        close("the returned probs", outputs["probs"], probs, rtol=1e-4, atol=1e-6)
        close("the result", outputs["result"], result, rtol=1e-4, atol=1e-5)
        close("the next random number", outputs["next"], draws.rand())


@graded("hw5.attention::dropout_gradient")
class DropoutGradient:
    """Gradients flow through the dropped probabilities too."""

    def inputs(rng):
        drawn = draw(rng, 1, 3, 3, 2, batch=1)
        return drawn | {"out_grad": random(rng, 1, 1, 3, 2), "seed": int(rng.integers(10**6))}

    def probe(ndl, inputs):
        q, k, v = tensors(ndl, inputs)
        module = ndl.nn.MultiHeadAttention(dropout=0.3, causal=True)
        np.random.seed(inputs["seed"])
        module(q, k, v)[0].backward(ndl.Tensor(inputs["out_grad"]))
        return {"q": q.grad.numpy(), "k": k.grad.numpy(), "v": v.grad.numpy()}

    def check(inputs, outputs):
        def result(q, k, v):
            draws = np.random.RandomState(inputs["seed"])
            return attention(q, k, v, causal=True, p=0.3, draws=draws)[0]

        arrays = [inputs[name] for name in "qkv"]
        for name, gradient in zip(
            "qkv", gradient_of(result, arrays, inputs["out_grad"]), strict=True
        ):
            close(f"gradient of {name}", outputs[name], gradient, rtol=1e-3, atol=1e-5)


@graded("hw5.attention::eval_ignores_dropout")
class EvalIgnoresDropout:
    """After eval() nothing is dropped and no random number is drawn."""

    def inputs(rng):
        return draw(rng, 2, 3, 3, 3) | {"seed": int(rng.integers(10**6))}

    def probe(ndl, inputs):
        module = ndl.nn.MultiHeadAttention(dropout=0.5)
        module.eval()
        np.random.seed(inputs["seed"])
        result, probs = module(*tensors(ndl, inputs))
        return {"result": result.numpy(), "probs": probs.numpy(), "next": np.random.rand()}

    def check(inputs, outputs):
        result, probs = attention(inputs["q"], inputs["k"], inputs["v"])
        close("probs", outputs["probs"], probs, rtol=1e-4, atol=1e-6)
        close("the result", outputs["result"], result, rtol=1e-4, atol=1e-5)
        first = np.random.RandomState(inputs["seed"]).rand()
        close("the next random number", outputs["next"], first)
