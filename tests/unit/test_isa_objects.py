"""The kernels' object files share nothing that the linker could merge across instruction sets.

A weak symbol of the AVX-512 object, taken in place of the baseline's, would crash older processors.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD = Path(__file__).parents[2] / "build"
DATA = "V"  # weak data holds no instructions


def objects():
    found = BUILD.glob("*/CMakeFiles/kernels_*.dir/src/**/*.cc.o")
    return sorted(path for path in found if "sanitize" not in str(path.relative_to(BUILD)))


def defined_symbols(path):
    """Yield (kind, name) for each symbol that an object defines for other objects to see."""
    listing = subprocess.run(
        ["nm", "--demangle", "--defined-only", "--extern-only", path],
        check=True,
        capture_output=True,
        text=True,
    )
    for line in listing.stdout.splitlines():
        _, kind, name = line.split(maxsplit=2)
        yield kind, name


def test_objects_define_symbols_in_their_own_namespace_only():
    if not objects():
        pytest.skip("no build folder; run `make build`")
    if shutil.which("nm") is None:
        pytest.skip("no nm on this machine")
    for path in objects():
        isa = re.search(r"kernels_(\w+)\.dir", str(path))[1]
        symbols = list(defined_symbols(path))
        assert symbols, f"{path} defines nothing"
        foreign = [
            name
            for kind, name in symbols
            if kind != DATA and not name.startswith(f"needle::cpu::{isa}::")
        ]
        assert foreign == [], f"{path}: {foreign}"
