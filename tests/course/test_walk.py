"""The walk goes through a small course, and stops for what it is there to find."""

import random

import pytest

from needle_course.errors import CourseError
from needle_course.release import build_release
from needle_course.stages import load_course
from needle_course.walk import lost_answers, plain_answers, reference_answers, walk, with_own_lines
from tests.course.course_of_two import change, write_course

PLAIN = """
### BEGIN YOUR SOLUTION (hw1.square)
    return side**2
### END YOUR SOLUTION
### BEGIN YOUR SOLUTION (hw1.circle)
    return math.pi * radius * radius
### END YOUR SOLUTION
### BEGIN YOUR SOLUTION (hw1.around)
    return side + side + side + side
### END YOUR SOLUTION
"""


def offences(folder, whose):
    course = load_course(folder)
    wheel = build_release(course, folder / "out", None)
    return "\n".join(map(str, walk(course, wheel, whose, list(course.by_name))))


def test_a_good_course_is_walked_to_its_end(tmp_path):
    assert offences(write_course(tmp_path), ["reference"]) == ""


def test_what_goes_wrong_on_the_way_is_found(tmp_path):
    folder = write_course(tmp_path)
    free = ('"area": ndl.square(inputs["side"])', '"area": inputs["side"] ** 2')
    change(folder, "hw_stages/hw2/tests/test_solids.py", "ndl.cube(", "ndl.square(")
    change(folder, "hw_stages/hw1/tests/test_shapes.py", "4 * inputs", "5 * inputs")
    change(folder, "hw_stages/hw1/tests/test_shapes.py", *free)
    plain = folder / "hw_stages/plain_student"
    plain.mkdir()
    (plain / "hw1.py").write_text(PLAIN)
    found = offences(folder, ["reference", "plain"])
    assert "hw1.edge::around: after hw1.edge was answered: fail" in found
    assert "hw2.volume::cube: after hw2.volume was answered: fail" in found
    assert "hw2.volume: there is no answer to hw2.cube" in found
    assert "ends with 60 points" in found


def test_a_plain_student_who_is_not_there_is_an_error(tmp_path):
    with pytest.raises(CourseError, match="has not answered"):
        plain_answers(load_course(write_course(tmp_path)))


def test_the_answers_of_the_reference_are_those_of_all_regions(tmp_path):
    answers = reference_answers(load_course(write_course(tmp_path)))
    assert set(answers) == {"hw1.square", "hw1.circle", "hw1.around", "hw2.cube"}


def test_a_lost_answer_is_named():
    text = "### BEGIN YOUR SOLUTION (hw1.f)\n1\n### END YOUR SOLUTION\n"
    assert list(lost_answers({"a.py": text}, {"b.py": text})) == []
    assert list(lost_answers({"a.py": text}, {"a.py": text.replace("1\n", "2\n")})) == [
        ("a.py", "hw1.f")
    ]
    assert list(lost_answers({"a.py": text}, {})) == [("a.py", "hw1.f")]


def test_own_lines_are_comments_between_the_lines():
    text = "a\nb\nc\n"
    written = with_own_lines(text, "a.cu", random.Random(1))
    added = [line for line in written.splitlines() if line not in ("a", "b", "c")]
    assert added
    assert all(line.startswith("// my line ") for line in added)
    assert [line for line in written.splitlines() if line in ("a", "b", "c")] == ["a", "b", "c"]
