"""Cuts a dataset into shards: parts that can be rendered, checked or run alone, in any order and on any machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mmprompt.datasets.parts import SPANS, Part
from mmprompt.datasets.read import Dataset
from mmprompt.datasets.sample import Sample
from mmprompt.datasets.span import Shard
from mmprompt.errors import DatasetError, TaskError, shown

ROWS = 20_000
"""Rows of a shard, unless the caller says otherwise."""


def plan_shards(dataset: Dataset, rows: int = ROWS) -> list[Shard]:
    """Return the shards of a dataset, in order, as plain data.

    JSON lines, CSV, TSV and WebDataset tar files are cut between rows, and Parquet files between row groups. A dataset
    of another format, a compressed one, one in another encoding than UTF-8, a folder of media, one split of several,
    and one that other files are joined to is a single shard; so is a damaged one, and one given as Python rows.

    Args:
        dataset: the dataset. It must be one that can be read again.
        rows: how many rows a shard has. Those of Parquet have whole row groups, and so maybe more.

    Raises:
        TaskError: the dataset is standard input, a pipe or an iterator, or ``rows`` is not positive.
    """
    if rows < 1:
        raise TaskError(f"a shard of {rows} rows", "give a number from 1")
    if dataset.reads_once:
        what = f"{shown(dataset.path or 'an iterator')} can be read only once, so it cannot be cut into shards"
        raise TaskError(what, "save it to a file")
    try:
        shards = list(_shards(dataset.parts, rows))
    except DatasetError:  # whoever reads the shard tells it
        shards = []
    if len(shards) > 1 and shards[0]["file"] is not None and dataset.parts[0].reader in ("parquet", "webdataset"):
        chats = _begins_with_chat(dataset)
        shards = [{**shard, "chats": chats} for shard in shards]
    return shards or [_whole(dataset)]


def _shards(parts: Sequence[Part], rows: int) -> Iterator[Shard]:
    first = 0
    for number, part in enumerate(parts):
        for span, count in SPANS[part.reader](part.source, rows):
            yield {
                "file": part.source.name,
                "part": number,
                **span._asdict(),  # type: ignore[typeddict-item]  # its fields are keys of a shard
                "first": first,
                "rows": count,
                "chats": False,
            }
            first += count


def _whole(dataset: Dataset) -> Shard:
    return {
        "file": dataset.path,
        "part": 0,
        "start": 0,
        "end": None,
        "line": 1,
        "row": 0,
        "first": 0,
        "rows": None,
        "chats": False,
    }


def _begins_with_chat(dataset: Dataset) -> bool:
    """Return whether the first row that can be read is a chat: all rows after it are read as chats then."""
    try:
        first = next((row for row in dataset if isinstance(row, Sample)), None)
    except DatasetError:
        return False
    return first is not None and first.messages is not None
