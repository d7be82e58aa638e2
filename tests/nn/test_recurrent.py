"""RNN, LSTM and GRU, cells and layers: values against a plain numpy loop, gradients, draws, errors.

PyTorch's own are met in tests/torch/test_recurrent_against_torch.py.
"""

import gc
import re

import numpy as np
import pytest

import needle as ndl
from needle import nn, ops
from needle.errors import NeedleError, ShapeError
from tests.nn.module_gradcheck import FLOAT64, check_module

INPUT, HIDDEN, BATCH, SEQ = 3, 5, 2, 4

CELLS = {
    "RNN": nn.RNNCell,
    "RNN relu": lambda *args, **kwargs: nn.RNNCell(*args, nonlinearity="relu", **kwargs),
    "LSTM": nn.LSTMCell,
    "GRU": nn.GRUCell,
}
LAYERS = {
    "RNN": nn.RNN,
    "RNN relu": lambda *args, **kwargs: nn.RNN(*args, nonlinearity="relu", **kwargs),
    "LSTM": nn.LSTM,
    "GRU": nn.GRU,
}
BLOCKS = {"RNN": 1, "RNN relu": 1, "LSTM": 4, "GRU": 3}
PUBLIC = {"RNN": "RNN", "RNN relu": "RNN", "LSTM": "LSTM", "GRU": "GRU"}

each_kind = pytest.mark.parametrize("kind", CELLS)
each_bias = pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
each_depth = pytest.mark.parametrize("layers", [1, 2, 3])
each_start = pytest.mark.parametrize("given", [True, False], ids=["state", "no state"])


# --- the same in numpy ---


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def numpy_step(kind, cell, x, state):
    """Return the state, a list of arrays, after a step from `state` on `x`."""
    W_ih, W_hh = (np.float64(w.numpy()) for w in (cell.W_ih, cell.W_hh))
    b_ih, b_hh = (0 if b is None else np.float64(b.numpy()) for b in (cell.bias_ih, cell.bias_hh))
    h = state[0]
    from_x, from_h = x @ W_ih + b_ih, h @ W_hh + b_hh
    if kind == "RNN":
        return [np.tanh(from_x + from_h)]
    if kind == "RNN relu":
        return [np.maximum(from_x + from_h, 0)]
    if kind == "LSTM":
        i, f, g, o = np.split(from_x + from_h, 4, axis=1)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        return [sigmoid(o) * np.tanh(c), c]
    (x_r, x_z, x_n), (h_r, h_z, h_n) = (np.split(s, 3, axis=1) for s in (from_x, from_h))
    r, z = sigmoid(x_r + h_r), sigmoid(x_z + h_z)
    return [(1 - z) * np.tanh(x_n + r * h_n) + z * h]


def numpy_layers(kind, cells, x, states):
    """Return what a layer returns as a list: the outputs, then the last h (and c) of all cells."""
    states = [list(state) for state in zip(*states, strict=True)]  # by layer
    for layer, cell in enumerate(cells):
        outputs = []
        for x_t in x:
            states[layer] = numpy_step(kind, cell, x_t, states[layer])
            outputs.append(states[layer][0])
        x = np.stack(outputs)
    return [x, *(np.stack(parts) for parts in zip(*states, strict=True))]


# --- one form for all kinds: a list of arrays in, a list of Tensors out ---


def cells_of(layer):
    return next(value for name, value in vars(layer).items() if name.endswith("_cells"))


def call(module, kind, x, *state):
    """Return the results of a cell or layer as a flat list; no state is passed for none."""
    result = module(x, *([state] if state and kind == "LSTM" else state))
    flat = []
    for part in result if isinstance(result, tuple) else (result,):
        flat += part if isinstance(part, tuple) else (part,)
    return flat


def draw_states(rng, kind, *shape):
    return [rng.standard_normal(shape) for _ in range(2 if kind == "LSTM" else 1)]


def tensors(arrays, device):
    return [ndl.Tensor(a, device=device, dtype="float32") for a in arrays]


class Joined(nn.Module):
    """All results of a cell or layer in one Tensor, as a gradient check wants."""

    def __init__(self, module, kind):
        super().__init__()
        self.module = module
        self.kind = kind

    def forward(self, x, *state):
        return ops.concatenate(call(self.module, self.kind, x, *state), 0)


# --- values ---


@each_kind
@each_bias
@each_start
def test_cell_values(device, kind, bias, given, rng):
    cell = CELLS[kind](INPUT, HIDDEN, bias=bias, device=device)
    x = rng.standard_normal((BATCH, INPUT))
    state = draw_states(rng, kind, BATCH, HIDDEN)
    expected = numpy_step(kind, cell, x, state if given else [s * 0 for s in state])
    got = call(cell, kind, *tensors([x, *state] if given else [x], device))
    for y, wanted in zip(got, expected, strict=True):
        np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-5, atol=1e-6)


@each_kind
@each_bias
@each_start
@each_depth
def test_layer_values(device, kind, bias, given, layers, rng):
    layer = LAYERS[kind](INPUT, HIDDEN, layers, bias=bias, device=device)
    x = rng.standard_normal((SEQ, BATCH, INPUT))
    state = draw_states(rng, kind, layers, BATCH, HIDDEN)
    start = state if given else [s * 0 for s in state]
    expected = numpy_layers(kind, cells_of(layer), x, start)
    got = call(layer, kind, *tensors([x, *state] if given else [x], device))
    assert [y.shape for y in got] == [
        (SEQ, BATCH, HIDDEN),
        *[(layers, BATCH, HIDDEN) for _ in state],
    ]
    for y, wanted in zip(got, expected, strict=True):
        np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-4, atol=1e-5)


@each_kind
def test_a_layer_is_its_cell_step_by_step(device, kind, rng):
    """The layer projects all inputs at once; the cell's forward takes one."""
    layer = LAYERS[kind](INPUT, HIDDEN, device=device)
    (cell,) = cells_of(layer)
    (x,) = tensors([rng.standard_normal((SEQ, BATCH, INPUT))], device)
    got = call(layer, kind, x)
    state = ()
    for t in range(SEQ):
        state = call(cell, kind, x[t], *state)
        np.testing.assert_allclose(got[0].numpy()[t], state[0].numpy(), rtol=1e-5, atol=1e-6)
    for last, s in zip(got[1:], state, strict=True):
        np.testing.assert_allclose(last.numpy()[0], s.numpy(), rtol=1e-5, atol=1e-6)


@each_kind
@pytest.mark.parametrize(
    "seq, batch, features, hidden", [(1, 1, 1, 1), (1, 3, 2, 4), (7, 1, 4, 2), (2, 0, 3, 2)]
)
def test_small_sizes(device, kind, seq, batch, features, hidden, rng):
    layer = LAYERS[kind](features, hidden, 2, device=device)
    x = rng.standard_normal((seq, batch, features))
    zeros = [s * 0 for s in draw_states(rng, kind, 2, batch, hidden)]
    expected = numpy_layers(kind, cells_of(layer), x, zeros)
    for y, wanted in zip(call(layer, kind, *tensors([x], device)), expected, strict=True):
        np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-4, atol=1e-5)


@each_kind
def test_windows_with_a_carried_state_equal_one_long_sequence(device, kind, rng):
    layer = LAYERS[kind](INPUT, HIDDEN, 2, device=device)
    (x,) = tensors([rng.standard_normal((6, BATCH, INPUT))], device)
    whole = call(layer, kind, x)
    first = call(layer, kind, x[:2])
    second = call(layer, kind, x[2:], *[s.detach() for s in first[1:]])
    together = np.concatenate([first[0].numpy(), second[0].numpy()])
    np.testing.assert_allclose(together, whole[0].numpy(), rtol=1e-5, atol=1e-6)


@each_kind
def test_large_inputs_stay_finite(device, kind):
    layer = LAYERS[kind](INPUT, HIDDEN, device=device)
    (x,) = tensors([np.full((3, BATCH, INPUT), 1e4) * [1, -1, 1]], device)
    for y in call(layer, kind, x):
        assert np.isfinite(y.numpy()).all()


# --- gradients ---


@each_kind
@each_bias
def test_cell_gradients(kind, bias, rng):
    cell = CELLS[kind](INPUT, 2, bias=bias, **FLOAT64)
    arrays = [rng.standard_normal((BATCH, INPUT)), *draw_states(rng, kind, BATCH, 2)]
    check_module(Joined(cell, kind), *arrays, rng=rng)


@each_kind
@pytest.mark.parametrize("bias, layers", [(True, 2), (False, 1)])
def test_layer_gradients_of_input_state_and_parameters(kind, bias, layers, rng):
    layer = LAYERS[kind](3, 2, layers, bias=bias, **FLOAT64)
    arrays = [rng.standard_normal((2, 1, 3)), *draw_states(rng, kind, layers, 1, 2)]
    check_module(Joined(layer, kind), *arrays, rng=rng)


@each_kind
def test_layer_gradients_without_a_state(kind, rng):
    layer = LAYERS[kind](1, 2, **FLOAT64)
    check_module(Joined(layer, kind), rng.standard_normal((3, 2, 1)), rng=rng)


@each_kind
@each_bias
def test_every_parameter_gets_a_gradient_that_is_not_zero(device, kind, bias, rng):
    layer = LAYERS[kind](INPUT, HIDDEN, 3, bias=bias, device=device)
    (x,) = tensors([rng.standard_normal((SEQ, BATCH, INPUT))], device)
    outputs = call(layer, kind, x)
    outputs[0].backward(*tensors([rng.standard_normal(outputs[0].shape)], device))
    for name, p in layer.named_parameters():
        assert p.grad.shape == p.shape and p.grad.device == device, name
        assert p.grad.numpy().dtype == np.float32 and np.abs(p.grad.numpy()).max() > 0, name


@each_kind
def test_state_weights_have_a_gradient_after_one_step_from_nothing(device, kind):
    layer = LAYERS[kind](INPUT, HIDDEN, device=device)
    call(layer, kind, ndl.init.ones(1, BATCH, INPUT, device=device))[0].sum().backward()
    (cell,) = cells_of(layer)
    np.testing.assert_array_equal(cell.W_hh.grad.numpy(), np.zeros(cell.W_hh.shape))
    assert np.abs(cell.bias_hh.grad.numpy()).max() > 0


@each_kind
def test_weights_may_be_replaced_by_plain_tensors(device, kind, rng):
    cell = CELLS[kind](INPUT, HIDDEN, device=device)
    for name in ("W_ih", "W_hh", "bias_ih", "bias_hh"):
        setattr(cell, name, tensors([rng.standard_normal(getattr(cell, name).shape)], device)[0])
    x, *state = [rng.standard_normal((BATCH, INPUT)), *draw_states(rng, kind, BATCH, HIDDEN)]
    got = call(cell, kind, *tensors([x, *state], device))
    for y, wanted in zip(got, numpy_step(kind, cell, x, state), strict=True):
        np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-4, atol=1e-5)


# --- parameters ---


@each_kind
@each_bias
def test_parameters_are_drawn_layer_by_layer_in_order(device, kind, bias):
    np.random.seed(13)
    layer = LAYERS[kind](INPUT, HIDDEN, 3, bias=bias, device=device)
    after = np.random.rand()
    np.random.seed(13)
    bound, columns = 1 / np.sqrt(HIDDEN), BLOCKS[kind] * HIDDEN
    names = [name for name, _ in layer.named_parameters()]
    expected = []
    for i, size in enumerate([INPUT, HIDDEN, HIDDEN]):
        shapes = {"W_ih": (size, columns), "W_hh": (HIDDEN, columns)}
        if bias:
            shapes |= {"bias_ih": (columns,), "bias_hh": (columns,)}
        for name, shape in shapes.items():
            expected.append(f"{PUBLIC[kind].lower()}_cells.{i}.{name}")
            p = getattr(cells_of(layer)[i], name)
            assert p.shape == shape and p.device == device
            drawn = np.random.rand(*shape) * 2 * bound - bound
            np.testing.assert_allclose(p.numpy(), drawn, rtol=1e-5, atol=1e-7)
    assert names == expected
    assert np.random.rand() == after
    if not bias:
        assert all(c.bias_ih is None and c.bias_hh is None for c in cells_of(layer))


@each_kind
def test_forward_draws_nothing(device, kind):
    layer = LAYERS[kind](INPUT, HIDDEN, 2, device=device)
    np.random.seed(5)
    layer(ndl.init.ones(SEQ, BATCH, INPUT, device=device))
    assert np.random.rand() == np.random.RandomState(5).rand()


def test_a_repr_shows_the_sizes():
    assert repr(nn.RNNCell(3, 5)) == "RNNCell(3, 5, bias=True, nonlinearity='tanh')"
    assert repr(nn.LSTM(3, 5, 2, bias=False)) == (
        "LSTM(\n  3, 5, num_layers=2, bias=False\n"
        "  (lstm_cells.0): LSTMCell(3, 5, bias=False)\n"
        "  (lstm_cells.1): LSTMCell(5, 5, bias=False)\n)"
    )


# --- memory ---


@each_kind
def test_a_detached_state_keeps_no_past_window_alive(device, kind, rng):
    layer = LAYERS[kind](INPUT, HIDDEN, device=device)
    x = rng.standard_normal((2, BATCH, INPUT))
    counts, state = [], []
    gc.collect()
    gc.disable()
    try:
        for _ in range(50):
            output, *state = call(layer, kind, *tensors([x], device), *state)
            output.sum().backward()
            state = [s.detach() for s in state]
            del output
            counts.append(ndl.autograd.TENSOR_COUNTER)
    finally:
        gc.enable()
    assert counts[2:] == [counts[2]] * 48


# --- refusals ---


@each_kind
@pytest.mark.parametrize("shape", [(2, 4), (3,), (1, 2, 3), ()], ids=str)
def test_a_cell_says_which_input_does_not_fit(device, kind, shape):
    message = f"[{PUBLIC[kind]}Cell] input {shape} is not (batch, 3)"
    with pytest.raises(ShapeError, match=re.escape(message)):
        CELLS[kind](INPUT, HIDDEN, device=device)(ndl.init.ones(*shape, device=device))


@each_kind
@pytest.mark.parametrize("shape", [(4, 2, 5), (4, 3), (3,), (1, 4, 2, 3)], ids=str)
def test_a_layer_says_which_input_does_not_fit(device, kind, shape):
    message = f"[{PUBLIC[kind]}] input {shape} is not (seq, batch, 3)"
    with pytest.raises(ShapeError, match=re.escape(message)):
        LAYERS[kind](INPUT, HIDDEN, device=device)(ndl.init.ones(*shape, device=device))


@each_kind
def test_a_sequence_without_a_step_is_refused(device, kind):
    message = f"[{PUBLIC[kind]}] input (0, 2, 3) has no time step"
    with pytest.raises(ShapeError, match=re.escape(message)):
        LAYERS[kind](INPUT, HIDDEN, device=device)(ndl.init.ones(0, 2, 3, device=device))


@each_kind
@pytest.mark.parametrize("shape", [(2, 4), (3, 5), (1, 2, 5)], ids=str)
def test_a_cell_says_which_state_does_not_fit(device, kind, shape):
    cell, x = CELLS[kind](INPUT, HIDDEN, device=device), ndl.init.ones(2, 3, device=device)
    good, bad = ndl.init.ones(2, 5, device=device), ndl.init.ones(*shape, device=device)
    message = f"[{PUBLIC[kind]}Cell] state {shape} is not (2, 5)"
    for state in [(bad, good), (good, bad)] if kind == "LSTM" else [bad]:
        with pytest.raises(ShapeError, match=re.escape(message)):
            cell(x, state)


@each_kind
@pytest.mark.parametrize("shape", [(1, 2, 5), (2, 5), (2, 4, 5), (2, 2, 3)], ids=str)
def test_a_layer_says_which_state_does_not_fit(device, kind, shape):
    layer, x = LAYERS[kind](INPUT, HIDDEN, 2, device=device), ndl.init.ones(4, 2, 3, device=device)
    good, bad = ndl.init.ones(2, 2, 5, device=device), ndl.init.ones(*shape, device=device)
    message = f"[{PUBLIC[kind]}] state {shape} is not (2, 2, 5)"
    for state in [(bad, good), (good, bad)] if kind == "LSTM" else [bad]:
        with pytest.raises(ShapeError, match=re.escape(message)):
            layer(x, state)


def test_an_lstm_wants_a_pair_and_the_others_a_tensor(device):
    x, h = ndl.init.ones(4, 2, 3, device=device), ndl.init.ones(2, 2, 5, device=device)
    # Two layers: a lone h could be unpacked into two parts.
    with pytest.raises(ShapeError, match=re.escape("[LSTM] the state is a Tensor; give a pair")):
        nn.LSTM(3, 5, 2, device=device)(x, h)
    with pytest.raises(ShapeError, match=re.escape("[LSTMCell] the state is a Tensor; give a")):
        nn.LSTMCell(3, 5, device=device)(x[0], h[0])
    for layer in (nn.RNN, nn.GRU):
        message = f"[{layer.__name__}] the state is a tuple; give a Tensor (2, 2, 5)"
        with pytest.raises(ShapeError, match=re.escape(message)):
            layer(3, 5, 2, device=device)(x, (h, h))


@pytest.mark.parametrize("kind", [nn.RNN, nn.RNNCell])
def test_only_two_nonlinearities_are_known(kind):
    message = "[RNNCell] nonlinearity 'gelu' is not known; give 'tanh' or 'relu'"
    with pytest.raises(NeedleError, match=re.escape(message)):
        kind(3, 5, nonlinearity="gelu")


@each_kind
def test_a_network_has_a_layer(kind):
    message = f"[{PUBLIC[kind]}] num_layers=0; give 1 or more"
    with pytest.raises(NeedleError, match=re.escape(message)):
        LAYERS[kind](3, 5, 0)
