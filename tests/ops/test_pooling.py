"""Pooling: grids against loops in numpy, where the gradient of a maximum goes, what is refused."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from needle import ops
from needle.autograd import Tensor
from needle.backend_selection import BACKEND, cpu_numpy
from needle.errors import ShapeError
from tests.gradcheck import check_gradients, check_values
from tests.image_reference import np_avg_pool, np_max_pool, pair, patches
from tests.op_table import CONV

ROWS = [row for row in CONV if row.op.endswith("_pool")]
POOLS = {"max_pool": (ops.max_pool, np_max_pool), "avg_pool": (ops.avg_pool, np_avg_pool)}


def np_pool_gradient(name, a, out_grad, kernel, stride, padding):
    """Return the gradient of the input: to the first maximum, or an even share to all."""
    (kh, kw), (sh, sw), (ph, pw) = pair(kernel), pair(stride), pair(padding)
    n, h, w, c = a.shape
    grad = np.zeros((n, h + 2 * ph, w + 2 * pw, c))
    for (i, j), patch in patches(a, kernel, stride, padding, fill=-np.inf):
        flat = patch.reshape(n, kh * kw, c)
        chosen = np.arange(kh * kw)[:, None] == flat.argmax(1)[:, None]  # argmax takes the first
        weight = chosen if name == "max_pool" else np.full(flat.shape, 1 / (kh * kw))
        part = (weight * out_grad[:, i, j][:, None]).reshape(patch.shape)
        grad[:, i * sh : i * sh + kh, j * sw : j * sw + kw] += part
    return grad[:, ph : ph + h, pw : pw + w]


def check(device, rng, name, a, kernel, stride, padding):
    """Compare value and gradient with the loops, for a random out_grad."""
    function, reference = POOLS[name]
    dtype = "float64" if BACKEND == "np" or device == cpu_numpy() else "float32"
    x = Tensor(a, device=device, dtype=dtype)
    y = function(x, kernel, stride, padding)
    expected = reference(a, kernel, stride, padding)
    out_grad = rng.standard_normal(expected.shape)
    y.backward(Tensor(out_grad, device=device, dtype=dtype))
    stride = kernel if stride is None else stride
    grad = np_pool_gradient(name, a, out_grad, kernel, stride, padding)
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    for got, value in ((y, expected), (x.grad, grad)):
        assert got.shape == value.shape and got.device == device and got.dtype == dtype
        message = f"{a.shape}, kernel {kernel}, stride {stride}, padding {padding}"
        np.testing.assert_allclose(
            got.numpy(), value, rtol=tolerance, atol=tolerance, err_msg=message
        )


@pytest.mark.parametrize("stride", [None, 1, 2, 4, (1, 3)])
@pytest.mark.parametrize("kernel", [1, 2, 3, 4, (2, 3), (4, 1)])
@pytest.mark.parametrize("name", POOLS)
def test_every_case(device, rng, name, kernel, stride):
    kh, kw = pair(kernel)
    for padding in {(0, 0), (kh // 2, kw // 2), (0, kw // 2)}:
        for size in ((1, 1), (3, 4), (5, 5), (7, 4)):
            if all(n + 2 * p >= k for n, p, k in zip(size, padding, (kh, kw), strict=True)):
                # Few different values, so that many tie.
                a = rng.integers(-2, 2, (2, *size, 2)).astype(float)
                check(device, rng, name, a, kernel, stride, padding)


@given(data=st.data())
@pytest.mark.parametrize("name", POOLS)
def test_any_case(device, data, name):
    draw = data.draw
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)), "kernel")
    padding = tuple(draw(st.integers(0, k // 2), "padding") for k in kernel)
    size = [
        draw(st.integers(max(1, k - 2 * p), 7), "size")
        for k, p in zip(kernel, padding, strict=True)
    ]
    stride = draw(st.none() | st.integers(1, 4) | st.tuples(st.integers(1, 4), st.integers(1, 4)))
    rng = np.random.default_rng(draw(st.integers(0, 1000), "seed"))
    check(device, rng, name, rng.standard_normal((2, *size, 2)), kernel, stride, padding)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_values_in_float64(row, rng):
    check_values(row.call, row.reference, *row.inputs(rng))


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_gradients_by_differences(row, rng):
    check_gradients(row.call, *row.inputs(rng), rng=rng)


def image(rows, device):
    """Return one image of one channel."""
    return Tensor(np.array(rows)[None, :, :, None], device=device, dtype="float32")


def test_the_first_of_equal_maxima_gets_the_gradient(device):
    x = image([[5.0, 1.0], [5.0, 5.0]], device)
    ops.max_pool(x, 2).backward()
    np.testing.assert_array_equal(x.grad.numpy()[0, :, :, 0], [[1, 0], [0, 0]])


def test_windows_that_share_their_maximum_add_up(device):
    x = image([[0.0, 1.0, 2.0], [3.0, 9.0, 4.0], [5.0, 6.0, 7.0]], device)
    y = ops.max_pool(x, 2, stride=1)
    np.testing.assert_array_equal(y.numpy(), np.full((1, 2, 2, 1), 9))
    y.backward(image([[1.0, 2.0], [3.0, 4.0]], device))
    np.testing.assert_array_equal(x.grad.numpy()[0, :, :, 0], [[0, 0, 0], [0, 10, 0], [0, 0, 0]])


def test_padding_is_less_than_any_number_and_counts_as_zero(device):
    x = image([[-1.0, -2.0], [-3.0, -6.0]], device)
    maximum, mean = (pool(x, 2, 2, 1).numpy()[0, :, :, 0] for pool in (ops.max_pool, ops.avg_pool))
    np.testing.assert_array_equal(maximum, [[-1, -2], [-3, -6]])
    np.testing.assert_array_equal(mean, [[-0.25, -0.5], [-0.75, -1.5]])


def test_a_max_pool_passes_nan_and_infinity_on(device):
    x = image([[1.0, np.nan, np.inf, 0.0], [2.0, 3.0, 4.0, -np.inf]], device)
    np.testing.assert_array_equal(ops.max_pool(x, 2).numpy()[0, :, :, 0], [[np.nan, np.inf]])


@pytest.mark.parametrize("name", POOLS)
def test_rows_that_the_stride_leaves_over_get_no_gradient(device, rng, name):
    x = Tensor(rng.standard_normal((1, 5, 7, 2)), device=device, dtype="float32")
    POOLS[name][0](x, 2, 3).sum().backward()
    grad = x.grad.numpy()
    assert not grad[:, 2].any() and not grad[:, :, [2, 5, 6]].any()
    assert grad.sum() == pytest.approx(2 * 2 * 2, rel=1e-5)


REFUSED = {
    "rank": ((3, 3, 1), (2,), "input (3, 3, 1) is not (N, H, W, C)"),
    "kernel 0": ((1, 3, 3, 1), (0,), "kernel size (0, 0), stride (0, 0), padding (0, 0)"),
    "stride 0": ((1, 3, 3, 1), (2, 0), "stride (0, 0), padding (0, 0); the first two begin at 1"),
    "padding -1": ((1, 3, 3, 1), (2, 2, -1), "padding (-1, -1); the first two begin at 1"),
    "much padding": ((1, 9, 9, 1), ((2, 3), 1, (1, 2)), "padding (1, 2) is more than half of the"),
    "no output": (
        (1, 1, 3, 1),
        ((4, 2), 1, 1),
        "input (1, 1, 3, 1) with padding (1, 1) is smaller than the kernel (4, 2)",
    ),
    "a word": ((1, 3, 3, 1), ("ab",), "kernel size 'ab' is neither an int nor an (h, w) pair"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("name", POOLS)
def test_what_it_refuses(device, name, case):
    shape, settings, message = REFUSED[case]
    x = Tensor(np.ones(shape), device=device, dtype="float32")
    with pytest.raises(ShapeError, match=rf"^\[{name}\] .*" + re.escape(message)):
        POOLS[name][0](x, *settings)
