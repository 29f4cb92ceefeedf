"""Dataset configs of OpenCompass and AISBench: their ``…_datasets``, and what of a dataset makes a task.

    gsm8k_datasets = [dict(abbr='gsm8k', type=…, path=…, reader_cfg=dict(…), infer_cfg=dict(…), eval_cfg=…)]

A dataset's rows are not in its config: the caller gives them.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from mmprompt.errors import TaskError, nearest, shown
from mmprompt.tasks.upstream.execute import run_config
from mmprompt.tasks.upstream.stubs import RunnerStub

READER_KEYS = ("input_columns", "output_column", "train_split", "test_split", "train_range", "test_range")
"""What we take of ``reader_cfg``."""
_ROW_SETTINGS = ("max_out_len", "timestamp")
"""What AISBench's configs list among the input columns, and AISBench takes from the rows that have it."""
_DEPTH = 50
_SHOWN = 20


class UpstreamDataset(NamedTuple):
    """One dataset of a config, as it stands there; ``place`` is its variable and index."""

    abbr: str
    place: str
    config: Mapping[str, Any]


class UpstreamTask(NamedTuple):
    """What of a dataset makes a task: plain data, in which a class is its short name.

    ``unused`` are the keys that we do not take, such as ``path`` and ``reader_cfg.type``, in order.
    """

    abbr: str
    reader_cfg: dict[str, Any]
    infer_cfg: dict[str, Any]
    unused: tuple[str, ...]


def read_upstream(path: str, abbr: str | None = None) -> UpstreamTask:
    """Execute the config that the caller names and return one of its datasets, chosen by ``abbr`` if there are several.

    Raises:
        TaskError: the file is no such config, or the choice is not clear; with the file, and the line where known.
    """
    variables, stub_texts = run_config(path)
    try:
        return upstream_task(choose_dataset(find_datasets(variables), abbr), stub_texts)
    except TaskError as error:
        raise error.located(file=path) from None


def find_datasets(variables: Mapping[str, Any]) -> list[UpstreamDataset]:
    """Return the datasets that the variables of a config list, each once; empty if it lists none.

    They stand in lists called ``datasets`` or ``…_datasets``.
    """
    found: list[UpstreamDataset] = []
    for name, value in variables.items():
        if not (name == "datasets" or name.endswith("_datasets")) or name.startswith("_"):
            continue
        if not isinstance(value, (list, tuple)):
            continue
        for number, config in enumerate(value):
            if not isinstance(config, Mapping) or not {"infer_cfg", "reader_cfg", "abbr"} & set(config):
                continue
            if not any(config is other.config or _same(config, other.config) for other in found):
                place = f"{name}[{number}]"
                found.append(UpstreamDataset(_abbr(config, place), place, config))
    return found


def choose_dataset(datasets: Sequence[UpstreamDataset], abbr: str | None = None) -> UpstreamDataset:
    """Return the dataset called ``abbr``, or the only one.

    Raises:
        TaskError: there is none, none or more than one of that name, or several and no ``abbr``.
    """
    if not datasets:
        raise TaskError("the config lists no dataset", "set a variable that ends in _datasets to a list of dicts")
    if abbr is None:
        if len(datasets) == 1:
            return datasets[0]
        raise TaskError(f"the config lists {len(datasets)} datasets", f"choose one by its abbr: {_listed(datasets)}")
    chosen = [d for d in datasets if d.abbr == abbr]
    if not chosen:
        close = difflib.get_close_matches(abbr, [d.abbr for d in datasets], n=1)
        hint = nearest(abbr, close) if close else f"choose one of {_listed(datasets)}"
        raise TaskError(f"the config lists no dataset {shown(abbr)}", hint)
    if len(chosen) > 1:
        places = ", ".join(d.place for d in chosen)
        raise TaskError(f"the config lists several datasets {shown(abbr)}: {places}", "give each its own abbr")
    return chosen[0]


def upstream_task(dataset: UpstreamDataset, stub_texts: Collection[str] = ()) -> UpstreamTask:
    """Return what of a dataset makes a task.

    ``stub_texts`` are the texts that names of a runner left in strings of the config, as ``run_config`` gives them.

    Raises:
        TaskError: it has no ``infer_cfg``, or its templates use a value that only the runner knows.
    """
    config = dataset.config
    sections: dict[str, Mapping[str, Any]] = {}
    for name in ("reader_cfg", "infer_cfg"):
        section = config.get(name, {} if name == "reader_cfg" else None)
        if not isinstance(section, Mapping):
            has = "no" if section is None else f"{type(section).__name__} as"
            what = f"dataset {shown(dataset.abbr)} has {has} {name}"
            raise TaskError(what, f"give {name}, a dict").located(template=dataset.place)
        sections[name] = section
    reader = {k: v for k, v in sections["reader_cfg"].items() if k in READER_KEYS}
    unused = [str(k) for k in config if k not in ("abbr", *sections)]
    unused += [f"reader_cfg.{k}" for k in sections["reader_cfg"] if k not in READER_KEYS]
    unused += [f"reader_cfg.input_columns.{name}" for name in _take_settings(reader)]
    return UpstreamTask(
        dataset.abbr,
        plain_config(reader, f"{dataset.place}.reader_cfg", stub_texts),
        plain_config(sections["infer_cfg"], f"{dataset.place}.infer_cfg", stub_texts),
        tuple(unused),
    )


def _take_settings(reader: dict[str, Any]) -> list[str]:
    """Take the settings of a row out of the input columns of a ``reader_cfg``, and return them."""
    given = reader.get("input_columns")
    columns = given.split() if isinstance(given, str) else given if isinstance(given, (list, tuple)) else ()
    settings = [name for name in _ROW_SETTINGS if name in columns]
    if settings:
        reader["input_columns"] = [name for name in columns if name not in settings]
    return settings


def plain_config(config: Any, place: str, stub_texts: Collection[str] = ()) -> Any:
    """Return nested data of a config as ``UpstreamTask`` has it; ``stub_texts`` as in ``upstream_task``.

    Raises:
        TaskError: it uses a value that only the runner knows.
    """
    return _Plain(stub_texts).of(config, place)


class _Plain:
    """Copies nested data of a config, in which classes become their short names."""

    def __init__(self, stub_texts: Collection[str]) -> None:
        self._spoken = tuple(stub_texts)

    def of(self, value: Any, place: str, depth: int = 0) -> Any:
        """Return a copy of ``value``.

        Raises:
            TaskError: a value, or a text with a value in it, that only the runner knows.
        """
        if depth > _DEPTH:
            raise TaskError("the config nests too deep", "is it a circle?").located(template=place)
        if isinstance(value, Mapping):
            return {
                self.of(k, place, depth + 1): (
                    v.short if k == "type" and isinstance(v, RunnerStub) else self.of(v, f"{place}.{k}", depth + 1)
                )
                for k, v in value.items()
            }
        if isinstance(value, (list, tuple)):
            items = [self.of(v, f"{place}[{n}]", depth + 1) for n, v in enumerate(value)]
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, RunnerStub):
            raise _unknown(value.dotted, place)
        if isinstance(value, str):
            for text in self._spoken:
                if text in value:
                    raise _unknown(text[1:-1], place)
        return value


def _unknown(dotted: str, place: str) -> TaskError:
    package = dotted.partition(".")[0]
    what = f"the value of {dotted} is not known: a config is read without {package}"
    return TaskError(what, "write the value into the config").located(template=place)


def _abbr(config: Mapping[str, Any], place: str) -> str:
    """Return the name of a dataset: its abbr, else the last word of its path, else its place."""
    for key in ("abbr", "path"):
        if isinstance(config.get(key), str) and config[key]:
            return str(config[key]) if key == "abbr" else os.path.basename(str(config[key]).rstrip("/"))
    return place


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether two datasets are the same though one may be a copy of the other."""
    if one.get("abbr") is None or one.get("abbr") != other.get("abbr"):
        return False
    try:
        return bool(one == other)
    except (TypeError, ValueError, RecursionError):  # arrays, circles
        return False


def _listed(datasets: Sequence[UpstreamDataset]) -> str:
    names = [d.abbr for d in datasets]
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
