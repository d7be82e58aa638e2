"""What is recorded: requires_grad, no_grad, enable_grad; no public op forgets the graph."""

import threading

import numpy as np
import pytest

from needle import ops
from needle.autograd import Tensor
from needle.recording import enable_grad, is_grad_enabled, no_grad
from tests.gradcheck import check_gradients, check_values, constant64, outputs_of, tensor64
from tests.op_table import ROWS, distinct, positive

# Comparisons and positions are constants, so nothing is differentiated.
WITHOUT_GRADIENT = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
WITHOUT_GRADIENT |= {"argmax", "argmin"}
# It takes two devices, of which only one carries float64: tests/ops/test_to_device.py.
NOT_IN_THE_TABLE = {"to_device", "ToDevice"}


def public_functions():
    """Return the names of the ops' functions; their classes begin with a capital."""
    return {name for name in ops.__all__ if name[0].islower()}


def test_every_public_op_is_in_the_table():
    assert public_functions() - WITHOUT_GRADIENT - NOT_IN_THE_TABLE == {row.op for row in ROWS}


def test_every_op_class_is_used_by_a_public_function(rng):
    """So the rows of the functions check the classes too."""
    used = set()
    for row in ROWS:
        stack = outputs_of(row.call(*(tensor64(a) for a in row.inputs(rng))))
        while stack:
            node = stack.pop()
            used.add(type(node.op).__name__)
            stack.extend(node.inputs)
    classes = {name for name in ops.__all__ if name[0].isupper()} - NOT_IN_THE_TABLE
    # The gradients of TakeSlice and TakeRows, differentiated below and in test_take.py.
    assert classes - used == {"PlaceSlice", "AddRows"}


def test_place_slice(rng):
    place = ops.PlaceSlice((slice(1, 4, 2), slice(None)), (5, 2))
    check_gradients(lambda a: place(a), rng.standard_normal((2, 2)), rng=rng)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_no_op_forgets_the_graph(row, rng):
    """Each input alone makes the result require a gradient, and gets it."""
    arrays = row.inputs(rng)
    for i in range(len(arrays)):
        inputs = [tensor64(a, requires_grad=i == j) for j, a in enumerate(arrays)]
        outputs = outputs_of(row.call(*inputs))
        reached = 0
        for y in outputs:
            if y.requires_grad:
                y.backward()
                reached += 1
                assert inputs[i].grad.shape == arrays[i].shape
        assert reached, "the result forgot its graph"
        assert all(x.grad is None for j, x in enumerate(inputs) if j != i)


@pytest.mark.parametrize("row", {row.op: row for row in ROWS}.values(), ids=str)
def test_constants_and_no_grad_keep_no_graph(row, rng):
    arrays = row.inputs(rng)
    outputs = outputs_of(row.call(*(constant64(a) for a in arrays)))
    with no_grad():
        outputs += outputs_of(row.call(*(tensor64(a) for a in arrays)))
    for y in outputs:
        assert not y.requires_grad and y.op is None and y.inputs == ()


# --- methods and operators of Tensor: each is a function of ops under another name ---

METHODS = {
    "matmul": (lambda x, y: x.matmul(y.permute((1, 0))), lambda x, y: x @ y.T),
    "sum": (lambda x, y: x.sum(0), lambda x, y: x.sum(0)),
    "mean": (lambda x, y: x.mean((0, 1)), lambda x, y: x.mean()),
    "max": (lambda x, y: x.max(1, True), lambda x, y: x.max(1, keepdims=True)),
    "min": (lambda x, y: x.min(axis=-1), lambda x, y: x.min(-1)),
    "var": (lambda x, y: x.var(1), lambda x, y: x.var(1)),
    "std": (
        lambda x, y: x.std(dim=1, keepdim=True, correction=1),
        lambda x, y: x.std(1, keepdims=True, ddof=1),
    ),
    "broadcast_to": (lambda x, y: x.broadcast_to((2, 2, 3)), lambda x, y: np.stack([x, x])),
    "reshape": (lambda x, y: x.reshape(3, 2), lambda x, y: x.reshape(3, 2)),
    "transpose": (lambda x, y: x.transpose(), lambda x, y: x.T),
    "permute": (lambda x, y: x.permute((1, 0)), lambda x, y: x.T),
    "T": (lambda x, y: x.unsqueeze(0).T, lambda x, y: x[None].T),
    "view": (lambda x, y: x.view(-1, 2), lambda x, y: x.reshape(-1, 2)),
    "flatten": (lambda x, y: x.flatten(), lambda x, y: x.reshape(6)),
    "squeeze": (lambda x, y: x[:1].squeeze(0), lambda x, y: x[0]),
    "unsqueeze": (lambda x, y: x.unsqueeze(1), lambda x, y: x[:, None]),
    "exp": (lambda x, y: x.exp(), lambda x, y: np.exp(x)),
    "log": (lambda x, y: y.log(), lambda x, y: np.log(y)),
    "sqrt": (lambda x, y: y.sqrt(), lambda x, y: np.sqrt(y)),
    "sin": (lambda x, y: x.sin(), lambda x, y: np.sin(x)),
    "cos": (lambda x, y: x.cos(), lambda x, y: np.cos(x)),
    "tanh": (lambda x, y: x.tanh(), lambda x, y: np.tanh(x)),
    "sigmoid": (lambda x, y: x.sigmoid(), lambda x, y: 1 / (1 + np.exp(-x))),
    "relu": (lambda x, y: x.relu(), lambda x, y: np.maximum(x, 0)),
    "softmax": (
        lambda x, y: x.softmax(dim=0),
        lambda x, y: np.exp(x) / np.exp(x).sum(0),
    ),
    "abs": (lambda x, y: x.abs(), lambda x, y: np.abs(x)),
    "clip": (lambda x, y: x.clip(-1, 1), lambda x, y: np.clip(x, -1, 1)),
    "__add__": (lambda x, y: x + y, lambda x, y: x + y),
    "__radd__": (lambda x, y: 2 + x, lambda x, y: 2 + x),
    "__sub__": (lambda x, y: x - y, lambda x, y: x - y),
    "__rsub__": (lambda x, y: 2 - x, lambda x, y: 2 - x),
    "__mul__": (lambda x, y: x * y, lambda x, y: x * y),
    "__rmul__": (lambda x, y: 2 * x, lambda x, y: 2 * x),
    "__truediv__": (lambda x, y: x / y, lambda x, y: x / y),
    "__rtruediv__": (lambda x, y: 2 / y, lambda x, y: 2 / y),
    "__pow__": (lambda x, y: y ** (x * x), lambda x, y: y ** (x * x)),
    "__rpow__": (lambda x, y: 2**x, lambda x, y: 2.0**x),
    "__matmul__": (lambda x, y: x @ y.transpose(), lambda x, y: x @ y.T),
    "__rmatmul__": (lambda x, y: np.ones((2, 2)) @ x, lambda x, y: np.ones((2, 2)) @ x),
    "__neg__": (lambda x, y: -x, lambda x, y: -x),
    "__abs__": (lambda x, y: abs(x), lambda x, y: abs(x)),
    "__getitem__": (lambda x, y: x[0, ::-1], lambda x, y: x[0, ::-1]),
    "__iter__": (lambda x, y: tuple(x), lambda x, y: tuple(x)),
}

# Synonyms of arguments, and numbers in the place of a tuple.
SPELLINGS = {
    "sum-axis": (lambda x: x.sum(axis=1), lambda x: x.sum(1)),
    "sum-dim-keepdim": (lambda x: x.sum(dim=(0, 1), keepdim=True), lambda x: x.sum(keepdims=True)),
    "mean-dim": (lambda x: x.mean(dim=-1), lambda x: x.mean(-1)),
    "max-axis": (lambda x: x.max(axis=0, keepdims=True), lambda x: x.max(0, keepdims=True)),
    "var-axes": (lambda x: x.var((0, 1), correction=1), lambda x: x.var(ddof=1)),
    "permute-numbers": (lambda x: x.permute(1, 0), lambda x: x.T),
    "transpose-numbers": (lambda x: x.transpose(0, 1), lambda x: x.T),
    "transpose-pair": (lambda x: x.transpose((-1, 0)), lambda x: x.T),
    "reshape-numbers": (lambda x: x.reshape(2, -1, 1), lambda x: x.reshape(2, -1, 1)),
    "view-tuple": (lambda x: x.view((6,)), lambda x: x.reshape(6)),
    "flatten-from": (lambda x: x.unsqueeze(0).flatten(1), lambda x: x.reshape(1, 6)),
    "flatten-to": (lambda x: x.unsqueeze(-1).flatten(0, 1), lambda x: x.reshape(6, 1)),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings_of_arguments(name, rng):
    call, reference = SPELLINGS[name]
    x = distinct(rng, (2, 3))
    check_values(call, reference, x)
    check_gradients(call, x, rng=rng)


# What gives no Tensor, a constant by design, or the same Tensor elsewhere.
NOT_DIFFERENTIABLE = {
    *("shape", "dtype", "device", "ndim", "size", "numpy", "item", "data", "detach", "to"),
    *("argmax", "argmin", "name", "register_hook"),
    *("backward", "is_leaf", "make_const", "make_from_op", "realize_cached_data", "num_outputs"),
    *("cached_data", "grad", "inputs", "op", "requires_grad"),
    *("__lt__", "__le__", "__gt__", "__ge__"),
    *("__len__", "__bool__", "__float__", "__int__"),
    *("__array__", "__dlpack__", "__dlpack_device__"),
}


def is_of_the_object(name):
    """Tell whether a name is Python's own or private."""
    return hasattr(object, name) or (name.startswith("_") and not name.startswith("__"))


def test_every_method_is_in_the_table():
    names = {name for name in dir(Tensor) if not is_of_the_object(name)}
    python = {"__slots__", "__module__", "__weakref__", "__array_ufunc__", "__del__"}
    python |= {"__annotations__", "__static_attributes__", "__firstlineno__"}
    assert names - NOT_DIFFERENTIABLE - python == set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_methods(name, rng):
    call, reference = METHODS[name]
    x, y = distinct(rng, (2, 3)), positive(rng, (2, 3))
    check_values(call, reference, x, y)
    used = [tensor64(x), tensor64(y)]
    outputs = outputs_of(call(*used))
    assert all(out.requires_grad for out in outputs)
    only_x = not any(node is used[1] for out in outputs for node in find_all(out))
    only_y = not any(node is used[0] for out in outputs for node in find_all(out))
    if only_x:
        check_gradients(lambda a: call(a, constant64(y)), x, rng=rng)
    elif only_y:
        check_gradients(lambda b: call(constant64(x), b), y, rng=rng)
    else:
        check_gradients(call, x, y, rng=rng)


def find_all(node):
    """Return the nodes below `node`."""
    nodes = [node]
    for below in nodes:
        nodes.extend(below.inputs)
    return nodes


# --- switches ---


def test_requires_grad_of_results():
    w, c = tensor64([1.0]), constant64([2.0])
    assert (w * c).requires_grad and (c * w).requires_grad
    assert not (c * c).requires_grad and not (c + 1).requires_grad
    assert not w.detach().requires_grad and not w.data.requires_grad


def test_no_grad_and_enable_grad_nest():
    x = tensor64([1.0])
    assert is_grad_enabled()
    with no_grad():
        assert not is_grad_enabled() and not (x * 2).requires_grad
        with enable_grad():
            assert is_grad_enabled() and (x * 2).requires_grad
            with no_grad():
                assert not is_grad_enabled()
            assert is_grad_enabled()
        assert not is_grad_enabled()
        with no_grad():
            pass
        assert not is_grad_enabled()
    assert is_grad_enabled()


def test_one_switch_may_be_entered_twice():
    switch = no_grad()
    with switch:
        with switch:
            assert not is_grad_enabled()
        assert not is_grad_enabled()
    assert is_grad_enabled()


def test_an_exception_restores_recording():
    with pytest.raises(KeyError), no_grad():
        raise KeyError
    assert is_grad_enabled()


def test_switches_as_decorators():
    @no_grad()
    def predict(x, *, factor):
        """Predict."""
        return x * factor

    @enable_grad()
    def train(x):
        return x * 2

    x = tensor64([1.0])
    assert predict.__name__ == "predict" and predict.__doc__ == "Predict."
    assert not predict(x, factor=3).requires_grad and predict(x, factor=3).item() == 3
    assert is_grad_enabled()
    with no_grad():
        assert train(x).requires_grad
        assert not is_grad_enabled()


def test_a_decorated_function_may_call_itself():
    @no_grad()
    def halve(x, times):
        return x if times == 0 else halve(x * 0.5, times - 1)

    result = halve(tensor64([8.0]), 3)
    assert result.item() == 1 and not result.requires_grad and is_grad_enabled()


def test_recording_is_of_a_thread():
    seen = {}
    entered, checked = threading.Event(), threading.Event()

    def other():
        seen["before"] = is_grad_enabled()
        with no_grad():
            entered.set()
            checked.wait(10)
            seen["inside"] = is_grad_enabled()

    thread = threading.Thread(target=other)
    with no_grad():
        thread.start()
        assert entered.wait(10)
    assert is_grad_enabled()
    checked.set()
    thread.join(10)
    assert seen == {"before": True, "inside": False}


def test_threads_train_at_the_same_time():
    gradients = {}

    def work(i):
        x = tensor64(np.full(3, float(i)))
        for _ in range(50):
            y = (x * x * x).sum()
            y.backward()
            x.grad.backward()
        gradients[i] = x.grad.numpy().tolist()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert gradients == {i: [6.0 * i] * 3 for i in range(4)}


def test_backward_records_only_with_create_graph(monkeypatch):
    seen = []
    gradient = ops.EWiseMul.gradient

    def noting(op, out_grad, node):
        seen.append(is_grad_enabled())
        return gradient(op, out_grad, node)

    monkeypatch.setattr(ops.EWiseMul, "gradient", noting)
    x = tensor64([3.0])
    y = x * x
    y.backward()
    y.backward(accumulate=True, retain_grad=True)
    y.backward(create_graph=True)
    with no_grad():
        y.backward(create_graph=True)
    assert seen == [False, False, True, True]
    x.grad = None  # breaks the cycle of create_graph


def test_backward_inside_no_grad_uses_the_graph_recorded_before():
    x = tensor64([3.0])
    y = x * x
    with no_grad():
        y.backward()
    assert x.grad.item() == 6
