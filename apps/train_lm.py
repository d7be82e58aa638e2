"""Train a language model, or let a trained one write: python apps/train_lm.py --help lists the
options.
"""

import argparse
import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import needle as ndl

sys.path.append(str(Path(__file__).parent))  # imported by path too, as `apps.train_lm`
import checkpoint  # noqa: E402
import options  # noqa: E402
import pictures  # noqa: E402
from models import LanguageModel, detached  # noqa: E402
from training import Run, Score, evaluate, train_epoch  # noqa: E402

TEXT = options.ROOT / "data" / "text"
SUITS = {
    "lstm": options.Suits("adam", 0.003),
    "rnn": options.Suits("adam", 0.001),
    "gru": options.Suits("adam", 0.003),
    "transformer": options.Suits("adam", 0.002, decay=0.6),
}
SIZES = ("embedding_size", "hidden_size", "layers", "seq_len")
CLIP = 1.0  # the norm of the gradients at most: a recurrent model's grow with the length
BEFORE_MARK = re.compile(r" +(?=[.,;:!?](?: |$)|'s )")
END_OF_LINE, UNKNOWN = "<eos>", "<unk>"


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options, with the defaults that depend on others filled in."""
    parser = options.parser_for(
        "Train a language model on text, or let a trained one write.",
        "lm",
        list(SUITS),
        TEXT,
        "train.txt and test.txt",
        epochs=4,
        batch=20,
    )
    of_model = parser.add_argument_group("the model")
    of_model.add_argument("--embedding-size", type=int, default=100, help="default: 100")
    of_model.add_argument("--hidden-size", type=int, default=100, help="default: 100")
    of_model.add_argument("--layers", type=int, default=1, help="default: 1")
    of_model.add_argument(
        "--seq-len", type=int, default=40, help="words between two steps; default: 40"
    )
    writing = parser.add_argument_group("writing, without training")
    writing.add_argument("--sample", metavar="TEXT", help="go on from TEXT, with the saved model")
    writing.add_argument("--words", type=int, default=40, help="how many; default: 40")
    writing.add_argument(
        "--temperature", type=float, default=0.8, help="below 1 more likely words; default: 0.8"
    )
    args = options.parse(parser, arguments, SUITS, SIZES)
    options.require_counts(parser, args, "words")
    if not 0 < args.temperature < math.inf:
        options.refuse(parser, args, "temperature", "give a number above 0")
    return args


# --- training ---


class Windows:
    """Word numbers as batches (words (T, B), next words (T * B,)), T being `seq_len` or, at the
    end, less. The B columns read on from batch to batch.
    """

    def __init__(self, words: Sequence[int], batch_size: int, seq_len: int, device: Any) -> None:
        self.rows = ndl.data.batchify(words, batch_size)
        if len(self.rows) < 2:
            raise ndl.DataError(
                f"[Windows] {len(words)} words in {batch_size} columns leave no next words;"
                " take more text or a smaller --batch-size"
            )
        self.seq_len = seq_len
        self.device = device

    def __len__(self) -> int:
        return -(-(len(self.rows) - 1) // self.seq_len)  # rounded up

    def __iter__(self) -> Iterator[tuple[ndl.Tensor, ndl.Tensor]]:
        for start in range(0, len(self.rows) - 1, self.seq_len):
            yield ndl.data.get_batch(self.rows, start, self.seq_len, device=self.device)


class ReadingOn:
    """Call a language model on window after window: its hidden state goes on, detached, so that
    gradients end where a window begins (truncated backpropagation through time).
    """

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.hidden: Any = None

    def __call__(self, x: ndl.Tensor) -> ndl.Tensor:
        logits, hidden = self.model(x, self.hidden)
        self.hidden = detached(hidden)
        return logits


@dataclass
class LanguageRun(Run):
    """A run that speaks of perplexity, beside that of a model which only counts words."""

    unigram: float = math.nan

    def describe(self, score: Score) -> str:
        """Return a score as an epoch's line shows it."""
        return f"loss {score.loss:.4f} perplexity {score.perplexity:.1f}"

    def panels(self) -> list[pictures.Panel]:
        """Return the curves to draw."""
        return [self.panel("perplexity", ("unigram", self.unigram)), self.panel("accuracy")]


def unigram_perplexity(train: Sequence[int], test: Sequence[int], words: int) -> float:
    """Return the perplexity on `test` of the word frequencies of `train`, each count plus one."""
    counts = np.bincount(train, minlength=words) + 1
    return math.exp(-np.log(counts[test] / counts.sum()).mean())


def build(facts: dict[str, Any]) -> LanguageModel:
    """Return an untrained model as the facts of its file describe it."""
    return LanguageModel(
        facts["embedding_size"],
        len(facts["vocabulary"]),
        facts["hidden_size"],
        facts["layers"],
        facts["model"],
        facts["seq_len"],
    )


def train(args: argparse.Namespace) -> list[tuple[Score, Score]]:
    """Train as the options say, saving after every epoch; return (train, test) scores by epoch."""
    device = options.device_of(args)
    np.random.seed(args.seed)
    corpus = ndl.data.Corpus(args.data_dir)
    words = corpus.dictionary.idx2word
    train_windows, test_windows = (
        Windows(part, args.batch_size, args.seq_len, device) for part in (corpus.train, corpus.test)
    )
    facts = {"vocabulary": words, **{name: getattr(args, name) for name in ("model", *SIZES)}}
    model = build(facts).to(device)
    opt = options.OPTIMIZERS[args.optimizer](model.parameters(), lr=args.lr)
    unigram = unigram_perplexity(corpus.train, corpus.test, len(words))
    headline = (
        f"{args.model} on {device}: {len(corpus.train)} words to train on, {len(corpus.test)} to"
        f" test, {len(words)} different,"
        f" {options.settings(args)}"
    )
    print(f"word frequencies alone (unigram): test perplexity {unigram:.1f}")
    return LanguageRun(args, headline, model, opt, facts, unigram=unigram).go(
        lambda title, ctrl_c: train_epoch(
            model, train_windows, opt, title, ctrl_c, ReadingOn(model), CLIP
        ),
        lambda: evaluate(model, test_windows, ReadingOn(model)),
    )


# --- writing ---


def load_writer(path: Path, device: Any) -> tuple[LanguageModel, dict[str, Any]]:
    """Return a trained model and the facts of its file.

    Raises:
        NeedleError: if the file is missing, damaged or no language model's.
    """
    facts = checkpoint.read_facts(path)
    if "vocabulary" not in facts:
        raise ndl.NeedleError(f"[sample] {path} holds no language model")
    model = build(facts).to(device).eval()
    ndl.load_model(model, path)
    return model, facts


def numbers_of(prompt: str, vocabulary: Sequence[str]) -> list[int]:
    """Return the numbers of a prompt's words, in small letters where the model knows no others.

    Raises:
        NeedleError: for words that the model does not know.
    """
    number = {word: i for i, word in enumerate(vocabulary)}
    words = [word if word in number else word.lower() for word in prompt.split()]
    unknown = [word for word in words if word not in number]
    if unknown:
        raise ndl.NeedleError(
            f"[sample] not among the {len(vocabulary)} words that the model has read:"
            f" {', '.join(unknown)}"
        )
    return [number[word] for word in words]


def write_on(
    model: LanguageModel,
    prompt: Sequence[int],
    count: int,
    temperature: float,
    reach: int | None = None,
    never: Sequence[int] = (),
) -> list[int]:
    """Return `count` words drawn one by one after `prompt`, none of them in `never`.

    A recurrent model remembers what it read. A transformer reads the last `reach` words again.
    """
    reader = ReadingOn(model)
    text, unread = list(prompt), list(prompt)
    with ndl.no_grad():
        for _ in range(count):
            column = np.array(text[-reach:] if reach else unread)[:, None]
            x = ndl.Tensor(column, device=model.linear.weight.device)
            logits = reader(x).numpy()[-1].astype(np.float64)
            logits[list(never)] = -np.inf
            weights = np.exp((logits - logits.max()) / temperature)
            unread = [int(np.random.choice(len(weights), p=weights / weights.sum()))]
            text += unread
    return text[len(prompt) :]


def sample(args: argparse.Namespace) -> None:
    """Print how the saved model goes on from the prompt."""
    np.random.seed(args.seed)
    model, facts = load_writer(args.save, options.device_of(args))
    vocabulary = facts["vocabulary"]
    prompt = numbers_of(args.sample, vocabulary)
    start = prompt or numbers_of(END_OF_LINE, vocabulary)
    reach = facts["seq_len"] if facts["model"] == "transformer" else None
    never = [number for number, word in enumerate(vocabulary) if word == UNKNOWN]
    drawn = write_on(model, start, args.words, args.temperature, reach, never)
    print(as_text([vocabulary[number] for number in [*prompt, *drawn]]))


def as_text(words: Sequence[str]) -> str:
    """Return words as lines of text, with no blank before a mark."""
    lines = " ".join(words).split(END_OF_LINE)
    return "\n".join(BEFORE_MARK.sub("", line).strip() for line in lines).strip()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; an error that the user can mend is one line."""
    with options.errors_in_one_line("train_lm"):
        args = parse_arguments(arguments)
        if args.sample is None:
            train(args)
        else:
            sample(args)


if __name__ == "__main__":
    main()
