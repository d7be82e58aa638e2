"""Layers over sequences: recurrent cells, the layers that run them through time, embeddings.

A cell makes one step; a layer runs its cells over every step of a (seq, batch, features) input.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from needle import init, ops
from needle.autograd import Tensor, TensorTuple
from needle.errors import IndexingError, NeedleError, ShapeError
from needle.nn.nn_basic import Module, Parameter

__all__ = ["GRU", "LSTM", "RNN", "Embedding", "GRUCell", "LSTMCell", "RNNCell"]

NONLINEARITIES = {"tanh": ops.tanh, "relu": ops.relu}


# --- cells: one step ---


class RecurrentCell(Module):
    """The weights of a cell: W_ih (input_size, columns) for the input, W_hh (hidden_size, columns)
    for the state, and a bias (columns,) for each.

    The columns are `blocks` blocks of hidden_size. All are uniform in ±1 / sqrt(hidden_size).
    """

    blocks = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        ### BEGIN SOLUTION hw4.recurrent_cell.init
        columns = self.blocks * hidden_size
        bound = 1 / math.sqrt(hidden_size)

        def uniform(*shape: int) -> Parameter:
            return Parameter(init.rand(*shape, low=-bound, high=bound, device=device, dtype=dtype))

        self.W_ih = uniform(input_size, columns)
        self.W_hh = uniform(hidden_size, columns)
        self.bias_ih = uniform(columns) if bias else None
        self.bias_hh = uniform(columns) if bias else None
        ### END SOLUTION

    def project(self, X: Tensor) -> Tensor:
        """Return the part of the sums that waits for no state, X W_ih + bias_ih + bias_hh.

        A layer takes it for all time steps at once: one product of many rows is far quicker than
        many of few rows.
        """
        ### BEGIN SOLUTION hw4.recurrent_cell.project
        y = X @ self.W_ih
        if self.bias_ih is None or self.bias_hh is None:
            return y
        return y + (self.bias_ih + self.bias_hh).broadcast_to(y.shape)
        ### END SOLUTION

    def step(self, projected: Tensor, state: Any) -> Any:
        """Return the next state from what `project` returned; each cell defines its own."""
        raise NotImplementedError

    def _check_input(self, X: Tensor) -> None:
        """Raise ShapeError unless `X` is (batch, input_size)."""
        if X.ndim != 2 or X.shape[1] != self.input_size:
            raise ShapeError(
                f"[{type(self).__name__}] input {X.shape} is not (batch, {self.input_size})"
            )

    ### SINCE full
    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.input_size}, {self.hidden_size}, bias={self.bias_ih is not None}"

    ### END SINCE


class RNNCell(RecurrentCell):
    """h' = tanh(x W_ih + bias_ih + h W_hh + bias_hh), or relu in place of tanh (Elman 1990).

    Raises:
        NeedleError: for another nonlinearity than "tanh" and "relu".
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = "float32",
    ) -> None:
        if nonlinearity not in NONLINEARITIES:
            raise NeedleError(
                f"[RNNCell] nonlinearity {nonlinearity!r} is not known; give 'tanh' or 'relu'"
            )
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, X: Tensor, h: Tensor | None = None) -> Tensor:
        """Map an input (batch, input_size) and a state (batch, hidden_size) to the next state.

        A missing state is zeros.

        Raises:
            ShapeError: if a shape does not fit.
        """
        self._check_input(X)
        h = _state_or_zeros("RNNCell", h, (X.shape[0], self.hidden_size), X)
        ### BEGIN SOLUTION hw4.rnn_cell.forward
        return self.step(self.project(X), h)
        ### END SOLUTION

    def step(self, projected: Tensor, state: Tensor) -> Tensor:
        """Return the next state from what `project` returned and the state before."""
        ### BEGIN SOLUTION hw4.rnn_cell.step
        return NONLINEARITIES[self.nonlinearity](projected + state @ self.W_hh)
        ### END SOLUTION

    ### SINCE full
    def extra_repr(self) -> str:
        """Return the sizes and the nonlinearity."""
        return f"{super().extra_repr()}, nonlinearity={self.nonlinearity!r}"

    ### END SINCE


class LSTMCell(RecurrentCell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al.
    2000).

    With i, f, g, o the blocks, in this order, of x W_ih + bias_ih + h W_hh + bias_hh:
    c' = sigmoid(f) c + sigmoid(i) tanh(g) and h' = sigmoid(o) tanh(c').
    """

    blocks = 4

    def forward(self, X: Tensor, h: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Map an input (batch, input_size) and a state to the next state.

        A state is a pair (h, c), each (batch, hidden_size); a missing one is zeros.

        Raises:
            ShapeError: if a shape does not fit, or the state is no pair.
        """
        self._check_input(X)
        ### BEGIN SOLUTION hw4.lstm_cell.forward
        state = _pair_or_zeros("LSTMCell", h, (X.shape[0], self.hidden_size), X)
        return self.step(self.project(X), state)
        ### END SOLUTION

    def step(self, projected: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the next state from what `project` returned and the state before."""
        ### BEGIN SOLUTION hw4.lstm_cell.step
        h, c = state
        i, f, g, o = _blocks(projected + h @ self.W_hh, 4)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c), c
        ### END SOLUTION


### SINCE full
class GRUCell(RecurrentCell):
    """Gated recurrent unit (Cho et al. 2014), with the reset gate after the product as in PyTorch.

    With the blocks r, z, n, in this order, of x W_ih + bias_ih and of h W_hh + bias_hh:
    r = sigmoid(x_r + h_r), z = sigmoid(x_z + h_z), n = tanh(x_n + r h_n) and
    h' = (1 - z) n + z h.
    """

    blocks = 3

    def forward(self, X: Tensor, h: Tensor | None = None) -> Tensor:
        """Map an input (batch, input_size) and a state (batch, hidden_size) to the next state.

        A missing state is zeros.

        Raises:
            ShapeError: if a shape does not fit.
        """
        self._check_input(X)
        h = _state_or_zeros("GRUCell", h, (X.shape[0], self.hidden_size), X)
        return self.step(self.project(X), h)

    def project(self, X: Tensor) -> Tensor:
        """Return X W_ih + bias_ih; bias_hh belongs to the state's sums, which r scales."""
        y = X @ self.W_ih
        return y if self.bias_ih is None else y + self.bias_ih.broadcast_to(y.shape)

    def step(self, projected: Tensor, state: Tensor) -> Tensor:
        """Return the next state from what `project` returned and the state before."""
        sums = state @ self.W_hh
        if self.bias_hh is not None:
            sums = sums + self.bias_hh.broadcast_to(sums.shape)
        x_r, x_z, x_n = _blocks(projected, 3)
        h_r, h_z, h_n = _blocks(sums, 3)
        r = ops.sigmoid(x_r + h_r)
        z = ops.sigmoid(x_z + h_z)
        n = ops.tanh(x_n + r * h_n)
        return n + z * (state - n)


### END SINCE
def _blocks(sums: Tensor, count: int) -> TensorTuple:
    """Return the `count` blocks of columns of (batch, count * hidden_size)."""
    ### BEGIN SOLUTION hw4.lstm_cell.blocks
    batch, columns = sums.shape
    return ops.split(sums.reshape((batch, count, columns // count)), 1)
    ### END SOLUTION


def _state_or_zeros(layer: str, state: Any, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Return `state` if it is a Tensor of `shape`, zeros for None, else raise ShapeError.

    The zeros go through the same products as a state would, so that the weights get a gradient.
    """
    if state is None:
        return init.zeros(*shape, device=like.device, dtype=like.dtype)
    if not isinstance(state, Tensor):
        raise ShapeError(f"[{layer}] the state is a {type(state).__name__}; give a Tensor {shape}")
    if state.shape != shape:
        raise ShapeError(f"[{layer}] state {state.shape} is not {shape}, as the input needs")
    return state


def _pair_or_zeros(
    layer: str, state: Any, shape: tuple[int, ...], like: Tensor
) -> tuple[Tensor, Tensor]:
    """Return a state (h, c) checked by `_state_or_zeros`, zeros for None."""
    if state is None:
        state = (None, None)
    if not isinstance(state, tuple | list) or len(state) != 2:
        raise ShapeError(f"[{layer}] the state is a {type(state).__name__}; give a pair (h, c)")
    h, c = (_state_or_zeros(layer, part, shape, like) for part in state)
    return h, c


# --- layers: all steps ---


class RecurrentLayer(Module):
    """What the layers share: the sizes of `num_layers` cells on top of each other."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int, bias: bool) -> None:
        super().__init__()
        if num_layers < 1:
            raise NeedleError(f"[{type(self).__name__}] num_layers={num_layers}; give 1 or more")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias

    def _input_sizes(self) -> Sequence[int]:
        """Return the number of features that each layer takes: the first the input's."""
        return [self.input_size] + [self.hidden_size] * (self.num_layers - 1)

    def _state_shape(self, X: Tensor) -> tuple[int, int, int]:
        """Return the shape of all layers' state; ShapeError unless `X` is (seq, batch,
        input_size).
        """
        name = type(self).__name__
        if X.ndim != 3 or X.shape[2] != self.input_size:
            raise ShapeError(f"[{name}] input {X.shape} is not (seq, batch, {self.input_size})")
        if X.shape[0] == 0:
            raise ShapeError(f"[{name}] input {X.shape} has no time step; give one or more")
        return self.num_layers, X.shape[1], self.hidden_size

    ### SINCE full
    def extra_repr(self) -> str:
        """Return the sizes."""
        return (
            f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}, bias={self.bias}"
        )

    ### END SINCE


def _states_over_time(cell: RecurrentCell, X: Tensor, state: Any) -> list[Any]:
    """Return the cell's state after each step of `X` (seq, batch, features), from `state` on."""
    ### BEGIN SOLUTION hw4.recurrent.states_over_time
    seq, batch, features = X.shape
    projected = cell.project(X.reshape((seq * batch, features)))
    states = []
    for x in ops.split(projected.reshape((seq, batch, projected.shape[1])), 0):
        state = cell.step(x, state)
        states.append(state)
    return states
    ### END SOLUTION


class RNN(RecurrentLayer):
    """`num_layers` RNNCells on top of each other, over a sequence."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, bias)
        ### BEGIN SOLUTION hw4.rnn.init
        self.rnn_cells = [
            RNNCell(size, hidden_size, bias, nonlinearity, device, dtype)
            for size in self._input_sizes()
        ]
        ### END SOLUTION

    def forward(self, X: Tensor, h0: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Map (seq, batch, input_size) to the last layer's states (seq, batch, hidden_size) and
        every layer's last state.

        States of all layers are (num_layers, batch, hidden_size); a missing `h0` is zeros. A state
        that goes on to the next window of a long text is to be detached.

        Raises:
            ShapeError: if a shape does not fit, or there is no time step.
        """
        initial = _state_or_zeros("RNN", h0, self._state_shape(X), X)
        ### BEGIN SOLUTION hw4.rnn.forward
        last = []
        for cell, h in zip(self.rnn_cells, ops.split(initial, 0), strict=True):
            states = _states_over_time(cell, X, h)
            last.append(states[-1])
            X = ops.stack(states, 0)
        return X, ops.stack(last, 0)
        ### END SOLUTION


class LSTM(RecurrentLayer):
    """`num_layers` LSTMCells on top of each other, over a sequence."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        device: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, bias)
        ### BEGIN SOLUTION hw4.lstm.init
        self.lstm_cells = [
            LSTMCell(size, hidden_size, bias, device, dtype) for size in self._input_sizes()
        ]
        ### END SOLUTION

    def forward(
        self, X: Tensor, h: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Map (seq, batch, input_size) to the last layer's h (seq, batch, hidden_size) and every
        layer's last (h, c).

        h and c of all layers are (num_layers, batch, hidden_size); a missing pair is zeros. A state
        that goes on to the next window of a long text is to be detached.

        Raises:
            ShapeError: if a shape does not fit, the state is no pair, or there is no time step.
        """
        h0, c0 = _pair_or_zeros("LSTM", h, self._state_shape(X), X)
        ### BEGIN SOLUTION hw4.lstm.forward
        last_h, last_c = [], []
        for cell, *state in zip(self.lstm_cells, ops.split(h0, 0), ops.split(c0, 0), strict=True):
            states = _states_over_time(cell, X, state)
            last_h.append(states[-1][0])
            last_c.append(states[-1][1])
            X = ops.stack([h for h, _ in states], 0)
        return X, (ops.stack(last_h, 0), ops.stack(last_c, 0))
        ### END SOLUTION


### SINCE full
class GRU(RecurrentLayer):
    """`num_layers` GRUCells on top of each other, over a sequence."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        device: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, bias)
        self.gru_cells = [
            GRUCell(size, hidden_size, bias, device, dtype) for size in self._input_sizes()
        ]

    def forward(self, X: Tensor, h0: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Map (seq, batch, input_size) to the last layer's states (seq, batch, hidden_size) and
        every layer's last state; see RNN.

        Raises:
            ShapeError: if a shape does not fit, or there is no time step.
        """
        initial = _state_or_zeros("GRU", h0, self._state_shape(X), X)
        last = []
        for cell, h in zip(self.gru_cells, ops.split(initial, 0), strict=True):
            states = _states_over_time(cell, X, h)
            last.append(states[-1])
            X = ops.stack(states, 0)
        return X, ops.stack(last, 0)


### END SINCE
# --- words as vectors ---


class Embedding(Module):
    """A learned vector for each of `num_embeddings` ids, drawn from N(0, 1)."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, device: Any = None, dtype: Any = "float32"
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        ### BEGIN SOLUTION hw4.embedding.init
        self.weight = Parameter(
            init.randn(num_embeddings, embedding_dim, device=device, dtype=dtype)
        )
        ### END SOLUTION

    def forward(self, x: Any) -> Tensor:
        """Map ids of any shape, such as (seq, batch), to (*x.shape, embedding_dim).

        The ids are integers, also as floats: a Tensor (as loaders give) or an array.

        Raises:
            IndexingError: for an id that is not one of 0 .. num_embeddings-1.
        """
        ### UNTIL hw5
        # if not isinstance(x, Tensor):
        #     x = Tensor(x, device=self.weight.device, requires_grad=False)
        ### BEGIN SOLUTION hw4.embedding.forward
        # chosen = init.one_hot(self.num_embeddings, x, self.weight.device, self.weight.dtype)
        # rows = chosen.reshape((math.prod(x.shape), self.num_embeddings))
        # return (rows @ self.weight).reshape((*x.shape, self.embedding_dim))
        ### END SOLUTION
        ### END UNTIL
        ### SINCE full
        ids = x.numpy() if isinstance(x, Tensor) else np.asarray(x)
        wrong = (ids < 0) | (ids >= self.num_embeddings) | (ids != np.floor(ids))
        if wrong.any():
            raise IndexingError(
                f"[Embedding] id {ids[wrong].flat[0]:.15g} is not one of "
                f"0..{self.num_embeddings - 1}: num_embeddings={self.num_embeddings}"
            )
        return ops.take(self.weight, ids.astype("int64"))
        ### END SINCE

    ### SINCE full
    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.num_embeddings}, {self.embedding_dim}"

    ### END SINCE
