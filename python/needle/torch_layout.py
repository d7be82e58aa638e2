"""Parameters under PyTorch's names and in its shapes, so that models trained there load here, and
the other way round.

The attribute names of the two models must agree; what differs between the layers themselves (a
transposed weight, the cells of an LSTM, Sequential's numbers) is known here. `serialization.py`
reads and writes files of it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from needle.autograd import Tensor
from needle.errors import NeedleError, ShapeError
from needle.nn import BatchNorm1d, Conv, Linear, Module, Sequential
from needle.nn.nn_sequence import RecurrentCell

__all__ = ["load_torch_state_dict", "torch_state_dict"]

# PyTorch counts the batches that a batch norm has seen; nothing here reads it.
BATCH_COUNT = "num_batches_tracked"

CELL_NAMES = {"W_ih": "weight_ih", "W_hh": "weight_hh"}
CELL_OF_A_LAYER = re.compile(r"(?P<layer>.*?)(rnn|lstm|gru)_cells\.(?P<number>\d+)\.")


class Entry(NamedTuple):
    """A Tensor of a model, its name in PyTorch, and how its array is turned there and back."""

    name: str
    tensor: Tensor
    to_torch: Callable[[np.ndarray], np.ndarray]
    from_torch: Callable[[np.ndarray], np.ndarray]


def torch_state_dict(model: Module) -> dict[str, np.ndarray]:
    """Return the parameters and buffers as PyTorch's `state_dict` would: its names, its shapes.

    `{k: torch.from_numpy(v) for k, v in ndl.torch_state_dict(model).items()}` is what the model's
    twin loads.
    """
    state = {
        entry.name: np.ascontiguousarray(entry.to_torch(entry.tensor.numpy()))
        for entry in _entries(model)
    }
    for path, module in model.named_modules():
        if isinstance(module, BatchNorm1d):
            name = f"{path}.{BATCH_COUNT}" if path else BATCH_COUNT
            state[_torch_path(model, name)] = np.zeros((), np.int64)
    return state


def load_torch_state_dict(model: Module, state: Mapping[str, Any]) -> None:
    """Copy what PyTorch's `state_dict` holds (tensors on the CPU, or arrays) into a model.

    Nothing is changed if anything does not fit.

    Raises:
        NeedleError: if a name is missing or not known.
        ShapeError: if a value has another shape.
    """
    entries = {entry.name: entry for entry in _entries(model)}
    names = {name for name in state if not name.endswith(BATCH_COUNT)}
    missing, unknown = sorted(entries.keys() - names), sorted(names - entries.keys())
    if missing or unknown:
        raise NeedleError(
            f"[load_torch_state_dict] names do not fit {type(model).__name__}: missing {missing}, "
            f"unknown {unknown}; the attributes of both models need the same names"
        )
    converted = {}
    for name, entry in entries.items():
        value = np.asarray(state[name])
        expected = entry.to_torch(entry.tensor.numpy()).shape
        if value.shape != expected:
            raise ShapeError(
                f"[load_torch_state_dict] {name} has shape {value.shape}, the model's is {expected}"
            )
        converted[name] = Tensor(
            entry.from_torch(value),
            device=entry.tensor.device,
            dtype=entry.tensor.dtype,
            requires_grad=False,
        )
    for name, entry in entries.items():
        entry.tensor.data = converted[name]


def _entries(model: Module) -> Iterator[Entry]:
    """Yield every parameter and buffer of a model with its name and form in PyTorch."""
    modules = dict(model.named_modules())
    for name, tensor in model._state().items():
        path, _, attribute = name.rpartition(".")
        owner = modules.get(path)
        to_torch, from_torch = _forms(owner, attribute, tensor.shape)
        yield Entry(_torch_path(model, name), tensor, to_torch, from_torch)


def _forms(owner: Module | None, attribute: str, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return how the array of a layer's attribute is turned into PyTorch's form, and back."""
    if isinstance(owner, Linear | RecurrentCell) and len(shape) == 2 and attribute != "bias":
        return np.transpose, np.transpose  # (in, out) and (out, in)
    if isinstance(owner, Linear) and attribute == "bias":
        return np.ravel, lambda array: array.reshape(shape)  # (1, out) and (out,)
    if isinstance(owner, Conv) and attribute == "weight":
        # (height, width, in, out) and (out, in, height, width)
        return (lambda array: array.transpose(3, 2, 0, 1)), lambda array: array.transpose(
            2, 3, 1, 0
        )
    return np.asarray, np.asarray


def _torch_path(model: Module, name: str) -> str:
    """Return the name that PyTorch gives to what is called `name` here."""
    name = _without_sequentials(model, name)
    path, dot, attribute = name.rpartition(".")
    cell = CELL_OF_A_LAYER.fullmatch(path + ".")
    attribute = CELL_NAMES.get(attribute, attribute)
    if cell is None:
        return path + dot + attribute
    return f"{cell['layer']}{attribute}_l{cell['number']}"  # the layers of an LSTM are one module


def _without_sequentials(model: Module, name: str) -> str:
    """Return `name` without the "modules" that a Sequential's parts are found under."""
    modules = dict(model.named_modules())
    parts = name.split(".")
    return ".".join(
        part
        for i, part in enumerate(parts)
        if not (part == "modules" and isinstance(modules.get(".".join(parts[:i])), Sequential))
    )
