"""Handwritten digits from gzipped IDX files: MNIST, and the digits in `data/digits`.

`read_idx` follows the file format: big-endian 32-bit numbers, a magic one and the sizes, then one
byte an element. The functions below it refuse damaged files.
"""

import gzip
import math
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from needle.data.data_basic import Dataset
from needle.data.data_transforms import Transform
from needle.errors import DataError, DataNotFoundError

__all__ = ["MNISTDataset", "parse_mnist"]

IMAGE_MAGIC = 0x0803  # unsigned bytes (08) in 3 axes (03)
LABEL_MAGIC = 0x0801  # unsigned bytes in 1 axis

FilePath = str | os.PathLike[str]


class MNISTDataset(Dataset):
    """Digits as (image, label): float32 (rows, columns, 1) in 0..1, and uint8.

    Index with an int, or with a slice or an index array for images (n, rows, columns, 1) and labels
    (n,): the shapes of a loader's batch. Transforms run image by image, in the order of the list.
    Raises DataError for a damaged file, DataNotFoundError for a missing one.
    """

    ### SINCE full
    takes_index_arrays = True

    ### END SINCE
    def __init__(
        self,
        image_filename: FilePath,
        label_filename: FilePath,
        transforms: Sequence[Transform] | None = None,
    ) -> None:
        super().__init__(transforms)
        ### BEGIN SOLUTION hw2.mnist_dataset.init
        images, self.labels = read_pair(image_filename, label_filename)
        self.images = images[..., np.newaxis].astype(np.float32) / 255  # (n, rows, columns, 1)
        ### END SOLUTION
        ### SINCE full
        self.images.flags.writeable = False  # ints and slices hand out views
        ### END SINCE

    def __len__(self) -> int:
        """Return the number of images."""
        ### BEGIN SOLUTION hw2.mnist_dataset.len
        return len(self.labels)
        ### END SOLUTION

    def __getitem__(self, index: Any) -> tuple[np.ndarray, Any]:
        """Return image and label at an int, or stacks of both at a slice or an index array."""
        ### BEGIN SOLUTION hw2.mnist_dataset.getitem
        images, labels = self.images[index], self.labels[index]
        if not self.transforms or len(images) == 0:
            return images, labels
        if images.ndim == 3:  # one image
            return self.apply_transforms(images.copy()), labels
        return np.stack([self.apply_transforms(image.copy()) for image in images]), labels
        ### END SOLUTION


def parse_mnist(
    image_filename: FilePath, label_filename: FilePath
) -> tuple[np.ndarray, np.ndarray]:
    """Return `(X, y)`: float32 (n, rows * columns) in 0..1, one row an image, and uint8 (n,).

    Raises DataError for a damaged file, DataNotFoundError for a missing one.
    """
    images, labels = read_pair(image_filename, label_filename)
    count, rows, columns = images.shape
    # One scale for all images, so a faint one stays faint.
    return images.reshape(count, rows * columns).astype(np.float32) / 255, labels.copy()


def read_pair(image_filename: FilePath, label_filename: FilePath) -> tuple[np.ndarray, np.ndarray]:
    """Return images (n, rows, columns) and labels (n,), both uint8 and read-only."""
    images = read_idx(image_filename, IMAGE_MAGIC)
    labels = read_idx(label_filename, LABEL_MAGIC)
    if len(images) != len(labels):
        raise DataError(
            f"[parse_mnist] {image_filename} holds {len(images)} images, {label_filename}"
            f" {len(labels)} labels; a pair has as many of both; take the two files from one set"
        )
    return images, labels


def read_idx(filename: FilePath, magic: int) -> np.ndarray:
    """Return the read-only uint8 array in a gzipped IDX file, shaped as its header says."""
    data = unpack(filename)
    ndim = magic & 0xFF
    sizes = header_sizes(filename, data, magic, ndim)
    return np.frombuffer(data, dtype=np.uint8, offset=4 * (1 + ndim)).reshape(sizes)


def unpack(filename: FilePath) -> bytes:
    """Return what a gzip file holds; say how a file that cannot be read is damaged."""
    try:
        with gzip.open(filename, "rb") as file:
            return file.read()
    except FileNotFoundError:
        ### UNTIL hw5
        # hint = "the folder data/digits holds digits to begin with"
        ### END UNTIL
        ### SINCE full
        hint = (
            "`--data-dir data/digits` holds the embedded digits, and data/README.md says where the"
            " full set goes"
        )
        ### END SINCE
        raise DataNotFoundError(
            f"[parse_mnist] no file {Path(filename).absolute()}; {hint}"
        ) from None
    except EOFError:
        fault = "is cut short"
    except (gzip.BadGzipFile, zlib.error) as error:
        fault = f"is not a whole gzip file ({error})"
    raise DataError(f"[parse_mnist] {filename} {fault}; delete it and fetch it again")


def header_sizes(filename: FilePath, data: bytes, magic: int, ndim: int) -> tuple[int, ...]:
    """Return the sizes in an IDX header, after checking it against the bytes that follow."""
    start = 4 * (1 + ndim)
    if len(data) < start:
        raise DataError(
            f"[parse_mnist] {filename} unpacks to {len(data)} bytes, its header alone takes"
            f" {start}; delete it and fetch it again"
        )
    found, *sizes = struct.unpack(f">{1 + ndim}I", data[:start])
    if found != magic:
        raise DataError(
            f"[parse_mnist] {filename} begins with the magic number {found}; images have"
            f" {IMAGE_MAGIC}, labels {LABEL_MAGIC}; give images first, then labels"
        )
    if len(data) - start != math.prod(sizes):
        raise DataError(
            f"[parse_mnist] {filename} holds {len(data) - start} bytes, its header says"
            f" {tuple(sizes)}; delete it and fetch it again"
        )
    return tuple(sizes)
