"""Datasets: items, slices and index arrays, transforms, and the arrays that they protect."""

import gzip
import struct

import numpy as np
import pytest

from needle.data import (
    Dataset,
    MNISTDataset,
    NDArrayDataset,
    RandomCrop,
    RandomFlipHorizontal,
    Transform,
)
from needle.errors import DataNotFoundError, ShapeError

ROWS, COLUMNS = 6, 4


class AddOne(Transform):
    def __call__(self, x):
        return x + 1


class DoubleInPlace(Transform):
    def __call__(self, x):
        x *= 2
        return x


@pytest.fixture
def pixels():
    return np.random.RandomState(0).randint(0, 256, (10, ROWS, COLUMNS)).astype(np.uint8)


@pytest.fixture
def files(tmp_path, pixels):
    """A pair of files of ten 6 x 4 images, labelled 0 to 9."""
    images, labels = tmp_path / "images.gz", tmp_path / "labels.gz"
    images.write_bytes(gzip.compress(struct.pack(">4I", 2051, *pixels.shape) + pixels.tobytes()))
    labels.write_bytes(gzip.compress(struct.pack(">2I", 2049, 10) + bytes(range(10))))
    return images, labels


def test_mnist_item(files, pixels):
    dataset = MNISTDataset(*files)
    assert len(dataset) == 10
    item = dataset[3]
    assert isinstance(item, tuple) and len(item) == 2
    image, label = item
    assert image.shape == (ROWS, COLUMNS, 1) and image.dtype == np.float32
    np.testing.assert_allclose(image[..., 0], pixels[3] / 255, rtol=1e-6)
    assert label == 3 and label.dtype == np.uint8
    assert dataset[-1][1] == 9
    with pytest.raises(IndexError):
        dataset[10]


@pytest.mark.parametrize(
    "index",
    [slice(2, 5), slice(None, None, -3), slice(0, 1), slice(4, 4), np.array([7, 0, 7]), [1, 2]],
    ids=str,
)
@pytest.mark.parametrize("transforms", [None, [AddOne()]], ids=["plain", "transformed"])
def test_mnist_several_items_are_stacked(files, pixels, index, transforms):
    images, labels = MNISTDataset(*files, transforms=transforms)[index]
    expected = pixels[index][..., np.newaxis] / 255 + (0 if transforms is None else 1)
    if len(expected):
        np.testing.assert_allclose(images, expected, rtol=1e-6)
    assert images.shape == expected.shape and images.dtype == np.float32
    assert labels.tolist() == np.arange(10)[index].tolist() and labels.dtype == np.uint8


def test_mnist_dataset_can_be_looped_over(files):
    assert [int(label) for _, label in MNISTDataset(*files)] == list(range(10))


def test_transforms_run_in_the_order_of_the_list(files, pixels):
    first = MNISTDataset(*files, transforms=[AddOne(), DoubleInPlace()])
    second = MNISTDataset(*files, transforms=[DoubleInPlace(), AddOne()])
    image = pixels[0, ..., np.newaxis] / 255
    np.testing.assert_allclose(first[0][0], 2 * (image + 1), rtol=1e-6)
    np.testing.assert_allclose(second[0][0], 2 * image + 1, rtol=1e-6)


def test_transforms_draw_image_by_image(files):
    dataset = MNISTDataset(*files, transforms=[RandomCrop(2), RandomFlipHorizontal()])
    np.random.seed(5)
    together = dataset[2:8][0]
    np.random.seed(5)
    one_by_one = np.stack([dataset[i][0] for i in range(2, 8)])
    np.testing.assert_array_equal(together, one_by_one)


@pytest.mark.parametrize("index", [0, slice(0, 2), np.array([0, 1])], ids=str)
def test_transforms_cannot_change_the_dataset(files, index):
    dataset = MNISTDataset(*files, transforms=[DoubleInPlace()])
    np.testing.assert_array_equal(dataset[index][0], dataset[index][0])


def test_views_of_the_dataset_are_read_only(files):
    images, labels = MNISTDataset(*files)[0:2]
    with pytest.raises(ValueError, match="read-only"):
        images[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        labels[0] = 0


def test_mnist_dataset_reports_a_missing_file(files):
    with pytest.raises(DataNotFoundError, match=r"no file .*absent\.gz"):
        MNISTDataset(files[0].with_name("absent.gz"), files[1])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_ndarray_dataset_gives_one_field_an_array(count):
    arrays = [np.arange(12.0).reshape(6, 2) + i for i in range(count)]
    dataset = NDArrayDataset(*arrays)
    assert len(dataset) == 6
    for index in (2, slice(1, 4), np.array([5, 0])):
        item = dataset[index]
        assert isinstance(item, tuple) and len(item) == count
        for field, array in zip(item, arrays, strict=True):
            np.testing.assert_array_equal(field, array[index])


def test_ndarray_dataset_refuses_arrays_that_do_not_fit():
    with pytest.raises(ShapeError, match=r"\[NDArrayDataset\] arrays of lengths \[3, 4\]"):
        NDArrayDataset(np.zeros(3), np.zeros(4))
    with pytest.raises(ShapeError, match="one or more arrays"):
        NDArrayDataset()
    with pytest.raises(ShapeError, match="first axis"):
        NDArrayDataset(np.float32(1))


def test_base_dataset_must_be_written():
    dataset = Dataset(transforms=[AddOne(), AddOne()])
    assert dataset.apply_transforms(0) == 2
    assert Dataset().apply_transforms(0) == 0
    with pytest.raises(NotImplementedError):
        dataset[0]
    with pytest.raises(NotImplementedError):
        len(dataset)
