"""The commands as a student runs them: other processes, no terminal, a bare environment."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.course.small_course import PYTHON, answer, make_course, needle, records

OPS = "python/needle/ops.py"
RIGHT = {"hw1.double": "return 2 * x", "hw1.mean": "return np.sum(x) / len(x)"}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return make_course(tmp_path_factory.mktemp("course"))


@pytest.fixture
def begin(course, tmp_path):
    """Start a workspace of a stage; return its folder."""

    def begun(stage):
        done = needle(course, tmp_path, "start", stage, "mine")
        assert done.returncode == 0, done.stderr
        return tmp_path / "mine"

    return begun


@pytest.fixture
def mine(begin):
    return begin("hw1")


def answer_all(folder):
    for region, text in RIGHT.items():
        answer(folder, OPS, region, text)


def status_of(course, folder):
    rows = json.loads(needle(course, folder, "status", "--json").stdout)
    return {row["question"]: (row["points"], row["failed"], row["unknown"]) for row in rows}


def test_start_says_what_comes_next(course, tmp_path):
    done = needle(course, tmp_path, "start", "hw1", "mine")
    assert done.returncode == 0
    assert "needle test hw1.double" in done.stdout
    assert "hw1 builds on hw0" in done.stdout
    done = needle(course, tmp_path, "start", "hw1", "mine")
    assert done.returncode == 6
    assert "nothing is overwritten" in done.stderr
    assert needle(course, tmp_path, "start", "hw9", "other").returncode == 2
    assert not (tmp_path / "other").exists()


def test_a_blank_starter_is_to_do(course, mine):
    done = needle(course, mine, "test", "hw1")
    assert done.returncode == 1
    assert done.stderr == ""
    assert "TO DO  hw1.double::values   Twice the values of a matrix." in done.stdout
    assert f"{OPS}:9 in double" in done.stdout
    assert re.search(r"reproduce: needle test hw1.double::values --seed \d+", done.stdout)
    assert "to do   hw1.mean::values   not written yet: hw1.mean" in done.stdout
    assert "hw1: 0 of 100 points" in done.stdout
    assert "\033" not in done.stdout
    assert "Traceback" not in done.stdout


def test_right_answers_pass(course, mine):
    answer_all(mine)
    done = needle(course, mine, "test", "hw1")
    assert done.returncode == 0
    assert done.stdout.endswith("hw1: 100 of 100 points\n")


def test_the_first_failure_comes_in_full_the_others_in_a_line(course, mine):
    answer(mine, OPS, "hw1.double", "return -2 * x")
    done = needle(course, mine, "test", "double")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("FAIL  hw1.double::values")
    assert any("looks like: the wrong sign" in line for line in lines)
    assert "wrong   hw1.double::number_of_the_file   double(x) is wrong" in lines
    stopped = needle(course, mine, "test", "double", "-x").stdout
    assert "number_of_the_file" not in stopped


def test_reproduce_gives_the_same_failure(course, mine):
    answer(mine, OPS, "hw1.double", "return x + np.random.rand()")
    said = needle(course, mine, "test", "hw1.double::values").stdout
    command = re.search(r"reproduce: needle (.*)", said)[1].split()
    assert needle(course, mine, *command).stdout == said
    assert needle(course, mine, "test", "hw1.double::values", "--seed", "123").stdout != said


def test_json_is_one_line_a_test_and_a_sum(course, mine):
    answer_all(mine)
    *tests, total = records(needle(course, mine, "test", "hw1", "--json"))
    assert [test["verdict"] for test in tests] == ["pass"] * 3
    assert {"test", "question", "message", "region", "seed", "seconds"} <= tests[0].keys()
    assert (total["stage"], total["points"], total["of"]) == ("hw1", 100, 100)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["hw1.dubble"], "did you mean hw1.double"),
        (["nonsense"], "nothing is called 'nonsense'"),
        (["hw2.triple"], "hw2 is not in this workspace yet: `needle next` brings it"),
        (["--seed", "-1"], "a seed is a number from 0"),
        (["--seed", "x"], "Invalid value"),
        (["--nonsense"], "No such option"),
        (["--tree", "/nonsense"], "no tests"),
    ],
)
def test_what_names_nothing_is_no_pass(course, mine, arguments, says):
    done = needle(course, mine, "test", *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_without_tests_there_is_no_pass(course, mine):
    shutil.rmtree(mine / "tests/hw1")
    done = needle(course, mine, "test", "hw1")
    assert done.returncode == 2
    assert "no tests of hw1 here" in done.stderr


def test_tests_that_do_not_load_are_a_fault_of_the_tool(course, mine):
    (mine / "tests/hw1/test_ops.py").write_text("oh no")
    assert needle(course, mine, "test", "hw1").returncode == 4


def test_outside_of_a_workspace(course, tmp_path):
    for command in ("test", "status", "next", "submit", "milestone"):
        done = needle(course, tmp_path, command)
        assert done.returncode == 2, command
        assert "lies in no workspace; begin one with `needle start hw0`" in done.stderr


def test_status_follows_the_files(course, mine):
    assert status_of(course, mine) == {
        "hw0.add": (0, 0, 1),
        "hw0.cpp": (0, 0, 1),
        "hw1.double": (0, 0, 2),
        "hw1.mean": (0, 0, 1),
    }
    answer(mine, OPS, "hw1.double", RIGHT["hw1.double"])
    needle(course, mine, "test", "hw1")
    assert status_of(course, mine)["hw1.double"] == (70, 0, 0)
    assert status_of(course, mine)["hw1.mean"] == (0, 1, 0)
    before = (mine / OPS).read_text()
    (mine / OPS).write_text(before + "# later\n")
    assert status_of(course, mine)["hw1.double"] == (0, 0, 2)
    (mine / OPS).write_text(before)
    assert status_of(course, mine)["hw1.double"] == (70, 0, 0)
    text = needle(course, mine, "status").stdout
    assert "hw1   70 of 100 points   <- you are here" in text


def test_other_seeds_do_not_count(course, mine):
    answer_all(mine)
    needle(course, mine, "test", "hw1", "--seed", "3")
    assert status_of(course, mine)["hw1.double"] == (0, 0, 2)


def test_next_goes_on_and_says_what_is_open(course, mine):
    answer(mine, OPS, "hw1.double", RIGHT["hw1.double"])
    done = needle(course, mine, "next")
    assert done.returncode == 0
    assert "hw1 is not passed yet: hw1.double, hw1.mean. You can go on" in done.stdout
    assert f"        {OPS}" in done.stdout
    answer(mine, OPS, "hw2.triple", "return 3 * x")
    done = needle(course, mine, "test", "hw2", "hw1.double")
    assert done.returncode == 0, done.stdout


def test_earlier_stages_are_tested_again(course, begin):
    folder = begin("hw2")
    for region, text in RIGHT.items():
        answer(folder, OPS, region, text)
    answer(folder, OPS, "hw2.triple", "return 3 * x")
    answer(folder, "src/simple_ml.py", "hw0.add", "return x - y")
    done = needle(course, folder, "test")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "pass    hw2.triple::values"
    assert "hw1: 100 of 100 points, 3 tests pass" in lines
    assert any(line.startswith("FAIL  hw0.add::numbers") for line in lines)


def test_a_conflict_has_a_status_of_its_own(course, mine):
    (mine / OPS).write_text((mine / OPS).read_text().replace("LIMIT = 1", "LIMIT = 77"))
    done = needle(course, mine, "next")
    assert done.returncode == 8
    assert "CONFLICT: yours stays, ours is in .needle/conflicts" in done.stdout
    done = needle(course, mine, "test", "hw2")
    assert "not written yet: hw2.triple" in done.stdout


def test_submit_tests_the_zip(course, mine):
    answer_all(mine)
    done = needle(course, mine, "submit")
    assert done.returncode == 0, done.stderr
    assert "hw1: 100 of 100 points" in done.stdout
    assert re.search(r"^content [0-9a-f]{64}$", done.stdout, re.MULTILINE)
    assert (mine / "hw1.zip").is_file()
    answer(mine, OPS, "hw1.mean", "return 0")
    done = needle(course, mine, "submit", "--out", "other.zip", "--json")
    assert done.returncode == 1
    record = json.loads(done.stdout)
    assert (record["points"], record["of"]) == (70, 100)
    assert record["zip"] == str(mine / "other.zip")


def test_submit_refuses_changed_tests(course, mine):
    test = mine / "tests/hw1/test_ops.py"
    test.write_text(test.read_text().replace("2 * inputs", "3 * inputs"))
    done = needle(course, mine, "submit")
    assert done.returncode == 7
    assert "tests/hw1/test_ops.py differ from the course's" in done.stderr
    assert not (mine / "hw1.zip").exists()


def test_milestone_runs_on_the_students_code(course, mine):
    assert "there is no" in needle(course, mine, "milestone").stderr
    (mine / "milestones").mkdir()
    program = "import os, needle\nprint(needle.double(21), os.environ['NEEDLE_BACKEND'])\n"
    (mine / "milestones/hw1.py").write_text(program)
    answer_all(mine)
    done = needle(course, mine, "milestone")
    assert (done.returncode, done.stdout) == (0, "42 np\n")
    (mine / "milestones/hw1.py").write_text("import sys\nprint(sys.argv[1:])\n")
    drawn = needle(course, mine, "milestone", "hw1", "mine.png")
    assert drawn.stdout == f"{[str(mine / 'mine.png')]}\n"
    (mine / "milestones/hw1.py").write_text(program)
    answer(mine, OPS, "hw1.double", "return 1 / 0")
    assert needle(course, mine, "milestone", "hw1").returncode == 1


def test_doctor_reports(course, mine, tmp_path):
    done = needle(course, mine, "doctor", "--json")
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert done.returncode == (0 if all(check["ok"] for check in checks.values()) else 1)
    assert checks["data"]["ok"]
    (mine / "data/numbers.txt").unlink()
    done = needle(course, mine, "doctor")
    assert done.returncode == 1
    assert "missing: data/numbers.txt" in done.stdout
    assert needle(course, tmp_path, "doctor").stdout


def test_build_writes_a_folder_and_a_zip(course, tmp_path):
    done = needle(course, tmp_path, "build", "hw1", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / OPS).is_file()
    assert (tmp_path / "out.zip").is_file()
    assert needle(course, tmp_path, "build", "hw1", "--out", "out").returncode == 6
    assert needle(course, tmp_path, "build", "hw1", "--out", "full", "--filled").returncode == 0
    done = needle(course, tmp_path, "test", "--tree", "full", "hw1")
    assert done.returncode == 0, done.stdout


def test_the_repository_is_tested_too(course, tmp_path):
    done = needle(course, tmp_path, "test", "--tree", str(course), "hw1", "hw2")
    assert done.returncode == 0, done.stdout
    assert "hw2: 100 of 100 points" in done.stdout


def test_an_unzipped_starter_is_a_workspace(course, tmp_path):
    assert needle(course, tmp_path, "build", "hw1", "--out", "out").returncode == 0
    shutil.unpack_archive(tmp_path / "out.zip", tmp_path / "mine")
    mine = tmp_path / "mine"
    answer(mine, OPS, "hw1.double", "return 2 * x")
    done = needle(course, mine / "python", "test", "hw1.double")
    assert done.returncode == 0, done.stderr
    assert needle(course, mine, "next").returncode == 0
    assert "return 2 * x" in (mine / OPS).read_text()
    assert "hw2.triple" in (mine / OPS).read_text()


# --- native code


def test_make_builds_and_a_mistake_is_named(course, begin):
    folder = begin("hw0")
    answer(folder, "src/simple_ml.py", "hw0.add", "return x + y")
    answer(folder, "src/native.cpp", "hw0.cpp.sum", "return a + b;")
    assert needle(course, folder, "test").returncode == 0
    assert (folder / "src/native.so").is_file()
    answer(folder, "src/native.cpp", "hw0.cpp.sum", "return a + wrong;")
    done = needle(course, folder, "test")
    assert done.returncode == 3
    assert "pass    hw0.add::numbers" in done.stdout, "it needs no native code"
    assert "FAIL  hw0.cpp::numbers" in done.stdout
    assert "the C++ code does not compile" in done.stdout
    assert "src/native.cpp:6: 'wrong' was not declared in this scope" in done.stdout
    assert not (folder / "src/native.so").exists(), "the stale module is gone"
    answer(folder, "src/native.cpp", "hw0.cpp.sum", "return a - b;")
    done = needle(course, folder, "test", "--json")
    assert [test["verdict"] for test in records(done)[:2]] == ["pass", "fail"]


def kernels(course, folder):
    done = needle(course, folder, "test", "hw3", "--json")
    return {test["test"].split("::")[0]: test for test in records(done) if "test" in test}


def verdicts(found):
    return {name: test["verdict"] for name, test in found.items()}


def test_cmake_builds_and_a_mistake_costs_its_own_module(course, begin):
    folder = begin("hw3")
    answer(folder, OPS, "hw1.double", RIGHT["hw1.double"])
    answer(folder, "src/cpu.cc", "hw3.cpu.answer", "return 42;")
    answer(folder, "src/cuda.cu", "hw3.cuda.answer", "return 43;")
    right = {"hw3.python": "pass", "hw3.cpu": "pass", "hw3.cuda": "pass"}
    assert verdicts(kernels(course, folder)) == right
    answer(folder, "src/cuda.cu", "hw3.cuda.answer", "return wrong;")
    found = kernels(course, folder)
    assert verdicts(found) == {**right, "hw3.cuda": "build_error"}
    assert found["hw3.cuda"]["where"] == "src/cuda.cu:4"
    assert "'wrong' was not declared" in found["hw3.cuda"]["detail"][0]
    answer(folder, "src/cpu.cc", "hw3.cpu.answer", "return 42")
    found = kernels(course, folder)
    assert verdicts(found) == {**right, "hw3.cpu": "build_error", "hw3.cuda": "build_error"}
    assert not list((folder / "python/needle/backend_ndarray").glob("*.so"))
    answer(folder, "src/cpu.cc", "hw3.cpu.answer", "return 41;")
    answer(folder, "src/cuda.cu", "hw3.cuda.answer", "return 43;")
    assert verdicts(kernels(course, folder)) == {**right, "hw3.cpu": "fail"}


def test_a_build_file_that_is_broken_is_a_build_error(course, begin):
    folder = begin("hw3")
    answer(folder, OPS, "hw1.double", RIGHT["hw1.double"])
    (folder / "CMakeLists.txt").write_text("nonsense(\n")
    found = kernels(course, folder)
    assert found["hw3.python"]["verdict"] == "pass"
    assert found["hw3.cpu"]["verdict"] == "build_error"
    assert any("CMake" in line for line in found["hw3.cpu"]["detail"])


# --- circumstances


def test_pytest_says_the_same(course, mine):
    answer(mine, OPS, "hw1.double", "return x[:1]")
    *tests, _ = records(needle(course, mine, "test", "hw1", "--json"))
    said = {test["test"]: test["verdict"] for test in tests}
    report = mine / "report.xml"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "needle_course.pytest_plugin", "tests/hw1"]
        + [f"--junitxml={report}", "-p", "no:cacheprovider"],
        cwd=mine,
        env={**os.environ, "PYTHONPATH": str(PYTHON), "NEEDLE_COURSE": str(course)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    cases = ElementTree.parse(report).iter("testcase")
    found = {}
    for case in cases:
        properties = {entry.get("name"): entry.get("value") for entry in case.iter("property")}
        question = case.attrib["classname"].removeprefix("tests.hw1.test_ops.")
        found[f"{question}::{case.attrib['name']}"] = properties["verdict"]
    assert found == said
    assert set(said.values()) == {"wrong_shape", "exception", "not_implemented"}
    assert "reproduce: needle test hw1.double::values --seed" in done.stdout
    assert "shape   expected (3, 4)   got (1, 4)" in done.stdout


def test_a_file_of_the_students_own_is_left_to_pytest(course, mine):
    (mine / "tests/hw1/test_mine.py").write_text("def test_mine():\n    assert 1 == 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "needle_course.pytest_plugin", "-q"]
        + ["tests/hw1/test_mine.py", "-p", "no:cacheprovider"],
        cwd=mine,
        env={**os.environ, "PYTHONPATH": str(PYTHON), "NEEDLE_COURSE": str(course)},
        capture_output=True,
        text=True,
    )
    assert "1 passed" in done.stdout


def test_interrupted(course, mine):
    answer(mine, OPS, "hw1.double", "while True:\n    pass")
    process = subprocess.Popen(
        [sys.executable, "-m", "needle_course", "test", "hw1"],
        cwd=mine,
        env={**os.environ, "PYTHONPATH": str(PYTHON), "NEEDLE_COURSE": str(course)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    while len(workers(mine)) < 3:  # the tool, its server and the test
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert workers(mine) == []


def workers(folder: Path) -> list[str]:
    """Return the processes that run in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve() == folder and (process / "cmdline").read_text():
                found.append(process.name)
        except OSError:
            continue
    return found


def test_the_tool_that_is_killed_leaves_nothing(course, mine):
    answer(mine, OPS, "hw1.double", "while True:\n    pass")
    process = subprocess.Popen(
        [sys.executable, "-m", "needle_course", "test", "hw1"],
        cwd=mine,
        env={**os.environ, "PYTHONPATH": str(PYTHON), "NEEDLE_COURSE": str(course)},
        stdout=subprocess.DEVNULL,
    )
    while len(workers(mine)) < 3:
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    for _ in range(200):
        if not workers(mine):
            return
        time.sleep(0.05)
    raise AssertionError(workers(mine))


def test_colours_are_for_people(course, mine):
    main, other = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "PYTHONPATH": str(PYTHON)}
    subprocess.run(
        [sys.executable, "-m", "needle_course", "test", "hw1"],
        cwd=mine,
        env={**environment, "NEEDLE_COURSE": str(course)},
        stdin=subprocess.DEVNULL,
        stdout=other,
    )
    os.close(other)
    assert b"\033[31mTO DO\033[0m" in os.read(main, 65536)
    os.close(main)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_an_ordinary_user_without_a_home(course, mine):
    try:
        code = "import numpy, typer"
        subprocess.run([sys.executable, "-c", code], user=65534, check=True, capture_output=True)
    except (PermissionError, subprocess.CalledProcessError):
        pytest.skip("this Python is root's own")
    shutil.chown(mine, 65534)
    for path in mine.rglob("*"):
        shutil.chown(path, 65534)
    for folder in (mine, *mine.parents):
        if folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    for folder in (course, *course.parents):
        if folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    answer_all(mine)
    done = subprocess.run(
        [sys.executable, "-m", "needle_course", "submit"],
        cwd=mine,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PYTHON), "NEEDLE_COURSE": str(course)},
        user=65534,
        group=65534,
        extra_groups=[],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "hw1: 100 of 100 points" in done.stdout


def test_windows_is_told_in_one_line():
    code = "import sys; from needle_course.commands import main; sys.platform = 'win32'; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(PYTHON)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr == "needle runs on Linux; on Windows use WSL2: wsl --install\n"


def test_every_command_has_a_help_text(course, tmp_path):
    text = needle(course, tmp_path, "--help").stdout
    commands = re.findall(r"^  (\w+)  +\w.*$", text, re.MULTILINE)
    assert {"start", "next", "test", "status", "submit", "milestone", "doctor"} <= set(commands)
    assert "..." not in text.split("Commands:")[1], "the help texts fit their lines"
