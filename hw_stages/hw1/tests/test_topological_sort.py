"""hw1.topological_sort: every node once, after its inputs. Any such order is right."""

import numpy as np

from needle_course.testing import GradedTest, fail


def sorted_graph(ndl, roots):
    """Sort the graph of `roots`; return the order and the graph in plain numbers.

    A node's number is its place in a walk of our own, which also finds the edges.
    """
    order = ndl.autograd.find_topo_sort(roots)
    numbers, edges, waiting = {}, [], list(roots)
    while waiting:
        node = waiting.pop()
        if id(node) not in numbers:
            numbers[id(node)] = len(numbers)
            waiting.extend(node.inputs)
    seen = {}
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            edges += [(numbers[id(x)], numbers[id(node)]) for x in node.inputs]
            waiting.extend(node.inputs)
    return {
        "order": np.array([numbers.get(id(node), -1) for node in order], np.int64),
        "edges": np.array(edges, np.int64).reshape(-1, 2),
        "count": len(numbers),
    }


def check(inputs, outputs):
    """Raise unless the order lists each node of the graph once and after its inputs."""
    order, count = outputs["order"].tolist(), outputs["count"]
    if -1 in order:
        fail("a node is listed that the graph does not have", f"at place {order.index(-1)}")
    if len(set(order)) != len(order):
        fail("a node is listed twice", f"{len(order)} entries for {count} nodes")
    if len(order) != count:
        fail(f"{count - len(order)} of {count} nodes are missing")
    place = {number: at for at, number in enumerate(order)}
    for x, node in outputs["edges"].tolist():
        if place[x] > place[node]:
            fail(
                "a node comes before one of its inputs",
                f"the node is at place {place[node]}, its input at place {place[x]}",
            )


def test(name, doc, build):
    """Return a test that sorts the graph of the Tensors that `build(ndl, a, b)` returns."""

    def inputs(rng):
        return {"a": rng.standard_normal(3), "b": rng.standard_normal(3), "steps": rng.random(40)}

    def probe(ndl, given):
        a, b = ndl.Tensor(given["a"]), ndl.Tensor(given["b"])
        return sorted_graph(ndl, build(ndl, a, b, given["steps"]))

    return GradedTest(f"hw1.topological_sort::{name}", inputs, probe, check, doc)


test.__test__ = False  # it makes tests, it is none


def chain(ndl, a, b, steps):
    for _ in range(5):
        a = a * b + 1
    return [a]


def diamond(ndl, a, b, steps):
    left, right = a + b, a * b
    return [(left + right) * left]


def used_twice(ndl, a, b, steps):
    square = a * a
    return [square * square + a]


def early_and_late(ndl, a, b, steps):
    """The right input of the last node is deep below the left one too."""
    deep = a + 1
    for _ in range(4):
        deep = deep * b
    return [deep + a, (a + 1) * deep]


def several_roots(ndl, a, b, steps):
    shared = a + b
    return [shared * 2, shared, shared * a + b]


def constants(ndl, a, b, steps):
    constant = ndl.Tensor(np.ones(3), requires_grad=False)
    return [(a + constant) * constant + b]


def bystanders(ndl, a, b, steps):
    """Other nodes use the same inputs; they are not asked for."""
    wanted = a * b
    bystanders.alive = [a + 1, wanted * 2]
    return [wanted]


def random_graph(ndl, a, b, steps):
    nodes = [a, b]
    for step in steps:
        x, y = nodes[int(step * len(nodes))], nodes[int(step * 7919) % len(nodes)]
        nodes.append(x + y if step < 0.5 else x * y)
    return [nodes[-1], nodes[len(nodes) // 2]]


def deep(ndl, a, b, steps):
    """Deeper than Python's stack of calls."""
    for _ in range(3000):
        a = a + b
    return [a]


TESTS = [
    test("chain", "Ops one after the other.", chain),
    test("diamond", "Two ways from an input to the output.", diamond),
    test("used_twice", "A node that is both inputs of another.", used_twice),
    test("early_and_late", "An input that is needed at once and deep below.", early_and_late),
    test("several_roots", "Three outputs that share nodes, one below the others.", several_roots),
    test("constants", "Inputs that require no gradient are listed like the others.", constants),
    test("bystanders", "What uses a node but is not asked for is not listed.", bystanders),
    test("random_graph", "Forty nodes of random inputs.", random_graph),
    test("deep", "A chain of 3000 nodes, deeper than Python's recursion limit.", deep),
]
