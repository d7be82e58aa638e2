"""What a student hands in: the files of the stage's manifest, tested from the zip itself."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from needle_course.errors import CourseError
from needle_course.stages import Course, Stage
from needle_course.workspace import NOTES, Workspace

__all__ = ["IntegrityError", "Submission", "pack", "rehearse", "unpack"]

FORMAT = "needle.submission/1"
MANIFEST = "manifest.json"
EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed time: the same answers give the same bytes
LIMIT = 3600  # seconds for all tests of a stage


class IntegrityError(CourseError):
    """The tests or the manifest are not as the course has them."""


@dataclass(frozen=True)
class Submission:
    """The files of one stage, their hash, and what else lies in the workspace."""

    stage: str
    files: dict[str, bytes]
    left_out: tuple[str, ...] = ()

    @property
    def content_hash(self) -> str:
        """The hash over all files: the same answers have the same."""
        lines = [f"{digest}  {path}\n" for path, digest in sorted(self.hashes().items())]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def hashes(self) -> dict[str, str]:
        """Return the hash of each file."""
        return {path: hashlib.sha256(content).hexdigest() for path, content in self.files.items()}

    def write(self, path: Path) -> None:
        """Write the zip; it appears whole."""
        manifest = {
            "format": FORMAT,
            "stage": self.stage,
            "content": self.content_hash,
            "files": self.hashes(),
        }
        content = {MANIFEST: (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()}
        part = path.with_name(f".{path.name}.part")
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in sorted({**content, **self.files}.items()):
                entry = zipfile.ZipInfo(name, EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, data)
        part.replace(path)


def pack(workspace: Workspace, course: Course, stage: Stage) -> Submission:
    """Return what a stage hands in: all files of its manifest.

    Raises IntegrityError if tests were changed, a file is missing or marker lines are damaged.
    """
    from needle_course.answers import AnswerError, read_answers

    if changed := workspace.changed_tests(course):
        raise IntegrityError(
            f"[submit] {', '.join(changed)} differ from the course's; put them back: "
            f"cp -r {workspace.notes / 'base' / 'tests'} {workspace.root}"
        )
    manifest = sorted(course.files(stage.name))
    if missing := [path for path in manifest if not (workspace.root / path).is_file()]:
        raise IntegrityError(
            f"[submit] {', '.join(missing)} of the manifest is missing; "
            f"the starter's lies in {NOTES}/base"
        )
    try:
        regions = read_answers(workspace.root / path for path in manifest)
    except AnswerError as error:
        raise IntegrityError(str(error)) from None
    asked = {region for question in stage.questions for region in question.regions}
    if lost := sorted(asked - regions.keys()):
        raise IntegrityError(
            f"[submit] the marker lines of {', '.join(lost)} are gone; "
            f"restore them as {NOTES}/base has them"
        )
    files = {path: (workspace.root / path).read_bytes() for path in manifest}
    return Submission(
        stage.name, files, tuple(path for path in workspace.sources() if path not in files)
    )


def unpack(archive: Path, folder: Path, course: Course) -> str:
    """Put a submission's files over the stage's starter in a fresh folder; return the stage.

    Only files of the stage's manifest are taken. Raises IntegrityError for a zip that is none of
    ours or whose files are not those of its manifest.
    """
    from needle_course.starter import build_tree

    try:
        with zipfile.ZipFile(archive) as opened:
            manifest = json.loads(opened.read(MANIFEST))
            contents = {name: opened.read(name) for name in manifest["files"]}
        stage, hashes = manifest["stage"], manifest["files"]
    except (OSError, KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise IntegrityError(f"[submit] {archive} is no submission: {error}") from None
    submission = Submission(stage, contents)
    if submission.hashes() != hashes or submission.content_hash != manifest["content"]:
        raise IntegrityError(f"[submit] {archive}: its files are not those of its manifest")
    build_tree(course, stage, folder)
    known = course.files(stage)
    for name, content in contents.items():
        if name not in known:
            raise IntegrityError(f"[submit] {archive}: {name} is no file of {stage}")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return str(stage)


def rehearse(archive: Path, course: Course) -> list[dict[str, Any]]:
    """Test a zip in a fresh folder and a fresh process; return the records of its tests."""
    with tempfile.TemporaryDirectory(prefix="needle-submit-") as folder:
        tree = Path(folder) / "tree"
        stage = unpack(archive, tree, course)
        command = [sys.executable, "-m", "needle_course", "test", "--tree", str(tree), stage]
        own = str(Path(__file__).resolve().parents[1])
        environment = {**os.environ, "NEEDLE_COURSE": str(course.root)}
        environment["PYTHONPATH"] = os.pathsep.join(
            [own, *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        done = subprocess.run(
            [*command, "--json"],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    records = [record for record in records if "test" in record]
    if not records:
        raise CourseError(f"[submit] the tests of {archive} did not run: {done.stderr.strip()}")
    return records
