"""Reads CIFAR-10's batch files: pickles, of which nothing is run.

A pickle can name anything to call. `BatchUnpickler` lets numpy's names through as inert
descriptions alone. Where the files go is in data/README.md.
"""

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np

from needle.errors import DataError, DataNotFoundError

__all__ = ["read_batch", "training_files"]

PIXELS = 3 * 32 * 32
CLASSES = 10


def training_files(folder: Path) -> list[Path]:
    """Return `data_batch_1` and those that follow it; a gap would train on less than was meant."""
    names = re.compile(r"data_batch_[1-9]\d*")
    found = folder.glob("data_batch_*")
    count = max(1, sum(names.fullmatch(path.name) is not None for path in found))
    return [folder / f"data_batch_{number}" for number in range(1, count + 1)]


def read_batch(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return pixels (n, 3072) and labels (n,), both uint8, from one batch file."""
    batch = unpickle(path)
    if not isinstance(batch, dict) or not {b"data", b"labels"} <= batch.keys():
        raise damaged(path, "holds no dictionary with the keys b'data' and b'labels'")
    pixels, labels = pixels_of(path, batch[b"data"]), batch[b"labels"]
    if not isinstance(labels, list) or len(labels) != len(pixels):
        raise damaged(path, f"has no list of {len(pixels)} labels, one an image")
    wrong = [label for label in labels if type(label) is not int or not 0 <= label < CLASSES]
    if wrong:
        raise damaged(path, f"has the label {wrong[0]!r}; labels are whole numbers from 0 to 9")
    return pixels, np.array(labels, dtype=np.uint8)


class Description:
    """What a pickle says of a numpy object, kept as data: arguments of a call, then a state.

    With slots and a `__setstate__`, no opcode of a pickle can change the class.
    """

    __slots__ = ("arguments", "state")

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class BatchUnpickler(pickle.Unpickler):
    """Reads a pickle of numbers, text, lists, dictionaries and numpy arrays; refuses all else.

    numpy itself is not called: its own unpickling trusts the sizes that a file claims.
    """

    ARRAY_PARTS = frozenset(
        {
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
            ("numpy.core.multiarray", "_reconstruct"),  # numpy 1, CIFAR-10's own files
            ("numpy._core.multiarray", "_reconstruct"),
            ("numpy.core.numeric", "_frombuffer"),  # pickle protocol 5
            ("numpy._core.numeric", "_frombuffer"),
        }
    )

    def find_class(self, module_name: str, global_name: str) -> type[Description]:
        """Return the stand-in for each part of an array; UnpicklingError for another name."""
        if (module_name, global_name) not in self.ARRAY_PARTS:
            raise pickle.UnpicklingError(
                f"names {module_name}.{global_name}, which a batch of images has no use for"
            )
        return Description


def unpickle(path: Path) -> Any:
    """Return what a pickle holds, with a Description in the place of every numpy object."""
    try:
        with path.open("rb") as file:
            return BatchUnpickler(file, encoding="bytes").load()  # CIFAR-10 comes from Python 2
    except FileNotFoundError:
        raise DataNotFoundError(
            f"[CIFAR10Dataset] no file {path.absolute()}; `python -m needle.data.download cifar10`"
            " fetches the set, and data/README.md says where it goes"
        ) from None
    except OSError as error:
        raise DataError(f"[CIFAR10Dataset] {path} cannot be read: {error.strerror}") from None
    except EOFError:
        fault = "is cut short"
    except pickle.UnpicklingError as error:
        fault = f"{error}" if str(error).startswith("names ") else f"is no whole pickle ({error})"
    except Exception as error:  # arbitrary bytes make the unpickler raise almost anything
        fault = f"is no whole pickle ({type(error).__name__}: {error})"
    raise damaged(path, fault)


def pixels_of(path: Path, described: Any) -> np.ndarray:
    """Return the array (n, 3072) that a Description stands for, after checking what it says."""
    try:
        if described.state is None:  # _frombuffer(buffer, dtype, shape, order)
            data, dtype, shape, order = described.arguments
        else:  # _reconstruct(...), whose state follows: version, shape, dtype, is_fortran, data
            _, shape, dtype, is_fortran, data = described.state
            order = "F" if is_fortran else "C"
        if dtype.arguments[0] not in ("u1", b"u1") or shape != (shape[0], PIXELS):
            raise ValueError
        return np.frombuffer(data, dtype=np.uint8).reshape(shape, order=order)
    except (AttributeError, IndexError, TypeError, ValueError):
        raise damaged(path, "has no uint8 array of shape (n, 3072) in b'data'") from None


def damaged(path: Path, fault: str) -> DataError:
    """Return the error for a file that is there but cannot be used."""
    return DataError(f"[CIFAR10Dataset] {path} {fault}; delete it and fetch it again")
