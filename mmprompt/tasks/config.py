"""What a task file may say, checked key by key."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mmprompt.errors import PolicyError, TaskError, nearest, shown
from mmprompt.media.changes import Changes, changes_of
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.reader import MODES

_RANGE = re.compile(r"\[?\s*(\d*)\s*:\s*(\d*)\s*(?::\s*([1-9]\d*)\s*)?\]?")
KEYS = ("dataset", "reader_cfg", "infer_cfg", "media", "model", "eval_cfg")
SCORERS = ("exact", "choice", "contains", "anls", "vqa")
ANSWER = "answer"
_DATASET_KEYS = ("path", "train", "format", "rows", "train_rows")
_READER_KEYS = (
    "input_columns", "output_column", "tagged_columns", "train_split", "test_split", "train_range", "test_range",
)  # fmt: skip
POLICY_KEYS = (
    "max_bytes",
    "max_seconds",
    "max_frames",
    "max_request_bytes",
    "max_request_media",
    "timeout",
    "isolate",
)
"""The fields of a policy that a task may set; its ``max_pixels`` are those to which pictures are scaled."""

_MEDIA_KEYS = ("mode", "roots", "policy", "fetch", "allow_domains", "read_also", *POLICY_KEYS)
_CHANGES = {**{name: name for name in Changes._fields if name != "mode"}, "image_mode": "mode"}
"""The key of each change: ``media.mode`` says how media are sent, so the mode of pictures has another."""
_NOT_ASKED = ("messages", "model", "stream")
_MODEL_KEYS = ("base_url", "model", "path", "meta_template", "media_placeholder", "generation")


class TaskConfig(NamedTuple):
    """A task's settings.

    ``output_column`` is the column that goes out as ``answer``; ``names_output`` tells that the task names it, and
    ``masked`` is the one that prompts hide, None where the task says that it has none. ``model_name`` and
    ``generation`` are what requests say to a server, ``scorer`` names one of ``SCORERS``.
    """

    dataset: Mapping[str, Any] | None
    input_columns: tuple[str, ...]
    output_column: str
    masked: str | None
    tagged_columns: tuple[str, ...] | None
    infer_cfg: Mapping[str, Any] | None
    media: Mapping[str, Any]
    meta_template: Any
    media_placeholder: Mapping[str, str]
    test_range: slice
    train_range: slice
    model_name: str | None
    generation: Mapping[str, Any]
    scorer: str | None = None
    names_output: bool = False


def task_config(config: Mapping[str, Any], dataset: Any, base: str) -> TaskConfig:
    """Check a task's mapping; ``dataset`` takes the place of its own, ``base`` is the folder of its relative paths.

    Raises:
        TaskError: an unknown key (with the nearest known one), or a value of the wrong kind.
    """
    _check_keys(config, KEYS, "the task")
    reader = _section(config, "reader_cfg", _READER_KEYS)
    model = _section(config, "model", _MODEL_KEYS)
    scorer = _section(config, "eval_cfg", ("scorer",)).get("scorer")
    if scorer is not None and scorer not in SCORERS:
        raise TaskError(f"unknown scorer {shown(scorer)}", nearest(scorer, SCORERS))
    masked = _name(reader.get("output_column", ANSWER), "reader_cfg.output_column") or None
    infer = config.get("infer_cfg")
    tagged = _names(reader["tagged_columns"], "reader_cfg.tagged_columns") if "tagged_columns" in reader else None
    return TaskConfig(
        _dataset(config.get("dataset"), base) if dataset is None else _dataset(dataset, ""),
        _names(reader.get("input_columns"), "reader_cfg.input_columns"),
        masked or ANSWER,
        masked,
        tagged,
        None if infer is None else _mapping(infer, "infer_cfg"),
        _media(config, base),
        model.get("meta_template"),
        _mapping(model.get("media_placeholder") or {}, "model.media_placeholder"),
        _range(reader.get("test_range"), "reader_cfg.test_range"),
        _range(reader.get("train_range"), "reader_cfg.train_range"),
        _name(model.get("model"), "model.model", "the model's name"),
        _generation(model),
        scorer,
        "output_column" in reader,
    )


def _generation(model: Mapping[str, Any]) -> Mapping[str, Any]:
    generation = _mapping(model.get("generation") or {}, "model.generation")
    for key in _NOT_ASKED:
        if key in generation:
            raise TaskError(f"model.generation holds '{key}', which is no setting of a reply", "leave it out")
    return generation


def _range(value: Any, place: str) -> slice:
    """Return a range of rows, given as a number of rows or as text: ``[10:20]``, ``[:100]``.

    Raises:
        TaskError: it is neither, or counts from the end, which a stream of rows does not know.
    """
    if value is None or value == "":
        return slice(None)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return slice(value)
    match = _RANGE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise TaskError(f"{place} is {shown(value)}", "give a number of rows, or a range such as '[0:100]'")
    return slice(*[int(number) if number else None for number in match.groups()])


def _dataset(config: Any, base: str) -> Mapping[str, Any] | None:
    """Return the dataset's section, its paths below ``base``."""
    if config is None:
        return None
    if isinstance(config, (str, os.PathLike)):
        config = {"path": config}
    if not isinstance(config, Mapping):
        raise TaskError(f"dataset is {type(config).__name__}", "give a file, or a mapping with path or rows")
    config = dict(config)
    _check_keys(config, _DATASET_KEYS, "dataset")
    for path, rows in (("path", "rows"), ("train", "train_rows")):
        if path in config and rows in config:
            raise TaskError(f"dataset has both '{path}' and '{rows}'", "keep one of them")
        if path not in config:
            continue
        if not isinstance(config[path], (str, os.PathLike)):
            raise TaskError(f"dataset.{path} is {type(config[path]).__name__}", "give the name of a file")
        name = os.fspath(config[path])
        config[path] = name if name == "-" else os.path.join(base, name)
    if config.get("path") == config.get("train") == "-":
        raise TaskError("dataset has path and train on standard input", "save one of them to a file")
    if "path" not in config and "rows" not in config:
        raise TaskError("the dataset names no path", "give 'path' or 'rows'")
    if not isinstance(config.get("format", ""), (str, type(None))):
        raise TaskError(f"dataset.format is {type(config['format']).__name__}", "give the name of a format")
    checked: Mapping[str, Any] = config
    return checked


def _media(config: Mapping[str, Any], base: str) -> Mapping[str, Any]:
    """Return the section ``media``, its roots below ``base``, and under ``changes`` the changes it asks for."""
    media = _mapping(config.get("media") or {}, "media")
    _check_keys(media, (*_MEDIA_KEYS, *_CHANGES), "media")
    mode = media.get("mode", MODES[0])
    if mode not in MODES:
        raise TaskError(f"unknown media.mode {shown(mode)}", nearest(mode, MODES))
    roots = media.get("roots") or ()
    roots = [roots] if isinstance(roots, (str, os.PathLike)) else roots
    if not isinstance(roots, (list, tuple)) or not all(isinstance(root, (str, os.PathLike)) for root in roots):
        raise TaskError("media.roots is no list of folders", "give a folder, or a list of them")
    if not isinstance(media.get("fetch", False), bool):
        raise TaskError(f"media.fetch is {shown(media['fetch'])}", "give true or false")
    hosts = media.get("allow_domains") or ()
    hosts = [hosts] if isinstance(hosts, str) else hosts
    if not isinstance(hosts, (list, tuple)) or not all(isinstance(host, str) for host in hosts):
        raise TaskError("media.allow_domains is no list of hosts", "give a host, or a list of them")
    _check_policy(media, hosts)
    folders = [os.path.join(base, root) for root in roots]
    return {**media, "mode": mode, "roots": folders, "allow_domains": list(hosts), "changes": _changes(media)}


def _check_policy(media: Mapping[str, Any], hosts: Sequence[str]) -> None:
    """Refuse what no policy could be made of, whatever is given beside the task later."""
    name = _name(media.get("policy"), "media.policy", "its name") or "default"
    limits = {key: media[key] for key in POLICY_KEYS if key in media}
    try:
        also = media.get("read_also") or ()
        if not isinstance(also, (str, list, tuple)):
            raise TaskError("media.read_also is no list of formats", "give a format, or a list of them")
        MediaPolicy.preset(name, allow_domains=hosts, read_also=also, **limits)
    except PolicyError as error:
        raise TaskError(f"media: {error.what}", error.hint) from None


def _changes(media: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes of media that are asked for, by the names of ``Changes``."""
    changes = {name: media[key] for key, name in _CHANGES.items() if key in media}
    try:
        changes_of(changes)
    except TaskError as error:
        raise TaskError(f"media: {error.what}".replace("media: mode ", "media: image_mode "), error.hint) from None
    return changes


def _section(config: Mapping[str, Any], name: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    section = _mapping(config.get(name) or {}, name)
    _check_keys(section, known, name)
    return section


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TaskError(f"{name} is {type(value).__name__}", "give a mapping")
    return value


def _check_keys(mapping: Mapping[str, Any], known: tuple[str, ...], name: str) -> None:
    for key in mapping:
        if key not in known:
            raise TaskError(f"unknown key '{key}' in {name}", nearest(key, known))


def _name(value: Any, place: str, wanted: str = "the name of one column") -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TaskError(f"{place} is {type(value).__name__}", f"give {wanted}")


def _names(value: Any, place: str) -> tuple[str, ...]:
    """Return column names given as a list, or as one string with blanks between them."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(value.split())
    names = list(value) if isinstance(value, Iterable) else [None]
    if not all(isinstance(name, str) for name in names):
        raise TaskError(f"{place} is no list of column names", "give a list, or names separated by blanks")
    return tuple([str(name) for name in names])
