"""What the kernel tests share: devices, buffers, and layouts that numpy itself describes."""

import numpy as np

JUNK = -7.0e7  # what an output holds before: a kernel that adds to it, or leaves it, is seen


def device_of(nd, name):
    """Return cpu(), or cuda(), which is emulated where there is no GPU."""
    device = nd.cpu() if name == "cpu" else nd.cuda()
    device.check_dtype("float32", "test")  # tells why a device is missing
    return device


def upload(device, values):
    """Return a buffer on the device with the numbers of an array, row-major."""
    values = np.ascontiguousarray(values, np.float32)
    buffer = device.Array(values.size)
    device.from_numpy(values, buffer)
    return buffer


def output(device, size, clean=False):
    """Return a buffer for a result: full of junk, or never written at all."""
    return device.Array(size) if clean else upload(device, np.full(size, JUNK))


def download(device, buffer):
    """Return the numbers of a buffer."""
    return device.to_numpy(buffer, (buffer.size,), (1,), 0)


def layout_of(view, base):
    """Return (shape, strides, offset) of a numpy view of `base`, counted in elements."""
    offset = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    strides = tuple(stride // view.itemsize for stride in view.strides)
    return view.shape, strides, offset // view.itemsize


# The layouts on which compact and the two setitems are tested: the base's shape, and the view.
ORDERS = {
    "whole": ((5, 7), lambda a: a),
    "transposed": ((5, 7), lambda a: a.T),
    "three axes": ((4, 3, 5), lambda a: a.transpose(2, 0, 1)),
    "seven axes": ((2, 3, 2, 1, 3, 2, 2), lambda a: a.transpose(6, 2, 4, 0, 1, 5, 3)),
    "axes of size one": ((1, 4, 1, 3), lambda a: a.transpose(3, 2, 1, 0)),
    "more than a block": ((19, 31), lambda a: a.T),
}
SLICES = {
    "one axis": ((11,), lambda a: a[1::3]),
    "an inner block": ((6, 8), lambda a: a[1:5, 2:7]),
    "steps": ((9, 7, 4), lambda a: a[1:8:3, ::2, 1:4]),
    "a column": ((6, 5), lambda a: a[:, 3:4]),
    "transposed and sliced": ((6, 7), lambda a: a.T[2:6, 1::2]),
    "of seven axes": ((2, 3, 2, 3, 2, 3, 2), lambda a: a[:, 1:, :, ::2, 1:, :2].swapaxes(0, 5)),
    "more than a block": ((40, 33), lambda a: a[1::2, 3:30]),
    "a single element": ((3, 4), lambda a: a[2:3, 1:2]),
    "no element": ((4, 5), lambda a: a[2:2, 1:]),
}
FLIPS = {
    "one axis": ((6,), lambda a: a[::-1]),
    "both axes": ((4, 5), lambda a: a[::-1, ::-1]),
    "negative steps": ((7, 9), lambda a: a[5:0:-2, 8::-3]),
    "the middle axis": ((3, 4, 5), lambda a: a[:, ::-1, 1:4]),
    "more than a block": ((21, 17), lambda a: a[::-1]),
}
STRETCHED = {
    "a row": ((1, 5), lambda a: np.broadcast_to(a, (4, 5))),
    "a column": ((4, 1), lambda a: np.broadcast_to(a, (4, 6))),
    "an inner axis": ((3, 1, 5), lambda a: np.broadcast_to(a, (3, 4, 5))),
    "added axes": ((3,), lambda a: np.broadcast_to(a, (2, 4, 3))),
    "a single number": ((1,), lambda a: np.broadcast_to(a, (17, 19))),
}
