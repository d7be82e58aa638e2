"""The gates that run tests: on the blank stage, with one question blank, on the reference."""

from collections.abc import Iterable
from pathlib import Path

from needle_course import runner
from needle_course.offences import Offence
from needle_course.runner import Result
from needle_course.stages import Course, Stage
from needle_course.trees import StageTree, earlier_regions, one_at_a_time, regions_up_to


@one_at_a_time
def free_points(course: Course, stage: Stage, folder: Path) -> list[Offence]:
    """Return the tests that the blank stage does not fail for want of their own answers.

    The earlier stages are answered. A test has to fail with not_implemented that names a region of
    its own question or of one that the question needs.
    """
    tree = StageTree(course, stage, folder)
    tree.fill(earlier_regions(course, stage.name))
    offences: list[Offence] = []
    for result in tree.run():
        question = stage.question(result.question)
        allowed = [
            question,
            *(stage.question(each) for each in question.needs if _is_own(stage, each)),
        ]
        regions = {region for each in allowed for region in each.regions}
        offences += _unwritten(stage, result, regions, "blank")
    return offences


@one_at_a_time
def own_stub(course: Course, stage: Stage, folder: Path) -> list[Offence]:
    """Return the tests that do not fail with a region of their question when only that is blank."""
    tree = StageTree(course, stage, folder)
    everything = regions_up_to(course, stage.name)
    offences: list[Offence] = []
    for question in stage.questions:
        tree.fill(everything - set(question.regions))
        for result in tree.run([question.id]):
            offences += _unwritten(stage, result, set(question.regions), f"without {question.id}")
    return offences


def _is_own(stage: Stage, question: str) -> bool:
    return question.startswith(f"{stage.name}.")


def _unwritten(stage: Stage, result: Result, regions: set[str], state: str) -> Iterable[Offence]:
    """Yield an offence if a test does not fail with not_implemented of one of the regions."""
    where = str(stage.folder / "tests")
    if result.verdict == "pass":
        yield Offence(where, f"{result.test} passes {state}: a free point")
    elif result.verdict != "not_implemented":
        yield Offence(where, f"{result.test} {state}: {result.verdict}: {result.message}")
    elif result.region not in regions:
        yield Offence(where, f"{result.test} {state} fails with {result.region or 'no region'}")


@one_at_a_time
def reference(course: Course, stage: Stage, folder: Path) -> list[Offence]:
    """Return the tests that the answered stage or the full repository does not pass.

    The stage's tree holds the files of the earlier stages and its own and nothing else, and each
    run starts a fresh interpreter.
    """
    tree = StageTree(course, stage, folder)
    tree.fill(regions_up_to(course, stage.name))
    offences = list(_failures(stage, tree.run(), f"answered {stage.name}"))
    full = runner.run(course.root, stage)
    return offences + list(_failures(stage, full, "full repository"))


@one_at_a_time
def earlier_tests(course: Course, stage: Stage, folder: Path) -> list[Offence]:
    """Return the tests of earlier stages that fail on the answered tree of this one."""
    tree = StageTree(course, stage, folder)
    tree.fill(regions_up_to(course, stage.name))
    offences: list[Offence] = []
    for earlier in course.up_to(stage.name)[:-1]:
        results = runner.run(tree.folder, earlier)
        offences += _failures(earlier, results, f"answered {stage.name}")
    return offences


def _failures(stage: Stage, results: Iterable[Result], tree: str) -> Iterable[Offence]:
    results = list(results)
    if not results:
        yield Offence(str(stage.folder / "tests"), f"{stage.name} has no test")
    for result in results:
        if result.verdict != "pass":
            message = f"{result.test} on the {tree}: {result.verdict}: {result.message}"
            yield Offence(str(stage.folder / "tests"), message)
