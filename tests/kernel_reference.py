"""What the tests of kernels share: formulas, special numbers, views, a comparison in ulps.

Expected values are worked in the next wider type, so they hold to the last bit of float32 where an
operation is rounded once. Views are read by the definition of a stride. No backend uses this file.
"""

import math

import numpy as np

WIDER = {"float32": np.float64, "float64": np.longdouble}


def power(a, b):
    """Return a ** b; numpy takes a lone 0.5 for a square root, which differs at -inf."""
    a, b = np.broadcast_arrays(a, b)
    return np.power(a.copy(), b.copy())


BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "power": power,
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
    "transposed, one tile": (11 * 13, ((11, 13), (1, 11), 0)),
    "transposed, tiles and a rest": (17 * 35, ((17, 35), (1, 17), 0)),
    "transposed with gaps": (8 + 30 * 20, ((12, 20), (2, 30), 3)),
    "transposed and flipped": (17 * 40, ((17, 40), (-1, -17), 679)),
    "transposed, large": (257 * 131, ((131, 257), (1, 131), 0)),
    "transposed inner axes": (2 * 90 * 110, ((2, 110, 90), (9900, 1, 110), 0)),
    "transposed across an axis": (3000, ((2, 20, 3, 24), (1500, 1, 500, 20), 0)),
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
