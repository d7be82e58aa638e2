"""Pictures of training as PNG files. matplotlib is imported only where one is drawn, and needs no
screen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import needle as ndl

__all__ = ["Panel", "draw_curves", "draw_fit", "require_matplotlib"]

BLUE, ORANGE, GREY = "#1f6feb", "#d1660a", "#6b7280"


@dataclass
class Panel:
    """Curves by epoch under one name: training, testing, and perhaps a value to beat."""

    name: str
    train: Sequence[float]
    test: Sequence[float]
    baseline: tuple[str, float] | None = None


def require_matplotlib() -> None:
    """Raise NeedleError unless pictures can be drawn; a run asks before it trains."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise ndl.NeedleError(
            "[plot] matplotlib is missing; python -m pip install matplotlib, or leave --plot out"
        ) from None


def draw_curves(path: Path, title: str, panels: Sequence[Panel]) -> None:
    """Draw the curves of a run side by side, one point an epoch."""

    def draw(axes: Sequence[Any]) -> None:
        for axis, panel in zip(axes, panels, strict=True):
            epochs = range(1, len(panel.train) + 1)
            axis.plot(epochs, panel.train, "o-", color=BLUE, markersize=4, label="train")
            axis.plot(epochs, panel.test, "o-", color=ORANGE, markersize=4, label="test")
            if panel.baseline:
                name, value = panel.baseline
                axis.axhline(value, color=GREY, linestyle="--", label=f"{name} {value:.4g}")
            axis.set(xlabel="epoch", title=panel.name)
            axis.xaxis.get_major_locator().set_params(integer=True)

    draw_png(path, title, len(panels), draw)


def draw_fit(
    path: Path, title: str, x: Sequence[float], target: Sequence[float], fit: Sequence[float]
) -> None:
    """Draw a function and what a model makes of it."""

    def draw(axes: Sequence[Any]) -> None:
        axes[0].plot(x, target, color=GREY, linewidth=4, alpha=0.5, label="target")
        axes[0].plot(x, fit, color=ORANGE, label="model")
        axes[0].set(xlabel="x")

    draw_png(path, title, 1, draw)


def draw_png(path: Path, title: str, count: int, draw: Callable[[Sequence[Any]], None]) -> None:
    """Write what `draw` puts on `count` axes, each with a grid and a legend."""
    require_matplotlib()
    from matplotlib.figure import Figure  # without pyplot: no window, no global state

    figure = Figure(figsize=(4.5 * max(count, 1.5), 4), layout="constrained")
    axes = figure.subplots(1, count, squeeze=False)[0]
    draw(axes)
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.legend()
    figure.suptitle(title, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", dpi=120)
