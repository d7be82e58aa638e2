"""A dataset of arrays already in memory."""

from typing import Any

import numpy as np

from needle.data.data_basic import Dataset
from needle.errors import ShapeError

__all__ = ["NDArrayDataset"]


class NDArrayDataset(Dataset):
    """Arrays of equal length, side by side: item i is the tuple of every array's i-th part.

    Always a tuple, of one field for a single array. Raises ShapeError for no arrays or unequal
    lengths.
    """

    ### SINCE full
    takes_index_arrays = True

    ### END SINCE
    def __init__(self, *arrays: Any) -> None:
        super().__init__()
        self.arrays = tuple(np.asarray(array) for array in arrays)
        if not self.arrays or any(array.ndim == 0 for array in self.arrays):
            raise ShapeError("[NDArrayDataset] needs one or more arrays with a first axis to index")
        lengths = [len(array) for array in self.arrays]
        if len(set(lengths)) > 1:
            raise ShapeError(f"[NDArrayDataset] arrays of lengths {lengths}; they must agree")

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: Any) -> tuple[np.ndarray, ...]:
        """Return a tuple of `array[index]`; index is an int, a slice or an index array."""
        return tuple(array[index] for array in self.arrays)
