"""A course of two small stages, written to a folder: what the tests of the compiler work on."""

import textwrap
from pathlib import Path

STAGE_ONE = """
title = "Shapes"
module = "needle"
files = ["python/needle/__init__.py", "python/needle/shapes.py"]

[[questions]]
id = "hw1.area"
title = "Areas"
points = 60
regions = ["hw1.square", "hw1.circle"]
hints = ["Multiply.", "What is the area of a square of side a?"]

[[questions]]
id = "hw1.edge"
title = "Edges"
points = 40
regions = ["hw1.around"]
needs = ["hw1.area"]
hints = ["Add.", "A square has four sides."]
"""

HANDOUT_ONE = """
# Shapes

hw1.area has the regions hw1.square and hw1.circle, hw1.edge has hw1.around.
"""

STAGE_TWO = """
title = "Solids"
module = "needle"
files = ["python/needle/solids.py"]

[[questions]]
id = "hw2.volume"
title = "Volumes"
points = 100
regions = ["hw2.cube"]
hints = ["Multiply again.", "A cube is a square times its side."]
"""

PACKAGE = '''
"""Areas and volumes."""

from needle.shapes import (
    PI,  # noqa: N811 - the usual name
    around,
    circle,
    square,
    turned,
)
from needle.solids import cube

__all__ = ["PI", "around", "circle", "cube", "square", "turned"]
'''

SHAPES = '''
"""Plane shapes."""

import math
import sys

__all__ = ["PI", "around", "circle", "square", "turned"]

PI = 3


def square(side):
    """Return the area of a square."""
    ### BEGIN SOLUTION hw1.square
    area_of_square = side * side
    return area_of_square
    ### END SOLUTION


def circle(radius):
    """Return the area of a circle."""
    ### BEGIN SOLUTION hw1.circle
    return math.pi * radius**2
    ### STUB
    # radius = abs(radius)
    # raise NotImplementedError("hw1.circle")
    ### END SOLUTION


def around(side):
    """Return the length of a square's edge."""
    ### BEGIN SOLUTION hw1.around
    return 4 * square(side) / side
    ### END SOLUTION


### UNTIL hw1
# def largest():
#     """Return the largest number of the first stage."""
#     return 1000
#
#
### END UNTIL
### SINCE hw2
def largest():
    """Return the largest number from the second stage on."""
    return sys.maxsize


### END SINCE
### SINCE full
def turned(shape):
    """Return what only the full repository has."""
    return shape


### END SINCE
def smallest():
    """Return the smallest side."""
    return 0
'''

SOLIDS = '''
"""Solids."""

from needle.shapes import square


def cube(side):
    """Return the volume of a cube."""
    ### BEGIN SOLUTION hw2.cube
    return square(side) * side
    ### END SOLUTION
'''

TESTS_ONE = '''
"""Tests of areas and edges."""

from needle_course.testing import close, graded


@graded("hw1.area::square")
class Square:
    """The area of a square."""

    def inputs(rng):
        return {"side": rng.random() + 1}

    def probe(ndl, inputs):
        return {"area": ndl.square(inputs["side"])}

    def check(inputs, outputs):
        close("area", outputs["area"], inputs["side"] ** 2)


@graded("hw1.area::circle")
class Circle:
    """The area of a circle."""

    def inputs(rng):
        return {"radius": rng.random() + 1}

    def probe(ndl, inputs):
        return {"area": ndl.circle(inputs["radius"])}

    def check(inputs, outputs):
        close("area", outputs["area"], 3.14159265 * inputs["radius"] ** 2)


@graded("hw1.edge::around")
class Around:
    """The edge of a square."""

    def inputs(rng):
        return {"side": rng.random() + 1}

    def probe(ndl, inputs):
        return {"edge": ndl.around(inputs["side"])}

    def check(inputs, outputs):
        close("edge", outputs["edge"], 4 * inputs["side"])
'''

TESTS_TWO = '''
"""Tests of volumes."""

from needle_course.testing import close, graded


@graded("hw2.volume::cube")
class Cube:
    """The volume of a cube."""

    def inputs(rng):
        return {"side": rng.random() + 1}

    def probe(ndl, inputs):
        return {"volume": ndl.cube(inputs["side"])}

    def check(inputs, outputs):
        close("volume", outputs["volume"], inputs["side"] ** 3)
'''

MUTANTS_ONE = """
[[mutants]]
question = "hw1.area"
kind = "constant factor"
file = "python/needle/shapes.py"
find = "area_of_square = side * side"
replace = "area_of_square = 2 * side * side"
killed_by = "hw1.area::square"

[[mutants]]
question = "hw1.edge"
kind = "wrong sign"
file = "python/needle/shapes.py"
find = "return 4 * square(side) / side"
replace = "return -4 * square(side) / side"
killed_by = "hw1.edge::around"
"""

VARIANTS_ONE = """
[[variants]]
about = "a power"
file = "python/needle/shapes.py"
find = "area_of_square = side * side"
replace = "area_of_square = side**2"

[[variants]]
about = "four sides added"
file = "python/needle/shapes.py"
find = "return 4 * square(side) / side"
replace = "return side + side + side + side"

[[variants]]
about = "pi written out"
file = "python/needle/shapes.py"
find = "return math.pi * radius**2"
replace = "return 3.14159265358979 * radius**2"
"""

FILES = {
    "hw_stages/hw1/stage.toml": STAGE_ONE,
    "hw_stages/hw1/handout.md": HANDOUT_ONE,
    "hw_stages/hw1/tests/test_shapes.py": TESTS_ONE,
    "hw_stages/hw1/mutants.toml": MUTANTS_ONE,
    "hw_stages/hw1/variants.toml": VARIANTS_ONE,
    "hw_stages/hw2/stage.toml": STAGE_TWO,
    "hw_stages/hw2/handout.md": "# Solids\n\nhw2.volume has the region hw2.cube.\n",
    "hw_stages/hw2/tests/test_solids.py": TESTS_TWO,
    "python/needle/__init__.py": PACKAGE,
    "python/needle/shapes.py": SHAPES,
    "python/needle/solids.py": SOLIDS,
}


def write_course(folder: Path) -> Path:
    """Write the course to a folder and return it."""
    for place, text in FILES.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return folder


def change(folder: Path, place: str, old: str, new: str) -> None:
    """Replace a text that is in a file of the course; this is how a test plants a fault."""
    path = folder / place
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{old!r} is not in {place}"
    path.write_text(text.replace(old, new), encoding="utf-8")
