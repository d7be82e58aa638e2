"""Convolution, pooling and dilation in numpy, by loops that a reader can check by eye.

Images are (N, H, W, C); sizes are an int or an (h, w) pair.
"""

import numpy as np


def pair(value):
    """Return an int twice, or a pair as it is."""
    return (value, value) if isinstance(value, int) else tuple(value)


def patches(a, kernel, stride, padding, fill=0.0):
    """Yield ((i, j), the patch (N, KH, KW, C) of the padded images that output pixel sees)."""
    (kh, kw), (sh, sw), (ph, pw) = pair(kernel), pair(stride), pair(padding)
    a = np.pad(a, ((0, 0), (ph, ph), (pw, pw), (0, 0)), constant_values=fill)
    for i in range((a.shape[1] - kh) // sh + 1):
        for j in range((a.shape[2] - kw) // sw + 1):
            yield (i, j), a[:, i * sh : i * sh + kh, j * sw : j * sw + kw]


def from_pixels(pixels):
    """Return (N, OH, OW, C) from a dict of (N, C) by output pixel."""
    rows, columns = (max(at) + 1 for at in zip(*pixels, strict=True))
    return np.stack([np.stack([pixels[i, j] for j in range(columns)], 1) for i in range(rows)], 1)


def np_conv(a, b, stride=1, padding=1):
    """Return the convolution by its definition."""
    return from_pixels(
        {
            at: np.einsum("nhwc,hwco->no", patch, b)
            for at, patch in patches(a, b.shape[:2], stride, padding)
        }
    )


def np_conv_gradients(a, b, out_grad, stride, padding):
    """Return what each output pixel hands back to the input and to the weight, added up."""
    (kh, kw), (sh, sw), (ph, pw) = b.shape[:2], pair(stride), pair(padding)
    n, h, w, c = a.shape
    grad_a, grad_b = np.zeros((n, h + 2 * ph, w + 2 * pw, c)), np.zeros(b.shape)
    for (i, j), patch in patches(a, (kh, kw), stride, padding):
        pixel = out_grad[:, i, j]
        place = np.s_[:, i * sh : i * sh + kh, j * sw : j * sw + kw]
        grad_a[place] += np.einsum("no,hwco->nhwc", pixel, b)
        grad_b += np.einsum("nhwc,no->hwco", patch, pixel)
    return grad_a[:, ph : ph + h, pw : pw + w], grad_b


def np_max_pool(a, kernel_size, stride=None, padding=0):
    """Return the maximum of each patch; the padding never wins."""
    stride = kernel_size if stride is None else stride
    pixels = patches(a, kernel_size, stride, padding, fill=-np.inf)
    return from_pixels({at: patch.max((1, 2)) for at, patch in pixels})


def np_avg_pool(a, kernel_size, stride=None, padding=0):
    """Return the mean of each patch, padding included."""
    stride = kernel_size if stride is None else stride
    pixels = patches(a, kernel_size, stride, padding)
    return from_pixels({at: patch.mean((1, 2)) for at, patch in pixels})


def np_dilate(a, axes, dilation):
    """Return `a` with zeros after each element along `axes`."""
    for axis in (axes,) if isinstance(axes, int) else axes:
        if axis < a.ndim:
            moved = np.moveaxis(a, axis, 0)
            zeros = np.zeros_like(moved)
            mixed = np.stack([moved] + [zeros] * dilation, 1)
            a = np.moveaxis(mixed.reshape(-1, *moved.shape[1:]), 0, axis)
    return a


def np_undilate(a, axes, dilation):
    """Return every (dilation + 1)-th element along `axes`."""
    for axis in (axes,) if isinstance(axes, int) else axes:
        if axis < a.ndim:
            a = np.moveaxis(np.moveaxis(a, axis, 0)[:: dilation + 1], 0, axis)
    return a
