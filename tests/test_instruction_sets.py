"""The kernel tests once more with each instruction set but the one that is chosen by default.

The set is chosen at import, so a pytest process of its own runs the files for each.
"""

import pytest

from tests.inner_run import passed_and_failures, run_files

FILES = (
    "tests/unit/test_kernels.py",
    "tests/unit/test_matmul_kernels.py",
    "tests/unit/test_reduction_kernels.py",
    "tests/unit/test_gather_kernels.py",
    "tests/ndarray/test_views.py",
)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_kernels_with_another_instruction_set(isa, tmp_path):
    import needle

    cpu = needle.cpu()
    assert cpu.enabled(), cpu.reason
    if isa not in cpu.mod.supported_isas():
        pytest.skip(f"this processor has no {isa}")
    if isa == cpu.mod.isa():
        pytest.skip(f"{isa} is the default here: all other tests run with it")
    cases = run_files(FILES, tmp_path, "--device", "cpu", NEEDLE_ISA=isa)
    for name in FILES:
        passed, failures = passed_and_failures(cases[name])
        assert not failures, f"{len(failures)} failed with {isa}:\n" + "\n".join(failures)
        assert passed > 20, f"only {passed} tests of {name} ran"
