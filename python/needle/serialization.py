"""Models in safetensors files: names and arrays, nothing that runs when it is read."""

from pathlib import Path

import numpy as np

from needle.autograd import Tensor
from needle.errors import DtypeError, NeedleError
from needle.nn import Module

__all__ = ["load", "load_model", "save", "save_model"]


def save(tensors: dict[str, Tensor], path: str | Path) -> None:
    """Write Tensors by name to a safetensors file; an existing file is replaced only by a complete
    one.
    """
    from safetensors.numpy import save_file

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        save_file({name: tensor.numpy() for name, tensor in tensors.items()}, partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)  # what an interrupted save leaves


def load(path: str | Path) -> dict[str, np.ndarray]:
    """Read the arrays of a safetensors file by name.

    Raises:
        NeedleError: if the file is missing, truncated or no safetensors file.
        DtypeError: if it holds a type that numpy lacks.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if not Path(path).is_file():
        fault = "is a folder" if Path(path).is_dir() else "does not exist"
        raise NeedleError(f"[load] {path} {fault}; give a safetensors file")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise NeedleError(f"[load] {path} is truncated or no safetensors file: {error}") from None
    except TypeError as error:
        raise DtypeError(
            f"[load] {path} holds a type that numpy lacks: {error}; save it as float32"
        ) from None


def save_model(model: Module, path: str | Path) -> None:
    """Write a model's parameters and buffers to a safetensors file."""
    save(model.state_dict(), path)


def load_model(model: Module, path: str | Path) -> None:
    """Read a model's parameters and buffers from a safetensors file, each onto the device where it
    lives.

    Raises:
        NeedleError: if the file cannot be read or its names are not the model's.
        ShapeError: if a value has another shape.
    """
    model.load_state_dict(load(path))
