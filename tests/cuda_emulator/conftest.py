"""Fixtures of the emulator's tests: the compiled cases of a mode."""

import os

import pytest

from tests.cuda_emulator.emulator_cases import MODES, Cases


def load(mode):
    """Load a mode's library; one that is missing fails, unless that is allowed."""
    try:
        return Cases(mode)
    except OSError as error:
        if os.environ.get("NEEDLE_ALLOW_NO_EMULATOR") == "1":
            pytest.skip(f"the emulator's test cases are not built: {error}")
        pytest.fail(
            f"the emulator's test cases are not built: {error}; configure with "
            "-DNEEDLE_CUDA_EMULATION=ON, or set NEEDLE_ALLOW_NO_EMULATOR=1 to skip",
            pytrace=False,
        )


@pytest.fixture(scope="session", params=MODES)
def cases(request):
    return load(request.param)


@pytest.fixture(scope="session")
def fast():
    return load("fast")


@pytest.fixture(scope="session")
def checked():
    return load("checked")
