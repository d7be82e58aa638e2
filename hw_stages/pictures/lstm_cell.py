"""One step of an LSTM cell with hidden_size 2, every number on the wire that carries it."""

from typing import Any

import numpy as np

import needle as ndl
from hw_stages.pictures.drawing import BLUE, GREY, YELLOW, Page, number
from needle import nn, ops

TITLE = "One step of an LSTM cell: hidden_size 2, batch 1, every number from nn.LSTMCell"
GATES = (("f", "sigmoid"), ("i", "sigmoid"), ("g", "tanh"), ("o", "sigmoid"))
TOP, BOTTOM = 130, 560  # the wire of c and the wire of x and h


def draw() -> str:
    """Return the picture."""
    values = _step()
    page = Page(1090, 660, TITLE)
    page.text(30, 30, TITLE, anchor="start", bold=True, size=15)
    page.text(30, 56, "c' = f ⊙ c + i ⊙ g        h' = o ⊙ tanh(c')".replace(" ", "\u00a0"),
              anchor="start", size=14)  # fmt: skip
    x = dict(zip("figo", (200, 360, 500, 700), strict=True))
    _sums(page, values, x)
    _gates(page, values, x)
    _cell_wire(page, values, x)
    _hidden_wire(page, values, x)
    return page.svg()


def _step() -> dict[str, Any]:
    """Return all that one step computes; the cell and these lines must agree."""
    np.random.seed(7)
    cell = nn.LSTMCell(3, 2)
    x = ndl.Tensor(np.array([[1.0, -0.5, 2.0]], dtype="float32"))
    h = ndl.Tensor(np.array([[0.5, -0.8]], dtype="float32"))
    c = ndl.Tensor(np.array([[1.2, -0.4]], dtype="float32"))
    sums = x @ cell.W_ih + h @ cell.W_hh + (cell.bias_ih + cell.bias_hh).reshape((1, 8))
    blocks = dict(zip("ifgo", np.split(sums.numpy(), 4, axis=1), strict=True))
    gates = {
        name: getattr(ops, function)(ndl.Tensor(blocks[name])).numpy() for name, function in GATES
    }
    kept, added = gates["f"] * c.numpy(), gates["i"] * gates["g"]
    c_next = kept + added
    squashed = np.tanh(c_next)
    h_next = gates["o"] * squashed
    by_cell = cell(x, (h, c))
    if not all(map(np.allclose, (t.numpy() for t in by_cell), (h_next, c_next))):
        raise ValueError("nn.LSTMCell computes other numbers than the picture")
    return {
        "x": x.numpy(), "h": h.numpy(), "c": c.numpy(), "sums": blocks, **gates, "kept": kept,
        "added": added, "c'": c_next, "tanh": squashed, "h'": h_next,
    }  # fmt: skip


def _words(value: np.ndarray) -> str:
    """Return a row of numbers as a wire carries it."""
    return "[" + ", ".join(number(v) for v in value.ravel()) + "]"


def _wire(page: Page, x: float, y: float, value: np.ndarray, anchor: str = "start") -> None:
    """Write the numbers of a wire beside it."""
    page.text(x, y, _words(value), anchor=anchor, size=13, mono=True)


def _sums(page: Page, values: dict[str, Any], x: dict[str, float]) -> None:
    """Draw the affine map of x and h whose four blocks feed the gates."""
    page.box(130, BOTTOM - 62, 670, 40,
             ["x @ W_ih + bias_ih + h @ W_hh + bias_hh: (1, 8), cut into the blocks i, f, g, o"],
             fill=GREY, size=13.5, round_by=6)  # fmt: skip
    page.line((60, BOTTOM + 30), (170, BOTTOM + 30), (170, BOTTOM - 22), arrow=True)
    page.text(30, BOTTOM + 10, "h", anchor="start", bold=True, size=16)
    _wire(page, 30, BOTTOM + 50, values["h"])
    page.line((360, BOTTOM + 56), (360, BOTTOM - 22), arrow=True)
    page.text(360, BOTTOM + 68, "x", bold=True, size=16)
    _wire(page, 376, BOTTOM + 68, values["x"])


def _gates(page: Page, values: dict[str, Any], x: dict[str, float]) -> None:
    """Draw the four gates, what goes in and what comes out."""
    for name, function in GATES:
        at = x[name]
        page.line((at, BOTTOM - 62), (at, 436), arrow=True)
        _wire(page, at + 8, 468, values["sums"][name])
        page.box(at - 50, 396, 100, 40, [f"{name}: {function}"], fill=YELLOW, size=14,
                 round_by=6, bold=True)  # fmt: skip
        _wire(page, at + 8, 376, values[name])


def _cell_wire(page: Page, values: dict[str, Any], x: dict[str, float]) -> None:
    """Draw what c goes through: forget, add, on to the next step."""
    page.text(30, TOP, "c", anchor="start", bold=True, size=16)
    _wire(page, 30, TOP + 22, values["c"])
    page.line((48, TOP), (x["f"] - 20, TOP), arrow=True, width=2.2)
    page.line((x["f"], 396), (x["f"], TOP + 20), arrow=True)
    page.circle(x["f"], TOP, 20, "⊙", BLUE)
    sum_at = 430
    _wire(page, x["f"] + 28, TOP - 14, values["kept"])
    page.line((x["f"] + 20, TOP), (sum_at - 20, TOP), arrow=True, width=2.2)
    page.circle(sum_at, TOP, 20, "+", BLUE)
    product = (sum_at, 280)
    page.line((x["i"], 396), (x["i"], 280), (product[0] - 20, 280), arrow=True)
    page.line((x["g"], 396), (x["g"], 280), (product[0] + 20, 280), arrow=True)
    page.circle(*product, 20, "⊙", BLUE)
    page.line((sum_at, 260), (sum_at, TOP + 20), arrow=True)
    _wire(page, sum_at + 10, 210, values["added"])
    page.line((sum_at + 20, TOP), (1000, TOP), arrow=True, width=2.2)
    page.text(1016, TOP, "c'", anchor="start", bold=True, size=16)
    _wire(page, 1050, TOP + 24, values["c'"], anchor="end")


def _hidden_wire(page: Page, values: dict[str, Any], x: dict[str, float]) -> None:
    """Draw how h' comes from c' and the output gate."""
    at = 860
    page.line((at, TOP), (at, 190), arrow=True)
    page.box(at - 40, 190, 80, 36, ["tanh"], fill=YELLOW, size=14, round_by=6, bold=True)
    page.line((at, 226), (at, 300), arrow=True)
    _wire(page, at + 10, 258, values["tanh"])
    page.line((x["o"], 396), (x["o"], 320), (at - 20, 320), arrow=True)
    page.circle(at, 320, 20, "⊙", BLUE)
    page.line((at + 20, 320), (1000, 320), arrow=True, width=2.2)
    page.text(1016, 320, "h'", anchor="start", bold=True, size=16)
    _wire(page, 1050, 344, values["h'"], anchor="end")
    page.box(860, 440, 24, 20, fill=YELLOW)
    page.text(894, 450, "a function of each number", anchor="start", size=12)
    page.circle(872, 484, 11, "", BLUE)
    page.text(894, 484, "of two wires, by element", anchor="start", size=12)
    page.box(860, 508, 24, 20, fill=GREY)
    page.text(894, 518, "the only weights", anchor="start", size=12)
