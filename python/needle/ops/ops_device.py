"""Tensors and devices: the op that takes one to another device, and its gradient back; the check
that several share one.
"""

from typing import Any

from needle.autograd import Tensor, TensorOp
from needle.backend_selection import array_api, as_device
from needle.errors import DeviceError

__all__ = ["ToDevice", "check_devices", "to_device"]


class ToDevice(TensorOp):
    def __init__(self, device: Any) -> None:
        self.device = device

    def compute(self, a):
        return array_api.array(a, dtype=a.dtype, device=self.device)

    def gradient(self, out_grad, node):
        return to_device(out_grad, node.inputs[0].device)


def to_device(a: Tensor, device: Any) -> Tensor:
    """Return `a` on `device` (a device or its name): itself if it is there already, else a copy.

    Raises:
        DeviceError: if there is no such device, or no kernel can run on it.
        DtypeError: if the device does not carry a's dtype.
    """
    device = as_device(device)
    return a if device == a.device else ToDevice(device)(a)


def check_devices(op: str, *tensors: Tensor) -> None:
    """Raise DeviceError unless the Tensors lie on one device.

    For ops that are made of several kernels: those would name the kernel that fails.
    """
    devices = list(dict.fromkeys(tensor.device for tensor in tensors))
    if len(devices) > 1:
        listed = " and ".join(map(str, devices))
        raise DeviceError(f"[{op}] operands on {listed}; move one with .to(device)")
