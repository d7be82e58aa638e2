"""RNN cells and layers against loops in numpy: values, gradients, draws and shapes."""

import math

import numpy as np

from needle_course.testing import GradedTest, close, equal, graded, gradient_of

WEIGHTS = ("W_ih", "W_hh", "bias_ih", "bias_hh")
ACTIVATIONS = {"tanh": np.tanh, "relu": lambda a: np.maximum(a, 0)}


def random(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def cell_weights(rng, n_in, hidden, bias, suffix=""):
    """Return the weights of one cell by name, as W_ih0 with the suffix "0"."""
    shapes = {"W_ih": (n_in, hidden), "W_hh": (hidden, hidden)}
    if bias:
        shapes |= {"bias_ih": (hidden,), "bias_hh": (hidden,)}
    return {f"{name}{suffix}": 0.5 * random(rng, *shape) for name, shape in shapes.items()}


def step(x, h, weights, activation):
    """Return the next state; weights are two matrices, and two biases or none."""
    return activation(x @ weights[0] + h @ weights[1] + sum(weights[2:]))


def run(x, h0, layers, activation):
    """Return the last layer's states, and every layer's last state."""
    last = []
    for h, weights in zip(h0, layers, strict=True):
        states = []
        for now in x:
            h = step(now, h, weights, activation)
            states.append(h)
        x = np.stack(states)
        last.append(h)
    return x, np.stack(last)


def set_weights(ndl, cell, inputs, suffix=""):
    for name in WEIGHTS:
        if name + suffix in inputs:
            getattr(cell, name).data = ndl.Tensor(inputs[name + suffix], requires_grad=False)


def grads(cell, inputs, suffix=""):
    """Return the gradients of a cell's weights by name."""
    names = [name for name in WEIGHTS if name + suffix in inputs]
    return {name + suffix: getattr(cell, name).grad.numpy() for name in names}


def cell_test(name, batch, n_in, hidden, bias, nonlinearity, with_state):
    """Return the test of one cell: the next state and all gradients."""

    def inputs(rng):
        arrays = {"x": random(rng, batch, n_in), "h": random(rng, batch, hidden)}
        arrays |= cell_weights(rng, n_in, hidden, bias)
        return {**arrays, "out_grad": random(rng, batch, hidden)}

    def probe(ndl, inputs):
        cell = ndl.nn.RNNCell(n_in, hidden, bias=bias, nonlinearity=nonlinearity)
        set_weights(ndl, cell, inputs)
        x, h = ndl.Tensor(inputs["x"]), ndl.Tensor(inputs["h"])
        y = cell(x, h) if with_state else cell(x)
        y.backward(ndl.Tensor(inputs["out_grad"]))
        outputs = {"y": y.numpy(), "x": x.grad.numpy(), **grads(cell, inputs)}
        return {**outputs, "h": h.grad.numpy()} if with_state else outputs

    def check(inputs, outputs):
        names = ["x", "h", *(n for n in WEIGHTS if n in inputs)]
        values = [inputs[n] if with_state or n != "h" else 0 * inputs[n] for n in names]

        def function(x, h, *weights):
            return step(x, h, weights, ACTIVATIONS[nonlinearity])

        close("the next state", outputs["y"], function(*values), rtol=1e-4, atol=1e-5)
        expected = gradient_of(function, values, inputs["out_grad"])
        for key, grad in zip(names, expected, strict=True):
            if key in outputs:
                close(f"the gradient of {key}", outputs[key], grad, rtol=1e-3, atol=1e-4)

    state = "a state" if with_state else "no state"
    doc = f"RNNCell({n_in}, {hidden}) with {nonlinearity}, bias {bias}, {state}."
    return GradedTest(f"hw4.rnn::{name}", inputs, probe, check, doc)


TESTS = [
    cell_test("cell", 3, 4, 5, True, "tanh", True),
    cell_test("cell_relu", 2, 3, 4, True, "relu", True),
    cell_test("cell_without_bias", 2, 4, 3, False, "tanh", True),
    cell_test("cell_without_state", 2, 3, 5, True, "tanh", False),
]


@graded("hw4.rnn::cell_parameters")
class CellParameters:
    """W_ih, W_hh, bias_ih and bias_hh are drawn in this order, within 1 / sqrt(hidden_size)."""

    def inputs(rng):
        return {"seed": int(rng.integers(10_000))}

    def probe(ndl, inputs):
        np.random.seed(inputs["seed"])
        cell = ndl.nn.RNNCell(4, 9)
        following = np.random.rand()
        without = ndl.nn.RNNCell(4, 9, bias=False)
        return {
            **{name: getattr(cell, name).numpy() for name in WEIGHTS},
            "following": following,
            "counts": (len(cell.parameters()), len(without.parameters())),
            "no_bias": (without.bias_ih, without.bias_hh),
        }

    def check(inputs, outputs):
        numbers, bound = np.random.RandomState(inputs["seed"]), 1 / math.sqrt(9)
        shapes = zip(WEIGHTS, [(4, 9), (9, 9), (9,), (9,)], strict=True)
        for name, shape in shapes:
            expected = numbers.rand(*shape) * 2 * bound - bound
            close(name, outputs[name], expected, dtype="float32")
        close("the random number after the cell", outputs["following"], numbers.rand())
        equal("the numbers of parameters with and without bias", outputs["counts"], (4, 2))
        equal("the biases of a cell without", outputs["no_bias"], (None, None))


def layer_test(name, seq, batch, n_in, hidden, num_layers, bias, nonlinearity, with_state):
    """Return the test of one RNN: the output, the last states and all gradients."""
    sizes = [n_in] + [hidden] * (num_layers - 1)

    def inputs(rng):
        arrays = {"x": random(rng, seq, batch, n_in), "h0": random(rng, num_layers, batch, hidden)}
        for i, size in enumerate(sizes):
            arrays |= cell_weights(rng, size, hidden, bias, str(i))
        return {
            **arrays,
            "grad_y": random(rng, seq, batch, hidden),
            "grad_h": random(rng, num_layers, batch, hidden),
        }

    def probe(ndl, inputs):
        rnn = ndl.nn.RNN(n_in, hidden, num_layers, bias=bias, nonlinearity=nonlinearity)
        for i, cell in enumerate(rnn.rnn_cells):
            set_weights(ndl, cell, inputs, str(i))
        x, h0 = ndl.Tensor(inputs["x"]), ndl.Tensor(inputs["h0"])
        y, h = rnn(x, h0) if with_state else rnn(x)
        weighted = [
            (value * ndl.Tensor(inputs[key], requires_grad=False)).sum()
            for value, key in ((y, "grad_y"), (h, "grad_h"))
        ]
        (weighted[0] + weighted[1]).backward()
        outputs = {"y": y.numpy(), "h": h.numpy(), "x": x.grad.numpy()}
        for i, cell in enumerate(rnn.rnn_cells):
            outputs |= grads(cell, inputs, str(i))
        return {**outputs, "h0": h0.grad.numpy()} if with_state else outputs

    def check(inputs, outputs):
        layers = [[n + str(i) for n in WEIGHTS if n + str(i) in inputs] for i in range(num_layers)]
        names = ["x", "h0", *sum(layers, [])]
        values = [inputs[n] if with_state or n != "h0" else 0 * inputs[n] for n in names]
        each = len(layers[0])

        def both(x, h0, *weights):
            cells = [weights[i : i + each] for i in range(0, len(weights), each)]
            return run(x, h0, cells, ACTIVATIONS[nonlinearity])

        def weighted(*values):
            y, h = both(*values)
            return np.sum(y * inputs["grad_y"]) + np.sum(h * inputs["grad_h"])

        y, h = both(*values)
        close("the output", outputs["y"], y, rtol=1e-4, atol=1e-5)
        close("the last states", outputs["h"], h, rtol=1e-4, atol=1e-5)
        for key, grad in zip(names, gradient_of(weighted, values, 1.0), strict=True):
            if key in outputs:
                close(f"the gradient of {key}", outputs[key], grad, rtol=1e-3, atol=1e-4)

    doc = (
        f"RNN({n_in}, {hidden}, num_layers={num_layers}) over {seq} steps, {nonlinearity}, "
        f"bias {bias}, h0 {'given' if with_state else 'missing'}."
    )
    return GradedTest(f"hw4.rnn::{name}", inputs, probe, check, doc)


TESTS += [
    layer_test("one_layer", 4, 2, 3, 5, 1, True, "tanh", True),
    layer_test("one_step", 1, 2, 3, 4, 1, True, "tanh", False),
    layer_test("two_layers", 3, 2, 5, 3, 2, True, "tanh", True),
    layer_test("three_layers_relu", 3, 1, 2, 3, 3, True, "relu", False),
    layer_test("two_layers_without_bias", 3, 2, 3, 4, 2, False, "tanh", False),
]


@graded("hw4.rnn::layer_parameters")
class LayerParameters:
    """The cells are made from the first layer to the last; the later ones take hidden_size."""

    def inputs(rng):
        return {"seed": int(rng.integers(10_000))}

    def probe(ndl, inputs):
        np.random.seed(inputs["seed"])
        rnn = ndl.nn.RNN(3, 4, num_layers=2)
        return {"values": [parameter.numpy() for parameter in rnn.parameters()]}

    def check(inputs, outputs):
        numbers, bound = np.random.RandomState(inputs["seed"]), 1 / 2
        shapes = [(3, 4), (4, 4), (4,), (4,), (4, 4), (4, 4), (4,), (4,)]
        equal("the number of parameters", len(outputs["values"]), len(shapes))
        for i, shape in enumerate(shapes):
            expected = numbers.rand(*shape) * 2 * bound - bound
            close(f"parameter {i}", outputs["values"][i], expected)
