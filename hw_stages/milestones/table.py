"""The table of errors that a milestone prints while a model learns."""

import time


class Table:
    """Lines of a name, a training error, a test error and the seconds since the line before."""

    def __init__(self) -> None:
        print(f"{'':<30}{'train error':>12}{'test error':>12}{'seconds':>9}")
        self.last = time.perf_counter()

    def line(self, name: str, train_error: float, test_error: float) -> None:
        """Print a line."""
        now = time.perf_counter()
        print(f"{name:<30}{train_error:>12.1%}{test_error:>12.1%}{now - self.last:>9.1f}")
        self.last = now
