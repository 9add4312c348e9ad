"""Writes `docs/settings.md`, the page of the settings, from the docstring of `Config`: `python docs/settings.py`."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from mlirml.core.config import _SETTINGS as SETTINGS
from mlirml.core.config import Config

PAGE = Path(__file__).with_name("settings.md")
HEAD = """\
# Settings

Written by `python docs/settings.py` from the docstring of `mlirml.config`.

Each setting is an attribute of `ml.config`, and most have an environment variable, which is read once, by
`import mlirml`. `ml.config.override(...)` changes some for a `with` block. Switches are `True` and `False`, in the
environment `1` and `0` (also `true`, `on`, `yes`, and `false`, `off`, `no`, in any case); an empty variable counts as
none. A wrong type is a `TypeError`, a wrong value a `ValueError` that names the setting or the variable, an unknown
name an `AttributeError` that lists the known ones. The settings belong to the process, not to a thread.

```python
import mlirml as ml

ml.config.threads = 1
with ml.config.override(cache=False, explain=True):
    print(ml.config.cache, ml.config.threads)
print(ml.config.cache)
```
```text
False 1
True
```

| setting | variable | default | meaning |
|---|---|---|---|
"""


def meanings() -> dict[str, str]:
    """The description of each setting in the docstring, without the name of its variable."""
    found = {}
    for item in re.split(r"^\* ", inspect.getdoc(Config) or "", flags=re.MULTILINE)[1:]:
        text = " ".join(item.split("\n\n")[0].split())
        name, _, meaning = text.partition(": ")
        meaning = re.sub(r" ?\(`MLIRML_\w+`\)", "", re.sub(r"\(`MLIRML_\w+`, ", "(", meaning))
        found[name.strip("`")] = meaning
    return found


def row(name: str, meaning: str) -> str:
    """The line of a setting."""
    setting = SETTINGS[name]
    variable = f"`{setting.variable}`" if setting.variable else ""
    return f"| `{name}` | {variable} | `{setting.default!r}` | {meaning} |"


def page() -> str:
    """The whole page."""
    known = meanings()
    return HEAD + "\n".join(row(name, known[name]) for name in SETTINGS) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
