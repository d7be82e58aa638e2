"""apps/mlp_resnet.py: the model's structure and random order, its epoch, its training loop."""

import math

import numpy as np
import pytest

import mlp_resnet
import needle as ndl
from needle import nn
from tests.apps.mnist_program import write_digits


class Logits(nn.Module):
    """Hands its input on as logits, and remembers the mode it was called in."""

    def __init__(self):
        super().__init__()
        self.modes = []

    def forward(self, x):
        self.modes.append(self.training)
        return x


def linears(module):
    return [m for _, m in module.named_modules() if isinstance(m, nn.Linear)]


def cross_entropy(logits, labels):
    e = np.exp(logits.astype(np.float64))
    return -np.log(e[np.arange(len(e)), labels] / e.sum(1))


# --- the model ---


def test_a_block_is_two_linears_with_norms_then_relu_after_the_addition(rng):
    block = mlp_resnet.ResidualBlock(6, 4, drop_prob=0.3)
    residual, relu = block.modules
    kinds = [type(m).__name__ for m in residual.fn.modules]
    assert isinstance(residual, nn.Residual) and isinstance(relu, nn.ReLU)
    assert kinds == ["Linear", "BatchNorm1d", "ReLU", "Dropout", "Linear", "BatchNorm1d"]
    assert [m.weight.shape for m in linears(block)] == [(6, 4), (4, 6)]
    assert residual.fn.modules[3].p == 0.3

    x = rng.standard_normal((5, 6)).astype(np.float32)
    block.eval()
    expected = np.maximum(x + residual.fn(ndl.Tensor(x)).numpy(), 0)
    np.testing.assert_allclose(block(ndl.Tensor(x)).numpy(), expected, rtol=1e-5, atol=1e-6)
    assert (expected == 0).any()


def test_the_norm_of_a_block_is_a_choice():
    kinds = {type(m) for m in mlp_resnet.MLPResNet(8, 4, norm=nn.LayerNorm1d)._children()}
    assert nn.LayerNorm1d in kinds and nn.BatchNorm1d not in kinds


def test_sizes():
    model = mlp_resnet.MLPResNet(12, hidden_dim=8, num_blocks=2, num_classes=3)
    assert [m.weight.shape for m in linears(model)] == [
        (12, 8),
        *[(8, 4), (4, 8)] * 2,
        (8, 3),
    ]


def test_default_sizes():
    model = mlp_resnet.MLPResNet(784)
    assert sum(p.size for p in model.parameters()) == 784 * 100 + 100 + 1010 + 3 * 10_450
    assert len(linears(model)) == 8
    assert {m.p for m in model._children() if isinstance(m, nn.Dropout)} == {0.1}


def test_layers_are_drawn_in_the_order_of_execution():
    np.random.seed(1)
    model = mlp_resnet.MLPResNet(12, hidden_dim=8, num_blocks=2, num_classes=3)
    after = np.random.rand()
    np.random.seed(1)
    for linear in linears(model):
        fan_in, fan_out = linear.weight.shape
        for tensor, shape in ((linear.weight, (fan_in, fan_out)), (linear.bias, (fan_out, 1))):
            bound = math.sqrt(6 / shape[0])
            drawn = (np.random.rand(*shape) * 2 * bound - bound).reshape(tensor.shape)
            np.testing.assert_allclose(tensor.numpy(), drawn, rtol=1e-5, atol=1e-6)
    assert np.random.rand() == after


@pytest.mark.parametrize("shape", [(2, 28, 28, 1), (2, 784), (1, 28, 28)], ids=str)
def test_images_are_flattened(device, shape, rng):
    model = mlp_resnet.MLPResNet(784, hidden_dim=6, num_blocks=1).to(device)
    y = model(ndl.Tensor(rng.random(shape), device=device))
    assert y.shape == (shape[0], 10) and y.device == device


def test_every_parameter_gets_a_gradient_where_it_lies(device, rng):
    model = mlp_resnet.MLPResNet(6, hidden_dim=4).to(device)
    x = ndl.Tensor(rng.random((5, 6)), device=device)
    nn.SoftmaxLoss()(model(x), ndl.Tensor([0, 1, 2, 3, 4], device=device)).backward()
    for p in model.parameters():
        assert p.grad.shape == p.shape and p.grad.device == device


# --- an epoch ---


@pytest.fixture
def five_samples(device):
    """A loader of 5 samples in batches of 2, of which logits get 2, 1 and 1 right."""
    logits = np.array([[3, 0, 0], [0, 2, 0], [0, 0, 4], [1, 0, 0], [0, 1, 0]], np.float32)
    labels = np.array([0, 1, 2, 2, 1], np.uint8)
    loader = ndl.data.DataLoader(ndl.data.NDArrayDataset(logits, labels), 2, device=device)
    return loader, logits, labels


def test_epoch_returns_error_rate_and_loss_by_sample(five_samples):
    loader, logits, labels = five_samples
    error, loss = mlp_resnet.epoch(loader, Logits())
    assert error == pytest.approx(0.2)  # the mean of batch means would be 0.1667
    assert loss == pytest.approx(cross_entropy(logits, labels).mean(), rel=1e-5)
    assert type(error) is float and type(loss) is float


@pytest.mark.parametrize("before", [True, False], ids=["train", "eval"])
def test_epoch_sets_the_mode_itself(five_samples, before):
    model = Logits().train(before)
    model.weight = nn.Parameter(ndl.init.zeros(1, device=five_samples[0].device))
    mlp_resnet.epoch(five_samples[0], model)
    assert model.modes == [False] * 3
    model = nn.Sequential(nn.Linear(3, 3).to(five_samples[0].device), Logits()).train(before)
    mlp_resnet.epoch(five_samples[0], model, ndl.optim.SGD(model.parameters()))
    assert model.modules[1].modes == [True] * 3


def test_epoch_without_an_optimizer_changes_nothing(five_samples):
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Linear(3, 3)).to(
        five_samples[0].device
    )
    before = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    first = mlp_resnet.epoch(five_samples[0], model)
    assert mlp_resnet.epoch(five_samples[0], model) == first
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), before[name])
    assert all(p.grad is None for p in model.parameters())


def test_epoch_trains_with_an_optimizer(device):
    data = ndl.data.NDArrayDataset(np.eye(4, dtype=np.float32), np.arange(4))
    loader = ndl.data.DataLoader(data, 2, device=device)
    model = nn.Linear(4, 4).to(device)
    opt = ndl.optim.SGD(model.parameters(), lr=1.0)
    losses = [mlp_resnet.epoch(loader, model, opt)[1] for _ in range(10)]
    assert losses[-1] < losses[0] / 2
    assert mlp_resnet.epoch(loader, model)[0] == 0


def test_epoch_starts_from_seed_4(five_samples):
    class Drawing(Logits):
        def forward(self, x):
            self.modes.append(np.random.rand())
            return x

    model = Drawing()
    mlp_resnet.epoch(five_samples[0], model)
    assert model.modes == list(np.random.RandomState(4).rand(3))


# --- training ---


def test_train_mnist_on_small_digits(tmp_path):
    write_digits(tmp_path, train=60, test=20)
    settings = {"batch_size": 16, "lr": 0.01, "hidden_dim": 16, "data_dir": tmp_path}
    first = mlp_resnet.train_mnist(epochs=1, **settings)
    last = mlp_resnet.train_mnist(epochs=6, **settings)
    assert all(type(value) is float for value in first)
    assert mlp_resnet.train_mnist(epochs=1, **settings) == first, "the same seed, other numbers"
    (_, train_loss, _, test_loss) = last
    assert train_loss < first[1] / 2 and test_loss < first[3]
    assert all(0 <= error <= 1 for error in (last[0], last[2]))


def test_train_mnist_takes_its_folder_as_text_and_another_optimizer(tmp_path):
    write_digits(tmp_path)
    values = mlp_resnet.train_mnist(
        epochs=1,
        optimizer=ndl.optim.SGD,
        lr=0.1,
        weight_decay=0,
        hidden_dim=4,
        data_dir=str(tmp_path),
    )
    assert np.isfinite(values).all()
