"""All programs of apps/: importing does no work, and they run from any folder."""

import importlib
import inspect
import os
import subprocess
import sys

import pytest

from tests.apps.programs import ROOT, finish, start

MODULES = sorted(path.stem for path in (ROOT / "apps").glob("*.py"))
PROGRAMS = [name for name in MODULES if name.startswith(("train_", "fit_"))]


IMPORTS = """
import importlib, sys
import numpy as np
np.random.seed(0)
for name in sys.argv[1:]:
    for path in (name, "apps." + name):
        assert importlib.import_module(path).__file__.endswith(f"/apps/{name}.py"), path
assert np.random.rand() == np.random.RandomState(0).rand(), "an import drew a random number"
"""


def test_importing_by_either_name_does_no_work(tmp_path):
    paths = [str(ROOT / "python"), str(ROOT / "apps"), str(ROOT)]
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, *MODULES],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("folder", [".", "apps"])
def test_the_course_s_names_from_the_root_and_from_apps(folder):
    """With the package alone on the path, as the course's instructions start Python."""
    code = "import simple_ml, models" if folder == "apps" else "import apps.simple_ml, apps.models"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_called_as_main_with_options(name):
    parameters = inspect.signature(importlib.import_module(name).main).parameters
    assert [p.default for p in parameters.values()] == [None]


@pytest.mark.parametrize("folder", ["/", "apps"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_help_from_any_folder(name, folder):
    printed, errors = finish(start(name, "--help", cwd=ROOT / folder))
    assert errors == "" and "--epochs" in printed and "--plot" in printed


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "fit_sine"])
def test_embedded_data_is_found_from_any_folder(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    args = importlib.import_module(name).parse_arguments([])
    assert args.data_dir.is_relative_to(ROOT / "data")
    assert args.save.parent == ROOT / "runs"
