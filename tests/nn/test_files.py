"""Parameters in files: what is saved comes back, what does not fit is an error, and broken files do no harm."""

from __future__ import annotations

import dataclasses
import json
import resource
import struct
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors

import mlirml as ml
from mlirml import nn, optim, random
from mlirml.core.tree import flatten
from mlirml.nn import functional as F

KEY = random.key(2)


@dataclasses.dataclass
class Model:
    body: nn.Sequential
    tables: dict[str, Any]
    scale: float
    steps: int
    name: str = "model"
    size: int = ml.static_field(default=3)


def model(seed: int = 0) -> Model:
    keys = random.split(random.key(seed), 3)
    rng = np.random.default_rng(seed)
    return Model(
        nn.Sequential([nn.Conv2d.init(keys[0], 3, 4, 3, padding=1), nn.BatchNorm.init(4), F.relu, nn.Dropout(0.1)]),
        {"half": rng.standard_normal((3, 2)).astype(ml_dtypes.bfloat16), "flags": rng.random(5) < 0.5},
        0.5 + seed,
        7 + seed,
    )


def test_a_model_comes_back(tmp_path: Path) -> None:
    path, first, other = tmp_path / "model.safetensors", model(), model(1)
    nn.save(path, first)
    found = nn.load(path, other)
    assert sorted(nn.load(path)) == [
        "body.layers.0.bias", "body.layers.0.weight", "body.layers.1.bias", "body.layers.1.weight", "scale", "steps",
        "tables.flags", "tables.half",
    ]  # fmt: skip
    assert isinstance(found, Model) and found.body.layers[2] is F.relu and found.body.layers[0].padding == 1
    assert (found.scale, found.steps, found.name, found.size) == (0.5, 7, "model", 3)
    assert type(found.scale) is float and type(found.steps) is int
    assert found.tables["half"].dtype == ml_dtypes.bfloat16
    for one, expected in zip(flatten(found)[0], flatten(first)[0]):
        if isinstance(expected, np.ndarray):
            assert one.dtype == expected.dtype and one.tobytes() == expected.tobytes() and one.flags.writeable
    assert other.scale == 1.5 and not np.array_equal(other.body.layers[0].weight, found.body.layers[0].weight)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_state_of_an_optimiser_and_plain_objects(tmp_path: Path) -> None:
    class Plain:
        def __init__(self, value: float) -> None:
            self.weight, self.label = np.full((2, 2), value), "plain"
            self.parts = [np.full(3, value)]

    path = tmp_path / "state.safetensors"
    given, optimiser = Plain(2.0), optim.adam()
    nn.save(path, (given, optimiser.init(given)))
    assert sorted(nn.load(path))[:3] == ["0.parts.0", "0.weight", "1.count"]
    found, state = nn.load(path, (Plain(0.0), optimiser.init(Plain(0.0))))
    assert found.weight[0, 0] == found.parts[0][2] == 2 and found.label == "plain"
    assert state["count"].dtype == np.int32 and state["mean"][0].shape == (2, 2)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
     ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2],
)  # fmt: skip
def test_dtypes_and_layouts(dtype: Any, tmp_path: Path) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)
    for number, one in enumerate((array, array.T, array[::2, 1:], array[0, 0, 1], array[:0], np.array(array[1, 1, 1]))):
        nn.save(tmp_path / f"{number}", one)
        found = nn.load(tmp_path / f"{number}", one)
        assert found.dtype == dtype and type(found) is type(one) and found.shape == one.shape
        assert found.tobytes() == one.tobytes()


def test_files_are_those_of_the_package(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    nn.save(tmp_path / "a", {"x": np.arange(3.0), "y": [np.float32(2)]}, metadata={"made": "here"})
    assert {name: x.tolist() for name, x in load_file(tmp_path / "a").items()} == {"x": [0, 1, 2], "y.0": 2}
    with safetensors.safe_open(tmp_path / "a", "np") as file:
        assert file.metadata() == {"made": "here"}
    save_file({"w": np.ones((2, 3), ">f4")}, tmp_path / "b")
    assert np.array_equal(nn.load(tmp_path / "b")["w"], np.ones((2, 3)))
    nn.save(tmp_path / "c", np.arange(3, dtype=">i4"))
    assert nn.load(tmp_path / "c")["value"].tolist() == [0, 1, 2]
    found = nn.load(tmp_path / "c", np.zeros(3, dtype=">i4"))
    assert found.tolist() == [0, 1, 2] and found.dtype == np.dtype(">i4")


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    path = tmp_path / "layer"
    layer = nn.Linear.init(KEY, 3, 2)
    nn.save(path, {"layer": layer})
    with pytest.raises(ml.ShapeError, match=r"`layer.weight` is f32\[2,3\] in the file, and f32\[2,4\] in the struct"):
        nn.load(path, {"layer": nn.Linear.init(KEY, 4, 2)})
    with pytest.raises(ml.DTypeError, match=r"`layer.weight` is f32\[2,3\] in the file, and f64\[2,3\]"):
        nn.load(path, {"layer": nn.Linear.init(KEY, 3, 2, dtype=np.float64)})
    with pytest.raises(ml.FileFormatError, match=r"has `layer\.bias`, which the structure does not"):
        nn.load(path, {"layer": nn.Linear.init(KEY, 3, 2, bias=False)})
    with pytest.raises(ml.FileFormatError, match=r"has no `other\.bias`, `other\.weight`, and has `layer\.bias`"):
        nn.load(path, {"other": layer})
    with pytest.raises(ml.DTypeError, match="save: `z` is complex64, which files of safetensors do not have"):
        nn.save(path, {"z": np.ones(2, np.complex64)})
    with pytest.raises(ml.ArgumentError, match=r"two arrays would have the name `a\.b`"):
        nn.save(path, {"a.b": np.ones(2), "a": {"b": np.ones(2)}})
    with pytest.raises(ml.ArgumentError, match="outside of compiled functions"):
        ml.compile(lambda x: nn.save(path, x))(np.ones(2))
    with pytest.raises(FileNotFoundError):
        nn.load(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        nn.save(tmp_path / "none" / "layer", layer)
    assert nn.load(path, {"layer": layer})["layer"].weight.shape == (2, 3), "the file is as it was"


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ml.ArgumentError, match="the package `safetensors` is not installed") as error:
        nn.save(tmp_path / "a", np.ones(2))
    assert error.value.help == "`pip install mlirml[safetensors]`"


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """A file with some bytes changed, left out, repeated or cut, its header most of all."""
    found = bytearray(data)
    head = 8 + struct.unpack("<Q", data[:8])[0]
    for _ in range(int(rng.integers(1, 4))):
        where = int(rng.integers(0, head if rng.random() < 0.8 else len(found))) % max(len(found), 1)
        match int(rng.integers(0, 6)):
            case 0:
                found[where : where + 1] = bytes([int(rng.integers(256))])
            case 1:
                found[where : where + 1] = rng.choice(list(b'0123456789-[]{},:"e. ')).astype(np.uint8).tobytes()
            case 2:
                del found[where : where + int(rng.integers(1, 9))]
            case 3:
                found[where:where] = found[where : where + int(rng.integers(1, 40))]
            case 4:
                del found[where:]
            case 5:  # another length of the header, maybe a huge one
                found[:8] = struct.pack("<Q", int(rng.integers(0, 2 ** int(rng.integers(1, 63)))))
    return bytes(found)


def shape_changed(data: bytes, rng: np.random.Generator) -> bytes:
    """A file whose header is valid JSON, with other shapes, dtypes and offsets."""
    head = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:head])
    for name in rng.choice(sorted(header), 2):
        entry = header[name]
        match int(rng.integers(0, 4)):
            case 0:
                entry["shape"] = [int(n) for n in rng.choice([0, 1, 3, 2**31, 2**62, 2**63], int(rng.integers(0, 5)))]
            case 1:
                entry["shape"] = [1] * int(rng.integers(0, 100)) + entry["shape"]
            case 2:
                entry["data_offsets"] = [int(n) for n in rng.integers(-9, 2 ** int(rng.integers(1, 60)), 2)]
            case 3:
                entry["dtype"] = str(rng.choice(["F64", "F32", "BF16", "C64", "F4", "F8_E8M0", "bad", "I64"]))
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[head:]


def test_broken_files_are_errors(tmp_path: Path) -> None:
    path, rng = tmp_path / "model", np.random.default_rng(0)
    given = {"a": np.arange(6.0).reshape(2, 3), "b": [np.ones(4, ml_dtypes.bfloat16), np.int32(3)], "n": 1.5}
    nn.save(path, given)
    data = path.read_bytes()
    before, refused, loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0, 0
    for number in range(2000):
        path.write_bytes(mutated(data, rng) if number % 4 else shape_changed(data, rng))
        try:
            found = nn.load(path, given)
        except ml.MlirmlError as error:
            assert isinstance(error, (ml.FileFormatError, ml.ShapeError, ml.DTypeError)) and str(error)
            refused += 1
        else:
            assert found["a"].shape == (2, 3) and type(found["n"]) is float
            loaded += 1
        try:
            assert sum(x.nbytes for x in nn.load(path).values()) <= len(data) + 400
        except ml.FileFormatError as error:
            assert "load: " in str(error)
    assert refused > 1000 and loaded > 5, "elements that are changed are no error"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000, "kilobytes"


def test_the_name_of_the_metadata_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ml.ArgumentError, match="`__metadata__` is no name of an array"):
        nn.save(tmp_path / "p.safetensors", {"__metadata__": np.ones(2)})
    assert not list(tmp_path.iterdir())
