"""Models trained in PyTorch load through safetensors and give the same outputs; and back again."""

import numpy as np
import pytest

import needle as ndl
from needle import nn

pytestmark = pytest.mark.torch


def mlp(device):
    return nn.Sequential(
        nn.Linear(6, 8, device=device),
        nn.BatchNorm1d(8, device=device),
        nn.ReLU(),
        nn.Sequential(nn.Linear(8, 8, bias=False, device=device), nn.LayerNorm(8, device=device)),
        nn.Linear(8, 3, device=device),
    )


def torch_mlp(torch):
    t = torch.nn
    return t.Sequential(
        t.Linear(6, 8),
        t.BatchNorm1d(8),
        t.ReLU(),
        t.Sequential(t.Linear(8, 8, bias=False), t.LayerNorm(8)),
        t.Linear(8, 3),
    )


class ConvNet(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.conv = nn.Conv(2, 4, (3, 5), stride=2, device=device)
        self.norm = nn.BatchNorm2d(4, device=device)
        self.head = nn.Linear(4 * 4 * 4, 3, device=device)

    def forward(self, x):
        return self.head(self.norm(self.conv(x)).relu().flatten(1))


def torch_conv_net(torch):
    class Twin(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(2, 4, (3, 5), stride=2, padding=(1, 2))
            self.norm = torch.nn.BatchNorm2d(4)
            self.head = torch.nn.Linear(4 * 4 * 4, 3)

        def forward(self, x):
            return self.head(self.norm(self.conv(x)).relu().flatten(1))

    return Twin()


class Tagger(nn.Module):
    """Words in, tags out, through one of the recurrent layers."""

    def __init__(self, kind, device, **settings):
        super().__init__()
        self.embedding = nn.Embedding(11, 6, device=device)
        self.rnn = getattr(nn, kind)(6, 5, 2, device=device, **settings)
        self.head = nn.Linear(5, 3, device=device)

    def forward(self, x):
        return self.head(self.rnn(self.embedding(x))[0].reshape(-1, 5))


def torch_tagger(torch, kind, **settings):
    class Twin(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(11, 6)
            self.rnn = getattr(torch.nn, kind)(6, 5, 2, **settings)
            self.head = torch.nn.Linear(5, 3)

        def forward(self, x):
            return self.head(self.rnn(self.embedding(x.long()))[0].reshape(-1, 5))

    return Twin()


CASES = {
    "mlp": (mlp, torch_mlp, (7, 6)),
    "conv-net": (ConvNet, torch_conv_net, (3, 2, 8, 8)),
    **{
        f"{kind}{'' if bias else '-no-bias'}": (
            lambda device, kind=kind, bias=bias: Tagger(kind, device, bias=bias),
            lambda torch, kind=kind, bias=bias: torch_tagger(torch, kind, bias=bias),
            "words",
        )
        for kind in ("RNN", "LSTM", "GRU")
        for bias in (True, False)
    },
    "linear": (
        lambda device: nn.Linear(6, 3, device=device),
        lambda torch: torch.nn.Linear(6, 3),
        (4, 6),
    ),
}


def inputs(shape, rng):
    if shape == "words":
        return rng.integers(0, 11, (4, 2)).astype(np.float32)
    return rng.standard_normal(shape).astype(np.float32)


def train_a_little(model, values, torch):
    """Move weights and running statistics away from where they started."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.from_numpy(values)).square().sum().sqrt().backward()
        optimizer.step()


@pytest.mark.parametrize("name", CASES)
def test_a_model_trained_in_pytorch_gives_the_same_outputs(device, torch, tmp_path, rng, name):
    make, make_twin, shape = CASES[name]
    twin, values = make_twin(torch), inputs(shape, rng)
    train_a_little(twin, values, torch)
    path = tmp_path / "model.safetensors"
    pytest.importorskip("safetensors.torch").save_file(twin.state_dict(), path)
    model = make(device)
    ndl.load_model(model, path, layout="torch")
    for each in (model, twin):
        each.eval()
    with torch.no_grad(), ndl.no_grad():
        got = model(ndl.Tensor(values, device=device))
        expected = twin(torch.from_numpy(values)).numpy()
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_a_model_of_needle_loads_into_pytorch(device, torch, tmp_path, rng, name):
    make, make_twin, shape = CASES[name]
    model, values = make(device), inputs(shape, rng)
    model(ndl.Tensor(values, device=device))  # running statistics move
    path = tmp_path / "model.safetensors"
    ndl.save_model(model, path, layout="torch")
    twin = make_twin(torch)
    state = pytest.importorskip("safetensors.torch").load_file(path)
    twin.load_state_dict(state, strict=True)
    for each in (model, twin):
        each.eval()
    with torch.no_grad(), ndl.no_grad():
        expected = twin(torch.from_numpy(values)).numpy()
        got = model(ndl.Tensor(values, device=device))
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_from_a_state_dict_in_memory(torch, rng):
    twin, model = torch_mlp(torch), mlp(None)
    ndl.load_torch_state_dict(model, twin.state_dict())
    np.testing.assert_array_equal(
        model.modules[0].weight.numpy(), twin[0].weight.detach().numpy().T
    )
