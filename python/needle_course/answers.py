"""Answers: the text between the YOUR SOLUTION lines, read from files and put into files."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from needle_course.errors import CourseError
from needle_course.markers import comment_prefix

OPENS = re.compile(r"(?P<indent>[ \t]*)(###|///) BEGIN YOUR SOLUTION \((?P<id>[\w.]+)\)\s*")
CLOSES = re.compile(r"[ \t]*(###|///) END YOUR SOLUTION\s*")
ALMOST = re.compile(r"\s*(#+|//+)\s*(BEGIN|END)\b.*SOLUTION", re.IGNORECASE)


class AnswerError(CourseError):
    """Marker lines of a student's file that were damaged; the message names file:line."""


@dataclass(frozen=True)
class Block:
    """One region of a file: the indices of its marker lines, its id and its indentation."""

    id: str
    begin: int
    end: int
    indent: str


def blocks(text: str, name: str = "text") -> list[Block]:
    """Return the regions of a starter's or student's file; raise AnswerError for damaged lines."""
    found: list[Block] = []
    opened: tuple[int, re.Match[str]] | None = None
    for index, line in enumerate(text.splitlines()):
        begins, ends = OPENS.fullmatch(line), CLOSES.fullmatch(line)
        if begins and opened is None:
            opened = index, begins
        elif ends and opened is not None:
            begin, match = opened
            found.append(Block(match["id"], begin, index, match["indent"]))
            opened = None
        elif begins or ends or ALMOST.match(line):
            raise AnswerError(
                f"[answers] {name}:{index + 1}: `{line.strip()}` is out of place; "
                f"restore the marker lines as the starter has them"
            )
    if opened is not None:
        raise AnswerError(
            f"[answers] {name}:{opened[0] + 1}: {opened[1]['id']} has no END YOUR SOLUTION; "
            f"restore the marker lines as the starter has them"
        )
    return found


def read_text(text: str, name: str = "text") -> dict[str, str]:
    """Return {region: text of its answer} of one file's text.

    Raises AnswerError for damaged marker lines and for a region that comes twice.
    """
    lines = text.splitlines(keepends=True)
    answers: dict[str, str] = {}
    for block in blocks(text, name):
        if block.id in answers:
            raise AnswerError(f"[answers] {name}:{block.begin + 1}: {block.id} comes a second time")
        answers[block.id] = "".join(lines[block.begin + 1 : block.end])
    return answers


def read_answers(paths: Path | str | Iterable[Path | str]) -> dict[str, str]:
    """Return {region: text of its answer} of files, and of the files of folders, of any kind.

    Raises AnswerError for damaged marker lines and for a region that two files hold.
    """
    answers: dict[str, str] = {}
    for path in _files(paths):
        for region, text in read_text(_text(path), str(path)).items():
            if region in answers:
                raise AnswerError(f"[answers] {path}: {region} comes a second time")
            answers[region] = text
    return answers


def fill(tree: Path | str, answers: Mapping[str, str]) -> None:
    """Put answers into the regions of a tree, in place; other regions stay as they are.

    Raises AnswerError for an answer to a region that the tree does not have.
    """
    missing = set(answers)
    for path in _files(tree):
        text = _text(path)
        filled = fill_text(text, answers, str(path))
        missing -= {block.id for block in blocks(text, str(path))}
        if filled != text:
            path.write_bytes(filled.encode("utf-8", "surrogateescape"))
    if missing:
        raise AnswerError(f"[answers] {tree} has no region {min(missing)}")


def fill_text(text: str, answers: Mapping[str, str], name: str = "text") -> str:
    """Return a file's text with answers put into its regions."""
    lines = text.splitlines(keepends=True)
    for block in reversed(blocks(text, name)):
        if block.id in answers:
            lines[block.begin + 1 : block.end] = [answers[block.id]]
    return "".join(lines)


def _files(paths: Path | str | Iterable[Path | str]) -> Iterator[Path]:
    for path in [paths] if isinstance(paths, Path | str) else paths:
        path = Path(path)
        if path.is_dir():
            below = sorted(path.rglob("*"))
            yield from (file for file in below if file.is_file() and comment_prefix(file))
        else:
            yield path


def _text(path: Path) -> str:
    """Read a student's file as it is: line ends and bytes that are no UTF-8 stay."""
    return path.read_bytes().decode("utf-8", "surrogateescape")
