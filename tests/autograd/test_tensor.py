"""Tensor as a value: what it copies and shares, `.data`, numbers, text, copies, refusals."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from needle import autograd, backend_numpy, ops
from needle.autograd import Tensor, Value
from needle.backend_ndarray import array_api as nd_array_api
from needle.backend_selection import (
    BACKEND,
    NDArray,
    all_devices,
    array_api,
    cpu,
    cpu_numpy,
    default_device,
)
from needle.errors import DeviceError, DtypeError, ShapeError
from tests.gradcheck import constant64, tensor64

ND = BACKEND == "nd"
nd_only = pytest.mark.skipif(not ND, reason="of our arrays")
np_only = pytest.mark.skipif(ND, reason="of raw numpy")


# --- construction ---


def test_input_and_output_are_copies():
    source = np.ones(3, dtype="float32")
    t = Tensor(source)
    source[0] = 99
    out = t.numpy()
    out[1] = 77
    np.testing.assert_array_equal(t.numpy(), [1, 1, 1])


SQUARE = np.arange(12, dtype="float32").reshape(3, 4)


@pytest.mark.parametrize(
    "source",
    [
        SQUARE.T,
        SQUARE[::-1],
        SQUARE[:, ::2],
        SQUARE[1:, ::-1],
        np.asfortranarray(SQUARE),
        np.broadcast_to(np.float32(3), (2, 2)),
        SQUARE.astype("int64"),
        SQUARE.astype("float64"),
        SQUARE.astype("float16"),
        SQUARE.astype("uint8"),
        SQUARE > 3,
        SQUARE.astype(">f4"),
        np.array(2.5),
        np.zeros((0, 3)),
        np.float64(1.5),
        [[1, 2], [3, 4]],
        [1.0, 2.0],
        (1, 2, 3),
        [],
        3,
        2.5,
        True,
        range(4),
        [np.float32(1), np.array(2.0)],
        [np.ones(2), [3, 4]],
    ],
    ids=lambda s: f"{type(s).__name__}{getattr(s, 'dtype', '')}{np.shape(s)}".replace(" ", ""),
)
def test_construction_from_odd_inputs(source):
    t = Tensor(source, dtype="float32")
    expected = np.asarray(source, dtype="float32")
    assert t.shape == expected.shape and t.dtype == "float32"
    np.testing.assert_array_equal(t.numpy(), expected)
    assert t.numpy().flags.c_contiguous and t.requires_grad


def test_construction_from_a_list_of_tensors():
    parts = [Tensor([1.0, 2.0]), Tensor([3.0, 4.0])]
    np.testing.assert_array_equal(Tensor(parts).numpy(), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(Tensor(list(parts[0])).numpy(), [1, 2])


def test_construction_from_a_tensor_shares_its_array():
    t = tensor64([1.0, 2.0])
    same = Tensor(t)
    assert same.cached_data is t.cached_data
    assert same.op is None and same.requires_grad
    narrow = Tensor(t, dtype="float32")
    assert narrow.dtype == "float32" and narrow.device == t.device
    computed = Tensor(t * 2, requires_grad=False)
    assert computed.op is None and not computed.requires_grad


def test_construction_from_an_array_of_the_backend():
    array = tensor64([1.0, 2.0]).cached_data
    t = Tensor(array)
    assert t.dtype == "float64" and t.device == tensor64([1.0]).device
    assert t.cached_data is not array
    array[0:1] = 5
    np.testing.assert_array_equal(t.numpy(), [1, 2])


@nd_only
def test_the_default_is_float32_on_the_default_device():
    for values in (np.ones(2), [1, 2], np.ones(2, dtype=np.int64)):
        t = Tensor(values)
        assert t.dtype == "float32" and t.device == default_device()


@np_only
def test_numpy_keeps_its_natural_dtype():
    assert Tensor([1.0, 2.0]).dtype == np.float64
    assert Tensor([1, 2]).dtype == np.int64
    assert Tensor(np.ones(2, dtype=np.float32)).dtype == np.float32
    assert Tensor([1, 2], dtype="float32").dtype == np.float32
    assert type(Tensor([1.0]).cached_data) is np.ndarray


@nd_only
def test_devices_by_object_and_by_name():
    for device in (cpu_numpy(), "cpu_numpy"):
        assert Tensor([1.0], device=device).device == cpu_numpy()
    moved = Tensor([1.0, 2.0], device=cpu_numpy()).to(default_device())
    assert moved.device == default_device() and moved.numpy().tolist() == [1, 2]


def test_moving_to_the_same_device_returns_the_tensor():
    t = tensor64([1.0])
    assert t.to(t.device) is t


@nd_only
def test_moving_elsewhere_is_recorded():
    if not cpu().enabled():
        pytest.skip("needs two devices")
    x = Tensor([1.0, 2.0], device=cpu_numpy())
    moved = x.to("cpu")
    assert moved.device == cpu() and moved.requires_grad
    (moved * moved).backward()
    assert x.grad.device == cpu_numpy() and x.grad.numpy().tolist() == [2, 4]
    assert not x.detach().to("cpu").requires_grad


def test_names():
    assert tensor64([1.0]).name is None
    x = Tensor([1.0], name="x")
    assert x.name == "x" and "name='x'" in repr(x)
    y = x * 2
    y.name = "twice"
    assert y.name == "twice" and "name='twice', op=MulScalar" in repr(y)
    assert y.detach().name is None


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: Tensor(None), DtypeError, r"\[array\] values of type object"),
        (lambda: Tensor("text"), DtypeError, r"\[array\] values of type <U4 are not real"),
        (lambda: Tensor([1j]), DtypeError, r"\[array\] values of type complex128"),
        (lambda: Tensor([[1.0], [1.0, 2.0]]), ValueError, "inhomogeneous"),
        (lambda: Tensor([1.0], device="tpu"), DeviceError, r"\[device\] 'tpu' is no device"),
        (lambda: tensor64([1.0]).to("tpu"), DeviceError, r"\[device\] 'tpu' is no device"),
        (lambda: Tensor([1.0], requries_grad=False), TypeError, "requries_grad"),
        (lambda: Tensor([1.0], "cpu"), TypeError, "positional"),
        (lambda: Tensor(), TypeError, "array"),
    ],
)
def test_refused_constructions(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


@nd_only
def test_a_dtype_that_the_device_lacks_is_refused():
    if cpu().enabled():
        with pytest.raises(DtypeError, match=r"\[array\] cpu\(\) carries float32, not float64"):
            Tensor([1.0], device=cpu(), dtype="float64")
    with pytest.raises(DtypeError, match=r"cpu_numpy\(\) carries .* not int64"):
        Tensor([1], device=cpu_numpy(), dtype="int64")


# --- facts ---


def test_shape_and_size():
    t = tensor64(np.zeros((2, 3)))
    assert (t.shape, t.ndim, t.size, len(t)) == ((2, 3), 2, 6, 2)
    assert type(t.size) is int and type(t.shape) is tuple
    assert tensor64(1.0).shape == () and tensor64(1.0).size == 1


def test_leaves_and_results():
    x = tensor64([1.0])
    y = x * 2
    assert x.is_leaf() and x.op is None and x.inputs == () and x.num_outputs == 1
    assert not y.is_leaf() and isinstance(y.op, ops.MulScalar) and tuple(y.inputs) == (x,)
    assert isinstance(y, Value) and x.grad is None


def test_numbers_from_a_single_element():
    for t in (tensor64(2.5), tensor64([2.5]), tensor64([[2.5]])):
        assert t.item() == float(t) == 2.5 and int(t) == 2 and bool(t) is True
        assert type(t.item()) is float
    assert not bool(tensor64(0.0))
    assert round(float(tensor64(2.25).sum()), 1) == 2.2


@pytest.mark.parametrize("convert", [bool, float, int, lambda t: t.item()])
@pytest.mark.parametrize("shape", [(2,), (0,), (1, 3)])
def test_several_elements_are_no_number(convert, shape):
    message = rf"\[item\] shape \({shape[0]},.* has {np.prod(shape)} elements"
    with pytest.raises(ShapeError, match=message):
        convert(tensor64(np.ones(shape)))


def test_a_tensor_without_axes_has_no_length():
    for use in (len, list):
        with pytest.raises(ShapeError, match=r"\[len\] a Tensor without axes has no length"):
            use(tensor64(1.0))


def test_iteration_ends():
    rows = [row.numpy().tolist() for row in tensor64([[1.0, 2.0], [3.0, 4.0]])]
    assert rows == [[1, 2], [3, 4]]
    assert list(tensor64(np.zeros((0, 2)))) == []
    first, second = tensor64([1.0, 2.0])
    assert second.item() == 2 and first.shape == ()


def test_conversion_to_numpy():
    t = tensor64([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(np.asarray(t), [[1, 2], [3, 4]])
    assert np.asarray(t, dtype="float32").dtype == np.float32
    turned = t.permute((1, 0)).numpy()
    assert turned.flags.c_contiguous and turned.flags.owndata and turned.flags.writeable
    assert tensor64(1.0).numpy().shape == () and type(tensor64(1.0).numpy()) is np.ndarray


def test_repr_and_str():
    x = Tensor(np.array([[1.0, 2.0], [3.0, 4.0]], dtype="float32"))
    first, second = repr(x).splitlines()
    assert first == "Tensor([[1., 2.]," and second.startswith("        [3., 4.]], shape=(2, 2)")
    assert repr(x).endswith(f"device={x.device}, requires_grad=True)")
    assert repr(x.detach()).endswith(f"device={x.device})")
    assert repr(x * 2).endswith(f"device={x.device}, op=MulScalar)")
    (x * 2).backward()
    assert repr(x.grad).endswith(f"device={x.device}, a gradient)")
    assert str(x) == "[[1. 2.]\n [3. 4.]]"


# --- raw data ---


def test_realized_data_is_the_array_itself():
    x = tensor64([1.0, 2.0])
    y = x * 2
    assert x.realize_cached_data() is x.cached_data
    assert y.realize_cached_data() is y.realize_cached_data() is y.cached_data
    assert isinstance(x.cached_data, NDArray)


def test_a_perturbed_array_is_seen_by_the_next_computation():
    """The course's gradient check writes through `.flat`."""
    x = tensor64(np.arange(6.0).reshape(2, 3))
    x.realize_cached_data().flat[4] += 10
    np.testing.assert_array_equal(x.numpy(), [[0, 1, 2], [3, 14, 5]])
    assert x.sum().item() == 25
    y = x * 1
    y.realize_cached_data().flat[0] = 7
    assert y.numpy()[0, 0] == 7 and x.numpy()[0, 0] == 0


def test_make_const_takes_the_array_without_a_copy():
    array = tensor64([1.0, 2.0]).cached_data
    constant = Tensor.make_const(array)
    assert constant.cached_data is array and not constant.requires_grad and constant.is_leaf()
    assert Tensor.make_const(array, requires_grad=True).requires_grad


def test_make_from_op_records_or_not():
    x, c = tensor64([1.0]), constant64([2.0])
    y = Tensor.make_from_op(ops.EWiseMul(), [x, c])
    assert y.requires_grad and y.item() == 2 and list(y.inputs) == [x, c]
    z = Tensor.make_from_op(ops.EWiseMul(), [c, c])
    assert not z.requires_grad and z.item() == 4 and z.op is None and z.inputs == ()


def test_detach_and_data_share_the_array():
    x = tensor64([1.0, 2.0])
    y = x * 2
    for constant in (y.detach(), y.data):
        assert constant.cached_data is y.cached_data
        assert constant is not y and constant.is_leaf() and not constant.requires_grad


def test_assigning_data_keeps_the_tensor_and_its_place():
    x = tensor64([1.0, 2.0])
    key = {x: "place"}
    y = x * x
    replacement = constant64([[5.0], [6.0], [7.0]])
    x.data = replacement
    assert x.cached_data is replacement.cached_data and x.shape == (3, 1)
    assert key[x] == "place" and x.requires_grad and x.op is None and y.inputs[0] is x


def test_an_update_takes_no_graph_along():
    w = tensor64([1.0, 2.0])
    (w * w).sum().backward()
    w.data = w - w.grad * 0.5
    assert w.op is None and w.inputs == () and w.requires_grad
    np.testing.assert_array_equal(w.numpy(), [0, 0])


@pytest.mark.parametrize("value", [np.ones(2), [1.0, 2.0], 3.0, None], ids=repr)
def test_assigned_data_must_be_a_tensor(value):
    x = tensor64([1.0, 2.0])
    kind = type(value).__name__
    with pytest.raises(DtypeError, match=rf"\[data\] assign a Tensor, not a {kind}"):
        x.data = value
    np.testing.assert_array_equal(x.numpy(), [1, 2])


def test_assigned_data_must_have_the_dtype():
    x = tensor64([1.0, 2.0])
    narrow = Tensor(np.ones(2), dtype="float32", device=x.device)
    with pytest.raises(DtypeError, match=r"\[data\] a float32 Tensor cannot replace float64 data"):
        x.data = narrow
    with pytest.raises(DtypeError, match=r"\[data\] a float64 Tensor cannot replace float32 data"):
        narrow.data = x


@nd_only
def test_assigned_data_must_be_on_the_device():
    if not cpu().enabled():
        pytest.skip("needs two devices")
    x = Tensor([1.0], device=cpu())
    message = r"\[data\] a Tensor on cpu_numpy\(\) cannot replace data on cpu\(\); use .to"
    with pytest.raises(DeviceError, match=message):
        x.data = Tensor([1.0], device=cpu_numpy())


# --- identity and copies ---


def test_a_tensor_is_a_key():
    x, y = tensor64([1.0]), tensor64([1.0])
    assert hash(x) == hash(x) and len({x, y}) == 2


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_are_leaves_with_their_own_data(duplicate):
    x = tensor64([[1.0, 2.0], [3.0, 4.0]])
    y = x * 2
    (y * y).sum().backward()
    for t in (x, y, y.detach(), x[:, ::-1], x.grad):
        other = duplicate(t)
        assert type(other) is Tensor and other.is_leaf() and other.grad is None
        assert other.device == t.device and other.dtype == t.dtype
        assert other.requires_grad == (t.requires_grad and t is not x.grad)
        assert other.cached_data is not t.cached_data
        np.testing.assert_array_equal(other.numpy(), t.numpy())


def test_a_deep_copy_keeps_what_is_shared_shared():
    x = tensor64([1.0])
    first, second = copy.deepcopy([x, x])
    assert first is second and first is not x


def test_the_modes_can_be_read():
    assert autograd.LAZY_MODE is False
    assert isinstance(autograd.TENSOR_COUNTER, int)
    assert default_device() in all_devices()


def test_both_array_modules_have_one_set_of_names():
    other = {"CPUDevice", "Device", "NDArray", "all_devices", "as_device", "cpu", "default_device"}
    assert set(backend_numpy.__all__) - other == set(nd_array_api.__all__)
    assert array_api is (nd_array_api if ND else backend_numpy)


def test_an_unknown_backend_is_refused():
    source = str(Path(autograd.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", "import needle"],
        env={**os.environ, "NEEDLE_BACKEND": "torch", "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert '[needle] NEEDLE_BACKEND is \'torch\'; it must be "nd" or "np"' in done.stderr
