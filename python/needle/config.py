"""Modes by name: `using_config(name, value)` sets one for a block and puts the old value back.

The switches themselves lie where they are read: recording in `recording.py`, putting computation
off in `autograd.py`, training below.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from needle import autograd
from needle.errors import NeedleError
from needle.recording import grad_mode

__all__ = ["train_mode", "using_config"]


class _TrainMode(threading.local):
    """Whether modules may be in training, separately in each thread; False overrules each one's
    own.
    """

    enabled = True


train_mode = _TrainMode()

# name -> the object and the attribute that hold it
_SWITCHES: dict[str, tuple[Any, str]] = {
    "enable_grad": (grad_mode, "enabled"),
    "train": (train_mode, "enabled"),
    "lazy": (autograd, "LAZY_MODE"),
}


@contextmanager
def using_config(name: str, value: bool) -> Iterator[None]:
    """Set a mode inside a `with` block, or inside a function that this decorates.

    Args:
        name: "enable_grad" (ops record the graph; False is `no_grad`), "train" (False: every module
            behaves as after `eval()`, whatever its own mode), both for this thread; or "lazy" (an
            op's data is computed when it is first asked for), for the whole program.
        value: True or False.

    Raises:
        NeedleError: for another name.
    """
    if name not in _SWITCHES:
        raise NeedleError(f"[using_config] no mode {name!r}; there are {', '.join(_SWITCHES)}")
    owner, attribute = _SWITCHES[name]
    before = getattr(owner, attribute)
    setattr(owner, attribute, bool(value))
    try:
        yield
    finally:
        setattr(owner, attribute, before)
