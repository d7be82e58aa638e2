"""The datasets that come with needle, one file each."""

from needle.data.datasets.cifar10_dataset import CIFAR10Dataset
from needle.data.datasets.mnist_dataset import MNISTDataset, parse_mnist
from needle.data.datasets.ndarray_dataset import NDArrayDataset
from needle.data.datasets.ptb_dataset import Corpus, Dictionary, batchify, get_batch

__all__ = [
    "CIFAR10Dataset",
    "Corpus",
    "Dictionary",
    "MNISTDataset",
    "NDArrayDataset",
    "batchify",
    "get_batch",
    "parse_mnist",
]
