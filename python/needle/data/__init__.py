"""Datasets, transforms and the loader that turns them into batches of Tensors.

Start reading at data_basic.py; `datasets/` holds the readers of files.
"""

from needle.data.data_basic import DataLoader, Dataset
from needle.data.data_transforms import RandomCrop, RandomFlipHorizontal, Transform
from needle.data.datasets import (
    CIFAR10Dataset,
    Corpus,
    Dictionary,
    MNISTDataset,
    NDArrayDataset,
    batchify,
    get_batch,
    parse_mnist,
)

__all__ = [
    "CIFAR10Dataset",
    "Corpus",
    "DataLoader",
    "Dataset",
    "Dictionary",
    "MNISTDataset",
    "NDArrayDataset",
    "RandomCrop",
    "RandomFlipHorizontal",
    "Transform",
    "batchify",
    "get_batch",
    "parse_mnist",
]
