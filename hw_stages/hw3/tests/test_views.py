"""hw3.views: each view against numpy's, and that it shares the memory of its array."""

import numpy as np

from needle_course.testing import GradedTest, equal, graded

STRIDE = 4  # bytes of a float32


def view_test(test, about, cases):
    """Return a test of views: {name: (shape of the array, view of an NDArray, view of numpy's)}.

    A view is read, then other numbers are put into the array's buffer, and it is read again.
    """

    def inputs(rng):
        before = {n: rng.standard_normal(shape, "float32") for n, (shape, *_) in cases.items()}
        return before | {f"{name}: later": -value for name, value in before.items()}

    def probe(nd, inputs):
        outputs = {}
        for name, (_, view_of, *_) in cases.items():
            array = nd.array(inputs[name], device=nd.cpu_numpy())
            view = view_of(array)
            outputs[name] = view.numpy()
            outputs[f"{name}: shape"] = view.shape
            outputs[f"{name}: strides"] = view.strides
            array.device.from_numpy(inputs[f"{name}: later"], array._handle)
            outputs[f"{name}: later"] = view.numpy()
        return outputs

    def check(inputs, outputs):
        for name, (_, view_of, *other) in cases.items():
            expected = (other[0] if other else view_of)(inputs[name])
            equal(f"the shape of {name}", outputs[f"{name}: shape"], expected.shape)
            equal(name, outputs[name], expected)
            moves = [axis for axis, size in enumerate(expected.shape) if size > 1]
            if expected.size:
                strides = [outputs[f"{name}: strides"][axis] for axis in moves]
                equal(
                    f"the strides of {name} (axes {moves})",
                    strides,
                    [expected.strides[axis] // STRIDE for axis in moves],
                )
            later = f"{name} after a change of the array: a view shares its memory"
            equal(later, outputs[f"{name}: later"], -expected)

    return GradedTest(test, inputs, probe, check, about)


def broadcast_case(shape, target):
    return shape, lambda a: a.broadcast_to(target), lambda a: np.broadcast_to(a, target)


def index_case(shape, *index):
    """Return a case of __getitem__; numpy keeps the axis of an integer if it is a slice."""

    def as_slice(entry):
        if not isinstance(entry, int):
            return entry
        return slice(entry, entry + 1 or None)

    return shape, lambda a: a[index], lambda a: a[tuple(as_slice(entry) for entry in index)]


S = slice
TESTS = [
    view_test(
        "hw3.views::reshape",
        "reshape of compact arrays.",
        {
            "(4, 6) as (3, 8)": ((4, 6), lambda a: a.reshape((3, 8))),
            "(4, 6) as (24,)": ((4, 6), lambda a: a.reshape((24,))),
            "(2, 3, 4) as (4, 1, 6)": ((2, 3, 4), lambda a: a.reshape((4, 1, 6))),
            "(12,) as (2, 3, 2)": ((12,), lambda a: a.reshape((2, 3, 2))),
            "(5, 4) with -1": ((5, 4), lambda a: a.reshape((2, -1))),
            "(1,) as ()": ((1,), lambda a: a.reshape(())),
        },
    ),
    view_test(
        "hw3.views::permute",
        "permute of two to seven axes.",
        {
            "two axes": ((4, 6), lambda a: a.permute((1, 0)), lambda a: a.transpose(1, 0)),
            "three axes": (
                (2, 3, 4),
                lambda a: a.permute((2, 0, 1)),
                lambda a: a.transpose(2, 0, 1),
            ),
            "images to channels first": (
                (2, 5, 4, 3),
                lambda a: a.permute((0, 3, 1, 2)),
                lambda a: a.transpose(0, 3, 1, 2),
            ),
            "seven axes": (
                (2, 3, 1, 2, 3, 2, 2),
                lambda a: a.permute((6, 2, 4, 0, 1, 5, 3)),
                lambda a: a.transpose(6, 2, 4, 0, 1, 5, 3),
            ),
        },
    ),
    view_test(
        "hw3.views::permute_of_a_view",
        "permute keeps the offset of a slice, and undoes itself.",
        {
            "a slice": ((5, 6), lambda a: a[2:5, 1:6:2].permute((1, 0)), lambda a: a[2:5, 1:6:2].T),
            "twice": (
                (2, 3, 4),
                lambda a: a.permute((2, 0, 1)).permute((1, 2, 0)),
                lambda a: a,
            ),
        },
    ),
    view_test(
        "hw3.views::broadcast_to",
        "Axes of size 1 that are stretched.",
        {
            "a row": broadcast_case((1, 5), (4, 5)),
            "a column": broadcast_case((4, 1), (4, 6)),
            "two axes": broadcast_case((1, 3, 1), (2, 3, 5)),
            "nothing to stretch": broadcast_case((2, 3), (2, 3)),
            "one element": broadcast_case((1, 1), (3, 2)),
        },
    ),
    view_test(
        "hw3.views::broadcast_to_more_axes",
        "Axes that are added on the left.",
        {
            "a vector": broadcast_case((3,), (4, 3)),
            "a matrix": broadcast_case((1, 3), (2, 4, 3)),
            "a number": broadcast_case((), (2, 3)),
        },
    ),
    view_test(
        "hw3.views::broadcast_of_a_view",
        "The offset and the strides of a slice are kept.",
        {
            "a column of a matrix": (
                (4, 6),
                lambda a: a[1:4, 2:3].broadcast_to((3, 5)),
                lambda a: np.broadcast_to(a[1:4, 2:3], (3, 5)),
            ),
            "every second row": (
                (6, 1),
                lambda a: a[::2].broadcast_to((3, 4)),
                lambda a: np.broadcast_to(a[::2], (3, 4)),
            ),
        },
    ),
    view_test(
        "hw3.views::slices",
        "Starts, stops and steps.",
        {
            "a[1:4]": index_case((6,), S(1, 4)),
            "a[1:4, 2:5]": index_case((5, 6), S(1, 4), S(2, 5)),
            "a[::2, 1::3]": index_case((5, 8), S(None, None, 2), S(1, None, 3)),
            "a[1:8:3]": index_case((10, 2), S(1, 8, 3)),
            "a[2:100]": index_case((5, 2), S(2, 100)),
            "a[..., 1:3]": index_case((2, 3, 4), ..., S(1, 3)),
            "a[1:2]": index_case((3, 4), S(1, 2)),
        },
    ),
    view_test(
        "hw3.views::integers",
        "An integer keeps its axis, with size 1.",
        {
            "a[2]": index_case((4, 5), 2),
            "a[0, 3]": index_case((4, 5), 0, 3),
            "a[1, 1:3]": index_case((4, 5), 1, S(1, 3)),
            "a[-1]": index_case((4, 5), -1),
            "a[-2, -3]": index_case((4, 5), -2, -3),
            "a[1, 2, 3]": index_case((2, 3, 4), 1, 2, 3),
        },
    ),
    view_test(
        "hw3.views::negative_steps",
        "Negative starts, stops and steps.",
        {
            "a[::-1]": index_case((6,), S(None, None, -1)),
            "a[4:1:-1]": index_case((6,), S(4, 1, -1)),
            "a[-3:-1]": index_case((6, 2), S(-3, -1)),
            "a[::-2, 1:]": index_case((7, 3), S(None, None, -2), S(1, None)),
            "a[3::-3, ::-1]": index_case((5, 4), S(3, None, -3), S(None, None, -1)),
        },
    ),
    view_test(
        "hw3.views::slices_of_slices",
        "A slice of a view: strides multiply, offsets add up.",
        {
            "twice": ((9, 9), lambda a: a[1:8:2, 2:][1:3, ::3]),
            "backwards twice": ((7,), lambda a: a[::-1][::-1]),
            "of a transposed one": (
                (5, 6),
                lambda a: a.permute((1, 0))[1:5:2, 2:],
                lambda a: a.T[1:5:2, 2:],
            ),
            "of a stretched one": (
                (4, 1),
                lambda a: a.broadcast_to((4, 5))[1:3, 2:4],
                lambda a: np.broadcast_to(a, (4, 5))[1:3, 2:4],
            ),
        },
    ),
    view_test(
        "hw3.views::no_element",
        "A slice that selects nothing.",
        {
            "a[2:2]": index_case((4, 3), S(2, 2)),
            "a[3:1]": index_case((4, 3), S(3, 1)),
            "a[9:, 1:2]": index_case((4, 3), S(9, None), S(1, 2)),
        },
    ),
]


@graded("hw3.views::writing_through")
class WritingThrough:
    """A write to a view is a write to its array: slices, and `flat`."""

    def inputs(rng):
        return {"a": rng.standard_normal((4, 6), "float32")}

    def probe(nd, inputs):
        sliced = nd.array(inputs["a"], device=nd.cpu_numpy())
        sliced[1:3, ::2] = 7.0
        sliced[0, 1:4] = nd.array(np.array([[1, 2, 3]]), device=nd.cpu_numpy())
        flat = nd.array(inputs["a"], device=nd.cpu_numpy())
        flat.flat[7] += 5.0
        permuted = nd.array(inputs["a"], device=nd.cpu_numpy())
        permuted.permute((1, 0))[5, 2] = 9.0
        return {"sliced": sliced.numpy(), "flat": flat.numpy(), "permuted": permuted.numpy()}

    def check(inputs, outputs):
        expected = inputs["a"].copy()
        expected[1:3, ::2] = 7.0
        expected[0, 1:4] = [1, 2, 3]
        equal("the array after writes to slices", outputs["sliced"], expected)
        expected = inputs["a"].copy()
        expected.reshape(-1)[7] += np.float32(5.0)
        equal("the array after flat[7] += 5", outputs["flat"], expected)
        expected = inputs["a"].copy()
        expected[2, 5] = 9.0
        equal("the array after a write to its transposed view", outputs["permuted"], expected)
