"""Attention and the transformer in plain numpy, float64: what the tests of this stage expect."""

import math

import numpy as np

EPS = 1e-5
LOWEST = float(np.finfo(np.float32).min)


def random(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def dropout(x, p, draws):
    """Drop by one draw of x's shape from a RandomState; draw nothing without one."""
    return x if draws is None else x * (draws.rand(*x.shape) <= 1 - p) / (1 - p)


def attention(q, k, v, causal=False, p=0.0, draws=None):
    """Return the result (B, H, T, D) and the probabilities (B, H, T, S)."""
    q, k, v = (np.asarray(x, dtype=np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(2, 3) / math.sqrt(q.shape[3])
    if causal:
        queries, keys = scores.shape[2:]
        later = np.arange(keys) > np.arange(queries)[:, None] + keys - queries
        scores = np.where(later, LOWEST, scores)
    weights = np.exp(scores - scores.max(axis=3, keepdims=True))
    probs = dropout(weights / weights.sum(axis=3, keepdims=True), p, draws)
    return probs @ v, probs


def layer_norm(x, weight, bias):
    """Normalise over the last axis."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(x.var(axis=-1, keepdims=True) + EPS) * weight + bias


def attention_layer(of, q, k, v, heads, causal=True, p=0.0, draws=None):
    """Return (B, T, out_features); `of` has the parameters by name, such as "prenorm_q.weight"."""

    def split(x, name):
        x = np.asarray(x, dtype=np.float64)
        normed = layer_norm(x, of[f"prenorm_{name}.weight"], of[f"prenorm_{name}.bias"])
        rows = normed @ of[f"{name}_projection.weight"]
        return rows.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)

    parts = (split(x, name) for x, name in zip((q, k, v), "qkv", strict=True))
    result, _ = attention(*parts, causal, p, draws)
    merged = result.swapaxes(1, 2).reshape(*q.shape[:2], -1)
    return merged @ of["out_projection.weight"]


def transformer_layer(of, x, heads, causal=True, p=0.0, draws=None):
    """Return (B, T, F); `of` has the parameters of `drawn_layer`."""
    x = np.asarray(x, dtype=np.float64)
    y = attention_layer(of, x, x, x, heads, causal, p, draws)
    x = x + dropout(y, p, draws)
    rows = layer_norm(x, of["norm.weight"], of["norm.bias"])
    y = np.maximum(rows @ of["linear1.weight"] + of["linear1.bias"], 0)
    y = dropout(y, p, draws) @ of["linear2.weight"] + of["linear2.bias"]
    return x + dropout(y, p, draws)


def transformer(positions, layers, x, heads, causal=True, p=0.0, draws=None):
    """Return (B, T, E) of an input (B, T, E)."""
    x = np.asarray(x, dtype=np.float64) + positions[: x.shape[1]]
    for of in layers:
        x = transformer_layer(of, x, heads, causal, p, draws)
    return x


# --- the parameters that a seed gives ---


def kaiming(draws, fan_in, fan_out):
    bound = math.sqrt(2) * math.sqrt(3 / fan_in)
    return draws.rand(fan_in, fan_out) * 2 * bound - bound


def drawn_attention(draws, features, inner):
    """Return a new AttentionLayer's parameters by name, in the order of their creation."""
    of = {}
    for name in "qkv":
        of[f"prenorm_{name}.weight"] = np.ones(features)
        of[f"prenorm_{name}.bias"] = np.zeros(features)
    for name in "qkv":
        of[f"{name}_projection.weight"] = kaiming(draws, features, inner)
    of["out_projection.weight"] = kaiming(draws, inner, features)
    return of


def drawn_layer(draws, features, inner, hidden):
    """Return a new TransformerLayer's parameters by name, in the order of their creation."""
    of = drawn_attention(draws, features, inner)
    of |= {"norm.weight": np.ones(features), "norm.bias": np.zeros(features)}
    of["linear1.weight"] = kaiming(draws, features, hidden)
    of["linear1.bias"] = kaiming(draws, hidden, 1).reshape(1, hidden)
    of["linear2.weight"] = kaiming(draws, hidden, features)
    of["linear2.bias"] = kaiming(draws, features, 1).reshape(1, features)
    return of


def missing_parameters(got, expected):
    """Return the names of the expected parameters that are not among the got arrays."""
    left = list(got)
    missing = []
    for name, value in expected.items():
        for i, array in enumerate(left):
            if array.shape == value.shape and np.allclose(array, value, rtol=1e-4, atol=1e-6):
                del left[i]
                break
        else:
            missing.append(name)
    return missing
