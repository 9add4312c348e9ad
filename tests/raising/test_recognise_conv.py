"""Convolutions that mlirml-recognise names, against the generics that they come from."""

from __future__ import annotations

import numpy as np
import pytest

from tests.raising.generics import Array, Generic, check, numbers, recognised

FLOAT = "%p = arith.mulf %a, %b : f32\n%r = arith.addf %o, %p : f32"


def run(generic: Generic, *shapes: tuple[int, ...], native: bool = False, dtype: str = "float32") -> list[str]:
    *inputs, out = (numbers(shape, dtype, seed) for seed, shape in enumerate(shapes))
    return check(generic, inputs, [out], native=native)


@pytest.mark.parametrize(
    ("loops", "maps", "shapes", "name"),
    [
        (
            "nfyxCIJ",
            ["n, c, y + i, x + j", "f, c, i, j", "n, f, y, x"],
            [(2, 3, 6, 7), (4, 3, 3, 2), (2, 4, 4, 6)],
            "linalg.conv_2d_nchw_fchw",
        ),
        (
            "JIyxfCn",
            ["n, c, y * 2 + i, x * 2 + j * 3", "f, c, i, j", "n, f, y, x"],
            [(2, 3, 7, 9), (4, 3, 3, 2), (2, 4, 3, 3)],
            "linalg.conv_2d_nchw_fchw",
        ),
        (
            "nyxfIJC",
            ["n, y + i, x + j, c", "i, j, c, f", "n, y, x, f"],
            [(2, 6, 7, 3), (3, 2, 3, 4), (2, 4, 6, 4)],
            "linalg.conv_2d_nhwc_hwcf",
        ),
        (
            "fyxCIJ",
            ["c, y + i, x + j", "f, c, i, j", "f, y, x"],
            [(3, 6, 7), (4, 3, 3, 2), (4, 4, 6)],
            "linalg.conv_2d_nchw_fchw",
        ),
        ("nfxCI", ["n, c, x + i", "f, c, i", "n, f, x"], [(2, 3, 8), (4, 3, 3), (2, 4, 6)], "linalg.conv_1d_ncw_fcw"),
        (
            "nfzyxCKIJ",
            ["n, c, z + k, y + i, x + j", "f, c, k, i, j", "n, f, z, y, x"],
            [(1, 2, 4, 5, 6), (3, 2, 2, 2, 2), (1, 3, 3, 4, 5)],
            "linalg.conv_3d_ncdhw_fcdhw",
        ),
        (
            "ncyxIJ",
            ["n, c, y + i, x + j", "c, i, j", "n, c, y, x"],
            [(2, 3, 6, 7), (3, 3, 2), (2, 3, 4, 6)],
            "linalg.depthwise_conv_2d_nchw_chw",
        ),
        ("yxIJ", ["y + i, x + j", "i, j", "y, x"], [(6, 7), (3, 2), (4, 6)], "linalg.generic"),
        (
            "ngfyxCIJ",
            ["n, g, c, y + i, x + j", "g, f, c, i, j", "n, g, f, y, x"],
            [(2, 2, 3, 6, 7), (2, 4, 3, 3, 2), (2, 2, 4, 4, 6)],
            "linalg.generic",
        ),
        (
            "fcijNYX",
            ["n, c, y + i, x + j", "n, f, y, x", "f, c, i, j"],
            [(2, 3, 6, 7), (2, 4, 4, 6), (4, 3, 3, 2)],
            "linalg.generic",
        ),
    ],
    ids=["nchw", "strided", "nhwc", "image", "1d", "3d", "depthwise", "plane", "groups", "weight_gradient"],
)
def test_layouts(loops: str, maps: list[str], shapes: list[tuple[int, ...]], name: str) -> None:
    # What was there is added behind.
    found = run(Generic(loops, maps, FLOAT), *shapes, native="nfyxC" in loops)
    assert found == ["linalg.fill", name, "linalg.generic"]


PADDED = """
    %n = linalg.index 0 : index
    %y = linalg.index 2 : index
    %x = linalg.index 3 : index
    %c = linalg.index 4 : index
    %i = linalg.index 5 : index
    %j = linalg.index 6 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c6 = arith.constant 6 : index
    %y1 = arith.addi %y, %i : index
    %row = arith.subi %y1, %c1 : index
    %x1 = arith.addi %x, %j : index
    %column = arith.subi %x1, %c1 : index
    %m0 = arith.cmpi sge, %row, %c0 : index
    %m1 = arith.cmpi slt, %row, %c{rows} : index
    %m2 = arith.cmpi sge, %column, %c0 : index
    %m3 = arith.cmpi slt, %column, %c6 : index
    %m01 = arith.andi %m0, %m1 : i1
    %m23 = arith.andi %m2, %m3 : i1
    %m = arith.andi %m01, %m23 : i1
    %low = arith.maxsi %row, %c0 : index
    %top = arith.minsi %low, %c4 : index
    %left = arith.maxsi %column, %c0 : index
    %side = arith.minsi %left, %c5 : index
    %v = tensor.extract %image[%n, %c, %top, %side] : tensor<2x3x5x6xf32>
"""


def padded(body: str, rows: int = 5) -> tuple[Generic, list[Array], Array]:
    """A padded convolution; the condition lets `rows` rows pass."""
    image, weights = numbers((2, 3, 5, 6), "float32", 1), numbers((4, 3, 3, 3), "float32", 2)
    text = PADDED.replace("{rows}", str(rows)).replace("%image", "%t0") + body
    generic = Generic("nfyxCIJ", ["f, c, i, j", "n, f, y, x"], text, captured=1)
    return generic, [image, weights], np.zeros((2, 4, 5, 6), np.float32)


@pytest.mark.parametrize(
    "body",
    [
        "%p = arith.mulf %v, %a : f32\n%s = arith.addf %o, %p : f32\n%r = arith.select %m, %s, %o : f32",
        "%z = arith.constant 0.0 : f32\n%u = arith.select %m, %v, %z : f32\n"
        "%p = arith.mulf %u, %a : f32\n%r = arith.addf %o, %p : f32",
    ],
    ids=["if_around_the_sum", "value_or_zero"],
)
def test_an_if_is_padding(body: str) -> None:
    generic, inputs, out = padded(body)
    names = check(generic, inputs, [out], native="select %m, %s" in body)
    assert names == ["linalg.fill", "linalg.conv_2d_nchw_fchw", "linalg.generic"]
    assert "tensor.pad" in str(recognised(generic.text(inputs, [out])))


def test_a_condition_that_is_no_padding_stays() -> None:
    body = "%p = arith.mulf %v, %a : f32\n%s = arith.addf %o, %p : f32\n%r = arith.select %m, %s, %o : f32"
    generic, inputs, out = padded(body, rows=4)
    assert check(generic, inputs, [out]) == ["linalg.generic"]


def test_what_slides_in_no_window_stays() -> None:
    """The diagonal of windows, and a window that the result does not place."""
    found = run(Generic("yI", ["y + i, y + i", "i", "y"], FLOAT), (6, 6), (3,), (4,))
    assert found == ["linalg.generic"]
    found = run(Generic("YI", ["y + i", "y, i", ""], FLOAT), (6,), (4, 3), ())
    assert found == ["linalg.generic"]


def test_scaled_weights() -> None:
    body = "%h = arith.constant 0.5 : f32\n%q = arith.mulf %h, %a : f32\n" + FLOAT.replace("%a", "%q")
    body = body.replace("addf", "subf")
    maps = ["n, c, y + i, x + j", "f, c, i, j", "n, f, y, x"]
    found = run(Generic("nfyxCIJ", maps, body), (2, 3, 6, 7), (4, 3, 3, 2), (2, 4, 4, 6))
    assert found == ["linalg.generic", "linalg.fill", "linalg.conv_2d_nchw_fchw", "linalg.generic"]
