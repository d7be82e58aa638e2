"""Cut the photographs in `data/pictures/` into a small data set in CIFAR-10's format.

A program calls `picture_batches()` for the folder that CIFAR10Dataset reads: the files are made
the first time, in a second or two, with numpy alone. Training and test images come from separate
parts of each photograph. See data/README.md.
"""

import os
import pickle
import struct
import zlib
from pathlib import Path

import numpy as np

PICTURES = Path(__file__).parent / "pictures"
BATCHES = PICTURES / "batches"

CROP = 32  # CIFAR-10's size
SCALES = (1, 2)  # a crop shows 32 x 32 pixels as they are, or 64 x 64 at half the size
CELL = 80  # each photograph is a grid of 4 x 4 cells, and no crop leaves its cell
GRID = 4
SIZE = CELL * GRID
TEST_CELLS = ((0, 1), (1, 3), (2, 0), (3, 2))  # one in each row and column
TRAIN_CELLS = tuple(cell for cell in np.ndindex(GRID, GRID) if cell not in TEST_CELLS)
TRAIN_PER_CLASS, TEST_PER_CLASS = 400, 100


def picture_batches(folder: Path = BATCHES) -> Path:
    """Return `folder` with `data_batch_1`, `test_batch` and `batches.meta` in it.

    Files that are missing, or older than the photographs or than this program, are made anew.
    """
    sources = [Path(__file__), *photographs()]
    made = [folder / name for name in ("data_batch_1", "test_batch", "batches.meta")]
    changed = max(path.stat().st_mtime for path in sources)
    if not all(path.exists() and path.stat().st_mtime >= changed for path in made):
        write_batches(folder)
    return folder


def photographs() -> list[Path]:
    """Return the photographs, one a class, in the order of their labels."""
    return sorted(PICTURES.glob("*.png"))


def write_batches(folder: Path) -> None:
    """Write the three files; programs that start together never see a part of one."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in batches().items():
        partial = folder / f".{name}.{os.getpid()}"
        partial.write_bytes(pickle.dumps(content, protocol=4))
        partial.replace(folder / name)


def batches() -> dict[str, dict[bytes, object]]:
    """Return what each file holds, with the keys of CIFAR-10's own files."""
    random = np.random.RandomState(0)  # this generator's stream is frozen across numpy versions
    names = [path.stem.encode() for path in photographs()]
    photos = [read_png(path) for path in photographs()]
    train = batch(photos, TRAIN_CELLS, TRAIN_PER_CLASS, random)
    test = batch(photos, TEST_CELLS, TEST_PER_CLASS, random)
    train[b"batch_label"], test[b"batch_label"] = b"training batch 1 of 1", b"testing batch 1 of 1"
    meta = {b"num_cases_per_batch": len(train[b"labels"]), b"label_names": names, b"num_vis": 3072}
    return {"data_batch_1": train, "test_batch": test, "batches.meta": meta}


def batch(photos, cells, count, random) -> dict[bytes, object]:
    """Return `count` images of each photograph, shuffled: uint8 (n, 3072), and their labels."""
    images = [
        cut(photo, cells[i % len(cells)], random).transpose(2, 0, 1).reshape(-1)
        for photo in photos
        for i in range(count)
    ]
    labels = np.repeat(np.arange(len(photos)), count)
    order = random.permutation(len(images))
    return {b"data": np.stack(images)[order], b"labels": labels[order].tolist()}


def cut(photo: np.ndarray, cell: tuple[int, int], random) -> np.ndarray:
    """Return a random square of one cell, at a random scale, half of them mirrored: (32, 32, 3)."""
    scale = SCALES[random.randint(len(SCALES))]
    side = CROP * scale
    top, left = np.multiply(cell, CELL) + random.randint(CELL - side + 1, size=2)
    square = photo[top : top + side, left : left + side]
    small = square.reshape(CROP, scale, CROP, scale, -1).mean(axis=(1, 3)).astype(np.uint8)
    return small[:, ::-1] if random.randint(2) else small


def read_png(path: Path) -> np.ndarray:
    """Return the uint8 (height, width, 3) image of a PNG that make_pictures.py wrote."""
    content = path.read_bytes()
    width, height, _, colour = struct.unpack_from(">2I2B", content, 16)
    length = struct.unpack_from(">I", content, 33)[0]  # of the pixels, behind the header's 33 bytes
    rows = np.frombuffer(zlib.decompress(content[41 : 41 + length]), np.uint8).reshape(height, -1)
    differences = rows[:, 1:].reshape(height, width, 3 if colour == 2 else 1)
    photo = np.cumsum(differences, axis=1, dtype=np.uint8)
    return np.broadcast_to(photo, (height, width, 3))
