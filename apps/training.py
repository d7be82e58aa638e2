"""The part of training that all programs share: a pass over the data, and a run of many that saves
every epoch.

options.py says what a user may ask for, checkpoint.py what `--resume` reads, pictures.py what
`--plot` draws.
"""

import argparse
import math
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

import needle as ndl
from needle import nn

sys.path.append(str(Path(__file__).parent))  # imported by path too, as `apps.training`
import checkpoint  # noqa: E402
import pictures  # noqa: E402
from options import from_here  # noqa: E402

Batches = Iterable[tuple[ndl.Tensor, ...]]


# --- one pass over the data ---


@dataclass
class Score:
    """A pass over a data set: the mean loss and the accuracy, each by sample."""

    loss: float
    accuracy: float

    @property
    def perplexity(self) -> float:
        """Among how many equally likely words the model hesitates, on average."""
        return math.exp(self.loss) if self.loss < 700 else math.inf


class Tally:
    """Adds up batches of any sizes, for a score by sample."""

    def __init__(self) -> None:
        self.loss_sum, self.correct, self.samples = 0.0, 0, 0

    def add(self, loss: ndl.Tensor, logits: ndl.Tensor, y: ndl.Tensor) -> None:
        """Count a batch: its mean loss, logits (B, K) and labels (B,)."""
        self.loss_sum += loss.item() * len(y)
        self.correct += count_correct(logits, y)
        self.samples += len(y)

    def score(self) -> Score:
        """Return the score of all batches."""
        return Score(self.loss_sum / self.samples, self.correct / self.samples)


class CtrlC:
    """Inside `with`, the first Ctrl-C only sets `pressed`; a second one interrupts at once.

    An interrupt that is raised anywhere may get lost, since Python drops what a finaliser raises,
    or come between a save and the line about it.
    """

    def __enter__(self) -> "CtrlC":
        self.pressed = False
        self.usual = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self.usual)

    def _press(self, *_: object) -> None:
        self.pressed = True
        signal.signal(signal.SIGINT, self.usual)


def count_correct(logits: ndl.Tensor, y: ndl.Tensor) -> int:
    """Return how many of the labels (B,) have the largest of the logits (B, K)."""
    return int((logits.numpy().argmax(axis=1) == y.numpy()).sum())


def train_epoch(
    model: nn.Module,
    batches: Batches,
    opt: ndl.optim.Optimizer,
    title: str = "",
    ctrl_c: CtrlC | None = None,
    forward: Callable[[ndl.Tensor], ndl.Tensor] | None = None,
    clip: float | None = None,
) -> Score:
    """Take one optimizer step a batch; return the score of the predictions made on the way.

    `forward` makes logits where a call of the model is not enough; `clip` bounds the gradients'
    norm. Raises KeyboardInterrupt after the batch in which Ctrl-C was pressed.
    """
    forward = forward or model
    loss_fn = nn.SoftmaxLoss()
    model.train()
    tally = Tally()
    for x, y in tqdm(batches, desc=title, leave=False, unit="batch", disable=None):
        logits = forward(x)
        loss = loss_fn(logits, y)
        opt.reset_grad()
        loss.backward()
        if clip:
            opt.clip_grad_norm(clip)
        opt.step()
        tally.add(loss, logits, y)
        if ctrl_c and ctrl_c.pressed:
            raise KeyboardInterrupt
    return tally.score()


def evaluate(
    model: nn.Module,
    batches: Batches,
    forward: Callable[[ndl.Tensor], ndl.Tensor] | None = None,
) -> Score:
    """Return the model's score in evaluation mode; no graph is built, the mode is put back."""
    forward = forward or model
    loss_fn = nn.SoftmaxLoss()
    was_training = model.training
    model.eval()
    tally = Tally()
    with ndl.no_grad():
        for x, y in batches:
            logits = forward(x)
            tally.add(loss_fn(logits, y), logits, y)
    model.train(was_training)
    return tally.score()


# --- a run of many passes ---


@dataclass
class Run:
    """A model in training: its optimizer, the options, the (train, test) scores by epoch so far.

    `headline` says what is trained on what; `facts` are saved with the model, for whoever loads it.
    A program that speaks of something else than loss and accuracy overrides `describe` and
    `panels`.
    """

    args: argparse.Namespace
    headline: str
    model: nn.Module
    opt: ndl.optim.Optimizer
    facts: dict[str, Any] = field(default_factory=dict)
    scores: list[tuple[Score, Score]] = field(default_factory=list)

    def describe(self, score: Score) -> str:
        """Return a score as an epoch's line shows it."""
        return f"loss {score.loss:.4f} accuracy {score.accuracy:.4f}"

    def panels(self) -> list[pictures.Panel]:
        """Return the curves to draw."""
        return [self.panel("loss"), self.panel("accuracy")]

    def panel(self, name: str, baseline: tuple[str, float] | None = None) -> pictures.Panel:
        """Return the curves of one attribute of the scores."""
        train, test = ([getattr(s, name) for s in part] for part in zip(*self.scores, strict=True))
        return pictures.Panel(name, train, test, baseline)

    def go(
        self, train_one: Callable[[str, CtrlC], Score], test: Callable[[], Score]
    ) -> list[tuple[Score, Score]]:
        """Train up to --epochs, each with a line and a save; return the scores by epoch.

        `train_one` gets a title and the CtrlC to watch. On Ctrl-C, say what is saved and leave with
        status 130.
        """
        if self.args.plot:
            pictures.require_matplotlib()
        if self.args.resume:
            self.resume()
        print(self.headline)
        try:
            with CtrlC() as ctrl_c:
                for number in range(len(self.scores) + 1, self.args.epochs + 1):
                    trained, tested = train_one(f"epoch {number}", ctrl_c), test()
                    self.opt.lr *= self.args.decay
                    self.save([*self.scores, (trained, tested)])
                    print(
                        f"epoch {number:2d}: train {self.describe(trained)},"
                        f" test {self.describe(tested)}",
                        flush=True,
                    )
        except KeyboardInterrupt:
            where = from_here(self.args.save)
            kept = f"the model of epoch {len(self.scores)} is in {where}"
            print(
                f"\nstopped: {kept}; --resume goes on"
                if self.scores
                else "\nstopped: nothing saved"
            )
            sys.exit(130)
        print(f"saved {from_here(self.args.save)}")
        if self.args.plot:
            pictures.draw_curves(self.args.plot, self.headline, self.panels())
            print(f"drew {from_here(self.args.plot)}")
        return self.scores

    def save(self, scores: list[tuple[Score, Score]]) -> None:
        """Save the model with its facts, and all that a resumed run needs."""
        state = {name: tensor.numpy() for name, tensor in self.model.state_dict().items()}
        checkpoint.write(self.args.save, state, self.facts)
        facts = {
            "options": self.args.fixed,
            "data_dir": str(self.args.data_dir.resolve()),
            "scores": [[astuple(trained), astuple(tested)] for trained, tested in scores],
            "model": self.facts,
        }
        checkpoint.save(checkpoint.path_beside(self.args.save), self.model, self.opt, facts)
        self.scores = scores

    def resume(self) -> None:
        """Continue from the checkpoint: the rest is as if the run had never stopped.

        Raises:
            NeedleError: if the checkpoint is of other data, or has all the epochs asked for.
        """
        path = checkpoint.path_beside(self.args.save)
        facts = checkpoint.read_facts(path)
        done = len(facts["scores"])
        if done >= self.args.epochs:
            raise ndl.NeedleError(
                f"[resume] {from_here(path)} has {done} epochs already;"
                f" give more than --epochs {self.args.epochs}"
            )
        if facts["model"] != self.facts:
            raise ndl.NeedleError(
                f"[resume] {from_here(path)} is of other data than {self.args.data_dir}"
            )
        checkpoint.restore(path, self.model, self.opt)
        self.scores = [(Score(*trained), Score(*tested)) for trained, tested in facts["scores"]]
        print(f"resumed after epoch {done} from {from_here(path)}")
