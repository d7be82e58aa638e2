"""Text as word numbers: the dictionary, the corpus, columns and windows."""

import numpy as np
import pytest

import needle as ndl
from needle.data import Corpus, Dictionary, batchify, get_batch
from needle.errors import DataError, DataNotFoundError, IndexingError, ShapeError


@pytest.fixture
def folder(tmp_path):
    """Three lines of training text, one blank, and a test text without a line end."""
    (tmp_path / "train.txt").write_text(" the cat sat \n\n  the\tdog <unk> N\n", encoding="utf-8")
    (tmp_path / "test.txt").write_text("a dog sat", encoding="utf-8")
    return tmp_path


def test_dictionary_numbers_words_as_they_come():
    dictionary = Dictionary()
    assert len(dictionary) == 0
    assert [dictionary.add_word(word) for word in ("b", "a", "b", "c")] == [0, 1, 0, 2]
    assert dictionary.word2idx == {"b": 0, "a": 1, "c": 2}
    assert dictionary.idx2word == ["b", "a", "c"] and len(dictionary) == 3


def test_corpus_shares_one_dictionary_and_ends_each_line(folder):
    corpus = Corpus(folder)
    words = ["the", "cat", "sat", "<eos>", "dog", "<unk>", "N", "a"]
    assert corpus.dictionary.idx2word == words
    assert corpus.train == [0, 1, 2, 3, 3, 0, 4, 5, 6, 3]  # an empty line is an end alone
    assert corpus.test == [7, 4, 2, 3]  # one end, though the file has no last line end


@pytest.mark.parametrize(
    ("max_lines", "train", "test"),
    [(0, [], []), (1, [0, 1, 2, 3], [4, 5, 2, 3]), (2, [0, 1, 2, 3, 3], [4, 5, 2, 3])],
)
def test_max_lines_counts_lines_of_each_file(folder, max_lines, train, test):
    corpus = Corpus(str(folder), max_lines)
    assert corpus.train == train and corpus.test == test


def test_more_lines_than_there_are(folder):
    assert Corpus(folder, max_lines=100).train == Corpus(folder).train


def test_max_lines_below_zero(folder):
    with pytest.raises(ShapeError, match=r"\[Corpus\] max_lines is -1"):
        Corpus(folder, max_lines=-1)


def test_tokenize_adds_to_the_dictionary(folder, tmp_path):
    corpus = Corpus(folder)
    (tmp_path / "more.txt").write_bytes(b"cat bird\r\ncat\n")
    assert corpus.tokenize(tmp_path / "more.txt") == [1, 8, 3, 1, 3]
    assert corpus.tokenize(str(tmp_path / "more.txt"), max_lines=1) == [1, 8, 3]
    assert corpus.dictionary.idx2word[8] == "bird"


@pytest.mark.parametrize("missing", ["train.txt", "test.txt"])
def test_missing_file_says_where_it_was_looked_for(folder, monkeypatch, missing):
    monkeypatch.chdir(folder.parent)
    (folder / missing).unlink()
    with pytest.raises(DataNotFoundError, match="python -m needle.data.download ptb") as caught:
        Corpus(folder.name)
    assert str(folder / missing) in str(caught.value)


def test_text_in_another_encoding(folder):
    (folder / "test.txt").write_bytes(b"caf\xe9 \n")
    with pytest.raises(DataError, match=r"\[Corpus\] .*test\.txt is not text in UTF-8"):
        Corpus(folder)


def test_batchify_makes_columns_of_text_and_drops_the_rest():
    batches = batchify(list(range(26)), 4, device=None, dtype="float32")
    assert isinstance(batches, np.ndarray) and batches.dtype == np.float32
    expected = np.arange(24).reshape(4, 6).T
    np.testing.assert_array_equal(batches, expected)
    assert batches[:, 1].tolist() == [6, 7, 8, 9, 10, 11]


def test_batchify_keeps_the_dtype_that_is_asked_for():
    assert batchify(range(4), 2, dtype="int64").dtype == np.int64
    assert batchify(np.arange(4), 2).dtype == np.float32


@pytest.mark.parametrize(("count", "batch_size"), [(3, 4), (0, 1), (4, 0), (4, -1)])
def test_batchify_needs_a_row(count, batch_size):
    with pytest.raises(ShapeError, match=rf"\[batchify\] {count} words in {batch_size} columns"):
        batchify(list(range(count)), batch_size)


def test_first_window(device):
    batches = batchify(list(range(26)), 4, device, "float32")
    X, y = get_batch(batches, i=0, bptt=4, device=device, dtype="float32")
    assert X.shape == (4, 4) and y.shape == (16,)
    assert X.numpy()[:2].tolist() == [[0, 6, 12, 18], [1, 7, 13, 19]]
    assert y.numpy()[:8].tolist() == [1, 7, 13, 19, 2, 8, 14, 20]
    assert X.dtype == y.dtype == "float32" and X.device == y.device == device
    assert not X.requires_grad and not y.requires_grad


def test_last_window_is_short():
    X, y = get_batch(batchify(list(range(26)), 4), i=4, bptt=4)
    assert X.numpy().tolist() == [[4, 10, 16, 22]]
    assert y.numpy().tolist() == [5, 11, 17, 23]


def test_windows_cover_every_word_that_has_a_successor():
    batches = batchify(list(range(26)), 4)
    windows = [get_batch(batches, i, 2) for i in range(0, len(batches) - 1, 2)]
    inputs = np.concatenate([X.numpy() for X, _ in windows])
    np.testing.assert_array_equal(inputs, batches[:-1])
    targets = np.concatenate([y.numpy() for _, y in windows])
    np.testing.assert_array_equal(targets.reshape(-1, 4), batches[1:])


@pytest.mark.parametrize(("i", "bptt"), [(5, 4), (6, 4), (-1, 4), (0, 0)])
def test_windows_that_have_no_target(i, bptt):
    with pytest.raises(IndexingError, match=r"\[get_batch\] .* i runs from 0 to 4"):
        get_batch(batchify(list(range(26)), 4), i, bptt)


def test_they_are_reached_by_the_courses_names():
    assert ndl.data.Corpus is Corpus and ndl.data.get_batch is get_batch
