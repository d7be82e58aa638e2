"""apps/checkpoint.py: what is written comes back, and files that cannot be read are explained."""

import numpy as np
import pytest

import checkpoint
import needle as ndl
from needle import nn


def network(device):
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Dropout(0.3), nn.Linear(5, 2))
    return model.to(device)


def steps(model, opt, count, device):
    for _ in range(count):
        x, y = ndl.init.randn(6, 4, device=device), np.random.randint(0, 2, 6)
        loss = nn.SoftmaxLoss()(model(x), ndl.Tensor(y, device=device, requires_grad=False))
        opt.reset_grad()
        loss.backward()
        opt.step()


def state(model):
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


OPTIMIZERS = {
    "sgd": lambda p: ndl.optim.SGD(p, lr=0.1),
    "momentum": lambda p: ndl.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: ndl.optim.Adam(p, lr=0.02),
    "adamw": lambda p: ndl.optim.AdamW(p, lr=0.02),
    "rmsprop": lambda p: ndl.optim.RMSprop(p, lr=0.02),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_as_if_it_had_not_stopped(device, tmp_path, name):
    model = network(device)
    opt = OPTIMIZERS[name](model.parameters())
    steps(model, opt, 3, device)
    opt.lr *= 0.5
    np.random.randn()  # leaves a second normal number waiting in the generator
    checkpoint.save(tmp_path / "run.safetensors", model, opt, {})
    steps(model, opt, 3, device)
    expected, draws = state(model), np.random.randn(5)

    model = network(device)
    opt = OPTIMIZERS[name](model.parameters())
    steps(model, opt, 1, device)
    checkpoint.restore(tmp_path / "run.safetensors", model, opt)
    steps(model, opt, 3, device)
    for key, values in state(model).items():
        np.testing.assert_array_equal(values, expected[key])
    np.testing.assert_array_equal(np.random.randn(5), draws)


def test_facts_come_back(tmp_path):
    facts = {"words": ["the", "ünique"], "rate": 0.1, "deep": {"scores": [[1.5, 2]]}}
    checkpoint.write(tmp_path / "new" / "file.safetensors", {"a": np.arange(3.0)}, facts)
    assert checkpoint.read_facts(tmp_path / "new" / "file.safetensors") == facts


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(tmp_path):
    path = tmp_path / "file.safetensors"
    checkpoint.write(path, {"a": np.ones(3)}, {"epoch": 1})
    with pytest.raises(TypeError):
        checkpoint.write(path, {"a": np.ones(3)}, {"epoch": object()})
    with pytest.raises(Exception, match="object"):
        checkpoint.write(path, {"a": np.array([object()])}, {"epoch": 2})
    assert checkpoint.read_facts(path) == {"epoch": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["file.safetensors"]


def test_the_checkpoint_lies_beside_the_model(tmp_path):
    path = checkpoint.path_beside(tmp_path / "model.safetensors")
    assert path == tmp_path / "model.checkpoint.safetensors"


def test_files_that_cannot_be_read(tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(ndl.NeedleError, match=r"\[checkpoint\] no file .*model.safetensors; train"):
        checkpoint.read_facts(path)
    path.write_bytes(b"no safetensors file")
    with pytest.raises(ndl.NeedleError, match="model.safetensors is damaged: "):
        checkpoint.read_facts(path)
    ndl.save({"a": ndl.Tensor([1.0])}, path)
    with pytest.raises(ndl.NeedleError, match="was not written by a training program"):
        checkpoint.read_facts(path)


def test_another_models_checkpoint_changes_nothing(tmp_path, device):
    model, other = network(device), nn.Linear(4, 2).to(device)
    opt = ndl.optim.Adam(model.parameters())
    checkpoint.save(tmp_path / "other.safetensors", other, ndl.optim.Adam(other.parameters()), {})
    before = state(model)
    with pytest.raises(ndl.NeedleError, match="names do not fit Sequential"):
        checkpoint.restore(tmp_path / "other.safetensors", model, opt)
    for key, values in state(model).items():
        np.testing.assert_array_equal(values, before[key])
