"""Start workers, give each test its limits, and end whatever a test leaves running.

Only bytes come back: events on a pipe, what was printed, and files in a folder of each test.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Ended", "Output", "Settings", "Worker", "can_fork", "environment_for"]

IMPORT_LIMIT = 60.0  # seconds to import the tests and the student's module
MEMORY = 4 << 30  # bytes of data of one test
KEPT = 6000  # characters of output kept at either end
_POLL = 0.05  # seconds between two looks at whether a worker is still there
_DUMP_WAIT = 0.3  # seconds for a stuck process to say where it is
_SINGLE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Settings:
    """What a worker needs to know: the tree, its import paths, its module, the test files."""

    tree: Path
    paths: tuple[str, ...]
    module: str
    tests: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict, hash=False)

    def line(self) -> bytes:
        """Return the settings as the first line that a worker reads."""
        text = json.dumps(
            {
                "tree": str(self.tree),
                "paths": self.paths,
                "module": self.module,
                "tests": self.tests,
            }
        )
        return text.encode() + b"\n"


@dataclass
class Ended:
    """How the process of one test ended, and what it left in its folder."""

    code: int | None = None  # exit status; minus the signal's number
    timed_out: bool = False
    lost_worker: bool = False  # the test took its server down with it
    seconds: float = 0.0
    peak_kib: int = 0
    printed: str = ""
    stack: str = ""
    report: dict[str, Any] | None = None
    arrays: bytes = b""


class Output:
    """What a process printed: the head and the tail of it, however much there was."""

    def __init__(self) -> None:
        self.head = bytearray()
        self.tail = bytearray()
        self.dropped = 0

    def add(self, data: bytes) -> None:
        """Take more output."""
        room = KEPT - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if (over := len(self.tail) - KEPT) > 0:
            self.dropped += over
            del self.tail[:over]

    def text(self) -> str:
        """Return the output; a line says how much is left out."""
        gap = f"\n… {self.dropped:,} bytes left out …\n".encode() if self.dropped else b""
        return (bytes(self.head) + gap + bytes(self.tail)).decode("utf-8", "replace")


def can_fork() -> bool:
    """Tell whether a test runs in a forked child; NEEDLE_TEST_START=spawn|fork decides first."""
    chosen = os.environ.get("NEEDLE_TEST_START", "")
    return chosen != "spawn" if chosen else sys.platform == "linux"


def environment_for(paths: tuple[str, ...], extra: dict[str, str]) -> dict[str, str]:
    """Return the environment of tests and programs: this one without our or Python's settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NEEDLE_", "PYTHON", "LD_PRELOAD")) and name != "MAKEFLAGS"
    }
    kept |= dict.fromkeys(_SINGLE_THREAD, "1")
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONHASHSEED": "0",
        "MPLBACKEND": "Agg",
        **extra,
    }


class Worker:
    """A server of tests. It starts at once, without waiting; `ready` waits until it has imported.

    With `hold` it does not import the student's module before `begin`.
    """

    def __init__(self, settings: Settings, hold: bool = False) -> None:
        self.settings = settings
        self.fork = can_fork()
        self.output = Output()
        self.pid_of_test = 0
        self._lines = b""
        self._gone = False
        self._folder = tempfile.TemporaryDirectory(prefix="needle-test-")
        self._ready: dict[str, Any] | None = None
        self._begun = False
        self._start()
        if not hold:
            self.begin()

    def begin(self) -> None:
        """Let the worker import the tests and the student's module."""
        if not self._begun:
            self._begun = True
            self._send(self.settings.line())

    def _start(self) -> None:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        own = str(Path(__file__).resolve().parents[1])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "needle_course.worker", "--serve", str(writer)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(writer,),
            cwd=self.settings.tree,
            env=environment_for((own,), self.settings.environment),
            start_new_session=True,
        )
        os.close(writer)
        self._events = reader
        assert self._process.stdout and self._process.stdin  # noqa: S101 - pipes were asked for
        self._printed = self._process.stdout.fileno()
        os.set_blocking(self._printed, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._events, selectors.EVENT_READ)
        self._selector.register(self._printed, selectors.EVENT_READ)

    def ready(self) -> dict[str, Any]:
        """Return how the import went: an event "ready", "import", "foreign", "harness", "died" or
        "slow"; the last two with what was printed.
        """
        if self._ready is None:
            self.begin()
            event = self._next_event(time.monotonic() + IMPORT_LIMIT)
            if event is None:
                kind = "slow" if self._process.poll() is None and not self._gone else "died"
                self.close()
                event = {"event": kind, "code": self._process.returncode}
            self._ready = {**event, "printed": self.output.text()}
        return self._ready

    @property
    def alive(self) -> bool:
        """Whether the worker can take another test."""
        return self._process.poll() is None and not self._gone

    def run(self, test: str, seed: int, limit: float, memory: int = MEMORY) -> Ended:
        """Run one test and wait for its end, at most `limit` seconds."""
        folder = Path(tempfile.mkdtemp(dir=self._folder.name))
        request = {
            "test": test,
            "seed": seed,
            "folder": str(folder),
            "memory": memory,
            "fork": self.fork,
        }
        self.output = Output()
        started = time.monotonic()
        self._send(json.dumps(request).encode() + b"\n")
        ended = Ended()
        self.pid_of_test = (self._next_event(started + limit) or {}).get("pid", 0)
        event = self._next_event(started + limit)
        if event is None and self.alive:
            ended.timed_out = time.monotonic() >= started + limit
            self._kill_test()
            event = self._next_event(time.monotonic() + 5)
        self.pid_of_test = 0
        if event is None:
            ended.lost_worker = self.fork and not ended.timed_out
            self.close()
            event = {"code": self._process.returncode}
        ended.code = event.get("code")
        ended.peak_kib = event.get("peak_kib", 0)
        ended.seconds = time.monotonic() - started
        self._drain()
        ended.printed = self.output.text()
        _collect(folder, ended)
        return ended

    def close(self) -> None:
        """End the worker and the test that it runs."""
        if self.pid_of_test:
            _kill(self.pid_of_test)
        with contextlib.suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()
        try:
            self._process.wait(0 if self.pid_of_test else 0.5)
        except subprocess.TimeoutExpired:
            _kill(self._process.pid)
            self._process.wait()
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)  # what was started beside the test
        self.pid_of_test = 0

    def discard(self) -> None:
        """End the worker and remove its files."""
        self.close()
        self._drain()
        self._selector.close()
        with contextlib.suppress(OSError):
            os.close(self._events)
        if self._process.stdout:
            self._process.stdout.close()
        self._folder.cleanup()

    def _send(self, line: bytes) -> None:
        with contextlib.suppress(OSError):  # a dead worker shows as the end of its events
            assert self._process.stdin  # noqa: S101 - a pipe was asked for
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def _next_event(self, until: float) -> dict[str, Any] | None:
        """Return the next event; None at the end of the worker or when the time is over."""
        while True:
            if b"\n" in self._lines:
                line, self._lines = self._lines.split(b"\n", 1)
                return json.loads(line)
            left = until - time.monotonic()
            if left <= 0 or self._gone:
                return None
            # What a test leaves running may hold the pipe open, so the end of the process counts.
            ended = self._process.poll() is not None
            ready = self._selector.select(0 if ended else min(left, _POLL))
            for key, _ in ready:
                if key.fd == self._printed:
                    self._take_output()
                else:
                    data = os.read(self._events, 65536)
                    self._lines += data
                    self._gone = not data
            if ended and b"\n" not in self._lines:
                self._gone = True

    def _take_output(self) -> bool:
        try:
            data = os.read(self._printed, 65536)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(self._printed)
            self._printed = -1
        self.output.add(data)
        return bool(data)

    def _drain(self, most: int = 64) -> None:
        """Take what is printed already; a process that goes on printing is not waited for."""
        for _ in range(most):
            if self._printed < 0 or not self._take_output():
                return

    def _kill_test(self) -> None:
        """Let a stuck test write its stack, then end it and all that it started."""
        if not self.pid_of_test:
            _kill(self._process.pid)
            return
        with contextlib.suppress(OSError):
            os.kill(self.pid_of_test, signal.SIGUSR2)
            time.sleep(_DUMP_WAIT)
        _kill(self.pid_of_test)


def _kill(pid: int) -> None:
    """Kill a process and its group."""
    for end in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            end(pid, signal.SIGKILL)


def _collect(folder: Path, ended: Ended) -> None:
    """Read what a test left behind."""
    with contextlib.suppress(OSError):
        ended.stack = (folder / "stack").read_text("utf-8", "replace")[:20_000]
    try:
        ended.report = json.loads((folder / "report.json").read_text())
        ended.arrays = (folder / "arrays.npz").read_bytes()
    except (OSError, ValueError):
        ended.report = None
