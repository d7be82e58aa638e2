"""apps/training.py: scores by sample, the two passes over the data, Ctrl-C."""

import signal

import numpy as np
import pytest

import needle as ndl
import training
from needle import nn


class Logits(nn.Module):
    """Hands its input on as logits, and remembers how it was called."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def forward(self, x):
        self.calls.append((self.training, ndl.is_grad_enabled()))
        return x


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
    score = training.evaluate(Logits(), loader)
    assert score.accuracy == pytest.approx(0.8)  # the mean of batch means would be 0.8333
    assert score.loss == pytest.approx(loss, rel=1e-5)


def test_train_epoch_weighs_by_sample(five_samples):
    loader, loss = five_samples
    model = nn.Linear(3, 3).to(loader.device)
    model.weight.data = ndl.Tensor(np.eye(3), device=loader.device)
    model.bias.data = ndl.init.zeros(1, 3, device=loader.device)
    score = training.train_epoch(model, loader, ndl.optim.SGD(model.parameters(), lr=0.0))
    assert score.accuracy == pytest.approx(0.8)
    assert score.loss == pytest.approx(loss, rel=1e-5)
    assert type(score.loss) is float and type(score.accuracy) is float


@pytest.mark.parametrize("mode", [True, False], ids=["train", "eval"])
def test_evaluate_builds_no_graph_and_puts_the_mode_back(five_samples, mode):
    model = nn.Sequential(Logits(), nn.Dropout(0.9)).train(mode)
    training.evaluate(model, five_samples[0])
    assert model.modules[0].calls == [(False, False)] * 3
    assert [m.training for _, m in model.named_modules()] == [mode] * 3
    assert ndl.is_grad_enabled()


def test_evaluate_changes_nothing(five_samples):
    loader = five_samples[0]
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 3))
    model.to(loader.device)
    before = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    first = training.evaluate(model, loader)
    assert training.evaluate(model, loader) == first
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), before[name])
    assert all(p.grad is None for p in model.parameters())


def test_train_epoch_trains_in_training_mode(five_samples):
    loader = five_samples[0]
    model = nn.Sequential(nn.Linear(3, 3).to(loader.device), Logits()).eval()
    before = model.modules[0].weight.numpy()
    training.train_epoch(model, loader, ndl.optim.SGD(model.parameters(), lr=0.1))
    assert model.modules[1].calls == [(True, True)] * 3
    assert (model.modules[0].weight.numpy() != before).any()


def test_train_epoch_takes_logits_from_forward_and_bounds_the_gradients(five_samples):
    loader = five_samples[0]
    model = nn.Linear(3, 3).to(loader.device)
    norms = []

    class Spy(ndl.optim.SGD):
        def step(self):
            norms.append(sum(float((p.grad * p.grad).sum()) for p in self.params) ** 0.5)

    opt = Spy(model.parameters(), lr=0.1)
    training.train_epoch(model, loader, opt, forward=lambda x: model(x) * 50.0, clip=0.5)
    training.train_epoch(model, loader, opt)
    assert norms[:3] == pytest.approx([0.5] * 3, rel=1e-4)
    assert any(abs(norm - 0.5) > 0.01 for norm in norms[3:])


def test_perplexity_of_equally_likely_words_is_their_number():
    assert training.Score(np.log(50.0), 0.0).perplexity == pytest.approx(50)
    assert training.Score(1e4, 0.0).perplexity == np.inf


def test_count_correct(device):
    logits = ndl.Tensor([[1.0, 2.0], [3.0, 0.0], [0.0, 1.0]], device=device)
    assert training.count_correct(logits, ndl.Tensor([1, 0, 0], device=device)) == 2


def test_ctrl_c_gets_through_while_tensors_are_freed():
    class Freed:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    with training.CtrlC() as ctrl_c:
        assert not ctrl_c.pressed
        Freed()
        assert ctrl_c.pressed
