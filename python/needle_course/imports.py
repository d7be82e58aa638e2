"""Imports and `__all__` of a stage's tree: names that the stage lacks or a file does not use go.

Decided on the filled tree and applied to the blank one alike, by lines, so that nothing else moves.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from needle_course.markers import GAP, close_gaps

LINE_LENGTH = 100
ROOTS = ("python", "apps", "src", ".")  # what lies on the path of a workspace
OPENS = re.compile(r"\s*(###|///) BEGIN YOUR SOLUTION \(")
CLOSES = re.compile(r"\s*(###|///) END YOUR SOLUTION$")
KEPT_AS_IT_IS = re.compile(r"#\s*noqa:.*\bF401\b")

GAPS: list[str | None] = [GAP]
Edits = dict[int, list[str]]  # outside line -> what takes its place; the first line of a statement
Statement = ast.Import | ast.ImportFrom
Placed = ast.stmt | ast.expr | ast.alias


def module_names(path: str) -> list[str]:
    """Return the names under which a workspace's Python file can be imported."""
    parts = PurePosixPath(path).with_suffix("").parts
    if parts[-1] == "__init__":
        parts = parts[:-1]
    names = [".".join(parts)] if parts[0] != "python" else []
    if parts[0] in ROOTS:
        names.append(".".join(parts[1:]))
    return names


def outside_lines(lines: list[str]) -> list[int]:
    """Return the indices of the lines that stand in no region; the marker lines stand in one."""
    result, inside = [], False
    for index, line in enumerate(lines):
        if OPENS.match(line):
            inside = True
        elif CLOSES.match(line):
            inside = False
        elif not inside:
            result.append(index)
    return result


def find_edits(files: Mapping[str, str], repository: Iterable[str] = ()) -> dict[str, Edits]:
    """Return, for each Python file of a filled tree {path: text}, how its imports change.

    repository: the paths of all Python files that some stage or the full repository has; an import
    of one of them that the tree lacks is dropped. Raises SyntaxError for a file that is no Python.
    """
    sources = {path: _Source(path, text) for path, text in files.items()}
    tree = _Tree(sources, repository)
    changed = True
    while changed:  # a dropped import may have been another file's name
        changed = any([source.drop(tree) for source in sources.values()])
    return {path: source.edits() for path, source in sources.items()}


def apply_edits(text: str, edits: Edits) -> str:
    """Apply the edits of `find_edits` to the filled or to the blank form of a file."""
    if not edits:
        return text
    lines: list[str | None] = [*text.splitlines()]
    outside = outside_lines(text.splitlines())
    for position, replacement in sorted(edits.items(), reverse=True):
        index = outside[position]
        lines[index : index + 1] = replacement if replacement else GAPS
    # A dropped line leaves a gap each; blank lines around them join into those of one.
    return "".join(f"{line}\n" for line in close_gaps(lines, "#"))


class _Tree:
    """Knows which modules there are and which names each of them has."""

    def __init__(self, sources: "Mapping[str, _Source]", repository: Iterable[str]):
        self.modules = {
            name: source for path, source in sources.items() for name in module_names(path)
        }
        self.packages = {name.rpartition(".")[0] for name in self.modules} - {""}
        every = {name for path in repository for name in module_names(path)} | set(self.modules)
        parents = {name.rpartition(".")[0] for name in every} - {""}
        self.ours = every | parents

    def lacks_module(self, module: str) -> bool:
        """Say whether a module of the course is missing here; foreign modules never are."""
        return module in self.ours and module not in self.modules and module not in self.packages

    def lacks_name(self, module: str, name: str) -> bool:
        """Say whether `from module import name` fails here."""
        if self.lacks_module(module):
            return True
        full = f"{module}.{name}"
        if full in self.modules or full in self.packages:
            return False
        source = self.modules.get(module)
        if source is None:
            return full in self.ours
        return name != "*" and name not in source.names()


@dataclass
class _Import:
    """An import statement outside the regions, and those of its names that still stand."""

    node: Statement
    parent: ast.AST
    kept: list[ast.alias]
    guarded: bool  # inside `try: ... except ImportError`, so it may fail


class _Source:
    """One Python file of the tree."""

    def __init__(self, path: str, text: str):
        self.path = path
        self.is_package = path.endswith("__init__.py")
        self.module = module_names(path)[0]
        self.lines = text.splitlines()
        self.syntax = ast.parse(text, path)
        outside = outside_lines(self.lines)
        self.position = {index + 1: position for position, index in enumerate(outside)}
        self.used = set(_used_names(self.syntax))
        self.exports = _exports(self.syntax)
        self.listed = {name.value for name in self.exported()}
        self.defined = set(_defined_names(self.syntax.body))
        self.imports = list(self._imports(self.syntax, guarded=False))
        self.foreign = self._imported_in_regions()

    def _imports(self, parent: ast.AST, guarded: bool) -> Iterator[_Import]:
        for child in ast.iter_child_nodes(parent):
            if isinstance(child, Statement):
                if child.lineno in self.position:
                    yield _Import(child, parent, list(child.names), guarded)
            else:
                tries = isinstance(child, ast.Try) and "ImportError" in "".join(
                    ast.unparse(handler.type) for handler in child.handlers if handler.type
                )
                yield from self._imports(child, guarded or tries)

    def _imported_in_regions(self) -> set[str]:
        nodes = [node for node in self.syntax.body if isinstance(node, Statement)]
        inside = [node for node in nodes if node.lineno not in self.position]
        return {_bound(alias) for node in inside for alias in node.names}

    def names(self) -> set[str]:
        """Return the names that other files can import from this one."""
        imported = {
            _bound(alias)
            for item in self.imports
            if not isinstance(item.parent, ast.FunctionDef) and not self._reads_itself(item.node)
            for alias in item.kept
        }
        return self.defined | self.foreign | imported

    def drop(self, tree: _Tree) -> bool:
        """Drop the imports that fail in the tree or serve nothing; say whether any went."""
        before = sum(len(item.kept) for item in self.imports)
        for item in self.imports:
            item.kept = [alias for alias in item.kept if self._stays(item, alias, tree)]
        return before != sum(len(item.kept) for item in self.imports)

    def _stays(self, item: _Import, alias: ast.alias, tree: _Tree) -> bool:
        if item.guarded:
            return True
        if isinstance(item.node, ast.Import):
            if tree.lacks_module(alias.name):
                return False
        elif tree.lacks_name(self._origin(item.node), alias.name):
            return False
        used = self.used | self.listed
        line = self.lines[alias.lineno - 1]
        return (
            self.is_package
            or _bound(alias) in used
            or alias.name == "*"
            or alias.asname == alias.name
            or bool(KEPT_AS_IT_IS.search(line))
            or getattr(item.node, "module", None) == "__future__"
        )

    def _reads_itself(self, node: Statement) -> bool:
        """Say whether a package asks itself for a name, which only its submodules can answer."""
        return isinstance(node, ast.ImportFrom) and self._origin(node) == self.module

    def _origin(self, node: ast.ImportFrom) -> str:
        """Return the full name of the module that a `from` statement reads."""
        if not node.level:
            return node.module or ""
        parts = self.module.split(".")
        parts = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*parts, *filter(None, [node.module])])

    def edits(self) -> Edits:
        """Return what changes, after all files have dropped what they drop."""
        edits: Edits = {}
        for item in self.imports:
            if not item.kept:
                self._replace(edits, *self._emptied(item))
            elif len(item.kept) < len(item.node.names):
                self._replace(edits, item.node, self._shortened(item))
        if self.exports is not None:
            available = self.names() | {
                _bound(alias) for item in self.imports for alias in item.kept
            }
            kept = [name for name in self.exported() if name.value in available]
            if len(kept) < len(self.exports.elts) and not self._has_getattr():
                head = self.lines[self.exports.lineno - 1][: self.exports.col_offset]
                self._replace(edits, self.exports, _listing(head + "[", kept, "]", self.lines))
        return edits

    def exported(self) -> list[ast.Constant]:
        """Return the entries of `__all__`."""
        entries = self.exports.elts if self.exports is not None else []
        return [entry for entry in entries if isinstance(entry, ast.Constant)]

    def _has_getattr(self) -> bool:
        return "__getattr__" in self.defined

    def _replace(self, edits: Edits, node: Placed, replacement: list[str]) -> None:
        for number in range(node.lineno, _last_line(node) + 1):
            edits[self.position[number]] = []
        edits[self.position[node.lineno]] = replacement

    def _emptied(self, item: _Import) -> tuple[Placed, list[str]]:
        """Return what goes with an import of which nothing is left, and what stands there then."""
        parent = item.parent
        body = getattr(parent, "body", [])
        siblings = [other for other in self.imports if other.parent is parent and not other.kept]
        alone = isinstance(body, list) and len(siblings) == len(body)
        if alone and isinstance(parent, ast.If) and not parent.orelse:
            return parent, []
        if alone and not isinstance(parent, ast.Module) and siblings[0] is item:
            return item.node, [self._indent(item.node) + "pass"]
        return item.node, []

    def _indent(self, node: Placed) -> str:
        return self.lines[node.lineno - 1][: node.col_offset]

    def _shortened(self, item: _Import) -> list[str]:
        """Return the lines of an import with the names that are left."""
        node, indent = item.node, self._indent(item.node)
        if isinstance(node, ast.Import):
            return [indent + "import " + ", ".join(map(ast.unparse, item.kept))]
        head = f"{indent}from {'.' * node.level}{node.module or ''} import "
        last = self.lines[_last_line(node) - 1][node.end_col_offset :]
        return _listing(head, item.kept, "", self.lines, tail=last, brackets="()")


def _listing(
    head: str,
    items: Sequence[Placed],
    end: str,
    lines: list[str],
    tail: str = "",
    brackets: str = "",
) -> list[str]:
    """Lay out a list of names in one line if it fits, else one name a line, comments kept."""
    texts = [lines[item.lineno - 1][item.col_offset : item.end_col_offset] for item in items]
    # Behind the last name of a statement in one line stands the comment of the whole line: `tail`.
    comments = ["" if tail.strip() else _comment_after(item, lines) for item in items]
    line = head + ", ".join(texts) + end
    if len(line) <= LINE_LENGTH and not any(comments):
        return [line + tail]
    indent = " " * (len(head) - len(head.lstrip()))
    opening, closing = (brackets[0], brackets[1]) if brackets else ("", end)
    middle = [
        f"{indent}    {text},{comment}" for text, comment in zip(texts, comments, strict=True)
    ]
    return [head + opening, *middle, indent + closing + tail]


def _last_line(node: Placed) -> int:
    return node.end_lineno or node.lineno


def _comment_after(item: Placed, lines: list[str]) -> str:
    """Return the comment behind a name that has a line of its own, or nothing."""
    match = re.fullmatch(r",?(\s*#.*)", lines[item.lineno - 1][item.end_col_offset :])
    return match[1] if match else ""


def _bound(alias: ast.alias) -> str:
    """Return the name that an import binds."""
    return alias.asname or alias.name.split(".")[0]


def _exports(tree: ast.Module) -> ast.List | None:
    """Return the list that `__all__` is set to."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return node.value if isinstance(node.value, ast.List) else None
    return None


def _used_names(tree: ast.AST) -> Iterator[str]:
    """Yield every name that a file reads, those in quoted annotations among them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        for quoted in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            for part in ast.walk(quoted) if isinstance(quoted, ast.AST) else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield from re.findall(r"\w+", part.value)


def _defined_names(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the names that a module's own statements bind, imports aside."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, Statement):
            continue
        elif isinstance(node, ast.If | ast.Try | ast.For | ast.While | ast.With):
            for part in ("body", "orelse", "finalbody", "handlers"):
                yield from _defined_names(getattr(node, part, []))
            yield from _stored(getattr(node, "target", None))
        elif isinstance(node, ast.ExceptHandler):
            yield from _defined_names(node.body)
        else:
            yield from _stored(node)


def _stored(node: ast.AST | None) -> Iterator[str]:
    """Yield the names that a statement assigns."""
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
