"""The strided kernels that NDArray calls, made from the course's kernels of a backend module.

For modules that have only `interface.COURSE_KERNELS`: operands are made compact first, then a
course's kernel writes into a fresh buffer. `device.py` asks for them where a module lacks its own.
"""

import math
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

from needle.backend_ndarray.layout import is_row_major

__all__ = ["strided_kernels"]

View = tuple[tuple[int, ...], tuple[int, ...], int]
Layout = View | None

BINARY = ("add", "sub", "mul", "div", "maximum", "eq", "ne", "lt", "le", "gt", "ge")
SCALAR = (*BINARY, "power")
UNARY = ("neg", "log", "exp", "tanh")
OTHERS = ("copy", "sum", "max", "batched_matmul")


def strided_kernels(mod: Any) -> dict[str, Callable[..., Any]]:
    """Return strided kernels by name for a module with the course's kernels."""
    course = CompactKernels(mod)

    def binary(kernel: Callable[..., Any]) -> Callable[..., Any]:
        return lambda a, a_layout, b, b_layout: kernel(
            course.compacted(a, a_layout), course.compacted(b, b_layout)
        )

    def scalar(kernel: Callable[..., Any]) -> Callable[..., Any]:
        return lambda a, a_layout, value: kernel(course.compacted(a, a_layout), value)

    def unary(kernel: Callable[..., Any]) -> Callable[..., Any]:
        return lambda a, a_layout: kernel(course.compacted(a, a_layout))

    kernels = {name: binary(getattr(course, name)) for name in BINARY}
    kernels |= {f"{name}_scalar": scalar(getattr(course, f"{name}_scalar")) for name in SCALAR}
    kernels |= {name: unary(getattr(course, name)) for name in UNARY}
    return kernels | {name: getattr(course, name) for name in OTHERS}


class CompactKernels:
    """Elementwise functions of compact buffers, reductions and products of views, over one module.

    Each returns a fresh compact buffer. A comparison with NaN is false, as everywhere.
    """

    def __init__(self, mod: Any) -> None:
        self.mod = mod

    # --- buffers ---

    def buffer(self, like: Any, size: int) -> Any:
        """Return an uninitialised buffer of the dtype of another one."""
        dtype = getattr(like, "dtype", None)
        return self.mod.Array(size) if dtype is None else self.mod.Array(size, dtype)

    def copy(self, a: Any, layout: Layout) -> Any:
        """Return a copy of the elements of a view, in row-major order."""
        shape, strides, offset = ((a.size,), (1,), 0) if layout is None else layout
        out = self.buffer(a, math.prod(shape))
        self.mod.compact(a, out, shape, strides, offset)
        return out

    def compacted(self, a: Any, layout: Layout) -> Any:
        """Return the buffer itself if the layout is the whole of it in order, else a copy."""
        if layout is None:
            return a
        shape, strides, offset = layout
        whole = offset == 0 and math.prod(shape) == a.size and is_row_major(shape, strides)
        return a if whole else self.copy(a, layout)

    def run(self, kernel: Callable[..., None], a: Any, *rest: Any) -> Any:
        """Run an ewise or scalar kernel into a buffer of the size of `a`."""
        out = self.buffer(a, a.size)
        kernel(a, *rest, out)
        return out

    # --- elementwise ---

    def add(self, a: Any, b: Any) -> Any:
        return self.run(self.mod.ewise_add, a, b)

    def add_scalar(self, a: Any, value: float) -> Any:
        return self.run(self.mod.scalar_add, a, value)

    def sub(self, a: Any, b: Any) -> Any:
        return self.add(a, self.neg(b))

    def sub_scalar(self, a: Any, value: float) -> Any:
        return self.add_scalar(a, -value)

    def mul(self, a: Any, b: Any) -> Any:
        return self.run(self.mod.ewise_mul, a, b)

    def mul_scalar(self, a: Any, value: float) -> Any:
        return self.run(self.mod.scalar_mul, a, value)

    def div(self, a: Any, b: Any) -> Any:
        return self.run(self.mod.ewise_div, a, b)

    def div_scalar(self, a: Any, value: float) -> Any:
        return self.run(self.mod.scalar_div, a, value)

    def power_scalar(self, a: Any, value: float) -> Any:
        return self.run(self.mod.scalar_power, a, value)

    def maximum(self, a: Any, b: Any) -> Any:
        return self.run(self.mod.ewise_maximum, a, b)

    def maximum_scalar(self, a: Any, value: float) -> Any:
        return self.run(self.mod.scalar_maximum, a, value)

    def neg(self, a: Any) -> Any:
        return self.mul_scalar(a, -1.0)

    def log(self, a: Any) -> Any:
        return self.run(self.mod.ewise_log, a)

    def exp(self, a: Any) -> Any:
        return self.run(self.mod.ewise_exp, a)

    def tanh(self, a: Any) -> Any:
        return self.run(self.mod.ewise_tanh, a)

    # --- comparisons: 1.0 and 0.0 ---

    def eq(self, a: Any, b: Any) -> Any:
        return self.run(self.mod.ewise_eq, a, b)

    def eq_scalar(self, a: Any, value: float) -> Any:
        return self.run(self.mod.scalar_eq, a, value)

    def ge(self, a: Any, b: Any) -> Any:
        return self.run(self.mod.ewise_ge, a, b)

    def ge_scalar(self, a: Any, value: float) -> Any:
        return self.run(self.mod.scalar_ge, a, value)

    def ne(self, a: Any, b: Any) -> Any:
        return self.add_scalar(self.neg(self.eq(a, b)), 1.0)

    def ne_scalar(self, a: Any, value: float) -> Any:
        return self.add_scalar(self.neg(self.eq_scalar(a, value)), 1.0)

    def le(self, a: Any, b: Any) -> Any:
        return self.ge(b, a)

    def le_scalar(self, a: Any, value: float) -> Any:
        return self.ge_scalar(self.neg(a), -value)

    def gt(self, a: Any, b: Any) -> Any:
        return self.sub(self.ge(a, b), self.eq(a, b))

    def gt_scalar(self, a: Any, value: float) -> Any:
        return self.sub(self.ge_scalar(a, value), self.eq_scalar(a, value))

    def lt(self, a: Any, b: Any) -> Any:
        return self.gt(b, a)

    def lt_scalar(self, a: Any, value: float) -> Any:
        return self.gt_scalar(self.neg(a), -value)

    # --- reductions over the last `count` axes ---

    def sum(self, a: Any, layout: View, count: int) -> Any:
        blocks, out, length = self._blocks(a, layout, count)
        if length == 0:
            self.mod.fill(out, 0.0)
        else:
            self.mod.reduce_sum(blocks, out, length)
        return out

    def max(self, a: Any, layout: View, count: int) -> Any:
        blocks, out, length = self._blocks(a, layout, count)
        self.mod.reduce_max(blocks, out, length)
        return out

    def _blocks(self, a: Any, layout: View, count: int) -> tuple[Any, Any, int]:
        """Return the view with the elements of each output as one block, a buffer for the outputs,
        and the length of a block.
        """
        kept = len(layout[0]) - count
        out = self.buffer(a, math.prod(layout[0][:kept]))
        return self.compacted(a, layout), out, math.prod(layout[0][kept:])

    # --- products ---

    def batched_matmul(self, a: Any, a_layout: View, b: Any, b_layout: View) -> Any:
        """Return (..., m, n) @ (..., n, p); the leading axes of the layouts are equal."""
        (*batch, m, n), (*a_steps, a_row, a_column), a_offset = a_layout
        (*_, p), (*b_steps, b_row, b_column), b_offset = b_layout
        if not any(b_steps):  # one b for all: the matrices of a are one tall matrix
            if batch:
                a, a_layout = self.compacted(a, a_layout), ((math.prod(batch) * m, n), (n, 1), 0)
            return self.matmul(a, a_layout, b, ((n, p), (b_row, b_column), b_offset))
        out = self.buffer(a, math.prod(batch) * m * p)
        for number, index in enumerate(product(*map(range, batch))):
            a_start = a_offset + _distance(index, a_steps)
            b_start = b_offset + _distance(index, b_steps)
            part = self.matmul(
                a, ((m, n), (a_row, a_column), a_start), b, ((n, p), (b_row, b_column), b_start)
            )
            self.mod.ewise_setitem(part, out, (m, p), (p, 1), number * m * p)
        return out

    def matmul(self, a: Any, a_layout: View, b: Any, b_layout: View) -> Any:
        """Return the product of two matrices: of tiles, where the module has tiles and they fit."""
        (m, n), p = a_layout[0], b_layout[0][1]
        out = self.buffer(a, m * p)
        tile = getattr(self.mod, "__tile_size__", 0)
        if tile and all(size > 0 and size % tile == 0 for size in (m, n, p)):
            tiles = self.copy(a, _tiled(a_layout, tile)), self.copy(b, _tiled(b_layout, tile))
            self.mod.matmul_tiled(*tiles, out, m, n, p)
            rows = (m // tile, tile, p // tile, tile), (p * tile, tile, tile * tile, 1), 0
            return self.copy(out, rows)
        self.mod.matmul(self.compacted(a, a_layout), self.compacted(b, b_layout), out, m, n, p)
        return out


def _tiled(layout: View, tile: int) -> View:
    """Return a matrix's layout with its elements tile by tile: (rows/T, columns/T, T, T)."""
    (rows, columns), (row, column), offset = layout
    shape = (rows // tile, columns // tile, tile, tile)
    return shape, (row * tile, column * tile, row, column), offset


def _distance(index: Iterable[int], steps: Iterable[int]) -> int:
    """Return how far from the first element the element at `index` lies."""
    return sum(i * step for i, step in zip(index, steps, strict=True))
