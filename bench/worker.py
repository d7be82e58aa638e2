"""The process of one library: checks and times workloads as its parent asks (`rounds.py`).

`python -m bench.worker needle` says what it is in a line of JSON, then answers each line
`{"do": "check" or "time", "workload": name}` with another.
"""

import importlib
import json
import sys
from collections.abc import Callable
from itertools import repeat
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

from bench.workloads import BY_NAME, Workload

# A visit times chunks of calls. The smallest counts: what disturbs a chunk only makes it longer.
CHUNK_SECONDS = 0.002
CHUNKS = 6
VISIT_SECONDS = 0.03  # no chunk begins after this time

Call = Callable[[], Any]


class Session:
    """The workloads of one library that were found right, ready to be timed."""

    def __init__(self, library: ModuleType) -> None:
        self.library = library
        self.ready: dict[str, tuple[Call, int]] = {}  # the call, and how often it fills a chunk

    def check(self, workload: Workload) -> dict[str, Any]:
        """Make a workload ready if the library has it and its result is right."""
        operations = self.library.OPERATIONS
        if workload.operation not in operations:
            return {"state": "missing"}
        inputs = workload.make_inputs()
        call = operations[workload.checked_as or workload.operation](*inputs)
        results = [self.library.to_numpy(call()) for _ in range(workload.calls)]
        fault = difference(np.asarray(results), workload.expected(), workload.tolerance)
        if fault:
            return {"state": "wrong", "fault": fault}
        if workload.checked_as is not None:
            call = operations[workload.operation](*inputs)
        self.ready[workload.name] = call, calls_per_chunk(call)
        return {"state": "ready"}

    def time(self, workload: Workload) -> dict[str, Any]:
        """Return the seconds that a call takes: the least of a few chunks."""
        call, count = self.ready[workload.name]
        stop = perf_counter() + VISIT_SECONDS
        seconds = [time_calls(call, count)]
        while len(seconds) < CHUNKS and perf_counter() < stop:
            seconds.append(time_calls(call, count))
        return {"seconds": min(seconds) / count}


def difference(results: np.ndarray, expected: np.ndarray, tolerance: float) -> str:
    """Return how a result differs from the right one, or "" if it does not."""
    if results.size != expected.size:
        return f"{results.size} elements, not {expected.size}"
    error = float(np.max(np.abs(results.reshape(expected.shape) - expected)))
    allowed = tolerance * float(np.max(np.abs(expected)))
    return "" if error <= allowed else f"an error of {error:.2g}; {allowed:.2g} is allowed"


def time_calls(call: Call, count: int) -> float:
    """Return the seconds that `count` calls take."""
    start = perf_counter()
    for _ in repeat(None, count):
        call()
    return perf_counter() - start


def calls_per_chunk(call: Call) -> int:
    """Return how many calls fill a chunk."""
    count = 1
    while (seconds := time_calls(call, count)) < CHUNK_SECONDS / 2:
        count *= 2
    return max(1, round(count * CHUNK_SECONDS / seconds))


def main() -> None:
    answers = sys.stdout
    sys.stdout = sys.stderr  # nothing else may stand between the answers
    library = importlib.import_module(f"bench.with_{sys.argv[1]}")
    session = Session(library)
    actions = {"check": session.check, "time": session.time}
    print(json.dumps(library.facts()), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer = actions[request["do"]](BY_NAME[request["workload"]])
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
