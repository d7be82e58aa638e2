"""Run graded tests on a tree and give each a verdict.

This side never imports student code: `launcher` runs the probes, the checks run here.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from needle_course import building, launcher
from needle_course.collection import load_tests, stage_of, test_files
from needle_course.launcher import Ended, Worker
from needle_course.stages import Stage

if TYPE_CHECKING:
    from needle_course.testing import GradedTest

__all__ = ["Result", "Session", "UnknownSelection", "run", "select"]

FLOOR = 10.0  # seconds: the least limit of a test
FACTOR = 20  # times the taught answer's seconds
_NOMINAL = 0.012  # seconds that the loop of `machine_scale` takes on a present-day core
_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+) in (\S+)', re.MULTILINE)
_CUDA_DEVICES = {"cuda": "emulated", "cuda_checked": "checked"}
_SIGNALS = {
    signal.SIGSEGV: "segmentation fault: memory was touched that is not there, or a call of a "
    "call of a call ran out of stack",
    signal.SIGABRT: "abort: the C++ code gave up (an exception that nobody caught, an assert, or "
    "a damaged heap)",
    signal.SIGFPE: "a division by zero of integers",
    signal.SIGILL: "an illegal instruction",
    signal.SIGBUS: "a bus error: memory was touched that is not there",
    signal.SIGKILL: "killed by the system, most often for want of memory",
}


@dataclass
class Result:
    """The verdict of one test: pass, fail, wrong_shape, wrong_dtype, not_implemented, exception,
    crash, timeout, memory, protocol, build_error or harness_error.
    """

    test: str
    question: str
    verdict: str
    message: str = ""
    detail: list[str] = field(default_factory=list)
    region: str = ""
    where: str = ""
    seed: int = 0
    seconds: float = 0.0
    printed: str = ""
    about: str = ""
    tests: int = 1  # how many the question has, also where only some are run

    @property
    def passed(self) -> bool:
        """Whether the test passed."""
        return self.verdict == "pass"

    @property
    def reproduce(self) -> str:
        """The command that runs this test again with the same numbers."""
        return f"needle test {self.test} --seed {self.seed}"

    def record(self) -> dict[str, Any]:
        """Return the result as what JSON holds."""
        return {**asdict(self), "reproduce": self.reproduce}


class UnknownSelection(Exception):
    """A selection that names nothing; `near` are names like it."""

    def __init__(self, name: str, known: Sequence[str], hint: str = "") -> None:
        near = difflib.get_close_matches(name, dict.fromkeys(known), n=3, cutoff=0.5)
        self.near = near
        hint = hint or (f"; did you mean {' or '.join(near)}?" if near else "")
        super().__init__(f"[test] nothing is called {name!r}{hint}")


def select(stage: Stage, tests: Sequence[str], selection: Sequence[str]) -> list[str]:
    """Return the ids of the tests that a selection names, in the tests' order.

    A selection is the stage, a question (its tail too), a region, or a test (its name too).
    Raises UnknownSelection.
    """
    if not selection or not tests:
        return list(tests)
    chosen: set[str] = set()
    for name in selection:
        found = _named(stage, tests, name.strip())
        if not found:
            questions = [question.id for question in stage.questions]
            regions = [region for question in stage.questions for region in question.regions]
            tails = [known.split(".", 1)[-1] for known in (*questions, *tests)]
            raise UnknownSelection(name, [*questions, *regions, *tests, *tails])
        chosen |= found
    return [test for test in tests if test in chosen]


def _named(stage: Stage, tests: Sequence[str], name: str) -> set[str]:
    if name == stage.name:
        return set(tests)
    full = name if name.startswith(f"{stage.name}.") else f"{stage.name}.{name}"
    for question in stage.questions:
        if full in question.regions and full != question.id:
            return {test for test in tests if test.startswith(f"{question.id}::")}
    return {test for test in tests if full in (test, test.split("::")[0])} or {
        test for test in tests if name == test.split("::")[1]
    }


def machine_scale() -> float:
    """Return how many times slower than a present-day core this machine is now, at least 1."""
    started = time.perf_counter()
    total = 0
    for number in range(200_000):
        total += number * number
    return max(1.0, (time.perf_counter() - started) / _NOMINAL)


class Session:
    """Workers for the tests of one stage on one tree; close it, or use it as a context manager.

    Args:
        tree: the repository or a workspace.
        stage: the stage whose tests run.
        seed: the seed of all tests; each has its own if None.
        selection: what `select` takes; `selected` are the tests that it names.
        build: whether to build the stage's native modules first.

    Raises:
        UnknownSelection: a selection names nothing.
        CollectionError: a test file cannot be loaded.
    """

    def __init__(
        self,
        tree: Path,
        stage: Stage,
        seed: int | None = None,
        selection: Sequence[str] = (),
        build: bool = True,
    ) -> None:
        self.tree = Path(tree).resolve()
        self.stage = stage
        self.seed = seed
        self.built = building.Built()
        self.files = test_files(self.tree, stage.name)
        self._workers: dict[str, Worker] = {}
        self._scale: float | None = None
        try:
            if self.files:  # it gets ready while this side loads and builds
                self._workers["cpu"] = Worker(self._settings("cpu"), hold=True)
            self.tests = _in_order(load_tests(self.files), stage)
            self.selected = select(stage, list(self.tests), selection)
            asked = {self.tests[test].question for test in self.selected}
            if build:
                questions = [question for question in stage.questions if question.id in asked]
                self.built = building.build(self.tree, stage, questions)
            if "cpu" in {self._device(question) for question in asked}:
                self._workers["cpu"].begin()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers.values():
            worker.discard()
        self._workers.clear()

    def run(self, test_id: str) -> Result:
        """Run one test."""
        result = self._run(test_id)
        if not self.built.ok:
            self.built.apply(result, self.stage)
        return result

    def _run(self, test_id: str) -> Result:
        test = self.tests[test_id]
        seed = test.seed if self.seed is None else self.seed
        about = " ".join(test.doc.split("\n\n")[0].split())
        tests = sum(other.question == test.question for other in self.tests.values())
        result = Result(
            test_id, test.question, "harness_error", seed=seed, about=about, tests=tests
        )
        device = self._device(test.question)
        worker = self._worker(device)
        if (event := worker.ready())["event"] != "ready":
            _judge_import(result, event, self.stage.module, self.tree)
            return result
        memory = 0 if device == "cuda_checked" else launcher.MEMORY
        limit = self._limit(test.seconds)
        ended = worker.run(test_id, seed, limit, memory)
        result.seconds = ended.seconds
        result.printed = ended.printed
        judge(result, ended, limit, self.tree)
        if ended.report and ended.report["outcome"] == "outputs" and not ended.timed_out:
            with _working_in(self.tree):
                _check(result, test, ended)
        return result

    def _limit(self, seconds: float) -> float:
        if FACTOR * seconds <= FLOOR and seconds <= 0:
            return FLOOR
        if self._scale is None:
            self._scale = machine_scale()
        return max(FLOOR, FACTOR * seconds * self._scale)

    def _device(self, question: str) -> str:
        known = {entry.id: entry for entry in self.stage.questions}
        return known[question].device if question in known else "cpu"

    def _worker(self, device: str) -> Worker:
        worker = self._workers.get(device)
        if worker is not None and (worker.alive or worker.ready()["event"] != "ready"):
            return worker
        if worker is not None:
            worker.discard()
        self._workers[device] = Worker(self._settings(device))
        return self._workers[device]

    def _settings(self, device: str) -> launcher.Settings:
        environment = dict(self.stage.environment)
        if device in _CUDA_DEVICES:
            environment["NEEDLE_CUDA_DEVICE"] = _CUDA_DEVICES[device]
        return launcher.Settings(
            self.tree,
            import_paths(self.tree, self.stage),
            self.stage.module,
            tuple(str(file) for file in self.files),
            environment,
        )


def _in_order(tests: dict[str, GradedTest], stage: Stage) -> dict[str, GradedTest]:
    """Return the tests of a stage in the order of its questions."""
    order = {question.id: place for place, question in enumerate(stage.questions)}
    own = [name for name in tests if stage_of(name) == stage.name]
    own.sort(key=lambda name: order.get(tests[name].question, len(order)))
    return {name: tests[name] for name in own}


def import_paths(tree: Path, stage: Stage) -> tuple[str, ...]:
    """Return where a stage's imports are looked for: python, apps and src of the tree.

    A module that lies in src (hw0's) comes first; in the repository src is the stage's own.
    """
    own = tree / "hw_stages" / stage.name / "src"
    source = own if own.is_dir() else tree / "src"
    places = [tree / "python", tree / "apps", source]
    if (source / f"{stage.module}.py").is_file():
        places = [source, tree / "python", tree / "apps"]
    return tuple(str(place) for place in places)


def run(
    workspace: Path,
    stage: Stage,
    selection: Sequence[str] = (),
    seed: int | None = None,
    build: bool = True,
    *,
    stop: bool = False,
    seen: Callable[[Result], None] | None = None,
) -> list[Result]:
    """Build what the stage builds, run the selected tests of one stage, return their results.

    Args:
        workspace: a student's tree, or the repository.
        stage: the stage whose tests run.
        selection: stages, questions, regions or tests; all tests if empty.
        seed: one seed for all tests.
        build: whether to build the stage's native modules first.
        stop: end after the first test that does not pass.
        seen: called with each result as it comes.

    Raises:
        UnknownSelection: a selection names nothing.
        CollectionError: a test file cannot be loaded.
    """
    results = []
    with Session(workspace, stage, seed, selection, build) as session:
        for test in session.selected:
            result = session.run(test)
            results.append(result)
            if seen:
                seen(result)
            if stop and not result.passed:
                break
    return results


def judge(result: Result, ended: Ended, limit: float, tree: Path) -> None:
    """Set the verdict of a test from how its process ended; outputs are left for the check."""
    report = ended.report
    if ended.timed_out:
        result.verdict = "timeout"
        result.message = f"did not end within {limit:.0f} s: an endless loop?"
        _add_stack(result, ended, tree)
    elif report is None:
        _judge_death(result, ended, tree)
    elif report["outcome"] == "protocol":
        result.verdict = "protocol"
        result.message = str(report["message"])
    elif report["outcome"] == "inputs":
        result.message = f"[{result.test}] its inputs cannot be made: {report['type']}: "
        result.message += report["message"]
    elif report["outcome"] == "exception":
        _judge_exception(result, report)


def _judge_death(result: Result, ended: Ended, tree: Path) -> None:
    result.verdict = "crash"
    if ended.lost_worker:
        result.message = "the test ended the process that had started it"
    elif ended.code is not None and ended.code < 0:
        number = -ended.code
        result.verdict = "memory" if number == signal.SIGKILL else "crash"
        known = _SIGNALS.get(signal.Signals(number), "") if number in set(signal.Signals) else ""
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        result.message = f"crashed with {name}" + (f": {known}" if known else "")
    else:
        result.message = (
            f"the process ended itself with exit status {ended.code} before the test was over "
            "(os._exit, or exit() in C++)"
        )
    _add_stack(result, ended, tree)


def _judge_exception(result: Result, report: dict[str, Any]) -> None:
    kinds, message = report["kinds"], report["message"]
    result.region = report["region"]
    if frames := report["frames"]:
        file, line, function, _ = frames[-1]
        result.where = f"{file}:{line} in {function}"
        result.detail = [f"{f}:{n} in {name}   {code}" for f, n, name, code in frames]
    first = message.strip().splitlines()[0] if message.strip() else ""
    result.message = f"{report['type']}: {first}" if first else report["type"]
    if len(lines := message.strip().splitlines()) > 1:
        result.detail = [*lines[1:20], *result.detail]
    if "NotImplementedError" in kinds:
        result.verdict = "not_implemented"
        result.message = f"not written yet: {result.region or first or result.where}"
    elif "MemoryError" in kinds:
        result.verdict = "memory"
        result.message = f"out of memory: {first or report['type']}"
    else:
        result.verdict = "exception"
        if "SystemExit" in kinds:
            result.message = "SystemExit: the code called exit()"


def _judge_import(result: Result, event: dict[str, Any], module: str, tree: Path) -> None:
    result.printed = event.get("printed", "")
    kind = event["event"]
    if kind == "import":
        _judge_exception(result, event)
        if result.verdict != "not_implemented":
            result.message = f"`import {module}` fails: {result.message}"
    elif kind == "foreign":
        result.message = (
            f"[test] {module} was imported from {event['origin']}, not from {tree}; "
            f"is the file there? If another {module} is installed: pip uninstall {module}"
        )
    elif kind == "slow":
        result.verdict = "timeout"
        result.message = f"`import {module}` did not end within {launcher.IMPORT_LIMIT:.0f} s"
    elif kind == "died":
        _judge_death(result, Ended(code=event["code"], stack=result.printed), tree)
        result.message = f"`import {module}` {result.message}"
    else:
        result.message = event["message"]


def _add_stack(result: Result, ended: Ended, tree: Path) -> None:
    """Name the student's line that a crashed or stuck process was at."""
    from needle_course.worker import student_file

    for name, line, function in _FRAME.findall(ended.stack):
        if relative := student_file(name, tree):
            place = f"{relative}:{line} in {function}"
            result.where = result.where or place
            if len(result.detail) < 12:
                result.detail.append(place)


def _check(result: Result, test: GradedTest, ended: Ended) -> None:
    """Compare the outputs of a test, on this side."""
    import numpy as np

    from needle_course.testing import Mismatch

    assert ended.report is not None  # noqa: S101 - the caller has seen outputs in it
    try:
        with np.load(io.BytesIO(ended.arrays), allow_pickle=False) as arrays:
            outputs = _decode(ended.report["outputs"], dict(arrays))
        if not isinstance(outputs, dict):
            raise ValueError("no outputs")
    except Exception as error:  # whatever the bytes hold, it is theirs and not a fault of ours
        result.verdict = "protocol"
        result.message = f"the outputs cannot be read: {error}"
        return
    try:
        inputs = test.inputs(np.random.default_rng(result.seed))
    except Exception as error:
        result.verdict = "harness_error"
        result.message = f"[{test.id}] its inputs cannot be made: {type(error).__name__}: {error}"
        return
    try:
        test.check(inputs, outputs)
    except Mismatch as error:
        result.verdict, result.message, result.detail = error.verdict, error.message, error.detail
    except Exception as error:  # the reference passes, so these outputs are of another kind
        result.verdict = "fail"
        result.message = f"the outputs are not of the kind that was asked for: {error!r}"
    else:
        result.verdict = "pass"


def _decode(value: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """Return the output that a JSON form stands for."""
    ((kind, content),) = value.items()
    if kind == "array":
        return arrays[content]
    if kind == "list":
        return [_decode(part, arrays) for part in content]
    if kind == "tuple":
        return tuple(_decode(part, arrays) for part in content)
    if kind == "dict":
        return {key: _decode(part, arrays) for key, part in content}
    return content


@contextlib.contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    """Make a folder the working directory for a while."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def questions_of(stage: Stage, results: Sequence[Result]) -> dict[str, list[Result]]:
    """Return the results by question, in the stage's order."""
    table: dict[str, list[Result]] = {question.id: [] for question in stage.questions}
    for result in results:
        table.setdefault(result.question, []).append(result)
    return table
