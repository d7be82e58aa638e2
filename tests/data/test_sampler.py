"""DataLoader with a sampler: the order that it gives, drawn anew for each loop, and its length."""

import itertools

import numpy as np
import pytest

from needle.data import DataLoader, Dataset, NDArrayDataset
from needle.errors import IndexingError

TEN = NDArrayDataset(np.arange(10, dtype=np.float32))


class Items(Dataset):
    """The numbers 0 to 9, indexed by int alone."""

    def __len__(self):
        return 10

    def __getitem__(self, index):
        assert type(index) is int
        return np.float32(index)


class Draws:
    """A sampler without a length: three draws from 0 to 9 a loop."""

    def __iter__(self):
        return iter(np.random.randint(10, size=3))


def batches_of(loader):
    return [batch[0].numpy().tolist() for batch in loader]


@pytest.mark.parametrize("dataset", [TEN, Items()], ids=["arrays", "items"])
@pytest.mark.parametrize(
    "sampler",
    [
        [7, 0, 7, 3, 9],
        (7, 0, 7, 3, 9),
        np.array([7, 0, 7, 3, 9]),
        [7, 0, np.array(7), 3, np.int8(9)],
    ],
    ids=["list", "tuple", "array", "mixed"],
)
def test_sampler_gives_the_order(dataset, sampler):
    loader = DataLoader(dataset, batch_size=2, sampler=sampler)
    assert batches_of(loader) == [[7, 0], [7, 3], [9]]
    assert batches_of(loader) == [[7, 0], [7, 3], [9]]
    assert len(loader) == 3


def test_length_is_the_samplers():
    assert len(DataLoader(TEN, batch_size=3, sampler=range(4))) == 2
    assert len(DataLoader(TEN, batch_size=3, sampler=[])) == 0
    assert batches_of(DataLoader(TEN, batch_size=3, sampler=[])) == []


def test_each_loop_draws_anew_when_it_starts():
    loader = DataLoader(TEN, batch_size=2, sampler=Draws())
    with pytest.raises(TypeError):
        len(loader)
    np.random.seed(3)
    expected = [np.random.randint(10, size=3).tolist() for _ in range(2)]
    np.random.seed(3)
    assert [list(itertools.chain(*batches_of(loader))) for _ in range(2)] == expected


def test_endless_sampler_is_asked_only_for_what_is_needed():
    asked = []

    def count():
        for position in itertools.count():
            asked.append(position)
            yield position % 10

    loop = iter(DataLoader(TEN, batch_size=4, sampler=count()))
    assert asked == []
    assert next(loop)[0].numpy().tolist() == [0, 1, 2, 3]
    assert len(asked) == 4


def test_loops_over_one_loader_are_independent():
    loader = DataLoader(TEN, batch_size=1, sampler=[4, 5])
    first, second = iter(loader), iter(loader)
    values = [next(loop)[0].item() for loop in (first, second, first, second)]
    assert values == [4, 4, 5, 5]


def test_sampler_beside_shuffle():
    with pytest.raises(ValueError, match=r"\[DataLoader\] shuffle=True beside a sampler"):
        DataLoader(TEN, shuffle=True, sampler=[0])
    with pytest.raises(ValueError, match="beside a sampler"):
        DataLoader(TEN, shuffle=True, sampler=[])  # an empty one is a sampler too


@pytest.mark.parametrize(
    "position", [1.5, "1", None, [1, 2], np.array([1]), np.bool_(True)], ids=str
)
@pytest.mark.parametrize("dataset", [TEN, Items()], ids=["arrays", "items"])
def test_positions_are_whole_numbers(dataset, position):
    with pytest.raises(IndexingError, match=r"\[DataLoader\] the sampler gives .* one by one"):
        list(DataLoader(dataset, batch_size=2, sampler=[0, position]))


def test_position_beyond_the_end():
    with pytest.raises(IndexError):
        list(DataLoader(TEN, batch_size=2, sampler=[0, 10]))


def test_loader_without_sampler_draws_nothing_more():
    np.random.seed(0)
    list(DataLoader(TEN, batch_size=3, sampler=range(10)))
    first = np.random.rand()
    np.random.seed(0)
    assert np.random.rand() == first
