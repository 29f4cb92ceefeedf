"""The datasets that a config of OpenCompass or AISBench lists, each as the sections of a task.

    gsm8k_datasets = [dict(abbr='gsm8k', type=…, path=…, reader_cfg=dict(…), infer_cfg=dict(…), eval_cfg=…)]

A config does not hold the rows: the caller gives them.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast

from mmprompt.errors import TaskError, nearest, shown
from mmprompt.icl.types import CHAT, INFERENCERS, short_name
from mmprompt.tasks.config import Section
from mmprompt.tasks.section_values import ConfigValue
from mmprompt.tasks.upstream.stubs import RunnerStub, UpstreamValue

_READER_KEYS = ("input_columns", "output_column", "train_split", "test_split", "train_range", "test_range")
"""The keys of ``reader_cfg`` that a task uses."""
_ROW_SETTINGS = ("max_out_len", "timestamp")
"""Settings of a single row. AISBench's configs list them among the input columns; rows may lack them."""
_DEPTH = 50
_DIGITS = 6
_SHOWN = 20


class UpstreamDataset(NamedTuple):
    """One dataset of a config, unchanged; ``place`` is its variable and index."""

    abbr: str
    place: str
    config: Mapping[str, UpstreamValue]


class UpstreamTask(NamedTuple):
    """The sections of a task, as plain data: a class in them is its short name.

    ``unused`` are the keys that a task does not use, such as ``path`` and ``reader_cfg.type``, in order.
    """

    abbr: str
    reader_cfg: Section
    infer_cfg: Section
    unused: tuple[str, ...]


def find_datasets(variables: Mapping[str, UpstreamValue]) -> list[UpstreamDataset]:
    """Return the datasets in a config's lists ``datasets`` and ``…_datasets``, else in its other lists, each once."""
    lists = {k: v for k, v in variables.items() if isinstance(v, (list, tuple)) and not k.startswith("_")}
    usual = {k: v for k, v in lists.items() if k == "datasets" or k.endswith("_datasets")}
    return _datasets_in(usual, {"infer_cfg", "reader_cfg", "abbr"}) or _datasets_in(lists, {"infer_cfg"})


def _datasets_in(lists: Mapping[str, Sequence[UpstreamValue]], keys: set[str]) -> list[UpstreamDataset]:
    """Return the datasets in lists: the mappings with one of these keys."""
    found: list[UpstreamDataset] = []
    by_abbr: dict[str | None, list[UpstreamDataset]] = {}  # equal configs have the same abbr
    for name, value in lists.items():
        for number, config in enumerate(value):
            if not isinstance(config, Mapping) or not keys & set(config):
                continue
            abbr = config.get("abbr")
            alike = by_abbr.setdefault(abbr if isinstance(abbr, str) else None, [])
            if not any(config is other.config or _same(config, other.config) for other in alike):
                place = f"{name}[{number}]"
                alike.append(UpstreamDataset(_abbr(config, place), place, config))
                found.append(alike[-1])
    return found


def choose_dataset(datasets: Sequence[UpstreamDataset], abbr: str | None = None) -> UpstreamDataset:
    """Return the dataset that ``abbr`` names: by its abbr, else by its number from 1. Without ``abbr``, the only one.

    Raises:
        TaskError: the config lists no dataset, not exactly one of that name, or several and no ``abbr`` is given.
    """
    if not datasets:
        raise TaskError("the config lists no dataset", "set a variable that ends in _datasets to a list of dicts")
    if abbr is None:
        if len(datasets) == 1:
            return datasets[0]
        raise TaskError(f"the config lists {len(datasets)} datasets", f"choose one by its abbr: {_listed(datasets)}")
    chosen = [d for d in datasets if d.abbr == abbr]
    if not chosen and abbr.isdecimal() and len(abbr) < _DIGITS and 0 < int(abbr) <= len(datasets):
        return datasets[int(abbr) - 1]
    if not chosen:
        close = difflib.get_close_matches(abbr, [d.abbr for d in datasets], n=1)
        hint = nearest(abbr, close) if close else f"choose one of {_listed(datasets)}"
        raise TaskError(f"the config lists no dataset {shown(abbr)}", hint)
    if len(chosen) > 1:
        places = ", ".join(f"{number} ({d.place})" for number, d in enumerate(datasets, 1) if d.abbr == abbr)
        raise TaskError(f"the config lists several datasets {shown(abbr)}", f"choose one by its number: {places}")
    return chosen[0]


def upstream_task(dataset: UpstreamDataset, stub_texts: Collection[str] = ()) -> UpstreamTask:
    """Return the sections of a task that a dataset holds.

    ``stub_texts`` are the texts that stubs were formatted as, from ``run_config``.

    Raises:
        TaskError: it has no ``infer_cfg``, or its templates use a value that only the runner knows.
    """
    config = dataset.config
    sections: dict[str, Mapping[str, UpstreamValue]] = {}
    for name in ("reader_cfg", "infer_cfg"):
        section = config.get(name, {} if name == "reader_cfg" else None)
        if not isinstance(section, Mapping):
            has = "no" if section is None else f"{type(section).__name__} as"
            what = f"dataset {shown(dataset.abbr)} has {has} {name}"
            raise TaskError(what, f"give {name}, a dict").located(template=dataset.place)
        sections[name] = section
    reader = {k: v for k, v in sections["reader_cfg"].items() if k in _READER_KEYS}
    unused = [str(k) for k in config if k not in ("abbr", *sections)]
    unused += [f"reader_cfg.{k}" for k in sections["reader_cfg"] if k not in _READER_KEYS]
    unused += [f"reader_cfg.input_columns.{name}" for name in _take_settings(reader)]
    place = f"{dataset.place}.infer_cfg"
    columns = cast("Section", plain_config(reader, f"{dataset.place}.reader_cfg", stub_texts))
    given = cast("Section", plain_config(sections["infer_cfg"], place, stub_texts))
    infer, more = task_infer_cfg(given, columns, place)
    return UpstreamTask(dataset.abbr, columns, infer, (*unused, *more))


def _take_settings(reader: dict[str, UpstreamValue]) -> list[str]:
    """Remove the settings of a row from the input columns of a ``reader_cfg``, and return them."""
    given = reader.get("input_columns")
    columns = given.split() if isinstance(given, str) else given if isinstance(given, (list, tuple)) else ()
    settings = [name for name in _ROW_SETTINGS if name in columns]
    if settings:
        reader["input_columns"] = [name for name in columns if name not in settings]
    return settings


def plain_config(
    config: UpstreamValue, place: str, stub_texts: Collection[str] = (), depth: int = _DEPTH
) -> ConfigValue:
    """Return a copy of a config's nested data in which classes are their short names.

    ``stub_texts`` as in ``upstream_task``; ``place`` is named in errors.

    Raises:
        TaskError: a value, or a text with a value in it, that only the runner knows; or deeper nesting than ``depth``.
    """
    if not depth:
        raise TaskError("the config is nested too deeply", "remove the circle if it refers to itself").located(
            template=place
        )

    def copy(value: UpstreamValue, place: str) -> ConfigValue:
        return plain_config(value, place, stub_texts, depth - 1)

    if isinstance(config, Mapping):
        return {
            cast("str", copy(k, place)): (
                v.short if k == "type" and isinstance(v, RunnerStub) else copy(v, f"{place}.{k}")
            )
            for k, v in config.items()
        }
    if isinstance(config, (list, tuple)):
        items = [copy(v, f"{place}[{n}]") for n, v in enumerate(config)]
        return items if isinstance(config, list) else tuple(items)
    if isinstance(config, RunnerStub):
        raise _unknown(config.dotted, place)
    if isinstance(config, str) and (text := next((t for t in stub_texts if t in config), None)):
        raise _unknown(text[1:-1], place)
    return cast("ConfigValue", config)


def _unknown(dotted: str, place: str) -> TaskError:
    package = dotted.partition(".")[0]
    what = f"the value of {dotted} is not known: a config is read without {package}"
    return TaskError(what, "write the value into the config").located(template=place)


def _abbr(config: Mapping[str, UpstreamValue], place: str) -> str:
    """Return the name of a dataset: its abbr, else the last word of its path, else its place."""
    for key in ("abbr", "path"):
        if isinstance(config.get(key), str) and config[key]:
            return str(config[key]) if key == "abbr" else os.path.basename(str(config[key]).rstrip("/"))
    return place


def _same(one: Mapping[str, UpstreamValue], other: Mapping[str, UpstreamValue]) -> bool:
    """Return whether two datasets are equal and have an abbr; one may be a copy of the other."""
    if one.get("abbr") is None or one.get("abbr") != other.get("abbr"):
        return False
    try:
        return bool(one == other)
    except (TypeError, ValueError, RecursionError):  # arrays, circles
        return False


def _listed(datasets: Sequence[UpstreamDataset]) -> str:
    names = [d.abbr for d in datasets]
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


_SECTIONS = ("ice_template", "prompt_template", "retriever", "inferencer")
_OTHER_RUNS = ("multiround", "gen_field_replace_token", "min_out_len", "fix_id_list")
"""Arguments of inferencers that change what the model is asked."""

_GENERATION = ("temperature",)
_DIALOGUE = {"begin", "round", "end"}


def task_infer_cfg(infer: Mapping[str, Any], reader: Section, place: str) -> tuple[dict[str, Any], list[str]]:
    """Return the ``infer_cfg`` of a task for that of a config, and the names of the keys that it does not use.

    ``max_out_len`` beside the inferencer and ``temperature`` in it are settings of the requests.

    Raises:
        TaskError: an argument changes what the model is asked, and a task has no such setting.
    """
    kept: dict[str, Any] = {key: value for key, value in infer.items() if key in _SECTIONS}
    unused = [f"infer_cfg.{key}" for key in infer if key not in _SECTIONS]
    given = kept.get("inferencer")
    if not isinstance(given, Mapping) or (name := short_name(given.get("type"))) not in INFERENCERS:
        return kept, unused  # the error of an unknown type comes where the task is compiled
    known = (*INFERENCERS[name], "type")
    for key in _OTHER_RUNS:
        if given.get(key):
            what = (
                f"{name} with {key}={shown(given[key])} changes what the model is asked, and a task has no such setting"
            )
            raise TaskError(what, f"remove {key}").located(template=f"{place}.inferencer")
    inferencer = {key: value for key, value in given.items() if key in known}
    others = [key for key in given if key not in known]
    if "generation_kwargs" in known:
        settings = {key: given[key] for key in others if key in _GENERATION}
        others = [key for key in others if key not in settings]
        if settings:
            inferencer["generation_kwargs"] = {**settings, **(given.get("generation_kwargs") or {})}
        if infer.get("max_out_len") is not None and "max_out_len" not in inferencer:
            inferencer["max_out_len"] = infer["max_out_len"]
            unused.remove("infer_cfg.max_out_len")
    kept["inferencer"] = inferencer
    if name == CHAT:
        kept["prompt_template"] = _turn_template(kept, reader)
        kept.pop("ice_template", None)
    return kept, unused + [f"infer_cfg.inferencer.{key}" for key in others]


def _turn_template(infer: Mapping[str, Any], reader: Section) -> Any:
    """Return the template of a chat's turns: the config's own, with the answer as the model's words.

    Without one, the only input column is what the user says.
    """
    answer = f"{{{reader['output_column']}}}" if reader.get("output_column") else ""
    reply = {"role": "BOT", "prompt": answer}
    columns = reader.get("input_columns")
    names = columns.split() if isinstance(columns, str) else columns
    given = infer.get("prompt_template")
    template = given.get("template") if isinstance(given, Mapping) else given
    if template is None and isinstance(names, (list, tuple)) and len(names) == 1:
        template = f"{{{names[0]}}}"
    if isinstance(template, str):
        template = {"round": [{"role": "HUMAN", "prompt": template}]}
    if not isinstance(template, Mapping) or not set(template) <= _DIALOGUE or not isinstance(template["round"], list):
        return given
    said = [item.get("role") for item in template["round"] if isinstance(item, Mapping)]
    turns = template["round"] if "BOT" in said else [*template["round"], reply]
    return {"type": "MultiTurnPromptTemplate", "template": {**template, "round": turns}}
