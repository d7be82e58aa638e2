"""`needle.summary`: rows and numbers, the table, and that the model is left as it was."""

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.errors import NeedleError, ShapeError


def rows(model, input_shape):
    return [
        (row.name, row.depth, row.kind, row.outputs, row.parameters)
        for row in ndl.summary(model, input_shape).rows
    ]


def nested(device):
    block = nn.Sequential(nn.Linear(4, 4, device=device), nn.BatchNorm1d(4, device=device))
    return nn.Sequential(nn.Linear(3, 4, device=device), nn.Residual(block), nn.ReLU())


class Tied(nn.Module):
    """A layer used twice, a module in a dict, a parameter of the model itself, one unused layer."""

    def __init__(self, device):
        super().__init__()
        self.scale = nn.Parameter(ndl.ones(3, device=device))
        self.layers = {"shared": nn.Linear(3, 3, device=device), "spare": nn.ReLU()}
        self.again = self.layers["shared"]

    def forward(self, x, h):
        x = self.again(self.layers["shared"](x))
        return x * self.scale.broadcast_to(x.shape), (h, None)


# --- what it says ---


def test_rows(device):
    assert rows(nested(device), (2, 3)) == [
        ("", 0, "Sequential", ((2, 4),), 0),
        ("modules.0", 1, "Linear", ((2, 4),), 16),
        ("modules.1", 1, "Residual", ((2, 4),), 0),
        ("modules.1.fn", 2, "Sequential", ((2, 4),), 0),
        ("modules.1.fn.modules.0", 3, "Linear", ((2, 4),), 20),
        ("modules.1.fn.modules.1", 3, "BatchNorm1d", ((2, 4),), 8),
        ("modules.2", 1, "ReLU", ((2, 4),), 0),
    ]


def test_a_module_with_two_uses_several_inputs_and_nested_outputs(device):
    assert rows(Tied(device), [(2, 3), (5,)]) == [
        ("", 0, "Tied", (((2, 3), ((5,), None)),), 3),
        ("layers.shared", 1, "Linear", ((2, 3), (2, 3)), 12),
        ("layers.spare", 1, "ReLU", (), 0),
    ]


def test_numbers(device):
    model = nested(device)
    model.modules[0].weight.requires_grad = False
    found = ndl.summary(model, (2, 3))
    assert found.total == 44 == sum(row.parameters for row in found.rows)
    assert found.trainable == 44 - 12
    assert found.megabytes == (44 + 8) * 4 / 1e6  # the running statistics too


def test_table(device):
    lines = str(ndl.summary(Tied(device), [(2, 3), (5,)])).splitlines()
    assert [line.rstrip() for line in lines] == [
        "layer            type    output                  parameters",
        "model            Tied    ((2, 3), ((5,), None))           3",
        "  layers.shared  Linear  (2, 3) x2                       12",
        "  layers.spare   ReLU    -",
        "15 parameters, 15 trainable, 0.000 MB",
    ]
    big = str(ndl.summary(nn.Linear(784, 100, device=device), (1, 784)))
    assert "78,500" in big and big.endswith("78,500 parameters, 78,500 trainable, 0.314 MB")


def test_tensors_and_integers_as_inputs(device):
    embedding = nn.Embedding(7, 2, device=device)
    assert rows(embedding, (4, 3))[0][3] == ((4, 3, 2),)
    ids = ndl.Tensor([6, 1], device=device, dtype="float32")
    assert rows(embedding, ids)[0][3] == ((2, 2),)
    assert rows(embedding, [ids])[0][3] == ((2, 2),)
    with pytest.raises(NeedleError, match="id 7 is not one of"):
        ndl.summary(embedding, ids + 1)
    assert rows(nn.ReLU(), ())[0][3] == ((),)


def test_zeros_have_the_type_and_place_of_the_model():
    device = ndl.cpu_numpy() if ndl.BACKEND == "nd" else ndl.cpu()
    found = ndl.summary(nn.Linear(3, 4, device=device, dtype="float64"), (2, 3))
    assert found.megabytes == 16 * 8 / 1e6


# --- what it leaves alone ---


def state_of(model):
    values = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    modes = [(module.training, sorted(vars(module))) for _, module in model.named_modules()]
    return values, modes


def test_the_model_is_left_as_it_was(device):
    model = nn.Sequential(nested(device), nn.Dropout(0.5))
    model.modules[0].modules[1].eval()
    before = state_of(model)
    np.random.seed(3)
    ndl.summary(model, (5, 3))
    assert np.random.rand() == np.random.RandomState(3).rand()
    after = state_of(model)
    assert after[1] == before[1] and model(ndl.zeros(5, 3, device=device)).op is not None
    for name, values in before[0].items():
        np.testing.assert_array_equal(after[0][name], values)


def test_a_forward_of_ones_own_is_put_back(device):
    layer = nn.ReLU()
    vars(layer)["forward"] = own = lambda x: x + 1
    assert rows(layer, (2,))[0][3] == ((2,),)
    assert vars(layer)["forward"] is own


def test_nothing_is_recorded(device):
    seen = []

    class Watch(nn.Module):
        def forward(self, x):
            seen.append((x.op, ndl.is_grad_enabled(), self.training))
            return x

    ndl.summary(nn.Sequential(nn.Linear(2, 2, device=device), Watch()), (1, 2))
    assert seen == [(None, False, False)] and ndl.is_grad_enabled()


# --- errors ---


def test_a_failing_model_names_the_layer_and_is_left_as_it_was(device):
    inner = nn.Sequential(nn.ReLU(), nn.Linear(5, 4, device=device))
    model = nn.Sequential(nn.Linear(3, 4, device=device), nn.Residual(inner))
    before = state_of(model)
    with pytest.raises(NeedleError) as caught:
        ndl.summary(model, (2, 3))
    first, *table = str(caught.value).splitlines()
    assert first == (
        "[summary] modules.1.fn.modules.1 (Linear) on (2, 4) failed: [Linear] input (2, 4) does not"
        " end in in_features=5; what ran:"
    )
    assert [line.split()[0] for line in table if "(2, 4)" in line] == [
        "modules.0",
        "modules.1.fn.modules.0",
    ]
    assert isinstance(caught.value.__cause__, ShapeError)
    assert state_of(model)[1] == before[1]


def test_a_call_that_does_not_fit(device):
    with pytest.raises(NeedleError, match=r"\[summary\] model \(ReLU\) on \(2,\), \(2,\) failed"):
        ndl.summary(nn.ReLU(), [(2,), (2,)])


@pytest.mark.parametrize("shape", [8, None, "ab", (1.5,), [(1, 2), 3], [(1, 2), "ab"]], ids=repr)
def test_what_is_no_shape(shape):
    with pytest.raises(ShapeError, match=r"\[summary\] input_shape .* is no shape; give a tuple"):
        ndl.summary(nn.ReLU(), shape)
