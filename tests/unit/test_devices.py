"""Devices: identity, pickling, reasons, missing kernels, dtypes, and what they make."""

import copy
import importlib.machinery
import pickle
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

from needle.backend_ndarray import (
    BackendDevice,
    all_devices,
    as_device,
    cpu,
    cpu_numpy,
    cuda,
    default_device,
)
from needle.backend_ndarray import device as device_module
from needle.backend_ndarray.ndarray import NDArray, array
from needle.errors import DeviceError, DtypeError, MissingKernelError, NeedleError

NAMES = ["cpu", "cuda", "cpu_numpy"]
PACKAGE = "needle.backend_ndarray"
FACTORIES = {"cpu": cpu, "cuda": cuda, "cpu_numpy": cpu_numpy}


@pytest.fixture
def missing():
    """A device without a backend."""
    return BackendDevice("cuda", None, reason="no driver was found")


# --- identity ---


@pytest.mark.parametrize("name", NAMES)
def test_repr(name):
    assert repr(FACTORIES[name]()) == str(FACTORIES[name]()) == f"{name}()"


@pytest.mark.parametrize("name", NAMES)
def test_one_object_for_each_device(name):
    assert FACTORIES[name]() is FACTORIES[name]()
    assert as_device(name) is FACTORIES[name]()
    assert as_device(FACTORIES[name]()) is FACTORIES[name]()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "copied",
    [lambda d: pickle.loads(pickle.dumps(d)), copy.deepcopy, copy.copy],  # noqa: S301 - our own
    ids=["pickle", "deepcopy", "copy"],
)
def test_copies_are_the_device_itself(name, copied):
    device = FACTORIES[name]()
    assert copied(device) is device
    assert next(iter(copied({device: 1}))) is device


def test_equality_is_by_name_and_module():
    module = cpu_numpy().mod
    assert BackendDevice("cpu_numpy", module) == cpu_numpy()
    assert hash(BackendDevice("cpu_numpy", module)) == hash(cpu_numpy())
    assert BackendDevice("cpu_numpy", ModuleType("other")) != cpu_numpy()
    assert BackendDevice("other", module) != cpu_numpy()
    assert cpu_numpy() != "cpu_numpy"
    assert cpu_numpy() != None  # noqa: E711 - `==` with another type is what is tested
    assert len({cpu(), cuda(), cpu_numpy()}) == 3


def test_all_devices():
    assert [device.name for device in all_devices()] == NAMES


def test_default_device_is_cpu_if_it_is_built(monkeypatch):
    assert default_device() is (cpu() if cpu().enabled() else cpu_numpy())
    unbuilt = BackendDevice("cpu", None, reason="not built")
    monkeypatch.setattr(device_module, "cpu", lambda: unbuilt)
    assert default_device() is cpu_numpy()


@pytest.mark.parametrize("name", ["gpu", "", None, 3])
def test_as_device_names_the_devices(name):
    with pytest.raises(
        DeviceError, match=rf"\[device\] {name!r} is no device; use one of cpu, cuda, cpu_numpy"
    ):
        as_device(name)


# --- missing backends and kernels ---


def test_enabled_means_that_a_kernel_can_run(device, missing):
    assert device.enabled()
    assert not missing.enabled()
    assert cpu_numpy().enabled()


def test_a_missing_backend_says_why_and_what_there_is(missing):
    message = r"\[cuda\] not available: no driver was found; available: .*cpu_numpy\(\)"
    for use in (
        lambda: missing.ewise_add,
        lambda: array([1.0], device=missing),
        lambda: missing.empty((2, 3)),
        lambda: missing.full((2, 3), 1.0),
        lambda: missing.rand(2),
        lambda: missing.randn(2),
        lambda: missing.one_hot(3, [0]),
        lambda: array([1.0], device=cpu_numpy()).to(missing),
        lambda: NDArray.make((2,), device=missing),
    ):
        with pytest.raises(DeviceError, match=message):
            use()
    assert not hasattr(missing, "ewise_add")


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_a_compiled_device_that_is_missing_has_a_reason(name):
    device = FACTORIES[name]()
    assert device.enabled() == (device.mod is not None) == (not device.reason)


@pytest.mark.parametrize(
    ("name", "near"), [("ewise_ad", "ewise_add"), ("add_scaler", "add_scalar"), ("summ", "sum")]
)
def test_a_missing_kernel_names_the_nearest(device, name, near):
    with pytest.raises(
        MissingKernelError, match=rf"\[{device.name}\] has no kernel {name}; did you mean {near}\?"
    ):
        getattr(device, name)


def test_a_missing_kernel_unlike_any(device):
    with pytest.raises(AttributeError, match=rf"^\[{device.name}\] has no kernel zzzzzz$"):
        device.zzzzzz  # noqa: B018 - reading it is what is tested
    assert not hasattr(device, "zzzzzz")
    assert not hasattr(device, "__zzzzzz__")


def test_a_backend_may_lack_kernels():
    """A student's backend grows kernel by kernel."""
    module = ModuleType("half")
    module.fill = lambda out, value: None
    half = BackendDevice("half", module)
    assert half.enabled()
    assert half.fill is module.fill
    with pytest.raises(MissingKernelError, match=r"\[half\] has no kernel compact$"):
        half.compact  # noqa: B018


def test_a_backend_that_does_not_load_is_a_warning_with_the_reason(tmp_path, monkeypatch):
    broken = tmp_path / f"ndarray_backend_cuda{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    broken.write_bytes(b"not a library")
    monkeypatch.setenv("NEEDLE_MODULE_DIR", str(tmp_path))
    monkeypatch.delitem(sys.modules, f"{PACKAGE}.ndarray_backend_cuda", raising=False)
    with pytest.warns(
        RuntimeWarning, match=r"\[needle\] ndarray_backend_cuda is built but does not load: "
    ):
        module, reason = device_module._load_native("ndarray_backend_cuda")
    assert module is None
    assert "does not load" in reason
    assert f"{PACKAGE}.ndarray_backend_cuda" not in sys.modules


def test_a_backend_that_is_not_built_is_no_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("NEEDLE_MODULE_DIR", str(tmp_path))
    module, reason = device_module._load_native("ndarray_backend_cuda")
    assert module is None
    assert reason == "ndarray_backend_cuda is not built"


def test_arrays_work_without_any_compiled_backend(tmp_path):
    program = (
        "from needle.backend_ndarray import array, cpu, default_device\n"
        "assert not cpu().enabled() and str(default_device()) == 'cpu_numpy()'\n"
        "assert (array([1, 2]) + 1).numpy().tolist() == [2, 3]\n"
    )
    environment = {"NEEDLE_MODULE_DIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)


# --- dtypes ---


def test_float32_is_the_default_everywhere(device):
    for made in (
        array([1], device=device),
        device.empty((2,)),
        device.full((2,), 1),
        device.rand(2),
    ):
        assert made.dtype == "float32"
        assert made.numpy().dtype == np.float32


@pytest.mark.parametrize("dtype", ["int32", "bool", "float16", np.complex64, "nonsense", 3])
def test_other_dtypes_are_refused(device, dtype):
    with pytest.raises(DtypeError, match=r"\[array\] \w+\(\) carries float32.*, not "):
        array([1], dtype=dtype, device=device)
    with pytest.raises(TypeError, match="carries float32"):
        device.full((2,), 1, dtype=dtype)


# --- what devices make ---


def test_rand_and_randn_are_one_draw_of_numpys_generator(device):
    for name in ("rand", "randn"):
        np.random.seed(7)
        want = getattr(np.random, name)(3, 4)
        after = np.random.rand()
        np.random.seed(7)
        made = getattr(device, name)(3, 4)
        np.testing.assert_array_equal(made.numpy(), want.astype(np.float32))
        assert np.random.rand() == after
        assert made.device is device
        assert made.shape == (3, 4)


def test_rand_of_one_number(device):
    np.random.seed(7)
    want = np.random.rand()
    np.random.seed(7)
    made = device.rand()
    assert made.shape == ()
    assert made.item() == np.float32(want)


def test_one_hot(device):
    np.testing.assert_array_equal(device.one_hot(3, 1).numpy(), [0, 1, 0])
    rows = device.one_hot(3, np.array([2, 0]))
    np.testing.assert_array_equal(rows.numpy(), [[0, 0, 1], [1, 0, 0]])
    assert rows.dtype == "float32"
    assert rows.device is device


def test_full_and_empty(device):
    np.testing.assert_array_equal(device.full((2, 3), 1.5).numpy(), np.full((2, 3), 1.5))
    assert device.empty((2, 0)).shape == (2, 0)
    assert device.full((2,), 3).device is device


def test_errors_have_one_base():
    for error in (DeviceError, DtypeError, MissingKernelError):
        assert issubclass(error, NeedleError)
