"""Train a model on handwritten digits: python apps/train_mnist.py --help lists the options."""

import argparse
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

import needle as ndl
from needle import nn

sys.path.append(str(Path(__file__).parent))  # imported by path too, as `apps.train_mnist`
from mlp_resnet import MLPResNet  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
PIXELS, CLASSES = 28 * 28, 10


@dataclass
class Score:
    """A pass over a data set: the mean loss and the accuracy, each by sample."""

    loss: float
    accuracy: float


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


def softmax_regression() -> nn.Module:
    """Return one linear layer."""
    return nn.Sequential(nn.Flatten(), nn.Linear(PIXELS, CLASSES))


def mlp() -> nn.Module:
    """Return a network with one hidden layer of 100."""
    return nn.Sequential(nn.Flatten(), nn.Linear(PIXELS, 100), nn.ReLU(), nn.Linear(100, CLASSES))


def mlp_resnet() -> nn.Module:
    """Return a residual network with batch normalisation and dropout."""
    return MLPResNet(PIXELS)


MODELS = {"softmax": softmax_regression, "mlp": mlp, "resnet": mlp_resnet}
OPTIMIZERS = {"sgd": ndl.optim.SGD, "adam": ndl.optim.Adam}
# What each model trains well with; another optimizer than this one starts from its own usual rate.
DEFAULT_OPTIMIZER = {"softmax": "sgd", "mlp": "sgd", "resnet": "adam"}
DEFAULT_LR = {"softmax": 0.2, "mlp": 0.5, "resnet": 0.002}
USUAL_LR = {"sgd": 0.1, "adam": 0.001}


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options, with the defaults that depend on the model filled in."""
    parser = argparse.ArgumentParser(description="Train a model on handwritten digits.")
    parser.add_argument("--model", choices=list(MODELS), default="mlp", help="default: mlp")
    parser.add_argument("--epochs", type=int, default=10, help="default: 10")
    parser.add_argument("--batch-size", type=int, default=100, help="default: 100")
    parser.add_argument("--lr", type=float, help="default: a rate that suits the model")
    parser.add_argument("--optimizer", choices=list(OPTIMIZERS), help="default: suits the model")
    parser.add_argument(
        "--device", choices=["cpu", "cpu_numpy", "cuda"], help="default: cpu if built"
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=ROOT / "data" / "digits",
        help="IDX files; default: data/digits",
    )
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument("--save", type=Path, help="default: runs/mnist-MODEL.safetensors")
    args = parser.parse_args(arguments)
    if args.epochs < 1:
        parser.error(f"--epochs is {args.epochs}; give a number from 1 up")
    if args.batch_size < 1:
        parser.error(f"--batch-size is {args.batch_size}; give a number from 1 up")
    if not 0 <= args.seed < 2**32:
        parser.error(f"--seed is {args.seed}; give a number from 0 to 2**32 - 1")
    suits = DEFAULT_OPTIMIZER[args.model]
    args.optimizer = args.optimizer or suits
    if args.lr is None:
        args.lr = DEFAULT_LR[args.model] if args.optimizer == suits else USUAL_LR[args.optimizer]
    args.save = args.save or ROOT / "runs" / f"mnist-{args.model}.safetensors"
    return args


def load_digits(folder: Path, part: str) -> ndl.data.MNISTDataset:
    """Return the "train" or "t10k" part of a set of digits."""
    return ndl.data.MNISTDataset(
        folder / f"{part}-images-idx3-ubyte.gz", folder / f"{part}-labels-idx1-ubyte.gz"
    )


def from_here(path: Path) -> Path:
    """Return `path` as a person in the working directory would write it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def count_correct(logits: ndl.Tensor, y: ndl.Tensor) -> int:
    """Return how many of the labels (B,) have the largest of the logits (B, K)."""
    return int((logits.numpy().argmax(axis=1) == y.numpy()).sum())


def train_epoch(
    model: nn.Module,
    loader: ndl.data.DataLoader,
    opt: ndl.optim.Optimizer,
    title: str = "",
    ctrl_c: CtrlC | None = None,
) -> Score:
    """Take one optimizer step a batch; return the score of the predictions made on the way.

    Raises KeyboardInterrupt after the batch in which Ctrl-C was pressed.
    """
    loss_fn = nn.SoftmaxLoss()
    model.train()
    loss_sum, correct, samples = 0.0, 0, 0
    for x, y in tqdm(loader, desc=title, leave=False, unit="batch"):
        logits = model(x)
        loss = loss_fn(logits, y)
        opt.reset_grad()
        loss.backward()
        opt.step()
        loss_sum += loss.item() * len(x)
        correct += count_correct(logits, y)
        samples += len(x)
        if ctrl_c and ctrl_c.pressed:
            raise KeyboardInterrupt
    return Score(loss_sum / samples, correct / samples)


def evaluate(model: nn.Module, loader: ndl.data.DataLoader) -> Score:
    """Return the model's score in evaluation mode; no graph is built, the mode is put back."""
    loss_fn = nn.SoftmaxLoss()
    was_training = model.training
    model.eval()
    loss_sum, correct, samples = 0.0, 0, 0
    with ndl.no_grad():
        for x, y in loader:
            logits = model(x)
            loss_sum += loss_fn(logits, y).item() * len(x)
            correct += count_correct(logits, y)
            samples += len(x)
    model.train(was_training)
    return Score(loss_sum / samples, correct / samples)


def train(args: argparse.Namespace) -> list[tuple[Score, Score]]:
    """Train as the options say, saving after every epoch; return (train, test) scores by epoch."""
    device = ndl.as_device(args.device) if args.device else ndl.default_device()
    if not device.enabled():
        raise ndl.DeviceError(f"[{device}] {device.reason}")
    np.random.seed(args.seed)
    train_set, test_set = (load_digits(args.data_dir, part) for part in ("train", "t10k"))
    train_loader = ndl.data.DataLoader(train_set, args.batch_size, shuffle=True, device=device)
    test_loader = ndl.data.DataLoader(test_set, args.batch_size, device=device)
    model = MODELS[args.model]().to(device)
    opt = OPTIMIZERS[args.optimizer](model.parameters(), lr=args.lr)
    print(
        f"{args.model} on {device}: {len(train_set)} digits to train on, {len(test_set)} to test,"
        f" {args.optimizer} with lr {args.lr:g}, batch {args.batch_size}, seed {args.seed}"
    )
    scores: list[tuple[Score, Score]] = []
    try:
        with CtrlC() as ctrl_c:
            for number in range(1, args.epochs + 1):
                trained = train_epoch(model, train_loader, opt, f"epoch {number}", ctrl_c)
                tested = evaluate(model, test_loader)
                ndl.save_model(model, args.save)
                scores.append((trained, tested))
                print(
                    f"epoch {number:2d}: train loss {trained.loss:.4f}"
                    f" accuracy {trained.accuracy:.4f},"
                    f" test loss {tested.loss:.4f} accuracy {tested.accuracy:.4f}",
                    flush=True,
                )
    except KeyboardInterrupt:
        where = from_here(args.save)
        kept = f"the model of epoch {len(scores)} is in {where}" if scores else "nothing saved"
        print(f"\nstopped: {kept}")
        sys.exit(130)
    print(f"saved {from_here(args.save)}")
    return scores


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; an error that the user can mend is one line."""
    args = parse_arguments(arguments)
    try:
        train(args)
    except (ndl.NeedleError, OSError) as error:
        sys.exit(f"train_mnist: {error}")


if __name__ == "__main__":
    main()
