"""apps/pictures.py: PNG files without a screen."""

import sys

import numpy as np
import pytest

import needle as ndl
import pictures
from tests.apps.programs import PNG


def test_curves(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "new" / "curves.png"
    panels = [
        pictures.Panel("perplexity", [90.0, 40.0], [95.0, 60.0], ("unigram", 80.0)),
        pictures.Panel("accuracy", [0.1, 0.2], [0.1, 0.15]),
    ]
    pictures.draw_curves(path, "two epochs", panels)
    assert path.read_bytes().startswith(PNG)


def test_one_epoch_is_a_picture_too(tmp_path):
    pytest.importorskip("matplotlib")
    pictures.draw_curves(tmp_path / "one.png", "one", [pictures.Panel("loss", [1.0], [2.0])])
    assert (tmp_path / "one.png").read_bytes().startswith(PNG)


def test_fit(tmp_path):
    pytest.importorskip("matplotlib")
    x = np.linspace(0, 1, 20)
    pictures.draw_fit(tmp_path / "fit.png", "a fit", x, x**2, x**2 + 0.1)
    assert (tmp_path / "fit.png").read_bytes().startswith(PNG)


def test_drawing_needs_no_window(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    pictures.draw_fit(tmp_path / "fit.png", "a fit", [0, 1], [0, 1], [1, 0])
    assert (tmp_path / "fit.png").is_file()


def test_a_missing_matplotlib_is_explained(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ndl.NeedleError, match=r"\[plot\] matplotlib is missing; .*pip install"):
        pictures.require_matplotlib()
