"""Tensors to start from: random, constant, one-hot, and initialisers of weights."""

from needle.init.init_basic import (
    constant,
    one_hot,
    ones,
    ones_like,
    rand,
    randb,
    randn,
    zeros,
    zeros_like,
)
from needle.init.init_initializers import (
    kaiming_normal,
    kaiming_uniform,
    xavier_normal,
    xavier_uniform,
)

__all__ = [
    "constant",
    "kaiming_normal",
    "kaiming_uniform",
    "one_hot",
    "ones",
    "ones_like",
    "rand",
    "randb",
    "randn",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
    "zeros_like",
]
