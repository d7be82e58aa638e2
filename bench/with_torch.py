"""PyTorch's side, eager: what a PyTorch user writes for each operation; see `with_numpy.py`."""

import os
from collections.abc import Callable
from functools import partial
from operator import add, matmul
from typing import Any

import numpy as np
import torch
from torch import nn

__all__ = ["OPERATIONS", "facts", "to_numpy"]

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def facts() -> dict[str, Any]:
    """Return what the first line of a table says about this library."""
    return {"version": f"PyTorch {torch.__version__}"}


def to_numpy(result: torch.Tensor) -> np.ndarray:
    """Return a result as a numpy array."""
    return result.detach().numpy()


def on_arrays(function: Callable[..., Any]) -> Callable[..., Callable[[], Any]]:
    return lambda *inputs: partial(function, *map(torch.from_numpy, inputs))


def graph_add(a: np.ndarray, b: np.ndarray) -> Callable[[], torch.Tensor]:
    return partial(add, torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True))


def graph_add_backward(
    a: np.ndarray, b: np.ndarray, out_grad: np.ndarray
) -> Callable[[], torch.Tensor]:
    x, y = torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)
    seed = torch.from_numpy(out_grad)

    def step() -> torch.Tensor:
        x.grad = y.grad = None  # else it adds to the last gradients
        (x + y).backward(seed)
        return x.grad

    return step


def training_step(
    model: nn.Module,
    optimizer: Callable[..., torch.optim.Optimizer],
    x: np.ndarray,
    y: np.ndarray,
    weights: tuple[np.ndarray, ...],
) -> Callable[[], torch.Tensor]:
    """Return a training step of `model`, which starts with `weights` as needle stores them."""
    with torch.no_grad():
        for parameter, weight in zip(model.parameters(), weights, strict=True):
            stored = weight.T if parameter.ndim == 2 else weight.reshape(-1)
            parameter.copy_(torch.from_numpy(stored))
    images, labels = torch.from_numpy(x), torch.from_numpy(y)
    opt = optimizer(model.parameters())
    loss_of = nn.CrossEntropyLoss()

    def step() -> torch.Tensor:
        opt.zero_grad()
        loss = loss_of(model(images), labels)
        loss.backward()
        opt.step()
        return loss

    return step


def mlp(x: np.ndarray, y: np.ndarray, *weights: np.ndarray) -> Callable[[], torch.Tensor]:
    model = nn.Sequential(nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10))
    return training_step(model, partial(torch.optim.SGD, lr=0.1), x, y, weights)


class Residual(nn.Module):
    """relu(x + two linear layers of x)."""

    def __init__(self, dim: int, drop_prob: float) -> None:
        super().__init__()
        half = dim // 2
        self.body = nn.Sequential(
            nn.Linear(dim, half),
            nn.BatchNorm1d(half),
            nn.ReLU(),
            nn.Dropout(drop_prob),
            nn.Linear(half, dim),
            nn.BatchNorm1d(dim),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (B, dim) to (B, dim)."""
        return torch.relu(self.body(x) + x)


def mlp_resnet(
    x: np.ndarray, y: np.ndarray, *weights: np.ndarray, drop_prob: float = 0.1
) -> Callable[[], torch.Tensor]:
    blocks = [Residual(100, drop_prob) for _ in range(3)]
    model = nn.Sequential(nn.Linear(784, 100), nn.ReLU(), *blocks, nn.Linear(100, 10))
    return training_step(model, partial(torch.optim.Adam, lr=0.001), x, y, weights)


OPERATIONS = {
    "matmul": on_arrays(matmul),
    "matmul_transposed": on_arrays(lambda a, b: a.T @ b),
    "add": on_arrays(add),
    "exp": on_arrays(torch.exp),
    "log": on_arrays(torch.log),
    "tanh": on_arrays(torch.tanh),
    "sigmoid": on_arrays(torch.sigmoid),
    "sum axis 0": on_arrays(lambda a: a.sum(0)),
    "sum axis 1": on_arrays(lambda a: a.sum(1)),
    "sum all": on_arrays(lambda a: a.sum()),
    "max axis 0": on_arrays(lambda a: a.amax(0)),
    "max axis 1": on_arrays(lambda a: a.amax(1)),
    "max all": on_arrays(lambda a: a.max()),
    "transposed_copy": on_arrays(lambda a: a.t().contiguous()),
    "graph_add": graph_add,
    "graph_add_backward": graph_add_backward,
    "mlp": mlp,
    "mlp_resnet": mlp_resnet,
    "mlp_resnet_without_dropout": partial(mlp_resnet, drop_prob=0.0),
}
