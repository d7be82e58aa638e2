"""Every gate finds the fault that it is there for, and nothing in a course without one."""

import pytest

from needle_course import gates, leaks
from needle_course.answers import read_answers
from needle_course.errors import CourseError
from needle_course.gates import GATES, check
from needle_course.stages import load_course
from tests.course.course_of_two import change, write_course

SHAPES = "python/needle/shapes.py"
LIST = "hw_stages/hw1/stage.toml"
TESTS = "hw_stages/hw1/tests/test_shapes.py"


@pytest.fixture
def folder(tmp_path):
    return write_course(tmp_path)


def offences(folder, gate, stage="hw1"):
    return "\n".join(map(str, check(load_course(folder), [stage], [gate])))


@pytest.mark.parametrize("gate", [gate for gate in GATES if gate not in ("mutants", "variants")])
def test_a_good_course_has_no_offence(folder, gate):
    for stage in ("hw1", "hw2"):
        assert offences(folder, gate, stage) == ""


# --- markers ---


def test_a_stray_marker_is_found(folder):
    change(folder, SHAPES, "    ### END SOLUTION\n\n\ndef circle", "\n\ndef circle")
    assert f"{SHAPES}:20" in offences(folder, "markers")


def test_an_uncommented_line_of_until_is_found(folder):
    change(folder, SHAPES, "#     return 1000", "    return 1000")
    assert "not commented" in offences(folder, "markers")


def test_a_region_of_a_later_stage_is_found(folder):
    change(folder, SHAPES, "BEGIN SOLUTION hw1.around", "BEGIN SOLUTION hw2.around")
    assert "hw2.around is visible in hw1" in offences(folder, "markers")


def test_an_id_in_two_files_is_found(folder):
    change(folder, "python/needle/solids.py", "hw2.cube", "hw1.square")
    assert "hw1.square is also at" in offences(folder, "markers")


def test_a_region_in_a_file_of_no_stage_is_found(folder):
    text = "### BEGIN SOLUTION hw1.lost\nx = 1\n### END SOLUTION\n"
    (folder / "python/needle/lost.py").write_text(text)
    assert "python/needle/lost.py:1: hw1.lost stands in a file that hw1 lacks" in (
        offences(folder, "markers")
    )


# --- stage.toml ---


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("points = 60", "points = 50", "the points sum to 90"),
        ('"hw1.square", ', "", "hw1.square belongs to no question"),
        ('["hw1.around"]', '["hw1.around", "hw1.square"]', "hw1.square is also of hw1.area"),
        ('["hw1.around"]', '["hw1.around", "hw1.lost"]', "hw1.lost is in no file of hw1"),
        ('hints = ["Add.", "A square has four sides."]', 'hints = ["Add."]', "has 1 hints"),
        ('needs = ["hw1.area"]', 'needs = ["hw2.volume"]', "needs hw2.volume"),
        ('"python/needle/shapes.py"', '"python/needle/shape.py"', "no file python/needle/shape.py"),
    ],
)
def test_an_inconsistent_list_is_found(folder, old, new, message):
    change(folder, LIST, old, new)
    found = offences(folder, "stages")
    assert message in found
    assert "stage.toml" in found


def test_a_question_without_a_test_is_found(folder):
    change(folder, TESTS, "hw1.edge::around", "hw1.area::around")
    assert "hw1.edge has no test" in offences(folder, "stages")


def test_a_test_of_no_question_is_found(folder):
    change(folder, TESTS, "hw1.edge::around", "hw1.border::around")
    assert "hw1.border::around is of no question" in offences(folder, "stages")


def test_a_missing_handout_is_found(folder):
    (folder / "hw_stages/hw1/handout.md").unlink()
    assert "no handout.md" in offences(folder, "stages")


def test_a_question_that_the_handout_does_not_name_is_found(folder):
    change(folder, "hw_stages/hw1/handout.md", "hw1.edge", "the edge")
    assert "question hw1.edge is never named" in offences(folder, "handouts")


# --- leaks ---


@pytest.mark.parametrize(
    ("place", "old", "new"),
    [
        (SHAPES, "    ### BEGIN SOLUTION hw1.square", "    # area_of_square = side * side\n" * 2),
        (
            SHAPES,
            '    """Return the area of a square."""',
            '    """area_of_square = side*side\n    """',
        ),
        (SHAPES, "    return 0", "    area_of_square = side * side\n    return area_of_square"),
        (TESTS, "        return {", "        # area_of_square = side * side\n        return {"),
        (LIST, '"Multiply."', '"area_of_square = side * side"'),
    ],
)
def test_a_leaked_line_is_found(folder, place, old, new):
    change(folder, place, old, new if old not in new and "BEGIN" not in old else new + old)
    found = offences(folder, "leaks")
    assert "hw1.square" in found
    assert place in found or str(folder / place) in found


def test_an_answer_that_the_compiler_lets_through_is_found(folder, monkeypatch):
    course = load_course(folder)
    assert not leaks.leaked_answers(course, course.stage("hw1"))
    filled = leaks.tree_texts(course, "hw1", True)
    monkeypatch.setattr(leaks, "tree_texts", lambda course, name: filled)
    assert "hw1.square" in "\n".join(map(str, leaks.leaked_answers(course, course.stage("hw1"))))


def test_one_given_line_like_an_answers_is_no_leak(folder):
    change(folder, SHAPES, "    return 0", "    area_of_square = side * side\n    return 0")
    assert offences(folder, "leaks") == ""


# --- names of later stages ---


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        (
            '"""Plane shapes."""',
            '"""Plane shapes, without what turned_shape does."""',
            "turned_shape",
        ),
        ("    return 0", "    return 0  # as TurnedShape has it", "TurnedShape"),
        ("    return 0", "    turned_shape = 0\n    return turned_shape", ""),
    ],
)
def test_a_name_of_a_later_stage_is_found(folder, old, new, name):
    later = "\n\ndef turned_shape(): ...\n\n\nclass TurnedShape: ...\n"
    (folder / "python/needle/turned.py").write_text(f'"""Turned."""{later}')
    change(folder, SHAPES, old, new)
    found = offences(folder, "later-names")
    assert f"{name} is a name of a later stage" in found if name else found == ""


def test_an_allowed_name_is_no_offence(folder):
    (folder / "python/needle/turned.py").write_text("def turned_shape(): ...\n")
    change(folder, SHAPES, '"""Plane shapes."""', '"""Plane shapes, not turned_shape."""')
    change(folder, LIST, 'title = "Shapes"', 'title = "Shapes"\nlater_names = ["turned_shape"]')
    course = load_course(folder)
    assert not check(course, ["hw1"], ["later-names"])


# --- the same bytes again ---


def test_drift_is_found(folder, monkeypatch):
    values = iter("ab")
    monkeypatch.setattr(gates, "zip_digest", lambda course, stage, seed: next(values))
    assert "two builds give different bytes" in offences(folder, "reproducible")


# --- the blank starter ---


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("PI = 3\n", "PI = missing\n", "NameError"),
        ("PI = 3\n", "PI=3\n", "unformatted"),
        (
            "    # radius = abs(radius)",
            "    # radius = (",
            "unformatted|SyntaxError|invalid-syntax",
        ),
        ("return 4 * square(side) / side", "return 4 * squares(side)", "F821"),
    ],
)
def test_a_starter_that_is_broken_is_found(folder, old, new, message):
    change(folder, SHAPES, old, new)
    found = offences(folder, "blank")
    assert any(part in found for part in message.split("|")), found


# --- tests on blank and answered trees ---


def test_a_free_point_is_found(folder):
    change(folder, TESTS, '"area": ndl.square(inputs["side"])', '"area": inputs["side"] ** 2')
    assert "hw1.area::square passes blank: a free point" in offences(folder, "free-points")
    assert "hw1.area::square passes without hw1.area" in offences(folder, "own-stub")


def test_a_test_that_fails_for_another_reason_is_found(folder):
    change(folder, TESTS, "ndl.square(", "ndl.squares(")
    assert "hw1.area::square blank: exception" in offences(folder, "free-points")
    assert "hw1.area::square without hw1.area: exception" in offences(folder, "own-stub")


def test_a_need_that_is_not_declared_is_found(folder):
    needy = '"edge": ndl.square(1) and ndl.around(inputs["side"])'
    change(folder, TESTS, '"edge": ndl.around(inputs["side"])', needy)
    assert offences(folder, "free-points") == ""
    change(folder, LIST, 'needs = ["hw1.area"]\n', "")
    assert "hw1.edge::around blank fails with hw1.square" in offences(folder, "free-points")


def test_a_test_that_does_not_reach_its_own_question_is_found(folder):
    change(folder, TESTS, '"edge": ndl.around(inputs["side"])', '"edge": ndl.square(2) * 1.0')
    assert "hw1.edge::around without hw1.edge: fail" in offences(folder, "own-stub")


def test_a_test_that_the_reference_fails_is_found(folder):
    change(folder, TESTS, "4 * inputs", "5 * inputs")
    found = offences(folder, "reference")
    assert "hw1.edge::around on the answered hw1: fail" in found
    assert "hw1.edge::around on the full repository: fail" in found


def test_an_answer_that_needs_a_later_file_is_found(folder):
    late = "from needle.solids import cube as later_cube\n\n    return 4 * later_cube(side)"
    change(folder, SHAPES, "return 4 * square(side)", late + " / side")
    assert "on the answered hw1: exception" in offences(folder, "reference")


def test_a_later_stage_that_breaks_an_earlier_one_is_found(folder):
    change(
        folder, SHAPES, "    return sys.maxsize\n", "    return sys.maxsize\n\n\nsquare = None\n"
    )
    assert offences(folder, "reference") == "" or "hw1" in offences(folder, "reference")
    assert "hw1.area::square on the answered hw2" in offences(folder, "earlier-tests", "hw2")


# --- mutants and variants are in test_mutants.py ---


def test_an_unknown_gate_is_refused(folder):
    with pytest.raises(CourseError, match="no gate"):
        check(load_course(folder), ["hw1"], ["fence"])


def test_the_answers_of_the_course_are_what_its_regions_hold(folder):
    course = load_course(folder)
    assert leaks.answer_lines(course)["hw1.square"] == [
        "area_of_square=side*side",
        "returnarea_of_square",
    ]
    assert set(leaks.answer_lines(course)) == {"hw1.square", "hw1.circle", "hw1.around", "hw2.cube"}
    assert read_answers([]) == {}
