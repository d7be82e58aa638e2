"""Every line of docs/from_pytorch.md runs, on both sides, and both sides compute the same."""

import re
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.torch

PAGE = Path(__file__).parents[2] / "docs" / "from_pytorch.md"
ROW = re.compile(r"\| `(?P<torch>[^`]+)` \| `(?P<needle>[^`]+)` \|")
ASSIGNED = re.compile(r"(\w+)(?:, \w+)* = ")


def chapters():
    """Return the rows of each table: its heading, and (PyTorch's line, needle's line) pairs."""
    tables = {}
    for part in re.split(r"^## ", PAGE.read_text(), flags=re.M):
        title, _, body = part.partition("\n")
        tables[title.strip()] = [
            (m["torch"], m["needle"]) for m in map(ROW.match, body.split("\n")) if m
        ]
    return tables


def plain(value):
    """Return a value as numpy arrays, numbers and tuples of them; None if it is something else."""
    if hasattr(value, "detach"):
        value = value.detach()
    if hasattr(value, "numpy"):
        return np.asarray(value.numpy())
    if isinstance(value, (bool, int, float, str, np.ndarray)):
        return value
    if hasattr(value, "__iter__") and not isinstance(value, dict) and not hasattr(value, "step"):
        try:
            return tuple(map(plain, value))
        except TypeError:
            return None
    return None


def assert_same(line, ours, theirs):
    if isinstance(ours, tuple):
        assert len(ours) == len(theirs), line
        for a, b in zip(ours, theirs, strict=True):
            assert_same(line, a, b)
    elif isinstance(ours, str):
        assert ours == theirs, line
    elif ours is not None:
        assert np.shape(ours) == np.shape(theirs), line
        np.testing.assert_allclose(
            np.asarray(ours, float), np.asarray(theirs, float), rtol=1e-4, atol=1e-5, err_msg=line
        )


def test_page(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import safetensors.torch

    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    theirs = {"np": np, "safetensors": safetensors}
    ours = {"np": np}
    compared = 0
    for title, rows in chapters().items():
        for torch_line, needle_line in rows:
            exec(torch_line, theirs)
            name = ASSIGNED.match(torch_line)
            if name and name[1].endswith("state"):
                ours[name[1]] = theirs[name[1]]
            exec(needle_line, ours)
            assigned = ASSIGNED.match(needle_line)
            if name and assigned and name[1] == assigned[1] and name[1] != "m":
                assert_same(f"{title}: {needle_line}", plain(ours[name[1]]), plain(theirs[name[1]]))
                compared += 1
    assert compared > 50
