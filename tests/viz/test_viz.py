"""Pictures of graphs: what the three forms hold, the marked node, the drawing's geometry."""

import gc
import re
import weakref
from xml.etree import ElementTree

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import needle as ndl
from needle import autograd, nn, viz
from needle.errors import NeedleError

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def without_graphviz(monkeypatch):
    monkeypatch.setattr(viz.shutil, "which", lambda name: None)


def edges(picture):
    """Return the edges of the Graphviz source as pairs of what the ends are called."""
    title = dict(re.findall(r'^  (n\d+) \[label="(.*?)\\n', picture.dot, re.MULTILINE))
    return [(title[a], title[b]) for a, b in re.findall(r"(n\d+) -> (n\d+)", picture.dot)]


def texts(picture):
    """Return every line of text in the SVG, which has to be valid XML."""
    root = ElementTree.fromstring(picture.svg())
    return [element.text for element in root.iter(f"{SVG}text")]


def boxes(picture):
    """Return (left, top, right, bottom) of each box of the SVG, and the size of the drawing."""
    root = ElementTree.fromstring(picture.svg())
    found = []
    for box in root.iter(f"{SVG}rect"):
        x, y, width, height = (float(box.get(k)) for k in ("x", "y", "width", "height"))
        found.append((x, y, x + width, y + height))
    return found, (float(root.get("width")), float(root.get("height")))


def mlp_loss(device, rng):
    model = nn.Sequential(
        nn.Linear(3, 4, device=device), nn.ReLU(), nn.Linear(4, 2, bias=False, device=device)
    )
    x = ndl.Tensor(rng.standard_normal((5, 3)), device=device, dtype="float32")
    return model, model(x).sum()


# --- what a picture says ---


def test_source_has_each_node_once_and_every_edge(device):
    x = ndl.Tensor([[1.0, 2.0]], device=device, name="x")
    w = ndl.Tensor([[3.0], [4.0]], device=device, name="w")
    y = ndl.exp(x) @ w
    picture = viz.graph(y * y)
    assert edges(picture) == [
        ("x", "Exp"),
        ("Exp", "MatMul"),
        ("w", "MatMul"),
        ("MatMul", "EWiseMul"),
        ("MatMul", "EWiseMul"),
    ]
    assert picture.dot.count("label=") == 5 + 1  # the nodes and the headline
    assert picture.dot.startswith("digraph") and picture.dot.endswith("}\n")


def test_every_form_has_names_ops_and_shapes(device, rng):
    model, loss = mlp_loss(device, rng)
    picture = viz.graph(loss, names=model)
    for form in (picture.dot, picture.text(), "\n".join(texts(picture))):
        for expected in ("modules.0.weight", "modules.2.weight", "(3, 4)", "MatMul", "ReLU"):
            assert expected in form
        assert "10 nodes: 6 ops, 3 parameters" in form


def test_text_lists_inputs_by_number(device):
    x = ndl.Tensor([1.0, 2.0], device=device, requires_grad=False)
    y = ndl.Tensor([1.0, 2.0], device=device, name="y")
    lines = viz.graph(x * y + 0.5).text().splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["%0", "Tensor", "(2,)", "constant"],
        ["%1", "y", "(2,)", "leaf"],
        ["%2", "EWiseMul", "(2,)", "<-", "%0", "%1"],
        ["%3", "AddScalar", "scalar=0.5", "(2,)", "<-", "%2"],
    ]


def test_names_come_from_a_mapping_first_then_from_the_tensor(device):
    x = ndl.Tensor([1.0], device=device, name="own")
    y = ndl.Tensor([1.0], device=device, name="other")
    z = x + y
    z.name = "sum"
    titles = [node.title for node in viz.graph(z, names={"given": x}).nodes]
    assert titles == ["given", "other", "sum = EWiseAdd"]


@pytest.mark.parametrize("name", ['a"b', "a\\b", "<a> & 'b'", "Gewicht_ä", "a\\n"])
def test_any_name_comes_out_as_it_is(device, name):
    picture = viz.graph(ndl.Tensor([1.0], device=device, name=name) + 1)
    assert name in texts(picture)
    label = re.search(r'n0 \[label="((?:[^"\\]|\\.)*)\\n\(1,\)"', picture.dot).group(1)
    assert re.sub(r"\\(.)", r"\1", label) == name


@pytest.mark.parametrize("name", ["a\nb", "a\x00b", "a\x1bb", "a\ud800b"])
def test_characters_that_the_formats_forbid_are_replaced(device, name, tmp_path):
    picture = viz.graph(ndl.Tensor([1.0], device=device, name=name) + 1)
    assert "a?b" in texts(picture) and "a?b" in picture.dot and "a?b" in picture.text()
    picture.save(tmp_path / "graph.svg")


def test_tuples_and_several_outputs(device):
    x = ndl.Tensor(np.ones((2, 3)), device=device, name="x", dtype="float32")
    parts = ndl.split(x, 0)
    mixed = ndl.make_tuple(x, x.sum())
    nodes = viz.graph([parts[1], mixed]).nodes
    assert [(node.title, node.shape) for node in nodes] == [
        ("x", "(2, 3)"),
        ("Split axis=0", "2 of (3,)"),
        ("TupleGetItem index=1", "(3,)"),
        ("Summation", "()"),
        ("MakeTensorTuple", "(2, 3), ()"),
    ]


def test_a_gradient_has_a_picture_too(device):
    x = ndl.Tensor([2.0], device=device)
    y = x * x * x
    y.backward()
    titles = [node.title for node in viz.graph(x.grad).nodes]
    assert titles.count("EWiseMul") > 2
    assert [node.title for node in viz.graph(x.grad + 1).nodes] == [*titles, "AddScalar scalar=1"]


def test_type_and_device_are_said_once_if_all_agree():
    device = ndl.cpu_numpy() if ndl.BACKEND == "nd" else ndl.cpu()
    x = ndl.Tensor([1.0], device=device, dtype="float32")
    picture = viz.graph(x + x)
    assert picture.text().count("float32 on") == 1 and picture.dot.count("float32 on") == 1
    double = ndl.Tensor([1.0], device=device, dtype="float64")
    picture = viz.graph([x + x, double + double])
    assert f"(1,) float64 on {device}" in picture.text()
    assert f"float32 on {device}" in texts(picture) and f"float64 on {device}" in texts(picture)


@pytest.mark.parametrize("output", [3.0, None, [], [np.ones(2)]], ids=repr)
def test_only_tensors_have_graphs(output):
    with pytest.raises(NeedleError, match=r"\[viz\] .* has no graph; give a Tensor"):
        viz.graph(output)


# --- the first non-finite node ---


def faults(picture):
    return [(node.title, node.fault) for node in picture.nodes if node.fault]


@pytest.mark.parametrize(
    "values, words", [([0.0, 1.0], "-inf"), ([-1.0, 1.0], "NaN"), ([-1.0, 0.0], "NaN and -inf")]
)
def test_the_first_non_finite_node_is_marked_in_every_form(device, values, words):
    x = ndl.Tensor(values, device=device)
    picture = viz.graph((ndl.log(x) * 2).sum() + ndl.log(x).sum())
    assert faults(picture) == [("Log", f"{words} here first")]
    assert f"{words} here first" in texts(picture)
    assert viz.FAULT_FILL in picture.svg()
    (line,) = [line for line in picture.dot.splitlines() if "here first" in line]
    assert "Log" in line and words in line and viz.FAULT_FILL in line
    (line,) = [line for line in picture.text().splitlines() if "here first" in line]
    assert line.endswith(f"-> {words} here first") and "Log" in line


def test_a_leaf_and_an_overflow_can_be_first(device):
    x = ndl.Tensor([np.inf, 1.0], device=device, name="x")
    assert faults(viz.graph(ndl.exp(x) + 1)) == [("x", "inf here first")]
    y = ndl.Tensor([1e30], device=device, dtype="float32")
    with np.errstate(over="ignore"):
        overflown = y * y - 1
    assert faults(viz.graph(overflown)) == [("EWiseMul", "inf here first")]


def test_a_part_of_a_tuple_can_be_first(device):
    with np.errstate(all="ignore"):
        x = ndl.Tensor([[1.0], [3e38]], device=device, dtype="float32")
        parts = ndl.make_tuple(ndl.Tensor([1.0], device=device), x * 2)
    assert faults(viz.graph(parts[1] + 1)) == [("MulScalar scalar=2", "inf here first")]


def test_finite_graphs_have_no_mark(device, rng):
    picture = viz.graph(mlp_loss(device, rng)[1])
    assert not faults(picture) and viz.FAULT_FILL not in picture.svg() + picture.dot


# --- what it leaves alone ---


def test_a_picture_keeps_nothing_alive_and_changes_nothing(device, rng):
    model, loss = mlp_loss(device, rng)
    before = autograd.TENSOR_COUNTER
    value, op, inputs = loss.item(), loss.op, loss.inputs
    picture = viz.graph(loss, names=model)
    assert before == autograd.TENSOR_COUNTER
    assert (loss.item(), loss.op, loss.inputs) == (value, op, inputs) and loss.grad is None
    ref = weakref.ref(loss.inputs[0])
    gc.disable()
    try:
        del loss, inputs, op
        assert ref() is None
    finally:
        gc.enable()
    assert "modules.0.weight" in picture.dot


def test_data_that_was_put_off_stays_put_off(device, monkeypatch):
    monkeypatch.setattr(autograd, "LAZY_MODE", True)
    y = ndl.exp(ndl.Tensor([1.0], device=device))
    assert viz.graph(y).nodes[-1].shape == "not computed"
    assert y.cached_data is None


# --- large graphs ---


def test_a_deep_graph_is_drawn_in_part_and_listed_whole(device):
    x = y = ndl.Tensor([1.0], device=device, name="start", dtype="float32")
    for _ in range(3000):
        y = y + 1
    picture = viz.graph(y, limit=40)
    assert len(boxes(picture)[0]) == 40 and picture.dot.count("->") == 39
    note = "3001 nodes: 3000 ops, 0 parameters; float32 on "
    assert picture.text().startswith(note) and len(picture.text().splitlines()) == 3002
    for form in (picture.dot, texts(picture)[0]):
        assert note in form and "only the last 40 are drawn (see limit)" in form
    x.data = ndl.Tensor([np.nan], device=device, dtype=x.dtype)
    picture = viz.graph(y, limit=40)
    assert len(boxes(picture)[0]) == 41 and "start" in texts(picture)
    assert "only the last" not in viz.graph(y, limit=3001).dot


# --- the drawing ---


def lstm_like(device, steps):
    """Return a loss with the shape of a recurrent network's graph: a weight used at each step."""
    w = ndl.Tensor(np.full((4, 8), 0.1), device=device, name="w", dtype="float32")
    h = ndl.Tensor(np.ones((2, 4)), device=device, name="h", dtype="float32")
    for _ in range(steps):
        z = h @ w
        h = ndl.sigmoid(z[:, :4]) * ndl.tanh(z[:, 4:]) + h
    return h.sum()


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_boxes_do_not_overlap_and_lie_in_the_drawing(device, steps):
    found, (width, height) = boxes(viz.graph(lstm_like(device, steps)))
    assert len(found) == (2 if steps == 0 else 3 + 7 * steps)
    for i, (left, top, right, bottom) in enumerate(found):
        assert left >= 0 and top >= 0 and right <= width and bottom <= height
        for a, b, c, d in found[:i]:
            assert right <= a or c <= left or bottom <= b or d <= top


def test_inputs_stand_above_their_users_and_lines_lead_down(device):
    picture = viz.graph(lstm_like(device, 4))
    root = ElementTree.fromstring(picture.svg())
    found = boxes(picture)[0]
    for user, node in enumerate(picture.nodes):
        assert all(found[x][3] < found[user][1] for x in node.inputs)
    lines = [p.get("d") for p in root.findall(f"{SVG}path")]
    starts = [[float(n) for n in re.findall(r"-?[\d.]+", line)] for line in lines]
    assert all(numbers[1] < numbers[-1] for numbers in starts)
    arrows = [p for p in root.findall(f"{SVG}path") if p.get("marker-end")]
    pairs = {(x, user) for user, node in enumerate(picture.nodes) for x in node.inputs}
    assert len(arrows) == len(pairs)


def test_lines_join_boxes_and_pass_between_them(device):
    """A weight is used at each step: its line goes down from layer to layer beside the boxes."""
    picture = viz.graph(lstm_like(device, 5))
    root = ElementTree.fromstring(picture.svg())
    found = boxes(picture)[0]
    starts, ends = [], {(f"{(left + right) / 2:.0f}", below) for left, _, right, below in found}
    for path in root.findall(f"{SVG}path"):
        curve, _, bottom = path.get("d").partition(" V")
        numbers = [float(n) for n in re.findall(r"[\d.]+", curve)]
        x, end = numbers[-2:]
        starts.append((f"{numbers[0]:.0f}", numbers[1]))
        assert not any(numbers[1] <= above and below <= end for _, above, _, below in found)
        if bottom:  # straight on through a layer
            ends.add((f"{x:.0f}", float(bottom)))
            for left, above, right, below in found:
                assert not (left < x < right and above < float(bottom) and end < below)
    assert len(ends) > len(found) and set(starts) <= ends


@given(
    st.lists(
        st.tuples(st.floats(-50, 50), st.sampled_from([0.1, 1.0]), st.floats(1, 9)),
        min_size=1,
        max_size=7,
    )
)
def test_positions_keep_their_gaps_and_no_shift_is_better(row):
    wanted, weights, gaps = map(np.array, zip(*row, strict=True))
    gaps = gaps[1:]
    x = np.array(viz._apart(wanted, weights, gaps))
    assert (np.diff(x) >= gaps - 1e-9).all()

    def cost(positions):
        return (weights * (positions - wanted) ** 2).sum()

    for i in range(len(x)):
        for j in range(i + 1, len(x) + 1):  # a run of neighbours may move while the gaps last
            for step in (-0.01, 0.01):
                moved = x.copy()
                moved[i:j] += step
                if (np.diff(moved) >= gaps - 1e-12).all():
                    assert cost(moved) >= cost(x) - 1e-9


# --- files, notebooks, Graphviz ---


def test_the_suffix_chooses_the_form(tmp_path, device, rng):
    picture = viz.graph(mlp_loss(device, rng)[1])
    forms = {"dot": picture.dot, "gv": picture.dot, "SVG": picture.svg(), "txt": picture.text()}
    for suffix, form in forms.items():
        picture.save(tmp_path / f"graph.{suffix}")
        assert (tmp_path / f"graph.{suffix}").read_text(encoding="utf-8") == form
    with pytest.raises(NeedleError, match=r"\[viz\] graph.png .* use .dot, .gv, .svg or .txt"):
        picture.save(tmp_path / "graph.png")
    assert picture._repr_svg_() == picture.svg()
    assert repr(picture).startswith("Graph(10 nodes: 6 ops, 3 parameters; float32 on")


@pytest.mark.parametrize("status", [0, 1])
def test_graphviz_draws_if_it_is_there_and_works(tmp_path, monkeypatch, status):
    dot = tmp_path / "dot"
    dot.write_text(f"#!/bin/sh\ncat > {tmp_path}/seen\necho '<svg>drawn</svg>'\nexit {status}\n")
    dot.chmod(0o755)
    monkeypatch.setattr(viz.shutil, "which", lambda name: str(dot))
    picture = viz.graph(ndl.Tensor([1.0]) + 1)
    assert ("drawn" in picture.svg()) == (status == 0)
    assert (tmp_path / "seen").read_text() == picture.dot
