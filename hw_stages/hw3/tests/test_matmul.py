"""hw3.cpu_matmul and hw3.cuda_matmul: products of any size, and of tiles."""

import numpy as np
from arithmetic_kernels import matmul_test

from needle_course.testing import close, graded

SQUARE = [(1, 1, 1), (8, 8, 8), (17, 17, 17)]
OBLONG = [(3, 5, 7), (13, 1, 9), (1, 40, 1), (1, 6, 33), (33, 6, 1), (31, 70, 65)]
EMPTY = [(0, 3, 2), (3, 0, 2), (2, 3, 0), (20, 0, 20)]
AROUND_A_BLOCK = [(16, 3, 16), (17, 3, 15), (257, 2, 1), (1, 2, 257), (40, 9, 30)]

CPU = [
    matmul_test("hw3.cpu_matmul::square", "Square matrices.", SQUARE, "cpu"),
    matmul_test("hw3.cpu_matmul::oblong", "Three different sizes.", OBLONG, "cpu"),
    matmul_test("hw3.cpu_matmul::empty", "An axis without elements.", EMPTY, "cpu"),
    matmul_test(
        "hw3.cpu_matmul::tiled_one_tile", "One tile times one.", [(1, 1, 1)], "cpu", "matmul_tiled"
    ),
    matmul_test(
        "hw3.cpu_matmul::tiled",
        "Several tiles each way.",
        [(1, 2, 1), (2, 1, 3), (3, 4, 2), (5, 1, 1), (16, 16, 16), (2, 0, 2), (0, 1, 1)],
        "cpu",
        "matmul_tiled",
    ),
]

CUDA = [
    matmul_test("hw3.cuda_matmul::square", "Square matrices.", SQUARE, "cuda"),
    matmul_test("hw3.cuda_matmul::oblong", "Three different sizes.", OBLONG, "cuda"),
    matmul_test("hw3.cuda_matmul::empty", "An axis without elements.", EMPTY, "cuda"),
    matmul_test(
        "hw3.cuda_matmul::around_a_block",
        "Results of 255, 256, 257 and more elements.",
        AROUND_A_BLOCK,
        "cuda",
    ),
]


@graded("hw3.cpu_matmul::through_ndarray")
class ThroughNDArray:
    """`@` of two NDArrays: plain where a size is odd, in tiles where all sizes are multiples."""

    def inputs(rng):
        shapes = {"a": (5, 7), "b": (7, 3), "c": (16, 24), "d": (24, 8)}
        return {name: rng.standard_normal(shape) for name, shape in shapes.items()}

    def probe(nd, inputs):
        arrays = {name: nd.array(value, device=nd.cpu()) for name, value in inputs.items()}
        return {
            "a @ b": (arrays["a"] @ arrays["b"]).numpy(),
            "c @ d": (arrays["c"] @ arrays["d"]).numpy(),
        }

    def check(inputs, outputs):
        for left, right in ("ab", "cd"):
            a, b = (inputs[name].astype(np.float32) for name in (left, right))
            close(f"{left} @ {right}", outputs[f"{left} @ {right}"], a @ b, rtol=1e-4, atol=1e-4)
