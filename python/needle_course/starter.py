"""The tree of a stage: as the starter that a student gets, or with answers filled in.

python -m needle_course.starter hw1 --out DIR [--filled]
"""

import argparse
import sys
import zipfile
from collections.abc import Collection, Iterator
from functools import lru_cache
from pathlib import Path

from needle_course.errors import CourseError
from needle_course.imports import Edits, apply_edits, find_edits
from needle_course.markers import comment_prefix, project
from needle_course.stages import Course, Stage, load_course

Filled = bool | Collection[str]
SOURCE_FOLDERS = ("python/needle", "apps")
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip can name
CHANGES_NOTHING = {"__pycache__", ".pytest_cache", ".ruff_cache"}


def build_tree(course: Course, stage: Stage | str, out: Path, filled: Filled = False) -> None:
    """Write a stage's tree below `out`, which is made if it is not there.

    filled: which regions keep the answer; True for all. Raises CourseError for a file of stage.toml
    that is missing and MarkerError for one that is malformed.
    """
    name = stage if isinstance(stage, str) else stage.name
    if course.packaged:
        _unpack(course, name, Path(out), filled)
        return
    for place, content in _contents(course, name, filled).items():
        target = Path(out) / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _contents(course: Course, name: str, filled: Filled = False) -> dict[str, bytes]:
    """Return {path: bytes} of all files of a stage."""
    texts = tree_texts(course, name, filled)
    copied = copied_files(course, name)
    return {
        **{place: text.encode("utf-8") for place, text in texts.items()},
        **{place: source.read_bytes() for place, source in copied.items()},
    }


def tree_texts(course: Course, name: str, filled: Filled = False) -> dict[str, str]:
    """Return {path: text} of the projected sources of a stage."""
    sources = {
        to: course.root / source
        for to, source in course.files(name).items()
        if comment_prefix(to) is not None
    }
    answered = {to: _projected(path, to, name, True) for to, path in sources.items()}
    python = {to: text for to, text in answered.items() if to.endswith(".py")}
    try:
        edits = _edits(tuple(python.items()), tuple(_repository_files(course)))
    except SyntaxError as error:
        where = f"{error.filename}:{error.lineno}"
        raise CourseError(f"[starter] {name}: {where} does not parse: {error.msg}") from None
    chosen = (
        answered
        if filled is True
        else {to: _projected(path, to, name, filled) for to, path in sources.items()}
    )
    return {to: apply_edits(text, edits.get(to, {})) for to, text in chosen.items()}


def copied_files(course: Course, name: str) -> dict[str, Path]:
    """Return {path: source} of the files that a stage takes as they are: data, tests, others."""
    copied = {
        to: course.root / source
        for to, source in course.files(name).items()
        if comment_prefix(to) is None
    }
    copied |= {path: course.root / path for path in course.data(name)}
    for stage in course.up_to(name):
        tests = stage.folder / "tests"
        for path in _files_below(tests):
            copied[f"tests/{stage.name}/{path.relative_to(tests).as_posix()}"] = path
    for to, path in copied.items():
        if not path.is_file():
            raise CourseError(f"[starter] {name}: {to} is to come from {path}, which is no file")
    return copied


def _projected(path: Path, to: str, name: str, filled: Filled) -> str:
    prefix = comment_prefix(to)
    assert prefix is not None  # noqa: S101 - sources are chosen by it
    frozen = filled if isinstance(filled, bool) else frozenset(filled)
    try:
        return _project_text(path.read_text(encoding="utf-8"), name, frozen, prefix, str(path))
    except FileNotFoundError:
        raise CourseError(f"[starter] {name}: no file {path}; correct its stage.toml") from None


_project_text = lru_cache(maxsize=4096)(project)


@lru_cache(maxsize=64)
def _edits(python: tuple[tuple[str, str], ...], repository: tuple[str, ...]) -> dict[str, Edits]:
    return find_edits(dict(python), repository)


def _repository_files(course: Course) -> list[str]:
    """Return the Python files of the full repository, as its paths name them."""
    found = [path for folder in SOURCE_FOLDERS for path in (course.root / folder).rglob("*.py")]
    return [path.relative_to(course.root).as_posix() for path in found]


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, sorted, without what running leaves behind."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not CHANGES_NOTHING & set(path.parts):
            yield path


def _unpack(course: Course, name: str, out: Path, filled: Filled) -> None:
    """Unpack the starter that the distribution carries."""
    if filled:
        raise CourseError(
            f"[starter] {name}: the distribution holds no answers; use the repository"
        )
    archive = course.stage(name).folder / "starter.zip"
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(out)


def build_zip(course: Course, stage: Stage | str, out: Path, handouts: Path | None = None) -> Path:
    """Write a stage's starter as `out`, or as hwN.zip in the folder `out`; return its path.

    handouts: a folder of built handouts, hwN/handout.md and so on, which go in below handouts/.
    The same sources give the same bytes: names are sorted and times are fixed.
    """
    name = stage if isinstance(stage, str) else stage.name
    out = Path(out)
    path = out if out.suffix == ".zip" else out / f"{name}.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = _contents(course, name)
    if handouts is not None:
        content |= _handout_files(course, name, handouts)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for to in sorted(content):
            entry = zipfile.ZipInfo(to, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content[to])
    return path


def _handout_files(course: Course, name: str, handouts: Path) -> dict[str, bytes]:
    """Return {path: bytes} of the built handouts of a stage and the earlier ones."""
    return {
        f"handouts/{source.relative_to(handouts).as_posix()}": source.read_bytes()
        for stage in course.up_to(name)
        for source in _files_below(handouts / stage.name)
    }


def main(arguments: list[str] | None = None) -> int:
    """Build the starters that the command line asks for."""
    parser = argparse.ArgumentParser(prog="needle_course.starter", description=__doc__)
    parser.add_argument("stages", nargs="*", help="hw0 to hw5; all if none is named")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--filled", action="store_true", help="with the answers")
    parser.add_argument("--zip", action="store_true", help="as a zip")
    options = parser.parse_args(arguments)
    try:
        course = load_course()
        for name in options.stages or course.by_name:
            alone = len(options.stages) == 1
            if options.zip:
                build_zip(course, course.stage(name), options.out)
            else:
                build_tree(
                    course, name, options.out if alone else options.out / name, options.filled
                )
    except CourseError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
