"""The digits of data/digits as arrays, for the stages without a data set of their own."""

import gzip

import basis
import numpy as np

FOLDER = basis.ROOT / "data" / "digits"


def files(part: str) -> tuple[str, str]:
    """Return the names of the files with the images and the labels of "train" or "t10k"."""
    kinds = ("images-idx3", "labels-idx1")
    images, labels = (str(FOLDER / f"{part}-{kind}-ubyte.gz") for kind in kinds)
    return images, labels


def load(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the images as float32 (n, 784), 0 to 1, and the labels as uint8 (n,)."""
    images, labels = files(part)
    with gzip.open(images) as file:
        pixels = np.frombuffer(file.read(), dtype=np.uint8, offset=16)
    with gzip.open(labels) as file:
        y = np.frombuffer(file.read(), dtype=np.uint8, offset=8)
    return pixels.reshape(len(y), -1).astype(np.float32) / 255, y
