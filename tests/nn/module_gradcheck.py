"""The gradient check of tests/gradcheck.py for modules: inputs and every parameter.

The module must have been made on `cpu_numpy()` in float64; see `FLOAT64`.
"""

import numpy as np

from needle.backend_selection import BACKEND
from tests.gradcheck import TOLERANCE, check_gradients, compare, constant64, differences

# The keyword arguments that make a module for the check.
FLOAT64 = {"device": "cpu_numpy" if BACKEND == "nd" else None, "dtype": "float64"}


def check_module(module, *arrays, rng, others=()):
    """Compare gradients of inputs and parameters with central differences, for a random out_grad.

    Args:
        module: called with a Tensor an array, then `others`; returns one Tensor.
        arrays: the inputs to differentiate by.
        rng: draws out_grad.
        others: what the module is called with besides, such as labels.
    """
    check_gradients(lambda *inputs: module(*inputs, *others), *arrays, rng=rng)

    parameters = dict(module.named_parameters())
    if not parameters:
        return
    inputs = [constant64(a) for a in arrays]
    output = module(*inputs, *others)
    out_grad = rng.standard_normal(output.shape)
    for p in parameters.values():
        p.grad = None
    output.backward(constant64(out_grad))
    for name, p in parameters.items():
        assert p.grad is not None, f"[{type(module).__name__}] {name} got no gradient"
        kept = p.data

        def weighted_sum(values, p=p):
            p.data = constant64(values)
            return float((module(*inputs, *others).numpy() * out_grad).sum())

        expected = differences(weighted_sum, kept.numpy())
        p.data = kept
        compare(f"[{type(module).__name__}] {name}", p.grad, np.asarray(expected), TOLERANCE)
