"""The lines of docs/from_pytorch.md: what its tables put side by side."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "from_pytorch.md"
ROW = re.compile(r"\| `(?P<torch>[^`]+)` \| `(?P<needle>[^`]+)` \|")
ASSIGNED = re.compile(r"(\w+)(?:, \w+)* = ")


def chapters():
    """Return the rows of each table: its heading, and (PyTorch's line, needle's line) pairs."""
    tables = {}
    for part in re.split(r"^## ", PAGE.read_text(), flags=re.M):
        title, _, body = part.partition("\n")
        rows = map(ROW.match, body.split("\n"))
        tables[title.strip()] = [(row["torch"], row["needle"]) for row in rows if row]
    return tables


def assigned(line):
    """Return the first name that a line assigns, or None."""
    match = ASSIGNED.match(line)
    return match[1] if match else None
