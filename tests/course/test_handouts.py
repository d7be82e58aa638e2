"""Handouts: cells run in order on the stage's own code, their output goes below them."""

import json

import pytest

from needle_course import handout_builder, handout_gate, handouts, notebooks
from needle_course.stages import load_course

TEXT = """\
# A stage

```python
import numpy as np
import simple_ml

print("add gives", simple_ml.add(1, 2))
np.array([1 / 3, 2.0])
```

Then:

```python
total = simple_ml.add(2, 2)
```

```python raises
total / 0
```

```python no-run
nobody_runs_this()
```

```cpp
int x = 0;
```

```text
stays
```
"""


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "simple_ml.py").write_text("def add(x, y):\n    return x + y\n")
    (folder / "handouts" / "hw0").mkdir(parents=True)
    return folder


def built(tmp_path, tree, text):
    path = tmp_path / "handout.md"
    path.write_text(text)
    handout = handouts.read(path, "handout.md")
    handouts.run_cells(handout, tree, "simple_ml", {"COLOUR": "red"})
    return handout


def cell(source, info="python"):
    return f"# Title\n\n```{info}\n{source}\n```\n"


def test_outputs_stand_below_their_cells(tmp_path, tree):
    text = built(tmp_path, tree, TEXT).with_outputs()
    assert "2.0])\n```\n\n```text\nadd gives 3\narray([0.3333, 2.    ])\n```\n\nThen:" in text
    assert "total / 0\n```\n\n```text\nZeroDivisionError: division by zero\n```\n" in text
    assert text.count("```text") == 3  # two outputs and the fence that was there
    assert "total = simple_ml.add(2, 2)\n```\n\n```python raises" in text


def test_two_builds_are_the_same(tmp_path, tree):
    one, other = (built(tmp_path, tree, TEXT) for _ in range(2))
    assert one.with_outputs() == other.with_outputs()
    assert notebooks.notebook(one, {}) == notebooks.notebook(other, {})


@pytest.mark.parametrize(
    ("source", "info", "line", "message"),
    [
        ("x = 1\n1 / 0", "python", 5, "ZeroDivisionError"),
        ("x = 1", "python raises", 4, "raises nothing"),
        ("x = (", "python", 4, "SyntaxError"),
        ("def f():\n    return y\n\n\nf()", "python", 5, "NameError"),
        ("object()", "python", 4, "address"),
        ("import os\nos.getcwd()", "python", 4, "folder"),
        ("for i in range(99):\n    print(i)", "python", 4, "60 lines"),
        ("import os\nos._exit(3)", "python", 1, "ended with 3"),
        ("x", "python maybe", 3, "means nothing"),
    ],
)
def test_a_bad_cell_is_named_by_its_line(tmp_path, tree, source, info, line, message):
    with pytest.raises(handouts.HandoutError, match=rf"^handout\.md:{line}: (.|\n)*{message}"):
        built(tmp_path, tree, cell(source, info))


def test_a_fence_that_never_ends_is_refused(tmp_path, tree):
    with pytest.raises(handouts.HandoutError, match=r"^handout\.md:3: .* never ends"):
        built(tmp_path, tree, "# Title\n\n```python\nx = 1\n")


def test_a_module_from_elsewhere_is_refused(tmp_path, tree):
    (tree / "src" / "simple_ml.py").unlink()
    other = tmp_path / "other"
    other.mkdir()
    (other / "simple_ml.py").write_text("")
    source = f"import sys\nsys.path.append({str(other)!r})\nimport simple_ml"
    with pytest.raises(handouts.HandoutError, match="simple_ml came from"):
        built(tmp_path, tree, cell(source))


def test_cells_share_nothing_with_this_process(tmp_path, tree, monkeypatch):
    monkeypatch.setenv("NEEDLE_BACKEND", "nd")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    source = 'import os\nimport sys\n[os.environ.get("NEEDLE_BACKEND"), os.environ["COLOUR"]]'
    assert built(tmp_path, tree, cell(source)).cells[0].result == "[None, 'red']"


def test_what_a_cell_prints_may_hold_a_fence(tmp_path, tree):
    text = built(tmp_path, tree, cell('print("```")')).with_outputs()
    assert "````text\n```\n````" in text


def test_notebook_holds_the_outputs_and_runs(tmp_path, tree):
    text = notebooks.notebook(built(tmp_path, tree, TEXT), {"COLOUR": "red"})
    cells = json.loads(text)["cells"]
    assert [c["cell_type"] for c in cells].count("code") == 4  # three and the one that sets up
    assert "".join(cells[2]["source"]) in TEXT
    outputs = [output["output_type"] for output in cells[2]["outputs"]]
    assert outputs == ["stream", "execute_result"]
    assert "no-run" not in text
    assert "noeval" not in text
    path = tree / "handouts" / "hw0" / "handout.ipynb"
    path.write_text(text)
    notebooks.execute(path)
    assert path.read_text() == text


def test_notebook_that_does_not_run_is_refused(tmp_path, tree):
    path = tree / "handouts" / "hw0" / "handout.ipynb"
    path.write_text(notebooks.notebook(built(tmp_path, tree, TEXT), {}))
    (tree / "src" / "simple_ml.py").write_text("def add(x, y):\n    raise TypeError('blank')\n")
    with pytest.raises(handouts.HandoutError, match="blank"):
        notebooks.execute(path)


# --- the builder and the gate, on a course of one stage ---

STAGE = """\
title = "Start"
module = "simple_ml"
files = [{ from = "hw_stages/hw0/src/simple_ml.py", to = "src/simple_ml.py" }]

[[questions]]
id = "hw0.add"
title = "Addition"
points = 100
regions = ["hw0.add.sum"]
hints = ["plus", "x plus y"]
"""
SOURCE = """\
\"\"\"The functions of hw0.\"\"\"


def add(x, y):
    \"\"\"Return the sum.\"\"\"
    ### BEGIN SOLUTION hw0.add.sum
    sum_of_both = x + y
    return sum_of_both
    ### END SOLUTION
"""
GOOD = """\
# Start

The question `hw0.add` asks for the region `hw0.add.sum` in [simple_ml.py](../../src/simple_ml.py).
See [below](#the-command).

```python
import simple_ml

simple_ml.add(1, 2)
```

## The command

`needle test hw0.add` or `needle test hw0.add::small --seed 3`.

    ok  hw0.add       1 of 1   tests   100 of 100 points
"""
TESTS = """\
from needle_course.testing import equal, graded


@graded("hw0.add::small")
class Small:
    def inputs(rng):
        return {"x": 1}

    def probe(ml, inputs):
        return {"sum": ml.add(inputs["x"], 2)}

    def check(inputs, outputs):
        equal("the sum", outputs["sum"], 3)
"""


@pytest.fixture
def course(tmp_path):
    """Return a function that makes a course of one stage with the given handout."""

    def course(text):
        for name, content in {
            "hw0/stage.toml": STAGE,
            "hw0/src/simple_ml.py": SOURCE,
            "hw0/tests/test_add.py": TESTS,
            "hw0/handout.md": text,
            "pictures/strides.py": "",
        }.items():
            path = tmp_path / "hw_stages" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return load_course(tmp_path)

    return course


def test_a_handout_is_built_on_the_filled_stage(course, tmp_path):
    made = course(GOOD)
    files = handout_builder.build(made, made.stage("hw0"), tmp_path / "out", execute_notebook=True)
    assert [path.name for path in files] == ["handout.md", "handout.ipynb"]
    assert "```\n\n```text\n3\n```\n" in files[0].read_text()
    again = handout_builder.build(made, made.stage("hw0"), tmp_path / "again")
    assert [path.read_bytes() for path in files] == [path.read_bytes() for path in again]


def test_a_stage_without_a_handout_is_said(course, tmp_path):
    made = course(GOOD)
    (made.stage("hw0").folder / "handout.md").unlink()
    with pytest.raises(handouts.HandoutError, match="hw0 has no handout"):
        handout_builder.build(made, made.stage("hw0"), tmp_path / "out")


def test_a_good_handout_has_no_fault(course):
    made = course(GOOD)
    assert handout_gate.faults(made, made.stage("hw0")) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("`hw0.add.sum`", "sum", ":1: region hw0.add.sum is never named"),
        ("hw0.add", "add", ":1: question hw0.add is never named"),
        ("../../src/simple_ml.py", "../../src/simple.py",
         ":3: ../../src/simple.py is not in a workspace of hw0"),
        ("../../src/simple_ml.py", "../../../README.md",
         ":3: ../../../README.md is not in a workspace of hw0"),
        ("See [", "![memory](pictures/memory.svg) [", ":4: no code draws pictures/memory.svg"),
        ("#the-command", "#command", ":4: no heading gives #command"),
        ("needle test hw0.add`", "needle tset hw0.add`", ":14: needle has no command tset"),
        ("--seed 3", "--sede 3", ":14: needle test has no option --sede"),
        ("hw0.add::small", "hw0.add::large", ":14: no question, region or test is called "
         "hw0.add::large"),
        ("1 of 1", "2 of 2", ":16: hw0.add has 1 tests and 100 points"),
        ("100 of 100", "50 of 50", ":16: hw0.add has 1 tests and 100 points"),
        ("simple_ml.add(1, 2)", "sum_of_both = x + y",
         ":9: shows a line of the answer to hw0.add.sum"),
        ("test hw0.add`", "test hw0.sub`", ":14: no question, region or test is called hw0.sub"),
    ],
)  # fmt: skip
def test_a_planted_fault_is_found_with_its_line(course, old, new, fault):
    assert old in GOOD
    made = course(GOOD.replace(old, new))
    found = map(str, handout_gate.faults(made, made.stage("hw0")))
    assert f"hw_stages/hw0/handout.md{fault}" in found


def test_links_that_lead_somewhere_are_no_faults(course):
    text = GOOD + "[a](https://example.org) ![s](pictures/strides.svg) [tests](../../tests/hw0)\n"
    made = course(text)
    assert handout_gate.faults(made, made.stage("hw0")) == []
    assert handout_builder.pictures_of(handout_builder.source(made, made.stage("hw0"))) == [
        "strides"
    ]
