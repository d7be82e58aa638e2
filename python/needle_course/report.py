"""Show results: the first failure in full, the others in one line each; tables as plain text."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from needle_course.runner import Result, questions_of
from needle_course.stages import Stage

if TYPE_CHECKING:
    from needle_course.doctor import Check
    from needle_course.progress import Row
    from needle_course.workspace import Carried

__all__ = ["as_json", "carried", "checks", "colour", "failure", "line", "matrix", "summary"]

_CODES = {"green": "32", "red": "31", "yellow": "33", "dim": "2", "bold": "1"}
_PRINTED_LINES = 20
_MESSAGE = 100
_LABELS = {
    "pass": "pass",
    "fail": "wrong",
    "wrong_shape": "shape",
    "wrong_dtype": "dtype",
    "not_implemented": "to do",
    "exception": "error",
    "crash": "crash",
    "timeout": "hangs",
    "memory": "memory",
    "protocol": "output",
    "build_error": "build",
    "harness_error": "FAULT",
}
_OUTCOMES = {
    "new": "new in this stage",
    "ours": "you had not touched it: brought up to date",
    "merged": "your lines carried over, ours added",
    "yours": "yours, unchanged",
    "conflict": "CONFLICT: yours stays, ours is in .needle/conflicts",
}


def colour(text: str, name: str) -> str:
    """Return text in a colour, where someone watches and NO_COLOR is not set."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\033[{_CODES[name]}m{text}\033[0m"


def as_json(value: Any) -> str:
    """Return a value as a line of JSON."""
    return json.dumps(value)


def label(result: Result) -> str:
    """Return a verdict as one coloured word."""
    tint = {"pass": "green", "not_implemented": "yellow"}.get(result.verdict, "red")
    return colour(f"{_LABELS[result.verdict]:<6}", tint)


def line(result: Result) -> str:
    """Return a result in one line."""
    if result.passed:
        return f"{label(result)}  {result.test}"
    message = result.message.splitlines()[0] if result.message else ""
    if len(message) > _MESSAGE:
        message = f"{message[: _MESSAGE - 1]}…"
    place = f"   {result.where.split(' in ')[0]}" if result.where else ""
    return f"{label(result)}  {result.test}   {message}{place}"


def failure(result: Result) -> str:
    """Return a failed test in full: what happened, where, and how to have it again."""
    word = colour("TO DO" if result.verdict == "not_implemented" else "FAIL", "red")
    about = f"   {result.about}" if result.about else ""
    lines = [f"{word}  {colour(result.test, 'bold')}{about}"]
    lines += [f"  {text}" for text in result.message.splitlines()]
    lines += [f"    {text}" for text in result.detail]
    if result.where and not any(text.startswith(result.where) for text in result.detail):
        lines.append(f"  {result.where}")
    if printed := result.printed.strip().splitlines():
        shown = printed[-_PRINTED_LINES:]
        part = "" if len(shown) == len(printed) else f", last {len(shown)} lines"
        head = f"it printed{part}"
        lines += [colour(f"  {head}:", "dim"), *(colour(f"  | {text}", "dim") for text in shown)]
    lines.append(f"  reproduce: {result.reproduce}")
    return "\n".join(lines)


def scores(stage: Stage, results: Sequence[Result]) -> dict[str, Any]:
    """Return the points of the questions that were tested, as what JSON holds."""
    worth = {question.id: question for question in stage.questions}
    rows = []
    for name, of_question in questions_of(stage, results).items():
        if not of_question:
            continue
        passed, tests = sum(result.passed for result in of_question), of_question[0].tests
        rows.append(
            {
                "question": name,
                "passed": passed,
                "run": len(of_question),
                "tests": tests,
                "points": worth[name].earned(passed, tests) if name in worth else 0,
                "of": worth[name].points if name in worth else 0,
            }
        )
    return {
        "stage": stage.name,
        "points": sum(row["points"] for row in rows),
        "of": sum(row["of"] for row in rows),
        "questions": rows,
    }


def summary(stage: Stage, results: Sequence[Result], short: bool = False) -> str:
    """Return the points of each question that was tested, and their sum."""
    record = scores(stage, results)
    lines = [
        f"{_mark(row['passed'] == row['run'])}  {row['question']:<28} "
        f"{row['passed']:>3} of {row['run']:<3} tests  {row['points']:>4g} of {row['of']} points"
        + (f"; {left} not run" if (left := row["tests"] - row["run"]) else "")
        for row in record["questions"]
    ]
    tests = sum(row["run"] for row in record["questions"])
    total = f"{stage.name}: {record['points']:g} of {record['of']} points"
    return f"{total}, {tests} tests pass" if short else "\n".join([*lines, total])


def _mark(good: bool) -> str:
    return colour("ok", "green") if good else colour("--", "red")


def matrix(stage: str, rows: Sequence[Row]) -> str:
    """Return the stages with their questions and points; `stage` is the one in progress."""
    lines = []
    for name in dict.fromkeys(row.stage for row in rows):
        own = [row for row in rows if row.stage == name]
        got, worth = sum(row.points for row in own), sum(row.worth for row in own)
        here = "   <- you are here" if name == stage else ""
        lines.append(colour(f"{name}   {got:g} of {worth} points{here}", "bold"))
        lines += [_row(row) for row in own]
    if old := sum(row.unknown for row in rows):
        lines.append(f"{old} tests were not run since your last change: `needle test` runs them")
    return "\n".join(lines)


def _row(row: Row) -> str:
    mark = colour("ok", "green") if row.done else colour("??", "yellow")
    mark = colour("--", "red") if row.failed else mark
    states = [(row.passed, "pass"), (row.failed, "fail"), (row.unknown, "not run")]
    counts = ", ".join(f"{count} {word}" for count, word in states if count) or "no tests"
    points_of = f"{row.points:>4g} of {row.worth:<3}" if row.counts else f"{'off':<11}"
    return f"  {mark}  {row.question:<26} {points_of}  {counts:<26} {row.title}"


def carried(before: str, stage: str, plan: Sequence[Carried]) -> str:
    """Return what became of the files when the next stage came."""
    lines = [f"{before} -> {stage}"]
    for outcome, words in _OUTCOMES.items():
        own = [entry for entry in plan if entry.outcome == outcome]
        if own:
            tint = "red" if outcome == "conflict" else "dim"
            lines.append(f"{len(own):>4}  {colour(words, tint)}")
        if outcome in ("merged", "conflict"):
            lines += [f"        {entry.path}" for entry in own]
    lines.append(f"then  needle test {stage}")
    return "\n".join(lines)


def checks(found: Sequence[Check]) -> str:
    """Return what the doctor found, each problem with its command."""
    lines = []
    for check in found:
        lines.append(f"{_mark(check.ok)}  {check.name:<15} {check.found}")
        if not check.ok:
            lines.append(f"    {'':<15} {check.fix}")
    problems = sum(not check.ok for check in found)
    lines.append(f"{problems} problems" if problems else "all is well")
    return "\n".join(lines)


def results_from(records: Sequence[dict[str, Any]]) -> list[Result]:
    """Return the results that records of JSON stand for."""
    return [
        Result(**{key: value for key, value in record.items() if key != "reproduce"})
        for record in records
    ]
