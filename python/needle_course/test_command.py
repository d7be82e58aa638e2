"""`needle test`: choose the tests, run them stage by stage, show and keep what they say."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from needle_course import report, runner
from needle_course.collection import stage_of
from needle_course.runner import Result
from needle_course.stages import Course, Stage

__all__ = ["exit_status", "run_tests"]

Plan = list[tuple[Stage, list[str]]]


def run_tests(
    tree: Path | None,
    selection: Sequence[str],
    seed: int | None,
    *,
    as_json: bool = False,
    stop: bool = False,
) -> int:
    """Run the tests of a workspace or of the repository; return the exit status."""
    from needle_course.commands import USAGE, course_for, workspace_at
    from needle_course.progress import left_out

    root = (tree or Path.cwd()).resolve()
    workspace = None if (root / "hw_stages").is_dir() or _bare(tree) else workspace_at(tree)
    root = workspace.root if workspace else root
    course = course_for(root)
    last = workspace.stage if workspace else course.stages[-1].name
    plan = _plan(course, last, selection)
    off = left_out(course) if not selection else set()
    screen = Screen(as_json)
    results: list[Result] = []
    for stage, chosen in plan:
        screen.begin(stage, again=bool(results) and not selection)
        try:
            of_stage = runner.run(
                root,
                stage,
                chosen or [q.id for q in stage.questions if q.id not in off] if off else chosen,
                seed,
                stop=stop,
                seen=screen.show,
            )
        finally:
            if workspace and seed is None and screen.of_stage:
                workspace.remember(screen.of_stage, workspace.stage_digests([stage.name]))
        screen.end(stage)
        results += of_stage
        if stop and not all(result.passed for result in of_stage):
            break
    if not results:
        sys.stderr.write(f"[test] no tests of {', '.join(stage.name for stage, _ in plan)} here\n")
        return USAGE
    return exit_status(results)


def exit_status(results: Sequence[Result]) -> int:
    """Return the exit status that results stand for; without any it is no pass."""
    from needle_course.commands import BUILD, FAILED, FAULT

    verdicts = {result.verdict for result in results}
    if not verdicts or "harness_error" in verdicts:
        return FAULT
    if "build_error" in verdicts:
        return BUILD
    return 0 if verdicts == {"pass"} else FAILED


class Screen:
    """Shows results as they come: the first failure in full, the others in one line each."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.failed = False
        self.again = False
        self.of_stage: list[Result] = []

    def begin(self, stage: Stage, again: bool) -> None:
        """Begin a stage; `again` if it is an earlier one, of which only failures have lines."""
        self.again = again
        self.of_stage = []

    def show(self, result: Result) -> None:
        """Show one result."""
        self.of_stage.append(result)
        if self.as_json:
            text = json.dumps(result.record())
        elif self.again and result.verdict in ("pass", "not_implemented"):
            text = ""
        elif result.passed or self.failed:
            text = report.line(result)
        else:
            self.failed = True
            text = report.failure(result)
        if text:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()

    def end(self, stage: Stage) -> None:
        """End a stage with its points."""
        if not self.of_stage:
            return
        if self.as_json:
            sys.stdout.write(json.dumps(report.scores(stage, self.of_stage)) + "\n")
        else:
            short = self.again and all(result.passed for result in self.of_stage)
            sys.stdout.write(report.summary(stage, self.of_stage, short=short) + "\n")
        sys.stdout.flush()


def _bare(tree: Path | None) -> bool:
    """Say whether --tree names a stage's tree that is no workspace, as the gates build them."""
    return tree is not None and not (tree / ".needle" / "workspace.json").is_file()


def _plan(course: Course, last: str, selection: Sequence[str]) -> Plan:
    """Return the stages to test, the one in progress first, each with its part of the selection."""
    stages = list(reversed(course.up_to(last)))
    if not selection:
        return [(stage, []) for stage in stages]
    plan: dict[str, list[str]] = {}
    for name in selection:
        plan.setdefault(_stage_for(course, stages, name), []).append(name)
    return [(course.stage(name), chosen) for name, chosen in plan.items()]


def _stage_for(course: Course, stages: Sequence[Stage], name: str) -> str:
    """Return the stage that a selected name belongs to: its own, or the latest that has it."""
    own = stage_of(name)
    if own in {stage.name for stage in stages}:
        return own
    if own in course.by_name:
        raise runner.UnknownSelection(
            name, (), f"; {own} is not in this workspace yet: `needle next` brings it"
        )
    tail = name.split("::")[0]
    for stage in stages:
        known = [question.id for question in stage.questions]
        known += [region for question in stage.questions for region in question.regions]
        if f"{stage.name}.{tail}" in known:
            return stage.name
    return stages[0].name
