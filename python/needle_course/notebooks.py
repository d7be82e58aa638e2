"""Handouts as notebooks: made from the Markdown by jupytext, with the outputs that its cells had,
and run once more by nbclient. Both are needed only where the course is built.
"""

import json
import re
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from needle_course.handouts import Cell, Handout, HandoutError, variables

__all__ = ["execute", "notebook"]

SECONDS = 300
OTHER_FENCE = re.compile(r"^(`{3,})(?!python\s*$|python raises\s*$)(\w[^`\n]*)$", re.MULTILINE)
FIRST_CELL = """\
# This notebook runs your own code, in the folder of your workspace.
import os
import sys
from pathlib import Path

folders = [Path.cwd(), *Path.cwd().parents]
root = next(folder for folder in folders if (folder / "handouts").is_dir())
os.chdir(root)
sys.path[:0] = [str(root / "python"), str(root / "apps"), str(root / "src"), str(root)]
os.environ.update({environment})

import numpy as np

np.set_printoptions(precision=4, suppress=True, linewidth=88)"""


def notebook(handout: Handout, environment: Mapping[str, str]) -> str:
    """Return a handout whose cells have run as the text of a notebook, the same in each build."""
    from nbformat.v4 import new_code_cell

    # Without this word jupytext would make cells of the other languages too.
    marked = OTHER_FENCE.sub(r"\1\2 .noeval", handout.text)
    marked = re.sub(r"^```python raises\s*$", "```python", marked, flags=re.M)
    made: Any = import_module("jupytext").reads(marked, fmt="md")
    cells = list(handout.cells)
    for cell in made.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"^(`{3,}.*?)( no-run)? \.noeval$", r"\1", cell.source, flags=re.M)
        else:
            _put_output(cell, cells.pop(0))
    made.cells.insert(
        1, new_code_cell(FIRST_CELL.replace("{environment}", repr(dict(environment))))
    )
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"
    made.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _put_output(cell: Any, ran: Cell) -> None:
    """Give a cell of a notebook what the same cell of the handout printed."""
    from nbformat.v4 import new_output

    cell.outputs = []
    if ran.stdout:
        cell.outputs.append(new_output("stream", name="stdout", text=ran.stdout))
    if ran.result:
        data = {"text/plain": ran.result}
        cell.outputs.append(new_output("execute_result", data=data, execution_count=None))
    if ran.raises:
        cell.metadata["tags"] = ["raises-exception"]
        name, _, value = ran.error.partition(": ")
        cell.outputs.append(new_output("error", ename=name, evalue=value, traceback=[ran.error]))


def execute(path: Path) -> None:
    """Run a notebook from its own folder, in a fresh kernel; its file stays as it is.

    Raises:
        HandoutError: if a cell raises.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError
    from traitlets.config import Config

    made = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": path.parent}}
    with tempfile.TemporaryDirectory(prefix="needle-kernel-") as sockets:
        # Files instead of ports: nothing else on the machine can talk to the kernel.
        transport = {"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}}
        client = NotebookClient(
            made,
            kernel_name="python3",
            timeout=SECONDS,
            resources=place,
            config=Config(transport),
        )
        try:
            client.execute(env=variables({}))
        except (CellExecutionError, CellTimeoutError) as error:
            raise HandoutError(f"{path}:1: the notebook does not run\n{error}") from None
