"""CIFAR-10's batch files: what CIFAR10Dataset reads, and that a hostile pickle runs nothing."""

import io
import os
import pickle
import pickletools
import warnings

import numpy as np
import pytest

import needle as ndl
from needle.data import CIFAR10Dataset, DataLoader, RandomCrop, RandomFlipHorizontal, Transform
from needle.errors import DataError, DataNotFoundError


def pixels_of(count, seed=0):
    return np.random.RandomState(seed).randint(0, 256, (count, 3072)).astype(np.uint8)


def batch(count, seed=0):
    return {b"data": pixels_of(count, seed), b"labels": [i % 10 for i in range(count)]}


def write(path, content, protocol=4):
    path.write_bytes(pickle.dumps(content, protocol=protocol))


@pytest.fixture
def folder(tmp_path):
    """Two training batches of 4 and 3 images, a test batch of 2."""
    write(tmp_path / "data_batch_1", batch(4, seed=1))
    write(tmp_path / "data_batch_2", batch(3, seed=2))
    write(tmp_path / "test_batch", batch(2, seed=3))
    return tmp_path


def test_item(folder):
    dataset = CIFAR10Dataset(folder, train=True)
    item = dataset[2]
    assert isinstance(item, tuple) and len(item) == 2
    image, label = item
    assert isinstance(image, np.ndarray) and image.shape == (3, 32, 32)
    assert image.dtype == np.float32
    np.testing.assert_allclose(image, pixels_of(4, 1)[2].reshape(3, 32, 32) / 255, rtol=1e-6)
    assert label == 2 and label.dtype == np.uint8
    with pytest.raises(IndexError):
        dataset[7]


@pytest.mark.parametrize(("train", "count"), [(True, 7), (False, 2)])
def test_all_batches_of_a_part_are_joined_in_order(folder, train, count):
    dataset = CIFAR10Dataset(str(folder), train, p=0, transforms=None)
    expected = [pixels_of(4, 1), pixels_of(3, 2)] if train else [pixels_of(2, 3)]
    assert len(dataset) == count and dataset.X.shape == (count, 3, 32, 32)
    np.testing.assert_allclose(dataset.X.reshape(count, -1), np.concatenate(expected) / 255, 1e-6)
    assert dataset.y.tolist() == ([0, 1, 2, 3, 0, 1, 2] if train else [0, 1])
    assert dataset.X.max() <= 1 and dataset.X.dtype == np.float32


def test_more_than_nine_batches_come_in_the_order_of_their_numbers(tmp_path):
    for number in range(1, 12):
        write(tmp_path / f"data_batch_{number}", batch(1, seed=number))
    expected = np.concatenate([pixels_of(1, seed) for seed in range(1, 12)]) / 255
    dataset = CIFAR10Dataset(tmp_path, train=True)
    np.testing.assert_allclose(dataset.X.reshape(11, -1), expected, rtol=1e-6)


@pytest.mark.parametrize("index", [slice(1, 6, 2), np.array([5, 0, 5]), [2], slice(3, 3)], ids=str)
@pytest.mark.parametrize("transforms", [None, [RandomCrop(0)]], ids=["plain", "transformed"])
def test_several_items_are_stacked(folder, index, transforms):
    dataset = CIFAR10Dataset(folder, train=True, transforms=transforms)
    images, labels = dataset[index]
    np.testing.assert_array_equal(images, dataset.X[index])
    np.testing.assert_array_equal(labels, dataset.y[index])
    assert images.shape == (len(labels), 3, 32, 32)


def test_loader_gives_batches_of_tensors(folder, device):
    dataset = CIFAR10Dataset(folder, train=True)
    batches = list(DataLoader(dataset, batch_size=4, device=device))
    assert [X.shape for X, _ in batches] == [(4, 3, 32, 32), (3, 3, 32, 32)]
    X, y = batches[1]
    assert X.device == y.device == device and X.dtype == "float32"
    np.testing.assert_array_equal(X.numpy(), dataset.X[4:])
    assert y.numpy().tolist() == [0, 1, 2]


class KeepShape(Transform):
    def __call__(self, x):
        self.seen = x.shape
        x[0, 0] = 9  # a transform may write into its image
        return x


def test_transforms_see_channels_last_and_cannot_change_the_dataset(folder):
    transform = KeepShape()
    dataset = CIFAR10Dataset(folder, train=False, transforms=[transform])
    image, _ = dataset[1]
    assert transform.seen == (32, 32, 3) and image.shape == (3, 32, 32)
    assert (image[:, 0, 0] == 9).all() and dataset.X.max() <= 1


def test_flip_mirrors_left_and_right(folder):
    dataset = CIFAR10Dataset(folder, train=False, transforms=[RandomFlipHorizontal(p=1)])
    np.testing.assert_array_equal(dataset[0][0], dataset.X[0][:, :, ::-1])
    np.testing.assert_array_equal(dataset[0:2][0], dataset.X[:, :, :, ::-1])


def test_crop_moves_rows_and_columns_of_every_channel_alike(folder):
    dataset = CIFAR10Dataset(folder, train=False, transforms=[RandomCrop(padding=3)])
    np.random.seed(11)
    down, right = np.random.randint(-3, 4, size=2)
    np.random.seed(11)
    padded = np.pad(dataset.X[0], ((0, 0), (3, 3), (3, 3)))
    expected = padded[:, 3 + down : 35 + down, 3 + right : 35 + right]
    np.testing.assert_array_equal(dataset[0][0], expected)
    assert down != right


def test_views_of_the_dataset_are_read_only(folder):
    images, labels = CIFAR10Dataset(folder, train=True)[0:2]
    for view in (images, labels):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 0


# --- forms of a batch file ---


@pytest.mark.parametrize("protocol", range(3, pickle.HIGHEST_PROTOCOL + 1))
def test_protocols_that_write_bytes_as_bytes(tmp_path, protocol):
    write(tmp_path / "test_batch", batch(3), protocol)
    dataset = CIFAR10Dataset(tmp_path, train=False)
    np.testing.assert_allclose(dataset.X.reshape(3, -1), pixels_of(3) / 255, rtol=1e-6)


def python2_pickle(count):
    """Return what Python 2 with numpy 1 writes, as in CIFAR-10's own files: text is bytes."""

    def text(value):
        if len(value) < 256:
            return b"U" + bytes([len(value)]) + value
        return b"T" + len(value).to_bytes(4, "little") + value

    data = pixels_of(count).tobytes()
    shape = b"(M" + count.to_bytes(2, "little") + b"M" + (3072).to_bytes(2, "little") + b"t"
    dtype = b"cnumpy\ndtype\n(" + text(b"u1") + b"K\x00K\x01tR(K\x03" + text(b"|")
    dtype += b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + text(b"b") + b"tR"
    array += b"(K\x01" + shape + dtype + b"\x89" + text(data) + b"tb"
    labels = b"](" + b"".join(b"K" + bytes([i % 10]) for i in range(count)) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(b"labels") + labels + b"u."


def test_a_batch_as_python_2_wrote_it_is_read_without_a_warning(tmp_path):
    content = python2_pickle(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's own reading warns
        numpys = pickle.loads(content, encoding="bytes")
    np.testing.assert_array_equal(numpys[b"data"], pixels_of(3))  # so it is a sound example
    (tmp_path / "test_batch").write_bytes(content)
    dataset = CIFAR10Dataset(tmp_path, train=False)
    np.testing.assert_allclose(dataset.X.reshape(3, -1), pixels_of(3) / 255, rtol=1e-6)
    assert dataset.y.tolist() == [0, 1, 2]


@pytest.mark.parametrize("protocol", [4, 5])
def test_array_in_column_order(tmp_path, protocol):
    content = batch(3)
    content[b"data"] = np.asfortranarray(content[b"data"])
    write(tmp_path / "test_batch", content, protocol)
    dataset = CIFAR10Dataset(tmp_path, train=False)
    np.testing.assert_allclose(dataset.X.reshape(3, -1), pixels_of(3) / 255, rtol=1e-6)


# --- hostile pickles ---


class Calls:
    """Pickles as a call of a function, which plain unpickling would run."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def hostile(name, marker):
    command = f"touch {marker}"
    code = f"open({str(marker)!r}, 'w').close()"
    return {
        "os.system": Calls(os.system, command),
        "builtins.eval": Calls(eval, code),
        "builtins.exec": Calls(exec, code),
        "builtins.getattr": Calls(getattr, "text", "upper"),
        "numpy.load": Calls(np.load, str(marker), None, True),
        "numpy.fromfile": Calls(np.fromfile, str(marker)),
        "numpy.apply_along_axis": Calls(np.apply_along_axis, os.system, 0, [command]),
        "io.open": Calls(io.open, str(marker), "w"),
        "codecs.encode": Calls(__import__("codecs").encode, "a", "rot13"),
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "builtins.eval",
        "builtins.exec",
        "builtins.getattr",
        "numpy.load",
        "numpy.fromfile",
        "numpy.apply_along_axis",
        "io.open",
        "codecs.encode",
    ],
)
@pytest.mark.parametrize("place", ["whole", "value", "dtype"])
def test_hostile_pickle_runs_nothing(folder, tmp_path_factory, name, place):
    marker = tmp_path_factory.mktemp("outside") / "ran"
    payload = hostile(name, marker)
    content = payload if place == "whole" else {**batch(1), b"data": payload}
    if place == "dtype":  # inside what would be an array
        content = {**batch(1), b"data": Calls(np.dtype, payload)}
    write(folder / "test_batch", content)
    with pytest.raises(DataError, match=r"\[CIFAR10Dataset\] .*test_batch names [\w.]+, which"):
        CIFAR10Dataset(folder, train=False)
    assert not marker.exists()


HAND_MADE = {
    "instance opcode": b"(S'touch ran'\nios\nsystem\n.",
    "object opcode": b"(cos\nsystem\nS'touch ran'\no.",
    "stack global": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x09touch ran\x85R.",
    "dotted name": b"\x80\x04\x8c\x05numpy\x8c\x0dndarray.tofile\x93.",
    "extension code": b"\x80\x02\x82\x01.",
    "persistent id": b"Pos.system\n.",
}


@pytest.mark.parametrize("name", HAND_MADE)
def test_hostile_opcodes(folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    (folder / "test_batch").write_bytes(HAND_MADE[name])
    with pytest.raises(DataError, match=r"test_batch (names|is no whole pickle)"):
        CIFAR10Dataset("", train=False)
    assert not (folder / "ran").exists()


def test_stand_ins_cannot_be_changed_by_a_pickle(folder):
    # BUILD on the stand-in itself, with attributes to set on it
    (folder / "test_batch").write_bytes(b"\x80\x02cnumpy\nndarray\nN}U\x05state}s\x86b.")
    with pytest.raises(DataError):
        CIFAR10Dataset(folder, train=False)
    assert len(CIFAR10Dataset(folder, train=True)) == 7


def test_claimed_sizes_allocate_nothing(folder):
    content = batch(1)
    content[b"data"] = Calls(np.ndarray, (2**40, 3072), "u1")
    write(folder / "test_batch", content)
    with pytest.raises(DataError, match="has no uint8 array of shape"):
        CIFAR10Dataset(folder, train=False)


# --- damaged and missing files ---


def cut_short(content):
    return content[:-100]


def cut_within_the_pixels(content):
    return content[: len(content) // 2]


def html_page(content):
    return b"<!DOCTYPE html><html><body>403 Forbidden</body></html>"


def empty_file(content):
    return b""


@pytest.mark.parametrize("damage", [cut_short, cut_within_the_pixels, html_page, empty_file])
def test_damaged_file_is_refused_by_name(folder, damage):
    path = folder / "data_batch_2"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(
        DataError, match=r"data_batch_2 (is cut short|is no whole pickle).*fetch it again"
    ) as caught:
        CIFAR10Dataset(folder, train=True)
    assert "\n" not in str(caught.value)


def test_every_cut_and_every_changed_byte_is_refused_or_read(tmp_path):
    write(tmp_path / "test_batch", batch(1))
    content = (tmp_path / "test_batch").read_bytes()
    structure = [i for _, _, i in pickletools.genops(content)]
    for position in structure:
        for damaged in (
            content[:position],
            content[:position] + bytes([content[position] ^ 0x55]) + content[position + 1 :],
        ):
            (tmp_path / "test_batch").write_bytes(damaged)
            try:
                CIFAR10Dataset(tmp_path, train=False)
            except DataError:
                continue


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({b"labels": None}, "no list of 2 labels"),
        ({b"labels": [1]}, "no list of 2 labels"),
        ({b"labels": [1, 10]}, "has the label 10; labels are whole numbers from 0 to 9"),
        ({b"labels": [-1, 1]}, "has the label -1"),
        ({b"labels": [0.5, 1]}, r"has the label 0\.5"),
        ({b"data": np.zeros((2, 3072), np.float32)}, r"no uint8 array of shape \(n, 3072\)"),
        ({b"data": np.zeros((2, 3073), np.uint8)}, "no uint8 array"),
        ({b"data": np.zeros(6144, np.uint8)}, "no uint8 array"),
        ({b"data": np.zeros((2, 3072), np.int8)}, "no uint8 array"),
        ({b"data": np.zeros((2, 3072), object)}, "no uint8 array"),
        ({b"data": b"0" * 6144}, "no uint8 array"),
        ({b"data": [[0] * 3072] * 2}, "no uint8 array"),
    ],
    ids=repr,
)
def test_content_that_is_no_batch(folder, change, message):
    write(folder / "test_batch", {**batch(2), **change})
    with pytest.raises(DataError, match=rf"\[CIFAR10Dataset\] .*test_batch .*{message}"):
        CIFAR10Dataset(folder, train=False)


@pytest.mark.parametrize("content", [[1, 2], {b"data": 1}, {"data": 1, "labels": []}, 3], ids=repr)
def test_content_without_the_keys(folder, content):
    write(folder / "test_batch", content)
    with pytest.raises(DataError, match="holds no dictionary with the keys"):
        CIFAR10Dataset(folder, train=False)


def test_missing_files_say_where_they_were_looked_for(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(DataNotFoundError) as caught:
        CIFAR10Dataset("cifar-10-batches-py", train=True)
    assert str(folder / "cifar-10-batches-py" / "data_batch_1") in str(caught.value)
    assert "python -m needle.data.download cifar10" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("missing", ["data_batch_1", "data_batch_2", "test_batch"])
def test_a_gap_among_the_files_is_no_smaller_set(folder, missing):
    write(folder / "data_batch_3", batch(1))
    (folder / missing).unlink()
    with pytest.raises(DataNotFoundError, match=missing):
        CIFAR10Dataset(folder, train=missing != "test_batch")


def test_other_files_in_the_folder_are_left_alone(folder):
    for name in ("data_batch_x", "data_batch_2.bak", "data_batch_03", "batches.meta"):
        (folder / name).write_bytes(b"not a batch")
    assert len(CIFAR10Dataset(folder, train=True)) == 7


def test_a_folder_in_the_place_of_a_file(folder):
    (folder / "test_batch").unlink()
    (folder / "test_batch").mkdir()
    with pytest.raises(DataError, match="test_batch cannot be read: Is a directory"):
        CIFAR10Dataset(folder, train=False)


def test_it_is_reached_by_the_courses_name():
    assert ndl.data.CIFAR10Dataset is CIFAR10Dataset
