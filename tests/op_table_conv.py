"""Rows of the op table for images and for the ops on whole axes: stack, split, flip, dilate.

`op_table.py` joins them; import them from there.
"""

import numpy as np

from needle import ops
from tests.image_reference import np_avg_pool, np_conv, np_dilate, np_max_pool, np_undilate
from tests.op_table import Row, with_arguments


def put_together(*parts, axis):
    """Return the parts stacked, as one function of several Tensors."""
    return ops.stack(parts, axis)


def np_put_together(*parts, axis):
    """Return the parts stacked."""
    return np.stack(parts, axis)


def np_split(a, axis):
    """Return the parts along `axis`, without it."""
    return tuple(np.moveaxis(a, axis, 0))


# The small ones are differentiated twice.
CONV = [
    *(
        Row(
            "conv",
            with_arguments(ops.conv, stride=stride, padding=padding),
            with_arguments(np_conv, stride=stride, padding=padding),
            shapes,
        )
        for shapes, stride, padding in (
            (((1, 2, 3, 1), (2, 2, 1, 1)), 1, 0),
            (((1, 2, 2, 1), (2, 2, 1, 2)), 1, 1),
            (((1, 2, 2, 2), (1, 2, 2, 1)), 1, (1, 0)),  # beyond the kernel's reach
            (((1, 3, 3, 1), (2, 1, 1, 2)), 2, 0),  # a column is left over
            (((1, 2, 3, 1), (1, 2, 1, 2)), (1, 2), (2, 1)),
            (((1, 2, 2, 2), (1, 1, 2, 2)), 1, 0),
            (((2, 4, 5, 2), (3, 3, 2, 3)), 1, 1),
            (((2, 5, 4, 3), (3, 2, 3, 2)), (2, 3), (1, 2)),
            (((0, 3, 3, 2), (2, 2, 2, 3)), 1, 0),
        )
    ),
    *(
        Row(
            op,
            with_arguments(getattr(ops, op), *settings),
            with_arguments(reference, *settings),
            (shape,),
        )
        for op, reference in (("max_pool", np_max_pool), ("avg_pool", np_avg_pool))
        for shape, settings in (
            ((1, 4, 4, 1), (2,)),
            ((1, 3, 3, 2), (2, 1, 1)),
            ((1, 5, 3, 1), ((3, 2), (2, 1), (1, 0))),
            ((1, 2, 3, 2), (1, 2)),
            ((2, 5, 6, 3), (3, 2, 1)),
            ((0, 4, 4, 2), (2,)),
        )
    ),
    *(
        Row("flip", with_arguments(ops.flip, axes), with_arguments(np.flip, axes), (shape,))
        for axes, shape in (
            (0, (4,)),
            ((0, 1), (2, 3)),
            (-1, (2, 3)),
            ((0, -1), (2, 3, 2)),
            ((), (2, 3)),
            (0, (0, 3)),
        )
    ),
    *(
        Row(
            op,
            with_arguments(getattr(ops, op), axes, dilation),
            with_arguments(reference, axes, dilation),
            (shape,),
        )
        for op, reference in (("dilate", np_dilate), ("undilate", np_undilate))
        for axes, dilation, shape in (
            (0, 1, (4,)),
            ((0, 1), 1, (2, 4)),
            (1, 2, (2, 6)),
            ((-1,), 2, (2, 5)),  # undilate's input ends early
            ((0, 1), 0, (2, 3)),
            ((1, 5), 1, (2, 4)),  # an axis that is not there
            ((1, 2), 1, (1, 2, 2, 3)),
            (0, 1, (0, 3)),
        )
    ),
    *(
        Row(
            "stack",
            with_arguments(put_together, axis=axis),
            with_arguments(np_put_together, axis=axis),
            shapes,
        )
        for axis, shapes in (
            (0, ((2, 3), (2, 3))),
            (1, ((2, 3), (2, 3), (2, 3))),
            (2, ((2, 3), (2, 3))),
            (-1, ((2, 2), (2, 2))),
            (-3, ((2, 2), (2, 2))),
            (0, ((), ())),
            (-1, ((3,),)),
            (1, ((0, 3), (0, 3))),
        )
    ),
    *(
        Row("split", with_arguments(ops.split, axis), with_arguments(np_split, axis), (shape,))
        for axis, shape in (
            (0, (3,)),
            (0, (2, 3)),
            (1, (2, 3)),
            (-1, (2, 2, 3)),
            (-3, (2, 2, 3)),
            (1, (2, 1)),
            (1, (0, 3)),
        )
    ),
]
