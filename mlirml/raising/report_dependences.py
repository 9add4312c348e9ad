"""Report dependences: the dependences of the loop nests of a module, as remarks.

    for i in range(1, n):
        A[i] = A[i - 1] + B[i]    remark: flow dependence on line 2, carried by loop 1 of 1
        C[i] = 2 * A[i]           remark: flow dependence on line 2, within an iteration of loop 1

A flow dependence is a read after a store, an anti dependence a store after a read, an output dependence a store after a
store. The loop that carries it is the outermost common loop of which one iteration must wait for another.
"""

from __future__ import annotations

from mlirml.ir.bindings import mlir
from mlirml.ir.location import source_location
from mlirml.passes import Pass, register
from mlirml.passes.report import add_remark
from mlirml.raising.nests.dependences import Dependence, Isl, dependences
from mlirml.raising.nests.generic import Spans
from mlirml.raising.nests.model import Nest, Statement, common_loops
from mlirml.raising.nests.visit import each_nest


@register
class ReportDependencesPass(Pass):
    """Add a remark at each statement about its dependences; the module is not changed."""

    def run(self, module: mlir.Operation) -> None:
        each_nest(module, report)


def report(nest: Nest, spans: Spans) -> None:
    """Report the dependences of a nest."""
    for dependence in dependences(nest, Isl()):
        add_remark(dependence.sink.op.location, described(dependence))


def described(dependence: Dependence) -> str:
    """The message about a dependence."""
    loops = len(common_loops(dependence.source, dependence.sink))
    level = dependence.level
    where = f"carried by loop {level + 1} of {loops}" if level < loops else f"within an iteration of loop {loops}"
    return f"{dependence.kind} dependence on {_location(dependence.source)}, {where}"


def _location(statement: Statement) -> str:
    location = source_location(statement.op.location)
    return f"line {location.line}" if location is not None else f"the {statement.op.name} before it"
