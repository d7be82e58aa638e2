"""What every handout keeps to: it names each question and region, shows no line of an answer, its
links and pictures exist, so do the commands that it tells a student to type, and what these print
has the right numbers.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

from needle_course import handout_builder, leaks
from needle_course.collection import load_tests
from needle_course.offences import Offence
from needle_course.stages import Course, Stage

__all__ = ["faults"]

FENCE = re.compile(r"^(`{3,}).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
COMMAND = re.compile(r"(?:^|`|\$ )needle((?: +[^\s`#]+)+)", re.MULTILINE)
NAME = re.compile(r"hw\d(\.\w+)*(::[\w.]+)?")
PASSED = re.compile(r"\bok +(hw\d\.\w+) +(\d+) of (\d+) +tests? +(\d+) of (\d+) points")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def faults(course: Course, stage: Stage) -> list[Offence]:
    """Return what is wrong with the handout of a stage, as its author wrote it."""
    handout = handout_builder.source(course, stage)
    text = handout.text
    found = [(0, message) for message in _unnamed(stage, text)]
    prose = FENCE.sub(lambda fence: re.sub(r"[^\n]", " ", fence[0]), text)
    found += _broken_links(course, stage, prose)
    found += _unknown_commands(course, stage, text, _needle())
    found += _stale_output(stage, text)
    offences = [
        Offence(f"{handout.name}:{text.count(chr(10), 0, at) + 1}", what) for at, what in found
    ]
    return [*offences, *leaks.leaks_in_text(text, handout.name, leaks.secret_lines(course, stage))]


def _needle() -> Any:
    import typer.main

    from needle_course.commands import app

    return typer.main.get_command(app)


def _unnamed(stage: Stage, text: str) -> Iterator[str]:
    """Yield the questions and regions that a student would not hear of.

    A region may be named by its last word alone, as `ewise_mul` or `compact(a, out, view)`.
    """
    for question in stage.questions:
        if not _has_word(text, question.id):
            yield f"question {question.id} is never named"
        for region in question.regions:
            alone = rf"`{region.split('.')[-1]}[`(]"
            if not _has_word(text, region) and not re.search(alone, text):
                yield f"region {region} is never named"


def _has_word(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w|\.\w)", text) is not None


def _broken_links(course: Course, stage: Stage, prose: str) -> Iterator[tuple[int, str]]:
    """Yield links that lead nowhere in a workspace, where the handout lies in handouts/hwN."""
    places = {*course.files(stage.name), *course.data(stage.name)}
    for earlier in course.up_to(stage.name):
        places |= {f"handouts/{earlier.name}/{name}" for name in ("handout.md", "handout.ipynb")}
        tests = earlier.folder / "tests"
        places |= {
            f"tests/{earlier.name}/{path.relative_to(tests).as_posix()}"
            for path in tests.rglob("*.*")
        }
    slugs = {_slug(heading) for heading in HEADING.findall(prose)}
    for link in LINK.finditer(prose):
        target, _, anchor = link[1].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        if not target:
            if anchor not in slugs:
                yield link.start(), f"no heading gives #{anchor}"
        elif target.startswith("pictures/"):
            drawn = course.root / "hw_stages" / "pictures" / f"{PurePosixPath(target).stem}.py"
            if not drawn.is_file() or not target.endswith(".svg"):
                yield link.start(), f"no code draws {target}"
        elif not _reachable(f"handouts/{stage.name}/{target}", places):
            yield link.start(), f"{target} is not in a workspace of {stage.name}"


def _slug(heading: str) -> str:
    """Return the anchor that a heading gets where Markdown is shown."""
    words = re.sub(r"[^\w\- ]", "", heading.lower())
    return words.replace(" ", "-")


def _reachable(path: str, places: set[str]) -> bool:
    """Return whether a path with .. in it is a file of the workspace or a folder of one."""
    parts: list[str] = []
    for part in PurePosixPath(path).parts:
        if part == "..":
            if not parts:
                return False
            parts.pop()
        else:
            parts.append(part)
    place = "/".join(parts)
    return place in places or any(other.startswith(f"{place}/") for other in places)


def _unknown_commands(
    course: Course, stage: Stage, text: str, needle: Any
) -> Iterator[tuple[int, str]]:
    """Yield commands, options and names of questions that `needle` would refuse."""
    knows = _names(course, stage)
    for line in COMMAND.finditer(text):
        words = line[1].split()
        command = needle.commands.get(words[0])
        if command is None:
            if re.fullmatch(r"[a-z]+", words[0]) and "`needle" in line[0] or "$ " in line[0]:
                yield line.start(), f"needle has no command {words[0]}"
            continue
        if command.context_settings.get("ignore_unknown_options"):
            continue
        options = {option for part in command.params for option in part.opts}
        for word in words[1:]:
            if word.startswith("-") and word.partition("=")[0] not in options:
                yield line.start(), f"needle {words[0]} has no option {word}"
            elif NAME.fullmatch(word) and not knows(word):
                yield line.start(), f"no question, region or test is called {word}"


def _stale_output(stage: Stage, text: str) -> Iterator[tuple[int, str]]:
    """Yield lines that show how a question passes with other numbers than it has."""
    tests = load_tests(sorted((stage.folder / "tests").glob("test_*.py")))
    for question in stage.questions:
        count = sum(test.question == question.id for test in tests.values())
        right = (count, count, question.points, question.points)
        for line in PASSED.finditer(text):
            if line[1] == question.id and tuple(map(int, line.groups()[1:])) != right:
                yield line.start(), f"{question.id} has {count} tests and {question.points} points"


def _names(course: Course, stage: Stage) -> Callable[[str], bool]:
    """Return whether a word names a stage, or a question, region or test up to this stage."""
    names = set(course.by_name)
    for each in course.up_to(stage.name):
        for question in each.questions:
            names |= {question.id, *question.regions}
    tests: set[str] = set()

    def knows(word: str) -> bool:
        if "::" in word and not tests:
            for each in course.up_to(stage.name):
                tests.update(load_tests(sorted((each.folder / "tests").glob("test_*.py"))))
        return word in names or word in tests

    return knows
