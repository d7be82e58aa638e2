"""What tests share: devices, random numbers that depend on the test alone, a count by device.

Where there is no GPU, `cuda()` is the emulated device in the tests and in the programs that they
start. A file of tests may set DEVICES of its own.
"""

import os
import zlib
from collections import Counter

import hypothesis
import numpy as np
import pytest

DEVICES = ("cpu", "cpu_numpy", "cuda")
CHECKED = "cuda_checked"

hypothesis.settings.register_profile(
    "needle", deadline=None, max_examples=50, derandomize="CI" in os.environ
)
hypothesis.settings.load_profile("needle")


def pytest_addoption(parser):
    choices = (*DEVICES, CHECKED)
    parser.addoption("--device", choices=choices, help="run only the tests of this device")


def pytest_configure(config):
    """Choose the emulated device where `cuda()` would have none and nothing else is chosen."""
    if "NEEDLE_CUDA_DEVICE" in os.environ:
        return
    from needle.backend_ndarray import cuda, cuda_emulated

    if not cuda().enabled() and cuda_emulated().enabled():
        os.environ["NEEDLE_CUDA_DEVICE"] = "emulated"
        cuda.cache_clear()


def device_of(item):
    """Return the name of the device that a collected test runs on, or "none"."""
    if "native" in item.fixturenames:  # the compiled cpu module itself
        return "cpu"
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("device", "none") if callspec else "none"


def pytest_collection_modifyitems(config, items):
    for item in items:
        item.user_properties.append(("device", device_of(item)))
    chosen = config.getoption("--device")
    if chosen:
        config.hook.pytest_deselected(items=[item for item in items if device_of(item) != chosen])
        items[:] = [item for item in items if device_of(item) == chosen]


def pytest_generate_tests(metafunc):
    if "device" in metafunc.fixturenames:
        names = getattr(metafunc.module, "DEVICES", DEVICES)
        metafunc.parametrize("device", names, indirect=True, scope="module")


# Scoped to the module because hypothesis refuses a fixture that is made anew for each test.
@pytest.fixture(scope="module")
def device(request):
    """Each device in turn; a missing one fails, unless the environment allows it: then it skips."""
    import needle

    if needle.BACKEND == "np" and request.param != "cpu":
        pytest.skip("NEEDLE_BACKEND=np has the one device cpu()")
    device = getattr(needle, request.param)()
    if not device.enabled():
        allowed = f"NEEDLE_ALLOW_NO_{'CPU' if request.param == 'cpu' else 'EMULATOR'}"
        if os.environ.get(allowed) != "1":
            pytest.fail(f"{device.reason}, or set {allowed}=1 to skip", pytrace=False)
        pytest.skip(device.reason)
    return device


@pytest.fixture
def no_cuda(monkeypatch):
    """Take the backend of `cuda()` away, as where there is neither a GPU nor an emulated device."""
    from needle.backend_ndarray import device as devices

    missing = devices.BackendDevice("cuda", None, reason="no GPU and nothing that stands in for it")
    monkeypatch.setattr(devices, "cuda", lambda: missing)
    return missing


def seed_of(request):
    return zlib.crc32(request.node.nodeid.encode())


@pytest.fixture
def rng(request):
    """A generator seeded by the test's name: order and selection do not change its numbers."""
    return np.random.default_rng(seed_of(request))


@pytest.fixture(autouse=True)
def numpy_seed(request):
    """Seed numpy's global generator, from which needle draws, in the same way."""
    np.random.seed(seed_of(request))


def title_of(device):
    """Return the name of a device with what stands in for it, if anything does."""
    stand_in = os.environ.get("NEEDLE_CUDA_DEVICE") if device == "cuda" else None
    return f"{device} ({stand_in})" if stand_in else device


def pytest_terminal_summary(terminalreporter):
    """Print how many tests passed, failed and were skipped on each device, and why skipped."""
    columns = {"skipped": "skipped", "xfailed": "skipped", "passed": "passed"}
    columns |= {"failed": "failed", "error": "failed"}  # last, so that a failure overrides
    results = {}
    for outcome, column in columns.items():
        for report in terminalreporter.getreports(outcome):
            properties = dict(getattr(report, "user_properties", ()))
            if "device" in properties:
                results[report.nodeid] = (properties["device"], column)
    if not results:
        return
    counts = Counter(results.values())
    columns = ("passed", "failed", "skipped")
    terminalreporter.section("tests by device")
    header = "".join(f"{column:>8}" for column in columns)
    terminalreporter.write_line(f"{'device':<16}{header}")
    for device in (*DEVICES, CHECKED, "none"):
        cells = "".join(f"{counts[device, column]:>8}" for column in columns)
        terminalreporter.write_line(f"{title_of(device):<16}{cells}")
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.getreports("skipped")
        if isinstance(report.longrepr, tuple)
    )
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count:>6} skipped: {reason}")
