"""What continues a training run, in one safetensors file: arrays by name, and facts as JSON.

Nothing in it runs when it is read. The model's file beside it holds parameters and, for a language
model, its words.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import needle as ndl
from needle import nn

__all__ = ["path_beside", "read_facts", "restore", "save", "write"]


def path_beside(model_path: Path) -> Path:
    """Return where the checkpoint of a run lies that saves its model at `model_path`."""
    return model_path.with_suffix(".checkpoint.safetensors")


def write(path: Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
    """Write arrays and facts; an existing file is replaced only by a complete one."""
    ndl.save(arrays, path, metadata={"facts": json.dumps(facts)})


def read_facts(path: Path) -> dict[str, Any]:
    """Return the facts of a file.

    Raises:
        NeedleError: if the file is missing, is damaged, or has none.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise ndl.NeedleError(f"[checkpoint] no file {path}; train a model first")
    try:
        with safe_open(path, "numpy") as file:
            facts = (file.metadata() or {}).get("facts")
    except SafetensorError as error:
        raise ndl.NeedleError(f"[checkpoint] {path} is damaged: {error}") from None
    if facts is None:
        raise ndl.NeedleError(f"[checkpoint] {path} was not written by a training program")
    return json.loads(facts)


def save(path: Path, model: nn.Module, opt: ndl.optim.Optimizer, facts: Mapping[str, Any]) -> None:
    """Write all that the next epoch depends on: model, optimizer and random numbers."""
    arrays = {f"model.{name}": tensor.numpy() for name, tensor in model.state_dict().items()}
    numbers = {}
    for name, value in opt.state_dict().items():
        if isinstance(value, np.ndarray):
            arrays[f"optimizer.{name}"] = value
        else:
            numbers[name] = value
    _, arrays["random.key"], *random = np.random.get_state()
    write(path, arrays, {**facts, "optimizer": numbers, "random": random})


def restore(path: Path, model: nn.Module, opt: ndl.optim.Optimizer) -> None:
    """Put the model, the optimizer and the random numbers back as they were saved.

    Raises:
        NeedleError: if the file cannot be read or is another model's.
    """
    facts, arrays = read_facts(path), ndl.load(path)
    model.load_state_dict(part(arrays, "model."))
    opt.load_state_dict({**part(arrays, "optimizer."), **facts["optimizer"]})
    np.random.set_state(("MT19937", arrays["random.key"], *facts["random"]))


def part(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin with `prefix`, without it."""
    return {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)}
