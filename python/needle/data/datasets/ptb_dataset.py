"""Text as word numbers: `train.txt` and `test.txt` in the form of the Penn Treebank corpus.

A `Corpus` numbers the words, `batchify` lays them out in columns, `get_batch` cuts windows for
truncated backpropagation through time. Where the files go is in data/README.md.
"""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from needle.autograd import Tensor
from needle.errors import DataError, DataNotFoundError, IndexingError, ShapeError

__all__ = ["Corpus", "Dictionary", "batchify", "get_batch"]

END_OF_LINE = "<eos>"


class Dictionary:
    """Words numbered from 0 in the order of their first sight."""

    def __init__(self) -> None:
        self.word2idx: dict[str, int] = {}
        self.idx2word: list[str] = []

    def add_word(self, word: str) -> int:
        """Return the number of a word; a word not seen before gets the next one."""
        ### BEGIN SOLUTION hw4.dictionary.add_word
        if word not in self.word2idx:
            self.word2idx[word] = len(self.idx2word)
            self.idx2word.append(word)
        return self.word2idx[word]
        ### END SOLUTION

    def __len__(self) -> int:
        """Return the number of different words."""
        ### BEGIN SOLUTION hw4.dictionary.len
        return len(self.idx2word)
        ### END SOLUTION


class Corpus:
    """The numbers of all words of `train.txt` and `test.txt`, which share one dictionary.

    `train` and `test` are lists of ints. With `max_lines`, only so many lines of each file count.

    Raises:
        DataError: if a file is not text in UTF-8.
        DataNotFoundError: if a file is missing.
    """

    def __init__(self, base_dir: str | os.PathLike[str], max_lines: int | None = None) -> None:
        self.dictionary = Dictionary()
        self.train = self.tokenize(Path(base_dir) / "train.txt", max_lines)
        self.test = self.tokenize(Path(base_dir) / "test.txt", max_lines)

    def tokenize(self, path: str | os.PathLike[str], max_lines: int | None = None) -> list[int]:
        """Return the numbers of a file's words, with `<eos>` after each line, new words added.

        Words are what blanks part; an empty line is an end of line alone.
        """
        if max_lines is not None and max_lines < 0:
            raise ShapeError(f"[Corpus] max_lines is {max_lines}; it counts lines, from 0 up")
        try:
            with Path(path).open(encoding="utf-8") as lines:
                ### BEGIN SOLUTION hw4.corpus.tokenize
                add_word = self.dictionary.add_word
                return [
                    add_word(word)
                    for line in itertools.islice(lines, max_lines)
                    for word in (*line.split(), END_OF_LINE)
                ]
                ### END SOLUTION
        except FileNotFoundError:
            raise DataNotFoundError(
                f"[Corpus] no file {Path(path).absolute()}; `python -m needle.data.download ptb`"
                " fetches the corpus, and data/README.md says where it goes"
            ) from None
        except UnicodeDecodeError as error:
            raise DataError(
                f"[Corpus] {path} is not text in UTF-8 ({error.reason} at byte {error.start});"
                " delete it and fetch it again"
            ) from None


def batchify(
    data: Sequence[int], batch_size: int, device: Any = None, dtype: Any = "float32"
) -> np.ndarray:
    """Return a numpy array (len(data) // batch_size, batch_size): each column reads on as text.

    What does not fill a whole row at the end is left out. The array stays on the host whatever the
    `device`; `get_batch` moves what it cuts. Raises ShapeError for less data than one row.
    """
    if batch_size < 1 or len(data) < batch_size:
        raise ShapeError(
            f"[batchify] {len(data)} words in {batch_size} columns; each column needs a word"
        )
    ### BEGIN SOLUTION hw4.batchify
    rows = len(data) // batch_size
    columns = np.array(data[: rows * batch_size], dtype=dtype).reshape(batch_size, rows)
    return np.ascontiguousarray(columns.T)
    ### END SOLUTION


def get_batch(
    batches: np.ndarray, i: int, bptt: int, device: Any = None, dtype: Any = None
) -> tuple[Tensor, Tensor]:
    """Return rows i .. i + L as inputs (L, batch_size) and as targets (L * batch_size,) what each
    word's column says next; L is `bptt`, or less where the rows end.

    Both are Tensors that need no gradient. Raises IndexingError where no row follows row i.
    """
    if i < 0 or min(bptt, len(batches) - 1 - i) < 1:
        raise IndexingError(
            f"[get_batch] {bptt} rows from row {i} of {len(batches)}; i runs from 0 to"
            f" {len(batches) - 2}, since the last row is only a target"
        )
    ### BEGIN SOLUTION hw4.get_batch
    length = min(bptt, len(batches) - 1 - i)
    inputs, targets = batches[i : i + length], batches[i + 1 : i + 1 + length].reshape(-1)
    return (
        Tensor(inputs, device=device, dtype=dtype, requires_grad=False),
        Tensor(targets, device=device, dtype=dtype, requires_grad=False),
    )
    ### END SOLUTION
