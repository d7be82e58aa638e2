"""Random changes of one image, applied by a dataset each time that it hands the image out.

Images are numpy arrays, height x width x channels. Each call draws from `np.random` exactly once,
whether the image changes or not, so that a seed always gives the same run.
"""

from typing import Any

import numpy as np

from needle.errors import ShapeError

__all__ = ["RandomCrop", "RandomFlipHorizontal", "Transform"]


class Transform:
    """The base class of transforms: a callable from one image to another."""

    def __call__(self, x: Any) -> Any:
        """Return `x` transformed."""
        raise NotImplementedError


class RandomFlipHorizontal(Transform):
    """Mirror an image left to right with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"[RandomFlipHorizontal] p is {p}; a probability lies in 0..1")
        self.p = p

    def __call__(self, img: np.ndarray) -> np.ndarray:
        """Return a (height, width, channels) image, mirrored or as it is; ShapeError otherwise."""
        check_image("RandomFlipHorizontal", img)
        ### BEGIN SOLUTION hw2.random_flip_horizontal
        flip = np.random.rand() < self.p
        return img[:, ::-1, :] if flip else img
        ### END SOLUTION


class RandomCrop(Transform):
    """Shift an image by up to `padding` pixels along each side, with zeros where it left."""

    def __init__(self, padding: int = 3) -> None:
        if padding < 0:
            raise ShapeError(f"[RandomCrop] padding is {padding}; it counts pixels, from 0 up")
        self.padding = padding

    def __call__(self, img: np.ndarray) -> np.ndarray:
        """Return a window as large as the (height, width, channels) image; ShapeError otherwise.

        The window slides over the zero-padded image; a positive shift moves it down or right, and
        so the picture up or left.
        """
        check_image("RandomCrop", img)
        ### BEGIN SOLUTION hw2.random_crop
        shift_x, shift_y = np.random.randint(low=-self.padding, high=self.padding + 1, size=2)
        padded = np.pad(img, ((self.padding, self.padding), (self.padding, self.padding), (0, 0)))
        top, left = self.padding + shift_x, self.padding + shift_y
        height, width, _ = img.shape
        return padded[top : top + height, left : left + width, :]
        ### END SOLUTION


def check_image(op: str, img: np.ndarray) -> None:
    """Raise ShapeError unless `img` is one image; a batch would be turned along the wrong axis."""
    if np.ndim(img) != 3:
        raise ShapeError(
            f"[{op}] an array of shape {np.shape(img)}; one image has (height, width, channels)"
        )
