"""Whether ops record the graph: `no_grad`, `enable_grad`, and the switch that they set.

The switch belongs to the thread, so one thread may evaluate while another trains.
"""

import threading
from functools import wraps
from types import TracebackType
from typing import Any

__all__ = ["enable_grad", "grad_mode", "is_grad_enabled", "no_grad"]


class _GradMode(threading.local):
    """Whether ops record the graph, separately in each thread."""

    enabled = True


grad_mode = _GradMode()


class _RecordingSwitch:
    """A context manager, and decorator, that sets recording and restores what was set before."""

    enabled: bool

    def __init__(self) -> None:
        self._previous: list[bool] = []

    def __enter__(self) -> None:
        self._previous.append(grad_mode.enabled)
        grad_mode.enabled = self.enabled

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        grad_mode.enabled = self._previous.pop()

    def __call__(self, function: Any) -> Any:
        """Return `function` run under this switch."""

        @wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:
            with type(self)():
                return function(*args, **kwargs)

        return switched


class no_grad(_RecordingSwitch):  # noqa: N801 - the name that PyTorch users look for
    """Compute without recording: `with no_grad(): ...`, or as a decorator."""

    enabled = False


class enable_grad(_RecordingSwitch):  # noqa: N801 - the name that PyTorch users look for
    """Record again inside a `no_grad` block."""

    enabled = True


def is_grad_enabled() -> bool:
    """Tell whether ops record the graph in this thread."""
    return grad_mode.enabled
