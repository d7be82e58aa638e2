"""Where a student stands: points by question, from the verdicts that belong to these very files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from needle_course.collection import load_tests
from needle_course.stages import Course, Question, Stage
from needle_course.workspace import Workspace

__all__ = ["Row", "advice", "left_out", "standing"]


@dataclass(frozen=True)
class Row:
    """One question: how many of its tests pass, fail and were not run on the present files."""

    stage: str
    question: str
    title: str
    points: float
    worth: int
    passed: int
    failed: int
    unknown: int
    counts: bool = True

    @property
    def done(self) -> bool:
        """Whether all tests of the question pass on the present files."""
        return self.passed > 0 and not self.failed and not self.unknown

    def record(self) -> dict[str, Any]:
        """Return the row as what JSON holds."""
        return asdict(self)


def standing(workspace: Workspace, course: Course) -> list[Row]:
    """Return a row for each question up to the stage in progress."""
    stages = course.up_to(workspace.stage)
    digests = workspace.stage_digests(stage.name for stage in stages)
    verdicts = {
        test: entry["verdict"]
        for test, entry in workspace.results().items()
        if entry.get("digest") == digests.get(test.split(".")[0])
    }
    off = left_out(course)
    return [
        row for stage in stages for row in _rows(stage, _test_ids(workspace, stage), verdicts, off)
    ]


def _rows(stage: Stage, tests: list[str], verdicts: dict[str, str], off: set[str]) -> Iterator[Row]:
    for question in stage.questions:
        own = [test for test in tests if test.startswith(f"{question.id}::")]
        yield _row(stage, question, own, verdicts, question.id not in off)


def _row(
    stage: Stage, question: Question, tests: list[str], verdicts: dict[str, str], counts: bool
) -> Row:
    passed = sum(verdicts.get(test) == "pass" for test in tests)
    unknown = sum(test not in verdicts for test in tests)
    failed = len(tests) - passed - unknown
    points = question.earned(passed, len(tests))
    return Row(
        stage.name,
        question.id,
        question.title,
        points if counts else 0,
        question.points if counts else 0,
        passed,
        failed,
        unknown,
        counts,
    )


def _test_ids(workspace: Workspace, stage: Stage) -> list[str]:
    return list(load_tests(sorted((workspace.root / "tests" / stage.name).glob("test_*.py"))))


def left_out(course: Course) -> set[str]:
    """Return the questions that course.toml switches off."""
    from needle_course import settings

    folder = course.root / "hw_stages" if (course.root / "hw_stages").is_dir() else course.root
    if not (folder / "course.toml").is_file():
        return set()
    chosen = settings.load(course.root)
    questions = (question for stage in course.stages for question in stage.questions)
    return {question.id for question in questions if not chosen.counts(question)}


def advice(workspace: Workspace, course: Course) -> str:
    """Return what the gate advises before the next stage: "" if the present one is passed."""
    stage = workspace.stage
    rows = [row for row in standing(workspace, course) if row.stage == stage and row.counts]
    open_ones = [row.question for row in rows if not row.done]
    if not open_ones:
        return ""
    return (
        f"{stage} is not passed yet: {', '.join(open_ones)}. You can go on; "
        f"`needle test {stage}` shows what is left"
    )
