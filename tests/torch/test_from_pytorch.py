"""Every line of docs/from_pytorch.md runs, on both sides, and both sides compute the same."""

import numpy as np
import pytest

from tests.from_pytorch_page import assigned, chapters

pytestmark = pytest.mark.torch


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
            name = assigned(torch_line)
            if name and name.endswith("state"):
                ours[name] = theirs[name]
            exec(needle_line, ours)
            if name and name == assigned(needle_line) and name != "m":
                assert_same(f"{title}: {needle_line}", plain(ours[name]), plain(theirs[name]))
                compared += 1
    assert compared > 50
