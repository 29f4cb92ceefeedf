"""A folder as a dataset: finds the files that hold its rows."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from mmprompt.datasets.readers.media_folder import METADATA
from mmprompt.datasets.readers.patterns import Walk
from mmprompt.errors import DatasetError, nearest, shown

_T = TypeVar("_T")

_SHARD = re.compile(r"(.+?)[-_.](?:\d{3,}|\d+-of-\d+)(?:-[0-9a-f]{6,})?\.")
_SHARD_OF = re.compile(r"(.+?)[-_.](\d+)-of-(\d+)(?:-[0-9a-f]{6,})?\.")
"""A shard of a text file. A number alone may be a year."""

_MOST_SHARDS = 100_000

_SPLITS = frozenset(("train", "training", "test", "testing", "dev", "val", "valid", "validation", "eval", "evaluation"))
"""What splits are called. A shard with such a name is of this split in whatever folder it lies."""

_TEXTS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
_TARS = (".tar", ".tar.gz", ".tgz", ".tar.zst")
_PACKED = ("", ".gz", ".zst")
_NO_ROWS = frozenset(
    ("dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json", "pid_splits.json", "croissant.json")
)
_LONGEST = 1 << 22


class Contents(NamedTuple):
    """The files of a folder that hold its rows, in order, and their format if their place in the folder says it.

    ``split`` is True if they are those of the split that was asked for; if not, their rows may say their split.
    """

    files: tuple[str, ...]
    format: str | None = None
    split: bool = False


def files_of(folder: str, split: str | None = None) -> Contents:
    """Return the files that hold the rows of a folder.

    Looked for in this order: a saved ``datasets`` folder, a metadata file of media, Parquet or Arrow files, tar files,
    one file of text. ``split`` chooses where the folder has several splits.

    Raises:
        DatasetError: nothing was found, or the folder has several splits and ``split`` is not given.
    """
    saved = _saved_dataset(folder, split)
    if saved is not None:
        return saved
    metadata = {_split_of(path): path for path in _metadata(folder)}
    if metadata:
        return Contents((_chosen(metadata, split, folder),), "imagefolder", split in metadata)
    for ends, name in (((".parquet",), "parquet"), ((".arrow",), "arrow"), (_TARS, "webdataset")):
        found = _found(folder, ends)
        if found:
            shards = _by_split(found)
            return Contents(_chosen(shards, split, folder), name, split in shards)
    texts = _texts(folder)
    return Contents(_chosen(texts, split, folder), None, split in texts)


def missing_shards(files: Sequence[str]) -> dict[str, list[str]]:
    """Return the shards that sets such as ``test-00000-of-00003.parquet`` lack, by the first file of each set."""
    sets: dict[tuple[str, str], dict[int, str]] = {}
    for file in files:
        if found := _SHARD_OF.match(os.path.basename(file)):
            sets.setdefault((os.path.join(os.path.dirname(file), found[1]), found[3]), {})[int(found[2])] = file
    missing = {}
    for (_, total), held in sets.items():
        first = int(int(total) in held)  # some count from 1
        lacks = [n for n in range(first, int(total) + first) if n not in held] if int(total) <= _MOST_SHARDS else []
        if lacks:
            file = next(iter(held.values()))
            missing[file] = [_renumbered(os.path.basename(file), number) for number in lacks]
    return missing


def _renumbered(name: str, number: int) -> str:
    """Return the name of another shard of the same set."""
    found = _SHARD_OF.match(name)
    if found is None:
        return name
    return f"{name[: found.start(2)]}{number:0{len(found[2])}}-of-{found[3]}{name[found.end() - 1 :]}"


def _saved_dataset(folder: str, split: str | None) -> Contents | None:
    """Return the files of a dataset that ``datasets`` saved to disk."""
    splits = _json(os.path.join(folder, "dataset_dict.json")).get("splits")
    if isinstance(splits, list):
        names = [os.path.basename(str(name)) for name in splits if str(name) not in {os.curdir, os.pardir}]
        if names:
            folder = os.path.join(folder, _chosen({name: name for name in names}, split, folder))
    files = _json(os.path.join(folder, "state.json")).get("_data_files")
    if not isinstance(files, list):
        return None
    names = [str(file.get("filename")) for file in files if isinstance(file, dict)]
    return Contents(
        tuple([os.path.join(folder, os.path.basename(name)) for name in names]), "arrow", isinstance(splits, list)
    )


def _json(path: str) -> dict[str, object]:
    """Return the object in a small JSON file; empty if there is none."""
    if not os.path.isfile(path) or os.path.getsize(path) > _LONGEST:
        return {}
    from mmprompt.datasets.dataset_file import DatasetFile  # noqa: PLC0415  # only for saved datasets

    with DatasetFile(path).opened() as stream:
        try:
            value = json.loads(stream.read(_LONGEST))
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _metadata(folder: str) -> list[str]:
    """Return the metadata file of a folder, or of each of its folders."""
    own = [os.path.join(folder, name) for name in METADATA]
    inner = [os.path.join(folder, within, name) for within in _folders(folder) for name in METADATA]
    return [path for path in own if os.path.isfile(path)][:1] or [path for path in inner if os.path.isfile(path)]


def _split_of(path: str) -> str:
    return os.path.basename(os.path.dirname(path))


def _folders(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted([entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")])


def _found(folder: str, ends: tuple[str, ...]) -> list[str]:
    """Return the files of a folder with this ending or, if it has none, those of its subfolders."""
    walk = Walk()
    return walk.below(folder, ["*"], ends) or walk.below(folder, ["*", "*"], ends)


def _by_split(paths: Sequence[str], shard: re.Pattern[str] = _SHARD) -> dict[str, tuple[str, ...]]:
    """Return paths by the name before the number of the shard: ``test-00000-of-00002.parquet`` is of ``test``.

    If a name is in several folders, as ``train/0000.parquet`` and ``test/0000.parquet``, each folder is a split, unless
    all are shards that name their split, as ``Art/test-00000-of-00001.parquet``.
    """
    splits: dict[str, list[str]] = {}
    named = True
    for path in paths:
        name = os.path.basename(path)
        found = shard.match(name)
        named = named and found is not None and found[1] in _SPLITS
        splits.setdefault(found[1] if found else name.partition(".")[0], []).append(path)
    if not named and any(len(set(map(os.path.dirname, files))) > 1 for files in splits.values()):
        return _by_folder(paths, shard)
    if shard is _SHARD and len(splits) > 1 and all(len(f) == 1 and name.isdecimal() for name, f in splits.items()):
        return {"": tuple([file for files in splits.values() for file in files])}  # 00000.tar, 00001.tar
    return {name: tuple(files) for name, files in splits.items()}


def _by_folder(paths: Sequence[str], shard: re.Pattern[str]) -> dict[str, tuple[str, ...]]:
    """Return paths by the name of their folder, which the name of the split follows if it has several."""
    splits: dict[str, tuple[str, ...]] = {}
    for folder in dict.fromkeys(map(os.path.dirname, paths)):
        name = os.path.basename(folder)
        own = _by_split([path for path in paths if os.path.dirname(path) == folder], shard)
        splits |= {name if len(own) == 1 else f"{name}/{split}": files for split, files in own.items()}
    return splits


def _chosen(splits: dict[str, _T], split: str | None, folder: str) -> _T:
    if split is not None and (split in splits or len(splits) > 1):
        if split not in splits:
            raise DatasetError(f"{shown(folder)} has no split {shown(split)}", nearest(split, splits))
        return splits[split]
    if len(splits) > 1:
        named = ", ".join(map(shown, splits))
        hint = f"choose one: --split {next(iter(splits))}, or name the files"
        raise DatasetError(f"{shown(folder)} holds several splits or datasets: {named}", hint)
    return next(iter(splits.values()))


def _texts(folder: str) -> dict[str, tuple[str, ...]]:
    """Return the files of text in a folder by name; VQAv2's annotations are joined with its questions.

    The shards of a split are one; other files of one name, such as ``rows.csv`` and ``rows.json``, are several.
    """
    ends = tuple([suffix + packed for suffix in _TEXTS for packed in _PACKED])
    found = [path for path in _found(folder, ends) if os.path.basename(path) not in _NO_ROWS]
    questions = [path for path in found if "questions" in os.path.basename(path)]
    if not found:
        hint = "name a dataset file in it; a folder of media needs metadata.jsonl with file_name"
        raise DatasetError(f"{shown(folder)} is a directory in which no dataset was found", hint)
    splits: dict[str, tuple[str, ...]] = {}
    for name, files in _by_split(questions or found, _SHARD_OF).items():
        is_one = len(files) == 1 or all(_SHARD_OF.match(os.path.basename(file)) for file in files)
        splits |= {name: files} if is_one else {os.path.relpath(file, folder): (file,) for file in files}
    return splits
