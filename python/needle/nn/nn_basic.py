"""Modules: parameters in a tree of layers, each with a forward.

`Module` finds its parameters and sub-modules through its attributes, also inside lists, tuples and
dicts. A layer creates its weight first, then its bias, so that a seed always gives the same
numbers.
"""

from collections.abc import Iterator, Mapping
from reprlib import recursive_repr
from typing import Any

from needle import init, ops
from needle.autograd import Tensor
from needle.backend_ndarray import layout
from needle.backend_selection import array_api, as_device
from needle.config import train_mode
from needle.errors import NeedleError, ShapeError

__all__ = [
    "BatchNorm1d",
    "CrossEntropyLoss",
    "Dropout",
    "Flatten",
    "Identity",
    "LayerNorm",
    "LayerNorm1d",
    "Linear",
    "MSELoss",
    "Module",
    "Parameter",
    "ReLU",
    "Residual",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "SoftmaxLoss",
    "Tanh",
]


class Parameter(Tensor):
    """A Tensor that a module learns."""


def _walk(value: Any, path: str, seen: set[int]) -> Iterator[tuple[str, "Module | Tensor"]]:
    """Yield every Tensor and Module below `value` with its dotted path, each once, in the order of
    attributes.
    """
    if isinstance(value, Tensor | Module):
        if id(value) in seen:
            return
        seen.add(id(value))
        yield path, value
    items: list[tuple[Any, Any]]
    if isinstance(value, Module):
        items = list(vars(value).items())
    elif isinstance(value, Mapping):
        items = list(value.items())
    elif isinstance(value, list | tuple):
        items = list(enumerate(value))
    else:
        return
    for name, child in items:
        yield from _walk(child, f"{path}.{name}" if path else str(name), seen)


class Module:
    """A layer or a model: `forward` computes, the attributes hold parameters and sub-modules."""

    ### SINCE full
    # Names of the Tensors that are state without being learned, such as running statistics.
    buffers: tuple[str, ...] = ()

    ### END SINCE
    def __init__(self) -> None:
        self.training = True

    ### SINCE full
    @property
    def training(self) -> bool:
        """Whether the layer is to train: its own mode, unless `using_config("train", False)`
        overrules it.
        """
        return self._training and train_mode.enabled

    @training.setter
    def training(self, mode: bool) -> None:
        self._training = mode

    ### END SINCE
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; each layer defines its own."""
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def parameters(self) -> list[Parameter]:
        """Return every parameter of this module and those below it, each once."""
        return [value for _, value in _walk(self, "", set()) if isinstance(value, Parameter)]

    ### SINCE full
    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield (name, parameter), with names such as "layers.0.weight"."""
        return (
            (path, value) for path, value in _walk(self, "", set()) if isinstance(value, Parameter)
        )

    def named_modules(self) -> Iterator[tuple[str, "Module"]]:
        """Yield (name, module) for this module (its name is empty) and those below it."""
        return (
            (path, value) for path, value in _walk(self, "", set()) if isinstance(value, Module)
        )

    ### END SINCE
    def _children(self) -> list["Module"]:
        """Return every module below this one, each once."""
        below = (value for _, value in _walk(self, "", set()) if isinstance(value, Module))
        return [module for module in below if module is not self]

    def train(self, mode: bool = True) -> "Module":
        """Set training mode on this module and those below it; return this module."""
        for module in (self, *self._children()):
            module.training = mode
        return self

    def eval(self) -> "Module":
        """Leave training mode: dropout passes all on, batch norm uses its running statistics."""
        return self.train(False)

    ### SINCE full
    def _state(self) -> dict[str, Tensor]:
        """Return the parameters and buffers by name."""
        state: dict[str, Tensor] = dict(self.named_parameters())
        for path, module in self.named_modules():
            for name in module.buffers:
                state[f"{path}.{name}" if path else name] = getattr(module, name)
        return state

    def state_dict(self) -> dict[str, Tensor]:
        """Return the parameters and buffers by name, as constants that share their data."""
        return {name: tensor.detach() for name, tensor in self._state().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Copy values (Tensors or arrays) into the parameters and buffers of the same names.

        Nothing is changed if anything does not fit.

        Raises:
            NeedleError: if a name is missing or not known.
            ShapeError: if a value has another shape.
        """
        own = self._state()
        missing, unknown = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
        if missing or unknown:
            raise NeedleError(
                f"[load_state_dict] names do not fit {type(self).__name__}: missing {missing}, "
                f"unknown {unknown}"
            )
        for name, tensor in own.items():
            if tuple(state[name].shape) != tensor.shape:
                raise ShapeError(
                    f"[load_state_dict] {name} has shape {tuple(state[name].shape)}, the model "
                    f"{tensor.shape}"
                )
        converted = {}
        for name, tensor in own.items():
            value = state[name].numpy() if isinstance(state[name], Tensor) else state[name]
            converted[name] = Tensor(
                value, device=tensor.device, dtype=tensor.dtype, requires_grad=False
            )
        for name, tensor in own.items():
            tensor.data = converted[name]

    def to(self, device: Any) -> "Module":
        """Move parameters and buffers to `device` (a device or its name), in place; return this
        module.
        """
        device = as_device(device)
        for tensor in self._state().values():
            if tensor.device != device:
                tensor.cached_data = array_api.array(
                    tensor.numpy(), dtype=tensor.dtype, device=device
                )
                tensor.grad = None
        return self

    def extra_repr(self) -> str:
        """Return what a repr says between the parentheses, besides sub-modules."""
        return ""

    @recursive_repr()  # a module may hold its parent
    def __repr__(self) -> str:
        lines = [
            f"({path}): {child!r}".replace("\n", "\n  ") for path, child in self._nearest_modules()
        ]
        extra = self.extra_repr()
        if not lines:
            return f"{type(self).__name__}({extra})"
        return f"{type(self).__name__}(\n  " + "\n  ".join([extra] * bool(extra) + lines) + "\n)"

    def _nearest_modules(self) -> Iterator[tuple[str, "Module"]]:
        """Yield the modules below this one that no other module stands between."""
        within: set[int] = set()
        for path, module in self.named_modules():
            if module is not self and id(module) not in within:
                yield path, module
                within |= {id(inner) for _, inner in _walk(module, "", {id(self)})}

    ### END SINCE


class Identity(Module):
    """Return the input."""

    def forward(self, x: Tensor) -> Tensor:
        """Return `x`, of any shape."""
        return x


class Linear(Module):
    """x @ weight + bias, with weight (in_features, out_features) and bias (1, out_features)."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        ### BEGIN SOLUTION hw2.linear.init
        self.weight = Parameter(
            init.kaiming_uniform(in_features, out_features, device=device, dtype=dtype)
        )
        self.bias = None
        if bias:
            values = init.kaiming_uniform(out_features, 1, device=device, dtype=dtype)
            self.bias = Parameter(values.reshape((1, out_features)))
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features).

        Raises:
            ShapeError: if the last size of `x` is not in_features.
        """
        if x.ndim == 0 or x.shape[-1] != self.in_features:
            raise ShapeError(
                f"[Linear] input {x.shape} does not end in in_features={self.in_features}"
            )
        ### SINCE full
        if x.ndim == 1:
            return self.forward(x.reshape((1, self.in_features))).reshape((self.out_features,))
        ### END SINCE
        ### BEGIN SOLUTION hw2.linear.forward
        y = x @ self.weight
        if self.bias is None:
            return y
        return y + self.bias.broadcast_to(y.shape)
        ### END SOLUTION

    ### SINCE full
    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"

    ### END SINCE


class Flatten(Module):
    """Make every sample a vector."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, ...) to (B, the product of the rest)."""
        if x.ndim == 0:
            raise ShapeError("[Flatten] a Tensor without axes has no batch axis")
        ### BEGIN SOLUTION hw2.flatten.forward
        size = 1
        for n in x.shape[1:]:
            size *= n
        return x.reshape((x.shape[0], size))
        ### END SOLUTION


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: Tensor) -> Tensor:
        """Return max(x, 0), of any shape."""
        ### BEGIN SOLUTION hw2.relu.forward
        return ops.relu(x)
        ### END SOLUTION


### SINCE hw4
class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the logistic function of `x`, of any shape."""
        return ops.sigmoid(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        """Return tanh(x), of any shape."""
        return ops.tanh(x)


### END SINCE
### SINCE full
class Softmax(Module):
    """exp(x) / sum(exp(x)) along `dim`."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """Return probabilities of x's shape that sum to 1 along `dim`."""
        return ops.softmax(x, self.dim)

    def extra_repr(self) -> str:
        """Return the axis."""
        return f"dim={self.dim}"


### END SINCE
class Sequential(Module):
    """Modules one after the other."""

    def __init__(self, *modules: Module) -> None:
        super().__init__()
        self.modules = modules

    def forward(self, x: Tensor) -> Tensor:
        """Return the last module's output."""
        ### BEGIN SOLUTION hw2.sequential.forward
        for module in self.modules:
            x = module(x)
        return x
        ### END SOLUTION


class Residual(Module):
    """fn(x) + x."""

    def __init__(self, fn: Module) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, x: Tensor) -> Tensor:
        """Return fn(x) + x, of the same shape."""
        ### BEGIN SOLUTION hw2.residual.forward
        return self.fn(x) + x
        ### END SOLUTION


class SoftmaxLoss(Module):
    """The mean over a batch of logsumexp(logits) - logits[label]: cross-entropy with integer
    labels.
    """

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """Map logits (B, K) and labels (B,) in 0 .. K-1 to a loss of shape ().

        Raises:
            ShapeError: if the shapes do not fit.
            IndexingError: for a label that is no class.
        """
        if logits.ndim != 2 or y.shape != logits.shape[:1] or logits.shape[0] == 0:
            raise ShapeError(
                f"[SoftmaxLoss] logits {logits.shape} and labels {y.shape}; give (B, K) and (B,), "
                "with B from 1 up"
            )
        ### BEGIN SOLUTION hw2.softmax_loss.forward
        batch, classes = logits.shape
        one_hot = init.one_hot(classes, y, device=logits.device, dtype=logits.dtype)
        # Not logsumexp less the picked logit: the difference of two large numbers loses digits.
        return (ops.logsoftmax(logits) * one_hot).sum() / -batch
        ### END SOLUTION


### SINCE full
class CrossEntropyLoss(Module):
    """The mean over samples of -sum(p * logsoftmax(logits)): p is given, or 1 at a sample's label.

    `SoftmaxLoss` is the plain form for a batch with labels.
    """

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Map logits (B, K), or (K,) for one sample, to a loss of shape ().

        Args:
            target: the labels in 0 .. K-1, (B,) or () for one sample, or the probabilities of the
                classes, of the logits' shape.

        Raises:
            ShapeError: if the shapes do not fit.
            IndexingError: for a label that is no class.
        """
        samples, classes = logits.shape[:-1], logits.shape[-1:]
        if logits.ndim not in (1, 2) or target.shape not in (samples, logits.shape) or 0 in samples:
            raise ShapeError(
                f"[CrossEntropyLoss] logits {logits.shape} and target {target.shape}; give logits "
                "(B, K) with labels (B,) or probabilities (B, K), or without B for one sample"
            )
        if target.shape == samples:
            target = init.one_hot(classes[0], target, device=logits.device, dtype=logits.dtype)
        count = samples[0] if samples else 1
        return (ops.logsoftmax(logits) * target).sum() / -count


class MSELoss(Module):
    """The mean of (prediction - target)²."""

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Map two Tensors of one shape to a loss of shape (); ShapeError if the shapes differ."""
        if prediction.shape != target.shape:
            raise ShapeError(
                f"[MSELoss] prediction {prediction.shape} and target {target.shape} differ; "
                "reshape one first"
            )
        difference = prediction - target
        return (difference * difference).mean()


### END SINCE
class BatchNorm1d(Module):
    """Normalise each feature over the batch, then scale and shift (Ioffe & Szegedy 2015).

    Running statistics use the biased variance, like the normalisation itself:
    `new = (1 - momentum) * old + momentum * batch`. PyTorch's running variance is the unbiased one.
    """

    ### SINCE full
    buffers = ("running_mean", "running_var")

    ### END SINCE
    def __init__(
        self,
        dim: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        device: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps
        self.momentum = momentum
        ### BEGIN SOLUTION hw2.batch_norm.init
        self.weight = Parameter(init.ones(dim, device=device, dtype=dtype))
        self.bias = Parameter(init.zeros(dim, device=device, dtype=dtype))
        self.running_mean = init.zeros(dim, device=device, dtype=dtype)
        self.running_var = init.ones(dim, device=device, dtype=dtype)
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, dim) to (B, dim): with the batch's statistics in training, else with the running
        ones.
        """
        _check_features("BatchNorm1d", x, self.dim)
        ### BEGIN SOLUTION hw2.batch_norm.forward
        if self.training:
            mean = x.sum((0,)) / x.shape[0]
            centred = x - mean.broadcast_to(x.shape)
            var = (centred * centred).sum((0,)) / x.shape[0]
            old, new = 1 - self.momentum, self.momentum
            self.running_mean.data = old * self.running_mean.data + new * mean.data
            self.running_var.data = old * self.running_var.data + new * var.data
        else:
            centred = x - self.running_mean.broadcast_to(x.shape)
            var = self.running_var
        deviation = (var + self.eps) ** 0.5
        normed = centred / deviation.broadcast_to(x.shape)
        return normed * self.weight.broadcast_to(x.shape) + self.bias.broadcast_to(x.shape)
        ### END SOLUTION

    ### SINCE full
    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.dim}, eps={self.eps}, momentum={self.momentum}"

    ### END SINCE


class LayerNorm1d(Module):
    """Normalise each sample over its features, then scale and shift (Ba et al. 2016)."""

    def __init__(
        self, dim: int, eps: float = 1e-5, device: Any = None, dtype: Any = "float32"
    ) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps
        ### BEGIN SOLUTION hw2.layer_norm.init
        self.weight = Parameter(init.ones(dim, device=device, dtype=dtype))
        self.bias = Parameter(init.zeros(dim, device=device, dtype=dtype))
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, dim) to (B, dim)."""
        _check_features("LayerNorm1d", x, self.dim)
        ### BEGIN SOLUTION hw2.layer_norm.forward
        column = (x.shape[0], 1)
        mean = (x.sum((1,)) / self.dim).reshape(column)
        centred = x - mean.broadcast_to(x.shape)
        var = ((centred * centred).sum((1,)) / self.dim).reshape(column)
        deviation = (var + self.eps) ** 0.5
        normed = centred / deviation.broadcast_to(x.shape)
        return normed * self.weight.broadcast_to(x.shape) + self.bias.broadcast_to(x.shape)
        ### END SOLUTION

    ### SINCE full
    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.dim}, eps={self.eps}"

    ### END SINCE


### SINCE full
class LayerNorm(LayerNorm1d):
    """LayerNorm1d over the last axis of a Tensor of any rank: normalized_size is its size, a number
    or a tuple of one.
    """

    def __init__(
        self, normalized_size: Any, eps: float = 1e-5, device: Any = None, dtype: Any = "float32"
    ) -> None:
        sizes = layout.as_shape(normalized_size, "LayerNorm")
        if len(sizes) != 1:
            raise ShapeError(
                f"[LayerNorm] normalized_size {sizes} is not one size; only the last axis is "
                "normalised"
            )
        super().__init__(sizes[0], eps, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., normalized_size) to the same shape; ShapeError for another last size."""
        if x.ndim == 0 or x.shape[-1] != self.dim:
            raise ShapeError(
                f"[LayerNorm] input {x.shape} does not end in normalized_size={self.dim}"
            )
        if x.size == 0:
            return x
        return super().forward(x.reshape((x.size // self.dim, self.dim))).reshape(x.shape)


### END SINCE
def _check_features(name: str, x: Tensor, dim: int) -> None:
    """Raise ShapeError unless `x` is (B, dim) with a sample in it."""
    if x.ndim != 2 or x.shape[1] != dim:
        raise ShapeError(f"[{name}] input {x.shape} is not (batch, {dim})")
    if x.shape[0] == 0:
        raise ShapeError(f"[{name}] input {x.shape} has no sample to take statistics of")


class Dropout(Module):
    """In training, zero each element with probability `p` and scale the rest by 1 / (1 - p)."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise NeedleError(f"[Dropout] p={p} is not a probability; give a number from 0 to 1")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Return `x` with elements dropped, of the same shape."""
        ### BEGIN SOLUTION hw2.dropout.forward
        if not self.training:
            return x
        mask = init.randb(*x.shape, p=1 - self.p, device=x.device, dtype=x.dtype)
        if self.p == 1:  # nothing is kept: no rest to scale, and 0 / 0 to avoid
            return x * (mask * 0)
        return x * mask / (1 - self.p)
        ### END SOLUTION

    ### SINCE full
    def extra_repr(self) -> str:
        """Return the probability."""
        return f"p={self.p}"

    ### END SINCE
