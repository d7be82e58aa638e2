"""The walk of a student through all stages, with nothing but the wheel: question by question, with
the reference's answers and with the plain student's, and with random halves of them.

    python -m needle_course.walk [--wheel FILE] [--answers reference|plain] [--stage hw1]
"""

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from needle_course import release
from needle_course.answers import fill_text, read_answers, read_text
from needle_course.errors import CourseError
from needle_course.markers import comment_prefix
from needle_course.offences import Offence
from needle_course.stages import Course, Stage, load_course
from needle_course.starter import tree_texts

PARTIAL = 3  # random halves of the answers for each step from stage to stage
SUFFIXES = {".py", ".cc", ".cpp", ".cu", ".cuh", ".h", ".def"}


class Needle:
    """The tool as a student has it: the wheel in an environment where the repository is not."""

    def __init__(self, folder: Path, wheel: Path):
        venv.create(folder, symlinks=True)
        self.bin = folder / "bin"
        self.home = folder / "home"
        self.home.mkdir()
        # The packages of this interpreter, without what their .pth files add: no editable install.
        (site,) = folder.glob("lib/python*/site-packages")
        outer = {path for path in sys.path if path.endswith(("site-packages", "dist-packages"))}
        (site / "packages.pth").write_text("".join(f"{path}\n" for path in sorted(outer)))
        command = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install"]
        command += ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
        subprocess.run([*command, str(wheel)], check=True)

    def run(self, *arguments: str, within: Path, allowed: Sequence[int] = (0,)) -> list[Any]:
        """Run `needle` with --json in a folder; return the values that it printed, one a line.

        Raises CourseError for an exit status that is not allowed.
        """
        environment = {"PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home)}
        done = subprocess.run(
            [str(self.bin / "needle"), *arguments, "--json"],
            cwd=within,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in allowed:
            said = (done.stdout + done.stderr).strip()[-2000:]
            raise CourseError(f"[walk] needle {' '.join(arguments)}: {done.returncode}\n{said}")
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class Walk:
    """One walk in a workspace of its own; `offences` collects what went wrong."""

    def __init__(self, course: Course, needle: Needle, folder: Path, answers: Mapping[str, str]):
        self.course, self.needle, self.folder, self.answers = course, needle, folder, answers
        self.offences: list[Offence] = []

    def fail(self, where: str, message: str) -> None:
        self.offences.append(Offence(where, message))

    def stages(self, names: Sequence[str]) -> None:
        """Walk through stages, the first from its starter with the earlier answers filled in."""
        first = self.course.stage(names[0])
        self.needle.run("start", first.name, str(self.folder), within=self.folder.parent)
        earlier = {name for name in self.answers if name.split(".")[0] < first.name}
        given = {region: self.answers[region] for region in earlier}
        put_answers(self.course, first, self.folder, given)
        for name in names:
            stage = self.course.stage(name)
            if stage is not first:
                self.next_stage(stage)
            started = time.perf_counter()
            self.questions(stage)
            say(f"  {name}: {len(stage.questions)} questions, {seconds_since(started)}")

    def questions(self, stage: Stage) -> None:
        """Answer one question after the other; test all of the stage after each."""
        answered: set[str] = set()
        for question in stage.questions:
            missing = [region for region in question.regions if region not in self.answers]
            if missing:
                self.fail(question.id, f"there is no answer to {', '.join(missing)}")
            given = {name: self.answers[name] for name in question.regions if name in self.answers}
            put_answers(self.course, stage, self.folder, given)
            answered.add(question.id)
            records = self.needle.run("test", stage.name, within=self.folder, allowed=(0, 1, 3))
            results = [record for record in records if "verdict" in record]
            for result in results:
                self.judge(result, answered, question.id)
            tested = {result["question"] for result in results}
            for other in stage.questions:
                if other.id not in tested:
                    self.fail(other.id, "has no test")
        scores = [record for record in records if "points" in record]
        points = f"{scores[-1]['points']:g}" if scores else "no"
        if points != "100":
            self.fail(stage.name, f"ends with {points} points")

    def judge(self, result: Mapping[str, Any], answered: set[str], last: str) -> None:
        """Note an answered question's test that fails, or a later question's that passes."""
        passed = result["verdict"] == "pass"
        if result["question"] in answered and not passed:
            said = f"{result['verdict']}: {result['message']}"
            self.fail(result["test"], f"after {last} was answered: {said}")
        if result["question"] not in answered and passed:
            self.fail(result["test"], f"passes when only {last} and earlier are answered")

    def next_stage(self, stage: Stage) -> None:
        """Go on to a stage; note answers that did not come along, and any conflict."""
        before = student_texts(self.folder)
        (record,) = self.needle.run("next", within=self.folder, allowed=(0, 8))
        for file in record["files"]:
            if file["outcome"] == "conflict":
                self.fail(file["path"], f"conflicts on the way to {stage.name}")
        for place, region in lost_answers(before, student_texts(self.folder)):
            self.fail(place, f"the answer to {region} was lost on the way to {stage.name}")


def put_answers(course: Course, stage: Stage, folder: Path, answers: Mapping[str, str]) -> None:
    """Write answers into the files of a workspace."""
    for place in course.files(stage.name):
        path = folder / place
        if comment_prefix(place) and path.is_file():
            text = path.read_text(encoding="utf-8")
            filled = fill_text(text, answers, place)
            if filled != text:
                path.write_text(filled, encoding="utf-8")


def student_texts(folder: Path) -> dict[str, str]:
    """Return {place: text} of the sources of a workspace."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.suffix in SUFFIXES and not {".needle", "tests"} & set(path.parts)
    }


def lost_answers(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (place, region) of the answers that are not what they were."""
    kept = {
        region: answer
        for place, text in after.items()
        for region, answer in read_text(text).items()
    }
    for place, text in before.items():
        for region, answer in read_text(text, place).items():
            if kept.get(region) != answer:
                yield place, region


# --- random halves ---


def carry_random_halves(
    course: Course, needle: Needle, folder: Path, answers: Mapping[str, str], names: Sequence[str]
) -> list[Offence]:
    """Take random halves of the answers, and lines of the student's own, from stage to stage."""
    offences: list[Offence] = []
    for name in names[:-1]:
        for seed in range(PARTIAL):
            place = folder / f"{name}-{seed}"
            offences += _carry_half(course, course.stage(name), needle, place, answers, seed)
            shutil.rmtree(place)
    return offences


def _carry_half(
    course: Course,
    stage: Stage,
    needle: Needle,
    folder: Path,
    answers: Mapping[str, str],
    seed: int,
) -> Iterator[Offence]:
    rng = random.Random(f"{stage.name} {seed}")
    needle.run("start", stage.name, str(folder), within=folder.parent)
    starters = student_texts(folder)
    half = {region: text for region, text in answers.items() if rng.random() < 0.5}
    put_answers(course, stage, folder, half)
    for place, text in student_texts(folder).items():
        if comment_prefix(place) and rng.random() < 0.7:
            written = with_own_lines(text, place, rng)
            (folder / place).write_text(written, encoding="utf-8")
    before = student_texts(folder)
    needle.run("next", within=folder, allowed=(0, 8))
    after = student_texts(folder)
    where = f"random half {seed} of {stage.name}"
    for place, text in before.items():
        added = Counter(text.splitlines()) - Counter(starters[place].splitlines())
        for line in added - Counter(after.get(place, "").splitlines()):
            if line.strip():
                yield Offence(f"{where}, {place}", f"lost on the way on: {line.strip()}")


def with_own_lines(text: str, place: str, rng: random.Random) -> str:
    """Return a text with comments of a student's own between its lines, each with its number."""
    sign = comment_prefix(place) or "#"
    lines = text.splitlines(keepends=True)
    for number in range(rng.randint(1, 4)):
        at = rng.randint(0, len(lines))
        if not "".join(lines[:at]).rstrip(" \n").endswith("\\"):
            lines.insert(at, f"{sign} my line {number} at {at}\n")
    return "".join(lines)


# --- whose answers ---


def reference_answers(course: Course) -> dict[str, str]:
    """Return the answers of the repository, as each stage that asks for them shows them."""
    answers: dict[str, str] = {}
    for stage in course.stages:
        for place, text in tree_texts(course, stage.name, True).items():
            for region, answer in read_text(text, place).items():
                answers.setdefault(region, answer)
    return answers


def plain_answers(course: Course) -> dict[str, str]:
    """Return the plain student's answers; raise CourseError if there are none."""
    folder = course.root / "hw_stages" / "plain_student"
    files = sorted(path for path in folder.glob("hw*") if re.match(r"hw\d", path.name))
    if not files:
        raise CourseError(f"[walk] {folder} has no hwN.py: the plain student has not answered")
    return read_answers(files)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def seconds_since(started: float) -> str:
    """Return a time span as text."""
    return f"{time.perf_counter() - started:.1f} s"


def walk(course: Course, wheel: Path, whose: Iterable[str], names: Sequence[str]) -> list[Offence]:
    """Walk with each set of answers through the stages; return what went wrong."""
    offences: list[Offence] = []
    read = {"reference": reference_answers, "plain": plain_answers}
    with tempfile.TemporaryDirectory(prefix="needle-walk-") as temporary:
        folder = Path(temporary).resolve()
        needle = Needle(folder / "environment", wheel)
        for name in whose:
            started = time.perf_counter()
            say(f"with the answers of {name}")
            try:
                answers = read[name](course)
                journey = Walk(course, needle, folder / name, answers)
                journey.stages(names)
                found = journey.offences
                found += carry_random_halves(course, needle, folder, answers, names)
            except CourseError as error:
                found = [Offence(name, str(error))]
            for offence in found:
                say(f"    {offence}")
            say(f"  {len(found)} offences, {seconds_since(started)}")
            offences += found
    return offences


def main(arguments: list[str] | None = None) -> int:
    """Walk as the command line says; exit status 1 if something went wrong."""
    parser = argparse.ArgumentParser(prog="needle walk", description=__doc__)
    parser.add_argument("--wheel", type=Path, help="the wheel; built from here if not given")
    parser.add_argument("--answers", action="append", choices=["reference", "plain"])
    parser.add_argument("--stage", action="append", help="hw0 to hw5, in order; all if not given")
    options = parser.parse_args(arguments)
    try:
        course = load_course()
        names = options.stage or list(course.by_name)
        with tempfile.TemporaryDirectory(prefix="needle-wheel-") as temporary:
            wheel = options.wheel or release.build_release(course, Path(temporary), None)
            offences = walk(course, wheel, options.answers or ["reference", "plain"], names)
    except CourseError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
