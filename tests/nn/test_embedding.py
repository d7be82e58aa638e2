"""Embedding: which vectors it looks up, where their gradients add up, which ids it refuses."""

import re

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.errors import IndexingError
from tests.nn.module_gradcheck import FLOAT64, check_module


@pytest.mark.parametrize("shape", [(4, 2), (5,), (), (2, 3, 4), (0, 2)], ids=str)
@pytest.mark.parametrize("as_array", [True, False], ids=["array", "Tensor"])
def test_it_looks_up_a_vector_for_each_id(device, shape, as_array, rng):
    embedding = nn.Embedding(7, 3, device=device)
    ids = rng.integers(0, 7, shape)
    x = ids if as_array else ndl.Tensor(ids, device=device, dtype="float32", requires_grad=False)
    y = embedding(x)
    assert y.shape == (*shape, 3) and y.device == device and y.numpy().dtype == np.float32
    np.testing.assert_array_equal(y.numpy(), embedding.weight.numpy()[ids])


def test_it_takes_a_list(device):
    embedding = nn.Embedding(7, 3, device=device)
    np.testing.assert_array_equal(embedding([6, 0]).numpy(), embedding.weight.numpy()[[6, 0]])


def test_gradients_of_a_repeated_id_add_up(device, rng):
    embedding = nn.Embedding(5, 3, device=device)
    ids = np.array([[1, 4], [1, 0], [1, 1]])
    out_grad = rng.standard_normal((3, 2, 3)).astype(np.float32)
    embedding(ids).backward(ndl.Tensor(out_grad, device=device))
    expected = np.zeros((5, 3))
    np.add.at(expected, ids, out_grad)
    np.testing.assert_allclose(embedding.weight.grad.numpy(), expected, rtol=1e-5, atol=1e-6)
    assert embedding.weight.grad.device == device


def test_gradients_in_float64(rng):
    class Lookup(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(5, 3, **FLOAT64)

        def forward(self, x):
            return self.embedding([[1, 4, 1], [0, 1, 1]]) * x

    check_module(Lookup(), rng.standard_normal((2, 3, 3)), rng=rng)


def test_weights_are_standard_normal_and_the_only_draw(device):
    np.random.seed(3)
    embedding = nn.Embedding(6, 4, device=device)
    embedding([1, 2])
    after = np.random.rand()
    np.random.seed(3)
    np.testing.assert_allclose(embedding.weight.numpy(), np.random.randn(6, 4), rtol=1e-6)
    assert np.random.rand() == after
    assert [name for name, _ in embedding.named_parameters()] == ["weight"]
    assert repr(embedding) == "Embedding(6, 4)"


@pytest.mark.parametrize("wrong", [-1, 7, 100, 2.5, float("nan")])
@pytest.mark.parametrize("as_array", [True, False], ids=["array", "Tensor"])
def test_an_id_outside_the_table_is_refused(device, wrong, as_array):
    embedding = nn.Embedding(7, 3, device=device)
    ids = np.array([[0, 6], [wrong, 2]])
    message = f"[Embedding] id {wrong} is not one of 0..6: num_embeddings=7"
    with pytest.raises(IndexingError, match=re.escape(message)):
        embedding(ids if as_array else ndl.Tensor(ids, device=device, dtype="float32"))
