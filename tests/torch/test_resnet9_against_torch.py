"""ResNet9 and a PyTorch twin with the same weights: outputs, loss and running statistics."""

import numpy as np
import pytest

import models
import needle as ndl
from needle import nn
from tests.torch.pairs import twin_of

pytestmark = pytest.mark.torch


def test_the_first_outputs_agree(device, torch):
    np.random.seed(0)
    model = models.ResNet9(device=device)
    twin = twin_of(model.layers, torch)
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
