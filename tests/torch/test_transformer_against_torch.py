"""Attention and the pre-norm transformer against PyTorch: outputs and every gradient."""

import numpy as np
import pytest

import needle as ndl
from needle import nn
from tests.torch.pairs import pair

pytestmark = pytest.mark.torch


def assert_close(got, expected):
    """Compare to float32's rounding of gradients around 50, some of which cancel to 0."""
    np.testing.assert_allclose(got.numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-4)


def backward(y, ty, device, torch, rng):
    """Run both backward passes from one random out_grad."""
    out_grad = rng.standard_normal(y.shape).astype(np.float32)
    y.backward(ndl.Tensor(out_grad, device=device))
    ty.backward(torch.from_numpy(out_grad))


def seen(queries, keys, torch):
    """Return the causal mask with the last query at the last key."""
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "full"])
@pytest.mark.parametrize("queries, keys", [(5, 5), (2, 6), (1, 1)], ids=str)
def test_attention(device, torch, rng, causal, queries, keys):
    shapes = [(2, 3, time, 4) for time in (queries, keys, keys)]
    pairs = [pair(rng.standard_normal(shape), device, torch) for shape in shapes]
    ours, theirs = zip(*pairs, strict=True)
    y, _ = nn.MultiHeadAttention(causal=causal, device=device)(*ours)
    mask = seen(queries, keys, torch) if causal else None
    ty = torch.nn.functional.scaled_dot_product_attention(*theirs, attn_mask=mask)
    assert_close(y, ty)
    backward(y, ty, device, torch, rng)
    for x, tx in pairs:
        assert_close(x.grad, tx.grad)


class Twins:
    """PyTorch parameters made from ours on first use, to write the same model by hand."""

    def __init__(self, torch):
        self.torch = torch
        self.made = {}

    def __call__(self, parameter):
        if parameter not in self.made:
            self.made[parameter] = self.torch.tensor(parameter.numpy(), requires_grad=True)
        return self.made[parameter]

    def norm(self, layer, x):
        weights = self(layer.weight), self(layer.bias)
        return self.torch.nn.functional.layer_norm(x, x.shape[-1:], *weights)

    def linear(self, layer, x):
        y = x @ self(layer.weight)
        return y if layer.bias is None else y + self(layer.bias)

    def attention(self, layer, x):
        batch, time, _ = x.shape

        def heads(norm, projection):
            rows = self.linear(projection, self.norm(norm, x))
            return rows.reshape(batch, time, layer.num_head, layer.dim_head).transpose(1, 2)

        result = self.torch.nn.functional.scaled_dot_product_attention(
            heads(layer.prenorm_q, layer.q_projection),
            heads(layer.prenorm_k, layer.k_projection),
            heads(layer.prenorm_v, layer.v_projection),
            is_causal=layer.attn.causal,
        )
        return self.linear(layer.out_projection, result.transpose(1, 2).reshape(batch, time, -1))

    def transformer_layer(self, layer, x):
        x = x + self.attention(layer.attention, x)
        hidden = self.torch.relu(self.linear(layer.linear1, self.norm(layer.norm, x)))
        return x + self.linear(layer.linear2, hidden)

    def check_gradients(self, module):
        for p in module.parameters():
            assert_close(p.grad, self.made[p].grad)


def randomize_norms(module, rng):
    for name, p in module.named_parameters():
        if "norm" in name:
            values = rng.uniform(0.5, 2, p.shape)
            p.data = ndl.Tensor(values, device=p.device, dtype=p.dtype, requires_grad=False)
    return module


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "full"])
def test_transformer_layer(device, torch, rng, causal):
    layer = randomize_norms(nn.TransformerLayer(8, 2, 4, 16, causal=causal, device=device), rng)
    x, tx = pair(rng.standard_normal((3, 5, 8)), device, torch)
    twins = Twins(torch)
    y, ty = layer(x), twins.transformer_layer(layer, tx)
    assert_close(y, ty)
    backward(y, ty, device, torch, rng)
    assert_close(x.grad, tx.grad)
    twins.check_gradients(layer)


def test_transformer(device, torch, rng):
    model = nn.Transformer(8, 16, 2, num_head=2, dim_head=4, sequence_len=5, device=device)
    randomize_norms(model, rng)
    x, tx = pair(rng.standard_normal((5, 3, 8)), device, torch)  # (time, batch, features)
    twins = Twins(torch)
    y, _ = model(x)
    ty = tx.transpose(0, 1) + twins(model.positions.weight)
    for layer in model.layers:
        ty = twins.transformer_layer(layer, ty)
    ty = ty.transpose(0, 1)
    assert_close(y, ty)
    backward(y, ty, device, torch, rng)
    assert_close(x.grad, tx.grad)
    twins.check_gradients(model)


@pytest.mark.parametrize("shape", [(6, 4), (2, 3, 4), (2, 1, 3, 4), (4,)], ids=str)
def test_layer_norm_of_any_rank(device, torch, rng, shape):
    layer = nn.LayerNorm(4, device=device)
    for p in layer.parameters():
        p.data = ndl.Tensor(rng.standard_normal(4), device=device, dtype="float32")
    x, tx = pair(rng.standard_normal(shape), device, torch)
    twins = Twins(torch)
    y, ty = layer(x), twins.norm(layer, tx)
    assert_close(y, ty)
    backward(y, ty, device, torch, rng)
    assert_close(x.grad, tx.grad)
    twins.check_gradients(layer)
