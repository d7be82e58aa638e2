"""What the tests of the MNIST programs share: small sets of digits, and the lines of an epoch."""

import gzip
import re
import struct

import numpy as np

from tests.apps.programs import ROOT

EMBEDDED = ROOT / "data" / "digits"

# What the program prints after an epoch: its number, loss and accuracy in training and in testing.
EPOCH_LINE = re.compile(
    r"epoch +(\d+): train loss (\S+) accuracy (\S+), test loss (\S+) accuracy (\S+)"
)


def write_digits(folder, train=20, test=5, seed=0):
    """Write a training and a test set whose images show their label as a bright row."""
    rng = np.random.default_rng(seed)
    for part, count in (("train", train), ("t10k", test)):
        labels = rng.permutation(np.arange(count) % 10).astype(np.uint8)
        images = rng.integers(0, 60, (count, 28, 28), dtype=np.uint8)
        images[np.arange(count), labels * 2] = 250
        with gzip.open(folder / f"{part}-images-idx3-ubyte.gz", "wb", compresslevel=1) as file:
            file.write(struct.pack(">4I", 2051, count, 28, 28) + images.tobytes())
        with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz", "wb", compresslevel=1) as file:
            file.write(struct.pack(">2I", 2049, count) + labels.tobytes())
    return folder


def scores_in(printed):
    """Return the numbers of every epoch's line, each as a tuple of floats."""
    return [tuple(map(float, match)) for match in EPOCH_LINE.findall(printed)]
