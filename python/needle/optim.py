"""Optimizers: how parameters move along their gradients.

State and updates are constants: no step records a graph. Parameters without a gradient are left
alone.
"""

from collections.abc import Iterable

from needle.autograd import Tensor
from needle.errors import NeedleError
from needle.init import zeros_like
from needle.nn import Parameter

__all__ = ["SGD", "Adam", "Optimizer", "clip_grad_norm"]


class Optimizer:
    """What every optimizer has: the parameters, `step` and `reset_grad`."""

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

    def clip_grad_norm(self, max_norm: float = 0.25) -> float:
        """Scale the gradients down so that their joint norm is at most `max_norm`; return the norm
        before.
        """
        return clip_grad_norm(self.params, max_norm)


class SGD(Optimizer):
    """Stochastic gradient descent: g = grad + weight_decay * p; u = momentum * u + (1 - momentum) *
    g; p -= lr * u.

    NB: PyTorch's momentum has no factor (1 - momentum).
    """

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


class Adam(Optimizer):
    """Adam (Kingma & Ba 2015) with bias correction; weight decay is added to the gradient (L2, not
    decoupled).

    One counter serves all parameters: a parameter whose first gradient comes late is corrected as
    if from step 1.
    """

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
