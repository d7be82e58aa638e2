"""Look at the machine: what the stages need, what is there, and the command that mends it."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from needle_course import launcher
from needle_course.building import find_tool
from needle_course.stages import Course

__all__ = ["Check", "examine"]

OLDEST_PYTHON = (3, 10)
FREE_DISK = 500 << 20
FREE_MEMORY = 1 << 30
_PACKAGES = {
    "compiler": {
        "apt": "g++",
        "dnf": "gcc-c++",
        "pacman": "gcc",
        "apk": "g++",
        "zypper": "gcc-c++",
    },
    "make": dict.fromkeys(("apt", "dnf", "pacman", "apk", "zypper"), "make"),
    "headers": {
        "apt": f"python{sys.version_info.major}.{sys.version_info.minor}-dev",
        "dnf": "python3-devel",
        "pacman": "python",
        "apk": "python3-dev",
        "zypper": "python3-devel",
    },
}
_INSTALL = {
    "apt": "apt install",
    "dnf": "dnf install",
    "pacman": "pacman -S",
    "apk": "apk add",
    "zypper": "zypper install",
}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at; `fix` is the command that mends it, "" where all is well."""

    name: str
    ok: bool
    found: str
    fix: str = ""

    def record(self) -> dict[str, Any]:
        """Return the check as what JSON holds."""
        return asdict(self)


def examine(course: Course | None = None, root: Path | None = None, stage: str = "") -> list[Check]:
    """Return all checks; those of data need a workspace and its stage."""
    checks = [_python(), *_packages(), _compiler(), _headers(), _make(), *_build_tools()]
    checks += [_gpu(), _threads(), _start(), *_room(root or Path.cwd())]
    if course is not None and root is not None and stage:
        checks += _data(course, root, stage)
    return checks


def install_command(what: str) -> str:
    """Return the command of this system's package manager that installs something."""
    if sys.platform == "darwin":
        return "xcode-select --install"
    admin = "" if hasattr(os, "geteuid") and os.geteuid() == 0 else "sudo "
    for manager, command in _INSTALL.items():
        if shutil.which(manager):
            return f"{admin}{command} {_PACKAGES[what][manager]}"
    return f"install {_PACKAGES[what]['apt']} (the name that Debian gives it)"


def _pip(requirement: str) -> str:
    return f"{sys.executable} -m pip install '{requirement}'"


def _python() -> Check:
    found = f"{platform.python_version()} at {sys.executable}"
    ok = sys.version_info >= OLDEST_PYTHON
    return Check("python", ok, found, "" if ok else "install Python 3.10 or later")


def _packages() -> Iterator[Check]:
    import numpy

    major = int(numpy.__version__.split(".")[0])
    yield Check("numpy", major >= 2, numpy.__version__, "" if major >= 2 else _pip("numpy>=2"))
    if importlib.util.find_spec("pybind11") is None:
        yield Check("pybind11", False, "not installed", _pip("pybind11>=2.12"))
    else:
        import pybind11

        yield Check("pybind11", True, pybind11.__version__)


def compiler() -> str:
    """Return the C++ compiler that make and CMake would take, "" if there is none."""
    return next((tool for tool in (os.environ.get("CXX"), "g++", "c++") if _there(tool)), "") or ""


def _there(tool: str | None) -> bool:
    return bool(tool) and shutil.which(str(tool).split()[0]) is not None


def _compiler() -> Check:
    name = compiler()
    if not name:
        return Check("C++ compiler", False, "none", install_command("compiler"))
    ok, said = _compiles(name, "#include <vector>\nint main() { return 0; }\n")
    if not ok:
        return Check("C++ compiler", False, f"{name} fails: {said}", install_command("compiler"))
    return Check("C++ compiler", True, _first_line([*name.split(), "--version"]))


def _headers() -> Check:
    folder = sysconfig.get_path("include")
    if (Path(folder) / "Python.h").is_file():
        return Check("Python headers", True, folder)
    return Check("Python headers", False, f"no Python.h in {folder}", install_command("headers"))


def _make() -> Check:
    found = shutil.which("make")
    return Check("make", bool(found), found or "none", "" if found else install_command("make"))


def _build_tools() -> Iterator[Check]:
    for name in ("cmake", "ninja"):
        found = find_tool(name)
        yield Check(name, bool(found), found or "none", "" if found else _pip(name))


def _gpu() -> Check:
    nvidia = shutil.which("nvidia-smi")
    name = _first_line([nvidia, "--query-gpu=name", "--format=csv,noheader"]) if nvidia else ""
    found = f"{name}; " if name and "fail" not in name.lower() else "no GPU; "
    return Check("CUDA", True, f"{found}the tests run the kernels in the emulator")


def _threads() -> Check:
    chosen = {
        name: value
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        if (value := os.environ.get(name))
    }
    here = ", ".join(f"{name}={value}" for name, value in chosen.items()) or "not limited here"
    return Check("BLAS threads", True, f"1 in tests; {here}; {os.cpu_count()} processors")


def _start() -> Check:
    how = "one forked process a test" if launcher.can_fork() else "one fresh interpreter a test"
    return Check("tests", True, how)


def _room(root: Path) -> Iterator[Check]:
    place = next(folder for folder in (root.resolve(), *root.resolve().parents) if folder.is_dir())
    free = shutil.disk_usage(place).free
    ok = free >= FREE_DISK
    fix = "" if ok else f"free some space on the disk of {place}; a build takes 200 MB"
    yield Check("disk", ok, f"{free / (1 << 30):.1f} GiB free", fix)
    writable = os.access(place, os.W_OK)
    fix = "" if writable else f'sudo chown -R "$USER" {place}'
    yield Check("folder", writable, str(place) if writable else f"{place} is read-only", fix)
    with_memory = Path("/proc/meminfo")
    if with_memory.is_file():
        for line in with_memory.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                memory = int(line.split()[1]) << 10
                ok = memory >= FREE_MEMORY
                fix = "" if ok else "close other programs; the compiler takes up to 1 GiB"
                yield Check("memory", ok, f"{memory / (1 << 30):.1f} GiB available", fix)


def _data(course: Course, root: Path, stage: str) -> Iterator[Check]:
    lost = [path for path in course.data(stage) if not _size(root / path)]
    fix = f"cp -r {root / '.needle' / 'base' / 'data'} {root}" if lost else ""
    found = f"missing: {', '.join(lost)}" if lost else f"{len(course.data(stage))} files"
    yield Check("data", not lost, found, fix)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _compiles(name: str, source: str) -> tuple[bool, str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "try.cpp"
        path.write_text(source)
        command = [*name.split(), "-std=c++17", "-fsyntax-only", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.returncode == 0, (done.stderr.strip().splitlines() or [""])[0]


def _first_line(command: list[str | None]) -> str:
    try:
        done = subprocess.run(
            [part for part in command if part],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"fails: {error}"
    return (done.stdout.strip().splitlines() or [""])[0]
