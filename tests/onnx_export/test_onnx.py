"""ONNX export: each layer's file, run by onnxruntime, gives needle's numbers."""

import sys

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.errors import NeedleError, ShapeError
from needle.onnx import EMITTERS, export

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


class Apply(nn.Module):
    """A module that is one function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def flat(value):
    """Return the Tensors of nested tuples and lists."""
    if isinstance(value, ndl.Tensor):
        return [value]
    return [tensor for part in value for tensor in flat(part)]


def randomize(model, rng):
    """Give parameters and running statistics values that no mistake leaves alone."""
    for tensor in model._state().values():
        values = rng.uniform(0.2, 1, tensor.shape) * rng.choice([-1, 1], tensor.shape)
        values = np.abs(values) if (tensor.numpy() == 1).all() else values
        tensor.data = ndl.Tensor(values, device=tensor.device, dtype=tensor.dtype)


def exported(model, example, path):
    """Return the exported model, checked."""
    export(model, path, example)
    found = onnx.load(path)
    onnx.checker.check_model(found, full_check=True)
    return found


def run(path, inputs):
    """Return what onnxruntime computes."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [declared.name for declared in session.get_inputs()]
    arrays = [tensor.numpy() for tensor in flat(inputs)]
    return session.run(None, dict(zip(names, arrays, strict=True)))


def assert_same(model, inputs, path):
    got, expected = run(path, inputs), flat(model.eval()(*inputs))
    for ours, theirs in zip(expected, got, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(theirs, ours.numpy(), rtol=1e-5, atol=1e-5)


def drawn(shapes, device, rng, dtype="float32"):
    """Return random Tensors of nested shapes."""
    if isinstance(shapes, list):
        return tuple(drawn(part, device, rng, dtype) for part in shapes)
    return ndl.Tensor(rng.standard_normal(shapes), device=device, dtype=dtype)


def kinds(model):
    return [node.op_type for node in model.graph.node]


# --- layers ---

LAYERS = {
    "Identity": (lambda d: nn.Identity(), [(2, 3)]),
    "Linear": (lambda d: nn.Linear(3, 4, device=d), [(2, 3)]),
    "Linear without bias": (lambda d: nn.Linear(3, 4, bias=False, device=d), [(2, 3)]),
    "Linear of a vector": (lambda d: nn.Linear(3, 4, device=d), [(3,)]),
    "Linear of a stack": (lambda d: nn.Linear(3, 4, device=d), [(5, 2, 3)]),
    "Flatten": (lambda d: nn.Flatten(), [(2, 3, 4)]),
    "ReLU": (lambda d: nn.ReLU(), [(2, 3)]),
    "Sigmoid": (lambda d: nn.Sigmoid(), [(2, 3)]),
    "Tanh": (lambda d: nn.Tanh(), [(2, 3)]),
    "Softmax": (lambda d: nn.Softmax(), [(2, 3)]),
    "Softmax of the first axis": (lambda d: nn.Softmax(0), [(2, 3)]),
    "Dropout": (lambda d: nn.Dropout(0.5), [(2, 3)]),
    "BatchNorm1d": (lambda d: nn.BatchNorm1d(3, device=d), [(4, 3)]),
    "LayerNorm1d": (lambda d: nn.LayerNorm1d(3, device=d), [(4, 3)]),
    "Residual": (lambda d: nn.Residual(nn.Linear(3, 3, device=d)), [(2, 3)]),
    "Conv": (lambda d: nn.Conv(2, 3, 3, device=d), [(2, 2, 5, 6)]),
    "Conv with pairs": (
        lambda d: nn.Conv(2, 3, (1, 4), (3, 2), bias=False, device=d, padding=(0, 2)),
        [(2, 2, 5, 6)],
    ),
    "BatchNorm2d": (lambda d: nn.BatchNorm2d(3, device=d), [(2, 3, 4, 5)]),
    "MaxPool2d": (lambda d: nn.MaxPool2d((2, 3), (1, 2), 1), [(2, 3, 5, 6)]),
    "AvgPool2d": (lambda d: nn.AvgPool2d((2, 3), (1, 2), 1), [(2, 3, 5, 6)]),
    "RNNCell": (lambda d: nn.RNNCell(3, 4, device=d), [(2, 3)]),
    "LSTMCell": (lambda d: nn.LSTMCell(3, 4, device=d), [(2, 3)]),
    "GRUCell": (lambda d: nn.GRUCell(3, 4, device=d), [(2, 3), (2, 4)]),
    "RNN": (lambda d: nn.RNN(3, 4, 2, nonlinearity="relu", device=d), [(5, 2, 3)]),
    "RNN of one step": (lambda d: nn.RNN(3, 4, bias=False, device=d), [(1, 1, 3)]),
    "LSTM": (lambda d: nn.LSTM(3, 4, 2, device=d), [(5, 2, 3)]),
    "LSTM with a state": (
        lambda d: nn.LSTM(3, 4, bias=False, device=d),
        [(5, 2, 3), [(1, 2, 4), (1, 2, 4)]],
    ),
    "GRU": (lambda d: nn.GRU(3, 4, 2, device=d), [(5, 2, 3)]),
    "MultiHeadAttention": (lambda d: nn.MultiHeadAttention(causal=True), [(2, 3, 4, 5)] * 3),
    "AttentionLayer": (
        lambda d: nn.AttentionLayer(6, 2, 3, k_features=5, v_features=4, device=d),
        [(2, 4, 6), (2, 3, 5), (2, 3, 4)],
    ),
    "TransformerLayer": (lambda d: nn.TransformerLayer(6, 2, 3, 8, device=d), [(2, 4, 6)]),
    "Transformer": (
        lambda d: nn.Transformer(6, 8, 1, num_head=2, dim_head=3, device=d, sequence_len=9),
        [(4, 2, 6)],
    ),
    "Sequential": (
        lambda d: nn.Sequential(
            nn.Conv(2, 3, 3, device=d),
            nn.BatchNorm2d(3, device=d),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(18, 4, device=d),
            nn.Softmax(),
        ),
        [(2, 2, 4, 6)],
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(device, name, rng, tmp_path):
    make, shapes = LAYERS[name]
    model = make(device)
    randomize(model, rng)
    example = drawn(shapes, device, rng)
    path = tmp_path / "model.onnx"
    found = exported(model, example, path)
    assert_same(model, example, path)
    assert_same(model, drawn(shapes, device, rng), path)
    state = model.state_dict()
    named = {i.name: onnx.numpy_helper.to_array(i) for i in found.graph.initializer}
    assert state.keys() <= named.keys()
    for key, tensor in state.items():
        np.testing.assert_array_equal(named[key], tensor.numpy())


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_embedding(device, dtype, rng, tmp_path):
    if dtype == "int32" and ndl.BACKEND == "nd":
        dtype = "float32"
    model = nn.Sequential(nn.Embedding(9, 4, device=device), nn.Linear(4, 2, device=device))
    path = tmp_path / "model.onnx"
    ids = [ndl.Tensor(rng.integers(0, 9, (3, 2)), device=device, dtype=dtype) for _ in range(2)]
    found = exported(model, ids[0], path)
    for inputs in ids:
        assert_same(model, (inputs,), path)
    assert kinds(found) == ["Cast", "Gather", "MatMul", "Add"]


def test_doubles(rng, tmp_path):
    device = ndl.cpu_numpy() if ndl.BACKEND == "nd" else ndl.cpu()
    model = nn.Sequential(
        nn.Linear(3, 4, device=device, dtype="float64"),
        nn.LayerNorm1d(4, device=device, dtype="float64"),
    )
    x = drawn([(2, 3)], device, rng, "float64")
    found = exported(model, x, tmp_path / "model.onnx")
    assert {i.data_type for i in found.graph.initializer} <= {11, 7}  # double, and int64 of shapes
    got = run(tmp_path / "model.onnx", x)[0]
    np.testing.assert_allclose(got, model(*x).numpy(), rtol=1e-12, atol=1e-12)


# --- ops ---

OPS = {
    "arithmetic": lambda x: ((x + 1.5) * 2 - 3) / 4 - (-x) * x / (x * x + 1),
    "power": lambda x: (x * x + 1) ** 0.5 + ndl.power(ndl.exp(x), x),
    "functions": lambda x: ndl.sin(x) + ndl.cos(x) + ndl.abs(x) + ndl.sqrt(ndl.abs(x)),
    "log": lambda x: ndl.log(x * x + 1),
    "clip": lambda x: ndl.clip(x, -0.5, 0.5) + ndl.clip(x, low=0) - ndl.clip(x, high=0.2),
    "where": lambda x: ndl.where(ndl.Tensor([1, 0, 1, 0], device=x.device), x, x * 2),
    "transpositions that cancel": lambda x: x.permute((1, 2, 0)).permute((2, 0, 1)) + 0,
    "transpositions": lambda x: x.permute((1, 2, 0)).transpose((0, 1)).transpose(),
    "reshape": lambda x: x.reshape((6, -1)).reshape((4, 3, 2)),
    "sum": lambda x: x.sum() + x.sum((0, 2)) + x.sum(1, keepdims=True).sum(-1),
    "sum of no axes": lambda x: x.sum().sum() * x.max().max(),
    "extremes": lambda x: x.max((0, 1)) + x.min(2, keepdims=True) - x.max(),
    "logsumexp": lambda x: ndl.logsumexp(x * 100, (1, 2)) + ndl.logsumexp(x),
    "logsoftmax": lambda x: ndl.logsoftmax(x * 100, 1),
    "matmul": lambda x: x @ x.transpose() @ x[0],
    "broadcasting": lambda x: x + x[:1] * x[:, :1, :1] - x.sum((1, 2), keepdims=True),
    "broadcasting to more than either": lambda x: (
        x[:1, :1] * x[:, :, :1] + x[0, :, 0].reshape((3, 1))
    ),
    "broadcast results": lambda x: x[0].broadcast_to((5, 3, 4)),
    "a broadcast by itself": lambda x: (lambda b: b * b)(x[0].broadcast_to((5, 3, 4))),
    "slices": lambda x: x[::-1, 1:, -3:-1] + x[:, ::2][:, :1, 1:3] * x[1, 0, 0],
    "slices of nothing": lambda x: x[:, 3:3].sum() + x[:, :],
    "backwards from inside": lambda x: x[:, 1::-1, 2:0:-1],
    "concatenate": lambda x: ndl.concatenate([x, x * 2, x[:, :1]], 1),
    "stack and split": lambda x: ndl.stack(list(ndl.split(x, 1))[::-1], 2),
    "flip": lambda x: ndl.flip(x, (0, 2)),
    "undilate": lambda x: ndl.undilate(x, (1, 2), 1),
    "take": lambda x: ndl.take(x, [[2, 0], [-1, 1]], 1),
    "tuples": lambda x: (lambda t: t[1] - t[0])(ndl.fused_add_scalars(x, 1.0, 3.0)),
    "statistics": lambda x: (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True),
}


@pytest.mark.parametrize("name", OPS)
def test_ops(device, name, rng, tmp_path):
    model, path = Apply(OPS[name]), tmp_path / "model.onnx"
    example = drawn([(2, 3, 4)], device, rng)
    exported(model, example, path)
    assert_same(model, example, path)
    assert_same(model, drawn([(2, 3, 4)], device, rng), path)


def test_every_op_has_an_emitter_or_is_known_to_lack_one():
    lacking = {
        name
        for name in ndl.ops.__all__
        if isinstance(getattr(ndl.ops, name), type) and getattr(ndl.ops, name) not in EMITTERS
    }
    assert lacking <= {"AddRows", "Dilate", "PlaceSlice"}  # gradients of others, but for Dilate


def test_a_tensor_may_change_its_device(rng, tmp_path):
    if ndl.BACKEND == "np" or not ndl.cpu().enabled():
        pytest.skip("needs two devices")
    model = Apply(lambda x: (x.to("cpu_numpy") * 2).to("cpu") + x)
    example = drawn([(2, 3)], ndl.cpu(), rng)
    exported(model, example, tmp_path / "model.onnx")
    assert_same(model, example, tmp_path / "model.onnx")


# --- names and shapes ---


def described(values):
    return [
        (value.name, [n.dim_value for n in value.type.tensor_type.shape.dim]) for value in values
    ]


def test_one_input_and_output(device, rng, tmp_path):
    graph = exported(
        nn.Linear(3, 4, device=device), drawn([(2, 3)], device, rng), tmp_path / "a.onnx"
    ).graph
    assert described(graph.input) == [("input", [2, 3])]
    assert described(graph.output) == [("output", [2, 4])]
    assert graph.name == "Linear" and kinds(onnx.load(tmp_path / "a.onnx")) == ["MatMul", "Add"]


def test_several_inputs_and_outputs(device, rng, tmp_path):
    shapes = [(5, 2, 3), [(1, 2, 4), (1, 2, 4)]]
    model = nn.LSTM(3, 4, device=device)
    graph = exported(model, drawn(shapes, device, rng), tmp_path / "a.onnx").graph
    states = [("_1", [1, 2, 4]), ("_2", [1, 2, 4])]
    assert described(graph.input) == [(f"input{n}", s) for n, s in [("_0", [5, 2, 3]), *states]]
    assert described(graph.output) == [(f"output{n}", s) for n, s in [("_0", [5, 2, 4]), *states]]


def test_outputs_that_are_inputs_constants_or_given_twice(device, rng, tmp_path):
    def function(x, y):
        z = x + y
        return x, z, [z, ndl.ones(2, device=x.device)], z * 2

    example = drawn([(2, 3), (2, 3)], device, rng)
    exported(Apply(function), example, tmp_path / "a.onnx")
    assert_same(Apply(function), example, tmp_path / "a.onnx")


def test_a_parameter_may_have_any_name_and_be_used_twice(device, rng, tmp_path):
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.input = nn.Parameter(ndl.randn(3, 3, device=device))
            self.output = nn.Linear(3, 3, device=device)
            self.again = self.output

        def forward(self, x):
            return self.again(self.output(x @ self.input) @ self.input)

    model, example = Named(), drawn([(2, 3)], device, rng)
    found = exported(model, example, tmp_path / "a.onnx")
    assert_same(model, example, tmp_path / "a.onnx")
    assert {"output.weight", "output.bias"} <= {i.name for i in found.graph.initializer}


def test_graphs_are_tidy(device, rng, tmp_path):
    """No Expand where ONNX broadcasts, no pairs of Transpose, nothing that nothing needs."""
    path = tmp_path / "a.onnx"
    norm = exported(nn.BatchNorm1d(3, device=device), drawn([(4, 3)], device, rng), path)
    assert kinds(norm) == ["Sub", "Add", "Pow", "Div", "Mul", "Add"]
    conv = exported(nn.Conv(2, 3, 3, device=device), drawn([(1, 2, 4, 4)], device, rng), path)
    assert kinds(conv) == ["Transpose", "Conv", "Transpose", "Add", "Transpose"]
    attention = exported(
        nn.MultiHeadAttention(causal=True), drawn([(2, 3, 4, 5)] * 3, device, rng), path
    )
    assert kinds(attention) == ["Transpose", "MatMul", "Div", "Add", "Softmax", "MatMul"]
    shapes = [list(i.dims) for i in attention.graph.initializer]
    assert sorted(shapes) == [[], [1, 1, 4, 4]]  # the mask is not repeated for batch and heads


# --- what it leaves alone ---


def test_the_model_is_left_as_it_was(device, rng, tmp_path):
    model = nn.Sequential(
        nn.Linear(3, 4, device=device), nn.BatchNorm1d(4, device=device), nn.Dropout(0.5)
    )
    model.modules[0].weight.requires_grad = False
    model.modules[1].eval()
    flags = [(name, t.requires_grad) for name, t in model._state().items()]
    values = {name: tensor.numpy() for name, tensor in model._state().items()}
    modes = [(module.training, sorted(vars(module))) for _, module in model.named_modules()]
    (x,) = drawn([(2, 3)], device, rng)
    np.random.seed(3)
    exported(model, x, tmp_path / "a.onnx")
    assert np.random.rand() == np.random.RandomState(3).rand()
    assert x.op is None and x.grad is None
    assert flags == [(name, t.requires_grad) for name, t in model._state().items()]
    assert modes == [(module.training, sorted(vars(module))) for _, module in model.named_modules()]
    for name, tensor in model._state().items():
        np.testing.assert_array_equal(tensor.numpy(), values[name])


def test_also_where_nothing_is_recorded(device, rng, tmp_path):
    with ndl.no_grad():
        found = exported(
            nn.Linear(3, 4, device=device), drawn([(2, 3)], device, rng), tmp_path / "a.onnx"
        )
    assert kinds(found) == ["MatMul", "Add"]


def test_a_failure_leaves_the_model_and_an_older_file(device, rng, tmp_path):
    path = tmp_path / "folder" / "a.onnx"
    model = nn.Sequential(nn.Linear(3, 4, device=device), Apply(lambda x: ndl.dilate(x, 0, 1)))
    export(model.modules[0], path, drawn([(2, 3)], device, rng))
    old = path.read_bytes()
    with pytest.raises(NeedleError):
        export(model, path, drawn([(2, 3)], device, rng))
    with pytest.raises(ShapeError, match=r"\[Linear\]"):
        export(model, path, drawn([(2, 5)], device, rng))
    assert path.read_bytes() == old and list(path.parent.iterdir()) == [path]
    assert all(module.training for _, module in model.named_modules())
    assert all("forward" not in vars(module) for _, module in model.named_modules())


# --- what cannot be exported ---


def test_the_package_may_be_missing(device, rng, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(NeedleError, match=r'\[onnx\] .* run pip install "needle\[onnx\]"'):
        export(nn.ReLU(), tmp_path / "a.onnx", drawn([(2, 3)], device, rng))


def test_ops_without_a_counterpart_are_counted(device, rng, tmp_path):
    class Double(ndl.Function):
        def forward(self, x):
            return x * 2

        def backward(self, gy):
            return gy * 2

    model = Apply(lambda x: Double()(ndl.dilate(ndl.dilate(x, 0, 1), 1, 1)))
    message = r"\[onnx\] ops without a counterpart in ONNX: Dilate \(2\), Double \(1\)"
    with pytest.raises(NeedleError, match=message):
        export(model, tmp_path / "a.onnx", drawn([(2, 3)], device, rng))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ndl.ones(2, device=x.device),
        lambda x: x.detach() * 2,
        lambda x: ndl.Tensor(x.numpy() * 2, device=x.device),
    ],
)
def test_an_output_without_the_input(device, rng, tmp_path, function):
    with pytest.raises(NeedleError, match=r"\[onnx\] no output depends on the input"):
        export(Apply(function), tmp_path / "a.onnx", drawn([(2, 3)], device, rng))


@pytest.mark.parametrize("number", [0, 1, 5])
def test_an_example_of_equal_numbers_hides_nothing(device, tmp_path, number):
    x = ndl.Tensor(np.full((2, 3), number), device=device, dtype="float32")
    with pytest.raises(NeedleError, match="a constant depends on the input's numbers"):
        export(Apply(lambda x: x * x.detach()), tmp_path / "a.onnx", x)
    export(nn.Embedding(6, 2, device=device), tmp_path / "a.onnx", x)


@pytest.mark.parametrize(
    "function, what",
    [
        (lambda x: x * ndl.Tensor(x.numpy(), device=x.device), "a constant depends"),
        (lambda x: x * x.detach(), "a constant depends"),
        (lambda x: x * ndl.make_tuple(x).detach()[0], "a constant depends"),
        (lambda x: x * (x > 0), "a constant depends"),
        (lambda x: x * float(x.numpy()[0, 0]), "what MulScalar does depends"),
        (lambda x: ndl.where(x > 0, x, x * 2), "what Where does depends"),
        (lambda x: ndl.take(x * 1, ndl.argmax(x, 1), 1), "what TakeRows does depends"),
        (lambda x: x * 2 if x.numpy()[0, 0] > 0 else x + 2, "does depends"),
        (lambda x: x * 2 if x.numpy()[0, 0] > 0 else x * 2 * 2, "depends"),
    ],
)
def test_numbers_that_leave_the_graph(device, tmp_path, function, what):
    x = ndl.Tensor([[1.0, 0.0, -2.0], [0.5, 0.7, -3.0]], device=device, dtype="float32")
    with pytest.raises(NeedleError, match=rf"\[onnx\] .*{what}.* on the input's numbers"):
        export(Apply(function), tmp_path / "a.onnx", x)


def test_what_is_no_tensor(device, rng, tmp_path):
    with pytest.raises(NeedleError, match=r"\[onnx\] the example holds a ndarray; give Tensors"):
        export(nn.ReLU(), tmp_path / "a.onnx", np.ones(3))
    with pytest.raises(NeedleError, match=r"\[onnx\] the model returns a float, not a Tensor"):
        export(Apply(lambda x: (x, 1.0)), tmp_path / "a.onnx", drawn([(2, 3)], device, rng))
