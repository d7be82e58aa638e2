"""Measures libraries beside each other: one process each (`worker.py`), visited in turn.

In every round each workload goes from library to library, so that whatever disturbs the machine for
longer than a moment disturbs all of them alike; a ratio compares visits of the same round.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench.workloads import Workload

__all__ = ["Contender", "Results", "WorkerError", "measure"]

ROOT = Path(__file__).resolve().parent.parent

# numpy's threads spin for a while after their work; the next library must have the cores to itself.
SETTLE_SECONDS = 0.03

# Left out: what makes numpy's BLAS choose for another machine, and needle other arrays.
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "NEEDLE_BACKEND")
# Which setting gives each library its threads. numpy is in every process, with one thread.
THREAD_SETTINGS = {
    "numpy": ("OPENBLAS_NUM_THREADS",),
    "torch": ("OMP_NUM_THREADS", "MKL_NUM_THREADS"),
    "needle": ("NEEDLE_NUM_THREADS",),
}


class WorkerError(RuntimeError):
    """A library's process ended before it was told to."""


@dataclass(frozen=True)
class Contender:
    """A library in a process of its own.

    Args:
        label: its name in a table.
        library: "needle", "numpy" or "torch".
        threads: 1 (on one core), or how many it may use.
        settings: more environment variables.
    """

    label: str
    library: str
    threads: int
    settings: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Return the environment variables of its process."""
        variables = {name: value for name, value in os.environ.items() if name not in UNSET}
        for library, names in THREAD_SETTINGS.items():
            for name in names:
                variables[name] = str(self.threads if library == self.library else 1)
        return {**variables, **self.settings}


class Worker:
    """A running contender."""

    def __init__(self, contender: Contender) -> None:
        self.contender = contender
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.worker", contender.library],
            cwd=ROOT,
            env=contender.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the parent, whose end is theirs
        )
        if contender.threads == 1:  # threads that it starts stay on this core too
            os.sched_setaffinity(self.process.pid, {max(os.sched_getaffinity(0))})

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(BrokenPipeError):
            self.process.stdin.close()  # its loop over requests ends
        self.process.wait()
        self.process.stdout.close()

    def answer(self) -> dict[str, Any]:
        """Return its next answer; WorkerError if it is gone."""
        line = self.process.stdout.readline()
        if not line:
            raise WorkerError(f"{self.contender.label} ended with status {self.process.wait()}")
        return json.loads(line)

    def ask(self, action: str, workload: Workload) -> dict[str, Any]:
        """Return its answer to a request."""
        request = json.dumps({"do": action, "workload": workload.name})
        with suppress(BrokenPipeError):  # answer() says it
            print(request, file=self.process.stdin, flush=True)
        answer = self.answer()
        if self.contender.threads > 1:
            time.sleep(SETTLE_SECONDS)
        return answer


@dataclass
class Results:
    """Seconds a call by (workload's name, contender's label), one number a round.

    Args:
        facts: what each contender says about itself, by label.
        faults: what is wrong with a result, by the same pairs.
    """

    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    faults: dict[tuple[str, str], str] = field(default_factory=dict)

    def median(self, workload: Workload, label: str) -> float | None:
        """Return the median seconds of a call, None if it was not timed."""
        seconds = self.seconds.get((workload.name, label))
        return median(seconds) if seconds else None

    def ratio(
        self, workload: Workload, label: str, peer: Workload, peer_labels: Sequence[str]
    ) -> tuple[float, float] | None:
        """Return (median, half the width of the middle half) of a time over the best peer's."""
        own = self.seconds.get((workload.name, label))
        peers = [self.seconds.get((peer.name, name)) for name in peer_labels]
        peers = [seconds for seconds in peers if seconds]
        if not own or not peers:
            return None
        best = map(min, *peers) if len(peers) > 1 else peers[0]
        ratios = [a / b for a, b in zip(own, best, strict=True)]
        if len(ratios) == 1:
            return ratios[0], 0.0
        low, middle, high = quantiles(ratios, n=4, method="inclusive")
        return middle, (high - low) / 2


def measure(contenders: Sequence[Contender], workloads: Sequence[Workload], rounds: int) -> Results:
    """Check every workload with every contender, then time them, round after round."""
    results = Results()
    with ExitStack() as running:
        workers = [running.enter_context(Worker(contender)) for contender in contenders]
        for worker in workers:
            results.facts[worker.contender.label] = worker.answer()
        visits = [
            (worker, workload)
            for workload in workloads
            for worker in workers
            if is_ready(worker, workload, results)
        ]
        for _ in range(rounds):
            for worker, workload in visits:
                key = workload.name, worker.contender.label
                seconds = worker.ask("time", workload)["seconds"]
                results.seconds.setdefault(key, []).append(seconds)
    return results


def is_ready(worker: Worker, workload: Workload, results: Results) -> bool:
    """Tell whether a contender has a workload and does it right; note what is wrong."""
    answer = worker.ask("check", workload)
    if answer["state"] == "wrong":
        results.faults[workload.name, worker.contender.label] = answer["fault"]
    return answer["state"] == "ready"
