"""The names that programs written for the course rely on: a rename fails here, by name.

Names of later stages (stack, conv, RNN ...) join the lists with those stages.
"""

import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import needle as ndl
from needle import backend_ndarray as nd
from needle.backend_ndarray import NDArray, cpu, cpu_numpy, cuda, device, interface

ROOT = Path(__file__).parents[2]

OPS = (
    "add add_scalar multiply mul_scalar power power_scalar divide divide_scalar transpose reshape"
    " broadcast_to summation matmul negate log exp relu tanh logsumexp logsoftmax make_tuple"
    " tuple_get_item fused_add_scalars stack split flip dilate undilate conv max_pool avg_pool"
)
OP_CLASSES = (
    "EWiseAdd AddScalar EWiseMul MulScalar EWisePow PowerScalar EWiseDiv DivScalar Transpose"
    " Reshape BroadcastTo Summation MatMul Negate Log Exp ReLU Tanh LogSumExp LogSoftmax"
    " MakeTensorTuple TupleGetItem FusedAddScalars Stack Split Flip Dilate UnDilate Conv"
)
INIT = (
    "rand randn randb constant ones zeros ones_like zeros_like one_hot"
    " xavier_uniform xavier_normal kaiming_uniform kaiming_normal"
)
NAMES = {
    "needle": "Tensor TensorTuple autograd ops init data nn optim cpu cuda cpu_numpy all_devices"
    " default_device Device BACKEND array_api NDArray ones zeros zeros_like ones_like "
    + OPS
    + " sin cos sqrt abs sigmoid clip where max min mean concatenate squeeze unsqueeze softmax"
    " equal no_grad enable_grad viz onnx summary",
    "needle.ops": OPS + " " + OP_CLASSES,
    "needle.ops.ops_mathematic": "EWisePow power_scalar transpose summation matmul relu",
    "needle.ops.ops_logarithmic": "LogSumExp logsumexp LogSoftmax logsoftmax",
    "needle.ops.ops_tuple": "MakeTensorTuple make_tuple TupleGetItem FusedAddScalars Stack Split",
    "needle.ops.ops_conv": "Flip Dilate UnDilate Conv conv MaxPool AvgPool",
    "needle.autograd": "Tensor TensorTuple Value Op TensorOp TensorTupleOp find_topo_sort"
    " compute_gradient_of_variables sum_node_list TENSOR_COUNTER LAZY_MODE",
    "needle.autograd.Tensor": "op inputs cached_data requires_grad grad num_outputs"
    " realize_cached_data is_leaf make_const make_from_op shape dtype device data detach numpy"
    " backward matmul sum broadcast_to reshape transpose item",
    "needle.autograd.Op": "compute gradient gradient_as_tuple __call__",
    "needle.autograd.TensorTuple": "tuple detach __len__ __getitem__ __iter__ __add__",
    "needle.backend_numpy": "Device CPUDevice cpu default_device all_devices",
    "needle.backend_selection": "array_api NDArray Device cpu default_device all_devices cuda"
    " cpu_numpy BACKEND",
    "needle.backend_ndarray": "NDArray BackendDevice cpu cuda cpu_numpy default_device all_devices"
    " array empty full broadcast_to reshape maximum log exp tanh sum flip",
    "needle.backend_ndarray.NDArray": "make compact_strides fill to numpy is_compact compact"
    " as_strided reshape permute broadcast_to flip pad process_slice flat shape strides device"
    " dtype ndim size sum max maximum log exp tanh",
    "needle.init": INIT,
    "needle.init.init_initializers": "xavier_uniform xavier_normal kaiming_uniform kaiming_normal",
    "needle.nn": "Parameter Module Identity Linear Flatten ReLU Sequential SoftmaxLoss BatchNorm1d"
    " LayerNorm1d Dropout Residual Conv BatchNorm2d MaxPool2d AvgPool2d RNNCell RNN LSTMCell"
    " LSTM GRUCell GRU Embedding LayerNorm"
    " MultiHeadAttention AttentionLayer TransformerLayer Transformer",
    "needle.nn.Module": "parameters _children train eval forward __call__",
    "needle.optim": "Optimizer SGD Adam",
    "needle.optim.Optimizer": "step reset_grad",
    "needle.optim.SGD": "clip_grad_norm",
    "needle.data": "Dataset DataLoader Transform RandomFlipHorizontal RandomCrop MNISTDataset"
    " NDArrayDataset CIFAR10Dataset Corpus Dictionary batchify get_batch",
    "needle.data.Corpus": "tokenize",
    "needle.data.Dictionary": "add_word __len__",
    "needle.viz": "graph Graph",
    "needle.viz.Graph": "dot svg text save",
    "needle.onnx": "export",
    "needle.data.Dataset": "apply_transforms __getitem__ __len__",
    "simple_ml": "parse_mnist softmax_loss nn_epoch loss_err epoch_general_cifar10 train_cifar10"
    " evaluate_cifar10 epoch_general_ptb train_ptb evaluate_ptb ResNet9 LanguageModel",
    "models": "ResNet9 LanguageModel",
    "apps.models": "ResNet9 LanguageModel",
    "mlp_resnet": "ResidualBlock MLPResNet epoch train_mnist",
}


def find(path):
    """Return the module, class or function of a dotted path."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        owner, _, name = path.rpartition(".")
        return getattr(find(owner), name)


@pytest.mark.parametrize("owner", NAMES)
def test_names(owner):
    missing = [name for name in NAMES[owner].split() if not hasattr(find(owner), name)]
    assert not missing, f"{owner} lacks {', '.join(missing)}"


SIGNATURES = {
    "needle.Tensor": "(array, *, device=None, dtype=None, requires_grad=True)",
    "needle.ops.add_scalar": "(a, scalar)",
    "needle.ops.mul_scalar": "(a, scalar)",
    "needle.ops.divide_scalar": "(a, scalar)",
    "needle.ops.power_scalar": "(a, scalar)",
    "needle.ops.transpose": "(a, axes=None)",
    "needle.ops.reshape": "(a, shape)",
    "needle.ops.broadcast_to": "(a, shape)",
    "needle.ops.summation": "(a, axes=None, keepdims=False)",
    "needle.ops.logsumexp": "(a, axes=None)",
    "needle.ops.fused_add_scalars": "(x, c0, c1)",
    "needle.ops.conv": "(a, b, stride=1, padding=1)",
    "needle.ops.Conv": "(stride=1, padding=0)",
    "needle.ops.dilate": "(a, axes, dilation)",
    "needle.ops.undilate": "(a, axes, dilation)",
    "needle.ops.max_pool": "(a, kernel_size, stride=None, padding=0)",
    "needle.ops.avg_pool": "(a, kernel_size, stride=None, padding=0)",
    "needle.ops.split": "(a, axis)",
    "needle.init.kaiming_uniform": "(fan_in, fan_out, shape=None, nonlinearity='relu', **kwargs)",
    "needle.init.rand": "(*shape, low=0.0, high=1.0, device=None, dtype='float32',"
    " requires_grad=False)",
    "needle.init.randn": "(*shape, mean=0.0, std=1.0, device=None, dtype='float32',"
    " requires_grad=False)",
    "needle.init.zeros_like": "(array, *, device=None, requires_grad=False)",
    "needle.init.one_hot": "(n, i, device=None, dtype='float32', requires_grad=False)",
    "needle.init.xavier_uniform": "(fan_in, fan_out, gain=1.0, shape=None, **kwargs)",
    "needle.nn.Linear": "(in_features, out_features, bias=True, device=None, dtype='float32')",
    "needle.nn.BatchNorm1d": "(dim, eps=1e-05, momentum=0.1, device=None, dtype='float32')",
    "needle.nn.LayerNorm1d": "(dim, eps=1e-05, device=None, dtype='float32')",
    "needle.nn.Dropout": "(p=0.5)",
    "needle.nn.Residual": "(fn)",
    "needle.nn.Conv": "(in_channels, out_channels, kernel_size, stride=1, bias=True, device=None,"
    " dtype='float32')",
    "needle.nn.BatchNorm2d": "(dim, eps=1e-05, momentum=0.1, device=None, dtype='float32')",
    "needle.nn.Sequential": "(*modules)",
    "needle.nn.RNNCell": "(input_size, hidden_size, bias=True, nonlinearity='tanh', device=None,"
    " dtype='float32')",
    "needle.nn.RNN": "(input_size, hidden_size, num_layers=1, bias=True, nonlinearity='tanh',"
    " device=None, dtype='float32')",
    "needle.nn.LSTMCell": "(input_size, hidden_size, bias=True, device=None, dtype='float32')",
    "needle.nn.LSTM": "(input_size, hidden_size, num_layers=1, bias=True, device=None,"
    " dtype='float32')",
    "needle.nn.GRU": "(input_size, hidden_size, num_layers=1, bias=True, device=None,"
    " dtype='float32')",
    "needle.nn.Embedding": "(num_embeddings, embedding_dim, device=None, dtype='float32')",
    "needle.nn.LayerNorm": "(normalized_size, eps=1e-05, device=None, dtype='float32')",
    "needle.nn.MultiHeadAttention": "(*, dropout=0.0, causal=False, device=None, dtype='float32')",
    "needle.nn.AttentionLayer": "(q_features, num_head, dim_head, *, k_features=None,"
    " v_features=None, out_features=None, dropout=0.0, causal=True, device=None, dtype='float32')",
    "needle.nn.TransformerLayer": "(q_features, num_head, dim_head, hidden_size, *, dropout=0.0,"
    " causal=True, device=None, dtype='float32')",
    "needle.nn.Transformer": "(embedding_size, hidden_size, num_layers, *, num_head=8,"
    " dim_head=32, dropout=0.0, causal=True, device=None, dtype='float32', batch_first=False,"
    " sequence_len=2048)",
    "needle.optim.SGD": "(params, lr=0.01, momentum=0.0, weight_decay=0.0)",
    "needle.optim.Adam": "(params, lr=0.01, beta1=0.9, beta2=0.999, eps=1e-08, weight_decay=0.0)",
    "needle.summary": "(model, input_shape)",
    "needle.viz.graph": "(output, names=None, limit=500)",
    "needle.onnx.export": "(model, path, example)",
    "needle.data.MNISTDataset": "(image_filename, label_filename, transforms=None)",
    "needle.data.NDArrayDataset": "(*arrays)",
    "needle.data.RandomFlipHorizontal": "(p=0.5)",
    "needle.data.RandomCrop": "(padding=3)",
    "simple_ml.softmax_loss": "(Z, y_one_hot)",
    "simple_ml.nn_epoch": "(X, y, W1, W2, lr=0.1, batch=100)",
    "simple_ml.loss_err": "(h, y)",
    "mlp_resnet.epoch": "(dataloader, model, opt=None)",
    "models.ResNet9": "(device=None, dtype='float32')",
    "models.LanguageModel": "(embedding_size, output_size, hidden_size, num_layers=1,"
    " seq_model='rnn', seq_len=40, device=None, dtype='float32')",
}


@pytest.mark.parametrize("path", SIGNATURES)
def test_signatures_begin_as_promised(path):
    """A project may add parameters with defaults after those of the contract."""
    signature = inspect.signature(find(path))
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    promised = re.findall(r"[^,()]+", SIGNATURES[path])
    shown = [str(p) for p in plain]
    if "*" in [p.strip() for p in promised]:  # keywords only, from there on
        promised = [p for p in promised if p.strip() != "*"]
    assert shown[: len(promised)] == [p.strip() for p in promised]
    for extra in plain[len(promised) :]:
        assert extra.default is not extra.empty or extra.kind is extra.VAR_KEYWORD


FILES = (
    "python/needle/autograd.py python/needle/backend_numpy.py python/needle/backend_selection.py"
    " python/needle/ops/ops_mathematic.py python/needle/ops/ops_logarithmic.py"
    " python/needle/ops/ops_tuple.py python/needle/nn/nn_basic.py python/needle/nn/nn_conv.py"
    " python/needle/nn/nn_sequence.py python/needle/nn/nn_transformer.py"
    " python/needle/init/init_basic.py python/needle/init/init_initializers.py"
    " python/needle/optim.py python/needle/data/data_basic.py"
    " python/needle/data/data_transforms.py python/needle/data/datasets/mnist_dataset.py"
    " python/needle/data/datasets/ndarray_dataset.py python/needle/backend_ndarray/ndarray.py"
    " python/needle/backend_ndarray/ndarray_backend_numpy.py src/ndarray_backend_cpu.cc"
    " apps/simple_ml.py apps/mlp_resnet.py apps/models.py hw_stages/hw0/src/simple_ml.py"
    " hw_stages/hw0/src/simple_ml_ext.cpp"
)


@pytest.mark.parametrize("name", FILES.split())
def test_files_that_handouts_name(name):
    assert (ROOT / name).is_file()


def test_names_are_listed_and_exist():
    for module in (ndl, ndl.ops, ndl.init, ndl.nn, ndl.optim, ndl.data, ndl.autograd, nd):
        assert len(set(module.__all__)) == len(module.__all__)
        assert all(hasattr(module, name) for name in module.__all__)


def test_nothing_is_public_by_accident():
    """Only what is listed, the subpackages and Python's own names."""
    names = {name for name in vars(ndl) if not name.startswith("_")}
    modules = {name for name in names if inspect.ismodule(getattr(ndl, name))}
    assert names - modules == set(ndl.__all__) - modules
    for name in modules:
        module = getattr(ndl, name)
        assert module.__name__.startswith("needle."), f"needle.{name} is {module.__name__}"


def test_every_op_is_reachable_from_the_top():
    for name in ndl.ops.__all__:
        if name[0].islower():
            assert getattr(ndl, name, None) is getattr(ndl.ops, name), f"needle.{name} is missing"


def test_devices_have_their_names():
    assert [str(d) for d in (cpu(), cuda(), cpu_numpy())] == ["cpu()", "cuda()", "cpu_numpy()"]
    assert device.all_devices() == [cpu(), cuda(), cpu_numpy()]


KERNELS = (
    "to_numpy from_numpy fill compact ewise_setitem scalar_setitem ewise_add scalar_add ewise_mul"
    " scalar_mul ewise_div scalar_div scalar_power ewise_maximum scalar_maximum ewise_eq scalar_eq"
    " ewise_ge scalar_ge ewise_log ewise_exp ewise_tanh matmul matmul_tiled reduce_max reduce_sum"
)


def test_kernels_that_the_course_calls():
    assert not set(KERNELS.split()) - set(interface.kernel_names())


def test_flat_and_index_share_memory():
    """The course's gradient check writes through `flat`."""
    a = NDArray(np.zeros((2, 3)), device=cpu_numpy())
    a.flat[4] += 5
    assert a.numpy()[1, 1] == 5
    assert a.reshape((3, 2))._handle is a._handle is a.permute((1, 0))._handle
