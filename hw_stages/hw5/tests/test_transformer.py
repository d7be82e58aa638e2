"""Transformer: positions, the order of axes, the state, and a small model that learns."""

import numpy as np
from transformer_in_numpy import drawn_layer, missing_parameters, random, transformer

from needle_course.testing import GradedTest, close, equal, fail, graded, gradient_of

WIDTH, HIDDEN, LAYERS, HEADS, DIM, LONGEST = 6, 8, 2, 2, 3, 7
BATCH, TIME = 3, 5


def draw(rng, *shape):
    return {"x": random(rng, *shape), "seed": int(rng.integers(10**6))}


def make(ndl, seed, layers=LAYERS, **settings):
    np.random.seed(seed)
    sizes = {"num_head": HEADS, "dim_head": DIM, "sequence_len": LONGEST}
    return ndl.nn.Transformer(WIDTH, HIDDEN, layers, **sizes, **settings)


def parameters(seed, layers=LAYERS):
    """Return the table of positions, and a dict for each layer."""
    draws = np.random.RandomState(seed)
    positions = draws.randn(LONGEST, WIDTH)
    return positions, [drawn_layer(draws, WIDTH, HEADS * DIM, HIDDEN) for _ in range(layers)]


def order_test(name, batch_first, causal):
    """Return the test of the output and the state in one order of axes."""
    shape = (BATCH, TIME, WIDTH) if batch_first else (TIME, BATCH, WIDTH)

    def probe(ndl, inputs):
        model = make(ndl, inputs["seed"], batch_first=batch_first, causal=causal)
        y, state = model(ndl.Tensor(inputs["x"]))
        return {"y": y.numpy(), "state": state.numpy()}

    def check(inputs, outputs):
        x = inputs["x"] if batch_first else inputs["x"].swapaxes(0, 1)
        expected = transformer(*parameters(inputs["seed"]), x, HEADS, causal)
        expected = expected if batch_first else expected.swapaxes(0, 1)
        close("the output", outputs["y"], expected, rtol=2e-3, atol=2e-4)
        close("the state", outputs["state"], np.zeros(shape))

    return GradedTest(
        f"hw5.transformer::{name}",
        lambda rng: draw(rng, *shape),
        probe,
        check,
        f"The output of a new model and the state, {name.replace('_', ' ')}.",
    )


ORDER_TESTS = [
    order_test("time_first", batch_first=False, causal=True),
    order_test("batch_first", batch_first=True, causal=True),
    order_test("not_causal", batch_first=False, causal=False),
]


@graded("hw5.transformer::creation")
class Creation:
    """The parameters under a seed: the table of positions first, then layer after layer."""

    def inputs(rng):
        return {"seed": int(rng.integers(10**6))}

    def probe(ndl, inputs):
        model = make(ndl, inputs["seed"])
        following = np.random.rand()
        return {"parameters": [p.numpy() for p in model.parameters()], "next": following}

    def check(inputs, outputs):
        positions, layers = parameters(inputs["seed"])
        expected = {"the table of positions": positions}
        for i, of in enumerate(layers):
            expected |= {f"layer {i}: {name}": value for name, value in of.items()}
        missing = missing_parameters(outputs["parameters"], expected)
        if missing:
            shapes = ", ".join(f"{name} {expected[name].shape}" for name in missing)
            fail("after np.random.seed some parameters have other numbers or shapes", shapes)
        equal("the number of parameters", len(outputs["parameters"]), len(expected))


@graded("hw5.transformer::gradients")
class Gradients:
    """The gradients of the input and of the table of positions for a random out_grad."""

    def inputs(rng):
        return draw(rng, 3, 2, WIDTH) | {"out_grad": random(rng, 3, 2, WIDTH)}

    def probe(ndl, inputs):
        model = make(ndl, inputs["seed"], layers=1)
        x = ndl.Tensor(inputs["x"])
        y, _ = model(x)
        y.backward(ndl.Tensor(inputs["out_grad"]))
        tables = [p for p in model.parameters() if p.shape == (LONGEST, WIDTH)]
        return {"x": x.grad.numpy(), "tables": [p.grad.numpy() for p in tables]}

    def check(inputs, outputs):
        table, layers = parameters(inputs["seed"], layers=1)

        def output(x, positions):
            return transformer(positions, layers, x.swapaxes(0, 1), HEADS).swapaxes(0, 1)

        of_x, of_table = gradient_of(output, [inputs["x"], table], inputs["out_grad"])
        close("gradient of x", outputs["x"], of_x, rtol=5e-3, atol=5e-4)
        equal("the number of tables of positions", len(outputs["tables"]), 1)
        close("gradient of the positions", outputs["tables"][0], of_table, rtol=5e-3, atol=5e-4)


@graded("hw5.transformer::dropout")
class DropoutInLayers:
    """The layers get the dropout; eval() switches it off."""

    def inputs(rng):
        return draw(rng, TIME, BATCH, WIDTH)

    def probe(ndl, inputs):
        model = make(ndl, inputs["seed"], dropout=0.2)
        np.random.seed(inputs["seed"] + 1)
        y = model(ndl.Tensor(inputs["x"]))[0].numpy()
        model.eval()
        return {"y": y, "eval": model(ndl.Tensor(inputs["x"]))[0].numpy()}

    def check(inputs, outputs):
        of = parameters(inputs["seed"])
        x = inputs["x"].swapaxes(0, 1)
        draws = np.random.RandomState(inputs["seed"] + 1)
        expected = transformer(*of, x, HEADS, p=0.2, draws=draws).swapaxes(0, 1)
        close("the output in training", outputs["y"], expected, rtol=2e-3, atol=2e-4)
        expected = transformer(*of, x, HEADS).swapaxes(0, 1)
        close("the output after eval()", outputs["eval"], expected, rtol=2e-3, atol=2e-4)


@graded("hw5.transformer::later_steps_change_nothing")
class LaterSteps:
    """An output depends on no later step; a state that is passed in changes nothing."""

    def inputs(rng):
        return draw(rng, TIME, BATCH, WIDTH)

    def probe(ndl, inputs):
        model = make(ndl, inputs["seed"])
        x = inputs["x"].copy()
        before, state = model(ndl.Tensor(x))
        x[3:, :, 1] += 3
        after, _ = model(ndl.Tensor(x), state)
        return {"before": before.numpy(), "after": after.numpy()}

    def check(inputs, outputs):
        before, after = outputs["before"], outputs["after"]
        close("the output of the first three steps", after[:3], before[:3], rtol=1e-4, atol=1e-5)
        changed = np.abs(after[3:] - before[3:]).max(axis=2) > 1e-3
        equal("later outputs change", changed, np.ones(changed.shape, dtype=bool))


@graded("hw5.transformer::learns_to_look_back")
class LearnsToLookBack:
    """A small model learns to repeat what came three steps before, which needs attention."""

    seconds = 3.0

    def inputs(rng):
        words = rng.integers(6, size=(3, 288))
        return {"text": np.tile(words, (4, 1))[:10], "seed": int(rng.integers(10**6))}

    def probe(ndl, inputs):
        np.random.seed(inputs["seed"])
        embedding = ndl.nn.Embedding(6, 16)
        model = ndl.nn.Transformer(16, 32, 1, num_head=2, dim_head=8, sequence_len=9)
        linear = ndl.nn.Linear(16, 6)
        parts = (embedding, model, linear)
        opt = ndl.optim.Adam([p for part in parts for p in part.parameters()], lr=0.02)

        def logits(text):
            y, _ = model(embedding(ndl.Tensor(text[:-1].astype("float32"))))
            return linear(y.reshape((y.shape[0] * y.shape[1], 16)))

        loss_fn = ndl.nn.SoftmaxLoss()
        train, test = inputs["text"][:, :256], inputs["text"][:, 256:]
        for step in range(60):
            part = train[:, step % 8 * 32 : step % 8 * 32 + 32]
            opt.reset_grad()
            targets = ndl.Tensor(part[1:].reshape(-1).astype("float32"))
            loss_fn(logits(part), targets).backward()
            opt.step()
        guesses = logits(test).numpy().argmax(axis=1).reshape(9, -1)
        return {"right": float((guesses == test[1:])[2:].mean())}

    def check(inputs, outputs):
        if outputs["right"] < 0.8:
            fail(f"it gets {outputs['right']:.0%} of the repeated words; 80% are to be reached")
