"""Embedding, LanguageModel and the epoch on text."""

import math

import numpy as np

from needle_course.testing import GradedTest, close, equal, fail, graded

PLAIN = "rnn", "lstm"


def random(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


@graded("hw4.language_model::embedding")
class Embedding:
    """Each id picks its row; a row that is picked twice gets both gradients."""

    def inputs(rng):
        return {
            "ids": np.array([[3, 0, 3], [1, 6, 0]], dtype=np.float32),
            "weight": random(rng, 7, 4),
            "out_grad": random(rng, 2, 3, 4),
        }

    def probe(ndl, inputs):
        embedding = ndl.nn.Embedding(7, 4)
        embedding.weight.data = ndl.Tensor(inputs["weight"], requires_grad=False)
        y = embedding(ndl.Tensor(inputs["ids"], requires_grad=False))
        y.backward(ndl.Tensor(inputs["out_grad"]))
        return {"value": y.numpy(), "grad": embedding.weight.grad.numpy()}

    def check(inputs, outputs):
        ids = inputs["ids"].astype(int)
        close("the vectors", outputs["value"], inputs["weight"][ids], rtol=1e-5)
        expected = np.zeros((7, 4))
        np.add.at(expected, ids, inputs["out_grad"])
        close("the gradient of the weight", outputs["grad"], expected, rtol=1e-5, atol=1e-5)


@graded("hw4.language_model::embedding_parameters")
class EmbeddingParameters:
    """The weight is drawn from N(0, 1)."""

    def inputs(rng):
        return {"seed": int(rng.integers(10_000))}

    def probe(ndl, inputs):
        np.random.seed(inputs["seed"])
        embedding = ndl.nn.Embedding(5, 3)
        return {"weight": embedding.weight.numpy(), "count": len(embedding.parameters())}

    def check(inputs, outputs):
        expected = np.random.RandomState(inputs["seed"]).randn(5, 3)
        close("the weight", outputs["weight"], expected, dtype="float32")
        equal("the number of parameters", outputs["count"], 1)


def uniform(numbers, bound, *shape):
    return numbers.rand(*shape) * 2 * bound - bound


@graded("hw4.language_model::rnn_forward")
class RnnForward:
    """From a seed, the logits are those of embedding, RNN and linear layer in numpy."""

    def inputs(rng):
        ids = rng.integers(0, 9, (2, 4, 3))
        return {"ids": ids.astype(np.float32), "seed": int(rng.integers(10_000))}

    def probe(ndl, inputs):
        import models

        np.random.seed(inputs["seed"])
        model = models.LanguageModel(5, 9, 6, num_layers=1, seq_model="rnn")
        first, h = model(ndl.Tensor(inputs["ids"][0], requires_grad=False))
        second, _ = model(ndl.Tensor(inputs["ids"][1], requires_grad=False), h)
        return {"first": first.numpy(), "h": h.numpy(), "second": second.numpy()}

    def check(inputs, outputs):
        numbers = np.random.RandomState(inputs["seed"])
        table = numbers.randn(9, 5)
        bound = 1 / math.sqrt(6)
        W_ih, W_hh = uniform(numbers, bound, 5, 6), uniform(numbers, bound, 6, 6)
        bias = uniform(numbers, bound, 6) + uniform(numbers, bound, 6)
        weight = uniform(numbers, math.sqrt(2) * math.sqrt(3 / 6), 6, 9)
        shift = uniform(numbers, math.sqrt(2) * math.sqrt(3 / 9), 9, 1).reshape(9)
        h = np.zeros((3, 6))
        for name, ids in zip(("first", "second"), inputs["ids"].astype(int), strict=True):
            rows = []
            for now in ids:
                h = np.tanh(table[now] @ W_ih + h @ W_hh + bias)
                rows.append(h @ weight + shift)
            logits = np.concatenate(rows)
            close(f"the {name} window's logits", outputs[name], logits, rtol=1e-3, atol=1e-4)
            if name == "first":
                close("the state", outputs["h"], h[np.newaxis], rtol=1e-3, atol=1e-4)


def gradients_test(kind):
    """Return the test of shapes and gradients of one kind of model with two layers."""

    def inputs(rng):
        return {
            "ids": rng.integers(0, 11, (4, 3)).astype(np.float32),
            "out_grad": random(rng, 12, 11),
        }

    def probe(ndl, inputs):
        import models

        model = models.LanguageModel(5, 11, 6, num_layers=2, seq_model=kind)
        logits, h = model(ndl.Tensor(inputs["ids"], requires_grad=False))
        logits.backward(ndl.Tensor(inputs["out_grad"]))
        states = h if isinstance(h, tuple) else (h,)
        return {
            "logits": logits.shape,
            "states": [state.shape for state in states],
            "shapes": [p.shape for p in model.parameters()],
            "grad_shapes": [None if p.grad is None else p.grad.shape for p in model.parameters()],
            "sizes": [float(np.abs(p.grad.numpy()).sum()) for p in model.parameters()],
        }

    def check(inputs, outputs):
        gates = {"rnn": 1, "lstm": 4}[kind]
        cells = [
            (rows, gates * 6) if rows else (gates * 6,)
            for rows in (5, 6, None, None, 6, 6, None, None)
        ]
        equal("the shape of the logits", outputs["logits"], (12, 11))
        equal("the shapes of the state", outputs["states"], [(2, 3, 6)] * len(outputs["states"]))
        equal("the number of states", len(outputs["states"]), {"rnn": 1, "lstm": 2}[kind])
        expected = [(11, 5), *cells, (6, 11), (1, 11)]
        equal("the shapes of the parameters", outputs["shapes"], expected)
        equal("the shapes of the gradients", outputs["grad_shapes"], expected)
        if min(outputs["sizes"]) == 0:
            fail(f"the gradient of parameter {np.argmin(outputs['sizes'])} is all zeros")

    doc = f"A {kind} of two layers: shapes, and a gradient for every parameter."
    return GradedTest(f"hw4.language_model::{kind}_gradients", inputs, probe, check, doc)


TESTS = [gradients_test(kind) for kind in PLAIN]


def spy(ndl, seen):
    """Return a model that notes what it is called with: logits are rows of a table, by id."""

    class Spy(ndl.nn.Module):
        def __init__(self):
            super().__init__()
            np.random.seed(0)
            self.table = ndl.nn.Embedding(6, 6)

        def forward(self, x, h=None):
            seen["windows"].append(x.numpy())
            seen["states"].append(None if h is None else h.numpy())
            seen["with_graph"].append(h is not None and not (h.is_leaf() and not h.requires_grad))
            rows = self.table(x)
            state = rows.sum() if h is None else rows.sum() + h
            return rows.reshape((x.shape[0] * x.shape[1], 6)), state

    return Spy()


def log_softmax(logits):
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


@graded("hw4.language_model::epoch_without_optimizer")
class EpochWithoutOptimizer:
    """All windows, the short last one too; the state is handed on; means are taken by word."""

    def inputs(rng):
        return {"data": rng.integers(0, 6, (8, 3)).astype(np.float32)}

    def probe(ndl, inputs):
        import simple_ml

        seen = {"windows": [], "states": [], "with_graph": []}
        model = spy(ndl, seen)
        accuracy, loss = simple_ml.epoch_general_ptb(
            inputs["data"], model, seq_len=3, device=ndl.cpu()
        )
        return {**seen, "accuracy": accuracy, "loss": loss, "training": model.training}

    def check(inputs, outputs):
        data = inputs["data"].astype(int)
        table = np.random.RandomState(0).randn(6, 6)
        windows = [data[0:3], data[3:6], data[6:7]]
        equal("the number of windows", len(outputs["windows"]), 3)
        for i, window in enumerate(windows):
            equal(f"window {i}", outputs["windows"][i], window)
        equal("the first state", outputs["states"][0], None)
        sums = np.cumsum([table[window].sum() for window in windows])
        for i in (1, 2):
            state = np.asarray(outputs["states"][i]).reshape(())
            close(f"the state of window {i}", state, sums[i - 1], rtol=1e-4, atol=1e-4)
        equal("which states carry a graph", outputs["with_graph"], [False] * 3)
        logits, targets = table[data[:-1].reshape(-1)], data[1:].reshape(-1)
        accuracy = np.mean(logits.argmax(axis=1) == targets)
        loss = -np.mean(log_softmax(logits)[np.arange(21), targets])
        close("the accuracy", outputs["accuracy"], accuracy, rtol=1e-5)
        close("the mean loss", outputs["loss"], loss, rtol=1e-4)
        equal("model.training", outputs["training"], False)


@graded("hw4.language_model::epoch_with_optimizer")
class EpochWithOptimizer:
    """One step of the optimizer for each window; `clip` bounds the norm of its gradient; the state
    goes on without its graph.
    """

    def inputs(rng):
        return {"data": rng.integers(0, 6, (7, 2)).astype(np.float32)}

    def probe(ndl, inputs):
        import simple_ml

        outputs = {}
        for name, clip in (("free", None), ("clipped", 0.05)):
            seen = {"windows": [], "states": [], "with_graph": []}
            model = spy(ndl, seen)
            model.eval()
            opt = ndl.optim.SGD(model.parameters(), lr=1.0)
            settings = {"opt": opt, "clip": clip, "device": ndl.cpu()}
            simple_ml.epoch_general_ptb(inputs["data"], model, 3, ndl.nn.SoftmaxLoss(), **settings)
            outputs[name] = model.table.weight.numpy()
        return {**outputs, "training": model.training, "with_graph": seen["with_graph"]}

    def check(inputs, outputs):
        data = inputs["data"].astype(int)
        for name, limit in (("free", math.inf), ("clipped", 0.05)):
            table = np.random.RandomState(0).randn(6, 6)
            for start in (0, 3):
                ids, targets = data[start : start + 3].reshape(-1), data[start + 1 : start + 4]
                probabilities = np.exp(log_softmax(table[ids]))
                probabilities[np.arange(6), targets.reshape(-1)] -= 1
                grad = np.zeros((6, 6))
                np.add.at(grad, ids, probabilities / 6)
                table -= grad * min(1, limit / np.linalg.norm(grad))
            close(f"the weight ({name})", outputs[name], table, rtol=1e-4, atol=1e-4)
        equal("which states carry a graph", outputs["with_graph"], [False, False])
        equal("model.training", outputs["training"], True)


def learning_test(kind, epochs, lr):
    """Return the test that one kind of model learns a short text by heart."""

    def inputs(rng):
        return {"seed": int(rng.integers(10_000))}

    def probe(ndl, inputs):
        import models
        import simple_ml

        text = [0, 1, 2, 0, 2, 1, 3] * 12  # what follows 0 and 2 depends on what came before
        data = ndl.data.batchify(text, 4, ndl.cpu(), "float32")
        np.random.seed(inputs["seed"])
        model = models.LanguageModel(8, 4, 16, num_layers=1, seq_model=kind)
        settings = {"optimizer": ndl.optim.Adam, "lr": lr, "device": ndl.cpu()}
        simple_ml.train_ptb(model, data, 7, n_epochs=epochs, **settings)
        accuracy, loss = simple_ml.evaluate_ptb(model, data, 7, device=ndl.cpu())
        return {"accuracy": accuracy, "loss": loss}

    def check(inputs, outputs):
        if not (outputs["loss"] < 0.35 and outputs["accuracy"] > 0.9):
            fail(
                f"after {epochs} epochs loss {outputs['loss']:.4g}, accuracy "
                f"{outputs['accuracy']:.4g}; below 0.35 and above 0.9 is what the text allows"
            )

    doc = f"A language model ({kind}) learns a text of 84 words by heart."
    return GradedTest(f"hw4.language_model::{kind}_learns", inputs, probe, check, doc, seconds=1.5)


TESTS += [learning_test("rnn", 15, 0.03), learning_test("lstm", 15, 0.05)]
