"""The losses: values at any magnitude, gradients, labels, losses as Python numbers."""

import re

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.errors import IndexingError, ShapeError
from tests.gradcheck import check_gradients
from tests.nn.module_gradcheck import check_module


def cross_entropy(logits, labels):
    """Return the mean of logsumexp - picked logit, in float64."""
    z = np.asarray(logits, np.float64)
    top = z.max(1, keepdims=True)
    lse = np.log(np.exp(z - top).sum(1)) + top[:, 0]
    return (lse - z[np.arange(len(z)), labels]).mean()


def softmax_loss(logits, labels, device):
    return nn.SoftmaxLoss()(ndl.Tensor(logits, device=device), ndl.Tensor(labels, device=device))


# --- SoftmaxLoss ---


@pytest.mark.parametrize("batch, classes", [(1, 1), (1, 10), (7, 3), (50, 10)])
@pytest.mark.parametrize("scale", [1, 100])
def test_softmax_loss(device, batch, classes, scale, rng):
    logits = (rng.standard_normal((batch, classes)) * scale).astype(np.float32)
    labels = rng.integers(0, classes, batch)
    loss = softmax_loss(logits, labels, device)
    assert loss.shape == () and loss.device == device and loss.numpy().dtype == np.float32
    np.testing.assert_allclose(loss.numpy(), cross_entropy(logits, labels), rtol=1e-5, atol=1e-6)


LARGE = [-249.873, -424.127, -460.293, 378.097, -292.615]


@pytest.mark.parametrize(
    "logits, label, expected",
    [
        (LARGE, 3, 0),
        (LARGE, 0, 627.9705),
        ([1000, 1000], 1, np.log(2)),
        ([-1e4, -1e4, -1e4], 2, np.log(3)),
        ([1e8, 1e8], 0, np.log(2)),
        ([1e10, -1e10], 0, 0),
        ([1e5, 0], 1, 1e5),
    ],
)
def test_softmax_loss_survives_large_logits(device, logits, label, expected):
    z = ndl.Tensor([logits], device=device)
    loss = nn.SoftmaxLoss()(z, ndl.Tensor([label], device=device))
    loss.backward()
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-5, atol=1e-5)
    assert np.isfinite(z.grad.numpy()).all()
    np.testing.assert_allclose(z.grad.numpy().sum(1), [0], atol=1e-6)


def test_softmax_loss_gradient_is_softmax_less_one_hot(device, rng):
    logits = rng.standard_normal((6, 4)).astype(np.float32)
    labels = rng.integers(0, 4, 6)
    z = ndl.Tensor(logits, device=device)
    nn.SoftmaxLoss()(z, ndl.Tensor(labels, device=device)).backward()
    e = np.exp(logits)
    expected = (e / e.sum(1, keepdims=True) - np.eye(4)[labels]) / 6
    assert z.grad.device == device and z.grad.numpy().dtype == np.float32
    np.testing.assert_allclose(z.grad.numpy(), expected, rtol=1e-4, atol=1e-6)


def test_softmax_loss_gradient_in_float64(rng):
    labels = ndl.Tensor([2, 0, 1, 1])
    check_module(nn.SoftmaxLoss(), rng.standard_normal((4, 3)), rng=rng, others=(labels,))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32])
def test_labels_of_any_dtype_give_the_same_loss(device, dtype, rng):
    logits = rng.standard_normal((5, 10)).astype(np.float32)
    labels = np.array([0, 9, 3, 3, 7])
    loss = softmax_loss(logits, labels.astype(dtype), device)
    np.testing.assert_allclose(loss.numpy(), cross_entropy(logits, labels), rtol=1e-5)


@pytest.mark.parametrize("label", [10, -1])
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_a_label_that_is_no_class_is_refused(device, label, dtype):
    with pytest.raises(IndexingError, match=rf"label {label} is not one of 0\.\.9"):
        softmax_loss(np.zeros((3, 10)), np.array([0, label, 9], dtype), device)


@pytest.mark.skipif(ndl.BACKEND == "np", reason="there is one device")
def test_labels_may_lie_on_another_device(device, rng):
    logits = rng.standard_normal((3, 4)).astype(np.float32)
    labels = ndl.Tensor([1, 2, 3], device="cpu_numpy")
    loss = nn.SoftmaxLoss()(ndl.Tensor(logits, device=device), labels)
    assert loss.device == device
    np.testing.assert_allclose(loss.numpy(), cross_entropy(logits, [1, 2, 3]), rtol=1e-5)


@pytest.mark.parametrize(
    "logits, labels",
    [((3, 4), (2,)), ((3, 4), (3, 1)), ((4,), (4,)), ((2, 3, 4), (2,)), ((3, 4), ())],
)
def test_softmax_loss_says_which_shapes_do_not_fit(device, logits, labels):
    message = f"[SoftmaxLoss] logits {logits} and labels {labels}; give (B, K) and (B,)"
    with pytest.raises(ShapeError, match=re.escape(message)):
        softmax_loss(np.zeros(logits), np.zeros(labels), device)


def test_an_empty_batch_has_no_mean(device):
    with pytest.raises(ShapeError, match=r"\[SoftmaxLoss\].*\(0, 4\)"):
        softmax_loss(np.zeros((0, 4)), np.zeros(0), device)


def test_labels_need_no_gradient(device):
    labels = ndl.Tensor([1.0, 0.0], device=device)
    nn.SoftmaxLoss()(ndl.Tensor(np.zeros((2, 3)), device=device), labels).backward()
    assert labels.grad is None


# --- MSELoss ---


@pytest.mark.parametrize("shape", [(3,), (2, 4), (), (2, 3, 4)], ids=str)
def test_mse_is_the_mean_over_all_elements(device, shape, rng):
    a, b = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
    prediction = ndl.Tensor(a, device=device)
    loss = nn.MSELoss()(prediction, ndl.Tensor(b, device=device, requires_grad=False))
    loss.backward()
    assert loss.shape == () and loss.device == device
    np.testing.assert_allclose(loss.numpy(), ((a - b) ** 2).mean(), rtol=1e-5)
    np.testing.assert_allclose(prediction.grad.numpy(), 2 * (a - b) / a.size, rtol=1e-5, atol=1e-6)


def test_mse_gradient_in_float64(rng):
    check_module(nn.MSELoss(), rng.standard_normal((3, 2)), rng.standard_normal((3, 2)), rng=rng)


@pytest.mark.parametrize("shapes", [((3, 1), (3,)), ((2, 3), (3,)), ((2,), (3,))])
def test_mse_does_not_broadcast(device, shapes):
    a, b = (ndl.Tensor(np.zeros(shape), device=device) for shape in shapes)
    message = f"[MSELoss] prediction {shapes[0]} and target {shapes[1]} differ"
    with pytest.raises(ShapeError, match=re.escape(message)):
        nn.MSELoss()(a, b)


# --- a loss as a Python number ---


@pytest.fixture(params=["softmax", "mse"])
def loss(request, device):
    if request.param == "softmax":
        return softmax_loss([[1.0, 2.0], [3.0, 0.5]], [1, 0], device)
    return nn.MSELoss()(
        ndl.Tensor([1.0, 3.0], device=device), ndl.Tensor([1.5, 2.0], device=device)
    )


def test_a_loss_becomes_a_python_number(loss):
    number = loss.item()
    assert type(number) is float
    assert float(loss) == float(loss.numpy()) == number
    assert "%f" % loss.numpy() == f"{loss.numpy():f}" == f"{number:f}"  # noqa: UP031
    assert round(float(loss.numpy()), 3) == round(number, 3)
    losses = np.zeros(2)
    losses[1] = loss.numpy()
    assert losses[1] == number


def test_a_loss_is_an_array_of_shape_nothing(loss):
    assert loss.shape == ()
    assert isinstance(loss.numpy(), np.ndarray) and loss.numpy().shape == ()


# --- CrossEntropyLoss ---


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("with_labels", [True, False])
def test_cross_entropy(device, rng, batched, with_labels):
    logits = rng.standard_normal((4, 3) if batched else (3,)).astype(np.float32)
    if with_labels:
        target = np.array([2, 0, 1, 2]) if batched else np.array(1)
    else:
        target = rng.dirichlet(np.ones(3), 4 if batched else None)
    x = ndl.Tensor(logits, device=device)
    loss = nn.CrossEntropyLoss()(x, ndl.Tensor(target, device=device, requires_grad=False))
    assert loss.shape == () and loss.device == device
    loss.backward()
    e = np.exp(logits.astype(np.float64))
    softmax = e / e.sum(-1, keepdims=True)
    p = np.eye(3)[target] if with_labels else target
    count = 4 if batched else 1
    np.testing.assert_allclose(loss.item(), -(p * np.log(softmax)).sum() / count, rtol=1e-5)
    expected = (softmax - p) / count
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-4, atol=1e-6)


def test_cross_entropy_learns_probabilities_too(rng):
    logits, target = rng.standard_normal((2, 3)), rng.dirichlet(np.ones(3), 2)
    check_gradients(lambda x, p: nn.CrossEntropyLoss()(x, p), logits, target, rng=rng)


@pytest.mark.parametrize("magnitude", [1e4, 1e8])
def test_cross_entropy_at_any_magnitude(device, magnitude):
    x = ndl.Tensor([[magnitude, magnitude], [-magnitude, magnitude]], device=device)
    y = ndl.Tensor([0, 1], device=device, requires_grad=False)
    assert nn.CrossEntropyLoss()(x, y).item() == pytest.approx(np.log(2) / 2)


@pytest.mark.parametrize(
    ("logits", "target"),
    [
        ((4, 3), (3,)),
        ((4, 3), (4, 2)),
        ((4, 3), (4, 1)),
        ((3,), (2,)),
        ((0, 3), (0,)),
        ((), ()),
        ((2, 3, 4), (2, 3)),
    ],
)
def test_cross_entropy_refuses_other_shapes(device, logits, target):
    with pytest.raises(ShapeError, match=r"\[CrossEntropyLoss\] logits .* and target .*; give"):
        nn.CrossEntropyLoss()(ndl.zeros(*logits, device=device), ndl.zeros(*target, device=device))


@pytest.mark.parametrize("label", [3, -1])
def test_cross_entropy_refuses_labels_that_are_no_class(device, label):
    with pytest.raises(IndexingError, match=str(label)):
        nn.CrossEntropyLoss()(
            ndl.zeros(1, 3, device=device), ndl.Tensor([label], device=device, requires_grad=False)
        )
