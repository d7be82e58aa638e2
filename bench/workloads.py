"""What is timed: inputs, the right result, and how fast needle wants to be.

A workload names an operation; `with_needle.py`, `with_numpy.py` and `with_torch.py` say how each
library does it. The right result is numpy's, in float64, or numpy-written needle's for a large
model.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bench import with_numpy

__all__ = ["BY_NAME", "LADDER", "LADDER_WORKLOADS", "WORKLOADS", "Rungs", "Target", "Workload"]

Inputs = tuple[Any, ...]


@dataclass(frozen=True)
class Target:
    """needle's time may be `ratio` times the library's."""

    library: str
    ratio: float


@dataclass(frozen=True)
class Workload:
    """One line of a table.

    Args:
        inputs: makes numpy arrays from a random generator.
        reference: the right result of `calls` calls, from the inputs in float64.
        tolerance: the error that is allowed, relative to the largest element of the result.
        checked_as: the operation that is checked in place of one whose result is random.
        amount, unit: the work of a call, for a rate: GFLOP, or GB read and written.
    """

    name: str
    group: str
    operation: str
    inputs: Callable[[np.random.Generator], Inputs]
    reference: Callable[..., Any]
    target: Target | None = None
    calls: int = 1
    tolerance: float = 1e-5
    checked_as: str | None = None
    amount: float = 0.0
    unit: str = ""

    def make_inputs(self) -> Inputs:
        """Return the inputs, the same in every process."""
        return self.inputs(np.random.default_rng(0))

    def expected(self) -> np.ndarray:
        """Return the right result."""
        exact = (x.astype("float64") if x.dtype == "float32" else x for x in self.make_inputs())
        return np.asarray(self.reference(*exact))


def uniform(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Inputs]:
    return lambda rng: tuple(rng.random(shape, dtype="float32") for shape in shapes)


def normal(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Inputs]:
    return lambda rng: tuple(rng.standard_normal(shape, dtype="float32") for shape in shapes)


# --- products ---

MATMUL_RATE = Target("numpy", 1.25)  # at least 0.8 of numpy's rate


def matmul(m: int, n: int, p: int, target: Target | None = None) -> Workload:
    """(m, n) @ (n, p)."""
    name = f"matmul {m}" if m == n == p else f"matmul {m} x {n} x {p}"
    work = 2e-9 * m * n * p
    shapes = normal((m, n), (n, p))
    return Workload(name, "matmul", "matmul", shapes, np.matmul, target, amount=work, unit="GFLOP")


PRODUCTS = (
    matmul(128, 128, 128),
    matmul(256, 256, 256),
    matmul(512, 512, 512, MATMUL_RATE),
    matmul(1024, 1024, 1024, MATMUL_RATE),
    matmul(2048, 2048, 2048),
    matmul(100, 784, 100),
    matmul(100, 100, 10),
    Workload(
        "matmul 784 x 100 x 100, transposed",  # a weight's gradient
        "matmul",
        "matmul_transposed",
        normal((100, 784), (100, 100)),
        lambda x, out_grad: x.T @ out_grad,
    ),
)

# --- elementwise, reductions, copies ---

AS_NUMPY = Target("numpy", 1.0)
SQUARE = (1000, 1000)


def add(name: str, *shapes: tuple[int, ...], target: Target | None = None) -> Workload:
    elements = sum(math.prod(shape) for shape in (*shapes, shapes[0]))  # the result's shape too
    work = 4e-9 * elements
    inputs = normal(*shapes)
    return Workload(name, "elementwise", "add", inputs, np.add, target, amount=work, unit="GB")


def unary(operation: str, reference: Callable[..., Any]) -> Workload:
    def positive(rng: np.random.Generator) -> Inputs:
        return (rng.random(10**6, dtype="float32") + 0.1,)

    inputs = positive if operation == "log" else normal((10**6,))
    return Workload(f"{operation} 1e6", "elementwise", operation, inputs, reference)


def reduction(operation: str, axis: int | None) -> Workload:
    over = "all" if axis is None else f"axis {axis}"
    reference = partial(getattr(np, operation), axis=axis)
    return Workload(
        f"{operation} 1000 x 1000, {over}",
        "reduce",
        f"{operation} {over}",
        uniform(SQUARE),
        reference,
        Target("numpy", 1.5),
        amount=4e-9 * math.prod(SQUARE),
        unit="GB",
    )


def transposed_copy(n: int) -> Workload:
    return Workload(
        f"transposed copy {n} x {n}",
        "copy",
        "transposed_copy",
        normal((n, n)),
        np.transpose,
        AS_NUMPY,
        amount=8e-9 * n * n,
        unit="GB",
    )


ELEMENTWISE = (
    add("add 1e6", (10**6,), (10**6,), target=AS_NUMPY),
    add("add 1e7", (10**7,), (10**7,), target=AS_NUMPY),
    add("add 1000 x 1000 + 1000", SQUARE, (1000,)),
    unary("exp", np.exp),
    unary("log", np.log),
    unary("tanh", np.tanh),
    unary("sigmoid", lambda a: 1 / (1 + np.exp(-a))),
)
REDUCTIONS = tuple(reduction(op, axis) for op in ("sum", "max") for axis in (0, 1, None))
COPIES = (transposed_copy(1000), transposed_copy(2048))

# --- autograd and training ---

TINY = (4, 4)
GRAPHS = (
    Workload(
        "4 x 4 Tensors: add",
        "graph",
        "graph_add",
        normal(TINY, TINY),
        np.add,
        Target("PyTorch", 1.0),
    ),
    Workload(
        "4 x 4 Tensors: add, backward",
        "graph",
        "graph_add_backward",
        normal(TINY, TINY, TINY),
        lambda a, b, out_grad: out_grad,
        Target("PyTorch", 0.5),
    ),
)

BATCH, PIXELS, HIDDEN, CLASSES = 100, 784, 100, 10


def linear_layer(rng: np.random.Generator, fan_in: int, fan_out: int) -> Inputs:
    bound = np.sqrt(6 / fan_in)
    weight = rng.uniform(-bound, bound, (fan_in, fan_out)).astype("float32")
    return weight, np.zeros((1, fan_out), "float32")


def batch(rng: np.random.Generator) -> Inputs:
    """Return images (BATCH, PIXELS) and labels (BATCH,)."""
    return rng.random((BATCH, PIXELS), dtype="float32"), rng.integers(0, CLASSES, BATCH)


def mlp_inputs(rng: np.random.Generator) -> Inputs:
    return (
        *batch(rng),
        *linear_layer(rng, PIXELS, HIDDEN),
        *linear_layer(rng, HIDDEN, CLASSES),
    )


def mlp_losses(*inputs: np.ndarray) -> list[float]:
    step = with_numpy.mlp(*inputs)
    return [step() for _ in range(3)]


def mlp_resnet_inputs(rng: np.random.Generator) -> Inputs:
    def norm(dim: int) -> Inputs:
        return np.ones(dim, "float32"), np.zeros(dim, "float32")

    def block() -> Inputs:
        half = HIDDEN // 2
        return (
            *linear_layer(rng, HIDDEN, half),
            *norm(half),
            *linear_layer(rng, half, HIDDEN),
            *norm(HIDDEN),
        )

    first = linear_layer(rng, PIXELS, HIDDEN)
    blocks = (*block(), *block(), *block())
    return (*batch(rng), *first, *blocks, *linear_layer(rng, HIDDEN, CLASSES))


def mlp_resnet_losses(*inputs: np.ndarray) -> list[float]:
    from bench import with_needle  # late: only this reference needs needle

    return with_needle.specified_mlp_resnet_losses(*inputs, steps=3)


TRAINING = (
    Workload(
        "MLP 784-100-10, batch 100, SGD",
        "train",
        "mlp",
        mlp_inputs,
        mlp_losses,
        Target("PyTorch", 1.2),
        calls=3,
    ),
    Workload(
        "MLP-ResNet, batch 100, Adam",
        "train",
        "mlp_resnet",
        mlp_resnet_inputs,
        mlp_resnet_losses,
        calls=3,
        tolerance=1e-3,
        checked_as="mlp_resnet_without_dropout",
    ),
)

# --- the ladder ---


@dataclass(frozen=True)
class Rungs:
    """One problem with all kernels that needle has for it.

    Args:
        top: the workload, as every library does it.
        top_kernel: the kernel that needle's NDArray calls for it.
        course: the course's kernels for it, from the plainest up.
    """

    top: Workload
    top_kernel: str
    course: dict[str, Workload]


def rungs(top: Workload, top_kernel: str, *kernels: str) -> Rungs:
    course = {
        kernel: replace(
            top, name=f"{kernel}, {top.name}", group="ladder", operation=f"course {kernel}"
        )
        for kernel in kernels
    }
    return Rungs(top, top_kernel, course)


LADDER = (
    *(rungs(matmul(n, n, n), "batched_matmul", "matmul", "matmul_tiled") for n in (64, 256, 512)),
    rungs(ELEMENTWISE[0], "add", "ewise_add"),
    rungs(REDUCTIONS[1], "sum", "reduce_sum"),
    rungs(REDUCTIONS[4], "max", "reduce_max"),
    rungs(COPIES[0], "copy", "compact"),
)
LADDER_WORKLOADS = tuple(w for step in LADDER for w in (*step.course.values(), step.top))

WORKLOADS = (*PRODUCTS, *ELEMENTWISE, *REDUCTIONS, *COPIES, *GRAPHS, *TRAINING)
BY_NAME = {workload.name: workload for workload in (*WORKLOADS, *LADDER_WORKLOADS)}
