"""hw1.backward: the gradient of each op for a random out_grad, against numeric gradients.

Each test calls the op's own `gradient`: no other answer than hw1.forward is needed.
"""

import numpy as np

from needle_course.testing import GradedTest, close, equal, fail, graded, gradient_of


def gradients(ndl, ours, arrays, out_grad):
    """Return what the op that made `ours(ndl, *tensors)` says its gradients are, and what became
    of the arrays that it was given.
    """
    tensors = [ndl.Tensor(array) for array in arrays]
    node = ours(ndl, *tensors)
    weights = ndl.Tensor(out_grad, requires_grad=False)
    parts = node.op.gradient_as_tuple(weights, node)
    return {
        "gradients": [part.numpy() for part in parts],
        "out_grad": weights.numpy(),
        "inputs": [tensor.numpy() for tensor in tensors],
    }


def backward_test(name, doc, shapes, ours, theirs, low=None):
    """Return a test of one op's gradient.

    shapes: of the inputs; drawn from a normal distribution, or from `low` to `low` + 1.5.
    """

    def inputs(rng):
        def draw(shape):
            return rng.standard_normal(shape) if low is None else rng.uniform(low, low + 1.5, shape)

        arrays = {letter: draw(shape) for letter, shape in zip("ab", shapes, strict=False)}
        return {**arrays, "out_grad": rng.standard_normal(np.shape(theirs(*arrays.values())))}

    def probe(ndl, given):
        *arrays, out_grad = given.values()
        return gradients(ndl, ours, arrays, out_grad)

    def check(given, outputs):
        *arrays, out_grad = given.values()
        expected = gradient_of(theirs, arrays, out_grad)
        equal("the number of gradients", len(outputs["gradients"]), len(arrays))
        for letter, got, want in zip("ab", outputs["gradients"], expected, strict=False):
            close(f"gradient of {letter}", got, want, **given)
        close("out_grad afterwards", outputs["out_grad"], out_grad, rtol=0, atol=0)
        for letter, after, before in zip("ab", outputs["inputs"], arrays, strict=False):
            close(f"{letter} afterwards", after, before, rtol=0, atol=0)

    return GradedTest(f"hw1.backward::{name}", inputs, probe, check, doc)


TESTS = [
    backward_test(
        "divide_scalar",
        "The gradient of a / scalar.",
        [(3, 4)],
        lambda ndl, a: ndl.divide_scalar(a, -2.5),
        lambda a: a / -2.5,
    ),
    *(
        backward_test(
            f"power_scalar_{name}",
            f"The gradient of a ** {n}.",
            [(3, 4)],
            lambda ndl, a, n=n: ndl.power_scalar(a, n),
            lambda a, n=n: a**n,
            low=0.5,
        )
        for name, n in {"cubed": 3, "fraction": 1.5, "one": 1, "zero": 0, "negative": -2}.items()
    ),
    backward_test(
        "divide",
        "Both gradients of a / b.",
        [(3, 4), (3, 4)],
        lambda ndl, a, b: ndl.divide(a, b),
        lambda a, b: a / b,
        low=0.5,
    ),
    backward_test(
        "divide_negative",
        "Both gradients of a / b for negative b.",
        [(5,), (5,)],
        lambda ndl, a, b: ndl.divide(a, b),
        lambda a, b: a / b,
        low=-2,
    ),
    backward_test(
        "power",
        "Both gradients of a ** b for positive a.",
        [(3, 4), (3, 4)],
        lambda ndl, a, b: ndl.power(a, b),
        lambda a, b: a**b,
        low=0.5,
    ),
    backward_test(
        "negate", "The gradient of -a.", [(3, 4)], lambda ndl, a: ndl.negate(a), lambda a: -a
    ),
    backward_test(
        "log", "The gradient of log(a).", [(3, 4)], lambda ndl, a: ndl.log(a), np.log, low=0.5
    ),
    backward_test("exp", "The gradient of exp(a).", [(3, 4)], lambda ndl, a: ndl.exp(a), np.exp),
    *(
        backward_test(
            f"transpose_{name}",
            f"The gradient of transpose with axes={axes}.",
            [(2, 3, 4)],
            lambda ndl, a, axes=axes: ndl.transpose(a, axes),
            lambda a, axes=axes: np.swapaxes(a, *(axes or (-1, -2))),
        )
        for name, axes in {"last_two": None, "first_last": (0, 2), "negative": (-2, 0)}.items()
    ),
    backward_test(
        "reshape",
        "The gradient of reshape.",
        [(2, 3, 4)],
        lambda ndl, a: ndl.reshape(a, (4, 6)),
        lambda a: a.reshape(4, 6),
    ),
    *(
        backward_test(
            f"broadcast_to_{name}",
            f"The gradient of broadcasting {shape} to {target}.",
            [shape],
            lambda ndl, a, target=target: ndl.broadcast_to(a, target),
            lambda a, target=target: np.broadcast_to(a, target),
        )
        for name, shape, target in [
            ("column", (3, 1), (3, 4)),
            ("row", (1, 3), (4, 3)),
            ("added_axis", (3,), (4, 3)),
            ("added_and_stretched", (3, 1), (2, 3, 4)),
            ("both_stretched", (1, 1), (3, 3)),
            ("number", (), (2, 3)),
            ("inner_axis", (2, 1, 3), (2, 4, 3)),
        ]
    ),
    *(
        backward_test(
            f"summation_{name}",
            f"The gradient of the sum with axes={axes} and keepdims={keepdims}.",
            [(2, 3, 4)],
            lambda ndl, a, axes=axes, keepdims=keepdims: ndl.summation(a, axes, keepdims),
            lambda a, axes=axes, keepdims=keepdims: a.sum(axis=axes, keepdims=keepdims),
        )
        for name, axes, keepdims in [
            ("all", None, False),
            ("first", 0, False),
            ("middle", (1,), False),
            ("two_axes", (0, 2), False),
            ("negative", -1, False),
            ("keepdims", (1,), True),
        ]
    ),
    *(
        backward_test(
            f"matmul_{name}",
            f"Both gradients of {left} @ {right}.",
            [left, right],
            lambda ndl, a, b: ndl.matmul(a, b),
            lambda a, b: a @ b,
        )
        for name, left, right in [
            ("matrices", (3, 4), (4, 2)),
            ("square", (3, 3), (3, 3)),
            ("batches", (2, 3, 4), (2, 4, 2)),
            ("matrix_on_the_right", (2, 2, 3, 4), (4, 2)),
            ("matrix_on_the_left", (3, 4), (2, 4, 2)),
            ("stretched_batch", (1, 3, 4), (2, 4, 2)),
        ]
    ),
]


@graded("hw1.backward::relu")
class ReLU:
    """The gradient of relu: out_grad where a > 0, else 0, also at a = 0."""

    def inputs(rng):
        a = rng.standard_normal((4, 5)) * (rng.random((4, 5)) < 0.7)
        return {"a": a, "out_grad": rng.standard_normal((4, 5))}

    def probe(ndl, inputs):
        return gradients(ndl, lambda ndl, a: ndl.relu(a), [inputs["a"]], inputs["out_grad"])

    def check(inputs, outputs):
        expected = inputs["out_grad"] * (inputs["a"] > 0)
        close("gradient of a", outputs["gradients"][0], expected, **inputs)
        close("out_grad afterwards", outputs["out_grad"], inputs["out_grad"], rtol=0, atol=0)
        close("a afterwards", outputs["inputs"][0], inputs["a"], rtol=0, atol=0)


@graded("hw1.backward::power_scalar_at_zero")
class PowerScalarAtZero:
    """At a = 0 the gradient of a ** n is n * a ** (n - 1) for n = 1, 2, 3, and 0 for n = 0."""

    def inputs(rng):
        return {"a": np.array([0.0, 1.0, -2.0]), "out_grad": rng.standard_normal(3)}

    def probe(ndl, inputs):
        return {
            str(n): gradients(
                ndl, lambda ndl, a, n=n: ndl.power_scalar(a, n), [inputs["a"]], inputs["out_grad"]
            )["gradients"]
            for n in range(4)
        }

    def check(inputs, outputs):
        a, out_grad = inputs["a"], inputs["out_grad"]
        close("gradient of a ** 0", outputs["0"][0], np.zeros(3))
        for n in (1, 2, 3):
            close(f"gradient of a ** {n}", outputs[str(n)][0], out_grad * n * a ** (n - 1))


@graded("hw1.backward::constants")
class Constants:
    """Beside a constant, the other input's gradient is right; the constant's own may be None."""

    def inputs(rng):
        return {
            "a": rng.uniform(0.5, 2, (3, 3)),
            "b": rng.uniform(0.5, 2, (3, 3)),
            "out_grad": rng.standard_normal((3, 3)),
        }

    def probe(ndl, inputs):
        out_grad = ndl.Tensor(inputs["out_grad"], requires_grad=False)
        found = {}
        for name in ("divide", "power", "matmul"):
            for constant in (0, 1):
                a = ndl.Tensor(inputs["a"], requires_grad=constant != 0)
                b = ndl.Tensor(inputs["b"], requires_grad=constant != 1)
                node = getattr(ndl, name)(a, b)
                parts = node.op.gradient_as_tuple(out_grad, node)
                found[f"{name} {'ba'[constant]}"] = parts[1 - constant].numpy()
        return found

    def check(inputs, outputs):
        functions = {"divide": np.divide, "power": np.power, "matmul": np.matmul}
        for name, function in functions.items():
            arrays = [inputs["a"], inputs["b"]]
            for letter, want in zip(
                "ab", gradient_of(function, arrays, inputs["out_grad"]), strict=True
            ):
                close(f"gradient of {letter} in {name}", outputs[f"{name} {letter}"], want)


RECORDED = {
    "divide_scalar": lambda ndl, a: a / 2,
    "power_scalar": lambda ndl, a: a**3,
    "divide": lambda ndl, a: a / a,
    "power": lambda ndl, a: a**a,
    "negate": lambda ndl, a: -a,
    "log": lambda ndl, a: ndl.log(a),
    "exp": lambda ndl, a: ndl.exp(a),
    "relu": lambda ndl, a: ndl.relu(a),
    "transpose": lambda ndl, a: a.transpose(),
    "reshape": lambda ndl, a: a.reshape((9,)),
    "broadcast_to": lambda ndl, a: a.broadcast_to((2, 3, 3)),
    "summation": lambda ndl, a: a.sum(0),
    "matmul": lambda ndl, a: a @ a,
}


@graded("hw1.backward::made_of_tensor_ops")
class MadeOfTensorOps:
    """Gradients are made with Tensor ops: they remember the out_grad that they came from."""

    def inputs(rng):
        return {"a": rng.uniform(0.5, 2, (3, 3))}

    def probe(ndl, inputs):
        forgetful = []
        for name, ours in RECORDED.items():
            node = ours(ndl, ndl.Tensor(inputs["a"]))
            out_grad = ndl.Tensor(np.ones(node.shape))
            parts = node.op.gradient_as_tuple(out_grad, node)
            if not all(isinstance(part, ndl.Tensor) and part.requires_grad for part in parts):
                forgetful.append(name)
        return {"forgetful": forgetful}

    def check(inputs, outputs):
        if outputs["forgetful"]:
            fail("gradients that forget their graph: " + ", ".join(outputs["forgetful"]))


@graded("hw1.backward::float32")
class Float32:
    """The gradients of float32 Tensors are float32."""

    def inputs(rng):
        return {"a": rng.uniform(0.5, 2, (3, 3)).astype(np.float32)}

    def probe(ndl, inputs):
        wider = []
        for name, ours in RECORDED.items():
            node = ours(ndl, ndl.Tensor(inputs["a"]))
            out_grad = ndl.Tensor(np.ones(node.shape, np.float32), requires_grad=False)
            parts = node.op.gradient_as_tuple(out_grad, node)
            if any(str(part.dtype) != "float32" for part in parts):
                wider.append(name)
        return {"wider": wider}

    def check(inputs, outputs):
        if outputs["wider"]:
            fail("gradients that are not float32: " + ", ".join(outputs["wider"]))
