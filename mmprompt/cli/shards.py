"""Batch files in shards: each holds so many requests and bytes, and a manifest beside them names them all."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from mmprompt._version import __version__
from mmprompt.cli.task_options import check_engine_options
from mmprompt.datasets.output import check_output, output, put_output, working_folder
from mmprompt.datasets.side_files import require_regular
from mmprompt.datasets.store_url import StoreURL, as_named
from mmprompt.datasets.whole_file import faults_of, whole_file
from mmprompt.errors import TaskError, shown
from mmprompt.errors.findings import Note
from mmprompt.targets.chunk_writer import ChunkWriter
from mmprompt.targets.json_values import JSONValue
from mmprompt.tasks.task import Task

if TYPE_CHECKING:
    import hashlib

MOST_ROWS, MOST_BYTES = 50_000, 200_000_000
"""The requests and the bytes of one input file that OpenAI's Batch API takes."""


def shards_of(arguments: argparse.Namespace) -> list[str]:
    """Return the shards and the manifest that the run may replace. Refuse shards of no batch, or without a name.

    Raises:
        TaskError: the options do not go together.
    """
    check_engine_options(arguments)
    if arguments.shards and arguments.engine is None:
        raise TaskError("--shards leaves the shards of an engine as files", "add --engine local")
    if arguments.shard_rows is None and arguments.shard_bytes is None and not arguments.shards:
        return []
    if arguments.engine is not None and not arguments.shards:
        raise TaskError("--shard-rows and --shard-bytes do not go with --engine", "leave out --engine")
    if arguments.shards and (arguments.shard_rows is not None or arguments.shard_bytes is not None):
        raise TaskError("--shard-rows and --shard-bytes do not go with --shards", "say --rows-per-shard N")
    if arguments.shards and isinstance(as_named(arguments.output or ""), StoreURL):
        raise TaskError(
            "--shards writes to a folder of this machine", "name a local file with -o, or leave out --shards"
        )
    if arguments.emit != "batch" and not arguments.shards:
        raise TaskError("--shard-rows and --shard-bytes are for batch files", "add --emit batch")
    if arguments.output in (None, "-"):
        raise TaskError("shards need a name", "give it with -o: with requests.jsonl the first is requests-00001.jsonl")
    check_output(_shard_name(arguments.output, 1))
    stem, ending = os.path.splitext(arguments.output)
    from glob import escape, glob  # noqa: PLC0415  # only for shards

    names = [_manifest_name(arguments.output), *glob(f"{escape(stem)}-[0-9]*{escape(ending)}")]
    for name in names:
        require_regular(name)
    return names


@contextmanager
def rendered_output(arguments: argparse.Namespace, task: Task) -> Iterator[ChunkWriter | ShardWriter]:
    """Open the output of a command: one file, or shards where the options ask for them."""
    if arguments.shard_rows is None and arguments.shard_bytes is None:
        with output(arguments.output) as writer:
            yield writer
        return
    most = arguments.shard_rows or MOST_ROWS, arguments.shard_bytes or MOST_BYTES
    with faults_of(arguments.output), working_folder(arguments.output) as folder:
        with ShardWriter(arguments.output, folder, *most) as shards:
            yield shards
            shards.finish()
        if shards.records and not shards.discarded:
            _put_shards(arguments, task, shards, [os.path.join(folder, str(each["file"])) for each in shards.records])


class ShardWriter:
    """Writes requests into shards, in a folder. A row's lines stand in one shard.

    ``records`` says of each shard its file, requests, bytes and hash. ``larger`` counts the rows that are larger than a
    shard may be: each has one of its own.
    """

    def __init__(self, path: str, folder: str, most_rows: int, most_bytes: int) -> None:
        self.bytes_written = 0
        self.discarded = False
        self.records: list[dict[str, JSONValue]] = []
        self.larger = 0
        self._path, self._most_rows, self._most_bytes = path, most_rows, most_bytes
        self._folder = folder
        self._stack = ExitStack()
        self._writer: ChunkWriter | None = None
        self._rows = self._size = 0
        self._digest = _sha256()

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drop the shard that is open if an exception leaves the block."""
        self._stack.__exit__(kind, error, trace)

    def __str__(self) -> str:
        """Return how many shards there are, and the manifest that names them."""
        return f"{len(self.records)} shards ({os.path.basename(_manifest_name(self._path))})"

    def write(self, chunks: list[bytes]) -> None:
        """Take the lines of one row."""
        size, rows = sum(map(len, chunks)), sum([chunk.endswith(b"\n") for chunk in chunks])
        if self._rows and (self._rows + rows > self._most_rows or self._size + size > self._most_bytes):
            self.finish()
        if self._writer is None:
            self._writer = self._stack.enter_context(whole_file(os.path.join(self._folder, self._name())))
        self.larger += size > self._most_bytes
        self._writer.write(chunks)
        for chunk in chunks:
            self._digest.update(chunk)
        self._rows, self._size, self.bytes_written = self._rows + rows, self._size + size, self.bytes_written + size

    def write_rows(self, lines: list[bytes]) -> None:
        """Take the lines of several rows, one a row."""
        for line in lines:
            self.write([line])

    def flush(self) -> None:
        """Write what was collected."""
        if self._writer is not None:
            self._writer.flush()

    def finish(self) -> None:
        """Complete the shard that is open."""
        if self._writer is None:
            return
        self._stack.close()
        digest = self._digest.hexdigest()
        self.records.append({"file": self._name(), "requests": self._rows, "bytes": self._size, "sha256": digest})
        self._writer, self._rows, self._size, self._digest = None, 0, 0, _sha256()

    def notes(self) -> Iterator[Note]:
        """Yield notes on rows that are too large, and on shards of an earlier run that are left."""
        if self.larger:
            what = f"rows larger than {self._most_bytes:,} bytes: {self.larger}, each has a shard of its own"
            yield Note("MM805", what, "make their media smaller: --fit or --max-side N")
        yield from _earlier_shards(self._path, len(self.records))

    def _name(self) -> str:
        return os.path.basename(_shard_name(self._path, len(self.records) + 1))


class ShardFiles:
    """The shards of an engine as files: each gets its name when all are done, and a manifest names them.

    ``records`` says of each file its name, requests and bytes.
    """

    def __init__(self, path: str) -> None:
        self.bytes_written = 0
        self.discarded = False
        self.records: list[dict[str, JSONValue]] = []
        self.done: list[str] = []
        self._path = path

    def __str__(self) -> str:
        """Return how many files there are, and the manifest that names them."""
        return f"{len(self.records)} shards ({os.path.basename(_manifest_name(self._path))})"

    def add(self, done: str, requests: int) -> None:
        """Take the file of the next shard, which holds so many requests. A shard without any gives no file."""
        if not (size := os.path.getsize(done)):
            return
        name = _shard_name(self._path, len(self.records) + 1)
        self.records.append({"file": os.path.basename(name), "requests": requests, "bytes": size})
        self.bytes_written += size
        self.done.append(done)

    def notes(self) -> Iterator[Note]:
        """Yield a note on shards of an earlier run that are left."""
        yield from _earlier_shards(self._path, len(self.records))


@contextmanager
def merged_output(arguments: argparse.Namespace, task: Task) -> Iterator[ChunkWriter | ShardFiles]:
    """Open the output of an engine: one file, or its shards where the options ask for them."""
    if not arguments.shards:
        with output(arguments.output) as writer:
            yield writer
            writer.flush()
        return
    files = ShardFiles(arguments.output)
    yield files
    if files.records and not files.discarded:
        _put_shards(arguments, task, files, files.done)


def _earlier_shards(path: str, count: int) -> Iterator[Note]:
    """Yield a note if there are more shards of this name than were written."""
    left = _shard_name(path, count + 1)
    if count and os.path.exists(left):
        what = f"{shown(left)} and the shards after it are of an earlier run"
        yield Note("MM900", what, "remove them, or send only the files that the manifest names")


def _shard_name(path: str, number: int) -> str:
    stem, ending = os.path.splitext(path)
    return f"{stem}-{number:05d}{ending}"


def _manifest_name(path: str) -> str:
    return f"{os.path.splitext(path)[0]}.manifest.json"


def _put_shards(
    arguments: argparse.Namespace, task: Task, shards: ShardWriter | ShardFiles, made: Sequence[str]
) -> None:
    """Give each shard its name, then write which there are, and of what."""
    for number, part in enumerate(made, 1):
        put_output(part, _shard_name(arguments.output, number))
    requests = sum([int(str(record["requests"])) for record in shards.records])
    manifest = {
        "version": 1,
        "mmprompt": __version__,
        "input": list(arguments.input),
        "dataset": None if task.dataset is None else task.dataset.path,
        "target": arguments.target,
        "model": task.config.model_name,
        "requests": requests,
        "bytes": shards.bytes_written,
        "shards": [*shards.records],
    }
    with output(_manifest_name(arguments.output)) as writer:
        writer.write([json.dumps(manifest, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace"), b"\n"])
        writer.flush()


def _sha256() -> hashlib._Hash:
    import hashlib  # noqa: PLC0415  # OpenSSL takes 3 ms to load

    return hashlib.sha256()
