"""Pictures of graphs: what a Tensor was computed from, as Graphviz source, SVG or text.

`graph` notes the nodes down, so a picture holds no Tensor. Where Graphviz is not installed, the SVG
is laid out here by Sugiyama's layers: a library for it would cost a dependency and save 80 lines.
"""

import html
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from needle.autograd import Op, Tensor, TensorTuple, Value, find_topo_sort
from needle.engine import Gradient
from needle.errors import NeedleError
from needle.nn import Module, Parameter

__all__ = ["Graph", "Node", "graph"]

# Dark letters on light boxes, grey lines between them, nothing behind: it reads on any ground.
FILLS = {"parameter": "#cfe8cf", "constant": "#e3e3e3", "leaf": "#cfe0f5", "op": "#fbf1d3"}
FAULT_FILL = "#f7b5ad"
FAULT_LINE = "#c0281a"
LINE = "#808080"
TEXT = "#1b1b1b"


@dataclass(frozen=True)
class Node:
    """One node as it was: what it is called, its shape, where its inputs stand in the graph."""

    kind: str  # a key of FILLS
    title: str
    shape: str
    place: str  # dtype and device
    inputs: tuple[int, ...]
    fault: str = ""  # for the first non-finite node, such as "-inf here first"

    def lines(self) -> list[str]:
        """Return what a picture writes into the node."""
        return [line for line in (self.title, self.shape, self.place, self.fault) if line]


def graph(
    output: Value | Sequence[Value],
    names: Module | Mapping[str, Tensor] | None = None,
    limit: int = 500,
) -> "Graph":
    """Return a picture of all that `output`, a Tensor or several, was computed from.

    The first node in the order of computing that holds a NaN or an infinity is marked: its inputs
    are finite.

    Args:
        output: a Tensor, a TensorTuple, or several of them.
        names: a model, or Tensors by name; other Tensors show their own `name`.
        limit: how many nodes are drawn, the last ones computed; `text()` lists all.

    Raises:
        NeedleError: if `output` is no Tensor.
    """
    outputs: list[Any] = list(output) if isinstance(output, list | tuple) else [output]
    if not outputs or not all(isinstance(value, Value) for value in outputs):
        raise NeedleError(f"[viz] {output!r} has no graph; give a Tensor or a list of Tensors")
    order = find_topo_sort(outputs)
    # A gradient's graph is made anew when asked for, unless someone holds it: hold it, then sort.
    held = [value.recorded() for value in order if isinstance(value, Gradient)]
    if held:
        order = find_topo_sort(outputs)
    if names is None:
        names = {}
    called = names.named_parameters() if isinstance(names, Module) else names.items()
    name_of = {id(tensor): name for name, tensor in called}
    position = {id(value): i for i, value in enumerate(order)}
    nodes = [
        _node(value, name_of.get(id(value)), tuple(position[id(x)] for x in value.inputs))
        for value in order
    ]
    for i, value in enumerate(order):
        numbers = _non_finite(value)
        if numbers:  # every input stands before its users: those of the first one are finite
            nodes[i] = replace(nodes[i], fault=f"{numbers} here first")
            break
    return Graph(nodes, limit)


class Graph:
    """A picture of a graph; it shows itself in a notebook."""

    def __init__(self, nodes: Sequence[Node], limit: int) -> None:
        places = dict.fromkeys(node.place for node in nodes if node.place)
        self._place = " and ".join(places)
        if len(places) < 2:  # said once, above the picture
            nodes = [replace(node, place="") for node in nodes]
        self.nodes = nodes
        self.limit = limit

    @property
    def dot(self) -> str:
        """The picture as Graphviz source."""
        lines = [
            "digraph needle {",
            f'  graph [bgcolor="transparent", fontcolor="{LINE}", fontname="Courier,monospace",'
            f" label={_quoted([self._headline()])}, labelloc=t];",
            f'  node [shape=box, style="filled,rounded", color="{LINE}", fontcolor="{TEXT}",'
            ' fontname="Courier,monospace", fontsize=11];',
            f'  edge [color="{LINE}", arrowsize=0.6];',
        ]
        drawn = self._drawn()
        for i in drawn:
            node = self.nodes[i]
            fill, line, width = _style(node)
            lines.append(
                f'  n{i} [label={_quoted(node.lines())}, fillcolor="{fill}", color="{line}",'
                f" penwidth={width}];"
            )
        lines += [f"  n{x} -> n{i};" for i in drawn for x in self.nodes[i].inputs if x in drawn]
        return "\n".join([*lines, "}"]) + "\n"

    def svg(self) -> str:
        """Return the picture as SVG, laid out by Graphviz if its `dot` is installed."""
        dot = shutil.which("dot")
        if dot is not None:
            made = subprocess.run([dot, "-Tsvg"], input=self.dot, capture_output=True, text=True)
            if made.returncode == 0:
                return made.stdout
        return _Drawing([(i, self.nodes[i]) for i in self._drawn()]).svg(self._headline())

    def text(self) -> str:
        """Return all nodes as a table, inputs before their users."""
        rows = [
            (
                f"%{i}",
                node.title,
                " ".join(filter(None, (node.shape, node.place))),
                " ".join(["<-", *(f"%{x}" for x in node.inputs)]) if node.inputs else node.kind,
                f"  -> {node.fault}" if node.fault else "",
            )
            for i, node in enumerate(self.nodes)
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [
            f"{a:>{widths[0]}}  {b:<{widths[1]}}  {c:<{widths[2]}}  {d}{e}"
            for a, b, c, d, e in rows
        ]
        return "\n".join([self._counts(), *lines]) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the picture to a file, in the form that the suffix names.

        Raises:
            NeedleError: unless the suffix is .dot, .gv, .svg or .txt.
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix in (".dot", ".gv"):
            content = self.dot
        elif suffix == ".svg":
            content = self.svg()
        elif suffix == ".txt":
            content = self.text()
        else:
            raise NeedleError(f"[viz] {path.name} has no known suffix; use .dot, .gv, .svg or .txt")
        path.write_text(content, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"Graph({self._counts()})"

    def _counts(self) -> str:
        ops = sum(node.kind == "op" for node in self.nodes)
        parameters = sum(node.kind == "parameter" for node in self.nodes)
        return f"{len(self.nodes)} nodes: {ops} ops, {parameters} parameters; {self._place}"

    def _headline(self) -> str:
        left_out = len(self.nodes) > self.limit
        note = f"; only the last {self.limit} are drawn (see limit)" if left_out else ""
        return self._counts() + note

    def _drawn(self) -> list[int]:
        """Return the nodes that are drawn: the last ones, and the marked one wherever it stands."""
        start = max(len(self.nodes) - self.limit, 0)
        return [i for i, node in enumerate(self.nodes) if i >= start or node.fault]


# --- nodes ---


def _node(value: Value, name: str | None, inputs: tuple[int, ...]) -> Node:
    """Return what the picture tells of a value; data that was put off stays put off."""
    name = name or getattr(value, "name", None)
    arrays = _arrays(value)
    shapes = [tuple(array.shape) for array in arrays]
    if not arrays:
        shape = "not computed"
    elif not isinstance(value, TensorTuple):
        shape = str(shapes[0])
    elif len(set(shapes)) == 1:
        shape = f"{len(shapes)} of {shapes[0]}"
    else:
        shape = ", ".join(map(str, shapes))
    if value.op is not None:
        kind, title = "op", _op_title(value.op)
    elif isinstance(value, Parameter):
        kind, title = "parameter", "Parameter"
    else:
        kind, title = ("leaf" if value.requires_grad else "constant"), "Tensor"
    if name:
        title = _one_line(name) if value.op is None else f"{_one_line(name)} = {title}"
    place = ""
    if arrays:
        first = Tensor.make_const(arrays[0])
        place = f"{first.dtype} on {first.device}"
    return Node(kind, title, shape, place, inputs)


def _op_title(op: Op) -> str:
    """Return the class of an op with its numbers, such as "PowerScalar scalar=0.5"."""
    numbers = (f" {name}={v}" for name, v in vars(op).items() if type(v) in (int, float))
    return type(op).__name__ + "".join(numbers)


def _one_line(name: str) -> str:
    """Return a name without characters that a picture's formats forbid."""
    return "".join(c if c.isprintable() else "?" for c in str(name))


def _arrays(value: Value) -> tuple[Any, ...]:
    """Return the raw arrays of a value, none if it is not computed yet."""
    data = value.cached_data
    return () if data is None else data if isinstance(data, tuple) else (data,)


def _non_finite(value: Value) -> str:
    """Return which numbers that are not finite a value holds, such as "NaN and -inf"."""
    found: dict[str, None] = {}
    for array in _arrays(value):
        numbers = Tensor.make_const(array).numpy()
        odd = numbers[~np.isfinite(numbers)]
        for word, holds in (("NaN", odd != odd), ("inf", odd == np.inf), ("-inf", odd == -np.inf)):
            if holds.any():
                found[word] = None
    return " and ".join(found)


def _style(node: Node) -> tuple[str, str, float]:
    """Return a node's fill, the colour of its line and the line's width."""
    return (FAULT_FILL, FAULT_LINE, 2) if node.fault else (FILLS[node.kind], LINE, 1)


def _quoted(lines: Sequence[str]) -> str:
    """Return lines as a Graphviz string."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'


# --- layout: layers, an order in each, a position for each (Sugiyama et al. 1981) ---

LETTER, LINE_HEIGHT, PAD = 6.7, 15, 8  # of an 11-pixel monospaced font, in pixels
GAP, ROW_GAP, MARGIN = 16, 34, 12
SWEEPS = 24


class _Drawing:
    """Nodes in layers, each above those that use it. A vertex is a node, or None where an edge only
    passes a layer.
    """

    def __init__(self, nodes: Sequence[tuple[int, Node]]) -> None:
        self.nodes: list[Node | None] = [node for _, node in nodes]
        self.below: list[list[int]] = [[] for _ in nodes]
        index = {i: vertex for vertex, (i, _) in enumerate(nodes)}
        users: list[list[int]] = [[] for _ in nodes]
        for vertex, (_, node) in enumerate(nodes):
            for x in dict.fromkeys(node.inputs):
                if x in index:
                    users[index[x]].append(vertex)
        height = [0] * len(nodes)  # above the last layer; users come after their inputs
        for vertex in reversed(range(len(nodes))):
            height[vertex] = max((height[user] + 1 for user in users[vertex]), default=0)
        self.layers: list[list[int]] = [[] for _ in range(max(height) + 1)]
        for vertex in range(len(nodes)):
            self.layers[height[vertex]].append(vertex)
        for vertex in range(len(nodes)):
            self._link(vertex, users[vertex], height)
        self.layers.reverse()
        self.above: list[list[int]] = [[] for _ in self.nodes]
        for vertex, lower in enumerate(self.below):
            for v in lower:
                self.above[v].append(vertex)
        self._order()
        self._place()

    def _link(self, vertex: int, users: list[int], height: list[int]) -> None:
        """Join a node to its users by one trunk: an empty vertex in each layer that it passes."""
        trunk = vertex
        for level in range(height[vertex] - 1, -1, -1):
            self.below[trunk] += [user for user in users if height[user] == level]
            if any(height[user] < level for user in users):
                self.nodes.append(None)
                self.below.append([])
                self.below[trunk].append(len(self.nodes) - 1)
                trunk = len(self.nodes) - 1
                self.layers[level].append(trunk)

    def _order(self) -> None:
        """Sort each layer by the mean position of its neighbours, down and up in turns."""
        at = {v: i for layer in self.layers for i, v in enumerate(layer)}
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            neighbours = self.above if down else self.below
            for layer in self.layers if down else reversed(self.layers):
                mean = {v: _mean((at[n], 1) for n in neighbours[v] or [v]) for v in layer}
                layer.sort(key=mean.__getitem__)
                at.update((v, i) for i, v in enumerate(layer))

    def _place(self) -> None:
        """Move each vertex towards its neighbours, down and up in turns, as far as the order and
        the widths allow; leaves make way.
        """
        self.x = [0.0] * len(self.nodes)
        weight = [1.0 if upper else 0.1 for upper in self.above]
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            neighbours = self.above if down else self.below
            for layer in self.layers if down else reversed(self.layers):
                wanted = [
                    _mean([(self.x[n], weight[n]) for n in neighbours[v] or [v]]) for v in layer
                ]
                gaps = [(self._width(a) + self._width(b)) / 2 + GAP for a, b in pairwise(layer)]
                positions = _apart(wanted, [weight[v] for v in layer], gaps)
                for v, x in zip(layer, positions, strict=True):
                    self.x[v] = x
        left = min(x - self._width(v) / 2 for v, x in enumerate(self.x))
        self.x = [x - left + MARGIN for x in self.x]

    def _width(self, vertex: int) -> float:
        node = self.nodes[vertex]
        return 0 if node is None else max(map(len, node.lines())) * LETTER + 2 * PAD

    def _height(self, vertex: int) -> float:
        node = self.nodes[vertex]
        return 0 if node is None else len(node.lines()) * LINE_HEIGHT + PAD

    def svg(self, headline: str) -> str:
        """Return the drawing, with a line of text above it."""
        top: dict[int, float] = {}
        bottom: dict[int, float] = {}
        y = 2.0 * LINE_HEIGHT
        for layer in self.layers:
            tallest = max(map(self._height, layer))
            for v in layer:  # an edge passes its layer from top to bottom
                height = self._height(v) or tallest
                top[v] = y + (tallest - height) / 2
                bottom[v] = top[v] + height
            y += tallest + ROW_GAP
        width = max(x + self._width(v) / 2 for v, x in enumerate(self.x)) + MARGIN
        width = max(width, len(headline) * LETTER + 2 * MARGIN)
        height = y - ROW_GAP + MARGIN
        shapes = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="11" '
            'text-anchor="middle">',
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{LINE}"/></marker>'
            "</defs>",
            f'<text x="{MARGIN}" y="{LINE_HEIGHT}" fill="{LINE}" text-anchor="start">'
            f"{html.escape(headline)}</text>",
        ]
        for v in range(len(self.nodes)):
            shapes += [self._edge(v, user, top, bottom) for user in self.below[v]]
        for v, node in enumerate(self.nodes):
            if node is not None:
                shapes.append(self._box(v, node, top[v]))
        return "\n".join([*shapes, "</svg>"]) + "\n"

    def _edge(self, v: int, user: int, top: dict[int, float], bottom: dict[int, float]) -> str:
        """Return a curve from below `v` to above `user`, straight on through an empty vertex."""
        a, b, start, end = self.x[v], self.x[user], bottom[v], top[user]
        middle = (start + end) / 2
        path = f"M{a:.1f} {start:.1f} C{a:.1f} {middle:.1f} {b:.1f} {middle:.1f} {b:.1f} {end:.1f}"
        arrow = ' marker-end="url(#arrow)"'
        if self.nodes[user] is None:
            path, arrow = f"{path} V{bottom[user]:.1f}", ""
        return f'<path d="{path}" fill="none" stroke="{LINE}"{arrow}/>'

    def _box(self, v: int, node: Node, top: float) -> str:
        fill, line, width = _style(node)
        box = self._width(v)
        weights = ["bold"] + ["normal"] * len(node.lines())
        texts = "".join(
            f'<text x="{self.x[v]:.1f}" y="{top + (i + 1) * LINE_HEIGHT:.1f}" fill="{TEXT}" '
            f'font-weight="{weights[i]}">{html.escape(text)}</text>'
            for i, text in enumerate(node.lines())
        )
        return (
            f'<rect x="{self.x[v] - box / 2:.1f}" y="{top:.1f}" width="{box:.1f}" '
            f'height="{self._height(v)}" rx="5" fill="{fill}" stroke="{line}" '
            f'stroke-width="{width}"/>{texts}'
        )


def _mean(weighted: Iterable[tuple[float, float]]) -> float:
    """Return the mean of (number, weight) pairs."""
    total = weights = 0.0
    for number, weight in weighted:
        total += number * weight
        weights += weight
    return total / weights


def _apart(wanted: Sequence[float], weights: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Return positions in the same order, each at least its gap after the one before, as near to
    `wanted` as can be (weighted least squares: blocks that collide move as one, to their mean).
    """
    offsets = [0.0, *accumulate(gaps)]
    blocks: list[tuple[float, float, int]] = []  # (mean of wanted - offset, weight, how many)
    for target, weight, offset in zip(wanted, weights, offsets, strict=True):
        block = (target - offset, weight, 1)
        while blocks and blocks[-1][0] >= block[0]:
            before = blocks.pop()
            mean = _mean([before[:2], block[:2]])
            block = (mean, before[1] + block[1], before[2] + block[2])
        blocks.append(block)
    starts = (mean for mean, _, count in blocks for _ in range(count))
    return [start + offset for start, offset in zip(starts, offsets, strict=True)]
