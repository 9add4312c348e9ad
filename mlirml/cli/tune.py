"""`mlirml tune`: the schedules of a function's products and loops, searched for and kept in the file of the tuner."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable

from mlirml.cli.console import console, table
from mlirml.cli.function import Call
from mlirml.codegen.cpu.contract.attribute import from_words
from mlirml.codegen.cpu.contract.plan import Schedule
from mlirml.errors import ArgumentError, TuningWarning
from mlirml.tuning import program, store
from mlirml.tuning.store import Row


def tune(call: Call, seconds: float) -> int:
    """Tune the clusters of a function for these arguments, and print what was found; 1 if nothing could be kept."""
    target = call.compiled.target
    if target.name != "cpu":
        raise ArgumentError(f'mlirml tune is for the target "cpu", and this one is {target.name!r}')
    captured = call.compiled.trace(*call.args, **call.kwargs)
    clusters = program.clusters_of(target, captured)
    if not clusters:
        print("there are no matrix products, convolutions or large loops to tune")
        return 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TuningWarning)
        try:
            known = program.stored(target, [cluster.key for cluster in clusters])
        except store.Unusable as reason:
            print(f"mlirml: {reason}", file=sys.stderr)
            known = {}
        rows = program.tune(target, clusters, seconds, known)
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        print(f"mlirml: {text}", file=sys.stderr)
    console().print(result_table(rows.values()))
    return 1 if caught else 0


def result_table(rows: Iterable[Row]) -> object:
    """The default time, the best time, their ratio and the schedule of each cluster."""
    result = table(
        None, "operation", "shape", "dtype", "default", "best", "ratio", "tried", "schedule",
        right=("default", "best", "ratio", "tried"),
    )  # fmt: skip
    for row in rows:
        result.add_row(
            row.operation,
            row.shape,
            row.dtype,
            _time(row.default_seconds),
            _time(row.seconds),
            f"{row.default_seconds / row.seconds:.2f}",
            str(row.tried),
            described(row.schedule),
        )
    return result


def described(text: str) -> str:
    """The fields of a schedule that are not the default ones of `Schedule`; "default" for none."""
    fields = from_words(text)
    if fields is None:
        return " ".join(word.replace("=", " ") for word in text.split("/")) if text else "default"
    plain = vars(Schedule("packed"))
    shown = [f"{name} {value}" for name, value in fields.items() if name != "kernel" and value != plain[name]]
    return " ".join([fields["kernel"], *shown])


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} us"
