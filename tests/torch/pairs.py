"""The same numbers on both sides: tensors, and models with the same weights."""

import numpy as np

import needle as ndl
from needle import nn


def pair(values, device, torch):
    """Return the same numbers as a needle Tensor and as a PyTorch one, both wanting a gradient."""
    values = np.asarray(values, np.float32)
    return ndl.Tensor(values, device=device), torch.tensor(values, requires_grad=True)


def twin_of(module, torch):
    """Return the PyTorch module of the same layers, with a copy of the weights."""
    tnn = torch.nn
    if isinstance(module, nn.Sequential):
        return tnn.Sequential(*(twin_of(child, torch) for child in module.modules))
    if isinstance(module, nn.Residual):
        return residual(twin_of(module.fn, torch), torch)
    if isinstance(module, nn.Linear):
        twin = tnn.Linear(module.in_features, module.out_features)
        weight = module.weight.numpy().T
    elif isinstance(module, nn.Conv):
        twin = tnn.Conv2d(
            module.in_channels,
            module.out_channels,
            module.kernel_size,
            module.stride,
            padding=module.padding,
        )
        weight = module.weight.numpy().transpose(3, 2, 0, 1)
    elif isinstance(module, nn.BatchNorm1d):
        kind = tnn.BatchNorm2d if isinstance(module, nn.BatchNorm2d) else tnn.BatchNorm1d
        return kind(module.dim, eps=module.eps, momentum=module.momentum)
    else:
        plain = {nn.Flatten: tnn.Flatten, nn.ReLU: tnn.ReLU, nn.Dropout: tnn.Identity}
        return plain[type(module)]()
    with torch.no_grad():
        twin.weight.copy_(torch.from_numpy(weight.copy()))
        twin.bias.copy_(torch.from_numpy(module.bias.numpy().reshape(-1)))
    return twin


def residual(body, torch):
    class Residual(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = body

        def forward(self, x):
            return self.body(x) + x

    return Residual()
