"""Every differentiable op in one table: a call, the same in numpy, and the shapes to try it on.

The tests of values, gradients, second order, recording and devices go through these rows; kinks
and extreme values have tests of their own in tests/ops/. test_recording.py demands that every
public op has a row.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from needle import ops


def distinct(rng, shape):
    """Return numbers in (-2, 2) of which no two are close to each other, nor one to 0."""
    size = max(math.prod(shape), 1)
    return ((rng.permutation(size) + 0.37 - size // 2) * (4 / (size + 1)))[
        : math.prod(shape)
    ].reshape(shape)


def positive(rng, shape):
    """Return numbers that have a logarithm and a reciprocal."""
    return rng.uniform(0.4, 2, shape)


@dataclass(frozen=True)
class Row:
    """An op's public name, a call on Tensors, the same on numpy arrays, and the inputs."""

    op: str
    call: Callable
    reference: Callable
    shapes: tuple
    draw: Callable = distinct

    def __str__(self):
        arguments = getattr(self.call, "arguments", "")
        return (
            f"{self.op}{'-'.join(str(shape).replace(' ', '') for shape in self.shapes)}{arguments}"
        )

    def inputs(self, rng):
        """Return float64 arrays away from the op's kinks."""
        return [self.draw(rng, shape) for shape in self.shapes]


def with_arguments(function, *args, **kwargs):
    """Return `function` with arguments after the Tensors, which the row's name shows."""

    def call(*tensors):
        return function(*tensors, *args, **kwargs)

    shown = [str(a) for a in args] + [f"{key}={value}" for key, value in kwargs.items()]
    call.arguments = f"({','.join(shown)})".replace(" ", "")
    call.__name__ = function.__name__
    return call


ANY_SHAPE = ((), (1,), (5,), (2, 3), (1, 3), (2, 1, 2), (0, 3))

BROADCAST = (
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((3,), (2, 3)),
    ((2, 1), (1, 3)),
    ((), (2, 3)),
    ((2, 3), ()),
    ((1,), (2, 2)),
    ((2, 1, 3), (4, 1)),
    ((1, 1), (1, 1)),
    ((), ()),
    ((0, 3), (1, 3)),
    ((1, 3), (0, 1)),
)

UNARY = [
    Row(op, getattr(ops, op), reference, (shape,), draw)
    for op, reference, draw in (
        ("negate", np.negative, distinct),
        ("exp", np.exp, distinct),
        ("log", np.log, positive),
        ("sqrt", np.sqrt, positive),
        ("sin", np.sin, distinct),
        ("cos", np.cos, distinct),
        ("tanh", np.tanh, distinct),
        ("sigmoid", lambda a: 1 / (1 + np.exp(-a)), distinct),
        ("relu", lambda a: np.maximum(a, 0), distinct),
        ("abs", np.abs, distinct),
    )
    for shape in ANY_SHAPE
]

SCALAR = [
    Row(
        op,
        with_arguments(getattr(ops, op), scalar),
        with_arguments(reference, scalar),
        (shape,),
        draw,
    )
    for op, reference, scalar, draw in (
        ("add_scalar", np.add, 1.7, distinct),
        ("mul_scalar", np.multiply, -2.3, distinct),
        ("divide_scalar", np.divide, -0.7, distinct),
        ("power_scalar", np.power, 3, distinct),
        ("power_scalar", np.power, 2, distinct),
        ("power_scalar", np.power, 1, distinct),
        ("power_scalar", np.power, 0, distinct),
        ("power_scalar", np.power, -2.0, positive),
        ("power_scalar", np.power, 0.5, positive),
    )
    for shape in ((), (5,), (2, 3))
]

CLIP = [
    Row("clip", with_arguments(ops.clip, low, high), with_arguments(np.clip, low, high), (shape,))
    for low, high in ((-0.7, 0.9), (None, 0.5), (-0.5, None), (3.0, 4.0))
    for shape in ((), (2, 3), (0, 3))
]

BINARY = [
    Row(op, getattr(ops, op), reference, shapes, draw)
    for op, reference, draw in (
        ("add", np.add, distinct),
        ("multiply", np.multiply, distinct),
        ("divide", np.divide, positive),
        ("power", np.power, positive),
    )
    for shapes in BROADCAST
]


def where(mask):
    """Return `where` on a fixed condition, for Tensors and for arrays."""
    from tests.gradcheck import constant64

    def call(a, b):
        return ops.where(constant64(mask) if a.dtype == "float64" else mask, a, b)

    def reference(a, b):
        return np.where(mask, a, b)

    call.arguments = f"mask{mask.shape}".replace(" ", "")
    return call, reference


MASK = np.array([[1, 0, 1], [0, 0, 2]])

WHERE = [
    Row("where", *where(mask), shapes)
    for mask, shapes in (
        (MASK, ((2, 3), (2, 3))),
        (MASK, ((3,), (2, 1))),
        (MASK, ((), (1, 3))),
        (MASK[0], ((2, 3), (2, 3))),
        (MASK[:, :1], ((4, 1, 3), ())),
        (np.array(1), ((2,), (2,))),
        (np.ones((0, 3)), ((0, 3), (3,))),
    )
]

ELEMENTWISE = UNARY + SCALAR + CLIP + BINARY + WHERE


def swap(a, axes=None):
    """Return `a` with two axes swapped, the last two by default."""
    return np.swapaxes(a, *((-1, -2) if axes is None else axes))


SHAPE = [
    *(
        Row("transpose", with_arguments(ops.transpose, axes), with_arguments(swap, axes), (shape,))
        for axes, shape in (
            (None, (2, 3)),
            (None, (3, 3)),
            (None, (2, 3, 4)),
            ((0, 1), (2, 3, 4)),
            ((-1, 0), (2, 3, 4)),
            ((1, -1), (2, 3, 4)),
            ((1, 1), (2, 3)),
            (None, (0, 3)),
            ((0, 3), (2, 1, 2, 3)),
        )
    ),
    *(
        Row(
            "permute",
            with_arguments(ops.permute, axes),
            with_arguments(np.transpose, axes),
            (shape,),
        )
        for axes, shape in (
            ((1, 0), (2, 3)),
            ((2, 0, 1), (2, 2, 2)),
            ((2, 0, 1), (2, 3, 4)),
            ((-1, 0, 1), (2, 3, 4)),
            ((0,), (3,)),
            ((), ()),
            ((3, 1, 0, 2), (2, 1, 2, 3)),
        )
    ),
    *(
        Row("reshape", with_arguments(ops.reshape, to), with_arguments(np.reshape, to), (shape,))
        for to, shape in (
            ((3, 2), (2, 3)),
            ((-1,), (2, 3)),
            ((2, -1, 1), (2, 3)),
            ((), (1, 1)),
            ((1,), ()),
            ((0, 5), (3, 0)),
            ((6,), (6,)),
        )
    ),
    *(
        Row(
            "broadcast_to",
            with_arguments(ops.broadcast_to, to),
            with_arguments(np.broadcast_to, to),
            (shape,),
        )
        for to, shape in (
            ((1, 2, 3), (2, 1)),
            ((2, 3), (3,)),
            ((4, 3), (1, 3)),
            ((2, 3), (1, 1)),
            ((2, 3), ()),
            ((2, 3), (1,)),
            ((2, 3), (2, 3)),
            ((4, 2, 1, 3), (2, 1, 1)),
            ((0, 3), (1, 3)),
            ((2, 0), (1,)),
            ((1,), ()),
        )
    ),
    *(
        Row(
            "flatten",
            with_arguments(ops.flatten, start, end),
            with_arguments(np.reshape, to),
            (shape,),
        )
        for start, end, shape, to in (
            (0, -1, (2, 3), (6,)),
            (1, 2, (2, 1, 3, 2), (2, 3, 2)),
            (-2, -1, (2, 0, 3), (2, 0)),
            (0, -1, (), (1,)),
        )
    ),
    *(
        Row(
            "squeeze", with_arguments(ops.squeeze, axis), with_arguments(np.squeeze, axis), (shape,)
        )
        for axis, shape in (
            (None, (1, 3, 1)),
            (0, (1, 3, 1)),
            (-1, (1, 3, 1)),
            ((0, -1), (1, 3, 1)),
        )
    ),
    *(
        Row(
            "unsqueeze",
            with_arguments(ops.unsqueeze, axis),
            with_arguments(np.expand_dims, axis),
            (shape,),
        )
        for axis, shape in ((0, (3,)), (1, (3,)), (-1, (2, 3)), (-3, (2, 3)), (0, ()))
    ),
]

# Axes, and whether they are kept: one, several, negative, all.
AXES = (
    (None, False),
    (None, True),
    (0, False),
    (-1, True),
    (1, False),
    ((0, 2), False),
    ((-1, -3), True),
    ((0, 1, 2), False),
)


def reduction_rows(op, reference):
    """Return the rows of a reduction; numpy's name for the axes is `axis`."""
    cases = [((2, 3, 2), axes, keepdims) for axes, keepdims in AXES]
    cases += [((), None, False), ((), None, True), ((1,), 0, False), ((3, 1), 1, False)]
    if op == "summation":
        cases += [((0, 3), 0, False), ((0, 3), None, False), ((2, 0), 0, True)]
    return [
        Row(
            op,
            with_arguments(getattr(ops, op), axes=axes, keepdims=keepdims),
            with_arguments(reference, axis=axes, keepdims=keepdims),
            (shape,),
        )
        for shape, axes, keepdims in cases
    ]


REDUCTION = [
    row
    for op, reference in (
        ("summation", np.sum),
        ("mean", np.mean),
        ("max", np.max),
        ("min", np.min),
    )
    for row in reduction_rows(op, reference)
]

SPREAD = [
    Row(
        op,
        with_arguments(getattr(ops, op), axes=axes, keepdims=keepdims, correction=correction),
        with_arguments(reference, axis=axes, keepdims=keepdims, ddof=correction),
        (shape,),
    )
    for op, reference in (("var", np.var), ("std", np.std))
    for shape, axes, keepdims, correction in (
        ((2, 3, 2), None, False, 0),
        ((2, 3, 2), 1, True, 0),
        ((2, 3, 2), (0, -1), False, 1),
        ((4,), 0, False, 2),
    )
]

MATMUL = [
    Row("matmul", ops.matmul, np.matmul, shapes)
    for shapes in (
        ((2, 3), (3, 4)),
        ((1, 1), (1, 1)),
        ((1, 3), (3, 1)),
        ((2, 3, 4), (4, 5)),
        ((4, 5), (2, 3, 5, 2)),
        ((2, 2, 3), (2, 3, 2)),
        ((2, 1, 2, 3), (3, 3, 2)),
        ((1, 2, 3), (4, 3, 2)),
        ((3,), (3,)),
        ((3, 4), (4,)),
        ((3,), (3, 2)),
        ((2, 3, 4), (4,)),
        ((3,), (2, 3, 2)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 3)),
        ((2, 3), (3, 0)),
        ((0, 2, 3), (3, 2)),
    )
]


def np_logsumexp(a, axes=None):
    """Return log(sum(exp(a))) by its definition."""
    return np.log(np.sum(np.exp(a), axis=axes))


def np_softmax(a, axis=-1):
    """Return exp(a) / sum(exp(a)) by its definition."""
    return np.exp(a) / np.sum(np.exp(a), axis=axis, keepdims=True)


def np_logsoftmax(a, axis=-1):
    """Return log(softmax(a)) by its definition."""
    return np.log(np_softmax(a, axis))


LOGARITHMIC = [
    *(
        Row(
            "logsumexp",
            with_arguments(ops.logsumexp, axes),
            with_arguments(np_logsumexp, axes),
            (shape,),
        )
        for axes, shape in (
            (None, (2, 3)),
            (0, (2, 3)),
            (-1, (2, 3)),
            ((0, 2), (2, 3, 2)),
            ((-1, 0), (2, 3, 2)),
            ((1,), (1, 3)),
            ((2,), (3, 1, 2)),
            ((1,), (3, 1, 2)),
            (None, (1, 3)),
            ((-1,), (1, 3)),
            (None, ()),
            (1, (0, 3)),
        )
    ),
    *(
        Row(op, with_arguments(function, axis), with_arguments(reference, axis), (shape,))
        for op, function, reference in (
            ("logsoftmax", ops.logsoftmax, np_logsoftmax),
            ("softmax", ops.softmax, np_softmax),
        )
        for axis, shape in (
            (-1, (2, 3)),
            (0, (2, 3)),
            (1, (2, 3, 2)),
            (-1, (4,)),
            (-1, (3, 1)),
            (1, (0, 3)),
        )
    ),
]


class Index:
    """Turns `INDEX[1:, None]` into the index itself, for rows that are read like code."""

    def __getitem__(self, index):
        return index


INDEX = Index()


def np_getitem(a, index):
    """Return what numpy's basic indexing gives."""
    return a[index]


def join(*parts, axis):
    """Return the parts joined, as one function of several Tensors."""
    return ops.concatenate(parts, axis)


def np_join(*parts, axis):
    """Return the parts joined."""
    return np.concatenate(parts, axis)


INDEXING = [
    *(
        Row(
            "getitem",
            with_arguments(ops.getitem, index),
            with_arguments(np_getitem, index),
            (shape,),
        )
        for index, shape in (
            (INDEX[:3], (5,)),
            (INDEX[2], (5,)),
            (INDEX[-1], (5,)),
            (INDEX[::-1], (5,)),
            (INDEX[4:0:-2], (5,)),
            (INDEX[-10:-20:-1], (5,)),
            (INDEX[3:1], (5,)),
            (INDEX[-100:100], (5,)),
            (INDEX[1, 2], (2, 3)),
            (INDEX[1], (2, 3)),
            (INDEX[:, 1], (2, 3)),
            (INDEX[:, -2:], (2, 3)),
            (INDEX[::-1, ::-2], (2, 3)),
            (INDEX[..., 0], (2, 3, 2)),
            (INDEX[0, ...], (2, 3, 2)),
            (INDEX[1, ..., 1:], (2, 3, 2)),
            (INDEX[None], (3,)),
            (INDEX[:, None, 1], (2, 3)),
            (INDEX[..., None], (2, 3)),
            (INDEX[None, 1, None, ..., None], (2, 3)),
            (INDEX[...], (2, 3)),
            (INDEX[()], ()),
            (INDEX[None], ()),
            (INDEX[:, 1:], (0, 3)),
        )
    ),
    *(
        Row(
            "concatenate",
            with_arguments(join, axis=axis),
            with_arguments(np_join, axis=axis),
            shapes,
        )
        for axis, shapes in (
            (0, ((2, 3), (1, 3))),
            (1, ((2, 3), (2, 1), (2, 2))),
            (-1, ((2, 3), (2, 1))),
            (0, ((3,), (0,), (2,))),
            (1, ((2, 1, 2), (2, 2, 2))),
            (0, ((2, 2),)),
        )
    ),
]


TAKE = [
    Row(
        "take",
        with_arguments(ops.take, indices, axis=axis),
        with_arguments(np.take, indices, axis=axis),
        (shape,),
    )
    for indices, axis, shape in (
        ([2, 0, 2], 0, (3,)),
        ([2, 0, 2], 0, (3, 2)),
        ([[1, -1], [0, 0], [-3, 2]], 0, (3, 2)),
        ([1, 1, 0], 1, (2, 3)),
        ([[1], [-2]], 1, (2, 3, 2)),
        ([1, 0, 1], -1, (2, 3, 2)),
        ([[0, 1]], 2, (2, 1, 2, 2)),
        (1, 0, (3, 2)),
        (-1, 1, (3, 2)),
        ([0, 0], 0, (1, 0)),
        (np.zeros((2, 0), int), 0, (3, 2)),
        (np.zeros(0, int), 1, (2, 0)),
    )
]


def made_and_taken(a, b):
    """Return the parts of a TensorTuple, one of them twice."""
    parts = ops.make_tuple(a, b)
    return ops.tuple_get_item(parts, 1), ops.tuple_get_item(parts, 0), ops.tuple_get_item(parts, 1)


def taken_unfolded(a, b):
    """Return the parts through TupleGetItem nodes, which `tuple_get_item` would fold away."""
    parts = ops.make_tuple(a, b)
    return tuple(ops.TupleGetItem(i)(parts, fold_const=False) for i in (1, 0))


TUPLE = [
    Row(
        "fused_add_scalars",
        with_arguments(ops.fused_add_scalars, 2.0, -3.0),
        lambda a: (a + 2, a - 3),
        ((2, 3),),
    ),
    Row(
        "fused_add_scalars",
        with_arguments(ops.fused_add_scalars, 0.5, 0.5),
        lambda a: (a + 0.5, a + 0.5),
        ((),),
    ),
    Row("make_tuple", ops.make_tuple, lambda a, b: (a, b), ((2, 3), (4,))),
    Row("tuple_get_item", made_and_taken, lambda a, b: (b, a, b), ((2, 3), (4,))),
    Row("tuple_get_item", taken_unfolded, lambda a, b: (b, a), ((2, 3), (4,))),
]

# Late: its rows are built from the class above.
from tests.op_table_conv import CONV  # noqa: E402

ROWS = ELEMENTWISE + SHAPE + REDUCTION + SPREAD + MATMUL + LOGARITHMIC
ROWS += INDEXING + TAKE + TUPLE + CONV
