"""apps/train_mnist.py: its scores and lines, the model it saves, how it stops and complains."""

import re
import signal

import numpy as np
import pytest

import needle as ndl
import train_mnist
from needle import nn
from tests.apps.mnist_program import (
    EMBEDDED,
    EPOCH_LINE,
    ROOT,
    finish,
    scores_in,
    start,
    write_digits,
)


class Logits(nn.Module):
    """Hands its input on as logits, and remembers how it was called."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def forward(self, x):
        self.calls.append((self.training, ndl.is_grad_enabled()))
        return x


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


# --- scores ---


@pytest.fixture
def five_samples(device):
    """A loader of 5 samples in batches of 2, of which logits get 2, 1, 1 right; the mean loss."""
    logits = np.array([[3, 0, 0], [0, 2, 0], [0, 0, 4], [1, 0, 0], [0, 1, 0]], np.float32)
    labels = np.array([0, 1, 2, 2, 1], np.uint8)
    loader = ndl.data.DataLoader(ndl.data.NDArrayDataset(logits, labels), 2, device=device)
    e = np.exp(logits.astype(np.float64))
    return loader, -np.log(e[np.arange(5), labels] / e.sum(1)).mean()


def test_evaluate_weighs_by_sample(five_samples):
    loader, loss = five_samples
    score = train_mnist.evaluate(Logits(), loader)
    assert score.accuracy == pytest.approx(0.8)  # the mean of batch means would be 0.8333
    assert score.loss == pytest.approx(loss, rel=1e-5)


def test_train_epoch_weighs_by_sample(five_samples):
    loader, loss = five_samples
    model = nn.Linear(3, 3).to(loader.device)
    model.weight.data = ndl.Tensor(np.eye(3), device=loader.device)
    model.bias.data = ndl.init.zeros(1, 3, device=loader.device)
    score = train_mnist.train_epoch(model, loader, ndl.optim.SGD(model.parameters(), lr=0.0))
    assert score.accuracy == pytest.approx(0.8)
    assert score.loss == pytest.approx(loss, rel=1e-5)
    assert type(score.loss) is float and type(score.accuracy) is float


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_evaluate_builds_no_graph_and_puts_the_mode_back(five_samples, training):
    model = nn.Sequential(Logits(), nn.Dropout(0.9)).train(training)
    train_mnist.evaluate(model, five_samples[0])
    assert model.modules[0].calls == [(False, False)] * 3
    assert [m.training for _, m in model.named_modules()] == [training] * 3
    assert ndl.is_grad_enabled()


def test_evaluate_changes_nothing(five_samples):
    loader = five_samples[0]
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 3))
    model.to(loader.device)
    before = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    first = train_mnist.evaluate(model, loader)
    assert train_mnist.evaluate(model, loader) == first
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), before[name])
    assert all(p.grad is None for p in model.parameters())


def test_train_epoch_trains_in_training_mode(five_samples):
    loader = five_samples[0]
    model = nn.Sequential(nn.Linear(3, 3).to(loader.device), Logits()).eval()
    before = model.modules[0].weight.numpy()
    train_mnist.train_epoch(model, loader, ndl.optim.SGD(model.parameters(), lr=0.1))
    assert model.modules[1].calls == [(True, True)] * 3
    assert (model.modules[0].weight.numpy() != before).any()


def test_count_correct(device):
    logits = ndl.Tensor([[1.0, 2.0], [3.0, 0.0], [0.0, 1.0]], device=device)
    assert train_mnist.count_correct(logits, ndl.Tensor([1, 0, 0], device=device)) == 2


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
    score = train_mnist.evaluate(model, loader)
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
    ],
    ids=str,
)
def test_rates_suit_the_model_unless_they_are_given(run, options, expected):
    assert expected in run("--epochs", "1", *options)[1]


def test_a_save_every_epoch(run, monkeypatch):
    saved = []
    monkeypatch.setattr(ndl, "save_model", lambda model, path: saved.append(path))
    run("--epochs", "3")
    assert len(saved) == 3


# --- where it runs ---


def test_a_relative_data_dir_starts_where_the_user_stands(digits, tmp_path):
    process = start(
        "--epochs", "1", "--data-dir", "digits", "--save", "out/m.safetensors", cwd=tmp_path
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
    assert printed.endswith(f"\nstopped: the model of epoch {finished} is in {path}\n")
    assert len(EPOCH_LINE.findall(printed)) == finished and path.is_file()


def test_ctrl_c_gets_through_while_tensors_are_freed():
    class Freed:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    with train_mnist.CtrlC() as ctrl_c:
        assert not ctrl_c.pressed
        Freed()
        assert ctrl_c.pressed


def test_a_real_ctrl_c_keeps_the_last_finished_epochs_model(digits, tmp_path):
    path = tmp_path / "model.safetensors"
    process = start("--epochs", "100000", "--data-dir", digits, "--save", path)
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
    stopped = re.search(r"stopped: the model of epoch (\d+) is in (.+)$", printed.strip())
    assert stopped and int(stopped[1]) == len(finished) and stopped[2] == str(path)

    model = train_mnist.mlp()
    ndl.load_model(model, path)
    loader = ndl.data.DataLoader(train_mnist.load_digits(digits, "t10k"), 5)
    assert train_mnist.evaluate(model, loader).loss == pytest.approx(
        float(finished[-1][3]), abs=1e-4
    )


# --- how it complains ---


def test_a_wrong_data_dir_is_one_line(tmp_path):
    process = start("--data-dir", tmp_path / "nowhere")
    printed, errors = finish(process)
    assert process.returncode == 1 and printed == ""
    assert errors.startswith("train_mnist: [parse_mnist] no file ")
    assert str(tmp_path / "nowhere" / "train-images-idx3-ubyte.gz") in errors
    assert "data/README.md" in errors and errors.count("\n") == 1


def complaint(run, *options):
    with pytest.raises(SystemExit) as exit_:
        run(*options)
    assert isinstance(exit_.value.code, str), "an exit without a message"
    assert "\n" not in exit_.value.code
    return exit_.value.code


def test_damaged_digits_are_one_line(run, digits):
    path = digits / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-10])
    assert re.match(rf"train_mnist: \[parse_mnist\] {re.escape(str(path))} ", complaint(run))


def test_a_missing_device_says_why(run):
    if ndl.cuda().enabled():
        pytest.skip("cuda is here")
    assert complaint(run, "--device", "cuda") == f"train_mnist: [cuda()] {ndl.cuda().reason}"


def test_a_place_that_cannot_be_written_is_one_line(run, tmp_path):
    (tmp_path / "taken").write_text("a file, not a folder")
    message = complaint(run, "--epochs", "1", "--save", str(tmp_path / "taken" / "m.safetensors"))
    assert message.startswith("train_mnist: ") and "taken" in message


@pytest.mark.parametrize(
    "options, message",
    [
        (("--epochs", "0"), "--epochs is 0; give a number from 1 up"),
        (("--batch-size", "0"), "--batch-size is 0; give a number from 1 up"),
        (("--seed", "-1"), "--seed is -1; give a number from 0"),
        (("--model", "cnn"), "invalid choice: 'cnn'"),
        (("--device", "gpu"), "invalid choice: 'gpu'"),
    ],
    ids=str,
)
def test_wrong_options_are_explained(run, capsys, options, message):
    with pytest.raises(SystemExit) as exit_:
        run(*options)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err
