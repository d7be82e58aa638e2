"""The options that all training programs have, and the defaults that depend on the model."""

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import needle as ndl

sys.path.append(str(Path(__file__).parent))  # imported by path too, as `apps.options`
import checkpoint  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent

OPTIMIZERS = {
    "sgd": ndl.optim.SGD,
    "adam": ndl.optim.Adam,
    "adamw": ndl.optim.AdamW,
    "rmsprop": ndl.optim.RMSprop,
}
# A rate to start from where the optimizer is not the one that suits the model.
USUAL_LR = {"sgd": 0.1, "adam": 0.001, "adamw": 0.001, "rmsprop": 0.001}


class Suits(NamedTuple):
    """What a model trains well with: `decay` multiplies the learning rate after every epoch."""

    optimizer: str
    lr: float
    decay: float = 1.0


def parser_for(
    description: str,
    data: str,
    models: Sequence[str],
    data_dir: Path,
    files: str,
    epochs: int,
    batch: int,
) -> argparse.ArgumentParser:
    """Return a parser of the common options.

    `data` is what models are named after when they are saved, `files` says what lies in `data_dir`,
    the first of `models` is the default.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.set_defaults(data=data)
    parser.add_argument("--model", choices=models, default=models[0], help=f"default: {models[0]}")
    parser.add_argument("--epochs", type=int, default=epochs, help=f"default: {epochs}")
    parser.add_argument("--batch-size", type=int, default=batch, help=f"default: {batch}")
    parser.add_argument("--lr", type=float, help="default: suits the model and optimizer")
    parser.add_argument("--optimizer", choices=list(OPTIMIZERS), help="default: suits the model")
    parser.add_argument(
        "--decay", type=float, help="times the rate after an epoch; default: suits the model"
    )
    add_device(parser)
    where = data_dir.relative_to(ROOT)
    parser.add_argument(
        "--data-dir", type=Path, default=data_dir, help=f"{files}; default: {where}"
    )
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument("--save", type=Path, help=f"default: runs/{data}-MODEL.safetensors")
    parser.add_argument(
        "--resume", action="store_true", help="go on after the last epoch that was saved"
    )
    add_plot(parser, "the curves")
    return parser


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add --device."""
    parser.add_argument(
        "--device", choices=["cpu", "cpu_numpy", "cuda"], help="default: cpu if built"
    )


def add_plot(parser: argparse.ArgumentParser, what: str) -> None:
    """Add --plot, with a path or alone."""
    parser.add_argument(
        "--plot", type=Path, nargs="?", const=Path(), metavar="PNG", help=f"draw {what}"
    )


def parse(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    suits: Mapping[str, Suits],
    sizes: Sequence[str] = (),
) -> argparse.Namespace:
    """Return the options, with those filled in that depend on others.

    `suits` says what each model trains well with. `args.fixed` holds the options that a resumed run
    keeps, among them the model's `sizes`: it takes them from its checkpoint and refuses other
    values.

    Raises:
        NeedleError: if there is no run to resume.
    """
    args = parser.parse_args(arguments)
    kept: dict[str, Any] = {}
    if args.resume:
        save = args.save or default_save(args)
        facts = checkpoint.read_facts(checkpoint.path_beside(save))
        kept = facts["options"]
        parser.set_defaults(**kept, data_dir=facts["data_dir"])
        args = parser.parse_args(arguments)
    args.save = args.save or default_save(args)
    best = suits[args.model]
    args.optimizer = args.optimizer or best.optimizer
    if args.lr is None:
        args.lr = best.lr if args.optimizer == best.optimizer else USUAL_LR[args.optimizer]
    if args.decay is None:
        args.decay = best.decay
    check(parser, args, args.save.with_suffix(".png"), "epochs", "batch_size", *sizes)
    if not 0 < args.decay <= 1:
        refuse(parser, args, "decay", "give a number above 0 and up to 1")
    names = ("model", "batch_size", "lr", "decay", "optimizer", "seed", *sizes)
    args.fixed = {name: getattr(args, name) for name in names}
    for name, value in args.fixed.items():
        if value != kept.get(name, value):
            refuse(parser, args, name, f"the run to resume has {kept[name]}: leave it out")
    return args


def check(
    parser: argparse.ArgumentParser, args: argparse.Namespace, picture: Path, *counts: str
) -> None:
    """Refuse values that no program can work with: `counts` are from 1 up. A bare --plot draws
    `picture`.
    """
    require_counts(parser, args, *counts)
    if not 0 <= args.seed < 2**32:
        refuse(parser, args, "seed", "give a number from 0 to 2**32 - 1")
    if not 0 < args.lr < math.inf:
        refuse(parser, args, "lr", "give a number above 0")
    if args.plot == Path():
        args.plot = picture
    if args.plot and args.plot.suffix != ".png":
        refuse(parser, args, "plot", "give a name that ends in .png")


def require_counts(parser: argparse.ArgumentParser, args: argparse.Namespace, *names: str) -> None:
    """Refuse a count below 1."""
    for name in names:
        if getattr(args, name) < 1:
            refuse(parser, args, name, "give a number from 1 up")


def refuse(parser: argparse.ArgumentParser, args: argparse.Namespace, name: str, rule: str) -> None:
    """End the program because of one option's value."""
    parser.error(f"--{name.replace('_', '-')} is {getattr(args, name)}; {rule}")


def default_save(args: argparse.Namespace) -> Path:
    """Return where a model is saved unless --save says otherwise."""
    return ROOT / "runs" / f"{args.data}-{args.model}.safetensors"


def device_of(args: argparse.Namespace) -> Any:
    """Return the device that --device names, or the default one.

    Raises:
        DeviceError: if it is not there.
    """
    device = ndl.as_device(args.device) if args.device else ndl.default_device()
    if not device.enabled():
        raise ndl.DeviceError(f"[{device}] {device.reason}")
    return device


def from_here(path: Path) -> Path:
    """Return `path` as a person in the working directory would write it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def settings(args: argparse.Namespace) -> str:
    """Return how a model is trained, in words."""
    decay = f" times {args.decay:g} an epoch" if args.decay != 1 else ""
    return f"{args.optimizer} with lr {args.lr:g}{decay}, batch {args.batch_size}, seed {args.seed}"


@contextmanager
def errors_in_one_line(program: str) -> Iterator[None]:
    """Inside `with`, an error that the user can mend ends the program with one line."""
    try:
        yield
    except (ndl.NeedleError, OSError) as error:
        sys.exit(f"{program}: {error}")
