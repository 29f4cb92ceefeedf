"""Reading task files: YAML, TOML, JSON, or a Python file that the caller names."""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from mmprompt.errors import TaskError, malformed, shown
from mmprompt.tasks.config import ConfigValue, Section
from mmprompt.tasks.upstream.dataset_configs import choose_dataset, find_datasets, plain_config, upstream_task
from mmprompt.tasks.upstream.execute import run_config

if TYPE_CHECKING:
    import yaml

_NUMBER = re.compile(r"\d+")
_HINT = "correct the text there"
_LARGEST = 1 << 24
"""Bytes of a file of JSON that may be a task; a larger one is a dataset, and is not read whole to find out."""

_MOST_KEYS = 1 << 18
_YAML_HINTS = (
    ("\\t", "indent with blanks, not with tabs"),
    ("mapping values", "put a text with ': ' in it in quotes, or check the indentation"),
    ("token", "put the text in quotes"),
    ("<scalar>", "put the whole text in quotes: it begins with a quote or a brace"),
    ("mapping keys", "put the whole text in quotes: it begins with a brace"),
    ("<block end>", "check the indentation"),
    ("expected ','", "close it, or put the text in quotes"),
    ("end of stream", "close the quotes"),
    ("alias", "give the value it repeats before it as &NAME, or put the text in quotes"),
    ("recursive", "write the value out: it holds itself"),
    ("tag", "leave the tag out: a task holds plain values"),
)
"""Words in PyYAML's errors, and the hint for each. The first that occurs counts."""


class TaskFile(NamedTuple):
    """The content of a task file, and notes on keys that are not used. ``upstream`` is True for a runner's config."""

    config: Section
    notes: tuple[str, ...] = ()
    upstream: bool = False


def read_task_file(path: str, known: tuple[str, ...], abbr: str | None = None) -> TaskFile:
    """Return the content of a task file; its suffix says how it is read.

    ``known`` are the keys of a task, and so the variables that a Python file may set. ``abbr`` chooses among the
    datasets of a runner's config.

    Raises:
        TaskError: the file is missing, of unknown kind or malformed (with its line), or does not hold a mapping.
    """
    suffix = os.path.splitext(path)[1].lower()
    readers: dict[str, Callable[[str], ConfigValue | TaskFile]] = {
        ".yaml": _yaml, ".yml": _yaml, ".toml": _toml, ".json": _json, ".py": lambda p: _python(p, known, abbr),
    }  # fmt: skip
    if suffix not in readers:
        hint = f"give {', '.join(readers)}"
        raise TaskError(f"{shown(path)} is not a task file: unknown suffix {shown(suffix)}", hint)
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
    """Return whether a path names a task and not a dataset: by its suffix, and for JSON by its keys."""
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
        return b'"infer_cfg"' in head or b'"dataset"' in head  # a faulty task: loading it reports the fault


def _text(path: str) -> str:
    with open(path, encoding="utf-8-sig") as file:
        return file.read()


def _yaml(path: str) -> ConfigValue:
    import yaml  # noqa: PLC0415  # 8 ms, only where a YAML file is read

    text = _text(path)
    try:
        value: ConfigValue = yaml.load(text, _loader())  # noqa: S506  # a safe loader
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        column = error.position - before.rfind("\n")
        raise malformed("YAML", error.reason, "remove the character", before.count("\n") + 1, column) from None
    except yaml.MarkedYAMLError as error:
        raise _marked(error) from None
    return value


def _toml(path: str) -> ConfigValue:
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


def _json(path: str) -> ConfigValue:
    text = _text(path)
    try:
        value: ConfigValue = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise malformed("JSON", error.msg, _HINT, error.lineno, error.colno) from None
    except ValueError as error:
        raise TaskError(f"a number that Python refuses to read: {error}", "write it as a string") from None
    return value


def _once(pairs: list[tuple[str, ConfigValue]]) -> dict[str, ConfigValue]:
    """Return a JSON object; a repeated key is an error."""
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
    own = variables.get("dataset")  # a runner's config may use this name, but only as a loop variable
    if datasets and (own is None or any(own is listed.config for listed in datasets)):
        chosen = upstream_task(choose_dataset(datasets, abbr), stub_texts)
        unused = ", ".join([*chosen.unused, *(["media"] if "media" in variables else [])])
        notes = (f"of {chosen.abbr} these keys are not used: {unused}",) if unused else ()
        return TaskFile({"reader_cfg": chosen.reader_cfg, "infer_cfg": chosen.infer_cfg}, notes, upstream=True)
    for name, value in variables.items():
        if name in known or name.startswith("_") or not isinstance(value, Mapping):
            continue
        if near := difflib.get_close_matches(name, known, n=1, cutoff=0.8):
            raise TaskError(f"{shown(path)} sets '{name}', which is not a key of a task", f"did you mean '{near[0]}'?")
    task = {name: variables[name] for name in known if name in variables}
    if not task:
        raise TaskError(f"{shown(path)} sets no variable of a task", f"set one of {', '.join(known)}")
    if "infer_cfg" in task:
        task["infer_cfg"] = plain_config(task["infer_cfg"], "infer_cfg", stub_texts)
    return TaskFile(task)


def _marked(error: yaml.MarkedYAMLError) -> TaskError:
    """Return PyYAML's error as a TaskError with a hint."""
    begun, mark = error.context_mark, error.problem_mark
    problem = error.problem or ""
    hint = next((hint for words, hint in _YAML_HINTS if words in problem), _HINT)
    if begun is not None and error.context:
        problem += f", {error.context} that begins at line {begun.line + 1}, column {begun.column + 1}"
    line, column = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
    return malformed("YAML", problem, hint, line, column)


@lru_cache(maxsize=1)
def _loader() -> type[yaml.SafeLoader]:
    """Return a safe loader that refuses ambiguous YAML, and whose errors have a place."""
    import yaml  # noqa: PLC0415  # 8 ms, only where a YAML file is read

    class Loader(yaml.SafeLoader):
        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            super().flatten_mapping(node)
            if len(node.value) > _MOST_KEYS:  # forty lines can merge each other to a million million keys
                mark = node.start_mark
                raise malformed("YAML", f"more than {_MOST_KEYS} keys, merged", _HINT, mark.line + 1, mark.column + 1)

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, ConfigValue]:
            keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            _check_keys(keys)
            if node.flow_style and len(keys) == len(node.value) == 1 and node.value[0][1].value == "":
                raise _slot(keys[0].value, node.start_mark)
            made: dict[Hashable, ConfigValue] = super().construct_mapping(node, deep)
            return made

        def construct_object(self, node: yaml.Node, deep: bool = False) -> ConfigValue:  # noqa: ARG002  # see below
            try:
                made: ConfigValue = super().construct_object(
                    node, deep=True
                )  # at once: a list that holds itself is refused
            except ValueError as error:  # a date such as the 31st of February
                mark = node.start_mark
                hint = "put the text in quotes"
                raise malformed("YAML", str(error), hint, mark.line + 1, mark.column + 1) from None
            return made

    return Loader


def _slot(name: str, mark: yaml.Mark) -> TaskError:
    """Return the error of an unquoted slot, which YAML reads as a mapping from the slot's name to null."""
    what = f"{{{name}}} without quotes is a mapping"
    return malformed("YAML", what, f'write "{{{name}}}"', mark.line + 1, mark.column + 1)


def _check_keys(keys: list[yaml.ScalarNode]) -> None:
    """Refuse repeated keys, and keys that YAML turns into true or false: labels such as Yes and No need quotes."""
    lines: dict[tuple[str, str], int] = {}
    for key in keys:
        line, name = key.start_mark.line + 1, (key.tag, key.value)
        if key.tag.endswith(":bool"):
            meant = "true" if key.value.lower() in ("yes", "on", "true") else "false"
            what = f"YAML reads the unquoted label {key.value} as {meant}"
            raise TaskError(what, "put Yes, No, On, Off, true and false in quotes").located(line=line)
        if name in lines:
            what = f"the key {shown(key.value)} is given again, after line {lines[name]}"
            raise TaskError(what, "keep one of the two").located(line=line)
        lines[name] = line
