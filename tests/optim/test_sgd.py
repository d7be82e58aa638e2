"""SGD, and what all optimizers have: updates against numpy, state, missing gradients, devices."""

import numpy as np
import pytest

import needle as ndl
from needle import nn, optim
from needle.errors import NeedleError

OPTIMIZERS = {
    "SGD": lambda params: optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=0.1),
    "Adam": lambda params: optim.Adam(params, lr=0.1, weight_decay=0.1),
}


def each_optimizer(function):
    return pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)(function)


def parameter(values, device):
    return nn.Parameter(ndl.Tensor(values, device=device, dtype="float32", requires_grad=False))


def give_gradient(p, values):
    p.grad = ndl.Tensor(values, device=p.device, dtype="float32", requires_grad=False)


def states(opt):
    """Return the dictionaries of an optimizer's state: Tensors by parameter."""
    return [opt.u] if isinstance(opt, optim.SGD) else [opt.m, opt.v]


def train_step(model, opt, x):
    y = model(x)
    opt.reset_grad()
    (y * y).sum().backward()
    opt.step()


# --- SGD ---


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_sgd_against_numpy(device, momentum, weight_decay, rng):
    shapes = [(3, 2), (1, 2), ()]
    expected = [rng.standard_normal(shape) for shape in shapes]
    velocities = [np.zeros(shape) for shape in shapes]
    params = [parameter(values, device) for values in expected]
    opt = optim.SGD(params, lr=0.3, momentum=momentum, weight_decay=weight_decay)
    for _ in range(5):
        for i, p in enumerate(params):
            grad = rng.standard_normal(p.shape)
            give_gradient(p, grad)
            g = grad + weight_decay * expected[i]
            velocities[i] = momentum * velocities[i] + (1 - momentum) * g
            expected[i] = expected[i] - 0.3 * velocities[i]
        opt.step()
        for p, values in zip(params, expected, strict=True):
            np.testing.assert_allclose(p.numpy(), values, rtol=1e-5, atol=1e-6)
    if momentum:
        for p, u in zip(params, velocities, strict=True):
            np.testing.assert_allclose(opt.u[p].numpy(), u, rtol=1e-5, atol=1e-6)


def test_sgd_decays_inside_the_gradient_and_weighs_it_by_1_minus_momentum(device):
    p = parameter(1.0, device)
    opt = optim.SGD([p], lr=0.1, momentum=0.9, weight_decay=0.1)
    moved = []
    for _ in range(2):
        give_gradient(p, 1.0)
        opt.step()
        moved.append(p.item())
    np.testing.assert_allclose(moved, [0.989, 0.968111], rtol=1e-6)  # PyTorch: 0.89, 0.6821


def test_sgd_defaults(device):
    p = parameter(1.0, device)
    give_gradient(p, 2.0)
    optim.SGD([p]).step()
    assert p.item() == pytest.approx(1 - 0.01 * 2)


def test_velocity_waits_while_there_is_no_gradient(device):
    p = parameter(1.0, device)
    opt = optim.SGD([p], lr=1, momentum=0.5)
    give_gradient(p, 1.0)
    opt.step()
    opt.reset_grad()
    opt.step()
    assert p.item() == 0.5 and opt.u[p].item() == 0.5
    give_gradient(p, 1.0)
    opt.step()
    assert opt.u[p].item() == 0.75 and p.item() == -0.25


# --- every optimizer ---


@each_optimizer
def test_state_and_parameters_stay_leaves_on_their_device(device, make, rng):
    model = nn.Sequential(nn.Linear(3, 4, device=device), nn.BatchNorm1d(4, device=device))
    params, shapes = model.parameters(), [p.shape for p in model.parameters()]
    opt = make(params)
    for batch in (32, 32, 7):
        train_step(
            model, opt, ndl.Tensor(rng.standard_normal((batch, 3)), device=device, dtype="float32")
        )
        assert [p.grad.shape for p in params] == shapes
        assert [p.grad.device for p in params] == [device] * len(params)
    assert all(a is b for a, b in zip(model.parameters(), params, strict=True))
    for p, shape in zip(params, shapes, strict=True):
        assert p.op is None and p.is_leaf() and p.requires_grad
        for tensor in (p, *(state[p] for state in states(opt))):
            assert tensor.shape == shape and tensor.device == device
            assert tensor.numpy().dtype == np.float32
    for state in states(opt):
        assert len(state) == len(params)
        for tensor in state.values():
            assert tensor.op is None and len(tensor.inputs) == 0 and not tensor.requires_grad


@each_optimizer
def test_gradients_are_left_as_they_are(device, make):
    p = parameter([1.0, 2.0], device)
    give_gradient(p, [3.0, -4.0])
    grad = p.grad
    make([p]).step()
    assert p.grad is grad
    np.testing.assert_array_equal(grad.numpy(), [3, -4])


@each_optimizer
def test_weights_that_the_loss_does_not_use_stay(device, make, rng):
    used, unused = (nn.Linear(3, 3, device=device) for _ in range(2))
    before = [p.numpy() for p in unused.parameters()]
    opt = make([*unused.parameters(), *used.parameters()])
    for _ in range(3):
        train_step(
            used, opt, ndl.Tensor(rng.standard_normal((4, 3)), device=device, dtype="float32")
        )
    for p, values in zip(unused.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.numpy(), values)
        assert all(p not in state for state in states(opt))


@each_optimizer
def test_a_step_before_any_backward_changes_nothing(device, make):
    p = parameter([1.0, 2.0], device)
    make([p]).step()
    np.testing.assert_array_equal(p.numpy(), [1, 2])


@each_optimizer
def test_reset_grad_forgets_gradients(device, make):
    p = parameter([1.0, 2.0], device)
    opt = make([p])
    give_gradient(p, [1.0, 1.0])
    opt.reset_grad()
    assert p.grad is None
    opt.step()
    np.testing.assert_array_equal(p.numpy(), [1, 2])


@each_optimizer
def test_params_may_be_any_iterable(device, make):
    params = [parameter([1.0], device), parameter([2.0], device)]
    opt = make(p for p in params)
    assert opt.params == params
    for p in params:
        give_gradient(p, [1.0])
    opt.step()
    assert params[0].item() != 1 and params[1].item() != 2


@each_optimizer
def test_params_must_be_tensors(make):
    with pytest.raises(NeedleError, match=r"params must be Tensors; pass model\.parameters\(\)"):
        make([nn.Linear(2, 2)])


@each_optimizer
def test_shared_weights_move_once(device, make, rng):
    x = rng.standard_normal((4, 3)).astype(np.float32)
    weight = rng.standard_normal((3, 3)).astype(np.float32)
    shared, twin = (nn.Linear(3, 3, bias=False, device=device) for _ in range(2))
    for layer in (shared, twin):
        layer.weight.data = ndl.Tensor(weight, device=device, dtype="float32")
    train_step(
        shared,
        make(nn.Sequential(shared, shared).parameters()),
        ndl.Tensor(x, device=device, dtype="float32"),
    )
    train_step(twin, make(twin.parameters()), ndl.Tensor(x, device=device, dtype="float32"))
    np.testing.assert_array_equal(shared.weight.numpy(), twin.weight.numpy())


@each_optimizer
def test_a_rate_may_change_between_steps(device, make):
    p = parameter([1.0], device)
    opt = make([p])
    opt.lr = 0.0
    give_gradient(p, [1.0])
    opt.step()
    assert p.item() == 1
    opt.lr = np.float64(0.5)
    opt.step()
    assert p.item() != 1


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam])
def test_numpy_scalars_as_settings_keep_float32(device, kind):
    p = parameter([1.0], device)
    opt = kind([p], lr=np.float64(1e-2), weight_decay=np.float64(0.1))
    give_gradient(p, [1.0])
    opt.step()
    opt.lr = np.float64(0.1)
    opt.step()
    for tensor in (p, *(t for state in states(opt) for t in state.values())):
        assert tensor.numpy().dtype == np.float32


@each_optimizer
def test_float64_parameters_stay_float64(make):
    device = "cpu_numpy" if ndl.BACKEND == "nd" else None
    p = nn.Parameter(ndl.Tensor([1.0], device=device, dtype="float64"))
    opt = make([p])
    (p * p).sum().backward()
    opt.step()
    for tensor in (p, *(t for state in states(opt) for t in state.values())):
        assert tensor.numpy().dtype == np.float64


@each_optimizer
def test_it_learns(device, make, rng):
    target = parameter([[1.0, -2.0]], device)
    p = parameter([[5.0, 5.0]], device)
    opt = make([p])
    opt.weight_decay = 0.0
    losses = []
    for _ in range(120):
        loss = nn.MSELoss()(p, target.detach())
        opt.reset_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 < losses[0]


def test_the_base_class_takes_no_step():
    with pytest.raises(NotImplementedError):
        optim.Optimizer([]).step()
