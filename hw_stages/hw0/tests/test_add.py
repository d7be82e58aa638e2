"""hw0.add: numbers and arrays."""

import numpy as np

from needle_course.testing import close, equal, graded


@graded("hw0.add::numbers")
class Numbers:
    """Two floats give a float, two ints an int."""

    def inputs(rng):
        return {"x": float(rng.integers(1, 9)), "n": int(rng.integers(1, 9))}

    def probe(simple_ml, inputs):
        x, n = inputs["x"], inputs["n"]
        mixed = simple_ml.add(x, n)
        return {"mixed": mixed, "type": type(mixed).__name__, "whole": simple_ml.add(n, n)}

    def check(inputs, outputs):
        close("add(x, n)", outputs["mixed"], inputs["x"] + inputs["n"])
        equal("the type of add(x, n)", outputs["type"], "float")
        equal("add(n, n)", outputs["whole"], 2 * inputs["n"])


@graded("hw0.add::arrays")
class Arrays:
    """Arrays are added element by element."""

    def inputs(rng):
        return {"x": rng.standard_normal((3, 4)), "y": rng.standard_normal((3, 4))}

    def probe(simple_ml, inputs):
        return {"sum": simple_ml.add(inputs["x"], inputs["y"])}

    def check(inputs, outputs):
        expected = inputs["x"] + inputs["y"]
        close("add(x, y)", outputs["sum"], np.asarray(expected), **inputs)
