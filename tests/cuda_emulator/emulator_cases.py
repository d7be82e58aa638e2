"""The emulator's test cases, run through ctypes; as a program, the table of planted bugs.

cases.cc has the C side. `python tests/cuda_emulator/emulator_cases.py` prints for each planted bug
what the fast and the checked mode made of it.
"""

import ctypes
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
MODES = ("fast", "checked")
OUTCOMES = {"r": "right", "w": "wrong", "d": "diagnosed", "e": "error"}
TEXT_BYTES = 4096


@dataclass(frozen=True)
class Verdict:
    """How a case ended: right, wrong, diagnosed (as `kind`) or an error of the case itself."""

    outcome: str
    kind: str
    message: str


class Cases:
    """The cases of one mode's library."""

    def __init__(self, mode):
        self.path = FOLDER / f"emulator_cases_{mode}.so"
        self._library = ctypes.CDLL(str(self.path))
        self._library.case_at.restype = ctypes.c_char_p
        self._library.run_case.restype = ctypes.c_char
        self._numbers = {}
        number = 0
        while (text := self._library.case_at(number)) is not None:
            group, _, name = text.decode().rpartition(" ")
            self._numbers[group, name] = number
            number += 1

    def names(self, group):
        """Return the names of a group's cases, in the order of their file."""
        return [name for owner, name in self._numbers if owner == group]

    def run(self, group, name):
        """Run one case in this process."""
        kind, message = (ctypes.create_string_buffer(TEXT_BYTES) for _ in range(2))
        outcome = self._library.run_case(self._numbers[group, name], kind, message, TEXT_BYTES)
        return Verdict(OUTCOMES[outcome.decode()], kind.value.decode(), message.value.decode())


def names_in_sources(group, file):
    """Return the names of a group's cases as the source has them: no build is needed for it."""
    names = []
    current = None
    for line in (FOLDER / file).read_text().splitlines():
        if line.startswith("#define GROUP "):
            current = line.split('"')[1]
        elif line.startswith("CASE(") and current == group:
            names.append(line.removeprefix("CASE(").partition(")")[0])
    return names


def cell(verdict):
    """Return what a table says of a verdict on a planted bug."""
    unnamed = {"wrong": "(wrong result)", "right": "(unseen)"}
    return unnamed.get(verdict.outcome, verdict.kind)


def table():
    """Return the lines of the table of planted bugs, and the sums."""
    columns = [("fast", "forward"), ("fast", "reverse"), ("checked", "forward")]
    modes = {mode: Cases(mode) for mode in MODES}
    names = modes["checked"].names("bug")
    width = max(map(len, names))
    lines = [f"{'bug':<{width}}  {'fast':<30}{'fast, reverse order':<30}checked"]
    counts = Counter()
    for name in names:
        cells = []
        for mode, order in columns:
            os.environ["NEEDLE_EMULATOR_ORDER"] = order
            verdict = modes[mode].run("bug", name)
            counts[mode, order, verdict.outcome] += 1
            cells.append(f"{cell(verdict):<30}")
        lines.append(f"{name:<{width}}  {''.join(cells)}".rstrip())
    for mode, order in columns:
        diagnosed, wrong, unseen = (
            counts[mode, order, outcome] for outcome in ("diagnosed", "wrong", "right")
        )
        lines.append(
            f"{mode}, {order} order: of {len(names)} bugs {diagnosed} diagnosed, "
            f"{wrong} with a wrong result, {unseen} unseen"
        )
    return lines


if __name__ == "__main__":
    os.environ["NEEDLE_EMULATOR_SECONDS"] = "0.2"
    sys.stdout.write("\n".join(table()) + "\n")
