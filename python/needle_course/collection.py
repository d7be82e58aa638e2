"""Find the graded tests of a stage and load them; both sides of a run do it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from needle_course.testing import GradedTest

__all__ = ["CollectionError", "load_tests", "stage_of", "test_files", "tests_folder"]


class CollectionError(Exception):
    """A test file cannot be loaded, or two tests have one id."""


def tests_folder(tree: Path, stage: str) -> Path:
    """Return where a tree keeps the graded tests of a stage: the repository, or a workspace."""
    in_repository = tree / "hw_stages" / stage / "tests"
    return in_repository if in_repository.is_dir() else tree / "tests" / stage


def test_files(tree: Path, stage: str) -> list[Path]:
    """Return the test files of a stage, in the order of their names."""
    return sorted(tests_folder(tree, stage).glob("test_*.py"))


def stage_of(name: str) -> str:
    """Return the stage of a test, question or region: "hw1" of "hw1.backward::divide"."""
    return name.split(".")[0]


def load_tests(files: Iterable[Path]) -> dict[str, GradedTest]:
    """Return the graded tests of some files by id, in order; CollectionError says what is wrong.

    A file may import others of its folder by their plain name.
    """
    tests: dict[str, GradedTest] = {}
    for file in files:
        for test in _load(file):
            if test.id in tests and tests[test.id] is not test:
                raise CollectionError(f"[tests] {file}: there are two tests {test.id}")
            tests[test.id] = test
    return tests


def _load(file: Path) -> list[GradedTest]:
    name = f"needle_course_tests_{file.parent.parent.name}_{file.parent.name}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise CollectionError(f"[tests] {file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.path.insert(0, str(file.parent))
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise CollectionError(f"[tests] {file}: {type(error).__name__}: {error}") from error
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(str(file.parent))
        _forget_neighbours(file.parent, set(sys.modules) - before)
    return _graded_in(vars(module).values())


def _forget_neighbours(folder: Path, names: set[str]) -> None:
    """Drop modules that lie beside a test file: another stage may have one of the same name."""
    for name in names:
        if (origin := getattr(sys.modules[name], "__file__", None)) and (
            Path(origin).parent == folder
        ):
            del sys.modules[name]


def _graded_in(values: Iterable[object]) -> list[GradedTest]:
    found: list[GradedTest] = []
    for value in values:
        if isinstance(value, GradedTest):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += [part for part in value if isinstance(part, GradedTest)]
        elif isinstance(value, dict):
            found += [part for part in value.values() if isinstance(part, GradedTest)]
    return list(dict.fromkeys(found))
