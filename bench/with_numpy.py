"""numpy's side: what a numpy user writes for each operation.

An operation takes numpy inputs and returns a call without arguments: that call is timed.
"""

from collections.abc import Callable
from functools import partial
from operator import add, matmul
from typing import Any

import numpy as np

__all__ = ["OPERATIONS", "facts", "mlp", "to_numpy"]


def facts() -> dict[str, Any]:
    """Return what the first line of a table says about this library."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {"version": f"numpy {np.__version__} ({blas['name']} {blas['version']})"}


def to_numpy(result: Any) -> np.ndarray:
    """Return a result as a numpy array."""
    return np.asarray(result)


def on_arrays(function: Callable[..., Any]) -> Callable[..., Callable[[], Any]]:
    return lambda *inputs: partial(function, *inputs)


def mlp(
    x: np.ndarray,
    y: np.ndarray,
    weight1: np.ndarray,
    bias1: np.ndarray,
    weight2: np.ndarray,
    bias2: np.ndarray,
) -> Callable[[], float]:
    """Return a training step of relu(x @ weight1 + bias1) @ weight2 + bias2, by hand."""
    parameters = [array.copy() for array in (weight1, bias1, weight2, bias2)]
    rows = np.arange(len(x))

    def step() -> float:
        weight1, bias1, weight2, bias2 = parameters
        hidden = np.maximum(x @ weight1 + bias1, 0)
        logits = hidden @ weight2 + bias2
        shifted = logits - logits.max(1, keepdims=True)
        exponentials = np.exp(shifted)
        totals = exponentials.sum(1, keepdims=True)
        loss = (np.log(totals[:, 0]) - shifted[rows, y]).mean()

        logits_grad = exponentials / totals
        logits_grad[rows, y] -= 1
        logits_grad /= len(x)
        hidden_grad = logits_grad @ weight2.T * (hidden > 0)
        grads = (
            x.T @ hidden_grad,
            hidden_grad.sum(0, keepdims=True),
            hidden.T @ logits_grad,
            logits_grad.sum(0, keepdims=True),
        )
        for parameter, grad in zip(parameters, grads, strict=True):
            parameter -= 0.1 * grad
        return loss

    return step


OPERATIONS = {
    "matmul": on_arrays(matmul),
    "matmul_transposed": on_arrays(lambda a, b: a.T @ b),
    "add": on_arrays(add),
    "exp": on_arrays(np.exp),
    "log": on_arrays(np.log),
    "tanh": on_arrays(np.tanh),
    "sigmoid": on_arrays(lambda a: 1 / (1 + np.exp(-a))),
    "sum axis 0": on_arrays(lambda a: a.sum(0)),
    "sum axis 1": on_arrays(lambda a: a.sum(1)),
    "sum all": on_arrays(lambda a: a.sum()),
    "max axis 0": on_arrays(lambda a: a.max(0)),
    "max axis 1": on_arrays(lambda a: a.max(1)),
    "max all": on_arrays(lambda a: a.max()),
    "transposed_copy": on_arrays(lambda a: a.T.copy()),
    "mlp": mlp,
}
