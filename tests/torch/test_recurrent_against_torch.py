"""RNN, LSTM, GRU and Embedding against PyTorch: outputs, last states and every gradient."""

import numpy as np
import pytest

import needle as ndl
from needle import nn
from tests.torch.pairs import pair

pytestmark = pytest.mark.torch

INPUT, HIDDEN, BATCH, SEQ = 3, 5, 2, 4
NAMES = {"W_ih": "weight_ih", "W_hh": "weight_hh", "bias_ih": "bias_ih", "bias_hh": "bias_hh"}


def assert_close(got, expected):
    np.testing.assert_allclose(got.numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-5)


def weight_pairs(cells, theirs, suffix):
    """Yield each weight of our cells with PyTorch's, which holds the matrices transposed."""
    for i, cell in enumerate(cells):
        for name, their_name in NAMES.items():
            if getattr(cell, name) is not None:
                yield getattr(cell, name), getattr(theirs, their_name + suffix.format(i))


def share_weights(cells, theirs, suffix, torch):
    with torch.no_grad():
        for p, q in weight_pairs(cells, theirs, suffix):
            q.copy_(torch.from_numpy(p.numpy().T.copy()))


def flat(result):
    """Return (output, state) or a state, whose state may be a pair, as a list."""
    parts = []
    for part in result if isinstance(result, tuple) else (result,):
        parts += part if isinstance(part, tuple) else (part,)
    return parts


def compare(ours, theirs, cells, suffix, x_shape, state_shape, count, device, torch, rng):
    """Compare results and gradients from `count` parts of a state (0 for none given)."""
    share_weights(cells, theirs, suffix, torch)
    x, tx = pair(rng.standard_normal(x_shape), device, torch)
    states = [pair(rng.standard_normal(state_shape), device, torch) for _ in range(count)]
    s, ts = (tuple(parts) for parts in zip(*states, strict=True)) if states else ((), ())
    arguments = ((s,), (ts,)) if count == 2 else (s, ts)
    results, expected = flat(ours(x, *arguments[0])), flat(theirs(tx, *arguments[1]))
    total, their_total = None, None
    for y, ty in zip(results, expected, strict=True):
        assert_close(y, ty)
        weights = rng.standard_normal(y.shape).astype(np.float32)
        part = (y * ndl.Tensor(weights, device=device, requires_grad=False)).sum()
        their_part = (ty * torch.from_numpy(weights)).sum()
        total = part if total is None else total + part
        their_total = their_part if their_total is None else their_total + their_part
    total.backward()
    their_total.backward()
    for ours_, theirs_ in ((x, tx), *states):
        assert_close(ours_.grad, theirs_.grad)
    for p, q in weight_pairs(cells, theirs, suffix):
        assert_close(p.grad, q.grad.t())


@pytest.mark.parametrize(
    "kind, settings",
    [
        ("RNN", {"nonlinearity": "tanh"}),
        ("RNN", {"nonlinearity": "relu"}),
        ("LSTM", {}),
        ("GRU", {}),
    ],
    ids=["RNN tanh", "RNN relu", "LSTM", "GRU"],
)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("given", [True, False], ids=["state", "no state"])
class TestAgainstTorch:
    @pytest.mark.parametrize("layers", [1, 2, 3])
    def test_layer(self, device, torch, rng, kind, settings, bias, given, layers):
        ours = getattr(nn, kind)(INPUT, HIDDEN, layers, bias=bias, device=device, **settings)
        theirs = getattr(torch.nn, kind)(INPUT, HIDDEN, layers, bias=bias, **settings)
        cells = getattr(ours, f"{kind.lower()}_cells")
        count = (2 if kind == "LSTM" else 1) if given else 0
        shapes = (SEQ, BATCH, INPUT), (layers, BATCH, HIDDEN)
        compare(ours, theirs, cells, "_l{}", *shapes, count, device, torch, rng)

    def test_cell(self, device, torch, rng, kind, settings, bias, given):
        ours = getattr(nn, f"{kind}Cell")(INPUT, HIDDEN, bias=bias, device=device, **settings)
        theirs = getattr(torch.nn, f"{kind}Cell")(INPUT, HIDDEN, bias=bias, **settings)
        count = (2 if kind == "LSTM" else 1) if given else 0
        shapes = (BATCH, INPUT), (BATCH, HIDDEN)
        compare(ours, theirs, [ours], "", *shapes, count, device, torch, rng)


def test_a_long_sequence(device, torch, rng):
    """Forty steps: what the language model sees."""
    ours, theirs = nn.LSTM(INPUT, HIDDEN, 2, device=device), torch.nn.LSTM(INPUT, HIDDEN, 2)
    shapes = (40, BATCH, INPUT), (2, BATCH, HIDDEN)
    compare(ours, theirs, ours.lstm_cells, "_l{}", *shapes, 2, device, torch, rng)


def test_embedding(device, torch, rng):
    ours, theirs = nn.Embedding(7, 3, device=device), torch.nn.Embedding(7, 3)
    with torch.no_grad():
        theirs.weight.copy_(torch.from_numpy(ours.weight.numpy()))
    ids = rng.integers(0, 7, (6, 5))
    y, ty = ours(ids), theirs(torch.from_numpy(ids))
    assert_close(y, ty)
    out_grad = rng.standard_normal(y.shape).astype(np.float32)
    y.backward(ndl.Tensor(out_grad, device=device))
    ty.backward(torch.from_numpy(out_grad))
    assert_close(ours.weight.grad, theirs.weight.grad)
