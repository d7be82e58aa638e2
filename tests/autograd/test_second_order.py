"""Gradients of gradients: rebuilt on demand, recorded with create_graph, refused when outdated."""

import math

import numpy as np
import pytest

from needle import autograd, engine, ops
from needle.autograd import find_topo_sort
from needle.backend_selection import BACKEND
from needle.errors import GraphError
from needle.recording import no_grad
from tests.gradcheck import check_gradients, constant64, tensor64
from tests.op_table import ROWS


def test_second_order_of_a_product():
    x2, x3 = tensor64([6.0]), tensor64([0.0])
    y = x2 * x2 + x2 * x3
    y.backward()
    grad_x2, grad_x3 = x2.grad, x3.grad
    assert (grad_x2.item(), grad_x3.item()) == (12, 6)
    grad_x2.backward()
    assert (x2.grad.item(), x3.grad.item()) == (2, 1)
    grad_x3.backward()
    assert x2.grad.item() == 1


def test_the_course_form_without_a_name_for_the_gradient():
    x = tensor64([2.0])
    y = x * x * x
    y.backward()
    x.grad.backward()
    assert x.grad.item() == 12


@pytest.mark.parametrize("create_graph", [False, True])
def test_third_and_fourth_order(create_graph):
    x = tensor64([2.0])
    y = x**4
    wanted = [32, 48, 48, 24]
    y.backward(create_graph=create_graph)
    got = [x.grad.item()]
    for _ in range(3):
        x.grad.backward(create_graph=create_graph)
        got.append(x.grad.item())
    np.testing.assert_allclose(got, wanted, rtol=1e-14)
    x.grad = None  # breaks the cycle of create_graph


# Small rows only, as each element costs two passes; on raw numpy, which runs the same ops, fewer.
SMALL = [row for row in ROWS if 0 < sum(map(math.prod, row.shapes)) <= 18]
SMALL = SMALL if BACKEND == "nd" else SMALL[::4]


def gradients_of(call, kept, create_graph):
    """Return a function that gives the first gradients of `call`, weighted unevenly."""

    def first_gradients(*inputs):
        result = call(*inputs)
        outputs = [result] if isinstance(result, autograd.Tensor) else list(result)
        loss = None
        for y in outputs:
            weights = np.linspace(0.5, 1.5, y.size).reshape(y.shape)
            part = (ops.sin(y) * constant64(weights)).sum()  # sin: even linear ops have a second
            loss = part if loss is None else loss + part
        loss.backward(create_graph=create_graph)
        kept.append(loss)
        return tuple(x.grad for x in inputs)

    first_gradients.__name__ = f"gradient of {getattr(call, '__name__', 'call')}"
    return first_gradients


@pytest.mark.parametrize("row", SMALL, ids=str)
def test_second_order_of_every_op(row, rng):
    kept = []  # the outputs must live for their gradients to be differentiated
    check_gradients(gradients_of(row.call, kept, create_graph=False), *row.inputs(rng), rng=rng)


@pytest.mark.parametrize("row", SMALL[::7], ids=str)
def test_second_order_with_a_recorded_graph(row, rng):
    kept = []
    check_gradients(gradients_of(row.call, kept, create_graph=True), *row.inputs(rng), rng=rng)


def test_gradient_penalty(rng):
    """The gradient is used inside another graph, together with the parameters themselves."""
    kept = []

    def penalized(w1, w2):
        x = tensor64(rng_x)
        loss = (ops.tanh(x @ w1) @ w2).sum()
        loss.backward()
        kept.append((x, loss))
        norm = (x.grad * x.grad).sum()
        return loss + norm * 0.3 + (w1 * w1).sum()

    rng_x = rng.standard_normal((4, 3))
    check_gradients(penalized, rng.standard_normal((3, 5)), rng.standard_normal((5, 1)), rng=rng)


def test_several_gradients_in_one_graph_rebuild_the_pass_once(monkeypatch):
    leaves = [tensor64([float(i + 1)]) for i in range(3)]
    y = leaves[0] * leaves[1] * leaves[2]
    y.backward()
    passes = []
    gradients = engine._gradients

    def counted(output, out_grad, retain):
        passes.append(output)
        return gradients(output, out_grad, retain)

    monkeypatch.setattr(engine, "_gradients", counted)
    penalty = sum((x.grad * x.grad for x in leaves[1:]), leaves[0].grad * leaves[0].grad)
    penalty.backward()
    assert passes == [y, penalty] or passes == [penalty, y]
    # d/da of (bc)² + (ac)² + (ab)² is 2a (c² + b²)
    assert [x.grad.item() for x in leaves] == [26, 40, 30]


def test_op_and_inputs_of_a_gradient_are_its_graph():
    x, w = tensor64([2.0]), tensor64([5.0])
    y = x * w
    y.backward(constant64([3.0]))
    assert isinstance(x.grad.op, ops.EWiseMul)
    assert [v.item() for v in x.grad.inputs] == [3, 5]
    assert x.grad.inputs[1] is w
    assert not x.grad.is_leaf()
    assert w in find_topo_sort([x.grad * 2])


def test_a_gradient_that_is_the_seed_has_its_graph():
    """y = x + 1 hands its out_grad on as it is."""
    x, v = tensor64([2.0]), tensor64([3.0])
    seed = v * v
    y = x + 1
    y.backward(seed)
    x.grad.backward()
    assert v.grad.item() == 6


def test_a_gradient_as_the_seed_of_another_pass():
    x, v = tensor64([2.0]), tensor64([3.0])
    z = v * v * v
    z.backward()
    y = x + 1
    y.backward(v.grad)
    x.grad.backward()  # d/dv of 3 v²
    assert v.grad.item() == 18


def test_the_seed_is_differentiated_too():
    x, v = tensor64([2.0, 3.0]), tensor64([5.0, 7.0])
    y = x * x
    y.backward(v)
    x.grad.backward()
    np.testing.assert_array_equal(v.grad.numpy(), [4, 6])
    np.testing.assert_array_equal(x.grad.numpy(), [10, 14])


def test_a_seed_made_on_the_fly_need_not_be_kept():
    x = tensor64([2.0])
    y = x * x
    y.backward(tensor64([5.0]))
    x.grad.backward()
    assert x.grad.item() == 10


def test_forward_mode_by_two_backward_passes(rng):
    """The derivative of vᵀJ by v along t is Jt: a seed with a graph of its own."""
    values, tangent = rng.standard_normal(3), rng.standard_normal(3)
    x, v = tensor64(values), tensor64(np.zeros(3))
    y = ops.sin(x) * x
    y.backward(v)
    x.grad.backward(constant64(tangent))
    wanted = (np.cos(values) * values + np.sin(values)) * tangent
    np.testing.assert_allclose(v.grad.numpy(), wanted, rtol=1e-12)


def test_second_order_of_retained_interior_nodes():
    x = tensor64([2.0])
    y = x * x
    z = y * y
    z.backward(retain_grad=True)
    assert y.grad.item() == 8
    y.grad.backward()  # d(2 x²)/dx
    assert x.grad.item() == 8


def test_second_order_inside_no_grad():
    x = tensor64([3.0])
    y = x * x * x
    y.backward()
    with no_grad():
        x.grad.backward()
        assert x.grad.item() == 18


def test_a_linear_function_has_no_second_order():
    x = tensor64([3.0])
    y = x * 2
    y.backward()
    with pytest.raises(GraphError, match=r"depends on nothing that requires a gradient"):
        x.grad.backward()
    penalty = x.grad * x.grad + x * x
    penalty.backward()
    assert x.grad.item() == 6


def test_create_graph_records_the_gradient():
    x = tensor64([3.0])
    (x * x * x).backward(create_graph=True)  # the output is not kept
    grad = x.grad
    assert type(grad) is autograd.Tensor and grad.op is not None and grad.requires_grad
    grad.backward()
    assert x.grad.item() == 18


def test_create_graph_records_inside_no_grad_and_plain_backward_does_not():
    x = tensor64([3.0])
    y = x * x
    with no_grad():
        y.backward(create_graph=True)
    assert x.grad.op is not None
    x.grad = None
    before = autograd.TENSOR_COUNTER
    y.backward()
    assert before + 2 == autograd.TENSOR_COUNTER  # the gradient and the seed; no graph


def test_create_graph_accumulates_with_graph():
    x = tensor64([3.0])
    for _ in range(2):
        (x * x).backward(create_graph=True, accumulate=True)
    grad = x.grad
    grad.backward()
    assert grad.item() == 12 and x.grad.item() == 4


GONE = (
    r"\[backward\] the {} that this gradient came from is gone; keep it alive .*create_graph=True"
)


def test_an_output_that_is_gone_is_an_error():
    x = tensor64([2.0])
    (x * x).backward()
    assert x.grad.item() == 4
    for use in (
        lambda: x.grad.op,
        lambda: x.grad.inputs,
        lambda: x.grad.backward(),
        lambda: (x.grad * 2).backward(),
    ):
        with pytest.raises(GraphError, match=GONE.format("output")):
            use()
    assert x.grad.item() == 4


def test_a_computed_seed_that_is_gone_is_an_error():
    x, v = tensor64([2.0]), tensor64([3.0])
    y = x * x
    y.backward(v * v)
    with pytest.raises(GraphError, match=GONE.format("out_grad")):
        x.grad.backward()


def test_a_gradient_outlives_its_leaf_as_data():
    x = tensor64([2.0])
    (x * x).backward()
    grad = x.grad
    del x
    assert grad.item() == 4
    with pytest.raises(GraphError, match=r"\[backward\] the Tensor that this gradient belongs to"):
        grad.backward()


@pytest.mark.parametrize(
    "changed", ["leaf", "other leaf", "constant", "interior", "output", "seed"]
)
def test_data_replaced_since_is_an_error(changed):
    x, w, c = tensor64([2.0]), tensor64([3.0]), constant64([4.0])
    inner = x * x * w
    y = inner * inner * c
    seed = tensor64([1.0])
    y.backward(seed)
    values = {"leaf": x, "other leaf": w, "constant": c, "interior": inner, "output": y}
    {**values, "seed": seed}[changed].data = constant64([7.0])
    message = r"\[backward\] data was replaced after .*before the update, or .*create_graph=True"
    with pytest.raises(GraphError, match=message):
        x.grad.backward()
    (x * x * w).backward()  # a pass after the update is fine
    assert x.grad.shape == (1,)


def test_data_replaced_elsewhere_or_before_is_no_error():
    x, other = tensor64([2.0]), tensor64([1.0])
    x.data = constant64([3.0])
    y = x * x
    y.backward()
    other.data = constant64([5.0])
    x.grad.backward()
    assert x.grad.item() == 2


def test_a_gradient_in_a_deep_graph():
    x = tensor64([0.5])
    y = x
    for _ in range(1000):
        y = y + x * 0.005
    y = y * y
    y.backward()
    x.grad.backward()
    np.testing.assert_allclose(x.grad.item(), 2 * 6.0**2, rtol=1e-10)
