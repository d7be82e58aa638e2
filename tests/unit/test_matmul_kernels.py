"""matmul, matmul_tiled and batched_matmul on every device."""

import math

import numpy as np
import pytest

from tests.kernel_reference import download, elements, numbers, output, upload

DEVICES = ("cpu", "cpu_numpy", "cuda", "cuda_checked")

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


@pytest.mark.parametrize("tiles", [(1, 2, 3), (1, 1, 2), (2, 1, 1), (8, 1, 16), (1, 1, 1)])
def test_matmul_tiled(device, tiles, rng):
    if not hasattr(device, "matmul_tiled"):
        pytest.skip(f"{device} has no matmul_tiled, which is optional")
    tile = device.__tile_size__
    m, n, p = (count * tile for count in tiles)

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
