"""Attention and the transformer: values and draws against plain numpy, gradients, masks, errors.

PyTorch's own are met in tests/torch/test_transformer_against_torch.py.
"""

import gc
import math
import re

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.errors import ShapeError
from tests.gradcheck import check_gradients
from tests.nn.module_gradcheck import FLOAT64, check_module

each_causal = pytest.mark.parametrize("causal", [True, False], ids=["causal", "full"])
each_length = pytest.mark.parametrize(
    "queries, keys", [(4, 4), (2, 5), (1, 3), (5, 2), (1, 1)], ids=str
)
LOWEST = np.finfo(np.float32).min


def tensors(device, *arrays):
    return [ndl.Tensor(a, device=device, dtype="float32") for a in arrays]


def randomize(module, rng):
    """Give every parameter values that no mistake leaves alone, norms' weights too."""
    for p in module.parameters():
        values = rng.uniform(-1, 1, p.shape) / math.sqrt(p.shape[0])
        p.data = ndl.Tensor(values, device=p.device, dtype=p.dtype, requires_grad=False)
    return module


def smooth(module):
    """Return a module for a gradient check, with an eps that keeps norms of few features smooth."""
    for child in module._children():
        if isinstance(child, nn.LayerNorm1d):
            child.eps = 0.1
    return module


# --- the same in numpy ---


def numpy_dropout(x, p):
    """Drop by one draw of the full shape, as a Dropout in training; draw nothing for None."""
    return x if p is None else x * (np.random.rand(*x.shape) <= 1 - p) / (1 - p)


def numpy_attention(q, k, v, causal, dropout=None):
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if causal:
        queries, keys = scores.shape[-2:]
        hidden = np.arange(keys) > np.arange(queries)[:, None] + keys - queries
        scores = np.where(hidden, float(LOWEST), scores)
    probs = np.exp(scores - scores.max(-1, keepdims=True))
    probs = numpy_dropout(probs / probs.sum(-1, keepdims=True), dropout)
    return probs @ v, probs


def numpy_norm(norm, x):
    centred = x - x.mean(-1, keepdims=True)
    normed = centred / np.sqrt(x.var(-1, keepdims=True) + norm.eps)
    return normed * norm.weight.numpy() + norm.bias.numpy()


def numpy_linear(linear, x):
    y = x @ np.float64(linear.weight.numpy())
    return y if linear.bias is None else y + linear.bias.numpy()[0]


def numpy_attention_layer(layer, q, k, v, dropout=None):
    def heads(x, norm, projection):
        batch, time, _ = x.shape
        rows = numpy_linear(projection, numpy_norm(norm, x))
        return rows.reshape(batch, time, layer.num_head, layer.dim_head).transpose(0, 2, 1, 3)

    result, _ = numpy_attention(
        heads(q, layer.prenorm_q, layer.q_projection),
        heads(k, layer.prenorm_k, layer.k_projection),
        heads(v, layer.prenorm_v, layer.v_projection),
        layer.attn.causal,
        dropout,
    )
    merged = result.transpose(0, 2, 1, 3).reshape(*q.shape[:2], -1)
    return numpy_linear(layer.out_projection, merged)


def numpy_transformer_layer(layer, x, dropout=None):
    x = x + numpy_dropout(numpy_attention_layer(layer.attention, x, x, x, dropout), dropout)
    y = np.maximum(numpy_linear(layer.linear1, numpy_norm(layer.norm, x)), 0)
    y = numpy_linear(layer.linear2, numpy_dropout(y, dropout))
    return x + numpy_dropout(y, dropout)


# --- MultiHeadAttention ---


def draw_qkv(rng, queries, keys, heads=2, dim=3):
    shapes = [(2, heads, time, dim) for time in (queries, keys, keys)]
    return [rng.standard_normal(shape) for shape in shapes]


@each_causal
@each_length
def test_attention_values(device, causal, queries, keys, rng):
    q, k, v = draw_qkv(rng, queries, keys)
    result, probs = nn.MultiHeadAttention(causal=causal, device=device)(*tensors(device, q, k, v))
    expected, expected_probs = numpy_attention(q, k, v, causal)
    assert result.device == probs.device == device
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(probs.numpy(), expected_probs, rtol=1e-5, atol=1e-6)


@each_causal
@pytest.mark.parametrize("queries, keys", [(3, 3), (2, 4)], ids=str)
def test_attention_gradients(causal, queries, keys, rng):
    attention = nn.MultiHeadAttention(causal=causal, **FLOAT64)
    check_gradients(attention, *draw_qkv(rng, queries, keys, heads=1, dim=2), rng=rng)


@pytest.mark.parametrize(
    "i, j, seen",
    [
        (3, 3, [[1, 0, 0], [1, 1, 0], [1, 1, 1]]),
        (2, 4, [[1, 1, 1, 0], [1, 1, 1, 1]]),
        (3, 2, [[0, 0], [1, 0], [1, 1]]),
        (1, 1, [[1]]),
    ],
)
def test_the_causal_mask_lets_the_last_query_see_every_key(device, i, j, seen):
    mask = nn.MultiHeadAttention(causal=True).create_causal_mask(i, j, device)
    assert mask.shape == (1, 1, i, j)
    np.testing.assert_array_equal(
        np.asarray(mask), np.where(np.array(seen), 0, LOWEST).reshape(1, 1, i, j)
    )


def test_a_query_learns_nothing_of_later_keys(device, rng):
    q, k, v = draw_qkv(rng, 4, 4)
    attention = nn.MultiHeadAttention(causal=True, device=device)
    before, probs = attention(*tensors(device, q, k, v))
    np.testing.assert_array_equal(np.triu(probs.numpy(), 1), np.zeros((2, 2, 4, 4)))
    k[:, :, 2:], v[:, :, 2:] = 9, -9
    after, _ = attention(*tensors(device, q, k, v))
    np.testing.assert_array_equal(before.numpy()[:, :, :2], after.numpy()[:, :, :2])
    assert (before.numpy()[:, :, 2:] != after.numpy()[:, :, 2:]).all()


@each_causal
def test_attention_survives_large_scores(device, causal):
    x = np.array([[1e4, -1e4], [-1e4, 1e4], [1e4, 1e4]]).reshape(1, 1, 3, 2)
    q, k, v = tensors(device, x, x, x)
    result, probs = nn.MultiHeadAttention(causal=causal, device=device)(q, k, v)
    result.sum().backward()
    np.testing.assert_allclose(probs.numpy().sum(-1), np.ones((1, 1, 3)), rtol=1e-6)
    assert all(np.isfinite(t.numpy()).all() for t in (result, q.grad, k.grad, v.grad))


def test_its_softmax_and_product(device, rng):
    attention = nn.MultiHeadAttention(device=device)
    a, b = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((2, 3, 6, 5))
    product = attention.matmul(*tensors(device, a, b))
    np.testing.assert_allclose(product.numpy(), a @ b.swapaxes(2, 3), rtol=1e-4, atol=1e-5)
    (logits,) = tensors(device, a * 1e4)
    np.testing.assert_allclose(attention.softmax(logits).numpy().sum(-1), np.ones((2, 3, 4)))


def test_dropout_falls_on_the_probabilities(device, rng):
    q, k, v = draw_qkv(rng, 3, 4)
    attention = nn.MultiHeadAttention(dropout=0.4, device=device)
    np.random.seed(8)
    result, probs = attention(*tensors(device, q, k, v))
    after = np.random.rand()
    np.random.seed(8)
    expected, expected_probs = numpy_attention(q, k, v, causal=False, dropout=0.4)
    assert np.random.rand() == after
    assert (probs.numpy() == 0).any()
    np.testing.assert_allclose(probs.numpy(), expected_probs, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "q, k, v",
    [
        ((2, 2, 4, 3), (2, 3, 4, 3), (2, 3, 4, 3)),
        ((2, 2, 4, 3), (1, 2, 4, 3), (1, 2, 4, 3)),
        ((2, 2, 4, 3), (2, 2, 4, 5), (2, 2, 4, 5)),
        ((2, 2, 4, 3), (2, 2, 4, 3), (2, 2, 5, 3)),
        ((2, 2, 4, 3), (2, 2, 4, 3), (2, 1, 4, 3)),
        ((2, 4, 3), (2, 4, 3), (2, 4, 3)),
        ((2, 2, 4, 3), (2, 2, 4, 3), (2, 4, 3)),
    ],
    ids=str,
)
def test_attention_says_which_shapes_do_not_fit(device, q, k, v):
    message = f"[MultiHeadAttention] q {q}, k {k}, v {v}; give (batch, heads, time, dim)"
    with pytest.raises(ShapeError, match=re.escape(message)):
        nn.MultiHeadAttention(device=device)(*tensors(device, *map(np.ones, (q, k, v))))


# --- AttentionLayer ---


@each_causal
@pytest.mark.parametrize("dropout", [None, 0.3])
def test_attention_layer_values(device, causal, dropout, rng):
    layer = nn.AttentionLayer(4, 2, 3, causal=causal, dropout=dropout or 0.0, device=device)
    randomize(layer, rng).train(dropout is not None)
    x = rng.standard_normal((2, 5, 4))
    np.random.seed(8)
    y = layer(*tensors(device, x))
    after = np.random.rand()
    np.random.seed(8)
    np.testing.assert_allclose(
        y.numpy(), numpy_attention_layer(layer, x, x, x, dropout), rtol=1e-4, atol=1e-5
    )
    assert np.random.rand() == after, "another number of draws"
    assert y.shape == (2, 5, 4) and y.device == device


@each_causal
@each_length
def test_attention_layer_takes_other_keys_and_values(device, causal, queries, keys, rng):
    settings = {"k_features": 5, "v_features": 6, "out_features": 7, "causal": causal}
    layer = randomize(nn.AttentionLayer(4, 2, 3, device=device, **settings), rng)
    q, k, v = (rng.standard_normal(s) for s in ((2, queries, 4), (2, keys, 5), (2, keys, 6)))
    y = layer(*tensors(device, q, k, v))
    assert y.shape == (2, queries, 7)
    np.testing.assert_allclose(
        y.numpy(), numpy_attention_layer(layer, q, k, v), rtol=1e-4, atol=1e-5
    )


def test_missing_keys_and_values_are_the_queries(device, rng):
    layer = randomize(nn.AttentionLayer(4, 2, 3, device=device), rng)
    q, k = tensors(device, *(rng.standard_normal((2, 5, 4)) for _ in range(2)))
    np.testing.assert_array_equal(layer(q).numpy(), layer(q, q, q).numpy())
    np.testing.assert_array_equal(layer(q, k).numpy(), layer(q, k, q).numpy())


@each_causal
def test_attention_layer_gradients(causal, rng):
    layer = nn.AttentionLayer(3, 2, 1, v_features=2, causal=causal, **FLOAT64)
    shapes = [(1, 2, 3), (1, 3, 3), (1, 3, 2)]
    arrays = [rng.standard_normal(shape) for shape in shapes]
    check_module(smooth(randomize(layer, rng)), *arrays, rng=rng)


def test_attention_layer_is_causal_unless_told(device, rng):
    x = rng.standard_normal((1, 4, 4))
    later = x.copy()
    later[:, 3, 0] += 2
    for causal, kwargs in ((True, {}), (False, {"causal": False})):
        layer = randomize(nn.AttentionLayer(4, 2, 3, device=device, **kwargs), rng)
        y, z = (layer(*tensors(device, a)).numpy()[:, :3] for a in (x, later))
        assert np.allclose(y, z, atol=1e-6) == causal


@pytest.mark.parametrize(
    "q, k, v",
    [
        ((2, 5, 3), (2, 5, 4), (2, 5, 4)),
        ((2, 5, 4), (2, 5, 3), (2, 5, 4)),
        ((2, 5, 4), (2, 5, 4), (2, 5, 3)),
        ((2, 5, 4), (3, 5, 4), (3, 5, 4)),
        ((2, 5, 4), (2, 6, 4), (2, 5, 4)),
        ((5, 4), (5, 4), (5, 4)),
    ],
    ids=str,
)
def test_attention_layer_says_which_shapes_do_not_fit(device, q, k, v):
    message = f"[AttentionLayer] q {q}, k {k}, v {v}; give (batch, time, features) of (4, 4, 4)"
    with pytest.raises(ShapeError, match=re.escape(message)):
        nn.AttentionLayer(4, 2, 3, device=device)(*tensors(device, *map(np.ones, (q, k, v))))


# --- TransformerLayer ---


@each_causal
@pytest.mark.parametrize("dropout", [None, 0.3])
def test_transformer_layer_values(device, causal, dropout, rng):
    layer = nn.TransformerLayer(4, 2, 3, 6, causal=causal, dropout=dropout or 0.0, device=device)
    randomize(layer, rng).train(dropout is not None)
    x = rng.standard_normal((2, 5, 4))
    np.random.seed(8)
    y = layer(*tensors(device, x))
    after = np.random.rand()
    np.random.seed(8)
    np.testing.assert_allclose(
        y.numpy(), numpy_transformer_layer(layer, x, dropout), rtol=1e-4, atol=1e-5
    )
    assert np.random.rand() == after, "another number of draws"


def test_transformer_layer_gradients(rng):
    layer = randomize(nn.TransformerLayer(2, 1, 2, 3, **FLOAT64), rng)
    check_module(smooth(layer), rng.standard_normal((2, 3, 2)), rng=rng)


@pytest.mark.parametrize("shape", [(2, 5, 3), (5, 4), (1, 2, 5, 4)], ids=str)
def test_transformer_layer_says_which_input_does_not_fit(device, shape):
    message = f"[TransformerLayer] input {shape} is not (batch, time, 4)"
    with pytest.raises(ShapeError, match=re.escape(message)):
        nn.TransformerLayer(4, 2, 3, 6, device=device)(ndl.init.ones(*shape, device=device))


# --- Transformer ---


def small(**kwargs):
    return nn.Transformer(4, 6, 2, num_head=2, dim_head=3, sequence_len=7, **kwargs)


@each_causal
@pytest.mark.parametrize("batch_first", [True, False], ids=["batch first", "time first"])
@pytest.mark.parametrize("dropout", [None, 0.3])
def test_transformer_values(device, causal, batch_first, dropout, rng):
    model = small(causal=causal, batch_first=batch_first, dropout=dropout or 0.0, device=device)
    randomize(model, rng).train(dropout is not None)
    x = rng.standard_normal((2, 5, 4))
    np.random.seed(8)
    y, state = model(*tensors(device, x if batch_first else x.swapaxes(0, 1)))
    np.random.seed(8)
    expected = x + model.positions.weight.numpy()[:5]
    for layer in model.layers:
        expected = numpy_transformer_layer(layer, expected, dropout)
    expected = expected if batch_first else expected.swapaxes(0, 1)
    assert y.device == state.device == device
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(state.numpy(), np.zeros(expected.shape))


def test_transformer_gradients(rng):
    class Output(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = nn.Transformer(2, 2, 1, num_head=1, dim_head=2, sequence_len=4, **FLOAT64)

        def forward(self, x):
            return self.model(x)[0]

    check_module(smooth(randomize(Output(), rng)), rng.standard_normal((3, 1, 2)), rng=rng)


def test_transformer_layers_are_created_and_drawn_in_order(device):
    np.random.seed(19943)
    model = small(device=device)
    after = np.random.rand()
    np.random.seed(19943)

    def kaiming(fan_in, fan_out):
        bound = math.sqrt(6 / fan_in)
        return np.random.rand(fan_in, fan_out) * 2 * bound - bound

    drawn = [np.random.randn(7, 4)]
    for _ in range(2):
        drawn += [kaiming(4, 6) for _ in "qkv"] + [kaiming(6, 4)]  # attention, then the MLP
        drawn += [kaiming(4, 6), kaiming(6, 1).T, kaiming(6, 4), kaiming(4, 1).T]
    names = dict(model.named_parameters())
    random = [p for name, p in names.items() if "norm" not in name]
    for p, expected in zip(random, drawn, strict=True):
        np.testing.assert_allclose(p.numpy(), expected, rtol=1e-5, atol=1e-7)
    assert np.random.rand() == after
    assert all(p.device == device for p in names.values())
    of_attention = [name.split("attention.")[1] for name in names if "layers.0.attention" in name]
    assert of_attention == [
        *(f"prenorm_{x}.{p}" for x in "qkv" for p in ("weight", "bias")),
        *(f"{x}_projection.weight" for x in ("q", "k", "v", "out")),
    ]


def test_every_parameter_of_a_transformer_gets_a_gradient(device, rng):
    model = small(device=device)
    (x,) = tensors(device, rng.standard_normal((5, 2, 4)))
    y, _ = model(x)
    y.backward(*tensors(device, rng.standard_normal(y.shape)))
    for name, p in model.named_parameters():
        assert p.grad.shape == p.shape and p.grad.device == device, name
        assert np.abs(p.grad.numpy()).max() > 0, name
    np.testing.assert_array_equal(model.positions.weight.grad.numpy()[5:], np.zeros((2, 4)))


def test_the_state_is_ignored(device, rng):
    model = small(device=device)
    (x,) = tensors(device, rng.standard_normal((5, 2, 4)))
    first, state = model(x)
    assert not state.requires_grad
    np.testing.assert_array_equal(model(x, state)[0].numpy(), first.numpy())


def test_eval_draws_nothing(device):
    model = small(dropout=0.5, device=device).eval()
    np.random.seed(5)
    model(ndl.init.ones(5, 2, 4, device=device))
    assert np.random.rand() == np.random.RandomState(5).rand()


@pytest.mark.parametrize("batch_first", [True, False])
def test_a_longer_sequence_than_the_table_is_refused(device, batch_first):
    model = small(batch_first=batch_first, device=device)
    shape = (1, 8, 4) if batch_first else (8, 1, 4)
    message = "[Transformer] 8 time steps; there are positions for sequence_len=7"
    with pytest.raises(ShapeError, match=re.escape(message)):
        model(ndl.init.ones(*shape, device=device))


@pytest.mark.parametrize(
    "batch_first, axes", [(True, "batch, time"), (False, "time, batch")], ids=str
)
@pytest.mark.parametrize("shape", [(2, 5, 3), (5, 4)], ids=str)
def test_transformer_says_which_input_does_not_fit(device, batch_first, axes, shape):
    message = f"[Transformer] input {shape} is not ({axes}, 4)"
    with pytest.raises(ShapeError, match=re.escape(message)):
        small(batch_first=batch_first, device=device)(ndl.init.ones(*shape, device=device))


def test_a_repr_shows_the_sizes():
    shown = repr(nn.AttentionLayer(4, 2, 3)).splitlines()
    assert shown[:2] == ["AttentionLayer(", "  4, num_head=2, dim_head=3"]
    assert "  (attn): MultiHeadAttention(" in shown


def test_training_keeps_memory_flat(device, rng):
    model = small(dropout=0.1, device=device)
    x = rng.standard_normal((3, 1, 4))
    counts = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            model(*tensors(device, x))[0].sum().backward()
            counts.append(ndl.autograd.TENSOR_COUNTER)
    finally:
        gc.enable()
    assert counts[2:] == [counts[2]] * 8
