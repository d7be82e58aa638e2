"""apps/simple_ml.py on images and text: what the contract's functions return, and leave behind."""

import numpy as np
import pytest

import models
import needle as ndl
import simple_ml
from needle import nn

# Of 5 samples the logits get 2, 1 and 1 right in batches of 2: the mean of batch means is no mean.
LOGITS = np.array([[3, 0, 0], [0, 2, 0], [0, 0, 4], [1, 0, 0], [0, 1, 0]], np.float32)
LABELS = np.array([0, 1, 2, 2, 1], np.uint8)


def cross_entropy(logits, labels):
    e = np.exp(logits.astype(np.float64))
    return -np.log(e[np.arange(len(labels)), labels] / e.sum(1)).mean()


class Spy(nn.Module):
    """Hands its input on; remembers modes, recording, and the random number that came next."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def forward(self, x):
        self.calls.append((self.training, ndl.is_grad_enabled(), np.random.rand()))
        return x


FIRST_DRAW = np.random.RandomState(4).rand()


@pytest.fixture
def loader(device):
    return ndl.data.DataLoader(ndl.data.NDArrayDataset(LOGITS, LABELS), 2, device=device)


def state(model):
    return [p.numpy() for p in model.parameters()]


# --- images ---


def test_evaluate_cifar10(loader):
    model = Spy()
    accuracy, loss = simple_ml.evaluate_cifar10(model, loader)
    assert (type(accuracy), type(loss)) == (float, float)
    assert accuracy == pytest.approx(0.8)
    assert loss == pytest.approx(cross_entropy(LOGITS, LABELS), rel=1e-5)
    assert [call[:2] for call in model.calls] == [(False, False)] * 3
    assert model.calls[0][2] == FIRST_DRAW


def test_epoch_general_cifar10_without_an_optimizer_changes_nothing(loader):
    model = nn.Sequential(Spy(), nn.Linear(3, 3).to(loader.device))
    before = state(model)
    simple_ml.epoch_general_cifar10(loader, model)
    assert not model.modules[0].calls[0][0]
    for old, values in zip(before, state(model), strict=True):
        np.testing.assert_array_equal(old, values)


def test_epoch_general_cifar10_takes_a_step_a_batch(loader):
    spy, layer = Spy(), nn.Linear(3, 3).to(loader.device)
    layer.weight.data = ndl.Tensor(np.eye(3), device=loader.device)
    layer.bias.data = ndl.init.zeros(1, 3, device=loader.device)
    weights, biases, losses, right = np.eye(3), np.zeros(3), 0.0, 0
    for start in range(0, 5, 2):
        x, y = LOGITS[start : start + 2].astype(np.float64), LABELS[start : start + 2]
        logits = x @ weights + biases
        losses += cross_entropy(logits, y) * len(y)
        right += (logits.argmax(1) == y).sum()
        e = np.exp(logits)
        g = (e / e.sum(1, keepdims=True) - np.eye(3)[y]) / len(y)
        weights, biases = weights - 0.5 * x.T @ g, biases - 0.5 * g.sum(0)
    opt = ndl.optim.SGD(layer.parameters(), lr=0.5)
    model = nn.Sequential(spy, layer).eval()
    got = simple_ml.epoch_general_cifar10(loader, model, nn.SoftmaxLoss(), opt)
    assert got == pytest.approx((right / 5, losses / 5), rel=1e-4)
    np.testing.assert_allclose(layer.weight.numpy(), weights, rtol=1e-4, atol=1e-5)
    assert [call[:2] for call in spy.calls] == [(True, True)] * 3
    assert spy.calls[0][2] == FIRST_DRAW


def test_train_cifar10_returns_the_last_epoch(loader):
    np.random.seed(0)
    model = nn.Linear(3, 3).to(loader.device)
    start = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    one = simple_ml.train_cifar10(model, loader, lr=0.05)
    model.load_state_dict(start)
    three = simple_ml.train_cifar10(model, loader, n_epochs=3, lr=0.05)
    assert three[1] < one[1]
    model.load_state_dict(start)
    opt = ndl.optim.Adam(model.parameters(), lr=0.05, weight_decay=0.001)
    by_hand = [simple_ml.epoch_general_cifar10(loader, model, opt=opt) for _ in range(3)]
    assert (one, three) == (by_hand[0], by_hand[2])


def test_losses_and_optimizers_are_given_as_the_contract_says(loader):
    class Doubled(nn.SoftmaxLoss):
        def forward(self, logits, y):
            return super().forward(logits, y) * 2.0

    expected = 2 * cross_entropy(LOGITS, LABELS)
    assert simple_ml.evaluate_cifar10(Spy(), loader, Doubled)[1] == pytest.approx(expected)
    assert simple_ml.epoch_general_cifar10(loader, Spy(), Doubled())[1] == pytest.approx(expected)
    model = nn.Linear(3, 3).to(loader.device)
    simple_ml.train_cifar10(model, loader, optimizer=ndl.optim.SGD, loss_fn=Doubled)


# --- text ---

WORDS, COLUMNS = 7, 2
TEXT = np.random.default_rng(0).integers(0, WORDS, 46)


@pytest.fixture
def rows():
    """Rows of text (23, 2): windows of 5 end with one of 2."""
    return ndl.data.batchify(TEXT, COLUMNS)


class Reader(models.LanguageModel):
    """A language model that remembers the windows it read, and the hidden states it was given."""

    def __init__(self, name="lstm", device=None):
        super().__init__(4, WORDS, 6, 1, name, seq_len=5, device=device)
        self.windows, self.given, self.modes, self.first_draw = [], [], [], None

    def forward(self, x, h=None):
        self.first_draw = self.first_draw or np.random.rand()
        self.windows.append(x.numpy())
        self.modes.append((self.training, ndl.is_grad_enabled()))
        parts = h if isinstance(h, tuple) else (h,)
        self.given.append([(part.op, part.requires_grad) for part in parts if part is not None])
        return super().forward(x, h)


def test_windows_cover_the_text_and_keep_the_short_last_one(rows, device):
    model = Reader(device=device)
    simple_ml.evaluate_ptb(model, rows, seq_len=5, device=device)
    assert [len(window) for window in model.windows] == [5, 5, 5, 5, 2]
    np.testing.assert_array_equal(np.concatenate(model.windows), rows[:-1])
    assert model.modes == [(False, False)] * 5
    assert model.first_draw == FIRST_DRAW


@pytest.mark.parametrize("name, parts", [("rnn", 1), ("lstm", 2), ("gru", 1), ("transformer", 1)])
def test_the_hidden_state_goes_on_without_its_graph(rows, device, name, parts):
    model = Reader(name, device)
    simple_ml.train_ptb(model, rows, seq_len=5, lr=0.1, device=device)
    assert model.given == [[]] + [[(None, False)] * parts] * 4
    assert model.modes == [(True, True)] * 5


def test_an_epoch_seeds_the_random_numbers(rows, loader, device):
    reader, spy = Reader(device=device), Spy()
    simple_ml.epoch_general_ptb(rows, reader, 5, device=device)
    simple_ml.epoch_general_cifar10(loader, spy)
    assert reader.first_draw == spy.calls[0][2] == FIRST_DRAW


def test_evaluate_ptb_weighs_by_word(rows, device):
    model = Reader(device=device)
    accuracy, loss = simple_ml.evaluate_ptb(model, rows, seq_len=5, device=device)
    with ndl.no_grad():
        x = ndl.Tensor(rows[:-1], device=device)
        logits = models.LanguageModel.forward(model, x)[0].numpy()
    targets = rows[1:].reshape(-1).astype(int)
    assert (type(accuracy), type(loss)) == (float, float)
    assert accuracy == pytest.approx((logits.argmax(1) == targets).mean())
    assert loss == pytest.approx(cross_entropy(logits, targets), rel=1e-4)


def test_train_ptb_learns_and_returns_the_last_epoch(rows, device):
    model = Reader(device=device)
    before = simple_ml.evaluate_ptb(model, rows, 5, device=device)[1]
    _, last = simple_ml.train_ptb(model, rows, 5, n_epochs=15, lr=2.0, clip=1.0, device=device)
    assert last < before - 0.1
    assert simple_ml.evaluate_ptb(model, rows, 5, device=device)[1] < before - 0.1


def test_clip_bounds_the_gradients_of_every_step(rows, device):
    norms = []

    class Watched(ndl.optim.SGD):
        def step(self):
            norms.append(sum(float((p.grad * p.grad).sum()) for p in self.params) ** 0.5)
            super().step()

    for clip in (None, 0.01):
        model = Reader(device=device)
        simple_ml.train_ptb(model, rows, 5, optimizer=Watched, lr=0.1, clip=clip, device=device)
    assert min(norms[:5]) > 0.05
    assert norms[5:] == pytest.approx([0.01] * 5, rel=1e-3)


def test_ptb_losses_are_given_as_the_contract_says(rows, device):
    class Doubled(nn.SoftmaxLoss):
        def forward(self, logits, y):
            return super().forward(logits, y) * 2.0

    model = Reader(device=device)
    _, loss = simple_ml.evaluate_ptb(model, rows, 5, device=device)
    _, doubled = simple_ml.evaluate_ptb(model, rows, 5, Doubled, device=device)
    _, once_more = simple_ml.epoch_general_ptb(rows, model, 5, Doubled(), device=device)
    assert doubled == once_more == pytest.approx(2 * loss)


@pytest.mark.parametrize("name", ["rnn", "lstm"])
def test_memory_stays_flat_over_windows(device, name):
    class Counting(models.LanguageModel):
        def forward(self, x, h=None):
            counts.append(ndl.autograd.TENSOR_COUNTER)
            return super().forward(x, h)

    counts: list[int] = []
    model = Counting(4, WORDS, 6, seq_model=name, device=device)
    rows = ndl.data.batchify(np.tile(TEXT, 3), COLUMNS)
    simple_ml.train_ptb(model, rows, 5, optimizer=ndl.optim.Adam, lr=0.01, device=device)
    assert len(counts) == 14
    assert len(set(counts[2:])) == 1, counts  # the first two windows make the optimizer's state
