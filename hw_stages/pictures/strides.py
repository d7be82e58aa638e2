"""Strides and views: one row of memory, and what a transpose, a slice and a broadcast read."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from hw_stages.pictures.drawing import BLUE, ORANGE, PALE, WHITE, YELLOW, Page, number
from needle.backend_ndarray import NDArray, cpu_numpy

TITLE = "Strides and views: four ways to read twelve numbers"
CELL = 46


def draw() -> str:
    """Return the picture."""
    values = np.arange(20, 32).reshape(3, 4)
    a = NDArray(values, device=cpu_numpy())
    column = a[:, 0:1]
    page = Page(1000, 716, TITLE)
    page.text(30, 34, "The memory: one row of numbers, counted from 0", anchor="start", bold=True)
    _memory(page, 30, 56, values.ravel(), range(12), WHITE)
    _view(page, 30, 140, "a, of shape (3, 4), as it was made", a, (2, 1), YELLOW)
    _view(page, 530, 140, "a.permute((1, 0)): the strides swap", a.permute((1, 0)), (1, 2), YELLOW)
    _view(page, 30, 446, "a[0:3:2, 1:4]: offset 1, the first stride doubles", a[0:3:2, 1:4],
          (1, 2), BLUE)  # fmt: skip
    _view(page, 530, 446, "a[:, 0:1].broadcast_to((3, 4)): a stride of 0",
          column.broadcast_to((3, 4)), (2, 3), ORANGE)  # fmt: skip
    return page.svg()


def _memory(
    page: Page, x: float, y: float, values: Any, used: Sequence[int], fill: str, cell: float = CELL
) -> None:
    """Draw the memory with its indices above; cells that nobody reads stay pale."""
    for k, value in enumerate(values):
        page.text(x + (k + 0.5) * cell, y, str(k), size=0.26 * cell)
        page.box(x + k * cell, y + 0.24 * cell, cell, 0.64 * cell, [number(value)], mono=True,
                 fill=fill if k in used else PALE, size=0.3 * cell)  # fmt: skip


def _view(
    page: Page, x: float, y: float, title: str, view: NDArray, index: tuple[int, int], fill: str
) -> None:
    """Draw one view: its fields, its elements with their places, and the arithmetic for one."""
    rows, columns = view.shape
    place = {
        (i, j): view._offset + i * view.strides[0] + j * view.strides[1]
        for i, j in product(range(rows), range(columns))
    }
    memory = np.arange(20, 32)
    seen = view.numpy()
    for (i, j), k in place.items():
        if memory[k] != seen[i, j]:
            raise ValueError(f"{title}: [{i}, {j}] is {seen[i, j]}, the memory has {memory[k]}")
    page.text(x, y, title, anchor="start", bold=True)
    page.text(
        x, y + 24, f"shape {view.shape}   strides {view.strides}   offset {view._offset}",
        anchor="start", mono=True, size=13,
    )  # fmt: skip
    cell = (56, 40)
    page.grid(x, y + 44, seen, cell=cell, fill=fill, note=lambda i, j: f"at {place[i, j]}")
    i, j = index
    page.outline(x + j * cell[0], y + 44 + i * cell[1], *cell)
    right = x + columns * cell[0] + 24
    first, second = view.strides
    for n, line in enumerate((
        f"element [{i}, {j}]",
        "offset + i·s0 + j·s1",
        f"= {view._offset} + {i}·{first} + {j}·{second}",
        f"= {place[index]}",
    )):  # fmt: skip
        page.text(right, y + 56 + 22 * n, line, anchor="start", size=13, mono=n > 0)
    bottom = y + 44 + rows * cell[1] + 22
    _memory(page, x, bottom, memory, sorted(set(place.values())), fill, cell=36)
    k = place[index]
    page.outline(x + k * 36, bottom + 0.24 * 36, 36, 0.64 * 36)
