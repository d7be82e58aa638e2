"""im2col: the windows of an image as the rows of a matrix, so that a convolution is one product."""

import numpy as np

import needle as ndl
from hw_stages.pictures.drawing import BLUE, ORANGE, PALE, WHITE, YELLOW, Page, number
from needle import ops
from needle.backend_ndarray import NDArray, cpu_numpy

TITLE = "im2col: a 4x4 image under a 3x3 kernel"
WINDOW = (0, 1)  # the window that is followed through the picture


def draw() -> str:
    """Return the picture."""
    image = np.array([[1, 2, 0, 1], [3, 1, 2, 0], [4, 2, 1, 3], [1, 0, 2, 1]], dtype=np.float32)
    kernel = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]], dtype=np.float32)
    a = NDArray(image, device=cpu_numpy())
    windows = a.as_strided((2, 2, 3, 3), (*a.strides, *a.strides))
    matrix = windows.numpy().reshape(4, 9)
    product = matrix @ kernel.reshape(9)
    convolved = ops.conv(
        ndl.Tensor(image.reshape(1, 4, 4, 1)), ndl.Tensor(kernel.reshape(3, 3, 1, 1)), padding=0
    )
    if not np.array_equal(product, convolved.numpy().ravel()):
        raise ValueError(f"im2col gives {product}, ops.conv {convolved.numpy().ravel()}")
    page = Page(1000, 580, TITLE)
    _image(page, 30, 60, image, kernel)
    _strides(page, a, windows)
    _matrix(page, matrix, kernel, product)
    return page.svg()


def _image(page: Page, x: float, y: float, image: np.ndarray, kernel: np.ndarray) -> None:
    """Draw the image with the followed window, and the kernel."""
    cell = (44, 40)
    i, j = WINDOW

    def fill(row: int, column: int) -> str:
        return BLUE if i <= row < i + 3 and j <= column < j + 3 else WHITE

    page.text(x, y - 26, "image (4, 4)", anchor="start", bold=True)
    page.grid(x, y, image, cell=cell, fill=fill, size=16)
    page.outline(x + j * cell[0], y + i * cell[1], 3 * cell[0], 3 * cell[1])
    page.text(x + 270, y - 26, "kernel (3, 3)", anchor="start", bold=True)
    page.grid(x + 270, y, kernel, cell=cell, fill=YELLOW, size=16)


def _strides(page: Page, a: NDArray, windows: NDArray) -> None:
    """Say how the windows are a view of the image."""
    lines = [
        "The windows are a view, nothing is copied:",
        f"a              shape {a.shape}  strides {a.strides}",
        f"as_strided     shape {windows.shape}",
        f"               strides {windows.strides}",
        "windows[i, j, u, v] is a[i + u, j + v].",
        "reshape to (4, 9) copies: one row for each window.",
    ]
    for n, line in enumerate(lines):
        page.text(500, 66 + 27 * n, line.replace(" ", "\u00a0"), anchor="start", size=13,
                  mono=0 < n < 5)  # fmt: skip


def _matrix(page: Page, matrix: np.ndarray, kernel: np.ndarray, product: np.ndarray) -> None:
    """Draw matrix times kernel gives the output, with the row of the followed window."""
    row = 2 * WINDOW[0] + WINDOW[1]
    cell = (44, 34)
    x, y = 140, 314
    page.text(x, y - 26, "matrix (4, 9): a row for each window", anchor="start", bold=True)
    page.grid(x, y, matrix, cell=cell, size=15, fill=lambda i, j: BLUE if i == row else WHITE)
    page.outline(x, y + row * cell[1], 9 * cell[0], cell[1])
    for n in range(4):
        page.text(x - 14, y + (n + 0.5) * cell[1], f"window [{n // 2}, {n % 2}]", anchor="end",
                  size=13)  # fmt: skip
    middle = y + 2 * cell[1]
    page.text(x + 9 * cell[0] + 26, middle, "@", size=22)
    left = x + 9 * cell[0] + 54
    page.text(left + 22, y - 84, "kernel", bold=True)
    page.text(left + 22, y - 64, "(9, 1)", size=13)
    page.grid(left, y - 44, kernel.reshape(9, 1), cell=(44, 28), fill=YELLOW, size=15)
    page.text(left + 74, middle, "=", size=22)
    right = left + 106
    page.text(right + 22, y - 46, "product", bold=True)
    page.text(right + 22, y - 26, "(4, 1)", size=13)
    page.grid(right, y, product.reshape(4, 1), cell=cell, size=15,
              fill=lambda i, j: ORANGE if i == row else PALE)  # fmt: skip
    page.line((right + 50, middle), (right + 96, middle), arrow=True, width=1.8)
    page.text(right + 154, y - 26, "output (2, 2)", bold=True)
    page.grid(right + 108, middle - 36, product.reshape(2, 2), cell=(46, 36), size=15,
              fill=lambda i, j: ORANGE if (i, j) == WINDOW else PALE)  # fmt: skip
    i, j = WINDOW
    terms = " + ".join(
        f"{number(a)}·{number(b)}" if b >= 0 else f"{number(a)}·({number(b)})"
        for a, b in zip(matrix[row], kernel.ravel(), strict=True)
    )
    page.text(30, y + 236, f"output [{i}, {j}] = {terms} = {number(product[row])}", anchor="start",
              size=13.5)  # fmt: skip
