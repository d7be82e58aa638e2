"""A course of four small stages, made in a folder: what the tests of the tool run on.

hw0 has a module in C and its Makefile, hw1 and hw2 are Python, hw3 has modules that CMake builds.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

PYTHON = Path(__file__).parents[2] / "python"

FILES = {
    "hw_stages/hw0/stage.toml": """\
title = "Numbers"
module = "simple_ml"
build = "make"
files = [
  { from = "hw_stages/hw0/Makefile", to = "Makefile" },
  { from = "hw_stages/hw0/src/simple_ml.py", to = "src/simple_ml.py" },
  { from = "hw_stages/hw0/src/native.cpp", to = "src/native.cpp" },
]

[[questions]]
id = "hw0.add"
title = "A sum"
points = 40
regions = ["hw0.add"]

[[questions]]
id = "hw0.cpp"
title = "A sum in C++"
points = 60
regions = ["hw0.cpp.sum"]
""",
    "hw_stages/hw0/Makefile": """\
PYTHON ?= python3

src/native.so: src/native.cpp
\tg++ -shared -fPIC $< -o $@ \\
\t  -I"$$("$(PYTHON)" -c 'import sysconfig; print(sysconfig.get_path("include"))')"
""",
    "hw_stages/hw0/src/simple_ml.py": '''\
"""Sums."""


def add(x, y):
    """Return x + y."""
    ### BEGIN SOLUTION hw0.add
    return x + y
    ### END SOLUTION
''',
    "hw_stages/hw0/src/native.cpp": """\
// The module native: sum(a, b).
#include <Python.h>

static long sum_of(long a, long b) {
  /// BEGIN SOLUTION hw0.cpp.sum
  return a + b;
  /// STUB
  // (void)a, (void)b;
  // PyErr_SetString(PyExc_NotImplementedError, "hw0.cpp.sum");
  // return -1;
  /// END SOLUTION
}

static PyObject* sum(PyObject*, PyObject* arguments) {
  long a, b;
  if (!PyArg_ParseTuple(arguments, "ll", &a, &b)) return nullptr;
  const long total = sum_of(a, b);
  return PyErr_Occurred() ? nullptr : PyLong_FromLong(total);
}

static PyMethodDef methods[] = {{"sum", sum, METH_VARARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "native", "", -1, methods};
PyMODINIT_FUNC PyInit_native() { return PyModule_Create(&module); }
""",
    "hw_stages/hw0/tests/test_sums.py": '''\
"""Sums."""

from needle_course.testing import equal, graded


@graded("hw0.add::numbers")
class Add:
    """Two numbers."""

    def inputs(rng):
        return {"x": int(rng.integers(100)), "y": int(rng.integers(100))}

    def probe(ndl, inputs):
        return {"sum": ndl.add(inputs["x"], inputs["y"])}

    def check(inputs, outputs):
        equal("the sum", outputs["sum"], inputs["x"] + inputs["y"])


@graded("hw0.cpp::numbers")
class AddNative:
    """Two numbers in C++."""

    def inputs(rng):
        return {"x": int(rng.integers(100)), "y": int(rng.integers(100))}

    def probe(ndl, inputs):
        import native

        return {"sum": native.sum(inputs["x"], inputs["y"])}

    def check(inputs, outputs):
        equal("the sum", outputs["sum"], inputs["x"] + inputs["y"])
''',
    "hw_stages/hw1/stage.toml": """\
title = "Twice"
module = "needle"
environment = { NEEDLE_BACKEND = "np" }
files = ["python/needle/__init__.py", "python/needle/ops.py"]
data = ["data/numbers.txt"]

[[questions]]
id = "hw1.double"
title = "Twice as much"
points = 70
regions = ["hw1.double"]

[[questions]]
id = "hw1.mean"
title = "The mean"
points = 30
needs = ["hw1.double"]
regions = ["hw1.mean"]
""",
    "hw_stages/hw1/tests/test_ops.py": '''\
"""Twice, and the mean."""

import os
from pathlib import Path

from needle_course.testing import close, equal, graded


@graded("hw1.double::values")
class Double:
    """Twice the values of a matrix."""

    def inputs(rng):
        return {"x": rng.standard_normal((3, 4))}

    def probe(ndl, inputs):
        return {"y": ndl.double(inputs["x"])}

    def check(inputs, outputs):
        close("double(x)", outputs["y"], 2 * inputs["x"], x=inputs["x"])


@graded("hw1.double::number_of_the_file")
class FromFile:
    """Twice the number of a data file."""

    def inputs(rng):
        return {"x": float(Path("data/numbers.txt").read_text())}

    def probe(ndl, inputs):
        return {"y": ndl.double(inputs["x"]), "backend": os.environ["NEEDLE_BACKEND"]}

    def check(inputs, outputs):
        close("double(x)", outputs["y"], 2 * inputs["x"])
        equal("the backend", outputs["backend"], "np")


@graded("hw1.mean::values")
class Mean:
    """The mean of a vector."""

    def inputs(rng):
        return {"x": rng.standard_normal(5)}

    def probe(ndl, inputs):
        return {"y": ndl.mean(inputs["x"])}

    def check(inputs, outputs):
        close("mean(x)", outputs["y"], inputs["x"].mean())
''',
    "python/needle/__init__.py": '''\
"""A small needle."""

from needle.ops import double, mean, triple

__all__ = ["double", "mean", "triple"]
''',
    "python/needle/ops.py": '''\
"""Functions of arrays."""

import numpy as np


def double(x):
    """Return 2 x."""
    ### BEGIN SOLUTION hw1.double
    return 2 * x
    ### END SOLUTION


def mean(x):
    """Return the mean of x."""
    ### BEGIN SOLUTION hw1.mean
    return np.mean(x)
    ### END SOLUTION


### SINCE hw2
def triple(x):
    """Return 3 x."""
    ### BEGIN SOLUTION hw2.triple
    return double(x) + x
    ### END SOLUTION


### END SINCE
### UNTIL hw1
# LIMIT = 1
### END UNTIL
### SINCE hw2
LIMIT = 2
### END SINCE
''',
    "data/numbers.txt": "21\n",
    "hw_stages/hw2/stage.toml": """\
title = "Three times"
module = "needle"
files = ["apps/program.py"]

[[questions]]
id = "hw2.triple"
title = "Three times as much"
points = 100
regions = ["hw2.triple"]
""",
    "apps/program.py": '"""A program."""\n',
    "hw_stages/hw2/tests/test_triple.py": '''\
"""Three times."""

from needle_course.testing import close, graded


@graded("hw2.triple::values")
class Triple:
    """Three times the values."""

    def inputs(rng):
        return {"x": rng.standard_normal(4)}

    def probe(ndl, inputs):
        return {"y": ndl.triple(inputs["x"])}

    def check(inputs, outputs):
        close("triple(x)", outputs["y"], 3 * inputs["x"])
''',
    "hw_stages/hw3/stage.toml": """\
title = "Kernels"
module = "needle"
build = "cmake"
files = ["CMakeLists.txt", "src/cpu.cc", "src/cuda.cu", "python/needle/backend_ndarray/__init__.py"]

[[questions]]
id = "hw3.python"
title = "Without kernels"
points = 20
regions = []

[[questions]]
id = "hw3.cpu"
title = "On the processor"
points = 40
regions = ["hw3.cpu.answer"]

[[questions]]
id = "hw3.cuda"
title = "On the device"
points = 40
regions = ["hw3.cuda.answer"]
device = "cuda"
""",
    "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.18...4.0)
project(small LANGUAGES CXX)
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
foreach(name cpu cuda)
  Python_add_library(${name} MODULE src/binding_${name}.cc)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY
    "${CMAKE_CURRENT_SOURCE_DIR}/python/needle/backend_ndarray")
endforeach()
set_property(SOURCE src/binding_cpu.cc APPEND PROPERTY OBJECT_DEPENDS
  "${CMAKE_CURRENT_SOURCE_DIR}/src/cpu.cc")
set_property(SOURCE src/binding_cuda.cc APPEND PROPERTY OBJECT_DEPENDS
  "${CMAKE_CURRENT_SOURCE_DIR}/src/cuda.cu")
""",
    "src/cpu.cc": """\
// The kernel of the processor.
long answer() {
  /// BEGIN SOLUTION hw3.cpu.answer
  return 42;
  /// STUB
  // return -1;
  /// END SOLUTION
}
""",
    "src/cuda.cu": """\
// The kernel of the device.
long answer() {
  /// BEGIN SOLUTION hw3.cuda.answer
  return 43;
  /// STUB
  // return -1;
  /// END SOLUTION
}
""",
    "python/needle/backend_ndarray/__init__.py": '"""Where CMake puts the modules."""\n',
    "hw_stages/hw3/tests/test_kernels.py": '''\
"""Kernels."""

import os

from needle_course.testing import GradedTest, equal


def of(name, expected):
    """Return the test of one module."""

    def probe(ndl, inputs):
        from importlib import import_module

        return {"answer": import_module(f"needle.backend_ndarray.{name}").answer()}

    return GradedTest(
        f"hw3.{name}::answer",
        lambda rng: {},
        probe,
        lambda inputs, outputs: equal("the answer", outputs["answer"], expected),
        f"The answer of {name}.",
    )


KERNELS = [of("cpu", 42), of("cuda", 43)]
PYTHON = GradedTest(
    "hw3.python::double",
    lambda rng: {},
    lambda ndl, inputs: {"y": ndl.double(2), "device": os.environ.get("NEEDLE_CUDA_DEVICE", "")},
    lambda inputs, outputs: equal("all", outputs, {"y": 4, "device": ""}),
)
''',
}

BINDING = """\
#include <Python.h>

#include "{source}"

static PyObject* call(PyObject*, PyObject*) {{ return PyLong_FromLong(answer()); }}
static PyMethodDef methods[] = {{
    {{"answer", call, METH_NOARGS, ""}}, {{nullptr, nullptr, 0, nullptr}}}};
static PyModuleDef module = {{PyModuleDef_HEAD_INIT, "{name}", "", -1, methods}};
PyMODINIT_FUNC PyInit_{name}() {{ return PyModule_Create(&module); }}
"""


def make_course(root: Path) -> Path:
    """Write the small course into a folder; return the folder."""
    files = dict(FILES)
    for name, source in (("cpu", "cpu.cc"), ("cuda", "cuda.cu")):
        files[f"src/binding_{name}.cc"] = BINDING.format(name=name, source=source)
    stage = files["hw_stages/hw3/stage.toml"]
    bindings = '"src/cuda.cu", "src/binding_cpu.cc", "src/binding_cuda.cc"'
    files["hw_stages/hw3/stage.toml"] = stage.replace('"src/cuda.cu"', bindings)
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def answer(tree: Path, file: str, region: str, text: str) -> None:
    """Write a student's answer into a region of a file."""
    path = tree / file
    lines = path.read_text().splitlines()
    begin = next(i for i, line in enumerate(lines) if f"BEGIN YOUR SOLUTION ({region})" in line)
    end = next(i for i in range(begin, len(lines)) if "END YOUR SOLUTION" in lines[i])
    lines[begin + 1 : end] = [f"    {line}" for line in text.splitlines()]
    path.write_text("\n".join(lines) + "\n")


def needle(
    course: Path, folder: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of the tool as a student does: another process, no terminal."""
    return subprocess.run(
        [sys.executable, "-m", "needle_course", *arguments],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(PYTHON),
            "NEEDLE_COURSE": str(course),
            **environment,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def records(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    """Return the lines of JSON that a command printed."""
    return [json.loads(line) for line in done.stdout.splitlines()]
