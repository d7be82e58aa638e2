"""The stage syntax of the sources: which lines a stage has, and which of them are answers.

Directives are whole lines, `### ...` or `/// ...`. The repository is the stage `full`.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from needle_course.errors import MarkerError

STAGES = ("hw0", "hw1", "hw2", "hw3", "hw4", "hw5", "full")
SLASHES = {".cc", ".cpp", ".cu", ".cuh", ".h", ".def"}
HASHES = {".py", ".cmake", ".toml"}
HASH_NAMES = {"Makefile", "CMakeLists.txt"}
TEXT = "TEXT"
STUB = "STUB"
GUARDS = ("SINCE", "UNTIL")
SOLUTION = "SOLUTION"

REGION_ID = re.compile(r"(hw\d)(\.[a-z0-9_]+)+")
DIRECTIVE = re.compile(
    r"(?P<indent>\s*)(?P<marker>###|///) "
    r"(?P<word>BEGIN SOLUTION|END SOLUTION|STUB|SINCE|END SINCE|UNTIL|END UNTIL)"
    r"(?: (?P<argument>\S+))?"
)
# What someone may have meant as a directive: other signs, a word too many, small letters.
NEAR_MISS = re.compile(
    r"^\s*(#+|//+)\s*((BEGIN|END|STUB|SINCE|UNTIL)\b|(?i:(begin|end)\b.*\bsolution\b))"
    r"|(###|///)\s*(BEGIN|END|STUB|SINCE|UNTIL)\b"
)


@dataclass(frozen=True)
class Line:
    """One line of the source that is no directive."""

    number: int
    text: str


@dataclass(frozen=True)
class Guard:
    """A SINCE or UNTIL block."""

    number: int
    kind: str
    stage: str
    body: "tuple[Node, ...]"

    def shows(self, stage: str) -> bool:
        """Say whether a stage has the text of this block."""
        own, asked = STAGES.index(self.stage), STAGES.index(stage)
        return asked >= own if self.kind == "SINCE" else asked <= own


@dataclass(frozen=True)
class Solution:
    """A SOLUTION block: the answer to one region, and its stub if it has its own."""

    number: int
    id: str
    indent: str
    body: "tuple[Node, ...]"
    stub: "tuple[Node, ...] | None"

    @property
    def stage(self) -> str:
        """Return the stage that asks for this region."""
        return self.id.split(".")[0]


Node = Line | Guard | Solution


def comment_prefix(path: str | PurePath) -> str | None:
    """Return `#` or `//`, as the kind of file has it, or None for a file without stage syntax."""
    path = PurePath(path)
    if path.suffix in SLASHES:
        return "//"
    return "#" if path.suffix in HASHES or path.name in HASH_NAMES else None


def parse(text: str, prefix: str = "#", name: str = "text") -> tuple[Node, ...]:
    """Read the directives of a source text; `name` is the file that messages speak of.

    Raises MarkerError for anything that is not exactly the syntax.
    """
    return _Parser(text, prefix, name).parse()


class _Parser:
    """Recursive descent over the lines: one method for each kind of block."""

    def __init__(self, text: str, prefix: str, name: str):
        self.lines = text.splitlines()
        self.marker = {"#": "###", "//": "///"}[prefix]
        self.name = name
        self.at = 0
        self.seen: dict[str, int] = {}
        self.in_solution = False

    def fail(self, number: int, message: str) -> MarkerError:
        return MarkerError(f"[markers] {self.name}:{number}: {message}")

    def parse(self) -> tuple[Node, ...]:
        body, closing = self.block()
        if closing is not None:
            raise self.fail(self.at, f"{closing} closes nothing; write its opening line or drop it")
        return body

    def block(self) -> tuple[tuple[Node, ...], str | None]:
        """Read nodes up to an END or STUB; return them and that word, or None at the end."""
        nodes: list[Node] = []
        while self.at < len(self.lines):
            text = self.lines[self.at]
            self.at += 1
            directive = self.directive(text)
            if directive is None:
                nodes.append(Line(self.at, text))
                continue
            word, argument, indent = directive
            if word == STUB or word.startswith("END"):
                return tuple(nodes), word
            nodes.append(
                self.solution(argument, indent)
                if word == "BEGIN SOLUTION"
                else self.guard(word, argument)
            )
        return tuple(nodes), None

    def directive(self, text: str) -> tuple[str, str, str] | None:
        """Return (word, argument, indent), or None for an ordinary line."""
        match = DIRECTIVE.fullmatch(text)
        if match is None or match["marker"] != self.marker:
            if NEAR_MISS.search(text):
                raise self.fail(
                    self.at,
                    f"`{text.strip()}` is almost a directive; "
                    f"write exactly `{self.marker} WORD [argument]` on a line of its own",
                )
            return None
        word, argument = match["word"], match["argument"] or ""
        takes_one = word in (*GUARDS, "BEGIN SOLUTION")
        if takes_one != bool(argument):
            rule = "needs one argument" if takes_one else "takes no argument"
            raise self.fail(self.at, f"`{text.strip()}`: {word} {rule}")
        return word, argument, match["indent"]

    def guard(self, kind: str, stage: str) -> Guard:
        start = self.at
        if stage not in STAGES:
            raise self.fail(start, f"unknown stage {stage}; the stages are {', '.join(STAGES)}")
        if (kind, stage) in (("SINCE", "hw0"), ("UNTIL", "full")):
            raise self.fail(start, f"{kind} {stage} holds at every stage; drop it")
        body, closing = self.block()
        self.expect(closing, f"END {kind}", start, f"{kind} {stage}")
        return Guard(start, kind, stage, body)

    def solution(self, region: str, indent: str) -> Solution:
        start = self.at
        if self.in_solution:
            raise self.fail(start, f"{region} begins inside another SOLUTION; end that one first")
        if not REGION_ID.fullmatch(region):
            raise self.fail(start, f"{region} is no region id; write hwN.name in small letters")
        if region.split(".")[0] not in STAGES:
            raise self.fail(start, f"{region} names an unknown stage; they are {', '.join(STAGES)}")
        if region in self.seen:
            raise self.fail(
                start, f"{region} was already at line {self.seen[region]}; ids are unique"
            )
        self.seen[region] = start
        self.in_solution = True
        body, closing = self.block()
        stub = None
        if closing == STUB:
            stub, closing = self.block()
        self.expect(closing, "END SOLUTION", start, f"BEGIN SOLUTION {region}")
        self.in_solution = False
        return Solution(start, region, indent, body, stub)

    def expect(self, closing: str | None, wanted: str, start: int, opened: str) -> None:
        if closing is None:
            raise self.fail(start, f"{opened} is never closed; write {self.marker} {wanted}")
        if closing != wanted:
            raise self.fail(
                self.at, f"{closing} inside {opened} of line {start}; {wanted} has to come first"
            )


def solutions(nodes: Collection[Node]) -> Iterator[Solution]:
    """Yield every SOLUTION block below `nodes`, in the order of the file."""
    for node in nodes:
        if isinstance(node, Solution):
            yield node
        elif isinstance(node, Guard):
            yield from solutions(node.body)


GAP = None  # stands in a list of lines where the projection left lines out


def project(
    text: str,
    stage: str,
    filled: bool | Collection[str] = False,
    prefix: str = "#",
    name: str = "text",
) -> str:
    """Return what `stage` has of a source text.

    filled: True keeps every answer, a collection of region ids those answers; others show stubs.
    Raises MarkerError for a malformed source and for a region that the stage must not see yet.
    """
    projection = _Projection(stage, filled, prefix, name)
    projection.emit(parse(text, prefix, name), commented=False)
    lines = close_gaps(projection.lines, prefix)
    return "".join(f"{line}\n" for line in lines)


class _Projection:
    """Collects the lines of one stage's form of a file."""

    def __init__(self, stage: str, filled: bool | Collection[str], prefix: str, name: str):
        self.stage, self.filled, self.prefix, self.name = stage, filled, prefix, name
        self.lines: list[str | None] = []

    def emit(self, nodes: Collection[Node], commented: bool) -> None:
        for node in nodes:
            if isinstance(node, Line):
                self.lines.append(self.uncomment(node) if commented else node.text)
            elif isinstance(node, Solution):
                self.emit_solution(node, commented)
            else:
                self.lines.append(GAP)
                if node.shows(self.stage):
                    self.emit(node.body, commented or node.kind == "UNTIL")
                    self.lines.append(GAP)

    def emit_solution(self, node: Solution, commented: bool) -> None:
        if STAGES.index(node.stage) > STAGES.index(self.stage):
            raise MarkerError(
                f"[markers] {self.name}:{node.number}: {node.id} is visible in {self.stage}; "
                f"put it inside SINCE {node.stage}"
            )
        marker = self.prefix * 3 if self.prefix == "#" else "///"
        self.lines.append(f"{node.indent}{marker} BEGIN YOUR SOLUTION ({node.id})")
        if self.keeps(node.id):
            self.emit(node.body, commented)
        elif node.stub is not None:
            self.emit(node.stub, commented=True)
        else:
            self.lines.append(node.indent + default_stub(node.id, self.prefix))
        self.lines.append(f"{node.indent}{marker} END YOUR SOLUTION")

    def keeps(self, region: str) -> bool:
        return self.filled if isinstance(self.filled, bool) else region in self.filled

    def uncomment(self, line: Line) -> str:
        if not line.text.strip():
            return ""
        match = re.fullmatch(rf"(\s*){self.prefix}(?: (.*))?", line.text)
        if match is None:
            raise MarkerError(
                f"[markers] {self.name}:{line.number}: `{line.text.strip()}` is not commented; "
                f"text of UNTIL and STUB stands behind `{self.prefix} `"
            )
        return (match[1] + match[2]) if match[2] else ""


def default_stub(region: str, prefix: str) -> str:
    """Return the line that a starter shows for a region without a STUB of its own."""
    call = f'NotImplementedError("{region}")'
    return f"throw {call};" if prefix == "//" else f"raise {call}"


def close_gaps(lines: Collection[str | None], prefix: str) -> list[str]:
    """Join the blank lines around each GAP, so that formatted text stays formatted."""
    result: list[str] = []
    blanks, most, gap = 0, 0, False
    for line in [*lines, "\0"]:
        if line is GAP:
            most, blanks, gap = max(most, blanks), 0, True
        elif not line.strip():
            blanks += 1
        else:
            following = "" if line == "\0" else line
            previous = result[-1] if result else ""
            count = max(most, blanks)
            if gap:
                count = _formatted_blanks(count, previous, following, prefix)
            result.extend([""] * count + [line])
            blanks, most, gap = 0, 0, False
    return result[:-1]


def _formatted_blanks(count: int, previous: str, following: str, prefix: str) -> int:
    """Return how many of `count` blank lines a formatter wants between two lines."""
    if not previous or not following:
        return 0
    if prefix == "//":
        in_namespace = "namespace" in previous or "namespace" in following
        inner_edge = previous.endswith("{") or following.strip().startswith("}")
        return 0 if inner_edge and not in_namespace else min(count, 1)
    if re.search(r"[:(\[{]\s*(#.*)?$", previous) or following.strip()[0] in ")]}":
        return 0
    most = 1 if following[0].isspace() else 2
    in_comment = previous.strip().startswith(("#", "@")) and not count
    defines = re.match(r"\s*(def|class|async def)\b|\s*@", following)
    ends_block = most == 2 and previous[0].isspace() and count
    return most if (defines and not in_comment) or ends_block else min(count, most)
