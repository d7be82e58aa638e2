"""What a starter must not show: lines of answers, and names that only later stages have."""

import ast
import builtins
import io
import keyword
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from needle_course.markers import (
    STAGES,
    Guard,
    Line,
    Node,
    Solution,
    comment_prefix,
    parse,
    solutions,
)
from needle_course.offences import Offence
from needle_course.stages import Course, Stage
from needle_course.starter import copied_files, tree_texts

SHORTEST = 12  # characters without blanks that make a line of an answer worth protecting
WORD = re.compile(r"[A-Za-z_]\w*")
SNAKE_OR_CAMEL = re.compile(r"(?=\w*[a-z0-9]_[a-z0-9])[a-z]\w+|[A-Z]+[a-z0-9]+(?:[A-Z]+[a-z0-9]*)+")


REGION = re.compile(r"\bhw\d(\.[a-z0-9_]+)+")


def squeezed(line: str) -> str:
    """Return a line without blanks, comment signs and marks that a formatter may add."""
    return re.sub(r"^(#|//)+|\s+", "", line.strip()).rstrip(",;")


def answer_lines(course: Course) -> dict[str, list[str]]:
    """Return {region: squeezed lines of its answer} of every source that a stage has."""
    lines: dict[str, list[str]] = {}
    for source in sorted({source for stage in course.stages for source in _sources(stage)}):
        path = course.root / source
        prefix = comment_prefix(source)
        if prefix is not None and path.is_file():
            text = path.read_text(encoding="utf-8")
            for solution in solutions(parse(text, prefix, str(path))):
                found = (squeezed(line) for line in _code_lines(solution.body, prefix))
                lines[solution.id] = [line for line in found if len(line) >= SHORTEST]
    return lines


def secret_lines(course: Course, stage: Stage) -> dict[str, list[str]]:
    """Return the lines of each answer that the blank starter of a stage does not give away."""
    texts = tree_texts(course, stage.name).values()
    given = {squeezed(line) for text in texts for line in text.splitlines()}
    return {
        region: [line for line in lines if line not in given]
        for region, lines in answer_lines(course).items()
    }


def _sources(stage: Stage) -> Iterator[str]:
    return (file.source for file in stage.files)


def _code_lines(nodes: Iterable[Node], prefix: str, commented: bool = False) -> Iterator[str]:
    """Yield the lines of an answer that are no comments of its own."""
    for node in nodes:
        if isinstance(node, Line):
            text = node.text.strip()
            text = text.removeprefix(prefix).strip() if commented else text
            if not text.startswith(prefix):
                yield text
        elif isinstance(node, Guard):
            yield from _code_lines(node.body, prefix, commented or node.kind == "UNTIL")


def given_lines(text: str, prefix: str, name: str) -> set[str]:
    """Return the squeezed lines of a source that stand in no answer, read without projecting it."""

    def outside(nodes: Iterable[Node]) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, Line):
                yield squeezed(node.text)
            elif isinstance(node, Guard):
                yield from outside(node.body)
            elif isinstance(node, Solution):
                yield from outside(node.stub or ())

    return set(outside(parse(text, prefix, name)))


def leaked_answers(course: Course, stage: Stage) -> list[Offence]:
    """Return the answer lines that the blank tree, its tests or its hints show.

    In given code one line may be like an answer's; two in a row may not, nor one in a comment.
    """
    offences: list[Offence] = []
    answers = answer_lines(course)
    for place, text in tree_texts(course, stage.name).items():
        path = course.root / course.files(stage.name)[place]
        prefix = comment_prefix(place) or "#"
        given = given_lines(path.read_text(encoding="utf-8"), prefix, str(path))
        where = f"{stage.name} starter, {place}"
        offences += _leaks_in(text, where, answers, given, comment=prefix)
    for place, source in copied_files(course, stage.name).items():
        if place.startswith(f"tests/{stage.name}/") or source.suffix in {".md", ".ipynb"}:
            text = source.read_text(encoding="utf-8", errors="replace")
            code = place.endswith(".py")
            offences += leaks_in_text(text, str(source), answers, is_code=code)
    hints = [(question.id, hint) for question in stage.questions for hint in question.hints]
    for question, hint in hints:
        where = f"{stage.folder / 'stage.toml'}, hints of {question}"
        offences += leaks_in_text(hint, where, answers)
    return offences


def _leaks_in(
    text: str, where: str, answers: Mapping[str, list[str]], given: set[str], comment: str
) -> Iterator[Offence]:
    owner = {line: region for region, lines in answers.items() for line in lines}
    pairs = {
        pair: region
        for region, lines in answers.items()
        for pair in zip(lines, lines[1:], strict=False)
    }
    prose = _prose_lines(text) if comment == "#" else set()
    previous = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = squeezed(raw)
        if not line:
            continue
        is_comment = raw.strip().startswith(comment) or number in prose
        line = line.strip("\"'") if number in prose else line
        if line in owner and (line not in given or is_comment):
            yield Offence(f"{where}:{number}", f"shows a line of the answer to {owner[line]}")
        elif (previous, line) in pairs and _tells(previous) and _tells(line):
            region = pairs[previous, line]
            yield Offence(f"{where}:{number}", f"two lines as in the answer to {region}")
        previous = line


def _prose_lines(text: str) -> set[int]:
    """Return the numbers of the lines that docstrings take."""
    try:
        nodes = ast.walk(ast.parse(text))
    except SyntaxError:
        return set()
    return {
        number
        for node in nodes
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def leaks_in_text(
    text: str, where: str, answers: Mapping[str, Collection[str]], is_code: bool = False
) -> Iterator[Offence]:
    """Yield the lines of a text that are whole lines of an answer.

    is_code: one line of code may be like an answer's; a comment may not, nor two lines in a row.
    """
    owner = {line: region for region, lines in answers.items() for line in lines}
    pairs = {
        pair: region
        for region, lines in answers.items()
        for pair in zip(lines, list(lines)[1:], strict=False)
    }
    previous = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = squeezed(raw)
        alone = not is_code or raw.strip().startswith(("#", "//"))
        if line in owner and _tells(line) and alone:
            yield Offence(f"{where}:{number}", f"shows a line of the answer to {owner[line]}")
        elif is_code and (previous, line) in pairs and _tells(previous) and _tells(line):
            region = pairs[previous, line]
            yield Offence(f"{where}:{number}", f"two lines as in the answer to {region}")
        previous = line or previous


def _tells(line: str) -> bool:
    """Say whether a line says more than a loop's head or a bare call that every program has."""
    return not re.match(r"(for|if|elif|else|while|with|import|from|@)\b|[\w.]+\(\w*\)$", line)


# --- names of later stages ---


def later_names(course: Course, stage: Stage) -> set[str]:
    """Return the names that only later stages or the full repository define."""
    own = _defined_in(_answered(course, stage.name))
    later: set[str] = set()
    for other in course.stages:
        if STAGES.index(other.name) > STAGES.index(stage.name):
            later |= _defined_in(_answered(course, other.name))
    full = {}
    for folder in ("python/needle", "apps", "src"):
        for path in sorted((course.root / folder).rglob("*")):
            if path.is_file() and comment_prefix(path):
                full[path.relative_to(course.root).as_posix()] = path.read_text(encoding="utf-8")
    later |= _defined_in(full)
    return later - own - _common_names() - set(stage.later_names)


def _answered(course: Course, name: str) -> dict[str, str]:
    return tree_texts(course, name, True)


def _common_names() -> set[str]:
    """Return names that everybody may use: Python's, NumPy's."""
    of_arrays = {*dir(np), *dir(np.ndarray), *dir(np.random), *dir(np.linalg)}
    return {*dir(builtins), *keyword.kwlist, *of_arrays}


def _defined_in(texts: Mapping[str, str]) -> set[str]:
    """Return the names that sources define: functions, classes, constants, module names."""
    names: set[str] = set()
    for place, text in texts.items():
        names.update(Path(place).with_suffix("").parts)
        names |= _names_in(text, place.endswith(".py"))
    return names


@lru_cache(maxsize=1024)
def _names_in(text: str, is_python: bool) -> frozenset[str]:
    return frozenset(_python_names(text) if is_python else _cpp_names(text))


def _python_names(text: str) -> Iterator[str]:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.arg):
            yield node.arg
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr
        if isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[-1]


def _cpp_names(text: str) -> Iterator[str]:
    """Yield every word of C++ code: declarations are not told from uses, comments are left out."""
    for line in text.splitlines():
        yield from WORD.findall(line.split("//")[0])


def shown_later_names(course: Course, stage: Stage) -> list[Offence]:
    """Return the names of later stages that the blank tree or its tests show."""
    later = later_names(course, stage)
    texts = tree_texts(course, stage.name)
    tests = f"tests/{stage.name}/"
    of_tests = {
        place: path.read_text(encoding="utf-8")
        for place, path in copied_files(course, stage.name).items()
        if place.startswith(tests) and place.endswith(".py")
    }
    later -= _defined_in(of_tests)  # they call their own functions what they like
    texts |= of_tests
    offences = []
    for place, text in texts.items():
        text = REGION.sub(" ", text)
        read = (
            _test_words
            if place in of_tests
            else _python_words
            if place.endswith(".py")
            else _other_words
        )
        for number, word in read(text):
            if word in later:
                where = f"{stage.name} starter, {place}:{number}"
                offences.append(Offence(where, f"{word} is a name of a later stage"))
    return list(dict.fromkeys(offences))


def _python_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, word) of code names that are told from English, and such words in prose."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            if _is_distinct(token.string):
                yield token.start[0], token.string
        elif token.type in (tokenize.COMMENT, tokenize.STRING):
            for offset, line in enumerate(token.string.splitlines()):
                for word in SNAKE_OR_CAMEL.findall(line):
                    yield token.start[0] + offset, word


def _test_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, word) of what a test asks objects for: other names are its own."""
    for number, line in enumerate(text.splitlines(), 1):
        for word in re.findall(r"\.(\w+)", line):
            if _is_distinct(word):
                yield number, word


def _other_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, word) of the words that are told from English."""
    for number, line in enumerate(text.splitlines(), 1):
        for word in WORD.findall(line):
            if _is_distinct(word):
                yield number, word


def _is_distinct(word: str) -> bool:
    return SNAKE_OR_CAMEL.fullmatch(word) is not None
