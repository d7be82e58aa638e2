"""The process beside the answer: it imports the student's module and runs tests in forked children.

`python -m needle_course.worker --serve FD`: settings and requests come as JSON lines on stdin,
events go as JSON lines to FD. Expected values are never computed here.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import io
import json
import os
import random
import re
import signal
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np

from needle_course.collection import CollectionError, load_tests
from needle_course.testing import GradedTest

_REGION = re.compile(r"\bhw\d+\.[a-z0-9_]+(?:\.[a-z0-9_]+)*")
_PR_SET_PDEATHSIG = 1


class OutputError(Exception):
    """A probe returned something that cannot be compared."""


def describe(error: BaseException, workspace: Path) -> dict[str, Any]:
    """Return what is to be said of an exception: its kind, its message, the student's line."""
    try:
        message = str(error)
    except Exception:  # a student's class may have a broken __str__
        message = "(its message cannot be shown)"
    frames = [
        (relative, frame.lineno, frame.name, frame.line or "")
        for frame in traceback.extract_tb(error.__traceback__)
        if (relative := student_file(frame.filename, workspace))
    ]
    region = _REGION.search(message) if isinstance(error, NotImplementedError) else None
    return {
        "outcome": "exception",
        "type": type(error).__name__,
        "kinds": [kind.__name__ for kind in type(error).__mro__],
        "message": message[:4000],
        "frames": frames[-12:],
        "region": region.group() if region else "",
    }


def student_file(name: str, workspace: Path) -> str:
    """Return a file's path within the workspace, or "" if it is none of the student's."""
    try:
        path = Path(name).resolve().relative_to(workspace)
    except ValueError:
        return ""
    foreign = {"tests", "hw_stages", ".needle", ".venv", "needle_course"}
    in_stage_source = path.parts[:1] == ("hw_stages",) and "src" in path.parts
    return "" if foreign & set(path.parts[:2]) and not in_stage_source else path.as_posix()


def encode(value: Any, arrays: dict[str, np.ndarray], name: str) -> Any:
    """Return a JSON form of an output; its arrays are put into `arrays`. OutputError if none."""
    if value is None or isinstance(value, bool | str):
        return {"value": value}
    if isinstance(value, int | float) and not isinstance(value, np.generic):
        return {"value": value}
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind not in "biufcSU":
            raise OutputError(f"output {name!r} is an array of dtype {array.dtype}")
        key = f"a{len(arrays)}"
        arrays[key] = np.array(array, subok=False)
        return {"array": key}
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [encode(part, arrays, name) for part in value]}
    if isinstance(value, dict):
        return {"dict": [[str(key), encode(part, arrays, str(key))] for key, part in value.items()]}
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise OutputError(f"output {name!r} is a {kind}; a numpy array or a number was expected")


def run_test(test: GradedTest, module: ModuleType, request: dict[str, Any], tree: Path) -> None:
    """Run one test's probe and leave its outputs, or what went wrong, in the request's folder."""
    folder = Path(request["folder"])
    report: dict[str, Any]
    arrays: dict[str, np.ndarray] = {}
    started = time.perf_counter()
    stage = "inputs"
    try:
        inputs = test.inputs(np.random.default_rng(request["seed"]))
        stage = "exception"
        random.seed(request["seed"])
        np.random.seed(request["seed"])
        started = time.perf_counter()
        outputs = test.probe(module, inputs)
        if not isinstance(outputs, dict):
            raise OutputError(f"the probe returned {type(outputs).__name__}, not a dict")
        report = {"outcome": "outputs", "outputs": encode(outputs, arrays, "outputs")}
    except OutputError as error:
        report = {"outcome": "protocol", "message": str(error)}
    except BaseException as error:  # noqa: B036 - sys.exit() in an answer costs this test only
        report = {**describe(error, tree), "outcome": stage}
    report["seconds"] = time.perf_counter() - started
    np.savez(folder / "arrays.npz", **arrays)  # type: ignore[arg-type]
    (folder / "report.part").write_text(json.dumps(report))
    (folder / "report.part").replace(folder / "report.json")


def enter_test(request: dict[str, Any]) -> None:
    """Set up the process of one test: its own session, no input, limits, a place for its stack."""
    with contextlib.suppress(OSError):  # where nothing forks, this process leads a session already
        os.setsid()
    _die_with_parent()
    stack = (Path(request["folder"]) / "stack").open("w")
    faulthandler.enable(stack)
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR2, stack)
    _limit(request.get("memory", 0))


def leave_test() -> None:
    """Flush what was printed and end, whatever threads or exit functions are left."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).fflush(None)
    os._exit(0)


def _limit(memory: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory and sys.platform == "linux":
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def _die_with_parent() -> None:
    if sys.platform == "linux":
        with contextlib.suppress(Exception):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """Answers requests: one child process a test, or this process itself where none can fork."""

    def __init__(self, requests: BinaryIO, replies: int) -> None:
        self.requests = requests
        self.replies = replies
        self.tests: dict[str, GradedTest] = {}
        self.module: ModuleType | None = None
        self.tree = Path()

    def reply(self, **event: Any) -> None:
        """Send one event."""
        os.write(self.replies, (json.dumps(event) + "\n").encode())

    def prepare(self, settings: dict[str, Any]) -> bool:
        """Load the tests, then the student's module; tell how that went."""
        self.tree = Path(settings["tree"])
        try:
            self.tests = load_tests(Path(file) for file in settings["tests"])
        except CollectionError as error:
            self.reply(event="harness", message=str(error))
            return False
        _turn_to(settings["paths"], self.tree)
        name = settings["module"]
        try:
            self.module = importlib.import_module(name)
        except BaseException as error:  # noqa: B036 - nor may sys.exit() in a module go unseen
            self.reply(event="import", **describe(error, self.tree))
            return False
        origin = getattr(self.module, "__file__", None) or next(iter(self.module.__path__), "")
        if not Path(origin).resolve().is_relative_to(self.tree):
            self.reply(event="foreign", origin=str(Path(origin).resolve()))
            return False
        # It imports more, which an answer may make impossible later.
        np.savez(io.BytesIO(), a=np.zeros(1))
        gc.freeze()
        self.reply(event="ready")
        return True

    def serve(self) -> None:
        """Run tests until the requests end."""
        for line in self.requests:
            request = json.loads(line)
            if request["fork"]:
                self.fork(request)
            else:
                self.reply(event="started", pid=os.getpid())
                self.run(request)

    def run(self, request: dict[str, Any]) -> None:
        """Run one test in this process and end it."""
        assert self.module is not None  # noqa: S101 - prepared before it serves
        if request["fork"]:  # else the end of the events tells the end of this process
            os.close(self.replies)
        os.close(self.requests.fileno())
        enter_test(request)
        run_test(self.tests[request["test"]], self.module, request, self.tree)
        leave_test()

    def fork(self, request: dict[str, Any]) -> None:
        """Run one test in a child; report how it ended and end what it left behind."""
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            try:
                self.run(request)
            finally:  # a fault of ours must not come back into the loop of the server
                os._exit(70)
        self.reply(event="started", pid=pid)
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
        self.reply(
            event="ended",
            code=os.waitstatus_to_exitcode(status),
            cpu=usage.ru_utime + usage.ru_stime,
            peak_kib=usage.ru_maxrss,
        )


def _turn_to(paths: list[str], tree: Path) -> None:
    """Let imports see the tree first, and the place of this package no more if it is a source."""
    own = str(Path(__file__).resolve().parents[1])
    sys.path[:] = [*paths, *(path for path in sys.path if path not in ("", own) or _is_site(path))]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    # A file that was edited twice in one second may have the time and size of its cached bytecode.
    sys.dont_write_bytecode = True
    sys.pycache_prefix = str(tree / ".needle" / "no-bytecode")
    importlib.invalidate_caches()


def _is_site(path: str) -> bool:
    return Path(path).name in ("site-packages", "dist-packages")


def main() -> None:
    """Serve: `--serve FD`."""
    replies = int(sys.argv[sys.argv.index("--serve") + 1])
    requests = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.set_inheritable(requests.fileno(), False)
    os.set_inheritable(replies, False)
    _die_with_parent()
    faulthandler.enable()
    server = Server(requests, replies)
    first = requests.readline()  # none if it is not needed after all
    if first and server.prepare(json.loads(first)):
        server.serve()


if __name__ == "__main__":
    main()
