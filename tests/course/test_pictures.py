"""The pictures of the handouts: the same bytes each time, words as words, nothing off the page."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hw_stages.pictures import drawing
from hw_stages.pictures.__main__ import NAMES

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
# What the widest common sans-serif font takes for a letter, as a share of its size.
LETTER = 0.6


def draw(out, *names):
    environment = {**os.environ, "NEEDLE_BACKEND": "np", "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(
        [sys.executable, "-m", "hw_stages.pictures", "--out", str(out), *names],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    out = tmp_path_factory.mktemp("pictures")
    made = draw(out)
    assert made.returncode == 0, made.stderr
    return out


def test_each_name_is_a_file_and_the_reverse():
    files = {path.stem for path in (ROOT / "hw_stages" / "pictures").glob("[a-z]*.py")}
    assert files == {*NAMES, "drawing"}


def test_two_drawings_are_the_same(pictures, tmp_path):
    assert draw(tmp_path).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{n}.svg" for n in NAMES)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (pictures / path.name).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_words_are_dark_large_enough_and_on_the_page(pictures, name):
    root = ElementTree.parse(pictures / f"{name}.svg").getroot()
    width, height = float(root.get("width")), float(root.get("height"))
    words = list(root.iter(f"{SVG}text"))
    assert len(words) > 10
    for text in words:
        assert text.get("fill") == drawing.INK
        size = float(text.get("font-size"))
        assert size >= 9
        x, y = float(text.get("x")), float(text.get("y"))
        long = len(text.text) * size * LETTER
        left = x - {"start": 0, "middle": long / 2, "end": long}[text.get("text-anchor")]
        assert left >= 0, text.text
        assert left + long <= width, text.text
        assert size <= y <= height - 0.2 * size, text.text


@pytest.mark.parametrize("name", NAMES)
def test_words_in_a_row_do_not_touch(pictures, name):
    root = ElementTree.parse(pictures / f"{name}.svg").getroot()
    rows = {}
    for text in root.iter(f"{SVG}text"):
        x, size = float(text.get("x")), float(text.get("font-size"))
        long = len(text.text) * size * 0.55
        left = x - {"start": 0, "middle": long / 2, "end": long}[text.get("text-anchor")]
        rows.setdefault(text.get("y"), []).append((left, left + long, text.text))
    for row in rows.values():
        row.sort()
        for (_, end, one), (start, _, other) in zip(row, row[1:], strict=False):
            assert end <= start, (one, other)


@pytest.mark.parametrize("fill", ["WHITE", "PALE", "GREY", "YELLOW", "BLUE", "ORANGE"])
def test_dark_words_read_on_every_fill(fill):
    def light(colour):
        parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    contrast = (light(getattr(drawing, fill)) + 0.05) / (light(drawing.INK) + 0.05)
    assert contrast > 7  # the stricter rule of the web's guidelines


def test_the_numbers_are_those_of_the_framework(pictures):
    words = {
        name: re.findall(r">([^<]*)</text>", (pictures / f"{name}.svg").read_text(encoding="utf-8"))
        for name in NAMES
    }
    assert "= 1 + 1·8 + 2·1" in words["strides"]
    assert "7.\u00a0\u00a0so a has 18 + 7 = 25, b has 12 + 7 = 19" in words["graph"]
    assert words["attention_mask"].count("−3e38") == 15
    assert "a              shape (4, 4)  strides (4, 1)".replace(" ", "\u00a0") in words["im2col"]
    assert "[1.20, −0.40]" in words["lstm_cell"]


def test_a_picture_without_a_name_is_refused(tmp_path):
    made = draw(tmp_path, "nothing")
    assert made.returncode == 2
    assert "no picture nothing; there are strides, graph" in made.stderr


@pytest.mark.parametrize(
    ("value", "words"), [(3.0, "3"), (-2, "−2"), (0.126, "0.13"), (-0.001, "0"), (1.5, "1.50")]
)
def test_numbers_are_short(value, words):
    assert drawing.number(value) == words
