"""The table of errors that a milestone prints while a model learns."""


def header() -> None:
    """Print the names of the columns."""
    print(f"{'':<30}{'train error':>12}{'test error':>12}")


def line(name: str, train_error: float, test_error: float) -> None:
    """Print a line."""
    print(f"{name:<30}{train_error:>12.1%}{test_error:>12.1%}")
