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

    An item is a tuple (or list) of fields, such as image and label, or one bare array.
    """

    ### SINCE full
    # True where `__getitem__` also takes an array of positions and returns every field stacked: the
    # loader then fetches a batch in one call.
    takes_index_arrays = False

    ### END SINCE
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
    `np.random.permutation(len(dataset))`, drawn when the loop starts. Tensors lie on `device`, or
    on the default device. Raises ShapeError for a batch size below 1.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        device: Any = None,
        ### SINCE full
        sampler: Iterable[Any] | None = None,
        ### END SINCE
    ) -> None:
        ### SINCE full
        """Take the settings.

        A `sampler` gives the order: any iterable of positions, iterated anew by each loop and only
        as far as batches are asked for; the loader has a length if the sampler has one.

        Raises:
            ValueError: for `shuffle` beside a sampler.
            IndexingError: in a loop, when a sampler gives anything but whole positions one by one.
        """
        ### END SINCE
        if not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
            raise ShapeError(
                f"[DataLoader] batch_size is {batch_size!r}; it is a whole number from 1 up"
            )
        ### SINCE full
        if shuffle and sampler is not None:
            raise ValueError(
                "[DataLoader] shuffle=True beside a sampler; both choose the order, so give one"
            )
        self.sampler: Any = sampler
        ### END SINCE
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.device = device

    def __len__(self) -> int:
        """Return the number of batches."""
        ### SINCE full
        if self.sampler is not None:  # TypeError where it has no length
            return -(-len(self.sampler) // self.batch_size)
        ### END SINCE
        return -(-len(self.dataset) // self.batch_size)  # rounded up

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        """Return a new iterator over all batches; with `shuffle`, in a new order."""
        ### SINCE full
        if self.sampler is not None:
            return map(self._batch, self._draw(iter(self.sampler)))
        ### END SINCE
        ### BEGIN SOLUTION hw2.data_loader.iter
        order = np.arange(len(self.dataset))
        if self.shuffle:
            order = np.random.permutation(len(self.dataset))
        starts = range(0, len(order), self.batch_size)
        return (self._batch(order[start : start + self.batch_size]) for start in starts)
        ### END SOLUTION

    ### SINCE full
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

    ### END SINCE
    def _batch(self, indices: np.ndarray) -> tuple[Tensor, ...]:
        """Return the items at `indices` as Tensors: one a field, stacked along a new first axis."""
        ### SINCE full
        if getattr(self.dataset, "takes_index_arrays", False):
            return tuple(map(self._tensor, fields_of(self.dataset[indices])))
        ### END SINCE
        ### BEGIN SOLUTION hw2.data_loader.batch
        items = [fields_of(self.dataset[int(index)]) for index in indices]
        return tuple(self._tensor(stack(values)) for values in columns(items))
        ### END SOLUTION

    def _tensor(self, values: np.ndarray) -> Tensor:
        """Return one field of a batch as a Tensor."""
        return Tensor(values, device=self.device, requires_grad=False)


def fields_of(item: Any) -> Sequence[Any]:
    """Return an item's fields; a bare array is one field, whatever its first axis."""
    return item if isinstance(item, (tuple, list)) else (item,)


def columns(items: Sequence[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Return the fields of several items side by side: first all first fields, and so on."""
    counts = {len(fields) for fields in items}
    if len(counts) > 1:
        raise ShapeError(
            f"[DataLoader] items of {sorted(counts)} fields in one dataset; all need as many"
        )
    return zip(*items, strict=True)


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
