"""Write data/my_digit.png: a digit as somebody may draw it with the mouse, dark on white.

The milestones of the course read it; a drawing of your own serves as well.
"""

import struct
import zlib
from pathlib import Path

import numpy as np

SIDE, PEN = 140, 6.5
TARGET = Path(__file__).with_name("my_digit.png")
# A 3: the pen's way through the picture, as (x, y) in 0 .. 1; a smooth curve joins the points.
WAY = [
    (0.30, 0.27),
    (0.40, 0.19),
    (0.55, 0.18),
    (0.66, 0.27),
    (0.63, 0.40),
    (0.45, 0.48),
    (0.62, 0.53),
    (0.70, 0.65),
    (0.64, 0.78),
    (0.48, 0.84),
    (0.29, 0.76),
]


def smooth(points: np.ndarray, times: int = 4) -> np.ndarray:
    """Return a line through `points` (n, 2) with its corners cut `times` times (Chaikin 1974)."""
    for _ in range(times):
        first, second = points[:-1], points[1:]
        cut = np.stack([0.75 * first + 0.25 * second, 0.25 * first + 0.75 * second], axis=1)
        points = np.concatenate([points[:1], cut.reshape(-1, 2), points[-1:]])
    return points


def drawing() -> np.ndarray:
    """Return the picture, uint8 (SIDE, SIDE): black within PEN of the way, else white."""
    line = smooth(np.array(WAY)) * SIDE
    y, x = np.mgrid[:SIDE, :SIDE] + 0.5
    nearest = np.full((SIDE, SIDE), np.inf)
    for (x0, y0), (x1, y1) in zip(line[:-1], line[1:], strict=True):
        dx, dy = x1 - x0, y1 - y0
        along = ((x - x0) * dx + (y - y0) * dy) / max(dx * dx + dy * dy, 1e-12)
        along = np.clip(along, 0, 1)
        nearest = np.minimum(nearest, np.hypot(x - x0 - along * dx, y - y0 - along * dy))
    return (np.clip(nearest - PEN + 0.5, 0, 1) * 255).round().astype(np.uint8)


def png(grey: np.ndarray) -> bytes:
    """Return a grey picture (height, width), uint8, as the bytes of a PNG."""

    def chunk(name: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)

    height, width = grey.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in grey)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


if __name__ == "__main__":
    TARGET.write_bytes(png(drawing()))
