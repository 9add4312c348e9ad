"""The roofline picture of a profile, as SVG.

Each kernel is a point: flops a byte to the right, flops a second upwards, both in logarithmic scale. Slanted lines are
the bandwidths of the levels of memory, horizontal lines the peaks of the dtypes. Model: Williams, Waterman, Patterson,
Roofline: an insightful visual performance model (CACM 52, 2009).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from mlirml.core.dataclass import dataclass
from mlirml.driver.profiling.text import duration, shown_lines

if TYPE_CHECKING:
    from mlirml.driver.profiling.profile import Profile, Row

_WIDTH, _HEIGHT = 860, 520
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 30, 46, 56
_LINE, _APART = 18, 110
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#e377c2", "#17becf")
_GREY, _INK = "#dddddd", "#333333"


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis: values from `low` to `high`, at pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The pixel of a value, which is moved to the nearest end where it is outside."""
        clamped = min(max(value, self.low), self.high)
        part = math.log(clamped / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self) -> Iterator[float]:
        """The powers of ten on the axis."""
        for exponent in range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1):
            yield 10.0**exponent


def picture(profile: Profile) -> str:
    """The picture as the text of an SVG file."""
    points = [(row, x, y) for row in profile.rows if (x := intensity(row)) and (y := row.gflops)]
    peaks, bandwidths = _limits(profile)
    x_axis, y_axis = _axes([x for _, x, _ in points], [y for _, _, y in points], peaks, bandwidths)
    height = _HEIGHT + _LINE * (len(points) + 1)
    title = f"{profile.title()}, {duration(profile.seconds)}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        _text(_WIDTH / 2, 24, title, anchor="middle", size=15),
        *_grid(x_axis, y_axis),
        *_roofs(x_axis, y_axis, peaks, bandwidths),
        *_points(points, x_axis, y_axis),
        *_legend(points),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def intensity(row: Row) -> float | None:
    """Flops a byte; None where either is not known or zero."""
    return row.flops / row.bytes_moved if row.flops and row.bytes_moved else None


def _limits(profile: Profile) -> tuple[dict[str, float], dict[str, float]]:
    """The peaks in GFLOP/s by dtype of the kernels, and the bandwidths in GB/s by level."""
    machine = profile.machine
    if machine is None:
        return {}, {}
    dtypes = dict.fromkeys(row.dtype for row in profile.rows if row.flops)
    peaks = {dtype: machine.peak(dtype, profile.threads) / 1e9 for dtype in dtypes}
    rates = {name: machine.rate_of(name, profile.threads) / 1e9 for name in machine.levels}
    return {name: value for name, value in peaks.items() if value}, {n: value for n, value in rates.items() if value}


def _axes(
    x: Sequence[float], y: Sequence[float], peaks: dict[str, float], bandwidths: dict[str, float]
) -> tuple[Axis, Axis]:
    ridges = [peak / rate for peak in peaks.values() for rate in bandwidths.values()]
    across, upwards = [*x, *ridges, 0.1, 10.0], [*y, *peaks.values(), 1.0]
    horizontal = Axis(_decade(min(across), -1), _decade(max(across), 1), _LEFT, _WIDTH - _RIGHT)
    vertical = Axis(_decade(min(upwards), -1), _decade(max(upwards), 1), _HEIGHT - _BOTTOM, _TOP)
    return horizontal, vertical


def _decade(value: float, direction: int) -> float:
    """The power of ten below or above a value, by at least a fifth of a decade."""
    exponent = math.log10(value) + 0.2 * direction
    return float(10.0 ** (math.floor(exponent) if direction < 0 else math.ceil(exponent)))


def _grid(x: Axis, y: Axis) -> Iterator[str]:
    for value in x.ticks():
        yield _segment(x.at(value), y.start, x.at(value), y.end, _GREY)
        yield _text(x.at(value), y.start + 18, f"{value:g}", anchor="middle")
    for value in y.ticks():
        yield _segment(x.start, y.at(value), x.end, y.at(value), _GREY)
        yield _text(x.start - 8, y.at(value) + 4, f"{value:g}", anchor="end")
    yield _text((x.start + x.end) / 2, y.start + 40, "flops a byte", anchor="middle")
    middle = (y.start + y.end) / 2
    yield (
        f'<text x="18" y="{middle:.1f}" fill="{_INK}" text-anchor="middle" '
        f'transform="rotate(-90 18 {middle:.1f})">GFLOP/s</text>'
    )


def _roofs(x: Axis, y: Axis, peaks: dict[str, float], bandwidths: dict[str, float]) -> Iterator[str]:
    top = max(peaks.values(), default=y.high)
    slowest = min(bandwidths.values(), default=0.0)
    for name, peak in peaks.items():
        begin = x.at(peak / max(bandwidths.values())) if bandwidths else x.start
        yield _segment(begin, y.at(peak), x.end, y.at(peak), _INK, 1.6)
        yield _text(x.end - 4, y.at(peak) - 5, f"{name}: {peak:.0f} GFLOP/s", anchor="end")
    for number, (name, rate) in enumerate(bandwidths.items()):
        left, right = max(x.low, y.low / rate), min(x.high, top / rate)
        if left >= right:
            continue
        width = 1.6 if rate == slowest else 1
        yield _segment(x.at(left), y.at(left * rate), x.at(right), y.at(right * rate), _INK, width)
        yield _slanted(x, y, left, rate, f"{name}: {rate:.0f} GB/s", number)


def _slanted(x: Axis, y: Axis, left: float, rate: float, text: str, number: int) -> str:
    """A text along the line of a bandwidth; where lines are near each other, the texts are apart.

    Every other one is below its line.
    """
    first = (x.at(left), y.at(left * rate))
    second = (x.at(10 * left), y.at(10 * left * rate))
    angle = math.degrees(math.atan2(second[1] - first[1], second[0] - first[0]))
    across = 14 + _APART * number * math.cos(math.radians(angle))
    px, py = first[0] + across, first[1] + across * math.tan(math.radians(angle)) + (14 if number % 2 else -4)
    return (
        f'<text x="{px:.1f}" y="{py:.1f}" fill="{_INK}" font-size="11" '
        f'transform="rotate({angle:.1f} {px:.1f} {py:.1f})">{escape(text)}</text>'
    )


def _points(points: Sequence[tuple[Row, float, float]], x: Axis, y: Axis) -> Iterator[str]:
    for number, (row, flops_a_byte, gflops) in enumerate(points):
        px, py, colour = x.at(flops_a_byte), y.at(gflops), _COLOURS[number % len(_COLOURS)]
        yield (
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="6" fill="{colour}" fill-opacity="0.8">'
            f"<title>{escape(_described(row, flops_a_byte))}</title></circle>"
        )
        yield _text(px + 9, py - 6, str(number + 1), colour=colour)


def _legend(points: Sequence[tuple[Row, float, float]]) -> Iterator[str]:
    for number, (row, flops_a_byte, _) in enumerate(points):
        height = _HEIGHT + 10 + _LINE * number
        colour = _COLOURS[number % len(_COLOURS)]
        yield f'<circle cx="{_LEFT + 4}" cy="{height - 4}" r="5" fill="{colour}" fill-opacity="0.8"/>'
        yield _text(_LEFT + 16, height, f"{number + 1}  {_described(row, flops_a_byte)}")


def _described(row: Row, flops_a_byte: float) -> str:
    share = "" if row.share_of_limit is None else f", {100 * row.share_of_limit:.0f}% of the limit by {row.bound}"
    return (
        f"{row.name} ({shown_lines(row.lines)}): {duration(row.seconds)}, {row.gflops:.3g} GFLOP/s, "
        f"{flops_a_byte:.3g} flops a byte{share}"
    )


def _segment(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width:g}"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, colour: str = _INK) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{escape(text)}</text>'
    )
