"""Prints what was measured as aligned text; README.md says how to read it."""

from collections.abc import Sequence

from bench.rounds import Results
from bench.workloads import Rungs, Workload

__all__ = ["comparison", "instruction_sets", "ladder"]

Row = Sequence[str]


def comparison(
    title: str, workloads: Sequence[Workload], results: Results, peers: dict[str, bool]
) -> str:
    """Return a line for each workload: needle's time, each peer's, the ratios, and the target.

    Args:
        peers: the other columns, and whether the library is installed.
    """
    header = [title, "needle"]
    for peer in peers:
        header += [peer, "ratio"]
    rows: list[Row] = [[*header, "target", ""]]
    group = None
    for workload in workloads:
        if workload.group != group:
            group = workload.group
            rows.append([])
        row = [workload.name, time_cell(results, workload, "needle")]
        for peer, installed in peers.items():
            row.append(time_cell(results, workload, peer) if installed else "not installed")
            row.append(ratio_text(results.ratio(workload, "needle", workload, [peer])))
        rows.append([*row, *target_cells(results, workload)])
    return aligned(rows)


def target_cells(results: Results, workload: Workload) -> tuple[str, str]:
    """Return the target and whether it is met, on the ratio as it is printed."""
    target = workload.target
    if target is None:
        return "", ""
    ratio = results.ratio(workload, "needle", workload, [target.library])
    met = "" if ratio is None else "ok" if round(ratio[0], 2) <= target.ratio else "miss"
    return f"{target.ratio:.2f} {target.library}", met


def ladder(title: str, steps: Sequence[Rungs], results: Results, peers: Sequence[str]) -> str:
    """Return the rate of each of needle's kernels and each library, and its share of the best
    library's rate.
    """
    rows: list[Row] = [[title, "time", "rate", "share"]]
    for step in steps:
        rows += [[], [step.top.name]]
        for kernel, workload in step.course.items():
            rows.append(ladder_row(results, kernel, workload, "needle", step.top, peers))
        for label in ("needle", *peers):
            name = step.top_kernel if label == "needle" else f"{label}'s"
            rows.append(ladder_row(results, name, step.top, label, step.top, peers))
    return aligned(rows)


def ladder_row(
    results: Results,
    name: str,
    workload: Workload,
    label: str,
    top: Workload,
    peers: Sequence[str],
) -> Row:
    seconds = results.median(workload, label)
    ratio = results.ratio(workload, label, top, peers)
    rate = "" if seconds is None else f"{workload.amount / seconds:.1f} {workload.unit}/s"
    share = "" if ratio is None else f"{1 / ratio[0]:.2f}"
    return [f"  {name}", time_cell(results, workload, label), rate, share]


def instruction_sets(
    title: str, workloads: Sequence[Workload], results: Results, names: Sequence[str]
) -> str:
    """Return a line for each workload: needle's time with each instruction set, and its ratio to
    the first.
    """
    rows: list[Row] = [[title, *(cell for name in names for cell in (name, "ratio"))], []]
    for workload in workloads:
        row = [workload.name]
        for name in names:
            row.append(time_cell(results, workload, name))
            row.append(ratio_text(results.ratio(workload, name, workload, names[:1])))
        rows.append(row)
    return aligned(rows)


def time_cell(results: Results, workload: Workload, label: str) -> str:
    if (workload.name, label) in results.faults:
        return "wrong"
    seconds = results.median(workload, label)
    return "-" if seconds is None else time_text(seconds)


def time_text(seconds: float) -> str:
    """Return a time with three digits."""
    for factor, unit in ((1e6, "us"), (1e3, "ms")):
        if seconds * factor < 999.5:
            value = seconds * factor
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    return f"{seconds:.2f} s"


def ratio_text(ratio: tuple[float, float] | None) -> str:
    return "" if ratio is None else f"{ratio[0]:.2f} ±{ratio[1]:.2f}"


def aligned(rows: Sequence[Row]) -> str:
    """Return rows as lines: the first column to the left, the others to the right."""
    columns = max(len(row) for row in rows)
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(columns)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
