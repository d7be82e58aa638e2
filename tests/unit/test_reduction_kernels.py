"""sum, max and min over the last axes of any view, and the course's reductions, on every device."""

import math

import numpy as np
import pytest

from tests.kernel_reference import SIZES, download, elements, numbers, output, upload

DEVICES = ("cpu", "cpu_numpy", "cuda", "cuda_checked")

REDUCTIONS = {"sum": np.sum, "max": np.max, "min": np.min}

# (size of the buffer, layout, reduced axes counted from the last)
REDUCED = {
    "no axes": (5, ((), (), 3), 0),
    "nothing reduced": (12, ((3, 4), (1, 3), 0), 0),
    "one element": (5, ((1, 1), (9, 9), 4), 1),
    "rows": (15, ((3, 5), (5, 1), 0), 1),
    "both": (15, ((3, 5), (5, 1), 0), 2),
    "columns": (7 * 300, ((300, 7), (1, 300), 0), 1),
    "columns, many rows": (513 * 17, ((17, 513), (1, 17), 0), 1),
    "columns beside each other": (300 * 260, ((260, 300), (1, 260), 0), 1),
    "columns of a slice": (310 * 20, ((9, 20), (1, 310), 5), 1),
    "outer and inner": (6 * 5 * 7, ((5, 6, 7), (7, 35, 1), 0), 2),
    "middle": (6 * 50 * 7, ((6, 7, 50), (350, 1, 7), 0), 1),
    "middle of four": (2 * 3 * 4 * 5, ((2, 5, 3, 4), (60, 1, 20, 5), 0), 2),
    "sizes of one": (12, ((1, 3, 1, 4), (5, 4, 5, 1), 0), 2),
    "flipped": (54, ((6, 9), (-9, -1), 53), 1),
    "stretched": (5, ((5, 1000), (1, 0), 0), 1),
    "stretched rows": (5, ((1000, 5), (0, 1), 0), 1),
    "stretched, kept dense": (5, ((5, 1000, 3), (1, 0, 0), 0), 2),
    "every second": (1000, ((5, 100), (200, 2), 1), 1),
    "nothing kept": (4, ((0, 4), (4, 1), 0), 1),
} | {f"row of {size}": (size, ((size,), (1,), 0), 1) for size in SIZES if size}


def round_sum(a, **axes):
    return np.sum(a.astype(np.longdouble), **axes).astype(np.float64)


def check_sum(got, values, axis):
    """A sum is as good as float sums taken in blocks: 16 roundings of the sum of magnitudes."""
    want = round_sum(values, axis=axis)
    allowed = 16 * np.finfo(got.dtype).eps * round_sum(np.abs(values), axis=axis)
    error = np.abs(got.reshape(np.shape(want)) - want)
    assert np.all(error <= allowed), f"off by {np.max(error / allowed) * 16:.1f} roundings"


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("case", REDUCED)
def test_reduction(device, name, case, rng):
    size, layout, count = REDUCED[case]
    for dtype in device.dtypes:
        a = numbers(rng, size, dtype)
        seen, axis = elements(a, layout), tuple(range(-count, 0))
        got = download(device, getattr(device, name)(upload(device, a), layout, count))
        if name == "sum":
            check_sum(got, seen, axis)
        else:
            want = REDUCTIONS[name](seen, axis=axis)
            np.testing.assert_array_equal(got, want.reshape(-1))


@pytest.mark.parametrize("shape", [(2**18 + 3,), (700, 1031), (1031, 700), (3, 90000), (90000, 3)])
@pytest.mark.parametrize("last", [0, 1], ids=["rows", "columns"])
def test_large_reductions(device, shape, last, rng):
    """Beyond the size at which one output's work is cut into segments."""
    a = rng.standard_normal(shape, dtype=np.float32)
    axis = (len(shape) - 1) * last
    strides = [stride // 4 for stride in a.strides]
    order = [i for i in range(a.ndim) if i != axis] + [axis]
    layout = tuple(shape[i] for i in order), tuple(strides[i] for i in order), 0
    x = upload(device, a)
    check_sum(download(device, device.sum(x, layout, 1)), a, axis)
    np.testing.assert_array_equal(
        download(device, device.max(x, layout, 1)), a.max(axis=axis).reshape(-1)
    )
    np.testing.assert_array_equal(
        download(device, device.min(x, layout, a.ndim)), a.min().reshape(-1)
    )


def test_long_sums_lose_no_small_terms(device):
    """2^25 and then a million ones: a float accumulator would never move."""
    a = np.ones(2**20 + 1, np.float32)
    a[0] = 2**25
    x, out = upload(device, a), output(device, 1)
    device.reduce_sum(x, out, a.size)
    want = 2**25 + 2**20
    for got in (device.sum(x, ((a.size,), (1,), 0), 1), out):
        assert download(device, got)[0] == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("size", [1, 5, 16, 40, 300, 5000])
@pytest.mark.parametrize("layout", ["row", "columns"])
def test_maximum_of_special_numbers(device, size, layout):
    """A NaN anywhere is the result; infinities and -inf alone are values like others."""
    shape = ((3, size), (size, 1), 0) if layout == "row" else ((3, size), (1, 3), 0)
    for place in {0, size // 2, size - 1}:
        a = np.full((3, size), -math.inf, np.float32)
        a[0, place], a[1, place] = math.nan, math.inf
        buffer = a.reshape(-1) if layout == "row" else np.ascontiguousarray(a.T).reshape(-1)
        x = upload(device, buffer)
        got = [download(device, kernel(x, shape, 1)) for kernel in (device.max, device.min)]
        rest = -math.inf if size > 1 else math.inf
        np.testing.assert_array_equal(
            got, [[math.nan, math.inf, -math.inf], [math.nan, rest, -math.inf]]
        )
        if layout == "row":
            out = output(device, 3)
            device.reduce_max(x, out, size)
            np.testing.assert_array_equal(download(device, out), got[0])


def test_sum_of_special_numbers(device):
    a = np.array([[math.inf, 1], [math.nan, 1], [math.inf, -math.inf], [3e38, 3e38]], np.float32)
    x, out = upload(device, a), output(device, 4)
    device.reduce_sum(x, out, 2)
    want = [math.inf, math.nan, math.nan, math.inf]
    np.testing.assert_array_equal(download(device, device.sum(x, ((4, 2), (2, 1), 0), 1)), want)
    np.testing.assert_array_equal(download(device, out), want)


def test_sum_over_nothing_is_zero(device):
    x = device.Array(0)
    for count, want in ((1, [0, 0, 0]), (2, [0])):
        got = download(device, device.sum(x, ((3, 0), (0, 1), 0), count))
        np.testing.assert_array_equal(got, want)
    assert device.sum(x, ((0, 3, 2), (6, 2, 1), 0), 2).size == 0
    assert device.max(x, ((0, 3), (3, 1), 0), 1).size == 0


@pytest.mark.parametrize("reduce_size", [1, 2, 7, 16, 33, 257, 1027])
@pytest.mark.parametrize("blocks", [0, 1, 5])
def test_course_reductions(device, blocks, reduce_size, rng):
    a = numbers(rng, blocks * reduce_size)
    rows = a.reshape(blocks, reduce_size)
    x, total, largest = upload(device, a), output(device, blocks), output(device, blocks)
    device.reduce_sum(x, total, reduce_size)
    device.reduce_max(x, largest, reduce_size)
    check_sum(download(device, total), rows, 1)
    np.testing.assert_array_equal(download(device, largest), rows.max(axis=1))
    layout = (rows.shape, (reduce_size, 1), 0)
    check_sum(download(device, device.sum(x, layout, 1)), rows, 1)
    np.testing.assert_array_equal(download(device, device.max(x, layout, 1)), rows.max(axis=1))
