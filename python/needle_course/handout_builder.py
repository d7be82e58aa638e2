"""Build the handout of a stage: run its cells on the filled stage, draw its pictures, write the
Markdown and the notebook that students get below handouts/hwN.

    python -m needle_course handouts hw1 --out DIR [--execute-notebooks]
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from needle_course import building, handouts, notebooks, starter
from needle_course.errors import CourseError
from needle_course.handouts import Handout, HandoutError
from needle_course.stages import Course, Stage, load_course

__all__ = ["build", "pictures_of", "source"]

HOW_TO_RUN = (
    "*Try the examples in `handout.ipynb`, which lies beside this page: its first cell sets the "
    "paths and lets\nNumPy print four digits.*"
)
PICTURE = re.compile(r"!\[[^\]]*\]\(pictures/(\w+)\.svg\)")


def source(course: Course, stage: Stage) -> Handout:
    """Return the handout of a stage as its author wrote it, its cells not yet run."""
    path = stage.folder / "handout.md"
    if not path.is_file():
        raise HandoutError(f"{path}:1: {stage.name} has no handout")
    return handouts.read(path, path.relative_to(course.root).as_posix())


def pictures_of(handout: Handout) -> list[str]:
    """Return the names of the pictures that a handout shows, each once."""
    return list(dict.fromkeys(PICTURE.findall(handout.text)))


def build(course: Course, stage: Stage, out: Path, execute_notebook: bool = False) -> list[Path]:
    """Write handout.md, handout.ipynb and pictures/ of a stage to `out`; return the files.

    The same sources give the same bytes.

    Args:
        execute_notebook: also run the notebook in a kernel of its own.

    Raises:
        HandoutError: with file:line if a cell raises or a picture cannot be drawn.
    """
    handout = source(course, stage)
    with tempfile.TemporaryDirectory(prefix="needle-handout-") as scratch:
        tree = Path(scratch) / "tree"
        starter.build_tree(course, stage, tree, filled=True)
        if handout.cells:
            _compile(handout, tree, stage)
        handouts.run_cells(handout, tree, stage.module, stage.environment)
        pictures = _draw(course, pictures_of(handout), Path(scratch) / "pictures")
        content = {
            "handout.md": _below_title(handout.with_outputs(), HOW_TO_RUN),
            "handout.ipynb": notebooks.notebook(handout, stage.environment),
            **{f"pictures/{path.name}": path.read_text(encoding="utf-8") for path in pictures},
        }
        if execute_notebook:
            inside = tree / "handouts" / stage.name
            notebooks.execute(_write(inside, {"handout.ipynb": content["handout.ipynb"]})[0])
    return _write(out, content)


def _below_title(text: str, note: str) -> str:
    """Return a page with a note under its first line."""
    title, rest = text.split("\n", 1)
    return f"{title}\n\n{note}\n{rest}"


def _compile(handout: Handout, tree: Path, stage: Stage) -> None:
    """Build the native modules of the tree."""
    if not stage.build:
        return
    built = building.build(tree, stage)
    if not built.ok:
        raise HandoutError(f"{handout.name}:1: {stage.name} does not build\n{built.errors}")


def _draw(course: Course, names: Iterable[str], out: Path) -> list[Path]:
    """Draw pictures with the framework of the repository, in a process of its own."""
    names = list(names)
    if not names:
        return []
    made = subprocess.run(
        [sys.executable, "-m", "hw_stages.pictures", "--out", str(out), *names],
        cwd=course.root,
        env=handouts.variables({"NEEDLE_BACKEND": "np", "PYTHONPATH": str(course.root / "python")}),
        capture_output=True,
        text=True,
    )
    if made.returncode != 0:
        raise HandoutError(f"hw_stages/pictures:1: {', '.join(names)}\n{made.stderr.strip()}")
    return [out / f"{name}.svg" for name in names]


def _write(out: Path, content: dict[str, str]) -> list[Path]:
    written = []
    for name, text in content.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def main(arguments: list[str] | None = None) -> int:
    """Build the handouts that the command line names, each in a folder of its stage's name."""
    parser = argparse.ArgumentParser(prog="needle handouts", description=__doc__)
    parser.add_argument("stages", nargs="*", help="hw0 to hw5; all if none is named")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--execute-notebooks", action="store_true", help="run each in a kernel too")
    options = parser.parse_args(arguments)
    try:
        course = load_course()
        for name in options.stages or course.by_name:
            build(course, course.stage(name), options.out / name, options.execute_notebooks)
    except CourseError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
