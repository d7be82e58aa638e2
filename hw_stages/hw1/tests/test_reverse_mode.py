"""hw1.reverse_mode: backward() through whole graphs, against numeric gradients and formulas."""

import numpy as np

from needle_course.testing import GradedTest, close, equal, fail, graded, gradient_of


def graph_test(name, doc, shapes, ours, theirs):
    """Return a test of `ours(ndl, *tensors).backward(out_grad)` for inputs between 0.5 and 2."""

    def inputs(rng):
        arrays = {
            letter: rng.uniform(0.5, 2, shape) for letter, shape in zip("abc", shapes, strict=False)
        }
        return {**arrays, "out_grad": rng.standard_normal(np.shape(theirs(*arrays.values())))}

    def probe(ndl, given):
        *arrays, out_grad = given.values()
        tensors = [ndl.Tensor(array) for array in arrays]
        ours(ndl, *tensors).backward(ndl.Tensor(out_grad, requires_grad=False))
        return {"gradients": [tensor.grad.numpy() for tensor in tensors]}

    def check(given, outputs):
        *arrays, out_grad = given.values()
        expected = gradient_of(theirs, arrays, out_grad)
        for letter, got, want in zip("abc", outputs["gradients"], expected, strict=False):
            close(f"gradient of {letter}", got, want, rtol=1e-4, **given)

    return GradedTest(f"hw1.reverse_mode::{name}", inputs, probe, check, doc)


def power_chain(a):
    for _ in range(4):
        a = a * a
    return a


TESTS = [
    graph_test(
        "chain",
        "Ops one after the other.",
        [(3, 4)],
        lambda ndl, a: ndl.exp(ndl.log(a * 3 + 1) / 2),
        lambda a: np.exp(np.log(a * 3 + 1) / 2),
    ),
    graph_test(
        "several_inputs",
        "Each leaf gets its own gradient.",
        [(2, 3), (3, 4), (2, 4)],
        lambda ndl, a, b, c: ndl.relu(a @ b - 3) / c,
        lambda a, b, c: np.maximum(a @ b - 3, 0) / c,
    ),
    graph_test(
        "used_twice",
        "A node that is both inputs of another gets the sum of both gradients.",
        [(3,)],
        lambda ndl, a: power_chain(a),
        power_chain,
    ),
    graph_test(
        "diamond",
        "A node is differentiated when all of its users have been.",
        [(3,), (3,)],
        lambda ndl, a, b: (a + b) * (a * b) + (a + b) / a,
        lambda a, b: (a + b) * (a * b) + (a + b) / a,
    ),
    graph_test(
        "early_and_late",
        "A leaf that the last op uses and the first ones too.",
        [(3,), (3,)],
        lambda ndl, a, b: ((a * b + b) * b + a) * a,
        lambda a, b: ((a * b + b) * b + a) * a,
    ),
    graph_test(
        "broadcasting",
        "Operands that were broadcast get gradients of their own shapes.",
        [(2, 1), (3,), (4, 1, 1)],
        lambda ndl, a, b, c: (a * b - c) / (b + a),
        lambda a, b, c: (a * b - c) / (b + a),
    ),
    graph_test(
        "shapes",
        "Through transpose, reshape, broadcast_to, sum and a batched product.",
        [(2, 3, 4), (4,)],
        lambda ndl, a, b: (a.transpose((0, 1)).reshape((3, 2, 4)) @ a.transpose((0, 2)).sum(2)
        .reshape((4, 3)) * b.sum()).sum((0, 2)),
        lambda a, b: (a.swapaxes(0, 1).reshape(3, 2, 4) @ a.swapaxes(0, 2).sum(2).reshape(4, 3)
        * b.sum()).sum((0, 2)),
    ),
]  # fmt: skip


@graded("hw1.reverse_mode::worked_example")
class WorkedExample:
    """y = (c + d) + c * d with c = a + b and d = a * b at a = 2, b = 3."""

    def inputs(rng):
        return {}

    def probe(ndl, inputs):
        a, b = ndl.Tensor(2.0), ndl.Tensor(3.0)
        c, d = a + b, a * b
        y = (c + d) + c * d
        y.backward()
        return {"y": y.numpy(), "a": a.grad.numpy(), "b": b.grad.numpy()}

    def check(inputs, outputs):
        close("y", outputs["y"], 41.0)
        close("gradient of a", outputs["a"], 25.0)
        close("gradient of b", outputs["b"], 19.0)


@graded("hw1.reverse_mode::out_grad_of_zeros")
class OutGradOfZeros:
    """An out_grad of zeros gives zeros; without an out_grad it is ones."""

    def inputs(rng):
        return {"a": rng.standard_normal(4)}

    def probe(ndl, inputs):
        a = ndl.Tensor(inputs["a"])
        (a * a).backward(ndl.Tensor(np.zeros(4)))
        zeros = a.grad.numpy()
        (a * a).backward()
        return {"zeros": zeros, "default": a.grad.numpy()}

    def check(inputs, outputs):
        close("gradient for an out_grad of zeros", outputs["zeros"], np.zeros(4))
        close("gradient without an out_grad", outputs["default"], 2 * inputs["a"])


@graded("hw1.reverse_mode::constants")
class Constants:
    """What requires no gradient gets none: its .grad stays None."""

    def inputs(rng):
        return {"w": rng.standard_normal((2, 3)), "c": rng.standard_normal((2, 3))}

    def probe(ndl, inputs):
        w = ndl.Tensor(inputs["w"])
        c = ndl.Tensor(inputs["c"], requires_grad=False)
        ((w * c + c) * (c * c)).sum().backward()
        return {"w": w.grad.numpy(), "c": "None" if c.grad is None else "something"}

    def check(inputs, outputs):
        close("gradient of w", outputs["w"], inputs["c"] ** 3, **inputs)
        equal("the constant's .grad", outputs["c"], "None")


@graded("hw1.reverse_mode::replaced_not_added")
class ReplacedNotAdded:
    """A second backward() replaces .grad; an older gradient that someone holds stays as it was."""

    def inputs(rng):
        return {"a": rng.uniform(1, 2, 3)}

    def probe(ndl, inputs):
        a = ndl.Tensor(inputs["a"])
        (a * a).sum().backward()
        first = a.grad
        (a * 5).sum().backward()
        return {"first": first.numpy(), "second": a.grad.numpy()}

    def check(inputs, outputs):
        close("the second gradient", outputs["second"], np.full(3, 5.0))
        close("the first gradient, afterwards", outputs["first"], 2 * inputs["a"])


@graded("hw1.reverse_mode::nothing_changes")
class NothingChanges:
    """backward() changes neither out_grad nor the data of the graph."""

    def inputs(rng):
        return {"a": rng.standard_normal((2, 2)), "out_grad": rng.standard_normal((2, 2))}

    def probe(ndl, inputs):
        a = ndl.Tensor(inputs["a"])
        out_grad = ndl.Tensor(inputs["out_grad"], requires_grad=False)
        middle = a + a
        y = middle + middle * a
        before = y.numpy()
        y.backward(out_grad)
        return {
            "out_grad": out_grad.numpy(),
            "a": a.numpy(),
            "middle": middle.numpy(),
            "change of y": np.abs(y.numpy() - before).max(),
        }

    def check(inputs, outputs):
        close("out_grad afterwards", outputs["out_grad"], inputs["out_grad"], rtol=0, atol=0)
        close("a afterwards", outputs["a"], inputs["a"], rtol=0, atol=0)
        close("a + a afterwards", outputs["middle"], 2 * inputs["a"], rtol=0, atol=0)
        close("the change of y", outputs["change of y"], 0.0, rtol=0, atol=0)


@graded("hw1.reverse_mode::once_a_node")
class OnceANode:
    """The gradient of a node is asked for once, with the sum of what its users gave."""

    def inputs(rng):
        return {"a": rng.standard_normal(3)}

    def probe(ndl, inputs):
        class Twice(ndl.autograd.TensorOp):
            calls = []

            def compute(self, a):
                return a * 2

            def gradient(self, out_grad, node):
                Twice.calls.append(out_grad.numpy())
                return out_grad * 2

        a = ndl.Tensor(inputs["a"])
        b = Twice()(a)
        (b * 3 + b * b).sum().backward()
        return {"calls": Twice.calls, "a": a.grad.numpy()}

    def check(inputs, outputs):
        equal("how often gradient was called", len(outputs["calls"]), 1)
        close("the out_grad it got", outputs["calls"][0], 3 + 4 * inputs["a"])
        close("gradient of a", outputs["a"], 2 * (3 + 4 * inputs["a"]))


@graded("hw1.reverse_mode::none_is_skipped")
class NoneIsSkipped:
    """An op may return None for an input; nothing goes there."""

    def inputs(rng):
        return {"a": rng.standard_normal(3), "b": rng.standard_normal(3)}

    def probe(ndl, inputs):
        class Scaled(ndl.autograd.TensorOp):
            """a * b, with b taken for a constant."""

            def compute(self, a, b):
                return a * b

            def gradient(self, out_grad, node):
                return out_grad * node.inputs[1], None

        a, b = ndl.Tensor(inputs["a"]), ndl.Tensor(inputs["b"])
        (Scaled()(a, b * 2) + Scaled()(a, b) + b).sum().backward()
        return {"a": a.grad.numpy(), "b": b.grad.numpy()}

    def check(inputs, outputs):
        close("gradient of a", outputs["a"], 3 * inputs["b"], **inputs)
        close("gradient of b", outputs["b"], np.ones(3), **inputs)


@graded("hw1.reverse_mode::deep")
class Deep:
    """A chain of 3000 nodes."""

    def inputs(rng):
        return {"a": rng.standard_normal(2), "b": rng.standard_normal(2)}

    def probe(ndl, inputs):
        a, b = ndl.Tensor(inputs["a"]), ndl.Tensor(inputs["b"])
        y = a
        for _ in range(3000):
            y = y + b
        y.backward()
        return {"a": a.grad.numpy(), "b": b.grad.numpy()}

    def check(inputs, outputs):
        close("gradient of a", outputs["a"], np.ones(2))
        close("gradient of b", outputs["b"], np.full(2, 3000.0))


@graded("hw1.reverse_mode::ladder")
class Ladder:
    """Fifty diamonds in a row: 2 ** 50 ways lead from the input, each node is visited once."""

    def inputs(rng):
        return {"a": rng.standard_normal(2)}

    def probe(ndl, inputs):
        a = ndl.Tensor(inputs["a"])
        y = a
        for _ in range(50):
            y = y * 0.25 + y * 0.75
        y.backward()
        return {"a": a.grad.numpy()}

    def check(inputs, outputs):
        close("gradient of a", outputs["a"], np.ones(2))


@graded("hw1.reverse_mode::second_order")
class SecondOrder:
    """A gradient is a Tensor with a graph: backward() of it gives second derivatives."""

    def inputs(rng):
        return {"x": rng.uniform(0.5, 2, 4), "weights": rng.standard_normal(4)}

    def probe(ndl, inputs):
        x = ndl.Tensor(inputs["x"])
        y = (x**3).sum()
        y.backward()
        first = x.grad
        if not first.requires_grad:
            return {"first": first.numpy(), "second": np.zeros(4), "third": np.zeros(4)}
        first.backward(ndl.Tensor(inputs["weights"], requires_grad=False))
        second = x.grad
        second.backward()
        return {"first": first.numpy(), "second": second.numpy(), "third": x.grad.numpy()}

    def check(inputs, outputs):
        x, weights = inputs["x"], inputs["weights"]
        close("the gradient of x ** 3", outputs["first"], 3 * x**2)
        close("its own gradient", outputs["second"], 6 * x * weights)
        close("and that one's", outputs["third"], 6 * weights)


@graded("hw1.reverse_mode::second_order_product")
class SecondOrderProduct:
    """The second derivative through a matrix product, an exponential and a sum."""

    def inputs(rng):
        return {
            "A": rng.standard_normal((3, 3)) / 2,
            "x": rng.standard_normal((3, 1)) / 2,
            "v": rng.standard_normal((3, 1)),
        }

    def probe(ndl, inputs):
        A = ndl.Tensor(inputs["A"], requires_grad=False)
        x = ndl.Tensor(inputs["x"])
        v = ndl.Tensor(inputs["v"], requires_grad=False)
        y = ndl.exp(A @ x).sum()
        y.backward()
        first = x.grad
        (first * v).sum().backward()
        return {"first": first.numpy(), "second": x.grad.numpy()}

    def check(inputs, outputs):
        A, x, v = inputs["A"], inputs["x"], inputs["v"]
        close("the gradient", outputs["first"], A.T @ np.exp(A @ x))
        close("the Hessian times v", outputs["second"], A.T @ (np.exp(A @ x) * (A @ v)))


@graded("hw1.reverse_mode::tuples")
class Tuples:
    """Ops that return several Tensors, of which one is used twice and one not at all."""

    def inputs(rng):
        return {"x": rng.standard_normal(3), "y": rng.standard_normal(3)}

    def probe(ndl, inputs):
        x, y = ndl.Tensor(inputs["x"]), ndl.Tensor(inputs["y"])
        first, second = ndl.fused_add_scalars(x, 1, 2)
        one, _ = ndl.fused_add_scalars(y, 3, 4)
        (first * second * first * one).sum().backward()
        return {"x": x.grad.numpy(), "y": y.grad.numpy()}

    def check(inputs, outputs):
        x, y = inputs["x"], inputs["y"]
        close("gradient of x", outputs["x"], (2 * (x + 1) * (x + 2) + (x + 1) ** 2) * (y + 3))
        close("gradient of y", outputs["y"], (x + 1) ** 2 * (x + 2))


@graded("hw1.reverse_mode::float32")
class Float32:
    """The gradients of float32 leaves are float32."""

    def inputs(rng):
        X = rng.standard_normal((4, 3)).astype(np.float32)
        return {"X": X, "W": rng.standard_normal((3, 2)).astype(np.float32)}

    def probe(ndl, inputs):
        X, W = ndl.Tensor(inputs["X"]), ndl.Tensor(inputs["W"])
        (ndl.log(ndl.exp(ndl.relu(X @ W)).sum(1)) / 4 - 1).sum().backward()
        return {"dtypes": f"{X.grad.dtype} {W.grad.dtype}"}

    def check(inputs, outputs):
        if outputs["dtypes"] != "float32 float32":
            fail(f"gradients of {outputs['dtypes']}; they must be float32 as the leaves are")
