"""The stage syntax: what each stage has of a file, and which lines are refused."""

import pytest

from needle_course.errors import MarkerError
from needle_course.markers import close_gaps, comment_prefix, parse, project, solutions

SOURCE = '''"""Powers."""


class PowerScalar:
    """a ** n."""

    def gradient(self, out_grad, node):
        ### BEGIN SOLUTION hw1.power_scalar.gradient
        return out_grad * self.scalar
        ### END SOLUTION

    ### SINCE hw4
    def later(self):
        return 4

    ### END SINCE


### UNTIL hw2
# def early(x):
#     # a comment
#     return x
#
#
### END UNTIL
def last():
    return 1
'''


def test_a_starter_shows_a_stub_between_marker_lines():
    text = project(SOURCE, "hw1")
    assert (
        text
        == '''"""Powers."""


class PowerScalar:
    """a ** n."""

    def gradient(self, out_grad, node):
        ### BEGIN YOUR SOLUTION (hw1.power_scalar.gradient)
        raise NotImplementedError("hw1.power_scalar.gradient")
        ### END YOUR SOLUTION


def early(x):
    # a comment
    return x


def last():
    return 1
'''
    )


@pytest.mark.parametrize(
    ("stage", "later", "early"),
    [("hw1", False, True), ("hw2", False, True), ("hw3", False, False), ("hw4", True, False)],
)
def test_since_and_until_bound_what_a_stage_has(stage, later, early):
    text = project(SOURCE, stage)
    assert ("def later" in text) is later
    assert ("def early" in text) is early


def test_blank_and_filled_differ_between_the_marker_lines_only():
    blank, filled = project(SOURCE, "hw4").splitlines(), project(SOURCE, "hw4", True).splitlines()
    different = [pair for pair in zip(blank, filled, strict=True) if pair[0] != pair[1]]
    assert different == [
        (
            '        raise NotImplementedError("hw1.power_scalar.gradient")',
            "        return out_grad * self.scalar",
        )
    ]


def test_chosen_regions_are_filled():
    assert project(SOURCE, "hw4", {"hw1.power_scalar.gradient"}) == project(SOURCE, "hw4", True)
    assert project(SOURCE, "hw4", {"hw1.other"}) == project(SOURCE, "hw4")


def test_a_stub_of_its_own_is_shown_uncommented():
    source = (
        "def f(x):\n"
        "    ### BEGIN SOLUTION hw1.f\n"
        "    return x\n"
        "    ### STUB\n"
        "    # if x:\n"
        "    #     return 0\n"
        "    # # here\n"
        "    ### END SOLUTION\n"
    )
    assert project(source, "hw1") == (
        "def f(x):\n"
        "    ### BEGIN YOUR SOLUTION (hw1.f)\n"
        "    if x:\n"
        "        return 0\n"
        "    # here\n"
        "    ### END YOUR SOLUTION\n"
    )


def test_cpp_has_slashes_and_throws():
    source = (
        "void f() {\n"
        "  /// BEGIN SOLUTION hw3.f\n"
        "  run();\n"
        "  /// END SOLUTION\n"
        "}\n"
        "\n"
        "/// UNTIL hw3\n"
        "// void g();\n"
        "/// END UNTIL\n"
        "/// SINCE hw4\n"
        "void h();\n"
        "/// END SINCE\n"
    )
    assert project(source, "hw3", prefix="//") == (
        "void f() {\n"
        "  /// BEGIN YOUR SOLUTION (hw3.f)\n"
        '  throw NotImplementedError("hw3.f");\n'
        "  /// END YOUR SOLUTION\n"
        "}\n"
        "\n"
        "void g();\n"
    )


def test_guards_and_answers_nest():
    source = (
        "### SINCE hw2\n"
        "### BEGIN SOLUTION hw2.f\n"
        "### UNTIL hw3\n"
        "# x = 1\n"
        "### END UNTIL\n"
        "### SINCE hw4\n"
        "x = 2\n"
        "### END SINCE\n"
        "### END SOLUTION\n"
        "### END SINCE\n"
        "### UNTIL hw3\n"
        "### SINCE hw2\n"
        "# y = 1\n"
        "### END SINCE\n"
        "### END UNTIL\n"
    )
    assert project(source, "hw1", True) == ""
    assert "x = 1" in project(source, "hw3", True)
    assert "y = 1" in project(source, "hw3", True)
    assert "x = 2" in project(source, "hw4", True)
    assert "y = 1" not in project(source, "hw4", True)


def lines(*texts):
    return "".join(f"{text}\n" for text in texts)


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        (lines("### BEGIN SOLUTION hw1.f", "x = 1"), 1, "never closed"),
        (lines("### SINCE hw2", "x = 1"), 1, "never closed"),
        (lines("x = 1", "### END SINCE"), 2, "closes nothing"),
        (lines("### STUB"), 1, "closes nothing"),
        (lines("### SINCE hw2", "### UNTIL hw3", "### END SINCE", "### END UNTIL"), 3, "END UNTIL"),
        (lines("### BEGIN SOLUTION hw1.f", "### END SINCE"), 2, "END SOLUTION"),
        (lines("### SINCE hw2", "### STUB", "### END SINCE"), 2, "END SINCE"),
        (
            lines("### BEGIN SOLUTION hw1.f", "### STUB", "### STUB", "### END SOLUTION"),
            3,
            "END SOLUTION",
        ),
        (
            lines("### BEGIN SOLUTION hw1.f", "### BEGIN SOLUTION hw1.g", "### END SOLUTION"),
            2,
            "inside another",
        ),
        (lines("### SINCE hw9", "### END SINCE"), 1, "unknown stage"),
        (lines("### BEGIN SOLUTION hw9.f", "### END SOLUTION"), 1, "unknown stage"),
        (lines("### BEGIN SOLUTION power", "### END SOLUTION"), 1, "no region id"),
        (lines("### BEGIN SOLUTION hw1.F", "### END SOLUTION"), 1, "no region id"),
        (lines("### BEGIN SOLUTION", "### END SOLUTION"), 1, "needs one argument"),
        (lines("### UNTIL full", "### END UNTIL"), 1, "holds at every stage"),
        (lines("### SINCE hw0", "### END SINCE"), 1, "holds at every stage"),
        (lines("### SINCE hw2", "### END SINCE hw2"), 2, "takes no argument"),
        (
            lines(*["### BEGIN SOLUTION hw1.f", "### END SOLUTION"] * 2),
            3,
            "already at line 1",
        ),
        (lines("### END YOUR SOLUTION]"), 1, "almost a directive"),
        (lines("### END SOLUTION]"), 1, "almost a directive"),
        (lines("## BEGIN SOLUTION hw1.f"), 1, "almost a directive"),
        (lines("#### BEGIN SOLUTION hw1.f"), 1, "almost a directive"),
        (lines("# BEGIN SOLUTION hw1.f"), 1, "almost a directive"),
        (lines("###BEGIN SOLUTION hw1.f"), 1, "almost a directive"),
        (lines("### Begin solution hw1.f"), 1, "almost a directive"),
        (lines("### BEGIN SOLUTION hw1.f "), 1, "almost a directive"),
        (lines("### BEGIN SOLUTION hw1.f hw1.g"), 1, "almost a directive"),
        (lines("### BEGIN YOUR SOLUTION (hw1.f)"), 1, "almost a directive"),
        (lines("x = 1  ### SINCE hw2"), 1, "almost a directive"),
        (lines("/// SINCE hw2"), 1, "almost a directive"),
    ],
)
def test_malformed_markers_are_refused(source, line, message):
    with pytest.raises(MarkerError, match=rf"a\.py:{line}: .*{message}"):
        parse(source, "#", "a.py")


@pytest.mark.parametrize("text", ["# the end of it", "### a heading", "# ends a SOLUTION early"])
def test_other_comments_are_none(text):
    assert project(text + "\n", "hw1") == text + "\n"


def test_a_later_region_may_not_be_seen_too_early():
    source = lines("### BEGIN SOLUTION hw3.f", "x = 1", "### END SOLUTION")
    with pytest.raises(MarkerError, match=r"a\.py:1: hw3\.f is visible in hw2"):
        project(source, "hw2", name="a.py")
    assert project(source, "hw3")
    guarded = lines("### SINCE hw3") + source + lines("### END SINCE")
    assert project(guarded, "hw2") == ""


@pytest.mark.parametrize(
    "source",
    [
        lines("### UNTIL hw3", "x = 1", "### END UNTIL"),
        lines("### UNTIL hw3", "#x = 1", "### END UNTIL"),
        lines("### BEGIN SOLUTION hw1.f", "x = 1", "### STUB", "x = 2", "### END SOLUTION"),
    ],
)
def test_text_of_until_and_stub_has_to_be_commented(source):
    with pytest.raises(MarkerError, match=r"a\.py:\d: .*not commented"):
        project(source, "hw1", name="a.py")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["a", "", "", None, "", "b"], ["a", "", "", "b"]),
        (["a", "", None, "", "", "    b"], ["a", "", "    b"]),
        ([None, "", "a", "", None], ["a"]),
        (["class A:", None, "", "    x = 1"], ["class A:", "    x = 1"]),
        (["f(", None, "", ")"], ["f(", ")"]),
        (["# --- part ---", "", None, "def f():"], ["# --- part ---", "", "", "def f():"]),
        (["# about f", None, "def f():"], ["# about f", "def f():"]),
        (["    return 1", "", None, "x = 1"], ["    return 1", "", "", "x = 1"]),
        (["a", "", "", "", "b"], ["a", "", "", "", "b"]),
    ],
)
def test_blank_lines_around_a_gap_become_those_of_formatted_python(given, expected):
    assert close_gaps(given, "#") == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["a;", "", None, "", "b;"], ["a;", "", "b;"]),
        (["void f() {", None, "", "  a;"], ["void f() {", "  a;"]),
        (["  a;", "", None, "}"], ["  a;", "}"]),
        (["  a;", "", None, "}  // namespace"], ["  a;", "", "}  // namespace"]),
    ],
)
def test_blank_lines_around_a_gap_become_those_of_formatted_cpp(given, expected):
    assert close_gaps(given, "//") == expected


@pytest.mark.parametrize(
    ("path", "prefix"),
    [("a.py", "#"), ("b/CMakeLists.txt", "#"), ("Makefile", "#"), ("a.cu", "//"), ("ops.def", "//")]
    + [("a.md", None), ("a.gz", None)],
)
def test_the_kind_of_file_decides_the_comment_sign(path, prefix):
    assert comment_prefix(path) == prefix


def test_solutions_are_found_at_any_depth():
    nodes = parse("### SINCE hw2\n" + SOURCE.replace("hw1.", "hw2.") + "### END SINCE\n")
    assert [(solution.id, solution.stage) for solution in solutions(nodes)] == [
        ("hw2.power_scalar.gradient", "hw2")
    ]
