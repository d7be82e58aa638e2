"""Milestone of hw2: a residual network of your own layers learns digits with your own Adam.

python milestones/hw2.py [MY_DIGIT.png]
"""

import os

import basis
import digit
import digits
import numpy as np
import table

os.environ["NEEDLE_BACKEND"] = "np"

import needle as ndl
from mlp_resnet import MLPResNet, epoch

EPOCHS = 8


def main() -> None:
    """Train, print the errors of each epoch, and what the network takes a digit for."""
    path, mine = digit.own_digit(basis.SAMPLE)
    train_set, test_set = (ndl.data.MNISTDataset(*digits.files(part)) for part in ("train", "t10k"))
    train = ndl.data.DataLoader(train_set, batch_size=100, shuffle=True)
    test = ndl.data.DataLoader(test_set, batch_size=100)
    np.random.seed(0)
    model = MLPResNet(784, hidden_dim=200, num_blocks=2, drop_prob=0.3)
    opt = ndl.optim.Adam(model.parameters(), lr=0.002, weight_decay=0.001)
    table.header()
    for number in range(1, EPOCHS + 1):
        train_error, _ = epoch(train, model, opt)
        test_error, _ = epoch(test, model)
        table.line(f"MLP-ResNet, epoch {number}", train_error, test_error)
    model.eval()
    logits = model(ndl.Tensor(mine.reshape(1, 28, 28, 1)))
    print(f"\n{path.name}: {digit.verdict(logits.numpy())}")


if __name__ == "__main__":
    main()
