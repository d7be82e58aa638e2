"""Stage hw0's reference answers: losses, gradients, and the C++ epoch against the Python one."""

import gzip
import importlib.util
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HW0 = Path(__file__).parents[2] / "hw_stages" / "hw0"
DIGITS = Path(__file__).parents[2] / "data" / "digits"
OUTSIDE = {name: os.environ[name] for name in os.environ if name != "MAKEFLAGS"}  # not of a `make`


def load(name, path):
    """Import a file under a name of its own: apps/ has a simple_ml too."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


simple_ml = load("hw0_simple_ml", HW0 / "src" / "simple_ml.py")


@pytest.fixture(scope="module")
def extension(tmp_path_factory):
    """The compiled module, built by the stage's Makefile away from the source tree."""
    leftovers = shutil.ignore_patterns("*.so", ".needle")
    folder = shutil.copytree(HW0, tmp_path_factory.mktemp("hw0") / "hw0", ignore=leftovers)
    command = ["make", f"PYTHON={sys.executable}"]
    built = subprocess.run(command, cwd=folder, env=OUTSIDE, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return load("simple_ml_ext", folder / "src" / "simple_ml_ext.so")


@pytest.fixture
def problem():
    """X float32 (53, 7), y uint8 (53,) of 4 classes, theta float32 (7, 4)."""
    rng = np.random.RandomState(0)
    X = rng.randn(53, 7).astype(np.float32)
    y = rng.randint(4, size=53).astype(np.uint8)
    return X, y, rng.randn(7, 4).astype(np.float32)


def numerical_gradient(loss, array, eps=1e-5):
    """Return d loss() / d array by central differences; array is float64 and put back."""
    gradient = np.zeros_like(array)
    for position in np.ndindex(*array.shape):
        kept = array[position]
        array[position] = kept + eps
        above = loss()
        array[position] = kept - eps
        below = loss()
        array[position] = kept
        gradient[position] = (above - below) / (2 * eps)
    return gradient


def test_add():
    assert simple_ml.add(5, 6) == 11
    assert isinstance(simple_ml.add(4.0, 4), float)
    np.testing.assert_array_equal(simple_ml.add(np.array([1, 2]), np.array([3, 4])), [4, 6])


def write_pair(folder, pixels, labels, image_magic=2051, label_magic=2049):
    """Write gzipped IDX files and return their paths."""
    paths = folder / "images.gz", folder / "labels.gz"
    header = struct.pack(">4I", image_magic, *pixels.shape)
    paths[0].write_bytes(gzip.compress(header + pixels.tobytes()))
    header = struct.pack(">2I", label_magic, len(labels))
    paths[1].write_bytes(gzip.compress(header + labels.tobytes()))
    return paths


def test_parse_mnist_hand_made(tmp_path):
    pixels = np.zeros((2, 28, 28), dtype=np.uint8)
    pixels[0, 0, :4] = [0, 128, 255, 64]
    pixels[1, 5, :5] = range(5)
    X, y = simple_ml.parse_mnist(*write_pair(tmp_path, pixels, np.array([7, 3], dtype=np.uint8)))
    assert X.dtype == np.float32 and X.shape == (2, 784)
    np.testing.assert_allclose(X[0, :4], [0, 0.5019608, 1, 0.2509804], rtol=1e-6)
    assert X[1].max() == pytest.approx(0.0156863, rel=1e-5)
    assert y.dtype == np.uint8 and y.tolist() == [7, 3]


def test_parse_mnist_embedded_digits():
    X, y = simple_ml.parse_mnist(
        DIGITS / "t10k-images-idx3-ubyte.gz", DIGITS / "t10k-labels-idx1-ubyte.gz"
    )
    assert X.shape == (1000, 784) and np.bincount(y).tolist() == [100] * 10


@pytest.mark.parametrize(
    ("labels", "magics", "message"),
    [
        (3, {}, "2 images but 3 labels"),
        (2, {"image_magic": 2049}, r"images\.gz: magic number 2049, not 2051"),
        (2, {"label_magic": 2051}, r"labels\.gz: magic number 2051, not 2049"),
    ],
)
def test_parse_mnist_refuses_what_is_no_pair(tmp_path, labels, magics, message):
    paths = write_pair(
        tmp_path, np.zeros((2, 3, 3), dtype=np.uint8), np.zeros(labels, dtype=np.uint8), **magics
    )
    with pytest.raises(ValueError, match=message):
        simple_ml.parse_mnist(*paths)


def test_parse_mnist_refuses_a_short_payload(tmp_path):
    paths = write_pair(tmp_path, np.zeros((2, 3, 3), dtype=np.uint8), np.zeros(2, dtype=np.uint8))
    paths[0].write_bytes(gzip.compress(struct.pack(">4I", 2051, 2, 3, 3) + bytes(10)))
    with pytest.raises(ValueError, match=r"images\.gz: 10 bytes, its header says 18"):
        simple_ml.parse_mnist(*paths)


def test_softmax_loss():
    Z = np.zeros((8, 10))
    assert simple_ml.softmax_loss(Z, np.arange(8, dtype=np.uint8)) == pytest.approx(np.log(10))
    rng = np.random.RandomState(0)
    Z, y = rng.randn(50, 10), rng.randint(10, size=50).astype(np.uint8)
    probabilities = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    expected = -np.mean([np.log(row[label]) for row, label in zip(probabilities, y, strict=True)])
    assert simple_ml.softmax_loss(Z, y) == pytest.approx(expected)


def test_loss_err():
    h = np.array([[3.0, 0.0], [0.0, 1.0], [2.0, 1.0], [0.0, 5.0]])
    y = np.array([0, 1, 1, 1], dtype=np.uint8)
    loss, error = simple_ml.loss_err(h, y)
    assert loss == pytest.approx(simple_ml.softmax_loss(h, y))
    assert error == 0.25


def test_softmax_step_is_the_numerical_gradient(problem):
    X, y, theta = problem
    theta = theta.astype(np.float64)
    expected = numerical_gradient(lambda: simple_ml.softmax_loss(X @ theta, y), theta)
    before = theta.copy()
    simple_ml.softmax_regression_epoch(X, y, theta, lr=1.0, batch=100)  # one short batch
    np.testing.assert_allclose(before - theta, expected, rtol=1e-4, atol=1e-4)


def test_nn_step_is_the_numerical_gradient_at_the_old_weights(problem):
    X, y, _ = problem
    rng = np.random.RandomState(1)
    W1, W2 = rng.randn(7, 5) / np.sqrt(5), rng.randn(5, 4) / np.sqrt(4)  # float64

    def loss():
        return simple_ml.softmax_loss(np.maximum(X @ W1, 0) @ W2, y)

    expected = numerical_gradient(loss, W1), numerical_gradient(loss, W2)
    before = W1.copy(), W2.copy()
    simple_ml.nn_epoch(X, y, W1, W2, lr=1.0, batch=100)
    np.testing.assert_allclose(before[0] - W1, expected[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(before[1] - W2, expected[1], rtol=1e-4, atol=1e-4)


def test_epochs_go_through_the_batches_in_order(problem):
    X, y, theta = problem
    whole, stepped = theta.copy(), theta.copy()
    simple_ml.softmax_regression_epoch(X, y, whole, lr=0.3, batch=10)
    for start in range(0, 53, 10):  # the last batch has three rows, and is averaged over three
        rows = slice(start, start + 10)
        simple_ml.softmax_regression_epoch(X[rows], y[rows], stepped, lr=0.3, batch=10)
    np.testing.assert_allclose(whole, stepped, rtol=1e-6)
    assert not np.allclose(whole, theta)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_python_epochs_work_in_place_and_return_none(problem, dtype):
    X, y, theta = problem
    theta = theta.astype(dtype)
    rng = np.random.RandomState(1)
    W1, W2 = rng.randn(7, 5).astype(dtype), rng.randn(5, 4).astype(dtype)
    before = [array.copy() for array in (X, theta, W1, W2)]
    assert simple_ml.softmax_regression_epoch(X, y, theta) is None
    assert simple_ml.nn_epoch(X, y, W1, W2) is None
    np.testing.assert_array_equal(X, before[0])
    for changed, old in zip((theta, W1, W2), before[1:], strict=True):
        assert changed.dtype == dtype and not np.array_equal(changed, old)


@pytest.mark.parametrize("batch", [1, 10, 53, 100])
def test_cpp_epoch_equals_the_python_epoch(extension, problem, batch):
    X, y, theta = problem
    python, cpp = theta.copy(), theta.copy()
    simple_ml.softmax_regression_epoch(X, y, python, lr=0.2, batch=batch)
    result = extension.softmax_regression_epoch_cpp(X=X, y=y, theta=cpp, lr=0.2, batch=batch)
    assert result is None
    np.testing.assert_allclose(cpp, python, rtol=1e-4, atol=1e-5)
    assert not np.allclose(cpp, theta)


def test_cpp_epoch_on_no_rows_changes_nothing(extension, problem):
    X, y, theta = problem
    before = theta.copy()
    extension.softmax_regression_epoch_cpp(X[:0], y[:0], theta, 0.1, 10)
    np.testing.assert_array_equal(theta, before)


@pytest.mark.parametrize(
    ("changed", "compiled"),
    [
        ("simple_ml_ext.cpp", {"simple_ml_ext.cpp"}),
        ("simple_ml_ext_module.cpp", {"simple_ml_ext_module.cpp"}),
        ("simple_ml_ext.h", {"simple_ml_ext.cpp", "simple_ml_ext_module.cpp"}),
        ("simple_ml.py", set()),
    ],
)
def test_make_compiles_only_what_changed(extension, changed, compiled):
    """The binding takes seconds to compile; an edit of the loops must not wait for it."""
    folder = Path(extension.__file__).parents[1]
    command = ["make", "--dry-run", f"--what-if=src/{changed}"]
    planned = subprocess.run(command, cwd=folder, env=OUTSIDE, capture_output=True, text=True)
    assert set(re.findall(r"-c src/(\S+)", planned.stdout)) == compiled
    assert ("-shared" in planned.stdout) == bool(compiled)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda X, y, theta: (X.astype(np.float64), y, theta), TypeError, "X has dtype float64"),
        (lambda X, y, theta: (X, y.astype(np.int64), theta), TypeError, "y has dtype int64"),
        (lambda X, y, theta: (X, y, theta.astype("f8")), TypeError, "theta has dtype float64"),
        (lambda X, y, theta: (X, y, theta.T.copy().T), ValueError, "theta is not C-contiguous"),
        (lambda X, y, theta: (X[:, ::2], y, theta[:4]), ValueError, "X is not C-contiguous"),
        (lambda X, y, theta: (X[0], y, theta), ValueError, "X has 1 axes; it must have 2"),
        (lambda X, y, theta: (X, y[:-1], theta), ValueError, r"X \(53, 7\), y \(52,\)"),
        (lambda X, y, theta: (X, y, theta[:-1]), ValueError, r"theta \(6, 4\)"),
        (lambda X, y, theta: (X, y + 1, theta), ValueError, "is 4; theta has 4 classes"),
    ],
)
def test_cpp_epoch_refuses_arrays_that_do_not_fit(extension, problem, change, error, message):
    X, y, theta = change(*problem)
    before = theta.copy()
    with pytest.raises(error, match=rf"\[softmax_regression_epoch_cpp\] .*{message}"):
        extension.softmax_regression_epoch_cpp(X, y, theta, lr=0.1, batch=10)
    np.testing.assert_array_equal(theta, before)


def test_cpp_epoch_refuses_other_bad_arguments(extension, problem):
    X, y, theta = problem
    with pytest.raises(ValueError, match="batch is 0; it must be at least 1"):
        extension.softmax_regression_epoch_cpp(X, y, theta, lr=0.1, batch=0)
    theta.flags.writeable = False
    with pytest.raises(ValueError, match="not writeable"):
        extension.softmax_regression_epoch_cpp(X, y, theta, lr=0.1, batch=10)


def rows_of(table):
    """Return the numbers of a printed training table."""
    lines = [line for line in table.splitlines() if line.startswith("|  ")]
    return np.array([[float(cell) for cell in line.strip("| ").split("|")] for line in lines])


def test_train_softmax_prints_one_falling_row_an_epoch(extension, problem, capsys, monkeypatch):
    X, y, _ = problem
    simple_ml.train_softmax(X, y, X, y, epochs=3)
    python = rows_of(capsys.readouterr().out)
    monkeypatch.setattr(
        simple_ml, "softmax_regression_epoch_cpp", extension.softmax_regression_epoch_cpp
    )
    simple_ml.train_softmax(X, y, X, y, epochs=3, cpp=True)
    cpp = rows_of(capsys.readouterr().out)
    assert python.shape == (3, 5) and python[0, 1] > python[1, 1] > python[2, 1]
    np.testing.assert_allclose(cpp, python, atol=2e-5)


def test_train_softmax_without_the_extension(problem, monkeypatch):
    X, y, _ = problem
    monkeypatch.setattr(simple_ml, "softmax_regression_epoch_cpp", None)
    with pytest.raises(RuntimeError, match="simple_ml_ext is not built; run make"):
        simple_ml.train_softmax(X, y, X, y, cpp=True)


def test_train_nn_learns(problem, capsys):
    X, y, _ = problem
    simple_ml.train_nn(X, y, X, y, hidden_dim=20, epochs=30, batch=10)
    table = rows_of(capsys.readouterr().out)
    assert table[-1, 1] < table[0, 1] / 2
