"""The one form of graded test: `inputs` and `probe` run beside the answer, `check` on our side.

Tests run with the top folder of the tree as the working directory, on both sides, so
`data/digits/...` may be named as such. Nothing here imports an answer.
"""

from __future__ import annotations

import inspect
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

__all__ = ["GradedTest", "Mismatch", "close", "equal", "fail", "graded", "gradient_of"]

Inputs = Callable[[np.random.Generator], dict[str, Any]]
Probe = Callable[[Any, dict[str, Any]], dict[str, Any]]
Check = Callable[[dict[str, Any], dict[str, Any]], None]

_TEST_ID = re.compile(r"hw\d+\.[a-z][a-z0-9_]*::[a-z0-9][a-z0-9_.]*")


class Mismatch(AssertionError):
    """Says that outputs are not what was asked for.

    Args:
        message: what differs.
        verdict: "fail", "wrong_shape" or "wrong_dtype".
        detail: further lines: the index, what was expected, what was got.
    """

    def __init__(self, message: str, verdict: str = "fail", detail: Sequence[str] = ()) -> None:
        super().__init__("\n".join((message, *detail)))
        self.message = message
        self.verdict = verdict
        self.detail = list(detail)


class GradedTest:
    """One test of one question.

    Args:
        id: "hw1.backward::power_scalar", the question and the test's name in it.
        inputs: takes a numpy Generator, returns what `probe` gets; called on both sides.
        probe: takes the student's module and the inputs, returns named outputs: numpy arrays,
            numbers, strings, None, or lists, tuples and dicts of them.
        check: takes inputs and outputs, raises through `close`, `equal` or `fail`.
        doc: one sentence, shown to the student.
        seconds: what the taught answer takes, if that is more than half a second.
    """

    def __init__(
        self,
        id: str,  # noqa: A002 - the vocabulary of the course
        inputs: Inputs,
        probe: Probe,
        check: Check,
        doc: str = "",
        seconds: float = 0.0,
    ) -> None:
        if not _TEST_ID.fullmatch(id):
            raise ValueError(f"[graded] {id!r} is not like hw1.backward::power_scalar")
        self.id = id
        self.inputs = inputs
        self.probe = probe
        self.check = check
        self.doc = inspect.cleandoc(doc)
        self.seconds = seconds

    def __repr__(self) -> str:
        return f"GradedTest({self.id!r})"

    @property
    def question(self) -> str:
        """The question that this test belongs to."""
        return self.id.split("::")[0]

    @property
    def seed(self) -> int:
        """The seed of this test where none is given: always the same."""
        return zlib.crc32(self.id.encode()) % 10_000


def graded(id: str) -> Callable[[type], GradedTest]:  # noqa: A002 - the vocabulary of the course
    """Return a decorator that makes a GradedTest of a class with `inputs`, `probe` and `check`.

    The class may set `seconds`. Its docstring says what is tested.
    """

    def decorate(form: type) -> GradedTest:
        parts = vars(form)
        missing = [name for name in ("inputs", "probe", "check") if name not in parts]
        if missing:
            raise TypeError(f"[graded] {id} has no {', '.join(missing)}")
        # A class body may hold plain functions or staticmethods.
        inputs, probe, check = (
            getattr(parts[name], "__func__", parts[name]) for name in ("inputs", "probe", "check")
        )
        seconds = parts.get("seconds", 0.0)
        return GradedTest(id, inputs, probe, check, form.__doc__ or "", seconds)

    return decorate


def fail(message: str, *detail: str) -> NoReturn:
    """Raise Mismatch with a message and further lines."""
    raise Mismatch(message, detail=detail)


def close(
    what: str,
    got: Any,
    expected: Any,
    /,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    dtype: str | None = None,
    **inputs: Any,
) -> None:
    """Compare numbers: their shape, their dtype if one is given, then each value.

    Values pass where |got - expected| <= atol + rtol * |expected|; NaN equals NaN. `inputs` are
    named arrays: those of the same shape are shown at the index that differs. Raises Mismatch.
    """
    expected = np.asarray(expected)
    got = _numbers(what, got, expected)
    if dtype is not None and got.dtype != np.dtype(dtype):
        raise Mismatch(
            f"{what} has the wrong dtype",
            "wrong_dtype",
            [f"dtype   expected {np.dtype(dtype)}   got {got.dtype}"],
        )
    with np.errstate(all="ignore"):
        right = np.isclose(got, expected, rtol=rtol, atol=atol, equal_nan=True)
    if not right.all():
        raise Mismatch(f"{what} is wrong", "fail", _value_lines(got, expected, right, inputs))


def equal(what: str, got: Any, expected: Any, /) -> None:
    """Compare exactly: arrays by shape and value, anything else by ==; a list equals a tuple.

    Raises Mismatch.
    """
    if isinstance(expected, np.ndarray):
        got = _numbers(what, got, expected)
        right = got == expected
        if expected.dtype.kind in "fc":
            right |= np.isnan(got) & np.isnan(expected)
        if not np.all(right):
            raise Mismatch(
                f"{what} is wrong", "fail", _value_lines(got, expected, np.asarray(right), {})
            )
    elif isinstance(got, np.ndarray) and got.size != 1:
        raise Mismatch(
            f"{what} has the wrong shape",
            "wrong_shape",
            [f"expected {_short(expected)}   got an array of shape {got.shape}"],
        )
    elif _plain(got) != _plain(expected):
        raise Mismatch(
            f"{what} is wrong", "fail", [f"expected {_short(expected)}", f"got      {_short(got)}"]
        )


def gradient_of(
    function: Callable[..., Any], arrays: Sequence[Any], out_grad: Any, step: float = 1e-5
) -> list[np.ndarray]:
    """Return d sum(function(*arrays) * out_grad) / d array for each array, in float64.

    Central differences of a numpy function: two calls for each element, so keep the arrays small.
    """
    values = [np.array(array, dtype=np.float64) for array in arrays]
    weights = np.asarray(out_grad, dtype=np.float64)
    out_shape = np.shape(function(*values))
    if weights.shape != out_shape:
        raise ValueError(
            f"[gradient_of] out_grad has shape {weights.shape}, the function gives {out_shape}"
        )
    gradients = []
    for value in values:
        gradient = np.zeros_like(value)
        for index in np.ndindex(*value.shape):
            kept = value[index]
            value[index] = kept + step
            above = np.sum(function(*values) * weights)
            value[index] = kept - step
            below = np.sum(function(*values) * weights)
            value[index] = kept
            gradient[index] = (above - below) / (2 * step)
        gradients.append(gradient)
    return gradients


def _numbers(what: str, got: Any, expected: np.ndarray) -> np.ndarray:
    """Return `got` as an array of numbers with the expected shape, or raise Mismatch."""
    try:
        array = np.asarray(got)
    except ValueError:
        array = np.empty((), dtype=object)
    if array.dtype.kind not in "biufc":
        raise Mismatch(
            f"{what} is not an array of numbers",
            "wrong_dtype",
            [f"expected {expected.dtype} of shape {expected.shape}   got {_short(got)}"],
        )
    if array.shape != expected.shape:
        raise Mismatch(f"{what} has the wrong shape", "wrong_shape", _shape_lines(array, expected))
    return array


def _shape_lines(got: np.ndarray, expected: np.ndarray) -> list[str]:
    lines = [f"shape   expected {expected.shape}   got {got.shape}"]
    try:
        fits = np.broadcast_shapes(got.shape, expected.shape) == expected.shape
    except ValueError:
        fits = False
    if got.shape == expected.shape[::-1]:
        lines.append("looks like: transposed")
    elif fits:
        lines.append("numpy would broadcast this silently: a sum or a broadcast is missing")
    elif got.ndim > expected.ndim or got.size > expected.size:
        lines.append("looks like: not summed over the axes that were broadcast")
    return lines


def _value_lines(
    got: np.ndarray, expected: np.ndarray, right: np.ndarray, inputs: dict[str, Any]
) -> list[str]:
    """Say where the values differ first, how many do, and what the difference looks like."""
    wrong = int(right.size - np.count_nonzero(right))
    index = tuple(int(i) for i in np.argwhere(~right)[0])
    at = f"at {index}: " if index else ""
    lines = [f"{at}expected {_number(expected[index])}   got {_number(got[index])}"]
    for name, value in inputs.items():
        if isinstance(value, np.ndarray) and value.shape == expected.shape and value.ndim:
            lines[0] += f"   {name} {_number(value[index])}"
    if right.size > 1:
        lines.append(f"{wrong} of {right.size} values differ; shape {expected.shape}")
    guess = _looks_like(got, expected)
    return [*lines, f"looks like: {guess}"] if guess else lines


def _looks_like(got: np.ndarray, expected: np.ndarray) -> str:
    """Return a likely mistake, or "" where nothing simple explains the difference."""
    with np.errstate(all="ignore"):
        a, b = got.astype(np.complex128), expected.astype(np.complex128)
        finite = np.isfinite(a) & np.isfinite(b)
        if not finite.all():
            return "" if np.isfinite(a).all() else "an overflow, or a division by zero"
        if not np.abs(b).max() > 0:
            return ""
        if not a.any():
            return "all zeros: never written"
        if np.allclose(a, -b, rtol=1e-4):
            return "the wrong sign"
        if a.ndim == 2 and a.shape[0] == a.shape[1] and np.allclose(a, b.T, rtol=1e-4):
            return "transposed"
        factor = np.vdot(b, a) / np.vdot(b, b)
        if a.size > 1 and factor != 0 and np.allclose(a, factor * b, rtol=1e-3):
            return f"off by a factor of {factor.real:.4g}"
        shift = (a - b).mean()
        if a.size > 1 and np.allclose(a, b + shift, rtol=1e-3):
            return f"off by a constant {shift.real:+.4g}"
    return ""


def _plain(value: Any) -> Any:
    """Return a value with arrays, numpy scalars and tuples turned into lists and plain numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist() if value.ndim == 0 or value.size != 1 else value.reshape(()).tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return value


def _number(value: Any) -> str:
    return f"{value:.8g}" if np.asarray(value).dtype.kind == "f" else str(value)


def _short(value: Any, width: int = 200) -> str:
    if isinstance(value, np.ndarray) and value.ndim:
        return f"{value.dtype} array of shape {value.shape}"
    text = repr(_plain(value) if isinstance(value, np.generic | np.ndarray) else value)
    return text if len(text) <= width else f"{text[: width - 1]}…"
