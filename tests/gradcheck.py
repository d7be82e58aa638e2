"""Gradients and values of any function of Tensors against float64 central differences and numpy.

Runs on `cpu_numpy()` with dtype float64, or on raw numpy under NEEDLE_BACKEND=np. The inputs are
the caller's and out_grad is random: neither a forgotten factor nor an ignored out_grad can hide.
"""

import math

import numpy as np

from needle.autograd import Tensor, TensorTuple
from needle.backend_selection import BACKEND, cpu_numpy

# Of a central difference with this step and float64: rounding 1e-16 / EPS, truncation EPS ** 2.
EPS = 1e-5
TOLERANCE = 1e-7


def tensor64(values, requires_grad=True):
    """Return a float64 Tensor on the device of the specification."""
    device = cpu_numpy() if BACKEND == "nd" else None
    values = np.asarray(values, dtype=np.float64)
    return Tensor(values, device=device, dtype="float64", requires_grad=requires_grad)


def constant64(values):
    """Return a float64 Tensor that requires no gradient."""
    return tensor64(values, requires_grad=False)


def check_values(function, reference, *arrays, **kwargs):
    """Compare value, shape and dtype of `function` on Tensors with `reference` on numpy arrays."""
    outputs = outputs_of(function(*(tensor64(a) for a in arrays), **kwargs))
    wanted = reference(*(np.asarray(a, dtype=np.float64) for a in arrays), **kwargs)
    wanted = list(wanted) if isinstance(wanted, tuple | list) else [wanted]
    assert len(outputs) == len(wanted), f"{len(outputs)} outputs, expected {len(wanted)}"
    for i, (output, expected) in enumerate(zip(outputs, wanted, strict=True)):
        compare(f"[{name_of(function, output)}] output {i}", output, np.asarray(expected), 1e-12)


def check_gradients(function, *arrays, rng, **kwargs):
    """Compare the gradient of each input with central differences, for a random out_grad.

    Args:
        function: takes one Tensor an array, and `kwargs`; returns a Tensor, a TensorTuple or a
            tuple of Tensors.
        arrays: the inputs; points where the function has no derivative are the caller's to avoid.
        rng: draws out_grad.
    """
    arrays = [np.array(a, dtype=np.float64) for a in arrays]
    inputs = [tensor64(a) for a in arrays]
    outputs = outputs_of(function(*inputs, **kwargs))
    out_grads = [rng.standard_normal(y.shape) for y in outputs]
    name = name_of(function, outputs[0])
    for y in outputs:
        assert y.requires_grad, f"[{name}] forgot the graph: its result requires no gradient"
    backward_from(outputs, out_grads)
    for i, (x, array) in enumerate(zip(inputs, arrays, strict=True)):
        assert x.grad is not None, f"[{name}] input {i} got no gradient"

        def weighted_sum(values, i=i):
            """Return what `backward` differentiates, with input `i` replaced."""
            replaced = [tensor64(values if j == i else a) for j, a in enumerate(arrays)]
            results = outputs_of(function(*replaced, **kwargs))
            pairs = zip(results, out_grads, strict=True)
            return sum(float((y.numpy() * g).sum()) for y, g in pairs)

        compare(f"[{name}] input {i}", x.grad, differences(weighted_sum, array), TOLERANCE)


def backward_from(outputs, out_grads):
    """Run backward with an out_grad for each output."""
    if len(outputs) == 1:
        outputs[0].backward(constant64(out_grads[0]))
        return
    total = None
    for y, g in zip(outputs, out_grads, strict=True):
        part = (y * constant64(g)).sum()
        total = part if total is None else total + part
    total.backward()


def differences(scalar_function, array):
    """Return the derivative of `scalar_function` by each element, by central differences."""
    result = np.zeros_like(array)
    for at in np.ndindex(array.shape):
        above, below = array.copy(), array.copy()
        above[at] += EPS
        below[at] -= EPS
        result[at] = (scalar_function(above) - scalar_function(below)) / (2 * EPS)
    return result


def compare(what, got, expected, tolerance):
    """Fail with the element, expected and got, unless shape, dtype and values agree."""
    values = got.numpy()
    assert values.shape == expected.shape, (
        f"{what}: shape {values.shape}, expected {expected.shape}"
    )
    assert got.dtype == "float64", f"{what}: dtype {got.dtype}, expected float64"
    errors = np.abs(values - expected) / (1 + np.abs(expected))
    same = (values == expected) | (np.isnan(values) & np.isnan(expected))
    wrong = ~(same | (errors <= tolerance))
    if not wrong.any():
        return
    at = np.unravel_index(
        np.argmax(np.where(wrong, np.nan_to_num(errors, nan=math.inf), -1)), wrong.shape
    )
    raise AssertionError(
        f"{what}, element {tuple(int(k) for k in at)}: expected {expected[at]:.10g}, "
        f"got {values[at]:.10g}; {wrong.sum()} of {wrong.size} elements are wrong"
    )


def outputs_of(result):
    """Return what a function returned as a list of Tensors."""
    if isinstance(result, TensorTuple | tuple | list):
        return list(result)
    return [result]


def name_of(function, output):
    """Return what a failure calls the function: its name, or the op of its output."""
    name = getattr(function, "__name__", type(function).__name__)
    if name != "<lambda>":
        return name
    return type(output.op).__name__ if output.op is not None else name
