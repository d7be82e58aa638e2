"""The embedded pictures and text: their formats and sizes, and parts that do not overlap."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from needle.data import CIFAR10Dataset, Corpus

DATA = Path(__file__).parents[2] / "data"
sys.path.append(str(DATA))  # as an app does
import cut_pictures  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The batches, made anew."""
    return cut_pictures.picture_batches(tmp_path_factory.mktemp("pictures") / "batches")


# --- pictures ---


@pytest.mark.parametrize(("train", "count"), [(True, 4000), (False, 1000)])
def test_pictures_are_balanced_and_shuffled(folder, train, count):
    dataset = CIFAR10Dataset(folder, train)
    assert dataset.X.shape == (count, 3, 32, 32)
    assert np.bincount(dataset.y, minlength=10).tolist() == [count // 10] * 10
    assert (np.bincount(dataset.y[:100], minlength=10) > 0).all()  # sorted would show one class
    assert dataset.X.std() > 0.1 and len(np.unique(dataset.X, axis=0)) > 0.99 * count


def test_batches_open_as_cifar10s_own_files_do(folder):
    meta = pickle.loads((folder / "batches.meta").read_bytes(), encoding="bytes")
    assert meta[b"label_names"] == [path.stem.encode() for path in cut_pictures.photographs()]
    assert len(meta[b"label_names"]) == 10 and meta[b"num_vis"] == 3072
    batch = pickle.loads((folder / "test_batch").read_bytes(), encoding="bytes")
    assert batch[b"data"].shape == (1000, 3072) and batch[b"data"].dtype == np.uint8
    assert len(batch[b"labels"]) == 1000 and batch[b"batch_label"] == b"testing batch 1 of 1"


def test_an_image_lies_in_its_photograph(folder):
    """Planes, rows and mirroring: each full-size piece is found in the photograph of its label."""
    photos = [cut_pictures.read_png(path) for path in cut_pictures.photographs()]
    batch = pickle.loads((folder / "test_batch").read_bytes(), encoding="bytes")
    planes = batch[b"data"][:60].reshape(-1, 3, 32, 32)
    found = 0
    for image, label in zip(planes, batch[b"labels"][:60], strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(photos[label], (3, 3), axis=(0, 1))
        found += any(
            (windows == corner).all(axis=(2, 3, 4)).any()
            for corner in (image[:, :3, :3], image[:, :3, :-4:-1])
        )
    assert found >= 20  # about half are at full size; the others are averages


def test_test_cells_are_no_training_cells():
    train, test = set(cut_pictures.TRAIN_CELLS), set(cut_pictures.TEST_CELLS)
    assert len(train) == 12 and len(test) == 4 and not train & test


@pytest.mark.parametrize("cell", [(0, 0), (3, 2), (1, 3)])
def test_no_crop_leaves_its_cell(cell):
    photo = np.zeros((cut_pictures.SIZE, cut_pictures.SIZE, 3), np.uint8)
    top, left = cell[0] * cut_pictures.CELL, cell[1] * cut_pictures.CELL
    photo[top : top + cut_pictures.CELL, left : left + cut_pictures.CELL] = 200
    random = np.random.RandomState(0)
    for _ in range(200):
        assert (cut_pictures.cut(photo, cell, random) == 200).all()


def test_batches_are_the_same_each_time_and_draw_nothing_global(folder):
    np.random.seed(5)
    again = cut_pictures.batches()
    first = np.random.rand()
    np.random.seed(5)
    assert np.random.rand() == first
    for name, content in again.items():
        kept = pickle.loads((folder / name).read_bytes())
        assert kept.keys() == content.keys()
        for key, value in content.items():
            np.testing.assert_array_equal(kept[key], value)


def test_batches_are_made_only_when_something_changed(folder, monkeypatch):
    def refuse(folder):
        raise AssertionError("made again")

    monkeypatch.setattr(cut_pictures, "write_batches", refuse)
    assert cut_pictures.picture_batches(folder) == folder
    with monkeypatch.context() as older:
        older.setattr(cut_pictures, "photographs", lambda: [folder / "test_batch", folder])
        with pytest.raises(AssertionError, match="made again"):
            cut_pictures.picture_batches(folder)
    (folder / "batches.meta").rename(folder / "moved")
    with pytest.raises(AssertionError, match="made again"):
        cut_pictures.picture_batches(folder)
    (folder / "moved").rename(folder / "batches.meta")


def test_photographs_are_small_files_of_one_size():
    paths = cut_pictures.photographs()
    assert len(paths) == 10 and sum(path.stat().st_size for path in paths) < 1_500_000
    for path in paths:
        assert cut_pictures.read_png(path).shape == (cut_pictures.SIZE, cut_pictures.SIZE, 3)
        assert path.name in (DATA / "pictures" / "LICENSE.txt").read_text(encoding="utf-8")


def test_photographs_read_as_other_programs_read_them():
    image = pytest.importorskip("PIL.Image")
    for path in cut_pictures.photographs():
        expected = np.asarray(image.open(path).convert("RGB"))
        np.testing.assert_array_equal(cut_pictures.read_png(path), expected)


# --- text ---


def test_text_is_in_the_treebanks_form():
    for name in ("train.txt", "test.txt"):
        content = (DATA / "text" / name).read_text(encoding="utf-8")
        assert content.endswith("\n") and "\n\n" not in content
        assert content.isascii()
        tokens = set(content.split()) - {"N"}
        assert all(token == token.lower() for token in tokens)
        assert all(line == " ".join(line.split()) for line in content.splitlines())


def test_text_has_a_small_vocabulary_that_the_training_part_covers():
    corpus = Corpus(DATA / "text")
    assert len(corpus.dictionary) == 3706  # with <eos>
    assert len(corpus.train) > 100_000 and len(corpus.test) > 8_000
    assert set(corpus.test) <= set(corpus.train)
    assert {"once", "upon", "a", "time", "whale"} <= corpus.dictionary.word2idx.keys()
    unknown = corpus.train.count(corpus.dictionary.word2idx["<unk>"])
    assert unknown < 0.1 * len(corpus.train)


def test_text_parts_do_not_overlap():
    lines = {
        name: set((DATA / "text" / f"{name}.txt").read_text(encoding="utf-8").splitlines())
        for name in ("train", "test")
    }
    shared = [line for line in lines["train"] & lines["test"] if len(line.split()) > 8]
    assert shared == []


def test_text_stays_small():
    assert sum(path.stat().st_size for path in (DATA / "text").iterdir()) < 700_000
