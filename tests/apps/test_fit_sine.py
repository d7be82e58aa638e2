"""apps/fit_sine.py: the fit that it reaches, its lines and its picture."""

import re
import signal

import numpy as np
import pytest

import fit_sine
import needle as ndl
from tests.apps.programs import PNG, complaint, refusal

LINE = re.compile(r"epoch +(\d+): loss (\S+)")


@pytest.fixture
def save(tmp_path):
    return tmp_path / "sine.safetensors"


@pytest.fixture
def run(capsys, save):
    """Run the program in this process; return ((epoch, loss) as printed, all that it printed)."""

    def run(*options):
        fit_sine.main(("--save", str(save), *options))
        printed = capsys.readouterr().out
        return [(int(n), float(loss)) for n, loss in LINE.findall(printed)], printed

    return run


def test_it_learns_the_function(run):
    lines, printed = run("--epochs", "150")
    assert printed.startswith("1-10-1 network on ")
    assert [number for number, _ in lines] == list(range(15, 151, 15))
    assert lines[0][1] > 0.05 and lines[-1][1] < 0.005


def test_it_runs_on_every_device(run, device):
    lines, printed = run("--epochs", "3", "--device", device.name)
    assert [number for number, _ in lines] == [1, 2, 3]
    assert f"network on {device}:" in printed


def test_the_points_are_two_humps():
    x, target = fit_sine.sine_squared()
    assert x.shape == target.shape == (100, 1) and x.dtype == target.dtype == "float32"
    np.testing.assert_allclose(target, np.sin(x.astype(np.float64)) ** 2, atol=1e-6)
    assert -x[0] == x[-1] == pytest.approx(np.pi)


def test_an_epoch_sees_every_point_and_gives_the_mean_loss():
    x, target = fit_sine.sine_squared()
    loader = ndl.data.DataLoader(ndl.data.NDArrayDataset(x, target), 30)  # the last has 10
    model = fit_sine.network()
    loss = fit_sine.train_epoch(model, loader, ndl.optim.SGD(model.parameters(), lr=0.0))
    fitted = model(ndl.Tensor(x)).numpy()
    assert loss == pytest.approx(((fitted - target) ** 2).mean(), rel=1e-4)


def test_a_seed_gives_the_same_losses_and_another_seed_others(run):
    first, again, other = (run("--epochs", "4", "--seed", seed)[0] for seed in ("1", "1", "2"))
    assert first == again and first != other


def test_plot_draws_function_and_fit(run, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "sine.png"
    _, printed = run("--epochs", "2", "--plot", str(path))
    assert path.read_bytes().startswith(PNG)
    assert printed.endswith(f"drew {path}\n")


def test_a_bare_plot_goes_to_runs(tmp_path):
    assert fit_sine.parse_arguments(["--plot"]).plot == fit_sine.options.ROOT / "runs" / "sine.png"
    assert fit_sine.parse_arguments([]).plot is None


def test_ctrl_c_ends_after_the_epoch(run, monkeypatch, capsys, save):
    plain = fit_sine.train_epoch

    def pressing(*arguments):
        signal.raise_signal(signal.SIGINT)
        return plain(*arguments)

    monkeypatch.setattr(fit_sine, "train_epoch", pressing)
    with pytest.raises(SystemExit) as exit_:
        run("--epochs", "3")
    assert exit_.value.code == 130
    assert capsys.readouterr().out.endswith(
        f"\nstopped: the model of epoch 1 is in {save}; --resume goes on\n"
    )
    monkeypatch.setattr(fit_sine, "train_epoch", plain)
    lines, printed = run("--epochs", "3", "--resume")
    assert "resumed after epoch 1 from" in printed and [n for n, _ in lines] == [2, 3]


def test_a_resumed_run_is_as_if_it_had_never_stopped(run, save):
    run("--epochs", "6")
    whole = save.read_bytes()
    run("--epochs", "2")
    assert save.read_bytes() != whole
    run("--epochs", "6", "--resume")
    assert save.read_bytes() == whole


def test_what_cannot_be_resumed_says_why(run, save):
    assert "train a model first" in complaint(run, "--resume")
    run("--epochs", "2")
    assert "has 2 epochs already; give more than --epochs 2" in complaint(
        run, "--epochs", "2", "--resume"
    )


def test_a_missing_device_says_why(run, no_cuda):
    assert complaint(run, "--device", "cuda") == f"fit_sine: [cuda()] {no_cuda.reason}"


@pytest.mark.parametrize(
    "options, message",
    [
        (("--epochs", "0"), "--epochs is 0; give a number from 1 up"),
        (("--lr", "-1"), "--lr is -1.0; give a number above 0"),
        (("--seed", "-1"), "--seed is -1; give a number from 0"),
        (("--plot", "fit.jpg"), "--plot is fit.jpg; give a name that ends in .png"),
    ],
    ids=str,
)
def test_wrong_options_are_explained(run, capsys, options, message):
    assert message in refusal(run, capsys, *options)
