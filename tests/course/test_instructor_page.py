"""The instructor's pages: what INSTRUCTOR.md adds is a question, its commands and links exist."""

import re
import shutil
from pathlib import Path

import pytest
import typer.main

from needle_course import commands, gates, mutants, runner
from needle_course.stages import NAMES, load_course
from needle_course.trees import StageTree

ROOT = Path(__file__).parents[2]
STAGES = ROOT / "hw_stages"
PAGE = (STAGES / "INSTRUCTOR.md").read_text(encoding="utf-8")
README = (STAGES / "README.md").read_text(encoding="utf-8")
EXAMPLE = PAGE[PAGE.index("## Add a question") : PAGE.index("## Run it again")]
REGION = "hw0.loss_err"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", EXAMPLE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def course(tmp_path):
    """Return hw0 alone in a folder, with the five steps of the page done to it."""
    shutil.copytree(STAGES / "hw0", tmp_path / "hw_stages" / "hw0")
    whole = load_course(ROOT)
    for source in [*whole.files("hw0").values(), *whole.data("hw0")]:
        if not source.startswith("hw_stages/hw0/"):
            (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / source, tmp_path / source)
    folder = tmp_path / "hw_stages" / "hw0"
    answer, test = blocks("python")
    question, mutant = blocks("toml")
    source = folder / "src" / "simple_ml.py"
    given = re.search(r"def loss_err\(.*?(?=\n\n\n)", source.read_text(), re.DOTALL)
    source.write_text(source.read_text().replace(given[0], answer.rstrip()))
    listing = (folder / "stage.toml").read_text().replace("points = 25", "points = 20", 1)
    (folder / "stage.toml").write_text(f"{listing}\n{question}")
    (folder / "tests" / "test_loss_err.py").write_text(test)
    with (folder / "mutants.toml").open("a") as file:
        file.write(f"\n{mutant}")
    return load_course(tmp_path)


def verdicts(tree):
    results = runner.run(tree.folder, tree.stage, [REGION], build=False)
    return {result.test: (result.verdict, result.region) for result in results}


def test_the_example_question_passes_fails_blank_and_kills_its_mutant(course, tmp_path):
    stage = course.stage("hw0")
    assert sum(question.points for question in stage.questions) == 100
    assert not gates.markers(course, stage, tmp_path)
    tree = StageTree(course, stage, tmp_path / "tree")
    tree.fill(True)
    name = f"{REGION}::random_logits"
    assert verdicts(tree) == {name: ("pass", "")}
    (mutant,) = [m for m in mutants.load_mutants(stage) if m.question == REGION]
    assert mutant.killed_by == name
    with tree.edited(mutant.edits):
        assert verdicts(tree)[name][0] == "fail"
    tree.fill(False)
    assert verdicts(tree) == {name: ("not_implemented", REGION)}


@pytest.mark.parametrize("text", [PAGE, README], ids=["INSTRUCTOR.md", "README.md"])
def test_the_commands_on_the_pages_exist(text):
    group = typer.main.get_command(commands.app)
    named = re.findall(r"(?:`|\$ |&& )(?:python -m needle_course|needle) ([a-z]+)", text)
    named += re.findall(r"│  needle ([a-z]+)", text)
    assert len(named) >= 5
    assert set(named) <= set(group.commands)


def test_the_page_has_every_exit_status():
    table = PAGE[PAGE.index("## Exit codes") :]
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    named = ("FAILED", "USAGE", "BUILD", "FAULT", "GATE", "OVERWRITE", "INTEGRITY", "CONFLICTS")
    assert codes == {0, 130, *(getattr(commands, name) for name in named)}


def test_links_lead_somewhere():
    for text in (PAGE, README):
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (STAGES / target).exists(), target


def test_the_readme_lists_every_stage():
    assert re.findall(r"^\| `(hw\d)` \|", README, re.MULTILINE) == list(NAMES)
