"""Training keeps no Tensor alive from step to step, without the help of the garbage collector."""

import gc

import numpy as np
import pytest

import needle as ndl
from needle import nn, optim

OPTIMIZERS = {
    "SGD": lambda params: optim.SGD(params, lr=0.01),
    "SGD with momentum": lambda params: optim.SGD(params, lr=0.01, momentum=0.9, weight_decay=0.01),
    "Adam": lambda params: optim.Adam(params, lr=0.01, weight_decay=0.01),
}

# The course allows that many live Tensors after its optimizer tests; graphs that stay alive exceed
# it in a few steps.
COURSE_LIMITS = {"SGD with momentum": 1387, "Adam": 2132}


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def model_on(device):
    return nn.Sequential(
        nn.Linear(8, 16, device=device),
        nn.BatchNorm1d(16, device=device),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Residual(
            nn.Sequential(nn.Linear(16, 16, device=device), nn.LayerNorm1d(16, device=device))
        ),
        nn.Linear(16, 3, device=device),
    )


def train(model, opt, steps, device, rng, after_step=lambda: None, clip=False):
    """Take steps on random batches; return the losses."""
    loss_fn, losses = nn.SoftmaxLoss(), []
    for _ in range(steps):
        x = ndl.Tensor(
            rng.standard_normal((6, 8)), device=device, dtype="float32", requires_grad=False
        )
        y = ndl.Tensor(rng.integers(0, 3, 6), device=device, dtype="float32", requires_grad=False)
        loss = loss_fn(model(x), y)
        opt.reset_grad()
        loss.backward()
        if clip:
            opt.clip_grad_norm(1.0)
        opt.step()
        losses.append(loss.item())
        after_step()
    return losses


@pytest.mark.parametrize("clip", [False, True], ids=["", "clipped"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_live_tensors_do_not_grow(device, name, clip, no_collector, rng):
    model = model_on(device)
    opt = OPTIMIZERS[name](model.parameters())
    counts = []
    train(
        model, opt, 30, device, rng, lambda: counts.append(ndl.autograd.TENSOR_COUNTER), clip=clip
    )
    assert counts[4] == counts[29], counts


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_parameters_and_state_have_no_graph(device, name, no_collector, rng):
    model = model_on(device)
    opt = OPTIMIZERS[name](model.parameters())
    train(model, opt, 5, device, rng)
    assert all(p.op is None and p.requires_grad for p in model.parameters())
    state = [
        t for by_parameter in (vars(opt).get(k, {}) for k in "umv") for t in by_parameter.values()
    ]
    buffers = [model.modules[1].running_mean, model.modules[1].running_var]
    assert all(t.op is None and not t.requires_grad for t in (*state, *buffers))


@pytest.mark.parametrize("name", COURSE_LIMITS)
def test_live_tensors_stay_within_the_courses_limits(device, name, no_collector, rng):
    before = ndl.autograd.TENSOR_COUNTER
    model = model_on(device)
    opt = OPTIMIZERS[name](model.parameters())
    train(model, opt, 40, device, rng)
    assert ndl.autograd.TENSOR_COUNTER - before < COURSE_LIMITS[name]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_everything_goes_with_the_model(device, name, no_collector, rng):
    before = ndl.autograd.TENSOR_COUNTER
    model = model_on(device)
    opt = OPTIMIZERS[name](model.parameters())
    losses = train(model, opt, 3, device, rng)
    assert np.isfinite(losses).all()
    del model, opt
    assert before == ndl.autograd.TENSOR_COUNTER


def test_an_epoch_of_evaluation_leaves_nothing(device, no_collector, rng):
    model = model_on(device).eval()
    counts = []
    for _ in range(10):
        with ndl.no_grad():
            y = model(ndl.Tensor(rng.standard_normal((6, 8)), device=device, dtype="float32"))
        assert y.op is None
        counts.append(ndl.autograd.TENSOR_COUNTER)
    assert counts[1] == counts[-1]
