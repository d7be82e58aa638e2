"""Models in safetensors files: names and arrays, nothing that runs when it is read."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from needle.autograd import Tensor
from needle.errors import DtypeError, NeedleError
from needle.nn import Module
from needle.torch_layout import load_torch_state_dict, torch_state_dict

__all__ = ["load", "load_model", "save", "save_model"]


def save(
    tensors: Mapping[str, Tensor | np.ndarray],
    path: str | Path,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write Tensors or arrays by name, and texts by name, to a safetensors file; an existing file
    is replaced only by a complete one.
    """
    from safetensors.numpy import save_file

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        arrays = {
            name: value.numpy() if isinstance(value, Tensor) else value
            for name, value in tensors.items()
        }
        save_file(arrays, partial, metadata=None if metadata is None else dict(metadata))
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
        arrays = load_file(path)
    except SafetensorError as error:
        raise NeedleError(f"[load] {path} is truncated or no safetensors file: {error}") from None
    except TypeError as error:
        raise _lacking(path, str(error)) from None
    for array in arrays.values():
        if array.dtype.kind not in "biuf":  # a package such as ml_dtypes adds types to numpy's
            raise _lacking(path, array.dtype.name)
    return arrays


def _lacking(path: str | Path, fault: str) -> DtypeError:
    return DtypeError(f"[load] {path} holds a type that numpy lacks: {fault}; save it as float32")


def save_model(model: Module, path: str | Path, layout: str = "needle") -> None:
    """Write a model's parameters and buffers to a safetensors file, under needle's names and in its
    shapes, or with layout="torch" in PyTorch's.
    """
    _check_layout("save_model", layout)
    save(torch_state_dict(model) if layout == "torch" else model.state_dict(), path)


def load_model(model: Module, path: str | Path, layout: str = "needle") -> None:
    """Read a model's parameters and buffers from a safetensors file, each onto the device where it
    lives; with layout="torch" a file that PyTorch's twin of the model was saved to.

    Raises:
        NeedleError: if the file cannot be read or its names are not the model's.
        ShapeError: if a value has another shape.
    """
    _check_layout("load_model", layout)
    if layout == "torch":
        load_torch_state_dict(model, load(path))
    else:
        model.load_state_dict(load(path))


def _check_layout(function: str, layout: str) -> None:
    if layout not in ("needle", "torch"):
        raise NeedleError(f"[{function}] no layout {layout!r}; give 'needle' or 'torch'")
