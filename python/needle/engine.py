"""The full engine behind `Tensor.backward`: no reference cycles, no recursion, gradients of
gradients on demand.

The plain algorithm is `autograd.compute_gradient_of_variables`; this one gives the same numbers. It
follows only what requires a gradient, computes without recording, and checks every gradient against
its input.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from needle.autograd import (
    DATA_CLOCK,
    Op,
    Tensor,
    TensorTuple,
    Value,
    sum_node_list,
)
from needle.backend_selection import array_api
from needle.errors import DtypeError, GraphError, ShapeError
from needle.recording import enable_grad, no_grad

__all__ = ["BackwardPass", "Gradient", "backward"]


class BackwardPass:
    """What a gradient needs to rebuild its graph: the output it came from, the seed, and when."""

    __slots__ = ("_out_grad", "_output", "_rebuilt", "_retain", "_seed", "_time")

    def __init__(self, output: Tensor, out_grad: Tensor, retain: bool) -> None:
        self._output = _reference(output)
        self._out_grad = _reference(out_grad)
        self._seed = out_grad.detach() if _is_graph_leaf(out_grad) else None
        self._retain = retain
        self._time = next(DATA_CLOCK)
        self._rebuilt: weakref.ref[RecordedGradients] | None = None

    def recorded_gradients(self) -> "RecordedGradients":
        """Return the gradients of this pass with their graphs, computed again unless someone still
        holds them.

        Raises:
            GraphError: if the output or a computed out_grad is gone, or data was replaced since.
        """
        recorded = self._rebuilt() if self._rebuilt is not None else None
        if recorded is None:
            output = self._output()
            out_grad = self._out_grad()
            if out_grad is None:
                out_grad = self._seed
            if output is None or out_grad is None:
                gone = "output" if output is None else "out_grad"
                raise GraphError(
                    f"[backward] the {gone} that this gradient came from is gone; keep it alive "
                    "to differentiate the gradient, or call backward(create_graph=True)"
                )
            order, _, _keep_alive = _nodes_requiring_grad(output)
            values = [output, out_grad, *(x for node in order for x in node.inputs)]
            if any(value._version > self._time for value in values):
                raise GraphError(
                    "[backward] data was replaced after this gradient was computed; differentiate "
                    "the gradient before the update, or call backward(create_graph=True)"
                )
            with enable_grad():
                recorded = RecordedGradients(_gradients(output, out_grad, retain=self._retain))
            self._rebuilt = weakref.ref(recorded)
        return recorded


def _reference(tensor: Tensor) -> Callable[[], Tensor | None]:
    """Return a way to `tensor`: a weak one if it has a graph, which may lead back to the gradient.

    A constant or a Gradient leads nowhere and is kept, so `x.grad.backward()` works repeatedly.
    """
    if type(tensor) is Gradient or not tensor.requires_grad:
        return lambda: tensor
    return weakref.ref(tensor)


def _is_graph_leaf(tensor: Tensor) -> bool:
    """Tell whether `tensor` was made by a user and requires a gradient."""
    return type(tensor) is not Gradient and tensor.requires_grad and tensor.op is None


class RecordedGradients:
    """The gradients of one backward pass, each with its graph, by the Value they belong to."""

    __slots__ = ("__weakref__", "by_value")

    def __init__(self, by_value: dict[Value, Tensor]) -> None:
        self.by_value = by_value


class Gradient(Tensor):
    """A gradient as `backward` leaves it: data only, with a graph that is rebuilt when asked for.

    A gradient that kept its graph would form a cycle with the leaf it belongs to. So `op`, `inputs`
    and its own `backward` run the pass again, recorded; the graph lives as long as someone holds
    it.
    """

    __slots__ = ("_of", "_pass")

    def __init__(self, data: Any, of: Value, backward_pass: BackwardPass) -> None:
        self.cached_data = data
        self.requires_grad = True
        self._of = weakref.ref(of)
        self._pass = backward_pass

    def recorded(self) -> tuple[Tensor, RecordedGradients]:
        """Return this gradient with its graph, and what keeps that alive; GraphError if it cannot
        be rebuilt.
        """
        of = self._of()
        if of is None:
            raise GraphError(
                "[backward] the Tensor that this gradient belongs to is gone; keep it alive"
            )
        gradients = self._pass.recorded_gradients()
        return gradients.by_value[of], gradients

    @property
    def op(self) -> Op | None:
        """The op that computed this gradient."""
        return self.recorded()[0].op

    @op.setter
    def op(self, op: Op | None) -> None:
        """Ignore the None that every leaf is made with."""

    @property
    def inputs(self) -> Sequence[Value]:
        """The inputs of that op."""
        return self.recorded()[0].inputs

    @inputs.setter
    def inputs(self, inputs: Sequence[Value]) -> None:
        """Ignore the empty inputs that every leaf is made with."""

    def _origin(self) -> str:
        return ", a gradient"

    def __reduce__(self) -> tuple[Any, ...]:
        return Tensor(self.detach(), requires_grad=False).__reduce__()


def backward(
    output: Tensor,
    out_grad: Tensor | None,
    *,
    retain_grad: bool,
    create_graph: bool,
    accumulate: bool,
) -> None:
    """Store the gradient of `output` in every leaf that requires one; see `Tensor.backward`."""
    if not output.requires_grad:
        raise GraphError("[backward] this Tensor requires no gradient: no input of its graph does")
    if out_grad is None:
        out_grad = Tensor.make_const(array_api.full_like(output.realize_cached_data(), 1.0))
    if not isinstance(out_grad, Tensor):
        raise DtypeError(f"[backward] out_grad is a {type(out_grad).__name__}; give a Tensor")
    if out_grad.shape != output.shape:
        raise ShapeError(
            f"[backward] out_grad has shape {out_grad.shape}, the output {output.shape}; they "
            "must agree"
        )
    if create_graph:
        with enable_grad():
            gradients = _gradients(output, out_grad, retain=retain_grad)
        for value, grad in gradients.items():
            _store(value, grad, accumulate)
        return
    with no_grad():
        gradients = _gradients(output, out_grad, retain=retain_grad)
        backward_pass = BackwardPass(output, out_grad, retain_grad)
        for value, grad in gradients.items():
            if accumulate:
                _store(value, grad.detach(), accumulate)
            elif isinstance(value, Tensor):
                value.grad = Gradient(grad.realize_cached_data(), value, backward_pass)


def _store(value: Value, grad: Tensor, accumulate: bool) -> None:
    value.grad = value.grad + grad if accumulate and value.grad is not None else grad


def _gradients(output: Tensor, out_grad: Tensor, retain: bool) -> dict[Value, Tensor]:
    """Return the gradient of each leaf that requires one, of interior nodes too if `retain`."""
    order, recorded, _keep_alive = _nodes_requiring_grad(output)
    contributions: dict[Value, list[Any]] = {order[-1]: [out_grad]}
    gradients: dict[Value, Tensor] = {}
    while order:
        node = order.pop()
        if node not in contributions:
            continue
        parts = contributions.pop(node)
        grad = _total(node, parts)
        for handle in getattr(node, "_hooks", ()):
            grad = _hooked(handle.hook, grad)
        op = node.op
        if op is None or retain:
            gradients[node] = grad
        if op is None:
            continue
        if type(op) is ops.TupleGetItem:  # not its own gradient, which makes zeros for all others
            (x,) = node.inputs
            contributions.setdefault(x, []).append((op.index, grad))
            continue
        input_grads = op.gradient_as_tuple(grad, node)
        _check_gradients(op, node, input_grads)
        for x, x_grad in zip(node.inputs, input_grads, strict=True):
            if x_grad is not None and x.requires_grad:
                contributions.setdefault(recorded.get(x, x), []).append(x_grad)
    return gradients


def _total(node: Value, parts: list[Any]) -> Any:
    """Return the sum of what a node's users contributed.

    To a TensorTuple that is its whole gradient, or (index, gradient) of one Tensor in it; a Tensor
    that nobody used gets zeros.
    """
    if not isinstance(node, TensorTuple):
        return parts[0] if len(parts) == 1 else sum_node_list(parts)
    if len(parts) == 1 and isinstance(parts[0], TensorTuple):
        return parts[0]
    grads: list[list[Tensor]] = [[] for _ in range(len(node))]
    for part in parts:
        entries = enumerate(part) if isinstance(part, TensorTuple) else [part]
        for index, grad in entries:
            grads[index].append(grad)
    return ops.make_tuple(
        *(
            sum_node_list(of_one) if of_one else Tensor.make_const(array_api.full_like(data, 0.0))
            for of_one, data in zip(grads, node.realize_cached_data(), strict=True)
        )
    )


def _hooked(hook: Callable[[Any], Any], grad: Any) -> Any:
    """Return what a hook makes of a gradient: its result, or the gradient itself if that is None.

    Raises:
        GraphError: if the result is no Tensor of the gradient's shape.
    """
    result = hook(grad)
    if result is None:
        return grad
    if not isinstance(result, Tensor) or result.shape != grad.shape:
        met = (
            f"shape {result.shape}" if isinstance(result, Tensor) else f"a {type(result).__name__}"
        )
        raise GraphError(
            f"[register_hook] a hook returned {met} for a gradient of shape {grad.shape}; return a "
            "Tensor of that shape, or None to leave the gradient as it is"
        )
    return result


def _nodes_requiring_grad(
    output: Tensor,
) -> tuple[list[Value], dict[Value, Tensor], list[RecordedGradients]]:
    """Return the nodes that need a gradient in topological order.

    A `Gradient` met in the graph is replaced by its recorded form; the second result maps one to
    the other and the third keeps the recorded graphs alive.
    """
    recorded: dict[Value, Tensor] = {}
    keep_alive: list[RecordedGradients] = []

    def resolve(node: Value) -> Value:
        if type(node) is not Gradient:
            return node
        if node not in recorded:
            resolved: Tensor = node
            while type(resolved) is Gradient:  # a pass may hand on another one's gradient as it is
                resolved, gradients = resolved.recorded()
                keep_alive.append(gradients)
            recorded[node] = resolved
        return recorded[node]

    root = resolve(output)
    if not root.requires_grad:
        raise GraphError("[backward] this gradient depends on nothing that requires a gradient")
    order: list[Value] = []
    visited = {root}
    stack = [(root, iter(root.inputs))]
    while stack:
        node, inputs = stack[-1]
        for x in inputs:
            if x.requires_grad:
                x = resolve(x)
                if x.requires_grad and x not in visited:
                    visited.add(x)
                    stack.append((x, iter(x.inputs)))
                    break
        else:
            order.append(node)
            stack.pop()
    return order, recorded, keep_alive


def _check_gradients(op: Op, node: Value, input_grads: tuple[Any, ...]) -> None:
    """Raise GraphError unless the gradients of an op are Tensors of its inputs' shapes."""
    name = type(op).__name__
    for i, (x, grad) in enumerate(zip(node.inputs, input_grads, strict=True)):
        if grad is None:
            continue
        if not isinstance(grad, Value):
            raise GraphError(
                f"[{name}.gradient] gradient {i} is a {type(grad).__name__}; return Tensors"
            )
        if _shape_of(grad) != _shape_of(x):
            raise GraphError(
                f"[{name}.gradient] gradient {i} has shape {_shape_of(grad)}, "
                f"its input {_shape_of(x)}"
            )


def _shape_of(value: Value) -> Any:
    """Return the shape of a Tensor, or a list of the shapes in a TensorTuple."""
    if isinstance(value, Tensor):
        return value.shape
    return [part.shape for part in value.realize_cached_data()]


# Late: ops are built on the classes of autograd, which imports this module.
from needle import ops  # noqa: E402
