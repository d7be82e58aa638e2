"""What nvcc says of the kernels: no warning, and no product kernel that spills registers.

Skipped where there is no nvcc. No GPU is needed.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
ARCHITECTURES = (75, 90, 120)
PRODUCTS = {"matmul_naive": 1, "matmul_shared": 1, "matmul_registers": 2}  # and their number
PROGRAM = """
#include "cuda/matmul.cuh"
namespace needle::cuda {
template __global__ void matmul_registers<1>(Product);
template __global__ void matmul_registers<2>(Product);
}
"""


@pytest.fixture(scope="module")
def nvcc():
    found = shutil.which(os.environ.get("CUDACXX", "nvcc"))
    if found is None:
        pytest.skip("nvcc is not installed")
    return found


def compile_with(nvcc, *arguments):
    result = subprocess.run([nvcc, *map(str, arguments)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stderr


def registers_and_spills(report):
    """Return (kernel, registers, bytes of spills) of each kernel in the report of ptxas."""
    pattern = (
        r"Function properties for (\S+)\s+\d+ bytes stack frame, (\d+) bytes spill stores,"
        r" (\d+) bytes spill loads\s+ptxas info\s+: Used (\d+) registers"
    )
    return [
        (name, int(registers), int(stores) + int(loads))
        for name, stores, loads, registers in re.findall(pattern, report)
    ]


def test_products_spill_no_registers(nvcc, tmp_path):
    """128 registers a thread at most, so that two blocks of 256 share a multiprocessor."""
    source = tmp_path / "products.cu"
    source.write_text(PROGRAM)
    targets = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in ARCHITECTURES]
    options = ["-std=c++17", "-O3", *targets, "-I", SOURCES, "-Xptxas", "-v"]
    report = compile_with(nvcc, *options, "-c", source, "-o", tmp_path / "products.o")
    used = registers_and_spills(report)
    for kernel, number in PRODUCTS.items():
        found = [figures for figures in used if kernel in figures[0]]
        assert len(found) == number * len(ARCHITECTURES), report
        for name, registers, spills in found:
            assert spills == 0, f"{name} spills {spills} bytes"
            assert registers <= 128, f"{name} takes {registers} registers"


@pytest.mark.parametrize("name", ["ndarray_backend_cuda.cu", "cuda/strided_kernels.cu"])
def test_kernels_compile_without_a_warning(nvcc, tmp_path, name):
    options = ["-std=c++17", "-gencode", "arch=compute_75,code=compute_75"]
    warnings = ["-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra"]
    report = compile_with(nvcc, *options, *warnings, "-c", SOURCES / name, "-o", tmp_path / "k.o")
    assert report == ""
