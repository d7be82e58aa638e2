"""The stages as hw_stages/hwN/stage.toml lists them: files, questions, points, hints, devices."""

import math
import re
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from needle_course.errors import CourseError
from needle_course.markers import STAGES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAMES = tuple(name for name in STAGES if name != "full")
DEVICES = ("cpu", "cuda", "cuda_checked")
BUILDS = ("", "make", "cmake")


@dataclass(frozen=True)
class CourseFile:
    """A file of a stage: where it lies in the repository and where in the workspace."""

    source: str
    to: str


@dataclass(frozen=True)
class Question:
    """What a student is asked: its regions, its points, and the way there in hints."""

    id: str
    title: str
    points: int
    regions: tuple[str, ...]
    needs: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    device: str = "cpu"

    @property
    def stage(self) -> str:
        """Return the stage that asks it."""
        return self.id.split(".")[0]

    def earned(self, passed: int, tests: int) -> float:
        """Return the points for `passed` of all its `tests`: their share, down to a tenth."""
        return math.floor(10 * self.points * passed / tests) / 10 if tests else 0.0


@dataclass(frozen=True)
class Stage:
    """One stage.toml. `files` and `data` hold only what is new in this stage."""

    name: str
    title: str
    module: str
    environment: dict[str, str]
    files: tuple[CourseFile, ...]
    data: tuple[str, ...]
    build: str
    questions: tuple[Question, ...]
    folder: Path
    later_names: tuple[str, ...] = field(default=())

    def question(self, id: str) -> Question:  # noqa: A002 - the word of stage.toml
        """Return the question with this id; raise CourseError if the stage asks no such one."""
        for question in self.questions:
            if question.id == id:
                return question
        known = ", ".join(question.id for question in self.questions)
        raise CourseError(f"[{self.name}] no question {id}; there are {known}")

    def question_of(self, region: str) -> Question:
        """Return the question that a region belongs to; raise CourseError if there is none."""
        for question in self.questions:
            if region in question.regions:
                return question
        raise CourseError(f"[{self.name}] region {region} belongs to no question of its stage.toml")


@dataclass(frozen=True)
class Course:
    """All stages below a folder: the repository, or the stages that the distribution carries."""

    root: Path
    stages: tuple[Stage, ...]
    packaged: bool = False

    @cached_property
    def by_name(self) -> dict[str, Stage]:
        """Return the stages by their names."""
        return {stage.name: stage for stage in self.stages}

    def stage(self, name: str) -> Stage:
        """Return one stage; raise CourseError for a name that the course does not have."""
        if name not in self.by_name:
            raise CourseError(
                f"[course] no stage {name} in {self.root}; there are {', '.join(self.by_name)}"
            )
        return self.by_name[name]

    def up_to(self, name: str) -> tuple[Stage, ...]:
        """Return the stage and all earlier ones, the first first."""
        last = NAMES.index(self.stage(name).name)
        return tuple(stage for stage in self.stages if NAMES.index(stage.name) <= last)

    def after(self, name: str) -> "Stage | None":
        """Return the stage that follows, or None after the last."""
        later = [stage for stage in self.stages if NAMES.index(stage.name) > NAMES.index(name)]
        return later[0] if later else None

    def files(self, name: str) -> dict[str, str]:
        """Return {place in the workspace: place in the repository} of all files of a stage."""
        return {file.to: file.source for stage in self.up_to(name) for file in stage.files}

    def data(self, name: str) -> tuple[str, ...]:
        """Return the data files of a stage, the earlier stages' among them."""
        return tuple(dict.fromkeys(path for stage in self.up_to(name) for path in stage.data))


def repository_root() -> Path:
    """Return the folder that holds the stages: the repository's, or the package's own."""
    here = Path(__file__).resolve().parent
    packaged = here / "course"
    return packaged if packaged.is_dir() else here.parents[1]


def load_course(root: Path | str | None = None) -> Course:
    """Read every stage.toml below `root`: the repository, or the folder of packaged stages.

    Raises CourseError for a file that does not have the form.
    """
    root = repository_root() if root is None else Path(root).resolve()
    packaged = not (root / "hw_stages").is_dir()
    folder = root if packaged else root / "hw_stages"
    found = [folder / name for name in NAMES if (folder / name / "stage.toml").is_file()]
    if not found:
        raise CourseError(f"[course] no stage.toml below {folder}; give the course's folder")
    return Course(root, tuple(load_stage(path) for path in found), packaged)


def load_stage(folder: Path) -> Stage:
    """Read one stage.toml; raise CourseError for what it lacks or has too much."""
    path = folder / "stage.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise CourseError(f"[stages] {path}: {error}") from None
    try:
        return _stage(folder, table)
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
        raise CourseError(f"[stages] {path}: {reason}") from None


def _stage(folder: Path, table: dict[str, Any]) -> Stage:
    """Build a Stage from the parsed file."""
    known = {"title", "module", "environment", "files", "data", "build", "later_names", "questions"}
    _refuse_unknown(table, known, "the top level")
    build = table.get("build", "")
    if build not in BUILDS:
        raise ValueError(f"build is {build!r}; it is make, cmake or left out")
    return Stage(
        name=folder.name,
        title=table["title"],
        module=table["module"],
        environment=dict(table.get("environment", {})),
        files=tuple(_file(entry) for entry in table.get("files", [])),
        data=tuple(table.get("data", [])),
        build=build,
        questions=tuple(_question(entry, folder.name) for entry in table.get("questions", [])),
        folder=folder,
        later_names=tuple(table.get("later_names", [])),
    )


def _file(entry: str | dict[str, str]) -> CourseFile:
    """Build a CourseFile from a path, or from a table of `from` and `to`."""
    if isinstance(entry, str):
        return CourseFile(entry, entry)
    _refuse_unknown(entry, {"from", "to"}, "an entry of files")
    return CourseFile(entry["from"], entry["to"])


def _question(table: dict[str, Any], stage: str) -> Question:
    """Build a Question from its table."""
    known = {"id", "title", "points", "needs", "regions", "hints", "device"}
    _refuse_unknown(table, known, f"question {table.get('id')}")
    if not re.fullmatch(rf"{stage}\.[a-z0-9_]+", table["id"]):
        raise ValueError(f"question id {table['id']!r}; write {stage}.name in small letters")
    device = table.get("device", "cpu")
    if device not in DEVICES:
        raise ValueError(
            f"device of {table['id']} is {device!r}; it is one of {', '.join(DEVICES)}"
        )
    return Question(
        id=table["id"],
        title=table["title"],
        points=int(table["points"]),
        regions=tuple(table["regions"]),
        needs=tuple(table.get("needs", [])),
        hints=tuple(table.get("hints", [])),
        device=device,
    )


def _refuse_unknown(table: dict[str, Any], known: set[str], where: str) -> None:
    """Raise ValueError for a key that means nothing."""
    unknown = sorted(set(table) - known)
    if unknown:
        raise ValueError(
            f"unknown key {unknown[0]} at {where}; known are {', '.join(sorted(known))}"
        )
