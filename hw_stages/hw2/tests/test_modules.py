"""hw2.modules: shapes and random draws of parameters, outputs, gradients, modes, running state.

Layers are float32; expected values are worked out in float64, so the tolerance is that of float32.
"""

import gc

import numpy as np

from needle_course.testing import GradedTest, close, equal, fail, graded, gradient_of

RTOL, ATOL = 1e-3, 1e-4  # of a float32 gradient through a few ops
EPS = 1e-5


def float32(rng, *shape):
    """Return random float32 numbers."""
    return rng.standard_normal(shape).astype(np.float32)


def run_layer(ndl, layer, inputs, **parameters):
    """Return a layer's output and the gradients of x and of its parameters, which get values."""
    for name, values in parameters.items():
        getattr(layer, name).data = ndl.Tensor(values, dtype="float32")
    x = ndl.Tensor(inputs["x"])
    y = layer(x)
    y.backward(ndl.Tensor(inputs["out_grad"]))
    grads = {name: getattr(layer, name).grad.numpy() for name in parameters}
    return {"y": y.numpy(), "x": x.grad.numpy(), **grads}


def check_layer(function, names, inputs, outputs):
    """Compare what `run_layer` returns with a numpy function of x and the named parameters."""
    arrays = [inputs[name] for name in names]
    wide = [np.asarray(array, np.float64) for array in arrays]
    close("the output", outputs["y"], function(*wide), RTOL, ATOL, "float32")
    grads = gradient_of(function, arrays, inputs["out_grad"])
    for name, expected in zip(names, grads, strict=True):
        close(f"the gradient of {name}", outputs[name], expected, RTOL, ATOL)


# --- Linear ---


@graded("hw2.modules::linear_parameters")
class LinearParameters:
    """The weight is drawn first, then the bias as kaiming_uniform(out, 1) in shape (1, out)."""

    def inputs(rng):
        return {"seed": int(rng.integers(1000))}

    def probe(ndl, inputs):
        np.random.seed(inputs["seed"])
        layer = ndl.nn.Linear(5, 3)
        after = float(np.random.rand())
        kinds = [isinstance(p, ndl.nn.Parameter) for p in (layer.weight, layer.bias)]
        found = [id(p) for p in layer.parameters()] == [id(layer.weight), id(layer.bias)]
        weight, bias = layer.weight.numpy(), layer.bias.numpy()
        return {"weight": weight, "bias": bias, "after": after, "kinds": kinds, "found": found}

    def check(inputs, outputs):
        source = np.random.RandomState(inputs["seed"])
        weight = (2 * source.rand(5, 3) - 1) * np.sqrt(6 / 5)
        bias = (2 * source.rand(3, 1) - 1) * np.sqrt(6 / 3)
        close("weight", outputs["weight"], weight, dtype="float32")
        close("bias", outputs["bias"], bias.reshape(1, 3), dtype="float32")
        close("the next number of np.random", outputs["after"], source.rand(), rtol=1e-12)
        equal("whether weight and bias are Parameters", outputs["kinds"], [True, True])
        equal("whether parameters() is [weight, bias]", outputs["found"], True)


@graded("hw2.modules::linear_without_bias")
class LinearWithoutBias:
    """With bias=False there is no bias, and none is drawn."""

    def inputs(rng):
        return {"seed": int(rng.integers(1000)), "x": float32(rng, 2, 4)}

    def probe(ndl, inputs):
        np.random.seed(inputs["seed"])
        layer = ndl.nn.Linear(4, 3, bias=False)
        after = float(np.random.rand())
        y = layer(ndl.Tensor(inputs["x"])).numpy()
        weight = layer.weight.numpy()
        return {"weight": weight, "y": y, "none": layer.bias is None, "after": after}

    def check(inputs, outputs):
        equal("whether bias is None", outputs["none"], True)
        source = np.random.RandomState(inputs["seed"])
        source.rand(4, 3)
        close("the next number of np.random", outputs["after"], source.rand(), rtol=1e-12)
        close("the output", outputs["y"], inputs["x"] @ outputs["weight"], RTOL, ATOL)


def linear_test(name, shape, bias_shape):
    """Return the test of output and gradients for one shape of x."""

    def inputs(rng):
        return {
            "x": float32(rng, *shape),
            "weight": float32(rng, 4, 3),
            "bias": float32(rng, *bias_shape),
            "out_grad": float32(rng, *shape[:-1], 3),
        }

    def probe(ndl, inputs):
        layer = ndl.nn.Linear(4, 3)
        return run_layer(ndl, layer, inputs, weight=inputs["weight"], bias=inputs["bias"])

    def check(inputs, outputs):
        def linear(x, weight, bias):
            return x @ weight + bias

        check_layer(linear, ["x", "weight", "bias"], inputs, outputs)

    doc = f"x @ weight + bias and its gradients, for x of shape {shape}."
    return GradedTest(f"hw2.modules::linear_{name}", inputs, probe, check, doc)


TESTS = [
    linear_test("batch", (5, 4), (1, 3)),
    linear_test("one_sample", (1, 4), (1, 3)),
    linear_test("three_axes", (2, 5, 4), (1, 3)),
    linear_test("flat_bias", (5, 4), (3,)),
]


# --- layers without parameters ---


@graded("hw2.modules::flatten")
class Flatten:
    """(B, ...) becomes (B, the product of the rest), in the order of the elements."""

    def inputs(rng):
        return {"x": float32(rng, 2, 3, 4, 1), "out_grad": float32(rng, 2, 12)}

    def probe(ndl, inputs):
        short = ndl.nn.Flatten()(ndl.Tensor(np.ones((3, 2), np.float32))).shape
        single = ndl.nn.Flatten()(ndl.Tensor(np.ones(3, np.float32))).shape
        outputs = run_layer(ndl, ndl.nn.Flatten(), inputs)
        return {**outputs, "short": short, "single": single}

    def check(inputs, outputs):
        equal("the output", outputs["y"], inputs["x"].reshape(2, 12))
        equal("the gradient of x", outputs["x"], inputs["out_grad"].reshape(2, 3, 4, 1))
        equal("the shape of a flattened (3, 2)", outputs["short"], [3, 2])
        equal("the shape of a flattened (3,)", outputs["single"], [3, 1])


@graded("hw2.modules::relu")
class ReLU:
    """max(x, 0) and its gradient."""

    def inputs(rng):
        return {"x": float32(rng, 3, 4), "out_grad": float32(rng, 3, 4)}

    def probe(ndl, inputs):
        return run_layer(ndl, ndl.nn.ReLU(), inputs)

    def check(inputs, outputs):
        equal("the output", outputs["y"], np.maximum(inputs["x"], 0))
        equal("the gradient of x", outputs["x"], inputs["out_grad"] * (inputs["x"] > 0))


@graded("hw2.modules::sequential")
class Sequential:
    """Modules run from left to right; their parameters are found in that order."""

    def inputs(rng):
        return {"x": float32(rng, 2, 4), "out_grad": float32(rng, 2, 2)}

    def probe(ndl, inputs):
        nn = ndl.nn
        first, second = nn.Linear(4, 3), nn.Linear(3, 2)
        model = nn.Sequential(first, nn.ReLU(), second)
        outputs = run_layer(ndl, model, inputs)
        parameters = [p.numpy() for p in model.parameters()]
        empty = nn.Sequential()(ndl.Tensor(inputs["x"])).numpy()
        return {**outputs, "parameters": parameters, "empty": empty}

    def check(inputs, outputs):
        w1, b1, w2, b2 = outputs["parameters"]

        def model(x):
            return np.maximum(x @ w1 + b1, 0) @ w2 + b2

        check_layer(model, ["x"], inputs, outputs)
        equal("the output of an empty Sequential", outputs["empty"], inputs["x"])


@graded("hw2.modules::residual")
class Residual:
    """fn(x) + x; both ways bring a gradient to x."""

    def inputs(rng):
        return {"x": float32(rng, 2, 3), "out_grad": float32(rng, 2, 3)}

    def probe(ndl, inputs):
        layer = ndl.nn.Residual(ndl.nn.Linear(3, 3))
        outputs = run_layer(ndl, layer, inputs)
        return {**outputs, "parameters": [p.numpy() for p in layer.parameters()]}

    def check(inputs, outputs):
        weight, bias = outputs["parameters"]
        check_layer(lambda x: x @ weight + bias + x, ["x"], inputs, outputs)


# --- the loss ---


def cross_entropy(logits, labels):
    """Return the mean of log(sum(exp(logits))) - logits[label]."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    picked = shifted[np.arange(len(labels)), labels]
    return np.mean(np.log(np.exp(shifted).sum(axis=1)) - picked)


@graded("hw2.modules::softmax_loss")
class SoftmaxLoss:
    """The mean cross-entropy, of shape (), and its gradient."""

    def inputs(rng):
        return {
            "x": float32(rng, 5, 4),
            "labels": rng.integers(0, 4, 5),
            "out_grad": np.float32(rng.uniform(0.5, 2)),
        }

    def probe(ndl, inputs):
        x = ndl.Tensor(inputs["x"])
        loss = ndl.nn.SoftmaxLoss()(x, ndl.Tensor(inputs["labels"]))
        loss.backward(ndl.Tensor(inputs["out_grad"], dtype="float32"))
        return {"y": loss.numpy(), "x": x.grad.numpy()}

    def check(inputs, outputs):
        check_layer(lambda x: cross_entropy(x, inputs["labels"]), ["x"], inputs, outputs)


@graded("hw2.modules::softmax_loss_large_logits")
class SoftmaxLossLargeLogits:
    """Logits of hundreds and thousands give a finite loss and finite gradients."""

    def inputs(rng):
        logits = [[-250.0, -424, -460, 378, -293], [1000, 1000, 0, 0, 0], [0, 0, 0, -1e4, 0]]
        return {"logits": np.array(logits, np.float32), "labels": np.array([0, 1, 3])}

    def probe(ndl, inputs):
        logits = ndl.Tensor(inputs["logits"])
        loss = ndl.nn.SoftmaxLoss()(logits, ndl.Tensor(inputs["labels"]))
        loss.backward()
        return {"loss": loss.numpy(), "grad": logits.grad.numpy()}

    def check(inputs, outputs):
        logits = inputs["logits"].astype(np.float64)
        close("the loss", outputs["loss"], cross_entropy(logits, inputs["labels"]), rtol=1e-4)
        softmax = np.exp(logits - logits.max(axis=1, keepdims=True))
        softmax /= softmax.sum(axis=1, keepdims=True)
        expected = (softmax - np.eye(5)[inputs["labels"]]) / 3
        close("the gradient of the logits", outputs["grad"], expected, RTOL, ATOL)


@graded("hw2.modules::softmax_loss_label_types")
class SoftmaxLossLabelTypes:
    """Labels may be uint8, int64 or float32."""

    def inputs(rng):
        return {"logits": float32(rng, 3, 4), "labels": rng.integers(0, 4, 3)}

    def probe(ndl, inputs):
        return {
            dtype: ndl.nn.SoftmaxLoss()(
                ndl.Tensor(inputs["logits"]), ndl.Tensor(inputs["labels"].astype(dtype))
            ).numpy()
            for dtype in ("uint8", "int64", "float32")
        }

    def check(inputs, outputs):
        expected = cross_entropy(inputs["logits"].astype(np.float64), inputs["labels"])
        for dtype, loss in outputs.items():
            close(f"the loss with labels of {dtype}", loss, expected, RTOL, ATOL)


# --- normalisation ---


def normalise(x, weight, bias, axis):
    """Return x less its mean, over its biased deviation, times weight plus bias."""
    mean = x.mean(axis=axis, keepdims=True)
    var = ((x - mean) ** 2).mean(axis=axis, keepdims=True)
    return (x - mean) / np.sqrt(var + EPS) * weight + bias


def norm_test(kind, axis, name, shape):
    """Return the test of a normalisation's output and gradients in training."""

    def inputs(rng):
        return {
            "x": float32(rng, *shape) * 2 + 1,
            "weight": float32(rng, shape[1]),
            "bias": float32(rng, shape[1]),
            "out_grad": float32(rng, *shape),
        }

    def probe(ndl, inputs):
        layer = getattr(ndl.nn, kind)(shape[1])
        return run_layer(ndl, layer, inputs, weight=inputs["weight"], bias=inputs["bias"])

    def check(inputs, outputs):
        def norm(x, weight, bias):
            return normalise(x, weight, bias, axis)

        check_layer(norm, ["x", "weight", "bias"], inputs, outputs)

    doc = f"{kind} in training, on x of shape {shape}, with its gradients."
    return GradedTest(f"hw2.modules::{name}", inputs, probe, check, doc)


TESTS += [
    norm_test("BatchNorm1d", 0, "batch_norm", (5, 3)),
    norm_test("BatchNorm1d", 0, "batch_norm_wide", (3, 6)),
    norm_test("LayerNorm1d", 1, "layer_norm_wide", (3, 5)),
    norm_test("LayerNorm1d", 1, "layer_norm_tall", (6, 3)),
    norm_test("LayerNorm1d", 1, "layer_norm_of_one", (4, 1)),
]


@graded("hw2.modules::norm_parameters")
class NormParameters:
    """Weights of ones and biases of zeros, (dim,), are parameters; running state is none."""

    def inputs(rng):
        return {"dim": int(rng.integers(2, 6))}

    def probe(ndl, inputs):
        batch, layer = ndl.nn.BatchNorm1d(inputs["dim"]), ndl.nn.LayerNorm1d(inputs["dim"])
        outputs = {
            f"{name} of {type(norm).__name__}": getattr(norm, name).numpy()
            for norm in (batch, layer)
            for name in ("weight", "bias")
        }
        outputs["running_mean"] = batch.running_mean.numpy()
        outputs["running_var"] = batch.running_var.numpy()
        counts = [len(batch.parameters()), len(layer.parameters())]
        trained = batch.running_mean.requires_grad or batch.running_var.requires_grad
        return {"arrays": outputs, "counts": counts, "trained": trained}

    def check(inputs, outputs):
        for name, values in outputs["arrays"].items():
            fill = np.ones if name.startswith("weight") or name == "running_var" else np.zeros
            close(name, values, fill(inputs["dim"]), dtype="float32")
        equal("the number of parameters of the two norms", outputs["counts"], [2, 2])
        equal("whether running statistics require gradients", outputs["trained"], False)


@graded("hw2.modules::batch_norm_running")
class BatchNormRunning:
    """Each training batch moves the running mean and the running biased variance."""

    def inputs(rng):
        return {
            "batches": [float32(rng, rows, 3) * 3 + 2 for rows in (2, 5, 4)],
            "momentum": float(rng.uniform(0.2, 0.6)),
        }

    def probe(ndl, inputs):
        layer = ndl.nn.BatchNorm1d(3, momentum=inputs["momentum"])
        for x in inputs["batches"]:
            layer(ndl.Tensor(x))
        state = (layer.running_mean, layer.running_var)
        return {"mean": state[0].numpy(), "var": state[1].numpy()}

    def check(inputs, outputs):
        mean, var, m = np.zeros(3), np.ones(3), inputs["momentum"]
        for x in inputs["batches"]:
            mean = (1 - m) * mean + m * x.astype(np.float64).mean(axis=0)
            var = (1 - m) * var + m * x.astype(np.float64).var(axis=0)
        close("running_mean", outputs["mean"], mean, RTOL, ATOL, "float32")
        close("running_var", outputs["var"], var, RTOL, ATOL, "float32")


@graded("hw2.modules::batch_norm_eval")
class BatchNormEval:
    """After eval(), the running statistics normalise, also a batch of one, and do not move."""

    def inputs(rng):
        return {
            "x": float32(rng, 1, 3),
            "mean": float32(rng, 3),
            "var": np.abs(float32(rng, 3)) + 0.5,
            "weight": float32(rng, 3),
            "bias": float32(rng, 3),
            "out_grad": float32(rng, 1, 3),
        }

    def probe(ndl, inputs):
        layer = ndl.nn.BatchNorm1d(3)
        layer.running_mean.data = ndl.Tensor(inputs["mean"])
        layer.running_var.data = ndl.Tensor(inputs["var"])
        layer.eval()
        outputs = run_layer(ndl, layer, inputs, weight=inputs["weight"], bias=inputs["bias"])
        again = layer(ndl.Tensor(inputs["x"])).numpy()
        state = [layer.running_mean.numpy(), layer.running_var.numpy()]
        return {**outputs, "again": again, "state": state}

    def check(inputs, outputs):
        def norm(x, weight, bias):
            return (x - inputs["mean"]) / np.sqrt(inputs["var"] + EPS) * weight + bias

        check_layer(norm, ["x", "weight", "bias"], inputs, outputs)
        equal("the output of a second call", outputs["again"], outputs["y"])
        equal("running_mean after eval", outputs["state"][0], inputs["mean"])
        equal("running_var after eval", outputs["state"][1], inputs["var"])


@graded("hw2.modules::norm_eps")
class NormEps:
    """eps is added to the variance, inside the root."""

    def inputs(rng):
        return {"x": float32(rng, 4, 3), "eps": 0.5}

    def probe(ndl, inputs):
        x = ndl.Tensor(inputs["x"])
        kinds = (ndl.nn.BatchNorm1d, ndl.nn.LayerNorm1d)
        return {kind.__name__: kind(3, eps=inputs["eps"])(x).numpy() for kind in kinds}

    def check(inputs, outputs):
        x = inputs["x"].astype(np.float64)
        for name, axis in (("BatchNorm1d", 0), ("LayerNorm1d", 1)):
            mean, var = x.mean(axis, keepdims=True), x.var(axis, keepdims=True)
            expected = (x - mean) / np.sqrt(var + inputs["eps"])
            close(f"{name} with eps={inputs['eps']}", outputs[name], expected, RTOL, ATOL)


@graded("hw2.modules::batch_norm_state_has_no_graph")
class BatchNormStateHasNoGraph:
    """Running statistics are constants, the same Tensors, and past batches are let go."""

    def inputs(rng):
        return {"x": float32(rng, 4, 3)}

    def probe(ndl, inputs):
        layer = ndl.nn.BatchNorm1d(3)
        state = (layer.running_mean, layer.running_var)
        counts = []
        for _ in range(12):
            layer(ndl.Tensor(inputs["x"], requires_grad=False)).backward()
            gc.collect()  # a gradient's graph may be a cycle
            counts.append(ndl.autograd.TENSOR_COUNTER)
        graph = [t.op is not None or t.requires_grad for t in state]
        same = layer.running_mean is state[0] and layer.running_var is state[1]
        return {"counts": counts, "graph": graph, "same": same, "mean": state[0].numpy()}

    def check(inputs, outputs):
        equal("whether running_mean and running_var have a graph", outputs["graph"], [False] * 2)
        equal("whether the Tensors of the state are still the same", outputs["same"], True)
        mean = inputs["x"].astype(np.float64).mean(axis=0) * (1 - 0.9**12)
        close("running_mean after 12 equal batches", outputs["mean"], mean, RTOL, ATOL)
        counts = outputs["counts"]
        if counts[-1] > counts[1]:
            fail(
                "Tensors of past batches are kept: assign running statistics from `.data`",
                f"TENSOR_COUNTER after 2 batches {counts[1]}, after 12 {counts[-1]}",
            )


# --- dropout ---


@graded("hw2.modules::dropout")
class Dropout:
    """An element is kept where np.random gives at most 1 - p, and then divided by 1 - p."""

    def inputs(rng):
        return {
            "x": float32(rng, 6, 5),
            "out_grad": float32(rng, 6, 5),
            "p": float(rng.uniform(0.2, 0.4)),
            "seed": int(rng.integers(1000)),
        }

    def probe(ndl, inputs):
        layer = ndl.nn.Dropout(inputs["p"])
        np.random.seed(inputs["seed"])
        outputs = run_layer(ndl, layer, inputs)
        return {**outputs, "after": float(np.random.rand())}

    def check(inputs, outputs):
        source = np.random.RandomState(inputs["seed"])
        kept = (source.rand(6, 5) <= 1 - inputs["p"]) / (1 - inputs["p"])
        close("the output", outputs["y"], inputs["x"] * kept, dtype="float32", x=inputs["x"])
        close("the gradient of x", outputs["x"], inputs["out_grad"] * kept)
        close("the next number of np.random", outputs["after"], source.rand(), rtol=1e-12)


@graded("hw2.modules::dropout_eval")
class DropoutEval:
    """After eval(), also of a model around it, everything passes and nothing is drawn."""

    def inputs(rng):
        return {"x": float32(rng, 4, 5), "out_grad": float32(rng, 4, 5), "seed": 3}

    def probe(ndl, inputs):
        model = ndl.nn.Sequential(ndl.nn.Residual(ndl.nn.Dropout(0.7)))
        model.eval()
        np.random.seed(inputs["seed"])
        outputs = run_layer(ndl, model, inputs)
        return {**outputs, "after": float(np.random.rand())}

    def check(inputs, outputs):
        close("x plus dropout(x)", outputs["y"], 2 * inputs["x"], dtype="float32")
        close("the gradient of x", outputs["x"], 2 * inputs["out_grad"])
        first = np.random.RandomState(inputs["seed"]).rand()
        close("the next number of np.random", outputs["after"], first, rtol=1e-12)


@graded("hw2.modules::dropout_all_or_nothing")
class DropoutAllOrNothing:
    """p = 0 keeps everything; p = 1 gives zeros, not 0 / 0."""

    def inputs(rng):
        return {"x": float32(rng, 4, 5)}

    def probe(ndl, inputs):
        x = ndl.Tensor(inputs["x"])
        return {"none": ndl.nn.Dropout(0)(x).numpy(), "all": ndl.nn.Dropout(1)(x).numpy()}

    def check(inputs, outputs):
        close("dropout with p=0", outputs["none"], inputs["x"], dtype="float32")
        close("dropout with p=1", outputs["all"], np.zeros((4, 5)), dtype="float32")


# --- all together ---


@graded("hw2.modules::modes_and_parameters")
class ModesAndParameters:
    """A model of nested modules has all its parameters and hands train() and eval() down."""

    def inputs(rng):
        return {"x": float32(rng, 3, 4), "seed": int(rng.integers(1000))}

    def probe(ndl, inputs):
        nn = ndl.nn
        inner = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 4))
        model = nn.Sequential(nn.LayerNorm1d(4), nn.Residual(inner), nn.Dropout(0.5))
        x = ndl.Tensor(inputs["x"])
        model.eval()
        quiet = [model(x).numpy(), model(x).numpy()]
        model.train()
        np.random.seed(inputs["seed"])
        loud = model(x)
        loud.backward()
        parameters = model.parameters()
        return {
            "quiet": quiet,
            "zeros": bool((loud.numpy() == 0).any()),
            "shapes": [p.shape for p in parameters],
            "grads": [p.grad.shape for p in parameters],
            "dtypes": sorted({str(p.grad.dtype) for p in parameters} | {str(loud.dtype)}),
        }

    def check(inputs, outputs):
        shapes = [[4], [4], [4, 6], [1, 6], [6], [6], [6, 4], [1, 4]]
        equal("the shapes of the parameters", outputs["shapes"], shapes)
        equal("the shapes of their gradients", outputs["grads"], shapes)
        equal("the dtypes of output and gradients", outputs["dtypes"], ["float32"])
        equal("two outputs in eval mode", outputs["quiet"][1], outputs["quiet"][0])
        equal("whether dropout drops after train()", outputs["zeros"], True)
