"""Hooks: what backward computed for a Tensor, seen and changed on the way."""

import gc
import weakref

import pytest

from needle.autograd import Tensor
from needle.errors import GraphError
from tests.gradcheck import constant64, tensor64


def test_a_hook_sees_the_whole_gradient_once():
    x = tensor64([1.0, 2.0])
    seen = []
    x.register_hook(lambda grad: seen.append(grad.numpy().tolist()))
    (x * x + 3 * x).backward(constant64([1.0, 10.0]))
    assert seen == [[5.0, 70.0]]  # both uses summed
    assert x.grad.numpy().tolist() == [5.0, 70.0]  # a hook that returns None changes nothing


def test_a_hook_on_an_interior_node_changes_what_follows():
    x = tensor64([1.0, 2.0])
    y = x * 3
    y.register_hook(lambda grad: grad * 2)
    y.register_hook(lambda grad: grad + 1)  # after the first
    (y * y).backward(retain_grad=True)
    assert y.grad.numpy().tolist() == [13.0, 25.0]  # 2 * (2 * y) + 1
    assert x.grad.numpy().tolist() == [39.0, 75.0]


def test_a_hook_of_a_part_of_a_tuple():
    from needle import ops

    x = tensor64([[1.0, 2.0], [3.0, 4.0]])
    first, _ = ops.split(x, 0)
    first.register_hook(lambda grad: grad * 10)
    first.backward()
    assert x.grad.numpy().tolist() == [[10.0, 10.0], [0.0, 0.0]]


def test_a_removed_hook_is_silent():
    x = tensor64([1.0])
    calls = []

    def hook(grad):
        calls.append(grad)

    first, second = x.register_hook(hook), x.register_hook(hook)
    first.remove()
    first.remove()
    (x * 2).backward()
    assert len(calls) == 1
    second.remove()
    (x * 2).backward()
    assert len(calls) == 1


def test_second_order_goes_through_a_hook():
    x = tensor64([2.0])
    x.register_hook(lambda grad: grad * 5)
    y = x * x * x
    y.backward()
    assert x.grad.numpy().tolist() == [60.0]
    x.grad.backward()  # d/dx 5 * 3x² = 30x, times 5 on its way to x
    assert x.grad.numpy().tolist() == [300.0]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda grad: grad.sum(), r"\[register_hook\] a hook returned shape \(\) for .* \(2,\)"),
        (lambda grad: 3.0, r"\[register_hook\] a hook returned a float"),
    ],
)
def test_refused_results(result, message):
    x = tensor64([1.0, 2.0])
    x.register_hook(result)
    with pytest.raises(GraphError, match=message):
        (x * 2).backward()


def test_a_constant_has_no_gradient_to_hook():
    with pytest.raises(GraphError, match=r"\[register_hook\] this Tensor requires no gradient"):
        constant64([1.0]).register_hook(print)


def test_hooks_make_no_cycle():
    x = Tensor([1.0])
    handle = x.register_hook(lambda grad: grad)
    alive = weakref.ref(x)
    gc.collect()
    gc.disable()
    try:
        del x
        assert alive() is None
        handle.remove()
    finally:
        gc.enable()
