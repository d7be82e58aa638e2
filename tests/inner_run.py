"""Run test files in a pytest process of its own, for what is chosen when needle is imported."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]


def run_files(files, folder, *arguments, **settings):
    """Run pytest on `files` under environment variables; return the report's cases by file."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
    done = subprocess.run(
        [*command, f"--junit-xml={report}", "-o", "junit_family=xunit1", *arguments, *files],
        cwd=ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    found = {name: [] for name in files}
    for case in ElementTree.parse(report).iter("testcase"):
        found[case.get("file")].append(case)
    return found


def passed_and_failures(cases):
    """Return how many cases passed, and what the others that ran say."""
    failures = [
        f"{case.get('name')}\n{problem.text}"
        for case in cases
        for kind in ("failure", "error")
        for problem in case.findall(kind)
    ]
    return sum(case.find("skipped") is None for case in cases) - len(failures), failures
