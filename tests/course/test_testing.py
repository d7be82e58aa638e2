"""The form of a graded test: what it compares, and what it says where things differ."""

import numpy as np
import pytest

from needle_course.testing import GradedTest, Mismatch, close, equal, fail, graded, gradient_of

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


def mismatch(compare, *arguments, **options):
    with pytest.raises(Mismatch) as caught:
        compare(*arguments, **options)
    return caught.value


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (MATRIX, MATRIX),
        (MATRIX.tolist(), MATRIX),
        (MATRIX.astype(np.float64) + 1e-7, MATRIX),
        (3, np.float32(3)),
        (np.array([np.nan, np.inf]), np.array([np.nan, np.inf])),
        (np.zeros((0, 3)), np.zeros((0, 3))),
    ],
)
def test_close_accepts(got, expected):
    close("x", got, expected)


@pytest.mark.parametrize(
    ("got", "verdict", "says"),
    [
        (MATRIX[:1], "wrong_shape", "shape   expected (2, 3)   got (1, 3)"),
        (MATRIX[:1], "wrong_shape", "numpy would broadcast this silently"),
        (MATRIX.T, "wrong_shape", "looks like: transposed"),
        (np.zeros((4, 2, 3)), "wrong_shape", "not summed over the axes"),
        ("text", "wrong_dtype", "got 'text'"),
        (None, "wrong_dtype", "got None"),
        ([[1], [1, 2]], "wrong_dtype", "expected float32"),
        (-MATRIX, "fail", "looks like: the wrong sign"),
        (MATRIX * 2, "fail", "off by a factor of 2"),
        (MATRIX + 1, "fail", "off by a constant +1"),
        (MATRIX * 0, "fail", "all zeros"),
        (
            MATRIX + np.float32([[0, 0, 0], [0, np.nan, 0]]),
            "fail",
            "at (1, 1): expected 4   got nan",
        ),
        (MATRIX + np.eye(2, 3) * [[0], [9]], "fail", "1 of 6 values differ"),
    ],
)
def test_close_refuses(got, verdict, says):
    error = mismatch(close, "the matrix", got, MATRIX)
    assert error.verdict == verdict
    assert error.message.startswith("the matrix ")
    assert says in "\n".join(error.detail)


def test_close_asks_for_a_dtype_where_one_is_given():
    close("x", MATRIX, MATRIX, dtype="float32")
    error = mismatch(close, "x", MATRIX.astype(np.float64), MATRIX, dtype="float32")
    assert error.verdict == "wrong_dtype"
    assert error.detail == ["dtype   expected float32   got float64"]


def test_close_shows_the_inputs_of_the_same_shape_at_the_index():
    wrong = MATRIX.copy()
    wrong[1, 2] = 9
    error = mismatch(close, "x", wrong, MATRIX, a=MATRIX * 10, b=np.ones(3))
    assert error.detail[0] == "at (1, 2): expected 5   got 9   a 50"


def test_a_square_matrix_may_be_transposed():
    square = np.arange(4.0).reshape(2, 2)
    assert "looks like: transposed" in mismatch(close, "x", square.T, square).detail


def test_tolerances_are_those_asked_for():
    close("x", np.array([1.01]), np.array([1.0]), rtol=0.1)
    mismatch(close, "x", np.array([1.01]), np.array([1.0]))


@pytest.mark.parametrize(
    ("got", "expected"),
    [((1, 2), [1, 2]), ([(1,), 2], ((1,), 2)), ("a", "a"), (np.int64(3), 3), (MATRIX, MATRIX)],
)
def test_equal_accepts(got, expected):
    equal("x", got, expected)


@pytest.mark.parametrize(
    ("got", "expected", "verdict"),
    [
        ((1, 2), (1, 3), "fail"),
        (MATRIX + 1e-6, MATRIX + 1, "fail"),
        (MATRIX[0], MATRIX, "wrong_shape"),
        (MATRIX, 3, "wrong_shape"),
        (None, 3, "fail"),
    ],
)
def test_equal_refuses(got, expected, verdict):
    assert mismatch(equal, "x", got, expected).verdict == verdict


def test_fail_says_what_it_is_told():
    error = mismatch(fail, "no", "one", "two")
    assert (error.message, error.detail, error.verdict) == ("no", ["one", "two"], "fail")


def test_gradient_of_is_the_gradient():
    rng = np.random.default_rng(0)
    a, b, out_grad = (
        rng.standard_normal((2, 3)),
        rng.standard_normal((3,)),
        np.float32([[1] * 3] * 2),
    )
    of_a, of_b = gradient_of(lambda x, y: x * y**3, [a, b], out_grad)
    np.testing.assert_allclose(of_a, np.broadcast_to(b**3, (2, 3)), atol=1e-8)
    np.testing.assert_allclose(of_b, (a * 3 * b**2).sum(0), atol=1e-8)
    assert of_a.dtype == of_b.dtype == np.float64


def test_gradient_of_refuses_an_out_grad_of_another_shape():
    with pytest.raises(ValueError, match=r"out_grad has shape \(1,\), the function gives \(\)"):
        gradient_of(np.sum, [MATRIX], np.ones(1))


def test_graded_takes_a_class():
    @graded("hw1.backward::divide")
    class Divide:
        """The gradient of a / b."""

        seconds = 2.0

        def inputs(rng):
            return {"a": rng.integers(10)}

        @staticmethod
        def probe(ndl, inputs):
            return {"b": ndl + inputs["a"]}

        def check(inputs, outputs):
            equal("b", outputs["b"], inputs["a"])

    assert isinstance(Divide, GradedTest)
    assert (Divide.question, Divide.doc, Divide.seconds) == (
        "hw1.backward",
        "The gradient of a / b.",
        2.0,
    )
    assert Divide.probe(1, {"a": 2}) == {"b": 3}
    with pytest.raises(Mismatch):
        Divide.check({"a": 1}, {"b": 2})


def test_graded_refuses_what_is_no_test():
    with pytest.raises(TypeError, match="has no probe, check"):
        graded("hw1.q::name")(type("Part", (), {"inputs": lambda rng: {}}))
    with pytest.raises(ValueError, match="is not like hw1.backward::power_scalar"):
        GradedTest("backward", lambda rng: {}, lambda ndl, inputs: {}, lambda i, o: None)


def test_the_seed_of_a_test_is_always_the_same():
    def made(name):
        return GradedTest(name, lambda rng: {}, lambda ndl, inputs: {}, lambda i, o: None)

    assert made("hw1.backward::divide").seed == made("hw1.backward::divide").seed == 2614
    assert made("hw1.backward::add").seed != 2614
