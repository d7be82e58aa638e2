"""Drawn at random: shapes, axes, slices and chains of views, each step compared with numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from needle import backend_ndarray as nd

shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def numbered(shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


@st.composite
def indices(draw, shape):
    """An index that numpy reads alike: slices and perhaps one ellipsis."""
    entries = [
        slice(
            draw(st.none() | st.integers(-n - 2, n + 2)),
            draw(st.none() | st.integers(-n - 2, n + 2)),
            draw(st.none() | st.integers(-3, 3).filter(bool)),
        )
        for n in shape
    ]
    kept = draw(st.integers(0, len(entries)))
    # An empty index has the ellipsis, or numpy would make a number of an array without axes.
    return (*entries[:kept], ...) if not kept or draw(st.booleans()) else tuple(entries[:kept])


@st.composite
def positions(draw, shape):
    """Integers and slices mixed, and what numpy must be given so that no axis is lost."""
    ours, numpys = [], []
    for n in shape:
        if n and draw(st.booleans()):
            i = draw(st.integers(-n, n - 1))
            ours.append(i)
            numpys.append(slice(i, i + 1 or None))
        else:
            part = slice(draw(st.none() | st.integers(-n, n)), draw(st.none() | st.integers(-n, n)))
            ours.append(part)
            numpys.append(part)
    return tuple(ours), tuple(numpys)


@st.composite
def steps(draw, shape, writable=False):
    """One way to make a view of an array of `shape`: what NDArray does, and what numpy does."""
    kinds = ["slice", "permute", "flip"] + ([] if writable else ["broadcast"])
    kind = draw(st.sampled_from(kinds))
    if kind == "slice":
        index = draw(indices(shape))
        return lambda a: a[index], lambda a: a[index]
    if kind == "permute":
        order = draw(st.permutations(range(len(shape))))
        return lambda a: a.permute(order), lambda a: a.transpose(order)
    if kind == "flip":
        axes = draw(st.sets(st.integers(0, len(shape) - 1)) if shape else st.just(set()))
        return lambda a: a.flip(tuple(axes)), lambda a: np.flip(a, tuple(axes)) if axes else a
    target = tuple(draw(st.integers(1, 3)) if n == 1 else n for n in shape)
    target = (2, *target) if draw(st.booleans()) and len(shape) < 5 else target
    return lambda a: a.broadcast_to(target), lambda a: np.broadcast_to(a, target)


@st.composite
def chains(draw, writable=False):
    """A shape and up to four views of it, one of the other."""
    shape = draw(shapes)
    array, chain = np.empty(shape), []
    for _ in range(draw(st.integers(1, 4))):
        step = draw(steps(array.shape, writable))
        array = step[1](array)
        chain.append(step)
    return shape, chain


def apply(chain, side, array):
    for step in chain:
        array = step[side](array)
    return array


@given(drawn=chains())
def test_a_chain_of_views_shows_what_numpy_shows(device, drawn):
    shape, chain = drawn
    a, want = nd.array(numbered(shape), device=device), apply(chain, 1, numbered(shape))
    view = apply(chain, 0, a)
    assert view.shape == want.shape
    assert view._handle is a._handle or not want.size
    np.testing.assert_array_equal(view.numpy(), want)
    np.testing.assert_array_equal(view.compact().numpy(), want)
    np.testing.assert_array_equal((view + 1).numpy(), want + 1)
    np.testing.assert_array_equal((view * view).numpy(), want * want)
    if want.size:
        strides = [s // 4 for s, n in zip(want.strides, want.shape, strict=True) if n > 1]
        assert [s for s, n in zip(view.strides, view.shape, strict=True) if n > 1] == strides
    if view.is_compact():
        assert view.reshape((want.size,))._handle is view._handle


@given(drawn=chains(writable=True), value=st.sampled_from([7.0, "numpy", "array"]))
def test_writing_through_a_chain_of_views(device, drawn, value):
    shape, chain = drawn
    source = numbered(shape)
    a = nd.array(source, device=device)
    view, target = apply(chain, 0, a), apply(chain, 1, source)
    written = value
    if value != 7.0:
        written = -1 - numbered(target.shape)
        view[...] = written if value == "numpy" else nd.array(written, device=device)
    else:
        view[...] = value
    target[...] = written
    np.testing.assert_array_equal(a.numpy(), source)


@given(drawn=chains(writable=True), data=st.data())
def test_writing_one_view_of_a_buffer_into_another(device, drawn, data):
    """As if the source were copied first, wherever the two overlap."""
    shape, chain = drawn
    source = numbered(shape)
    a = nd.array(source, device=device)
    view, target = apply(chain, 0, a), apply(chain, 1, source)
    axes = data.draw(st.sets(st.integers(0, view.ndim - 1)) if view.ndim else st.just(set()))
    view[...] = view.flip(tuple(axes))
    target[...] = np.flip(target, tuple(axes)).copy() if axes else target
    np.testing.assert_array_equal(a.numpy(), source)


@given(data=st.data())
def test_integers_and_slices(device, data):
    shape = data.draw(shapes)
    ours, numpys = data.draw(positions(shape))
    a, source = nd.array(numbered(shape), device=device), numbered(shape)
    np.testing.assert_array_equal(a[ours].numpy(), source[numpys])
    a[ours], source[numpys] = -1.0, -1.0
    np.testing.assert_array_equal(a.numpy(), source)


def axes_of(ndim):
    """None, an axis or several."""
    if not ndim:
        return st.none()
    several = st.lists(st.integers(0, ndim - 1), min_size=1, unique=True).map(tuple)
    return st.none() | st.integers(-ndim, ndim - 1) | several


@pytest.mark.parametrize("name", ["sum", "max", "min"])
@given(drawn=chains(), data=st.data(), keepdims=st.booleans())
def test_reductions_of_views(device, name, drawn, data, keepdims):
    shape, chain = drawn
    want = apply(chain, 1, numbered(shape))
    view = apply(chain, 0, nd.array(numbered(shape), device=device))
    axes = data.draw(axes_of(want.ndim))
    reduced = range(want.ndim) if axes is None else [axes] if isinstance(axes, int) else axes
    if name != "sum" and any(want.shape[axis] == 0 for axis in reduced):
        with pytest.raises(ValueError, match=rf"\[{name}\] shape .* is empty along"):
            getattr(view, name)(axes, keepdims)
        return
    got = getattr(view, name)(axes, keepdims).numpy()
    expected = getattr(want, name)(axis=axes, keepdims=keepdims)
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)


@given(drawn=hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4, min_side=0))
def test_broadcasting_of_two_operands(device, drawn):
    a, b = (numbered(shape) for shape in drawn.input_shapes)
    x, y = nd.array(a, device=device), nd.array(b, device=device)
    got = x - y
    assert got.shape == drawn.result_shape
    np.testing.assert_array_equal(got.numpy(), a - b)
    np.testing.assert_array_equal((x >= y).numpy(), a >= b)


products = hnp.mutually_broadcastable_shapes(
    signature="(m,n),(n,p)->(m,p)", max_dims=2, max_side=9, min_side=0
)


@given(drawn=products)
def test_matmul_of_drawn_shapes(device, drawn):
    a, b = (numbered(shape) % 7 - 3 for shape in drawn.input_shapes)
    got = nd.array(a, device=device) @ nd.array(b, device=device)
    assert got.shape == drawn.result_shape
    np.testing.assert_array_equal(got.numpy(), a @ b)


@given(data=st.data())
def test_reshape_of_drawn_shapes(device, data):
    shape = data.draw(shapes)
    size = int(np.prod(shape, dtype=int))
    target = data.draw(st.lists(st.sampled_from([-1, 0, 1, 2, 3, 4, size]), max_size=4).map(tuple))
    a, source = nd.array(numbered(shape), device=device), numbered(shape)
    try:
        want = source.reshape(target)
    except ValueError:
        with pytest.raises(ValueError, match=r"\[reshape\]"):
            a.reshape(target)
    else:
        got = a.reshape(target)
        assert got._handle is a._handle
        np.testing.assert_array_equal(got.numpy(), want)


@given(data=st.data())
def test_pad_of_drawn_shapes(device, data):
    shape = data.draw(hnp.array_shapes(max_dims=3, max_side=3, min_side=0))
    axes = tuple(data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in shape)
    a = numbered(shape) + 1
    np.testing.assert_array_equal(nd.array(a, device=device).pad(axes).numpy(), np.pad(a, axes))
