"""The variables of a promptfoo test: lists that give several rows, and values that stand in files."""

from __future__ import annotations

import glob
import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping

from mmprompt.datasets.media_columns import modality_of
from mmprompt.errors import RowError, TaskError, shown
from mmprompt.media.media_types import suffix_type
from mmprompt.messages import MODALITIES
from mmprompt.tasks.section_values import ConfigValue
from mmprompt.tasks.upstream.config_folder import ConfigFolder, upstream_yaml
from mmprompt.tasks.upstream.nunjucks import Medium
from mmprompt.tasks.upstream.promptfoo_prompts import FILE

CODE = (".py", ".js", ".cjs", ".mjs", ".ts", ".cts", ".mts")
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_ROUNDS = 5
"""How often variables are put into variables, as in promptfoo."""

_MOST = 1_000_000
"""Most combinations of the lists of one test."""


def check_file(value: ConfigValue, folder: ConfigFolder) -> None:
    """Refuse a variable ``file://NAME`` whose file is code or a PDF, or is not there."""
    if not isinstance(value, str) or not value.startswith(FILE):
        return
    suffix = os.path.splitext(value.partition("#")[0])[1].lower()
    if suffix.partition(":")[0] in CODE:
        raise _refused(f"the variable {shown(value)} is code, and a config of data is not run", "write its value")
    if suffix == ".pdf":
        raise _refused(f"the variable {shown(value)} is a PDF", "save its text as a file, or its pages as pictures")
    for path in folder.files(value.removeprefix(FILE), "vars"):
        if not os.path.isfile(path):
            raise _refused(f"the variable {shown(value)} names no file", "check the path, which begins at the config")


def combinations(
    variables: Mapping[str, object], folder: ConfigFolder, *, expands: bool, is_data: bool
) -> Iterator[dict[str, object]]:
    """Yield the variables of a test: with ``expands`` one mapping for each combination of the texts in its lists.

    A variable ``file://NAME`` is the medium or the text in that file. In a test of the config, variables are put into
    variables; the row of a dataset ``is_data``, which names media only.

    Raises:
        RowError: a test has too many combinations, or a row names a file of text.
        TaskError: a file cannot be read.
    """
    choices: list[list[tuple[str, object]]] = []
    count = 1
    for name, value in variables.items():
        values = list(_values(value, folder, is_data=is_data)) if expands else [value]
        count *= len(values)
        choices.append([(name, v) for v in values])
    if count > _MOST:
        raise RowError(f"the lists of the test have {count} combinations", f"give at most {_MOST}")
    for pairs in itertools.product(*choices):
        made = {name: _loaded(value, folder, is_data=is_data) for name, value in pairs}
        yield made if is_data else _resolved(made)


def _values(value: object, folder: ConfigFolder, *, is_data: bool) -> Iterator[object]:
    """Yield the values of a variable: the texts of a list, the files of a pattern, or the value itself."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        yield from value
    elif isinstance(value, str) and value.startswith(FILE) and glob.has_magic(value) and not is_data:
        for path in folder.files(value.removeprefix(FILE), "vars"):
            yield FILE + os.path.relpath(path, folder.folder or os.curdir)
    else:
        yield value


def _loaded(value: object, folder: ConfigFolder, *, is_data: bool) -> object:
    """Return a value: of ``file://NAME`` what the file holds."""
    if not isinstance(value, str) or not value.startswith(FILE):
        return _plain(value)
    name = value.removeprefix(FILE)
    if (suffix_type(name) or "").partition("/")[0] in MODALITIES:
        return Medium(name)
    if is_data:
        raise RowError(f"the row names the file {shown(value)}", "write its text into the row")
    text = folder.text(folder.file(name, "vars"), "vars")
    if name.lower().endswith((".yaml", ".yml")):
        return json.dumps(upstream_yaml(text), ensure_ascii=False, separators=(",", ":"), default=str)
    return text.strip()


def _plain(value: object) -> object:
    if modality_of(value) is not None:
        return Medium(value)
    return value.removesuffix("\n") if isinstance(value, str) else value


def _resolved(variables: dict[str, object]) -> dict[str, object]:
    """Return the variables of a test in the config, with variables put into their texts."""
    for _ in range(_ROUNDS):
        changed = False
        for name, value in variables.items():
            if not isinstance(value, str) or (found := _VARIABLE.search(value)) is None:
                continue
            if isinstance(other := variables.get(found[1]), (str, int, float)):
                variables[name] = value.replace(found[0], str(other), 1)
                changed = True
        if not changed:
            break
    return variables


def _refused(what: str, hint: str) -> TaskError:
    return TaskError(what, hint).located(setting="tests")
