"""The hw1 and hw2 parts once more with NEEDLE_BACKEND=np, as those stages are taught.

The backend is chosen at import, so one pytest in a process of its own runs the files; here each of
them is a test that counts what passed there.
"""

import pytest

from tests.inner_run import passed_and_failures, run_files

FILES = (
    "tests/autograd/test_tensor.py",
    "tests/autograd/test_gradcheck.py",
    "tests/autograd/test_graph.py",
    "tests/autograd/test_backward.py",
    "tests/autograd/test_second_order.py",
    "tests/autograd/test_memory.py",
    "tests/autograd/test_recording.py",
    "tests/autograd/test_operators.py",
    "tests/autograd/test_exchange.py",
    "tests/autograd/test_hooks.py",
    "tests/autograd/test_function.py",
    "tests/autograd/test_config.py",
    "tests/ops/test_elementwise.py",
    "tests/ops/test_shape_ops.py",
    "tests/ops/test_reductions.py",
    "tests/ops/test_matmul_op.py",
    "tests/ops/test_logarithmic.py",
    "tests/ops/test_indexing.py",
    "tests/ops/test_take.py",
    "tests/ops/test_tuple.py",
    "tests/ops/test_stack_split.py",
    "tests/ops/test_flip_dilate.py",
    "tests/ops/test_conv.py",
    "tests/ops/test_pooling.py",
    "tests/ops/test_statistics.py",
    "tests/init/test_init.py",
    "tests/nn/test_modules.py",
    "tests/nn/test_layers.py",
    "tests/nn/test_losses.py",
    "tests/nn/test_normalization.py",
    "tests/nn/test_dropout.py",
    "tests/nn/test_conv_layers.py",
    "tests/nn/test_recurrent.py",
    "tests/nn/test_embedding.py",
    "tests/nn/test_transformer.py",
    "tests/nn/test_functional.py",
    "tests/optim/test_sgd.py",
    "tests/optim/test_adam.py",
    "tests/optim/test_rmsprop_adamw.py",
    "tests/optim/test_state.py",
    "tests/optim/test_schedules.py",
    "tests/optim/test_clipping.py",
    "tests/optim/test_memory.py",
    "tests/data/test_dataloader.py",
    "tests/data/test_datasets.py",
    "tests/data/test_transforms.py",
    "tests/data/test_sampler.py",
    "tests/data/test_cifar10.py",
    "tests/data/test_ptb.py",
    "tests/serialization/test_torch_layout.py",
    "tests/viz/test_viz.py",
    "tests/viz/test_summary.py",
    "tests/onnx_export/test_onnx.py",
)


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """Run the files; return the test cases of the report by file."""
    return run_files(FILES, tmp_path_factory.mktemp("numpy_backend"), NEEDLE_BACKEND="np")


@pytest.mark.parametrize("name", FILES)
def test_file_on_raw_numpy(name, cases):
    passed, failures = passed_and_failures(cases[name])
    assert not failures, f"{len(failures)} failed with NEEDLE_BACKEND=np:\n" + "\n".join(failures)
    assert passed > 5, f"only {passed} tests ran"
