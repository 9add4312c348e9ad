"""Targets are found by the declarations in their files, which say what their records have."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mlirml.targets import registry
from mlirml.targets.registry import form_names, get_target, portable_targets, target_names, targets_with, writer_of


@pytest.mark.parametrize("name", target_names())
def test_a_target_has_the_name_and_the_forms_that_its_file_declares(name: str) -> None:
    target = get_target(name)
    declared = next(found for found in registry._declarations() if found.name == name)
    assert target.name == name
    assert tuple(form for form in target.forms if not form.endswith("-")) == declared.forms


def test_portable_targets_are_all_targets() -> None:
    assert sorted(target.name for target in portable_targets()) == list(target_names())


def test_a_form_is_written_by_a_target_that_has_it() -> None:
    for form in form_names():
        assert targets_with(form)
        assert callable(writer_of(form))
    assert targets_with("cobol") == ()


def test_the_names_of_targets_import_none_of_them() -> None:
    program = "import sys; from mlirml.targets.registry import *; target_names(); form_names(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.startswith(("mlirml.targets.", "mlirml.ir.bindings"))}
    assert loaded == {"mlirml.targets.registry"}
