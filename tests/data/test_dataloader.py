"""DataLoader: batches, their fields and shapes, order and random stream, independent loops."""

import gzip
import struct

import numpy as np
import pytest

from needle.autograd import Tensor
from needle.data import DataLoader, Dataset, MNISTDataset, NDArrayDataset, RandomCrop
from needle.errors import ShapeError


class Items(Dataset):
    """A dataset of ready items, indexed by int alone, as a user would write it."""

    def __init__(self, items):
        super().__init__()
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        assert isinstance(index, int)
        return self.items[index]


class Recorded(NDArrayDataset):
    """Remembers how it was indexed."""

    def __init__(self, *arrays):
        super().__init__(*arrays)
        self.asked = []

    def __getitem__(self, index):
        self.asked.append(index)
        return super().__getitem__(index)


def values(loader):
    """Return the first field of every batch, as lists."""
    return [batch[0].numpy().tolist() for batch in loader]


def counting(n):
    return NDArrayDataset(np.arange(n, dtype=np.float32))


def test_batches_are_tuples_of_tensors_without_gradient():
    batches = list(DataLoader(counting(4), batch_size=2))
    assert len(batches) == 2
    for batch in batches:
        assert isinstance(batch, tuple) and len(batch) == 1
        assert isinstance(batch[0], Tensor) and not batch[0].requires_grad


@pytest.mark.parametrize("batch_size", [1, 3, 10, 11, 100])
def test_batches_follow_the_dataset_and_the_last_may_be_short(batch_size):
    array = np.random.RandomState(0).rand(10, 3, 2).astype(np.float32)
    dataset = NDArrayDataset(array)
    loader = DataLoader(dataset, batch_size)
    batches = list(loader)
    assert len(batches) == len(loader) == -(-10 // batch_size)
    for i, (X,) in enumerate(batches):
        expected = dataset[i * batch_size : (i + 1) * batch_size][0]
        assert X.shape == expected.shape
        np.testing.assert_array_equal(X.numpy(), expected)
        assert X.numpy().dtype == np.float32


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(
    "dataset", [NDArrayDataset(np.zeros((0, 3)), np.zeros(0)), Items([])], ids=["arrays", "items"]
)
def test_empty_dataset_gives_nothing(dataset, shuffle):
    loader = DataLoader(dataset, batch_size=4, shuffle=shuffle)
    assert len(loader) == 0
    assert list(loader) == []


@pytest.mark.parametrize("fields", [1, 2, 3])
@pytest.mark.parametrize("indexed", [True, False], ids=["index arrays", "item by item"])
def test_one_tensor_a_field(fields, indexed):
    rng = np.random.RandomState(1)
    arrays = [rng.rand(5, *[2] * i).astype(np.float32) for i in range(1, fields + 1)]
    dataset = NDArrayDataset(*arrays) if indexed else Items(list(zip(*arrays, strict=True)))
    batches = list(DataLoader(dataset, batch_size=2))
    assert [len(batch) for batch in batches] == [fields] * 3
    for i, array in enumerate(arrays):
        np.testing.assert_array_equal(np.concatenate([b[i].numpy() for b in batches]), array)


@pytest.mark.parametrize("container", [Items, list])
def test_bare_arrays_are_one_field_whatever_their_first_axis(container):
    arrays = [np.full((2, 3), i, dtype=np.float32) for i in range(4)]
    for batch in DataLoader(container(arrays), batch_size=2):
        assert len(batch) == 1
        assert batch[0].shape == (2, 2, 3)


def test_bare_array_from_a_dataset_that_takes_index_arrays():
    class Bare(Items):
        takes_index_arrays = True

        def __getitem__(self, index):
            return self.items[index]

    for batch in DataLoader(Bare(np.ones((4, 2), dtype=np.float32)), batch_size=2):
        assert len(batch) == 1 and batch[0].shape == (2, 2)


def test_items_may_hold_numbers_and_tensors():
    items = [(Tensor([1.0, 2.0]), 7), (Tensor([3.0, 4.0]), 8)]
    ((X, y),) = DataLoader(Items(items), batch_size=2)
    np.testing.assert_array_equal(X.numpy(), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(y.numpy(), [7, 8])


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32])
def test_labels_arrive_unchanged_in_any_dtype(dtype):
    labels = np.array([9, 0, 10, 3]).astype(dtype)
    ((y,),) = DataLoader(NDArrayDataset(labels), batch_size=4)
    np.testing.assert_array_equal(y.numpy(), labels)
    if dtype is not np.uint8:
        ((y,),) = DataLoader(NDArrayDataset(-labels), batch_size=4)
        np.testing.assert_array_equal(y.numpy(), -labels)  # -1 is the loss's to refuse


def test_device(device):
    for X, y in DataLoader(NDArrayDataset(np.ones((3, 2)), np.arange(3)), 2, device=device):
        assert X.device == device and y.device == device


def test_batch_is_fetched_in_one_call_where_the_dataset_can():
    dataset = Recorded(np.arange(10.0))
    list(DataLoader(dataset, batch_size=4))
    assert [index.tolist() for index in dataset.asked] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_shuffled_order_is_the_golden_one():
    np.random.seed(0)
    loader = DataLoader(counting(100), batch_size=1, shuffle=True)
    assert [value for (value,) in values(loader)][:5] == [26, 86, 2, 55, 75]


def test_shuffle_draws_one_permutation_a_loop_and_nothing_before():
    np.random.seed(4)
    first, second = np.random.permutation(7), np.random.permutation(7)
    after = np.random.rand()
    np.random.seed(4)
    loader = DataLoader(counting(7), batch_size=3, shuffle=True)
    assert np.concatenate(values(loader)).tolist() == first.tolist()
    assert np.concatenate(values(loader)).tolist() == second.tolist()
    assert np.random.rand() == after


def test_order_is_drawn_when_a_loop_starts_not_at_its_first_batch():
    np.random.seed(4)
    order = np.random.permutation(5)
    np.random.seed(4)
    batches = iter(DataLoader(counting(5), shuffle=True))
    np.random.rand()
    assert [batch[0].numpy().item() for batch in batches] == order.tolist()


def test_unshuffled_loader_draws_nothing():
    np.random.seed(2)
    after = np.random.rand()
    np.random.seed(2)
    list(DataLoader(counting(5), batch_size=2))
    assert np.random.rand() == after


@pytest.mark.parametrize("shuffle", [False, True])
def test_loops_over_one_loader_do_not_disturb_each_other(shuffle):
    loader = DataLoader(counting(6), batch_size=2, shuffle=shuffle)
    pairs = [(a[0].numpy().tolist(), b[0].numpy().tolist()) for a in loader for b in loader]
    assert len(pairs) == 9
    outer = [a for a, _ in pairs[::3]]
    assert sorted(np.concatenate(outer).tolist()) == list(range(6))
    for start in (0, 3, 6):
        inner = [b for _, b in pairs[start : start + 3]]
        assert sorted(np.concatenate(inner).tolist()) == list(range(6))


def test_loop_left_early_starts_over():
    loader = DataLoader(counting(6), batch_size=2)
    next(iter(loader))
    assert values(loader) == values(loader) == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("transforms", [None, [RandomCrop(1)]], ids=["plain", "transformed"])
def test_mnist_batches_equal_slices(tmp_path, transforms):
    pixels = np.random.RandomState(0).randint(0, 256, (5, 3, 4)).astype(np.uint8)
    images, labels = tmp_path / "i.gz", tmp_path / "l.gz"
    images.write_bytes(gzip.compress(struct.pack(">4I", 2051, 5, 3, 4) + pixels.tobytes()))
    labels.write_bytes(gzip.compress(struct.pack(">2I", 2049, 5) + bytes(range(5))))
    dataset = MNISTDataset(images, labels, transforms=transforms)
    np.random.seed(1)
    batches = list(DataLoader(dataset, batch_size=2))
    np.random.seed(1)
    for start, (X, y) in zip((0, 2, 4), batches, strict=True):
        expected_X, expected_y = dataset[start : start + 2]
        assert X.shape == expected_X.shape
        np.testing.assert_allclose(X.numpy(), expected_X, rtol=1e-6)
        np.testing.assert_array_equal(y.numpy(), expected_y)


def test_batch_does_not_share_memory_with_the_dataset():
    array = np.zeros(3, dtype=np.float32)
    ((X,),) = DataLoader(NDArrayDataset(array), batch_size=3)
    array[0] = 5
    assert X.numpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize("batch_size", [0, -1, 2.0, None, "8"])
def test_bad_batch_size(batch_size):
    with pytest.raises(ShapeError, match=r"\[DataLoader\] batch_size is .*whole number from 1 up"):
        DataLoader(counting(3), batch_size=batch_size)


def test_items_that_do_not_stack():
    with pytest.raises(ShapeError, match=r"items of shapes \[\(2,\), \(3,\)\].*batch_size=1"):
        list(DataLoader(Items([np.zeros(2), np.zeros(3)]), batch_size=2))
    with pytest.raises(ShapeError, match=r"items of \[1, 2\] fields"):
        list(DataLoader(Items([(1,), (1, 2)]), batch_size=2))
