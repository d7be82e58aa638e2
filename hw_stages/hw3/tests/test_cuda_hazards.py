"""hw3.cuda_hazards: the tiled product, and every CUDA kernel again, where each access is checked.

On the checked device a data race, a read of memory that was never written, an access out of bounds
and a barrier that not all threads reach end the launch with an error. Each test launches the tiled
product, which is what this question asks for; some launch the other kernels after it.
"""

import arithmetic_kernels as arithmetic
import view_kernels as views
from buffers import ORDERS, SLICES

from needle_course.testing import GradedTest

QUESTION = "hw3.cuda_hazards"
SMALL = [(1, 1, 1), (1, 3, 2), (2, 2, 2)]  # tiles
SIZES = (1, 257, 600)


def after_a_tile(test):
    """Return a test that multiplies two tiles, then does what `test` does."""
    tile = arithmetic.matmul_test(test.id, "", [(1, 1, 1)], "cuda", "matmul_tiled", clean=True)

    def inputs(rng):
        return {"tile": tile.inputs(rng), "others": test.inputs(rng)}

    def probe(nd, inputs):
        return {
            "tile": tile.probe(nd, inputs["tile"]),
            "others": test.probe(nd, inputs["others"]),
        }

    def check(inputs, outputs):
        tile.check(inputs["tile"], outputs["tile"])
        test.check(inputs["others"], outputs["others"])

    return GradedTest(test.id, inputs, probe, check, test.doc)


TILED = [
    arithmetic.matmul_test(
        f"{QUESTION}::tiled_one_tile", "One tile.", [(1, 1, 1)], "cuda", "matmul_tiled", clean=True
    ),
    arithmetic.matmul_test(
        f"{QUESTION}::tiled", "Several tiles each way.", SMALL, "cuda", "matmul_tiled", clean=True
    ),
    arithmetic.matmul_test(
        f"{QUESTION}::tiled_into_junk",
        "An output that holds other numbers.",
        [*SMALL[:2], (1, 0, 2), (0, 1, 1)],
        "cuda",
        "matmul_tiled",
    ),
    arithmetic.matmul_test(
        f"{QUESTION}::tiled_in_other_orders",
        "The same whatever the order in which threads run.",
        [(1, 2, 2)],
        "cuda",
        "matmul_tiled",
        clean=True,
        orders=("reverse", "random:1", "random:2"),
    ),
]

TESTS = [
    *TILED,
    *map(
        after_a_tile,
        [
            views.compact_test(
                f"{QUESTION}::compact", "compact, checked.", ORDERS | SLICES, "cuda", clean=True
            ),
            views.setitem_test(
                f"{QUESTION}::ewise_setitem", "ewise_setitem, checked.", SLICES, "cuda", False
            ),
            views.setitem_test(
                f"{QUESTION}::scalar_setitem", "scalar_setitem, checked.", SLICES, "cuda", True
            ),
            arithmetic.elementwise_test(
                f"{QUESTION}::elementwise",
                "Every elementwise kernel, checked.",
                (*arithmetic.EWISE, *arithmetic.SCALAR, *arithmetic.FUNCTIONS),
                "cuda",
                SIZES,
                clean=True,
            ),
            arithmetic.reduce_test(
                f"{QUESTION}::reduce_sum",
                "reduce_sum, checked.",
                "reduce_sum",
                arithmetic.any_numbers,
                "cuda",
                clean=True,
            ),
            arithmetic.reduce_test(
                f"{QUESTION}::reduce_max",
                "reduce_max, checked.",
                "reduce_max",
                arithmetic.any_numbers,
                "cuda",
                clean=True,
            ),
            arithmetic.matmul_test(
                f"{QUESTION}::matmul",
                "matmul, checked.",
                [(3, 5, 7), (17, 4, 19)],
                "cuda",
                clean=True,
            ),
        ],
    ),
]
