"""Modes by name: set for a block, put back after it."""

import threading

import pytest

import needle as ndl
from needle import autograd, nn
from needle.errors import NeedleError
from tests.gradcheck import tensor64


def test_recording():
    x = tensor64([1.0])
    with ndl.using_config("enable_grad", False):
        assert not (x * 2).requires_grad and not ndl.is_grad_enabled()
        with ndl.using_config("enable_grad", True):
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_lazy():
    x = tensor64([1.0])
    with ndl.using_config("lazy", True):
        y = x * 2
        assert y.cached_data is None
        y.backward()
    assert not autograd.LAZY_MODE
    assert y.item() == 2 and x.grad.item() == 2


def test_train_off_overrules_modules():
    dropout, norm = nn.Dropout(0.5), nn.BatchNorm1d(2)
    x = ndl.Tensor([[1.0, 2.0], [3.0, 6.0]], dtype="float32")
    with ndl.using_config("train", False):
        assert dropout(x).numpy().tolist() == x.numpy().tolist()
        norm(x)
        assert norm.running_mean.numpy().tolist() == [0, 0]
        assert not dropout.training and not norm.training
    assert dropout.training and norm.training  # their own mode is not touched
    norm(x)
    assert norm.running_mean.numpy().tolist() != [0, 0]
    assert 0 in dropout(ndl.ones(100)).numpy()


def test_train_on_leaves_modules_in_evaluation():
    dropout = nn.Dropout(0.5).eval()
    with ndl.using_config("train", True):
        assert dropout(ndl.ones(50)).numpy().tolist() == [1] * 50


@pytest.mark.parametrize("name", ["enable_grad", "train", "lazy"])
def test_put_back_after_an_error_and_as_a_decorator(name):
    from needle.config import _SWITCHES

    owner, attribute = _SWITCHES[name]
    usual = getattr(owner, attribute)

    @ndl.using_config(name, not usual)
    def fail():
        assert getattr(owner, attribute) is not usual
        raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            fail()
        assert getattr(owner, attribute) is usual


def test_threads_have_their_own():
    seen = []
    with ndl.using_config("enable_grad", False), ndl.using_config("train", False):
        thread = threading.Thread(
            target=lambda: seen.append((ndl.is_grad_enabled(), ndl.config.train_mode.enabled))
        )
        thread.start()
        thread.join()
    assert seen == [(True, True)]


def test_unknown_names():
    with (
        pytest.raises(NeedleError, match=r"no mode 'trian'; there are enable_grad, train, lazy"),
        ndl.using_config("trian", False),
    ):
        pass
