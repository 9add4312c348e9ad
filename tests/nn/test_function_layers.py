"""Layers of functions: results and derivatives are those of torch's layers of the same names."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import nn, optim, random
from mlirml.core.tree import flatten
from mlirml.nn import functional as F
from mlirml.nn import initializers
from mlirml.nn.modules import functions

RNG = np.random.default_rng(3)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def probabilities(*shape: int) -> np.ndarray:
    return RNG.uniform(0.05, 0.95, shape)


def signs(*shape: int) -> np.ndarray:
    return np.where(RNG.random(shape) < 0.5, -1.0, 1.0)


CLASSES = RNG.integers(0, 4, 5)
CASES: list[tuple[str, dict[str, Any], tuple[Any, ...]]] = [
    *[(name, {}, (array(3, 4),)) for name in (
        "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
        "Mish", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softplus", "Softshrink", "Softsign", "Tanh",
        "Tanhshrink", "Identity", "AlphaDropout",
    )],
    *[(name, {"dim": 1}, (array(3, 4),)) for name in ("LogSoftmax", "Softmax", "Softmin")],
    ("CELU", {"alpha": 0.5}, (array(3, 4),)),
    ("GELU", {"approximate": "tanh"}, (array(3, 4),)),
    ("Hardtanh", {"min_val": -0.5, "max_val": 0.2}, (array(3, 4),)),
    ("Softplus", {"beta": 2.0, "threshold": 1.0}, (array(3, 4),)),
    ("Threshold", {"threshold": 0.1, "value": 20.0}, (array(3, 4),)),
    ("Softmax2d", {}, (array(2, 3, 4, 5),)),
    ("Flatten", {}, (array(2, 3, 4),)),
    ("Flatten", {"start_dim": -3, "end_dim": 1}, (array(2, 3, 4),)),
    ("Unflatten", {"dim": 1, "unflattened_size": (2, -1)}, (array(2, 6, 3),)),
    ("Dropout1d", {}, (array(2, 3, 4),)),
    ("Dropout2d", {}, (array(2, 3, 4, 2),)),
    ("Dropout3d", {}, (array(2, 3, 4, 2, 1),)),
    ("FeatureAlphaDropout", {}, (array(2, 3, 4, 2, 1),)),
    ("ChannelShuffle", {"groups": 2}, (array(1, 4, 2, 2),)),
    ("CosineSimilarity", {"dim": 0}, (array(3, 4), array(3, 4))),
    ("PairwiseDistance", {"p": 3.0, "keepdim": True}, (array(3, 4), array(3, 4))),
    ("PixelShuffle", {"upscale_factor": 2}, (array(2, 8, 3, 2),)),
    ("PixelUnshuffle", {"downscale_factor": 2}, (array(2, 1, 4, 6),)),
    ("Unfold", {"kernel_size": (2, 3), "padding": 1, "stride": 2}, (array(2, 3, 5, 6),)),
    ("Fold", {"output_size": (4, 5), "kernel_size": (2, 2)}, (array(2, 8, 12),)),
    ("LocalResponseNorm", {"size": 3, "alpha": 0.1}, (array(2, 5, 4),)),
    ("Upsample", {"size": (5, 7), "mode": "bicubic"}, (array(1, 2, 3, 4),)),
    ("Upsample", {"scale_factor": 2}, (array(1, 2, 3),)),
    ("UpsamplingNearest2d", {"scale_factor": 2}, (array(1, 2, 3, 4),)),
    ("UpsamplingBilinear2d", {"size": (5, 7)}, (array(1, 2, 3, 4),)),
    *[(f"{mode}Pad{rank}d", {"padding": padding} | ({"value": 2.5} if mode == "Constant" else {}),
       (array(2, 3, *(4, 5, 3)[:rank]),))
      for mode in ("Zero", "Constant", "Reflection", "Replication", "Circular")
      for rank in (1, 2, 3) for padding in (1, (2, 1, 0, 1, 2, 1)[:2 * rank])],
    ("BCELoss", {"weight": probabilities(3, 4)}, (probabilities(3, 4), probabilities(3, 4))),
    ("BCEWithLogitsLoss", {"pos_weight": probabilities(4)}, (array(3, 4), probabilities(3, 4))),
    ("CTCLoss", {"blank": 1, "zero_infinity": True},
     (np.log(probabilities(6, 2, 4)), np.array([[0, 2, 3], [3, 3, 0]]), np.array([6, 5]), np.array([3, 2]))),
    ("CosineEmbeddingLoss", {"margin": 0.1}, (array(5, 4), array(5, 4), signs(5))),
    ("CrossEntropyLoss", {"weight": probabilities(4), "label_smoothing": 0.1}, (array(5, 4), CLASSES)),
    ("CrossEntropyLoss", {"ignore_index": 2}, (array(5, 4), CLASSES)),
    ("GaussianNLLLoss", {"full": True}, (array(5, 4), array(5, 4), probabilities(5, 4))),
    ("HingeEmbeddingLoss", {"margin": 0.5}, (array(5, 4), signs(5, 4))),
    ("HuberLoss", {"delta": 0.5, "reduction": "sum"}, (array(5, 4), array(5, 4))),
    ("KLDivLoss", {"reduction": "batchmean"}, (array(5, 4), probabilities(5, 4))),
    ("KLDivLoss", {"log_target": True}, (array(5, 4), array(5, 4))),
    ("L1Loss", {"reduction": "none"}, (array(5, 4), array(5, 4))),
    ("MSELoss", {}, (array(5, 4), array(5, 4))),
    ("MarginRankingLoss", {"margin": 0.1}, (array(5), array(5), signs(5))),
    ("MultiLabelMarginLoss", {}, (array(2, 4), np.array([[3, 0, -1, 1], [2, -1, 0, 0]]))),
    ("MultiLabelSoftMarginLoss", {"weight": probabilities(4)}, (array(5, 4), probabilities(5, 4))),
    ("MultiMarginLoss", {"p": 2, "weight": probabilities(4)}, (array(5, 4), CLASSES)),
    ("NLLLoss", {"weight": probabilities(4)}, (array(5, 4), CLASSES)),
    ("PoissonNLLLoss", {"full": True}, (array(5, 4), 3 * probabilities(5, 4))),
    ("SmoothL1Loss", {"beta": 0.5}, (array(5, 4), array(5, 4))),
    ("SoftMarginLoss", {}, (array(5, 4), signs(5, 4))),
    ("TripletMarginLoss", {"swap": True, "p": 1.0}, (array(5, 4), array(5, 4), array(5, 4))),
    ("TripletMarginWithDistanceLoss", {"margin": 0.3}, (array(5, 4), array(5, 4), array(5, 4))),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "options", "given"), CASES, ids=lambda x: x if isinstance(x, str) else "")
def test_a_layer_and_its_derivatives_are_those_of_torch(name: str, options: Any, given: Any) -> None:
    torch = pytest.importorskip("torch")
    layer = getattr(nn, name)(**options)
    theirs = getattr(torch.nn, name)(
        **{k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    ).eval()
    moved = [k for k, x in enumerate(given) if x.dtype.kind == "f" and (k == 0 or "Loss" not in name)]
    moved = [] if name == "CTCLoss" else moved  # torch's derivative is right through a log_softmax alone
    tensors = [torch.tensor(x, requires_grad=k in moved) for k, x in enumerate(given)]
    expected = theirs(*tensors)
    weights = array(*expected.shape)
    slopes = (
        torch.autograd.grad(torch.sum(expected * torch.tensor(weights)), [tensors[k] for k in moved]) if moved else []
    )

    def both(layer: Any, *given: Any) -> Any:
        return layer(*given), ml.grad(lambda *x: np.sum(layer(*x) * weights), moved)(*given) if moved else []

    found, gradients = ml.compile(both)(layer, *given)
    for one in (found, layer(*given)):
        assert one.dtype == np.float64
        np.testing.assert_allclose(one, expected.detach().numpy(), rtol=1e-9, atol=1e-12)
    for one, slope in zip(gradients, slopes, strict=True):
        np.testing.assert_allclose(one, slope.numpy(), rtol=5e-8, atol=1e-11)
    again = pickle.loads(pickle.dumps(copy.deepcopy(layer)))
    assert repr(again) == repr(layer) and flatten(again)[1] == flatten(layer)[1]


def test_every_layer_of_a_function_is_tested() -> None:
    made = {name for name, value in vars(functions).items() if isinstance(value, type) and name[0].isupper()}
    made = {name for name in made if vars(functions)[name].__module__ == functions.__name__}
    assert made - {case[0] for case in CASES} == set()
    assert made <= set(nn.__all__)


@pytest.mark.parametrize("name", ["Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"])
def test_dropouts_draw_by_a_key(name: str) -> None:
    shape = (2, 3, *(4, 3, 2)[: int(name[-2]) if name[-1] == "d" else 1])
    layer, x, key = getattr(nn, name)(0.4), array(*shape), random.key(5)
    function = getattr(F, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    found = nn.Sequential([layer])(x, key=key)
    np.testing.assert_array_equal(found, function(x, 0.4, training=True, key=random.fold_in(key, 0)))
    assert not np.array_equal(found, x)


def test_a_prelu_a_bilinear_layer_and_embeddings_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    key, padded, bags = random.key(1), np.array([[1, 5, 2], [5, 0, 5]]), np.array([4, 1, 5, 2, 2, 0])
    prelu, bilinear = nn.PReLU.init(3, dtype=np.float64), nn.Bilinear.init(key, 3, 4, 2, dtype=np.float64)
    rows, bag = (make.init(key, 6, 4, padding_idx=-1, dtype=np.float64) for make in (nn.Embedding, nn.EmbeddingBag))
    assert not rows.weight[5].any() and not bag.weight[5].any()
    cases = [
        (prelu, torch.nn.PReLU(3), [array(2, 3, 4)], {}),
        (bilinear, torch.nn.Bilinear(3, 4, 2), [array(5, 3), array(5, 4)], {}),
        (rows, torch.nn.Embedding(6, 4, padding_idx=-1), [padded], {}),
        (bag, torch.nn.EmbeddingBag(6, 4, padding_idx=-1), [padded], {}),
        (bag, torch.nn.EmbeddingBag(6, 4, padding_idx=-1), [bags], {"offsets": np.array([0, 2, 3])}),
    ]
    for ours, theirs, given, options in cases:
        for name, value in theirs.named_parameters():
            value.data = torch.tensor(getattr(ours, name))
        tensors = [torch.tensor(x, requires_grad=x.dtype.kind == "f") for x in given]
        expected = theirs(*tensors, **{k: torch.tensor(v) for k, v in options.items()})
        weights = array(*expected.shape)
        torch.sum(expected * torch.tensor(weights)).backward()

        def loss(layer: Any, given: Any, options: Any, weights: Any) -> Any:
            return np.sum(layer(*given, **options) * weights)

        found = ours(*given, **options)
        np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-10, atol=1e-12)
        gradient = ml.compile(ml.grad(loss))(ours, given, options, weights)
        for name, value in theirs.named_parameters():
            np.testing.assert_allclose(getattr(gradient, name), value.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_weights_of_elements_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    x, y, w = array(3, 4), array(3, 4), probabilities(3, 4)
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        for reduction in ("mean", "sum", "none"):
            expected = getattr(torch.nn.functional, name)(
                torch.tensor(x), torch.tensor(y), reduction=reduction, weight=torch.tensor(w)
            )
            np.testing.assert_allclose(getattr(F, name)(x, y, reduction, weight=w), expected.numpy(), rtol=1e-12)


def test_running_statistics_of_instances_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    x, mean, variance = array(4, 3, 5), array(3), probabilities(3)
    for training in (True, False):
        ours, theirs = [mean.copy(), variance.copy()], [torch.tensor(mean), torch.tensor(variance)]
        expected = torch.nn.functional.instance_norm(torch.tensor(x), *theirs, use_input_stats=training, momentum=0.3)

        def normalized(x: Any, mean: Any, variance: Any, training: bool = training) -> Any:
            return F.instance_norm(x, mean, variance, use_input_stats=training, momentum=0.3)

        plain = [mean.copy(), variance.copy()]
        for found in (ml.compile(normalized)(x, *ours), normalized(x, *plain)):
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-10)
        for one, other, third in zip(ours, plain, theirs):
            np.testing.assert_allclose(one, third.numpy(), rtol=1e-12)
            np.testing.assert_allclose(other, third.numpy(), rtol=1e-12)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_positions_of_adaptive_and_random_maxima_are_those_of_torch(rank: int) -> None:
    torch = pytest.importorskip("torch")
    x, counts = array(2, 3, *(9, 7, 8)[:rank]), (4, 3, 8)[:rank]
    cases = [(f"adaptive_max_pool{rank}d", (counts,), {})]
    if rank > 1:
        samples = RNG.random((2, 3, rank))
        cases.append((f"fractional_max_pool{rank}d", (2, counts), {"samples": samples}))
    for name, arguments, options in cases:
        if "fractional" in name and rank == 3:
            arguments = (2, (4, 3, 6))
        found = getattr(F, f"{name}_with_indices")(x, *arguments, **options)
        given = {f"_random_{k}": torch.tensor(v) for k, v in options.items()}
        expected = getattr(torch.nn.functional, name)(torch.tensor(x), *arguments, return_indices=True, **given)
        for one, other in zip(found, expected):
            np.testing.assert_array_equal(one, other.numpy())
        np.testing.assert_array_equal(getattr(F, name)(x, *arguments, **options), expected[0].numpy())


def test_the_page_has_every_name_of_torch_that_is_called_otherwise_or_missing() -> None:
    """Layers, functions, initialisers, optimisers and schedules: here by the same name, or in a table of the page."""
    torch = pytest.importorskip("torch")
    page = Path(__file__).parents[2] / "docs" / "models.md"
    rows = re.findall(r"^\| (`.*?) \|", page.read_text().partition("## Names of torch")[2], re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    lists = {
        "nn": (torch.nn, nn, lambda x: isinstance(x, type) and x.__module__.startswith("torch.nn")),
        "functional": (torch.nn.functional, F, lambda x: callable(x) and not isinstance(x, type)),
        "init": (torch.nn.init, initializers, lambda x: callable(x) and getattr(x, "__name__", "").endswith("_")),
        "optim": (torch.optim, optim, lambda x: isinstance(x, type)),
        "lr_scheduler": (torch.optim.lr_scheduler, optim, lambda x: isinstance(x, type) and "lr_sched" in x.__module__),
    }
    for part, (theirs, ours, counts) in lists.items():
        names = {name for name, value in vars(theirs).items() if name[0] != "_" and counts(value)}
        unknown = {name for name in names if not hasattr(ours, name)} - listed
        internal = {"assert_int_or_pair", "boolean_dispatch", "Optional"}
        assert {name for name in unknown - internal if "torch_function" not in name} == set(), part
