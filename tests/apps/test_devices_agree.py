"""Training on the embedded digits: cpu() against the specification, and the accuracy reached.

The first steps of the MLP-ResNet may take a second seed: where a ReLU's input rounds to different
sides of 0, one gradient differs by a jump and two runs part for good. A fault parts them with every
seed. The smaller models get one seed.
"""

import numpy as np
import pytest

import needle as ndl
import options
import train_mnist
from needle import nn
from tests.apps.mnist_program import EMBEDDED, scores_in
from tests.apps.programs import finish, start


def first_losses(name, device, seed, steps=20):
    """Return the loss of each of the first training steps, with the program's own settings."""
    args = train_mnist.parse_arguments(["--model", name])
    np.random.seed(seed)
    digits = train_mnist.load_digits(EMBEDDED, "train")
    loader = ndl.data.DataLoader(digits, args.batch_size, shuffle=True, device=device)
    model = train_mnist.MODELS[name]().to(device)
    opt = options.OPTIMIZERS[args.optimizer](model.parameters(), lr=args.lr)
    losses = []
    for _, (x, y) in zip(range(steps), loader, strict=False):
        loss = nn.SoftmaxLoss()(model(x), y)
        opt.reset_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


@pytest.fixture(scope="module")
def default_runs(tmp_path_factory):
    """The scores by epoch of the program's default run, on cpu() and on cpu_numpy()."""
    if not ndl.cpu().enabled():
        pytest.skip(ndl.cpu().reason)
    folder = tmp_path_factory.mktemp("models")
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "NEEDLE_NUM_THREADS": "1"}  # two programs, two cores
    processes = [
        start("train_mnist", "--device", name, "--save", folder / name, **one_thread)
        for name in ("cpu", "cpu_numpy")
    ]
    try:
        printed = [finish(process) for process in processes]
    finally:
        processes[1].kill()
    assert [process.returncode for process in processes] == [0, 0], printed
    return np.array([scores_in(out) for out, _ in printed])  # (device, epoch, column)


def test_losses_of_the_default_run_agree_over_all_epochs(default_runs):
    losses = default_runs[:, :, [1, 3]]
    assert losses.shape == (2, 10, 2)
    np.testing.assert_allclose(losses[0], losses[1], atol=1e-3, rtol=0)


def test_losses_of_an_epoch_on_cuda_agree(default_runs, tmp_path):
    if not ndl.cuda().enabled():
        pytest.skip(ndl.cuda().reason)
    save = tmp_path / "cuda"
    process = start("train_mnist", "--device", "cuda", "--epochs", "1", "--save", save)
    printed, errors = finish(process)
    assert process.returncode == 0, errors
    losses = np.array(scores_in(printed))[0, [1, 3]]
    np.testing.assert_allclose(losses, default_runs[0, 0, [1, 3]], atol=1e-3, rtol=0)


def test_the_default_run_reaches_its_accuracy(default_runs):
    assert (default_runs[:, -1, 4] >= 0.905).all(), default_runs[:, -1]


@pytest.mark.parametrize("name", ["softmax", "mlp", "resnet"])
def test_losses_of_the_first_steps_agree(name):
    if not ndl.cpu().enabled():
        pytest.skip(ndl.cpu().reason)
    differences = []
    for seed in range(3 if name == "resnet" else 1):
        losses = np.array([first_losses(name, d, seed) for d in (ndl.cpu(), ndl.cpu_numpy())])
        assert losses.shape == (2, 20)
        assert losses[0, -5:].mean() < losses[0, :5].mean(), "it does not learn"
        differences.append(np.abs(losses[0] - losses[1]).max())
        if differences[-1] <= 1e-3:
            return
    raise AssertionError(f"the losses differ by {differences}")
