"""backward: the default seed, where gradients go, replace or accumulate, what is refused."""

import numpy as np
import pytest

from needle import autograd, ops
from needle.autograd import Tensor, TensorOp, TensorTuple, TensorTupleOp
from needle.errors import DtypeError, GraphError, ShapeError
from tests.gradcheck import check_gradients, constant64, tensor64


def test_the_default_seed_is_ones():
    x = tensor64([1.0, 2.0, 3.0])
    (x * x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 4, 6])
    assert x.grad.dtype == "float64" and x.grad.device == x.device


def test_a_seed_of_zeros_gives_zeros():
    x = tensor64([1.0, 2.0, 3.0])
    (x * x).backward(constant64([0.0, 0.0, 0.0]))
    np.testing.assert_array_equal(x.grad.numpy(), [0, 0, 0])
    single = tensor64(2.0)
    (single * 3).backward(constant64(0.0))
    assert single.grad.item() == 0


def test_an_empty_tensor_has_an_empty_gradient():
    x = tensor64(np.zeros(0))
    (x * 2).backward(constant64(np.zeros(0)))
    assert x.grad.shape == (0,)
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.shape == (0,)


@pytest.mark.parametrize("shape", [(3,), (2, 1), (), (1, 2, 3), (3, 2)])
def test_a_seed_of_another_shape_is_refused(shape):
    y = tensor64(np.ones((2, 3))) * 2
    message = rf"\[backward\] out_grad has shape \({', '.join(map(str, shape))}"
    with pytest.raises(ShapeError, match=message + r".*the output \(2, 3\); they must agree"):
        y.backward(constant64(np.ones(shape)))


@pytest.mark.parametrize("seed", [np.ones(1), [1.0], 1.0], ids=["ndarray", "list", "float"])
def test_a_seed_that_is_no_tensor_is_refused(seed):
    x = tensor64([1.0])
    for y in (x, x * 2):
        with pytest.raises(
            DtypeError, match=rf"\[backward\] out_grad is a {type(seed).__name__}; give a Tensor"
        ):
            y.backward(seed)


def test_backward_of_a_leaf():
    x = tensor64([1.0, 2.0])
    x.backward(constant64([5.0, 6.0]))
    np.testing.assert_array_equal(x.grad.numpy(), [5, 6])


def test_backward_of_a_constant_is_refused():
    with pytest.raises(GraphError, match=r"\[backward\] this Tensor requires no gradient"):
        constant64([1.0]).backward()
    with pytest.raises(GraphError, match=r"\[backward\] this Tensor requires no gradient"):
        (constant64([1.0]) * 2).backward()


def test_constants_get_no_gradient():
    w, c = tensor64([2.0, 3.0]), constant64([4.0, 5.0])
    (w * c).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), [4, 5])
    assert c.grad is None
    assert c.op is None and (c * 2).inputs == () and not (c * 2).requires_grad


@pytest.mark.parametrize("op", ["EWiseMul", "EWiseDiv", "EWisePow", "MatMul"])
def test_no_gradient_reaches_what_needs_none(op):
    """With one constant operand, whichever it is, only the other gets a gradient."""
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    for needing in (0, 1):
        operands = [tensor64(values, requires_grad=i == needing) for i in (0, 1)]
        out = getattr(ops, op)()(*operands)
        out.backward()
        # It is not even computed.
        assert out.op.gradient_as_tuple(constant64(values), out)[1 - needing] is None
        assert operands[needing].grad is not None
        assert operands[1 - needing].grad is None


def test_interior_nodes_get_a_gradient_only_when_asked():
    x = tensor64([2.0])
    y = x * x
    z = y * 3
    z.backward()
    assert y.grad is None and z.grad is None
    z.backward(constant64([5.0]), retain_grad=True)
    assert (z.grad.item(), y.grad.item(), x.grad.item()) == (5, 15, 60)


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_second_backward_replaces(create_graph):
    x = tensor64([3.0])
    y = x * x
    y.backward(create_graph=create_graph)
    first = x.grad
    y.backward(constant64([10.0]), create_graph=create_graph)
    assert x.grad is not first
    assert x.grad.item() == 60 and first.item() == 6
    x.grad = None  # breaks the cycle of create_graph


@pytest.mark.parametrize("create_graph", [False, True])
def test_accumulate_adds(create_graph):
    x, w = tensor64([3.0]), tensor64([5.0])
    for seed in (1.0, 10.0, 100.0):
        (x * w).backward(constant64([seed]), accumulate=True, create_graph=create_graph)
    assert x.grad.item() == 555 and w.grad.item() == 333
    (x * w).backward()
    assert x.grad.item() == 5
    (x * w).backward(accumulate=True)
    assert x.grad.item() == 10
    x.grad = w.grad = None


def test_accumulated_gradients_hold_no_graph():
    x = tensor64([3.0])
    for times in (1, 2, 3):
        seed = tensor64([1.0]) * 2
        (x + 1).backward(seed, accumulate=True)
        assert x.grad.item() == 2 * times
        assert x.grad is not seed and not x.grad.requires_grad and x.grad.op is None


def test_accumulating_does_not_change_the_first_gradient_in_place():
    x = tensor64([3.0])
    y = x * 2
    y.backward()
    first = x.grad
    y.backward(accumulate=True)
    assert first.item() == 2 and x.grad.item() == 4


def test_micro_batches_equal_the_full_batch(rng):
    data, weights = rng.standard_normal((6, 3)), rng.standard_normal((3, 2))
    full = tensor64(weights)
    (ops.tanh(constant64(data) @ full)).sum().backward()
    parts = tensor64(weights)
    for start in range(0, 6, 2):
        loss = ops.tanh(constant64(data[start : start + 2]) @ parts).sum()
        loss.backward(accumulate=True)
    np.testing.assert_allclose(parts.grad.numpy(), full.grad.numpy(), rtol=1e-13)


def test_options_are_keywords():
    with pytest.raises(TypeError):
        tensor64([1.0]).backward(None, True)


def test_the_seed_is_left_alone():
    x = tensor64([1.0, 2.0])
    seed = tensor64([3.0, 4.0])
    (x * 2).backward(seed)
    np.testing.assert_array_equal(seed.numpy(), [3, 4])
    assert seed.grad is None


def test_a_gradient_is_a_tensor_to_work_with():
    x = tensor64([1.0, 2.0])
    (x * x).backward()
    np.testing.assert_array_equal((x.grad * 2 + 1).numpy(), [5, 9])
    assert "a gradient" in repr(x.grad)
    constant = x.grad.data
    assert not constant.requires_grad and constant.op is None


class Named(TensorOp):
    """Computes a * b + c with a gradient that a test chooses."""

    def __init__(self, gradients):
        self.gradients = gradients

    def compute(self, a, b, c):
        return a * b + c

    def gradient(self, out_grad, node):
        return self.gradients(out_grad, *node.inputs)


def differentiate(gradients):
    inputs = [tensor64(np.ones((2, 3))) for _ in range(3)]
    Named(gradients)(*inputs).backward()
    return [None if x.grad is None else x.grad.numpy().sum() for x in inputs]


def test_an_op_may_return_none_or_a_list():
    assert differentiate(lambda g, a, b, c: (g * b, None, g)) == [6, None, 6]
    assert differentiate(lambda g, a, b, c: [g * b, g * a * 2, g]) == [6, 12, 6]


@pytest.mark.parametrize(
    ("gradients", "message"),
    [
        (
            lambda g, a, b, c: (g, g.sum(0), g),
            r"\[Named.gradient\] gradient 1 has shape \(3,\), its input \(2, 3\)",
        ),
        (
            lambda g, a, b, c: (g, g, g.reshape((3, 2))),
            r"\[Named.gradient\] gradient 2 has shape \(3, 2\), its input \(2, 3\)",
        ),
        (
            lambda g, a, b, c: (g.sum(), g, g),
            r"\[Named.gradient\] gradient 0 has shape \(\), its input \(2, 3\)",
        ),
        (
            lambda g, a, b, c: (ops.make_tuple(g, g), g, g),
            r"\[Named.gradient\] gradient 0 has shape \[\(2, 3\), \(2, 3\)\], its input \(2, 3\)",
        ),
        (
            lambda g, a, b, c: (g, g),
            r"\[Named.gradient\] returned 2 gradients for 3 inputs; one each, or None",
        ),
        (lambda g, a, b, c: g, r"\[Named.gradient\] returned 1 gradients for 3 inputs"),
        (
            lambda g, a, b, c: (g, g.numpy(), g),
            r"\[Named.gradient\] gradient 1 is a ndarray; return Tensors",
        ),
        (lambda g, a, b, c: (1.0, g, g), r"\[Named.gradient\] gradient 0 is a float"),
    ],
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_gradient_that_does_not_fit_names_the_op(gradients, message, create_graph):
    inputs = [tensor64(np.ones((2, 3))) for _ in range(3)]
    with pytest.raises(GraphError, match=message):
        Named(gradients)(*inputs).backward(create_graph=create_graph)
    assert all(x.grad is None for x in inputs)


def test_the_message_of_a_forgotten_sum(monkeypatch):
    monkeypatch.setattr(ops.EWiseMul, "gradient", lambda op, g, node: (g, g.sum(0)))
    with pytest.raises(
        GraphError, match=r"\[EWiseMul.gradient\] gradient 1 has shape \(5,\), its input \(4, 5\)"
    ):
        (tensor64(np.ones((4, 5))) * tensor64(np.ones((4, 5)))).backward()


class Halves(TensorTupleOp):
    """Splits in two, with a gradient that a test chooses."""

    def __init__(self, gradients):
        self.gradients = gradients

    def compute(self, a):
        return a[0:1], a[1:2]

    def gradient(self, out_grad, node):
        return ops.concatenate(out_grad)


class Joined(TensorOp):
    """Joins a TensorTuple, with a gradient that a test chooses."""

    def __init__(self, gradients):
        self.gradients = gradients

    def compute(self, parts):
        return parts[0] + parts[1]

    def gradient(self, out_grad, node):
        return self.gradients(out_grad)


def test_an_op_on_a_tuple(rng):
    def through_a_tuple(x):
        return Joined(lambda g: ops.make_tuple(g, g))(Halves(None)(x * x))

    check_gradients(through_a_tuple, rng.standard_normal((2, 3)), rng=rng)


@pytest.mark.parametrize(
    ("gradients", "message"),
    [
        (lambda g: (g, g), r"\[Joined.gradient\] returned 2 gradients for 1 inputs"),
        (
            lambda g: g,
            r"gradient 0 has shape \(1, 3\), its input \[\(1, 3\), \(1, 3\)\]",
        ),
        (
            lambda g: ops.make_tuple(g),
            r"gradient 0 has shape \[\(1, 3\)\], its input \[\(1, 3\), \(1, 3\)\]",
        ),
    ],
)
def test_the_gradient_of_a_tuple_is_a_tuple(gradients, message):
    parts = Halves(None)(tensor64(np.ones((2, 3))))
    assert isinstance(parts, TensorTuple)
    with pytest.raises(GraphError, match=message):
        Joined(gradients)(parts).backward()


def test_gradient_as_tuple_takes_one_a_tuple_and_a_list():
    g = constant64([1.0])
    x = tensor64([1.0])
    op = ops.Negate()
    assert [type(part) for part in op.gradient_as_tuple(g, op(x))] == [Tensor]
    for many in ((g, g, g), [g, g, g]):
        named = Named(lambda *_, many=many: many)
        assert named.gradient_as_tuple(g, named(x, x, x)) == (g, g, g)
    named = Named(lambda *_: (g, g))
    with pytest.raises(GraphError, match="returned 2 gradients for 3 inputs"):
        named.gradient_as_tuple(g, named(x, x, x))


def test_a_result_keeps_its_op_for_checks_from_outside(rng):
    """The course's gradient check calls an op's gradient itself and perturbs raw arrays."""
    a, b = tensor64(rng.standard_normal((2, 3))), tensor64(rng.standard_normal((3, 2)))
    out = a @ b
    grad_a, grad_b = out.op.gradient_as_tuple(constant64(np.ones((2, 2))), out)
    assert grad_a.shape == (2, 3) and grad_b.shape == (3, 2)
    np.testing.assert_allclose(grad_a.numpy(), np.ones((2, 2)) @ b.numpy().T, rtol=1e-14)


def test_an_op_without_a_gradient_says_so():
    class Forward(TensorOp):
        def compute(self, a):
            return a

    with pytest.raises(NotImplementedError):
        Forward()(tensor64([1.0])).backward()
    with pytest.raises(NotImplementedError):
        autograd.Op().compute()
    with pytest.raises(NotImplementedError):
        autograd.Op()()
