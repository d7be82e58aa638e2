"""What students are given: a zip for each stage and the wheel of needle-course, without an answer.

python -m needle_course.release --out build/stages
"""

import argparse
import hashlib
import io
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from needle_course import leaks
from needle_course.errors import CourseError
from needle_course.markers import DIRECTIVE
from needle_course.offences import Offence
from needle_course.stages import Course, Stage, load_course
from needle_course.starter import build_zip, copied_files, tree_texts

PACKAGE = Path(__file__).resolve().parent
# What says how a bug looks stays with the instructor.
KEPT_BACK = {"mutants.toml", "variants.toml", "handout.md"}
TEXTS = {".py", ".md", ".ipynb", ".toml", ".json", ".txt", ".svg", ".cc", ".cpp", ".cu", ".cuh"}
TEXTS |= {".h", ".def", ".cmake", ""}


def build_handouts(course: Course, out: Path) -> Path:
    """Build the handouts to `out` whose sources changed, and run their notebooks; return `out`."""
    from needle_course import handout_builder

    for stage in course.stages:
        stamp = out / f"{stage.name}.sources"
        sources = _handout_sources(course, stage)
        if stamp.is_file() and stamp.read_text() == sources:
            continue
        shutil.rmtree(out / stage.name, ignore_errors=True)
        handout_builder.build(course, stage, out / stage.name, execute_notebook=True)
        stamp.write_text(sources)
    return out


def _handout_sources(course: Course, stage: Stage) -> str:
    """Return a digest of all that a handout is made from."""
    digest = hashlib.sha256()
    for to, text in sorted(tree_texts(course, stage.name, True).items()):
        digest.update(f"{to}\0{text}\0".encode())
    pictures = sorted((course.root / "hw_stages" / "pictures").glob("*.py"))
    data = sorted(copied_files(course, stage.name).values())
    modules = ("cells.py", "handouts.py", "handout_builder.py", "notebooks.py")
    tool = [PACKAGE / name for name in modules]
    for path in [stage.folder / "handout.md", *pictures, *data, *tool]:
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()


def build_release(course: Course, out: Path, handouts: Path | None) -> Path:
    """Write hwN.zip of each stage and the wheel to `out`; return the wheel's path.

    handouts: the folder of built handouts that go into the zips; none if None.
    """
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.whl"):
        old.unlink()
    with tempfile.TemporaryDirectory() as temporary:
        staging = Path(temporary)
        _stage_package(staging)
        folder = staging / "needle_course" / "course"
        for stage in course.stages:
            archive = build_zip(course, stage, out, handouts)
            _stage_course(stage, folder / stage.name, archive)
        settings = course.root / "hw_stages" / "course.toml"
        if settings.is_file():
            shutil.copyfile(settings, folder / "course.toml")
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        command += ["--no-build-isolation", "--disable-pip-version-check", "--no-cache-dir"]
        command += ["--wheel-dir", str(out), str(staging)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CourseError(f"[release] the wheel cannot be built\n{done.stderr.strip()}")
    (wheel,) = out.glob("*.whl")
    return wheel


def _stage_package(staging: Path) -> None:
    """Copy the tool's modules and its pyproject.toml to where the wheel is built."""
    package = staging / "needle_course"
    package.mkdir()
    for path in sorted(PACKAGE.glob("*.py")):
        shutil.copyfile(path, package / path.name)
    shutil.copyfile(PACKAGE / "pyproject.toml", staging / "pyproject.toml")


def _stage_course(stage: Stage, folder: Path, archive: Path) -> None:
    """Copy what the tool needs of a stage beside its starter: its list and its tests."""
    folder.mkdir(parents=True)
    shutil.copyfile(stage.folder / "stage.toml", folder / "stage.toml")
    shutil.copyfile(archive, folder / "starter.zip")
    for path in sorted((stage.folder / "tests").rglob("*.py")):
        target = folder / "tests" / path.relative_to(stage.folder / "tests")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


# --- what must not be in it ---


def leaks_in_release(course: Course, wheel: Path) -> list[Offence]:
    """Return the answers, directives and kept-back files in a wheel and in the zips that it holds.

    A starter's sources have to be the blank tree's, which has a gate of its own.
    """
    answers = leaks.secret_lines(course, course.stages[-1])
    starters = {stage.name: tree_texts(course, stage.name) for stage in course.stages}
    offences: list[Offence] = []
    with zipfile.ZipFile(wheel) as archive:
        for name, content in _members(archive, wheel.name):
            match = re.search(r"/(hw\d)/starter\.zip/(.+)", name)
            sources = starters[match[1]] if match else {}
            place = match[2] if match else ""
            offences += _leaks_in_member(name, content, answers, sources, place)
    return offences


def _members(archive: zipfile.ZipFile, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of each file of an archive, and of those inside it."""
    for entry in archive.infolist():
        content = archive.read(entry)
        if entry.filename.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(content)) as inner:
                yield from _members(inner, f"{name}/{entry.filename}")
        else:
            yield f"{name}/{entry.filename}", content


def _leaks_in_member(
    name: str,
    content: bytes,
    answers: Mapping[str, list[str]],
    sources: Mapping[str, str],
    place: str,
) -> Iterator[Offence]:
    """Yield what one file must not hold; `place` is where it lies in a starter with `sources`."""
    path = Path(name)
    if path.name in KEPT_BACK - ({"handout.md"} if place else set()):
        yield Offence(name, "is not for students")
    if path.suffix not in TEXTS:
        if path.suffix == ".pyc":
            yield Offence(name, "compiled code may hold an answer")
        return
    text = content.decode("utf-8", "replace")
    for number, line in enumerate(text.splitlines(), 1):
        if DIRECTIVE.fullmatch(line):
            yield Offence(f"{name}:{number}", f"`{line.strip()}` is for the repository only")
    if place in sources:
        if text != sources[place]:
            yield Offence(name, "is not what the compiler gives")
        return
    text = _cells(text) if path.suffix == ".ipynb" else text
    yield from leaks.leaks_in_text(text, name, answers, is_code=path.suffix == ".py")


def _cells(notebook: str) -> str:
    """Return the text of a notebook with a line for each line of its cells."""
    return re.sub(r'^\s*"|(\\n)?",?$', "", notebook, flags=re.MULTILINE)


def main(arguments: list[str] | None = None) -> int:
    """Build the release and look for answers in it."""
    parser = argparse.ArgumentParser(prog="needle_course.release", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/stages"))
    parser.add_argument("--no-handouts", action="store_true", help="leave the handouts out")
    options = parser.parse_args(arguments)
    try:
        course = load_course()
        handouts = None if options.no_handouts else build_handouts(course, options.out / "handouts")
        wheel = build_release(course, options.out, handouts)
        offences = leaks_in_release(course, wheel)
    except CourseError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for offence in offences:
        sys.stderr.write(f"{offence}\n")
    sys.stdout.write(f"{wheel}\n")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
