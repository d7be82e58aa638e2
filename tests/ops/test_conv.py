"""Convolution: every size, kernel, stride and padding of a grid against loops in numpy, gradients
included; then what it refuses.
"""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from needle import ops
from needle.autograd import Tensor
from needle.backend_selection import BACKEND, cpu_numpy
from needle.errors import DeviceError, ShapeError
from tests.gradcheck import check_gradients, check_values, constant64, tensor64
from tests.image_reference import np_conv, np_conv_gradients, pair
from tests.op_table import CONV

ROWS = [row for row in CONV if row.op == "conv"]


def dtype_of(device):
    """Return the widest type of a device: float64 leaves no room for a near miss."""
    return "float64" if BACKEND == "np" or device == cpu_numpy() else "float32"


def check(device, rng, shape, weight_shape, stride, padding):
    """Compare value and gradients with the loops, for a random out_grad."""
    arrays = rng.standard_normal(shape), rng.standard_normal(weight_shape)
    dtype = dtype_of(device)
    a, b = (Tensor(x, device=device, dtype=dtype) for x in arrays)
    y = ops.conv(a, b, stride=stride, padding=padding)
    expected = np_conv(*arrays, stride, padding)
    out_grad = rng.standard_normal(expected.shape)
    y.backward(Tensor(out_grad, device=device, dtype=dtype))
    wanted = (expected, *np_conv_gradients(*arrays, out_grad, stride, padding))
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    for what, got, value in zip(
        ("value", "input", "weight"), (y, a.grad, b.grad), wanted, strict=True
    ):
        assert got.shape == value.shape and got.device == device and got.dtype == dtype
        np.testing.assert_allclose(
            got.numpy(),
            value,
            rtol=tolerance,
            atol=tolerance,
            err_msg=f"{what}: {shape} * {weight_shape}, stride {stride}, padding {padding}",
        )


@pytest.mark.parametrize("padding", [0, 1, 2, 4])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_every_square_case(device, rng, kernel, stride, padding):
    """Remainders of the stride and paddings beyond the kernel's reach are among them."""
    sizes = [size for size in (1, 2, 3, 4, 5, 7) if size + 2 * padding >= kernel]
    for size in sizes:
        check(device, rng, (2, size, size, 2), (kernel, kernel, 2, 3), stride, padding)


PAIRS = [(1, 2), (2, 1), (3, 2)]


@pytest.mark.parametrize("kernel", [*PAIRS, (2, 2)], ids=str)
def test_every_rectangular_case(device, rng, kernel):
    paddings = [*PAIRS, (0, 3), (0, 0)]
    for stride, padding in itertools.product([*PAIRS, (1, 1)], paddings):
        check(device, rng, (2, 4, 5, 2), (*kernel, 2, 2), stride, padding)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("batch, c_in, c_out", [(1, 1, 1), (1, 3, 2), (3, 1, 2), (2, 3, 1)])
def test_one_image_and_one_channel(device, rng, batch, c_in, c_out, stride):
    check(device, rng, (batch, 5, 4, c_in), (3, 3, c_in, c_out), stride, 1)


@given(data=st.data())
def test_any_case(device, data):
    draw = data.draw
    kernel, stride = (
        draw(st.tuples(st.integers(1, 4), st.integers(1, 4)), name) for name in ("kernel", "stride")
    )
    padding = draw(st.tuples(st.integers(0, 5), st.integers(0, 5)), "padding")
    size = [
        draw(st.integers(max(1, k - 2 * p), 7), "size")
        for k, p in zip(kernel, padding, strict=True)
    ]
    n, c_in, c_out = (draw(st.integers(1, 3), name) for name in ("batch", "c_in", "c_out"))
    rng = np.random.default_rng(draw(st.integers(0, 1000), "seed"))
    check(device, rng, (n, *size, c_in), (*kernel, c_in, c_out), stride, padding)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_values_in_float64(row, rng):
    check_values(row.call, row.reference, *row.inputs(rng))


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_gradients_by_differences(row, rng):
    check_gradients(row.call, *row.inputs(rng), rng=rng)


@pytest.mark.parametrize(
    "size, kernel, stride, padding, unseen",
    [((7, 6), 3, 2, 0, (7, 5)), ((5, 5), 1, 3, 0, (4, 4)), ((6, 6), (2, 4), 4, 1, (5, 6))],
)
def test_pixels_that_no_window_covers_get_no_gradient(
    device, rng, size, kernel, stride, padding, unseen
):
    a = Tensor(rng.standard_normal((1, *size, 2)), device=device, dtype="float32")
    b = Tensor(np.ones((*pair(kernel), 2, 1)), device=device, dtype="float32")
    ops.conv(a, b, stride, padding).sum().backward()
    grad = a.grad.numpy()
    assert not grad[:, unseen[0] :].any() and not grad[:, :, unseen[1] :].any()
    assert grad[:, 0, 0].all()


def test_a_constant_operand_costs_no_gradient(rng):
    a, b = rng.standard_normal((1, 3, 3, 2)), rng.standard_normal((2, 2, 2, 1))
    node = ops.conv(tensor64(a), constant64(b))
    grad_a, grad_b = node.op.gradient(constant64(np.ones(node.shape)), node)
    assert grad_a.shape == a.shape and grad_b is None
    node = ops.conv(constant64(a), tensor64(b))
    grad_a, grad_b = node.op.gradient(constant64(np.ones(node.shape)), node)
    assert grad_a is None and grad_b.shape == b.shape


def test_the_function_pads_by_1_and_the_class_by_0(rng):
    a, b = constant64(rng.standard_normal((1, 4, 4, 2))), constant64(np.ones((3, 3, 2, 1)))
    assert ops.conv(a, b).shape == (1, 4, 4, 1)
    assert ops.Conv()(a, b).shape == (1, 2, 2, 1)
    np.testing.assert_array_equal(
        ops.Conv(2, (1, 0))(a, b).numpy(), ops.conv(a, b, stride=2, padding=(1, 0)).numpy()
    )


def test_views_as_inputs(device, rng):
    """Images in NCHW and a weight in PyTorch's order, permuted, without a copy in between."""
    a, b = rng.standard_normal((2, 3, 5, 4)), rng.standard_normal((2, 3, 3, 2))
    images = Tensor(a, device=device, dtype="float32").permute((0, 2, 3, 1))
    weight = Tensor(b, device=device, dtype="float32").permute((2, 3, 1, 0))
    for stride, padding in ((1, 0), (2, 1)):
        y = ops.conv(images[:, ::-1], weight, stride, padding)
        expected = np_conv(
            a.transpose(0, 2, 3, 1)[:, ::-1], b.transpose(2, 3, 1, 0), stride, padding
        )
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_padding_is_zero_whatever_the_memory_held(device, rng):
    a = Tensor(np.ones((1, 2, 2, 1)), device=device, dtype="float32")
    b = Tensor(np.ones((3, 3, 1, 1)), device=device, dtype="float32")
    for _ in range(5):
        for size in (4, 9, 16, 25, 36, 81):
            Tensor(np.full(size, 123.0), device=device, dtype="float32")
        y = ops.conv(a, b, 1, 2)
        y.backward()
        assert y.numpy().sum() == 36 and y.numpy().max() == 4
        np.testing.assert_array_equal(a.grad.numpy(), np.full((1, 2, 2, 1), 9))


def test_an_empty_batch(device):
    a = Tensor(np.ones((0, 3, 3, 2)), device=device, dtype="float32")
    b = Tensor(np.ones((2, 2, 2, 4)), device=device, dtype="float32")
    for stride in (1, 2):
        y = ops.conv(a, b, stride)
        assert y.shape == (0, 4 // stride, 4 // stride, 4)
        y.sum().backward()
        assert a.grad.shape == a.shape and not b.grad.numpy().any()


REFUSED = {
    "rank of the input": ((3, 3, 1), (2, 2, 1, 1), {}, "input (3, 3, 1) and weight (2, 2, 1, 1)"),
    "rank of the weight": ((1, 3, 3, 1), (2, 2), {}, "give (N, H, W, C_in) and (KH, KW, C_in,"),
    "channels": (
        (1, 3, 3, 4),
        (2, 2, 3, 1),
        {},
        "input (1, 3, 3, 4) has 4 channels, weight (2, 2, 3, 1) takes 3",
    ),
    "stride 0": (
        (1, 3, 3, 1),
        (2, 2, 1, 1),
        {"stride": (1, 0)},
        "kernel size (2, 2), stride (1, 0), padding (1, 1); the first two begin at 1",
    ),
    "padding -1": ((1, 3, 3, 1), (2, 2, 1, 1), {"padding": -1}, "padding (-1, -1); the first two"),
    "no kernel": ((1, 3, 3, 1), (0, 2, 1, 1), {}, "kernel size (0, 2), stride (1, 1)"),
    "no output": (
        (1, 3, 9, 1),
        (6, 2, 1, 1),
        {},
        "input (1, 3, 9, 1) with padding (1, 1) is smaller than the kernel (6, 2); there is no",
    ),
    "a stride of 3 numbers": (
        (1, 3, 3, 1),
        (2, 2, 1, 1),
        {"stride": (1, 2, 3)},
        "stride (1, 2, 3) is neither an int nor an (h, w) pair",
    ),
    "half a pixel": ((1, 3, 3, 1), (2, 2, 1, 1), {"padding": 0.5}, "padding 0.5 is neither an int"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_refuses(device, name):
    shape, weight_shape, settings, message = REFUSED[name]
    a, b = (Tensor(np.ones(s), device=device, dtype="float32") for s in (shape, weight_shape))
    with pytest.raises(ShapeError, match=r"^\[conv\] .*" + re.escape(message)):
        ops.conv(a, b, **settings)


@pytest.mark.skipif(BACKEND == "np", reason="NEEDLE_BACKEND=np has the one device cpu()")
def test_operands_on_two_devices(device):
    other = "cpu" if device == cpu_numpy() else "cpu_numpy"
    a = Tensor(np.ones((1, 3, 3, 1)), device=device)
    b = Tensor(np.ones((2, 2, 1, 1)), device=other)
    with pytest.raises(DeviceError, match=r"operands on \w+\(\) and \w+\(\)"):
        ops.conv(a, b)
