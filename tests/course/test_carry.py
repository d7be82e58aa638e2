"""The three-way merge: the student's lines survive, the course's arrive, conflicts hold both."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needle_course.carry import merge

BASE = """import a


def f():
    ### BEGIN YOUR SOLUTION (hw1.f)
    raise NotImplementedError("hw1.f")
    ### END YOUR SOLUTION


def g():
    ### BEGIN YOUR SOLUTION (hw1.g)
    raise NotImplementedError("hw1.g")
    ### END YOUR SOLUTION
"""


def answered(text: str, region: str, body: str) -> str:
    return text.replace(f'    raise NotImplementedError("{region}")\n', body)


def test_an_untouched_file_becomes_the_next_starter():
    assert merge(BASE, BASE, BASE + "more\n") == (BASE + "more\n", [])


def test_an_answer_goes_into_the_next_starter():
    mine = answered(BASE, "hw1.f", "    return 1\n")
    theirs = BASE.replace("import a\n", "import a\nimport b\n") + "\n\ndef h():\n    pass\n"
    text, conflicts = merge(BASE, mine, theirs)
    assert text == answered(theirs, "hw1.f", "    return 1\n")
    assert not conflicts


def test_edits_outside_the_markers_carry_over():
    mine = BASE.replace("import a\n", "import mine\n").replace("def g():", "def g(x=1):")
    theirs = BASE + "more\n"
    assert merge(BASE, mine, theirs) == (mine + "more\n", [])


def test_a_deleted_line_stays_deleted():
    mine = BASE.replace("import a\n", "")
    assert merge(BASE, mine, BASE + "more\n")[0] == mine + "more\n"


def test_lines_added_at_one_place_by_both_stay():
    text, conflicts = merge(BASE, BASE + "mine\n", BASE + "theirs\n")
    assert text == BASE + "mine\ntheirs\n"
    assert not conflicts


def test_the_same_change_on_both_sides_is_none():
    both = BASE.replace("import a", "import b")
    assert merge(BASE, both, both + "more\n") == (both + "more\n", [])


def test_a_conflict_keeps_the_students_text_and_reports_the_courses():
    mine = BASE.replace("import a", "import mine")
    theirs = BASE.replace("import a", "import theirs")
    text, (conflict,) = merge(BASE, mine, theirs)
    assert text == mine
    assert (conflict.line, conflict.base, conflict.mine, conflict.theirs) == (
        1,
        "import a\n",
        "import mine\n",
        "import theirs\n",
    )


def test_a_conflict_costs_only_its_own_lines():
    mine = answered(BASE, "hw1.f", "    return 1\n").replace("import a", "import mine")
    theirs = BASE.replace("import a", "import theirs") + "more\n"
    text, conflicts = merge(BASE, mine, theirs)
    assert text == mine + "more\n"
    assert len(conflicts) == 1


def test_answers_stay_in_their_own_region_when_code_repeats_itself():
    body = "    x = 1\n    return x\n"
    mine = answered(answered(BASE, "hw1.f", body), "hw1.g", body)
    moved = BASE.replace("def g():", 'def k():\n    """Between."""\n\n\ndef g():')
    text, conflicts = merge(BASE, mine, moved)
    assert text == answered(answered(moved, "hw1.f", body), "hw1.g", body)
    assert not conflicts


def test_a_last_line_without_a_line_end_is_kept_apart():
    text, _ = merge("a\nb\n", "a\nb\nmine", "a\nb\ntheirs\n")
    assert text == "a\nb\nmine\ntheirs\n"


def test_a_removed_region_with_an_answer_is_a_conflict():
    mine = answered(BASE, "hw1.g", "    return 2\n")
    theirs = BASE[: BASE.index("\n\ndef g")]
    text, conflicts = merge(BASE, mine, theirs)
    assert "return 2" in text
    assert conflicts


lines = st.lists(st.sampled_from(["a", "b", "c", "", "    return 1"]), max_size=12)


@st.composite
def edited(draw, base, tag):
    """A text grown from `base`: lines deleted, and lines with a name of their own put in."""
    result = []
    for index, line in enumerate([*base, None]):
        result += [f"{tag}{index}.{i}" for i in range(draw(st.sampled_from([0, 0, 0, 1, 2])))]
        if line is not None and draw(st.sampled_from([True, True, False])):
            result.append(line)
    return result


@given(st.data())
def test_no_line_of_the_student_is_lost(data):
    base = data.draw(lines)
    mine, theirs = data.draw(edited(base, "mine")), data.draw(edited(base, "theirs"))
    texts = ["".join(f"{line}\n" for line in part) for part in (base, mine, theirs)]
    text, conflicts = merge(*texts)
    result = text.split("\n")
    own = [line for line in mine if line.startswith("mine")]
    assert [line for line in result if line.startswith("mine")] == own
    reported = "".join(conflict.theirs for conflict in conflicts)
    for line in theirs:
        if line.startswith("theirs"):
            assert line in result or line in reported
    for conflict in conflicts:
        assert conflict.mine in text
        assert conflict.mine != conflict.theirs


@pytest.mark.parametrize("separator", ["\x0c", "\u2028", "\r\n"])
def test_separators_inside_a_line_do_not_move(separator):
    mine = f"a = '{separator}'\nb\n"
    assert merge("b\n", mine, "b\nc\n") == (mine + "c\n", [])
