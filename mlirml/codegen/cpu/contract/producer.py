"""The elementwise producer of an operand of a contraction, read as the prologue of a kernel.

A producer is a `linalg.generic` on memrefs before the contraction that computes one operand, which nothing else reads.
A kernel that reads each element of the operand once can compute it from the operands of the producer instead, so that
the operand is never stored: kernels that pack the operand, and the dot kernel, which reads its many rows once.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.memory import after, buffer_of, conflict, effects, is_known
from mlirml.analysis.structured import is_parallel
from mlirml.codegen.cpu.contract.consumer import projected_dims, read_body
from mlirml.codegen.cpu.contract.kernel import Epilogue, Job
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import NoMatch

_NEAR = 32
"""A producer further away than this number of operations is not found."""


@dataclass(frozen=True)
class Producer:
    """A producer of an operand as the kernel sees it.

    `body` computes an element of the operand from `%product`, an element of `main`, and from its inputs, `operands`.
    `order` has the dim of the operand that each dim of `main` is; `dims`, the one that indexes each dim of the operands
    (None for none).
    """

    op: mlir.Operation
    body: Epilogue
    main: mlir.Value
    order: tuple[int, ...]
    operands: tuple[mlir.Value, ...]
    dims: tuple[tuple[int | None, ...], ...]


def match_producer(op: mlir.Operation, number: int, at: mlir.Operation, uses: int = 1) -> Producer:
    """The producer of operand `number` of the contraction `op`, whose kernel runs at `at`; raises `NoMatch`.

    `uses`: the number of operands of `op` that the value is, all of which the kernel reads as one.
    """
    value = op.operands[number]
    producer = _only_writer(value, op, uses)
    block = producer.regions[0].blocks[0]
    *body, final = block_ops(block)
    operands, arguments = list(producer.operands), list(block.arguments)
    maps = [attribute.value for attribute in producer.attributes["indexing_maps"]]
    if len(final.operands) != 1:
        raise NoMatch("the producer writes several arrays")
    count = len(operands) - 1
    if any(not isinstance(v.type, mlir.MemRefType) for v in operands) or operands[count] != value:
        raise NoMatch("an operand of the producer is no memref")
    if any(True for _ in arguments[count].uses) or not maps[count].is_permutation:
        raise NoMatch("the producer does not write every element once")
    loops = [mlir.AffineDimExpr(expression).position for expression in maps[count].results]
    places = [n for n in range(count) if maps[n].is_permutation and len(loops) == maps[n].n_dims]
    if not places:
        raise NoMatch("the producer reads no array of the operand's size")
    place = places[0]
    _check_memory(producer, op, at, [buffer_of(v) for v in operands[:count]])
    others = [n for n in range(count) if n != place]
    dims = tuple(projected_dims(maps[n], loops) for n in others)
    order = tuple(d for d in projected_dims(maps[place], loops) if d is not None)
    read = read_body(body, list(final.operands), arguments, place, count)
    return Producer(producer, read, operands[place], order, tuple(operands[n] for n in others), dims)


def _only_writer(value: mlir.Value, op: mlir.Operation, count: int) -> mlir.Operation:
    """The elementwise operation that writes a buffer that only `op` reads, as `count` operands."""
    owner = defining_op(value)
    if owner is None or owner.name != "memref.alloc":
        raise NoMatch("the operand is no buffer of its own")
    uses = [use.owner.operation for use in value.uses]
    users = [user for user in uses if user != op and user.name != "memref.dealloc"]
    if len(users) != 1 or uses.count(op) != count:
        raise NoMatch("the operand is read or written by others")
    producer = users[0]
    if producer.name != "linalg.generic" or len(producer.results) or producer.block != op.block:
        raise NoMatch("no elementwise operation computes the operand")
    if not is_parallel(producer):
        raise NoMatch("what computes the operand reduces")
    return producer


def _check_memory(
    producer: mlir.Operation, op: mlir.Operation, at: mlir.Operation, inputs: Sequence[mlir.Value]
) -> None:
    """Check that the operands of the producer are unchanged until the kernel runs, and while it runs."""
    outs = block_ops(at.regions[0].blocks[0])[-1].operands
    written = [buffer_of(v) for v in [op.operands[2], *list(at.operands)[-len(outs) :]]]
    if not all(map(is_known, [*inputs, *written])) or any(v in inputs for v in written):
        raise NoMatch("the kernel may write what the producer reads")
    own = effects(producer)
    for following in after(producer, _NEAR):
        if following == at:
            return
        if following != op and conflict(own, effects(following)):
            raise NoMatch(f"the producer cannot be exchanged with a {following.name} before the kernel runs")
    raise NoMatch("the producer is far away")


def erase_buffer(buffer: mlir.Value) -> None:
    """Erase an allocation whose only uses are deallocations."""
    owner = defining_op(buffer)
    users = [use.owner.operation for use in buffer.uses]
    if owner is not None and owner.name == "memref.alloc" and all(user.name == "memref.dealloc" for user in users):
        for op in (*users, owner):
            op.erase()


def check_prologues(job: Job) -> None:
    """Raises `NoMatch` if the kernel does not read every element exactly once, or if vectors of them are scattered."""
    problem, dot = job.problem, job.schedule.kernel == "dot"
    if not dot and not job.panels and not job.symmetric:
        raise NoMatch("the kernel reads the operand more than once")
    for prologue in job.prologues:
        axis = problem.m if prologue.letter == "a" else problem.n
        row_step, k_step = ((x.a if prologue.letter == "a" else x.b) for x in (axis, problem.k[0]))
        if dot and prologue.letter != ("b" if problem.m.size <= problem.n.size else "a"):
            raise NoMatch("the kernel reads the few rows more than once")
        along_rows = not dot and (row_step == 1 or axis.size == 1)
        if not along_rows and k_step != 1:
            raise NoMatch("the operand is not contiguous along its rows or k")
        for number, _ in prologue.inputs:
            if (axis if along_rows else problem.k[0]).more[number] not in (0, 1):
                raise NoMatch("an input of the producer is scattered")
