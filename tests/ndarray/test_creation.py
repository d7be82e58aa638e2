"""Making, copying, moving, printing and padding arrays; old memory is never seen again."""

import copy
import pickle

import numpy as np
import pytest

from needle import backend_ndarray as nd
from needle.backend_ndarray import array_api
from needle.errors import DtypeError, NeedleError, OutOfMemoryError, ShapeError

SOURCE = np.arange(12, dtype=np.float32).reshape(3, 4)

# What numpy makes of each is what we hold.
INPUTS = {
    "float32": SOURCE,
    "transposed": SOURCE.T,
    "reversed": SOURCE[::-1],
    "every second": SOURCE[:, ::2],
    "Fortran": np.asfortranarray(SOURCE),
    "broadcast": np.broadcast_to(SOURCE[0], (2, 4)),
    "read-only": np.frombuffer(SOURCE.tobytes(), np.float32),
    "big-endian": SOURCE.astype(">f4"),
    "int64": SOURCE.astype(np.int64),
    "uint8": SOURCE.astype(np.uint8),
    "bool": SOURCE > 5,
    "float64": SOURCE.astype(np.float64) / 3,
    "float16": SOURCE.astype(np.float16),
    "no axes": np.array(2.5),
    "numpy number": np.float64(0.1),
    "number": 3,
    "list": [[1, 2], [3, 4]],
    "list of arrays": [SOURCE[0], SOURCE[1]],
    "tuple": (1.5, 2.5),
    "range": range(5),
    "empty list": [],
    "empty": np.zeros((0, 3)),
}


@pytest.mark.parametrize("case", INPUTS)
def test_copies_anything_array_like(device, case):
    want = np.asarray(INPUTS[case], np.float32)
    for made in (nd.array(INPUTS[case], device=device), nd.NDArray(INPUTS[case], device=device)):
        assert made.shape == want.shape
        assert made.dtype == "float32"
        assert made.device is device
        assert made.is_compact()
        np.testing.assert_array_equal(made.numpy(), want)


def test_copies_arrays_of_its_own(device):
    a = nd.array(SOURCE, device=device)
    views = (a, SOURCE), (a.permute((1, 0)), SOURCE.T), (a.flip(0)[1:], SOURCE[::-1][1:])
    for view, want in views:
        for made in (nd.NDArray(view), nd.NDArray(view, device), nd.array(view, device=device)):
            assert made.device is device
            assert made._handle is not a._handle
            np.testing.assert_array_equal(made.numpy(), want)
    stacked = nd.array([a, a], device=device)
    np.testing.assert_array_equal(stacked.numpy(), [SOURCE, SOURCE])


def test_default_device():
    assert nd.array([1]).device is nd.NDArray([1]).device is nd.default_device()
    assert nd.empty((1,)).device is nd.full((1,), 0).device is nd.default_device()
    assert nd.array([1], device="cpu_numpy").device is nd.cpu_numpy()


def test_memory_is_shared_with_nobody(device):
    source = np.ones(3, np.float32)
    a = nd.array(source, device=device)
    source[0] = 99
    seen = a.numpy()
    seen[1] = 77
    part = a[1:].numpy()
    part[...] = 55
    as_array = np.array(a)
    as_array[2] = 33
    np.testing.assert_array_equal(a.numpy(), [1, 1, 1])


def test_numpy_is_a_contiguous_copy(device):
    for view in (nd.array(SOURCE, device=device).permute((1, 0)), nd.array(2.0, device=device)):
        seen = view.numpy()
        assert isinstance(seen, np.ndarray)
        assert seen.dtype == np.float32
        assert seen.flags.c_contiguous
        assert seen.flags.writeable
        assert seen.flags.owndata or seen.base is not None
    assert np.asarray(nd.array(SOURCE, device=device), np.float64).dtype == np.float64


def test_full_and_empty(device):
    a = nd.full((2, 3), 1.5, device=device)
    np.testing.assert_array_equal(a.numpy(), np.full((2, 3), 1.5))
    assert nd.empty((2, 3), device=device).shape == (2, 3)
    assert nd.empty(4, device=device).shape == (4,)
    assert nd.empty((), device=device).shape == ()
    assert nd.full((0, 3), 1.0, device=device).numpy().shape == (0, 3)
    like = array_api.full_like(a, 2)
    assert (like.shape, like.device, like.numpy()[0, 0]) == ((2, 3), device, 2)
    assert array_api.full_like(a, 2, shape=(4,)).shape == (4,)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((-1, 2), r"\[empty\] shape \(-1, 2\) has a negative size"),
        ((1.5,), r"\[empty\] \(1\.5,\) is not a shape; give integers"),
        ("ab", r"\[empty\] 'ab' is not a shape"),
        (None, r"\[empty\] None is not a shape"),
    ],
)
def test_shapes_that_are_refused(device, shape, message):
    with pytest.raises(ShapeError, match=message):
        nd.empty(shape, device=device)
    with pytest.raises(ShapeError, match=message):
        nd.full(shape, 1.0, device=device)


@pytest.mark.parametrize(
    "values",
    ["text", None, [None], [1j], np.array(["a"]), {1: 2}, object, np.datetime64("2020")],
    ids=repr,
)
def test_values_that_are_no_numbers(device, values):
    with pytest.raises(DtypeError, match=r"\[array\] values of type .* are not real numbers"):
        nd.array(values, device=device)


def test_no_room(device):
    with pytest.raises(OutOfMemoryError, match=rf"no room for .*{2**58} elements"):
        nd.empty((2**29, 2**29), device=device)
    with pytest.raises(MemoryError):
        nd.full((2**58,), 0.0, device=device)
    with pytest.raises(NeedleError):
        nd.empty((2**40, 2**40), device=device)
    assert nd.full((3,), 1.0, device=device).sum().item() == 3  # all is well afterwards


# --- one element, printing, moving, pickling ---


def test_numbers_for_python(device):
    a = nd.array([[2.5]], device=device)
    assert a.item() == 2.5
    assert type(a.item()) is float
    assert float(a) == 2.5
    assert bool(a)
    assert not bool(nd.array(0.0, device=device))


@pytest.mark.parametrize("shape", [(2,), (0,), (2, 3)], ids=str)
def test_several_elements_are_no_number(device, shape):
    a = nd.full(shape, 1.0, device=device)
    message = rf"\[item\] shape .* has {a.size} elements; only a single one is a number"
    for ask in (nd.NDArray.item, float, bool):
        with pytest.raises(ShapeError, match=message):
            ask(a)


def test_text(device):
    a = nd.array([[1, 2]], device=device)
    assert str(a) == "[[1. 2.]]"
    assert repr(a) == f"NDArray([[1. 2.]], device={device.name}())"


def test_to(device):
    a = nd.array(SOURCE, device=device).permute((1, 0))
    assert a.to(device) is a
    assert a.to(device.name) is a
    for other in nd.all_devices():
        if other.enabled() and other != device:
            moved = a.to(other)
            assert moved.device is other
            np.testing.assert_array_equal(moved.numpy(), SOURCE.T)
            np.testing.assert_array_equal(moved.to(device).numpy(), SOURCE.T)


@pytest.mark.parametrize("how", ["pickle", "deepcopy", "copy"])
def test_copies_are_independent(device, how):
    copied = {
        "pickle": lambda a: pickle.loads(pickle.dumps(a)),  # noqa: S301 - our own
        "deepcopy": copy.deepcopy,
        "copy": copy.copy,
    }[how]
    a = nd.array(SOURCE, device=device).permute((1, 0))
    b = copied(a)
    assert b.device is device
    assert b.dtype == a.dtype
    b[0, 0] = 99.0
    np.testing.assert_array_equal(a.numpy(), SOURCE.T)
    assert b.numpy()[0, 0] == 99


def test_float64_survives(device):
    if "float64" not in device.dtypes:
        pytest.skip(f"{device} carries float32 only")
    a = nd.array([0.1], dtype="float64", device=device)
    made = [nd.NDArray(a), copy.deepcopy(a), a.compact(), a.flip(0), a.pad(((1, 1),))]
    made += [array_api.full_like(a, 0.1), nd.empty((2,), dtype="float64", device=device)]
    for each in made:
        assert each.dtype == "float64"
        assert each.numpy().dtype == np.float64
    assert copy.deepcopy(a).item() == 0.1


# --- padding, and memory that was used before ---


@pytest.fixture
def dirty(device):
    """A function that leaves freed buffers full of 123.0 behind."""

    def soil():
        arrays = [nd.full((n,), 123.0, device=device) for n in (1, 4, 12, 12, 64, 100, 12, 4000)]
        del arrays

    return soil


def test_pad(device, dirty):
    for _ in range(10):
        dirty()
        padded = nd.full((2, 2), 1.0, device=device).pad(((1, 0), (0, 2)))
        np.testing.assert_array_equal(padded.numpy(), [[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]])
        assert padded.is_compact()


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((), ()),
        ((3,), ((0, 0),)),
        ((2, 3), ((0, 0), (2, 1))),
        ((0, 3), ((1, 1), (0, 1))),
        ((2, 3, 4), ((1, 2), (0, 0), (3, 0))),
    ],
    ids=str,
)
def test_pad_is_numpys(device, dirty, shape, axes, rng):
    a = rng.standard_normal(shape, dtype=np.float32)
    dirty()
    x = nd.array(a, device=device)
    want = np.pad(a, axes) if shape else a
    np.testing.assert_array_equal(x.pad(axes).numpy(), want)
    np.testing.assert_array_equal(array_api.pad(x, axes).numpy(), want)
    if len(shape) > 1:
        flipped = np.pad(np.flip(a, 1), axes)
        np.testing.assert_array_equal(x.flip(1).pad(axes).numpy(), flipped)


@pytest.mark.parametrize(
    "axes", [((1, 1),), ((1, 1), (1, 1), (1, 1)), ((-1, 0), (0, 0)), ((1,), (1,))], ids=str
)
def test_pad_refuses(device, axes):
    message = r"\[pad\] .* for shape \(2, 3\); give one \(before, after\) pair"
    with pytest.raises(ShapeError, match=message):
        nd.full((2, 3), 1.0, device=device).pad(axes)


def test_results_never_show_old_memory(device, dirty):
    """Every kind of result, in buffers that held 123 before."""
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    for _ in range(5):
        dirty()
        x = nd.array(a, device=device)
        for got, want in (
            (x + 0, a),
            (x.permute((1, 0)).compact(), a.T),
            (x.sum(axis=0), a.sum(axis=0)),
            (x.max(axis=1), a.max(axis=1)),
            (x @ x.permute((1, 0)), a @ a.T),
            (nd.empty((3, 0), device=device) @ nd.empty((0, 4), device=device), np.zeros((3, 4))),
            (nd.empty((0, 12), device=device).sum(axis=0), np.zeros(12)),
            (nd.full((12,), 0.0, device=device), np.zeros(12)),
        ):
            np.testing.assert_array_equal(got.numpy(), want)
            del got


def test_buffers_are_freed_with_their_last_view(device):
    if device.name == "cpu_numpy":
        pytest.skip("numpy's memory is not counted")
    before = device.memory_stats()["live_bytes"]
    a = nd.full((1000,), 1.0, device=device)
    view = a.reshape((10, 100))[2:4].permute((1, 0))
    del a
    assert device.memory_stats()["live_bytes"] > before
    assert view.sum().item() == 200
    del view
    assert device.memory_stats()["live_bytes"] == before


def test_empty_arrays_work_like_others(device):
    a = nd.empty((0, 3), device=device)
    assert (a + a).shape == (a + 1).shape == a.exp().shape == (0, 3)
    assert a.sum(axis=0).numpy().tolist() == [0, 0, 0]
    assert a.sum().item() == 0
    assert (a @ nd.full((3, 2), 1.0, device=device)).shape == (0, 2)
    assert a.numpy().shape == (0, 3)
    assert (a == a).shape == (0, 3)
    assert len(a) == 0
    assert str(a) == "[]"


def test_functions_of_the_module():
    """The names that the course's code uses, at the top of the package."""
    names = ["array", "empty", "full", "broadcast_to", "reshape", "maximum", "log", "exp", "tanh"]
    for name in (*names, "sum", "flip"):
        assert getattr(nd, name) is getattr(array_api, name)
