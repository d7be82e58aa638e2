"""Planted bugs and legitimate variants: a test kills each mutant, every test accepts a variant.

python -m needle_course.mutants [--stage hw1] [--question hw1.backward] [--markdown]
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from needle_course.errors import CourseError
from needle_course.offences import Offence, line_of
from needle_course.runner import Result
from needle_course.stages import Course, Stage, load_course
from needle_course.trees import Edit, StageTree, alone, one_at_a_time, regions_up_to

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KINDS = (
    "wrong sign",
    "missing sum over broadcast axes",
    "transposed",
    "ignored out_grad",
    "constant factor",
    "in-place change of out_grad",
    "wrong shape",
    "eval ignored",
    "off by one",
    "missing bounds check",
    "missing barrier",
)
# A mutant that ends so proves nothing about the tests.
NO_PROOF = ("not_implemented", "build_error", "harness_error")


@dataclass(frozen=True)
class Mutant:
    """A planted bug and the test that has to find it."""

    question: str
    kind: str
    killed_by: str
    edits: tuple[Edit, ...]
    where: str


@dataclass(frozen=True)
class Variant:
    """Another right answer, which every test has to accept."""

    about: str
    edits: tuple[Edit, ...]
    where: str


@dataclass(frozen=True)
class Row:
    """What a question's tests said of a mutant."""

    mutant: Mutant
    results: tuple[Result, ...]

    @property
    def killers(self) -> list[str]:
        """Return the tests that found it."""
        return [
            result.test
            for result in self.results
            if result.verdict != "pass" and result.verdict not in NO_PROOF
        ]

    @property
    def killed(self) -> bool:
        """Say whether the named test found it."""
        return self.mutant.killed_by in self.killers


def load_mutants(stage: Stage) -> list[Mutant]:
    """Read a stage's mutants.toml; raise CourseError for an entry without the form."""
    mutants = []
    for table, where in _entries(stage.folder / "mutants.toml", "mutants"):
        keys = {"question", "kind", "file", "find", "replace", "killed_by", "also"}
        _check_keys(table, keys, where)
        kind = table["kind"]
        if kind not in KINDS and not kind.startswith("other: "):
            raise CourseError(f"{where}: kind {kind!r}; write `other: ...` for one of your own")
        stage.question(table["question"])
        mutants.append(
            Mutant(table["question"], kind, table["killed_by"], _edits(table, where), where)
        )
    return mutants


def load_variants(stage: Stage) -> list[Variant]:
    """Read a stage's variants.toml; raise CourseError for an entry without the form."""
    variants = []
    for table, where in _entries(stage.folder / "variants.toml", "variants"):
        _check_keys(table, {"question", "about", "file", "find", "replace", "also", "kind"}, where)
        variants.append(Variant(table["about"], _edits(table, where), where))
    return variants


def _entries(path: Path, name: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each table of the file and `file:line` of its heading."""
    if not path.is_file():
        return
    text = path.read_text(encoding="utf-8")
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CourseError(f"{path}: {error}") from None
    if set(tables) - {name}:
        raise CourseError(f"{path}: holds {', '.join(sorted(tables))}; only [[{name}]] is known")
    headings = [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip().startswith(f"[[{name}]]")
    ]
    for table, number in zip(tables.get(name, []), headings, strict=True):
        yield table, f"{path}:{number}"


def _check_keys(table: dict[str, Any], known: set[str], where: str) -> None:
    optional = {"also", "kind", "question"} if "about" in known else {"also"}
    unknown, missing = set(table) - known, known - optional - set(table)
    if unknown or missing:
        raise CourseError(
            f"{where}: unknown keys {sorted(unknown)}, missing keys {sorted(missing)}"
        )


def _edits(table: dict[str, Any], where: str) -> tuple[Edit, ...]:
    """Return the edit of an entry, and those of its list `also`."""
    return tuple(
        Edit(part.get("file", table["file"]), part["find"], part["replace"], where)
        for part in (table, *table.get("also", []))
    )


def run_mutants(
    course: Course,
    stage: Stage,
    folder: Path,
    question: str | None = None,
    seen: Callable[[Row], None] = lambda row: None,
) -> list[Row]:
    """Plant each mutant of a stage in its filled tree and run the tests of its question."""
    rows = []
    mutants = [m for m in load_mutants(stage) if question in (None, m.question)]
    if mutants:
        tree = StageTree(course, stage, folder)
        tree.fill(regions_up_to(course, stage.name))
        for mutant in mutants:
            with tree.edited(mutant.edits):
                row = Row(mutant, tuple(tree.run([mutant.question])))
            seen(row)
            rows.append(row)
    return rows


@one_at_a_time
def survivors(course: Course, stage: Stage, folder: Path) -> list[Offence]:
    """Return the mutants that their test did not kill, and the tests that no mutant names."""
    offences = []
    try:
        rows = run_mutants(course, stage, folder)
    except CourseError as error:
        return [Offence(str(stage.folder / "mutants.toml"), str(error))]
    for row in rows:
        mutant = row.mutant
        if not row.killed:
            verdicts = {result.test: result.verdict for result in row.results}
            found = verdicts.get(mutant.killed_by, "no such test of the question")
            others = f"; killed by {', '.join(row.killers)}" if row.killers else ""
            offences.append(
                Offence(
                    mutant.where, f"{mutant.kind} survives {mutant.killed_by} ({found}){others}"
                )
            )
    with_mutants = {row.mutant.question for row in rows}
    for question in stage.questions:
        if question.id not in with_mutants:
            where = line_of(stage.folder / "stage.toml", question.id)
            offences.append(Offence(where, f"{question.id} has no mutant"))
    return offences


@one_at_a_time
def refused_variants(course: Course, stage: Stage, folder: Path) -> list[Offence]:
    """Return the tests that a legitimate variant does not pass; a stage has three or more."""
    path = stage.folder / "variants.toml"
    offences = []
    try:
        variants = load_variants(stage)
        if len(variants) < 3:
            offences.append(Offence(str(path), f"{len(variants)} variants; a stage has three"))
        if variants:
            tree = StageTree(course, stage, folder)
            tree.fill(regions_up_to(course, stage.name))
        for variant in variants:
            with tree.edited(variant.edits):
                for result in tree.run():
                    if result.verdict != "pass":
                        offences.append(
                            Offence(
                                variant.where,
                                f"{variant.about}: {result.test}: {result.verdict}: "
                                f"{result.message}",
                            )
                        )
    except CourseError as error:
        offences.append(Offence(str(path), str(error)))
    return offences


def table(rows: list[Row]) -> str:
    """Return the mutants and the tests that find them as a Markdown table."""
    lines = ["| question | planted bug | killed by | also by |", "| --- | --- | --- | --- |"]
    for row in rows:
        named = row.mutant.killed_by.split("::")[-1]
        others = [name.split("::")[-1] for name in row.killers if name != row.mutant.killed_by]
        killer = named if row.killed else f"**survives** {named}"
        cells = [row.mutant.question, row.mutant.kind, killer, ", ".join(others)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Plant the mutants that the command line asks for; exit status 1 if one survives."""
    parser = argparse.ArgumentParser(prog="needle mutate", description=__doc__)
    parser.add_argument("--stage", action="append", default=[], help="hw0 to hw5; all if not given")
    parser.add_argument("--question", help="the mutants of one question")
    parser.add_argument("--markdown", action="store_true", help="the whole table at the end")
    options = parser.parse_args(arguments)

    def seen(row: Row) -> None:
        if not options.markdown:
            outcome = "killed" if row.killed else "SURVIVES"
            line = f"{outcome:<9} {row.mutant.question}  {row.mutant.kind}  {row.mutant.killed_by}"
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    try:
        course = load_course()
        wanted = options.stage or ([options.question.split(".")[0]] if options.question else [])
        rows: list[Row] = []
        for name in wanted or course.by_name:
            folder = course.root / "build" / "gates" / name
            with alone(folder):
                rows += run_mutants(course, course.stage(name), folder, options.question, seen)
    except CourseError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if options.markdown:
        sys.stdout.write(table(rows) + "\n")
    return 0 if all(row.killed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
