"""Initialisers for weights: random numbers scaled so that signals keep their variance through a
layer.

Xavier: Glorot & Bengio 2010. Kaiming: He et al. 2015, for ReLU.
"""

import math
from typing import Any

from needle.autograd import Tensor
from needle.errors import NeedleError
from needle.init.init_basic import rand, randn

__all__ = ["kaiming_normal", "kaiming_uniform", "xavier_normal", "xavier_uniform"]


Shape = tuple[int, ...]


def xavier_uniform(
    fan_in: int, fan_out: int, gain: float = 1.0, shape: Shape | None = None, **kwargs: Any
) -> Tensor:
    """Return numbers uniform in ±gain * sqrt(6 / (fan_in + fan_out)), of `shape` or (fan_in,
    fan_out).
    """
    shape = _size(fan_in, fan_out, shape)
    ### BEGIN SOLUTION hw2.xavier_uniform
    bound = gain * math.sqrt(6 / (fan_in + fan_out))
    return rand(*shape, low=-bound, high=bound, **kwargs)
    ### END SOLUTION


def xavier_normal(
    fan_in: int, fan_out: int, gain: float = 1.0, shape: Shape | None = None, **kwargs: Any
) -> Tensor:
    """Return normal numbers of deviation gain * sqrt(2 / (fan_in + fan_out)), of `shape` or
    (fan_in, fan_out).
    """
    shape = _size(fan_in, fan_out, shape)
    ### BEGIN SOLUTION hw2.xavier_normal
    std = gain * math.sqrt(2 / (fan_in + fan_out))
    return randn(*shape, mean=0, std=std, **kwargs)
    ### END SOLUTION


def kaiming_uniform(
    fan_in: int,
    fan_out: int,
    shape: Shape | None = None,
    nonlinearity: str = "relu",
    **kwargs: Any,
) -> Tensor:
    """Return numbers uniform in ±sqrt(2) * sqrt(3 / fan_in), of `shape` or (fan_in, fan_out).

    Raises:
        NeedleError: for another nonlinearity than "relu".
    """
    _check_nonlinearity(nonlinearity)
    shape = _size(fan_in, fan_out, shape)
    ### BEGIN SOLUTION hw2.kaiming_uniform
    bound = math.sqrt(2) * math.sqrt(3 / fan_in)
    return rand(*shape, low=-bound, high=bound, **kwargs)
    ### END SOLUTION


def kaiming_normal(
    fan_in: int,
    fan_out: int,
    shape: Shape | None = None,
    nonlinearity: str = "relu",
    **kwargs: Any,
) -> Tensor:
    """Return normal numbers of deviation sqrt(2) / sqrt(fan_in), of `shape` or (fan_in, fan_out).

    Raises:
        NeedleError: for another nonlinearity than "relu".
    """
    _check_nonlinearity(nonlinearity)
    shape = _size(fan_in, fan_out, shape)
    ### BEGIN SOLUTION hw2.kaiming_normal
    std = math.sqrt(2) / math.sqrt(fan_in)
    return randn(*shape, mean=0, std=std, **kwargs)
    ### END SOLUTION


def _check_nonlinearity(nonlinearity: str) -> None:
    if nonlinearity != "relu":
        raise NeedleError(f"[kaiming] nonlinearity {nonlinearity!r} is not known; only 'relu' is")


def _size(fan_in: int, fan_out: int, shape: Shape | None) -> Shape:
    return (fan_in, fan_out) if shape is None else shape
