"""The commands of `needle`; `python -m needle_course` is the same.

Exit status: 0 all passed, 1 some failed, 2 usage, 3 the build failed, 4 a fault of the tool, 5 a
gate is locked, 6 would overwrite, 7 tests or manifest changed, 8 conflicts, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from needle_course.errors import CourseError

if TYPE_CHECKING:
    from needle_course.stages import Course
    from needle_course.workspace import Workspace

WINDOWS = "needle runs on Linux; on Windows use WSL2: wsl --install"
FAILED, USAGE, BUILD, FAULT, GATE, OVERWRITE, INTEGRITY, CONFLICTS = 1, 2, 3, 4, 5, 6, 7, 8

app = typer.Typer(
    name="needle",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Tree = Annotated[
    Path | None,
    typer.Option("--tree", help="The workspace, or the repository; found from here upwards."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
StageName = Annotated[str, typer.Argument(help="hw0 to hw5.", metavar="hwN")]


@app.callback()
def needle() -> None:
    """Build a deep-learning framework, stage by stage: start, test, submit, next."""


def say(text: str = "") -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def course_for(root: Path | None = None) -> Course:
    """Return the course: of NEEDLE_COURSE, of the repository at `root`, or the tool's own."""
    from needle_course.stages import load_course

    if chosen := os.environ.get("NEEDLE_COURSE"):
        return load_course(chosen)
    return load_course(root if root is not None and (root / "hw_stages").is_dir() else None)


def workspace_at(tree: Path | None) -> Workspace:
    """Return the workspace of an option --tree, or the one that the current folder lies in.

    An unzipped starter becomes one.
    """
    from needle_course.workspace import NotHere, Workspace, adopt

    folder = tree or Path.cwd()
    try:
        return Workspace.find(folder)
    except NotHere:
        adopted = adopt(course_for(), folder)
        if adopted is None:
            raise
        return adopted


@app.command()
def start(
    stage: StageName,
    folder: Annotated[Path, typer.Argument(help="A folder that is not there yet.")] = Path(
        "needle-course"
    ),
    json: Json = False,
) -> None:
    """Begin: write the starter of a stage into a folder."""
    from needle_course import report
    from needle_course.workspace import start as begin

    course = course_for()
    workspace = begin(course, stage, folder)
    started = course.stage(stage)
    if json:
        say(report.as_json({"stage": stage, "workspace": str(workspace.root)}))
        return
    say(f"{stage}, {started.title}: {workspace.root}")
    earlier = course.up_to(stage)[:-1]
    if earlier:
        say(
            f"{stage} builds on {', '.join(entry.name for entry in earlier)}, whose answers are "
            "not in it: `needle next` in your workspace carries them over"
        )
    handout = workspace.root / "handouts" / stage / "handout.md"
    if handout.is_file():
        say(f"read   {handout}")
    say(f"then   cd {folder} && needle test {started.questions[0].id}" if started.questions else "")


@app.command("next")
def following(tree: Tree = None, json: Json = False) -> None:
    """Go on: merge the next stage into your workspace."""
    from needle_course import report
    from needle_course.progress import advice
    from needle_course.workspace import outcome_table

    workspace = workspace_at(tree)
    course = course_for()
    before = workspace.stage
    said = advice(workspace, course)
    plan = workspace.advance(course)
    conflicts = [entry for entry in plan if entry.outcome == "conflict"]
    if json:
        say(report.as_json({"stage": workspace.stage, "files": outcome_table(plan)}))
    else:
        if said:
            say(said)
        say(report.carried(before, workspace.stage, plan))
    raise typer.Exit(CONFLICTS if conflicts else 0)


@app.command()
def test(
    selection: Annotated[
        list[str] | None,
        typer.Argument(help="Stages, questions, regions or tests; all up to your stage if none."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Other numbers: one seed for all tests.")] = None,
    tree: Tree = None,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON a test.")] = False,
    first: Annotated[bool, typer.Option("-x", help="Stop at the first failure.")] = False,
) -> None:
    """Test your answers; the first failure comes in full."""
    from needle_course.test_command import run_tests

    if seed is not None and not 0 <= seed < 2**32:
        raise typer.BadParameter("a seed is a number from 0 to 4294967295", param_hint="--seed")
    raise typer.Exit(run_tests(tree, selection or [], seed, as_json=json, stop=first))


@app.command()
def status(tree: Tree = None, json: Json = False) -> None:
    """Show the stages, their questions and your points."""
    from needle_course import report
    from needle_course.progress import standing

    workspace = workspace_at(tree)
    rows = standing(workspace, course_for())
    if json:
        say(report.as_json([row.record() for row in rows]))
    else:
        say(report.matrix(workspace.stage, rows))


@app.command()
def submit(
    out: Annotated[Path | None, typer.Option(help="The zip; hwN.zip in the workspace.")] = None,
    tree: Tree = None,
    json: Json = False,
) -> None:
    """Pack your stage into a zip and test that zip."""
    from needle_course import report
    from needle_course.submission import pack, rehearse
    from needle_course.test_command import exit_status

    workspace = workspace_at(tree)
    course = course_for()
    stage = course.stage(workspace.stage)
    submission = pack(workspace, course, stage)
    path = (out or workspace.root / f"{stage.name}.zip").absolute()
    if path.is_dir():
        path = path / f"{stage.name}.zip"
    submission.write(path)
    results = report.results_from(rehearse(path, course))
    status_code = exit_status(results)
    if json:
        record = report.scores(stage, results)
        record |= {"zip": str(path), "content": submission.content_hash}
        say(report.as_json({**record, "left_out": submission.left_out}))
        raise typer.Exit(status_code)
    for result in results:
        if not result.passed:
            say(report.line(result))
    say(report.summary(stage, results))
    for name in submission.left_out:
        say(f"not in the zip, since it is no file of {stage.name}: {name}")
    say(f"content {submission.content_hash}")
    say(f"zip     {path}")
    raise typer.Exit(status_code)


@app.command()
def milestone(
    stage: Annotated[str | None, typer.Argument(help="hw0 to hw5.", metavar="[hwN]")] = None,
    drawing: Annotated[
        Path | None, typer.Argument(help="A digit of yours, where one is read.", metavar="[PNG]")
    ] = None,
    tree: Tree = None,
) -> None:
    """Run the milestone of a stage on your own code."""
    import subprocess

    from needle_course.building import build
    from needle_course.launcher import environment_for
    from needle_course.runner import import_paths

    workspace = workspace_at(tree)
    course = course_for()
    chosen = course.stage(stage or workspace.stage)
    program = workspace.root / "milestones" / f"{chosen.name}.py"
    if not program.is_file():
        raise CourseError(f"[milestone] there is no {program}; {chosen.name} is not here yet")
    built = build(workspace.root, chosen)
    if not built.ok:
        say("\n".join(built.errors))
        raise typer.Exit(BUILD)
    paths = import_paths(workspace.root, chosen)
    done = subprocess.run(
        [sys.executable, str(program), *([str(drawing.resolve())] if drawing else [])],
        cwd=workspace.root,
        env=environment_for(paths, chosen.environment),
    )
    raise typer.Exit(FAILED if done.returncode else 0)


@app.command()
def doctor(tree: Tree = None, json: Json = False) -> None:
    """Look at this machine; say how to mend what is missing."""
    from needle_course import report
    from needle_course.doctor import examine
    from needle_course.workspace import NotHere

    try:
        workspace = workspace_at(tree)
        checks = examine(course_for(), workspace.root, workspace.stage)
    except NotHere:
        checks = examine()
    say(report.as_json([check.record() for check in checks]) if json else report.checks(checks))
    raise typer.Exit(0 if all(check.ok for check in checks) else FAILED)


@app.command()
def build(
    stage: StageName,
    out: Annotated[Path, typer.Option(help="A folder that is not there yet.")],
    filled: Annotated[bool, typer.Option("--filled", help="With the answers, no zip.")] = False,
) -> None:
    """Write a starter as a folder and as a zip (for instructors)."""
    from needle_course.starter import build_tree, build_zip
    from needle_course.workspace import WouldOverwrite

    course = course_for(Path.cwd())
    course.stage(stage)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise WouldOverwrite(f"[build] {out} is there already; remove it or name another folder")
    build_tree(course, stage, out, filled)
    say(str(out))
    if not filled and not course.packaged:
        say(str(build_zip(course, stage, out.with_name(f"{out.name}.zip"))))


def delegated(module: str, arguments: list[str]) -> None:
    """Run the main function of a module of the course's makers; its status is ours."""
    from importlib import import_module

    raise typer.Exit(import_module(f"needle_course.{module}").main(arguments))


PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@app.command(context_settings=PASSED_ON)
def check(context: typer.Context) -> None:
    """Run the release gates (in the repository)."""
    delegated("gates", context.args)


@app.command(context_settings=PASSED_ON)
def mutate(context: typer.Context) -> None:
    """Plant bugs and see which test finds each (in the repository)."""
    delegated("mutants", context.args)


@app.command(context_settings=PASSED_ON)
def walk(context: typer.Context) -> None:
    """Walk through all stages as a student (in the repository)."""
    delegated("walk", context.args)


@app.command(context_settings=PASSED_ON)
def handouts(context: typer.Context) -> None:
    """Build the handouts and notebooks (in the repository)."""
    delegated("handout_builder", context.args)


def main() -> None:
    """Run the command that the command line names; end with its exit status."""
    if sys.platform == "win32":
        sys.stderr.write(f"{WINDOWS}\n")
        sys.exit(USAGE)
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Nothing more can be printed, and Python would try to flush at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except Exception as error:
        sys.exit(_explained(error))


def _explained(error: Exception) -> int:
    """Print an error in a line; return the exit status that it stands for."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    known = {
        "WouldOverwrite": OVERWRITE,
        "IntegrityError": INTEGRITY,
        "CollectionError": FAULT,
        "UnknownSelection": USAGE,
        "CourseError": USAGE,
        "OSError": USAGE,
    }
    for name, status_code in known.items():
        if name in kinds:
            sys.stderr.write(f"{error}\n")
            return status_code
    traceback.print_exc()
    sys.stderr.write("[needle] this is a fault of the tool, not of your code\n")
    return FAULT
