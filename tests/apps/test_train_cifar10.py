"""apps/train_cifar10.py: its models, lines and files on a few made-up photographs."""

import pickle

import numpy as np
import pytest

import needle as ndl
import train_cifar10
import training
from tests.apps.mnist_program import scores_in
from tests.apps.programs import PNG, complaint, refusal


def write_photographs(folder, train=20, test=10):
    """Write batches in CIFAR-10's format, whose images show their label as a bright row."""
    rng = np.random.default_rng(0)
    for name, count in (("data_batch_1", train), ("test_batch", test)):
        labels = np.arange(count) % 10
        images = rng.integers(0, 60, (count, 3, 32, 32), dtype=np.uint8)
        images[np.arange(count), :, labels * 3] = 250
        batch = {b"data": images.reshape(count, -1), b"labels": labels.tolist()}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=4))
    return folder


@pytest.fixture
def photographs(tmp_path):
    """A folder with 20 photographs to train on and 10 to test."""
    folder = tmp_path / "photographs"
    folder.mkdir()
    return write_photographs(folder)


@pytest.fixture
def run(photographs, tmp_path, capsys):
    """Run the program in this process; return (scores by epoch as printed, all that it printed)."""

    def run(*options):
        save = str(tmp_path / "model.safetensors")
        train_cifar10.main(["--data-dir", str(photographs), "--save", save, *options])
        printed = capsys.readouterr().out
        return scores_in(printed), printed

    return run


@pytest.mark.parametrize("name", train_cifar10.MODELS)
def test_the_saved_model_has_the_score_of_the_last_line(run, photographs, tmp_path, name):
    scores, printed = run("--model", name, "--epochs", "2", "--batch-size", "8")
    assert printed.startswith(f"{name} on ")
    assert "20 photographs to train on, 10 to test" in printed
    assert scores[1][1] < scores[0][1], "the training loss does not fall"
    model = train_cifar10.MODELS[name]()
    ndl.load_model(model, tmp_path / "model.safetensors")
    loader = ndl.data.DataLoader(ndl.data.CIFAR10Dataset(photographs, train=False), 4)
    score = training.evaluate(model, loader)
    assert score.loss == pytest.approx(scores[-1][3], abs=1e-3)
    assert score.accuracy == pytest.approx(scores[-1][4], abs=1e-4)


def test_it_runs_on_every_device(run, device):
    scores, printed = run("--epochs", "1", "--device", device.name)
    assert printed.startswith(f"resnet9 on {device}:") and len(scores) == 1


def test_a_resumed_run_equals_an_uninterrupted_one(run, tmp_path):
    pytest.importorskip("matplotlib")
    options = ("--batch-size", "8", "--seed", "3")
    whole, _ = run(*options, "--epochs", "3")
    expected = (tmp_path / "model.safetensors").read_bytes()
    first, _ = run(*options, "--epochs", "2")
    rest, _ = run("--resume", "--epochs", "3", "--plot")
    assert first + rest == whole
    assert (tmp_path / "model.safetensors").read_bytes() == expected
    assert (tmp_path / "model.png").read_bytes().startswith(PNG)


def test_the_default_photographs_are_made_from_the_repository_s_pictures():
    args = train_cifar10.parse_arguments([])
    assert args.data_dir == train_cifar10.picture_batches()
    test = ndl.data.CIFAR10Dataset(args.data_dir, train=False)
    assert len(test) == 1000 and set(test.y) == set(range(10))


def test_only_training_changes_the_photographs(run, monkeypatch):
    changed = {}
    plain = ndl.data.CIFAR10Dataset

    def watched(folder, train, **options):
        changed[train] = [type(change).__name__ for change in options.get("transforms", [])]
        return plain(folder, train, **options)

    monkeypatch.setattr(ndl.data, "CIFAR10Dataset", watched)
    run("--epochs", "1", "--model", "linear")
    assert changed == {True: ["RandomFlipHorizontal", "RandomCrop"], False: []}


def test_missing_photographs_are_one_line(run, photographs):
    (photographs / "test_batch").unlink()
    message = complaint(run)
    assert message.startswith("train_cifar10: ")
    assert str(photographs / "test_batch") in message and "needle.data.download" in message


def test_wrong_options_are_explained(run, capsys):
    assert "invalid choice: 'vgg'" in refusal(run, capsys, "--model", "vgg")
    assert "--epochs is 0" in refusal(run, capsys, "--epochs", "0")
