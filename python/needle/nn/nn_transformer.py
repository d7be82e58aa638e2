"""Attention and the transformer: the activation, the layer, the pre-norm block, the model.

Vaswani et al. 2017, with the normalisation before each part (Xiong et al. 2020). Linear and
LayerNorm1d come from `nn_basic.py`, the table of positions is `nn_sequence.py`'s Embedding.
"""

import math
from typing import Any

import numpy as np

from needle import init, ops
from needle.autograd import Tensor
from needle.backend_selection import array_api
from needle.errors import ShapeError
from needle.nn.nn_basic import Dropout, LayerNorm1d, Linear, Module
from needle.nn.nn_sequence import Embedding

__all__ = ["AttentionLayer", "MultiHeadAttention", "Transformer", "TransformerLayer"]


class MultiHeadAttention(Module):
    """softmax(q kᵀ / sqrt(D)) v for each head, with dropout on the probabilities: an activation
    without weights.

    With `causal`, a query sees no key that comes after it; the last query sees all keys. `device`
    and `dtype` are taken as by every layer; the mask follows the input.
    """

    def __init__(
        self,
        *,
        dropout: float = 0.0,
        causal: bool = False,
        device: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        self.causal = causal
        self.dropout = Dropout(dropout)

    def create_causal_mask(self, i: int, j: int, device: Any, dtype: Any = "float32") -> Any:
        """Return an array (1, 1, i, j) to add to scores of i queries and j keys: the lowest float32
        where a query would see a later key, else 0.

        The last query stands at the last key; the others before it.
        """
        lowest = float(np.finfo(np.float32).min)
        mask = np.triu(np.full((1, 1, i, j), lowest), j - i + 1)
        return array_api.array(mask, dtype=dtype, device=device)

    def matmul(self, a: Tensor, b_transpose: Tensor) -> Tensor:
        """Return (..., m, n) @ (..., p, n)ᵀ, a product for each head: (..., m, p)."""
        return a @ b_transpose.transpose()

    def softmax(self, logit: Tensor) -> Tensor:
        """Return the softmax over the last of four axes, stable at any magnitude."""
        ### UNTIL hw5
        # total = ops.logsumexp(logit, (3,)).reshape((*logit.shape[:3], 1))
        # return ops.exp(logit - total.broadcast_to(logit.shape))
        ### END UNTIL
        ### SINCE full
        return ops.softmax(logit, -1)
        ### END SINCE

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Map queries (B, H, T, D), keys and values (B, H, S, D) to the result (B, H, T, D) and the
        probabilities (B, H, T, S), dropout included.

        Raises:
            ShapeError: if the shapes do not fit.
        """
        self._check(q, k, v)
        ### BEGIN SOLUTION hw5.attention.forward
        scores = self.matmul(q, k) / math.sqrt(q.shape[3])
        if self.causal:
            mask = self.create_causal_mask(q.shape[2], k.shape[2], q.device, q.dtype)
            scores = scores + Tensor.make_const(mask).broadcast_to(scores.shape)
        probs = self.dropout(self.softmax(scores))
        return probs @ v, probs
        ### END SOLUTION

    def _check(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        fits = q.ndim == k.ndim == v.ndim == 4 and q.shape[:2] == k.shape[:2]
        if not fits or q.shape[3] != k.shape[3] or k.shape[:3] != v.shape[:3]:
            raise ShapeError(
                f"[MultiHeadAttention] q {q.shape}, k {k.shape}, v {v.shape}; give (batch, heads, "
                "time, dim) with equal batch and heads, q and k of one dim, k and v of one time"
            )

    ### SINCE full
    def extra_repr(self) -> str:
        """Return the kind."""
        return f"causal={self.causal}"

    ### END SINCE


class AttentionLayer(Module):
    """Multi-head attention with weights: normalise and project q, k and v, attend, project back.

    The sizes of k and v default to q_features, and so does the output's, out_features.
    """

    def __init__(
        self,
        q_features: int,
        num_head: int,
        dim_head: int,
        *,
        k_features: int | None = None,
        v_features: int | None = None,
        out_features: int | None = None,
        dropout: float = 0.0,
        causal: bool = True,
        device: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        self.q_features = q_features
        self.k_features = q_features if k_features is None else k_features
        self.v_features = q_features if v_features is None else v_features
        self.out_features = q_features if out_features is None else out_features
        self.num_head = num_head
        self.dim_head = dim_head
        inner = num_head * dim_head
        place = {"device": device, "dtype": dtype}

        self.prenorm_q = LayerNorm1d(self.q_features, **place)
        self.prenorm_k = LayerNorm1d(self.k_features, **place)
        self.prenorm_v = LayerNorm1d(self.v_features, **place)
        self.q_projection = Linear(self.q_features, inner, bias=False, **place)
        self.k_projection = Linear(self.k_features, inner, bias=False, **place)
        self.v_projection = Linear(self.v_features, inner, bias=False, **place)
        self.attn = MultiHeadAttention(dropout=dropout, causal=causal, **place)
        self.out_projection = Linear(inner, self.out_features, bias=False, **place)

    def forward(self, q: Tensor, k: Tensor | None = None, v: Tensor | None = None) -> Tensor:
        """Map q (B, T, q_features), k (B, S, k_features) and v (B, S, v_features) to
        (B, T, out_features); a missing k or v is q.

        Raises:
            ShapeError: if the shapes do not fit.
        """
        k = q if k is None else k
        v = q if v is None else v
        self._check(q, k, v)
        ### BEGIN SOLUTION hw5.attention_layer.forward
        result, _ = self.attn(
            self.heads(q, self.prenorm_q, self.q_projection),
            self.heads(k, self.prenorm_k, self.k_projection),
            self.heads(v, self.prenorm_v, self.v_projection),
        )
        batch, heads, time, dim = result.shape
        rows = result.transpose((1, 2)).reshape((batch * time, heads * dim))
        return self.out_projection(rows).reshape((batch, time, self.out_features))
        ### END SOLUTION

    def heads(self, x: Tensor, norm: Module, projection: Module) -> Tensor:
        """Normalise and project (B, T, F), and put the heads beside the batch: (B, H, T, D)."""
        ### BEGIN SOLUTION hw5.attention_layer.heads
        batch, time, features = x.shape
        rows = projection(norm(x.reshape((batch * time, features))))
        return rows.reshape((batch, time, self.num_head, self.dim_head)).transpose((1, 2))
        ### END SOLUTION

    def _check(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        sizes = (self.q_features, self.k_features, self.v_features)
        given = (q, k, v)
        fits = all(x.ndim == 3 and x.shape[2] == n for x, n in zip(given, sizes, strict=True))
        if not fits or q.shape[0] != k.shape[0] or k.shape[:2] != v.shape[:2]:
            raise ShapeError(
                f"[AttentionLayer] q {q.shape}, k {k.shape}, v {v.shape}; give (batch, time, "
                f"features) of {sizes} features, one batch, and one time for k and v"
            )

    ### SINCE full
    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.q_features}, num_head={self.num_head}, dim_head={self.dim_head}"

    ### END SINCE


class TransformerLayer(Module):
    """x + attention(x), then x + MLP(norm(x)): Linear, ReLU, Linear, with dropout after each part
    and after the ReLU.
    """

    def __init__(
        self,
        q_features: int,
        num_head: int,
        dim_head: int,
        hidden_size: int,
        *,
        dropout: float = 0.0,
        causal: bool = True,
        device: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        self.q_features = q_features
        place = {"device": device, "dtype": dtype}
        ### BEGIN SOLUTION hw5.transformer_layer.init
        self.attention = AttentionLayer(
            q_features, num_head, dim_head, dropout=dropout, causal=causal, **place
        )
        self.norm = LayerNorm1d(q_features, **place)
        self.linear1 = Linear(q_features, hidden_size, **place)
        self.linear2 = Linear(hidden_size, q_features, **place)
        self.dropout = Dropout(dropout)
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, time, q_features) to the same shape; ShapeError if `x` has another."""
        if x.ndim != 3 or x.shape[2] != self.q_features:
            raise ShapeError(
                f"[TransformerLayer] input {x.shape} is not (batch, time, {self.q_features})"
            )
        ### BEGIN SOLUTION hw5.transformer_layer.forward
        x = x + self.dropout(self.attention(x))
        batch, time, features = x.shape
        rows = self.norm(x.reshape((batch * time, features)))
        rows = self.dropout(ops.relu(self.linear1(rows)))
        rows = self.dropout(self.linear2(rows))
        return x + rows.reshape(x.shape)
        ### END SOLUTION


class Transformer(Module):
    """A learned vector for each position added to the input, then `num_layers` TransformerLayers.

    It stands in for a recurrent layer: (time, batch, features) unless `batch_first`, and a state
    that it returns but does not need.
    """

    def __init__(
        self,
        embedding_size: int,
        hidden_size: int,
        num_layers: int,
        *,
        num_head: int = 8,
        dim_head: int = 32,
        dropout: float = 0.0,
        causal: bool = True,
        device: Any = None,
        dtype: Any = "float32",
        batch_first: bool = False,
        sequence_len: int = 2048,
    ) -> None:
        super().__init__()
        self.embedding_size = embedding_size
        self.batch_first = batch_first
        self.sequence_len = sequence_len
        place = {"device": device, "dtype": dtype}
        ### BEGIN SOLUTION hw5.transformer.init
        self.positions = Embedding(sequence_len, embedding_size, **place)
        settings = {"dropout": dropout, "causal": causal, **place}
        self.layers = [
            TransformerLayer(embedding_size, num_head, dim_head, hidden_size, **settings)
            for _ in range(num_layers)
        ]
        ### END SOLUTION

    def forward(self, x: Tensor, h: Any = None) -> tuple[Tensor, Tensor]:
        """Map (time, batch, embedding_size) to the same shape, and zeros in place of a state.

        With `batch_first` the input and the output are (batch, time, embedding_size). `h` is
        ignored.

        Raises:
            ShapeError: if `x` has another shape, or more than sequence_len steps.
        """
        self._check(x)
        ### BEGIN SOLUTION hw5.transformer.forward
        if not self.batch_first:
            x = x.transpose((0, 1))
        time = x.shape[1]
        ids = Tensor(np.arange(time).reshape(1, time), device=x.device, requires_grad=False)
        x = x + self.positions(ids).broadcast_to(x.shape)
        for layer in self.layers:
            x = layer(x)
        if not self.batch_first:
            x = x.transpose((0, 1))
        return x, init.zeros_like(x)
        ### END SOLUTION

    ### SINCE full
    def extra_repr(self) -> str:
        """Return the sizes."""
        return (
            f"{self.embedding_size}, batch_first={self.batch_first}, "
            f"sequence_len={self.sequence_len}"
        )

    ### END SINCE

    def _check(self, x: Tensor) -> None:
        if x.ndim != 3 or x.shape[2] != self.embedding_size:
            axes = "batch, time" if self.batch_first else "time, batch"
            raise ShapeError(
                f"[Transformer] input {x.shape} is not ({axes}, {self.embedding_size})"
            )
        time = x.shape[1 if self.batch_first else 0]
        if time > self.sequence_len:
            raise ShapeError(
                f"[Transformer] {time} time steps; there are positions for "
                f"sequence_len={self.sequence_len}: make a model with more, or cut the input"
            )
