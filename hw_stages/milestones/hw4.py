"""Milestone of hw4: a network of your own convolutions learns digits, and your own LSTM learns to
write, all on your own kernels.

python milestones/hw4.py [MY_DIGIT.png]
"""

import os

import basis
import digit
import digits
import numpy as np
import pieces
import table

os.environ["NEEDLE_BACKEND"] = "nd"

import needle as ndl
from models import LanguageModel
from needle import nn
from simple_ml import evaluate_ptb, train_ptb

DIGITS, EPOCHS, BATCH = 2000, 3, 50  # of the 4,000: your kernels need their time
COMMON, WIDTH, SEQ_LEN, COLUMNS, TEXT_EPOCHS = 300, 64, 8, 16, 8


def cnn() -> nn.Module:
    """Return a network for images (B, 1, 28, 28): two convolutions that halve the side each."""
    return nn.Sequential(
        nn.Conv(1, 8, 3, stride=2),
        nn.ReLU(),
        nn.Conv(8, 16, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 10),
    )


def load(part: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `count` images (count, 1, 28, 28) and their labels."""
    images, labels = ndl.data.MNISTDataset(*digits.files(part))[:count]
    return np.asarray(images).reshape(-1, 1, 28, 28), np.asarray(labels)


def logits_of(model: nn.Module, X: np.ndarray) -> np.ndarray:
    """Return the logits (images, 10) of a model, computed in parts."""
    parts = (X[start : start + 100] for start in range(0, len(X), 100))
    return np.concatenate([model(ndl.Tensor(part)).numpy() for part in parts])


def learn_digits() -> None:
    """Train the network, print its errors, and what it takes a digit for."""
    path, mine = digit.own_digit(basis.SAMPLE)
    (X, y), (X_test, y_test) = load("train", DIGITS), load("t10k", 500)
    np.random.seed(0)
    model = cnn()
    opt = ndl.optim.Adam(model.parameters(), lr=0.005)
    loss_fn = nn.SoftmaxLoss()
    table.header()
    for epoch in range(1, EPOCHS + 1):
        wrong = 0
        for start in range(0, len(X), BATCH):
            part = slice(start, start + BATCH)
            opt.reset_grad()
            logits = model(ndl.Tensor(X[part]))
            loss_fn(logits, ndl.Tensor(y[part])).backward()
            opt.step()
            wrong += int(np.sum(logits.numpy().argmax(axis=1) != y[part]))
        test_error = np.mean(logits_of(model, X_test).argmax(axis=1) != y_test)
        table.line(f"two convolutions, epoch {epoch}", wrong / len(X), test_error)
    print(f"{path.name}: {digit.verdict(logits_of(model, mine.reshape(1, 1, 28, 28)))}")


def learn_to_write() -> None:
    """Train an LSTM on short pieces of text, print its perplexity and a few lines of its own."""
    with pieces.write_pieces(COMMON) as folder:
        corpus = ndl.data.Corpus(folder)
    words = corpus.dictionary.idx2word
    train, test = (
        ndl.data.batchify(part, COLUMNS, device=ndl.cpu(), dtype="float32")
        for part in (corpus.train, corpus.test)
    )
    np.random.seed(0)
    model = LanguageModel(WIDTH, len(words), WIDTH, seq_model="lstm", seq_len=SEQ_LEN)
    settings = {"seq_len": SEQ_LEN, "device": ndl.cpu()}

    def perplexity() -> float:
        return float(np.exp(evaluate_ptb(model, test, **settings)[1]))

    print(f"\nAn LSTM reads {len(corpus.train)} words, {len(words)} different.")
    before = perplexity()
    train_ptb(model, train, n_epochs=TEXT_EPOCHS, optimizer=ndl.optim.Adam, lr=0.01, **settings)
    print(f"perplexity on other text: {before:.0f} before, {perplexity():.0f} after. It writes:")

    def next_logits(ids: list[int]) -> np.ndarray:
        column = ndl.Tensor(np.array(ids).reshape(-1, 1), device=ndl.cpu())
        return model(column)[0].numpy()[-1]

    for line in pieces.written(next_logits, words, np.random.default_rng(1), lines=6):
        print(f"    {line}")


if __name__ == "__main__":
    learn_digits()
    learn_to_write()
