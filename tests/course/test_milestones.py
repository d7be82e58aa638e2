"""The milestones: own digits from PNG files, easy text, the programs themselves."""

import importlib
import importlib.util
import os
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from needle_course import starter
from needle_course.stages import load_course

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "hw_stages" / "milestones"
NAMES = ("basis", "digit", "digits", "pieces", "table")
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def milestones(monkeypatch):
    """Return a function that imports a module of the milestones, and forget it afterwards."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    yield importlib.import_module
    for name in NAMES:
        sys.modules.pop(name, None)


@pytest.fixture
def digit(milestones):
    return milestones("digit")


# --- PNG files ---


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def filtered(row, above, step, way):
    """Return a row of bytes as one of the five filters of the format stores it."""
    left = np.concatenate([np.zeros(step, int), row[:-step]])
    corner = np.concatenate([np.zeros(step, int), above[:-step]])
    guess = left + above - corner
    near = np.stack([left, above, corner])
    best = np.take_along_axis(near, np.abs(guess - near).argmin(axis=0)[None], 0)[0]
    predicted = (np.zeros_like(row), left, above, (left + above) // 2, best)[way]
    return bytes([way]) + ((row - predicted) % 256).astype(np.uint8).tobytes()


def png(samples, kind, depth=8, ways=(0, 1, 2, 3, 4), extra=b"", interlace=0):
    """Return samples (height, width, channels) as the bytes of a PNG of a colour type."""
    height, width, channels = samples.shape
    flat = samples.reshape(height, -1).astype(np.uint16)
    if depth == 16:
        rows = np.stack([flat >> 8, flat & 255], axis=2).reshape(height, -1)
    elif depth == 8:
        rows = flat
    else:
        bits = (flat[:, :, None] >> np.arange(depth)[::-1]) & 1
        rows = np.packbits(bits.reshape(height, -1).astype(np.uint8), axis=1)
    step = max(channels * depth // 8, 1)
    above, stored = np.zeros(rows.shape[1], int), b""
    for i, row in enumerate(rows.astype(int)):
        stored += filtered(row, above, step, ways[i % len(ways)])
        above = row
    packed = zlib.compress(stored)
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlace)
    half = len(packed) // 2  # data may come in several parts
    parts = chunk(b"IDAT", packed[:half]) + chunk(b"IDAT", packed[half:])
    return PNG + chunk(b"IHDR", header) + extra + parts + chunk(b"IEND", b"")


def read(digit, tmp_path, data):
    path = tmp_path / "a.png"
    path.write_bytes(data)
    return digit.read_png(path)


@pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
def test_grey_of_every_depth_is_read(digit, tmp_path, depth, rng):
    samples = rng.integers(2**depth, size=(11, 13, 1))
    samples[0, 0] = 2**depth - 1
    grey = read(digit, tmp_path, png(samples, 0, depth))
    np.testing.assert_allclose(grey, samples[..., 0] / (2**depth - 1))


@pytest.mark.parametrize("way", range(5))
def test_every_filter_is_undone(digit, tmp_path, way, rng):
    samples = rng.integers(256, size=(6, 5, 3))
    grey = read(digit, tmp_path, png(samples, 2, ways=(way,)))
    np.testing.assert_allclose(grey, samples / 255 @ [0.299, 0.587, 0.114])


@pytest.mark.parametrize("depth", [8, 16])
def test_colours_become_grey(digit, tmp_path, depth, rng):
    samples = rng.integers(2**depth, size=(7, 4, 3))
    grey = read(digit, tmp_path, png(samples, 2, depth))
    np.testing.assert_allclose(grey, samples / (2**depth - 1) @ [0.299, 0.587, 0.114])


@pytest.mark.parametrize("ink, paper", [(0, 1.0), (40, 1.0), (255, 0.0)])
@pytest.mark.parametrize("kind", [4, 6])
def test_transparent_paper_is_unlike_the_ink(digit, tmp_path, ink, paper, kind):
    samples = np.full((8, 8, 2 if kind == 4 else 4), ink)
    samples[..., -1] = 0
    samples[2:5, 3, -1] = 255
    grey = read(digit, tmp_path, png(samples, kind))
    np.testing.assert_allclose(grey[0], np.full(8, paper))
    np.testing.assert_allclose(grey[2:5, 3], np.full(3, ink / 255))


@pytest.mark.parametrize("depth", [1, 4, 8])
def test_a_palette_is_looked_up(digit, tmp_path, depth):
    colours = np.array([[255, 255, 255], [10, 20, 30]], dtype=np.uint8)
    indices = np.zeros((5, 7, 1), dtype=int)
    indices[1:4, 2] = 1
    extra = chunk(b"PLTE", colours.tobytes())
    grey = read(digit, tmp_path, png(indices, 3, depth, extra=extra))
    expected = (colours / 255 @ [0.299, 0.587, 0.114])[indices[..., 0]]
    np.testing.assert_allclose(grey, expected)
    clear = read(digit, tmp_path, png(indices, 3, depth, extra=extra + chunk(b"tRNS", b"\0")))
    np.testing.assert_allclose(clear, expected)


def test_files_that_are_no_drawing_are_refused(digit, tmp_path):
    good = png(np.zeros((4, 4, 1), int), 0)
    cases = {
        "not a PNG file": b"GIF89a",
        "interlaced": png(np.zeros((4, 4, 1), int), 0, interlace=1),
        "a damaged PNG": good[:50],
        "2000 a side": png(np.zeros((1, 2001, 1), int), 0),
    }
    for message, data in cases.items():
        with pytest.raises(digit.DigitError, match=message):
            read(digit, tmp_path, data)
    broken = png(np.zeros((4, 4, 1), int), 0).replace(b"IDAT", b"xDAT")
    with pytest.raises(digit.DigitError, match="damaged"):
        read(digit, tmp_path, broken)


@pytest.mark.parametrize("bad", ["missing.png", "notes.txt", "blank.png"])
def test_a_bad_file_ends_a_milestone_in_one_line(digit, tmp_path, monkeypatch, bad):
    (tmp_path / "notes.txt").write_text("3")
    (tmp_path / "blank.png").write_bytes(png(np.full((9, 9, 1), 255), 0))
    monkeypatch.setattr(sys, "argv", ["hw0.py", str(tmp_path / bad)])
    with pytest.raises(SystemExit, match=re.escape(bad)) as ended:
        digit.own_digit(tmp_path / "sample.png")
    assert "\n" not in str(ended.value)


# --- digits ---


def bar(height, width, top, left, size=(4, 12)):
    grey = np.ones((height, width))
    grey[top : top + size[1], left : left + size[0]] = 0
    return grey


def test_a_digit_is_light_on_dark_and_fills_the_box(digit):
    result = digit.as_digit(bar(40, 60, 5, 30, size=(10, 30)))
    assert result.shape == (28, 28) and result.dtype == np.float32
    rows, columns = np.nonzero(result > 0.5)
    assert rows.max() - rows.min() + 1 == 20 and rows.min() == 4
    assert abs(columns.mean() + 0.5 - 14) <= 0.5 and result.max() == 1
    assert result[0].max() == 0


def test_place_size_and_colours_of_a_drawing_do_not_matter(digit):
    first = digit.as_digit(bar(40, 60, 5, 30))
    np.testing.assert_allclose(digit.as_digit(bar(90, 50, 61, 2)), first, atol=1e-6)
    np.testing.assert_allclose(digit.as_digit(1 - bar(40, 60, 5, 30)), first, atol=1e-6)
    larger = np.kron(bar(40, 60, 5, 30), np.ones((5, 5)))
    np.testing.assert_allclose(digit.as_digit(larger), first, atol=1e-6)
    np.testing.assert_allclose(digit.as_digit(0.7 + 0.2 * bar(40, 60, 5, 30)), first, atol=1e-6)


def test_the_centre_of_mass_is_in_the_middle(digit):
    grey = np.ones((50, 50))
    grey[10:40, 10:14] = 0
    grey[30:40, 10:30] = 0  # an L: its mass lies low and left
    result = digit.as_digit(grey)
    for axis in (0, 1):
        mass = result.sum(axis=1 - axis)
        assert abs(mass @ (np.arange(28) + 0.5) / mass.sum() - 14) <= 0.75


def test_the_sample_is_what_its_program_draws(digit):
    spec = importlib.util.spec_from_file_location("drawer", ROOT / "data" / "make_my_digit.py")
    drawer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawer)
    sample = digit.read_png(ROOT / "data" / "my_digit.png")
    np.testing.assert_allclose(sample, drawer.drawing() / 255)


def test_a_verdict_names_the_two_likeliest(digit):
    logits = np.log([[0.01, 0.02, 0.07, 0.6, 0.3, *[1e-9] * 5]])
    assert digit.verdict(logits) == "a 3 (60%), or a 4 (30%)"


def test_digits_are_those_of_the_files(milestones):
    from needle.data import parse_mnist

    digits = milestones("digits")
    for part in ("train", "t10k"):
        X, y = digits.load(part)
        expected, labels = parse_mnist(*digits.files(part))
        np.testing.assert_array_equal(X, expected.reshape(len(y), -1))
        np.testing.assert_array_equal(y, labels)


# --- text ---


def test_pieces_consist_of_common_words(milestones):
    pieces = milestones("pieces")
    found = pieces.pieces(100)
    words = {word for piece in found for word in piece}
    assert len(found) > 50 and len(words) <= 100 and pieces.UNKNOWN not in words
    assert all(pieces.LEAST <= len(p) <= pieces.MOST and p[-1] in pieces.MARKS for p in found)
    text = " ".join(pieces.TEXT.read_text().split())
    assert all(" ".join(piece) in text for piece in found[:20])


def test_pieces_come_as_a_corpus(milestones):
    from needle.data import Corpus

    pieces = milestones("pieces")
    with pieces.write_pieces(100) as folder:
        corpus = Corpus(folder)
    end = corpus.dictionary.word2idx[pieces.END_OF_LINE]
    train, test = (pieces.in_columns(part, end) for part in (corpus.train, corpus.test))
    found = pieces.pieces(100)
    assert train.shape == (pieces.MOST + 2, len(found) - test.shape[1])
    assert test.shape[1] == -(-len(found) // 10)
    first = [corpus.dictionary.idx2word[i] for i in test[:, 0]]
    ends = [pieces.END_OF_LINE] * (len(first) - len(found[0]) - 1)
    assert first == [pieces.END_OF_LINE, *found[0], *ends]


def test_a_model_writes_lines_that_end(milestones):
    pieces = milestones("pieces")
    words = ["<eos>", "the", "whale", ",", "'s"]
    follows = {0: 1, 1: 2, 2: 4, 4: 3, 3: 0}

    def next_logits(ids):
        return np.where(np.arange(5) == follows[ids[-1]], 50.0, 0.0)

    lines = pieces.written(next_logits, words, np.random.default_rng(0), lines=2)
    assert lines == ["the whale's,"] * 2
    endless = pieces.written(lambda ids: [0, 50, 0, 0, 0], words, np.random.default_rng(0), 1)
    assert endless == [" ".join(["the"] * pieces.MOST)]


# --- the programs ---


def run(program, cwd, *arguments, code="", **environment):
    """Run a milestone from another folder; `code` runs before its main."""
    command = [str(program), *arguments]
    if code:
        start = f"import sys; sys.path.insert(0, {str(program.parent)!r}); import {program.stem}"
        command = ["-c", f"{start} as milestone\n{code}"]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-W", "error", *command],
        cwd=cwd,
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture(scope="module")
def course():
    return load_course(ROOT)


@pytest.fixture(scope="module", params=["hw0", "hw1", "hw2"])
def filled(request, course, tmp_path_factory):
    """Return the name of a stage and its tree with all answers."""
    tree = tmp_path_factory.mktemp("filled") / request.param
    starter.build_tree(course, request.param, tree, filled=True)
    return request.param, tree


def errors_in(output):
    """Return the last line's training and test error of a milestone's table."""
    *_, last = re.findall(r"([\d.]+)% +([\d.]+)%$", output, re.MULTILINE)
    return [float(each) for each in last]


def test_a_milestone_learns_and_reads_the_sample(filled, tmp_path):
    name, tree = filled
    done = run(tree / "milestones" / f"{name}.py", tmp_path)
    assert done.returncode == 0, done.stderr
    train, test = errors_in(done.stdout)
    assert train < 2 and test < 10
    assert "a 3 (" in done.stdout.splitlines()[-1] and "my_digit.png" in done.stdout


def test_a_milestone_reads_a_drawing_of_ones_own(course, tmp_path):
    tree = tmp_path / "hw1"
    starter.build_tree(course, "hw1", tree, filled=True)
    grey = np.kron(bar(28, 28, 5, 13, size=(3, 18)), np.ones((8, 8)))
    (tmp_path / "one.png").write_bytes(png((grey * 255).astype(int)[..., None], 0))
    done = run(tree / "milestones" / "hw1.py", tmp_path, "one.png")
    assert done.stdout.splitlines()[-1].startswith("one.png: a 1 ("), done.stdout + done.stderr


@pytest.mark.parametrize("name", ["hw0", "hw1", "hw2"])
def test_a_missing_answer_is_named(name, course, tmp_path):
    own = {region for question in course.stage(name).questions for region in question.regions}
    earlier = {
        region
        for stage in course.up_to(name)
        for question in stage.questions
        for region in question.regions
    } - own
    tree = tmp_path / name
    starter.build_tree(course, name, tree, filled=earlier)
    done = run(tree / "milestones" / f"{name}.py", tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    found = re.search(rf"({name}\.[\w.]+) is not written yet", done.stderr)
    assert found and found[1] in own and f"needle test {found[1]}" in done.stderr


def test_other_errors_are_shown_as_python_does(milestones, capsys):
    basis = milestones("basis")
    for error in (NotImplementedError("later"), ValueError("hw1.relu.compute")):
        basis.explain(type(error), error, None)
        assert type(error).__name__ in capsys.readouterr().err


def test_kernels_of_both_kinds_agree(tmp_path):
    done = run(FOLDER / "hw3.py", tmp_path)
    assert done.returncode == 0, done.stderr
    train, test = errors_in(done.stdout)
    assert train < 10 and test < 13
    assert re.search(r"steps on cpu\(\) and on cuda\w*\(\): weights differ by \d", done.stdout)


def test_kernels_that_disagree_are_told(tmp_path):
    code = (
        "train = milestone.train\n"
        "def wrong(X, *others):\n"
        "    theta = train(X, *others)\n"
        "    return theta if X.device == milestone.nd.cpu() else theta * 1.01\n"
        "milestone.train = wrong\nmilestone.EPOCHS = 1\nmilestone.main()"
    )
    done = run(FOLDER / "hw3.py", tmp_path, code=code)
    assert done.returncode == 1 and "one of the two has a mistake" in done.stderr


def test_a_convolution_learns_and_an_lstm_writes(tmp_path):
    code = "milestone.TEXT_EPOCHS = 2\nmilestone.learn_digits(); milestone.learn_to_write()"
    done = run(FOLDER / "hw4.py", tmp_path, code=code)
    assert done.returncode == 0, done.stderr
    train, test = errors_in(done.stdout)
    assert train < 10 and test < 15 and "my_digit.png: a 3 (" in done.stdout
    before, after = re.search(r"(\d+) before, (\d+) after", done.stdout).groups()
    assert int(after) < int(before) / 3
    assert len(re.findall(r"^    \w", done.stdout, re.MULTILINE)) == 6


def test_a_transformer_writes(tmp_path):
    done = run(FOLDER / "hw5.py", tmp_path, code="milestone.EPOCHS = 3\nmilestone.main()")
    assert done.returncode == 0, done.stderr
    before, after = re.findall(r"^epoch \d+ +\d+ +(\d+)$", done.stdout, re.MULTILINE)
    assert int(after) < 60 < int(before)
    assert len(re.findall(r"^    \w", done.stdout, re.MULTILINE)) == 8
