"""hw2.logsumexp: values, shapes, gradients and stability of LogSumExp and LogSoftmax."""

import numpy as np

from needle_course.testing import GradedTest, close, equal, graded, gradient_of

# name: shape and axes
CASES = {
    "all_axes": ((3, 4), None),
    "rows": ((3, 4), (1,)),
    "columns": ((3, 4), (0,)),
    "one_number": ((2, 3, 4), 1),
    "two_axes": ((2, 3, 4), (0, 2)),
    "negative": ((2, 3, 4), (-1,)),
    "size_one_first": ((1, 3), (1,)),
    "size_one_between": ((3, 1, 2), (2,)),
    "three_axes": ((2, 3, 2), (0, 1, 2)),
}


def log_sum_exp(a, axes):
    """Return log(sum(exp(a))) over `axes`, in float64."""
    axes = tuple(range(a.ndim)) if axes is None else axes
    largest = a.max(axis=axes, keepdims=True)
    total = np.log(np.exp(a - largest).sum(axis=axes, keepdims=True)) + largest
    return total.squeeze(axis=axes)


def log_softmax(a):
    """Return the logarithm of the softmax of each row, in float64."""
    shifted = a - a.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def case_tests(name, shape, axes):
    """Return the tests of one shape: the values and the gradient."""

    def inputs(rng):
        a = rng.standard_normal(shape) * 2
        return {"a": a, "out_grad": rng.standard_normal(log_sum_exp(a, axes).shape)}

    def forward(ndl, inputs):
        return {"result": ndl.ops.logsumexp(ndl.Tensor(inputs["a"]), axes=axes).numpy()}

    def check_values(inputs, outputs):
        expected = log_sum_exp(inputs["a"], axes)
        close(f"logsumexp of shape {shape} over {axes}", outputs["result"], expected)

    def backward(ndl, inputs):
        a, out_grad = ndl.Tensor(inputs["a"]), ndl.Tensor(inputs["out_grad"])
        ndl.ops.logsumexp(a, axes=axes).backward(out_grad)
        return {"grad": a.grad.numpy(), "out_grad": out_grad.numpy()}

    def check_gradient(inputs, outputs):
        (expected,) = gradient_of(lambda a: log_sum_exp(a, axes), [inputs["a"]], inputs["out_grad"])
        what = f"the gradient of logsumexp of shape {shape} over {axes}"
        close(what, outputs["grad"], expected, a=inputs["a"])
        equal("out_grad after backward", outputs["out_grad"], inputs["out_grad"])

    values_doc = f"logsumexp of shape {shape} over axes {axes}."
    return [
        GradedTest(f"hw2.logsumexp::values_{name}", inputs, forward, check_values, values_doc),
        GradedTest(
            f"hw2.logsumexp::gradient_{name}",
            inputs,
            backward,
            check_gradient,
            f"The gradient of {values_doc}",
        ),
    ]


TESTS = [test for name, case in CASES.items() for test in case_tests(name, *case)]


@graded("hw2.logsumexp::large_inputs")
class LargeInputs:
    """Neither large nor very negative numbers overflow, forwards or backwards."""

    def inputs(rng):
        return {
            "a": np.array([[1e10, 1e10, 0], [-1e4, -1e4, -1e4], [1000, 1000, -1000]]),
            "out_grad": rng.standard_normal(3),
        }

    def probe(ndl, inputs):
        a = ndl.Tensor(inputs["a"])
        result = ndl.ops.logsumexp(a, axes=(1,))
        result.backward(ndl.Tensor(inputs["out_grad"]))
        return {"result": result.numpy(), "grad": a.grad.numpy()}

    def check(inputs, outputs):
        close("logsumexp", outputs["result"], log_sum_exp(inputs["a"], 1), rtol=1e-9)
        softmax = np.array([[0.5, 0.5, 0], [1 / 3] * 3, [0.5, 0.5, 0]])
        close("the gradient", outputs["grad"], softmax * inputs["out_grad"][:, None], rtol=1e-4)


@graded("hw2.logsumexp::logsoftmax_values")
class LogSoftmaxValues:
    """The logarithm of the softmax of each row."""

    def inputs(rng):
        return {"a": rng.standard_normal((4, 5)) * 3}

    def probe(ndl, inputs):
        return {"result": ndl.ops.logsoftmax(ndl.Tensor(inputs["a"])).numpy()}

    def check(inputs, outputs):
        close("logsoftmax", outputs["result"], log_softmax(inputs["a"]), a=inputs["a"])


@graded("hw2.logsumexp::logsoftmax_gradient")
class LogSoftmaxGradient:
    """The gradient of logsoftmax with a random out_grad."""

    def inputs(rng):
        return {"a": rng.standard_normal((3, 4)), "out_grad": rng.standard_normal((3, 4))}

    def probe(ndl, inputs):
        a, out_grad = ndl.Tensor(inputs["a"]), ndl.Tensor(inputs["out_grad"])
        ndl.ops.logsoftmax(a).backward(out_grad)
        return {"grad": a.grad.numpy(), "out_grad": out_grad.numpy()}

    def check(inputs, outputs):
        (expected,) = gradient_of(log_softmax, [inputs["a"]], inputs["out_grad"])
        close("the gradient of logsoftmax", outputs["grad"], expected, a=inputs["a"])
        equal("out_grad after backward", outputs["out_grad"], inputs["out_grad"])


@graded("hw2.logsumexp::logsoftmax_large_inputs")
class LogSoftmaxLargeInputs:
    """Logits of 1e5 and rows of equal ones stay finite, forwards or backwards."""

    def inputs(rng):
        a = np.array([[1e5, 0, -1e5], [-249.9, 378.1, -424.1], [1e4, 1e4, 1e4]])
        return {"a": a, "out_grad": rng.standard_normal((3, 3))}

    def probe(ndl, inputs):
        a = ndl.Tensor(inputs["a"])
        result = ndl.ops.logsoftmax(a)
        result.backward(ndl.Tensor(inputs["out_grad"]))
        return {"result": result.numpy(), "grad": a.grad.numpy()}

    def check(inputs, outputs):
        expected = log_softmax(inputs["a"])
        close("logsoftmax", outputs["result"], expected, rtol=1e-9)
        g = inputs["out_grad"]
        close("the gradient", outputs["grad"], g - np.exp(expected) * g.sum(1, keepdims=True))


@graded("hw2.logsumexp::float32")
class Float32:
    """float32 in, float32 out, for both results and gradients."""

    def inputs(rng):
        return {"a": rng.standard_normal((2, 3)).astype(np.float32)}

    def probe(ndl, inputs):
        outputs = {}
        for name in ("logsumexp", "logsoftmax"):
            a = ndl.Tensor(inputs["a"])
            result = getattr(ndl.ops, name)(a)
            result.backward()
            outputs[name] = (result.numpy(), a.grad.numpy())
        return outputs

    def check(inputs, outputs):
        a = inputs["a"].astype(np.float64)
        expected = {"logsumexp": log_sum_exp(a, None), "logsoftmax": log_softmax(a)}
        for name, (result, grad) in outputs.items():
            close(name, result, expected[name], atol=1e-5, dtype="float32")
            equal(f"the dtype of the gradient of {name}", str(grad.dtype), "float32")
