"""apps/train_lm.py: perplexities, windows, the baseline, and the text that it writes."""

import re

import numpy as np
import pytest

import models
import needle as ndl
import train_lm
import training
from tests.apps.programs import PNG, complaint, finish, refusal, start

LINE = re.compile(
    r"epoch +(\d+): train loss (\S+) perplexity (\S+), test loss (\S+) perplexity (\S+)"
)
TRAIN = "the cat sat on the mat\nthe dog sat on the rug\n" * 12
TEST = "the dog sat on the mat\nthe cat sat on the rug\n" * 3
SMALL = ("--embedding-size", "6", "--hidden-size", "8", "--seq-len", "5", "--batch-size", "3")


@pytest.fixture
def text(tmp_path):
    """A folder with a text to train on and one to test."""
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "train.txt").write_text(TRAIN)
    (folder / "test.txt").write_text(TEST)
    return folder


@pytest.fixture
def run(text, tmp_path, capsys):
    """Run the program in this process; return (scores by epoch as printed, all that it printed)."""

    def run(*options):
        save = str(tmp_path / "model.safetensors")
        train_lm.main(["--data-dir", str(text), "--save", save, *options])
        printed = capsys.readouterr().out
        return [tuple(map(float, match)) for match in LINE.findall(printed)], printed

    return run


# --- training ---


@pytest.mark.parametrize("name", train_lm.SUITS)
def test_the_saved_model_has_the_score_of_the_last_line(run, text, tmp_path, name):
    scores, printed = run("--model", name, "--epochs", "2", *SMALL)
    corpus = ndl.data.Corpus(text)
    lines = printed.splitlines()
    assert lines[0].startswith("word frequencies alone (unigram): test perplexity ")
    assert lines[1].startswith(f"{name} on ")
    assert "168 words to train on, 42 to test, 8 different" in lines[1]
    assert [number for number, *_ in scores] == [1, 2]
    assert scores[1][1] < scores[0][1], "the training loss does not fall"
    for _, train_loss, train_perplexity, test_loss, test_perplexity in scores:
        assert train_perplexity == pytest.approx(np.exp(train_loss), abs=0.06)
        assert test_perplexity == pytest.approx(np.exp(test_loss), abs=0.06)
    model, facts = train_lm.load_writer(tmp_path / "model.safetensors", ndl.default_device())
    assert facts["vocabulary"] == corpus.dictionary.idx2word and facts["model"] == name
    windows = train_lm.Windows(corpus.test, 3, 5, ndl.default_device())
    score = training.evaluate(model, windows, train_lm.ReadingOn(model))
    assert score.loss == pytest.approx(scores[-1][3], abs=1e-3)


def test_it_runs_on_every_device(run, device):
    scores, printed = run("--epochs", "1", "--device", device.name, *SMALL)
    assert f"lstm on {device}:" in printed and len(scores) == 1


@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_a_resumed_run_equals_an_uninterrupted_one(run, tmp_path, name):
    options = ("--model", name, "--layers", "2", *SMALL)
    whole, _ = run(*options, "--epochs", "3")
    expected = (tmp_path / "model.safetensors").read_bytes()
    first, _ = run(*options, "--epochs", "1")
    rest, _ = run("--resume", "--epochs", "3")
    assert first + rest == whole
    assert (tmp_path / "model.safetensors").read_bytes() == expected


def test_a_run_is_not_resumed_on_other_text(run, text):
    run("--epochs", "1", *SMALL)
    (text / "train.txt").write_text(TRAIN.replace("mat", "hat"))
    message = complaint(run, "--resume", "--epochs", "2")
    assert message.startswith("train_lm: [resume] ") and "is of other data than" in message


def test_plot_draws_perplexities(run, tmp_path):
    pytest.importorskip("matplotlib")
    run("--epochs", "2", "--plot", *SMALL)
    assert (tmp_path / "model.png").read_bytes().startswith(PNG)


def test_the_unigram_baseline_counts_each_word_once_more():
    train, test = [0, 0, 0, 1], [0, 2]
    probabilities = (np.array([3, 1, 0]) + 1) / 7
    expected = np.exp(-(np.log(probabilities[0]) + np.log(probabilities[2])) / 2)
    assert train_lm.unigram_perplexity(train, test, 3) == pytest.approx(expected)
    assert train_lm.unigram_perplexity(train, [0, 1, 2] * 5, 9) > 1


def test_windows_cover_the_text_in_columns(device):
    windows = train_lm.Windows(list(range(26)), 4, 4, device)  # 6 rows, so 5 to read
    batches = list(windows)
    assert len(windows) == len(batches) == 2
    assert [x.shape for x, _ in batches] == [(4, 4), (1, 4)]
    np.testing.assert_array_equal(batches[1][0].numpy(), [[4, 10, 16, 22]])
    np.testing.assert_array_equal(batches[1][1].numpy(), [5, 11, 17, 23])
    assert batches[0][0].device == device
    assert [y.shape for _, y in list(windows)] == [(16,), (4,)]  # it starts again


def test_reading_on_carries_the_hidden_state_without_its_graph():
    model = models.LanguageModel(4, 7, 5, seq_model="lstm")
    x = np.arange(12).reshape(6, 2) % 7
    reader = train_lm.ReadingOn(model)
    parts = [reader(ndl.Tensor(part)).numpy() for part in (x[:4], x[4:])]
    assert all(part.op is None for part in reader.hidden)
    whole = model(ndl.Tensor(x))[0].numpy()
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-4, atol=1e-5)


def test_memory_stays_flat_over_windows(device):
    model = models.LanguageModel(4, 7, 5, seq_model="lstm", device=device)
    opt = ndl.optim.Adam(model.parameters(), lr=0.01)
    counts = []

    class Counting(train_lm.ReadingOn):
        def __call__(self, x):
            counts.append(ndl.autograd.TENSOR_COUNTER)
            return super().__call__(x)

    windows = train_lm.Windows(list(np.arange(200) % 7), 2, 5, device)
    training.train_epoch(model, windows, opt, forward=Counting(model), clip=1.0)
    assert len(counts) == 20 and len(set(counts[2:])) == 1, counts


# --- writing ---


def test_a_trained_model_knows_the_order_of_words_and_writes_on(run, text):
    """Word frequencies alone leave a perplexity of 6; the order nearly none but cat or dog."""
    options = ("--hidden-size", "16", "--seq-len", "9", "--batch-size", "6")
    scores, printed = run("--epochs", "25", "--lr", "0.05", *options)
    unigram = float(re.search(r"test perplexity (\S+)", printed)[1])
    assert 5 < unigram < 8 and scores[-1][4] < 3.5
    for path in text.iterdir():
        path.unlink()  # the words come with the model
    _, printed = run("--sample", "the cat", "--words", "30", "--temperature", "0.2")
    lines = printed.splitlines()
    assert re.fullmatch("the cat sat on the (mat|rug)", lines[0])
    assert re.fullmatch("the (cat|dog) sat on the (mat|rug)", lines[1])
    assert len(printed.replace("\n", " <eos> ").split()) >= 30


@pytest.mark.parametrize("name", train_lm.SUITS)
def test_every_model_writes_as_many_words_as_asked(run, name):
    run("--model", name, "--epochs", "1", *SMALL)
    first, again, other = (
        run("--sample", "The dog", "--words", "20", "--temperature", "9", "--seed", seed)[1]
        for seed in ("1", "1", "2")
    )
    assert first.startswith("the dog") and first == again and first != other
    assert len(first.split()) <= 22 and set(first.split()) <= set(TRAIN.split())


def test_the_number_of_drawn_words(device):
    model = models.LanguageModel(4, 7, 5, seq_model="transformer", seq_len=3, device=device)
    drawn = train_lm.write_on(model.eval(), [1, 2], 8, 1.0, reach=3, never=[0, 6])
    assert len(drawn) == 8 and set(drawn) <= {1, 2, 3, 4, 5}


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru", "transformer"])
def test_cold_writing_takes_the_likeliest_word_each_time(name):
    model = models.LanguageModel(4, 7, 5, seq_model=name, seq_len=9).eval()
    text = [1, 2]
    for number in train_lm.write_on(
        model, text, 6, 1e-6, reach=9 if name == "transformer" else None
    ):
        logits = model(ndl.Tensor(np.array(text)[:, None]))[0].numpy()[-1]
        assert number == logits.argmax()
        text.append(number)


def test_words_become_lines_of_text():
    words = ["the", "captain", "'s", "cat", ",", "sat", ".", "<eos>", "why", "?", "<eos>"]
    assert train_lm.as_text(words) == "the captain's cat, sat.\nwhy?"


def test_an_empty_prompt_starts_a_line(run):
    run("--epochs", "1", *SMALL)
    assert run("--sample", "", "--words", "5")[1].strip()


def test_unknown_words_are_named(run):
    run("--epochs", "1", *SMALL)
    message = complaint(run, "--sample", "The unicorn sat on a cloud")
    assert message.startswith("train_lm: [sample] not among the 8 words ")
    assert message.endswith(": unicorn, a, cloud")


def test_nothing_to_write_with(run, tmp_path):
    assert "[checkpoint] no file " in complaint(run, "--sample", "the")
    training.checkpoint.write(tmp_path / "model.safetensors", {"a": np.ones(1)}, {})
    assert "holds no language model" in complaint(run, "--sample", "the")


# --- how it complains ---


def test_missing_text_is_one_line(tmp_path):
    printed, errors = finish(process := start("train_lm", "--data-dir", tmp_path, cwd=tmp_path))
    assert process.returncode == 1 and printed == ""
    assert errors.startswith("train_lm: [Corpus] no file ") and errors.count("\n") == 1


def test_too_little_text_is_one_line(run):
    message = complaint(run, "--batch-size", "40")
    assert message.startswith("train_lm: [Windows] 42 words in 40 columns leave no next words")


@pytest.mark.parametrize(
    "options, message",
    [
        (("--model", "cnn"), "invalid choice: 'cnn'"),
        (("--hidden-size", "0"), "--hidden-size is 0; give a number from 1 up"),
        (("--seq-len", "-2"), "--seq-len is -2; give a number from 1 up"),
        (("--words", "0"), "--words is 0; give a number from 1 up"),
        (("--temperature", "0"), "--temperature is 0.0; give a number above 0"),
    ],
    ids=str,
)
def test_wrong_options_are_explained(run, capsys, options, message):
    assert message in refusal(run, capsys, *options)
