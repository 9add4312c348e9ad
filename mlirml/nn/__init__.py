"""Neural networks: layers as dataclasses, and `mlirml.nn.functional` with their operations as functions of arrays.

    model = nn.Sequential([nn.Linear.init(k1, 784, 128), nn.functional.relu, nn.Linear.init(k2, 128, 10)])

A layer is made by a key of `mlirml.random`, `nn.Linear.init(key, 784, 128)`, or of arrays, `nn.Linear(weight, bias)`,
and is called as a function. Its arrays are its parameters: `ml.grad` differentiates by them, `mlirml.optim` updates
them, and a model is a dataclass, list or dict of layers. Options are static fields. Nothing is kept elsewhere: running
statistics, caches and the states of recurrent layers are passed and returned, and random numbers are drawn by keys.
"""

from __future__ import annotations

from mlirml.nn import functional, initializers
from mlirml.nn.files import load, save
from mlirml.nn.modules.adaptive_softmax import AdaptiveLogSoftmaxWithLoss
from mlirml.nn.modules.attention import (
    KVCache,
    MultiHeadAttention,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
from mlirml.nn.modules.convolutions import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from mlirml.nn.modules.linear import Dropout, Embedding, Linear, Sequential
from mlirml.nn.modules.module import Module
from mlirml.nn.modules.normalizations import BatchNorm, BatchStatistics, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from mlirml.nn.modules.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    FractionalMaxPool2d,
    FractionalMaxPool3d,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
    MaxUnpool1d,
    MaxUnpool2d,
    MaxUnpool3d,
)
from mlirml.nn.modules.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell

__all__ = [
    "GRU", "LSTM", "RNN", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveLogSoftmaxWithLoss",
    "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BatchNorm",
    "BatchStatistics", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Dropout",
    "Embedding", "FractionalMaxPool2d", "FractionalMaxPool3d", "GRUCell", "GroupNorm", "InstanceNorm", "KVCache",
    "LPPool1d", "LPPool2d", "LPPool3d", "LSTMCell", "LayerNorm", "Linear", "MaxPool1d", "MaxPool2d", "MaxPool3d",
    "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "Module", "MultiHeadAttention", "RMSNorm", "RNNCell", "Sequential",
    "TransformerDecoderBlock", "TransformerEncoderBlock", "functional", "initializers", "load", "save",
]  # fmt: skip
