"""Optimizers: how parameters move along their gradients.

State and updates are constants: no step records a graph. Parameters without a gradient are left
alone.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from needle.autograd import Tensor
from needle.errors import NeedleError, ShapeError
from needle.init import zeros_like
from needle.nn import Parameter

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LambdaLR",
    "LinearWarmup",
    "Optimizer",
    "RMSprop",
    "Schedule",
    "StepLR",
    "clip_grad_norm",
]


class Optimizer:
    """What every optimizer has: the parameters, `lr`, `step` and `reset_grad`."""

    lr: float

    ### SINCE full
    # Names of the attributes that hold a Tensor for each parameter that has moved.
    moments: tuple[str, ...] = ()

    ### END SINCE
    def __init__(self, params: Iterable[Parameter]) -> None:
        self.params = list(params)
        if not all(isinstance(p, Tensor) for p in self.params):
            raise NeedleError("[optim] params must be Tensors; pass model.parameters()")

    def step(self) -> None:
        """Move every parameter that has a gradient."""
        raise NotImplementedError

    def reset_grad(self) -> None:
        """Forget all gradients."""
        for p in self.params:
            p.grad = None

    ### SINCE full
    zero_grad = reset_grad  # PyTorch's name

    ### END SINCE
    ### SINCE hw4
    def clip_grad_norm(self, max_norm: float = 0.25) -> float:
        """Scale the gradients down so that their joint norm is at most `max_norm`; return the norm
        before.
        """
        return clip_grad_norm(self.params, max_norm)

    ### END SINCE
    ### SINCE full
    def state_dict(self) -> dict[str, Any]:
        """Return what training needs to go on: "lr", "t" if steps are counted, and the moments as
        arrays, such as "m.0" for the first parameter.
        """
        state: dict[str, Any] = {"lr": self.lr}
        if hasattr(self, "t"):
            state["t"] = self.t
        for name in self.moments:
            moment = getattr(self, name)
            for i, p in enumerate(self.params):
                if p in moment:
                    state[f"{name}.{i}"] = moment[p].numpy()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned, for parameters of the same shapes in the same
        order. Nothing is changed if anything does not fit.

        Raises:
            NeedleError: for a name that this optimizer does not know.
            ShapeError: for a moment of another shape than its parameter.
        """
        moments: dict[str, dict[Tensor, Tensor]] = {name: {} for name in self.moments}
        for key, value in state.items():
            name, _, position = key.partition(".")
            if key in ("lr", "t") and hasattr(self, key):
                continue
            if name not in moments or not position.isdigit() or int(position) >= len(self.params):
                raise NeedleError(
                    f"[load_state_dict] {type(self).__name__} with {len(self.params)} parameters "
                    f"has no state {key!r}"
                )
            p = self.params[int(position)]
            if tuple(np.shape(value)) != p.shape:
                raise ShapeError(
                    f"[load_state_dict] {key} has shape {np.shape(value)}, its parameter {p.shape}"
                )
            moments[name][p] = Tensor(value, device=p.device, dtype=p.dtype, requires_grad=False)
        self.lr = float(state["lr"])
        if hasattr(self, "t"):
            self.t = int(state["t"])
        for name, moment in moments.items():
            setattr(self, name, moment)

    ### END SINCE


class SGD(Optimizer):
    """Stochastic gradient descent: g = grad + weight_decay * p; u = momentum * u + (1 - momentum) *
    g; p -= lr * u.

    NB: PyTorch's momentum has no factor (1 - momentum).
    """

    ### SINCE full
    moments = ("u",)

    ### END SINCE
    def __init__(
        self,
        params: Iterable[Parameter],
        lr: float = 0.01,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params)
        self.lr = float(lr)
        self.momentum = float(momentum)
        self.weight_decay = float(weight_decay)
        self.u: dict[Tensor, Tensor] = {}

    def step(self) -> None:
        """Move every parameter that has a gradient."""
        ### BEGIN SOLUTION hw2.sgd.step
        for p in self.params:
            if p.grad is None:
                continue
            update = p.grad.data
            if self.weight_decay:
                update = update + self.weight_decay * p.data
            if self.momentum:
                if p not in self.u:
                    self.u[p] = zeros_like(p)
                self.u[p].data = self.momentum * self.u[p].data + (1 - self.momentum) * update
                update = self.u[p].data
            p.data = p.data + update * -self.lr  # a subtraction would be two ops
        ### END SOLUTION


class Adam(Optimizer):
    """Adam (Kingma & Ba 2015) with bias correction; weight decay is added to the gradient (L2, not
    decoupled).

    One counter serves all parameters: a parameter whose first gradient comes late is corrected as
    if from step 1.
    """

    ### SINCE full
    moments = ("m", "v")

    ### END SINCE
    def __init__(
        self,
        params: Iterable[Parameter],
        lr: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params)
        self.lr = float(lr)
        self.beta1 = float(beta1)
        self.beta2 = float(beta2)
        self.eps = float(eps)
        self.weight_decay = float(weight_decay)
        self.t = 0
        self.m: dict[Tensor, Tensor] = {}
        self.v: dict[Tensor, Tensor] = {}

    def step(self) -> None:
        """Move every parameter that has a gradient."""
        ### BEGIN SOLUTION hw2.adam.step
        self.t += 1
        for p in self.params:
            if p.grad is None:
                continue
            if p not in self.m:
                self.m[p], self.v[p] = zeros_like(p), zeros_like(p)
            m, v = self.m[p], self.v[p]
            grad = p.grad.data
            if self.weight_decay:
                grad = grad + self.weight_decay * p.data
            m.data = self.beta1 * m.data + (1 - self.beta1) * grad
            v.data = self.beta2 * v.data + (1 - self.beta2) * (grad * grad)
            m_hat = m.data / (1 - self.beta1**self.t)
            v_hat = v.data / (1 - self.beta2**self.t)
            p.data = p.data + m_hat * -self.lr / (v_hat**0.5 + self.eps)
        ### END SOLUTION


### SINCE full
class AdamW(Adam):
    """Adam whose weight decay is decoupled from the gradient (Loshchilov & Hutter 2019): first p -=
    lr * weight_decay * p, then Adam's step without decay.
    """

    def __init__(
        self,
        params: Iterable[Parameter],
        lr: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, lr, beta1, beta2, eps)
        self.decoupled_decay = float(weight_decay)

    def step(self) -> None:
        """Move every parameter that has a gradient."""
        for p in self.params:
            if p.grad is not None:
                p.data = p.data * (1 - self.lr * self.decoupled_decay)
        super().step()


class RMSprop(Optimizer):
    """RMSprop (Hinton 2012, lecture 6): v = alpha * v + (1 - alpha) * grad²; u = momentum * u +
    grad / (sqrt(v) + eps); p -= lr * u. Weight decay is added to the gradient.

    NB: as in PyTorch, this momentum has no factor (1 - momentum).
    """

    moments = ("v", "u")

    def __init__(
        self,
        params: Iterable[Parameter],
        lr: float = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
    ) -> None:
        super().__init__(params)
        self.lr = float(lr)
        self.alpha = float(alpha)
        self.eps = float(eps)
        self.weight_decay = float(weight_decay)
        self.momentum = float(momentum)
        self.v: dict[Tensor, Tensor] = {}
        self.u: dict[Tensor, Tensor] = {}

    def step(self) -> None:
        """Move every parameter that has a gradient."""
        for p in self.params:
            if p.grad is None:
                continue
            if p not in self.v:
                self.v[p], self.u[p] = zeros_like(p), zeros_like(p)
            v, u = self.v[p], self.u[p]
            grad = p.grad.data
            if self.weight_decay:
                grad = grad + self.weight_decay * p.data
            v.data = self.alpha * v.data + (1 - self.alpha) * (grad * grad)
            u.data = self.momentum * u.data + grad / (v.data**0.5 + self.eps)
            p.data = p.data + u.data * -self.lr


### END SINCE
### SINCE hw4
def clip_grad_norm(params: Iterable[Tensor], max_norm: float) -> float:
    """Scale the gradients of `params` so that their joint L2 norm is at most `max_norm`; return the
    norm before.
    """
    graded = [p for p in params if p.grad is not None]
    norm = sum(float((p.grad.data * p.grad.data).sum()) for p in graded) ** 0.5
    if norm > max_norm:
        for p in graded:
            p.grad = p.grad.data * (max_norm / norm)
    return norm


### END SINCE
### SINCE full
# --- schedules: `schedule.step()` once an epoch (or once a step) sets the optimizer's lr ---


class Schedule:
    """lr = base_lr * factor(n), with n = 0 at first and one more after each `step`."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.base_lr = optimizer.lr
        self._set(0)

    def factor(self, n: int) -> float:
        """Return what the base rate is multiplied by after `n` steps."""
        raise NotImplementedError

    def step(self) -> None:
        """Go on by one and set the learning rate."""
        self._set(self.n + 1)

    def state_dict(self) -> dict[str, float]:
        """Return what is needed to go on."""
        return {"n": self.n, "base_lr": self.base_lr}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Take over what `state_dict` returned and set the learning rate."""
        self.base_lr = float(state["base_lr"])
        self._set(int(state["n"]))

    def _set(self, n: int) -> None:
        self.n = n
        self.optimizer.lr = self.base_lr * self.factor(n)


class LambdaLR(Schedule):
    """The base rate times a function of the number of steps."""

    def __init__(self, optimizer: Optimizer, function: Callable[[int], float]) -> None:
        self.function = function
        super().__init__(optimizer)

    def factor(self, n: int) -> float:
        """Return function(n)."""
        return self.function(n)


class StepLR(Schedule):
    """The rate is multiplied by `gamma` after every `step_size` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        self.step_size = _at_least_one(step_size, "StepLR", "step_size")
        self.gamma = gamma
        super().__init__(optimizer)

    def factor(self, n: int) -> float:
        """Return gamma to the number of whole step_sizes."""
        return self.gamma ** (n // self.step_size)


class ExponentialLR(Schedule):
    """The rate is multiplied by `gamma` after every step."""

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        self.gamma = gamma
        super().__init__(optimizer)

    def factor(self, n: int) -> float:
        """Return gamma to the n."""
        return self.gamma**n


class CosineAnnealingLR(Schedule):
    """The rate falls along half a cosine to `lr_min` within `steps` steps, and stays there
    (Loshchilov & Hutter 2017, without restarts).
    """

    def __init__(self, optimizer: Optimizer, steps: int, lr_min: float = 0.0) -> None:
        self.steps = _at_least_one(steps, "CosineAnnealingLR", "steps")
        self.lr_min = lr_min
        super().__init__(optimizer)

    def factor(self, n: int) -> float:
        """Return a fraction between lr_min / base_lr and 1."""
        lowest = self.lr_min / self.base_lr if self.base_lr else 1.0
        way = min(n, self.steps) / self.steps
        return lowest + (1 - lowest) * (1 + math.cos(math.pi * way)) / 2


class LinearWarmup(Schedule):
    """The rate rises evenly from base_lr / (steps + 1) to base_lr within `steps` steps; then it
    follows another schedule, or stays.
    """

    def __init__(self, optimizer: Optimizer, steps: int, then: Schedule | None = None) -> None:
        self.steps = _at_least_one(steps, "LinearWarmup", "steps")
        self.then = then
        if then is not None:
            optimizer.lr = then.base_lr  # whatever its own first factor made of it
        super().__init__(optimizer)

    def factor(self, n: int) -> float:
        """Return a fraction up to 1, then the other schedule's."""
        if n < self.steps:
            return (n + 1) / (self.steps + 1)
        return self.then.factor(n - self.steps) if self.then is not None else 1.0


def _at_least_one(value: int, schedule: str, name: str) -> int:
    if value < 1:
        raise NeedleError(f"[{schedule}] {name} is {value}; give a number from 1 up")
    return value


### END SINCE
