"""The datasets that come with needle, one file each."""

from needle.data.datasets.mnist_dataset import MNISTDataset, parse_mnist
from needle.data.datasets.ndarray_dataset import NDArrayDataset

__all__ = ["MNISTDataset", "NDArrayDataset", "parse_mnist"]
