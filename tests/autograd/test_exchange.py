"""Tensors that share memory with numpy and other libraries; constructors still copy.

What NDArray does below them is in tests/ndarray/test_exchange.py.
"""

import pickle

import numpy as np
import pytest

import needle as ndl
from needle import optim
from needle.backend_selection import BACKEND

DEVICES = ("cpu", "cpu_numpy")  # whose memory the host reaches


@pytest.fixture
def x(device):
    return ndl.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3), device=device)


def test_asarray_is_a_view(x):
    """The Tensor and all that shares its array see what numpy writes."""
    seen = np.asarray(x)
    assert seen.dtype == np.float32
    seen[1, 2] = 9
    assert x.numpy()[1, 2] == 9 and x.detach()[1, 2].item() == 9
    np.testing.assert_array_equal(np.asarray(ndl.transpose(x)), x.numpy().T)


def test_copies_when_asked(x):
    for copied in (x.numpy(), np.array(x), np.asarray(x, "float16"), np.asarray(x, copy=True)):
        copied[...] = -1
    np.testing.assert_array_equal(x.numpy(), np.arange(6).reshape(2, 3))
    assert np.asarray(x, copy=False)[0, 1] == 1
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, "float16", copy=False)


def test_constructors_copy(x, device):
    values = np.asarray(x)
    made = [
        ndl.Tensor(values, device=device),
        ndl.Tensor(x.realize_cached_data(), device=device),
        pickle.loads(pickle.dumps(x)),
        x + 0,
    ]
    values[...] = -1
    for y in made:
        np.testing.assert_array_equal(y.numpy(), np.arange(6).reshape(2, 3))


def test_loaded_and_stacked_values_are_copies(device):
    model = ndl.nn.Linear(2, 2, device=device)
    state = {name: np.ones(p.shape, np.float32) for name, p in model.state_dict().items()}
    model.load_state_dict(state)
    rows = [ndl.Tensor([1.0, 2.0], device=device) for _ in range(2)]
    (batch,) = next(iter(ndl.data.DataLoader(rows, batch_size=2, device=device)))
    for values in (*state.values(), *map(np.asarray, rows)):
        values[...] = -1
    assert all(np.all(p.numpy() == 1) for p in model.parameters())
    np.testing.assert_array_equal(batch.numpy(), [[1, 2]] * 2)


def test_dlpack_both_ways(x, device):
    seen = np.from_dlpack(x)
    back = ndl.from_dlpack(x, device=device)
    seen[0, 0] = 7
    assert x.numpy()[0, 0] == back.numpy()[0, 0] == 7
    assert x.__dlpack_device__() == (1, 0)


def test_a_flipped_array_is_copied_on_the_way_out(x):
    flipped = ndl.Tensor.make_const(ndl.array_api.flip(x.realize_cached_data(), (0, 1)))
    seen = np.from_dlpack(flipped)
    np.testing.assert_array_equal(seen, np.arange(6)[::-1].reshape(2, 3))
    assert all(stride > 0 for stride in seen.strides)
    with pytest.raises(BufferError, match=r"\[dlpack\] a flipped view needs a copy"):
        flipped.__dlpack__(copy=False)


def test_from_dlpack(device):
    values = np.arange(6, dtype=np.float32).reshape(2, 3).T
    x = ndl.from_dlpack(values, device=device)
    assert not x.requires_grad and x.is_leaf() and x.device == device
    values[2, 1] = 50
    np.testing.assert_array_equal(x.numpy(), values)
    np.testing.assert_array_equal((x * 2).sum((1,)).numpy(), 2 * values.sum(1))


def test_training_leaves_foreign_memory_alone(device):
    """A step replaces a Tensor's data, as everywhere; the gradient is as usual."""
    values = np.array([1.0, 2.0], np.float32)
    w = ndl.from_dlpack(values, device=device, requires_grad=True)
    (w * w).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), [2, 4])
    optim.SGD([w], lr=0.5).step()
    np.testing.assert_array_equal(w.numpy(), [0, 0])
    np.testing.assert_array_equal(values, [1, 2])


def test_read_only_memory_is_copied(device):
    values = np.arange(3, dtype=np.float32)
    values.flags.writeable = False
    x = ndl.from_dlpack(values, device=device)
    np.asarray(x)[0] = 5
    assert values[0] == 0 and x.numpy()[0] == 5
    with pytest.raises(ndl.ExchangeError, match="read-only"):
        ndl.from_dlpack(values, device=device, copy=False)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.arange(3), "carries float32.*, not int64"),
        ([1.0], "a list has no __dlpack__; use needle.Tensor to copy"),
        (np.ones(2, np.complex64), "not complex64"),
    ],
    ids=["int64", "list", "complex64"],
)
def test_messages(device, value, message):
    with pytest.raises(ndl.DtypeError, match=rf"\[from_dlpack\] .*{message}"):
        ndl.from_dlpack(value, device=device)


def test_float64(device):
    values = np.ones(3)
    if BACKEND == "np" or "float64" in device.dtypes:
        assert ndl.from_dlpack(values, device=device).dtype == "float64"
    else:
        with pytest.raises(ndl.DtypeError, match="not float64"):
            ndl.from_dlpack(values, device=device)
