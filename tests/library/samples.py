"""Calls of the functions that have records under another library's names: arguments for each dtype."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlirml.core.tree import flatten
from mlirml.ir.text.dtypes import from_short_name
from mlirml.ops.functions import FunctionRecord

Function = Callable[..., Any]


def the_same(x: Any) -> Any:
    return x


@dataclass(frozen=True, eq=False)
class Sample:
    """A call: arrays are arguments of the compiled function, all else is part of it."""

    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    unique: Function = the_same  # the part of the result that the definition determines
    member: Function = the_same  # the function that is called, of the record's

    def arrays(self) -> list[np.ndarray]:
        return [x for x in flatten((self.args, self.options))[0] if isinstance(x, np.ndarray)]

    def call(self, function: Any, arrays: list[Any]) -> list[Any]:
        """The results with these arrays in place of its own."""
        leaves, tree = flatten((self.args, self.options))
        given = iter(arrays)
        args, options = tree.unflatten([next(given) if isinstance(x, np.ndarray) else x for x in leaves])
        return flatten(self.unique(self.member(function)(*args, **options)))[0]


@dataclass
class Draw:
    """Random arguments of a function with a dtype."""

    function: str
    name: str
    random: np.random.Generator

    @property
    def dtype(self) -> np.dtype:
        return from_short_name(self.name)

    def array(self, *shape: int, low: float = -1.0, high: float = 1.0) -> np.ndarray:
        """Numbers of an interval, complex ones in both parts; integers of both signs, or from 0."""
        if self.dtype.kind in "iu":
            return self.random.integers(-20 if self.dtype.kind == "i" else 0, 90, shape).astype(self.dtype)
        x = self.random.uniform(low, high, shape)
        if self.dtype.kind == "c":
            x = x + 1j * self.random.uniform(low, high, shape)
        return x.astype(self.dtype)

    def regular(self, n: int, *batch: int) -> np.ndarray:
        """Matrices with distinct eigenvalues that are far from singular."""
        return self.array(*batch, n, n) + (np.eye(n) * np.arange(2, n + 2)).astype(self.dtype)

    def definite(self, n: int, *batch: int) -> np.ndarray:
        """Hermitian matrices with positive, distinct eigenvalues."""
        x = self.array(*batch, n, n)
        found = x @ np.swapaxes(x.conj(), -1, -2) + np.eye(n) * np.arange(2, n + 2)
        return np.asarray(found, self.dtype)


Sampler = Callable[[Draw], Iterator[Sample]]
SAMPLERS: dict[tuple[str, str], Sampler] = {}


def sampler(package: str, *names: str) -> Callable[[Sampler], Sampler]:
    """Decorator: the calls of these functions."""

    def enter(draws: Sampler) -> Sampler:
        for name in names:
            assert (package, name) not in SAMPLERS, name
            SAMPLERS[package, name] = draws
        return draws

    return enter


def samples_of(record: FunctionRecord, dtype: str) -> list[Sample]:
    """The calls of a function with a dtype."""
    seed = [ord(letter) for letter in record.package + record.name + dtype]
    return [*SAMPLERS[record.package, record.name](Draw(record.name, dtype, np.random.default_rng(seed)))]


def magnitudes(*parts: int) -> Function:
    """Of vectors whose sign or phase is not determined the magnitudes; the other parts as they are."""

    def unique(result: Any) -> Any:
        return tuple(np.abs(x) if i in parts else x for i, x in enumerate(result))

    return unique


def _special(name: str, *intervals: tuple[float, float], first: tuple[Any, ...] = (), **options: Any) -> None:
    @sampler("mlirml.special", name)
    def draws(draw: Draw) -> Iterator[Sample]:
        arrays = (draw.array(2, 3, low=low, high=high) for low, high in intervals)
        yield Sample((*first, *arrays), options)


for _name in ("gammaln", "gamma", "digamma", "psi", "entr", "erf", "erfc", "erfcx", "i0", "i0e", "i1", "i1e", "rgamma"):
    _special(_name, (0.2, 5.0))
for _name in ("expit", "log_expit", "ndtr", "log_ndtr", "softmax", "log_softmax", "logsumexp"):
    _special(_name, (-3.0, 3.0))
for _name in ("erfinv", "erfcinv", "ndtri", "logit"):
    _special(_name, (0.1, 0.9))
for _name in ("beta", "betaln", "rel_entr", "kl_div", "xlogy", "xlog1py", "gammainc", "gammaincc"):
    _special(_name, (0.5, 4.0), (0.5, 4.0))
for _name in ("betainc", "betaincc", "betaincinv", "betainccinv"):
    _special(_name, (0.5, 4.0), (0.5, 4.0), (0.1, 0.9))
for _name in ("gammaincinv", "gammainccinv"):
    _special(_name, (0.5, 4.0), (0.1, 0.9))
_special("zeta", (1.5, 6.0), (0.5, 4.0))
_special("polygamma", (0.5, 4.0), first=(2,))
_special("gammasgn", (-2.9, 2.9))
_special("multigammaln", (1.5, 6.0), d=3)


@sampler("numpy.linalg", "det", "inv", "slogdet")
def _of_a_regular_matrix(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.regular(3),))
    yield Sample((draw.regular(4, 2),))


@sampler("numpy.linalg", "cholesky")
def _cholesky(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.definite(3),))
    yield Sample((draw.definite(4, 2),))


@sampler("numpy.linalg", "solve")
def _solve(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.regular(3), draw.array(3)))
    yield Sample((draw.regular(4, 2), draw.array(2, 4, 3)))


@sampler("numpy.linalg", "lstsq")
def _lstsq(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(5, 3), draw.array(5, 2)), {"rcond": None}, lambda r: (r[0], r[1], r[3]))


@sampler("numpy.linalg", "eigh")
def _eigh(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.definite(3),), {}, magnitudes(1))
    yield Sample((draw.definite(4, 2),), {"UPLO": "U"}, magnitudes(1))


@sampler("numpy.linalg", "eigvalsh")
def _eigvalsh(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.definite(3),))


def _power_sums(values: Any) -> Any:
    """Sums of the powers of eigenvalues, which do not depend on their order."""
    return [np.sum(values**k, axis=-1) + 0j for k in range(1, 4)]


@sampler("numpy.linalg", "eigvals")
def _eigvals(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.regular(3),), {}, _power_sums)


@sampler("numpy.linalg", "eig")
def _eig(draw: Draw) -> Iterator[Sample]:
    def matrix(found: Any) -> Any:
        """Of the eigenvectors the projections that they make, whose weighted sum is the exponential of the matrix."""
        values, vectors = found
        return [*_power_sums(values), (vectors * np.exp(values)) @ np.linalg.inv(vectors) + 0j]

    yield Sample((draw.regular(3) / 2,), {}, matrix)


@sampler("numpy.linalg", "pinv")
def _pinv(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(4, 3) + np.eye(4, 3, dtype=draw.dtype),))


@sampler("numpy.linalg", "qr")
def _qr(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.regular(3),), {}, magnitudes(0, 1))
    yield Sample((draw.array(2, 5, 3),), {}, magnitudes(0, 1))


@sampler("numpy.linalg", "svd")
def _svd(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.regular(3),), {"full_matrices": False}, magnitudes(0, 2))
    yield Sample((draw.array(5, 3),), {"compute_uv": False})


@sampler("numpy.linalg", "svdvals")
def _svdvals(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(5, 3),))


@sampler("mlirml.linalg", "expm", "sqrtm")
def _function_of_a_matrix(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.regular(3) / 2,), {}, lambda x: x + 0j)


@sampler("mlirml.linalg", "lu", "lu_factor")
def _lu(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.regular(3),))


@sampler("mlirml.linalg", "cho_factor")
def _cho_factor(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.definite(3),), {}, lambda found: np.triu(found[0]))


@sampler("mlirml.linalg", "cho_solve")
def _cho_solve(draw: Draw) -> Iterator[Sample]:
    factor = np.linalg.cholesky(draw.definite(3))
    yield Sample(((factor, True), draw.array(3, 2)))


@sampler("mlirml.linalg", "lu_solve")
def _lu_solve(draw: Draw) -> Iterator[Sample]:
    yield Sample(((draw.regular(3), np.array([1, 1, 2], np.int32)), draw.array(3, 2)))


@sampler("mlirml.linalg", "solve_banded")
def _solve_banded(draw: Draw) -> Iterator[Sample]:
    yield Sample(((1, 2), draw.array(4, 5), draw.array(5)))
    yield Sample(((2, 1), draw.array(4, 5), draw.array(5, 2)))
    yield Sample(((0, 1), draw.array(2, 4) + 2, draw.array(4)))


@sampler("mlirml.linalg", "solveh_banded")
def _solveh_banded(draw: Draw) -> Iterator[Sample]:
    for lower in (False, True):
        diagonals = draw.array(3, 5)
        diagonals[0 if lower else -1] = 8
        yield Sample((diagonals, draw.array(5)), {"lower": lower})


@sampler("mlirml.linalg", "solve_triangular")
def _solve_triangular(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.regular(3), draw.array(3, 2)))
    yield Sample((draw.regular(3), draw.array(3)), {"lower": True, "trans": 1})


@sampler("mlirml.linalg", "block_diag")
def _block_diag(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(2, 3), draw.array(1, 2)))


@sampler("mlirml.linalg", "toeplitz")
def _toeplitz(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(3), draw.array(4)))


@sampler("numpy.fft", "fft", "ifft", "irfft", "hfft", "fftshift", "ifftshift")
def _transform(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(2, 6),))


@sampler("numpy.fft", "rfft", "ihfft")
def _transform_of_real_numbers(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(2, 6).real,))


@sampler("numpy.fft", "fftn", "ifftn", "fft2", "ifft2", "irfftn", "irfft2")
def _transform_along_several_axes(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(2, 4, 5),), {"norm": "ortho"})


@sampler("numpy.fft", "rfftn", "rfft2")
def _transform_of_real_numbers_along_several_axes(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(2, 4, 5).real,))


@sampler("mlirml.fft", "dct", "idct", "dst", "idst")
def _cosine_and_sine_transforms(draw: Draw) -> Iterator[Sample]:
    for type_ in (1, 2, 3, 4):
        yield Sample((draw.array(2, 5), type_), {"norm": "ortho" if type_ % 2 else None})


@sampler("mlirml.fft", "dctn", "idctn", "dstn", "idstn")
def _cosine_and_sine_transforms_along_several_axes(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(3, 4),), {"s": (5, 3), "norm": "forward"})


@sampler("mlirml.signal", "convolve", "correlate", "fftconvolve", "oaconvolve")
def _convolution(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(9), draw.array(4)))
    yield Sample((draw.array(4, 5), draw.array(2, 3)), {"mode": "same"})


@sampler("mlirml.signal", "convolve2d", "correlate2d")
def _convolution_of_matrices(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(4, 5), draw.array(2, 3)), {"boundary": "wrap"})


@sampler("mlirml.signal", "lfilter")
def _lfilter(draw: Draw) -> Iterator[Sample]:
    coefficients = draw.array(3, low=0.2), np.append(1, draw.array(2) / 3).astype(draw.dtype)
    yield Sample((*coefficients, draw.array(2, 7)))
    yield Sample((*coefficients, draw.array(7)), {"zi": draw.array(2)})


@sampler("mlirml.signal", "lfilter_zi")
def _lfilter_zi(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(3).real, np.append(1, draw.array(2).real / 3)))


@sampler("mlirml.signal", "filtfilt")
def _filtfilt(draw: Draw) -> Iterator[Sample]:
    real = draw.array(1).real.dtype
    yield Sample((np.array([0.5, 0.2], real), np.array([1, -0.3], real), draw.array(2, 12)))


_SECTIONS = np.array([[0.5, 0.2, 0.1, -0.3, 0.1], [0.7, -0.2, 0.1, 0.2, 0.3]])


def _with_ones(function: Function) -> Function:
    """The filter of sections without the first of the recursive coefficients, which has to be one."""

    def call(sos: Any, *x: Any) -> Any:
        return function(np.concatenate((sos[:, :3], np.ones_like(sos[:, :1]), sos[:, 3:]), axis=1), *x)

    return call


@sampler("mlirml.signal", "sosfilt", "sosfiltfilt")
def _sections(draw: Draw) -> Iterator[Sample]:
    yield Sample((_SECTIONS.astype(draw.array(1).real.dtype), draw.array(2, 24)), {}, the_same, _with_ones)


@sampler("mlirml.signal", "sosfilt_zi")
def _sosfilt_zi(draw: Draw) -> Iterator[Sample]:
    yield Sample((_SECTIONS.astype(draw.array(1).real.dtype),), {}, the_same, _with_ones)


@sampler("mlirml.signal", "savgol_filter")
def _savgol_filter(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(2, 9).real, 5, 2), {"mode": "mirror"})


@sampler("mlirml.signal", "detrend")
def _detrend(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(2, 9),))


@sampler("mlirml.signal", "hilbert")
def _hilbert(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(2, 8).real,))


@sampler("mlirml.signal", "resample")
def _resample(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(8, 2), 6))


@sampler("mlirml.signal", "stft", "spectrogram", "welch")
def _spectra(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(2, 24),), {"nperseg": 8, "return_onesided": draw.dtype.kind != "c"})


@sampler("mlirml.signal", "periodogram")
def _periodogram(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(2, 24),), {"return_onesided": draw.dtype.kind != "c"})


@sampler("mlirml.signal", "csd")
def _csd(draw: Draw) -> Iterator[Sample]:
    options = {"nperseg": 8, "return_onesided": draw.dtype.kind != "c"}
    yield Sample((draw.array(24), draw.array(24)), options)


@sampler("mlirml.signal", "coherence")
def _coherence(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(24).real, draw.array(24).real), {"nperseg": 8})


@sampler("mlirml.signal", "istft")
def _istft(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(5, 7),), {"nperseg": 8})


@sampler("mlirml.signal", "choose_conv_method")
def _choose_conv_method(draw: Draw) -> Iterator[Sample]:
    yield Sample((np.ones(10), np.ones(2)), {}, lambda method: np.array(method == "direct"))


@sampler("mlirml.signal", "correlation_lags", "get_window", "savgol_coeffs")
def _numbers(draw: Draw) -> Iterator[Sample]:
    yield Sample(("hann", 8) if draw.function == "get_window" else (5, 2))


_FOOTPRINT = np.array([[0, 1, 1], [1, 1, 0]])


@sampler("mlirml.ndimage", "convolve", "correlate")
def _weights(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(4, 5), np.array([[0.5, 0.2, -0.1], [0.3, 0.4, 0.1]])), {"mode": "nearest"})


@sampler("mlirml.ndimage", "convolve1d", "correlate1d")
def _weights_along_an_axis(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(4, 5), np.array([0.5, 0.25, -0.125])), {"mode": "wrap"})


@sampler("mlirml.ndimage", "gaussian_filter", "gaussian_filter1d", "gaussian_laplace", "gaussian_gradient_magnitude")
def _gaussian(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(4, 5), 0.8))


@sampler("mlirml.ndimage", "sobel", "prewitt", "laplace")
def _differences(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(4, 5),))


@sampler("mlirml.ndimage", "uniform_filter", "uniform_filter1d", "maximum_filter1d", "minimum_filter1d")
def _windows(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(4, 5), 3))


@sampler(
    "mlirml.ndimage", "maximum_filter", "minimum_filter", "median_filter", "grey_closing", "grey_dilation",
    "grey_erosion", "grey_opening", "morphological_gradient",
)  # fmt: skip
def _footprints(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(4, 5), 2))
    yield Sample((draw.array(4, 5),), {"footprint": _FOOTPRINT.tolist()})


@sampler("mlirml.ndimage", "rank_filter", "percentile_filter")
def _ranks(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(4, 5), 1, 3))


@sampler(
    "mlirml.ndimage", "binary_closing", "binary_dilation", "binary_erosion", "binary_opening", "binary_propagation",
    "binary_fill_holes",
)  # fmt: skip
def _binary(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.random.uniform(-1, 1, (4, 5)) > 0,))


_LABELS = np.array([[0, 1, 1, 2, 0], [2, 2, 1, 0, 0], [3, 0, 1, 3, 3], [0, 2, 2, 0, 1]])


@sampler(
    "mlirml.ndimage", "sum_labels", "mean", "variance", "standard_deviation", "minimum", "maximum", "center_of_mass"
)  # fmt: skip
def _measurements(draw: Draw) -> Iterator[Sample]:
    elements = draw.array(4, 5, low=0.5)
    yield Sample((elements, _LABELS, [1, 3]))


@sampler("mlirml.ndimage", "histogram")
def _histogram_of_labels(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(4, 5), -0.95, 1.05, 3, _LABELS, [1, 3]), {}, lambda found: list(found))


@sampler("mlirml.ndimage", "label", "distance_transform_bf", "distance_transform_cdt", "distance_transform_edt")
def _masks(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.random.uniform(-1, 1, (4, 5)) > -0.6,))


@sampler("mlirml.ndimage", "generate_binary_structure")
def _structure(draw: Draw) -> Iterator[Sample]:
    yield Sample((2, 1))


@sampler("mlirml.ndimage", "spline_filter", "spline_filter1d")
def _spline(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(4, 5), 3))


@sampler("mlirml.ndimage", "map_coordinates")
def _map_coordinates(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(4, 5), draw.random.uniform(0.2, 2.8, (2, 3))), {"order": 1})
    yield Sample((draw.array(4, 5), draw.random.uniform(0.2, 2.8, (2, 3))), {"mode": "mirror"})


@sampler("mlirml.ndimage", "shift", "rotate", "zoom")
def _moved(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(4, 5), 1.3), {"order": 1})


@sampler("mlirml.ndimage", "affine_transform")
def _affine_transform(draw: Draw) -> Iterator[Sample]:
    yield Sample((draw.array(4, 5), np.array([[0.71, 0.13], [-0.09, 0.67]]), np.array([0.31, 0.43])), {"order": 1})


_SHAPES: dict[str, tuple[float, ...]] = {
    "gamma": (2.5,), "chi2": (3.5,), "beta": (2.0, 3.0), "t": (3.0,), "f": (3.0, 5.0), "lognorm": (0.7,),
    "pareto": (2.0,), "weibull_min": (1.5,), "truncnorm": (-1.0, 2.0), "poisson": (2.5,), "bernoulli": (0.3,),
    "geom": (0.3,), "binom": (10.0, 0.3), "nbinom": (2.5, 0.3),
}  # fmt: skip
_DISCRETE = ("poisson", "bernoulli", "geom", "binom", "nbinom")


@sampler(
    "mlirml.stats", "norm", "expon", "laplace", "logistic", "cauchy", "uniform", "gumbel_r", "halfnorm", *_SHAPES
)  # fmt: skip
def _distribution(draw: Draw) -> Iterator[Sample]:
    name = draw.function
    shapes = [np.full((), x, draw.dtype) for x in _SHAPES.get(name, ())]
    if name in _DISCRETE:
        x, density = np.array([1, 1 if name == "bernoulli" else 2], draw.dtype), ("pmf", "logpmf")
        yield Sample((x, *shapes), {}, the_same, operator.attrgetter(density[1]))
        yield Sample((x, *shapes), {}, the_same, operator.attrgetter(density[0]))
        return
    x = draw.array(3, low=1.2, high=1.8) if name != "beta" else draw.array(3, low=0.7, high=0.9)
    options = {"loc": np.full((), 0.1, draw.dtype), "scale": np.full((), 1.1 if name != "uniform" else 2.0, draw.dtype)}
    yield Sample((x, *shapes), options, the_same, operator.attrgetter("logpdf"))
    yield Sample((x, *shapes), options, the_same, operator.attrgetter("pdf"))


@sampler("mlirml.stats", "multivariate_normal")
def _multivariate_normal(draw: Draw) -> Iterator[Sample]:
    x, mean = draw.array(4, 3), draw.array(3)
    yield Sample((x, mean, np.diag([1, 2, 3]).astype(draw.dtype)), {}, the_same, operator.attrgetter("logpdf"))


@sampler("mlirml.stats", "dirichlet")
def _dirichlet(draw: Draw) -> Iterator[Sample]:
    x, alpha = np.full((3,), 0.25, draw.dtype), np.array([2, 3, 4, 1.5], draw.dtype)
    yield Sample((x, alpha), {}, the_same, operator.attrgetter("logpdf"))
