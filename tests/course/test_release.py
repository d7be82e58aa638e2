"""The wheel and the zips that it holds: what a student needs, and no answer."""

import shutil
import zipfile

import pytest

from needle_course import release
from needle_course.gates import check
from needle_course.release import build_release, leaks_in_release
from needle_course.stages import load_course
from needle_course.starter import build_tree, build_zip
from tests.course.course_of_two import change, write_course


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A good course and its wheel."""
    course = load_course(write_course(tmp_path_factory.mktemp("course")))
    handouts = course.root / "handouts"
    (handouts / "hw1").mkdir(parents=True)
    (handouts / "hw1" / "handout.md").write_text("# Shapes\n")
    return course, build_release(course, course.root / "out", handouts)


def test_a_good_release_shows_no_answer(made):
    course, wheel = made
    assert leaks_in_release(course, wheel) == []


def test_a_wheel_holds_the_tool_and_the_stages_without_bugs_to_plant(made):
    _, wheel = made
    names = zipfile.ZipFile(wheel).namelist()
    assert "needle_course/commands.py" in names
    for name in ("stage.toml", "starter.zip", "tests/test_shapes.py"):
        assert f"needle_course/course/hw1/{name}" in names
    assert not [name for name in names if "mutants.toml" in name or "variants.toml" in name]


def test_an_installed_course_gives_the_starters(made, tmp_path):
    course, wheel = made
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    installed = load_course(tmp_path / "needle_course" / "course")
    assert installed.packaged
    build_tree(installed, "hw2", tmp_path / "a")
    build_tree(course, "hw2", tmp_path / "b")
    for path in (tmp_path / "b").rglob("*.py"):
        other = tmp_path / "a" / path.relative_to(tmp_path / "b")
        assert other.read_bytes() == path.read_bytes()
    assert (tmp_path / "a" / "handouts" / "hw1" / "handout.md").is_file()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("handouts/hw1/handout.md", "area_of_square = side * side\n", "the answer to hw1.square"),
        ("handouts/hw1/h.ipynb", ' "area_of_square = side * side\\n",\n', "answer to hw1.square"),
        ("notes.txt", "    ### BEGIN SOLUTION hw1.square\n", "for the repository only"),
        ("mutants.toml", "", "is not for students"),
        ("python/needle/shapes.pyc", "x", "compiled code"),
        ("python/needle/shapes.py", "area_of_square = 1\n", "not what the compiler gives"),
    ],
)
def test_an_answer_in_a_release_is_found(made, tmp_path, name, text, message):
    course, _ = made
    archive = build_zip(course, "hw1", tmp_path / "starter.zip")
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(tmp_path / "new.zip", "w") as opened:
        for entry in old.namelist():
            if entry != name:
                opened.writestr(entry, old.read(entry))
        opened.writestr(name, text)
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as opened:
        opened.write(tmp_path / "new.zip", "needle_course/course/hw1/starter.zip")
    found = "\n".join(map(str, leaks_in_release(course, wheel)))
    assert message in found
    assert name in found


def test_the_gate_builds_all_that_is_given_out(tmp_path):
    folder = write_course(tmp_path)
    assert not check(load_course(folder), [], ["release"])
    change(folder, "hw_stages/hw1/handout.md", "# Shapes", "area_of_square = side * side")
    found = check(load_course(folder), [], ["release"])
    assert {"hw1.square" in str(offence) for offence in found} == {True}


def test_handouts_are_built_when_their_sources_changed(tmp_path, monkeypatch):
    course = load_course(write_course(tmp_path / "course"))
    built = []

    def build(course, stage, out, execute_notebook):
        assert execute_notebook
        built.append(stage.name)
        out.mkdir(parents=True)

    monkeypatch.setattr("needle_course.handout_builder.build", build)
    release.build_handouts(course, tmp_path / "out")
    release.build_handouts(course, tmp_path / "out")
    assert built == ["hw1", "hw2"]
    change(course.root, "python/needle/solids.py", '"""Solids."""', '"""Solid things."""')
    release.build_handouts(course, tmp_path / "out")
    assert built == ["hw1", "hw2", "hw2"]
    shutil.rmtree(tmp_path / "out")
    release.build_handouts(course, tmp_path / "out")
    assert built[3:] == ["hw1", "hw2"]
