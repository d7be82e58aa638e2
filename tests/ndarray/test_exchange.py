"""Memory shared with numpy and other libraries: what is shared, what is copied, who keeps it alive.

Tensors are in tests/autograd/test_exchange.py, PyTorch in tests/torch/test_exchange_with_torch.py.
"""

import copy
import pickle
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from needle.backend_ndarray import NDArray, interface, ndarray_backend_numpy
from needle.backend_ndarray.device import BackendDevice
from needle.backend_ndarray.exchange import from_dlpack
from needle.errors import DeviceError, DtypeError, ExchangeError

DEVICES = ("cpu", "cpu_numpy")  # whose memory the host reaches

# The same view of an NDArray and of a numpy array (4, 6).
VIEWS = {
    "whole": lambda a: a,
    "rows": lambda a: a[1:3],
    "inner": lambda a: a[1:3, 2:5],
    "every second": lambda a: a[::2, 1::3],
    "transposed": lambda a: transposed(a),
    "one element": lambda a: a[2:3, 3:4],
    "no rows": lambda a: a[2:2],
    "flipped": lambda a: a[::-1, ::-2],
}


def transposed(a):
    return a.permute((1, 0)) if isinstance(a, NDArray) else a.T


def table(device, dtype="float32"):
    """Return 24 numbers as an NDArray (4, 6) and as numpy's."""
    values = np.arange(24, dtype=dtype).reshape(4, 6)
    return NDArray(values, device=device, dtype=dtype), values.copy()


# --- numpy's array over the memory of ours ---


@pytest.mark.parametrize("name", VIEWS)
def test_asarray_is_a_view(device, name):
    """Each side sees what the other writes, also through a view of a view."""
    for dtype in device.dtypes:
        a, values = table(device, dtype)
        seen = np.asarray(VIEWS[name](a))
        assert seen.dtype == dtype and seen.flags.writeable
        np.testing.assert_array_equal(seen, VIEWS[name](values))
        a[:] = a + 100
        np.testing.assert_array_equal(seen, VIEWS[name](values) + 100)
        seen -= 50
        VIEWS[name](values)[...] -= 50
        np.testing.assert_array_equal(a.numpy(), values + 100)


def test_asarray_of_a_number(device):
    a = NDArray(3.0, device=device)
    seen = np.asarray(a)
    seen[()] = 4
    assert seen.shape == () and a.item() == 4


def test_a_broadcast_view_is_read_only(device):
    """As in NDArray itself: one write would change many elements."""
    a = NDArray(np.arange(3), device=device)
    seen = np.asarray(a.broadcast_to((2, 3)))
    np.testing.assert_array_equal(seen, [[0, 1, 2]] * 2)
    assert np.shares_memory(seen, np.asarray(a))
    with pytest.raises(ValueError, match="read-only"):
        seen[0, 0] = 1
    assert np.asarray(a.broadcast_to((1, 3))).flags.writeable


def test_copies_when_asked(device):
    a, values = table(device)
    for copied in (
        np.array(a),
        np.asarray(a, copy=True),
        np.asarray(a, "float16"),
        np.asarray(transposed(a), dtype="int64"),
        a.numpy(),
        transposed(a).numpy(),
    ):
        assert not np.shares_memory(copied, np.asarray(a))
        copied[...] = -1
    np.testing.assert_array_equal(a.numpy(), values)
    assert np.shares_memory(np.asarray(a, copy=False), np.asarray(a))
    assert np.shares_memory(np.asarray(a, "float32"), np.asarray(a))


def test_copy_false_where_a_copy_is_needed(device):
    with pytest.raises(ValueError, match=r"\[array\] float32 on \w+\(\) needs a copy as float16"):
        np.asarray(table(device)[0], "float16", copy=False)


def test_a_view_outlives_its_array(device, rng):
    """Its memory does not go to the next array of that size."""
    values = rng.standard_normal((16, 16), dtype=np.float32)
    for share in (np.asarray, np.from_dlpack):
        seen = share(NDArray(values, device=device))
        others = [NDArray(np.full((16, 16), 7), device=device) for _ in range(4)]
        np.testing.assert_array_equal(seen, values)
        del others


def test_memory_goes_back_with_the_last_view(device):
    if device.name == "cpu_numpy":
        pytest.skip("cpu_numpy() does not count memory")
    before = device.memory_stats()["live_bytes"]
    a = NDArray(np.ones(1000), device=device)
    views = [np.asarray(a), np.from_dlpack(a), a.__dlpack__()]
    size = device.memory_stats()["live_bytes"] - before
    del a
    while views:
        assert device.memory_stats()["live_bytes"] == before + size >= before + 4000
        views.pop()
    assert device.memory_stats()["live_bytes"] == before


# --- DLPack, outwards ---


@pytest.mark.parametrize("name", VIEWS)
def test_numpy_from_dlpack(device, name):
    a, values = table(device)
    seen = np.from_dlpack(VIEWS[name](a))
    np.testing.assert_array_equal(seen, VIEWS[name](values))
    if seen.size:
        assert np.shares_memory(seen, np.asarray(a)) == (name != "flipped")


def test_dlpack_keywords(device):
    a = table(device)[0]
    assert a.__dlpack_device__() == (1, 0)
    own = np.from_dlpack(SimpleNamespace(__dlpack__=lambda **k: a.__dlpack__(copy=True)))
    assert not np.shares_memory(own, np.asarray(a))
    with pytest.raises(BufferError, match=r"\[dlpack\] a flipped view needs a copy"):
        a.flip(0).__dlpack__(copy=False)
    with pytest.raises(BufferError):
        a.__dlpack__(dl_device=(2, 0))


# --- DLPack, inwards ---


@pytest.mark.parametrize("name", VIEWS)
def test_from_dlpack_shares(device, name):
    for dtype in device.dtypes:
        values = table(device, dtype)[1]
        view = VIEWS[name](values)
        a = from_dlpack(view, device)
        assert a.dtype == dtype and a.device == device and a.shape == view.shape
        np.testing.assert_array_equal(a.numpy(), view)
        view += 100
        np.testing.assert_array_equal(a.numpy(), view)
        a[...] = a * 2
        untouched = table(device, dtype)[1]
        VIEWS[name](untouched)[...] = (VIEWS[name](untouched) + 100) * 2
        np.testing.assert_array_equal(values, untouched)


def test_from_dlpack_of_a_number_and_of_ours(device):
    number = np.array(3, np.float32)
    a = from_dlpack(number, device)
    number[()] = 4
    assert a.item() == 4 and a.shape == ()
    a = NDArray(np.arange(6).reshape(2, 3), device=device)
    b = from_dlpack(a.permute((1, 0)), device)
    b[0, 1] = 9
    assert a.numpy()[1, 0] == 9 and b.strides == (1, 3)


def test_the_default_device():
    from needle import default_device

    assert from_dlpack(np.zeros(2, np.float32)).device == default_device()


def test_results_own_their_memory(device):
    """A view shares; what a kernel computes does not, nor what `array` and `to` copy."""
    values = np.arange(6, dtype=np.float32)
    a = from_dlpack(values, device)
    results = [a + 1, a.sum(), NDArray(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))]
    values[:] = -1
    assert [r.numpy().sum() for r in results] == [21, 15, 15, 15, 15]


# Each kind of kernel on views that begin at an odd multiple of four bytes.
KERNELS = {
    "add": (lambda a, b: a + b, lambda a, b: a + b),
    "exp": (lambda a, b: a.exp(), lambda a, b: np.exp(a)),
    "matmul": (lambda a, b: a @ b.permute((1, 0)), lambda a, b: a @ b.T),
    "sum": (lambda a, b: a.sum(1), lambda a, b: a.sum(1)),
    "sum of rows": (lambda a, b: a.sum(0), lambda a, b: a.sum(0)),
    "max": (lambda a, b: a.max(1), lambda a, b: a.max(1)),
    "transposed": (lambda a, b: a.permute((1, 0)).compact(), lambda a, b: a.T),
    "flipped": (lambda a, b: a.flip(1) * 2, lambda a, b: a[:, ::-1] * 2),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("start", [1, 2, 3, 5])
def test_kernels_take_any_alignment(device, name, start, rng):
    """numpy's memory begins where it likes."""
    ours, numpys = KERNELS[name]
    memory = rng.standard_normal(2 * 37 * 32 + 16, dtype=np.float32)
    a = memory[start:][: 37 * 32].reshape(37, 32)
    b = memory[start + 37 * 32 + 1 :][: 37 * 32].reshape(37, 32)
    got = ours(from_dlpack(a, device), from_dlpack(b, device)).numpy()
    np.testing.assert_allclose(got, numpys(a, b), rtol=1e-4, atol=1e-5)


def test_the_tiled_product_takes_any_alignment(device, rng):
    if not hasattr(device, "matmul_tiled"):
        pytest.skip(f"{device} has no matmul_tiled, which is optional")
    tile = device.__tile_size__
    parts = rng.standard_normal((3, tile * tile + 1), dtype=np.float32)[:, 1:]
    handles = [from_dlpack(part, device)._handle for part in parts]
    device.matmul_tiled(*handles, tile, tile, tile)
    a, b, out = parts.reshape(3, tile, tile)
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-5)


# --- who keeps whom alive ---


def test_the_owner_lives_as_long_as_the_last_view(device):
    values = np.arange(6, dtype=np.float32)
    owner = weakref.ref(values)
    a = from_dlpack(values, device)
    part = a[2:]
    result = a + 1
    del values, a
    assert owner() is not None
    seen = np.asarray(part)
    del part
    np.testing.assert_array_equal(seen, [2, 3, 4, 5])
    del seen
    assert owner() is None, "a view or a result still holds the owner"
    assert result.numpy()[0] == 1


def test_a_refused_owner_is_let_go(device):
    values = np.arange(6)
    owner = weakref.ref(values)
    with pytest.raises(DtypeError):
        from_dlpack(values, device)
    del values
    assert owner() is None


def test_the_pool_gets_no_foreign_memory(device):
    """Its next array of that size would lie in memory that numpy has freed."""
    values = np.ones(64, np.float32)
    from_dlpack(values, device)  # what is loaded at first use
    before = device.memory_stats()
    for _ in range(3):
        a = from_dlpack(values, device)
        del a
    assert device.memory_stats() == before
    fresh = [device.allocate(64, "float32") for _ in range(3)]
    assert values.ctypes.data not in [each.ptr() for each in fresh]


# --- what is not shared ---


def read_only():
    values = np.arange(6, dtype=np.float32)
    values.flags.writeable = False
    return values


def misaligned():
    values = np.frombuffer(bytearray(25), np.float32, 6, offset=1)
    values[:] = np.arange(6)
    return values


@pytest.mark.parametrize("make", [read_only, misaligned])
def test_what_is_unsafe_to_share_is_copied(device, make):
    values = make()
    a = from_dlpack(values, device)
    np.testing.assert_array_equal(a.numpy(), np.arange(6))
    a.fill(9)
    np.testing.assert_array_equal(values, np.arange(6))
    with pytest.raises(BufferError, match=r"\[from_dlpack\] read-only or misaligned .*copy=False"):
        from_dlpack(values, device, copy=False)


def test_from_dlpack_copies_when_asked(device):
    values = np.arange(6, dtype=np.float32).reshape(2, 3).T
    a = from_dlpack(values, device, copy=True)
    values[...] = -1
    np.testing.assert_array_equal(a.numpy(), np.arange(6).reshape(2, 3).T)
    b = from_dlpack(values, device, copy=False)
    b[0, 0] = 5
    assert values[0, 0] == 5


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (np.arange(3), DtypeError, r"carries float32.*, not int64; convert the array first"),
        (np.ones(3, np.float16), DtypeError, r"carries float32.*, not float16"),
        (np.ones(3, bool), DtypeError, r"not bool"),
        (np.ones(3, np.complex64), DtypeError, r"not complex64"),
        ([1.0, 2.0], DtypeError, r"a list has no __dlpack__; use needle\.Tensor to copy"),
        (np.ones(3, ">f4"), ExchangeError, "byte order"),
    ],
    ids=["int64", "float16", "bool", "complex", "list", "big-endian"],
)
def test_messages(device, value, error, message):
    with pytest.raises(error, match=rf"\[from_dlpack\] .*{message}"):
        from_dlpack(value, device)


def test_float64_has_its_device(device):
    values = np.ones(3)
    if "float64" in device.dtypes:
        assert from_dlpack(values, device).dtype == "float64"
    else:
        with pytest.raises(DtypeError, match=r"carries float32, not float64"):
            from_dlpack(values, device)


def test_a_missing_device():
    missing = BackendDevice("gone", None, reason="it is not built")
    with pytest.raises(DeviceError, match=r"\[gone\] not available: it is not built"):
        from_dlpack(np.zeros(2, np.float32), missing)


def test_a_device_that_the_host_cannot_reach():
    """Its kernels are the specification's, without the two that share memory."""
    kernels = interface.kernel_names() - {"host_view", "array_over", "matmul_tiled"}
    module = {name: getattr(ndarray_backend_numpy, name) for name in (*kernels, "Array")}
    far = BackendDevice("far", SimpleNamespace(**module))
    a = NDArray(np.arange(3), device=far)
    np.testing.assert_array_equal(np.asarray(a), [0, 1, 2])
    np.testing.assert_array_equal(np.array(a, "float64"), [0, 1, 2])
    with pytest.raises(ValueError, match=r"\[array\] float32 on far\(\) needs a copy"):
        np.asarray(a, copy=False)
    for export in (a.__dlpack__, a.__dlpack_device__):
        with pytest.raises(BufferError, match=r"\[dlpack\] the memory of far\(\) is out of reach"):
            export()
    with pytest.raises(
        BufferError, match=r"\[from_dlpack\] far\(\) cannot share the host's memory"
    ):
        from_dlpack(np.zeros(2, np.float32), far)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(4),
        np.zeros((2, 2), np.float32),
        np.zeros(4, np.float32)[::2],
        np.zeros(4, np.float32)[::-1],
        read_only(),
        misaligned(),
        [1.0],
        None,
    ],
    ids=["float64", "matrix", "strided", "flipped", "read-only", "misaligned", "list", "None"],
)
def test_array_over_checks_its_argument(device, array):
    if device.name == "cpu_numpy":
        pytest.skip("cpu_numpy() relies on its caller")
    with pytest.raises(TypeError, match=r"\[array_over\] .*(float32|flat, writable and aligned)"):
        device.array_over(array)


def test_jax(device):
    """JAX's arrays are read-only: what comes from it is copied, what goes to it is shared."""
    jax = pytest.importorskip("jax")
    a = table(device)[0]
    there = jax.dlpack.from_dlpack(a)
    np.testing.assert_array_equal(np.asarray(there), a.numpy())
    assert there.unsafe_buffer_pointer() == np.asarray(a).ctypes.data or device.name != "cpu"
    back = from_dlpack(jax.numpy.arange(6.0), device)
    np.testing.assert_array_equal(back.numpy(), np.arange(6))
    with pytest.raises(ExchangeError):
        from_dlpack(jax.numpy.arange(6.0), device, copy=False)
