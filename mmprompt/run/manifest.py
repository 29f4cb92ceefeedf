"""The manifest of a journal: what was asked of which model and how. It never holds a key."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

from mmprompt._version import __version__
from mmprompt.datasets.openai_chat import LastAssistant
from mmprompt.datasets.side_files import side_bytes, side_output
from mmprompt.datasets.store_url import StoreURL
from mmprompt.errors import TaskError, shown
from mmprompt.render.settings import request_settings
from mmprompt.targets.json_files import ANY, COUNT, FILE, TEXT, Form, Kind, checked_json
from mmprompt.targets.json_values import JSONValue
from mmprompt.targets.wire_json import with_text
from mmprompt.tasks.task import Task

VERSION = 1
_LARGEST_HASHED = 1 << 30
"""Bytes. The files of a larger dataset are not hashed."""

_BLOCK = 1 << 20
_FIXED = ("model", "target", "options", "inferencer", "scorer", "index_base")
_ROWS = ("key", "split", "drop_last_assistant")
"""The options of datasets, beside ``map_columns``, with which a run may not change."""

_FORM: Form = {
    "version": Kind(
        f"{VERSION}, which this version of mmprompt reads", frozenset((int,)), lambda value: value == VERSION
    ),
    "task": (FILE, None),
    "dataset": (
        {"path": (FILE, None), "size": (COUNT, None), "sha256": (TEXT, None), "read": ({...: ANY}, None)},
        None,
    ),
    **dict.fromkeys(("model", "target", "inferencer", "scorer", "base_url"), (TEXT, None)),
    **dict.fromkeys(("index_base", "limit", "repeats"), (COUNT, None)),
    "options": ({...: ANY}, None),
    "headers": ({...: TEXT}, None),
}
"""What a manifest may hold; any of it may be missing."""


class Manifest(NamedTuple):
    """What a run is about. ``options`` are the generation settings of the task with those of the run laid over them.

    ``base_url`` is the address of the server, None for a model without one; it has no user information and no query.
    ``task`` and the dataset's ``path`` are absolute. ``dataset`` has ``path``, ``size`` in bytes, and ``sha256`` if it
    is not too large; the values of rows that have no file are None. Its ``read`` are the options that said how to read
    them, such as ``map_columns``, if there were any; of these the answer's column may change. ``inferencer`` is its
    name, of a dialogue with its mode. ``scorer`` is None if each row has the one that goes with it. ``headers`` maps
    headers to the environment variables with their values. ``limit``, ``repeats``, ``headers`` and ``base_url`` may
    change when a run goes on; the others may not.
    """

    task: str | None
    dataset: Mapping[str, JSONValue]
    model: str
    target: str
    options: Mapping[str, JSONValue]
    inferencer: str
    scorer: str | None = None
    index_base: int | None = None
    limit: int | None = None
    repeats: int = 1
    headers: Mapping[str, str] = {}
    base_url: str | None = None

    def save(self, journal: str) -> None:
        """Write the manifest beside a journal, whole or not at all."""
        path = manifest_path(journal)
        text = json.dumps({"version": VERSION, "mmprompt": __version__, **self._asdict()}, ensure_ascii=False, indent=1)
        with side_output(path) as writer:
            writer.write([f"{text}\n".encode("utf-8", "backslashreplace")])

    def require_same(self, journal: str) -> None:
        """Refuse to go on with a journal whose manifest says otherwise.

        Raises:
            TaskError: what differs, and what to type.
        """
        before = read_manifest(journal)
        otherwise = "write to another file with -o, or begin anew with --overwrite"
        now = json.loads(json.dumps(self._asdict()))
        for name in _FIXED:
            if before.get(name) == now[name]:
                continue
            hint = otherwise
            if name in ("scorer", "index_base"):
                given = f" --scorer {self.scorer}" if self.scorer else ""
                hint = f"score it anew without a model: mmprompt score {journal}{given}; or {otherwise}"
            what = f"{shown(journal)} was begun with {_difference(name, before.get(name), now[name])}"
            raise TaskError(what, hint)
        if not _same_dataset(before.get("dataset"), self.dataset):
            path = self.dataset.get("path")
            raise TaskError(f"{shown(journal)} was begun with another dataset than {shown(path)}", otherwise)
        read, asked = _rows_asked(before.get("dataset")), _rows_asked(now["dataset"])
        if read != asked:
            raise TaskError(f"{shown(journal)} was begun with {_difference('read', read, asked)}", otherwise)


def manifest_path(journal: str) -> str:
    """Return the name of a journal's manifest."""
    return f"{journal}.manifest.json"


def read_manifest(journal: str) -> dict[str, JSONValue]:
    """Return the manifest of a journal.

    Raises:
        TaskError: there is none, or it is not one that this version can read.
    """
    path = manifest_path(journal)
    try:
        found: dict[str, JSONValue] = checked_json(
            side_bytes(path), _FORM, path, "put it right, or begin anew with --overwrite"
        )
    except FileNotFoundError:
        hint = "put it back, or begin anew: mmprompt run --overwrite"
        raise TaskError(f"{shown(journal)} has no manifest: {shown(path)} is missing", hint) from None
    return found


def manifest_of(
    task: Task,
    *,
    path: str | None,
    model: str,
    target: str,
    options: Mapping[str, JSONValue],
    scorer: str | None = None,
    limit: int | None = None,
    repeats: int = 1,
    headers: Mapping[str, str] | None = None,
    base_url: str | None = None,
) -> Manifest:
    """Return the manifest of a run; ``path`` is the task's file."""
    own = request_settings(task, target)
    shared: dict[str, JSONValue] = {key: with_text(value) for key, value in own.generation.items()}
    if own.max_tokens is not None:
        shared["max_tokens"] = list(own.max_tokens) if isinstance(own.max_tokens, tuple) else own.max_tokens
    if own.stop:
        shared["stop"] = list(own.stop)
    files = [] if task.dataset is None else [name for name in task.dataset.files if os.path.isfile(name)]
    return Manifest(
        None if path is None else os.path.abspath(path),
        _dataset_facts(None if task.dataset is None else task.dataset.path, files) | _reading(task, path),
        model,
        target,
        {**shared, **options},
        inferencer_name(task),
        scorer,
        task.config.index_base,
        limit,
        repeats,
        headers or {},
        base_url,
    )


def inferencer_name(task: Task) -> str:
    """Return the name of a task's inferencer, of a dialogue with its mode: ``MultiTurnGenInferencer every``."""
    if task.assembly is None:
        return "GenInferencer"
    return " ".join(filter(None, (task.assembly.inferencer, task.assembly.infer_mode)))


def _dataset_facts(path: str | None, files: list[str]) -> dict[str, JSONValue]:
    size = sum(map(os.path.getsize, files)) if files else None
    return {
        "path": None
        if path in (None, "-")
        else str(path)
        if isinstance(path, StoreURL)
        else os.path.abspath(str(path)),
        "size": size,
        "sha256": None if size is None or size > _LARGEST_HASHED else _hash(files),
    }


def _reading(task: Task, path: str | None) -> dict[str, JSONValue]:
    """Return how the rows were read, as far as no task file says it; nothing if they were read as they are."""
    options = {} if task.dataset is None or path is not None else task.dataset.options
    if task.dataset is not None and isinstance(task.dataset.change, LastAssistant):
        options["drop_last_assistant"] = True
    return {"read": options} if options else {}


def _hash(files: Iterable[str]) -> str:
    digest = sha256()
    for name in files:
        with open(name, "rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()


def _same_dataset(before: JSONValue, now: Mapping[str, JSONValue]) -> bool:
    """Return whether a dataset has the name or the content that it had."""
    if not isinstance(before, Mapping):
        return False
    return before.get("path") == now["path"] or (now["sha256"] is not None and before.get("sha256") == now["sha256"])


def _rows_asked(dataset: JSONValue) -> dict[str, JSONValue]:
    """Return the options that say what is asked. Where the answers come from may change: nothing is asked anew."""
    read = dataset.get("read") if isinstance(dataset, Mapping) else None
    given = read if isinstance(read, Mapping) else {}
    roles = given.get("map_columns")
    asked = {c: role for c, role in roles.items() if role != "answer"} if isinstance(roles, Mapping) else {}
    return {"--map": asked or None, **{f"--{name.replace('_', '-')}": given.get(name) for name in _ROWS}}


def _difference(name: str, before: JSONValue, now: JSONValue) -> str:
    """Return what differs: of settings those that do."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        names = [key for key in dict.fromkeys([*before, *now]) if before.get(key) != now.get(key)]
        if names:
            return ", ".join(f"{key} {_said(before.get(key))}, now {_said(now.get(key))}" for key in names)
    return f"{name.replace('_', ' ')} {_said(before)}, now {_said(now)}"


def _said(value: JSONValue) -> str:
    if isinstance(value, str):
        return shown(value)
    return "unset" if value is None else shown(json.dumps(value)).strip("'")
