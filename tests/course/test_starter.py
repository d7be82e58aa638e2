"""Stage trees and starter zips: their files, their texts, their bytes."""

import subprocess
import sys
import zipfile

import pytest

from needle_course.errors import CourseError
from needle_course.stages import load_course
from needle_course.starter import build_tree, build_zip, main, tree_texts
from tests.course.course_of_two import change, write_course


@pytest.fixture
def folder(tmp_path):
    return write_course(tmp_path / "course")


def files_of(tree):
    return {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}


def test_a_tree_holds_the_files_and_tests_of_its_stage(folder, tmp_path):
    build_tree(load_course(folder), "hw1", tmp_path / "one")
    assert files_of(tmp_path / "one") == {
        "python/needle/__init__.py",
        "python/needle/shapes.py",
        "tests/hw1/test_shapes.py",
    }
    build_tree(load_course(folder), "hw2", tmp_path / "two")
    assert {"python/needle/solids.py", "tests/hw1/test_shapes.py", "tests/hw2/test_solids.py"} <= (
        files_of(tmp_path / "two")
    )


def test_a_starter_shows_no_answer_and_no_later_name(folder):
    texts = tree_texts(load_course(folder), "hw1")
    text = "".join(texts.values())
    assert "area_of_square" not in text
    assert "cube" not in text
    assert "turned" not in text
    assert "return 1000" in text
    assert 'raise NotImplementedError("hw1.square")' in text
    assert texts["python/needle/__init__.py"].endswith(
        '__all__ = ["PI", "around", "circle", "square"]\n'
    )


def test_imports_are_cut_by_what_the_answers_use(folder):
    course = load_course(folder)
    blank = tree_texts(course, "hw1")["python/needle/shapes.py"]
    assert "import math\n" in blank  # an answer needs it
    assert "import sys\n" not in blank  # a later stage needs it
    assert "import sys\n" in tree_texts(course, "hw2")["python/needle/shapes.py"]


def test_filled_trees_hold_the_answers_that_were_asked_for(folder):
    text = tree_texts(load_course(folder), "hw1", {"hw1.circle"})["python/needle/shapes.py"]
    assert "math.pi" in text
    assert "area_of_square" not in text


@pytest.mark.parametrize("filled", [False, True])
def test_trees_are_formatted_and_run(folder, tmp_path, filled):
    for stage in ("hw1", "hw2"):
        tree = tmp_path / stage
        build_tree(load_course(folder), stage, tree, filled)
        command = [sys.executable, "-m", "ruff", "format", "--check", "--isolated"]
        command += ["--line-length", "100", str(tree / "python")]
        subprocess.run(command, check=True)
        subprocess.run([sys.executable, "-c", "import needle"], cwd=tree / "python", check=True)


def test_a_missing_file_is_named(folder, tmp_path):
    (folder / "python/needle/solids.py").unlink()
    with pytest.raises(CourseError, match=r"solids\.py"):
        build_tree(load_course(folder), "hw2", tmp_path / "out")


def test_a_file_that_does_not_parse_is_named(folder, tmp_path):
    change(folder, "python/needle/solids.py", "def cube(side):", "def cube(side:")
    with pytest.raises(CourseError, match=r"solids\.py:\d+ does not parse"):
        build_tree(load_course(folder), "hw2", tmp_path / "out")


def test_a_zip_holds_the_tree_and_nothing_else(folder, tmp_path):
    course = load_course(folder)
    build_tree(course, "hw2", tmp_path / "tree")
    with zipfile.ZipFile(build_zip(course, "hw2", tmp_path)) as archive:
        archive.extractall(tmp_path / "zip")
    assert files_of(tmp_path / "zip") == files_of(tmp_path / "tree")
    for place in files_of(tmp_path / "zip"):
        assert (tmp_path / "zip" / place).read_bytes() == (tmp_path / "tree" / place).read_bytes()


def test_two_zips_have_the_same_bytes(folder, tmp_path):
    first = build_zip(load_course(folder), "hw2", tmp_path / "a.zip").read_bytes()
    for path in folder.rglob("*.py"):
        path.touch()
    second = build_zip(load_course(folder), "hw2", tmp_path / "b.zip").read_bytes()
    assert first == second


def test_the_command_builds_trees_and_zips(tmp_path, monkeypatch):
    folder = write_course(tmp_path / "course")
    monkeypatch.setattr("needle_course.starter.load_course", lambda: load_course(folder))
    assert main(["hw1", "--out", str(tmp_path / "one")]) == 0
    assert (tmp_path / "one/python/needle/shapes.py").is_file()
    assert main(["--zip", "--out", str(tmp_path / "zips")]) == 0
    assert files_of(tmp_path / "zips") == {"hw1.zip", "hw2.zip"}
    assert main(["hw9", "--out", str(tmp_path / "none")]) == 2
