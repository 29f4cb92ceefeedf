"""The sections of a task file, checked key by key."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, cast

from mmprompt.datasets.store_url import StoreURL
from mmprompt.errors import PolicyError, TaskError, nearest, shown
from mmprompt.icl.slot_rules import Columns
from mmprompt.media.changes import Changes, changes_of
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.reader import MODES
from mmprompt.tasks.section_values import ConfigValue, list_of, names_of, range_of, text_of

if TYPE_CHECKING:
    from mmprompt.meta_template.meta_template import Meta
    from mmprompt.targets.part_writer import WireValue

Section = Mapping[str, ConfigValue]

KEYS = ("dataset", "reader_cfg", "infer_cfg", "media", "model", "eval_cfg")
SCORERS = ("exact", "choice", "contains", "anls", "vqa", "number")
ANSWER = "answer"
DATASET_KEYS = (
    "path", "train", "format", "rows", "train_rows", "key", "join", "columns", "splits", "encoding",
    "drop_last_assistant",
)  # fmt: skip
_READER_KEYS = (
    "input_columns", "output_column", "tagged_columns", "train_split", "test_split", "train_range", "test_range",
    "optional_columns", "literal_slots", "missing",
)  # fmt: skip
_POLICY_KEYS = (
    "max_bytes", "max_side_pixels", "max_seconds", "max_frames", "max_request_bytes", "max_request_media", "timeout",
    "isolate",
)  # fmt: skip
"""The fields of a policy that a task may set. In a task, ``max_pixels`` is a change: larger pictures are scaled."""

_MEDIA_KEYS = ("mode", "roots", "policy", "fetch", "allow_domains", "read_also", *_POLICY_KEYS)
CHANGE_KEYS = {**{name: name for name in Changes._fields if name != "mode"}, "image_mode": "mode"}
"""The key of each change. ``media.mode`` says how media are sent, so a picture's mode is ``image_mode``."""

_NOT_GENERATION = (
    "messages", "model", "stream", "system", "contents", "system_instruction", "extra_body", "extra_headers", "timeout",
)  # fmt: skip
_MODEL_KEYS = ("base_url", "model", "path", "meta_template", "media_placeholder", "generation")


class DatasetSection(TypedDict, total=False):
    """The section ``dataset``: files, or rows given in Python.

    ``columns`` maps column to role. ``splits`` is the split of ``path``, or a mapping with those of ``path`` and
    ``train``. With ``drop_last_assistant`` the closing assistant message of each chat is its answer.
    """

    path: str | list[str]
    train: str | list[str]
    format: str | None
    key: str | None
    join: list[str]
    columns: Mapping[str, str]
    splits: Mapping[str, str]
    encoding: str | None
    drop_last_assistant: bool
    rows: Iterable[Mapping[str, object]]
    train_rows: Iterable[Mapping[str, object]]


class MediaSection(TypedDict):
    """The section ``media`` as checked, with the keys of the task.

    ``limits`` are the fields of a policy that the task sets, and ``changes`` the changes that it asks for, by the names
    of ``Changes``.
    """

    mode: str
    roots: list[str]
    policy: str
    fetch: bool
    allow_domains: list[str]
    read_also: list[str]
    limits: Mapping[str, Any]
    changes: Mapping[str, Any]


class TaskConfig(NamedTuple):
    """A task's settings.

    ``output_column`` is the column that goes out as ``answer``. ``names_output`` is True if the task names it.
    ``masked`` is the column that prompts hide, None if the task says that it has no answer. Requests send
    ``model_name`` and ``generation`` to a server. ``scorer`` is one of ``SCORERS``; ``index_base`` is the number of the
    first choice, for answers that are numbers. With ``strict_slots`` each slot needs a column, except those of
    ``optional_columns`` and ``literal_slots``. A run asks the server ``base_url``, or the local model in the folder
    ``model_path``. ``is_data``: the task was read from YAML, TOML or JSON, which may come from a stranger.
    """

    dataset: DatasetSection
    input_columns: tuple[str, ...]
    output_column: str
    masked: str | None
    tagged_columns: tuple[str, ...] | None
    infer_cfg: Section | None
    media: MediaSection
    meta_template: Meta | None
    media_placeholder: Mapping[str, str]
    test_range: slice
    train_range: slice
    model_name: str | None
    generation: Mapping[str, WireValue]
    scorer: str | None = None
    names_output: bool = False
    optional_columns: frozenset[str] = frozenset()
    literal_slots: frozenset[str] = frozenset()
    strict_slots: bool = True
    index_base: int | None = None
    base_url: str | None = None
    model_path: str | None = None
    is_data: bool = False

    @property
    def columns(self) -> Columns:
        """What ``reader_cfg`` says of the columns."""
        tagged = None if self.tagged_columns is None else frozenset(self.tagged_columns)
        named = (self.input_columns, self.output_column, self.masked, tagged)
        return Columns(*named, self.optional_columns, self.literal_slots, self.strict_slots)


def task_config(config: Section, dataset: ConfigValue, base: str, *, upstream: bool = False) -> TaskConfig:
    """Check a task's mapping. ``dataset`` replaces the task's own; relative paths of the task begin at ``base``.

    In a runner's own config (``upstream``) a slot without a column stays as it is written.

    Raises:
        TaskError: an unknown key (with the nearest known one), or a value of the wrong kind.
    """
    _check_keys(config, KEYS, "the task")
    reader = _section(config, "reader_cfg", _READER_KEYS)
    model = _section(config, "model", _MODEL_KEYS)
    evaluation = _section(config, "eval_cfg", ("scorer", "index_base"))
    scorer, index_base = evaluation.get("scorer"), evaluation.get("index_base")
    if scorer is not None and (not isinstance(scorer, str) or scorer not in SCORERS):
        raise TaskError(f"unknown scorer {shown(scorer)}", nearest(scorer, SCORERS))
    if index_base is not None and (type(index_base) is not int or index_base not in (0, 1)):
        raise TaskError(f"eval_cfg.index_base is {shown(index_base)}", "give 0 or 1: the number of the first choice")
    model_path = text_of(model.get("path"), "model.path", "the folder of a model")
    masked = text_of(reader.get("output_column", ANSWER), "reader_cfg.output_column") or None
    infer = config.get("infer_cfg")
    tagged = names_of(reader["tagged_columns"], "reader_cfg.tagged_columns") if "tagged_columns" in reader else None
    return TaskConfig(
        _dataset(config.get("dataset"), base) if dataset is None else _dataset(dataset, ""),
        names_of(reader.get("input_columns"), "reader_cfg.input_columns"),
        masked or ANSWER,
        masked,
        tagged,
        None if infer is None else _mapping(infer, "infer_cfg"),
        _media(config, base),
        cast("Meta | None", model.get("meta_template")),
        cast("Mapping[str, str]", _mapping(model.get("media_placeholder") or {}, "model.media_placeholder")),
        range_of(reader.get("test_range"), "reader_cfg.test_range"),
        range_of(reader.get("train_range"), "reader_cfg.train_range"),
        text_of(model.get("model"), "model.model", "the model's name"),
        _generation(model),
        scorer,
        "output_column" in reader,
        frozenset(names_of(reader.get("optional_columns"), "reader_cfg.optional_columns")),
        frozenset(names_of(reader.get("literal_slots"), "reader_cfg.literal_slots")),
        _missing(reader, upstream=upstream) == "error",
        index_base,
        text_of(model.get("base_url"), "model.base_url", "the address of a server"),
        None if model_path is None else os.path.join(base, model_path),
    )


def _missing(reader: Section, *, upstream: bool) -> str:
    value = reader.get("missing", "keep" if upstream else "error")
    if value not in ("error", "keep"):
        raise TaskError(f"unknown reader_cfg.missing {shown(value)}", nearest(value, ("error", "keep")))
    return str(value)


def _generation(model: Section) -> Mapping[str, WireValue]:
    generation = _mapping(model.get("generation") or {}, "model.generation")
    for key in _NOT_GENERATION:
        if key in generation:
            raise TaskError(f"model.generation holds '{key}', which is not a generation setting", "remove it")
    return cast("Mapping[str, WireValue]", generation)


def _dataset(config: ConfigValue, base: str) -> DatasetSection:
    """Return the dataset's section, its paths below ``base``."""
    if config is None:
        return {}
    if isinstance(config, (str, os.PathLike)):
        config = {"path": config}
    if not isinstance(config, Mapping):
        hint = 'give a file, or a mapping with path or rows, such as {"rows": rows}'
        raise TaskError(f"dataset is {type(config).__name__}", hint)
    section = dict(config)
    _check_keys(section, DATASET_KEYS, "dataset")
    for key, rows in (("path", "rows"), ("train", "train_rows")):
        if key in section and rows in section:
            raise TaskError(f"dataset has both '{key}' and '{rows}'", "keep one of them")
        if key in section:
            path = section[key]
            if not isinstance(path, (str, os.PathLike, list)) or path == []:
                raise TaskError(f"dataset.{key} is {type(path).__name__}", "give the name of a file")
            listed = list_of(path, f"dataset.{key}", "file")
            paths = [p if p == "-" or isinstance(p, StoreURL) else os.path.join(base, p) for p in listed]
            section[key] = paths if isinstance(path, list) else paths[0]
    if section.get("path") == section.get("train") == "-":
        raise TaskError("dataset has path and train on standard input", "save one of them to a file")
    if "path" not in section and "rows" not in section:
        raise TaskError("the dataset names no path", "give 'path' or 'rows'")
    for key in ("format", "key", "encoding"):
        text_of(section.get(key), f"dataset.{key}", f"the name of {'an' if key == 'encoding' else 'a'} {key}")
    if not isinstance(drops := section.get("drop_last_assistant", False), bool):
        raise TaskError(f"dataset.drop_last_assistant is {shown(drops)}", "give true or false")
    section["join"] = [os.path.join(base, name) for name in list_of(section.get("join"), "dataset.join", "FILE:COLUMN")]
    section["columns"] = _mapping(section.get("columns") or {}, "dataset.columns")
    splits = section.get("splits") or {}
    by_set = {"path": splits} if isinstance(splits, str) else _mapping(splits, "dataset.splits")
    _check_keys(by_set, ("path", "train"), "dataset.splits")
    section["splits"] = by_set
    return cast("DatasetSection", section)


def _media(config: Section, base: str) -> MediaSection:
    """Return the section ``media``, its roots below ``base``."""
    media = _section(config, "media", (*_MEDIA_KEYS, *CHANGE_KEYS))
    mode = media.get("mode", MODES[0])
    if not isinstance(mode, str) or mode not in MODES:
        raise TaskError(f"unknown media.mode {shown(mode)}", nearest(mode, MODES))
    fetch = media.get("fetch", False)
    if not isinstance(fetch, bool):
        raise TaskError(f"media.fetch is {shown(fetch)}", "give true or false")
    section: MediaSection = {
        "mode": mode,
        "roots": [os.path.join(base, root) for root in list_of(media.get("roots"), "media.roots", "folder")],
        "policy": text_of(media.get("policy"), "media.policy", "its name") or "default",
        "fetch": fetch,
        "allow_domains": list_of(media.get("allow_domains"), "media.allow_domains", "host"),
        "read_also": list_of(media.get("read_also"), "media.read_also", "format"),
        "limits": {key: media[key] for key in _POLICY_KEYS if key in media},
        "changes": {name: media[key] for key, name in CHANGE_KEYS.items() if key in media},
    }
    hosts, formats = section["allow_domains"], section["read_also"]
    try:
        MediaPolicy.preset(section["policy"], allow_domains=hosts, read_also=formats, **section["limits"])
        changes_of(section["changes"])
    except (PolicyError, TaskError) as error:
        raise TaskError(f"media: {error.what}".replace("media: mode ", "media: image_mode "), error.hint) from None
    return cast("MediaSection", {**media, **section})


def _section(config: Section, name: str, known: tuple[str, ...]) -> Section:
    section = _mapping(config.get(name) or {}, name)
    _check_keys(section, known, name)
    return section


def _mapping(value: ConfigValue, name: str) -> Section:
    if not isinstance(value, Mapping):
        raise TaskError(f"{name} is {type(value).__name__}", "give a mapping")
    return value


def _check_keys(mapping: Section, known: tuple[str, ...], name: str) -> None:
    for key in mapping:
        if key not in known:
            hint = f"write it under dataset: dataset: {{{key}: …}}" if key in DATASET_KEYS else nearest(key, known)
            if known is KEYS and mapping.keys().isdisjoint((*KEYS, *DATASET_KEYS)):
                hint += "; run mmprompt init DATASET to write a task"
            raise TaskError(f"unknown key '{key}' in {name}", hint)
