"""Convolution against plain loops: windows, fold, the op with its gradients, and the layer."""

import math

import numpy as np

from needle_course.testing import GradedTest, close, equal, graded, gradient_of

# (N, H, W, C_in), C_out, kernel, stride, padding
CASES = {
    "kernel_1": ((2, 4, 5, 3), 2, 1, 1, 0),
    "kernel_1_stride_2": ((1, 5, 4, 2), 3, 1, 2, 0),
    "kernel_2": ((1, 5, 4, 2), 3, 2, 1, 0),
    "kernel_2_stride_2": ((2, 6, 7, 2), 3, 2, 2, 1),
    "kernel_3": ((2, 5, 6, 3), 2, 3, 1, 0),
    "kernel_3_padding_1": ((1, 5, 4, 2), 4, 3, 1, 1),
    "kernel_3_padding_2": ((1, 4, 3, 1), 2, 3, 1, 2),
    "kernel_3_stride_2": ((2, 7, 6, 2), 3, 3, 2, 1),
    "kernel_3_stride_2_rest": ((1, 8, 6, 2), 3, 3, 2, 0),
    "kernel_3_stride_3": ((1, 9, 8, 2), 1, 3, 3, 1),
    "kernel_3_stride_3_padding_2": ((1, 7, 8, 1), 2, 3, 3, 2),
    "kernel_4": ((1, 6, 5, 2), 3, 4, 1, 2),
    "kernel_4_stride_3": ((2, 9, 8, 1), 2, 4, 3, 1),
    "padding_of_a_pixel": ((1, 3, 3, 2), 2, 1, 1, 2),
}


def random(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def padded(a, padding):
    return np.pad(a, ((0, 0), (padding, padding), (padding, padding), (0, 0)))


def positions(shape, kernel, stride, padding):
    """Return the output's height and width, and each output pixel with its window's slices."""
    high, wide = ((n + 2 * padding - kernel) // stride + 1 for n in shape[1:3])
    places = [
        (i, j, slice(i * stride, i * stride + kernel), slice(j * stride, j * stride + kernel))
        for i in range(high)
        for j in range(wide)
    ]
    return high, wide, places


def convolved(a, b, stride, padding):
    """Return the convolution, one output pixel after the other."""
    frame = padded(a, padding)
    high, wide, places = positions(a.shape, b.shape[0], stride, padding)
    out = np.zeros((a.shape[0], high, wide, b.shape[3]))
    for i, j, rows, columns in places:
        out[:, i, j] = np.tensordot(frame[:, rows, columns], b, 3)
    return out


def gradients(a, b, out_grad, stride, padding):
    """Return the gradients of `convolved`, one output pixel after the other."""
    frame = padded(a, padding).astype(np.float64)
    grad_frame, grad_b = np.zeros_like(frame), np.zeros(b.shape)
    for i, j, rows, columns in positions(a.shape, b.shape[0], stride, padding)[2]:
        grad_frame[:, rows, columns] += np.tensordot(out_grad[:, i, j], b, (1, 3))
        grad_b += np.tensordot(frame[:, rows, columns], out_grad[:, i, j], (0, 0))
    h, w = a.shape[1:3]
    return grad_frame[:, padding : padding + h, padding : padding + w], grad_b


def conv_test(name, shape, c_out, kernel, stride, padding):
    """Return the test of one size: the value and both gradients."""

    def inputs(rng):
        high, wide, _ = positions(shape, kernel, stride, padding)
        return {
            "a": random(rng, *shape),
            "b": random(rng, kernel, kernel, shape[3], c_out),
            "out_grad": random(rng, shape[0], high, wide, c_out),
        }

    def probe(ndl, inputs):
        a, b = ndl.Tensor(inputs["a"]), ndl.Tensor(inputs["b"])
        y = ndl.conv(a, b, stride=stride, padding=padding)
        y.backward(ndl.Tensor(inputs["out_grad"]))
        return {"value": y.numpy(), "grad_a": a.grad.numpy(), "grad_b": b.grad.numpy()}

    def check(inputs, outputs):
        a, b, out_grad = inputs["a"], inputs["b"], inputs["out_grad"]
        expected = convolved(a, b, stride, padding)
        close("the value", outputs["value"], expected, rtol=1e-4, atol=1e-4)
        grad_a, grad_b = gradients(a, b, out_grad, stride, padding)
        close("the gradient of the input", outputs["grad_a"], grad_a, rtol=1e-4, atol=1e-4)
        close("the gradient of the weight", outputs["grad_b"], grad_b, rtol=1e-4, atol=1e-4)

    doc = f"Images {shape}, kernel {kernel}, stride {stride}, padding {padding}."
    return GradedTest(f"hw4.conv::{name}", inputs, probe, check, doc)


TESTS = [conv_test(name, *case) for name, case in CASES.items()]


@graded("hw4.conv::numeric_gradients")
class NumericGradients:
    """The gradients against differences of the convolution itself."""

    def inputs(rng):
        return {
            "a": random(rng, 1, 5, 4, 2),
            "b": random(rng, 3, 3, 2, 2),
            "out_grad": random(rng, 1, 3, 2, 2),
        }

    def probe(ndl, inputs):
        a, b = ndl.Tensor(inputs["a"]), ndl.Tensor(inputs["b"])
        ndl.conv(a, b, stride=2, padding=1).backward(ndl.Tensor(inputs["out_grad"]))
        return {"grad_a": a.grad.numpy(), "grad_b": b.grad.numpy()}

    def check(inputs, outputs):
        grad_a, grad_b = gradient_of(
            lambda a, b: convolved(a, b, 2, 1), [inputs["a"], inputs["b"]], inputs["out_grad"]
        )
        close("the gradient of the input", outputs["grad_a"], grad_a, rtol=1e-4, atol=1e-4)
        close("the gradient of the weight", outputs["grad_b"], grad_b, rtol=1e-4, atol=1e-4)


@graded("hw4.conv::windows")
class Windows:
    """The strided view of all windows, of arrays that are compact and of some that are not."""

    def inputs(rng):
        return {"a": random(rng, 2, 6, 5, 3)}

    def probe(ndl, inputs):
        a = ndl.NDArray(inputs["a"])
        turned = a.permute((0, 2, 1, 3))
        windows = ndl.array_api.windows
        return {
            "plain": windows(a, (3, 3), (1, 1)).numpy(),
            "strided": windows(a, (2, 2), (2, 2)).numpy(),
            "uneven": windows(a, (3, 2), (2, 1)).numpy(),
            "turned": windows(turned, (2, 3), (1, 2)).numpy(),
        }

    def check(inputs, outputs):
        a = inputs["a"]
        for name, images, kernel, stride in (
            ("plain", a, (3, 3), (1, 1)),
            ("strided", a, (2, 2), (2, 2)),
            ("uneven", a, (3, 2), (2, 1)),
            ("turned", a.transpose(0, 2, 1, 3), (2, 3), (1, 2)),
        ):
            view = np.lib.stride_tricks.sliding_window_view(images, kernel, (1, 2))
            every = view[:, :: stride[0], :: stride[1]].transpose(0, 1, 2, 4, 5, 3)
            close(f"the windows {kernel} at stride {stride} ({name})", outputs[name], every)


@graded("hw4.conv::fold")
class FoldOfWindows:
    """Fold adds every window's elements to the pixels they were taken from."""

    def inputs(rng):
        return {"windows": random(rng, 2, 4, 3, 3, 3, 2)}

    def probe(ndl, inputs):
        fold = ndl.ops.ops_conv.Fold((2, 2), (1, 1), (2, 8, 5, 2))
        return {"image": fold(ndl.Tensor(inputs["windows"])).numpy()}

    def check(inputs, outputs):
        windows = inputs["windows"].astype(np.float64)
        frame = np.zeros((2, 10, 7, 2))
        for i in range(4):
            for j in range(3):
                frame[:, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] += windows[:, i, j]
        close("the image", outputs["image"], frame[:, 1:9, 1:6], rtol=1e-5, atol=1e-5)


@graded("hw4.conv::layer_parameters")
class LayerParameters:
    """nn.Conv draws the weight first, then the bias, and pads by half of the kernel."""

    def inputs(rng):
        return {"seed": int(rng.integers(10_000))}

    def probe(ndl, inputs):
        np.random.seed(inputs["seed"])
        layer = ndl.nn.Conv(2, 6, 3)
        following = np.random.rand()
        return {
            "weight": layer.weight.numpy(),
            "bias": layer.bias.numpy(),
            "following": following,
            "padding": layer.padding,
            "count": len(layer.parameters()),
            "no_bias": ndl.nn.Conv(2, 6, 3, bias=False).bias,
            "count_without": len(ndl.nn.Conv(2, 6, 3, bias=False).parameters()),
        }

    def check(inputs, outputs):
        numbers = np.random.RandomState(inputs["seed"])
        bound = math.sqrt(2) * math.sqrt(3 / (2 * 9))
        weight = numbers.rand(3, 3, 2, 6) * 2 * bound - bound
        close("the weight", outputs["weight"], weight, dtype="float32")
        bound = 1 / math.sqrt(2 * 9)
        bias = numbers.rand(6) * 2 * bound - bound
        close("the bias", outputs["bias"], bias, dtype="float32")
        close("the random number after the layer", outputs["following"], numbers.rand())
        equal("the padding", outputs["padding"], (1, 1))
        equal("the number of parameters", outputs["count"], 2)
        equal("the bias of a layer without one", outputs["no_bias"], None)
        equal("the number of parameters without bias", outputs["count_without"], 1)


def layer_test(name, shape, c_out, kernel, stride, bias):
    """Return the test of one layer: its value, and the gradients of input, weight and bias."""

    def inputs(rng):
        nhwc = (shape[0], shape[2], shape[3], shape[1])
        high, wide, _ = positions(nhwc, kernel, stride, kernel // 2)
        arrays = {
            "x": random(rng, *shape),
            "weight": random(rng, kernel, kernel, shape[1], c_out),
            "out_grad": random(rng, shape[0], c_out, high, wide),
        }
        return {**arrays, "bias": random(rng, c_out)} if bias else arrays

    def probe(ndl, inputs):
        layer = ndl.nn.Conv(shape[1], c_out, kernel, stride=stride, bias=bias)
        for key in ("weight", "bias"):
            if key in inputs:
                getattr(layer, key).data = ndl.Tensor(inputs[key], requires_grad=False)
        x = ndl.Tensor(inputs["x"])
        y = layer(x)
        y.backward(ndl.Tensor(inputs["out_grad"]))
        grads = {
            f"grad_{key}": getattr(layer, key).grad.numpy()
            for key in ("weight", "bias")
            if key in inputs
        }
        return {"value": y.numpy(), "grad_x": x.grad.numpy(), **grads}

    def check(inputs, outputs):
        x, weight = inputs["x"].transpose(0, 2, 3, 1), inputs["weight"]
        y = convolved(x, weight, stride, kernel // 2) + inputs.get("bias", 0)
        close("the value", outputs["value"], y.transpose(0, 3, 1, 2), rtol=1e-4, atol=1e-4)
        out_grad = inputs["out_grad"].transpose(0, 2, 3, 1)
        grad_x, grad_weight = gradients(x, weight, out_grad, stride, kernel // 2)
        expected = {"x": grad_x.transpose(0, 3, 1, 2), "weight": grad_weight}
        if bias:
            expected["bias"] = out_grad.sum(axis=(0, 1, 2))
        for key, grad in expected.items():
            close(f"the gradient of {key}", outputs[f"grad_{key}"], grad, rtol=1e-4, atol=1e-4)

    doc = f"nn.Conv on images {shape}, kernel {kernel}, stride {stride}, bias {bias}."
    return GradedTest(f"hw4.conv::{name}", inputs, probe, check, doc)


TESTS += [
    layer_test("layer", (2, 3, 5, 4), 2, 3, 1, True),
    layer_test("layer_without_bias", (1, 2, 6, 7), 3, 3, 2, False),
    layer_test("layer_stride_4", (1, 3, 8, 9), 2, 7, 4, True),
]
