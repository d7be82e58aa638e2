"""take_rows and add_rows: numpy's numbers on views of all kinds; what a compiled backend refuses.

An index from outside must never become an address, so each kind of bad one is tried.
"""

import math

import numpy as np
import pytest

from needle.errors import IndexingError, ShapeError
from tests.kernel_reference import LAYOUTS, download, elements, numbers, upload

DEVICES = ("cpu", "cpu_numpy", "cuda", "cuda_checked")

MATRICES = {case: entry for case, entry in LAYOUTS.items() if len(entry[1][0]) == 2}

# Views of indices: (numbers in the buffer, layout), by the number of rows that they reach.
INDICES = {
    "in order": lambda n: (np.arange(n), None),
    "reversed": lambda n: (np.arange(n), ((n,), (-1,), n - 1)),
    "every second": lambda n: (np.arange(2 * n) // 2, ((n,), (2,), 0)),
    "the last, again and again": lambda n: (np.array([n - 1]), ((5,), (0,), 0)),
    "none": lambda n: (np.zeros(0), None),
    "mixed, with doubles": lambda n: (np.arange(3 * n + 2) * 7 % n, None),
}


def matrix_and_indices(rng, device, case, kind, dtype):
    """Return a view's buffer, its layout, what it shows; the same for indices into its rows."""
    size, layout = MATRICES[case]
    buffer = numbers(rng, size, dtype)
    matrix = elements(buffer, layout)
    values, i_layout = INDICES[kind](matrix.shape[0])
    indices = elements(values.astype(np.float32), i_layout).astype(int)
    handles = upload(device, buffer), upload(device, values.astype(np.float32))
    return handles[0], layout, matrix, handles[1], i_layout, indices


def added(matrix, indices, rows):
    """Return what add_rows promises, in its order and type."""
    out = np.zeros((rows, matrix.shape[1]), matrix.dtype)
    for row, index in zip(matrix, indices, strict=True):
        out[index] += row
    return out


@pytest.mark.parametrize("kind", INDICES)
@pytest.mark.parametrize("case", [case for case in MATRICES if case != "no rows"])
def test_take_rows(device, case, kind, rng):
    for dtype in device.dtypes:
        a, layout, matrix, i, i_layout, indices = matrix_and_indices(rng, device, case, kind, dtype)
        got = download(device, device.take_rows(a, layout, i, i_layout))
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, matrix[indices].reshape(-1))


@pytest.mark.parametrize("case", MATRICES)
def test_add_rows(device, case, rng):
    """Each row of a view at an index, some of them at the same one."""
    size, layout = MATRICES[case]
    for dtype in device.dtypes:
        buffer = numbers(rng, size, dtype)
        matrix = elements(buffer, layout)
        count = matrix.shape[0]
        indices = rng.integers(0, 7, 2 * count + 1)
        a, i = upload(device, buffer), upload(device, indices.astype(np.float32))
        for i_layout in (((count,), (1,), 1), ((count,), (-2,), 2 * count), ((count,), (0,), 0)):
            got = download(device, device.add_rows(a, layout, i, i_layout, 7))
            want = added(matrix, elements(indices, i_layout), 7)
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, want.reshape(-1))


@pytest.mark.parametrize(
    ("count", "columns", "rows"), [(3000, 129, 50), (70000, 3, 9), (40, 5000, 300)]
)
def test_large_matrices(device, count, columns, rows, rng):
    """Beyond the sizes from which rows or columns are shared out among threads."""
    table = rng.standard_normal((rows, columns), dtype=np.float32)
    grad = rng.standard_normal((count, columns), dtype=np.float32)
    indices = rng.integers(0, rows, count)
    i = upload(device, indices.astype(np.float32))
    taken = device.take_rows(upload(device, table), (table.shape, (columns, 1), 0), i, None)
    np.testing.assert_array_equal(download(device, taken), table[indices].reshape(-1))
    out = device.add_rows(upload(device, grad), (grad.shape, (columns, 1), 0), i, None, rows)
    np.testing.assert_array_equal(download(device, out), added(grad, indices, rows).reshape(-1))


def test_rows_that_nothing_is_added_to_are_zero(device):
    """The memory of a freed array comes back with its numbers."""
    for _ in range(3):
        stale = device.allocate(8, "float32")
        device.fill(stale, math.nan)
        del stale
        i = upload(device, np.array([2], np.float32))
        out = device.add_rows(
            upload(device, np.ones(2, np.float32)), ((1, 2), (2, 1), 0), i, None, 4
        )
        np.testing.assert_array_equal(download(device, out), [0, 0, 0, 0, 1, 1, 0, 0])


def test_nothing_at_all(device):
    """No indices, no columns, no rows: results of these sizes, and no reads."""
    empty, i = upload(device, np.zeros(0, np.float32)), upload(device, np.zeros(3, np.float32))
    assert device.take_rows(empty, ((2, 0), (1, 1), 0), i, None).size == 0
    assert device.take_rows(empty, ((0, 4), (4, 1), 0), empty, None).size == 0
    assert device.add_rows(empty, ((3, 0), (1, 1), 0), i, None, 2).size == 0
    assert device.add_rows(empty, ((0, 4), (4, 1), 0), empty, None, 0).size == 0
    zeros = device.add_rows(empty, ((0, 4), (4, 1), 0), empty, None, 3)
    np.testing.assert_array_equal(download(device, zeros), np.zeros(12))


# --- what a compiled backend refuses ---

MATRIX = ((4, 6), (6, 1), 0)
BAD = [-1, -0.5, 1.5, 3.9999998, 4, 2**24, 1e30, -1e30, math.nan, math.inf, -math.inf]


@pytest.fixture(scope="module")
def backend(device):
    """A compiled device."""
    if device.name == "cpu_numpy":
        pytest.skip("cpu_numpy() relies on its caller")
    return device


@pytest.mark.parametrize("bad", BAD)
def test_an_index_that_is_no_row(backend, bad):
    """The first, in the middle or the last; negative zero is zero."""
    a = upload(backend, np.zeros(24, np.float32))
    for position in (0, 1, 3):
        values = np.array([0, 3, -0.0, 1], np.float32)
        i = upload(backend, values)
        backend.take_rows(a, MATRIX, i, None)
        backend.add_rows(a, MATRIX, i, None, 4)
        values[position] = bad
        i = upload(backend, values)
        with pytest.raises(
            IndexingError, match=r"\[take_rows\] index \S+ is no row of 4; .* whole"
        ):
            backend.take_rows(a, MATRIX, i, None)
        with pytest.raises(IndexingError, match=r"\[add_rows\] index \S+ is no row of 4; .* whole"):
            backend.add_rows(a, MATRIX, i, None, 4)


def test_no_row_in_an_empty_matrix(backend):
    i = upload(backend, np.zeros(1, np.float32))
    with pytest.raises(IndexingError, match="index 0 is no row of 0"):
        backend.take_rows(backend.Array(0), ((0, 6), (6, 1), 0), i, None)
    with pytest.raises(IndexingError, match="index 0 is no row of 0"):
        backend.add_rows(backend.Array(6), ((1, 6), (6, 1), 0), i, None, 0)


@pytest.mark.parametrize(
    ("a_layout", "i_layout", "message"),
    [
        (None, None, r"shapes \(24,\) and \(4,\); a matrix and a list"),
        (((2, 2, 6), (12, 6, 1), 0), None, r"shapes \(2, 2, 6\) and \(4,\)"),
        (MATRIX, ((2, 2), (2, 1), 0), r"shapes \(4, 6\) and \(2, 2\)"),
        (MATRIX, ((), (), 0), r"shapes \(4, 6\) and \(\)"),
        (((5, 6), (6, 1), 0), None, r"view touches elements 0\.\.29 of a buffer of 24"),
        (MATRIX, ((5,), (1,), 0), r"view touches elements 0\.\.4 of a buffer of 4"),
        (MATRIX, ((4,), (-1,), 2), r"view touches elements -1\.\.2 of a buffer of 4"),
    ],
)
def test_views_that_do_not_fit(backend, a_layout, i_layout, message):
    a, i = upload(backend, np.zeros(24, np.float32)), upload(backend, np.zeros(4, np.float32))
    with pytest.raises(ShapeError, match=rf"\[take_rows\] {message}"):
        backend.take_rows(a, a_layout, i, i_layout)
    with pytest.raises(ShapeError, match=rf"\[add_rows\] {message}"):
        backend.add_rows(a, a_layout, i, i_layout, 4)


def test_sizes_of_add_rows(backend):
    a, i = upload(backend, np.zeros(24, np.float32)), upload(backend, np.zeros(3, np.float32))
    with pytest.raises(ShapeError, match=r"\[add_rows\] 3 indices for 4 rows; each row needs one"):
        backend.add_rows(a, MATRIX, i, None, 4)
    for rows in (-1, 2**62):
        with pytest.raises(ShapeError, match=r"\[add_rows\] no matrix has the shape"):
            backend.add_rows(a, ((3, 6), (6, 1), 0), i, None, rows)


def test_a_refused_call_keeps_no_memory(backend):
    a, i = upload(backend, np.zeros(24, np.float32)), upload(backend, np.full(3, 9, np.float32))
    before = backend.memory_stats()["live_bytes"]
    for _ in range(20):
        with pytest.raises(IndexingError):
            backend.take_rows(a, MATRIX, i, None)
    assert backend.memory_stats()["live_bytes"] == before
