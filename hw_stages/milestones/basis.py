"""Where a milestone finds your code, and one line where an answer is missing.

Imported before numpy: its products of small matrices are quicker on one thread than on many.
"""

import os
import re
import sys
from pathlib import Path
from types import TracebackType

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = next(
    (folder for folder in Path(__file__).resolve().parents if (folder / "data/digits").is_dir()),
    Path(__file__).resolve().parents[1],
)
SAMPLE = ROOT / "data" / "my_digit.png"
REGION = re.compile(r"hw\d\.[\w.]+")

sys.path[:0] = [str(ROOT / folder) for folder in ("python", "apps")]


def explain(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say in a few words which answer is missing; show any other error as Python does."""
    region = REGION.search(str(error)) if issubclass(kind, NotImplementedError) else None
    if region is None:
        sys.__excepthook__(kind, error, trace)
        return
    print(
        f"\n{region[0]} is not written yet. `needle test {region[0]}` tests that answer;"
        " run this again when it passes.",
        file=sys.stderr,
    )


sys.excepthook = explain
