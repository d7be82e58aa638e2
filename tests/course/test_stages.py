"""Reading stage.toml, and what it refuses."""

import pytest

from needle_course.errors import CourseError
from needle_course.stages import Question, load_course
from tests.course.course_of_two import change, write_course


@pytest.fixture
def folder(tmp_path):
    return write_course(tmp_path)


def test_a_course_knows_its_stages_in_order(folder):
    course = load_course(folder)
    assert [stage.name for stage in course.stages] == ["hw1", "hw2"]
    assert [stage.name for stage in course.up_to("hw2")] == ["hw1", "hw2"]
    assert course.after("hw1").name == "hw2"
    assert course.after("hw2") is None


def test_a_stage_has_the_files_of_the_earlier_ones(folder):
    course = load_course(folder)
    assert "python/needle/solids.py" not in course.files("hw1")
    assert set(course.files("hw2")) > set(course.files("hw1"))


def test_a_file_may_lie_elsewhere_in_the_workspace(folder):
    entry = '{ from = "python/needle/solids.py", to = "src/solids.py" }'
    change(folder, "hw_stages/hw2/stage.toml", '"python/needle/solids.py"', entry)
    assert load_course(folder).files("hw2")["src/solids.py"] == "python/needle/solids.py"


def test_a_region_leads_to_its_question(folder):
    stage = load_course(folder).stage("hw1")
    assert stage.question_of("hw1.circle").id == "hw1.area"
    assert stage.question("hw1.edge").needs == ("hw1.area",)
    with pytest.raises(CourseError, match=r"no question hw1\.x"):
        stage.question("hw1.x")
    with pytest.raises(CourseError, match=r"hw1\.x belongs to no question"):
        stage.question_of("hw1.x")


def test_an_unknown_stage_is_named_with_the_known_ones(folder):
    with pytest.raises(CourseError, match=r"no stage hw9 .*hw1, hw2"):
        load_course(folder).stage("hw9")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "Shapes"', 'titel = "Shapes"', "unknown key titel"),
        ('title = "Shapes"\n', "", "title is missing"),
        ('title = "Shapes"', "title = ", "stage.toml"),
        ("points = 60", "point = 60", "unknown key point"),
        ("points = 60\n", "", "points is missing"),
        ('id = "hw1.area"', 'id = "hw2.area"', "question id 'hw2.area'"),
        ('title = "Areas"', 'title = "Areas"\ndevice = "tpu"', "device of hw1.area"),
        ('module = "needle"', 'module = "needle"\nbuild = "bazel"', "build is 'bazel'"),
    ],
)
def test_a_wrong_entry_is_refused(folder, old, new, message):
    change(folder, "hw_stages/hw1/stage.toml", old, new)
    with pytest.raises(CourseError, match=message):
        load_course(folder)


def test_a_folder_without_stages_is_refused(tmp_path):
    with pytest.raises(CourseError, match="no stage.toml"):
        load_course(tmp_path)


@pytest.mark.parametrize(
    ("passed", "tests", "earned"),
    [(40, 40, 25), (33, 40, 20.6), (1, 40, 0.6), (0, 40, 0), (399, 400, 24.9), (0, 0, 0)],
)
def test_the_tests_of_a_question_share_its_points(passed, tests, earned):
    question = Question("hw1.backward", "The gradients", 25, ())
    assert question.earned(passed, tests) == earned
