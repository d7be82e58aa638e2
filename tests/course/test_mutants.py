"""Mutants that live and variants that die are found; malformed entries are refused."""

import pytest

from needle_course.errors import CourseError
from needle_course.gates import check
from needle_course.mutants import load_mutants, run_mutants
from needle_course.stages import load_course
from tests.course.course_of_two import change, write_course

MUTANTS = "hw_stages/hw1/mutants.toml"
VARIANTS = "hw_stages/hw1/variants.toml"


@pytest.fixture
def folder(tmp_path):
    return write_course(tmp_path)


def offences(folder, gate, stage="hw1"):
    return "\n".join(map(str, check(load_course(folder), [stage], [gate])))


def test_every_mutant_is_killed_by_the_test_it_names(folder):
    assert offences(folder, "mutants") == ""


def test_the_table_names_every_test_that_kills(folder, tmp_path):
    course = load_course(folder)
    rows = run_mutants(course, course.stage("hw1"), tmp_path / "tree", question="hw1.area")
    assert [(row.mutant.kind, row.killers, row.killed) for row in rows] == [
        ("constant factor", ["hw1.area::square"], True)
    ]


def test_a_mutant_that_survives_is_found(folder):
    change(folder, MUTANTS, "2 * side * side", "1 * side * side")
    assert "constant factor survives hw1.area::square (pass)" in offences(folder, "mutants")
    assert f"{MUTANTS}:1" in offences(folder, "mutants")


def test_a_mutant_that_another_test_kills_is_found(folder):
    change(folder, MUTANTS, '"hw1.area::square"', '"hw1.area::circle"')
    assert "survives hw1.area::circle (pass); killed by hw1.area::square" in (
        offences(folder, "mutants")
    )


def test_a_mutant_that_is_only_a_stub_proves_nothing(folder):
    change(folder, MUTANTS, '"area_of_square = 2 * side * side"', "'raise NotImplementedError'")
    assert "(not_implemented)" in offences(folder, "mutants")


def test_a_question_without_a_mutant_is_found(folder):
    change(folder, MUTANTS, 'question = "hw1.edge"', 'question = "hw1.area"')
    assert "hw1.edge has no mutant" in offences(folder, "mutants")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "wrong sign"', 'kind = "sign"', "kind 'sign'"),
        ('find = "return 4 * square(side) / side"', 'find = "side"', "occurs"),
        ("killed_by", "killer", "unknown keys"),
        ('question = "hw1.edge"', 'question = "hw1.border"', "no question hw1.border"),
        ("[[mutants]]", "[[mutant]]", "only \\[\\[mutants\\]\\]"),
    ],
)
def test_a_malformed_mutant_is_found(folder, old, new, message):
    change(folder, MUTANTS, old, new)
    found = offences(folder, "mutants")
    assert MUTANTS in found
    assert any(part.replace("\\", "") in found for part in message.split("|")), found


def test_a_mutant_may_have_several_edits(folder, tmp_path):
    also = '\n[[mutants.also]]\nfind = "return math.pi"\nreplace = "return 2 * math.pi"\n'
    change(
        folder,
        MUTANTS,
        'killed_by = "hw1.area::square"\n',
        f'killed_by = "hw1.area::square"\n{also}',
    )
    course = load_course(folder)
    (row,) = run_mutants(course, course.stage("hw1"), tmp_path / "tree", question="hw1.area")
    assert row.killers == ["hw1.area::square", "hw1.area::circle"]


def test_trees_are_whole_again_after_a_mutant(folder, tmp_path):
    course = load_course(folder)
    tree = tmp_path / "tree"
    run_mutants(course, course.stage("hw1"), tree)
    assert "2 * side" not in (tree / "python/needle/shapes.py").read_text()


def test_variants_pass(folder):
    assert offences(folder, "variants") == ""


def test_a_variant_that_a_test_refuses_is_found(folder):
    change(folder, VARIANTS, "side**2", "side**2 + 1")
    assert "a power: hw1.area::square: fail" in offences(folder, "variants")


def test_too_few_variants_are_found(folder):
    (folder / VARIANTS).unlink()
    assert "0 variants; a stage has three" in offences(folder, "variants")


def test_entries_are_read_with_their_place(folder):
    mutants = load_mutants(load_course(folder).stage("hw1"))
    assert [mutant.where.rsplit(":")[-1] for mutant in mutants] == ["1", "9"]
    change(folder, MUTANTS, "killed_by", "killed by")
    with pytest.raises(CourseError, match="mutants.toml"):
        load_mutants(load_course(folder).stage("hw1"))
