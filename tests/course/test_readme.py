"""The table of stages in the README."""

import re
from pathlib import Path

from needle_course import collection
from needle_course.stages import load_course, tomllib

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| `(hw\d)` \| (\d+) \| .* \| (\d+) \| (\d+) \|$", re.MULTILINE)


def test_the_readme_counts_questions_tests_and_planted_bugs():
    counted = {}
    for stage in load_course(ROOT).stages:
        bugs = tomllib.loads((stage.folder / "mutants.toml").read_text())["mutants"]
        tests = collection.load_tests(collection.test_files(ROOT, stage.name))
        counted[stage.name] = (len(stage.questions), len(tests), len(bugs))
    found = {
        name: tuple(map(int, rest)) for name, *rest in ROW.findall((ROOT / "README.md").read_text())
    }
    assert found == counted
