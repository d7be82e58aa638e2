"""apps/models.py: sizes, shapes and gradients of the models, and the random numbers they take."""

import importlib

import numpy as np
import pytest

import models
import needle as ndl
from needle import nn
from tests.gradcheck import check_gradients, constant64

SEQUENCES = ("rnn", "lstm", "gru", "transformer")


def count(model):
    return sum(int(np.prod(p.shape)) for p in model.parameters())


def words(device, steps=5, batch=3, different=11):
    ids = np.arange(steps * batch).reshape(steps, batch) % different
    return ndl.Tensor(ids, device=device, requires_grad=False)


# --- images ---


def test_resnet9_has_the_contracts_parameters():
    model = models.ResNet9()
    assert count(model) == 431_946
    assert all(p.dtype == "float32" for p in model.parameters())


def test_resnet9_is_made_in_the_order_of_execution():
    np.random.seed(0)
    convs = [m for _, m in models.ResNet9().named_modules() if isinstance(m, nn.Conv)]
    shapes = [conv.weight.shape for conv in convs]
    assert shapes == [
        (7, 7, 3, 16),
        (3, 3, 16, 32),
        (3, 3, 32, 32),
        (3, 3, 32, 32),
        (3, 3, 32, 64),
        (3, 3, 64, 128),
        (3, 3, 128, 128),
        (3, 3, 128, 128),
    ]
    np.random.seed(0)
    first = nn.Conv(3, 16, 7, 4)
    np.testing.assert_array_equal(convs[0].weight.numpy(), first.weight.numpy())
    second = nn.Conv(16, 32, 3, 2)  # batch norm draws nothing
    np.testing.assert_array_equal(convs[1].weight.numpy(), second.weight.numpy())


@pytest.mark.parametrize(
    "make",
    [models.ResNet9, lambda device: models.SmallCNN(3, 32, 10, device=device)],
    ids=["resnet9", "cnn"],
)
def test_image_models_give_ten_logits_and_a_gradient_each(device, make):
    model = make(device=device)
    x = ndl.init.randn(2, 3, 32, 32, device=device)
    logits = model(x)
    assert logits.shape == (2, 10) and logits.device == device
    nn.SoftmaxLoss()(logits, ndl.Tensor([1, 2], device=device, requires_grad=False)).backward()
    for p in model.parameters():
        assert p.grad.shape == p.shape and p.device == device
        assert np.abs(p.grad.numpy()).sum() > 0


def test_resnet9_in_evaluation_does_not_depend_on_the_batch(device):
    model = models.ResNet9(device=device)
    x = ndl.init.randn(4, 3, 32, 32, device=device)
    model(x)  # gives the running statistics
    model.eval()
    with ndl.no_grad():
        whole, alone = model(x).numpy(), model(x[1:2]).numpy()
    np.testing.assert_allclose(alone, whole[1:2], rtol=1e-3, atol=1e-4)


def test_small_cnn_knows_its_sizes(device):
    model = models.SmallCNN(1, 12, 4, widths=(2, 5), device=device)
    assert model(ndl.init.randn(3, 1, 12, 12, device=device)).shape == (3, 4)
    assert count(model) == (9 * 2 + 2) + (9 * 2 * 5 + 5) + (5 * 9 * 4 + 4)


# --- text ---


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", SEQUENCES)
def test_language_model(device, name, layers):
    model = models.LanguageModel(6, 11, 8, layers, name, seq_len=5, device=device)
    logits, h = model(words(device))
    assert logits.shape == (15, 11) and logits.device == device
    logits.backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in model.parameters())
    again, _ = model(words(device), models.detached(h))
    assert again.shape == (15, 11)


@pytest.mark.parametrize("name", SEQUENCES)
def test_gradients_of_a_language_model(name, rng):
    model = models.LanguageModel(
        3, 5, 4, 1, name, seq_len=3, device=ndl.cpu_numpy(), dtype="float64"
    )
    ids = constant64(np.array([[1, 2], [3, 4], [0, 1]]))
    check_gradients(
        lambda weight: (setattr(model.linear, "weight", weight), model(ids)[0])[1],
        rng.standard_normal(model.linear.weight.shape),
        rng=rng,
    )


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_the_hidden_state_carries_what_was_read(device, name):
    model = models.LanguageModel(6, 11, 8, 2, name, device=device)
    x = words(device, steps=6)
    whole, _ = model(x)
    first, h = model(x[:4])
    second, _ = model(x[4:], models.detached(h))
    got = np.concatenate([first.numpy(), second.numpy()])
    np.testing.assert_allclose(got, whole.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SEQUENCES)
def test_words_depend_on_those_before_them_alone(device, name):
    model = models.LanguageModel(6, 11, 8, 1, name, seq_len=6, device=device)
    ids = np.arange(18).reshape(6, 3) % 11
    before = model(ndl.Tensor(ids, device=device))[0].numpy().reshape(6, 3, 11)
    ids[4:] = 7
    after = model(ndl.Tensor(ids, device=device))[0].numpy().reshape(6, 3, 11)
    np.testing.assert_allclose(after[:4], before[:4], rtol=1e-5, atol=1e-6)
    assert not np.allclose(after[4:], before[4:])


def test_language_model_is_made_in_the_order_of_execution():
    np.random.seed(3)
    model = models.LanguageModel(6, 11, 8, seq_model="lstm")
    np.random.seed(3)
    parts = nn.Embedding(11, 6), nn.LSTM(6, 8), nn.Linear(8, 11)
    expected = [p.numpy() for part in parts for p in part.parameters()]
    for p, values in zip(model.parameters(), expected, strict=True):
        np.testing.assert_array_equal(p.numpy(), values)


def test_the_width_of_a_transformer_is_that_of_the_embedding():
    model = models.LanguageModel(6, 11, 8, seq_model="transformer", seq_len=7)
    assert model.linear.weight.shape == (6, 11)
    assert isinstance(model.seq_model, nn.Transformer)


def test_a_transformer_reads_seq_len_words_at_most(device):
    model = models.LanguageModel(6, 11, 8, seq_model="transformer", seq_len=7, device=device)
    assert model(words(device, steps=7))[0].shape == (21, 11)
    with pytest.raises(ndl.NeedleError):
        model(words(device, steps=8))


def test_an_unknown_sequence_model_is_refused():
    with pytest.raises(
        ndl.NeedleError, match="seq_model is 'cnn'; it is one of rnn, lstm, gru, tr"
    ):
        models.LanguageModel(6, 11, 8, seq_model="cnn")


@pytest.mark.parametrize("name", ["rnn", "lstm"])
def test_detached_has_no_graph(device, name):
    model = models.LanguageModel(6, 11, 8, seq_model=name, device=device)
    h = models.detached(model(words(device))[1])
    for part in h if isinstance(h, tuple) else (h,):
        assert part.op is None and not part.requires_grad and not part.inputs


def test_models_is_found_under_both_of_its_names():
    twin = importlib.import_module("apps.models")
    assert twin.__file__ == models.__file__
    assert isinstance(twin.ResNet9(), nn.Module) and isinstance(models.ResNet9(), nn.Module)
