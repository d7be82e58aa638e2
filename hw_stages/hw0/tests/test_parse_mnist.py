"""hw0.parse_mnist: gzipped IDX files, made here and those of data/digits."""

import gzip
import struct
import tempfile
from pathlib import Path

import numpy as np

from needle_course.testing import close, equal, graded

DIGITS = "data/digits/"


def parsed(simple_ml, pixels, labels):
    """Write a pair of files for images (n, rows, columns) and labels (n,), and parse it."""
    with tempfile.TemporaryDirectory() as folder:
        images, names = Path(folder, "images.gz"), Path(folder, "labels.gz")
        header = struct.pack(">4I", 2051, *pixels.shape)
        images.write_bytes(gzip.compress(header + pixels.tobytes()))
        header = struct.pack(">2I", 2049, len(labels))
        names.write_bytes(gzip.compress(header + labels.tobytes()))
        return simple_ml.parse_mnist(str(images), str(names))


def made(rng, count, rows, columns, brightest=256):
    """Return random images and labels."""
    pixels = rng.integers(0, brightest, (count, rows, columns), dtype=np.uint8)
    return {"pixels": pixels, "labels": rng.integers(0, 10, count, dtype=np.uint8)}


@graded("hw0.parse_mnist::images")
class Images:
    """Images are rows of float32: each byte divided by 255."""

    def inputs(rng):
        return made(rng, 3, 28, 28)

    def probe(simple_ml, inputs):
        return {"X": parsed(simple_ml, inputs["pixels"], inputs["labels"])[0]}

    def check(inputs, outputs):
        expected = inputs["pixels"].reshape(3, 784) / np.float32(255)
        close("X", outputs["X"], expected, dtype="float32")


@graded("hw0.parse_mnist::labels")
class Labels:
    """Labels are uint8, in the order of the file."""

    def inputs(rng):
        return made(rng, 20, 4, 4)

    def probe(simple_ml, inputs):
        return {"y": parsed(simple_ml, inputs["pixels"], inputs["labels"])[1]}

    def check(inputs, outputs):
        close("y", outputs["y"], inputs["labels"], dtype="uint8")


@graded("hw0.parse_mnist::other_sizes")
class OtherSizes:
    """The header tells the size: images need not be 28 x 28, nor as high as wide."""

    def inputs(rng):
        return made(rng, 5, 3, 7)

    def probe(simple_ml, inputs):
        X, y = parsed(simple_ml, inputs["pixels"], inputs["labels"])
        return {"X": X, "y": y}

    def check(inputs, outputs):
        close("X", outputs["X"], inputs["pixels"].reshape(5, 21) / np.float32(255))
        equal("y", outputs["y"], inputs["labels"])


@graded("hw0.parse_mnist::one_scale")
class OneScale:
    """All images have the one scale 1 / 255, dark ones too."""

    def inputs(rng):
        return made(rng, 2, 5, 5, brightest=100)

    def probe(simple_ml, inputs):
        return {"X": parsed(simple_ml, inputs["pixels"], inputs["labels"])[0]}

    def check(inputs, outputs):
        close("X", outputs["X"], inputs["pixels"].reshape(2, 25) / np.float32(255))


@graded("hw0.parse_mnist::digits")
class Digits:
    """The digits of data/digits are read."""

    def inputs(rng):
        return {}

    def probe(simple_ml, inputs):
        X, y = simple_ml.parse_mnist(
            DIGITS + "t10k-images-idx3-ubyte.gz", DIGITS + "t10k-labels-idx1-ubyte.gz"
        )
        return {"X": X, "y": y}

    def check(inputs, outputs):
        pixels = gzip.decompress(Path(DIGITS + "t10k-images-idx3-ubyte.gz").read_bytes())[16:]
        labels = gzip.decompress(Path(DIGITS + "t10k-labels-idx1-ubyte.gz").read_bytes())[8:]
        expected = np.frombuffer(pixels, np.uint8).reshape(-1, 784) / np.float32(255)
        close("X", outputs["X"], expected, dtype="float32")
        equal("y", outputs["y"], np.frombuffer(labels, np.uint8))
