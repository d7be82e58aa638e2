"""What a compiled backend refuses: sizes that differ, views that leave their buffer, other types.

`cpu_numpy()` relies on its caller and is left out. The values are in test_kernels.py.
"""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from needle.backend_ndarray import interface
from needle.errors import ShapeError

BINARY = [
    name for name in interface.COURSE_KERNELS if "(a, b, out):" in interface.COURSE_KERNELS[name]
]
SCALAR = [
    name
    for name in interface.COURSE_KERNELS
    if name.startswith("scalar_") and name != "scalar_setitem"
]
UNARY = ["ewise_log", "ewise_exp", "ewise_tanh"]


@pytest.fixture(scope="module")
def backend(device):
    """A compiled device."""
    if device.name == "cpu_numpy":
        pytest.skip("cpu_numpy() relies on its caller")
    return device


@pytest.fixture
def arrays(backend):
    """Buffers of 5, 6 and 24 elements, all zero."""
    made = {size: backend.Array(size) for size in (5, 6, 24)}
    for each in made.values():
        backend.fill(each, 0.0)
    return made


def refuses(match, kernel, *arguments, error=ShapeError):
    with pytest.raises(error, match=match):
        kernel(*arguments)


@pytest.mark.parametrize("name", BINARY)
def test_course_binary_kernel_wants_equal_sizes(backend, arrays, name):
    kernel, message = (
        getattr(backend, name),
        rf"\[{name}\] .*5.*6.* agree|\[{name}\] .*6.*5.* agree",
    )
    refuses(message, kernel, arrays[5], arrays[6], arrays[5])
    refuses(message, kernel, arrays[6], arrays[5], arrays[5])
    refuses(message, kernel, arrays[5], arrays[5], arrays[6])


@pytest.mark.parametrize("name", [*SCALAR, *UNARY])
def test_course_kernel_wants_an_output_of_equal_size(backend, arrays, name):
    arguments = (1.0,) if name in SCALAR else ()
    refuses(rf"\[{name}\] .*6.*5", getattr(backend, name), arrays[6], *arguments, arrays[5])


@pytest.mark.parametrize("name", ["reduce_sum", "reduce_max"])
def test_course_reduction_wants_whole_blocks(backend, arrays, name):
    kernel = getattr(backend, name)
    refuses(rf"\[{name}\] .*24.*25", kernel, arrays[24], arrays[5], 5)
    refuses(rf"\[{name}\]", kernel, arrays[24], arrays[6], -4)
    refuses(rf"\[{name}\]", kernel, arrays[24], arrays[6], 2**62)


def test_no_maximum_of_nothing(backend):
    empty, out = backend.Array(0), backend.Array(3)
    refuses(r"\[reduce_max\] .*0", backend.reduce_max, empty, out, 0)
    for name in ("max", "min"):
        refuses(rf"\[{name}\] .*\(3, 0\)", getattr(backend, name), empty, ((3, 0), (0, 1), 0), 1)


@pytest.mark.parametrize("name", ["matmul", "matmul_tiled"])
def test_course_matmul_checks_its_sizes(backend, arrays, name):
    if not hasattr(backend, name):
        pytest.skip(f"{backend} has no {name}, which is optional")
    a, out = arrays[24], arrays[6]
    kernel = getattr(backend, name)
    refuses(rf"\[{name}\] a .*24.*25", kernel, a, a, out, 5, 5, 5)
    refuses(rf"\[{name}\] b .*24.*16", kernel, a, a, out, 6, 4, 4)
    refuses(rf"\[{name}\] out .*6.*36", kernel, a, a, out, 6, 4, 6)
    refuses(rf"\[{name}\]", kernel, a, a, out, -6, -4, -6)
    refuses(rf"\[{name}\]", kernel, a, a, out, 2**40, 2**40, 1)
    if name == "matmul_tiled":
        refuses(r"\[matmul_tiled\] .*tile size", kernel, a, a, backend.Array(16), 4, 6, 4)


def test_out_of_a_matmul_is_its_own(backend):
    a, b = backend.Array(16), backend.Array(16)
    refuses(r"\[matmul\] out is an operand", backend.matmul, a, b, a, 4, 4, 4)
    refuses(r"\[matmul\] out is an operand", backend.matmul, a, b, b, 4, 4, 4)


# Views of a buffer of 24 that leave it, and what they touch.
OUTSIDE = {
    "one too many": (((25,), (1,), 0), "0..24"),
    "offset too far": (((4, 6), (6, 1), 1), "1..24"),
    "offset before": (((2,), (1,), -1), "-1..0"),
    "flipped past the start": (((4,), (-2,), 5), "-1..5"),
    "step past the end": (((3, 2), (10, 4), 0), "0..24"),
    "a point outside": (((), (), 24), "24..24"),
    "both ends": (((5, 30), (-1, 1), 2), "-2..31"),
    "far": (((2,), (2**40,), 0), f"0..{2**40}"),
}

# Not layouts at all, or such that arithmetic on them would overflow.
MALFORMED = {
    "negative size": (((-2, 3), (3, 1), 0), "negative"),
    "strides missing": (((2, 3), (1,), 0), "2 axes.*1"),
    "too many axes": (((1,) * 33, (1,) * 33, 0), "32 axes"),
    "overflow of a reach": (((2**40, 2), (2**40, 1), 0), "63 bits"),
    "overflow of the count": (((2**32, 2**32), (0, 0), 0), "63 bits"),
    "overflow of the offset": (((2,), (2**62,), 2**62), "63 bits"),
    "offset beyond 64 bits": (((2,), (1,), 2**70), "64 bits"),
    "size beyond 64 bits": (((2**64,), (1,), 0), "64 bits"),
}


def entries_with_layout(backend, buffer, layout):
    """Yield each kind of entry that walks a layout, as (name, call)."""
    other, shape = backend.Array(24), layout[0]
    size = max(0, math.prod(shape)) if math.prod(shape) < 10**6 else 24
    flat = backend.Array(size)
    whole = (shape, (0,) * len(shape), 0)
    yield "copy", lambda: backend.copy(buffer, layout)
    yield "exp", lambda: backend.exp(buffer, layout)
    yield "add_scalar", lambda: backend.add_scalar(buffer, layout, 1.0)
    yield "add", lambda: backend.add(buffer, layout, other, whole)
    yield "mul", lambda: backend.mul(other, whole, buffer, layout)
    yield "where", lambda: backend.where(buffer, layout, other, whole, other, whole)
    yield "where", lambda: backend.where(other, whole, buffer, layout, other, whole)
    yield "where", lambda: backend.where(other, whole, other, whole, buffer, layout)
    for name in ("sum", "max", "min"):
        yield name, lambda name=name: getattr(backend, name)(buffer, layout, 0)
    yield "compact", lambda: backend.compact(buffer, flat, *layout)
    yield "to_numpy", lambda: backend.to_numpy(buffer, *layout)
    yield "ewise_setitem", lambda: backend.ewise_setitem(flat, buffer, *layout)
    yield "scalar_setitem", lambda: backend.scalar_setitem(size, 1.0, buffer, *layout)


@pytest.mark.parametrize("case", OUTSIDE)
def test_no_view_leaves_its_buffer(backend, arrays, case):
    layout, touched = OUTSIDE[case]
    for name, call in entries_with_layout(backend, arrays[24], layout):
        with pytest.raises(
            ShapeError, match=rf"\[{name}\] view touches elements {touched} of .* 24$"
        ):
            call()
    assert not np.any(backend.to_numpy(arrays[24], (24,), (1,), 0))  # nothing was written


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_layouts(backend, arrays, case):
    layout, message = MALFORMED[case]
    for name, call in entries_with_layout(backend, arrays[24], layout):
        if name in ("add", "mul", "where"):  # these would name the other operand, malformed too
            continue
        with pytest.raises(ShapeError, match=rf"\[{name}\] .*{message}"):
            call()


def test_views_that_just_fit(backend, arrays):
    for layout in (
        ((24,), (1,), 0),
        ((24,), (-1,), 23),
        ((), (), 23),
        ((3, 2), (10, 3), 0),
        ((5, 1), (1, 10**9), 19),  # the stride of an axis of size 1 means nothing
        ((0, 7), (10**9, 10**9), -5),  # a view without elements may lie anywhere
    ):
        assert backend.copy(arrays[24], layout).size == math.prod(layout[0])


@given(data=st.data())
def test_any_layout_is_right_or_refused(backend, data):
    """Layouts drawn at random: read and written exactly where numpy says, or refused."""
    ndim = data.draw(st.integers(0, 4))
    shape = data.draw(st.tuples(*[st.integers(0, 4)] * ndim))
    strides = data.draw(st.tuples(*[st.integers(-7, 7)] * ndim))
    offset = data.draw(st.integers(-2, 26))
    steps = [np.arange(n) * stride for n, stride in zip(shape, strides, strict=True)]
    positions = offset + sum(np.meshgrid(*steps, indexing="ij"), np.zeros(shape, int))
    buffer = backend.Array(24)
    backend.from_numpy(np.arange(24, dtype=np.float32), buffer)
    if positions.size and not (positions.min() >= 0 and positions.max() < 24):
        with pytest.raises(ShapeError, match="view touches"):
            backend.copy(buffer, (shape, strides, offset))
        with pytest.raises(ShapeError, match="view touches"):
            backend.scalar_setitem(positions.size, -1.0, buffer, shape, strides, offset)
        return
    np.testing.assert_array_equal(backend.to_numpy(buffer, shape, strides, offset), positions)
    copied = backend.copy(buffer, (shape, strides, offset))
    np.testing.assert_array_equal(
        backend.to_numpy(copied, (copied.size,), (1,), 0), positions.reshape(-1)
    )
    assume(positions.size)
    backend.scalar_setitem(positions.size, -1.0, buffer, shape, strides, offset)
    want = np.arange(24, dtype=np.float32)
    want[positions] = -1
    np.testing.assert_array_equal(backend.to_numpy(buffer, (24,), (1,), 0), want)


def test_operands_of_a_strided_kernel_have_one_shape(backend, arrays):
    a, rows, columns = arrays[24], ((2, 3), (3, 1), 0), ((3, 2), (2, 1), 0)
    refuses(r"\[add\] .*\(2, 3\) and \(3, 2\)", backend.add, a, rows, a, columns)
    refuses(r"\[add\] .*\(2, 3\) and \(6,\)", backend.add, a, rows, a, ((6,), (1,), 0))
    refuses(r"\[where\] .*\(2, 3\) and \(3, 2\)", backend.where, a, rows, a, rows, a, columns)
    refuses(r"\[where\] .*\(3, 2\) and \(2, 3\)", backend.where, a, columns, a, rows, a, rows)


def test_whole_buffer_takes_the_shape_of_the_other_if_it_fits(backend, arrays):
    rows = ((2, 3), (3, 1), 0)
    assert backend.add(arrays[24], rows, arrays[6], None).size == 6
    for left, right in (
        ((arrays[24], rows), (arrays[5], None)),
        ((arrays[5], None), (arrays[24], rows)),
    ):
        refuses(r"\[add\] .*5|\[add\] .*\(2, 3\)", backend.add, *left, *right)
    refuses(r"\[add\] .*6.*5", backend.add, arrays[6], None, arrays[5], None)


def test_sizes_of_writes(backend, arrays):
    layout = (2, 3), (3, 1), 0
    refuses(r"\[compact\] .*5.*6", backend.compact, arrays[24], arrays[5], *layout)
    refuses(r"\[ewise_setitem\] .*5.*6", backend.ewise_setitem, arrays[5], arrays[24], *layout)
    refuses(
        r"\[scalar_setitem\] .*5.*\(2, 3\)", backend.scalar_setitem, 5, 1.0, arrays[24], *layout
    )


def test_from_numpy_checks_size_and_type(backend, arrays):
    refuses(
        r"\[from_numpy\] .*6.*5|\[from_numpy\] .*5.*6",
        backend.from_numpy,
        np.zeros(6, np.float32),
        arrays[5],
    )
    refuses(
        r"\[from_numpy\]", backend.from_numpy, np.zeros(5, np.complex64), arrays[5], error=TypeError
    )
    refuses(r"\[from_numpy\]", backend.from_numpy, "text", arrays[5], error=TypeError)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(6).reshape(2, 3),
        np.arange(6.0).reshape(3, 2).T,
        np.arange(12, dtype=np.float32)[::-2],
        np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
        np.arange(6, dtype=">f4"),
        np.broadcast_to(np.float32(3), (2, 3)),
    ],
    ids=["int64", "float64, transposed", "reversed", "Fortran", "big-endian", "broadcast"],
)
def test_from_numpy_takes_any_order_and_number(backend, arrays, values):
    backend.from_numpy(values, arrays[6])
    got = backend.to_numpy(arrays[6], (6,), (1,), 0)
    np.testing.assert_array_equal(got, values.astype(np.float32).reshape(-1))


def test_reductions_check_the_number_of_axes(backend, arrays):
    for name in ("sum", "max", "min"):
        for count in (3, -1):
            refuses(
                rf"\[{name}\] .*{count}.*\(4, 6\)",
                getattr(backend, name),
                arrays[24],
                ((4, 6), (6, 1), 0),
                count,
            )


def test_batched_matmul_checks_its_shapes(backend, arrays):
    a, square = arrays[24], ((2, 2), (2, 1), 0)
    for left, right, message in (
        (((2, 3), (3, 1), 0), square, r"inner sizes differ: \(2, 3\) @ \(2, 2\)"),
        (((3, 2, 2), (4, 2, 1), 0), ((2, 2, 2), (4, 2, 1), 0), r"leading axes differ: \(3, 2, 2\)"),
        (((1, 2, 2), (4, 2, 1), 0), square, r"leading axes differ"),
        (((2,), (1,), 0), ((2,), (1,), 0), r"\(2,\) @ \(2,\)"),
        (((), (), 0), ((), (), 0), r"\(\) @ \(\)"),
        (((13, 2), (2, 1), 0), square, r"view touches elements 0\.\.25"),
        (square, ((2, 2), (2, 30), 0), r"view touches elements 0\.\.32"),
    ):
        refuses(rf"\[batched_matmul\] .*{message}", backend.batched_matmul, a, left, a, right)


@pytest.mark.parametrize("stranger", ["text", None, 3.0, np.zeros(5, np.float32)], ids=repr)
def test_only_arrays_of_this_device(backend, arrays, stranger):
    from needle.backend_ndarray import cpu_numpy

    for other in (stranger, cpu_numpy().Array(5)):
        for call in (
            lambda: backend.add(arrays[5], None, other, None),  # noqa: B023 - called at once
            lambda: backend.exp(other, None),  # noqa: B023
            lambda: backend.ewise_add(arrays[5], other, arrays[5]),  # noqa: B023
            lambda: backend.fill(other, 1.0),  # noqa: B023
            lambda: backend.to_numpy(other, (5,), (1,), 0),  # noqa: B023
        ):
            with pytest.raises(TypeError, match=r"\[\w+\] .*argument \d .*Array"):
                call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b, a: b.fill(a, "text"), r"\[fill\] .*'str'"),
        (lambda b, a: b.add_scalar(a, None, None), r"\[add_scalar\] .*'NoneType'"),
        (lambda b, a: b.exp(a, (5,)), r"\[exp\] a layout is None or \(shape, strides, offset\)"),
        (lambda b, a: b.exp(a, [(5,), (1,), 0]), r"\[exp\] a layout is None or"),
        (lambda b, a: b.exp(a, (5, 1, 0)), r"\[exp\] 'int' .*tuple"),
        (lambda b, a: b.exp(a, ((5.0,), (1,), 0)), r"\[exp\] 'float' .*integer"),
        (lambda b, a: b.sum(a, ((5,), (1,), 0), 1.5), r"\[sum\] 'float' .*integer"),
        (lambda b, a: b.exp(a), r"\[exp\] takes 2 arguments"),
        (lambda b, a: b.exp(a, None, None), r"\[exp\] takes 2 arguments"),
        (lambda b, a: b.Array("text"), r"\[Array\] 'str' .*integer"),
        (lambda b, a: b.Array(), r"."),
    ],
)
def test_arguments_of_another_type(backend, arrays, call, message):
    with pytest.raises(TypeError, match=message):
        call(backend, arrays[5])


def test_array_of_negative_size(backend):
    refuses(r"\[Array\] size -1", backend.Array, -1)


def test_a_refused_call_keeps_no_memory(backend, arrays):
    """An error after the output was made would leak it."""
    layout = ((4, 6), (6, 1), 0)

    def refused():
        with pytest.raises(ShapeError):
            backend.add(arrays[24], layout, arrays[24], ((6, 4), (4, 1), 0))
        with pytest.raises(TypeError):
            backend.mul_scalar(arrays[24], layout, "text")
        with pytest.raises(ShapeError):
            backend.sum(arrays[24], layout, 3)

    refused()
    before = backend.memory_stats()["live_bytes"]
    for _ in range(20):
        refused()
    assert backend.memory_stats()["live_bytes"] == before


def test_results_give_their_memory_back(backend, arrays):
    before = backend.memory_stats()["live_bytes"]
    out = backend.copy(arrays[24], None)
    assert backend.memory_stats()["live_bytes"] > before
    del out
    assert backend.memory_stats()["live_bytes"] == before
