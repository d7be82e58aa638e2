"""Answers go from a filled tree into a blank one and give it back, byte for byte."""

import pytest

from needle_course.answers import AnswerError, fill, fill_text, read_answers, read_text
from needle_course.stages import load_course
from needle_course.starter import build_tree
from tests.course.course_of_two import write_course

TEXT = """x = 1
### BEGIN YOUR SOLUTION (hw1.f)
return 1

return 2
### END YOUR SOLUTION
    /// BEGIN YOUR SOLUTION (hw3.g)
    /// END YOUR SOLUTION
"""


def test_blocks_of_both_kinds_are_read():
    assert read_text(TEXT) == {"hw1.f": "return 1\n\nreturn 2\n", "hw3.g": ""}


def test_filling_replaces_what_is_between_the_lines():
    assert "return 3\n###" in fill_text(TEXT, {"hw1.f": "return 3\n"})
    assert fill_text(TEXT, {}) == TEXT


@pytest.mark.parametrize("stage", ["hw1", "hw2"])
def test_the_answers_of_a_filled_tree_fill_the_blank_one(tmp_path, stage):
    course = load_course(write_course(tmp_path / "course"))
    blank, filled = tmp_path / "blank", tmp_path / "filled"
    build_tree(course, stage, blank, False)
    build_tree(course, stage, filled, True)
    stubs, answers = read_answers(blank), read_answers(filled)
    assert stubs.keys() == answers.keys()
    emptied = {place: (blank / place).read_bytes() for place in course.files(stage)}
    fill(blank, answers)
    for place in course.files(stage):
        assert (blank / place).read_bytes() == (filled / place).read_bytes()
    fill(blank, stubs)
    assert emptied == {place: (blank / place).read_bytes() for place in course.files(stage)}


def test_answers_come_from_files_of_any_name(tmp_path):
    (tmp_path / "a.txt").write_text("### BEGIN YOUR SOLUTION (hw1.f)\n1\n### END YOUR SOLUTION\n")
    (tmp_path / "b.cu").write_text("/// BEGIN YOUR SOLUTION (hw3.g)\n2;\n/// END YOUR SOLUTION\n")
    paths = [tmp_path / "a.txt", tmp_path / "b.cu"]
    assert read_answers(paths) == {"hw1.f": "1\n", "hw3.g": "2;\n"}
    assert read_answers(tmp_path / "a.txt") == {"hw1.f": "1\n"}


def test_line_ends_and_foreign_bytes_stay(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(
        b"# \xff\r\n### BEGIN YOUR SOLUTION (hw1.f)\r\nx\r\n### END YOUR SOLUTION\r\ny\r\n"
    )
    fill(path, {"hw1.f": "z\n"})
    assert path.read_bytes() == (
        b"# \xff\r\n### BEGIN YOUR SOLUTION (hw1.f)\r\nz\n### END YOUR SOLUTION\r\ny\r\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("### BEGIN YOUR SOLUTION (hw1.f)\n", "a:1: hw1.f has no END"),
        ("### END YOUR SOLUTION\n", "a:1: .* out of place"),
        ("### BEGIN YOUR SOLUTION (hw1.f)\n### BEGIN YOUR SOLUTION (hw1.g)\n", "a:2: .*place"),
        ("## BEGIN YOUR SOLUTION (hw1.f)\n", "a:1: .* out of place"),
        ("### BEGIN YOUR SOLUTION hw1.f\n", "a:1: .* out of place"),
        ("### BEGIN YOUR SOLUTION (hw1.f)\n### END YOUR SOLUTION\n" * 2, "a:3: .*second time"),
    ],
)
def test_damaged_marker_lines_are_named(text, message):
    with pytest.raises(AnswerError, match=message):
        read_text(text, "a")


def test_an_answer_without_a_region_is_refused(tmp_path):
    (tmp_path / "a.py").write_text(TEXT)
    with pytest.raises(AnswerError, match=r"no region hw1\.k"):
        fill(tmp_path, {"hw1.k": ""})


def test_a_region_in_two_files_is_refused(tmp_path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(TEXT)
    with pytest.raises(AnswerError, match="second time"):
        read_answers(tmp_path)
