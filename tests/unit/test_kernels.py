"""Every elementwise kernel and copy of interface.py on every device, both families.

The reference is tests/kernel_reference.py, which no backend uses. What is refused:
test_kernel_arguments.py; the other kernels: test_reduction_kernels.py, test_matmul_kernels.py.
"""

import math

import numpy as np
import pytest

from needle.backend_ndarray import interface
from needle.errors import OutOfMemoryError
from tests.kernel_reference import (
    BINARY,
    BOUNDS,
    LAYOUTS,
    SIZES,
    SPECIAL,
    UNARY,
    check,
    download,
    elements,
    numbers,
    output,
    upload,
)

DEVICES = ("cpu", "cpu_numpy", "cuda", "cuda_checked")

# The course's kernels (their names end so) and the strided ones that do the same.
COURSE_BINARY = {f"ewise_{name}": name for name in ("add", "mul", "div", "maximum", "eq", "ge")}
COURSE_SCALAR = {
    f"scalar_{name}": name for name in ("add", "mul", "div", "power", "maximum", "eq", "ge")
}
COURSE_UNARY = {f"ewise_{name}": name for name in ("log", "exp", "tanh")}


# --- elementwise: the strided family ---


@pytest.mark.parametrize("name", interface.BINARY_KERNELS)
def test_binary_kernel_on_sizes(device, name, rng):
    for size in SIZES:
        for dtype in device.dtypes:
            a, b = numbers(rng, size, dtype), numbers(rng, size, dtype)
            out = getattr(device, name)(upload(device, a), None, upload(device, b), None)
            check(download(device, out), BINARY[name], (a, b), BOUNDS.get(name, 0), f"size {size}")


@pytest.mark.parametrize("name", interface.BINARY_KERNELS)
def test_binary_kernel_on_layouts(device, name, rng):
    """Each view on either side, against a whole buffer and against itself the other way round."""
    kernel = getattr(device, name)
    for case, (size, layout) in LAYOUTS.items():
        shape = layout[0]
        a, b = numbers(rng, size), numbers(rng, math.prod(shape))
        seen, whole = elements(a, layout), b.reshape(shape)
        x, y = upload(device, a), upload(device, b)
        for got, operands in (
            (kernel(x, layout, y, None), (seen, whole)),
            (kernel(y, None, x, layout), (whole, seen)),
            (kernel(x, layout, x, layout), (seen, seen)),
        ):
            check(download(device, got), BINARY[name], operands, BOUNDS.get(name, 0), case)


@pytest.mark.parametrize("name", interface.BINARY_KERNELS)
def test_binary_kernel_on_special_numbers(device, name):
    """Every pair of special numbers, as two broadcast views and as two buffers."""
    kernel, bound, n = getattr(device, name), BOUNDS.get(name, 0), len(SPECIAL)
    for dtype in device.dtypes:
        values = np.array(SPECIAL, dtype)
        a, b = np.broadcast_arrays(values[:, None], values[None, :])
        x = upload(device, values)
        views = kernel(x, ((n, n), (1, 0), 0), x, ((n, n), (0, 1), 0))
        check(download(device, views), BINARY[name], (a, b), bound)
        x, y = (upload(device, np.ascontiguousarray(part)) for part in (a, b))
        check(download(device, kernel(x, None, y, None)), BINARY[name], (a, b), bound)


@pytest.mark.parametrize("name", interface.BINARY_KERNELS)
def test_scalar_kernel(device, name, rng):
    """Special numbers with a special scalar, then views with an ordinary one."""
    kernel, bound = getattr(device, f"{name}_scalar"), BOUNDS.get(name, 0)
    for dtype in device.dtypes:
        values = np.array(SPECIAL, dtype)
        x = upload(device, values)
        results = [download(device, kernel(x, None, value)) for value in SPECIAL]
        check(np.stack(results), BINARY[name], (values[None, :], values[:, None]), bound)
    for case, (size, layout) in LAYOUTS.items():
        a = numbers(rng, size)
        out = kernel(upload(device, a), layout, 1.5)
        check(download(device, out), BINARY[name], (elements(a, layout), 1.5), bound, case)


@pytest.mark.parametrize("name", interface.UNARY_KERNELS)
def test_unary_kernel(device, name, rng):
    kernel, formula, bound = getattr(device, name), UNARY[name], BOUNDS.get(name, 0)
    for dtype in device.dtypes:
        for a in (np.array(SPECIAL, dtype), *(numbers(rng, size, dtype) for size in SIZES)):
            out = kernel(upload(device, a), None)
            check(download(device, out), formula, (a,), bound, f"size {a.size}")
    for case, (size, layout) in LAYOUTS.items():
        a = numbers(rng, size)
        out = kernel(upload(device, a), layout)
        check(download(device, out), formula, (elements(a, layout),), bound, case)


@pytest.mark.parametrize("name", sorted(BOUNDS.keys() - {"power"}))
def test_approximation_holds_over_the_whole_range(device, name):
    """All exponents and signs of float32, and densely where results are ordinary."""
    bits = np.arange(0, 2**32, 104729, dtype=np.uint32)
    ordinary = np.linspace(-105, 105, 30011, dtype=np.float32)
    values = np.concatenate([bits.view(np.float32), ordinary])
    values = values[~np.isnan(values)]
    out = getattr(device, name)(upload(device, values), None)
    check(download(device, out), UNARY[name], (values,), BOUNDS[name])


def test_power_holds_over_the_whole_range(device, rng):
    a = rng.integers(0, 2**32, 40000, dtype=np.uint32).view(np.float32)
    a = np.where(
        np.isnan(a), np.float32(1.5), a
    )  # some of these NaN are signals, which pow refuses
    b = np.concatenate([numbers(rng, 20000), rng.integers(-9, 9, 20000).astype(np.float32)])
    out = device.power(upload(device, a), None, upload(device, b), None)
    check(download(device, out), BINARY["power"], (a, b), BOUNDS["power"])


@pytest.mark.parametrize(
    ("name", "value", "want"),
    [("neg", 0.0, -0.0), ("neg", -0.0, 0.0), ("abs", -0.0, 0.0), ("sqrt", -0.0, -0.0)]
    + [("sin", -0.0, -0.0), ("tanh", -0.0, -0.0), ("neg", -math.inf, math.inf)],
)
def test_unary_kernel_keeps_the_sign_of_zero(device, name, value, want):
    out = getattr(device, name)(upload(device, np.full(5, value, np.float32)), None)
    np.testing.assert_array_equal(np.signbit(download(device, out)), np.signbit([want] * 5))


@pytest.mark.parametrize("size", [2**18 + 3, 2**22 + 5])
def test_large_arrays(device, rng, size):
    """Beyond the sizes from which work is shared out among threads and results bypass the cache."""
    a, b = rng.standard_normal((2, size), dtype=np.float32)
    x, y = upload(device, a), upload(device, b)
    np.testing.assert_array_equal(download(device, device.add(x, None, y, None)), a + b)
    np.testing.assert_array_equal(download(device, device.mul_scalar(x, None, 1.5)), a * 1.5)
    np.testing.assert_array_equal(
        download(device, device.neg(x, ((size,), (-1,), size - 1))), -a[::-1]
    )
    chosen = device.where(x, None, y, None, x, None)
    np.testing.assert_array_equal(download(device, chosen), np.where(a != 0, b, a))


@pytest.mark.parametrize("name", [*interface.BINARY_KERNELS, *interface.UNARY_KERNELS])
def test_every_row_on_a_large_view(device, name, rng):
    """A transposed view (read by blocks) with a broadcast one, large enough for threads."""
    a, b = numbers(rng, 520 * 510), numbers(rng, 520)
    a_layout, b_layout = ((510, 520), (1, 510), 0), ((510, 520), (0, 1), 0)
    x, y = upload(device, a), upload(device, b)
    if name in UNARY:
        out, formula, operands = getattr(device, name)(x, a_layout), UNARY[name], (a,)
        operands = (elements(a, a_layout),)
    else:
        out, formula = getattr(device, name)(x, a_layout, y, b_layout), BINARY[name]
        operands = elements(a, a_layout), elements(b, b_layout)
    check(download(device, out), formula, operands, BOUNDS.get(name, 0))


def test_where(device):
    """Anything but zero is true, NaN too; the branch that is not taken does not matter."""
    for dtype in device.dtypes:
        condition = np.array([0.0, -0.0, 1.0, -2.0, math.nan, math.inf, 1e-45], dtype)
        a, b = np.full(7, math.nan, dtype), np.arange(7, dtype=dtype)
        x, y, z = (upload(device, part) for part in (condition, a, b))
        want = np.where(condition != 0, a, b)
        want[-1] = math.nan  # 1e-45 is a number of both types
        np.testing.assert_array_equal(
            download(device, device.where(x, None, y, None, z, None)), want
        )


def test_where_on_layouts(device, rng):
    for case, (size, layout) in LAYOUTS.items():
        shape = layout[0]
        mask = rng.integers(0, 2, math.prod(shape)).astype(np.float32)
        a, b = numbers(rng, size), numbers(rng, 1)
        x, y, z = (upload(device, part) for part in (mask, a, b))
        out = device.where(x, None, y, layout, z, (shape, (0,) * len(shape), 0))
        want = np.where(mask.reshape(shape) != 0, elements(a, layout), b[0])
        np.testing.assert_array_equal(download(device, out), want.reshape(-1), err_msg=case)


# --- copies and writes ---


@pytest.mark.parametrize("case", LAYOUTS)
def test_copies_of_a_view(device, case, rng):
    """copy, compact and to_numpy read one view the same way, and leave it as it was."""
    size, layout = LAYOUTS[case]
    a = numbers(rng, size)
    x, want = upload(device, a), elements(a, layout)
    out = output(device, want.size)
    device.compact(x, out, *layout)
    seen = device.to_numpy(x, *layout)
    np.testing.assert_array_equal(download(device, device.copy(x, layout)), want.reshape(-1))
    np.testing.assert_array_equal(download(device, out), want.reshape(-1))
    np.testing.assert_array_equal(seen, want)
    assert seen.shape == want.shape
    assert seen.flags.c_contiguous
    np.testing.assert_array_equal(download(device, x), a)


def test_copy_is_a_buffer_of_its_own(device):
    x = upload(device, np.zeros(4, np.float32))
    copies = [
        device.copy(x, None),
        device.copy(x, ((4,), (1,), 0)),
        device.sum(x, ((4,), (1,), 0), 0),
    ]
    copies += [device.max(x, ((4,), (1,), 0), 0), device.maximum_scalar(x, None, 0.0)]
    host = device.to_numpy(x, (4,), (1,), 0)
    device.fill(x, 7.0)
    for each in copies:
        assert each.ptr() != x.ptr()
        np.testing.assert_array_equal(download(device, each), 0.0)
    np.testing.assert_array_equal(host, 0.0)


@pytest.mark.parametrize("case", [case for case in LAYOUTS if "broadcast" not in case])
def test_writes_into_a_view(device, case, rng):
    """ewise_setitem and scalar_setitem change the elements of the view and no others."""
    if case == "overlapping" and device.name.startswith("cuda"):
        pytest.skip("threads write in no order: which value stays where elements overlap is open")
    size, layout = LAYOUTS[case]
    marked = elements(np.arange(size), layout)
    values = numbers(rng, marked.size)
    x, y = output(device, size), output(device, size)
    device.ewise_setitem(upload(device, values), x, *layout)
    device.scalar_setitem(marked.size, -2.5, y, *layout)
    want_x, want_y = np.full((2, size), 123.0, np.float32)
    for position, value in zip(
        marked.reshape(-1), values, strict=True
    ):  # row-major: the last one stays
        want_x[position], want_y[position] = value, -2.5
    np.testing.assert_array_equal(download(device, x), want_x)
    np.testing.assert_array_equal(download(device, y), want_y)


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, math.nan, math.inf, 1e300])
def test_fill(device, value):
    out = output(device, 1027)
    device.fill(out, value)
    want = math.inf if value == 1e300 else value
    np.testing.assert_array_equal(download(device, out), want)
    assert np.all(np.signbit(download(device, out)) == np.signbit(value))


@pytest.mark.parametrize("value", [1e300, -1e300])
def test_scalars_beyond_float32_are_infinite(device, value):
    """A Python number is rounded as float32 rounds it, on every entry that takes one."""
    x, out = upload(device, np.zeros(3, np.float32)), output(device, 3)
    device.scalar_add(x, value, out)
    np.testing.assert_array_equal(download(device, out), math.copysign(math.inf, value))
    np.testing.assert_array_equal(
        download(device, device.add_scalar(x, None, value)), math.copysign(math.inf, value)
    )
    np.testing.assert_array_equal(
        download(device, device.lt_scalar(x, None, value)), float(value > 0)
    )
    device.scalar_setitem(3, value, out, (3,), (1,), 0)
    np.testing.assert_array_equal(download(device, out), math.copysign(math.inf, value))
    device.scalar_maximum(x, value, out)
    np.testing.assert_array_equal(download(device, out), max(0.0, math.copysign(math.inf, value)))


@pytest.mark.parametrize(
    "values",
    [
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.array(5.0, np.float32),
        np.zeros((0, 3), np.float32),
    ],
    ids=["matrix", "no axes", "empty"],
)
def test_from_numpy_copies(device, values):
    x = upload(device, values)
    want = values.reshape(-1).copy()
    values[...] = -1
    np.testing.assert_array_equal(download(device, x), want)


# --- the course's family: the same numbers as the strided one ---


def course_sizes(rng, count):
    """Yield operands: the special numbers, then sizes around those of blocks."""
    special = np.array(SPECIAL, np.float32)
    yield [np.roll(special, 5 * i) for i in range(count)]
    for size in SIZES:
        yield [numbers(rng, size) for _ in range(count)]


@pytest.mark.parametrize("name", COURSE_BINARY)
def test_course_binary_kernel(device, name, rng):
    strided = COURSE_BINARY[name]
    for a, b in course_sizes(rng, 2):
        x, y, out = upload(device, a), upload(device, b), output(device, a.size)
        getattr(device, name)(x, y, out)
        check(download(device, out), BINARY[strided], (a, b))
        twin = getattr(device, strided)(x, None, y, None)
        np.testing.assert_array_equal(download(device, out), download(device, twin))


@pytest.mark.parametrize("name", COURSE_SCALAR)
def test_course_scalar_kernel(device, name, rng):
    strided = COURSE_SCALAR[name]
    kernel, twin = getattr(device, name), getattr(device, f"{strided}_scalar")
    bound = BOUNDS.get(strided, 0)
    if name == "scalar_power" and device.name.startswith("cuda"):
        bound = 4  # of powf, as CUDA promises it
    special = np.array(SPECIAL, np.float32)
    for a, value in [(special, value) for value in SPECIAL] + [
        (numbers(rng, n), 3.0) for n in SIZES
    ]:
        x, out = upload(device, a), output(device, a.size)
        kernel(x, value, out)
        got, operands = download(device, out), (a, np.float32(value))
        check(got, BINARY[strided], operands, bound, f"with {value}")
        check(download(device, twin(x, None, value)), BINARY[strided], operands, bound)


@pytest.mark.parametrize("name", COURSE_UNARY)
def test_course_unary_kernel(device, name, rng):
    strided = COURSE_UNARY[name]
    for (a,) in course_sizes(rng, 1):
        x, out = upload(device, a), output(device, a.size)
        getattr(device, name)(x, out)
        check(download(device, out), UNARY[strided], (a,), BOUNDS[strided])


@pytest.mark.parametrize("name", [*COURSE_BINARY, *COURSE_SCALAR, *COURSE_UNARY])
def test_course_kernel_may_write_onto_its_operand(device, name, rng):
    a = np.abs(numbers(rng, 300)) + 1
    x, out = upload(device, a), output(device, 300)
    others = (x,) if name in COURSE_BINARY else (3.0,) if name in COURSE_SCALAR else ()
    getattr(device, name)(x, *others, out)
    getattr(device, name)(x, *others, x)
    np.testing.assert_array_equal(download(device, x), download(device, out))


# --- memory ---


def test_array_is_a_flat_buffer(device):
    x = device.Array(6)
    assert x.size == 6
    assert isinstance(x.ptr(), int)
    assert device.Array(0).size == 0


def test_array_without_room(device):
    with pytest.raises(OutOfMemoryError, match=r"\[\w+\] .*\d+ elements"):
        device.Array(2**60)


def test_memory_stats(device):
    stats = device.memory_stats()
    assert set(stats) == {"live_bytes", "cached_bytes", "hits", "misses"}
    assert all(isinstance(value, int) and value >= 0 for value in stats.values())
    device.empty_cache()
    assert device.memory_stats()["cached_bytes"] == 0
