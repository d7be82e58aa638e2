"""The graph: topological order, the plain algorithm and the engine agree, deep graphs, laziness."""

import gc

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from needle import autograd, ops
from needle.autograd import TensorOp, compute_gradient_of_variables, find_topo_sort, sum_node_list
from needle.backend_selection import BACKEND
from tests.gradcheck import constant64, tensor64

# Deeper than any recursion limit; the depth does not depend on the backend.
DEPTH = 100_000 if BACKEND == "nd" else 20_000


def live_values():
    """Return how many Tensors and TensorTuples are alive."""
    return autograd.TENSOR_COUNTER


def test_order_is_post_order_inputs_from_left_to_right():
    a, b = tensor64([1.0]), tensor64([2.0])
    c = a * b
    d = c + a
    e = d * c
    assert find_topo_sort([e]) == [a, b, c, d, e]


def test_order_of_the_course_example():
    """Each of the nodes once, and subtraction is a sum with a negation: nine nodes, not eight."""
    a, b = tensor64([[0.5]]), tensor64([[1.5]])
    c = 3 * a * a + 4 * b * a - a
    kinds = [type(node.op).__name__ for node in find_topo_sort([c])]
    assert kinds == [
        "NoneType",
        "MulScalar",
        "EWiseMul",
        "NoneType",
        "MulScalar",
        "EWiseMul",
        "EWiseAdd",
        "Negate",
        "EWiseAdd",
    ]


def test_order_of_several_roots_lists_each_node_once():
    a = tensor64([1.0])
    b, c = a + 1, a + 2
    assert find_topo_sort([b, c, a, b]) == [a, b, c]
    assert find_topo_sort([]) == []
    assert find_topo_sort([a]) == [a]


def test_order_shows_the_users_after_their_inputs():
    """Numbers by position, edges by the inputs: what a drawing of the graph needs."""
    a, b = tensor64([1.0]), tensor64([2.0])
    order = find_topo_sort([(a + b) * (a * b)])
    ids = {node: i for i, node in enumerate(order)}
    edges = {(ids[x], ids[node]) for node in order for x in node.inputs}
    assert edges == {(0, 2), (1, 2), (0, 3), (1, 3), (2, 4), (3, 4)}


def test_sum_node_list_has_no_zero_to_start_from():
    a, b, c = (tensor64([float(i)]) for i in range(3))
    assert sum_node_list([a]) is a
    total = sum_node_list([a, b, c])
    assert find_topo_sort([total]) == [a, b, total.inputs[0], c, total]


@pytest.mark.parametrize(
    ("values", "build", "value", "gradients"),
    [
        ([1.0], lambda a: (a + a) + (a + a), 4, [4]),
        ([1.0], lambda a: (lambda b: b + b)(a + a), 4, [4]),
        ([2.0, 3.0], lambda a, b: (a + b + a * b) + (a + b) * (a * b), 41, [25, 19]),
        ([3.0], lambda a: a * a * a, 27, [27]),
        ([2.0, 5.0], lambda a, b: (a - b) * (a - b), 9, [-6, 6]),
    ],
)
def test_graphs_that_are_no_trees(values, build, value, gradients):
    leaves = [tensor64(v) for v in values]
    y = build(*leaves)
    y.backward()
    assert y.item() == value
    assert [leaf.grad.item() for leaf in leaves] == gradients


def test_a_shared_node_is_processed_once_after_all_its_users(monkeypatch):
    a, b = tensor64(2.0), tensor64(3.0)
    c, d = a + b, a * b
    y = (c + d) + c * d
    visited = []
    gradient_as_tuple = autograd.Op.gradient_as_tuple

    def noting(op, out_grad, node):
        visited.append(node)
        return gradient_as_tuple(op, out_grad, node)

    monkeypatch.setattr(autograd.Op, "gradient_as_tuple", noting)
    y.backward()
    assert len(visited) == len(set(visited)) == 5
    place = {node: i for i, node in enumerate(visited)}
    for node in visited:
        assert all(place[x] > place[node] for x in node.inputs if x in place)


# A random graph: how many leaves, then for each node what to compute from which earlier values.
NODES = st.lists(
    st.tuples(
        st.sampled_from(["add", "mul", "sub", "sin", "tanh", "keep"]),
        st.integers(0),
        st.integers(0),
    ),
    min_size=1,
    max_size=12,
)


def build_graph(leaves, nodes):
    """Return the values of a drawn graph, the last of them the output."""
    values = list(leaves)
    for kind, i, j in nodes:
        a, b = values[i % len(values)], values[j % len(values)]
        if kind == "add":
            values.append(a + b)
        elif kind == "mul":
            values.append(a * b * 0.5)
        elif kind == "sub":
            values.append(a - b)
        elif kind == "sin":
            values.append(ops.sin(a))
        elif kind == "tanh":
            values.append(ops.tanh(a))
        else:
            values.append(a + constant64([1.0, 2.0, 3.0]))
    return values


def recursive_order(node, order):
    """Append to `order` the nodes below `node`, as a textbook says it."""
    if node not in order:
        for x in node.inputs:
            recursive_order(x, order)
        order.append(node)
    return order


@hypothesis.given(st.integers(1, 3), NODES)
def test_order_of_random_graphs_is_the_recursive_one(count, nodes):
    leaves = [tensor64(np.full(3, 0.1 * (i + 1))) for i in range(count)]
    output = build_graph(leaves, nodes)[-1]
    assert find_topo_sort([output]) == recursive_order(output, [])


@hypothesis.given(st.integers(1, 3), NODES, st.integers(0, 2**32 - 1))
def test_plain_algorithm_and_engine_agree_on_random_graphs(count, nodes, seed):
    rng = np.random.default_rng(seed)
    points = [rng.uniform(-1, 1, 3) for _ in range(count)]
    out_grad = rng.standard_normal(3)
    grads = []
    for differentiate in (
        lambda y: y.backward(constant64(out_grad)),
        lambda y: y.backward(constant64(out_grad), create_graph=True),
        lambda y: compute_gradient_of_variables(y, constant64(out_grad)),
    ):
        leaves = [tensor64(p) for p in points]
        differentiate(build_graph(leaves, nodes)[-1])
        grads.append([None if x.grad is None else x.grad.numpy() for x in leaves])
    reached = set(find_topo_sort([build_graph(leaves, nodes)[-1]]))
    for engine, recorded, plain, leaf in zip(*grads, leaves, strict=True):
        assert (engine is None) == (plain is None)
        if engine is None:
            assert leaf not in reached
        else:
            np.testing.assert_array_equal(engine, plain)
            np.testing.assert_array_equal(engine, recorded)


@hypothesis.given(st.integers(1, 3), NODES, st.integers(0, 2**32 - 1))
def test_gradients_of_random_graphs_are_right(count, nodes, seed):
    rng = np.random.default_rng(seed)
    points = [rng.uniform(-1, 1, 3) for _ in range(count)]
    directions = [rng.standard_normal(3) for _ in range(count)]
    leaves = [tensor64(p) for p in points]
    build_graph(leaves, nodes)[-1].backward()

    def along(step):
        """Return the sum of the output a step along the directions."""
        moved = [constant64(p + step * d) for p, d in zip(points, directions, strict=True)]
        return build_graph(moved, nodes)[-1].numpy().sum()

    slope = (along(1e-5) - along(-1e-5)) / 2e-5
    parts = [
        (leaf.grad.numpy() * d).sum()
        for leaf, d in zip(leaves, directions, strict=True)
        if leaf.grad is not None
    ]
    np.testing.assert_allclose(sum(parts), slope, rtol=1e-6, atol=1e-7)


def test_the_plain_algorithm_skips_what_needs_no_gradient():
    w, c = tensor64([2.0]), constant64([5.0])
    compute_gradient_of_variables(w * c + c, constant64([3.0]))
    assert w.grad.item() == 15 and c.grad is None


def test_the_plain_algorithm_replaces_and_takes_tuples():
    x = tensor64([2.0])
    parts = ops.fused_add_scalars(x * x, 1.0, 2.0)
    y = parts[0] * parts[1]
    for _ in range(2):
        compute_gradient_of_variables(y, constant64([1.0]))
        assert x.grad.item() == (5 + 6) * 4


class Same(TensorOp):
    """Hands its input on: a node that costs next to nothing, for graphs of many."""

    def compute(self, a):
        return a

    def gradient(self, out_grad, node):
        return out_grad


def test_a_deep_chain_is_differentiated_and_freed_without_recursion():
    gc.collect()
    x = tensor64([1.0])
    before = live_values()
    y = x
    same = Same()
    for _ in range(DEPTH):
        y = same(y)
    assert len(find_topo_sort([y])) == DEPTH + 1
    y.backward(constant64([3.0]))
    assert x.grad.item() == 3
    del y
    assert live_values() == before + 2  # the gradient, and the out_grad that it keeps


def test_a_deep_graph_with_two_paths_at_each_node():
    x = tensor64([1.0])
    y = x
    for _ in range(DEPTH // 20):
        y = y * 0.25 + y * 0.75
    y.backward()
    assert x.grad.item() == 1
    compute_gradient_of_variables(y, constant64([2.0]))
    assert x.grad.item() == 2


@pytest.fixture
def lazy(monkeypatch):
    monkeypatch.setattr(autograd, "LAZY_MODE", True)


def test_lazy_values_are_computed_when_asked_for(lazy, monkeypatch):
    computed = []
    compute = ops.AddScalar.compute
    monkeypatch.setattr(
        ops.AddScalar, "compute", lambda op, a: computed.append(1) or compute(op, a)
    )
    x = tensor64([1.0])
    y = x + 1
    z = y + 1
    assert z.cached_data is None and not computed
    assert z.item() == 3 and len(computed) == 2
    assert y.item() == 2 and len(computed) == 2


def test_lazy_gradients(lazy):
    x, w = tensor64([[1.0, 2.0]]), tensor64([[3.0], [4.0]])
    loss = ops.tanh((x @ w) * 0.1).sum()
    loss.backward()
    slope = 0.1 * (1 - np.tanh(1.1) ** 2)
    np.testing.assert_allclose(w.grad.numpy(), slope * x.numpy().T, rtol=1e-12)
    np.testing.assert_allclose(x.grad.numpy(), slope * w.numpy().T, rtol=1e-12)
    w.grad.backward()
    assert w.grad.shape == (2, 1)


def test_lazy_constants_and_tuples(lazy):
    c = constant64([1.0, 2.0]) + 1
    assert not c.requires_grad and c.numpy().tolist() == [2, 3]
    assert [part.item() for part in ops.fused_add_scalars(tensor64([1.0]), 1, 2)] == [2, 3]


def test_lazy_deep_chain(lazy):
    x = tensor64([1.0])
    y = x
    for _ in range(DEPTH // 10):
        y = y + 1
    assert y.item() == DEPTH // 10 + 1
    y.backward()
    assert x.grad.item() == 1
