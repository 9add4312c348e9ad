"""Contractions that mlirml-recognise names, against the generics that they come from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlirml.raising.recognition import triangle
from tests.raising.generics import Array, Generic, before_and_after, check, numbers

SIZES = {"h": 2, "g": 3, "i": 4, "j": 5, "k": 6, "l": 7}
FLOAT = "%p = arith.mulf %a, %b : f64\n%r = arith.addf %o, %p : f64"


def arrays(maps: list[str], dtype: str = "float64") -> list[Array]:
    shapes = [tuple(SIZES[c] for c in m.replace(" ", "").split(",") if c) for m in maps]
    return [numbers(shape, dtype, seed) for seed, shape in enumerate(shapes)]


def run(loops: str, maps: list[str], body: str, dtype: str = "float64", native: bool = False) -> list[str]:
    *inputs, out = arrays(maps, dtype)
    return check(Generic(loops, maps, body), inputs, [out], native=native)


@pytest.mark.parametrize(
    ("loops", "maps", "name"),
    [
        ("ijK", ["i, k", "k, j", "i, j"], "linalg.matmul"),
        ("Kij", ["i, k", "k, j", "i, j"], "linalg.matmul"),
        ("jKi", ["k, j", "i, k", "i, j"], "linalg.matmul"),
        ("ijK", ["k, i", "k, j", "i, j"], "linalg.contract"),
        ("ijK", ["i, k", "j, k", "i, j"], "linalg.contract"),
        ("ijK", ["k, i", "j, k", "i, j"], "linalg.contract"),
        ("ijK", ["i, k", "k, j", "j, i"], "linalg.contract"),
        ("iK", ["i, k", "k", "i"], "linalg.matvec"),
        ("iK", ["k, i", "k", "i"], "linalg.vecmat"),
        ("K", ["k", "k", ""], "linalg.dot"),
        ("hijK", ["h, i, k", "h, k, j", "h, i, j"], "linalg.batch_matmul"),
        ("hijK", ["h, i, k", "k, j", "h, i, j"], "linalg.contract"),
        ("hgiK", ["h, i, g, k", "g, k, h", "g, h, i"], "linalg.contract"),
        ("ijKL", ["i, k, l", "l, k, j", "i, j"], "linalg.contract"),
        ("hgijK", ["g, h, i, k", "h, k, g, j", "h, g, i, j"], "linalg.contract"),
        ("hK", ["h, k", "h, k", "h"], "linalg.contract"),
    ],
)
def test_every_form_has_a_name(loops: str, maps: list[str], name: str) -> None:
    assert run(loops, maps, FLOAT) == [name]


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_dtypes(dtype: str) -> None:
    kind, letter = {"int32": ("i32", "i"), "int64": ("i64", "i"), "float32": ("f32", "f")}[dtype]
    body = f"%p = arith.mul{letter} %b, %a : {kind}\n%r = arith.add{letter} %p, %o : {kind}"
    assert run("ijK", ["i, k", "k, j", "i, j"], body, dtype, native=True) == ["linalg.matmul"]


def test_products_of_f32_are_added_in_f64() -> None:
    a, b = numbers((4, 6), "float32", 1), numbers((6, 5), "float32", 2)
    body = "%p = arith.mulf %a, %b : f32\n%q = arith.extf %p : f32 to f64\n%r = arith.addf %o, %q : f64"
    generic = Generic("ijK", ["i, k", "k, j", "i, j"], body)
    before, after = before_and_after(generic.text([a, b], [np.zeros((4, 5))]), [a, b, np.zeros((4, 5))])
    np.testing.assert_allclose(after[0], before[0], atol=1e-6)
    np.testing.assert_allclose(after[0], a.astype(np.float64) @ b, atol=1e-12)


@pytest.mark.parametrize(
    "body",
    [
        "%p = arith.mulf %c, %a : f64\n%q = arith.mulf %p, %b : f64\n%r = arith.addf %o, %q : f64",
        "%p = arith.mulf %a, %b : f64\n%q = arith.mulf %c, %p : f64\n%r = arith.subf %o, %q : f64",
        "%p = arith.mulf %a, %b : f64\n%q = arith.divf %p, %c : f64\n%r = arith.addf %q, %o : f64",
        "%n = arith.negf %a : f64\n%p = arith.mulf %n, %b : f64\n%r = arith.addf %o, %p : f64",
        "%p = arith.mulf %a, %b : f64\n%n = arith.negf %p : f64\n%q = arith.mulf %n, %c : f64\n"
        "%r = arith.addf %o, %q : f64",
    ],
)
def test_scale_factors_and_signs(body: str) -> None:
    assert run("ijK", ["i, k", "k, j", "", "i, j"], body) == ["linalg.generic", "linalg.matmul"]


def test_two_signs_cancel() -> None:
    body = "%n = arith.negf %a : f64\n%p = arith.mulf %n, %b : f64\n%r = arith.subf %o, %p : f64"
    assert run("ijK", ["i, k", "k, j", "i, j"], body) == ["linalg.matmul"]


def test_a_scaled_matrix_scales_the_vector() -> None:
    body = "%p = arith.mulf %c, %a : f64\n%q = arith.mulf %p, %b : f64\n%r = arith.addf %o, %q : f64"
    assert run("iK", ["i, k", "k", "", "i"], body) == ["linalg.generic", "linalg.matvec"]


def test_functions_of_elements_are_computed_in_front() -> None:
    body = "%e = math.exp %a : f64\n%s = arith.subf %b, %c : f64\n%p = arith.mulf %e, %s : f64\n"
    body += "%r = arith.addf %o, %p : f64"
    assert run("ijK", ["i, k", "k, j", "k", "i, j"], body) == ["linalg.generic"] * 2 + ["linalg.matmul"]


def test_a_weight_along_the_sum() -> None:
    body = "%p = arith.mulf %a, %c : f64\n%q = arith.mulf %p, %b : f64\n%r = arith.addf %o, %q : f64"
    assert run("ijK", ["i, k", "k, j", "k", "i, j"], body) == ["linalg.generic", "linalg.matmul"]


def test_several_terms() -> None:
    """As in syr2k: `C[i, j] += A[j, k] * B[i, k] + B[j, k] * A[i, k]`."""
    body = "%p = arith.mulf %a, %b : f64\n%q = arith.mulf %c, %d : f64\n%s = arith.addf %p, %q : f64\n"
    body += "%r = arith.addf %o, %s : f64"
    maps = ["j, k", "i, k", "j, k", "i, k", "i, j"]
    assert run("ijK", maps, body) == ["linalg.contract"] * 2


def test_a_diagonal_is_gathered() -> None:
    a, b, c = numbers((6, 6), "float64", 1), numbers((4, 6), "float64", 2), numbers((4, 5), "float64", 3)
    d = numbers((6, 5), "float64", 4)
    body = "%p = arith.mulf %a, %b : f64\n%q = arith.mulf %p, %c : f64\n%r = arith.addf %o, %q : f64"
    names = check(Generic("ijK", ["k, k", "i, k", "k, j", "i, j"], body), [a, b, d], [c])
    assert names == ["linalg.generic", "linalg.matmul"]


COMPARE = "%i = linalg.index {0} : index\n%j = linalg.index {1} : index\n%m = arith.cmpi {2}, %i, %j : index\n"


@pytest.mark.parametrize("predicate", ["slt", "sle", "sgt", "sge", "ne"])
@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (2, 1)])
def test_triangles(predicate: str, pair: tuple[int, int]) -> None:
    body = COMPARE.format(*pair, predicate) + FLOAT.replace("%r", "%s")
    body += "\n%r = arith.select %m, %s, %o : f64"
    names = run("ijK", ["i, k", "k, j", "i, j"], body)
    assert [n for n in names if n != "linalg.generic"] == (["linalg.fill"] if pair == (0, 1) else []) + [
        "linalg.matmul"
    ]


def test_what_is_outside_of_a_triangle_does_not_leak() -> None:
    a, b, c = numbers((6, 6), "float64", 1), numbers((6, 5), "float64", 2), numbers((6, 5), "float64", 3)
    a[np.tril_indices(6)] = np.nan
    body = COMPARE.format(2, 0, "sgt") + FLOAT.replace("%r", "%s") + "\n%r = arith.select %m, %s, %o : f64"
    generic = Generic("ijK", ["i, k", "k, j", "i, j"], body)
    check(generic, [a, b], [c], native=True)
    _, (after,) = before_and_after(generic.text([a, b], [c]), [a, b, c])
    assert np.isfinite(after).all()


def test_old_values_outside_of_a_triangle_are_kept() -> None:
    a, c = numbers((5, 7), "float64", 1), numbers((5, 5), "float64", 3)
    c[np.triu_indices(5, 1)] = np.inf
    body = COMPARE.format(1, 0, "sle") + FLOAT.replace("%r", "%s") + "\n%r = arith.select %m, %s, %o : f64"
    check(Generic("ijK", ["i, k", "j, k", "i, j"], body), [a, a], [c], native=True)


@settings(max_examples=30)
@given(st.data())
def test_random_contractions(data: st.DataObject) -> None:
    """Loops of every kind, in any order, with a scale factor, a sign and a condition now and then."""
    kinds = data.draw(st.lists(st.sampled_from(["batch", "m", "n", "k"]), min_size=1, max_size=5))
    letters = "abcdefg"[: len(kinds)]
    order = data.draw(st.permutations(letters))
    size = {c: data.draw(st.sampled_from([1, 2, 3, 5])) for c in letters}
    loops = "".join(c.upper() if kinds[letters.index(c)] == "k" else c for c in order)
    inside = {"batch": (1, 1, 1), "m": (1, 0, 1), "n": (0, 1, 1), "k": (1, 1, 0)}
    maps = []
    for operand in range(3):
        dims = [c for c, kind in zip(letters, kinds) if inside[kind][operand]]
        maps.append(data.draw(st.permutations(dims)))
    first, second = data.draw(st.permutations(["%a", "%b"]))
    lines = [f"%p = arith.mulf {first}, {second} : f64"]
    if data.draw(st.booleans()):
        lines[0] = f"%c = arith.constant 0.5 : f64\n%h = arith.mulf {first}, %c : f64\n" + lines[0].replace(first, "%h")
    lines.append(f"%s = arith.{data.draw(st.sampled_from(['addf', 'subf']))} %o, %p : f64")
    name = "%s"
    if len(order) > 1 and data.draw(st.booleans()):
        i, j = data.draw(st.permutations(range(len(order))))[:2]
        lines.append(COMPARE.format(i, j, data.draw(st.sampled_from(["slt", "sge"]))))
        lines.append("%r = arith.select %m, %s, %o : f64")
        name = "%r"
    generic = Generic(loops, [", ".join(m) for m in maps], "\n".join(lines), [name])
    *inputs, out = (numbers(tuple(size[c] for c in m), "float64", n) for n, m in enumerate(maps))
    before, after = before_and_after(generic.text(inputs, [out]), [*inputs, out])
    np.testing.assert_allclose(after[0], before[0], atol=1e-12)


@pytest.mark.parametrize("predicate", ["slt", "sle", "sgt", "sge"])
@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (2, 1), (1, 0)])
@pytest.mark.parametrize("shift", [-3, 0, 5])
def test_strips_of_a_triangle(
    predicate: str, pair: tuple[int, int], shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triangle, "STRIP", 4)
    monkeypatch.setitem(SIZES, "i", 11)
    monkeypatch.setitem(SIZES, "j", 9)
    monkeypatch.setitem(SIZES, "k", 13)
    body = COMPARE.format(*pair, predicate).replace("%i, %j", "%shifted, %j")
    body = f"%shift = arith.constant {shift} : index\n" + body.replace(
        "%m =", "%shifted = arith.addi %i, %shift : index\n%m ="
    )
    body += "%e = math.exp %a : f64\n%p = arith.mulf %e, %b : f64\n%q = arith.mulf %c, %p : f64\n"
    body += "%s = arith.subf %o, %q : f64\n%r = arith.select %m, %s, %o : f64"
    names = run("ijK", ["i, k", "k, j", "", "i, j"], body)
    assert names.count("linalg.matmul") in (1, 2, 3)
