"""Times needle beside numpy and PyTorch: python -m bench --help lists the options.

No speed changes the exit status; a wrong result does.
"""

import argparse
import importlib.util
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import tables
from bench.rounds import Contender, Results, WorkerError, measure
from bench.workloads import BY_NAME, LADDER, LADDER_WORKLOADS, WORKLOADS

GROUPS = [*dict.fromkeys(workload.group for workload in WORKLOADS), "ladder", "isa"]
PEERS = {"numpy": "numpy", "PyTorch": "torch"}  # name in a table: module
BUSY = """
Other work is running here (load average {load:.1f} on {cores} cores): take the ratios of 1 thread
as rough, and those of several threads not at all, since threads wait for each other.
"""
INSTRUCTION_SET_WORKLOADS = [
    BY_NAME[name]
    for name in (
        "matmul 512",
        "add 1e6",
        "exp 1e6",
        "tanh 1e6",
        "sum 1000 x 1000, axis 1",
        "max 1000 x 1000, all",
        "transposed copy 1000 x 1000",
        "MLP 784-100-10, batch 100, SGD",
    )
]


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Time needle beside its peers.")
    parser.add_argument("groups", nargs="*", metavar="group", help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--rounds", type=int, default=9, help="default: 9")
    parser.add_argument(
        "--threads", choices=["1", "all", "both"], default="both", help="default: both"
    )
    args = parser.parse_args(arguments)
    args.groups = args.groups or GROUPS
    if unknown := set(args.groups) - set(GROUPS):
        parser.error(f"no group {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")
    if args.rounds < 1:
        parser.error(f"--rounds is {args.rounds}; give a number from 1 up")
    return args


def processor() -> str:
    """Return the model of this machine's processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def installed_peers() -> dict[str, str]:
    """Return those of PEERS that can be imported."""
    return {name: module for name, module in PEERS.items() if importlib.util.find_spec(module)}


def contenders(threads: int) -> list[Contender]:
    libraries = {"needle": "needle", **installed_peers()}
    return [Contender(label, library, threads) for label, library in libraries.items()]


def report(results: Results, table: str) -> int:
    """Print a table, and what was wrong; return how many results were."""
    print(table, flush=True)
    for (workload, label), fault in results.faults.items():
        print(f"{label} is wrong in {workload}: {fault}", file=sys.stderr)
    print()
    return len(results.faults)


def print_machine(cores: int) -> list[str]:
    """Print what was measured where; return the instruction sets that needle can use."""
    load = os.getloadavg()[0]
    facts = measure(contenders(threads=1), [], rounds=0).facts
    versions = [facts[label]["version"] if label in facts else f"no {label}" for label in PEERS]
    known = (facts["needle"]["version"], *versions, f"Python {platform.python_version()}")
    print(f"{processor()}, {cores} cores")
    print(", ".join(known))
    print(BUSY.format(load=load, cores=cores) if load > cores / 4 else "", flush=True)
    return facts["needle"]["isas"]


def run(args: argparse.Namespace) -> int:
    """Measure and print what was asked for; return how many results were wrong."""
    cores = len(os.sched_getaffinity(0))
    isas = print_machine(cores)
    wrong = 0
    workloads = [workload for workload in WORKLOADS if workload.group in args.groups]
    counts = {"1": [1], "all": [cores], "both": sorted({1, cores})}[args.threads]
    for threads in counts if workloads else []:
        results = measure(contenders(threads), workloads, args.rounds)
        title = f"{threads} thread{'s' * (threads > 1)}"
        peers = {name: name in installed_peers() for name in PEERS}
        wrong += report(results, tables.comparison(title, workloads, results, peers))
    if "ladder" in args.groups:
        results = measure(contenders(1), LADDER_WORKLOADS, args.rounds)
        table = tables.ladder("ladder, 1 thread", LADDER, results, list(installed_peers()))
        wrong += report(results, table)
    if "isa" in args.groups and len(isas) > 1:
        sets = [Contender(isa, "needle", 1, {"NEEDLE_ISA": isa}) for isa in reversed(isas)]
        results = measure(sets, INSTRUCTION_SET_WORKLOADS, args.rounds)
        title = "needle's instruction sets, 1 thread"
        names = [contender.label for contender in sets]
        table = tables.instruction_sets(title, INSTRUCTION_SET_WORKLOADS, results, names)
        wrong += report(results, table)
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    args = parse_arguments(arguments)
    try:
        return 1 if run(args) else 0
    except WorkerError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
