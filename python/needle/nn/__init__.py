"""Layers, losses and the Module that holds them."""

from needle.nn.nn_basic import (
    BatchNorm1d,
    Dropout,
    Flatten,
    Identity,
    LayerNorm1d,
    Linear,
    Module,
    MSELoss,
    Parameter,
    ReLU,
    Residual,
    Sequential,
    Sigmoid,
    Softmax,
    SoftmaxLoss,
    Tanh,
)

__all__ = [
    "BatchNorm1d",
    "Dropout",
    "Flatten",
    "Identity",
    "LayerNorm1d",
    "Linear",
    "MSELoss",
    "Module",
    "Parameter",
    "ReLU",
    "Residual",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "SoftmaxLoss",
    "Tanh",
]
