"""Reading task files: YAML, TOML, JSON, or a Python file that the caller names."""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mmprompt.errors import TaskError, malformed, shown
from mmprompt.tasks.upstream.dataset_configs import choose_dataset, find_datasets, plain_config, upstream_task
from mmprompt.tasks.upstream.execute import run_config

_NUMBER = re.compile(r"\d+")
_HINT = "mend what stands there"
_LARGEST = 1 << 24
"""Bytes of a file of JSON that may be a task; a larger one is a dataset, and is not read whole to find out."""


class TaskFile(NamedTuple):
    """What a task file holds, and notes on what of it is not used; ``upstream`` is a runner's own dataset config."""

    config: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    upstream: bool = False


def read_task_file(path: str, known: tuple[str, ...], abbr: str | None = None) -> TaskFile:
    """Return what a task file holds; ``known`` are the variables that a Python file may set.

    ``abbr`` chooses among the datasets of a runner's config.

    Raises:
        TaskError: the file is missing, of unknown kind or malformed (with its line), or holds no mapping.
    """
    suffix = os.path.splitext(path)[1].lower()
    readers: dict[str, Callable[[str], Any]] = {
        ".yaml": _yaml, ".yml": _yaml, ".toml": _toml, ".json": _json, ".py": lambda p: _python(p, known, abbr),
    }  # fmt: skip
    if suffix not in readers:
        hint = f"give {', '.join(readers)}"
        raise TaskError(f"{shown(path)} is no task file: unknown suffix {shown(suffix)}", hint)
    try:
        value = readers[suffix](path)
    except OSError as error:
        raise TaskError(f"cannot read {shown(path)}: {error.strerror}", "check the path") from None
    except UnicodeDecodeError as error:
        raise TaskError(f"{shown(path)} is not UTF-8 at byte {error.start}", "save it as UTF-8") from None
    except RecursionError:
        raise TaskError(f"{shown(path)} is nested too deeply", "a task is a few levels deep") from None
    if isinstance(value, TaskFile):
        return value
    if not isinstance(value, Mapping):
        found = "nothing" if value is None else type(value).__name__
        raise TaskError(f"{shown(path)} holds {found}", f"a task is a mapping of {', '.join(known)}")
    return TaskFile(value)


def is_task_file(path: str) -> bool:
    """Tell whether a path names a task rather than a dataset: by its suffix, and JSON by holding a task's keys."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix in {".yaml", ".yml", ".toml", ".py"}:
        return True
    if suffix != ".json" or not os.path.isfile(path) or os.path.getsize(path) > _LARGEST:
        return False
    with open(path, "rb") as file:
        head = file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")
    if not head.startswith(b"{"):
        return False
    try:
        return bool({"infer_cfg", "dataset"} & set(read_task_file(path, ()).config))
    except TaskError:
        return b'"infer_cfg"' in head or b'"dataset"' in head  # a task with a fault, which is told when it is loaded


def _text(path: str) -> str:
    with open(path, encoding="utf-8-sig") as file:
        return file.read()


def _yaml(path: str) -> Any:
    from mmprompt.tasks.yaml_files import load_yaml  # noqa: PLC0415  # PyYAML takes 8 ms, only where a YAML file is read

    return load_yaml(_text(path))


def _toml(path: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415  # only where a TOML file is read
    else:
        import tomli as tomllib  # noqa: PLC0415  # Python 3.10
    try:
        return tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).rpartition(" (at ")
        line, column = [int(number) for number in _NUMBER.findall(place)] or (None, None)
        raise malformed("TOML", what if line else str(error), _HINT, line, column) from None


def _json(path: str) -> Any:
    text = _text(path)
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise malformed("JSON", error.msg, _HINT, error.lineno, error.colno) from None
    except ValueError as error:
        raise TaskError(f"a number that Python refuses to read: {error}", "write it as a string") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, none of whose keys is given twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise TaskError(f"the key {shown(twice)} is given twice in one object", "keep one of the two")
    return made


def _python(path: str, known: tuple[str, ...], abbr: str | None) -> TaskFile:
    """Execute a Python file that the caller named: a task, or a dataset config of OpenCompass or AISBench."""
    variables, stub_texts = run_config(path)
    datasets = find_datasets(variables)
    own = variables.get("dataset")  # the one variable of a task that a runner's config has for a loop at most
    if datasets and (own is None or any(own is listed.config for listed in datasets)):
        chosen = upstream_task(choose_dataset(datasets, abbr), stub_texts)
        unused = ", ".join([*chosen.unused, *(["media"] if "media" in variables else [])])
        notes = (f"of {chosen.abbr} these keys are not used: {unused}",) if unused else ()
        return TaskFile({"reader_cfg": chosen.reader_cfg, "infer_cfg": chosen.infer_cfg}, notes, upstream=True)
    for name, value in variables.items():
        if name in known or name.startswith("_") or not isinstance(value, Mapping):
            continue
        if near := difflib.get_close_matches(name, known, n=1, cutoff=0.8):
            raise TaskError(f"{shown(path)} sets '{name}', which no task has", f"did you mean '{near[0]}'?")
    task = {name: variables[name] for name in known if name in variables}
    if not task:
        raise TaskError(f"{shown(path)} sets no variable of a task", f"set one of {', '.join(known)}")
    if "infer_cfg" in task:
        task["infer_cfg"] = plain_config(task["infer_cfg"], "infer_cfg", stub_texts)
    return TaskFile(task)
