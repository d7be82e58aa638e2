"""What is CUDA's own: where `cuda()` runs, limits of launches, axes that do not merge, big copies.

The kernels' values are in test_kernels.py and its neighbours, which run on every device.
"""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from needle.backend_ndarray import (
    NDArray,
    all_devices,
    array,
    as_device,
    cpu,
    cuda,
    cuda_checked,
    cuda_emulated,
)
from needle.errors import DeviceError, OutOfMemoryError, ShapeError
from tests.kernel_reference import download, elements, numbers, upload

DEVICES = ("cuda", "cuda_checked")
EMULATED = {"cuda_emulated": cuda_emulated, "cuda_checked": cuda_checked}
PACKAGE = "needle.backend_ndarray"


def in_new_process(program, **environment):
    """Run a program that prints one JSON value; return that value and what stands on stderr."""
    kept = {name: value for name, value in os.environ.items() if name != "NEEDLE_CUDA_DEVICE"}
    result = subprocess.run(
        [sys.executable, "-c", f"import json, needle as ndl\n{program}"],
        env={**kept, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), result.stderr


# --- where cuda() runs ---


@pytest.mark.parametrize("name", EMULATED)
def test_an_emulated_device_has_its_own_name(name):
    device = EMULATED[name]()
    assert repr(device) == f"{name}()"
    assert device is EMULATED[name]() is as_device(name) is pickle.loads(pickle.dumps(device))
    assert device not in all_devices()
    if not device.enabled():
        pytest.skip(device.reason)
    assert device.emulated and not cpu().emulated
    assert device.mod.__emulated__ == {"cuda_emulated": "fast", "cuda_checked": "checked"}[name]


def test_arrays_of_two_cuda_devices_do_not_mix(device):
    other = cuda_checked() if device.name == "cuda" else cuda()
    if not other.enabled():
        pytest.skip(other.reason)
    a, b = (NDArray(np.ones(3), device=each) for each in (device, other))
    with pytest.raises(DeviceError, match=r"operands on cuda\w*\(\) and cuda\w*\(\)"):
        a + b
    np.testing.assert_array_equal((a + b.to(device)).numpy(), 2)


TELL = (
    "device = ndl.cuda()\n"
    "sums = (ndl.Tensor([1.0, 2.0], device=ndl.cuda()) * 2).numpy().tolist()\n"
    "print(json.dumps([repr(device), device.emulated, device.mod.__emulated__, sums]))"
)


@pytest.mark.parametrize(("chosen", "kind"), [("emulated", "fast"), ("checked", "checked")])
def test_the_environment_puts_an_emulated_device_in_its_place(chosen, kind):
    stand_in = as_device(f"cuda_{chosen}")
    if not stand_in.enabled():
        pytest.skip(stand_in.reason)
    told, stderr = in_new_process(TELL, NEEDLE_CUDA_DEVICE=chosen)
    assert told == ["cuda()", True, kind, [2.0, 4.0]]
    assert stderr.splitlines() == [
        f"[needle] cuda() is emulated on the processor: NEEDLE_CUDA_DEVICE={chosen}"
    ]


def test_an_unknown_choice_is_a_reason():
    program = "print(json.dumps([ndl.cuda().enabled(), ndl.cuda().reason, ndl.cuda().emulated]))"
    told, _ = in_new_process(program, NEEDLE_CUDA_DEVICE="fast")
    reason = "NEEDLE_CUDA_DEVICE is 'fast'; it may be emulated, checked or empty"
    assert told == [False, reason, False]


def test_without_a_driver_the_module_loads_and_says_so():
    program = (
        "import sys\nfrom needle.backend_ndarray import device\n"
        "module, reason = device._load_native('ndarray_backend_cuda')\n"
        "told = module and [module.device_count(), module.unavailable()]\n"
        "print(json.dumps([told, ndl.cuda().enabled(), ndl.cuda().reason]))"
    )
    (told, enabled, reason), stderr = in_new_process(program)
    assert stderr == ""
    if told is None:
        pytest.skip(reason)
    count, unavailable = told
    assert reason == unavailable
    assert enabled == (count > 0) == (not reason)
    assert enabled or reason.startswith(("no CUDA driver: ", "no CUDA device: ", "CUDA does not"))


def test_all_modules_are_built_from_the_same_sources(device):
    modules = [each.mod for each in (cpu(), cuda(), *(f() for f in EMULATED.values()))]
    assert len({module.__build_id__ for module in modules if module is not None}) == 1


# --- limits ---


@pytest.mark.parametrize("batches", [65_535, 65_536, 70_001])
def test_more_matrices_than_a_grid_has_rows(device, batches):
    """CUDA's grids end at 65,535 along their second and third axis."""
    a, b = np.arange(2 * batches, dtype=np.float32) % 5, np.ones(2, np.float32)
    layouts = ((batches, 1, 2), (2, 2, 1), 0), ((batches, 2, 1), (0, 1, 1), 0)
    one_b = device.batched_matmul(upload(device, a), layouts[0], upload(device, b), layouts[1])
    np.testing.assert_array_equal(download(device, one_b), a.reshape(-1, 2).sum(1))
    x = upload(device, a)
    layout = ((batches, 2, 1), (2, 1, 1), 0)
    each = download(device, device.batched_matmul(x, layouts[0], x, layout))
    np.testing.assert_array_equal(each, (a * a).reshape(-1, 2).sum(1))


def test_more_threads_than_a_launch_has(device):
    x = upload(device, np.zeros(1, np.float32))
    with pytest.raises(ShapeError, match=r"\[scalar_setitem\] 1099511627776 elements are more"):
        device.scalar_setitem(2**40, 1.0, x, (2**40,), (0,), 0)
    np.testing.assert_array_equal(download(device, x), 0)


def test_running_out_of_memory_is_forgotten(device):
    """The next launch is not blamed for it."""
    with pytest.raises(OutOfMemoryError, match=r"\[Array\] no room for 70368744177664 elements"):
        device.Array(2**46)
    x = upload(device, np.ones(3, np.float32))
    np.testing.assert_array_equal(download(device, device.add(x, None, x, None)), 2)


def unmerged(axes):
    """Return a layout of which no two axes lie like one."""
    shape, strides = (2,) * axes, tuple(3**i for i in range(axes))
    return shape, strides, 0


@pytest.mark.parametrize("axes", [8, 9, 10])
def test_axes_that_do_not_merge(device, axes, rng):
    """Copies take any number of them; other kernels eight, and say what helps."""
    layout = unmerged(axes)
    a = numbers(rng, sum(layout[1]) + 1)
    x, want = upload(device, a), elements(a, layout)
    np.testing.assert_array_equal(download(device, device.copy(x, layout)), want.reshape(-1))
    np.testing.assert_array_equal(device.to_numpy(x, *layout), want)
    calls = {
        "neg": lambda: device.neg(x, layout),
        "add": lambda: device.add(x, layout, x, layout),
        "sum": lambda: device.sum(x, layout, axes),
        "max": lambda: device.max(x, layout, 0),
    }
    for name, call in calls.items():
        if axes > 8:
            with pytest.raises(ShapeError, match=rf"\[{name}\] more than 8 .* {axes} axes"):
                call()
        else:
            assert call().size == (1 if name == "sum" else 2**axes)


def test_many_axes_that_merge(device, rng):
    """Axes of size 1, and those that lie like one, do not count."""
    a = numbers(rng, 2**9)
    x = array(a.reshape((2,) * 9), device=device).permute((8, *range(8)))
    want = a.reshape((2,) * 9).transpose((8, *range(8)))
    np.testing.assert_array_equal((x + x).numpy(), want + want)
    np.testing.assert_array_equal(x.max(axis=(1, 2)).numpy(), want.max(axis=(1, 2)))


def test_what_stops_a_kernel_is_an_error_of_its_op(monkeypatch):
    """Here the limit for endless kernels; the device goes on as if nothing had been."""
    device = cuda_checked()
    if not device.enabled():
        pytest.skip(device.reason)
    x = upload(device, np.ones(1000, np.float32))
    before = device.memory_stats()["live_bytes"]
    monkeypatch.setenv("NEEDLE_EMULATOR_STEPS", "10")
    with pytest.raises(DeviceError, match=r"(?s)^\[add\] CUDA emulator: .* in kernel contiguous"):
        device.add(x, None, x, None)
    monkeypatch.delenv("NEEDLE_EMULATOR_STEPS")
    assert device.memory_stats()["live_bytes"] == before
    np.testing.assert_array_equal(download(device, device.add(x, None, x, None)), 2)


# --- copies to and from the host ---

PIECE = 2**18  # numbers in one piece of pinned memory


@pytest.mark.parametrize("size", [PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7])
def test_copies_in_pieces(device, size, rng):
    a = rng.standard_normal(size, dtype=np.float32)
    x = upload(device, a)
    np.testing.assert_array_equal(download(device, x), a)
    every_second = device.to_numpy(x, (size // 2,), (2,), 1)
    np.testing.assert_array_equal(every_second, a[1::2][: size // 2])


def test_the_host_may_change_its_numbers_at_once(device):
    a = np.ones(PIECE + 5, np.float32)
    x = upload(device, a)
    a[...] = -1
    np.testing.assert_array_equal(download(device, x), 1)
