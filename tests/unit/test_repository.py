"""What every file of the repository keeps to, where no linter says it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUFFIXES = {".py", ".cc", ".cpp", ".cu", ".h", ".cuh", ".def"}
FOLDERS = ("python", "src", "apps", "bench", "data", "tests", "tools", "hw_stages")
SOURCES = [
    path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in SUFFIXES and path.is_file()
]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_file_is_short_and_says_what_it_is(path):
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    opens_well = re.match(r'(#!.*\n)?("""|//|/\*|#)', text) is not None
    assert lines < 700, "split the file by role"
    assert opens_well, "open the file with what it is"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_file_name_says_a_role(path):
    vague = {"utils", "util", "helper", "helpers", "misc", "new", "old", "fast", "v2"}
    assert not vague & set(re.split(r"[_.]", path.name)), "name the file by what it holds"


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("test_*.py")), ids=name_of)
def test_test_file_holds_tests(path):
    assert re.search(r"^\s*(async )?def test_", path.read_text(encoding="utf-8"), re.MULTILINE)
