"""The causal mask: the scores of six words with one another, the mask, what softmax leaves."""

import math
from typing import Any

import numpy as np

import needle as ndl
from hw_stages.pictures.drawing import GREY, WHITE, Page, number
from needle import nn

TITLE = "Causal attention: scores, mask, probabilities"
WORDS = ("call", "me", "ishmael", "some", "years", "ago")
CELL = (50, 38)


def draw() -> str:
    """Return the picture."""
    np.random.seed(3)
    q, k, v = (ndl.Tensor(np.random.randn(1, 1, 6, 4).astype("float32")) for _ in range(3))
    attention = nn.MultiHeadAttention(causal=True)
    scores = (q @ k.transpose() / math.sqrt(4)).numpy()[0, 0]
    mask = np.array(ndl.Tensor(attention.create_causal_mask(6, 6, q.device)).numpy())[0, 0]
    probs = attention(q, k, v)[1].numpy()[0, 0]
    page = Page(1170, 424, TITLE)
    _table(page, 90, "scores = q kᵀ / √D", scores, lambda i, j: WHITE, number)
    _table(page, 462, "+ mask (0, or −3.4e38)", mask, lambda i, j: GREY if mask[i, j] else WHITE,
           lambda value: "−3e38" if value else "0")  # fmt: skip
    _table(
        page, 834, "softmax of each row = probs", probs, lambda i, j: _shade(probs[i, j]), number
    )
    page.text(90, 362, "Rows are queries, columns are keys: a word looks at itself and at those "
              "before it. Each row of probs adds up to 1;", anchor="start", size=13.5)  # fmt: skip
    page.text(90, 386, f"row “{WORDS[1]}” is softmax([{number(scores[1, 0])}, "
              f"{number(scores[1, 1])}]) = [{number(probs[1, 0])}, {number(probs[1, 1])}], "
              "then zeros.", anchor="start", size=13.5)  # fmt: skip
    return page.svg()


def _table(page: Page, x: float, title: str, values: np.ndarray, fill: Any, words: Any) -> None:
    """Draw a table of 6 by 6 with the words at its sides."""
    page.text(x, 28, title, anchor="start", bold=True, size=15)
    top = 100
    for n, word in enumerate(WORDS):
        page.text(x - 8, top + (n + 0.5) * CELL[1], word, anchor="end", size=13)
        page.text(x + (n + 0.5) * CELL[0], top - 14 - 18 * (n % 2), word, size=13)
    page.grid(x, top, [[words(v) for v in row] for row in values], cell=CELL, fill=fill, size=12.5)
    page.outline(x, top, 6 * CELL[0], 6 * CELL[1])


def _shade(probability: float) -> str:
    """Return a grey, the darker the likelier, on which dark words still read."""
    level = round(255 - 105 * float(probability))
    return f"#{level:02x}{level:02x}{level:02x}"
