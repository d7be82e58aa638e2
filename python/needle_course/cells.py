"""Run the cells of one handout, in order, in this fresh interpreter. `handouts.py` starts this file
as a script: a job comes as JSON on stdin, what the cells printed goes back as JSON on stdout.
"""

import ast
import contextlib
import io
import json
import os
import sys
import traceback
from typing import Any


def main() -> None:
    """Read the job, run its cells, write a list with what each one did."""
    job = json.load(sys.stdin)
    # The folder of this script holds names that a handout may import from elsewhere.
    sys.path[0:1] = job["path"]
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what compiled code prints is no output of a cell
    _set_printing()
    names: dict[str, Any] = {"__name__": "__main__"}
    done = []
    for cell in job["cells"]:
        done.append(_run(cell, job["name"], names))
        if done[-1]["trace"]:
            break
    module = sys.modules.get(job["module"])
    origin = getattr(module, "__file__", None)
    json.dump({"cells": done, "origin": origin}, answer)
    answer.close()


def _set_printing() -> None:
    """Print arrays alike on every machine."""
    import numpy as np

    np.set_printoptions(precision=4, suppress=True, linewidth=88)


def _run(cell: dict[str, Any], name: str, names: dict[str, Any]) -> dict[str, str]:
    """Run one cell; return its `stdout`, the `result` of its last expression, the `error` that it
    was meant to raise, and the `trace` of one that it was not.
    """
    printed = io.StringIO()
    outcome = {"stdout": "", "result": "", "error": "", "trace": ""}
    try:
        with contextlib.redirect_stdout(printed):
            outcome["result"] = _execute(cell, name, names)
        if cell["raises"]:
            outcome["trace"] = f'  File "{name}", line {cell["line"]}\nthe cell raises nothing\n'
    except Exception as error:
        if cell["raises"]:
            outcome["error"] = "".join(traceback.format_exception_only(type(error), error)).strip()
        else:
            frames = traceback.extract_tb(error.__traceback__)
            inside = [frame for frame in frames if frame.filename != __file__]
            outcome["trace"] = "".join(
                traceback.format_list(inside) + traceback.format_exception_only(type(error), error)
            )
    outcome["stdout"] = printed.getvalue()
    return outcome


def _execute(cell: dict[str, Any], name: str, names: dict[str, Any]) -> str:
    """Run the statements of a cell; return the repr of its last expression, "" without one."""
    # The empty lines before it give each line of the cell its number in the handout.
    parsed = ast.parse("\n" * (cell["line"] - 1) + cell["source"], name)
    last = parsed.body[-1] if parsed.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(parsed, name, "exec"), names)
        return ""
    del parsed.body[-1]
    exec(compile(parsed, name, "exec"), names)
    value = eval(compile(ast.Expression(last.value), name, "eval"), names)
    if cell["source"].rstrip().endswith(";") or value is None:
        return ""
    return repr(value)


if __name__ == "__main__":
    main()
