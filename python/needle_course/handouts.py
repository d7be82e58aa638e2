"""Handouts as students get them: the cells of `hw_stages/hwN/handout.md` are run on the filled
stage, and what they print is put below them, in Markdown and in a notebook.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from needle_course.errors import CourseError

__all__ = ["Cell", "HandoutError", "Handout", "read", "run_cells"]

OPENING = re.compile(r"(?P<ticks>`{3,})(?P<info>[^`]*)")
MAX_LINES = 60
SECONDS = 300
# What differs from run to run has no place in a handout.
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


class HandoutError(CourseError):
    """A handout that cannot be built; the message begins with file:line."""


@dataclass
class Cell:
    """One fence of Python that is run: where its code starts and where its fence ends."""

    line: int  # of the first line of code, counted from 1
    end: int  # the line of the closing fence
    source: str
    raises: bool
    stdout: str = ""
    result: str = ""
    error: str = ""

    @property
    def output(self) -> str:
        """What the handout shows below the cell, without a line end."""
        parts = (self.stdout.rstrip("\n"), self.result, self.error)
        return "\n".join(part for part in parts if part)


@dataclass
class Handout:
    """The text of one handout and its cells."""

    path: Path
    name: str  # the path as messages show it
    text: str
    cells: list[Cell] = field(default_factory=list)

    def with_outputs(self) -> str:
        """Return the text with the output of each cell in a fence below it."""
        lines = self.text.split("\n")
        for cell in reversed(self.cells):
            if cell.output:
                lines[cell.end : cell.end] = ["", *_fenced(cell.output)]
        return "\n".join(lines)


def _fenced(output: str) -> list[str]:
    ticks = "```"
    while ticks in output:
        ticks += "`"
    return [f"{ticks}text", *output.split("\n"), ticks]


def read(path: Path, name: str | None = None) -> Handout:
    """Return a handout with its cells, not yet run.

    Raises:
        HandoutError: for a fence that never ends or a word after ```python that means nothing.
    """
    name = name or str(path)
    text = path.read_text(encoding="utf-8")
    handout = Handout(path, name, text)
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        number += 1
        opening = OPENING.fullmatch(lines[number - 1].rstrip())
        if not opening:
            continue
        start = number
        while number < len(lines) and lines[number].rstrip() != opening["ticks"]:
            number += 1
        if number == len(lines):
            raise HandoutError(f"{name}:{start}: this fence never ends")
        language, *words = opening["info"].split() or [""]
        if language == "python" and words not in ([], ["raises"], ["no-run"]):
            raise HandoutError(
                f"{name}:{start}: ```python {' '.join(words)} means nothing; it is ```python, "
                "```python raises or ```python no-run"
            )
        number += 1
        if language == "python" and words != ["no-run"]:
            source = "\n".join(lines[start : number - 1])
            handout.cells.append(Cell(start + 1, number, source, words == ["raises"]))
    return handout


def run_cells(handout: Handout, tree: Path, module: str, environment: Mapping[str, str]) -> None:
    """Run the cells of a handout in one fresh interpreter, with a filled stage tree as its working
    directory, and note down what they print.

    Args:
        module: the module of the stage (`needle`, `simple_ml`), which must lie in `tree`.
        environment: the variables of the stage.

    Raises:
        HandoutError: if a cell raises, prints too much or what differs from run to run.
    """
    if not handout.cells:
        return
    tree = tree.resolve()
    job = {
        "name": handout.name,
        "module": module,
        "path": [str(folder) for folder in search_path(tree)],
        "cells": [
            {"line": cell.line, "source": cell.source, "raises": cell.raises}
            for cell in handout.cells
        ],
    }
    done = _answer(job, tree, environment, handout.name)
    for cell, outcome in zip(handout.cells, done["cells"], strict=False):
        if outcome["trace"]:
            raise HandoutError(_failure(handout, cell, outcome["trace"]))
        cell.stdout, cell.result, cell.error = (
            outcome[key] for key in ("stdout", "result", "error")
        )
        _refuse_unstable(handout, cell, tree)
    origin = done["origin"]
    if origin and not Path(origin).resolve().is_relative_to(tree):
        raise HandoutError(f"{handout.name}:1: {module} came from {origin}, not from {tree}")


def search_path(tree: Path) -> list[Path]:
    """Return the folders that a program of a stage tree imports from."""
    return [tree / "python", tree / "apps", tree / "src", tree]


def _answer(
    job: dict[str, Any], tree: Path, environment: Mapping[str, str], name: str
) -> dict[str, Any]:
    """Give a job to a fresh interpreter and return what it reports."""
    try:
        made = subprocess.run(
            [sys.executable, "-s", str(Path(__file__).with_name("cells.py"))],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            cwd=tree,
            env=variables(environment),
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise HandoutError(f"{name}:1: its cells ran longer than {SECONDS} s") from None
    if made.returncode != 0:
        raise HandoutError(
            f"{name}:1: the interpreter of its cells ended with {made.returncode}\n"
            f"{made.stderr.strip()}"
        )
    answer: dict[str, Any] = json.loads(made.stdout)
    return answer


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a cell: the stage's variables, one thread, nothing of ours."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "NEEDLE_", "LC_")) and key != "LANG"
    }
    fixed = {
        "LC_ALL": "C.UTF-8",
        "MPLBACKEND": "agg",
        "NEEDLE_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }
    return {**kept, **fixed, **environment}


def _failure(handout: Handout, cell: Cell, trace: str) -> str:
    """Return the message for a cell that raised: the last line of the handout that ran, first."""
    numbers = re.findall(rf'File "{re.escape(handout.name)}", line (\d+)', trace)
    line = int(numbers[-1]) if numbers else cell.line
    return f"{handout.name}:{line}: this cell raised\n{trace.rstrip()}"


def _refuse_unstable(handout: Handout, cell: Cell, tree: Path) -> None:
    where = f"{handout.name}:{cell.line}"
    if cell.output.count("\n") >= MAX_LINES:
        raise HandoutError(f"{where}: the cell prints more than {MAX_LINES} lines; show less")
    if ADDRESS.search(cell.output):
        raise HandoutError(f"{where}: the cell prints an address, another one in each run")
    if str(tree) in cell.output:
        raise HandoutError(f"{where}: the cell prints the folder that it happens to run in")
