"""Runs kernel functions through SPIR-V on whatever Vulkan driver there is, with the launches replayed from Python."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlirml.ir.bindings import block_ops, make_context, mlir, operations, parse
from mlirml.passes import parse_pipeline
from mlirml.pipelines.gpu import TO_SPIRV

_ITEM = {"f32": 4, "i32": 4, "i64": 8, "f64": 8, "f16": 2, "bf16": 2, "i8": 1, "i1": 1, "i16": 2}


@dataclass(frozen=True)
class Launch:
    """One launch: the kernel's name, its grid, the numbers of its buffers."""

    name: str
    grid: tuple[int, ...]
    buffers: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """What a launch function does: its launches in order, and the bytes of the temporaries behind the arguments."""

    launches: tuple[Launch, ...]
    temporaries: tuple[int, ...]


def read_plan(module: mlir.Module, name: str) -> Plan:
    """The launches of `@name__launch`."""
    function = next(
        op.operation
        for op in module.body.operations
        if op.operation.name == "func.func" and op.operation.attributes["sym_name"].value == f"{name}__launch"
    )
    block = function.regions[0].blocks[0]
    number: dict[mlir.Value, int] = {a: i for i, a in enumerate(block.arguments)}
    constants: dict[mlir.Value, int] = {}
    temporaries, launches = [], []
    for op in block_ops(block):
        if op.name == "arith.constant":
            constants[op.results[0]] = op.attributes["value"].value
        elif op.name == "memref.alloc":
            kind = op.results[0].type
            number[op.results[0]] = len(block.arguments) + len(temporaries)
            temporaries.append(int(np.prod(kind.shape, dtype=int)) * _ITEM[str(kind.element_type)])
        elif op.name in ("memref.collapse_shape", "memref.expand_shape", "memref.reinterpret_cast"):
            number[op.results[0]] = number[op.operands[0]]
        elif op.name == "gpu.launch_func":
            for v in list(op.operands)[6:]:
                if v in constants:  # a number that is passed
                    number[v] = -constants[v]
            grid = tuple(constants[v] for v in list(op.operands)[:3])
            kernel = str(op.attributes["kernel"]).rpartition("@")[2]
            launches.append(Launch(kernel, grid, tuple(number[v] for v in list(op.operands)[6:])))
        else:
            assert op.name == "func.return", op.name
    return Plan(tuple(launches), tuple(temporaries))


def schedule(text: str, options: str = "") -> mlir.Module:
    """The module after the pass."""
    module = parse(text, make_context())
    parse_pipeline(f"mlirml-schedule-kernels{{{options}}}").run(module.operation)
    return module


def spirv(module: mlir.Module) -> bytes:
    """The shader module of scheduled kernels."""
    from mlirml.ir.bindings import gpu

    for op in [op for op in operations(module) if op.name == "func.func" and "mlirml.kernel" in op.attributes]:
        op.erase()
    parse_pipeline(",".join(TO_SPIRV)).run(module.operation)
    binary = next(op for op in operations(module) if op.name == "gpu.binary")
    code: bytes = gpu.ObjectAttr(binary.attributes["objects"][0]).object
    return code


@functools.cache
def device() -> Any:
    import wgpu

    adapter = wgpu.gpu.enumerate_adapters_sync()[0]
    wanted = {"subgroup", "shader-float32-atomic", "shader-int64", "shader-f64", "shader-f16"}
    return adapter.request_device_sync(
        required_features=wanted & set(adapter.features), required_limits=dict(adapter.limits)
    )


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 16 or (16 if not data else 0))


class Program:
    """A kernel function on the device."""

    def __init__(self, module: mlir.Module, name: str) -> None:
        self.plan = read_plan(module, name)
        self.code = spirv(module)
        shader = device().create_shader_module(code=self.code)
        names = dict.fromkeys(launch.name for launch in self.plan.launches)
        self.pipelines = {
            n: device().create_compute_pipeline(layout="auto", compute={"module": shader, "entry_point": n})
            for n in names
        }

    def __call__(self, *arrays: np.ndarray, results: int = 1) -> list[np.ndarray]:
        """The last `results` arrays after the launches."""
        self.load(*arrays)
        self.run()
        first = len(arrays) - results
        return [self.read(n, arrays[n]) for n in range(first, len(arrays))]

    def load(self, *arrays: np.ndarray) -> None:
        import wgpu

        use = wgpu.BufferUsage
        flags = use.STORAGE | use.COPY_SRC | use.COPY_DST
        self.buffers = [
            device().create_buffer_with_data(data=padded(np.ascontiguousarray(a).tobytes()), usage=flags)
            for a in arrays
        ]
        for size in self.plan.temporaries:
            self.buffers.append(device().create_buffer(size=-(-max(size, 1) // 16) * 16, usage=flags))
        self.groups = [
            device().create_bind_group(
                layout=self.pipelines[launch.name].get_bind_group_layout(0),
                entries=[
                    {"binding": i, "resource": {"buffer": self.buffers[n], "offset": 0, "size": self.buffers[n].size}}
                    for i, n in enumerate(launch.buffers)
                ],
            )
            for launch in self.plan.launches
        ]

    def run(self) -> None:
        encoder = device().create_command_encoder()
        step = encoder.begin_compute_pass()
        for launch, group in zip(self.plan.launches, self.groups, strict=True):
            step.set_pipeline(self.pipelines[launch.name])
            step.set_bind_group(0, group)
            step.dispatch_workgroups(*launch.grid)
        step.end()
        device().queue.submit([encoder.finish()])

    def read(self, number: int, like: np.ndarray) -> np.ndarray:
        data = bytes(device().queue.read_buffer(self.buffers[number]))[: like.nbytes]
        return np.frombuffer(data, like.dtype).reshape(like.shape)


def program(text: str, name: str, options: str = "") -> Program:
    """Schedule, convert and load one kernel function."""
    return Program(schedule(text, options), name)


def as_kernel(function: Any, *arguments: np.ndarray, target: str = "cpu") -> mlir.Module:
    """The program of a Python function, optimized for a target, as one kernel function @k; what only checks indices is
    left out.
    """
    import mlirml as ml

    module = parse(ml.compile(function, target=target).ir("optimize", *arguments), make_context())
    main = next(op.operation for op in module.body.operations)
    block = main.regions[0].blocks[0]
    for op in [op for op in operations(main) if op.name == "cf.assert"]:
        op.erase()
    end = block_ops(block)[-1]
    with module.context, main.location:
        for value in end.operands:
            block.add_argument(value.type, main.location)
        kinds = [a.type for a in block.arguments], [v.type for v in end.operands]
        main.attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get(*kinds))
        main.attributes["sym_name"] = mlir.StringAttr.get("k")
        main.attributes["sym_visibility"] = mlir.StringAttr.get("private")
        main.attributes["mlirml.kernel"] = mlir.UnitAttr.get()
    parse_pipeline("canonicalize,cse").run(module.operation)
    return module


def traced(function: Any, *arguments: np.ndarray, options: str = "") -> Program:
    """A Python function, as one kernel function, on the device."""
    module = as_kernel(function, *arguments)
    parse_pipeline(f"mlirml-schedule-kernels{{{options}}}").run(module.operation)
    return Program(module, "k")


def run_traced(function: Any, *arguments: np.ndarray, options: str = "", launches: list[str] | None = None) -> Any:
    """The results of a Python function, run as one kernel function; `launches` learns the names of its kernels."""
    expected = function(*arguments)
    expected = expected if isinstance(expected, tuple) else (expected,)
    outs = [np.zeros_like(np.asarray(e)) for e in expected]
    made = traced(function, *arguments, options=options)
    if launches is not None:
        launches += [launch.name for launch in made.plan.launches]
    return made(*arguments, *outs, results=len(outs))
