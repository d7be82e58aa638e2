"""Module: how parameters and sub-modules are found, modes, names, state, devices, copies, repr."""

import copy
import pickle
import re

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.errors import DeviceError, DtypeError, NeedleError, ShapeError

several_devices = pytest.mark.skipif(ndl.BACKEND == "np", reason="there is one device")


def parameter(*shape, value=0.0):
    return nn.Parameter(ndl.Tensor(np.full(shape, value), requires_grad=False))


class Leaf(nn.Module):
    """One parameter of a size that tells it apart."""

    def __init__(self, size):
        super().__init__()
        self.weight = parameter(size)

    def forward(self, x):
        return x


class Nested(nn.Module):
    """Parameters and modules in every container, in the order 1, 2, 3, ... of their sizes."""

    def __init__(self):
        super().__init__()
        self.first = parameter(1)
        self.blocks = [
            nn.Sequential(Leaf(2), nn.Dropout(0.5)),
            {"x": Leaf(3), "more": [Leaf(4), (Leaf(5), nn.Dropout(0.5))]},
        ]
        self.table = {"w": parameter(6), "deep": {"list": [parameter(7), Leaf(8)]}}
        self.name = "not a module"
        self.nothing = None
        self.constant = ndl.Tensor([1.0], requires_grad=False)
        self.last = Leaf(9)


NESTED_NAMES = [
    "first",
    "blocks.0.modules.0.weight",
    "blocks.1.x.weight",
    "blocks.1.more.0.weight",
    "blocks.1.more.1.0.weight",
    "table.w",
    "table.deep.list.0",
    "table.deep.list.1.weight",
    "last.weight",
]


def sizes(module):
    return [p.shape[0] for p in module.parameters()]


def small_model(device=None):
    """Return a model with parameters and buffers, all different."""
    model = nn.Sequential(
        nn.Linear(3, 4, device=device),
        nn.BatchNorm1d(4, device=device),
        nn.ReLU(),
        nn.Linear(4, 2, device=device),
    )
    for tensor in model._state().values():
        tensor.data = ndl.init.rand(*tensor.shape, low=0.5, device=device)
    return model


def state_of(model):
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


def assert_same_state(a, b):
    assert list(a) == list(b)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


# --- finding parameters and modules ---


def test_parameters_come_in_the_order_of_attributes_from_every_container():
    assert sizes(Nested()) == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_names_are_the_path_of_attributes_keys_and_positions():
    assert [name for name, _ in Nested().named_parameters()] == NESTED_NAMES


def test_named_parameters_are_the_parameters():
    model = Nested()
    named = dict(model.named_parameters())
    assert [id(p) for p in named.values()] == [id(p) for p in model.parameters()]
    assert named["blocks.1.more.0.weight"] is model.blocks[1]["more"][0].weight


def test_a_plain_tensor_is_no_parameter():
    module = nn.Identity()
    module.tensor = ndl.Tensor([1.0])
    assert module.parameters() == []


def test_a_parameter_is_a_tensor_that_requires_a_gradient(device):
    p = nn.Parameter(ndl.init.zeros(2, device=device))
    assert isinstance(p, ndl.Tensor) and p.requires_grad and p.is_leaf() and p.device == device


def test_a_parameter_added_later_is_found():
    model = Nested()
    model.blocks.append(Leaf(20))
    model.more = parameter(30)
    assert sizes(model) == [1, 2, 3, 4, 5, 20, 6, 7, 8, 9, 30]


def test_shared_weights_are_found_once():
    shared = Leaf(2)
    model = nn.Sequential(shared, Leaf(3), shared)
    model.again = shared.weight
    assert sizes(model) == [2, 3]
    assert list(model.state_dict()) == ["modules.0.weight", "modules.1.weight"]
    assert [name for name, _ in model.named_modules()] == ["", "modules.0", "modules.1"]


def test_children_are_all_modules_below():
    model = Nested()
    kinds = [type(child).__name__ for child in model._children()]
    assert kinds == [
        "Sequential",
        "Leaf",
        "Dropout",
        "Leaf",
        "Leaf",
        "Leaf",
        "Dropout",
        "Leaf",
        "Leaf",
    ]
    assert dict(model.named_modules())["blocks.1.more.1.1"] is model.blocks[1]["more"][1][1]


def test_a_reference_to_the_parent_does_not_recurse():
    model = nn.Sequential(Leaf(2), Leaf(3))
    model.modules[0].parent = model
    assert sizes(model) == [2, 3]
    assert sizes(model.modules[0]) == [2, 3]
    model.eval()
    assert not model.modules[1].training
    assert repr(model).splitlines() == [
        "Sequential(",
        "  (modules.0): Leaf(",
        "    (parent): ...",
        "  )",
        "  (modules.1): Leaf()",
        ")",
    ]


def test_a_module_without_forward_says_so():
    with pytest.raises(NotImplementedError):
        nn.Module()(ndl.Tensor([1.0]))


def test_calling_a_module_hands_everything_to_forward():
    class Recorder(nn.Module):
        def forward(self, *args, **kwargs):
            return args, kwargs

    assert Recorder()(1, 2, mask=3) == ((1, 2), {"mask": 3})


# --- modes ---


def test_modules_start_in_training_mode():
    model = Nested()
    assert model.training and all(child.training for child in model._children())


def test_modes_reach_every_container():
    model = Nested()
    assert model.eval() is model
    assert not model.training and not any(child.training for child in model._children())
    assert model.train() is model
    assert model.training and all(child.training for child in model._children())
    model.train(False)
    assert not model.training and not any(child.training for child in model._children())


def test_eval_reaches_a_dropout_in_a_nested_list(device):
    dropout = Nested().eval().blocks[1]["more"][1][1]
    x = ndl.init.ones(50, device=device)
    np.testing.assert_array_equal(dropout(x).numpy(), x.numpy())


# --- state ---


def test_state_holds_parameters_then_buffers(device):
    model = small_model(device)
    assert list(model.state_dict()) == [
        *("modules.0.weight", "modules.0.bias", "modules.1.weight", "modules.1.bias"),
        *("modules.3.weight", "modules.3.bias", "modules.1.running_mean", "modules.1.running_var"),
    ]
    for tensor in model.state_dict().values():
        assert tensor.device == device and not tensor.requires_grad and tensor.op is None


def test_buffers_of_the_module_itself_have_no_prefix():
    assert list(nn.BatchNorm1d(2).state_dict()) == ["weight", "bias", "running_mean", "running_var"]


@several_devices
@pytest.mark.parametrize("as_numpy", [True, False], ids=["arrays", "tensors"])
def test_loading_a_state_copies_it(device, as_numpy):
    source, target = small_model("cpu_numpy"), small_model(device)
    identities = [id(p) for p in target.parameters()]
    state = state_of(source) if as_numpy else source.state_dict()
    target.load_state_dict(state)
    assert_same_state(state_of(target), state_of(source))
    assert [id(p) for p in target.parameters()] == identities, "an optimizer would lose them"
    assert all(p.requires_grad and p.is_leaf() and p.device == device for p in target.parameters())
    running = target.modules[1].running_mean
    assert running.device == device and not running.requires_grad
    source.modules[0].weight.data = ndl.init.zeros(3, 4, device="cpu_numpy")
    assert target.modules[0].weight.numpy().all()


def test_loading_converts_float64_arrays(device):
    model = small_model(device)
    state = {name: value.astype(np.float64) for name, value in state_of(model).items()}
    model.load_state_dict(state)
    assert all(p.numpy().dtype == np.float32 for p in model.parameters())


def without(name):
    return lambda state: state.pop(name)


def renamed(old, new):
    return lambda state: state.update({new: state.pop(old)})


def replaced(name, value):
    return lambda state: state.update({name: value})


@pytest.mark.parametrize(
    "break_state, error, message",
    [
        (
            without("modules.1.running_var"),
            NeedleError,
            "missing ['modules.1.running_var'], unknown []",
        ),
        (replaced("extra", np.zeros(1)), NeedleError, "missing [], unknown ['extra']"),
        (
            renamed("modules.3.bias", "modules.3.b"),
            NeedleError,
            "names do not fit Sequential: missing ['modules.3.bias'], unknown ['modules.3.b']",
        ),
        (
            replaced("modules.3.bias", np.zeros(2)),
            ShapeError,
            "[load_state_dict] modules.3.bias has shape (2,), the model (1, 2)",
        ),
        (
            replaced("modules.3.weight", np.zeros((2, 4))),
            ShapeError,
            "modules.3.weight has shape (2, 4), the model (4, 2)",
        ),
        pytest.param(
            replaced("modules.3.bias", np.full((1, 2), 1j)),
            DtypeError,
            "not real numbers",
            marks=several_devices,
        ),
    ],
    ids=["missing", "unknown", "renamed", "shape", "transposed", "complex"],
)
def test_a_state_that_does_not_fit_changes_nothing(device, break_state, error, message):
    model = small_model(device)
    before = state_of(model)
    state = {name: value + 1 for name, value in before.items()}
    break_state(state)
    with pytest.raises(error, match=re.escape(message)):
        model.load_state_dict(state)
    assert_same_state(state_of(model), before)


# --- devices ---


@several_devices
@pytest.mark.parametrize("by_name", [True, False], ids=["name", "device"])
def test_a_model_moves_with_its_buffers_and_containers(device, by_name):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    model.more = [{"x": nn.Linear(2, 2)}]
    before = state_of(model)
    identities = [id(t) for t in model._state().values()]
    assert model.to(device.name if by_name else device) is model
    assert [t.device for t in model._state().values()] == [device] * 8
    assert [id(t) for t in model._state().values()] == identities
    assert all(p.requires_grad and p.is_leaf() for p in model.parameters())
    assert_same_state(state_of(model), before)


@several_devices
def test_a_moved_model_trains_where_it_is(device):
    model = small_model("cpu_numpy").to(device)
    loss = (model(ndl.init.rand(5, 3, device=device)) * 2).sum()
    loss.backward()
    assert loss.device == device
    assert all(p.grad.device == device for p in model.parameters())
    assert model.modules[1].running_mean.device == device


@several_devices
def test_moving_drops_gradients_of_the_old_device(device):
    model = small_model("cpu_numpy")
    model(ndl.init.rand(5, 3, device="cpu_numpy")).sum().backward()
    model.to(device)
    for p in model.parameters():
        assert p.grad is None or p.grad.device == device


@several_devices
def test_an_unknown_device_is_refused_by_name():
    with pytest.raises(DeviceError, match="'gpu' is no device; use one of cpu, cuda, cpu_numpy"):
        nn.Linear(2, 2).to("gpu")


@several_devices
def test_a_missing_device_says_why_and_changes_nothing(no_cuda):
    model = nn.Linear(2, 2)
    with pytest.raises(DeviceError, match=re.escape(no_cuda.reason)):
        model.to("cuda")
    assert model.weight.device == ndl.default_device()


# --- copies ---


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
    ids=["deepcopy", "pickle"],
)
def test_copies_are_equal_and_independent(device, copied):
    model = small_model(device)
    model.again = model.modules[0].weight
    model(ndl.init.rand(5, 3, device=device)).sum().backward()
    model.eval()
    twin = copied(model)
    assert_same_state(state_of(twin), state_of(model))
    assert twin.again is twin.modules[0].weight, "shared weights stay shared"
    assert not twin.training and not twin.modules[1].training
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert p is not q and type(q) is nn.Parameter and q.requires_grad and q.device == device
    x = ndl.init.rand(5, 3, device=device)
    np.testing.assert_array_equal(twin(x).numpy(), model(x).numpy())
    before = state_of(model)
    for tensor in twin._state().values():
        tensor.data = tensor.data * 0
    assert_same_state(state_of(model), before)


# --- repr ---


def test_repr_nests_modules_and_names_their_sizes():
    model = nn.Sequential(
        nn.Flatten(),
        nn.Residual(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.1))),
        nn.Linear(4, 2, bias=False),
        nn.Softmax(dim=1),
    )
    assert repr(model).splitlines() == [
        "Sequential(",
        "  (modules.0): Flatten()",
        "  (modules.1): Residual(",
        "    (fn): Sequential(",
        "      (modules.0): Linear(4, 3, bias=True)",
        "      (modules.1): BatchNorm1d(3, eps=1e-05, momentum=0.1)",
        "      (modules.2): Dropout(p=0.1)",
        "    )",
        "  )",
        "  (modules.2): Linear(4, 2, bias=False)",
        "  (modules.3): Softmax(dim=1)",
        ")",
    ]


def test_repr_of_modules_in_containers():
    lines = repr(Nested()).splitlines()
    assert lines[0] == "Nested(" and lines[-1] == ")"
    assert "  (blocks.1.more.1.0): Leaf()" in lines
    assert "  (blocks.0): Sequential(" in lines


def test_repr_puts_a_modules_own_words_before_its_children():
    class Named(nn.Residual):
        def extra_repr(self):
            return "scale=2"

    assert repr(Named(nn.ReLU())) == "Named(\n  scale=2\n  (fn): ReLU()\n)"
