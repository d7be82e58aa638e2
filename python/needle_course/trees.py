"""A stage's tree on disk whose answers come and go: what the gates and the mutants run tests on."""

import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path

from needle_course import runner
from needle_course.errors import CourseError
from needle_course.markers import STAGES
from needle_course.offences import Offence
from needle_course.stages import Course, Stage
from needle_course.starter import Filled, copied_files, tree_texts

BUILT = {"build", ".needle", "__pycache__"}  # folders of a tree that building and running make


def regions_up_to(course: Course, name: str) -> set[str]:
    """Return the regions that the stages up to `name` ask for."""
    questions = [question for stage in course.up_to(name) for question in stage.questions]
    return {region for question in questions for region in question.regions}


def earlier_regions(course: Course, name: str) -> set[str]:
    """Return the regions that the stages before `name` ask for."""
    return {
        region
        for region in regions_up_to(course, name)
        if STAGES.index(region.split(".")[0]) < STAGES.index(name)
    }


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until no other process works in a tree's folder: it would take the answers away."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


Gate = Callable[[Course, Stage, Path], list[Offence]]


def one_at_a_time(gate: Gate) -> Gate:
    """Return a gate that works in its folder alone."""

    @wraps(gate)
    def run(course: Course, stage: Stage, folder: Path) -> list[Offence]:
        with alone(folder):
            return gate(course, stage, folder)

    return run


class StageTree:
    """The tree of one stage in a folder. Files are written only when they change, so a compiled
    module is built anew only if its sources did.
    """

    def __init__(self, course: Course, stage: Stage, folder: Path):
        self.course, self.stage, self.folder = course, stage, folder
        self.texts: dict[str, str] = {}
        copied = copied_files(course, stage.name)
        expected = set(copied) | set(course.files(stage.name))
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            place = path.relative_to(folder)
            kept = BUILT & set(place.parts) or path.suffix == ".so"
            if path.is_file() and not kept and place.as_posix() not in expected:
                path.unlink()
        for name, source in copied.items():
            self._write(name, source.read_bytes())

    def _write(self, place: str, content: bytes) -> None:
        path = self.folder / place
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def fill(self, filled: Filled) -> None:
        """Give the tree the answers to these regions and the stubs of the others."""
        self.texts = tree_texts(self.course, self.stage.name, filled)
        for place, text in self.texts.items():
            self._write(place, text.encode("utf-8"))

    def run(self, selection: Sequence[str] = ()) -> list[runner.Result]:
        """Build what the stage builds and run its tests; a question without tests has no result."""
        try:
            return runner.run(self.folder, self.stage, list(selection))
        except runner.UnknownSelection:
            return []

    @contextmanager
    def edited(self, edits: Sequence["Edit"]) -> Iterator[None]:
        """Make edits to the filled tree for a while; CourseError for one that does not apply."""
        changed: dict[str, str] = {}
        for edit in edits:
            text = changed.get(edit.file, self.texts.get(edit.file, ""))
            count = text.count(edit.find)
            if count != 1:
                raise CourseError(
                    f"{edit.where}: `find` occurs {count} times in {edit.file} of the filled "
                    f"{self.stage.name}; it has to occur once"
                )
            changed[edit.file] = text.replace(edit.find, edit.replace)
        try:
            for place, text in changed.items():
                self._write(place, text.encode("utf-8"))
            yield
        finally:
            for place in changed:
                self._write(place, self.texts[place].encode("utf-8"))


class Edit:
    """One replacement in one file; `where` names the place that asks for it."""

    def __init__(self, file: str, find: str, replace: str, where: str):
        self.file, self.find, self.replace, self.where = file, find, replace, where
