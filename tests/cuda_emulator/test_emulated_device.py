"""What the emulated device can do, in both modes: the cases of features.cu and device_functions.cu,
the settings, and how it lives with signals, threads and forks."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.cuda_emulator.emulator_cases import MODES, Cases, names_in_sources
from tools import cu2cpp

FEATURES = [("feature", name) for name in names_in_sources("feature", "features.cu")]
FUNCTIONS = [
    ("device function", name) for name in names_in_sources("device function", "device_functions.cu")
]
ORDERS = ("forward", "reverse", "random:1", "random:2")


def run(cases, group, name):
    verdict = cases.run(group, name)
    assert verdict.outcome == "right", f"{verdict.kind}: {verdict.message}"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("group", "name"), FEATURES + FUNCTIONS)
def test_case(cases, group, name, order, monkeypatch):
    monkeypatch.setenv("NEEDLE_EMULATOR_ORDER", order)
    run(cases, group, name)


def test_all_cases_are_tested(cases):
    assert cases.names("feature") == [name for _, name in FEATURES]
    assert cases.names("device function") == [name for _, name in FUNCTIONS]


# --- settings ---


@pytest.mark.parametrize(
    ("group", "name"),
    [
        ("bug", "waits_for_another_block"),
        ("order", "last_after_a_barrier"),
        ("order", "last_after_syncwarp"),
    ],
)
def test_orders_differ(cases, group, name, monkeypatch):
    """A kernel with a mistake shows that threads and blocks do run in another order."""
    monkeypatch.setenv("NEEDLE_EMULATOR_RACES", "off")
    outcomes = {}
    for order in ("forward", "reverse"):
        monkeypatch.setenv("NEEDLE_EMULATOR_ORDER", order)
        outcomes[order] = cases.run(group, name).outcome
    assert outcomes == {"forward": "right", "reverse": "wrong"}


def test_random_orders_can_be_repeated(cases, monkeypatch):
    monkeypatch.setenv("NEEDLE_EMULATOR_RACES", "off")

    def outcomes():
        found = []
        for seed in range(16):
            monkeypatch.setenv("NEEDLE_EMULATOR_ORDER", f"random:{seed}")
            found.append(cases.run("bug", "all_blocks_write_one_place").outcome)
        return found

    first = outcomes()
    assert first == outcomes()
    assert set(first) == {"right", "wrong"}


@pytest.mark.parametrize(
    ("races", "in_shared", "in_global"),
    [("all", True, True), ("shared", True, False), ("off", False, False)],
)
def test_races_that_matter(checked, races, in_shared, in_global, monkeypatch):
    monkeypatch.setenv("NEEDLE_EMULATOR_RACES", races)
    shared = checked.run("bug", "missing_second_barrier")
    assert (shared.kind == "data race") is in_shared
    assert (checked.run("bug", "all_blocks_write_one_place").kind == "data race") is in_global


def test_step_limit(checked, monkeypatch):
    monkeypatch.setenv("NEEDLE_EMULATOR_STEPS", "1000")
    verdict = checked.run("bug", "endless_loop")
    assert verdict.kind == "endless"
    assert "has not ended after 1000 memory accesses (NEEDLE_EMULATOR_STEPS)" in verdict.message
    assert checked.run("feature", "struct_as_argument").outcome == "right"


@pytest.mark.parametrize(
    ("variable", "value", "rule"),
    [
        ("ORDER", "sideways", "forward, reverse and random:<seed> do"),
        ("ORDER", "random:x", "forward, reverse and random:<seed> do"),
        ("RACES", "some", "all, shared and off do"),
        ("SECONDS", "0", "a positive number of seconds does"),
        ("SECONDS", "soon", "a positive number of seconds does"),
        ("STEPS", "-1", "a whole number does, 0 for no limit"),
        ("RETURNED", "maybe", "error and allow do"),
    ],
)
def test_settings_that_mean_nothing(cases, variable, value, rule, monkeypatch):
    monkeypatch.setenv(f"NEEDLE_EMULATOR_{variable}", value)
    verdict = cases.run("feature", "struct_as_argument")
    assert verdict.kind == "setting"
    assert f"NEEDLE_EMULATOR_{variable}={value} means nothing; {rule}" in verdict.message


# --- the process around it ---


def test_launches_of_several_threads_take_turns(cases):
    failures = []

    def work(group, name):
        for _ in range(20):
            verdict = cases.run(group, name)
            if verdict.outcome != "right":
                failures.append(verdict)

    threads = [
        threading.Thread(target=work, args=names)
        for names in [
            ("feature", "block_reduction"),
            ("feature", "device_is_usable_after_an_error"),
            ("device function", "shuffles_of_parts_of_a_warp"),
        ]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def run_program(mode, lines):
    """Run a program with the cases of a mode, and return what came of it."""
    program = [
        "import ctypes, faulthandler, os",
        "from tests.cuda_emulator.emulator_cases import Cases",
        f"cases = Cases({mode!r})",
        *lines,
    ]
    return subprocess.run(
        [sys.executable, "-c", "\n".join(program)],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"NEEDLE_EMULATOR_SECONDS": "0.2"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_kernel_takes_no_reference(tmp_path):
    """nvcc compiles it, and hands the kernel an address of the host."""
    source = tmp_path / "kernel.cu"
    source.write_text(
        "#include <cuda_runtime.h>\n"
        "__global__ void kernel(const dim3& size) {}\n"
        "void run() { kernel<<<1, 1>>>(dim3(1)); }\n"
    )
    rewritten = tmp_path / "kernel.cc"
    assert cu2cpp.main([str(source), str(rewritten)]) in (None, 0)
    include = Path(__file__).parents[2] / "src/cuda_emulator/include"
    compiled = subprocess.run(
        [os.environ.get("CXX", "c++"), "-std=c++17", "-fsyntax-only", "-I", include, rewritten],
        capture_output=True,
        text=True,
    )
    assert compiled.returncode != 0
    assert "a kernel takes its parameters by value" in compiled.stderr


@pytest.mark.parametrize("mode", MODES)
def test_signals_are_given_back(mode):
    """After a kernel's fault faulthandler still reports a fault of the process itself."""
    result = run_program(
        mode,
        [
            "faulthandler.enable()",
            "assert cases.run('bug', 'swapped_axes').kind == 'out of bounds'",
            "print('alive', flush=True)",
            "ctypes.string_at(16)",
        ],
    )
    assert result.stdout == "alive\n", result.stderr
    assert "Fatal Python error: Segmentation fault" in result.stderr


@pytest.mark.parametrize("mode", MODES)
def test_forked_child_has_a_device_of_its_own(mode):
    result = run_program(
        mode,
        [
            "assert cases.run('bug', 'endless_loop').kind == 'endless'",
            "child = os.fork()",
            "assert cases.run('bug', 'endless_loop').kind == 'endless'",
            "assert cases.run('feature', 'block_reduction').outcome == 'right'",
            "if child == 0: os._exit(7)",
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))",
        ],
    )
    assert result.stdout == "7\n", result.stderr


def test_modules_of_both_modes_in_one_process(monkeypatch):
    monkeypatch.setenv("NEEDLE_EMULATOR_SECONDS", "0.2")
    modes = [Cases(mode) for mode in MODES]
    for cases in (*modes, *modes):
        assert cases.run("bug", "endless_loop").kind == "endless"
        assert cases.run("bug", "swapped_axes").kind == "out of bounds"
        run(cases, "feature", "block_reduction")
