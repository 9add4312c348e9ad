"""Writes `docs/compiler.md`, the way of a function through the compiler: `python docs/compiler.py`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import mlirml as ml
from mlirml.pipelines.cpu import stages
from mlirml.targets.machine import named

PAGE = Path(__file__).with_name("compiler.md")
TARGET = Path(__file__).with_name("target_c")
"""The files of the worked example of a target."""
PROCESSOR = "avx2,l2=1M"
LINES = 34
"""The lines of the IR that are shown of a stage."""

HEAD = """\
# The compiler

Written by `python docs/compiler.py`, which compiles the function below; a test runs it, and carries out the examples of
the last part in a copy of the package.

A call of a compiled function goes through `driver/`: it finds a program for the shapes and dtypes of its arguments, or
has one made. `frontend/` runs the function once, on arrays that write MLIR as text for what is done with them, or
rewrites its loops first so that they stay loops. Passes take that module from stage to stage. The target makes an
object of the last one, which `runtime/` loads and calls.

| folder | level of the IR | holds |
|---|---|---|
| `core`, `errors.py` | | settings, pytrees, tracebacks |
| `ir`, `ir/text` | | the only import of the MLIR bindings and builders on it; IR as text, without them; combiners |
| `dialects` | | names of the dialect `mlirml`, and the contract of each stage: which operations are legal after it |
| `analysis` | | groups of operations, structured operations, reductions, affine forms, ranges, effects, distances |
| `passes` | | what a pass and a pipeline is; `mlirml-opt` is in `cli/opt` |
| `ops` | text | NumPy's operations, one record each |
| `frontend` | Python to text | functions become programs: see below |
| `raising` | loops on tensors | loops over elements become structured operations; `nests` reads and rebuilds nests |
| `autodiff` | tensors | requests for derivatives and batches become code; `rules` by operation |
| `pipelines/tensor` | tensors | fusion, tiling, algebra, preparation of bufferization |
| `offload` | tensors | what one kernel computes, kernels as functions, copies to and from a device |
| `pipelines/bufferize` | tensors to memrefs | out-parameters, destinations, one-shot bufferization |
| `pipelines/memref` | memrefs | loops, buffers, threads, calls of kernels |
| `pipelines/checks` | memrefs | checks of indices: proven, hoisted, collected |
| `pipelines/kernels` | gpu | kernels up to the dialects that drivers take |
| `pipelines/llvm` | llvm | the last passes of host code |
| `codegen` | vector, gpu | kernels written by Python: contractions, reductions, elementary functions; printers |
| `targets`, `interpreter` | | the targets, LLVM, ELF; the reference target; `machine.py`: processors and devices |
| `runtime` | | executables, devices, arrays, and the native runtime in C++ |

`mlirml explain FILE.py:FUNCTION --args TYPES --html page.html` shows the IR before and after every pass beside the
source, `mlirml-opt --help` the passes by the level of the IR.

Imports go one way: from the bottom of this list to its top, but for `runtime` and `targets/machine.py`, which import
`core` alone. File by file there is no circle of imports, those in functions included.

So it is within `frontend`, from the bottom of this list to its top:

| part of `frontend` | holds |
|---|---|
| `spec.py`, `captured.py`, `frames.py`, ... | arguments, captured programs, locations in the user's code |
| `source` | syntax trees: which functions are captured with their loops, and the rewriting of these |
| `arrays` | arrays that replace the arguments: views, stores, indices, masks; lists of them |
| `state` | objects, globals and closures that a function reads and changes |
| `tracing` | the trace: what operations write, `ml.cond` and the like; ranges of integers |
| `namespace` | what `np` is in a traced function, whose globals are read through an overlay |
| `transforms` | requests for derivatives and batches |
| `functions` | NumPy's functions that are no operations |
| `loops` | loops and branches of rewritten functions, slices of dynamic length |
| `capture.py` | a function becomes a program |
| `control.py` | `ml.cond`, `ml.scan`, ... as the user calls them |

Arrays and the trace call parts below them in this list through a table of handlers (`tracing/handlers.py`), which
`capture.py`, the one file that imports all parts, gives to each trace.

## One function, stage by stage

```python
import numpy as np


def layer(x, w):
    return np.tanh(x @ w)
```

with `x` of f32[64,128] and `w` of f32[128,96], for a processor with AVX2. Passes that have nothing to do in a program
are left out: `@register(when=...)` says which operations a pass needs, and they are counted before it. This shows what
the others leave.
"""

EXAMPLES = """\
## Adding to it

Each of these is carried out by `tests/docs/test_compiler_page.py` in a copy of the package: the code of a block is put
at the end of the file that it names, a new file is made of it where there is none, and `-` and `+` are lines of a file
that are replaced.

### An operation

A record in the file of its family. Compiling, errors, the page of operations and the tests of records come from it.

```python
# file: mlirml/ops/numeric.py
@composed("numeric", np.packbits, dtypes=("bool", "u8"), tolerance=0)
def packbits(xp: Any, a: Any, axis: Any = None, bitorder: str = "big") -> Any:
    \"\"\"Eight elements of the flattened array in each byte, as bits that are set where they are not 0.\"\"\"
    if axis is not None or bitorder != "big":
        raise ShapeError("packbits: of the flattened array, with the first element in the highest bit")
    bits = xp.not_equal(xp.asarray(a).reshape(-1), 0)
    rows = xp.pad(bits, (0, -bits.shape[0] % 8)).reshape(-1, 8)
    return xp.sum(rows * (1 << np.arange(7, -1, -1)), axis=1).astype(np.uint8)
```
```python
# check
import numpy as np, mlirml as ml

x = np.arange(22).reshape(2, 11) % 3 == 0
assert np.array_equal(ml.compile(np.packbits)(x), np.packbits(x))
assert np.array_equal(ml.vmap(np.packbits)(x), [np.packbits(row) for row in x])
```

### A reduction

One that is made of others is a record as well; it is fused, differentiated, batched and offloaded as these are.

```python
# file: mlirml/nn/losses.py
def log_mean_exp(x: Any, axis: int = -1) -> Any:
    \"\"\"The logarithm of the mean of exponentials along an axis, without overflow.\"\"\"
    most = np.max(x, axis=axis, keepdims=True)
    return np.log(np.mean(np.exp(x - most), axis=axis)) + np.squeeze(most, axis)
```
```python
# check
import numpy as np, mlirml as ml
from mlirml.nn.losses import log_mean_exp

x = np.array([[1.0, 2.0, 3.0], [1000.0, 1000.0, 1000.0]])
assert np.allclose(ml.compile(log_mean_exp)(x), [np.log(np.mean(np.exp(x[0]))), 1000.0])
```

### A combiner

A row of the table of combiners: the identity, the NumPy functions that it is, by the dtypes of which it is one, its
operations if it takes several, and the derivative of a reduction `r` in one element `x`. Its reductions are written,
recognized in loops, put into kernels of processors and devices, batched and differentiated by that row, and
`np.<function>.reduce` is made of it. Without `partial`, a derivative is refused.

```diff
# file: mlirml/ir/combiners.py
-_ROWS = (
+_SQUARES = ("arith.addf", ("arith.mulf", "a", "a"), ("arith.mulf", "b", "b"))
+_ROWS = (
+    Combiner(
+        "hypot", "norm", 0.0, {"hypot": "f"}, several=("math.sqrt", _SQUARES), partial=("arith.divf", "x", "r")
+    ),
```
```python
# check
import numpy as np, mlirml as ml

x = np.random.default_rng(0).standard_normal((4, 300))
norms = np.linalg.norm(x, axis=1)
for target in ("cpu", "reference"):
    assert np.allclose(ml.compile(lambda x: np.hypot.reduce(x, axis=1), target=target)(x), norms)
assert np.allclose(ml.grad(lambda x: np.sum(np.hypot.reduce(x, axis=1)))(x), x / norms[:, None])
```

### A pass

A file of the name of its flag, in the folder of the level of IR that it works on; a lit test of the same name; a line
in a recipe.

```python
# file: mlirml/pipelines/tensor/fold_negations.py
\"\"\"Fold negations: the negation of a negation is the value itself.

Before:
    %1 = arith.negf %0 : f32
    %2 = arith.negf %1 : f32
After:
    %1 = arith.negf %0 : f32
\"\"\"

from __future__ import annotations

from mlirml.ir.bindings import defining_op, mlir, named_operations
from mlirml.passes import Pass, register


@register(when=("arith.negf",))
class FoldNegationsPass(Pass):
    \"\"\"Replace `-(-x)` by `x`.\"\"\"

    def run(self, module: mlir.Operation) -> None:
        for op in named_operations(module, ("arith.negf",)):
            inner = defining_op(op.operands[0])
            if inner is not None and inner.name == "arith.negf":
                op.results[0].replace_all_uses_with(inner.operands[0])
                op.erase()
```
```mlir
// file: lit_tests/pipelines/tensor/fold_negations.mlir
// RUN: mlirml-opt %s --mlirml-fold-negations | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: f32
// CHECK: return %[[X]] : f32
func.func @main(%x: f32) -> f32 {
  %0 = arith.negf %x : f32
  %1 = arith.negf %0 : f32
  return %1 : f32
}
```
```diff
# file: mlirml/pipelines/cpu.py
-        "mlirml-widen-products",
+        "mlirml-fold-negations",
+        "mlirml-widen-products",
```
```python
# check
import numpy as np, mlirml as ml

negated = ml.compile(lambda x: -(-x) * 2.0)
assert negated(np.ones(3, np.float32)).tolist() == [2.0, 2.0, 2.0]
assert "mlirml-fold-negations" in str(negated.target.pipeline)
```

### A derivative rule

A function of the operation, its operands and its result that gives the factor of each operand, used by both modes;
`inactive` lists the operations that pass no derivative on. This one lets derivatives through rounding.

```diff
# file: mlirml/autodiff/rules/scalars.py
-    "math.floor", "math.ceil", "math.round", "math.roundeven",
+    "math.floor", "math.ceil", "math.round",
```
```python
# file: mlirml/autodiff/rules/scalars.py
@derivative("math.roundeven")
def _(op: mlir.Operation, x: list[mlir.Value], r: mlir.Value) -> Partials:
    return [_same]
```
```python
# check
import numpy as np, mlirml as ml

x = np.array([0.4, 1.6])
assert ml.grad(lambda x: np.sum(np.round(x) ** 2))(x).tolist() == [0.0, 4.0]
```

### A target

A file in `targets/`, which `@target` above a function makes known everywhere: to `compile(target=...)`, `emit`,
`mlirml-opt --target` and `--emit`, `mlirml devices` and the errors that list the targets. The function returns the
record: the recipe, the function that makes an artifact of the last module, the other forms of a program, and the
dialects of the last module if they are not LLVM's. This one ends with loops on memrefs, and prints them as C.

```python
# file: mlirml/targets/c.py
@mlirml/targets/c.py@```

The printer of a language with braces derives from `CLikePrinter`, as that of WGSL does, which has loops, branches and
names.

```python
# file: mlirml/codegen/c.py
@mlirml/codegen/c.py@```
```mlir
// file: lit_tests/targets/c.mlir
// RUN: mlirml-opt %s --target=c --emit=c | filecheck %s

// CHECK: void entry(void **pointers) {
// CHECK: for (int64_t n5 = 0; n5 < 960; n5 += 1) {
// CHECK-NEXT: const float v6 = p3[n5];
// CHECK-NEXT: const float v7 = tanhf(v6);
// CHECK-NEXT: p4[n5] = v7;
// CHECK-NEXT: }
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: tensor<32x30xf32>) -> tensor<32x30xf32> {
  %0 = tensor.empty() : tensor<32x30xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<32x30xf32>) outs(%0 : tensor<32x30xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = math.tanh %in : f32
    linalg.yield %2 : f32
  } -> tensor<32x30xf32>
  return %1 : tensor<32x30xf32>
}
```
```python
# check
import shutil
import numpy as np, mlirml as ml


def attention(q, k, v):
    s = q @ k.T
    e = np.exp(s - np.max(s, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True) @ v


q, k, v = np.random.default_rng(0).standard_normal((3, 40, 30))
text = ml.lower(attention, q, k, v, target="c").emit("c")
assert "void entry(void **pointers)" in text and "for (int64_t" in text and "= exp(" in text
if shutil.which("cc"):
    gradient = ml.grad(lambda x: np.sum(np.tanh(x) ** 2))
    assert np.allclose(ml.compile(attention, target="c")(q, k, v), attention(q, k, v))
    assert np.allclose(ml.compile(gradient, target="c")(q), ml.compile(gradient)(q))
    assert np.array_equal(ml.compile(lambda x: (x > 0).sum(axis=0), target="c")(q), (q > 0).sum(axis=0))
for function, message in ((np.sort, "`mlirml.sort` is not legal"), (lambda x: x.astype(np.float16), "C has no f16")):
    try:
        ml.lower(lambda x: function(x), q, target="c").emit("c")
        raise AssertionError(message)
    except ml.errors.MlirmlError as error:
        assert message in str(error) and "check.py:" in str(error), error
```
"""


def layer(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.tanh(x @ w)


def shown(text: str) -> str:
    """The beginning of a module."""
    lines = [line if len(line) <= 130 else f"{line[:126]} ..." for line in text.splitlines()]
    hidden = len(lines) - LINES
    return "\n".join(lines[:LINES] + [f"... {hidden} more lines"] * (hidden > 1))


def page() -> str:
    """The text of the page."""
    parts = [HEAD]
    arguments = np.ones((64, 128), np.float32), np.ones((128, 96), np.float32)
    with ml.config.override(processor=PROCESSOR, threads=1, cache=False):
        compiled = ml.compile(layer)
        recipe = {"capture": "", **dict(stages(named(PROCESSOR), "builtin", 0, lapack=True, nontemporal=True))}
        before = ""
        for stage, steps in recipe.items():
            text = re.sub(r"(?m)^module \{\n|^\}\n?\Z", "", compiled.ir(stage, *arguments))
            parts.append(f"### Stage `{stage}`\n")
            if steps:
                flags = re.sub(r"\{[^{}]*(\{[^{}]*\})?[^{}]*\}", "", steps).split(",")
                parts.append(f"Passes: {', '.join(f'`{flag}`' for flag in flags)}.\n")
            same = text == before
            parts.append("Nothing changes in this program.\n" if same else f"```mlir\n{shown(text)}\n```\n")
            before = text
    examples = re.sub(r"(?m)^@(.*)@", lambda file: (TARGET / file[1]).read_text(), EXAMPLES)
    return "\n".join((*parts, examples))


if __name__ == "__main__":
    PAGE.write_text(page())
