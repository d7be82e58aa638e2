"""Tensors that remember how they were computed, and reverse-mode automatic differentiation over
them.

An `Op` computes on arrays (`compute`) and says its gradient with Tensors (`gradient`). Calling one
makes a `Tensor` that keeps the op and its inputs; these links are the graph. `find_topo_sort` and
`compute_gradient_of_variables` go through it backwards. The ops are in `ops/`.
"""

import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import count
from operator import add, index
from typing import Any

import numpy as np

from needle import tensor_methods
from needle.backend_selection import BACKEND, NDArray, array_api, as_device, default_device
from needle.errors import DeviceError, DtypeError, GraphError, IndexingError, ShapeError
from needle.recording import grad_mode
from needle.tensor_methods import REAL

__all__ = [
    "LAZY_MODE",
    "TENSOR_COUNTER",
    "Op",
    "Tensor",
    "TensorOp",
    "TensorTuple",
    "TensorTupleOp",
    "Value",
    "compute_gradient_of_variables",
    "find_topo_sort",
    "sum_node_list",
]

# The number of live Values.
TENSOR_COUNTER = 0

### SINCE full
# With LAZY_MODE an op's data is computed when it is first asked for.
LAZY_MODE = False

# Orders assignments to `.data` and backward passes: a gradient's graph is rebuilt only on the data
# that it came from.
DATA_CLOCK = count(1)

### END SINCE
BACKEND_IS_ND = BACKEND == "nd"


# --- ops ---


class Op:
    """An operation: what it computes and what its gradient is."""

    def __call__(self, *args: Any) -> Any:
        raise NotImplementedError

    def compute(self, *args: Any) -> Any:
        """Return the result on raw arrays; `args` are the inputs' arrays."""
        raise NotImplementedError

    def gradient(self, out_grad: Any, node: Any) -> Any:
        """Return the gradient for each input of `node`, as Tensors of the inputs' shapes.

        Several inputs get a tuple. None stands for an input that needs no gradient.
        """
        raise NotImplementedError

    def gradient_as_tuple(self, out_grad: Any, node: Any) -> tuple[Any, ...]:
        """Return `gradient` as a tuple, also for a single input; GraphError unless each input of
        `node` has one.
        """
        output = self.gradient(out_grad, node)
        grads = tuple(output) if isinstance(output, tuple | list) else (output,)
        if len(grads) != len(node.inputs):
            raise GraphError(
                f"[{type(self).__name__}.gradient] returned {len(grads)} gradients for "
                f"{len(node.inputs)} inputs; one each, or None (a TensorTuple is one)"
            )
        return grads


class TensorOp(Op):
    """An op whose result is one Tensor."""

    def __call__(self, *args: "Value") -> "Tensor":
        return Tensor.make_from_op(self, args)


class TensorTupleOp(Op):
    """An op whose result is a TensorTuple."""

    def __call__(self, *args: "Value") -> "TensorTuple":
        return TensorTuple.make_from_op(self, args)


# --- values ---

_new = object.__new__


class Value:
    """A node of the graph: data, and the op and inputs it came from (op is None for a leaf)."""

    ### SINCE full
    # _hooks and _name are set on the few Tensors that have them.
    __slots__ = (
        "__weakref__",
        "_hooks",
        "_name",
        "_version",
        "cached_data",
        "grad",
        "inputs",
        "op",
        "requires_grad",
    )

    ### END SINCE
    op: Op | None
    inputs: Sequence["Value"]
    cached_data: Any
    requires_grad: bool
    grad: Any
    ### SINCE full
    _hooks: "tuple[HookHandle, ...]"
    _name: str
    ### END SINCE

    num_outputs = 1

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a leaf without data: a constructor may fail, `__del__` finds it counted."""
        value = _new(cls)
        value._init(None, (), None, False)
        return value

    def _init(
        self, op: Op | None, inputs: Sequence["Value"], cached_data: Any, requires_grad: bool
    ) -> None:
        global TENSOR_COUNTER
        TENSOR_COUNTER += 1
        self.op = op
        self.inputs = inputs
        self.cached_data = cached_data
        self.requires_grad = requires_grad
        self.grad = None
        ### SINCE full
        self._version = 0  # when `.data` was last assigned, by DATA_CLOCK
        ### END SINCE

    def __del__(self) -> None:
        global TENSOR_COUNTER
        TENSOR_COUNTER -= 1

    def realize_cached_data(self) -> Any:
        """Return the raw array itself, not a copy."""
        ### SINCE full
        if self.cached_data is None:  # it was put off; compute it and what it needs
            # In graph order, not by recursion: a lazy graph may be deep.
            for node in find_topo_sort([self]):
                if node.cached_data is None:
                    assert node.op is not None  # noqa: S101 - only an op's result can lack data
                    node.cached_data = _as_data(
                        node.op.compute(*[x.cached_data for x in node.inputs])
                    )
        ### END SINCE
        return self.cached_data

    def is_leaf(self) -> bool:
        """Tell whether this value was made by a user, not by an op."""
        return self.op is None

    @classmethod
    def make_const(cls, data: Any, *, requires_grad: bool = False) -> Any:
        """Return a leaf over the raw array `data`, without a copy."""
        value = _new(cls)
        value._init(None, (), data, requires_grad)
        return value

    @classmethod
    def make_from_op(cls, op: Op, inputs: Sequence["Value"]) -> Any:
        """Return the result of `op` on `inputs`: recorded if an input requires a gradient, else a
        constant.
        """
        ### UNTIL hw5
        # data = _as_data(op.compute(*[x.realize_cached_data() for x in inputs]))
        # value = _new(cls)
        # if any(x.requires_grad for x in inputs):
        #     value._init(op, inputs, data, True)
        # else:
        #     value._init(None, (), data, False)
        ### END UNTIL
        ### SINCE full
        data = None
        if not LAZY_MODE:
            arrays = [  # data that was not put off is read without a call
                x.realize_cached_data() if x.cached_data is None else x.cached_data for x in inputs
            ]
            data = op.compute(*arrays)
            if not isinstance(data, NDArray):
                data = _as_data(data)
        value = _new(cls)
        if grad_mode.enabled:
            for x in inputs:
                if x.requires_grad:
                    value._init(op, inputs, data, True)
                    return value
        value._init(
            None if data is not None else op, () if data is not None else inputs, data, False
        )
        ### END SINCE
        return value


def _as_data(data: Any) -> Any:
    """Return what an op computed as an array: numpy reduces to scalars, which are not arrays."""
    if isinstance(data, NDArray | tuple):
        return data
    return array_api.array(data)


class TensorTuple(Value):
    """Several Tensors that one op made, or that were put together by `make_tuple`."""

    ### SINCE full
    __slots__ = ()

    ### END SINCE
    @property
    def num_outputs(self) -> int:  # type: ignore[override]
        """The number of Tensors."""
        return len(self)

    def __len__(self) -> int:
        return len(self.realize_cached_data())

    def __getitem__(self, position: int) -> "Tensor":
        """Return one Tensor; IndexingError outside the tuple, so that iterating ends."""
        position = index(position)
        if not -len(self) <= position < len(self):
            raise IndexingError(
                f"[tuple_get_item] index {position} is out of range for {len(self)} Tensors"
            )
        return ops.tuple_get_item(self, position % len(self))

    def __iter__(self) -> Iterator["Tensor"]:
        return (self[i] for i in range(len(self)))

    def tuple(self) -> tuple["Tensor", ...]:
        """Return the Tensors as a Python tuple."""
        return tuple(self)

    def __add__(self, other: "TensorTuple") -> "TensorTuple":
        if not isinstance(other, TensorTuple):
            return NotImplemented
        if len(self) != len(other):
            raise ShapeError(f"[add] tuples of {len(self)} and {len(other)} Tensors")
        return ops.make_tuple(*[a + b for a, b in zip(self, other, strict=True)])

    def __repr__(self) -> str:
        return f"TensorTuple({self.tuple()})"

    ### SINCE full
    def __reduce__(self) -> Any:
        return TensorTuple.make_const, (self.realize_cached_data(),)

    ### END SINCE
    def detach(self) -> "TensorTuple":
        """Return a constant that shares the arrays."""
        return TensorTuple.make_const(self.realize_cached_data())


class Tensor(tensor_methods.TensorMethods, Value):
    """An array that records the operations on it and can be differentiated.

    Args:
        array: a Tensor (same device and dtype: the array is shared), an NDArray, or anything
            array-like (copied).
        device: where it lives; default: the array's device, or `default_device()`.
        dtype: the element type; default: float32, or under NEEDLE_BACKEND=np numpy's own choice.
        requires_grad: whether `backward` computes a gradient for it.
    """

    ### SINCE full
    __slots__ = ()

    ### END SINCE
    def __init__(
        self,
        array: Any,
        *,
        device: Any = None,
        dtype: Any = None,
        requires_grad: bool = True,
        ### SINCE full
        name: str | None = None,  # what pictures and listings of graphs call it
        ### END SINCE
    ) -> None:
        source = array.realize_cached_data() if isinstance(array, Tensor) else array
        if isinstance(source, NDArray):
            dtype = source.dtype if dtype is None else dtype
            device = source.device if device is None and BACKEND_IS_ND else device
        device = default_device() if device is None else as_device(device)
        if isinstance(array, Tensor) and device == array.device and dtype == array.dtype:
            self.cached_data = source
        else:
            self.cached_data = array_api.array(source, dtype=dtype, device=device)
        self.requires_grad = requires_grad
        ### SINCE full
        if name is not None:
            self.name = name
        ### END SINCE

    # --- what it is ---

    ### SINCE full
    @property
    def name(self) -> str | None:
        """What pictures and listings of graphs call it; None if it has no name."""
        return getattr(self, "_name", None)

    @name.setter
    def name(self, name: str) -> None:
        self._name = name

    ### END SINCE
    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
        ### UNTIL hw5
        # return self.realize_cached_data().shape
        ### END UNTIL
        ### SINCE full
        data = self.cached_data  # asked for at every op: no call unless the data was put off
        return (self.realize_cached_data() if data is None else data).shape
        ### END SINCE

    @property
    def dtype(self) -> Any:
        """The element type: a string on our arrays, numpy's dtype under NEEDLE_BACKEND=np."""
        return self.realize_cached_data().dtype

    @property
    def device(self) -> Any:
        """The device that holds the data."""
        return self.realize_cached_data().device if BACKEND_IS_ND else default_device()

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.realize_cached_data().size

    def numpy(self) -> np.ndarray:
        """Return a fresh C-contiguous copy on the host."""
        data = self.realize_cached_data()
        return data.numpy() if BACKEND_IS_ND else np.array(data, order="C")

    ### SINCE full
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return a numpy array over the memory itself, or a copy if `dtype`, `copy` or the device
        ask for one.
        """
        return np.array(self.realize_cached_data(), dtype=dtype, copy=copy)

    def __dlpack__(self, **keywords: Any) -> Any:
        """Return a DLPack capsule over the memory itself, for other libraries' `from_dlpack`."""
        return array_api.to_dlpack(self.realize_cached_data(), **keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.realize_cached_data().__dlpack_device__()

    ### END SINCE
    def item(self) -> float:
        """Return the only element as a Python number; ShapeError if there are several."""
        if self.size != 1:
            raise ShapeError(
                f"[item] shape {self.shape} has {self.size} elements; only a single one is a number"
            )
        return self.numpy().item()

    def __float__(self) -> float:
        return float(self.item())

    ### SINCE full
    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    ### END SINCE
    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("[len] a Tensor without axes has no length")
        return self.shape[0]

    ### SINCE full
    def __iter__(self) -> Iterator["Tensor"]:
        return (self[i] for i in range(len(self)))

    ### END SINCE
    def __repr__(self) -> str:
        body = np.array2string(self.numpy(), separator=", ", prefix="Tensor(")
        facts = f"shape={self.shape}, device={self.device}"
        ### SINCE full
        if self.name is not None:
            facts += f", name={self.name!r}"
        ### END SINCE
        return f"Tensor({body}, {facts}{self._origin()})"

    def __str__(self) -> str:
        return str(self.numpy())

    def _origin(self) -> str:
        """Return what a repr says about the graph."""
        if self.op is not None:
            return f", op={type(self.op).__name__}"
        return ", requires_grad=True" if self.requires_grad else ""

    ### SINCE full
    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_tensor, (
            type(self),
            self.numpy(),
            self.device,
            self.dtype,
            self.requires_grad,
        )

    ### END SINCE
    # --- data without the graph ---

    @property
    def data(self) -> "Tensor":
        """A constant that shares the array; assigning replaces this Tensor's array and keeps its
        place in graphs.
        """
        return self.detach()

    @data.setter
    def data(self, value: "Tensor") -> None:
        if not isinstance(value, Tensor):
            raise DtypeError(f"[data] assign a Tensor, not a {type(value).__name__}")
        if value.dtype != self.dtype:
            raise DtypeError(
                f"[data] a {value.dtype} Tensor cannot replace {self.dtype} data; convert it first"
            )
        ### SINCE full
        if value.device != self.device:
            raise DeviceError(
                f"[data] a Tensor on {value.device} cannot replace data on {self.device}; use .to()"
            )
        ### END SINCE
        self.cached_data = value.realize_cached_data()
        ### SINCE full
        self._version = next(DATA_CLOCK)
        ### END SINCE

    def detach(self) -> "Tensor":
        """Return a constant that shares the array and has no graph."""
        return Tensor.make_const(self.realize_cached_data())

    ### SINCE full
    def to(self, device: Any) -> "Tensor":
        """Return this Tensor on `device` (a device or its name): itself if there already, else a
        copy, whose gradient comes back to this one.
        """
        return ops.to_device(self, device)

    ### END SINCE
    # --- differentiation ---

    ### UNTIL hw5
    # def backward(self, out_grad: "Tensor | None" = None) -> None:
    #     """Compute the gradient of this Tensor for every leaf that requires one, into the leaf's
    #     `.grad`.
    #
    #     `out_grad` is the gradient of what follows, of this Tensor's shape; default: ones.
    #     """
    #     if not self.requires_grad:
    #         raise GraphError("[backward] no input of this Tensor's graph requires a gradient")
    #     if out_grad is None:
    #         out_grad = Tensor.make_const(array_api.full_like(self.cached_data, 1.0))
    #     if out_grad.shape != self.shape:
    #         raise ShapeError(f"[backward] out_grad {out_grad.shape} for shape {self.shape}")
    #     compute_gradient_of_variables(self, out_grad)
    #
    ### END UNTIL
    ### SINCE full
    def backward(
        self,
        out_grad: "Tensor | None" = None,
        *,
        retain_grad: bool = False,
        create_graph: bool = False,
        accumulate: bool = False,
    ) -> None:
        """Compute the gradient of this Tensor for every leaf that requires one, into the leaf's
        `.grad`.

        Args:
            out_grad: the gradient of what follows, of this Tensor's shape; default: ones.
            retain_grad: also keep the gradients of interior nodes.
            create_graph: record the gradients themselves, with strong references (a cycle that
                the collector frees).
            accumulate: add to `.grad` instead of replacing it.

        Raises:
            GraphError: if nothing requires a gradient, or an op's gradient does not fit its input.
            ShapeError: if `out_grad` has another shape.
        """
        engine.backward(
            self,
            out_grad,
            retain_grad=retain_grad,
            create_graph=create_graph,
            accumulate=accumulate,
        )

    def register_hook(self, hook: Callable[["Tensor"], "Tensor | None"]) -> "HookHandle":
        """Call `hook` with this Tensor's gradient whenever `backward` has computed it.

        What the hook returns, if not None, takes the gradient's place in `.grad` and for what
        follows. Hooks run in the order in which they were registered, again when a gradient is
        itself differentiated. Returns a handle whose `remove()` ends it.

        Raises:
            GraphError: if this Tensor requires no gradient.
        """
        if not self.requires_grad:
            raise GraphError("[register_hook] this Tensor requires no gradient, so none comes")
        handle = HookHandle(self, hook)
        self._hooks = (*getattr(self, "_hooks", ()), handle)
        return handle

    ### END SINCE
    __array_ufunc__ = None  # numpy on the left leaves the operator to us
    __hash__ = object.__hash__  # == is identity, so Tensors are dictionary keys

    def _constant(self, other: Any) -> "Tensor":
        """Return `other` as a constant of this Tensor's device and dtype."""
        values = float(other) if isinstance(other, REAL) else np.asarray(other)
        return Tensor(values, device=self.device, dtype=self.dtype, requires_grad=False)


### SINCE full
class HookHandle:
    """What `register_hook` returns: a way to take the hook off again."""

    def __init__(self, tensor: Tensor, hook: Callable[[Tensor], Tensor | None]) -> None:
        self._tensor = weakref.ref(tensor)
        self.hook = hook

    def remove(self) -> None:
        """Take the hook off; a second call does nothing."""
        tensor = self._tensor()
        if tensor is not None:
            tensor._hooks = tuple(handle for handle in tensor._hooks if handle is not self)


def _rebuild_tensor(
    kind: type[Tensor], values: np.ndarray, device: Any, dtype: Any, requires_grad: bool
) -> Tensor:
    """Return the leaf that a pickle or a deep copy describes."""
    tensor = kind.__new__(kind)
    tensor.cached_data = array_api.array(values, dtype=dtype, device=device)
    tensor.requires_grad = requires_grad
    return tensor


### END SINCE
# --- the algorithm in its plain form ---


def find_topo_sort(node_list: Sequence[Value]) -> list[Value]:
    """Return the nodes that `node_list` needs, each once, every node after its inputs.

    Any such order will do; depth first gives one. Graphs may be deeper than Python's recursion
    limit.
    """
    ### BEGIN SOLUTION hw1.find_topo_sort
    visited: set[Value] = set()
    order: list[Value] = []
    for root in node_list:
        if root in visited:
            continue
        visited.add(root)
        stack = [(root, iter(root.inputs))]
        while stack:
            node, inputs = stack[-1]
            unvisited = next((x for x in inputs if x not in visited), None)
            if unvisited is None:
                order.append(node)
                stack.pop()
            else:
                visited.add(unvisited)
                stack.append((unvisited, iter(unvisited.inputs)))
    return order
    ### END SOLUTION


def compute_gradient_of_variables(output_tensor: Tensor, out_grad: Tensor) -> None:
    """Store in each leaf's `.grad` the gradient of `output_tensor`, weighted by `out_grad`.

    Walks the graph backwards. When a node's turn comes, all of its users have contributed: their
    sum is its gradient, which its op hands on to its inputs.
    """
    ### BEGIN SOLUTION hw1.compute_gradient_of_variables
    contributions: dict[Value, list[Tensor]] = {output_tensor: [out_grad]}
    for node in reversed(find_topo_sort([output_tensor])):
        if node not in contributions:  # nothing that requires a gradient leads here
            continue
        grad = sum_node_list(contributions.pop(node))
        if node.op is None:
            node.grad = grad if node.requires_grad else None
            continue
        for x, x_grad in zip(node.inputs, node.op.gradient_as_tuple(grad, node), strict=True):
            if x_grad is not None:
                contributions.setdefault(x, []).append(x_grad)
    ### END SOLUTION


def sum_node_list(node_list: Sequence[Tensor]) -> Tensor:
    """Return the sum of Tensors, without a zero to start from (it would add a node)."""
    return reduce(add, node_list)


# Late: these modules are built on the classes above.
from needle import engine, ops  # noqa: E402

tensor_methods.ops = ops
