"""Write `data/pictures/`: ten photographs from the PyPI package scikit-image, as small PNG files.

Run `python data/make_pictures.py` after `pip install --no-deps scikit-image pillow`; running it
again changes nothing. The result is part of the repository, so only another choice of photographs
needs this script; cut_pictures.py makes a data set of them. See data/README.md.
"""

import importlib.util
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
from cut_pictures import PICTURES, SIZE, read_png

SOURCES = {
    "astronaut": "astronaut.png",
    "brick": "brick.png",
    "cat": "chelsea.png",
    "coffee": "coffee.png",
    "galaxies": "hubble_deep_field.jpg",
    "grass": "grass.png",
    "gravel": "gravel.png",
    "photographer": "camera.png",
    "retina": "retina.jpg",
    "rocket": "rocket.jpg",
}


def source_folder() -> Path:
    """Return the folder of scikit-image's photographs, without importing what it needs."""
    package = importlib.util.find_spec("skimage")
    if package is None or importlib.util.find_spec("PIL") is None:
        sys.exit("[make_pictures] run: pip install --no-deps scikit-image pillow")
    return Path(package.submodule_search_locations[0]) / "data"


def read_photo(path: Path) -> np.ndarray:
    """Return the largest square in the middle of a photograph: uint8 (SIZE, SIZE, 1 or 3)."""
    from PIL import Image

    photo = Image.open(path)
    width, height = photo.size
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    square = photo.crop((left, top, left + side, top + side))
    return np.asarray(square.resize((SIZE, SIZE), Image.Resampling.LANCZOS)).reshape(SIZE, SIZE, -1)


def write_png(path: Path, photo: np.ndarray) -> None:
    """Write a PNG whose rows all have the filter `Sub`, the one that `read_png` undoes."""
    if path.exists() and np.array_equal(read_png(path), photo):
        return  # another zlib may pack the same bytes differently
    height, width, channels = photo.shape
    differences = np.diff(photo, axis=1, prepend=np.uint8(0)).reshape(height, -1)
    rows = np.insert(differences, 0, 1, axis=1)  # the filter's number opens each row
    header = struct.pack(">2I5B", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    with path.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, content in chunks:
            check = zlib.crc32(kind + content)
            file.write(struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check))


def main() -> None:
    """Write the photographs of `data/pictures/`."""
    folder = source_folder()
    PICTURES.mkdir(exist_ok=True)
    for name, file_name in SOURCES.items():
        write_png(PICTURES / f"{name}.png", read_photo(folder / file_name))


if __name__ == "__main__":
    main()
