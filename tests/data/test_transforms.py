"""Transforms: values, direction of the shift, and what they draw from np.random."""

import numpy as np
import pytest

from needle.data import RandomCrop, RandomFlipHorizontal, Transform
from needle.errors import ShapeError


@pytest.fixture
def image():
    """A 4 x 5 image of 2 channels, every element different and none zero."""
    return np.arange(1, 41, dtype=np.float32).reshape(4, 5, 2)


def shifted(image, down, right):
    """Return the picture moved by whole pixels, zeros where it left, written pixel by pixel."""
    out = np.zeros_like(image)
    rows, columns, _ = image.shape
    for row in range(rows):
        for column in range(columns):
            if 0 <= row - down < rows and 0 <= column - right < columns:
                out[row, column] = image[row - down, column - right]
    return out


def test_flip_mirrors_the_width_only(image):
    np.testing.assert_array_equal(RandomFlipHorizontal(p=1)(image), image[:, ::-1, :])
    np.testing.assert_array_equal(RandomFlipHorizontal(p=0)(image), image)


def test_flip_decides_by_one_draw_below_p(image):
    np.random.seed(0)
    draws = np.random.rand(50)
    np.random.seed(0)
    flip = RandomFlipHorizontal(p=0.3)
    for draw in draws:
        expected = image[:, ::-1, :] if draw < 0.3 else image
        np.testing.assert_array_equal(flip(image), expected)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_flip_always_draws_once(image, p):
    np.random.seed(3)
    np.random.rand()
    after_one_draw = np.random.rand()
    np.random.seed(3)
    RandomFlipHorizontal(p)(image)
    assert np.random.rand() == after_one_draw


def test_crop_moves_the_window_by_the_shift_rows_first(image, monkeypatch):
    monkeypatch.setattr(np.random, "randint", lambda low, high, size: np.array([2, -1]))
    cropped = RandomCrop(padding=3)(image)
    np.testing.assert_array_equal(cropped, shifted(image, down=-2, right=1))
    np.testing.assert_array_equal(cropped[0, 1], image[2, 0])


@pytest.mark.parametrize("padding", [0, 1, 3, 9])
def test_crop_follows_the_random_stream(image, padding):
    np.random.seed(11)
    shifts = [np.random.randint(low=-padding, high=padding + 1, size=2) for _ in range(20)]
    after = np.random.rand()
    np.random.seed(11)
    crop = RandomCrop(padding)
    for down, right in shifts:
        np.testing.assert_array_equal(crop(image), shifted(image, -down, -right))
    assert np.random.rand() == after  # one draw a call, none besides


def test_crop_reaches_both_ends_of_its_range():
    np.random.seed(0)
    image = np.ones((3, 3, 1), dtype=np.float32)
    crop = RandomCrop(padding=1)
    kept = {crop(image).sum() for _ in range(100)}
    assert kept == {4.0, 6.0, 9.0}  # two, one or no side pushed out


@pytest.mark.parametrize("transform", [RandomFlipHorizontal(1), RandomCrop(2)])
def test_transforms_keep_shape_dtype_and_the_original(image, transform):
    before = image.copy()
    out = transform(image)
    assert out.shape == image.shape and out.dtype == np.float32
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize("transform", [RandomFlipHorizontal(), RandomCrop()])
@pytest.mark.parametrize("shape", [(4, 5), (7, 4, 5, 1)])
def test_transforms_refuse_what_is_not_one_image(transform, shape):
    with pytest.raises(ShapeError, match=r"shape \(.*one image has \(height, width, channels\)"):
        transform(np.zeros(shape, dtype=np.float32))


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match=r"\[RandomFlipHorizontal\] p is 50; a probability"):
        RandomFlipHorizontal(50)
    with pytest.raises(ShapeError, match=r"\[RandomCrop\] padding is -1"):
        RandomCrop(-1)


def test_base_transform_must_be_written():
    with pytest.raises(NotImplementedError):
        Transform()(np.zeros((1, 1, 1)))
