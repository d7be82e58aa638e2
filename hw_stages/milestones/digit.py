"""Your own digit: a drawing in a PNG becomes a picture like those that the models learned from.

The drawing may be grey or coloured, of any size, dark on light or light on dark, or on nothing (a
transparent ground). NumPy alone reads it.
"""

import struct
import sys
import zlib
from pathlib import Path

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # grey, RGB, palette, grey with alpha, RGB with alpha
SIDE, BOX, LARGEST = 28, 20, 2000
SHADES = " .:-=+*#%@"


class DigitError(ValueError):
    """A file that this module cannot make a digit of."""


def own_digit(sample: Path) -> tuple[Path, np.ndarray]:
    """Return the PNG that the command line names, or `sample`, and its digit (28, 28)."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else sample
    try:
        return path, as_digit(read_png(path))
    except (DigitError, OSError) as error:
        sys.exit(f"{path}: {getattr(error, 'strerror', None) or error}")


# --- from a file to grey ---


def read_png(path: Path) -> np.ndarray:
    """Return a PNG's lightness, float64 (height, width), 0 for black and 1 for white.

    Where the drawing is transparent there is paper: white, or black if the drawing itself is light.

    Raises:
        DigitError: for a file that is no PNG, is damaged, interlaced or larger than 2,000 a side.
    """
    chunks = read_chunks(Path(path).read_bytes())
    try:
        width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
        if interlaced:
            raise DigitError("an interlaced PNG; save it without interlacing")
        if max(width, height) > LARGEST:
            raise DigitError(f"{width} x {height} pixels; {LARGEST} a side is the most")
        rows = unfilter(zlib.decompress(chunks[b"IDAT"]), width, height, depth, CHANNELS[kind])
        samples = unpack(rows, width, depth, CHANNELS[kind])
    except (KeyError, ValueError, zlib.error, struct.error) as error:
        if isinstance(error, DigitError):
            raise
        raise DigitError("a damaged PNG") from error
    if kind == 3:
        return lightness(*from_palette(samples[..., 0], chunks))
    samples = samples / (2**depth - 1)
    if kind in (4, 6):
        return lightness(samples[..., :-1], samples[..., -1])
    return lightness(samples, np.ones((height, width)))


def read_chunks(data: bytes) -> dict[bytes, bytes]:
    """Return the parts of a PNG by name; those of the same name follow each other in one."""
    if not data.startswith(SIGNATURE):
        raise DigitError("not a PNG file")
    chunks: dict[bytes, bytes] = {}
    start = len(SIGNATURE)
    while start + 8 <= len(data):
        size, name = struct.unpack(">I4s", data[start : start + 8])
        chunks[name] = chunks.get(name, b"") + data[start + 8 : start + 8 + size]
        start += size + 12  # a checksum ends a part
    return chunks


def unfilter(data: bytes, width: int, height: int, depth: int, channels: int) -> np.ndarray:
    """Return the bytes of the rows (height, n): each row was stored as differences, in one of five
    ways that its first byte names.
    """
    size = (width * channels * depth + 7) // 8
    step = max(channels * depth // 8, 1)  # from a byte to its neighbour on the left
    stored = np.frombuffer(data, dtype=np.uint8)[: height * (size + 1)].reshape(height, size + 1)
    above = np.zeros(size, dtype=np.uint8)
    rows = np.empty((height, size), dtype=np.uint8)
    for i, (way, row) in enumerate(zip(stored[:, 0], stored[:, 1:], strict=True)):
        if way == 0:
            above = row
        elif way == 2:
            above = row + above  # uint8: modulo 256, as the format wants
        elif way in (1, 3, 4):
            above = undo_left(int(way), bytes(row), bytes(above), step)
        else:
            raise DigitError("a damaged PNG")
        rows[i] = above
    return rows


def undo_left(way: int, row: bytes, above: bytes, step: int) -> np.ndarray:
    """Return a row that was stored as differences to the left neighbour (1), to the mean of left
    and upper neighbour (3), or to the one of left, upper and upper left that fits best (4).
    """
    done = bytearray(len(row))
    for i, value in enumerate(row):
        left = done[i - step] if i >= step else 0
        up = above[i]
        if way == 1:
            guess = left
        elif way == 3:
            guess = (left + up) // 2
        else:
            corner = above[i - step] if i >= step else 0
            towards = left + up - corner
            guess = min((left, up, corner), key=lambda near: abs(towards - near))
        done[i] = (value + guess) & 255
    return np.frombuffer(bytes(done), dtype=np.uint8)


def unpack(rows: np.ndarray, width: int, depth: int, channels: int) -> np.ndarray:
    """Return the numbers (height, width, channels) that rows of bytes hold with `depth` bits."""
    height = len(rows)
    if depth == 16:
        numbers = rows.reshape(height, -1, 2) @ np.array([256, 1])
    elif depth == 8:
        numbers = rows
    else:
        bits = np.unpackbits(rows, axis=1).reshape(height, -1, depth)
        numbers = bits @ (2 ** np.arange(depth)[::-1])
    return numbers[:, : width * channels].reshape(height, width, channels)


def from_palette(indices: np.ndarray, chunks: dict[bytes, bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return the colours (height, width, 3) and how much they cover (height, width)."""
    try:
        colours = np.frombuffer(chunks[b"PLTE"], dtype=np.uint8).reshape(-1, 3) / 255
        cover = np.ones(len(colours))
        given = np.frombuffer(chunks.get(b"tRNS", b""), dtype=np.uint8)
        cover[: len(given)] = given / 255
        return colours[indices], cover[indices]
    except (KeyError, ValueError, IndexError) as error:
        raise DigitError("a damaged PNG") from error


def lightness(colours: np.ndarray, cover: np.ndarray) -> np.ndarray:
    """Return grey (height, width): colours (height, width, 1 or 3) laid on paper."""
    grey = colours @ ([0.299, 0.587, 0.114] if colours.shape[2] == 3 else [1.0])
    ink = (grey * cover).sum() / cover.sum() if cover.any() else 0.0
    paper = 0.0 if cover.min() < 0.5 and ink > 0.5 else 1.0
    return grey * cover + paper * (1 - cover)


# --- from grey to a digit ---


def as_digit(grey: np.ndarray) -> np.ndarray:
    """Return a digit as MNIST has them, float32 (28, 28): light ink on 0, as large as a box of 20
    allows, its centre of mass in the middle.

    Raises:
        DigitError: if there is nothing to see.
    """
    edge = np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])
    ink = np.abs(grey - np.median(edge))
    if ink.max() < 0.1:
        raise DigitError("nothing to see; draw a digit in one colour on a plain ground")
    ink = np.clip(ink / ink.max() * 1.25 - 0.25, 0, 1)  # a ground with some grain is still ground
    rows, columns = (np.flatnonzero(ink.max(axis=axis) > 0.2) for axis in (1, 0))
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    scale = BOX / max(ink.shape)
    height, width = (max(round(n * scale), 1) for n in ink.shape)
    ink = means(ink.shape[0], height) @ ink @ means(ink.shape[1], width).T
    digit = np.zeros((2 * SIDE, 2 * SIDE), dtype=np.float32)
    top, left = (round(SIDE - centre) for centre in centre_of_mass(ink))
    digit[top : top + height, left : left + width] = ink / ink.max()
    middle = slice(SIDE // 2, SIDE // 2 + SIDE)
    return digit[middle, middle]


def means(size: int, parts: int) -> np.ndarray:
    """Return the matrix (parts, size) that takes the means of equal parts of a line of pixels."""
    edges = np.linspace(0, size, parts + 1)
    pixel = np.arange(size)
    share = np.minimum(edges[1:, None], pixel + 1) - np.maximum(edges[:-1, None], pixel)
    return np.clip(share, 0, None) * (parts / size)


def centre_of_mass(ink: np.ndarray) -> tuple[float, float]:
    """Return the mean row and column of the ink, in pixels from the corner."""
    total = ink.sum()
    row = ink.sum(axis=1) @ (np.arange(ink.shape[0]) + 0.5) / total
    column = ink.sum(axis=0) @ (np.arange(ink.shape[1]) + 0.5) / total
    return float(row), float(column)


# --- what to say about it ---


def as_text(digit: np.ndarray) -> str:
    """Return a digit (28, 28) as 14 lines of characters: what the model sees."""
    pairs = np.asarray(digit).reshape(SIDE // 2, 2, SIDE).mean(axis=1)
    shades = np.minimum((pairs * len(SHADES)).astype(int), len(SHADES) - 1)
    return "\n".join("".join(SHADES[i] for i in row).rstrip() for row in shades)


def verdict(logits: np.ndarray) -> str:
    """Return what logits (10,) say: the most probable digit, and the next."""
    logits = np.asarray(logits, dtype=np.float64).ravel()
    probability = np.exp(logits - logits.max())
    probability /= probability.sum()
    first, second = np.argsort(-probability)[:2]
    return f"a {first} ({probability[first]:.0%}), or a {second} ({probability[second]:.0%})"
