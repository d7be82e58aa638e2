"""The release gates: each is a function that returns what is wrong, with file and line.

python -m needle_course.gates [--stage hw1] [--gate leaks]
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from needle_course import building, handout_gate, leaks, mutants, release, trials
from needle_course.collection import CollectionError, load_tests, test_files
from needle_course.errors import CourseError
from needle_course.markers import STAGES, comment_prefix, parse, project, solutions
from needle_course.offences import Offence, line_of
from needle_course.runner import import_paths
from needle_course.stages import Course, Stage, load_course
from needle_course.starter import build_tree
from needle_course.trees import StageTree, one_at_a_time

SOURCE_FOLDERS = ("python/needle", "apps", "src", "hw_stages")
Gate = Callable[[Course, Stage, Path], Collection[Offence]]


def markers(course: Course, stage: Stage, folder: Path) -> list[Offence]:
    """Return malformed directives, regions of no stage, and ids that come twice.

    Every source is read, and every one that the stage has is projected to it.
    """
    offences: list[Offence] = []
    listed = {source: to for to, source in course.files(stage.name).items()}
    seen: dict[str, str] = {}
    for path in marked_files(course):
        source = path.relative_to(course.root).as_posix()
        text, prefix = path.read_text(encoding="utf-8"), comment_prefix(path)
        assert prefix is not None  # noqa: S101 - marked_files yields no others
        try:
            nodes = parse(text, prefix, source)
            if source in listed:
                project(text, stage.name, True, prefix, source)
                project(text, stage.name, False, prefix, source)
        except CourseError as error:
            offences.append(Offence(source, str(error)))
            continue
        for solution in solutions(nodes):
            where = f"{source}:{solution.number}"
            if solution.id in seen:
                offences.append(Offence(where, f"{solution.id} is also at {seen[solution.id]}"))
            seen[solution.id] = where
            if solution.stage == stage.name and source not in listed:
                offences.append(
                    Offence(where, f"{solution.id} stands in a file that {stage.name} lacks")
                )
    return offences


def marked_files(course: Course) -> Iterator[Path]:
    """Yield every source of the repository that may hold directives."""
    for folder in SOURCE_FOLDERS:
        for path in sorted((course.root / folder).rglob("*")):
            foreign = {"tests", "plain_student", "pictures", "milestones"} & set(path.parts)
            is_list = folder == "hw_stages" and path.suffix == ".toml"
            if path.is_file() and comment_prefix(path) and not foreign and not is_list:
                yield path
    yield from (path for path in [course.root / "CMakeLists.txt"] if path.is_file())


def consistent(course: Course, stage: Stage, folder: Path) -> list[Offence]:
    """Return what a stage.toml says that is not so."""
    return [*_files(course, stage), *_questions(course, stage), *_tests(course, stage)]


def _files(course: Course, stage: Stage) -> Iterator[Offence]:
    path = stage.folder / "stage.toml"
    earlier = {file.to for other in course.up_to(stage.name)[:-1] for file in other.files}
    for source in [*(file.source for file in stage.files), *stage.data]:
        if not (course.root / source).is_file():
            yield Offence(line_of(path, source), f"no file {source}")
    for file in stage.files:
        if file.to in earlier and file.source == file.to:
            yield Offence(line_of(path, file.to), f"{file.to} is an earlier stage's already")
    if not (stage.folder / "handout.md").is_file():
        yield Offence(str(stage.folder), "no handout.md")


def _questions(course: Course, stage: Stage) -> Iterator[Offence]:
    path = stage.folder / "stage.toml"
    regions = set(_regions_of(course, stage))
    owners: dict[str, str] = {}
    asked = {question.id for other in course.up_to(stage.name) for question in other.questions}
    ids = [question.id for question in stage.questions]
    for twice in sorted({name for name in ids if ids.count(name) > 1}):
        yield Offence(line_of(path, twice), f"{twice} is asked twice")
    for question in stage.questions:
        where = line_of(path, question.id)
        if not 2 <= len(question.hints) <= 3:
            yield Offence(where, f"{question.id} has {len(question.hints)} hints; it needs 2 or 3")
        if not question.regions:
            yield Offence(where, f"{question.id} has no region")
        for region in question.regions:
            if region in owners:
                yield Offence(line_of(path, region), f"{region} is also of {owners[region]}")
            if region not in regions:
                yield Offence(line_of(path, region), f"{region} is in no file of {stage.name}")
            owners[region] = question.id
        for needed in question.needs:
            if needed not in asked or needed == question.id:
                yield Offence(where, f"{question.id} needs {needed}, which is no other question")
    for region in sorted(regions - set(owners)):
        yield Offence(str(path), f"{region} belongs to no question")
    points = sum(question.points for question in stage.questions)
    if points != 100:
        yield Offence(str(path), f"the points sum to {points}; a stage has 100")


def _regions_of(course: Course, stage: Stage) -> Iterator[str]:
    """Yield the regions of a stage's own name in the files that it has."""
    for source in course.files(stage.name).values():
        path, prefix = course.root / source, comment_prefix(source)
        if prefix is not None and path.is_file():
            for solution in solutions(parse(path.read_text(encoding="utf-8"), prefix, source)):
                if solution.stage == stage.name:
                    yield solution.id


def _tests(course: Course, stage: Stage) -> Iterator[Offence]:
    try:
        tests = load_tests(test_files(course.root, stage.name))
    except CollectionError as error:
        yield Offence(str(stage.folder / "tests"), str(error))
        return
    questions = {question.id for question in stage.questions}
    for name, test in tests.items():
        if test.question not in questions:
            yield Offence(str(stage.folder / "tests"), f"{name} is of no question of {stage.name}")
        if not test.doc:
            yield Offence(str(stage.folder / "tests"), f"{name} does not say what it tests")
    for question in sorted(questions - {test.question for test in tests.values()}):
        yield Offence(line_of(stage.folder / "stage.toml", question), f"{question} has no test")


@one_at_a_time
def blank_starter(course: Course, stage: Stage, folder: Path) -> list[Offence]:
    """Return what keeps the blank starter from being imported, compiled or formatted.

    The answered tree is formatted too, and has no undefined or unused name.
    """
    offences: list[Offence] = []
    with tempfile.TemporaryDirectory() as temporary:
        answered = Path(temporary).resolve()
        build_tree(course, stage, answered, filled=True)
        offences += _unformatted(course, answered, f"{stage.name} answered")
        command = [_tool("ruff"), "check", "--isolated", "--quiet", "--select", "F"]
        command += ["--output-format", "concise", "--exclude", "tests", "."]
        offences += _run_on(answered, f"{stage.name} answered", command)
    tree = StageTree(course, stage, folder)
    tree.fill(False)
    offences += _unformatted(course, folder, f"{stage.name} blank")
    offences += _does_not_import(stage, folder)
    built = building.build(folder, stage)
    if not built.ok:
        message = "; ".join(map(str, built.errors)) or "the build fails"
        offences.append(Offence(f"{stage.name} blank", message))
    return offences


def _tool(name: str) -> str:
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name)
    if not found:
        raise CourseError(f"[check] {name} is not installed; pip install {name}")
    return found


def _unformatted(course: Course, tree: Path, state: str) -> Iterator[Offence]:
    places = [path.relative_to(tree) for path in sorted(tree.rglob("*")) if path.is_file()]
    places = [path for path in places if not {"build", ".needle", "tests"} & set(path.parts)]
    compiled = [str(path) for path in places if path.suffix in {".cc", ".cpp", ".cu", ".cuh", ".h"}]
    if compiled:
        style = f"--style=file:{course.root / '.clang-format'}"
        yield from _run_on(
            tree, state, [_tool("clang-format"), "--dry-run", "-Werror", style, *compiled]
        )
    command = [_tool("ruff"), "format", "--check", "--quiet", "--isolated"]
    command += ["--line-length", "100", "--target-version", "py310", "--output-format", "concise"]
    yield from _run_on(
        tree, state, command + [str(path) for path in places if path.suffix == ".py"]
    )


def _run_on(tree: Path, state: str, command: list[str]) -> Iterator[Offence]:
    """Run a tool in a tree; yield what it prints, if it fails."""
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        lines = [line for line in lines if "error: " in line] or lines
        for line in lines[:20] or ["fails"]:
            yield Offence(f"{state} tree, {Path(command[0]).name}", line)


def _does_not_import(stage: Stage, tree: Path) -> Iterator[Offence]:
    """Import the module of the stage and compile every file, in a fresh interpreter."""
    environment = {**os.environ, **stage.environment, "PYTHONDONTWRITEBYTECODE": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(import_paths(tree, stage))
    code = (
        f"import {stage.module}, pathlib\n"
        "for path in sorted(pathlib.Path('.').rglob('*.py')):\n"
        "    compile(path.read_text(encoding='utf-8'), str(path), 'exec')\n"
    )
    done = subprocess.run(
        [sys.executable, "-s", "-c", code],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        yield Offence(f"{stage.name} blank", " | ".join(done.stderr.strip().splitlines()[-4:]))


def leaked(course: Course, stage: Stage, folder: Path) -> list[Offence]:
    """Return the lines of answers that the starter shows."""
    return leaks.leaked_answers(course, stage)


def later(course: Course, stage: Stage, folder: Path) -> list[Offence]:
    """Return the names of later stages that the starter shows."""
    return leaks.shown_later_names(course, stage)


def reproducible(course: Course, stage: Stage, folder: Path) -> list[Offence]:
    """Return a stage whose starter has other bytes when another process builds it."""
    same = zip_digest(course, stage, seed=1) == zip_digest(course, stage, seed=2)
    return [] if same else [Offence(f"{stage.name}.zip", "two builds give different bytes")]


def zip_digest(course: Course, stage: Stage, seed: int) -> str:
    """Build a stage's zip in a process with this hash seed; return the digest of its bytes."""
    code = (
        "import sys; from pathlib import Path; from needle_course.stages import load_course; "
        "from needle_course.starter import build_zip; "
        "build_zip(load_course(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))"
    )
    with tempfile.TemporaryDirectory() as temporary:
        target = Path(temporary) / "starter.zip"
        package = str(Path(__file__).resolve().parents[1])
        environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": package}
        command = [sys.executable, "-c", code, str(course.root), stage.name, str(target)]
        subprocess.run(command, env=environment, check=True)
        return hashlib.sha256(target.read_bytes()).hexdigest()


def handouts(course: Course, stage: Stage, folder: Path) -> list[Offence]:
    """Return what a handout leaves out, shows too much of, or points to in vain."""
    return handout_gate.faults(course, stage)


GATES: dict[str, Gate] = {
    "markers": markers,
    "stages": consistent,
    "leaks": leaked,
    "later-names": later,
    "handouts": handouts,
    "reproducible": reproducible,
    "blank": blank_starter,
    "free-points": trials.free_points,
    "own-stub": trials.own_stub,
    "reference": trials.reference,
    "earlier-tests": trials.earlier_tests,
    "mutants": mutants.survivors,
    "variants": mutants.refused_variants,
}


def released(course: Course, folder: Path) -> list[Offence]:
    """Return what the built zips, the wheel or the outputs in the handouts show of the answers."""
    handouts = release.build_handouts(course, folder / "handouts")
    return release.leaks_in_release(course, release.build_release(course, folder, handouts))


COURSE_GATES = {"release": released}


def check(
    course: Course,
    stages: Iterable[str] = (),
    gates: Iterable[str] = (),
    seen: Callable[[str, str, Collection[Offence], float], None] = lambda *_: None,
) -> list[Offence]:
    """Run gates on stages, all of them if none is named; return every offence.

    The gates of the whole course run last, unless stages are named and these gates are not.
    seen: called with the stage, the gate, its offences and its seconds after each.
    """
    stages, gates = list(stages), list(gates)
    known = {**GATES, **COURSE_GATES}
    for gate in gates:
        if gate not in known:
            raise CourseError(f"[check] no gate {gate}; there are {', '.join(known)}")
    work: list[tuple[str, str, Callable[[], Collection[Offence]]]] = []
    for name in stages or list(course.by_name):
        folder = course.root / "build" / "gates" / name
        work += [
            (name, gate, partial(GATES[gate], course, course.stage(name), folder))
            for gate in gates or GATES
            if gate in GATES
        ]
    work += [
        ("all", gate, partial(COURSE_GATES[gate], course, course.root / "build" / "stages"))
        for gate in gates or (() if stages else COURSE_GATES)
        if gate in COURSE_GATES
    ]
    found: list[Offence] = []
    for name, gate, run in work:
        started = time.perf_counter()
        try:
            offences = list(dict.fromkeys(run()))
        except (CourseError, CollectionError) as error:
            offences = [Offence(f"{name}, {gate}", str(error))]
        offences = [_from_root(course, offence) for offence in offences]
        seen(name, gate, offences, time.perf_counter() - started)
        found += offences
    return found


def _from_root(course: Course, offence: Offence) -> Offence:
    """Name places by their path in the repository."""
    root = f"{course.root}{os.sep}"
    return Offence(offence.where.replace(root, ""), offence.message.replace(root, ""))


def report(stage: str, gate: str, offences: Collection[Offence], seconds: float) -> None:
    """Print what a gate found, one offence a line."""
    verdict = f"{len(offences)} offences" if offences else "ok"
    sys.stdout.write(f"{stage} {gate:<14} {verdict:<14} {seconds:6.1f} s\n")
    for offence in offences:
        sys.stdout.write(f"    {offence}\n")
    sys.stdout.flush()


def _check_side_by_side(
    course: Course, stages: list[str], gates: list[str], jobs: int
) -> list[Offence]:
    """Run `check` on several stages at a time, each in a process of its own, then the others."""
    found: list[Offence] = []
    with ProcessPoolExecutor(jobs) as pool:
        own = [gate for gate in gates or GATES if gate in GATES]
        runs = [pool.submit(check, course, [name], own, report) for name in stages] if own else []
        for run in runs:
            found += run.result()
    of_course = [gate for gate in gates or COURSE_GATES if gate in COURSE_GATES]
    return found + (check(course, [], of_course, report) if of_course else [])


def main(arguments: list[str] | None = None) -> int:
    """Run the gates that the command line names; exit status 1 if one finds something."""
    parser = argparse.ArgumentParser(prog="needle check", description=__doc__)
    parser.add_argument("--stage", action="append", default=[], choices=STAGES[:-1])
    parser.add_argument("--gate", action="append", default=[], choices=[*GATES, *COURSE_GATES])
    parser.add_argument("--jobs", type=int, default=1, help="stages side by side; default: 1")
    options = parser.parse_args(arguments)
    try:
        course = load_course()
        if options.jobs > 1 and not options.stage:
            names = list(course.by_name)
            offences = _check_side_by_side(course, names, options.gate, options.jobs)
        else:
            offences = check(course, options.stage, options.gate, report)
    except CourseError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
