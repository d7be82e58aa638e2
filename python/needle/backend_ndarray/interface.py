"""The contract of a backend: every kernel's name, arguments and meaning, in words.

A backend is a module with a class `Array`, the kernels below and `__device_name__`. Three provide
it: the specification `ndarray_backend_numpy.py`, `src/ndarray_backend_cpu.cc` and
`src/ndarray_backend_cuda.cu`.

Terms. An `Array` is a flat buffer of `size` numbers; shapes live in Python. A *layout* is `None`
for the whole buffer in order, or `(shape, strides, offset)` with strides and offset counted in
elements; strides may be zero (broadcast) or negative (flip). Python checks shapes and devices
before it calls; compiled backends check again that sizes agree and that no layout leaves its buffer
(ShapeError), and run nothing if one does.

Two families. The *course kernels* read and write compact buffers and get their output from the
caller: the plain form that a student writes. The *strided kernels* walk layouts, allocate their
result and return it compact: what NDArray calls. `course_kernels.py` makes them from the course
kernels for a module that has no others.
"""

__all__ = [
    "ARRAY_MEMBERS",
    "BINARY_KERNELS",
    "COURSE_KERNELS",
    "MEMORY_FUNCTIONS",
    "OPTIONAL_KERNELS",
    "STRIDED_KERNELS",
    "UNARY_KERNELS",
    "kernel_names",
]

ARRAY_MEMBERS: dict[str, str] = {
    "Array(size)": "an uninitialised flat buffer of `size` numbers; OutOfMemoryError if there "
    "is no room",
    "size": "the number of elements",
    "ptr()": "the address of element 0, as an int; equal for views of one buffer",
}

COURSE_KERNELS: dict[str, str] = {
    "to_numpy": "(a, shape, strides, offset) -> a fresh C-contiguous host copy of the view",
    "from_numpy": "(array, out): copy a numpy array of out.size elements, row-major, into out",
    "fill": "(out, value): every element becomes value",
    "compact": "(a, out, shape, strides, offset): the view of a, in row-major order, into out",
    "ewise_setitem": "(a, out, shape, strides, offset): compact a into the view of out; which "
    "value stays where elements of the view share memory is open",
    "scalar_setitem": "(size, value, out, shape, strides, offset): value into the view of out "
    "of `size` elements",
    "ewise_add": "(a, b, out): out[i] = a[i] + b[i]",
    "ewise_mul": "(a, b, out): out[i] = a[i] * b[i]",
    "ewise_div": "(a, b, out): out[i] = a[i] / b[i]",
    "ewise_maximum": "(a, b, out): the larger of a[i] and b[i]; NaN if either is NaN",
    "ewise_eq": "(a, b, out): 1.0 where a[i] == b[i], else 0.0",
    "ewise_ge": "(a, b, out): 1.0 where a[i] >= b[i], else 0.0",
    "scalar_add": "(a, value, out): out[i] = a[i] + value",
    "scalar_mul": "(a, value, out): out[i] = a[i] * value",
    "scalar_div": "(a, value, out): out[i] = a[i] / value",
    "scalar_power": "(a, value, out): out[i] = a[i] ** value",
    "scalar_maximum": "(a, value, out): the larger of a[i] and value; NaN if either is NaN",
    "scalar_eq": "(a, value, out): 1.0 where a[i] == value, else 0.0",
    "scalar_ge": "(a, value, out): 1.0 where a[i] >= value, else 0.0",
    "ewise_log": "(a, out): out[i] = log(a[i])",
    "ewise_exp": "(a, out): out[i] = exp(a[i])",
    "ewise_tanh": "(a, out): out[i] = tanh(a[i])",
    "matmul": "(a, b, out, m, n, p): compact row-major (m, n) @ (n, p) -> (m, p)",
    "matmul_tiled": (
        "(a, b, out, m, n, p): the same on tiled buffers, (m/T, n/T, T, T) @ (n/T, p/T, T, T) "
        "-> (m/T, p/T, T, T),"
        " T = __tile_size__ dividing m, n and p"
    ),
    "reduce_sum": "(a, out, reduce_size): out[i] = the sum of the i-th block of reduce_size "
    "elements of a",
    "reduce_max": "(a, out, reduce_size): out[i] = the maximum of the i-th block; NaN if it "
    "holds one; no empty block",
}

### SINCE full
# A backend may lack these.
OPTIONAL_KERNELS = frozenset({"matmul_tiled", "host_view", "array_over"})

# One row each: `name(a, a_layout, b, b_layout)` and `name_scalar(a, a_layout, value)`, both ->
# Array.
# The layouts of one call have the same shape; a whole buffer (None) takes the shape of the others.
BINARY_KERNELS: dict[str, str] = {
    "add": "a + b",
    "sub": "a - b",
    "mul": "a * b",
    "div": "a / b",
    "power": "a ** b",
    "maximum": "the larger of a and b; NaN if either is NaN",
    "minimum": "the smaller of a and b; NaN if either is NaN",
    "eq": "1.0 where a == b, else 0.0",
    "ne": "1.0 where a != b, else 0.0",
    "lt": "1.0 where a < b, else 0.0",
    "le": "1.0 where a <= b, else 0.0",
    "gt": "1.0 where a > b, else 0.0",
    "ge": "1.0 where a >= b, else 0.0",
}

# One row each: `name(a, a_layout) -> Array`.
UNARY_KERNELS: dict[str, str] = {
    "neg": "-a",
    "abs": "|a|",
    "sqrt": "the square root; NaN below zero",
    "exp": "e ** a",
    "log": "the natural logarithm; -inf at zero, NaN below",
    "sin": "the sine of a in radians",
    "cos": "the cosine of a in radians",
    "tanh": "the hyperbolic tangent",
    "sigmoid": "1 / (1 + exp(-a))",
}

STRIDED_KERNELS: dict[str, str] = {
    "copy": "(a, a_layout) -> the view, compact",
    "where": "(condition, c_layout, a, a_layout, b, b_layout) -> a where the condition is not "
    "0, else b",
    "take_rows": "(a, a_layout, indices, i_layout) -> (n, d), compact: the rows of a matrix that "
    "n whole numbers name; compiled backends refuse others (IndexingError)",
    "add_rows": "(a, a_layout, indices, i_layout, rows) -> (rows, d), compact: zeros with each "
    "row of the matrix a added at its index, in order; the same numbers; a's layout is never "
    "None in these two",
    "sum": "(a, a_layout, count) -> the sum over the last `count` axes of the view; 0 over an "
    "empty axis",
    "max": "(a, a_layout, count) -> the maximum over the last `count` axes; NaN if one is met; "
    "no empty axis",
    "min": "(a, a_layout, count) -> the minimum over the last `count` axes; NaN if one is met; "
    "no empty axis",
    "batched_matmul": (
        "(a, a_layout, b, b_layout) -> (..., m, n) @ (..., n, p), compact; the leading axes of "
        "the two layouts are"
        " equal, any strides; in sum, max, min and batched_matmul a layout is never None"
    ),
}

MEMORY_FUNCTIONS: dict[str, str] = {
    "memory_stats": "() -> {'live_bytes', 'cached_bytes', 'hits', 'misses'} of the memory pool",
    "empty_cache": "(): give the pool's unused blocks back to the system",
    "host_view": "(a) -> a flat numpy array over the buffer itself, which it keeps alive",
    "array_over": "(array) -> an Array over the memory of a flat, writable numpy array, which it "
    "keeps alive; these two where the host reaches the memory",
}


### END SINCE
### UNTIL hw5
# def kernel_names() -> frozenset[str]:
#     """Return the name of every kernel of the contract."""
#     return frozenset(COURSE_KERNELS)
### END UNTIL
### SINCE full
def kernel_names(*, optional: bool = True) -> frozenset[str]:
    """Return the name of every kernel of the contract, with or without the optional ones."""
    binary = {entry for name in BINARY_KERNELS for entry in (name, f"{name}_scalar")}
    names = {*COURSE_KERNELS, *binary, *UNARY_KERNELS, *STRIDED_KERNELS, *MEMORY_FUNCTIONS}
    return frozenset(names if optional else names - OPTIONAL_KERNELS)


### END SINCE
