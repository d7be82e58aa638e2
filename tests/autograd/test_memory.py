"""No reference cycles: with the collector off, nothing stays alive that nobody holds."""

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from needle import autograd, ops
from needle.autograd import Tensor
from needle.errors import GraphError
from needle.recording import no_grad
from tests.gradcheck import constant64, tensor64


@pytest.fixture(autouse=True)
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def live_values():
    """Return how many Tensors and TensorTuples are alive."""
    return autograd.TENSOR_COUNTER


def growth(step, times=6):
    """Return by how much the count of live values grows after the first two calls of `step`."""
    counts = []
    for _ in range(times):
        step()
        counts.append(live_values())
    assert gc.get_count()[0] >= 0 and not gc.isenabled()
    return counts[-1] - counts[1]


def make_step(rng):
    """Return a training step of a small network, with momentum."""
    w1, w2 = tensor64(rng.standard_normal((4, 8))), tensor64(rng.standard_normal((8, 3)))
    moments = {w1: 0.0, w2: 0.0}

    def step():
        x = constant64(rng.standard_normal((5, 4)))
        logits = ops.relu(x @ w1) @ w2
        loss = (ops.logsumexp(logits, 1) - logits[:, 0]).mean()
        loss.backward()
        for w in (w1, w2):
            moments[w] = moments[w] * 0.9 + w.grad.data * 0.1
            w.data = w.data - moments[w] * 0.1

    return step


def test_training_steps_keep_nothing(rng):
    assert growth(make_step(rng), times=30) == 0


def test_a_graph_dies_with_its_output():
    x = tensor64(np.ones(3))
    y = ops.exp(x * 2)
    interior = weakref.ref(y.inputs[0])
    before = live_values()
    y.backward()
    del y
    assert interior() is None
    assert live_values() == before - 2 + 2  # two nodes less; the gradient and its seed more


def test_the_leaf_dies_with_its_gradient():
    x = tensor64(np.ones(3))
    (x * x).sum().backward()
    leaf, grad = weakref.ref(x), weakref.ref(x.grad)
    del x
    assert leaf() is None and grad() is None


@pytest.mark.parametrize("retain_grad", [False, True])
@pytest.mark.parametrize("accumulate", [False, True])
def test_backward_keeps_nothing(retain_grad, accumulate):
    x = tensor64(np.ones(3))

    def step():
        first, second = ops.fused_add_scalars(x * x, 1.0, 2.0)
        y = ops.concatenate([first[::2], second]).sum()
        y.backward(retain_grad=retain_grad, accumulate=accumulate)

    assert growth(step) == 0


def test_second_and_third_order_keep_nothing():
    x = tensor64([2.0])

    def step():
        y = x * x * x * x
        y.backward()
        x.grad.backward()
        x.grad.backward()
        assert x.grad.item() == 48

    assert growth(step) == 0


def test_gradient_penalty_keeps_nothing(rng):
    w = tensor64(rng.standard_normal((3, 2)))

    def step():
        x = tensor64(rng.standard_normal((4, 3)))
        loss = ops.tanh(x @ w).sum()
        loss.backward()
        penalty = (x.grad * x.grad).sum() + (w.grad * w.grad).sum() + loss
        penalty.backward()
        w.data = w.data - w.grad.data * 0.01

    assert growth(step) == 0


def test_looking_at_the_graph_of_a_gradient_keeps_nothing():
    before = live_values()
    x = tensor64([2.0])
    y = x * x * x
    y.backward()
    grads = live_values()
    assert x.grad.op is not None and len(x.grad.inputs) == 2
    autograd.find_topo_sort([x.grad * 2])
    assert live_values() == grads
    leaf = weakref.ref(x)
    del x, y
    assert leaf() is None and live_values() == before


@pytest.mark.parametrize(
    "seed",
    [
        lambda x: x,
        lambda x: x * x,
        lambda x: tensor64([1.0]),
        lambda x: constant64([1.0]),
        lambda x: x.grad,
    ],
    ids=["the leaf", "computed from the leaf", "a leaf", "a constant", "a gradient"],
)
@pytest.mark.parametrize("accumulate", [False, True])
def test_a_seed_never_closes_a_cycle(seed, accumulate):
    before = live_values()
    leaves = []
    for _ in range(3):
        x = tensor64([2.0])
        (x * 3).backward()
        out_grad = seed(x)
        x.grad = None
        y = x + 1
        y.backward(out_grad, accumulate=accumulate)
        leaves.append(weakref.ref(x))
        del x, y, out_grad
    assert [leaf() for leaf in leaves] == [None] * 3
    assert live_values() == before


def test_an_error_in_backward_keeps_nothing():
    class Wrong(autograd.TensorOp):
        def compute(self, a):
            return a

        def gradient(self, out_grad, node):
            return out_grad.sum()

    x = tensor64(np.ones(3))

    def step():
        with pytest.raises(GraphError):
            Wrong()(x * 2).backward()
        with pytest.raises(ValueError):
            x + tensor64(np.ones(2))

    assert growth(step) == 0
    assert x.grad is None


def test_a_rebuild_that_fails_keeps_nothing():
    x = tensor64([2.0])

    def step():
        (x * x).backward()
        with pytest.raises(GraphError):
            x.grad.backward()

    assert growth(step) == 0


def test_recorded_gradients_are_freed_by_the_collector():
    """create_graph=True holds the graph from the leaf: the one cycle, which the docstring names."""
    x = tensor64([2.0])
    leaf = weakref.ref(x)
    (x * x * x).backward(create_graph=True)
    before = live_values()
    del x
    assert leaf() is not None
    gc.collect()
    assert leaf() is None and live_values() < before


def test_results_without_gradient_keep_no_inputs():
    a = constant64(np.ones(3))
    source = weakref.ref(a)
    b = ops.exp(a) + a
    del a
    assert source() is None and b.inputs == () and b.op is None


def test_no_grad_keeps_no_inputs():
    x = tensor64(np.ones(3))
    with no_grad():
        interior = x * 2
        y = interior + x
    ref = weakref.ref(interior)
    del interior
    assert ref() is None and y.inputs == ()


def test_the_counter_counts_every_value():
    before = live_values()
    x = tensor64([1.0])
    constant = Tensor.make_const(x.cached_data)
    y = x * constant
    parts = ops.make_tuple(x, y)
    assert live_values() == before + 4
    del parts
    assert live_values() == before + 3
    del x, y, constant
    assert live_values() == before


@pytest.mark.parametrize(
    "fails",
    [
        lambda: Tensor(object()),
        lambda: Tensor([[1.0], [1.0, 2.0]]),
        lambda: Tensor([1.0], dtype="no dtype"),
        lambda: Tensor([1.0], device="no device"),
        lambda: Tensor([1.0], requries_grad=True),
        lambda: tensor64(np.ones(2)) @ tensor64(np.ones(3)),
        lambda: ops.MatMul()(constant64(np.ones((2, 2))), constant64(np.ones((3, 3)))),
    ],
    ids=["type", "ragged", "dtype", "device", "keyword", "op", "compute"],
)
def test_a_constructor_that_fails_is_not_counted(fails):
    before = live_values()
    for _ in range(2):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            fails()
    assert live_values() == before


def test_values_alive_at_exit_make_no_noise(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from needle.autograd import Tensor\n"
        "x = Tensor([1.0])\n"
        "y = x * x\n"
        "y.backward()\n"
        "x.grad.backward(retain_grad=True)\n"
        "y.backward(create_graph=True)\n"
    )
    source = Path(autograd.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        env={"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
