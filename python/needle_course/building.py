"""Build the native modules of a stage; a build that fails leaves no stale module behind.

hw0 is built by its Makefile, the stages from hw3 on by CMake and Ninja in `.needle/build`.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from needle_course.launcher import environment_for
from needle_course.stages import Question, Stage

if TYPE_CHECKING:
    from needle_course.runner import Result

__all__ = ["Built", "build", "find_tool"]

MODULES = Path("python/needle/backend_ndarray")
LIMIT = 900  # seconds; a template that never ends its instantiation is a student's mistake too
NATIVE = {".cc", ".cpp", ".cu", ".cuh", ".h", ".def"}
CUDA = {".cu", ".cuh"}
TARGETS = {
    "cpu": "ndarray_backend_cpu",
    "cuda": "ndarray_backend_cuda_emulated",
    "cuda_checked": "ndarray_backend_cuda_checked",
}
_ERROR = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<what>.*)"
)
_LINKER = re.compile(r"undefined reference to .*|multiple definition of .*|cannot find .*")
_SHOWN_ERRORS = 3


@dataclass
class Built:
    """What a build did: whether it succeeded, the first errors, and the files that have errors."""

    ok: bool = True
    errors: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    where: str = ""
    tree: Path = Path()
    output: str = ""

    def apply(self, result: Result, stage: Stage) -> None:
        """Turn a result that the failed build spoils into build_error.

        A test that needs no native code keeps its verdict. An answer in CUDA does not spoil the
        questions of the processor.
        """
        question = next((q for q in stage.questions if q.id == result.question), None)
        only_cuda = bool(self.files) and all(Path(file).suffix in CUDA for file in self.files)
        if question is None or (only_cuda and question.device == "cpu"):
            return
        regions = native_regions(self.tree)
        native = [regions[region] for region in question.regions if region in regions]
        on_cuda = bool(native) and all(Path(file).suffix in CUDA for file in native)
        spoiled = bool(native) and (not on_cuda or not self.files or self._has_cuda_error())
        if spoiled or result.verdict in ("exception", "crash"):
            result.verdict = "build_error"
            result.region = ""
            result.where = self.where
            result.message = "the C++ code does not compile"
            result.detail = list(self.errors)

    def _has_cuda_error(self) -> bool:
        return any(Path(file).suffix in CUDA or "/common/" in file for file in self.files)


def build(tree: Path, stage: Stage, questions: Collection[Question] | None = None) -> Built:
    """Build the native modules of a stage in a tree; in the repository, `make build` does it.

    questions: those that are tested (default: all); what only others need may wait.
    """
    tree = Path(tree).resolve()
    asked = stage.questions if questions is None else questions
    if (tree / "hw_stages").is_dir():
        return _make(tree / "hw_stages" / stage.name) if stage.build == "make" else Built()
    if not stage.build or not asked or (stage.build == "make" and not _any_native(tree, asked)):
        return Built()
    if not (tree / ".needle" / "build").is_dir():
        sys.stderr.write("compiling the C++ code, the first time all of it: about half a minute\n")
    return _make(tree) if stage.build == "make" else _cmake(tree, {q.device for q in asked})


def _any_native(tree: Path, questions: Iterable[Question]) -> bool:
    """Say whether an answer of these questions is native code; only hw0 works without any."""
    regions = native_regions(tree)
    return any(region in regions for question in questions for region in question.regions)


def native_regions(tree: Path) -> dict[str, str]:
    """Return {region: file} of the regions in native sources."""
    found: dict[str, str] = {}
    opens = re.compile(r"/// BEGIN YOUR SOLUTION \(([\w.]+)\)")
    for path in (tree / "src").rglob("*"):
        if path.suffix in NATIVE and path.is_file():
            text = path.read_text("utf-8", "replace")
            found |= {region: path.relative_to(tree).as_posix() for region in opens.findall(text)}
    return found


def find_tool(name: str) -> str:
    """Return the path of cmake or ninja: beside this Python, in its wheel, or on PATH; else ""."""
    beside = Path(sys.executable).parent / name
    if beside.is_file():
        return str(beside)
    with contextlib.suppress(ImportError):
        module = importlib.import_module(name)
        folder = getattr(module, "CMAKE_BIN_DIR", None) or getattr(module, "BIN_DIR", None)
        if folder and (Path(folder) / name).is_file():
            return str(Path(folder) / name)
    return shutil.which(name) or ""


def _make(folder: Path) -> Built:
    """Run the Makefile of a stage; remove its module if that fails."""
    if not shutil.which("make"):
        return _missing("make", folder)
    with _alone(folder):
        command = ["make", f"PYTHON={sys.executable}"]
        stamp = folder / ".needle" / "build" / "interpreter"
        if not stamp.is_file() or stamp.read_text() != _interpreter():
            command.append("--always-make")  # a module belongs to one interpreter
        built = _run(command, folder)
        if built.ok:
            stamp.write_text(_interpreter())
        else:
            for module in (folder / "src").glob("*.so"):
                module.unlink()
    return built


def _cmake(tree: Path, devices: Collection[str]) -> Built:
    """Configure once, then let Ninja build what changed; remove the modules that it could not."""
    cmake, ninja = find_tool("cmake"), find_tool("ninja")
    if not cmake or not ninja:
        _remove(tree / MODULES)
        return _missing("cmake" if not cmake else "ninja", tree)
    folder = tree / ".needle" / "build" / str(sysconfig.get_config_var("SOABI"))
    with _alone(tree):
        if not (folder / "build.ninja").is_file():
            configure = [cmake, "-S", str(tree), "-B", str(folder), "-G", "Ninja"]
            configure += [f"-DCMAKE_MAKE_PROGRAM={ninja}", f"-DPython_EXECUTABLE={sys.executable}"]
            built = _run(configure, tree)
            if not built.ok:
                (folder / "build.ninja").unlink(missing_ok=True)
                _remove(tree / MODULES)
                return built
        targets = _targets(folder, devices)
        built = _run([ninja, "-C", str(folder), "-k", "0", *targets], tree)
        if not built.ok:
            for module in (tree / MODULES).glob("*.so"):
                # Asked one by one: the build as a whole failed, but this one may be as it should.
                if not _run([ninja, "-C", str(folder), str(module)], tree).ok:
                    module.unlink()
    return built


def _targets(folder: Path, devices: Collection[str]) -> list[str]:
    """Return the targets of some devices; none, which means all, where the build has others."""
    known = (folder / "build.ninja").read_text("utf-8", "replace")
    wanted = [TARGETS[device] for device in devices]
    return wanted if all(f"build {target}:" in known for target in wanted) else []


def _interpreter() -> str:
    return f"{sys.executable} {sysconfig.get_config_var('SOABI')}"


def _remove(folder: Path) -> None:
    for module in folder.glob("*.so"):
        module.unlink()


def _missing(tool: str, tree: Path) -> Built:
    message = f"[build] there is no {tool}; `needle doctor` says how to get it"
    return Built(False, [message], tree=tree)


def _run(command: list[str], tree: Path) -> Built:
    code, output = _output(command, tree)
    return Built(tree=tree) if code == 0 else _failed(output, tree)


def _output(command: list[str], tree: Path) -> tuple[int, str]:
    environment = environment_for((), {"LC_ALL": "C", "CLICOLOR": "0"})
    environment.pop("PYTHONPATH")
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired as error:
        return 1, f"{(error.stdout or b'').decode('utf-8', 'replace')}\nno end within {LIMIT} s"
    except OSError as error:
        return 1, f"{command[0]}: {error}"
    return done.returncode, done.stdout.decode("utf-8", "replace")


def _failed(output: str, tree: Path) -> Built:
    """Return a failed build with the first errors of the compiler, each with the line it shows."""
    lines = output.splitlines()
    built = Built(False, tree=tree, output=output[-20_000:])
    for index, text in enumerate(lines):
        if found := _ERROR.match(text):
            file = _relative(found["file"], tree)
            built.files += [] if file in built.files else [file]
            built.where = built.where or f"{file}:{found['line']}"
            if len(built.errors) < 4 * _SHOWN_ERRORS:
                built.errors.append(f"{file}:{found['line']}: {found['what']}")
                built.errors += [line for line in lines[index + 1 : index + 3] if " | " in line]
        elif found := _LINKER.search(text):
            built.errors.append(found.group())
    if not built.errors:
        built.errors = [line for line in lines if line.strip()][-12:]
    built.errors = built.errors[: 4 * _SHOWN_ERRORS]
    return built


def _relative(name: str, tree: Path) -> str:
    path = Path(name) if Path(name).is_absolute() else tree / name
    if not path.exists() and name.startswith(".."):  # as seen from the build folder
        path = tree / Path(*[part for part in Path(name).parts if part != ".."])
    with contextlib.suppress(ValueError):
        return path.resolve().relative_to(tree).as_posix()
    return name


@contextlib.contextmanager
def _alone(tree: Path) -> Iterator[None]:
    """Let one build at a time work in a tree."""
    folder = tree / ".needle" / "build"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
