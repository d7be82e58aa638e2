"""Datasets, transforms and the loader that turns them into batches of Tensors.

Start reading at data_basic.py; `datasets/` holds the readers of files.
"""

from needle.data.data_basic import DataLoader, Dataset
from needle.data.data_transforms import RandomCrop, RandomFlipHorizontal, Transform
from needle.data.datasets import MNISTDataset, NDArrayDataset, parse_mnist

__all__ = [
    "DataLoader",
    "Dataset",
    "MNISTDataset",
    "NDArrayDataset",
    "RandomCrop",
    "RandomFlipHorizontal",
    "Transform",
    "parse_mnist",
]
