"""A page to draw on: boxes, words, arrows, grids of numbers. It writes SVG whose words stay words.

Fills are light and of different lightness, so that dark words on them read in print too.
"""

import html
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["BLUE", "GREY", "INK", "LINE", "ORANGE", "PALE", "WHITE", "YELLOW", "Page", "number"]

INK = "#161616"
LINE = "#5a5a5a"
WHITE = "#ffffff"
PALE = "#f1f1f1"
GREY = "#cfcfcf"
YELLOW = "#fdeeb5"
BLUE = "#b9d7f2"
ORANGE = "#f0b27a"

FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
MONO = "DejaVu Sans Mono, Menlo, Consolas, monospace"


class Page:
    """A white page of a given size, in pixels; y grows downward."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width = width
        self.height = height
        self.title = title
        self.parts: list[str] = []

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = 14,
        anchor: str = "middle",
        bold: bool = False,
        mono: bool = False,
        colour: str = INK,
    ) -> None:
        """Write words whose middle (or "start", "end") is at x; y is the middle of their height."""
        weight = ' font-weight="bold"' if bold else ""
        family = f' font-family="{MONO}"' if mono else ""
        self.parts.append(
            f'<text x="{_short(x)}" y="{_short(y + 0.36 * size)}" font-size="{_short(size)}" '
            f'text-anchor="{anchor}" fill="{colour}"{weight}{family}>{html.escape(words)}</text>'
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        lines: Sequence[str] = (),
        *,
        fill: str = WHITE,
        size: float = 14,
        round_by: float = 0,
        stroke: float = 1,
        bold: bool = False,
        mono: bool = False,
    ) -> None:
        """Draw a box with lines of words in its middle."""
        self.parts.append(
            f'<rect x="{_short(x)}" y="{_short(y)}" width="{_short(width)}" '
            f'height="{_short(height)}" rx="{_short(round_by)}" fill="{fill}" stroke="{INK}" '
            f'stroke-width="{_short(stroke)}"/>'
        )
        step = 1.3 * size
        top = y + height / 2 - step * (len(lines) - 1) / 2
        for i, line in enumerate(lines):
            self.text(
                x + width / 2, top + i * step, line, size=size, bold=bold and i == 0, mono=mono
            )

    def grid(
        self,
        x: float,
        y: float,
        rows: Sequence[Sequence[Any]],
        *,
        cell: tuple[float, float] = (44, 32),
        fill: Callable[[int, int], str] | str = WHITE,
        size: float = 14,
        note: Callable[[int, int], str] | None = None,
    ) -> None:
        """Draw a table of values, each in its cell; `note` gives a small second line."""
        width, height = cell
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                colour = fill if isinstance(fill, str) else fill(i, j)
                left, top = x + j * width, y + i * height
                self.box(left, top, width, height, fill=colour)
                middle = left + width / 2
                words = value if isinstance(value, str) else number(value)
                if note is None:
                    self.text(middle, top + height / 2, words, size=size, mono=True)
                else:
                    self.text(middle, top + 0.36 * height, words, size=size, mono=True)
                    self.text(middle, top + 0.76 * height, note(i, j), size=0.72 * size)

    def line(
        self,
        *points: tuple[float, float],
        arrow: bool = False,
        width: float = 1.4,
        colour: str = LINE,
        dashed: bool = False,
    ) -> None:
        """Draw a line through points, with a head at its end if it is an arrow."""
        path = " ".join(f"{_short(x)},{_short(y)}" for x, y in points)
        head = ' marker-end="url(#head)"' if arrow else ""
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" '
            f'stroke-width="{_short(width)}"{dashes}{head}/>'
        )

    def outline(self, x: float, y: float, width: float, height: float) -> None:
        """Draw a thick frame around what is there."""
        self.parts.append(
            f'<rect x="{_short(x)}" y="{_short(y)}" width="{_short(width)}" '
            f'height="{_short(height)}" fill="none" stroke="{INK}" stroke-width="3"/>'
        )

    def circle(self, x: float, y: float, radius: float, words: str, fill: str = WHITE) -> None:
        """Draw a circle with a word in it."""
        self.parts.append(
            f'<circle cx="{_short(x)}" cy="{_short(y)}" r="{_short(radius)}" fill="{fill}" '
            f'stroke="{INK}"/>'
        )
        if words:
            self.text(x, y, words, size=16, bold=True)

    def svg(self) -> str:
        """Return the page as SVG."""
        width, height = _short(self.width), _short(self.height)
        opening = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="{FONT}" role="img">',
            f"<title>{html.escape(self.title)}</title>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" '
            f'markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">'
            f'<path d="M0 0 L8 4 L0 8 z" fill="{LINE}"/></marker></defs>',
            f'<rect width="{width}" height="{height}" fill="{WHITE}"/>',
        ]
        return "\n".join([*opening, *self.parts, "</svg>"]) + "\n"


def number(value: Any, digits: int = 2) -> str:
    """Return a number as a picture shows it: whole ones without a point, no minus before zero."""
    rounded = round(float(value), digits)
    if rounded == int(rounded):
        return str(int(rounded)).replace("-", "−")
    return f"{rounded:.{digits}f}".replace("-", "−")


def _short(value: float) -> str:
    """Return a coordinate with at most one digit after the point."""
    return f"{value:.1f}".removesuffix(".0")
