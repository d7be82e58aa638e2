"""The layers of a model as a table: shapes, parameters, size.

`observed`, which leaves a model as it was after a look inside, also serves `onnx.py`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from needle import init
from needle.autograd import Tensor, TensorTuple
from needle.config import using_config
from needle.errors import NeedleError, ShapeError
from needle.nn import Module
from needle.recording import no_grad

__all__ = ["Row", "Summary", "observed", "summary"]


@dataclass(frozen=True)
class Row:
    """A module: its dotted name (empty for the model itself), its class, what came out each time
    it was used, and the parameters that are its own.
    """

    name: str
    depth: int
    kind: str
    outputs: tuple[Any, ...]  # a shape, or nested tuples of shapes, for each use
    parameters: int


@dataclass(frozen=True)
class Summary:
    """What `summary` found; as a string, the table."""

    rows: tuple[Row, ...]
    total: int  # parameters; a shared one counts once
    trainable: int
    megabytes: float  # of parameters and buffers, in 10^6 bytes

    def __str__(self) -> str:
        return (
            f"{_table(self.rows)}\n{self.total:,} parameters, {self.trainable:,} trainable, "
            f"{self.megabytes:,.3f} MB"
        )


def summary(model: Module, input_shape: Any) -> Summary:
    """Return the layers of a model with their output shapes and parameters, to be printed.

    The model runs once on zeros, in eval mode and without recording, and is left as it was. A "-"
    stands for a module whose own forward was not called, such as the cells of an LSTM.

    Args:
        model: any module.
        input_shape: a shape, a Tensor to be used itself, or a list of these for several inputs;
            the zeros have the model's dtype and device.

    Raises:
        ShapeError: if `input_shape` is none of these.
        NeedleError: if the model fails; the message says in which layer, after which others.
    """
    inputs = _inputs(model, input_shape)
    outputs: dict[str, list[Any]] = {name: [] for name, _ in model.named_modules()}
    failed: list[str] = []  # from the innermost module outwards

    def watch(name: str, module: Module, forward: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            try:
                output = forward(*args, **kwargs)
            except Exception:
                shapes = ", ".join(map(str, _shapes(args)))
                failed.append(f"{name or 'model'} ({type(module).__name__}) on {shapes}")
                raise
            outputs[name].append(_shapes(output))
            return output

        return watched

    try:
        with no_grad(), observed(model, watch):
            model(*inputs)
    except Exception as error:
        where = failed[0] if failed else "model"
        table = _table(_rows(model, outputs))
        raise NeedleError(f"[summary] {where} failed: {error}; what ran:\n{table}") from error
    state = model.state_dict().values()
    return Summary(
        _rows(model, outputs),
        sum(p.size for p in model.parameters()),
        sum(p.size for p in model.parameters() if p.requires_grad),
        sum(t.size * np.dtype(t.dtype).itemsize for t in state) / 1e6,
    )


@contextmanager
def observed(
    model: Module, wrap: Callable[[str, Module, Callable[..., Any]], Callable[..., Any]]
) -> Iterator[None]:
    """Take all modules out of training and put `wrap(name, module, forward)` in place of each
    forward; put all back in the end, also after an error.
    """
    modules = list(model.named_modules())
    before = [(module, vars(module).get("forward")) for _, module in modules]
    try:
        for name, module in modules:
            vars(module)["forward"] = wrap(name, module, module.forward)
        with using_config("train", False):
            yield
    finally:
        for module, forward in before:
            vars(module).pop("forward", None)
            if forward is not None:
                vars(module)["forward"] = forward


def _inputs(model: Module, input_shape: Any) -> list[Tensor]:
    """Return the Tensors that the model is to be called with."""
    like = next(iter(model.state_dict().values()), None)
    place = {} if like is None else {"device": like.device, "dtype": like.dtype}
    if isinstance(input_shape, Tensor) or _is_shape(input_shape):
        input_shape = [input_shape]
    inputs: list[Tensor] = []
    for entry in input_shape if isinstance(input_shape, list | tuple) else [None]:
        if isinstance(entry, Tensor):
            inputs.append(entry)
        elif _is_shape(entry):
            inputs.append(init.zeros(*entry, **place))
        else:
            raise ShapeError(
                f"[summary] input_shape {input_shape!r} is no shape; give a tuple of sizes, a "
                "Tensor, or a list of these"
            )
    return inputs


def _is_shape(value: Any) -> TypeGuard[Sequence[int]]:
    return isinstance(value, list | tuple) and all(isinstance(n, int | np.integer) for n in value)


def _shapes(output: Any) -> Any:
    """Return the shape of a Tensor, nested tuples of shapes for several, None for other things."""
    if isinstance(output, Tensor):
        return output.shape
    if isinstance(output, TensorTuple | list | tuple):
        return tuple(_shapes(part) for part in output)
    return None


def _rows(model: Module, outputs: dict[str, list[Any]]) -> tuple[Row, ...]:
    """Return a row for each module, with the parameters that no module below it holds."""
    own: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        own[_owner(name, outputs)] += parameter.size
    depth = {"": 0}
    rows = []
    for name, module in model.named_modules():
        if name:
            depth[name] = depth[_owner(name, outputs)] + 1
        kind = type(module).__name__
        rows.append(Row(name, depth[name], kind, tuple(outputs[name]), own[name]))
    return tuple(rows)


def _owner(name: str, modules: dict[str, Any]) -> str:
    """Return the module that holds a parameter or module: the longest name that `name` begins
    with.
    """
    owner = name.rpartition(".")[0]
    while owner not in modules:  # a list or dict between them
        owner = owner.rpartition(".")[0]
    return owner


def _table(rows: Sequence[Row]) -> str:
    cells = [("layer", "type", "output", "parameters")]
    for row in rows:
        uses = Counter(row.outputs)
        output = ", ".join(f"{shape}" + f" x{n}" * (n > 1) for shape, n in uses.items())
        name = "  " * row.depth + (row.name or "model")
        parameters = f"{row.parameters:,}" if row.parameters else ""
        cells.append((name, row.kind, output or "-", parameters))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:<{widths[2]}}  {d:>{widths[3]}}"
        for a, b, c, d in cells
    )
