"""Graded tests under pytest: each is an item that runs as `needle test` runs it.

Loaded by the distribution's entry point, or with `-p needle_course.pytest_plugin`. `--needle-seed`
gives all tests one seed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_GRADED_FOLDERS = (
    (re.compile(r"hw\d+"), 2, lambda file: file.parent.parent.name == "tests"),
    (re.compile(r"tests"), 3, lambda file: file.parents[2].name == "hw_stages"),
)
_SESSIONS: pytest.StashKey[dict[tuple[Path, str], Any]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --needle-seed."""
    parser.addoption("--needle-seed", type=int, help="one seed for all graded tests")


def pytest_configure(config: pytest.Config) -> None:
    """Make room for the sessions of the runner."""
    config.stash[_SESSIONS] = {}


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the sessions."""
    for session in config.stash.get(_SESSIONS, {}).values():
        session.close()


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> Any:
    """Collect a file of graded tests as such; leave all others to pytest."""
    if _place(module_path) is None or b"needle_course.testing" not in module_path.read_bytes():
        return None
    return GradedFile.from_parent(parent, path=module_path)


def _place(file: Path) -> tuple[Path, str] | None:
    """Return the tree and the stage of tests/hwN/test_x.py or hw_stages/hwN/tests/test_x.py."""
    for name, depth, fits in _GRADED_FOLDERS:
        if len(file.parents) > depth and name.fullmatch(file.parent.name) and fits(file):
            stage = file.parent.name if depth == 2 else file.parent.parent.name
            return file.parents[depth], stage
    return None


class GradedFile(pytest.File):
    """A file of graded tests."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each graded test."""
        from needle_course.collection import load_tests

        for test in load_tests([self.path]):
            yield GradedItem.from_parent(self, name=test)


class GradedFailure(Exception):
    """A graded test that did not pass."""


class GradedItem(pytest.Item):
    """One graded test."""

    def runtest(self) -> None:
        """Run it as the runner does."""
        result = self._run()
        self.user_properties += [("verdict", result.verdict), ("seed", result.seed)]
        if not result.passed:
            from needle_course import report

            raise GradedFailure(report.failure(result))

    def _run(self) -> Any:
        from needle_course import runner
        from needle_course.commands import course_for

        place = _place(self.path)
        assert place is not None  # noqa: S101 - only such files are collected
        sessions = self.config.stash[_SESSIONS]
        tree, name = place
        if place not in sessions:
            stage = course_for(tree).stage(name)
            sessions[place] = runner.Session(tree, stage, self.config.getoption("--needle-seed"))
        return sessions[place].run(self.name)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """Show a failure as `needle test` does."""
        if isinstance(excinfo.value, GradedFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the file and the name."""
        return self.path, None, self.name
