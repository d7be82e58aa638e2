"""Mistakes in kernels and around them, one for each case of planted_bugs.cu, and what is found."""

import re

import pytest

from tests.cuda_emulator.emulator_cases import FOLDER, names_in_sources

VALUE = "cudaErrorInvalidValue"
CONFIGURATION = "cudaErrorInvalidConfiguration"
WRONG = "wrong result"  # nothing is diagnosed, but no test would pass
UNSEEN = "unseen"

# Case: what the checked mode and the fast mode make of it.
EXPECTED = {
    "missing_barrier": ("data race", WRONG),
    "missing_second_barrier": ("data race", WRONG),
    "barrier_in_a_branch": ("divergent barrier", "divergent barrier"),
    "barriers_of_two_branches": ("divergent barrier", "divergent barrier"),
    "early_return": ("divergent barrier", "divergent barrier"),
    "plus_equals_for_atomic": ("data race", UNSEEN),
    "plain_read_of_an_atomic": ("data race", WRONG),
    "shift_in_place": ("data race", WRONG),
    "all_blocks_write_one_place": ("data race", WRONG),
    "waits_for_another_block": ("data race", UNSEEN),
    "missing_syncwarp": ("data race", WRONG),
    "syncwarp_for_two_warps": ("data race", UNSEEN),
    "shuffle_for_syncwarp": ("data race", UNSEEN),
    "shuffle_with_missing_lane": ("incomplete warp", "incomplete warp"),
    "shuffle_with_wrong_mask": ("wrong mask", "wrong mask"),
    "shuffle_begins_too_late": (WRONG, WRONG),
    "missing_bounds_check": ("out of bounds", "out of bounds"),
    "reads_one_too_far": ("out of bounds", WRONG),
    "reads_past_a_row": ("out of bounds", WRONG),
    "wrong_stride": (WRONG, WRONG),
    "swapped_axes": ("out of bounds", "out of bounds"),
    "negative_index": ("out of bounds", WRONG),
    "unsigned_underflow": ("out of bounds", "out of bounds"),
    "shared_array_too_small": ("out of bounds", "out of bounds"),
    "off_by_one_in_dynamic_shared": ("out of bounds", "out of bounds"),
    "local_array_too_small": ("out of bounds", UNSEEN),
    "misaligned_vector": ("misaligned", "misaligned"),
    "stack_overflow": ("stack overflow", "stack overflow"),
    "host_pointer": ("host pointer", "host pointer"),
    "host_pointer_in_a_struct": ("host pointer", UNSEEN),
    "host_reads_device_memory": ("host access", UNSEEN),
    "use_after_free": ("use after free", "use after free"),
    "double_free": (VALUE, VALUE),
    "free_of_the_middle": (VALUE, VALUE),
    "uninitialised_read": ("uninitialised", WRONG),
    "uninitialised_shared": ("uninitialised", WRONG),
    "memset_too_short": ("uninitialised", WRONG),
    "swapped_copy_direction": (VALUE, VALUE),
    "swapped_copy_arguments": (VALUE, VALUE),
    "copy_too_long": (VALUE, VALUE),
    "too_many_threads": (CONFIGURATION, CONFIGURATION),
    "zero_blocks": (CONFIGURATION, CONFIGURATION),
    "unchecked_launch": (WRONG, WRONG),
    "grid_y_too_large": (CONFIGURATION, CONFIGURATION),
    "wrong_grid": (WRONG, WRONG),
    "too_much_dynamic_shared": (VALUE, VALUE),
    "too_much_static_shared": ("too much shared memory", "too much shared memory"),
    "endless_loop": ("endless", "endless"),
    "endless_barriers": ("endless", "endless"),
    "failed_assertion": ("assertion", "assertion"),
    "division_by_zero": ("division by zero", "division by zero"),
}

RACES = [name for name, (kind, _) in EXPECTED.items() if kind == "data race"]
ORDERS = ("forward", "reverse", *(f"random:{seed}" for seed in range(8)))

# What a message says beside its line, where that is the point of it.
DETAILS = {
    "missing_second_barrier": r"no __syncthreads\(\) or __syncwarp\(\) between the two accesses",
    "barrier_in_a_branch": r"48 of 64 threads reached it, 16 returned from the kernel before it",
    "barriers_of_two_branches": r"64 of 64 threads reached one, but not all the same",
    "all_blocks_write_one_place": r"of block \(1,0,0\)\n  earlier written .* of block \(0,0,0\)",
    "shuffle_with_missing_lane": r"thread \(20,0,0\) of block \(0,0,0\) has already returned",
    "reads_past_a_row": r"index 8 into 'float ?\[8\]'",
    "off_by_one_in_dynamic_shared": r"just past the end of the 256 bytes of dynamic shared memory",
    "misaligned_vector": r"byte 4 of a 32-byte allocation, not on a multiple of 16 bytes",
    "negative_index": r"4 bytes before the beginning of a 256-byte allocation \(element -1 of 64",
    "memset_too_short": r"\(element 8 of 32 4-byte elements\), which nobody has written",
    "double_free": r"freed before \(a double free\)",
    "copy_too_long": r"the source is 132 bytes from byte 0 of a 128-byte allocation",
    "too_many_threads": r"the block has 2000 threads; 1024 are the most",
    "endless_barriers": r"after 0\.2 seconds of processor time \(NEEDLE_EMULATOR_SECONDS\)",
}


def marked_lines(name):
    """Return the numbers of the lines of planted_bugs.cu that are marked as the bug's."""
    lines = (FOLDER / "planted_bugs.cu").read_text().splitlines()
    return [i for i, line in enumerate(lines, start=1) if re.search(rf"bug: {name}\b", line)]


@pytest.fixture(autouse=True)
def short_time(monkeypatch):
    monkeypatch.setenv("NEEDLE_EMULATOR_SECONDS", "0.2")


def found(verdict):
    assert verdict.outcome != "error", verdict.message
    return {"diagnosed": verdict.kind, "wrong": WRONG, "right": UNSEEN}[verdict.outcome]


@pytest.mark.parametrize("name", EXPECTED)
def test_checked_mode_finds(checked, name):
    verdict = checked.run("bug", name)
    assert found(verdict) == EXPECTED[name][0], verdict.message
    for line in marked_lines(name):
        assert re.search(rf"planted_bugs\.cu:{line}\b", verdict.message), verdict.message
    assert re.search(DETAILS.get(name, ""), verdict.message)
    if verdict.message.startswith("CUDA emulator: ") and name != "host_reads_device_memory":
        assert re.search(r"\n  in kernel \w+<<<\(.*>>> launched at planted_bugs", verdict.message)


# A read beyond the device's memory may meet some memory of the host.
@pytest.mark.parametrize("name", [name for name in EXPECTED if name != "unsigned_underflow"])
def test_fast_mode_finds(fast, name):
    verdict = fast.run("bug", name)
    expected = EXPECTED[name][1]
    if expected in (WRONG, UNSEEN):  # which of the two, the compiler may decide
        assert found(verdict) in (WRONG, UNSEEN), verdict.message
    else:
        assert found(verdict) == expected, verdict.message


def test_every_planted_bug_is_in_the_table():
    assert list(EXPECTED) == names_in_sources("bug", "planted_bugs.cu")
    assert len(EXPECTED) >= 25
    checked = [found for found, _ in EXPECTED.values()]
    assert UNSEEN not in checked
    assert sum(found != WRONG for found in checked) >= 20


def test_races_name_both_accesses(checked):
    for name, (kind, _) in EXPECTED.items():
        if kind == "data race":
            message = checked.run("bug", name).message
            assert re.search(
                r"\n  (write|read|atomic update) of 4 bytes at \S+ by thread ", message
            )
            assert re.search(r"\n  earlier (written|read) at \S+ by (this )?thread ", message)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", RACES)
def test_races_are_found_in_every_order(checked, name, order, monkeypatch):
    monkeypatch.setenv("NEEDLE_EMULATOR_ORDER", order)
    assert found(checked.run("bug", name)) == "data race"
