"""apps/train_mnist.py: its lines, the model it saves, how it stops, goes on and complains.

What holds for all training programs (Ctrl-C, --resume, --plot) is tested here.
"""

import re
import signal
import sys

import numpy as np
import pytest

import needle as ndl
import train_mnist
import training
from needle import nn
from tests.apps.mnist_program import EMBEDDED, EPOCH_LINE, scores_in, write_digits
from tests.apps.programs import PNG, ROOT, complaint, finish, refusal, start


@pytest.fixture
def digits(tmp_path):
    """A folder with 20 digits to train on and 5 to test."""
    folder = tmp_path / "digits"
    folder.mkdir()
    return write_digits(folder)


@pytest.fixture
def run(digits, tmp_path, capsys):
    """Run the program in this process; return (scores by epoch as printed, all that it printed)."""

    def run(*options):
        train_mnist.main(
            ["--data-dir", str(digits), "--save", str(tmp_path / "model.safetensors"), *options]
        )
        printed = capsys.readouterr().out
        return scores_in(printed), printed

    return run


# --- a run ---


def test_one_line_an_epoch(run):
    scores, printed = run("--epochs", "3", "--batch-size", "7")
    lines = printed.splitlines()
    assert [number for number, *_ in scores] == [1, 2, 3]
    assert len(lines) == 5 and all(EPOCH_LINE.fullmatch(line) for line in lines[1:4])
    assert "20 digits to train on, 5 to test" in lines[0]
    assert lines[4].startswith("saved ")
    for _, train_loss, train_accuracy, test_loss, test_accuracy in scores:
        assert train_loss > 0 and test_loss > 0
        assert train_accuracy * 20 % 1 == pytest.approx(0, abs=1e-6)
        assert test_accuracy * 5 % 1 == pytest.approx(0, abs=1e-6)
    assert scores[2][1] < scores[0][1], "the training loss does not fall"


@pytest.mark.parametrize("name", train_mnist.MODELS)
def test_the_saved_model_has_the_score_of_the_last_line(run, digits, tmp_path, name):
    scores, _ = run("--model", name, "--epochs", "2", "--batch-size", "8")
    model = train_mnist.MODELS[name]()
    ndl.load_model(model, tmp_path / "model.safetensors")
    loader = ndl.data.DataLoader(train_mnist.load_digits(digits, "t10k"), 3)
    score = training.evaluate(model, loader)
    assert score.loss == pytest.approx(scores[-1][3], abs=1e-4)
    assert score.accuracy == pytest.approx(scores[-1][4], abs=1e-4)


def test_a_seed_gives_the_same_numbers_and_another_seed_others(run):
    options = ("--model", "resnet", "--epochs", "2", "--batch-size", "8")
    first, again, other = (run(*options, "--seed", seed)[0] for seed in ("3", "3", "4"))
    assert first == again
    assert first != other


def test_it_runs_on_every_device(run, device):
    scores, printed = run("--epochs", "1", "--device", device.name)
    assert printed.startswith(f"mlp on {device}:") and len(scores) == 1


@pytest.mark.parametrize(
    "options, expected",
    [
        ((), "sgd with lr 0.5,"),
        (("--model", "softmax"), "sgd with lr 0.2,"),
        (("--model", "resnet"), "adam with lr 0.002,"),
        (("--model", "resnet", "--optimizer", "sgd"), "sgd with lr 0.1,"),
        (("--optimizer", "adam", "--lr", "0.02"), "adam with lr 0.02,"),
        (("--optimizer", "rmsprop"), "rmsprop with lr 0.001,"),
        (("--decay", "0.5"), "sgd with lr 0.5 times 0.5 an epoch,"),
    ],
    ids=str,
)
def test_rates_suit_the_model_unless_they_are_given(run, options, expected):
    assert expected in run("--epochs", "1", *options)[1]


def test_the_cnn_reads_rows_and_columns(rng):
    images = rng.standard_normal((2, 28, 28, 1)).astype(np.float32)
    got = train_mnist.ChannelFirst()(ndl.Tensor(images)).numpy()
    np.testing.assert_array_equal(got, images.transpose(0, 3, 1, 2))


def test_the_rate_falls_by_the_decay(monkeypatch, run):
    rates = []
    plain = train_mnist.train_epoch

    def watched(model, loader, opt, *rest):
        rates.append(opt.lr)
        return plain(model, loader, opt, *rest)

    monkeypatch.setattr(train_mnist, "train_epoch", watched)
    run("--epochs", "3", "--lr", "0.4", "--decay", "0.5")
    assert rates == [0.4, 0.2, 0.1]


def test_a_save_every_epoch(run, monkeypatch, tmp_path):
    saved = []
    monkeypatch.setattr(training.checkpoint, "write", lambda path, *_: saved.append(path.name))
    run("--epochs", "3")
    assert saved == ["model.safetensors", "model.checkpoint.safetensors"] * 3


# --- how it goes on ---


@pytest.mark.parametrize(
    "options",
    [
        ("--model", "resnet", "--optimizer", "adam"),  # batch norm, dropout, moments, a step count
        ("--model", "mlp", "--lr", "0.25", "--decay", "0.5", "--seed", "5"),
        ("--model", "cnn", "--optimizer", "rmsprop"),
        ("--model", "softmax", "--optimizer", "adamw"),
    ],
    ids=lambda options: options[1],
)
def test_a_resumed_run_equals_an_uninterrupted_one(run, tmp_path, options):
    options = (*options, "--batch-size", "8")
    whole, _ = run(*options, "--epochs", "4")
    expected = {path.name: path.read_bytes() for path in tmp_path.glob("*.safetensors")}
    first, _ = run(*options, "--epochs", "2")
    np.random.seed(99)
    rest, printed = run("--resume", "--epochs", "4")  # the other options come from the checkpoint
    assert first + rest == whole
    assert printed.startswith("resumed after epoch 2 from ")
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.safetensors")} == expected


def test_a_run_resumed_twice_keeps_its_curves(run, tmp_path):
    run("--epochs", "1")
    run("--epochs", "2", "--resume")
    run("--epochs", "3", "--resume")
    facts = training.checkpoint.read_facts(tmp_path / "model.checkpoint.safetensors")
    assert len(facts["scores"]) == 3


def test_a_resumed_run_finds_its_data(run, digits, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save = ("--save", "model.safetensors")
    train_mnist.main(["--data-dir", "digits", "--epochs", "1", *save])
    monkeypatch.chdir(digits)
    train_mnist.main(["--resume", "--epochs", "2", "--save", "../model.safetensors"])
    assert "20 digits to train on" in capsys.readouterr().out.splitlines()[-3]


def test_a_run_without_a_checkpoint_cannot_be_resumed(run):
    message = complaint(run, "--resume")
    assert re.match(
        r"train_mnist: \[checkpoint\] no file .*model\.checkpoint\.safetensors", message
    )


def test_a_finished_run_says_that_it_needs_more_epochs(run):
    run("--epochs", "2")
    message = complaint(run, "--resume", "--epochs", "2")
    assert "has 2 epochs already; give more than --epochs 2" in message


@pytest.mark.parametrize(
    "option, value, kept",
    [("--lr", "0.3", "0.5"), ("--batch-size", "7", "100"), ("--model", "softmax", "mlp")],
)
def test_a_resumed_run_keeps_its_options(run, capsys, option, value, kept):
    run("--epochs", "1")
    said = refusal(run, capsys, "--resume", option, value)
    assert f"{option} is {value}; the run to resume has {kept}: leave it out" in said


def test_a_damaged_checkpoint_is_one_line(run, tmp_path):
    run("--epochs", "1")
    path = tmp_path / "model.checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    assert f"[checkpoint] {path} is damaged" in complaint(run, "--resume", "--epochs", "2")


# --- what it draws ---


def test_plot_draws_a_png_beside_the_model(run, tmp_path):
    pytest.importorskip("matplotlib")
    _, printed = run("--epochs", "2", "--plot")
    path = tmp_path / "model.png"
    assert path.read_bytes().startswith(PNG)
    assert printed.splitlines()[-1] == f"drew {path}"


def test_plot_takes_a_place(run, tmp_path):
    pytest.importorskip("matplotlib")
    run("--epochs", "1", "--plot", str(tmp_path / "pictures" / "curves.png"))
    assert (tmp_path / "pictures" / "curves.png").read_bytes().startswith(PNG)


def test_a_missing_matplotlib_is_said_before_the_training(run, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = complaint(run, "--plot")
    assert message.startswith("train_mnist: [plot] matplotlib is missing; ")
    assert "pip install matplotlib" in message
    assert capsys.readouterr().out == ""


# --- where it runs ---


def test_a_relative_data_dir_starts_where_the_user_stands(digits, tmp_path):
    process = start(
        "train_mnist",
        "--epochs",
        "1",
        "--data-dir",
        "digits",
        "--save",
        "out/m.safetensors",
        cwd=tmp_path,
    )
    printed, errors = finish(process)
    assert process.returncode == 0, errors
    assert "20 digits to train on" in printed
    assert (tmp_path / "out" / "m.safetensors").is_file()


def test_the_default_digits_are_found_from_anywhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    args = train_mnist.parse_arguments([])
    assert (
        args.data_dir == EMBEDDED and len(train_mnist.load_digits(args.data_dir, "train")) == 4000
    )
    assert args.save == ROOT / "runs" / "mnist-mlp.safetensors"


# --- how it stops ---


@pytest.fixture
def press_ctrl_c(monkeypatch):
    """Let Ctrl-C come `times` times before batch `number` of a run; return the batches begun."""

    def press(number, times=1):
        batches = []

        class Pressing(nn.ReLU):
            def forward(self, x):
                batches.append(len(x))
                if len(batches) == number:
                    for _ in range(times):
                        signal.raise_signal(signal.SIGINT)
                return super().forward(x)

        model = nn.Sequential(nn.Flatten(), Pressing(), nn.Linear(784, 10))
        monkeypatch.setitem(train_mnist.MODELS, "mlp", lambda: model)
        return batches

    usual = signal.getsignal(signal.SIGINT)
    yield press
    assert signal.getsignal(signal.SIGINT) is usual


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_in_the_first_epoch_saves_nothing(run, press_ctrl_c, capsys, tmp_path, times):
    batches = press_ctrl_c(2, times)  # of 5 batches to train on
    with pytest.raises(SystemExit) as exit_:
        run("--epochs", "5", "--batch-size", "4")
    assert exit_.value.code == 130 and len(batches) == 2
    assert capsys.readouterr().out.endswith("\nstopped: nothing saved\n")
    assert not (tmp_path / "model.safetensors").exists()


# An epoch has 5 batches to train on, then 2 to test.
@pytest.mark.parametrize("number, finished", [(8, 1), (13, 2)], ids=["training", "testing"])
def test_ctrl_c_in_a_later_epoch_names_the_last_finished_one(
    run, press_ctrl_c, capsys, tmp_path, number, finished
):
    press_ctrl_c(number)
    with pytest.raises(SystemExit) as exit_:
        run("--epochs", "5", "--batch-size", "4")
    assert exit_.value.code == 130
    path, printed = tmp_path / "model.safetensors", capsys.readouterr().out
    assert printed.endswith(
        f"\nstopped: the model of epoch {finished} is in {path}; --resume goes on\n"
    )
    assert len(EPOCH_LINE.findall(printed)) == finished and path.is_file()


def test_a_real_ctrl_c_keeps_the_last_finished_epochs_model(digits, tmp_path):
    path = tmp_path / "model.safetensors"
    process = start("train_mnist", "--epochs", "100000", "--data-dir", digits, "--save", path)
    try:
        printed = ""
        while not EPOCH_LINE.search(printed):
            line = process.stdout.readline()
            assert line, process.stderr.read()
            printed += line
        process.send_signal(signal.SIGINT)
    finally:
        rest, errors = finish(process)
    printed += rest
    assert process.returncode == 130
    assert "Traceback" not in errors
    finished = EPOCH_LINE.findall(printed)
    stopped = re.search(
        r"stopped: the model of epoch (\d+) is in (.+); --resume goes on$", printed.strip()
    )
    assert stopped and int(stopped[1]) == len(finished) and stopped[2] == str(path)

    model = train_mnist.mlp()
    ndl.load_model(model, path)
    loader = ndl.data.DataLoader(train_mnist.load_digits(digits, "t10k"), 5)
    assert training.evaluate(model, loader).loss == pytest.approx(float(finished[-1][3]), abs=1e-4)


# --- how it complains ---


def test_a_wrong_data_dir_is_one_line(tmp_path):
    process = start("train_mnist", "--data-dir", tmp_path / "nowhere")
    printed, errors = finish(process)
    assert process.returncode == 1 and printed == ""
    assert errors.startswith("train_mnist: [parse_mnist] no file ")
    assert str(tmp_path / "nowhere" / "train-images-idx3-ubyte.gz") in errors
    assert "data/README.md" in errors and errors.count("\n") == 1


def test_damaged_digits_are_one_line(run, digits):
    path = digits / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-10])
    assert re.match(rf"train_mnist: \[parse_mnist\] {re.escape(str(path))} ", complaint(run))


def test_a_missing_device_says_why(run, no_cuda):
    assert complaint(run, "--device", "cuda") == f"train_mnist: [cuda()] {no_cuda.reason}"


def test_a_place_that_cannot_be_written_is_one_line(run, tmp_path):
    (tmp_path / "taken").write_text("a file, not a folder")
    message = complaint(run, "--epochs", "1", "--save", str(tmp_path / "taken" / "m.safetensors"))
    assert message.startswith("train_mnist: ") and "taken" in message


@pytest.mark.parametrize(
    "options, message",
    [
        (("--epochs", "0"), "--epochs is 0; give a number from 1 up"),
        (("--batch-size", "0"), "--batch-size is 0; give a number from 1 up"),
        (("--lr", "0"), "--lr is 0.0; give a number above 0"),
        (("--lr", "nan"), "--lr is nan; give a number above 0"),
        (("--decay", "1.5"), "--decay is 1.5; give a number above 0 and up to 1"),
        (("--plot", "curves.pdf"), "--plot is curves.pdf; give a name that ends in .png"),
        (("--seed", "-1"), "--seed is -1; give a number from 0"),
        (("--model", "vgg"), "invalid choice: 'vgg'"),
        (("--device", "gpu"), "invalid choice: 'gpu'"),
    ],
    ids=str,
)
def test_wrong_options_are_explained(run, capsys, options, message):
    assert message in refusal(run, capsys, *options)
