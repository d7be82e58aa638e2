"""The doctor names each problem with the command that mends it."""

import sys

import pytest

from needle_course import building, doctor
from needle_course.stages import load_course
from needle_course.workspace import start
from tests.course.small_course import make_course


def by_name(checks):
    return {check.name: check for check in checks}


def test_every_problem_has_a_command_and_nothing_else_has():
    for check in doctor.examine():
        assert check.ok != bool(check.fix), check
        assert check.found


def test_this_machine_has_what_the_tests_need():
    found = by_name(doctor.examine())
    for name in ("python", "numpy", "C++ compiler", "Python headers", "tests"):
        assert found[name].ok, found[name]


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(building.importlib, "import_module", _no_module)
    monkeypatch.setattr(doctor.sysconfig, "get_path", lambda name: str(tmp_path))
    found = by_name(doctor.examine())
    for name in ("C++ compiler", "Python headers", "make", "cmake", "ninja"):
        assert not found[name].ok, name
    assert "g++" in found["C++ compiler"].fix
    assert "-dev" in found["Python headers"].fix
    assert found["cmake"].fix == f"{tmp_path}/python -m pip install 'cmake'"


def _no_module(name):
    raise ImportError(name)


@pytest.mark.parametrize(
    ("tool", "command"),
    [("apt", "apt install g++"), ("dnf", "dnf install gcc-c++"), ("apk", "apk add g++")],
)
def test_the_command_is_the_one_of_the_system(monkeypatch, tool, command):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(doctor.shutil, "which", lambda name: name if name == tool else None)
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 0)
    assert doctor.install_command("compiler") == command
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 1000)
    assert doctor.install_command("compiler") == f"sudo {command}"


def test_a_compiler_that_does_not_work_is_a_problem(monkeypatch, tmp_path):
    broken = tmp_path / "g++"
    broken.write_text("#!/bin/sh\necho cannot find cc1plus >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    found = by_name(doctor.examine())["C++ compiler"]
    assert not found.ok
    assert "cannot find cc1plus" in found.found


def test_missing_data_is_named(tmp_path):
    course = load_course(make_course(tmp_path / "course"))
    mine = start(course, "hw1", tmp_path / "mine")
    assert by_name(doctor.examine(course, mine.root, "hw1"))["data"].ok
    (mine.root / "data/numbers.txt").write_text("")
    found = by_name(doctor.examine(course, mine.root, "hw1"))["data"]
    assert found.found == "missing: data/numbers.txt"
    assert found.fix == f"cp -r {mine.root}/.needle/base/data {mine.root}"
