"""What the tests of the programs share: a start as a user does, and the way they complain."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PNG = b"\x89PNG\r\n\x1a\n"


def start(program, *options, cwd=ROOT, **environment):
    """Start a program of apps/ in a process of its own, its output and errors in pipes."""
    paths = [str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, str(ROOT / "apps" / f"{program}.py"), *map(str, options)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    """Return (output, errors) of a process once it has ended; it is killed if it takes too long."""
    try:
        return process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()


def complaint(run, *options):
    """Return the one line with which a run ends."""
    with pytest.raises(SystemExit) as exit_:
        run(*options)
    assert isinstance(exit_.value.code, str), "an exit without a message"
    assert "\n" not in exit_.value.code
    return exit_.value.code


def refusal(run, capsys, *options):
    """Return what a run says to options that it refuses."""
    with pytest.raises(SystemExit) as exit_:
        run(*options)
    assert exit_.value.code == 2
    return capsys.readouterr().err
