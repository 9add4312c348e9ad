"""Calls that exercise every record of `mlirml.nn.functional`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mlirml.nn import functional as F
from mlirml.ops.registry import NN, OpDef
from tests.ops.samples import Arguments, Call, Draw

Sampler = Callable[[Draw], Iterator[Arguments]]
SAMPLERS: dict[str, Sampler] = {}


def sampler(*names: str) -> Callable[[Sampler], Sampler]:
    """Decorator: the function yields arguments for these records."""

    def register(function: Sampler) -> Sampler:
        for name in names:
            assert name in NN and name not in SAMPLERS, name
            SAMPLERS[name] = function
        return function

    return register


def calls_of(record: OpDef, dtype: np.dtype) -> list[Call]:
    """The calls that test a record with a dtype; never none."""
    draw = Draw(record, dtype, np.random.default_rng([ord(c) for c in record.name + dtype.name]))
    return [Call(getattr(F, record.name), args, options) for args, options in SAMPLERS[record.name](draw)]


@sampler(
    "relu", "relu6", "leaky_relu", "elu", "selu", "sigmoid", "silu", "softplus", "log_sigmoid", "mish", "hardtanh",
    "hardsigmoid", "hardswish", "hardshrink", "softshrink", "softsign", "celu", "rrelu", "tanh", "tanhshrink",
)  # fmt: skip
def _elementwise(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4),), {}
    yield (draw.array(2, 1, 3),), {}
    if draw.thorough:
        yield (draw.array(0, 3),), {}
        yield (draw.array(100),), {}


@sampler("gelu")
def _gelu(draw: Draw) -> Iterator[Arguments]:
    yield from _elementwise(draw)
    yield (draw.array(50),), {"approximate": "tanh"}


CONVOLUTIONS: dict[int, list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]]] = {
    1: [
        ((2, 3, 9), (4, 3, 3), {}),
        ((3, 9), (3, 1, 2), {"groups": 3, "padding": 1}),
        ((2, 4, 12), (6, 2, 3), {"groups": 2, "stride": 2, "dilation": 2, "padding": "valid"}),
        ((1, 3, 7), (2, 3, 1), {}),
        ((2, 3, 9), (4, 3, 4), {"padding": "same"}),
    ],
    2: [
        ((2, 3, 6, 5), (4, 3, 3, 3), {"padding": 1}),
        ((4, 7, 6), (4, 1, 3, 2), {"groups": 4, "padding": (1, 0)}),
        ((1, 4, 7, 8), (6, 2, 3, 3), {"groups": 2, "stride": 2, "padding": 1}),
        ((2, 3, 5, 5), (4, 3, 1, 1), {}),
        ((2, 3, 5, 6), (4, 3, 1, 1), {"stride": (2, 1)}),
        ((1, 3, 9, 8), (5, 3, 3, 2), {"dilation": (2, 3)}),
        ((1, 2, 6, 6), (3, 2, 3, 4), {"padding": "same"}),
        ((2, 3, 6, 20), (8, 1, 3, 3), {"groups": 1}),
        ((1, 2, 6, 6), (8, 1, 3, 3), {"groups": 2, "stride": (2, 1)}),
        ((0, 3, 6, 5), (4, 3, 3, 3), {}),
        ((1, 3, 5, 4), (4, 3, 5, 4), {}),
        ((1, 3, 1, 40), (33, 3, 1, 3), {"padding": (0, 1)}),
    ],
    3: [
        ((1, 2, 4, 5, 5), (3, 2, 2, 3, 3), {"padding": 1}),
        ((2, 4, 5, 4), (4, 1, 2, 2, 1), {"groups": 2, "stride": (1, 2, 1)}),
    ],
}


@sampler("conv1d", "conv2d", "conv3d")
def _convolutions(draw: Draw) -> Iterator[Arguments]:
    cases = CONVOLUTIONS[int(draw.record.name[4])]
    for number, (x, w, options) in enumerate(cases if draw.thorough else cases[:3]):
        if w[1] * options.get("groups", 1) != x[1 if len(x) == len(w) else 0]:
            w = (w[0], x[1 if len(x) == len(w) else 0] // options.get("groups", 1), *w[2:])
        bias = (draw.array(w[0]),) if number % 2 == 0 else ()
        yield (draw.array(*x), draw.array(*w), *bias), options


@sampler("conv_transpose2d")
def _transposed(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 4, 5), draw.array(3, 2, 3, 3), draw.array(2)), {}
    yield (
        (draw.array(1, 4, 3, 4), draw.array(4, 2, 3, 2)),
        {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2},
    )
    if draw.thorough:
        yield (draw.array(3, 4, 4), draw.array(3, 2, 2, 2)), {"stride": (2, 3), "dilation": (2, 1)}
        yield (draw.array(1, 3, 4, 4), draw.array(3, 2, 1, 1)), {"padding": 1}


@sampler("conv_transpose1d", "conv_transpose3d")
def _transposed_others(draw: Draw) -> Iterator[Arguments]:
    rank = int(draw.record.name[-2])
    sizes, kernel = (4, 3, 3)[:rank], (3, 2, 3)[:rank]
    yield (draw.array(2, 3, *sizes), draw.array(3, 2, *kernel), draw.array(2)), {}
    yield (draw.array(4, *sizes), draw.array(4, 2, *kernel)), {"stride": 2, "padding": 1, "groups": 2}


_POOLS: dict[int, list[tuple[tuple[int, ...], Any, dict[str, Any]]]] = {
    1: [
        ((2, 3, 9), 2, {}),
        ((3, 10), 3, {"stride": 2, "padding": 1}),
        ((1, 2, 8), 3, {"stride": 2, "ceil_mode": True}),
    ],
    2: [
        ((2, 3, 6, 8), 2, {}),
        ((3, 9, 7), (3, 2), {"stride": (2, 1), "padding": 1}),
        ((1, 2, 8, 7), 3, {"stride": 2, "ceil_mode": True, "padding": 1}),
        ((1, 2, 20, 40), 3, {"stride": 1}),
        ((0, 2, 8, 7), 3, {}),
    ],
    3: [((1, 2, 4, 5, 6), 2, {}), ((2, 5, 4, 6), (3, 2, 2), {"stride": 1, "padding": (1, 0, 1)})],
}


@sampler("max_pool1d", "max_pool2d", "max_pool3d")
def _largest(draw: Draw) -> Iterator[Arguments]:
    cases = _POOLS[int(draw.record.name[8])]
    for x, kernel, options in cases if draw.thorough else cases[:2]:
        yield (draw.array(*x), kernel), options
    if draw.thorough:
        rank = int(draw.record.name[8])
        yield (draw.array(1, 2, *[9] * rank), 2), {"dilation": 3, "stride": 1}


@sampler("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _means(draw: Draw) -> Iterator[Arguments]:
    cases = _POOLS[int(draw.record.name[8])]
    for x, kernel, options in cases if draw.thorough else cases[:2]:
        yield (draw.array(*x), kernel), options
    x, kernel, options = cases[1]
    yield (draw.array(*x), kernel), {**options, "count_include_pad": False}
    if draw.thorough and draw.record.name != "avg_pool1d":
        yield (draw.array(*x), kernel), {**options, "divisor_override": 5}


@sampler("adaptive_avg_pool2d")
def _adaptive(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 6, 8), 1), {}
    yield (draw.array(3, 6, 8), (2, None)), {}
    yield (draw.array(1, 2, 7, 5), (3, 2)), {}


@sampler("softmax", "log_softmax")
def _softmax(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 5),), {}
    yield (draw.array(2, 3, 4), 1), {}
    if draw.thorough:
        yield (draw.array(0, 3),), {}
        yield (draw.array(3, 0),), {}
        yield (draw.array(7),), {}
        yield (draw.array(4, 5), 0), {}


@sampler("logsumexp")
def _logsumexp(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 5),), {}
    yield (draw.array(2, 3, 4), (0, -1)), {}
    if draw.thorough:
        yield (draw.array(2, 3, 4), 1), {"keepdim": True}
        yield (draw.array(3, 0),), {}


@sampler("layer_norm")
def _layer_norm(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 8), 8), {}
    yield (draw.array(3, 8), (8,), draw.array(8), draw.array(8)), {}
    yield (draw.array(2, 3, 4), (3, 4), draw.array(3, 4)), {"eps": 0.1}


@sampler("rms_norm")
def _rms_norm(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 8), 8), {}
    yield (draw.array(2, 3, 4), (3, 4), draw.array(3, 4)), {"eps": 0.1}


@sampler("batch_norm")
def _batch_norm(draw: Draw) -> Iterator[Arguments]:
    variance = draw.array(3, domain=(0.5, 2.0))
    yield (draw.array(4, 3), draw.array(3), variance), {}
    yield (draw.array(2, 3, 4, 5), draw.array(3), variance, draw.array(3), draw.array(3)), {"eps": 0.01}
    yield (draw.array(5, 3), None, None, draw.array(3), draw.array(3)), {"training": True}


@sampler("group_norm")
def _group_norm(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 6, 5), 3), {}
    yield (draw.array(2, 4, 3, 3), 2, draw.array(4), draw.array(4)), {}


@sampler("linear")
def _linear(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), draw.array(5, 4), draw.array(5)), {}
    yield (draw.array(2, 3, 4), draw.array(5, 4)), {}
    yield (draw.array(4), draw.array(5, 4)), {}


@sampler("scaled_dot_product_attention")
def _attention(draw: Draw) -> Iterator[Arguments]:
    q, k, v = draw.array(2, 3, 4, 5), draw.array(2, 3, 6, 5), draw.array(2, 3, 6, 2)
    yield (q, k, v), {}
    yield (q, k, v), {"is_causal": True, "scale": 0.5}
    yield (q, k, v, np.arange(24).reshape(4, 6) % 5 > 0), {}
    yield (q, k, v, draw.array(4, 6)), {}
    q, k, v = draw.array(2, 6, 4, 3), draw.array(2, 2, 5, 3), draw.array(2, 2, 5, 2)
    yield (q, k, v), {"enable_gqa": True}


@sampler("one_hot")
def _one_hot(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 2), 6), {}
    yield (draw.array(), 3), {}


@sampler("embedding")
def _embedding(draw: Draw) -> Iterator[Arguments]:
    table = np.linspace(-1, 1, 18, dtype=np.float32).reshape(6, 3)
    yield (draw.array(3, 2), table), {}
    yield (draw.array(), table), {}
    yield (draw.array(3, 2), table, 2), {}


@sampler("rotary_embedding")
def _rotary(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 4, 6), np.arange(4)), {}
    yield (draw.array(3, 4), np.array([0, 5, 9], np.int32)), {"interleaved": True, "base": 100.0}
    yield (draw.array(2, 3, 8), np.array([[0.5, 1.0, 2.0], [3.0, 4.0, 5.0]])), {}


@sampler("dropout")
def _dropout(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 2),), {"training": False}
    yield (draw.array(5, 4), 0.25), {"key": np.array([1, 2], np.uint32)}


@sampler("mse_loss")
def _mse(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), draw.array(3, 4)), {}
    yield (draw.array(3, 4), draw.array(3, 4)), {"reduction": "sum"}
    yield (draw.array(3, 4), draw.array(3, 4), "none"), {}
    yield (draw.array(3, 4), draw.array(3, 4)), {"weight": draw.array(3, 4, domain=(0.5, 1.5))}


@sampler("threshold")
def _threshold(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), 0.5, -2.0), {}


@sampler("prelu")
def _prelu(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), draw.array(4)), {}
    yield (draw.array(2, 3, 4), draw.array(1)), {}


@sampler("glu")
def _glu(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4),), {}
    yield (draw.array(2, 3, 4), 0), {}


@sampler(
    "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "binary_cross_entropy_with_logits", "binary_cross_entropy",
    "soft_margin_loss",
)  # fmt: skip
def _pairs(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), draw.array(3, 4, domain=(0.05, 0.95))), {}
    yield (draw.array(3, 4), draw.array(3, 4, domain=(0.05, 0.95))), {"reduction": "none"}


@sampler("cosine_similarity")
def _cosine_similarity(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), draw.array(3, 4)), {}
    yield (draw.array(2, 3, 4), draw.array(4)), {"dim": -1}


@sampler("cosine_embedding_loss", "margin_ranking_loss")
def _signed(draw: Draw) -> Iterator[Arguments]:
    sign = (np.arange(3) % 2 * 2 - 1).astype(draw.dtype)
    shape = (3, 4) if draw.record.name == "cosine_embedding_loss" else (3,)
    yield (draw.array(*shape), draw.array(*shape), sign), {"margin": 0.2}


@sampler("nll_loss", "multi_margin_loss")
def _of_classes(draw: Draw) -> Iterator[Arguments]:
    y = np.array([0, 3, 1], np.int32)
    yield (draw.array(3, 4), y), {}
    yield (draw.array(3, 4), y), {"weight": draw.array(4, domain=(0.5, 1.5)), "reduction": "sum"}
    yield (draw.array(4), np.int64(2)), {"reduction": "none"}
    if draw.record.name == "nll_loss":
        yield (draw.array(2, 4, 3), np.array([[0, -100, 3], [1, 1, 2]])), {}
    else:
        yield (draw.array(3, 4), y), {"p": 2, "margin": 0.5}


@sampler("multilabel_margin_loss")
def _multilabel(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 4), np.array([[3, 0, -1, 1], [2, -1, -1, 0]])), {}
    yield (draw.array(3), np.array([1, 0, 2])), {"reduction": "sum"}


@sampler("gaussian_nll_loss")
def _gaussian(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), draw.array(3, 4), draw.array(3, 4, domain=(0.5, 2.0))), {"full": True}
    yield (draw.array(3, 4), draw.array(3, 4), draw.array(3, domain=(0.5, 2.0))), {"reduction": "none"}


@sampler("poisson_nll_loss")
def _poisson(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), draw.array(3, 4)), {"full": True}
    yield (draw.array(3, 4), draw.array(3, 4)), {"log_input": False, "reduction": "sum"}


@sampler("ctc_loss")
def _ctc(draw: Draw) -> Iterator[Arguments]:
    labels, lengths = np.array([[1, 2, 2], [3, 1, 0]], np.int32), np.array([3, 2], np.int32)
    yield (draw.array(6, 2, 4), labels, np.array([6, 5], np.int32), lengths), {}
    yield (draw.array(6, 4), labels[0], np.int64(6), np.int64(2)), {"blank": 3, "reduction": "none"}
    yield (
        (draw.array(6, 2, 4), labels, np.array([3, 5], np.int32), lengths),
        {"zero_infinity": True, "reduction": "sum"},
    )


@sampler("hinge_embedding_loss")
def _hinge(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3), np.arange(6).reshape(2, 3) % 2 * 2 - 1), {"reduction": "sum"}


@sampler("triplet_margin_loss")
def _triplet(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), draw.array(3, 4), draw.array(3, 4)), {}
    yield (draw.array(3, 4), draw.array(3, 4), draw.array(3, 4)), {"swap": True, "p": 1}


@sampler("triplet_margin_with_distance_loss")
def _triplet_with_distance(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), draw.array(3, 4), draw.array(3, 4)), {"margin": 0.5}
    yield (draw.array(3, 4), draw.array(3, 4), draw.array(3, 4)), {"swap": True, "reduction": "none"}


@sampler("pairwise_distance")
def _pairwise(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), draw.array(3, 4)), {}
    yield (draw.array(3, 4), draw.array(4)), {"p": 1, "keepdim": True}
    yield (draw.array(3, 4), draw.array(3, 4)), {"p": np.inf}


@sampler("multilabel_soft_margin_loss")
def _multilabel_soft(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), draw.array(3, 4, domain=(0.0, 1.0))), {}
    yield (draw.array(3, 4), draw.array(3, 4, domain=(0.0, 1.0)), draw.array(4)), {"reduction": "none"}


@sampler("softmin")
def _softmin(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4),), {}
    yield (draw.array(3, 4),), {"dim": 0}


@sampler("gumbel_softmax")
def _gumbel(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4),), {"noise": np.linspace(-1, 2, 12).reshape(3, 4), "tau": 2.0}
    yield (draw.array(3, 4),), {"noise": np.linspace(-8, 9, 12).reshape(3, 4)[::-1], "dim": 0}


@sampler("lp_pool1d")
def _lp1d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 8), 2.0, 3), {}
    yield (draw.array(3, 7), 1, 2), {"stride": 1, "ceil_mode": True}


@sampler("lp_pool2d")
def _lp2d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 8, 7), 2.0, (3, 2)), {"ceil_mode": True}


@sampler("lp_pool3d")
def _lp3d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(1, 2, 4, 5, 3), 3, 2), {"stride": 1}


@sampler("max_pool1d_with_indices")
def _indices1d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 8), 3), {"padding": 1}
    yield (draw.array(3, 7), 2), {"stride": 1, "dilation": 2, "ceil_mode": True}


@sampler("max_pool2d_with_indices")
def _indices2d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 6, 7), (3, 2)), {"padding": 1, "stride": 2}


@sampler("max_pool3d_with_indices")
def _indices3d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 4, 5, 3), 2), {"stride": 1}


@sampler("max_unpool1d")
def _unpool1d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3), np.array([[0, 3, 4], [1, 2, 5]]), 2), {}
    yield (draw.array(1, 2, 3), np.array([[[0, 3, 4], [1, 2, 6]]]), 2), {"output_size": (7,)}


@sampler("max_unpool2d")
def _unpool2d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(1, 2, 2), np.array([[[0, 3], [9, 14]]]), 2), {}


@sampler("max_unpool3d")
def _unpool3d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(1, 1, 1, 2), np.array([[[[0, 15]]]]), 2), {}


@sampler("fractional_max_pool2d", "fractional_max_pool2d_with_indices")
def _fractional2d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 7, 8), 2, (4, 3)), {"samples": np.linspace(0, 0.99, 12).reshape(2, 3, 2)}


@sampler("fractional_max_pool3d", "fractional_max_pool3d_with_indices")
def _fractional3d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 7, 5, 6), (2, 1, 3), (3, 2, 1)), {"samples": np.linspace(0, 0.99, 6).reshape(2, 3)}


@sampler("instance_norm")
def _instance_norm(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 4, 5),), {"weight": draw.array(3), "bias": draw.array(3)}
    yield (draw.array(2, 3, 7),), {"eps": 0.1}
    statistics = draw.array(3), np.abs(draw.array(3)) + draw.dtype.type(1)
    yield (draw.array(2, 3, 5), *statistics), {"use_input_stats": False}


@sampler("normalize")
def _normalize(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4),), {}
    yield (draw.array(3, 4), 1), {"dim": 0}
    yield (draw.array(3, 4, 2), np.inf), {"dim": (0, -1)}


@sampler("adaptive_avg_pool1d", "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices")
def _adaptive1d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 8), 4), {}
    yield (draw.array(3, 7), 3), {}


@sampler("adaptive_max_pool2d", "adaptive_max_pool2d_with_indices")
def _adaptive2d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 8, 7), (4, 3)), {}
    yield (draw.array(3, 6, 5), (None, 1)), {}


@sampler("adaptive_avg_pool3d", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices")
def _adaptive3d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(1, 2, 4, 5, 3), (2, 3, None)), {}


@sampler("cross_entropy")
def _cross_entropy(draw: Draw) -> Iterator[Arguments]:
    classes = np.arange(12).reshape(4, 3) % 5
    yield (draw.array(4, 5), classes[:, 0]), {}
    yield (draw.array(4, 5, 3), classes), {"reduction": "none", "label_smoothing": 0.1}
    if draw.is_float:
        yield (draw.array(4, 5), draw.array(4, 5, domain=(0.0, 1.0))), {"reduction": "sum"}
    yield (draw.array(5), np.array(2)), {}


@sampler("pad")
def _pad(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 4), (1, 2)), {"value": 1}
    yield (draw.array(2, 3, 4), (-1, 2, 1, -2)), {}
    for mode in ("reflect", "replicate", "circular"):
        yield (draw.array(2, 3, 4), (3, 1, 2, -1), mode), {}


@sampler("pixel_shuffle")
def _pixel_shuffle(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 8, 2, 3), 2), {}


@sampler("pixel_unshuffle")
def _pixel_unshuffle(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 4, 6), 2), {}


@sampler("channel_shuffle")
def _channel_shuffle(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 6, 3), 3), {}


@sampler("unfold")
def _unfold(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 2, 5, 4), (2, 3)), {"padding": (0, 1), "stride": (2, 1)}
    yield (draw.array(2, 6, 5), 2), {"dilation": 2}


@sampler("fold")
def _fold(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 8, 6), (5, 4), 2), {"stride": (2, 1), "dilation": (2, 1)}
    yield (draw.array(4, 9), 4, 2), {}


@sampler("interpolate")
def _interpolate(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 5), 8), {}
    yield (draw.array(1, 2, 5, 4), None, (1.5, 2)), {"mode": "bilinear"}
    yield (draw.array(1, 2, 5, 4), (3, 7)), {"mode": "bicubic", "align_corners": True}
    yield (draw.array(1, 2, 6, 4), (4, 2)), {"mode": "area"}


@sampler("grid_sample")
def _grid_sample(draw: Draw) -> Iterator[Arguments]:
    grid = draw.array(2, 3, 4, 2, domain=(-1.2, 1.2))
    yield (draw.array(2, 2, 5, 4), grid), {}
    yield (draw.array(2, 2, 5, 4), grid, "bicubic", "border", True), {}


@sampler("affine_grid")
def _affine_grid(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 2, 3), (2, 1, 4, 3)), {}


@sampler("dropout1d")
def _dropped_rows(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 4),), {"training": False}


@sampler("dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
def _dropped(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 2, 3, 4),), {"training": False}


@sampler("bilinear")
def _bilinear(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), draw.array(3, 5), draw.array(2, 4, 5), draw.array(2)), {}


@sampler("embedding_bag")
def _embedding_bag(draw: Draw) -> Iterator[Arguments]:
    rows = np.arange(12) * 5 % 7
    yield (rows.reshape(4, 3), draw.array(7, 2)), {"padding_idx": 3}
    yield (rows, draw.array(7, 2), np.array([0, 2, 2, 9]), "max"), {}
    yield (rows, draw.array(7, 2), np.array([1, 2, 2, 9])), {"include_last_offset": True}


@sampler("pdist")
def _pdist(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(5, 3),), {}


@sampler("local_response_norm")
def _local_response_norm(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 5, 3), 3), {"alpha": 0.5}
