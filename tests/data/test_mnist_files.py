"""Gzipped IDX files: what `parse_mnist` reads, and how it refuses what it cannot read."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from needle.data import parse_mnist
from needle.errors import DataError, DataNotFoundError, NeedleError

DIGITS = Path(__file__).parents[2] / "data" / "digits"
IMAGE_MAGIC, LABEL_MAGIC = 2051, 2049


def idx(magic, array, sizes=None):
    """Return the bytes of an IDX file whose header may claim other sizes than the array has."""
    sizes = array.shape if sizes is None else sizes
    return struct.pack(f">{1 + len(sizes)}I", magic, *sizes) + array.tobytes()


@pytest.fixture
def images():
    """Two images: one of 0, 128, 255 and 64, one so faint that no pixel exceeds 4."""
    array = np.zeros((2, 28, 28), dtype=np.uint8)
    array[0, 0, :4] = [0, 128, 255, 64]
    array[1, 27] = np.arange(28) % 5
    return array


@pytest.fixture
def pair(tmp_path, images):
    """The paths of a sound pair of files."""
    image_file, label_file = tmp_path / "images.gz", tmp_path / "labels.gz"
    image_file.write_bytes(gzip.compress(idx(IMAGE_MAGIC, images)))
    label_file.write_bytes(gzip.compress(idx(LABEL_MAGIC, np.array([7, 3], dtype=np.uint8))))
    return image_file, label_file


def test_parse_mnist_scales_all_images_alike(pair):
    X, y = parse_mnist(*pair)
    assert X.shape == (2, 784) and X.dtype == np.float32
    np.testing.assert_allclose(X[0, :4], [0, 0.5019608, 1, 0.2509804], rtol=1e-6)
    assert X[1].max() == pytest.approx(0.0156863, rel=1e-5)  # 4/255, not stretched to 1
    assert X[1, 27 * 28 + 4] == X[1].max()  # rows stay in order
    assert y.dtype == np.uint8 and y.tolist() == [7, 3]


def test_parse_mnist_takes_strings_and_returns_writeable_arrays(pair):
    X, y = parse_mnist(*map(str, pair))
    X[0, 0], y[0] = 1, 9
    assert X[0, 0] == 1 and y[0] == 9


@pytest.mark.parametrize("shape", [(3, 5, 4), (1, 1, 1), (0, 28, 28)])
def test_sizes_come_from_the_header(tmp_path, shape):
    pixels = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    image_file, label_file = tmp_path / "i.gz", tmp_path / "l.gz"
    image_file.write_bytes(gzip.compress(idx(IMAGE_MAGIC, pixels)))
    label_file.write_bytes(gzip.compress(idx(LABEL_MAGIC, np.arange(shape[0], dtype=np.uint8))))
    X, y = parse_mnist(image_file, label_file)
    assert X.shape == (shape[0], shape[1] * shape[2])
    np.testing.assert_allclose(X, pixels.reshape(X.shape) / np.float32(255))
    assert y.tolist() == list(range(shape[0]))


def test_counts_that_differ(pair):
    image_file, label_file = pair
    label_file.write_bytes(gzip.compress(idx(LABEL_MAGIC, np.zeros(3, dtype=np.uint8))))
    with pytest.raises(DataError, match=r"images\.gz holds 2 images, .*labels\.gz 3 labels"):
        parse_mnist(image_file, label_file)


def test_files_in_the_wrong_order(pair):
    pair[1].write_bytes(gzip.compress(idx(LABEL_MAGIC, np.zeros(60, dtype=np.uint8))))
    with pytest.raises(DataError, match=r"labels\.gz begins with the magic number 2049"):
        parse_mnist(*reversed(pair))


def cut_by_ten_bytes(packed, images):
    return packed[:-10]


def html_page(packed, images):
    return b"<!DOCTYPE html><html><body>403 Forbidden</body></html>"


def flipped_byte(packed, images):
    middle = len(packed) // 2
    return packed[:middle] + bytes([packed[middle] ^ 0xFF]) + packed[middle + 1 :]


def payload_too_short(packed, images):
    return gzip.compress(idx(IMAGE_MAGIC, images, sizes=(3, 28, 28)))


def payload_too_long(packed, images):
    return gzip.compress(idx(IMAGE_MAGIC, images, sizes=(1, 28, 28)))


def sizes_beyond_any_memory(packed, images):
    return gzip.compress(idx(IMAGE_MAGIC, images, sizes=(2**32 - 1,) * 3))


def wrong_magic(packed, images):
    return gzip.compress(idx(2052, images))


def no_header(packed, images):
    return gzip.compress(b"\0\0\x08\x03\0\0")


def empty_file(packed, images):
    return b""


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut_by_ten_bytes, "is cut short.*fetch it again"),
        (html_page, r"is not a whole gzip file \(Not a gzipped file.*fetch it again"),
        (flipped_byte, "is not a whole gzip file|is cut short"),
        (payload_too_short, r"holds 1568 bytes, its header says \(3, 28, 28\)"),
        (payload_too_long, r"holds 1568 bytes, its header says \(1, 28, 28\)"),
        (sizes_beyond_any_memory, "holds 1568 bytes, its header says"),
        (wrong_magic, "magic number 2052; images have 2051, labels 2049"),
        (no_header, "unpacks to 6 bytes, its header alone takes 16"),
        (empty_file, "unpacks to 0 bytes, its header alone takes 16"),
    ],
)
def test_damaged_file_is_refused_by_name(pair, images, damage, message):
    image_file, _ = pair
    image_file.write_bytes(damage(image_file.read_bytes(), images))
    with pytest.raises(DataError, match=rf"(?s)\[parse_mnist\] .*images\.gz.*({message})"):
        parse_mnist(*pair)


def test_damaged_labels_are_refused_by_name(pair):
    _, label_file = pair
    label_file.write_bytes(gzip.compress(idx(LABEL_MAGIC, np.zeros(1, np.uint8), sizes=(2,))))
    with pytest.raises(DataError, match=r"labels\.gz holds 1 bytes, its header says \(2,\)"):
        parse_mnist(*pair)


def test_missing_file_says_where_it_looked_and_what_to_do(pair, monkeypatch):
    image_file, label_file = pair
    monkeypatch.chdir(image_file.parent)  # a relative path is reported in full
    for error in (DataNotFoundError, FileNotFoundError, NeedleError):
        with pytest.raises(error) as caught:
            parse_mnist("data/absent.gz", label_file)
        assert str(image_file.parent / "data" / "absent.gz") in str(caught.value)
        assert "--data-dir data/digits" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_parsing_does_not_depend_on_the_working_directory(tmp_path, monkeypatch):
    files = DIGITS / "t10k-images-idx3-ubyte.gz", DIGITS / "t10k-labels-idx1-ubyte.gz"
    X, y = parse_mnist(*files)
    monkeypatch.chdir(tmp_path)
    X_elsewhere, y_elsewhere = parse_mnist(*files)
    np.testing.assert_array_equal(X, X_elsewhere)
    np.testing.assert_array_equal(y, y_elsewhere)


@pytest.mark.parametrize(("name", "count"), [("train", 4000), ("t10k", 1000)])
def test_embedded_digits_are_balanced_and_shuffled(name, count):
    X, y = parse_mnist(
        DIGITS / f"{name}-images-idx3-ubyte.gz", DIGITS / f"{name}-labels-idx1-ubyte.gz"
    )
    assert X.shape == (count, 784)
    assert np.bincount(y, minlength=10).tolist() == [count // 10] * 10
    assert (np.bincount(y[:100], minlength=10) > 0).all()  # sorted labels would show one class
    assert X.min() == 0 and X.max() == 1


def test_embedded_training_and_test_digits_do_not_overlap():
    train, test = (
        parse_mnist(
            DIGITS / f"{name}-images-idx3-ubyte.gz", DIGITS / f"{name}-labels-idx1-ubyte.gz"
        )[0]
        for name in ("train", "t10k")
    )
    assert len(np.unique(np.concatenate([train, test]), axis=0)) == 5000


def test_embedded_digits_stay_small():
    assert sum(path.stat().st_size for path in DIGITS.glob("*.gz")) < 1_000_000
