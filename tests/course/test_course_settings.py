"""course.toml: what an instructor may write, and what the tool says to a slip of the pen."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from needle_course import settings
from needle_course.stages import Question

ROOT = Path(__file__).parents[2]
COURSE = """\
title = "A course"
term = "Spring"
hints = false
devices = ["cpu", "cuda"]
off = ["hw1.graph"]

[stages.hw0]
weight = 40
opens = 2027-02-01
due = 2027-02-14T23:59:00+01:00

[stages.hw1]
weight = 60

[stages.hw2]
weight = 0

[stages.hw3]
weight = 0

[stages.hw4]
weight = 0

[stages.hw5]
weight = 0
"""


def question(name, device="cpu"):
    return Question(name, "A question", 10, (), device=device)


@pytest.fixture
def load(tmp_path):
    """Load a course.toml of the given text beside two stages."""
    for stage, questions in {"hw0": ["hw0.add"], "hw1": ["hw1.graph", "hw1.sort"]}.items():
        (tmp_path / stage).mkdir()
        text = "\n".join(f'[[questions]]\nid = "{question}"' for question in questions)
        (tmp_path / stage / "stage.toml").write_text(text)

    def load(text):
        (tmp_path / "course.toml").write_text(text)
        return settings.load(tmp_path)

    return load


def test_the_course_of_this_repository_is_meant_so():
    ours = settings.load(ROOT)
    assert sum(stage.weight for stage in ours.stages.values()) == 100
    assert ours.hints
    assert not ours.off


def test_what_is_written_is_what_is_read(load):
    read = load(COURSE)
    assert (read.title, read.term, read.hints) == ("A course", "Spring", False)
    assert list(read.stages) == ["hw0", "hw1", "hw2", "hw3", "hw4", "hw5"]
    assert read.stages["hw0"].weight == 40
    due = datetime(2027, 2, 14, 23, 59, tzinfo=timezone(timedelta(hours=1)))
    assert read.stages["hw0"].due == due
    assert read.stages["hw1"].due is None


def test_a_date_alone_is_its_first_or_last_moment(load):
    stage = load(COURSE.replace("2027-02-14T23:59:00+01:00", "2027-02-14")).stages["hw0"]
    assert stage.opens.isoformat().startswith("2027-02-01T00:00:00")
    assert stage.due.isoformat().startswith("2027-02-14T23:59:59")
    assert stage.opens.tzinfo is not None


def test_which_questions_count(load):
    read = load(COURSE)
    assert read.counts(question("hw1.sort"))
    assert read.counts(question("hw1.sort", "cuda"))
    assert not read.counts(question("hw1.sort", "cuda_checked"))
    assert not read.counts(question("hw1.graph"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "A course"\n', "", 'title is missing; title = "words"'),
        ("hints = false", 'hints = "no"', "hints is 'no'; write it as true"),
        ("hints = false", "hint = false", "hint means nothing; there are title, term"),
        ('"cuda"]', '"gpu"]', "devices has 'gpu'; there are cpu, cuda, cuda_checked"),
        ('["cpu", "cuda"]', '["cuda"]', 'devices leaves out "cpu"'),
        ("hw1.graph", "hw1.grap", "off has 'hw1.grap'; the course has hw0.add, hw1.graph"),
        ("weight = 60", "weight = 50", "weights of the stages add up to 90; make it 100"),
        ("weight = 60", "weight = -1", "stages.hw1.weight is -1; it is a number from 0 to 100"),
        ("weight = 60", "", "stages.hw1.weight is None"),
        ("weight = 60", "weight = 60\ndeu = 2027-01-01", "stages.hw1.deu means nothing"),
        ("[stages.hw1]", "[stages.hw7]", r"\[stages.hw1\] is missing; give it a weight"),
        ("[stages.hw1]", "[stages.hw1]\nweight = 60\n[stages.hw9]", "stages.hw9 means nothing"),
        ("+01:00", "", "stages.hw0.due is 2027-02-14 23:59:00 without an offset"),
        ("2027-02-14T", "2027-01-14T", "it opens first"),
        ("opens = 2027-02-01", 'opens = "2027-02-01"', "write a date without quotes"),
        ("hints = false", "hints = ", "is no TOML: .*line 3"),
    ],
)
def test_a_slip_is_named_with_its_rule(load, old, new, message):
    assert old in COURSE
    with pytest.raises(settings.SettingsError, match=rf"^\[course\.toml\] .*{message}"):
        load(COURSE.replace(old, new))


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(settings.SettingsError, match="there is no .*course.toml"):
        settings.load(tmp_path)
