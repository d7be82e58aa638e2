"""Small colour photographs from batch files in CIFAR-10's python format.

`cifar10_batches.py` reads one file; this is the dataset that all files of a part make.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from needle.data.data_basic import Dataset
from needle.data.data_transforms import Transform
from needle.data.datasets.cifar10_batches import read_batch, training_files

__all__ = ["CIFAR10Dataset"]

SHAPE = (3, 32, 32)  # red, green, blue planes; row by row


class CIFAR10Dataset(Dataset):
    """Photographs as (image, label): float32 (3, 32, 32) in 0..1, and uint8; `X` and `y` hold all.

    `base_folder` holds `data_batch_1`, `data_batch_2` ... for `train`, or `test_batch`. Index with
    an int, or with a slice or an index array for images (n, 3, 32, 32) and labels (n,). Transforms
    run image by image, in the order of the list, and see height x width x channels as everywhere
    in needle. `p` is there for the course's calls and unused; `RandomFlipHorizontal(p)` flips.

    Raises:
        DataError: if a file is damaged or names anything but the parts of an array.
        DataNotFoundError: if a file is missing.
    """

    takes_index_arrays = True

    def __init__(
        self,
        base_folder: str | os.PathLike[str],
        train: bool,
        p: float = 0.5,
        transforms: Sequence[Transform] | None = None,
    ) -> None:
        super().__init__(transforms)
        ### BEGIN SOLUTION hw4.cifar10_dataset.init
        folder = Path(base_folder)
        paths = training_files(folder) if train else [folder / "test_batch"]
        pixels, labels = zip(*map(read_batch, paths), strict=True)
        self.X = np.concatenate(pixels).reshape(-1, *SHAPE).astype(np.float32)
        self.X /= 255
        self.y = np.concatenate(labels)
        ### END SOLUTION
        self.X.flags.writeable = self.y.flags.writeable = False  # ints and slices hand out views

    def __len__(self) -> int:
        ### BEGIN SOLUTION hw4.cifar10_dataset.len
        return len(self.y)
        ### END SOLUTION

    def __getitem__(self, index: Any) -> tuple[np.ndarray, Any]:
        """Return image and label at an int, or stacks of both at a slice or an index array."""
        ### BEGIN SOLUTION hw4.cifar10_dataset.getitem
        images, labels = self.X[index], self.y[index]
        if not self.transforms or len(images) == 0:
            return images, labels
        if images.ndim == 3:  # one image
            return self.apply_transforms(images), labels
        return np.stack([self.apply_transforms(image) for image in images]), labels
        ### END SOLUTION

    def apply_transforms(self, x: np.ndarray) -> np.ndarray:
        """Return a channels-first image after each transform; these see channels last."""
        return super().apply_transforms(x.transpose(1, 2, 0).copy()).transpose(2, 0, 1)
