"""Reading task files: YAML, TOML, JSON, or a Python file that the caller names."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mmprompt.errors import TaskError, malformed, shown
from mmprompt.errors.findings import Note
from mmprompt.media.outputs import opened_input
from mmprompt.targets.json_files import parsed_json, unread_number
from mmprompt.tasks.config import DATASET_KEYS, KEYS, Section
from mmprompt.tasks.section_values import ConfigValue

if TYPE_CHECKING:
    from mmprompt.tasks.upstream.lm_eval import LmEvalRows

_T = TypeVar("_T")

_HINT = "correct the text there"
_LARGEST = 1 << 20
"""Most bytes of a task file. A larger file of JSON is a dataset, and is not read whole to find out."""

_MOST_DOTS = 100
_MOST_BITS = 63
_NO_KEYS = (
    r"""(?s)"{3}(?:[^"\\]+|\\.?|"{1,2}(?!"))*(?:"{3,5}|\Z)|'{3}(?:[^']+|'{1,2}(?!'))*(?:'{3,5}|\Z)"""
    r"""|"(?:[^"\\\n]+|\\.?)*"?|'[^'\n]*'?|\#[^\n]*"""
)
"""Strings and comments of TOML, closed or not: what is left has dots in keys, numbers and times only."""


class TypedPath(str):
    """A path that the caller typed: on the command line, or as an argument of a public function.

    Only a file that such a path names is ever executed. A path that stands in a file is a plain ``str``.
    """

    __slots__ = ()


class TaskFile(NamedTuple):
    """The content of a task file, and notes on keys that are not used.

    ``upstream`` is True for a runner's config. ``is_data`` is True for a file that is not executed: YAML, TOML, JSON.
    ``rows`` says how the rows of a task of lm-eval are read.
    """

    config: Section
    notes: tuple[Note, ...] = ()
    upstream: bool = False
    is_data: bool = False
    rows: LmEvalRows | None = None


def read_task_file(path: str, known: tuple[str, ...], abbr: str | None = None, roots: Sequence[str] = ()) -> TaskFile:
    """Return the content of a task file; its suffix says how it is read.

    ``known`` are the keys of a task, and so the variables that a Python file may set. ``abbr`` chooses among the
    datasets of a runner's config. ``roots`` are folders outside the file's own from which it may take further files.
    A Python file is executed only if ``path`` is a ``TypedPath``.

    Raises:
        TaskError: the file is missing, of unknown kind or malformed (with its line), or does not hold a mapping. Or it
            is Python, and the caller did not type its path.
    """
    suffix = os.path.splitext(path)[1].lower()
    yaml = partial(_yaml, roots=roots)
    readers: dict[str, Callable[[str], ConfigValue | TaskFile]] = {
        ".yaml": yaml, ".yml": yaml, ".toml": _toml, ".json": _json, ".py": lambda p: _python(p, known, abbr),
    }  # fmt: skip
    if suffix not in readers and os.path.exists(path):
        hint = f"give {', '.join(readers)}"
        raise TaskError(f"{shown(path)} is not a task file: unknown suffix {shown(suffix)}", hint)
    value = _read(path, readers.get(suffix, _text))
    if isinstance(value, TaskFile):
        return value
    if not isinstance(value, Mapping):
        found = "nothing" if value is None else "a list" if isinstance(value, list) else type(value).__name__
        rows = "give rows as JSON or CSV; for a task " if isinstance(value, list) else ""
        raise TaskError(f"{shown(path)} holds {found}", f"{rows}write a mapping of {', '.join(known)}")
    _check_numbers(value)
    return TaskFile(value, is_data=True)


def read_toml(path: str) -> Mapping[str, ConfigValue]:
    """Return the content of a TOML file, such as ``pyproject.toml``; the limits of task files hold for it.

    Raises:
        TaskError: the file is missing, too large or malformed.
    """
    return _read(path, _toml)


def _read(path: str, reader: Callable[[str], _T]) -> _T:
    """Return what a reader makes of a file. What the system and the decoding raise becomes a TaskError."""
    try:
        return reader(path)
    except FileNotFoundError:
        from mmprompt.datasets.dataset_file import path_hint  # noqa: PLC0415  # only for a fault

        raise TaskError(f"no such file: {shown(path)}", path_hint(path)) from None
    except OSError as error:
        raise TaskError(f"cannot read {shown(path)}: {error.strerror}", "check the path and its permissions") from None
    except UnicodeDecodeError as error:
        raise TaskError(f"{shown(path)} is not UTF-8 at byte {error.start}", "save it as UTF-8") from None
    except RecursionError:
        raise TaskError(f"{shown(path)} is nested too deeply", "flatten it") from None


def is_task_file(path: str) -> bool:
    """Return whether a path names a task and not a dataset: by its suffix, and for JSON by its keys."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix in {".yaml", ".yml", ".toml", ".py"}:
        return True
    if suffix != ".json" or not os.path.isfile(path) or os.path.getsize(path) > _LARGEST:
        return False
    with opened_input(path) as file:
        head = file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")
    if not head.startswith(b"{"):
        return False
    try:
        return bool({"infer_cfg", "dataset"} & json.loads(_text(path)).keys())
    except (TaskError, ValueError, RecursionError):
        return b'"infer_cfg"' in head or b'"dataset"' in head  # a faulty task: loading it reports the fault


def _text(path: str) -> str:
    """Return the text of a task file. One whose path the caller has not typed is a regular file."""
    if type(path) is not TypedPath:
        from mmprompt.datasets.side_files import require_regular  # noqa: PLC0415  # loads with the file

        require_regular(path, typed=True)
    with opened_input(path) as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise TaskError(
            "a file of settings is at most 1 MiB, and this is larger",
            "put rows into a file of their own (dataset.path)",
        )
    return data.decode("utf-8-sig")


def _yaml(path: str, *, roots: Sequence[str]) -> ConfigValue | TaskFile:
    """Read YAML: a task, or a file of lm-eval or lmms-eval, which its keys show."""
    from mmprompt.tasks.upstream import lm_eval  # noqa: PLC0415  # loads with the file
    from mmprompt.tasks.yaml_text import load_yaml  # noqa: PLC0415  # loads with the file

    text = _text(path)
    value = load_yaml(text, functions=True)
    if not isinstance(value, Mapping) or lm_eval.MARKS.isdisjoint(value) or not value.keys().isdisjoint(KEYS):
        return load_yaml(text) if "!function" in text else value
    return lm_eval.read(path, text, value, roots)


def _toml(path: str) -> Mapping[str, ConfigValue]:
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415  # only where a TOML file is read
    else:
        import tomli as tomllib  # noqa: PLC0415  # Python 3.10
    text = _text(path)
    if any(key.count(".") > _MOST_DOTS for key in re.split(r"[=\n,{}\[\]]", re.sub(_NO_KEYS, "", text))):
        # the parser keeps each beginning of a key: 40,000 dots take gigabytes
        raise malformed("TOML", f"a key with more than {_MOST_DOTS} dots", "flatten it", None, None)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).rpartition(" (at ")
        line, column = [int(number) for number in re.findall(r"\d+", place)] or (None, None)
        raise malformed("TOML", what if line else str(error), _HINT, line, column) from None
    except ValueError as error:
        raise unread_number(error) from None


def _json(path: str) -> ConfigValue:
    value: ConfigValue = parsed_json(_text(path))
    return value


def _check_numbers(config: ConfigValue) -> None:
    """Refuse NaN, infinity and integers beyond 64 bits, which no setting takes."""
    pending = [config]
    while pending:
        value = pending.pop()
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            raise TaskError(f"an integer of {value.bit_length()} bits", "give one of at most 64 bits")
        if isinstance(value, float) and not math.isfinite(value):
            raise TaskError(f"a number is {value}", "give a finite number, or put the text in quotes")
        if isinstance(value, (Mapping, list)):
            pending.extend(value.values() if isinstance(value, Mapping) else value)


def _python(path: str, known: tuple[str, ...], abbr: str | None) -> TaskFile:
    """Execute a Python file that the caller named: a task, or a dataset config of OpenCompass or AISBench."""
    import difflib  # noqa: PLC0415  # loads with the file

    from mmprompt.tasks.upstream.dataset_configs import choose_dataset, find_datasets, plain_config, upstream_task  # noqa: PLC0415  # they load with the file
    from mmprompt.tasks.upstream.execute import run_config  # noqa: PLC0415  # loads with the file

    if not isinstance(path, TypedPath):
        raise TaskError(f"{shown(path)} is Python, and another file names it", "type its path yourself to run it")
    variables, stub_texts = run_config(path)
    datasets = find_datasets(variables)
    own = variables.get("dataset")  # a runner's config may use this name, but only as a loop variable
    is_own = isinstance(own, (str, os.PathLike)) or (isinstance(own, Mapping) and own.keys() <= set(DATASET_KEYS))
    if datasets and not is_own:
        chosen = upstream_task(choose_dataset(datasets, abbr), stub_texts)
        unused = ", ".join([*chosen.unused, *(["media"] if "media" in variables else [])])
        notes = (Note("MM614", f"of {chosen.abbr} these keys are not used: {unused}"),) if unused else ()
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
