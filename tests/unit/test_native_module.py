"""The compiled cpu module itself: what it says of itself, its memory pool, threads, forks, the GIL.

Kernels' values are in test_kernels.py, refused arguments in test_kernel_arguments.py.
"""

import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from needle.errors import DeviceError, OutOfMemoryError, ShapeError

SOURCES = Path(__file__).parents[2] / "src"
LARGE = 1 << 20  # elements: beyond the thresholds for threads and for giving up the GIL


@pytest.fixture(scope="module")
def native():
    """The module, as `cpu()` has loaded it."""
    import needle

    if not needle.cpu().enabled():
        pytest.skip(needle.cpu().reason)
    return sys.modules["needle.backend_ndarray.ndarray_backend_cpu"]


@pytest.fixture(autouse=True)
def restore_threads(native):
    threads = native.get_num_threads()
    yield
    native.set_num_threads(threads)


def filled(native, size, value):
    array = native.Array(size)
    native.fill(array, value)
    return array


def values(native, array):
    return native.to_numpy(array, (array.size,), (1,), 0)


def in_new_process(body, **environment):
    """Run lines that see the module as `native` and print one JSON value; return that value."""
    script = (
        "import json, sys, needle\n"
        "reason = needle.cpu().reason\n"
        f"native = sys.modules.get('needle.backend_ndarray.ndarray_backend_cpu')\n{body}"
    )
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def loaded(**environment):
    """Return why the module does not load in such an environment, or None."""
    return in_new_process("print(json.dumps(reason or None))", **environment)


# --- What it says of itself -----------------------------------------------------------------------


def test_module_tells_its_name_tile_and_build(native):
    assert native.__device_name__ == "cpu"
    assert native.__tile_size__ == 8
    assert native.isa() in native.supported_isas()


def test_module_is_this_interpreters(native):
    assert native.__file__.endswith(sysconfig.get_config_var("EXT_SUFFIX"))


def test_module_is_built_from_these_sources(native):
    kinds = ("h", "cc", "def", "cu", "cuh")
    sources = sorted(path for kind in kinds for path in SOURCES.rglob(f"*.{kind}"))
    digests = "".join(hashlib.sha256(path.read_bytes()).hexdigest() for path in sources)
    build_id = hashlib.sha256(digests.encode()).hexdigest()[:12]
    assert native.__build_id__ == build_id, "the module is stale; run `make build`"


def test_array_is_a_flat_aligned_buffer(native):
    array = native.Array(5)
    assert array.size == 5
    assert array.ptr() % 256 == 0
    assert native.Array(0).size == 0
    assert native.Array(LARGE).ptr() % 256 == 0


# --- Arguments ------------------------------------------------------------------------------------


def test_array_refuses_sizes_that_no_memory_has(native):
    with pytest.raises(ShapeError, match=r"\[Array\] size -1 is negative"):
        native.Array(-1)
    with pytest.raises(OutOfMemoryError, match=r"\[Array\] .* more than any memory holds"):
        native.Array(2**62)
    with pytest.raises(MemoryError, match=r"\[Array\] no room for 70368744177664 elements"):
        native.Array(2**46)
    with pytest.raises(ShapeError, match=r"\[Array\] .* 64 bits"):
        native.Array(2**64)
    with pytest.raises(TypeError, match=r"\[Array\] 'float' given where an integer is needed"):
        native.Array(1.5)


def test_wrong_types_get_a_plain_text(native):
    array = native.Array(4)
    with pytest.raises(TypeError, match=r"\[add\] argument 3 is a 'list'; an Array"):
        native.add(array, None, [1.0], None)
    with pytest.raises(TypeError, match=r"\[add\] a layout is None or .* not a 'int'"):
        native.add(array, 3, array, None)
    with pytest.raises(TypeError, match=r"\[fill\] 'str' given where a number is needed"):
        native.fill(array, "1")
    with pytest.raises(TypeError, match=r"\[fill\] takes 2 arguments \(out, value\), not 1"):
        native.fill(array)
    with pytest.raises(TypeError, match=r"\[from_numpy\] numpy cannot make a float32 array"):
        native.from_numpy(object(), array)
    with pytest.raises(TypeError, match=r"\[copy\] 'float' given where an integer is needed"):
        native.copy(array, ((2.0,), (1,), 0))


def test_scalars_may_be_any_kind_of_number(native):
    array = filled(native, 2, 1.0)
    for one in (1, 1.0, True, np.float32(1), np.float64(1), np.int64(1), np.array(1.0)):
        assert values(native, native.add_scalar(array, None, one)).tolist() == [2.0, 2.0]


def test_view_has_at_most_32_axes(native):
    array = filled(native, 1, 7.0)
    ones, zeros = (1,) * 32, (0,) * 32
    assert values(native, native.copy(array, (ones, zeros, 0))).tolist() == [7.0]
    with pytest.raises(ShapeError, match=r"\[copy\] a view has at most 32 axes, not 33"):
        native.copy(array, ((1,) * 33, (0,) * 33, 0))


def test_sizes_and_strides_that_overflow_are_refused(native):
    array = native.Array(4)
    with pytest.raises(ShapeError, match=r"\[copy\] .* more elements than 63 bits count"):
        native.copy(array, ((2**40, 2**40), (0, 0), 0))
    with pytest.raises(ShapeError, match=r"\[copy\] view leaves its buffer"):
        native.copy(array, ((3,), (2**62,), 0))
    with pytest.raises(OutOfMemoryError, match=r"\[copy\] no room"):
        native.copy(array, ((2**46,), (0,), 0))


# --- Memory ---------------------------------------------------------------------------------------


pooled = pytest.mark.skipif(os.environ.get("NEEDLE_POOL") == "0", reason="the pool is off")


@pooled
def test_freed_block_serves_the_next_array_of_its_size(native):
    native.empty_cache()
    array = native.Array(100_003)
    address = array.ptr()
    before = native.memory_stats()
    del array
    between = native.memory_stats()
    assert between["cached_bytes"] > before["cached_bytes"]
    assert between["live_bytes"] < before["live_bytes"]
    array = native.Array(100_003)
    after = native.memory_stats()
    assert array.ptr() == address
    assert after["hits"] == before["hits"] + 1
    assert after["misses"] == before["misses"]
    assert after["live_bytes"] == before["live_bytes"]


@pooled
def test_empty_cache_gives_everything_back(native):
    for size in (0, 1, 100, LARGE):
        native.Array(size)
    assert native.memory_stats()["cached_bytes"] > 0
    native.empty_cache()
    assert native.memory_stats()["cached_bytes"] == 0


def test_live_bytes_return_after_errors(native):
    array = native.Array(6)
    live = native.memory_stats()["live_bytes"]
    for _ in range(3):
        with pytest.raises(ShapeError):
            native.add(array, None, native.Array(5), None)
        with pytest.raises(OutOfMemoryError):
            native.Array(2**46)
    assert native.memory_stats()["live_bytes"] == live


CACHED_AFTER_4_MIB = (
    "native.empty_cache()\nnative.Array(1 << 20)\n"
    "print(json.dumps(native.memory_stats()['cached_bytes']))"
)


@pytest.mark.parametrize(
    ("environment", "cached"),
    [
        ({"NEEDLE_POOL": "1"}, 4 << 20),
        ({"NEEDLE_POOL": "0"}, 0),
        ({"NEEDLE_POOL": "1", "NEEDLE_POOL_MB": "4"}, 4 << 20),
        ({"NEEDLE_POOL": "1", "NEEDLE_POOL_MB": "3"}, 0),
    ],
)
def test_pool_obeys_its_switch_and_its_cap(native, environment, cached):
    assert in_new_process(CACHED_AFTER_4_MIB, **environment) == cached


# --- Instruction sets -----------------------------------------------------------------------------


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_environment_chooses_the_instruction_set(native, isa):
    if isa not in native.supported_isas():
        reason = loaded(NEEDLE_ISA=isa)
        assert f"NEEDLE_ISA is '{isa}'; this machine supports: baseline" in reason
        return
    assert in_new_process("print(json.dumps(native.isa()))", NEEDLE_ISA=isa) == isa


def test_unknown_settings_stop_the_import_with_a_reason(native):
    assert "NEEDLE_ISA is 'sse9'; this machine supports: baseline" in loaded(NEEDLE_ISA="sse9")
    assert "NEEDLE_POOL_MB is 'lots'; a number" in loaded(NEEDLE_POOL="1", NEEDLE_POOL_MB="lots")
    assert "NEEDLE_NUM_THREADS is '-2'; a number" in loaded(NEEDLE_NUM_THREADS="-2")
    assert loaded(NEEDLE_ISA="", NEEDLE_POOL_MB="") is None


# --- Threads --------------------------------------------------------------------------------------


def test_number_of_threads_is_set_and_told(native):
    native.set_num_threads(3)
    assert native.get_num_threads() == 3
    with pytest.raises(DeviceError, match=r"\[set_num_threads\] at least 1 thread .* not 0"):
        native.set_num_threads(0)
    assert native.get_num_threads() == 3
    body = "print(json.dumps(native.get_num_threads()))"
    assert in_new_process(body, NEEDLE_NUM_THREADS="5") == 5
    if hasattr(os, "sched_getaffinity"):
        available = len(os.sched_getaffinity(0))
        assert in_new_process(body, NEEDLE_NUM_THREADS="") == available


def test_results_do_not_depend_on_the_number_of_threads(native, rng):
    numbers = rng.standard_normal((1030, 1021)).astype("float32")
    array = native.Array(numbers.size)
    native.from_numpy(numbers, array)
    layout = (numbers.shape, (1021, 1), 0)
    across = (numbers.shape[::-1], (1, 1021), 0)
    results = []
    for threads in (1, 2, 7):
        native.set_num_threads(threads)
        results.append(
            [
                values(native, result)
                for result in (
                    native.add(array, layout, array, layout),
                    native.exp(array, across),
                    native.copy(array, across),
                    native.sum(array, layout, 1),
                    native.sum(array, across, 1),
                    native.sum(array, layout, 2),
                    native.max(array, across, 2),
                )
            ]
        )
    np.testing.assert_array_equal(results[0][2], numbers.T.ravel())
    for other in results[1:]:
        for expected, result in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(result, expected)


def test_python_threads_share_the_pool(native):
    native.set_num_threads(2)
    array = filled(native, LARGE, 1.0)
    failures = []

    def work():
        for _ in range(10):
            total = native.sum(native.add(array, None, array, None), ((LARGE,), (1,), 0), 1)
            if values(native, total)[0] != 2.0 * LARGE:
                failures.append(total)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert failures == []


def test_large_kernel_lets_other_python_threads_run(native):
    native.set_num_threads(1)
    size = 512
    a, b, out = (filled(native, size * size, 1.0) for _ in range(3))
    running = threading.Event()
    finished = threading.Event()

    def work():
        running.set()
        native.matmul(a, b, out, size, size, size)
        finished.set()

    thread = threading.Thread(target=work)
    thread.start()
    running.wait()
    turns = 0
    while not finished.is_set():
        time.sleep(0)  # hands the GIL over: a kernel that kept it would leave only a turn or two
        turns += 1
    thread.join(60)
    assert turns > 20
    assert values(native, out)[0] == size


# --- Forks ----------------------------------------------------------------------------------------


def add_in_child(native, connection):
    array = filled(native, LARGE, 3.0)
    total = values(native, native.add(array, None, array, None))
    connection.send((total.min() == total.max() == 6.0, native.get_num_threads()))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("used", [False, True])
def test_forked_child_computes_with_threads_of_its_own(native, used):
    native.set_num_threads(2)
    if used:
        filled_array = filled(native, LARGE, 1.0)
        native.add(filled_array, None, filled_array, None)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=add_in_child, args=(native, sender))
    child.start()
    try:
        assert receiver.poll(30), "the child hangs"
        assert receiver.recv() == (True, 2)
        child.join(30)
        assert child.exitcode == 0
    finally:
        child.kill()
    array = filled(native, LARGE, 1.0)
    assert values(native, native.add(array, None, array, None))[-1] == 2.0


def test_process_ends_while_threads_sleep_and_arrays_live(native):
    lines = (
        "native.set_num_threads(2)\nkept = native.Array(1 << 20)\nnative.fill(kept, 1.0)\n"
        "native.add(kept, None, kept, None)\nprint(json.dumps(True))"
    )
    assert in_new_process(lines) is True
