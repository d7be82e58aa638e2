"""Milestone of hw5: your own transformer reads pieces of Moby-Dick and writes lines of its own, on
your own kernels.

python milestones/hw5.py
"""

import os

import basis  # noqa: F401 - it puts your code on the path
import numpy as np
import pieces

os.environ["NEEDLE_BACKEND"] = "nd"

import needle as ndl
from needle import nn

COMMON, WIDTH, HIDDEN, LAYERS, HEADS = 300, 64, 128, 2, 4
SEQ_LEN, BATCH, EPOCHS, LINES = pieces.MOST + 1, 32, 9, 8


class Writer(nn.Module):
    """A transformer between an embedding of words and a linear layer to the next word."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, WIDTH)
        self.transformer = nn.Transformer(
            WIDTH,
            HIDDEN,
            LAYERS,
            num_head=HEADS,
            dim_head=WIDTH // HEADS,
            dropout=0.1,
            sequence_len=SEQ_LEN,
        )
        self.norm = nn.LayerNorm1d(WIDTH)
        self.linear = nn.Linear(WIDTH, words)

    def forward(self, x: ndl.Tensor) -> ndl.Tensor:
        """Map word ids (T, B) to logits (T * B, words)."""
        y, _ = self.transformer(self.embedding(x))
        return self.linear(self.norm(y.reshape((y.shape[0] * y.shape[1], WIDTH))))


def learn(model: Writer, columns: np.ndarray, opt: ndl.optim.Optimizer) -> None:
    """Go through the pieces once, in a random order."""
    model.train()
    loss_fn = nn.SoftmaxLoss()
    order = np.random.permutation(columns.shape[1])
    for start in range(0, len(order), BATCH):
        batch = columns[:, order[start : start + BATCH]]
        opt.reset_grad()
        loss_fn(model(ndl.Tensor(batch[:-1])), ndl.Tensor(batch[1:].reshape(-1))).backward()
        opt.step()


def perplexity(model: Writer, columns: np.ndarray, end: int) -> float:
    """Return the perplexity of the pieces, each to its first end of line."""
    model.eval()
    total, words = 0.0, 0
    for start in range(0, columns.shape[1], BATCH):
        x, y = columns[:-1, start : start + BATCH], columns[1:, start : start + BATCH]
        logits = model(ndl.Tensor(x)).numpy().astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        counts = (y != end) | (x != end)  # not what fills a column up
        total -= logs[np.arange(y.size), y.reshape(-1)][counts.reshape(-1)].sum()
        words += counts.sum()
    return float(np.exp(total / words))


def main() -> None:
    """Train, print the perplexity now and then, and a few lines that the model writes."""
    with pieces.write_pieces(COMMON) as folder:
        corpus = ndl.data.Corpus(folder)
    words = corpus.dictionary.idx2word
    end = words.index(pieces.END_OF_LINE)
    train, test = (pieces.in_columns(part, end) for part in (corpus.train, corpus.test))
    np.random.seed(0)
    model = Writer(len(words))
    opt = ndl.optim.Adam(model.parameters(), lr=0.003, weight_decay=0.001)
    print(f"A transformer reads {train.shape[1]} pieces of text, {len(words)} different words.")
    print(f"{'perplexity':<14}{'of this text':>14}{'of other text':>16}")
    for epoch in range(EPOCHS + 1):
        if epoch:
            learn(model, train, opt)
        if epoch % 3 == 0:
            known, other = perplexity(model, train, end), perplexity(model, test, end)
            print(f"{f'epoch {epoch}':<14}{known:>14.0f}{other:>16.0f}")

    def next_logits(ids: list[int]) -> np.ndarray:
        return model(ndl.Tensor(np.array(ids).reshape(-1, 1))).numpy()[-1]

    print("\nIt writes:")
    for line in pieces.written(next_logits, words, np.random.default_rng(1), LINES):
        print(f"    {line}")


if __name__ == "__main__":
    main()
