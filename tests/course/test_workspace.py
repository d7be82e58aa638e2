"""A workspace on disk: it starts, goes on without losing a line, and survives interruptions."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from needle_course import workspace as workspace_module
from needle_course.runner import Result
from needle_course.stages import load_course
from needle_course.workspace import NotHere, Workspace, WouldOverwrite, start
from tests.course.small_course import answer, make_course

OPS = "python/needle/ops.py"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return load_course(make_course(tmp_path_factory.mktemp("course")))


@pytest.fixture
def hw1(course, tmp_path):
    return start(course, "hw1", tmp_path / "mine")


def outcomes(plan):
    return {entry.path: entry.outcome for entry in plan if entry.outcome != "same"}


def test_start_writes_the_starter_and_its_base(hw1):
    assert hw1.stage == "hw1"
    assert "BEGIN YOUR SOLUTION (hw1.double)" in (hw1.root / OPS).read_text()
    assert "return 2 * x" not in (hw1.root / OPS).read_text()
    assert (hw1.notes / "base" / OPS).read_text() == (hw1.root / OPS).read_text()
    assert (hw1.root / "tests/hw1/test_ops.py").is_file()
    assert (hw1.root / "data/numbers.txt").read_text() == "21\n"
    assert [path.name for path in hw1.root.parent.iterdir()] == ["mine"]


def test_start_fills_an_empty_folder(course, tmp_path):
    (tmp_path / "empty").mkdir()
    assert start(course, "hw1", tmp_path / "empty").stage == "hw1"


def test_start_overwrites_nothing(course, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "essay.txt").write_text("mine")
    with pytest.raises(WouldOverwrite, match="is there already"):
        start(course, "hw1", tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["essay.txt"]
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WouldOverwrite):
        start(course, "hw1", tmp_path / "file")


def test_a_workspace_is_found_from_below(hw1):
    assert Workspace.find(hw1.root / "python" / "needle").root == hw1.root


def test_no_workspace(tmp_path):
    with pytest.raises(NotHere, match="lies in no workspace; begin one with `needle start hw0`"):
        Workspace.find(tmp_path)


def test_a_broken_note_says_how_to_mend_it(hw1):
    (hw1.notes / "workspace.json").write_text("{")
    with pytest.raises(NotHere, match='write {"stage": "hw1"} into it'):
        _ = Workspace(hw1.root).stage


def test_next_carries_everything_over(course, hw1):
    answer(hw1.root, OPS, "hw1.double", "return x + x  # mine")
    own = hw1.root / OPS
    own.write_text(
        own.read_text().replace("import numpy as np\n", "import numpy as np\nimport os\n")
    )
    (hw1.root / "python/needle/extra.py").write_text("MINE = 1\n")
    plan = hw1.advance(course)
    assert outcomes(plan) == {
        OPS: "merged",
        "python/needle/__init__.py": "ours",
        "apps/program.py": "new",
        "tests/hw2/test_triple.py": "new",
    }
    text = own.read_text()
    assert "    return x + x  # mine\n" in text
    assert "import numpy as np\nimport os\n" in text
    assert "BEGIN YOUR SOLUTION (hw2.triple)" in text
    assert "LIMIT = 2" in text
    assert hw1.stage == "hw2"
    assert (hw1.root / "python/needle/extra.py").read_text() == "MINE = 1\n"
    assert "return x + x  # mine" in (hw1.notes / "before" / OPS).read_text()
    assert "hw2.triple" in (hw1.notes / "base" / OPS).read_text()
    assert not (hw1.notes / "next").exists()
    assert not (hw1.notes / "conflicts").exists()


def test_a_conflict_keeps_the_students_text(course, hw1):
    own = hw1.root / OPS
    own.write_text(own.read_text().replace("LIMIT = 1", "LIMIT = 77"))
    plan = hw1.advance(course)
    assert outcomes(plan)[OPS] == "conflict"
    assert "LIMIT = 77" in own.read_text()
    assert "LIMIT = 2" in (hw1.notes / "conflicts" / OPS).read_text()
    assert own.read_text().count("def triple(x):") == 1, "other modules import it"
    assert own.read_text().endswith("### END YOUR SOLUTION\n")
    code = "import needle; needle.triple"
    subprocess.run([sys.executable, "-c", code], cwd=hw1.root / "python", check=True)


def test_a_file_of_the_students_own_by_the_same_name_is_a_conflict(course, hw1):
    (hw1.root / "apps").mkdir()
    (hw1.root / "apps/program.py").write_text("MINE = 1\n")
    assert outcomes(hw1.advance(course))["apps/program.py"] == "conflict"
    assert (hw1.root / "apps/program.py").read_text() == "MINE = 1\n"
    assert "A program." in (hw1.notes / "conflicts/apps/program.py").read_text()


def test_a_file_that_is_gone_comes_back(course, hw1):
    (hw1.root / "data/numbers.txt").unlink()
    assert outcomes(hw1.advance(course))["data/numbers.txt"] == "new"
    assert (hw1.root / "data/numbers.txt").read_text() == "21\n"


def test_bytes_and_line_ends_of_a_student_survive(course, hw1):
    own = hw1.root / OPS
    text = own.read_bytes().replace(b'"""Return 2 x."""', b'"""Return 2 x."""\r\n    # caf\xe9')
    own.write_bytes(text)
    hw1.advance(course)
    assert b"\r\n    # caf\xe9\n" in own.read_bytes()


def test_after_the_last_stage_there_is_none(course, tmp_path):
    last = start(course, "hw3", tmp_path / "mine")
    with pytest.raises(NotHere, match="hw3 is the last stage"):
        last.advance(course)


class Cut(Exception):
    """Stands for the moment at which the power went."""


@pytest.mark.parametrize("moment", range(12))
def test_an_interrupted_next_leaves_a_workspace(course, hw1, monkeypatch, moment):
    answer(hw1.root, OPS, "hw1.double", "return x + x  # mine")
    calls = iter(range(1000))

    def cut(function):
        def wrapped(*arguments):
            if next(calls) == moment:
                raise Cut
            return function(*arguments)

        return wrapped

    names = ("_move", "_keep", "_write")
    whole = {name: getattr(workspace_module, name) for name in names}
    for name in names:
        monkeypatch.setattr(workspace_module, name, cut(whole[name]))
    try:
        hw1.advance(course)
        finished = True
    except Cut:
        finished = False
    for name in names:
        monkeypatch.setattr(workspace_module, name, whole[name])
    assert "return x + x  # mine" in (hw1.root / OPS).read_text()
    again = Workspace.find(hw1.root)
    assert not (again.notes / "next").exists()
    if again.stage == "hw1":
        assert not finished
        again.advance(course)
    assert again.stage == "hw2"
    text = (again.root / OPS).read_text()
    assert "return x + x  # mine" in text
    assert "hw2.triple" in text
    assert "hw2.triple" in (again.notes / "base" / OPS).read_text()
    assert (again.root / "tests/hw2/test_triple.py").is_file()


def test_an_edit_after_an_interruption_is_not_overwritten(course, hw1, monkeypatch):
    answer(hw1.root, OPS, "hw1.double", "return x + x")
    monkeypatch.setattr(workspace_module, "_move", None)
    with pytest.raises(TypeError):
        hw1.advance(course)
    monkeypatch.undo()
    answer(hw1.root, OPS, "hw1.double", "return x * 2  # later")
    again = Workspace.find(hw1.root)
    assert again.stage == "hw2"
    assert "# later" in (again.root / OPS).read_text()
    assert "hw2.triple" in (again.notes / "conflicts" / OPS).read_text()


def test_verdicts_belong_to_the_files_that_were_tested(course, hw1):
    digests = hw1.stage_digests(["hw1"])
    hw1.remember([Result("hw1.double::values", "hw1.double", "pass")], digests)
    assert hw1.results()["hw1.double::values"]["digest"] == digests["hw1"]
    assert hw1.stage_digests(["hw1"]) == digests
    for path in (OPS, "tests/hw1/test_ops.py", "python/needle/new.py", "src/kernel.cu"):
        before = hw1.stage_digests(["hw1"])
        (hw1.root / path).parent.mkdir(exist_ok=True)
        with (hw1.root / path).open("a") as file:
            file.write("# more\n")
        assert hw1.stage_digests(["hw1"]) != before, path


def test_damaged_results_are_forgotten(hw1):
    for text in ("{", "[]", ""):
        (hw1.notes / "results.json").write_text(text)
        assert hw1.results() == {}


def test_changed_tests_are_named(course, hw1):
    assert hw1.changed_tests(course) == []
    test = hw1.root / "tests/hw1/test_ops.py"
    test.write_text(test.read_text() + "\n")
    assert hw1.changed_tests(course) == ["tests/hw1/test_ops.py"]
    shutil.rmtree(test.parent)
    assert hw1.changed_tests(course) == ["tests/hw1/test_ops.py"]


def test_notes_are_plain_json(hw1):
    assert json.loads((hw1.root / ".needle/workspace.json").read_text()) == {"stage": "hw1"}
    assert isinstance(hw1.root, Path)
