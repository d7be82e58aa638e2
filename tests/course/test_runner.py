"""Verdicts: whatever an answer does costs its own test only, and the message says what it was."""

import os
import sys
from pathlib import Path

import pytest

from needle_course import launcher, runner
from needle_course.collection import CollectionError
from needle_course.stages import load_course
from tests.course.small_course import make_course

# Functions of the answer by name; the test of each calls it and expects three ones.
ANSWERS = """
import ctypes
import os
import random
import signal
import sys
import threading
import time

import numpy as np

ONES = np.ones(3)

def right():
    return ONES

def prints_a_lot():
    for _ in range(20_000):
        print("x" * 99)
    print("the end")
    return ONES

def wrong_values():
    print("nearly")
    return 2 * ONES

def wrong_shape():
    return np.ones((3, 1))

def wrong_dtype():
    return "ones"

def not_written():
    raise NotImplementedError("hw1.double")

def raises():
    return {}["missing"]

def exits():
    sys.exit(0)

def asks():
    return input("how many? ")

def segfault():
    ctypes.string_at(1)

def aborts():
    os.abort()

def leaves():
    os._exit(0)

def takes_the_server_down():
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)

def allocates():
    return np.ones(1 << 40)

def recurses():
    return recurses()

def endless():
    while True:
        pass

def endless_native():
    ctypes.CDLL(None).pause()

def endless_printing():
    while True:
        print("x" * 9999)

def deaf():
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(1000)

def moves_away():
    os.chdir("/")
    np.random.seed(1)
    random.seed(1)
    os.environ.clear()
    sys.path.clear()
    np.seterr(all="raise")
    return ONES

def leaves_a_thread():
    threading.Thread(target=time.sleep, args=(1000,)).start()
    return ONES

def leaves_a_process():
    if os.fork() == 0:
        time.sleep(1000)
    return ONES

def closes_everything():
    os.closerange(0, 3)
    return ONES

def returns_itself():
    return threading.Lock()

def pickles():
    return np.array([threading], dtype=object)
"""

TESTS = """
import numpy as np
from needle_course.testing import GradedTest, close

def of(name):
    return GradedTest(
        f"hw1.double::{name}",
        lambda rng: {"x": rng.random()},
        lambda ndl, inputs: {"y": getattr(ndl, name)()},
        lambda inputs, outputs: close("y", outputs["y"], np.ones(3)),
        "Three ones.",
    )

ALL = [of(name) for name in NAMES]
"""

EXPECTED = {
    "right": ("pass", "", ""),
    "prints_a_lot": ("pass", "", ""),
    "wrong_values": ("fail", "y is wrong", ""),
    "wrong_shape": ("wrong_shape", "y has the wrong shape", ""),
    "wrong_dtype": ("wrong_dtype", "y is not an array of numbers", ""),
    "not_written": ("not_implemented", "not written yet: hw1.double", "in not_written"),
    "raises": ("exception", "KeyError: 'missing'", "in raises"),
    "exits": ("exception", "SystemExit: the code called exit()", "in exits"),
    "asks": ("exception", "EOFError", "in asks"),
    "segfault": ("crash", "crashed with SIGSEGV", "in segfault"),
    "aborts": ("crash", "crashed with SIGABRT", "in aborts"),
    "leaves": ("crash", "exit status 0 before the test was over", ""),
    "takes_the_server_down": ("crash", "", ""),
    "allocates": ("memory", "out of memory", "in allocates"),
    "recurses": ("exception", "RecursionError", "in recurses"),
    "endless": ("timeout", "did not end within", "in endless"),
    "endless_native": ("timeout", "did not end within", "in endless_native"),
    "endless_printing": ("timeout", "did not end within", "in endless_printing"),
    "deaf": ("timeout", "did not end within", ""),
    "moves_away": ("pass", "", ""),
    "leaves_a_thread": ("pass", "", ""),
    "leaves_a_process": ("pass", "", ""),
    "closes_everything": ("pass", "", ""),
    "returns_itself": ("protocol", "a numpy array or a number was expected", ""),
    "pickles": ("protocol", "an array of dtype object", ""),
}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return load_course(make_course(tmp_path_factory.mktemp("course")))


def make_tree(folder: Path, answers: str, names=("right",)) -> Path:
    """Write a workspace whose module is `answers`, with a test for each name."""
    for place in ("python/needle", "tests/hw1"):
        (folder / place).mkdir(parents=True)
    (folder / "python/needle/__init__.py").write_text(answers)
    (folder / "tests/hw1/test_all.py").write_text(TESTS.replace("NAMES", repr(list(names))))
    return folder


def run(course, tree, *selection, **options):
    return runner.run(tree, course.stage("hw1"), selection, **options)


def processes_in(tree: Path) -> list[str]:
    """Return the command lines of processes whose working directory is a tree."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve() == tree:
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.fixture(scope="module", params=["fork", "spawn"])
def results(request, course, tmp_path_factory):
    """All results by name, with limits of a few seconds."""
    names = list(EXPECTED)
    if request.param == "spawn":  # its parent is this very process
        names.remove("takes_the_server_down")
    tree = make_tree(tmp_path_factory.mktemp(request.param) / "tree", ANSWERS, names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "FLOOR", 3.0)
        patch.setenv("NEEDLE_TEST_START", request.param)
        found = {result.test.split("::")[1]: result for result in run(course, tree)}
    if sys.platform == "linux":
        assert processes_in(tree) == [], "something that a test started is left"
    return found


@pytest.mark.parametrize("name", EXPECTED)
def test_a_verdict_for_whatever_happens(results, name):
    if name not in results:
        return
    result = results[name]
    verdict, says, where = EXPECTED[name]
    assert result.verdict == verdict, result
    assert says in result.message
    assert where in result.where
    if where:
        assert result.where.startswith("python/needle/__init__.py:")


def test_what_a_result_says_further(results):
    assert results["not_written"].region == "hw1.double"
    assert results["wrong_values"].printed == "nearly\n"
    assert results["wrong_values"].about == "Three ones."
    assert results["raises"].detail == [results["raises"].where + '   return {}["missing"]']
    assert results["wrong_shape"].detail[0] == "shape   expected (3,)   got (3, 1)"
    seed = results["right"].seed
    assert results["right"].reproduce == f"needle test hw1.double::right --seed {seed}"


def test_a_flood_is_kept_at_both_ends(results):
    for name in ("prints_a_lot", "endless_printing"):
        printed = results[name].printed
        assert printed.startswith("xxx")
        assert "bytes left out" in printed
        assert len(printed) < 3 * launcher.KEPT
    assert results["prints_a_lot"].printed.endswith("the end\n")


@pytest.mark.parametrize(
    ("answers", "verdict", "says"),
    [
        ("import nonsense", "exception", "`import needle` fails: ModuleNotFoundError"),
        ("def f(:", "exception", "`import needle` fails: SyntaxError"),
        ("raise NotImplementedError('hw1.mean')", "not_implemented", "not written yet: hw1.mean"),
        ("import ctypes; ctypes.string_at(1)", "crash", "`import needle` crashed with SIGSEGV"),
        ("import os; os._exit(3)", "crash", "`import needle` the process ended itself"),
        ("exit()", "exception", "`import needle` fails: SystemExit"),
        ("while True: pass", "timeout", "`import needle` did not end within 3 s"),
    ],
)
def test_a_module_that_does_not_import(course, tmp_path, monkeypatch, answers, verdict, says):
    monkeypatch.setattr(launcher, "IMPORT_LIMIT", 3.0)
    tree = make_tree(tmp_path / "tree", answers, ["right", "raises"])
    found = run(course, tree)
    assert [result.verdict for result in found] == [verdict, verdict]
    assert found[0].message.startswith(says)


def test_a_module_from_elsewhere_is_refused(course, tmp_path):
    tree = make_tree(tmp_path / "tree", "")
    (tree / "python/needle/__init__.py").unlink()
    (tree / "python/needle").rmdir()
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "needle").mkdir(parents=True)
    (elsewhere / "needle/__init__.py").write_text(ANSWERS)
    (tree / "python/needle").symlink_to(elsewhere / "needle")
    (result,) = run(course, tree)
    assert result.verdict == "harness_error"
    assert f"needle was imported from {elsewhere}" in result.message


def test_no_source_of_this_repository_is_on_the_path(course, tmp_path):
    tree = make_tree(tmp_path / "tree", "", ["right"])
    (tree / "python/needle/__init__.py").unlink()
    (tree / "python/needle").rmdir()
    (result,) = run(course, tree)
    assert result.message.startswith("`import needle` fails: ModuleNotFoundError")


def test_an_edit_is_seen_at_once(course, tmp_path):
    tree = make_tree(tmp_path / "tree", "import numpy\ndef right(): return numpy.ones(3)\n")
    module = tree / "python/needle/__init__.py"
    assert run(course, tree)[0].verdict == "pass"
    stamp = module.stat()
    module.write_text(module.read_text().replace("ones(3)", "ones(4)"))
    os.utime(module, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert run(course, tree)[0].verdict == "wrong_shape"


def test_the_same_seed_gives_the_same_numbers(course, tmp_path):
    answers = "import numpy, random\ndef right(): return [numpy.random.rand(), random.random(), 0]"
    tree = make_tree(tmp_path / "tree", answers)

    def numbers(seed):
        (result,) = run(course, tree, seed=seed)
        return result.detail

    assert numbers(7) == numbers(7) != numbers(8)
    assert numbers(None) == numbers(None)


@pytest.mark.parametrize(
    ("selection", "count"),
    [
        ([], 3),
        (["hw1"], 3),
        (["hw1.double"], 2),
        (["double"], 2),
        (["hw1.mean"], 1),
        (["mean", "double"], 3),
        (["hw1.double::values"], 1),
        (["double::values"], 1),
        (["number_of_the_file"], 1),
        (["values"], 2),
    ],
)
def test_selection(course, selection, count):
    tests = ["hw1.double::values", "hw1.double::number_of_the_file", "hw1.mean::values"]
    assert len(runner.select(course.stage("hw1"), tests, selection)) == count


@pytest.mark.parametrize("name", ["hw1.dubble", "hw1.double::value", "dubble", "", "hw1."])
def test_a_selection_of_nothing_is_refused(course, name):
    with pytest.raises(runner.UnknownSelection) as caught:
        runner.select(course.stage("hw1"), ["hw1.double::values"], [name])
    if name.startswith("hw1.d"):
        assert "did you mean hw1.double" in str(caught.value)


def test_stop_ends_after_the_first_failure(course, tmp_path):
    tree = make_tree(tmp_path / "tree", ANSWERS, ["right", "wrong_values", "wrong_shape"])
    found = run(course, tree, stop=True)
    assert [result.verdict for result in found] == ["pass", "fail"]


def test_the_taught_answer_may_take_its_time(course, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "machine_scale", lambda: 3.0)
    with runner.Session(make_tree(tmp_path / "tree", ANSWERS), course.stage("hw1")) as session:
        assert session._limit(0) == session._limit(0.01) == 10
        assert session._limit(2) == 120


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nonsense", "No module named 'nonsense'"),
        (TESTS.replace("NAMES", "['right', 'right']"), "two tests hw1.double::right"),
        ("oh no", "SyntaxError"),
    ],
)
def test_tests_that_cannot_be_loaded_are_a_fault_of_ours(course, tmp_path, text, says):
    tree = make_tree(tmp_path / "tree", ANSWERS)
    (tree / "tests/hw1/test_all.py").write_text(text)
    with pytest.raises(CollectionError, match=says):
        run(course, tree)


def test_inputs_that_fail_are_a_fault_of_ours(course, tmp_path):
    tree = make_tree(tmp_path / "tree", ANSWERS)
    text = TESTS.replace('{"x": rng.random()}', "1 / 0").replace("NAMES", '["right"]')
    (tree / "tests/hw1/test_all.py").write_text(text)
    (result,) = run(course, tree)
    assert result.verdict == "harness_error"
