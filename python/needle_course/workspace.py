"""A student's workspace on disk: start, the next stage, results; its own notes lie in `.needle/`.

`.needle/workspace.json` names the stage, `.needle/base/` holds its starter, `.needle/before/` the
files as they were before the last merge, `.needle/conflicts/` what a merge could not place,
`.needle/results.json` the verdicts with the content they belong to.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from needle_course.errors import CourseError
from needle_course.stages import Course

if TYPE_CHECKING:
    from needle_course.runner import Result

__all__ = ["Carried", "NotHere", "Workspace", "WouldOverwrite", "adopt", "start"]

NOTES = ".needle"
SOURCES = ("python", "apps", "src", "milestones")
SUFFIXES = {".py", ".cc", ".cpp", ".cu", ".cuh", ".h", ".def", ".cmake", ".toml"}
BY_HAND = {"Makefile", "CMakeLists.txt"}


class NotHere(CourseError):
    """There is no workspace here, or none for what was asked."""


class WouldOverwrite(CourseError):
    """A command would overwrite someone's work."""


@dataclass(frozen=True)
class Carried:
    """What became of one file when the next stage came: new, ours, merged, yours or conflict."""

    path: str
    outcome: str
    conflicts: int = 0


class Workspace:
    """A folder with a stage's starter and the student's answers."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.notes = self.root / NOTES

    @classmethod
    def find(cls, start: Path) -> Workspace:
        """Return the workspace that a folder lies in; NotHere if there is none."""
        folder = start.resolve()
        for place in (folder, *folder.parents):
            if (place / NOTES / "workspace.json").is_file():
                workspace = cls(place)
                workspace.recover()
                return workspace
        raise NotHere(
            f"[needle] {folder} lies in no workspace; begin one with `needle start hw0`, "
            "or go into yours"
        )

    @property
    def stage(self) -> str:
        """The stage in progress."""
        try:
            return str(json.loads((self.notes / "workspace.json").read_text())["stage"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NotHere(
                f"[needle] {self.notes / 'workspace.json'} cannot be read ({error!r}); "
                'write {"stage": "hw1"} into it, with the stage you are at'
            ) from None

    def _set_stage(self, name: str) -> None:
        _write(self.notes / "workspace.json", json.dumps({"stage": name}) + "\n")

    # --- the next stage

    def advance(self, course: Course) -> list[Carried]:
        """Merge the starter of the next stage into the workspace; return what became of each file.

        All is prepared aside first, so that an interruption leaves the workspace as it was, or is
        finished by the next command. Raises NotHere after the last stage.
        """
        from needle_course.starter import build_tree

        following = course.after(self.stage)
        if following is None:
            raise NotHere(f"[next] {self.stage} is the last stage")
        aside = self.notes / "next"
        shutil.rmtree(aside, ignore_errors=True)
        build_tree(course, following, aside / "base")
        plan = [
            _carry(self.root, self.notes / "base", aside, path) for path in _files(aside / "base")
        ]
        seen = {path: _hash(self.root / path) for path in _files(aside / "files")}
        _write(aside / "ready", json.dumps({"stage": following.name, "seen": seen}))
        self.recover()
        return plan

    def recover(self) -> None:
        """Finish a merge that was ready when it was interrupted, or forget one that was not."""
        aside = self.notes / "next"
        if not aside.is_dir():
            return
        if (aside / "ready").is_file():
            ready = json.loads((aside / "ready").read_text())
            self._put(aside / "files", ready["seen"])
            for path in _files(aside / "conflicts"):
                _move(aside / "conflicts" / path, self.notes / "conflicts" / path)
            if (aside / "base").is_dir():  # moved as the last step but one
                shutil.rmtree(self.notes / "base", ignore_errors=True)
                (aside / "base").replace(self.notes / "base")
            self._set_stage(ready["stage"])
        shutil.rmtree(aside)

    def _put(self, merged: Path, seen: dict[str, str]) -> None:
        """Move merged files into the workspace, what they replace into `.needle/before`.

        A file that was edited since it was merged stays; the merged one becomes a conflict.
        """
        for path in _files(merged):
            mine = self.root / path
            if _hash(mine) != seen[path]:
                _move(merged / path, self.notes / "conflicts" / path)
                continue
            if mine.is_file():
                kept = self.notes / "before" / path
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(mine, kept)
            _move(merged / path, mine)

    # --- what is there

    def sources(self) -> list[str]:
        """Return the paths of all sources, the student's own files among them."""
        found = [name for name in BY_HAND if (self.root / name).is_file()]
        for folder in SOURCES:
            found += [
                f"{folder}/{path}"
                for path in _files(self.root / folder)
                if Path(path).suffix in SUFFIXES or Path(path).name in BY_HAND
            ]
        return sorted(found)

    def changed_tests(self, course: Course) -> list[str]:
        """Return the graded test files that differ from the course's, or are gone."""
        changed = []
        for stage in course.up_to(self.stage):
            theirs = stage.folder / "tests"
            for path in _files(theirs):
                mine = self.root / "tests" / stage.name / path
                if not mine.is_file() or mine.read_bytes() != (theirs / path).read_bytes():
                    changed.append(f"tests/{stage.name}/{path}")
        return changed

    # --- results

    def remember(self, results: Sequence[Result], digests: dict[str, str]) -> None:
        """Keep verdicts with the digest of the sources that they belong to, by stage."""
        kept = self.results()
        for result in results:
            stage = result.test.split(".")[0]
            kept[result.test] = {
                "verdict": result.verdict,
                "seed": result.seed,
                "digest": digests[stage],
                "message": result.message,
            }
        _write(self.notes / "results.json", json.dumps(kept, indent=1, sort_keys=True) + "\n")

    def results(self) -> dict[str, dict[str, Any]]:
        """Return the verdicts that are kept, by test."""
        try:
            kept = json.loads((self.notes / "results.json").read_text())
        except (OSError, ValueError):
            return {}
        return kept if isinstance(kept, dict) else {}

    def stage_digests(self, names: Iterable[str]) -> dict[str, str]:
        """Return the digest of the sources together with the tests of each stage."""
        sources = hashlib.sha256()
        for path in self.sources():
            sources.update(f"{path}\0{_hash(self.root / path)}".encode())
        digests = {}
        for name in names:
            total = sources.copy()
            for path in _files(self.root / "tests" / name):
                total.update(_hash(self.root / "tests" / name / path).encode())
            digests[name] = total.hexdigest()[:16]
        return digests


def start(course: Course, name: str, folder: Path) -> Workspace:
    """Write the starter of a stage into a folder that is empty or not there yet.

    Raises WouldOverwrite if it holds anything.
    """
    from needle_course.starter import build_tree

    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        more = "; go into it and use `needle next`" if (folder / NOTES).is_dir() else ""
        raise WouldOverwrite(
            f"[start] {folder} is there already and nothing is overwritten; name another folder: "
            f"needle start {name} DIR{more}"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as aside:
        tree = Path(aside) / "tree"
        build_tree(course, course.stage(name), tree)
        shutil.copytree(tree, Path(aside) / "base")
        (tree / NOTES).mkdir()
        (Path(aside) / "base").replace(tree / NOTES / "base")
        Workspace(tree)._set_stage(name)
        if folder.is_dir():
            for path in tree.iterdir():
                path.replace(folder / path.name)
        else:
            tree.replace(folder)
    return Workspace(folder)


def adopt(course: Course, folder: Path) -> Workspace | None:
    """Make a workspace of the unzipped starter that a folder lies in; None if there is none."""
    from needle_course.starter import build_tree

    for place in (folder.resolve(), *folder.resolve().parents):
        known = [stage.name for stage in course.stages if (place / "tests" / stage.name).is_dir()]
        if (place / "hw_stages").is_dir() or not known:
            continue
        if all((place / path).is_file() for path in course.files(known[-1])):
            build_tree(course, known[-1], place / NOTES / "base")
            workspace = Workspace(place)
            workspace._set_stage(known[-1])
            return workspace
    return None


def _carry(root: Path, base: Path, aside: Path, path: str) -> Carried:
    """Decide on one file of the next starter; put what is to be written into `aside`."""
    theirs = (aside / "base" / path).read_bytes()
    mine = (root / path).read_bytes() if (root / path).is_file() else None
    old = (base / path).read_bytes() if (base / path).is_file() else None
    if mine == theirs:
        return Carried(path, "same")
    if mine is None:
        return _keep(aside, path, theirs, "new")
    if mine == old:
        return _keep(aside, path, theirs, "ours")
    if old == theirs:
        return Carried(path, "yours")
    texts = _texts(old if old is not None else b"", mine, theirs)
    if old is None or texts is None:
        return _set_aside(aside, path, theirs, 1)
    return _merge(aside, path, texts)


def _merge(aside: Path, path: str, texts: tuple[str, str, str]) -> Carried:
    from needle_course.carry import merge

    base, mine, theirs = texts
    merged, conflicts = merge(base, mine, theirs)
    if conflicts and path.endswith(".py"):
        merged = _with_definitions(merged, base, theirs)
    if path.endswith(".py") and not _parses(merged) and _parses(mine):
        return _set_aside(aside, path, theirs.encode("utf-8", "surrogateescape"), 1)
    _keep(aside, path, merged.encode("utf-8", "surrogateescape"), "merged")
    if not conflicts:
        return Carried(path, "merged")
    return _set_aside(aside, path, theirs.encode("utf-8", "surrogateescape"), len(conflicts))


def _with_definitions(merged: str, base: str, theirs: str) -> str:
    """Return a merged module with the top-level definitions that only the next stage has.

    They may have been lost in a conflict beside them, and other modules import them.
    """
    try:
        have, had, come = (_definitions(text) for text in (merged, base, theirs))
    except (SyntaxError, ValueError):
        return merged
    lost = [text for name, text in come.items() if name not in have and name not in had]
    if not lost:
        return merged
    lost = list(dict.fromkeys(lost))  # one statement may define several names
    return merged.rstrip("\n") + "".join(f"\n\n\n{text}" for text in lost) + "\n"


def _definitions(text: str) -> dict[str, str]:
    """Return {name: source} of what a module defines at its top, comments behind it included."""
    lines = text.split("\n")
    nodes = ast.parse(text.encode("utf-8", "surrogateescape")).body
    starts = [
        min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
        for node in nodes
    ]
    found: dict[str, str] = {}
    for node, begin, end in zip(nodes, starts, [*starts[1:], len(lines)], strict=True):
        source = "\n".join(lines[begin:end]).rstrip()
        found |= dict.fromkeys(_names(node), source)
    return found


def _names(node: ast.stmt) -> list[str]:
    """Return the names that a top-level statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _keep(aside: Path, path: str, content: bytes, outcome: str) -> Carried:
    target = aside / "files" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return Carried(path, outcome)


def _set_aside(aside: Path, path: str, content: bytes, count: int) -> Carried:
    target = aside / "conflicts" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return Carried(path, "conflict", count)


def _texts(*contents: bytes) -> tuple[str, str, str] | None:
    """Return three files as text, bytes that are no UTF-8 kept; None if one is binary."""
    if any(b"\0" in content for content in contents):
        return None
    base, mine, theirs = (content.decode("utf-8", "surrogateescape") for content in contents)
    return base, mine, theirs


def _parses(text: str) -> bool:
    try:
        compile(text, "merged", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def _move(source: Path, target: Path) -> None:
    """Move a file within a file system; it appears whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)


def _hash(path: Path) -> str:
    """Return a file's hash, "" if there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _files(folder: Path) -> list[str]:
    """Return the paths of all files below a folder, sorted, without what running leaves."""
    left = {"__pycache__", ".pytest_cache"}
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not left & set(path.parts)
    )


def _write(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
    Path(part).chmod(0o644)
    Path(part).replace(path)


def outcome_table(plan: Sequence[Carried]) -> list[dict[str, Any]]:
    """Return what became of the files as what JSON holds."""
    return [asdict(entry) for entry in plan]
