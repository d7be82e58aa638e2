"""The course as its instructor gives it: `course.toml`, read and checked. `load` is all that other
files need.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from needle_course.errors import CourseError
from needle_course.stages import DEVICES, NAMES, Question

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Settings", "SettingsError", "StageSettings", "load"]

KEYS = {
    "title": str,
    "term": str,
    "hints": bool,
    "devices": list,
    "off": list,
    "stages": dict,
}
STAGE_KEYS = ("weight", "opens", "due")


class SettingsError(CourseError):
    """A course.toml that cannot be meant: `[course.toml] what was met; the rule`."""

    def __init__(self, message: str) -> None:
        super().__init__(f"[course.toml] {message}")


@dataclass(frozen=True)
class StageSettings:
    """The weight of a stage in the course, in percent, and its times, which know their offset."""

    weight: float
    opens: datetime | None = None
    due: datetime | None = None


@dataclass(frozen=True)
class Settings:
    """What an instructor decides; `stages` has every stage of the course, in order."""

    title: str
    term: str
    hints: bool
    devices: tuple[str, ...]
    off: frozenset[str]
    stages: Mapping[str, StageSettings]

    def counts(self, question: Question) -> bool:
        """Return whether a question is tested and gives points."""
        return question.id not in self.off and question.device in self.devices


def load(root: Path) -> Settings:
    """Return the settings of a course.

    Args:
        root: the repository, or the folder of the packaged stages: `course.toml` lies in its
            `hw_stages` or in itself, beside the folders of the stages.

    Raises:
        SettingsError: if the file is missing, is no TOML or says what cannot be meant.
    """
    folder = root / "hw_stages" if (root / "hw_stages").is_dir() else root
    path = folder / "course.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsError(f"there is no {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is no TOML: {error}") from None
    return _checked(table, _questions(folder))


def _questions(folder: Path) -> list[str]:
    """Return the ids of all questions of the course."""
    found = []
    for path in sorted(folder.glob("hw[0-9]*/stage.toml")):
        stage = tomllib.loads(path.read_text(encoding="utf-8"))
        found += [question["id"] for question in stage.get("questions", [])]
    return found


def _checked(table: dict[str, Any], known: list[str]) -> Settings:
    """Return the settings that a table means; `known` are the ids of the questions."""
    _only(table, KEYS, "")
    for key, kind in KEYS.items():
        if key not in table:
            raise SettingsError(f"{key} is missing; {key} = {_example(kind)}")
        if type(table[key]) is not kind:
            raise SettingsError(f"{key} is {table[key]!r}; write it as {_example(kind)}")
    for device in table["devices"]:
        if device not in DEVICES:
            raise SettingsError(f"devices has {device!r}; there are {', '.join(DEVICES)}")
    if "cpu" not in table["devices"]:
        raise SettingsError('devices leaves out "cpu"; without it no stage has a question')
    for question in table["off"]:
        if question not in known:
            raise SettingsError(f"off has {question!r}; the course has {', '.join(known)}")
    return Settings(
        table["title"],
        table["term"],
        table["hints"],
        tuple(table["devices"]),
        frozenset(table["off"]),
        _stages(table["stages"]),
    )


def _stages(table: dict[str, Any]) -> dict[str, StageSettings]:
    """Return the settings of each stage."""
    for name in NAMES:
        if name not in table:
            raise SettingsError(
                f"[stages.{name}] is missing; give it a weight, 0 if you do not set it"
            )
    _only(table, NAMES, "stages.")
    stages = {name: _stage(name, table[name]) for name in NAMES}
    total = sum(stage.weight for stage in stages.values())
    if abs(total - 100) > 1e-6:
        raise SettingsError(f"the weights of the stages add up to {total:g}; make it 100")
    return stages


def _stage(name: str, table: Any) -> StageSettings:
    """Return the settings of one stage."""
    where = f"stages.{name}"
    if not isinstance(table, dict):
        raise SettingsError(f"{where} is {table!r}; write it as a table, [{where}]")
    _only(table, STAGE_KEYS, f"{where}.")
    weight = table.get("weight")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 100:
        raise SettingsError(f"{where}.weight is {weight!r}; it is a number from 0 to 100")
    opens = _moment(f"{where}.opens", table.get("opens"), time.min)
    due = _moment(f"{where}.due", table.get("due"), time.max.replace(microsecond=0))
    if opens and due and due <= opens:
        raise SettingsError(f"{where} is due {due} but opens {opens}; it opens first")
    return StageSettings(float(weight), opens, due)


def _moment(where: str, value: Any, of_day: time) -> datetime | None:
    """Return a moment with its offset; a date alone means `of_day`, where this machine stands."""
    if value is None:
        return None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise SettingsError(
                f"{where} is {value} without an offset from UTC; write {value.isoformat()}+01:00"
            )
        return value
    if isinstance(value, date):
        return datetime.combine(value, of_day).astimezone()
    raise SettingsError(f"{where} is {value!r}; write a date without quotes, 2027-02-01")


def _only(table: Mapping[str, Any], keys: Any, where: str) -> None:
    """Refuse a key that nothing reads: it is a slip of the pen."""
    for key in table:
        if key not in keys:
            raise SettingsError(f"{where}{key} means nothing; there are {', '.join(keys)}")


def _example(kind: type) -> str:
    return {str: '"words"', bool: "true", list: '["one", "two"]', dict: "[stages.hw0]"}[kind]
