"""ResNet9 and a PyTorch twin with the same weights: outputs, loss and running statistics."""

import numpy as np
import pytest

import models
import needle as ndl
from needle import nn

pytestmark = pytest.mark.torch


def twin_of(module, torch):
    """Return the PyTorch module of the same layers, with a copy of the weights."""
    tnn = torch.nn
    if isinstance(module, models.ResNet9):
        return twin_of(module.layers, torch)
    if isinstance(module, nn.Sequential):
        return tnn.Sequential(*(twin_of(child, torch) for child in module.modules))
    if isinstance(module, nn.Residual):
        return residual(twin_of(module.fn, torch), torch)
    if isinstance(module, nn.Linear):
        twin = tnn.Linear(module.in_features, module.out_features)
        weight = module.weight.numpy().T
    elif isinstance(module, nn.Conv):
        size, _, channels_in, channels_out = module.weight.shape
        twin = tnn.Conv2d(channels_in, channels_out, size, module.stride, padding=size // 2)
        weight = module.weight.numpy().transpose(3, 2, 0, 1)
    else:
        plain = {nn.Flatten: tnn.Flatten, nn.ReLU: tnn.ReLU}
        if type(module) in plain:
            return plain[type(module)]()
        return tnn.BatchNorm2d(module.dim, eps=module.eps, momentum=module.momentum)
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


def test_the_first_outputs_agree(device, torch):
    np.random.seed(0)
    model = models.ResNet9(device=device)
    twin = twin_of(model, torch)
    assert sum(p.numel() for p in twin.parameters()) == 431_946
    images = np.random.rand(2, 3, 32, 32).astype(np.float32)
    labels = np.array([3, 7])
    logits = model(ndl.Tensor(images, device=device, requires_grad=False))
    loss = nn.SoftmaxLoss()(logits, ndl.Tensor(labels, device=device, requires_grad=False))
    loss.backward()
    expected = twin(torch.from_numpy(images))
    expected_loss = torch.nn.functional.cross_entropy(expected, torch.from_numpy(labels))
    expected_loss.backward()
    np.testing.assert_allclose(logits.numpy(), expected.detach().numpy(), rtol=1e-2, atol=1e-2)
    assert float(loss) == pytest.approx(float(expected_loss.detach()), abs=1e-2)
    last, expected_last = model.layers.modules[-1], twin[-1]
    np.testing.assert_allclose(
        last.weight.grad.numpy().T, expected_last.weight.grad.numpy(), rtol=1e-2, atol=1e-2
    )
