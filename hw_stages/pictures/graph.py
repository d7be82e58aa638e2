"""The graph of y = (c + d) + c * d, with c = a + b and d = a * b: the values go down, the gradients
come back up and meet where a node was used twice.
"""

import numpy as np

import needle as ndl
from hw_stages.pictures.drawing import BLUE, ORANGE, YELLOW, Page, number
from needle.autograd import Tensor, find_topo_sort
from needle.viz import graph

TITLE = "The graph of y = (c + d) + c * d with c = a + b, d = a * b, at a = 2, b = 3"
# Where each node stands: the middle of its box. needle.viz says which nodes there are.
PLACES = {
    "a": (150, 105),
    "b": (430, 105),
    "c": (150, 265),
    "d": (430, 265),
    "p": (150, 425),
    "q": (430, 425),
    "y": (290, 575),
}
WIDTH, HEIGHT = 170, 68


def draw() -> str:
    """Return the picture."""
    a, b = (ndl.Tensor(np.array(x), dtype="float64") for x in (2.0, 3.0))
    c, d = a + b, a * b
    p, q = c + d, c * d
    y = p + q
    tensors = {"a": a, "b": b, "c": c, "d": d, "p": p, "q": q, "y": y}
    y.backward(retain_grad=True)
    order = find_topo_sort([y])
    names = {id(tensor): name for name, tensor in tensors.items()}
    nodes = graph(y, names=tensors).nodes
    page = Page(1020, 640, TITLE)
    page.text(30, 30, TITLE, anchor="start", bold=True, size=15)
    labels = [_edge(page, tensor, names, i) for tensor in order for i in range(len(tensor.inputs))]
    for x, top, words in labels:
        page.box(x - 30, top - 13, 60, 26, [words], fill=ORANGE, round_by=13, size=13.5)
    for node, tensor in zip(nodes, order, strict=True):
        x, top = PLACES[names[id(tensor)]]
        lines = [
            node.title,
            f"value {number(tensor.numpy())}",
            f"gradient {number(tensor.grad.numpy())}",
        ]
        fill = BLUE if tensor.op is None else YELLOW
        page.box(
            x - WIDTH / 2, top - HEIGHT / 2, WIDTH, HEIGHT, lines, fill=fill, size=13.5,
            round_by=6, bold=True,
        )  # fmt: skip
    _explain(page, tensors)
    return page.svg()


def _handed(tensor: Tensor) -> list[str]:
    """Return what the op of a node hands to each of its inputs."""
    return [number(g.numpy()) for g in tensor.op.gradient_as_tuple(tensor.grad, tensor)]


def _edge(page: Page, tensor: Tensor, names: dict[int, str], i: int) -> tuple[float, float, str]:
    """Draw the edge from one input; return where and what comes back along it."""
    x, y = PLACES[names[id(tensor)]]
    a, top = PLACES[names[id(tensor.inputs[i])]]
    lean = 0.14 * (x - a)
    start = (a + lean, top + HEIGHT / 2)
    end = (x - lean, y - HEIGHT / 2)
    page.line(start, end, arrow=True, width=1.8)
    at = 0.3  # near the input: halfway, edges cross
    middle = (start[0] + at * (end[0] - start[0]), start[1] + at * (end[1] - start[1]))
    return (*middle, f"{_handed(tensor)[i]} ↑")


def _explain(page: Page, tensors: dict[str, Tensor]) -> None:
    """Write the rule beside the nodes, in the order in which reverse mode visits them."""
    of_p, of_q, of_c, of_d = (_handed(tensors[name]) for name in "pqcd")
    grad = {name: number(tensor.grad.numpy()) for name, tensor in tensors.items()}
    lines = [
        "y has gradient 1, and hands 1 to p and 1 to q",
        f"q = c · d hands 1 · d = {of_q[0]} to c, 1 · c = {of_q[1]} to d",
        f"p = c + d hands {of_p[0]} to c and {of_p[1]} to d",
        f"so c has {of_q[0]} + {of_p[0]} = {grad['c']}, d has {of_q[1]} + {of_p[1]} = {grad['d']}",
        f"d = a · b hands {grad['d']} · b = {of_d[0]} to a, {grad['d']} · a = {of_d[1]} to b",
        f"c = a + b hands {of_c[0]} to a and {of_c[1]} to b",
        f"so a has {of_d[0]} + {of_c[0]} = {grad['a']}, b has {of_d[1]} + {of_c[1]} = {grad['b']}",
    ]
    page.text(580, 92, "Reverse mode, from y back:", anchor="start", size=13.5, bold=True)
    for n, line in enumerate(lines, 1):
        page.text(580, 92 + 31 * n, f"{n}.\u00a0\u00a0{line}", anchor="start", size=13.5)
    page.box(580, 424, 30, 22, fill=BLUE)
    page.text(626, 435, "a leaf: a Tensor that you made", anchor="start", size=13)
    page.box(580, 456, 30, 22, fill=YELLOW)
    page.text(626, 467, "the result of an op", anchor="start", size=13)
    page.box(576, 488, 38, 22, ["↑"], fill=ORANGE, round_by=11, size=13)
    page.text(626, 499, "what an op's gradient hands back to an input", anchor="start", size=13)
    page.line((580, 531), (610, 531), arrow=True, width=1.8)
    page.text(626, 531, "the way that values were computed", anchor="start", size=13)
