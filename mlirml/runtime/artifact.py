"""The output of a target: machine code and the metadata needed to call it. Holds no MLIR types."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict

from mlirml.core.dataclass import dataclass

_MAGIC = b"mlirml-artifact-8\n"
_ITEM_BITS = {"bool": 8}


@dataclass(frozen=True)
class Buffer:
    """An array argument: element type as MLIR writes it (`f32`, `i8`; `bool` for one byte, 0 or 1) and shape.

    A dynamic size is -1.
    """

    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Size in bytes, densely packed."""
        bits = _ITEM_BITS.get(self.dtype) or int(self.dtype.lstrip("ifbu"))
        return math.prod(self.shape) * (bits // 8)


@dataclass(frozen=True)
class Artifact:
    """A compiled program.

    `object` is an ELF relocatable file. `entry` is its symbol `void entry(void **pointers)`: the pointers are those of
    the inputs (captured constants last), of the outputs, and, unless `workspace_bytes` is 0, of a workspace aligned
    to 64 bytes. The inputs are only read; inputs, outputs and workspace may not overlap. The outputs numbered in
    `in_place` hold what they replace when the program starts: they may lie in the memory of that input, which is not
    read then.

    A program of dynamic sizes gets the sizes as its last input, 64-bit integers. Each of its `workspace_terms` adds to
    the workspace, after a multiple of `alignment` bytes, its first number of bytes times the sizes of the numbers after
    it. The `work_terms` are those of an estimate of its time.

    A program for a device has `kernels` in the form of its `format`, followed by `cubin_bytes` bytes of the same
    kernels as assembled for one processor, and by images of one kernel each, whose sizes in bytes are `image_sizes`;
    `kernel_images` are their numbers by kernel, -1 for those in the common code. It has a
    `kernel_table` with the name of each kernel and the sizes in bytes of its arguments (0 for buffers),
    `kernel_accesses`, for each argument 0 if it is a number, else four times the bytes of the array, plus 1 if it is
    read, plus 2 if it is written, or -1 if that is not known, `kernel_places`, their source lines, and
    `kernel_launches`, the number of launches of each in a call, -1 if not constant. `host_work` describes the
    computations on the host and the reasons. Its pointers are device addresses, except those of `host_inputs`; before
    the workspace come the slots of its `deferred_checks`, each described by the fields of a `DeferredCheck`, and its
    `constants`, unless there are none; after it come a workspace on the host, unless `host_workspace_bytes` is 0, and
    the table of the loaded kernels.
    """

    object: bytes
    entry: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    workspace_bytes: int = 0
    format: str = "elf"
    in_place: tuple[int, ...] = ()
    kernels: bytes = b""
    kernel_table: tuple[tuple[str, tuple[int, ...]], ...] = ()
    kernel_accesses: tuple[tuple[int, ...], ...] = ()
    kernel_places: tuple[str, ...] = ()
    kernel_launches: tuple[int, ...] = ()
    cubin_bytes: int = 0
    image_sizes: tuple[int, ...] = ()
    kernel_images: tuple[int, ...] = ()
    host_work: tuple[str, ...] = ()
    host_inputs: tuple[int, ...] = ()
    host_workspace_bytes: int = 0
    constants: bytes = b""
    deferred_checks: tuple[tuple[int, int, int, int], ...] = ()
    workspace_terms: tuple[tuple[int, ...], ...] = ()
    work_terms: tuple[tuple[int, ...], ...] = ()
    host_workspace_terms: tuple[tuple[int, ...], ...] = ()
    alignment: int = 64
    most_elements: int = 0
    most_bytes: int = 0

    def workspace_at(self, sizes: Sequence[int]) -> int:
        """The bytes of the workspace for these sizes."""
        return _total(self.workspace_bytes, self.workspace_terms, sizes, self.alignment)

    def host_workspace_at(self, sizes: Sequence[int]) -> int:
        """The bytes of the workspace on the host for these sizes."""
        return _total(self.host_workspace_bytes, self.host_workspace_terms, sizes, 64)

    def work_at(self, sizes: Sequence[int]) -> int:
        """The estimated work of a call with these sizes, in the time of a flop of a product of matrices."""
        return sum(count * math.prod(sizes[number] for number in numbers) for count, *numbers in self.work_terms)

    @property
    def common_kernels(self) -> bytes:
        """The code that has all kernels without an image of their own."""
        return self.kernels[: len(self.kernels) - sum(self.image_sizes) - self.cubin_bytes]

    @property
    def cubin(self) -> bytes:
        """The same kernels as assembled for one processor; empty if they are not."""
        end = len(self.kernels) - sum(self.image_sizes)
        return self.kernels[end - self.cubin_bytes : end]

    def image(self, kernel: int) -> bytes:
        """The image that a kernel has alone; empty if it is in the common code."""
        number = self.kernel_images[kernel] if self.kernel_images else -1
        if number < 0:
            return b""
        start = len(self.kernels) - sum(self.image_sizes[number:])
        return self.kernels[start : start + self.image_sizes[number]]

    def to_bytes(self) -> bytes:
        """One blob: a magic line, a line of JSON, the object, the kernels, the constants."""
        header = {name: value for name, value in asdict(self).items() if name not in ("object", "kernels", "constants")}
        header["object_bytes"], header["kernel_bytes"] = len(self.object), len(self.kernels)
        text = json.dumps(header, sort_keys=True).encode()
        return b"".join([_MAGIC, text, b"\n", self.object, self.kernels, self.constants])

    @classmethod
    def from_bytes(cls, blob: bytes) -> Artifact:
        """The inverse of `to_bytes`; raises ValueError for anything else."""
        if not blob.startswith(_MAGIC):
            raise ValueError("not a compiled mlirml program, or one of another version")
        header, _, rest = blob[len(_MAGIC) :].partition(b"\n")
        fields = json.loads(header)
        end = fields.pop("object_bytes")
        last = end + fields.pop("kernel_bytes")
        for name in ("inputs", "outputs"):
            fields[name] = tuple(Buffer(b["dtype"], tuple(b["shape"])) for b in fields[name])
        for name in (
            "in_place",
            "host_inputs",
            "kernel_places",
            "kernel_launches",
            "image_sizes",
            "kernel_images",
            "host_work",
        ):
            fields[name] = tuple(fields[name])
        for name in (
            "deferred_checks",
            "workspace_terms",
            "work_terms",
            "host_workspace_terms",
            "kernel_accesses",
        ):
            fields[name] = tuple(map(tuple, fields[name]))
        fields["kernel_table"] = tuple((name, tuple(sizes)) for name, sizes in fields["kernel_table"])
        return cls(object=rest[:end], kernels=rest[end:last], constants=rest[last:], **fields)


def _total(fixed: int, terms: Sequence[Sequence[int]], sizes: Sequence[int], alignment: int) -> int:
    """Bytes, and those of the terms, each of them after a multiple of the alignment."""
    if not terms:
        return fixed
    total = -(-fixed // alignment) * alignment
    for count, *numbers in terms:
        total += -(-count * math.prod(sizes[number] for number in numbers) // alignment) * alignment
    return total
