"""LSTM cells and layers against loops in numpy: values, gradients, draws and shapes."""

import math

import numpy as np

from needle_course.testing import GradedTest, close, equal, graded, gradient_of

WEIGHTS = ("W_ih", "W_hh", "bias_ih", "bias_hh")


def random(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def cell_weights(rng, n_in, hidden, bias, suffix=""):
    """Return the weights of one cell by name, as W_ih0 with the suffix "0"."""
    shapes = {"W_ih": (n_in, 4 * hidden), "W_hh": (hidden, 4 * hidden)}
    if bias:
        shapes |= {"bias_ih": (4 * hidden,), "bias_hh": (4 * hidden,)}
    return {f"{name}{suffix}": 0.5 * random(rng, *shape) for name, shape in shapes.items()}


def step(x, h, c, weights):
    """Return the next (h, c); weights are two matrices, and two biases or none."""
    i, f, g, o = np.split(x @ weights[0] + h @ weights[1] + sum(weights[2:]), 4, axis=1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def run(x, h0, c0, layers):
    """Return the last layer's h over time, and every layer's last h and c."""
    last = []
    for h, c, weights in zip(h0, c0, layers, strict=True):
        states = []
        for now in x:
            h, c = step(now, h, c, weights)
            states.append(h)
        x = np.stack(states)
        last.append((h, c))
    return x, np.stack([h for h, _ in last]), np.stack([c for _, c in last])


def set_weights(ndl, cell, inputs, suffix=""):
    for name in WEIGHTS:
        if name + suffix in inputs:
            getattr(cell, name).data = ndl.Tensor(inputs[name + suffix], requires_grad=False)


def grads(cell, inputs, suffix=""):
    """Return the gradients of a cell's weights by name."""
    names = [name for name in WEIGHTS if name + suffix in inputs]
    return {name + suffix: getattr(cell, name).grad.numpy() for name in names}


def weighted_sum(ndl, pairs):
    """Return the sum of all values times their weights."""
    terms = [(value * ndl.Tensor(weights, requires_grad=False)).sum() for value, weights in pairs]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def cell_test(name, batch, n_in, hidden, bias, with_state):
    """Return the test of one cell: the next (h, c) and all gradients."""

    def inputs(rng):
        arrays = {key: random(rng, batch, hidden) for key in ("h", "c", "grad_h", "grad_c")}
        arrays["x"] = random(rng, batch, n_in)
        return {**arrays, **cell_weights(rng, n_in, hidden, bias)}

    def probe(ndl, inputs):
        cell = ndl.nn.LSTMCell(n_in, hidden, bias=bias)
        set_weights(ndl, cell, inputs)
        x, h, c = (ndl.Tensor(inputs[key]) for key in ("x", "h", "c"))
        h_next, c_next = cell(x, (h, c)) if with_state else cell(x)
        weighted_sum(ndl, [(h_next, inputs["grad_h"]), (c_next, inputs["grad_c"])]).backward()
        outputs = {"h_next": h_next.numpy(), "c_next": c_next.numpy(), "x": x.grad.numpy()}
        outputs |= grads(cell, inputs)
        return {**outputs, "h": h.grad.numpy(), "c": c.grad.numpy()} if with_state else outputs

    def check(inputs, outputs):
        names = ["x", "h", "c", *(n for n in WEIGHTS if n in inputs)]
        values = [inputs[n] if with_state or n not in "hc" else 0 * inputs[n] for n in names]

        def weighted(x, h, c, *weights):
            h, c = step(x, h, c, weights)
            return np.sum(h * inputs["grad_h"]) + np.sum(c * inputs["grad_c"])

        h, c = step(*values[:3], values[3:])
        close("the next h", outputs["h_next"], h, rtol=1e-4, atol=1e-5)
        close("the next c", outputs["c_next"], c, rtol=1e-4, atol=1e-5)
        for key, grad in zip(names, gradient_of(weighted, values, 1.0), strict=True):
            if key in outputs:
                close(f"the gradient of {key}", outputs[key], grad, rtol=1e-3, atol=1e-4)

    state = "a state" if with_state else "no state"
    doc = f"LSTMCell({n_in}, {hidden}) with bias {bias} and {state}."
    return GradedTest(f"hw4.lstm::{name}", inputs, probe, check, doc)


TESTS = [
    cell_test("cell", 2, 3, 4, True, True),
    cell_test("cell_without_bias", 3, 4, 2, False, True),
    cell_test("cell_without_state", 2, 3, 3, True, False),
]


@graded("hw4.lstm::cell_parameters")
class CellParameters:
    """W_ih, W_hh, bias_ih and bias_hh have 4 * hidden_size columns and are drawn in this order."""

    def inputs(rng):
        return {"seed": int(rng.integers(10_000)), "x": random(rng, 2, 3)}

    def probe(ndl, inputs):
        np.random.seed(inputs["seed"])
        cell = ndl.nn.LSTMCell(3, 5)
        without = ndl.nn.LSTMCell(3, 5, bias=False)
        return {
            **{name: getattr(cell, name).numpy() for name in WEIGHTS},
            "no_bias": (without.bias_ih, without.bias_hh),
            "shapes": [part.shape for part in cell(ndl.Tensor(inputs["x"]))],
        }

    def check(inputs, outputs):
        numbers, bound = np.random.RandomState(inputs["seed"]), 1 / math.sqrt(5)
        for name, shape in zip(WEIGHTS, [(3, 20), (5, 20), (20,), (20,)], strict=True):
            expected = numbers.rand(*shape) * 2 * bound - bound
            close(name, outputs[name], expected, dtype="float32")
        equal("the biases of a cell without", outputs["no_bias"], (None, None))
        equal("the shapes of h and c", outputs["shapes"], [(2, 5), (2, 5)])


def layer_test(name, seq, batch, n_in, hidden, num_layers, bias, with_state):
    """Return the test of one LSTM: the output, the last states and all gradients."""
    sizes = [n_in] + [hidden] * (num_layers - 1)

    def inputs(rng):
        keys = ("h0", "c0", "grad_h", "grad_c")
        arrays = {key: random(rng, num_layers, batch, hidden) for key in keys}
        arrays |= {"x": random(rng, seq, batch, n_in), "grad_y": random(rng, seq, batch, hidden)}
        for i, size in enumerate(sizes):
            arrays |= cell_weights(rng, size, hidden, bias, str(i))
        return arrays

    def probe(ndl, inputs):
        lstm = ndl.nn.LSTM(n_in, hidden, num_layers, bias=bias)
        for i, cell in enumerate(lstm.lstm_cells):
            set_weights(ndl, cell, inputs, str(i))
        x, h0, c0 = (ndl.Tensor(inputs[key]) for key in ("x", "h0", "c0"))
        y, (h, c) = lstm(x, (h0, c0)) if with_state else lstm(x)
        pairs = [(y, inputs["grad_y"]), (h, inputs["grad_h"]), (c, inputs["grad_c"])]
        weighted_sum(ndl, pairs).backward()
        outputs = {"y": y.numpy(), "h": h.numpy(), "c": c.numpy(), "x": x.grad.numpy()}
        for i, cell in enumerate(lstm.lstm_cells):
            outputs |= grads(cell, inputs, str(i))
        return {**outputs, "h0": h0.grad.numpy(), "c0": c0.grad.numpy()} if with_state else outputs

    def check(inputs, outputs):
        layers = [[n + str(i) for n in WEIGHTS if n + str(i) in inputs] for i in range(num_layers)]
        names = ["x", "h0", "c0", *sum(layers, [])]
        missing = () if with_state else ("h0", "c0")
        values = [0 * inputs[n] if n in missing else inputs[n] for n in names]
        each = len(layers[0])

        def all_three(x, h0, c0, *weights):
            cells = [weights[i : i + each] for i in range(0, len(weights), each)]
            return run(x, h0, c0, cells)

        def weighted(*values):
            parts = zip(all_three(*values), ("grad_y", "grad_h", "grad_c"), strict=True)
            return sum(np.sum(part * inputs[key]) for part, key in parts)

        for key, value in zip(("y", "h", "c"), all_three(*values), strict=True):
            close(f"{key} of (y, (h, c))", outputs[key], value, rtol=1e-4, atol=1e-5)
        for key, grad in zip(names, gradient_of(weighted, values, 1.0), strict=True):
            if key in outputs:
                close(f"the gradient of {key}", outputs[key], grad, rtol=1e-3, atol=1e-4)

    doc = (
        f"LSTM({n_in}, {hidden}, num_layers={num_layers}) over {seq} steps, bias {bias}, "
        f"state {'given' if with_state else 'missing'}."
    )
    return GradedTest(f"hw4.lstm::{name}", inputs, probe, check, doc)


TESTS += [
    layer_test("one_layer", 3, 2, 3, 4, 1, True, True),
    layer_test("one_step", 1, 2, 3, 2, 1, True, False),
    layer_test("two_layers", 3, 2, 4, 2, 2, True, True),
    layer_test("three_layers_without_bias", 2, 2, 2, 3, 3, False, False),
]


@graded("hw4.lstm::layer_parameters")
class LayerParameters:
    """The cells are made from the first layer to the last; the later ones take hidden_size."""

    def inputs(rng):
        return {"seed": int(rng.integers(10_000))}

    def probe(ndl, inputs):
        np.random.seed(inputs["seed"])
        lstm = ndl.nn.LSTM(3, 4, num_layers=2)
        return {"values": [parameter.numpy() for parameter in lstm.parameters()]}

    def check(inputs, outputs):
        numbers, bound = np.random.RandomState(inputs["seed"]), 1 / 2
        shapes = [(3, 16), (4, 16), (16,), (16,), (4, 16), (4, 16), (16,), (16,)]
        equal("the number of parameters", len(outputs["values"]), len(shapes))
        for i, shape in enumerate(shapes):
            expected = numbers.rand(*shape) * 2 * bound - bound
            close(f"parameter {i}", outputs["values"][i], expected)
