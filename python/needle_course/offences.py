"""What a gate finds: a place and what is wrong there."""

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Offence:
    """One fault of the course, at file:line."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


def line_of(path: Path, word: str) -> str:
    """Return `path:line` of the first line that holds a word, or the path alone."""
    if path.is_file():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(rf"(?<![\w.]){re.escape(word)}(?![\w.])", line):
                return f"{path}:{number}"
    return str(path)
