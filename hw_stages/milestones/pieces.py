"""Easy text for a minute of training: the short pieces of the embedded book that consist of common
words alone, one a line, in the form that a Corpus reads; and writing with a trained model.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import basis
import numpy as np

TEXT = basis.ROOT / "data" / "text" / "train.txt"
MARKS = frozenset(",;.:!?")
UNKNOWN, END_OF_LINE = "<unk>", "<eos>"
LEAST, MOST = 4, 11  # words in a piece


def pieces(common: int) -> list[list[str]]:
    """Return what stands between two marks, the second included, where all its words are among the
    `common` most frequent ones of the text.
    """
    lines = [line.split() for line in TEXT.read_text(encoding="utf-8").splitlines()]
    counts = Counter(word for line in lines for word in line if word != UNKNOWN)
    known = {word for word, _ in counts.most_common(common)}
    found, piece = [], []
    for line in lines:
        for word in line:
            piece.append(word)
            if word in MARKS:
                if LEAST <= len(piece) <= MOST and known.issuperset(piece):
                    found.append(piece)
                piece = []
        piece = []
    return found


def write_pieces(common: int) -> tempfile.TemporaryDirectory:
    """Return a temporary folder with the pieces as train.txt and test.txt; every tenth is for
    testing.
    """
    found = pieces(common)
    folder = tempfile.TemporaryDirectory()
    parts = {
        "train.txt": [piece for i, piece in enumerate(found) if i % 10],
        "test.txt": found[::10],
    }
    for name, part in parts.items():
        lines = "".join(" ".join(piece) + "\n" for piece in part)
        (Path(folder.name) / name).write_text(lines, encoding="utf-8")
    return folder


def in_columns(ids: Sequence[int], end: int) -> np.ndarray:
    """Return the pieces of a text as columns (MOST + 2, pieces): an end of line, the piece, and
    ends of line to the bottom.
    """
    text = np.asarray(ids)
    found = np.split(text, np.flatnonzero(text == end) + 1)[:-1]
    columns = np.full((MOST + 2, len(found)), end)
    for column, piece in enumerate(found):
        columns[1 : len(piece) + 1, column] = piece
    return columns


def written(
    next_logits: Callable[[list[int]], np.ndarray],
    vocabulary: Sequence[str],
    rng: np.random.Generator,
    lines: int,
    temperature: float = 0.6,
) -> list[str]:
    """Return lines that a model writes, each from an end of line to the next, or to MOST words.

    `next_logits` takes the ids read so far and returns the logits (words,) of the next one.
    """
    end = list(vocabulary).index(END_OF_LINE)
    result = []
    for _ in range(lines):
        ids = [end]
        while len(ids) <= MOST and (ids[-1] != end or len(ids) == 1):
            logits = np.asarray(next_logits(ids), dtype=np.float64)
            if len(ids) == 1:
                logits[end] = -np.inf  # no empty line
            weights = np.exp((logits - logits.max()) / temperature)
            ids.append(int(rng.choice(len(weights), p=weights / weights.sum())))
        words = [vocabulary[i] for i in ids if i != end]
        result.append(joined(words))
    return result


def joined(words: Sequence[str]) -> str:
    """Return words as a line, with no blank before a mark."""
    line = ""
    for word in words:
        line += word if word in MARKS or word == "'s" or not line else f" {word}"
    return line
