"""Fit sin(x)² with ten hidden units: python apps/fit_sine.py --help lists the options."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import needle as ndl
from needle import nn

sys.path.append(str(Path(__file__).parent))  # imported by path too, as `apps.fit_sine`
import checkpoint  # noqa: E402
import options  # noqa: E402
import pictures  # noqa: E402
from training import CtrlC  # noqa: E402

POINTS, HIDDEN, BATCH = 100, 10, 10
MOMENTUM = 0.9
LINES = 10


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description="Fit sin(x)² with a small network and SGD.")
    parser.add_argument("--epochs", type=int, default=300, help="default: 300")
    parser.add_argument("--lr", type=float, default=0.5, help="default: 0.5")
    options.add_device(parser)
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    save = options.ROOT / "runs" / "sine.safetensors"
    parser.add_argument("--save", type=Path, default=save, help="default: runs/sine.safetensors")
    parser.add_argument("--resume", action="store_true", help="go on where the last run ended")
    options.add_plot(parser, "the function and the fit")
    args = parser.parse_args(arguments)
    options.check(parser, args, args.save.with_suffix(".png"), "epochs")
    return args


def network() -> nn.Module:
    """Return the 1-10-1 network."""
    return nn.Sequential(nn.Linear(1, HIDDEN), nn.Sigmoid(), nn.Linear(HIDDEN, 1))


def sine_squared() -> tuple[np.ndarray, np.ndarray]:
    """Return points x and their sin(x)², each (POINTS, 1), over two humps."""
    x = np.linspace(-np.pi, np.pi, POINTS, dtype=np.float32).reshape(POINTS, 1)
    return x, np.sin(x) ** 2


def train_epoch(model: nn.Module, loader: ndl.data.DataLoader, opt: ndl.optim.Optimizer) -> float:
    """Take one optimizer step a batch; return the mean loss by point."""
    loss_fn = nn.MSELoss()
    total = 0.0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        opt.reset_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(x)
    return total / POINTS


def fit(args: argparse.Namespace) -> float:
    """Train as the options say; return the last epoch's loss."""
    device = options.device_of(args)
    if args.plot:
        pictures.require_matplotlib()
    np.random.seed(args.seed)
    x, target = sine_squared()
    loader = ndl.data.DataLoader(
        ndl.data.NDArrayDataset(x, target), BATCH, shuffle=True, device=device
    )
    model = network().to(device)
    opt = ndl.optim.SGD(model.parameters(), lr=args.lr, momentum=MOMENTUM)
    print(
        f"1-{HIDDEN}-1 network on {device}: {POINTS} points of sin(x)²,"
        f" sgd with lr {args.lr:g} and momentum {MOMENTUM:g}, batch {BATCH}, seed {args.seed}"
    )
    done = resume(args, model, opt) if args.resume else 0
    with CtrlC() as ctrl_c:
        for number in range(done + 1, args.epochs + 1):
            loss = train_epoch(model, loader, opt)
            if number * LINES // args.epochs > (number - 1) * LINES // args.epochs:
                print(f"epoch {number:3d}: loss {loss:.5f}", flush=True)
            if ctrl_c.pressed:
                break
    ndl.save_model(model, args.save)
    checkpoint.save(checkpoint.path_beside(args.save), model, opt, {"epochs": number})
    where = options.from_here(args.save)
    if ctrl_c.pressed:
        print(f"\nstopped: the model of epoch {number} is in {where}; --resume goes on")
        sys.exit(130)
    print(f"saved {where}")
    if args.plot:
        with ndl.no_grad():
            fitted = model(ndl.Tensor(x, device=device)).numpy()
        title = f"sin(x)² and a 1-{HIDDEN}-1 network after {args.epochs} epochs"
        pictures.draw_fit(args.plot, title, x, target, fitted)
        print(f"drew {options.from_here(args.plot)}")
    return loss


def resume(args: argparse.Namespace, model: nn.Module, opt: ndl.optim.Optimizer) -> int:
    """Continue from the checkpoint; return how many epochs it has.

    Raises:
        NeedleError: if there is none, or it has all the epochs asked for.
    """
    path = checkpoint.path_beside(args.save)
    done = checkpoint.read_facts(path)["epochs"]
    if done >= args.epochs:
        raise ndl.NeedleError(
            f"[resume] {options.from_here(path)} has {done} epochs already;"
            f" give more than --epochs {args.epochs}"
        )
    checkpoint.restore(path, model, opt)
    print(f"resumed after epoch {done} from {options.from_here(path)}")
    return done


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; an error that the user can mend is one line."""
    with options.errors_in_one_line("fit_sine"):
        fit(parse_arguments(arguments))


if __name__ == "__main__":
    main()
