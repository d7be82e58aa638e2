"""The three-way merge that takes a student's work into the next stage; no line of it is lost."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from needle_course.answers import CLOSES, OPENS

Lines = list[str]
Chunk = tuple[Lines, Lines, Lines]


@dataclass(frozen=True)
class Conflict:
    """A place that the student and the course both changed: the result holds `mine`."""

    line: int  # of the result, counted from 1, where `mine` begins
    base: str
    mine: str
    theirs: str


def merge(base: str, mine: str, theirs: str) -> tuple[str, list[Conflict]]:
    """Merge the student's text and the next starter's, both grown from `base`.

    Returns the merged text and the conflicts. Where both sides changed the same lines in different
    ways, the student's text stands and the conflict holds the other one. Where both only added
    lines, both stay, the student's first.
    """
    if mine in (base, theirs):
        return theirs, []
    if theirs == base:
        return mine, []
    result: Lines = []
    conflicts: list[Conflict] = []
    for chunk in _chunks(base, mine, theirs):
        old, own, other = chunk
        if own == old:
            result += other
        elif other in (old, own):
            result += own
        elif not old:
            result += own + other
        else:
            conflicts.append(Conflict(len(result) + 1, *("".join(lines) for lines in chunk)))
            result += own
    return _joined(result), conflicts


def _joined(lines: Lines) -> str:
    """Join lines; one that ended a file without a line end gets one if others now follow it."""
    last = len(lines) - 1
    return "".join(
        line if index == last or line.endswith("\n") else line + "\n"
        for index, line in enumerate(lines)
    )


def _lines(text: str) -> Lines:
    """Cut a text at its line ends only, which stay; other separators belong to their line."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _chunks(*texts: str) -> Iterator[Chunk]:
    """Cut base, mine and theirs at what all three have; yield the pieces side by side.

    The marker lines are cut at first: their ids are unique, while code repeats itself.
    """
    base, mine, theirs = (_lines(text) for text in texts)
    b = m = t = 0
    for cut_b, cut_m, cut_t in [*_anchors(base, mine, theirs), (len(base), len(mine), len(theirs))]:
        yield from _between_anchors(base[b:cut_b], mine[m:cut_m], theirs[t:cut_t])
        b, m, t = cut_b, cut_m, cut_t


def _anchors(*texts: Lines) -> Iterator[tuple[int, ...]]:
    """Yield where each marker line stands in the three texts, as far as their order agrees."""
    places = [_marker_places(lines) for lines in texts]
    reached: tuple[int, ...] = (-1, -1, -1)
    for key in places[0]:
        if all(key in place for place in places):
            here = tuple(place[key] for place in places)
            if all(new > old for new, old in zip(here, reached, strict=True)):
                yield here
                reached = here


def _marker_places(lines: Lines) -> dict[tuple[str, str], int]:
    """Return {("begin" or "end", region): index of the line}."""
    places: dict[tuple[str, str], int] = {}
    region = ""
    for index, line in enumerate(lines):
        match = OPENS.fullmatch(line)
        if match:
            region = match["id"]
            places.setdefault(("begin", region), index)
        elif region and CLOSES.fullmatch(line):
            places.setdefault(("end", region), index)
            region = ""
    return places


def _between_anchors(base: Lines, mine: Lines, theirs: Lines) -> Iterator[Chunk]:
    """Cut the three texts at the lines that all have; yield (base, mine, theirs) of each piece."""
    own, other = _matches(base, mine), _matches(base, theirs)
    b = m = t = 0
    for index in sorted(own.keys() & other.keys()):
        if (b, m, t) != (index, own[index], other[index]):
            yield base[b:index], mine[m : own[index]], theirs[t : other[index]]
        yield [base[index]], [mine[own[index]]], [theirs[other[index]]]
        b, m, t = index + 1, own[index] + 1, other[index] + 1
    if (b, m, t) != (len(base), len(mine), len(theirs)):
        yield base[b:], mine[m:], theirs[t:]


def _matches(base: Lines, text: Lines) -> dict[int, int]:
    """Return {line of base: line of text} of the lines that they share, in rising order."""
    matcher = SequenceMatcher(None, base, text, autojunk=False)
    return {
        block.a + step: block.b + step
        for block in matcher.get_matching_blocks()
        for step in range(block.size)
    }
