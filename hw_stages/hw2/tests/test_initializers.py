"""hw2.initializers: how wide the four initialisers spread, their shape, dtype and single draw."""

import numpy as np

from needle_course.testing import GradedTest, close, equal, graded

FACTORS = {
    "xavier_uniform": lambda fan_in, fan_out, gain: gain * np.sqrt(6 / (fan_in + fan_out)),
    "xavier_normal": lambda fan_in, fan_out, gain: gain * np.sqrt(2 / (fan_in + fan_out)),
    "kaiming_uniform": lambda fan_in, fan_out, gain: np.sqrt(6 / fan_in),
    "kaiming_normal": lambda fan_in, fan_out, gain: np.sqrt(2 / fan_in),
}


def drawn(name, seed, shape, factor):
    """Return the numbers that an initialiser makes from numpy's generator after a seed."""
    source = np.random.RandomState(seed)
    if name.endswith("uniform"):
        return (2 * source.rand(*shape) - 1) * factor
    return source.randn(*shape) * factor


def spread_test(name):
    """Return the test of one initialiser: every number, from a seed."""

    def inputs(rng):
        return {
            "fan_in": int(rng.integers(3, 9)),
            "fan_out": int(rng.integers(10, 15)),
            "gain": float(rng.uniform(1.5, 3)) if name.startswith("xavier") else 1.0,
            "seed": int(rng.integers(1000)),
        }

    def probe(ndl, inputs):
        np.random.seed(inputs["seed"])
        keywords = {"gain": inputs["gain"]} if name.startswith("xavier") else {}
        values = getattr(ndl.init, name)(inputs["fan_in"], inputs["fan_out"], **keywords)
        return {"values": values.numpy(), "next": float(np.random.rand())}

    def check(inputs, outputs):
        shape = (inputs["fan_in"], inputs["fan_out"])
        factor = FACTORS[name](*shape, inputs["gain"])
        expected = drawn(name, inputs["seed"], shape, factor)
        close(f"{name}{shape}", outputs["values"], expected, dtype="float32")
        source = np.random.RandomState(inputs["seed"])
        (source.rand if name.endswith("uniform") else source.randn)(*shape)
        close("the next number of np.random", outputs["next"], source.rand(), rtol=1e-12)

    return GradedTest(
        f"hw2.initializers::{name}", inputs, probe, check, f"Every number of {name}, and one draw."
    )


TESTS = [spread_test(name) for name in FACTORS]


@graded("hw2.initializers::default_gain")
class DefaultGain:
    """Without a gain, Xavier's is 1."""

    def inputs(rng):
        return {"seed": int(rng.integers(1000))}

    def probe(ndl, inputs):
        outputs = {}
        for name in ("xavier_uniform", "xavier_normal"):
            np.random.seed(inputs["seed"])
            outputs[name] = getattr(ndl.init, name)(4, 5).numpy()
        return outputs

    def check(inputs, outputs):
        for name, values in outputs.items():
            close(name, values, drawn(name, inputs["seed"], (4, 5), FACTORS[name](4, 5, 1.0)))


@graded("hw2.initializers::keywords")
class Keywords:
    """dtype, requires_grad and shape are handed on; the fans still set the spread."""

    def inputs(rng):
        return {"seed": int(rng.integers(1000)), "shape": (3, 2, 4)}

    def probe(ndl, inputs):
        outputs = {}
        for name in FACTORS:
            np.random.seed(inputs["seed"])
            values = getattr(ndl.init, name)(
                7, 5, shape=inputs["shape"], dtype="float64", requires_grad=True
            )
            outputs[name] = (values.numpy(), values.requires_grad)
        return outputs

    def check(inputs, outputs):
        for name, (values, requires_grad) in outputs.items():
            expected = drawn(name, inputs["seed"], inputs["shape"], FACTORS[name](7, 5, 1.0))
            close(name, values, expected, rtol=1e-12, dtype="float64")
            equal(f"{name}(..., requires_grad=True).requires_grad", requires_grad, True)
