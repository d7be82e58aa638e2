"""The `torch` fixture: PyTorch with one thread, or a skip where it is not installed."""

import pytest


@pytest.fixture(scope="module")
def torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # two thread pools in one process disturb each other
    yield torch
    torch.set_num_threads(threads)
