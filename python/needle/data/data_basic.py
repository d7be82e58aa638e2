"""Dataset, the base of all datasets, and DataLoader, which makes batches of Tensors from one.

Datasets deal in numpy arrays on the host; only the loader makes Tensors. Next:
datasets/mnist_dataset.py.
"""

import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from needle.autograd import Tensor
from needle.errors import IndexingError, ShapeError

__all__ = ["DataLoader", "Dataset"]


class Dataset:
    """The base class of datasets: something with a length whose items are found by position.

    An item is a tuple (or list) of fields, such as image and label, or one bare array. A subclass
    whose `__getitem__` also takes an array of positions, and returns every field stacked, sets
    `takes_index_arrays = True`: the loader then fetches a batch in one call.
    """

    takes_index_arrays = False

    def __init__(self, transforms: Sequence[Any] | None = None) -> None:
        self.transforms = transforms

    def __getitem__(self, index: Any) -> Any:
        """Return the item at `index`; IndexError beyond the end."""
        raise NotImplementedError

    def __len__(self) -> int:
        """Return the number of items."""
        raise NotImplementedError

    def apply_transforms(self, x: Any) -> Any:
        """Return `x` after each transform, in the order of the list."""
        for transform in self.transforms or ():
            x = transform(x)
        return x


class DataLoader:
    """Batches of a dataset: each a tuple of Tensors, one a field, that need no gradient.

    Items that are bare arrays give tuples of one Tensor. The last batch is short if the sizes do
    not divide. Each loop over a loader has its own place and, with `shuffle`, its own order: one
    `np.random.permutation(len(dataset))`, drawn when the loop starts. A `sampler` gives the order
    instead: any iterable of positions, iterated anew by each loop and only as far as batches are
    asked for; the loader has a length if the sampler has one. Tensors lie on `device`, or on the
    default device.

    Raises:
        ShapeError: for a batch size below 1.
        ValueError: for `shuffle` beside a sampler.
        IndexingError: when a sampler gives anything but whole positions one by one.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        device: Any = None,
        sampler: Iterable[Any] | None = None,
    ) -> None:
        if not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
            raise ShapeError(
                f"[DataLoader] batch_size is {batch_size!r}; it is a whole number from 1 up"
            )
        if shuffle and sampler is not None:
            raise ValueError(
                "[DataLoader] shuffle=True beside a sampler; both choose the order, so give one"
            )
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.device = device
        self.sampler: Any = sampler
        self.ordering = self._cut(np.arange(len(dataset)))

    def __len__(self) -> int:
        """Return the number of batches; TypeError where a sampler has no length."""
        positions = self.dataset if self.sampler is None else self.sampler
        return -(-len(positions) // self.batch_size)  # rounded up

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        """Return a new iterator over all batches; with `shuffle`, in a new order."""
        if self.sampler is not None:
            return map(self._batch, self._draw(iter(self.sampler)))
        if self.shuffle:
            return map(self._batch, self._cut(np.random.permutation(len(self.dataset))))
        return map(self._batch, self.ordering)

    def _cut(self, order: np.ndarray) -> list[np.ndarray]:
        """Return positions cut into batches."""
        size = self.batch_size
        return [order[start : start + size] for start in range(0, len(order), size)]

    def _draw(self, sampler: Iterator[Any]) -> Iterator[np.ndarray]:
        """Yield positions batch by batch as a sampler gives them."""
        while drawn := list(itertools.islice(sampler, self.batch_size)):
            try:
                positions = np.array([operator.index(position) for position in drawn])
            except TypeError:
                raise IndexingError(
                    f"[DataLoader] the sampler gives {drawn}; it gives whole positions one by one"
                ) from None
            yield positions

    def _batch(self, indices: np.ndarray) -> tuple[Tensor, ...]:
        """Return the items at `indices` as Tensors."""
        return tuple(
            Tensor(field, device=self.device, requires_grad=False)
            for field in fetch(self.dataset, indices)
        )


def fetch(dataset: Any, indices: np.ndarray) -> Sequence[np.ndarray]:
    """Return the items of a dataset at `indices`, stacked field by field."""
    if getattr(dataset, "takes_index_arrays", False):
        return fields_of(dataset[indices])
    items = [fields_of(dataset[int(index)]) for index in indices]
    counts = {len(fields) for fields in items}
    if len(counts) > 1:
        raise ShapeError(
            f"[DataLoader] items of {sorted(counts)} fields in one dataset; all need as many"
        )
    return [stack(values) for values in zip(*items, strict=True)]


def fields_of(item: Any) -> Sequence[Any]:
    """Return an item's fields; a bare array is one field, whatever its first axis."""
    return item if isinstance(item, (tuple, list)) else (item,)


def stack(values: Sequence[Any]) -> np.ndarray:
    """Return one field of every item as one array with a new first axis."""
    arrays = [value.numpy() if isinstance(value, Tensor) else np.asarray(value) for value in values]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise ShapeError(
            f"[DataLoader] items of shapes {sorted(shapes)}; a batch stacks equal shapes;"
            " pad or crop them, or use batch_size=1"
        )
    return np.stack(arrays)
