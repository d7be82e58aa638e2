"""needle's side, on cpu(): what a needle user writes for each operation; see `with_numpy.py`.

The operations called "course ..." run a kernel of the course on compact buffers, with its output
made beforehand; the others allocate their results.
"""

from collections.abc import Callable
from functools import partial
from operator import add, matmul
from typing import Any

import numpy as np

import needle as ndl
from apps.mlp_resnet import MLPResNet
from needle import nn

__all__ = ["OPERATIONS", "facts", "specified_mlp_resnet_losses", "to_numpy"]

array_api = ndl.array_api


def facts() -> dict[str, Any]:
    """Return what the tables say about this library; DeviceError if cpu() is not built."""
    device = ndl.cpu()
    device.check_dtype("float32", "bench")
    return {
        "version": f"needle {ndl.__version__} ({device.mod.isa()})",
        "isas": device.mod.supported_isas(),
    }


def to_numpy(result: Any) -> np.ndarray:
    """Return a result as a numpy array."""
    return result.numpy()


def array(values: np.ndarray) -> ndl.NDArray:
    return array_api.array(values, device=ndl.cpu())


def on_arrays(function: Callable[..., Any]) -> Callable[..., Callable[[], Any]]:
    return lambda *inputs: partial(function, *map(array, inputs))


# --- the course's kernels ---


def course_binary(kernel: str, a: np.ndarray, b: np.ndarray) -> Callable[[], ndl.NDArray]:
    x, y = array(a), array(b)
    out = array_api.empty(a.shape, device=ndl.cpu())
    run = partial(getattr(ndl.cpu(), kernel), x._handle, y._handle, out._handle)
    return returning(out, run)


def course_matmul(a: np.ndarray, b: np.ndarray) -> Callable[[], ndl.NDArray]:
    (m, n), p = a.shape, b.shape[1]
    x, y = array(a), array(b)
    out = array_api.empty((m, p), device=ndl.cpu())
    run = partial(ndl.cpu().matmul, x._handle, y._handle, out._handle, m, n, p)
    return returning(out, run)


def course_matmul_tiled(a: np.ndarray, b: np.ndarray) -> Callable[[], ndl.NDArray]:
    (m, n), p = a.shape, b.shape[1]
    tile = ndl.cpu().__tile_size__
    x, y = array(tiled(a, tile)), array(tiled(b, tile))
    out = array_api.empty((m // tile, p // tile, tile, tile), device=ndl.cpu())
    run = partial(ndl.cpu().matmul_tiled, x._handle, y._handle, out._handle, m, n, p)
    return returning(out.permute((0, 2, 1, 3)), run)


def tiled(a: np.ndarray, tile: int) -> np.ndarray:
    """Return (m, n) as (m/tile, n/tile, tile, tile)."""
    m, n = a.shape
    return a.reshape(m // tile, tile, n // tile, tile).transpose(0, 2, 1, 3)


def course_reduction(kernel: str, a: np.ndarray) -> Callable[[], ndl.NDArray]:
    """Reduce over the last axis."""
    rows, reduce_size = a.shape
    x = array(a)
    out = array_api.empty((rows,), device=ndl.cpu())
    run = partial(getattr(ndl.cpu(), kernel), x._handle, out._handle, reduce_size)
    return returning(out, run)


def course_compact(a: np.ndarray) -> Callable[[], ndl.NDArray]:
    x = array(a).permute((1, 0))
    out = array_api.empty(x.shape, device=ndl.cpu())
    run = partial(ndl.cpu().compact, x._handle, out._handle, x.shape, x.strides, 0)
    return returning(out, run)


def returning(out: ndl.NDArray, run: Callable[[], None]) -> Callable[[], ndl.NDArray]:
    """Return a call that runs a kernel and gives its output."""

    def call() -> ndl.NDArray:
        run()
        return out

    return call


# --- autograd and training ---


def tensor(values: np.ndarray, requires_grad: bool = True) -> ndl.Tensor:
    return ndl.Tensor(values, device=ndl.cpu(), requires_grad=requires_grad)


def graph_add(a: np.ndarray, b: np.ndarray) -> Callable[[], ndl.Tensor]:
    return partial(add, tensor(a), tensor(b))


def graph_add_backward(
    a: np.ndarray, b: np.ndarray, out_grad: np.ndarray
) -> Callable[[], ndl.Tensor]:
    x, y, seed = tensor(a), tensor(b), tensor(out_grad, requires_grad=False)

    def step() -> ndl.Tensor:
        (x + y).backward(seed)
        return x.grad

    return step


def training_step(
    model: nn.Module,
    optimizer: Callable[..., ndl.optim.Optimizer],
    x: np.ndarray,
    y: np.ndarray,
    weights: tuple[np.ndarray, ...],
    device: ndl.Device,
) -> Callable[[], ndl.Tensor]:
    """Return a training step of `model`, which starts with `weights`."""
    constant = partial(ndl.Tensor, device=device, requires_grad=False)
    model.to(device)
    for parameter, weight in zip(model.parameters(), weights, strict=True):
        parameter.data = constant(weight)
    images, labels = constant(x), constant(y)
    opt = optimizer(model.parameters())
    loss_of = nn.SoftmaxLoss()

    def step() -> ndl.Tensor:
        opt.reset_grad()
        loss = loss_of(model(images), labels)
        loss.backward()
        opt.step()
        return loss

    return step


def mlp(x: np.ndarray, y: np.ndarray, *weights: np.ndarray) -> Callable[[], ndl.Tensor]:
    model = nn.Sequential(nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10))
    return training_step(model, partial(ndl.optim.SGD, lr=0.1), x, y, weights, ndl.cpu())


def mlp_resnet(
    x: np.ndarray,
    y: np.ndarray,
    *weights: np.ndarray,
    drop_prob: float = 0.1,
    device: ndl.Device | None = None,
) -> Callable[[], ndl.Tensor]:
    model = MLPResNet(784, hidden_dim=100, num_blocks=3, num_classes=10, drop_prob=drop_prob)
    opt = partial(ndl.optim.Adam, lr=0.001)
    return training_step(model, opt, x, y, weights, ndl.cpu() if device is None else device)


def specified_mlp_resnet_losses(*inputs: np.ndarray, steps: int) -> list[float]:
    """Return the losses that the specification of our kernels, written in numpy, gives."""
    step = mlp_resnet(*inputs, drop_prob=0.0, device=ndl.cpu_numpy())
    return [step().item() for _ in range(steps)]


OPERATIONS = {
    "matmul": on_arrays(matmul),
    "matmul_transposed": on_arrays(lambda a, b: a.permute((1, 0)) @ b),
    "add": on_arrays(add),
    "exp": on_arrays(array_api.exp),
    "log": on_arrays(array_api.log),
    "tanh": on_arrays(array_api.tanh),
    "sigmoid": on_arrays(array_api.sigmoid),
    "sum axis 0": on_arrays(lambda a: a.sum(0)),
    "sum axis 1": on_arrays(lambda a: a.sum(1)),
    "sum all": on_arrays(lambda a: a.sum()),
    "max axis 0": on_arrays(lambda a: a.max(0)),
    "max axis 1": on_arrays(lambda a: a.max(1)),
    "max all": on_arrays(lambda a: a.max()),
    "transposed_copy": on_arrays(lambda a: a.permute((1, 0)).compact()),
    "course matmul": course_matmul,
    "course matmul_tiled": course_matmul_tiled,
    "course ewise_add": partial(course_binary, "ewise_add"),
    "course reduce_sum": partial(course_reduction, "reduce_sum"),
    "course reduce_max": partial(course_reduction, "reduce_max"),
    "course compact": course_compact,
    "graph_add": graph_add,
    "graph_add_backward": graph_add_backward,
    "mlp": mlp,
    "mlp_resnet": mlp_resnet,
    "mlp_resnet_without_dropout": partial(mlp_resnet, drop_prob=0.0),
}
