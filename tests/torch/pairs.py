"""The same numbers on both sides."""

import numpy as np

import needle as ndl


def pair(values, device, torch):
    """Return the same numbers as a needle Tensor and as a PyTorch one, both wanting a gradient."""
    values = np.asarray(values, np.float32)
    return ndl.Tensor(values, device=device), torch.tensor(values, requires_grad=True)
