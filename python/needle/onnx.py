"""Models as ONNX files, which other runtimes run: one forward is recorded and written op by op.

`EMITTERS` says for every op which ONNX nodes it becomes; `Writer` gathers them. The nodes are
described at https://onnx.ai/onnx/operators.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from needle import ops
from needle.autograd import Op, Tensor, TensorOp, TensorTuple, Value, find_topo_sort
from needle.backend_ndarray import layout
from needle.errors import NeedleError
from needle.model_summary import observed
from needle.nn import Embedding, Module
from needle.recording import enable_grad, no_grad

__all__ = ["EMITTERS", "Writer", "export"]

OPSET = 18  # the first in which every reduction takes its axes as an input

Emitter = Callable[..., Any]


def export(model: Module, path: str | Path, example: Any) -> None:
    """Write a model, in eval mode, to an ONNX file.

    Parameters and buffers keep the names of `state_dict`. The input is named "input", several are
    "input_0", "input_1" ..., and the outputs likewise. All shapes, the batch size too, are those of
    the example: a model that loops over time is written as the steps that it takes.

    Args:
        model: any module that computes with needle's ops.
        path: the file; an existing one is replaced only by a complete one.
        example: an input Tensor, or a tuple of what the model takes: Tensors, or tuples of them.

    Raises:
        NeedleError: if the package onnx is missing, an op has no counterpart in ONNX, or the output
            does not come from the input through needle's ops alone.
    """
    onnx = _import_onnx()
    arguments = example if isinstance(example, tuple) else (example,)
    inputs, outputs, order = _record(model, arguments)
    _check_ops(order)
    _check_constants(model, arguments, inputs, order)
    writer = Writer(onnx)
    for name, tensor in zip(_names("input", inputs), inputs, strict=True):
        writer.add_input(name, tensor)
    writer.add_values(order, model._state())
    content = writer.finish(outputs, type(model).__name__)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(content.SerializeToString())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)  # what an interrupted export leaves


def _import_onnx() -> Any:
    """Return the package onnx, with which this module shares no more than the name."""
    try:
        import onnx
    except ModuleNotFoundError:
        raise NeedleError(
            '[onnx] the package onnx is not installed; run pip install "needle[onnx]"'
        ) from None
    return onnx


# --- recording ---


class Lookup(TensorOp):
    """An Embedding as an op with two inputs, weight and ids: the layer itself reads its ids as
    numbers.
    """

    def __init__(self, forward: Callable[[Tensor], Tensor]) -> None:
        self.forward = forward

    def compute(self, weight, ids):
        with no_grad():
            return self.forward(Tensor.make_const(ids)).realize_cached_data()


def _with_lookup(name: str, module: Module, forward: Emitter) -> Emitter:
    """Return a module's forward for recording."""
    if not isinstance(module, Embedding):
        return forward

    def look_up(ids: Any) -> Tensor:
        return Lookup(forward)(module.weight, ids if isinstance(ids, Tensor) else Tensor(ids))

    return look_up


def _record(
    model: Module, arguments: Sequence[Any]
) -> tuple[list[Tensor], list[Tensor], list[Value]]:
    """Run the model on constants' copies that are recorded; return its inputs, its outputs, and
    the graph between them.
    """
    leaves = [_map(argument, _recorded) for argument in arguments]
    with enable_grad(), observed(model, _with_lookup), _all_recorded(model):
        result = model(*leaves)
    outputs = list(_tensors(result))
    return list(_tensors(leaves)), outputs, find_topo_sort(outputs)


def _recorded(tensor: Tensor) -> Tensor:
    return Tensor.make_const(tensor.realize_cached_data(), requires_grad=True)


@contextmanager
def _all_recorded(model: Module) -> Iterator[None]:
    """Have buffers and frozen parameters recorded, so that they keep their names; then no more."""
    state = model._state().values()
    before = [tensor.requires_grad for tensor in state]
    for tensor in state:
        tensor.requires_grad = True
    try:
        yield
    finally:
        for tensor, requires_grad in zip(state, before, strict=True):
            tensor.requires_grad = requires_grad


def _check_ops(order: Sequence[Value]) -> None:
    """Raise NeedleError for ops that have no counterpart."""
    missing = Counter(
        type(value.op).__name__
        for value in order
        if value.op is not None and type(value.op) not in EMITTERS
    )
    if missing:
        listed = ", ".join(f"{name} ({count})" for name, count in missing.items())
        raise NeedleError(
            f"[onnx] ops without a counterpart in ONNX: {listed}; give them a row in EMITTERS"
        )


def _check_constants(
    model: Module, arguments: Sequence[Any], inputs: list[Tensor], order: list[Value]
) -> None:
    """Raise NeedleError if a constant depends on the input: recorded again on other numbers, the
    graph has to be the same.
    """
    if not set(inputs) & set(order):
        raise NeedleError(
            "[onnx] no output depends on the input by needle's ops; .numpy(), .data, detach() and "
            "comparisons end a graph"
        )
    other_arguments = [_map(argument, _changed) for argument in arguments]
    other_inputs, _, other_order = _record(model, other_arguments)
    known = {*inputs, *other_inputs}
    for value, other in zip(order, other_order, strict=False):
        agreed = value is other or {value, other} <= known
        if not agreed and not _same(_facts(value), _facts(other)):
            break
    else:
        if len(order) == len(other_order):
            return
    what = "a constant" if value.op is None else f"what {type(value.op).__name__} does"
    raise NeedleError(
        f"[onnx] {what} depends on the input's numbers, other than by needle's ops, so a file "
        "would hold it as it is for the example; .numpy(), .data and comparisons end a graph, and "
        "ids do unless nn.Embedding looks them up"
    )


def _changed(tensor: Tensor) -> Tensor:
    """Return other numbers of the same kind, ids too: the same ones backwards, else 0 and 1."""
    values = tensor.numpy()
    other = values.ravel()[::-1].reshape(values.shape)
    if np.array_equal(other, values):
        other = np.where(values == 1, 0, 1)
    return Tensor(other, device=tensor.device, dtype=tensor.dtype)


def _facts(value: Value) -> list[Any]:
    """Return what a value is apart from its inputs: its op and the op's settings, or its data."""
    if value.op is None:
        return _numbers(value)
    return [type(value.op), *vars(value.op).values()]


def _same(facts: list[Any], others: list[Any]) -> bool:
    if len(facts) != len(others):
        return False
    for fact, other in zip(facts, others, strict=True):
        if isinstance(fact, Tensor | np.ndarray):
            if not np.array_equal(np.asarray(fact), np.asarray(other), equal_nan=True):
                return False
        elif fact is not other and fact != other:
            return False
    return True


def _numbers(value: Value) -> list[np.ndarray]:
    """Return the data of a Tensor, or of each in a TensorTuple."""
    data = value.realize_cached_data()
    arrays = data if isinstance(data, tuple) else (data,)
    return [Tensor.make_const(array).numpy() for array in arrays]


def _map(value: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """Return a Tensor, or tuples and lists of them, with `function` applied to each."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, tuple | list):
        return type(value)(_map(part, function) for part in value)
    if value is None:
        return None
    raise NeedleError(f"[onnx] the example holds a {type(value).__name__}; give Tensors")


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield the Tensors of nested tuples and lists."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, TensorTuple | tuple | list):
        for part in value:
            yield from _tensors(part)
    elif value is not None:
        raise NeedleError(f"[onnx] the model returns a {type(value).__name__}, not a Tensor")


def _names(word: str, tensors: Sequence[Tensor]) -> list[str]:
    return [word] if len(tensors) == 1 else [f"{word}_{i}" for i in range(len(tensors))]


# --- writing ---


class Writer:
    """An ONNX graph that grows node by node; values go by their names in it."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.names: dict[Value, Any] = {}  # of a TensorTuple: a sequence of names
        self._inputs: list[tuple[str, Tensor]] = []
        self._initializers: dict[str, np.ndarray] = {}
        self._constants: dict[tuple[Any, ...], str] = {}  # names of those without one of their own
        self._unnamed: set[Value] = set()  # constants of the model's code
        self._nodes: list[tuple[str, tuple[str, ...], list[str], dict[str, Any]]] = []
        self._transposed: dict[str, tuple[str, Sequence[int]]] = {}
        self._taken: set[str] = set()

    def add_input(self, name: str, tensor: Tensor) -> None:
        """Declare an input of the model."""
        self._inputs.append((name, tensor))
        self.names[tensor] = self._own_name(name)

    def add_values(self, order: Sequence[Value], state: dict[str, Tensor]) -> None:
        """Write what is computed, inputs first: leaves as initializers, ops as nodes."""
        state_name: dict[Value, str] = {tensor: name for name, tensor in state.items()}
        for value in order:
            if value in self.names:
                continue
            if value.op is None:
                if value not in state_name:
                    self._unnamed.add(value)
                names = [self.constant(array, state_name.get(value)) for array in _numbers(value)]
                self.names[value] = names if isinstance(value, TensorTuple) else names[0]
            else:
                sources = [self.names[x] for x in value.inputs]
                self.names[value] = EMITTERS[type(value.op)](self, value, *sources)

    def constant(self, array: Any, name: str | None = None) -> str:
        """Return the name of an initializer; equal ones without a name of their own are one."""
        array = np.asarray(array)
        key = (array.dtype, array.shape, array.tobytes())
        if name is None and key in self._constants:
            return self._constants[key]
        chosen = self._own_name(name or f"constant_{len(self._constants)}")
        if name is None:
            self._constants[key] = chosen
        self._initializers[chosen] = array
        return chosen

    def node(self, kind: str, *sources: str, **attributes: Any) -> str:
        """Add a node of `kind`; return the name of its output."""
        return self.nodes(kind, *sources, count=1, **attributes)[0]

    def nodes(self, kind: str, *sources: str, count: int, **attributes: Any) -> list[str]:
        """Add a node of `kind` that has `count` outputs; return their names."""
        results = [self._own_name(f"{kind}_{len(self._taken)}") for _ in range(count)]
        self._nodes.append((kind, sources, results, attributes))
        return results

    def transpose(self, source: str, order: Sequence[int]) -> str:
        """Return `source` with its axes in the order `order`; two transpositions become one."""
        source, before = self._transposed.get(source, (source, range(len(order))))
        order = [before[axis] for axis in order]
        if order == sorted(order):
            return source
        result = self.node("Transpose", source, perm=order)
        self._transposed[result] = source, order
        return result

    def narrow(self, value: Tensor) -> tuple[str, tuple[int, ...]]:
        """Return the name and shape of the least that broadcasts to `value`."""
        if isinstance(value.op, ops.BroadcastTo):
            source: Any = value.inputs[0]
            return self.names[source], source.shape
        if value not in self._unnamed:
            return self.names[value], value.shape
        array = value.numpy()
        for axis, size in enumerate(array.shape):
            first = array.take([0] if size else [], axis)
            if np.array_equal(array, np.broadcast_to(first, array.shape)):
                array = first
        return self.constant(array), array.shape

    def finish(self, outputs: Sequence[Tensor], name: str) -> Any:
        """Return the model with these outputs, without nodes and initializers that none needs."""
        helper = self.onnx.helper
        made = {result for _, _, results, _ in self._nodes for result in results}
        final: dict[str, str] = {}
        output_names = [self._own_name(output) for output in _names("output", outputs)]
        for own, output in zip(output_names, outputs, strict=True):
            result = self.names[output]
            if result in made and result not in final:
                final[result] = own
            else:  # an input, a constant, or given out twice
                self._nodes.append(("Identity", (result,), [own], {}))
        needed = set(output_names) | set(final)
        nodes = []
        for kind, sources, results, attributes in reversed(self._nodes):
            if needed.isdisjoint(results):
                continue
            needed.update(sources)
            renamed = [[final.get(n, n) for n in names] for names in (sources, results)]
            nodes.append(helper.make_node(kind, *renamed, name=renamed[1][0], **attributes))
        opset = helper.make_opsetid("", OPSET)
        graph = helper.make_graph(
            nodes[::-1],
            name,
            [self._value_info(name, tensor) for name, tensor in self._inputs],
            [self._value_info(*pair) for pair in zip(output_names, outputs, strict=True)],
            [
                self.onnx.numpy_helper.from_array(array, name)
                for name, array in self._initializers.items()
                if name in needed
            ],
        )
        return helper.make_model(
            graph,
            opset_imports=[opset],
            ir_version=helper.find_min_ir_version_for([opset]),
            producer_name="needle",
        )

    def _value_info(self, name: str, tensor: Tensor) -> Any:
        helper = self.onnx.helper
        element = helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype))
        return helper.make_tensor_value_info(name, element, tensor.shape)

    def _own_name(self, name: str) -> str:
        """Return `name`, or a longer one if it is taken."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name


# --- ops: each emitter adds the nodes of one op and returns the name of the result ---


def _same_inputs(kind: str) -> Emitter:
    def emit(writer: Writer, node: Any, *sources: str) -> str:
        return writer.node(kind, *sources)

    return emit


def _with_scalar(kind: str) -> Emitter:
    def emit(writer: Writer, node: Any, a: str) -> str:
        return writer.node(kind, a, _scalar(writer, node.op.scalar, node))

    return emit


def _scalar(writer: Writer, number: float, like: Tensor) -> str:
    return writer.constant(np.array(number, np.dtype(like.dtype)))


def _fused_add_scalars(writer: Writer, node: Any, a: str) -> list[str]:
    like = node.inputs[0]
    return [writer.node("Add", a, _scalar(writer, c, like)) for c in (node.op.c0, node.op.c1)]


def _broadcasting(kind: str) -> Emitter:
    def emit(writer: Writer, node: Any, a: str, b: str) -> str:
        return _joined(writer, kind, node, *node.inputs)

    return emit


def _joined(writer: Writer, kind: str, node: Tensor, *operands: Any) -> str:
    """Add an elementwise node; ONNX broadcasts by itself, so most BroadcastTo are left out."""
    sources, shapes = zip(*(writer.narrow(x) for x in operands), strict=True)
    if layout.broadcast_shapes(*shapes, "onnx") != node.shape:
        sources = tuple(writer.names[x] for x in operands)
    return writer.node(kind, *sources)


def _add(writer: Writer, node: Any, a: str, b: str) -> str:
    first, second = node.inputs
    if isinstance(second.op, ops.Negate):  # needle's way to subtract
        return _joined(writer, "Sub", node, first, second.inputs[0])
    return _joined(writer, "Add", node, first, second)


def _exp(writer: Writer, node: Any, a: str) -> str:
    (x,) = node.inputs
    if isinstance(x.op, ops.LogSoftmax):  # needle's way to a softmax
        return writer.node("Softmax", writer.names[x.inputs[0]], axis=x.op.axis)
    return writer.node("Exp", a)


def _clip(writer: Writer, node: Any, a: str) -> str:
    limits = (node.op.low, node.op.high)
    return writer.node("Clip", a, *("" if n is None else _scalar(writer, n, node) for n in limits))


def _where(writer: Writer, node: Any, a: str, b: str) -> str:
    return writer.node("Where", writer.constant(node.op.condition.numpy() != 0), a, b)


def _reduction(kind: str, keepdims: bool | None = None) -> Emitter:
    def emit(writer: Writer, node: Any, a: str) -> str:
        ndim = node.inputs[0].ndim
        axes = layout.normalize_axes(node.op.axes, ndim, "onnx")
        kept = node.op.keepdims if keepdims is None else keepdims
        if not axes:  # of a Tensor without axes; to ONNX that would be all of them
            return a
        return writer.node(kind, a, _integers(writer, axes), keepdims=int(kept))

    return emit


def _integers(writer: Writer, numbers: Any) -> str:
    return writer.constant(np.asarray(numbers, np.int64))


def _reshape(writer: Writer, node: Any, a: str) -> str:
    return writer.node("Reshape", a, _integers(writer, node.shape))


def _expand(writer: Writer, node: Any, a: str) -> str:
    return writer.node("Expand", a, _integers(writer, node.shape))


def _swap(writer: Writer, node: Any, a: str) -> str:
    order = list(range(len(node.shape)))
    first, second = node.op.axes or (-1, -2)
    order[first], order[second] = order[second], order[first]
    return writer.transpose(a, order)


def _permute(writer: Writer, node: Any, a: str) -> str:
    return writer.transpose(a, node.op.axes)


def _take_slice(writer: Writer, node: Any, a: str) -> str:
    return _sliced(writer, a, node.inputs[0].shape, node.op.slices)


def _flip(writer: Writer, node: Any, a: str) -> str:
    slices = [slice(None, None, -1 if i in node.op.axes else 1) for i in range(len(node.shape))]
    return _sliced(writer, a, node.shape, slices)


def _undilate(writer: Writer, node: Any, a: str) -> str:
    step = node.op.dilation + 1
    slices = [slice(None, None, step if i in node.op.axes else 1) for i in range(len(node.shape))]
    return _sliced(writer, a, node.inputs[0].shape, slices)


def _sliced(writer: Writer, a: str, shape: Sequence[int], slices: Sequence[slice]) -> str:
    """Add a Slice of the axes that are not taken whole."""
    bounds = []
    for axis, (part, size) in enumerate(zip(slices, shape, strict=True)):
        start, stop, step = part.indices(size)
        if (start, stop, step) != (0, size, 1):
            # A stop of -1 counts from the end there: before the first element is -size - 1.
            bounds.append((start, stop if stop >= 0 else -size - 1, axis, step))
    if not bounds:
        return a
    starts, stops, axes, steps = (_integers(writer, column) for column in zip(*bounds, strict=True))
    return writer.node("Slice", a, starts, stops, axes, steps)


def _concatenate(writer: Writer, node: Any, *sources: str) -> str:
    return writer.node("Concat", *sources, axis=node.op.axis)


def _stack(writer: Writer, node: Any, parts: Sequence[str]) -> str:
    axis = _integers(writer, [node.op.axis])
    wider = [writer.node("Unsqueeze", part, axis) for part in parts]
    return writer.node("Concat", *wider, axis=node.op.axis)


def _split(writer: Writer, node: Any, a: str) -> list[str]:
    count = len(node)
    parts = writer.nodes("Split", a, count=count, axis=node.op.axis, num_outputs=count)
    axis = _integers(writer, [node.op.axis])
    return [writer.node("Squeeze", part, axis) for part in parts]


def _take_rows(writer: Writer, node: Any, a: str) -> str:
    return writer.node("Gather", a, _integers(writer, node.op.rows.numpy()))


def _look_up(writer: Writer, node: Any, weight: str, ids: str) -> str:
    integers = writer.node("Cast", ids, to=writer.onnx.TensorProto.INT64)
    return writer.node("Gather", weight, integers)


def _conv(writer: Writer, node: Any, a: str, b: str) -> str:
    images = writer.transpose(a, TO_NCHW)
    kernels = writer.transpose(b, (3, 2, 0, 1))  # (KH, KW, in, out) -> (out, in, KH, KW)
    kernel = node.inputs[1].shape[:2]
    return writer.transpose(
        writer.node("Conv", images, kernels, **_window(node.op, kernel)), TO_NHWC
    )


def _pool(kind: str, **settings: int) -> Emitter:
    def emit(writer: Writer, node: Any, a: str) -> str:
        images = writer.transpose(a, TO_NCHW)
        window = _window(node.op, node.op.kernel)
        return writer.transpose(writer.node(kind, images, **window, **settings), TO_NHWC)

    return emit


def _window(op: Any, kernel: Sequence[int]) -> dict[str, Any]:
    return {"kernel_shape": kernel, "strides": op.stride, "pads": [*op.padding, *op.padding]}


TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)

EMITTERS: dict[type[Op], Emitter] = {
    ops.EWiseAdd: _add,
    ops.EWiseMul: _broadcasting("Mul"),
    ops.EWiseDiv: _broadcasting("Div"),
    ops.EWisePow: _broadcasting("Pow"),
    ops.AddScalar: _with_scalar("Add"),
    ops.MulScalar: _with_scalar("Mul"),
    ops.DivScalar: _with_scalar("Div"),
    ops.PowerScalar: _with_scalar("Pow"),
    ops.Negate: _same_inputs("Neg"),
    ops.Log: _same_inputs("Log"),
    ops.Exp: _exp,
    ops.Sqrt: _same_inputs("Sqrt"),
    ops.Sin: _same_inputs("Sin"),
    ops.Cos: _same_inputs("Cos"),
    ops.Tanh: _same_inputs("Tanh"),
    ops.Sigmoid: _same_inputs("Sigmoid"),
    ops.ReLU: _same_inputs("Relu"),
    ops.Abs: _same_inputs("Abs"),
    ops.Clip: _clip,
    ops.Where: _where,
    ops.Transpose: _swap,
    ops.Permute: _permute,
    ops.Reshape: _reshape,
    ops.BroadcastTo: _expand,
    ops.Summation: _reduction("ReduceSum"),
    ops.Max: _reduction("ReduceMax"),
    ops.Min: _reduction("ReduceMin"),
    ops.LogSumExp: _reduction("ReduceLogSumExp", keepdims=False),
    ops.LogSoftmax: lambda writer, node, a: writer.node("LogSoftmax", a, axis=node.op.axis),
    ops.MatMul: _same_inputs("MatMul"),
    ops.TakeSlice: _take_slice,
    ops.Flip: _flip,
    ops.UnDilate: _undilate,
    ops.Concatenate: _concatenate,
    ops.Stack: _stack,
    ops.Split: _split,
    ops.TakeRows: _take_rows,
    Lookup: _look_up,
    ops.FusedAddScalars: _fused_add_scalars,
    ops.MakeTensorTuple: lambda writer, node, *parts: parts,
    ops.TupleGetItem: lambda writer, node, parts: parts[node.op.index],
    ops.ToDevice: lambda writer, node, a: a,
    ops.Conv: _conv,
    ops.MaxPool: _pool("MaxPool"),
    ops.AvgPool: _pool("AveragePool", count_include_pad=1),
}
