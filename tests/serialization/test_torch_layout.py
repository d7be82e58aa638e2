"""PyTorch's names and shapes, without PyTorch: what a state dict holds, and what is refused."""

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.errors import NeedleError, ShapeError


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv(3, 8, 5), nn.BatchNorm2d(8))
        self.lstm = nn.LSTM(8, 4, num_layers=2)
        self.cell = nn.GRUCell(4, 4)
        self.head = nn.Linear(4, 2)


SHAPES = {
    "features.0.weight": (8, 3, 5, 5),
    "features.0.bias": (8,),
    "features.1.weight": (8,),
    "features.1.bias": (8,),
    "features.1.running_mean": (8,),
    "features.1.running_var": (8,),
    "features.1.num_batches_tracked": (),
    "lstm.weight_ih_l0": (16, 8),
    "lstm.weight_hh_l0": (16, 4),
    "lstm.bias_ih_l0": (16,),
    "lstm.bias_hh_l0": (16,),
    "lstm.weight_ih_l1": (16, 4),
    "lstm.weight_hh_l1": (16, 4),
    "lstm.bias_ih_l1": (16,),
    "lstm.bias_hh_l1": (16,),
    "cell.weight_ih": (12, 4),
    "cell.weight_hh": (12, 4),
    "cell.bias_ih": (12,),
    "cell.bias_hh": (12,),
    "head.weight": (2, 4),
    "head.bias": (2,),
}


def test_names_and_shapes():
    assert {k: v.shape for k, v in ndl.torch_state_dict(Model()).items()} == SHAPES


def test_a_single_layer_has_no_prefix():
    assert set(ndl.torch_state_dict(nn.LSTM(2, 3))) == {
        *("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    }
    assert set(ndl.torch_state_dict(nn.Sequential(nn.Linear(2, 3)))) == {"0.weight", "0.bias"}


def test_axes_of_a_convolution():
    conv = nn.Conv(2, 3, (4, 5))
    weight = ndl.torch_state_dict(conv)["weight"]
    assert weight[1, 0, 3, 2] == conv.weight.numpy()[3, 2, 0, 1]


def test_there_and_back():
    source, target = Model(), Model()
    ndl.load_torch_state_dict(target, ndl.torch_state_dict(source))
    for name, tensor in source.state_dict().items():
        np.testing.assert_array_equal(target.state_dict()[name].numpy(), tensor.numpy())


def test_files_of_either_layout(tmp_path):
    source, target = Model(), Model()
    for layout in ("needle", "torch"):
        path = tmp_path / f"{layout}.safetensors"
        ndl.save_model(source, path, layout=layout)
        ndl.load_model(target, path, layout=layout)
        np.testing.assert_array_equal(target.head.weight.numpy(), source.head.weight.numpy())
    with pytest.raises(NeedleError, match="names do not fit"):
        ndl.load_model(target, tmp_path / "torch.safetensors")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda state: state.pop("head.bias"), NeedleError, r"missing \['head.bias'\]"),
        (lambda state: state.update(x=np.ones(1)), NeedleError, r"unknown \['x'\]"),
        (
            lambda state: state.update({"head.weight": np.ones((4, 2))}),
            ShapeError,
            r"head.weight has shape \(4, 2\), the model's is \(2, 4\)",
        ),
    ],
)
def test_what_does_not_fit_changes_nothing(change, error, message):
    model, state = Model(), ndl.torch_state_dict(Model())
    before = model.lstm.lstm_cells[0].W_ih.numpy()
    change(state)
    with pytest.raises(error, match=message):
        ndl.load_torch_state_dict(model, state)
    np.testing.assert_array_equal(model.lstm.lstm_cells[0].W_ih.numpy(), before)


@pytest.mark.parametrize("function", [ndl.save_model, ndl.load_model])
def test_unknown_layouts(function, tmp_path):
    with pytest.raises(NeedleError, match="no layout 'pytorch'; give 'needle' or 'torch'"):
        function(nn.Linear(1, 1), tmp_path / "x", layout="pytorch")
