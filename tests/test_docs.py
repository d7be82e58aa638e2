"""needle's lines of docs/from_pytorch.md run without PyTorch; tests/torch compares both columns."""

import re

import numpy as np

import needle as ndl
from tests.from_pytorch_page import assigned, chapters


def test_needles_lines_of_the_page_for_pytorch_users(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"np": np}
    lines = 0
    for rows in chapters().values():
        for torch_line, needle_line in rows:
            state = re.fullmatch(r"(\w*state) = (\w+)\.state_dict\(\)", torch_line)
            if state:  # what PyTorch would hand over
                names[state[1]] = ndl.torch_state_dict(names[state[2]])
            if "save_file" in torch_line:
                ndl.save_model(names["m"], "model.safetensors", layout="torch")
            exec(needle_line, names)
            lines += assigned(needle_line) is not None
    assert lines > 50
