"""Binary files: Parquet, Arrow and tar files of WebDataset."""

from __future__ import annotations

import gzip
import io
import tarfile
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any, cast

from mmprompt.datasets.readers.parquet import pyarrow_module
from mmprompt.datasets.sample import column_error
from mmprompt.datasets.writers.output_file import create_bytes
from mmprompt.datasets.writers.row_files import json_text
from mmprompt.errors import RowError, shown

Row = dict[str, object]
_BATCH_BYTES = 1 << 25
_BATCH_ROWS = 1000


class _TableFile(ABC):
    """Collects rows and writes them batch by batch. The first batch sets the columns and their types."""

    def __init__(self, path: str) -> None:
        self._arrow: Any = pyarrow_module("lib")
        self._file = create_bytes(path)
        self._rows: list[Row] = []
        self._bytes = 0
        self._schema: Any = None
        self._writer: Any = None

    def write(self, row: Row) -> None:
        """Keep a row, and write a batch when there are enough of them.

        Raises:
            RowError: a column is new after the first batch, or its values are of several types.
        """
        self._rows.append(row)
        self._bytes += sum(_size(value) for value in row.values())
        if self._bytes > _BATCH_BYTES or len(self._rows) >= _BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        rows, self._rows, self._bytes = self._rows, [], 0
        names = list(dict.fromkeys(name for row in rows for name in row))
        if self._schema is not None:
            new = [name for name in names if name not in self._schema.names]
            if new:
                raise RowError(f"the first rows have no column {shown(new[0])}", "write --to jsonl", code="MM019")
            names = self._schema.names
        arrays = [self._array([row.get(name) for row in rows], name) for name in names]
        batch = self._arrow.RecordBatch.from_arrays(arrays, names=names)
        if self._schema is None:
            self._schema = batch.schema
            self._writer = self._open()
        self._writer.write_batch(batch)

    def _array(self, values: list[object], name: str) -> Any:
        kind = None if self._schema is None else self._schema.field(name).type
        try:
            return self._arrow.array(values, type=kind)
        except (self._arrow.ArrowInvalid, self._arrow.ArrowTypeError, OverflowError) as error:
            what = f"the values of {shown(name)} are of several types: {error}"
            raise column_error(name, what, "write --to jsonl", "MM007") from None

    @abstractmethod
    def _open(self) -> Any:
        """Return the writer of the format, opened with the schema."""

    def close(self) -> None:
        """Write what is left, and close the file."""
        try:
            if self._rows or self._writer is None:
                self._flush()
            self._writer.close()
        except BaseException:
            with suppress(OSError):  # The first error counts. A file left open fails again when Python frees it.
                self._file.close()
            raise
        self._file.close()


class ParquetFile(_TableFile):
    """A Parquet file."""

    def _open(self) -> Any:
        return pyarrow_module("parquet").ParquetWriter(self._file, self._schema)


class ArrowFile(_TableFile):
    """An Arrow IPC file."""

    def _open(self) -> Any:
        return pyarrow_module("ipc").new_file(self._file, self._schema)


def _size(value: object) -> int:
    if isinstance(value, (bytes, str)):
        return len(value)
    if isinstance(value, list):
        return sum(map(_size, value))
    return sum(map(_size, value.values())) if isinstance(value, dict) else 8


class TarFile:
    """A tar file of WebDataset: ``KEY.json`` and the media of each row."""

    def __init__(self, path: str) -> None:
        self._file = create_bytes(path)
        packed = path.endswith((".gz", ".tgz"))
        self._stream = gzip.GzipFile(fileobj=self._file, mode="wb", mtime=0) if packed else self._file
        self._tar = tarfile.open(fileobj=cast("Any", self._stream), mode="w|", format=tarfile.GNU_FORMAT)  # noqa: SIM115
        self._count = 0
        self._last = ""

    def write(self, row: Row) -> None:
        """Write the members of a row.

        Raises:
            RowError: its id cannot be a key.
        """
        fields = dict(row)
        name = fields.pop("id", f"{self._count:09d}")
        key = str(name)
        base = key.rpartition("/")[2]
        if not base or "." in base or key.startswith(("/", "./")) or len(key.encode("utf-8", "replace")) > 200:
            what = f"the id {shown(key)} cannot be the name of a member: it is empty, too long, or has a dot or a slash"
            raise RowError(what, "give other ids: --map COLUMN=id", code="MM007")
        if key == self._last:
            raise RowError(
                f"the row has the id of the one before, {shown(key)}", "give each row its own id", code="MM009"
            )
        self._last = key
        number = 0
        for column in [n for n, value in fields.items() if isinstance(value, list) and _are_structs(value)]:
            for struct in cast("list[dict[str, Any]]", fields.pop(column)):
                suffix = str(struct["path"]).rpartition(".")[2]
                self._add(f"{key}.{f'{number}.' if number else ''}{suffix}", struct["bytes"])
                number += 1
        self._add(f"{key}.json", json_text(fields).encode("utf-8"))
        self._count += 1

    def _add(self, name: str, data: bytes) -> None:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        self._tar.addfile(member, io.BytesIO(data))
        self._tar.members = []  # type: ignore[attr-defined]  # it keeps every header it has written

    def close(self) -> None:
        """Close the file."""
        self._tar.close()
        if self._stream is not self._file:
            self._stream.close()
        self._file.close()


def _are_structs(values: list[object]) -> bool:
    return bool(values) and all(isinstance(value, dict) and "bytes" in value for value in values)
