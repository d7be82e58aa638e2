"""One look at needle on this machine's GPU: python -m bench.device_check

Builds the CUDA module for it, compares every kernel with numpy, trains on the digits, and times
each kernel beside its floor: the bytes that it must move at the speed of the GPU's own copies, or
its multiplications and additions at the measured peak (device_peak.cu). Exits with 1 if there is no
GPU or a result is wrong. With --emulated it checks results on the emulated device and times none.
"""

import argparse
import contextlib
import ctypes
import importlib
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "device"
TOLERANCE = 2e-5  # of the largest number of a result
LONG_ENOUGH = 0.02  # seconds over which a kernel is timed
LOSS_TOLERANCE = 1e-3


class NoDeviceError(Exception):
    """Why nothing can run here."""


# --- the GPU, and what is built for it ---


def compute_capability() -> tuple[str, str]:
    """Return the GPU's name and its architecture, such as "90"; ask the driver alone."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise NoDeviceError(f"no CUDA driver: {error}") from None
    device, major, minor = (ctypes.c_int() for _ in range(3))
    name = ctypes.create_string_buffer(100)
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0):
        raise NoDeviceError("the CUDA driver finds no GPU")
    driver.cuDeviceGetName(name, len(name), device)
    driver.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
    driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
    return name.value.decode(), f"{major.value}{minor.value}"


def build(architecture: str) -> tuple[float, float]:
    """Build the modules for the GPU; return its bytes and its operations a second."""
    nvcc = os.environ.get("CUDACXX") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if shutil.which(nvcc) is None:
        raise NoDeviceError("no nvcc to build with; src/cuda/README.md says where it comes from")
    options = {
        "NEEDLE_CUDA": "ON",
        "NEEDLE_CUDA_EMULATION": "OFF",
        "NEEDLE_MODULE_DIR": BUILD / "modules",
        "CMAKE_CUDA_ARCHITECTURES": architecture,
        "CMAKE_CUDA_COMPILER": nvcc,
        "Python_EXECUTABLE": sys.executable,
    }
    configure = ["cmake", "-S", ROOT, "-B", BUILD, *(f"-D{k}={v}" for k, v in options.items())]
    run(configure)
    run(["cmake", "--build", BUILD, "--parallel"])
    peak = BUILD / "device_peak"
    source = ROOT / "bench" / "device_peak.cu"
    run([nvcc, "-O3", f"-arch=sm_{architecture}", source, "-o", peak])
    bandwidth, operations = run([peak]).split()
    os.environ["NEEDLE_MODULE_DIR"] = str(BUILD / "modules")
    return float(bandwidth), float(operations)


def run(command: list[Any]) -> str:
    """Run a program and return what it printed; end with that if it fails."""
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if result.returncode:
        raise NoDeviceError(f"{command[0]} failed:\n{result.stdout}{result.stderr}")
    return result.stdout


# --- what is run ---


@dataclass(frozen=True)
class Case:
    """One kernel on operands of one kind.

    Args:
        prepare: puts the operands on a device; returns a function that runs the kernel there and
            returns the buffer with the result.
        moved: the bytes that must be read and written.
        operations: multiplications and additions.
    """

    name: str
    prepare: Callable[[Any], Callable[[], Any]]
    moved: float
    operations: float = 0.0


def upload(device: Any, values: np.ndarray) -> Any:
    handle = device.allocate(values.size, "float32")
    device.from_numpy(values, handle)
    return handle


def strided(name: str, *arguments: Any) -> Callable[[Any], Callable[[], Any]]:
    """Prepare `name(*arguments)`, in which numpy arrays stand for buffers."""

    def prepare(device: Any) -> Callable[[], Any]:
        placed = [upload(device, a) if isinstance(a, np.ndarray) else a for a in arguments]
        return lambda: getattr(device, name)(*placed)

    return prepare


def course(name: str, size: int, *arguments: Any) -> Callable[[Any], Callable[[], Any]]:
    """The same for a kernel that fills a buffer of `size`; OUT stands for it."""

    def prepare(device: Any) -> Callable[[], Any]:
        out = upload(device, np.zeros(size, np.float32))
        placed = [
            out if a is OUT else upload(device, a) if isinstance(a, np.ndarray) else a
            for a in arguments
        ]

        def fill() -> Any:
            getattr(device, name)(*placed)
            return out

        return fill

    return prepare


OUT = object()


def course_cases(n: int, side: int, a: np.ndarray, b: np.ndarray) -> Iterator[Case]:
    """The course's kernels."""
    view = ((side, side), (1, side), 0)
    area = side * side
    yield Case("fill", course("fill", n, OUT, 1.5), 4 * n)
    yield Case("compact, transposed", course("compact", area, a, OUT, *view), 8 * area)
    yield Case("ewise_setitem", course("ewise_setitem", area, a[:area], OUT, *view), 8 * area)
    yield Case("scalar_setitem", course("scalar_setitem", area, area, 1.5, OUT, *view), 4 * area)
    for name in ("add", "mul", "div", "maximum", "eq", "ge"):
        yield Case(f"ewise_{name}", course(f"ewise_{name}", n, a, b, OUT), 12 * n)
    for name in ("add", "mul", "div", "power", "maximum", "eq", "ge"):
        yield Case(f"scalar_{name}", course(f"scalar_{name}", n, a, 1.5, OUT), 8 * n)
    for name in ("log", "exp", "tanh"):
        yield Case(f"ewise_{name}", course(f"ewise_{name}", n, a, OUT), 8 * n)
    for name in ("reduce_sum", "reduce_max"):
        yield Case(name, course(name, side, a[:area], OUT, side), 4 * area)
    half = side // 4
    square = half * half
    matrices = (a[:square], b[:square])
    product = course("matmul", square, *matrices, OUT, half, half, half)
    yield Case(f"matmul {half}", product, 12 * square, 2 * half**3)


def elementwise_cases(n: int, side: int, a: np.ndarray, b: np.ndarray) -> Iterator[Case]:
    """Every row of ops.def, and where views lie across memory."""
    from needle.backend_ndarray import interface

    for name in interface.BINARY_KERNELS:
        yield Case(name, strided(name, a, None, b, None), 12 * n)
        yield Case(f"{name}_scalar", strided(f"{name}_scalar", a, None, 1.5), 8 * n)
    for name in interface.UNARY_KERNELS:
        yield Case(name, strided(name, a, None), 8 * n)
    yield Case("where", strided("where", a > 1, None, a, None, b, None), 16 * n)
    rows, across, row = (((side, side), s, 0) for s in ((side, 1), (1, side), (0, 1)))
    area = side * side
    yield Case("copy", strided("copy", a, None), 8 * n)
    yield Case("copy, transposed", strided("copy", a, across), 8 * area)
    yield Case("add, a row to each", strided("add", a, rows, b, row), 8 * area)
    yield Case("add, transposed", strided("add", a, rows, b, across), 12 * area)


def other_cases(side: int, a: np.ndarray, b: np.ndarray) -> Iterator[Case]:
    """Reductions, gathers and products."""
    area = side * side
    rows, across = ((side, side), (side, 1), 0), ((side, side), (1, side), 0)
    for name in ("sum", "max", "min"):
        yield Case(f"{name}, rows", strided(name, a, rows, 1), 4 * area)
        yield Case(f"{name}, columns", strided(name, a, across, 1), 4 * area)
        yield Case(f"{name}, all", strided(name, a, rows, 2), 4 * area)
    numbers = np.arange(side, dtype=np.float32) * 7 % side
    yield Case("take_rows", strided("take_rows", a, rows, numbers, None), 8 * area)
    yield Case("add_rows", strided("add_rows", a, rows, numbers, None, side), 8 * area)
    for size in (side // 8, side // 4, side):
        one, other = ((size, size), (size, 1), 0), ((size, size), (1, size), 0)
        moved, operations = 12 * size**2, 2 * size**3
        for label, left, right in (("", one, one), (", transposed", other, one)):
            product = strided("batched_matmul", a, left, b, right)
            yield Case(f"batched_matmul {size}{label}", product, moved, operations)
    batch, size = max(1, side // 16), side // 32
    many = ((batch, size, size), (size * size, size, 1), 0)
    moved, operations = 12 * batch * size**2, 2 * batch * size**3
    product = strided("batched_matmul", a, many, b, many)
    yield Case(f"batched_matmul {batch} of {size}", product, moved, operations)


def all_cases(side: int) -> list[Case]:
    """Every kernel; buffers of side * side numbers between 0.5 and 2."""
    rng = np.random.default_rng(0)
    n = side * side
    a, b = (rng.uniform(0.5, 2, n).astype(np.float32) for _ in range(2))
    return [
        *course_cases(n, side, a, b),
        *elementwise_cases(n, side, a, b),
        *other_cases(side, a, b),
    ]


# --- checks and times ---


def numbers_of(device: Any, handle: Any) -> np.ndarray:
    return device.to_numpy(handle, (handle.size,), (1,), 0)


def error_of(case: Case, device: Any, specification: Any) -> float:
    """Return the largest error of the kernel's result, relative to its largest number."""
    got = numbers_of(device, case.prepare(device)())
    want = numbers_of(specification, case.prepare(specification)())
    if got.shape != want.shape or not np.all(np.isfinite(got)):
        return math.inf
    return float(np.max(np.abs(got - want)) / max(np.max(np.abs(want)), 1e-30))


def seconds_of(work: Callable[[], Any], device: Any) -> float:
    """Return the time of one run among many, launched one after another."""
    last = upload(device, np.zeros(1, np.float32))

    def several(count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            work()
        numbers_of(device, last)  # waits for all of them
        return time.perf_counter() - begin

    several(2)
    count = max(1, int(LONG_ENOUGH / max(several(3) / 3, 1e-6)))
    return min(several(count) for _ in range(3)) / count


def cublas_product(device: Any, size: int) -> Callable[[], Any] | None:
    """Return a function that multiplies two matrices with cuBLAS, or None where there is none."""
    for version in (".13", ".12", ".11", ""):
        with contextlib.suppress(OSError):
            library = ctypes.CDLL(f"libcublas.so{version}")
            break
    else:
        return None
    handle, one, zero = ctypes.c_void_p(), ctypes.c_float(1), ctypes.c_float(0)
    if library.cublasCreate_v2(ctypes.byref(handle)):
        return None
    buffers = [upload(device, np.ones(size * size, np.float32)) for _ in range(3)]
    a, b, out = (ctypes.c_void_p(buffer.ptr()) for buffer in buffers)
    sizes = [ctypes.c_int(size)] * 3

    def multiply() -> Any:
        keep = buffers  # as long as this function
        library.cublasSgemm_v2(
            handle, 0, 0, *sizes, ctypes.byref(one), a, sizes[0], b, sizes[0],
            ctypes.byref(zero), out, sizes[0],
        )  # fmt: skip
        return keep[2]

    return multiply


def trained_loss(device: str, epochs: int) -> tuple[float, float]:
    """Train the MLP on the digits; return the last training loss and the seconds."""
    sys.path.insert(0, str(ROOT / "apps"))
    train_mnist = importlib.import_module("train_mnist")
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        options = ["--device", device, "--epochs", str(epochs)]
        arguments = train_mnist.parse_arguments([*options, "--save", f"{folder}/m.safetensors"])
        with contextlib.redirect_stdout(sys.stderr):
            scores = train_mnist.train(arguments)
    return scores[-1][0].loss, time.perf_counter() - begin


def check_training(epochs: int) -> bool:
    """Train on cuda() and on the default device from the same numbers; compare the losses."""
    import needle

    other = str(needle.default_device())[:-2]
    loss, seconds = trained_loss("cuda", epochs)
    wanted, other_seconds = trained_loss(other, epochs)
    right = abs(loss - wanted) <= LOSS_TOLERANCE
    print(
        f"train_mnist, {epochs} epochs: loss {loss:.5f} on cuda() in {seconds:.1f} s, {wanted:.5f}"
        f" on {other}() in {other_seconds:.1f} s{'' if right else '   WRONG'}"
    )
    return right


def check_kernels(side: int, bandwidth: float = 0.0, operations: float = 0.0) -> bool:
    """Print a line for each kernel: its error, and its time beside the floor if there is one."""
    import needle

    device, specification = needle.cuda(), needle.cpu_numpy()
    timed = bandwidth > 0
    print(f"{'kernel':<30}{'error':>10}", end="")
    print(f"{'us':>12}{'floor':>10}{'share':>8}{'cuBLAS us':>12}" if timed else "")
    wrong = []
    for case in all_cases(side):
        error = error_of(case, device, specification)
        line = f"{case.name:<30}{error:>10.1e}"
        if timed:
            seconds = seconds_of(case.prepare(device), device)
            floor = max(case.moved / bandwidth, case.operations / operations)
            line += f"{seconds * 1e6:>12.1f}{floor * 1e6:>10.1f}{floor / seconds:>8.0%}"
            if case.name == f"batched_matmul {side}":
                peer = cublas_product(device, side)
                line += f"{seconds_of(peer, device) * 1e6:>12.1f}" if peer else "   none here"
        if error > TOLERANCE:
            wrong.append(case.name)
            line += "   WRONG"
        print(line, flush=True)
    print(f"{len(wrong)} kernels are wrong: {', '.join(wrong)}" if wrong else "all kernels agree")
    return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="bench.device_check")
    parser.add_argument("--emulated", action="store_true", help="results only, without a GPU")
    emulated = parser.parse_args().emulated
    sys.path.insert(0, str(ROOT / "python"))
    try:
        if emulated:
            os.environ["NEEDLE_CUDA_DEVICE"] = "emulated"
            bounds = ()
        else:
            name, architecture = compute_capability()
            bounds = build(architecture)
            print(f"{name}, {bounds[0] / 1e9:.0f} GB/s, {bounds[1] / 1e12:.1f} TFLOP/s measured")
        import needle

        if not needle.cuda().enabled():
            raise NoDeviceError(needle.cuda().reason)
    except NoDeviceError as error:
        print(f"device_check: {error}", file=sys.stderr)
        return 1
    right = check_kernels(64 if emulated else 4096, *bounds)
    right &= check_training(1 if emulated else 10)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
