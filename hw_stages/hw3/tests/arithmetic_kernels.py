"""The tests of elementwise kernels, reductions and products, for the cpu and for CUDA."""

import numpy as np
from buffers import device_of, download, output, upload

from needle_course.testing import GradedTest, close

SIZES = (1, 7, 255, 256, 257, 1000, 0)  # around the blocks of CUDA, and beyond one
SPECIAL = np.array([1.0, np.nan, np.nan, 2.0, -3.0, np.inf, -np.inf, 0.0], np.float32)

EWISE = {
    "ewise_mul": np.multiply,
    "ewise_div": np.divide,
    "ewise_maximum": np.maximum,
    "ewise_eq": lambda a, b: (a == b).astype(np.float32),
    "ewise_ge": lambda a, b: (a >= b).astype(np.float32),
}
SCALAR = {
    "scalar_mul": np.multiply,
    "scalar_div": np.divide,
    "scalar_power": lambda a, b: np.power(a.astype(np.float64), b),
    "scalar_maximum": np.maximum,
    "scalar_eq": lambda a, b: (a == b).astype(np.float32),
    "scalar_ge": lambda a, b: (a >= b).astype(np.float32),
}
FUNCTIONS = {"ewise_log": np.log, "ewise_exp": np.exp, "ewise_tanh": np.tanh}

GROUPS = {
    "products": ("ewise_mul", "ewise_div", "scalar_mul", "scalar_div"),
    "maximum": ("ewise_maximum", "scalar_maximum"),
    "comparisons": ("ewise_eq", "ewise_ge", "scalar_eq", "scalar_ge"),
    "power": ("scalar_power",),
    "functions": ("ewise_log", "ewise_exp", "ewise_tanh"),
}


def run_elementwise(device, kernel, a, b, clean):
    """Run an elementwise kernel; the scalar ones take the first number of b."""
    out = output(device, a.size, clean)
    rest = []
    if kernel in EWISE:
        rest = [upload(device, b)]
    elif kernel in SCALAR:
        rest = [float(b[0])]
    getattr(device, kernel)(upload(device, a), *rest, out)
    return download(device, out)


def expected_elementwise(kernel, a, b):
    with np.errstate(all="ignore"):
        if kernel in FUNCTIONS:
            return FUNCTIONS[kernel](a)
        return EWISE[kernel](a, b) if kernel in EWISE else SCALAR[kernel](a, b[0])


def elementwise_test(test, about, kernels, device_name, sizes=SIZES, clean=False):
    """Return a test of some elementwise kernels on several sizes."""
    positive = {"scalar_power", "ewise_log"}

    def inputs(rng):
        made = {}
        for kernel in kernels:
            for size in sizes:
                a, b = rng.integers(-4, 5, (2, size + 1)).astype(np.float32) + np.float32(0.25)
                if kernel in positive:
                    a, b = np.abs(a), np.full(size + 1, 1.75, np.float32)
                if kernel in ("scalar_eq", "scalar_ge", "scalar_maximum"):
                    b[0] = 1.25  # one of a's numbers
                made[f"{kernel} {size} a"] = a[:size]
                made[f"{kernel} {size} b"] = b[:size] if kernel in EWISE else b[:1]
        return made

    def cases():
        return [(kernel, size, f"{kernel} {size}") for kernel in kernels for size in sizes]

    def probe(nd, inputs):
        device = device_of(nd, device_name)
        return {
            name: run_elementwise(device, kernel, inputs[f"{name} a"], inputs[f"{name} b"], clean)
            for kernel, size, name in cases()
        }

    def check(inputs, outputs):
        for kernel, size, name in cases():
            a, b = inputs[f"{name} a"], inputs[f"{name} b"]
            expected = expected_elementwise(kernel, a, b)
            close(f"{kernel} of {size} numbers", outputs[name], expected, a=a)

    return GradedTest(test, inputs, probe, check, about)


def special_test(test, device_name):
    """Return a test of NaN and infinities in maxima and comparisons."""
    kernels = (*GROUPS["maximum"], *GROUPS["comparisons"])
    a, b = (part.reshape(-1) for part in np.meshgrid(SPECIAL, SPECIAL))

    def probe(nd, inputs):
        device = device_of(nd, device_name)
        outputs = {k: run_elementwise(device, k, inputs["a"], inputs["b"], False) for k in kernels}
        nan = np.full(1, np.nan, np.float32)
        outputs["with nan"] = run_elementwise(device, "scalar_maximum", inputs["a"], nan, False)
        return outputs

    def check(inputs, outputs):
        a, b = inputs["a"], inputs["b"]
        for kernel in kernels:
            close(kernel, outputs[kernel], expected_elementwise(kernel, a, b), a=a, b=b)
        close("scalar_maximum with NaN", outputs["with nan"], np.full(a.size, np.nan), a=a)

    about = "NaN on either side is the maximum; a comparison with NaN is 0."
    return GradedTest(test, lambda rng: {"a": a, "b": b}, probe, check, about)


def elementwise_tests(question, device):
    """Return the tests of the elementwise kernels of one device."""
    made = [
        elementwise_test(f"{question}::{name}", ", ".join(kernels), kernels, device)
        for name, kernels in GROUPS.items()
    ]
    return [*made, special_test(f"{question}::nan", device)]


# (outputs, reduce_size)
BLOCKS = ((1, 1), (1, 13), (5, 1), (7, 9), (255, 3), (257, 5), (600, 2), (3, 400), (0, 3))
EMPTY_BLOCKS = ((4, 0), (0, 0), (300, 0))  # for sums; an empty block has no maximum


def reduce_test(test, about, kernel, numbers, device_name, blocks=BLOCKS, clean=False):
    """Return a test of a reduction; `numbers(rng, shape)` makes its inputs."""
    function = {"reduce_sum": np.sum, "reduce_max": np.max}[kernel]

    def inputs(rng):
        return {f"{n} x {size}": numbers(rng, (n, size)) for n, size in blocks}

    def probe(nd, inputs):
        device = device_of(nd, device_name)
        outputs = {}
        for name, a in inputs.items():
            out = output(device, a.shape[0], clean)
            getattr(device, kernel)(upload(device, a), out, a.shape[1])
            outputs[name] = download(device, out)
        return outputs

    def check(inputs, outputs):
        for name, a in inputs.items():
            expected = function(a.astype(np.float64), axis=1)
            close(f"{kernel} of blocks {name}", outputs[name], expected, rtol=1e-5, atol=1e-4)

    return GradedTest(test, inputs, probe, check, about)


def any_numbers(rng, shape):
    return rng.standard_normal(shape).astype(np.float32)


def negative_numbers(rng, shape):
    return -1.0 - rng.random(shape).astype(np.float32)


def some_nans(rng, shape):
    values = rng.standard_normal(shape).astype(np.float32)
    values[:: max(shape[0] // 3, 1), rng.integers(shape[1])] = np.nan
    return values


def reduce_tests(question, device):
    """Return the tests of the reductions of one device."""
    table = {
        "reduce_sum": ("reduce_sum", any_numbers, "Sums of blocks, into an output full of junk."),
        "reduce_sum_empty": ("reduce_sum", any_numbers, "The sum of a block without numbers is 0."),
        "reduce_max": ("reduce_max", any_numbers, "Maxima of blocks."),
        "reduce_max_below_zero": ("reduce_max", negative_numbers, "Maxima where all is below 0."),
        "reduce_max_nan": ("reduce_max", some_nans, "A block with a NaN anywhere has NaN."),
    }
    return [
        reduce_test(
            f"{question}::{name}",
            about,
            kernel,
            numbers,
            device,
            EMPTY_BLOCKS if name == "reduce_sum_empty" else BLOCKS,
        )
        for name, (kernel, numbers, about) in table.items()
    ]


def matmul_test(test, about, sizes, device_name, kernel="matmul", clean=False, orders=("",)):
    """Return a test of products; for matmul_tiled the sizes count tiles.

    orders: of the emulated device's threads; a right kernel does not care.
    """

    def inputs(rng):
        return {"a": rng.standard_normal((260, 160)), "b": rng.standard_normal((160, 260))}

    def operands(inputs, m, n, p):
        return inputs["a"][:m, :n].astype(np.float32), inputs["b"][:n, :p].astype(np.float32)

    def tiles(matrix, tile):
        rows, columns = matrix.shape
        return matrix.reshape(rows // tile, tile, columns // tile, tile).swapaxes(1, 2)

    def probe(nd, inputs):
        import os

        device = device_of(nd, device_name)
        tile = device.__tile_size__ if kernel == "matmul_tiled" else 1
        outputs = {"tile": tile}
        for order in orders:
            if order:
                os.environ["NEEDLE_EMULATOR_ORDER"] = order
            for size in sizes:
                m, n, p = (count * tile for count in size)
                a, b = operands(inputs, m, n, p)
                out = output(device, m * p, clean)
                buffers = upload(device, tiles(a, tile)), upload(device, tiles(b, tile))
                getattr(device, kernel)(*buffers, out, m, n, p)
                outputs[f"{order}{size}"] = download(device, out)
        return outputs

    def check(inputs, outputs):
        tile = outputs["tile"]
        for order in orders:
            for size in sizes:
                m, n, p = (count * tile for count in size)
                a, b = (part.astype(np.float64) for part in operands(inputs, m, n, p))
                got = np.asarray(outputs[f"{order}{size}"])
                if got.size == m * p:
                    got = got.reshape(m // tile, p // tile, tile, tile).swapaxes(1, 2)
                    got = got.reshape(m, p)
                what = f"{kernel} ({m}, {n}) @ ({n}, {p})" + (f" in order {order}" if order else "")
                close(what, got, a @ b, rtol=1e-4, atol=1e-4)

    return GradedTest(test, inputs, probe, check, about)
