"""The exceptions that needle raises; the compiled backends raise these same classes.

A message reads `[op] what was met; the rule; the fix`. Each class is also the builtin exception
that a Python programmer would expect, so `except ValueError` works for shapes.
"""

__all__ = [
    "BroadcastError",
    "DataError",
    "DataNotFoundError",
    "DeviceError",
    "DtypeError",
    "ExchangeError",
    "GraphError",
    "IndexingError",
    "MissingKernelError",
    "NeedleError",
    "OutOfMemoryError",
    "ShapeError",
]


class NeedleError(Exception):
    """The base class of every error that needle raises on purpose."""


class ShapeError(NeedleError, ValueError):
    """Sizes, axes or indices that do not fit."""


class BroadcastError(ShapeError, AssertionError):
    """Shapes that do not broadcast; also an AssertionError, as the course's handouts promise."""


class IndexingError(ShapeError, IndexError):
    """An index outside its axis; also an IndexError, so that iterating by index ends."""


class DtypeError(NeedleError, TypeError):
    """A data type that a device does not carry, or two that differ."""


class DeviceError(NeedleError, RuntimeError):
    """A missing backend or kernel, operands on two devices, or a failure that a device reports."""


### SINCE hw3
class MissingKernelError(DeviceError, AttributeError):
    """A kernel that a device lacks; also an AttributeError, so that `hasattr` answers."""


class OutOfMemoryError(DeviceError, MemoryError):
    """A device that has no room for an array, after its pool was emptied."""


### END SINCE
### SINCE full
class ExchangeError(NeedleError, BufferError, ValueError):
    """Memory that cannot be shared with another library; both of what DLPack and numpy expect."""


### END SINCE
class GraphError(NeedleError, RuntimeError):
    """A graph that cannot be differentiated, or a gradient that does not fit its input."""


### SINCE hw2
class DataError(NeedleError, ValueError):
    """A data file that is damaged, or is not what its name says."""


class DataNotFoundError(DataError, FileNotFoundError):
    """A data file that is not where it was looked for."""


### END SINCE
