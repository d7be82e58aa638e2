"""Every kernel of interface.py on every device, against formulas in numpy that no backend uses.

Expected values are worked in the next wider type, so they hold to the last bit of float32 where an
operation is rounded once; approximated functions have a bound in units in the last place. Layouts
are read here by the definition of a stride. For what is refused see test_kernel_arguments.py.
"""

import math

import numpy as np
import pytest
from needle.backend_ndarray import interface
from needle.errors import OutOfMemoryError

WIDER = {"float32": np.float64, "float64": np.longdouble}

BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "power": np.power,
    "maximum": lambda a, b: np.where(np.isnan(a) | (a > b), a, b),
    "minimum": lambda a, b: np.where(np.isnan(a) | (a < b), a, b),
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}

UNARY = {
    "neg": np.negative,
    "abs": np.fabs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
}

# Distance in units in the last place; a kernel without an entry is exact.
BOUNDS = {"power": 2, "exp": 3, "log": 4, "sin": 3, "cos": 3, "tanh": 4, "sigmoid": 4}

# The course's kernels (their names end so) and the strided ones that do the same.
COURSE_BINARY = {f"ewise_{name}": name for name in ("add", "mul", "div", "maximum", "eq", "ge")}
COURSE_SCALAR = {
    f"scalar_{name}": name for name in ("add", "mul", "div", "power", "maximum", "eq", "ge")
}
COURSE_UNARY = {f"ewise_{name}": name for name in ("log", "exp", "tanh")}

# NaN, infinities, zeros, denormals, the edges of exp and of float32, integers, fractions.
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, -2.5, 7.25, 1 / 3]
SPECIAL += [1e-45, -1e-45, 1e-40, 1.17549435e-38, 1e-20, -1e-7, 88.7, 88.8, -87.4, -103.9, -104.5]
SPECIAL += [9.1, -9.1, 355.0, 16777216.0, 33554433.0, 1e10, -1e19, 3.4e38, -3.4e38]

# Sizes around those of vectors, tiles, gathered runs and pieces.
SIZES = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 255, 256, 257, 1000, 1023, 1024, 1025, 1027]

# (size of the buffer, layout)
LAYOUTS = {
    "no axes": (5, ((), (), 3)),
    "one element": (5, ((1,), (9,), 4)),
    "no rows": (0, ((0, 3), (3, 1), 0)),
    "no columns": (4, ((3, 0), (1, 1), 0)),
    "rows": (15, ((3, 5), (5, 1), 0)),
    "transposed": (63, ((9, 7), (1, 9), 0)),
    "transposed, large": (257 * 131, ((131, 257), (1, 131), 0)),
    "transposed inner axes": (2 * 90 * 110, ((2, 110, 90), (9900, 1, 110), 0)),
    "offset and step": (99, ((4, 4), (24, 3), 7)),
    "every second": (1000, ((500,), (2,), 1)),
    "wide rows with a gap": (3 * 310 + 5, ((3, 300), (310, 1), 5)),
    "narrow rows with a gap": (400, ((40, 7), (10, 1), 3)),
    "row broadcast": (257, ((4, 257), (0, 1), 0)),
    "column broadcast": (257, ((257, 4), (1, 0), 0)),
    "scalar broadcast": (3, ((33, 5), (0, 0), 2)),
    "broadcast middle": (40, ((5, 3, 8), (8, 0, 1), 0)),
    "flipped": (54, ((6, 9), (-9, -1), 53)),
    "flipped columns": (54, ((6, 9), (9, -1), 8)),
    "flipped, long": (1027, ((1027,), (-1,), 1026)),
    "flipped with a step": (300, ((10, 11), (-29, -2), 290)),
    "axes of size 1": (40, ((1, 5, 1), (77, 7, -3), 2)),
    "permuted": (120, ((4, 2, 5, 3), (1, 20, 4, 40), 0)),
    "seven axes": (768, ((2, 1, 3, 2, 4, 2, 8), (8, 5, 256, 16, 32, 128, 1), 0)),
    "overlapping": (21, ((8, 6), (2, 1), 1)),
}


def elements(buffer, layout):
    """Return what a layout shows of a flat numpy buffer, by the definition of a stride."""
    if layout is None:
        return buffer
    shape, strides, offset = layout
    positions = np.full(shape, offset)
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        along = (np.arange(size) * stride).reshape((-1,) + (1,) * (len(shape) - axis - 1))
        positions = positions + along
    return buffer[positions]


def upload(device, values):
    """Return a flat Array with these numbers, of their type."""
    handle = device.allocate(values.size, values.dtype.name)
    device.from_numpy(values, handle)
    return handle


def download(device, handle):
    return device.to_numpy(handle, (handle.size,), (1,), 0)


def output(device, size, dtype="float32"):
    """Return an Array whose old content would be noticed."""
    handle = device.allocate(size, dtype)
    device.fill(handle, 123.0)
    return handle


def numbers(rng, size, dtype="float32"):
    """Return numbers of both signs, some of them large, some equal."""
    values = rng.standard_normal(size) * rng.choice([1.0, 3.0, 30.0], size)
    return np.where(rng.random(size) < 0.2, np.round(values), values).astype(dtype)


def check(got, formula, operands, bound=0, where=""):
    """Compare with `formula` in the next wider type, to `bound` units in the last place."""
    dtype = got.dtype
    with np.errstate(all="ignore"):
        exact = formula(*(np.asarray(operand, WIDER[dtype.name]) for operand in operands))
        want = np.asarray(exact).astype(dtype)
    got = got.reshape(want.shape)
    if dtype == np.float64:
        bound += 1  # the wider type has few bits more: a second rounding shows
    if not bound:
        np.testing.assert_array_equal(got, want, err_msg=where)
        return
    special = ~np.isfinite(want) | ~np.isfinite(got)
    edge = special & np.isfinite(exact)  # just below the largest float, either rounding is right
    largest = np.finfo(dtype).max
    assert np.all(np.abs(exact[edge]) >= largest * (1 - bound * np.finfo(dtype).eps)), where
    np.testing.assert_array_equal(got[special & ~edge], want[special & ~edge], err_msg=where)
    with np.errstate(all="ignore"):
        # One denormal more: numpy's own sigmoid loses what lies below the normal numbers.
        error = np.abs(got - exact)[~special]
        allowed = bound * np.spacing(np.abs(want))[~special] + np.finfo(dtype).tiny * (bound / 8)
    assert np.all(error <= allowed), f"{where}: off by {np.max(error / allowed) * bound:.1f} ulp"


@pytest.fixture(params=["float32", "float64"])
def dtype(request, device):
    if request.param not in device.dtypes:
        pytest.skip(f"{device} carries {device.dtypes[0]} only")
    return request.param


# --- elementwise: the strided family ---


@pytest.mark.parametrize("name", interface.BINARY_KERNELS)
def test_binary_kernel_on_sizes(device, dtype, name, rng):
    for size in SIZES:
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
def test_binary_kernel_on_special_numbers(device, dtype, name):
    """Every pair of special numbers, as two broadcast views and as two buffers."""
    values = np.array(SPECIAL, dtype)
    n = values.size
    a, b = np.broadcast_arrays(values[:, None], values[None, :])
    kernel, x = getattr(device, name), upload(device, values)
    views = kernel(x, ((n, n), (1, 0), 0), x, ((n, n), (0, 1), 0))
    check(download(device, views), BINARY[name], (a, b), BOUNDS.get(name, 0))
    x, y = (upload(device, np.ascontiguousarray(part)) for part in (a, b))
    check(download(device, kernel(x, None, y, None)), BINARY[name], (a, b), BOUNDS.get(name, 0))


@pytest.mark.parametrize("name", interface.BINARY_KERNELS)
def test_scalar_kernel(device, dtype, name, rng):
    """Special numbers with a special scalar, then a view with an ordinary one."""
    kernel = getattr(device, f"{name}_scalar")
    values = np.array(SPECIAL, dtype)
    x = upload(device, values)
    for value in SPECIAL:
        operands = values, np.array(value, dtype)
        out = kernel(x, None, value)
        check(download(device, out), BINARY[name], operands, BOUNDS.get(name, 0), f"with {value}")
    for case, (size, layout) in LAYOUTS.items():
        a = numbers(rng, size, dtype)
        out = kernel(upload(device, a), layout, 1.5)
        operands = elements(a, layout), np.array(1.5)
        check(download(device, out), BINARY[name], operands, BOUNDS.get(name, 0), case)


@pytest.mark.parametrize("name", interface.UNARY_KERNELS)
def test_unary_kernel(device, dtype, name, rng):
    kernel, formula, bound = getattr(device, name), UNARY[name], BOUNDS.get(name, 0)
    values = np.array(SPECIAL, dtype)
    check(download(device, kernel(upload(device, values), None)), formula, (values,), bound)
    for size in SIZES:
        a = numbers(rng, size, dtype)
        check(download(device, kernel(upload(device, a), None)), formula, (a,), bound, str(size))
    for case, (size, layout) in LAYOUTS.items():
        a = numbers(rng, size, dtype)
        out = kernel(upload(device, a), layout)
        check(download(device, out), formula, (elements(a, layout),), bound, case)


@pytest.mark.parametrize("name", BOUNDS.keys() - {"power"})
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
    check(download(device, out), np.power, (a, b), BOUNDS["power"])


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


def test_where(device, dtype, rng):
    """Anything but zero is true, NaN too; the branch that is not taken does not matter."""
    condition = np.array([0.0, -0.0, 1.0, -2.0, math.nan, math.inf, 1e-45], dtype)
    a, b = np.full(7, math.nan, dtype), np.arange(7, dtype=dtype)
    parts = [upload(device, part) for part in (condition, a, b)]
    out = device.where(parts[0], None, parts[1], None, parts[2], None)
    want = [0.0, 1.0] + [math.nan] * 5
    np.testing.assert_array_equal(download(device, out), want)
    for case, (size, layout) in LAYOUTS.items():
        shape = layout[0]
        mask = rng.integers(0, 2, math.prod(shape)).astype(dtype)
        a, b = numbers(rng, size, dtype), numbers(rng, 1, dtype)
        stretched = (shape, (0,) * len(shape), 0)
        out = device.where(
            upload(device, mask), None, upload(device, a), layout, upload(device, b), stretched
        )
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


# --- reductions ---

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


def check_sum(got, values, axis, dtype="float32"):
    """A sum is as good as float sums taken in blocks: 16 roundings of the sum of magnitudes."""
    want = round_sum(values, axis=axis)
    allowed = 16 * np.finfo(dtype).eps * round_sum(np.abs(values), axis=axis)
    error = np.abs(got.reshape(np.shape(want)) - want)
    assert np.all(error <= allowed), f"off by {np.max(error / allowed) * 16:.1f} roundings"


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("case", REDUCED)
def test_reduction(device, dtype, name, case, rng):
    size, layout, count = REDUCED[case]
    a = numbers(rng, size, dtype)
    seen, axis = elements(a, layout), tuple(range(-count, 0))
    got = download(device, getattr(device, name)(upload(device, a), layout, count))
    if name == "sum":
        check_sum(got, seen, axis, dtype)
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
        assert download(device, got)[0] == pytest.approx(want, rel=1e-6)


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


def test_sum_over_nothing_is_zero(device, dtype):
    x = upload(device, np.zeros(0, dtype))
    np.testing.assert_array_equal(
        download(device, device.sum(x, ((3, 0), (0, 1), 0), 1)), [0, 0, 0]
    )
    np.testing.assert_array_equal(download(device, device.sum(x, ((3, 0), (0, 1), 0), 2)), [0])
    assert device.sum(x, ((0, 3, 2), (6, 2, 1), 0), 2).size == 0
    assert device.max(x, ((0, 3), (3, 1), 0), 1).size == 0


# --- products ---

MATRICES = [(m, n, p) for m in (1, 7, 8, 17) for n in (1, 5, 16) for p in (1, 8, 33)]
MATRICES += [(8, 16, 24), (64, 8, 128), (13, 700, 65), (300, 31, 70), (3, 5, 2100), (1, 257, 1)]
MATRICES += [(257, 255, 256), (0, 3, 2), (2, 3, 0), (2, 0, 3), (0, 0, 0)]


def check_product(got, a, b):
    """Each element within a rounding a term of the sum of magnitudes."""
    want = a.astype(np.float64) @ b.astype(np.float64)
    scale = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    allowed = np.finfo(a.dtype).eps * math.sqrt(a.shape[-1] + 4) * scale
    assert np.all(np.abs(got.reshape(want.shape) - want) <= allowed)


@pytest.mark.parametrize(("m", "n", "p"), MATRICES)
def test_matmul(device, m, n, p, rng):
    """Both families: the course's into a buffer that is not zero, the strided one on any order."""
    a, b = numbers(rng, m * n).reshape(m, n), numbers(rng, n * p).reshape(n, p)
    x, y, out = upload(device, a), upload(device, b), output(device, m * p)
    device.matmul(x, y, out, m, n, p)
    check_product(download(device, out), a, b)
    x_t, y_t = (upload(device, np.ascontiguousarray(part.T)) for part in (a, b))
    for left in ((x, ((m, n), (n, 1), 0)), (x_t, ((m, n), (1, m), 0))):
        for right in ((y, ((n, p), (p, 1), 0)), (y_t, ((n, p), (1, n), 0))):
            got = device.batched_matmul(*left, *right)
            assert got.size == m * p
            check_product(download(device, got), a, b)


def test_float64_matmul_is_exact_to_float64(device, rng):
    if "float64" not in device.dtypes:
        pytest.skip(f"{device} carries float32 only")
    a, b = rng.standard_normal((9, 20)), rng.standard_normal((20, 7))
    got = device.batched_matmul(
        upload(device, a), ((9, 20), (20, 1), 0), upload(device, b), ((20, 7), (7, 1), 0)
    )
    np.testing.assert_allclose(download(device, got), (a @ b).reshape(-1), rtol=1e-12)


@pytest.mark.parametrize(
    ("m", "n", "p"), [(8, 16, 24), (8, 8, 16), (16, 8, 8), (64, 8, 128), (8, 8, 8)]
)
def test_matmul_tiled(device, m, n, p, rng):
    if not hasattr(device, "matmul_tiled"):
        pytest.skip(f"{device} has no matmul_tiled, which is optional")
    tile = device.__tile_size__

    def tiled(matrix):
        rows, columns = matrix.shape
        blocks = matrix.reshape(rows // tile, tile, columns // tile, tile).swapaxes(1, 2)
        return upload(device, np.ascontiguousarray(blocks))

    a, b = numbers(rng, m * n).reshape(m, n), numbers(rng, n * p).reshape(n, p)
    out = output(device, m * p)
    device.matmul_tiled(tiled(a), tiled(b), out, m, n, p)
    blocks = download(device, out).reshape(m // tile, p // tile, tile, tile)
    check_product(blocks.swapaxes(1, 2).reshape(m, p), a, b)


BATCHES = {
    "two": (((2, 5, 7), (35, 7, 1), 0), ((2, 7, 3), (21, 3, 1), 0)),
    "none": (((0, 5, 7), (35, 7, 1), 0), ((0, 7, 3), (21, 3, 1), 0)),
    "one b for all": (((4, 5, 7), (35, 7, 1), 0), ((4, 7, 3), (0, 3, 1), 0)),
    "one a for all": (((4, 5, 7), (0, 7, 1), 0), ((4, 7, 3), (21, 3, 1), 0)),
    "one b, gaps in a": (((4, 5, 7), (80, 16, 2), 3), ((4, 7, 3), (0, 1, 7), 0)),
    "a row against one b": (((40, 1, 7), (7, 7, 1), 0), ((40, 7, 3), (0, 3, 1), 0)),
    "two leading axes": (((2, 3, 4, 5), (60, 20, 5, 1), 0), ((2, 3, 5, 2), (0, 10, 2, 1), 0)),
    "permuted": (((3, 2, 4, 5), (5, 60, 15, 1), 0), ((3, 2, 5, 4), (20, 60, 1, 5), 0)),
    "flipped": (((2, 3, 4), (-12, -4, -1), 23), ((2, 4, 3), (12, 3, -1), 2)),
    "many small": (((600, 4, 4), (16, 4, 1), 0), ((600, 4, 4), (16, 1, 4), 0)),
    "a vector stretched": (((1, 6, 5), (0, 0, 1), 0), ((1, 5, 6), (0, 1, 0), 0)),
}


@pytest.mark.parametrize("case", BATCHES)
def test_batched_matmul(device, case, rng):
    layouts = BATCHES[case]
    buffers = [numbers(rng, 12000) for _ in layouts]
    a, b = (elements(buffer, layout) for buffer, layout in zip(buffers, layouts, strict=True))
    x, y = (upload(device, buffer) for buffer in buffers)
    got = device.batched_matmul(x, layouts[0], y, layouts[1])
    assert got.size == math.prod(a.shape[:-1]) * b.shape[-1]
    check_product(download(device, got), a, b)


def test_matmul_of_special_numbers(device):
    """0 * inf is NaN and stays in its own element."""
    a = np.array([[0, 1], [math.inf, 1], [math.nan, 0]], np.float32)
    b = np.array([[math.inf, 2], [1, 3]], np.float32)
    x, y, out = upload(device, a), upload(device, b), output(device, 6)
    device.matmul(x, y, out, 3, 2, 2)
    want = [math.nan, 3, math.inf, math.inf, math.nan, math.nan]
    got = device.batched_matmul(x, ((3, 2), (2, 1), 0), y, ((2, 2), (2, 1), 0))
    np.testing.assert_array_equal(download(device, got), want)
    np.testing.assert_array_equal(download(device, out), want)


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
    bound = BOUNDS.get(strided, 0)
    for value in (*SPECIAL, 3.0):
        for (a,) in course_sizes(rng, 1):
            x, out = upload(device, a), output(device, a.size)
            getattr(device, name)(x, value, out)
            operands = a, np.array(value, np.float32)
            check(download(device, out), BINARY[strided], operands, bound, f"with {value}")
            twin = download(device, getattr(device, f"{strided}_scalar")(x, None, value))
            if not bound:
                np.testing.assert_array_equal(download(device, out), twin)


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
