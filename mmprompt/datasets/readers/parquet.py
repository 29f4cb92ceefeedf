"""Parquet and Arrow files, read batch by batch. Media stay the bytes that the file holds."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from mmprompt.datasets.dataset_file import DatasetFile
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.sample import Row, Sample, id_of
from mmprompt.datasets.span import Cuts, Span
from mmprompt.errors import DatasetError, RowError, shown

if TYPE_CHECKING:
    from types import ModuleType

_NONE: frozenset[str] = frozenset()
_MOST_ROWS = 64
_AT_ONCE = 1 << 20
"""About how many bytes of rows are read at once: pictures are encoded while they are still in the processor's cache."""

WITHOUT = "or give the rows in Python: load_task({}, {'rows': pandas.read_parquet(FILE).to_dict('records')})"


def read(source: DatasetFile, notes: Notes, thorough: bool = False) -> Iterator[Row]:
    """Yield a ``Sample`` for each row of a Parquet file.

    Raises:
        DatasetError: pyarrow is not installed, or the file is damaged.
    """
    del notes, thorough
    parquet = pyarrow_module("parquet")
    with source.opened() as stream:
        if source.root is None:
            raise DatasetError(f"{shown(source.name)} is a stream", "save it to a file: Parquet is read from its end")
        yield from _samples(_batches_of_parquet(parquet, stream, source.span), source.name, source.span.row)


def spans(source: DatasetFile, rows: int) -> Iterator[tuple[Span, int]]:
    """Yield spans of whole row groups with at least ``rows`` rows each, and their numbers of rows.

    Raises:
        DatasetError: pyarrow is not installed, or the file is damaged.
    """
    parquet = pyarrow_module("parquet")
    with source.opened() as stream:
        try:
            file = parquet.ParquetFile(stream).metadata
            sizes = [file.row_group(group).num_rows for group in range(file.num_row_groups)]
        except Exception as error:  # noqa: BLE001  # a damaged file gives errors of any type
            raise _damaged(source.name, error) from None
    cuts, row = Cuts(rows), 0
    for group, size in enumerate(sizes):
        row += size
        yield from cuts.at(group + 1, 1, row)
    yield from cuts.last(row, len(sizes))


def read_arrow(source: DatasetFile, notes: Notes, thorough: bool = False) -> Iterator[Row]:
    """Yield a ``Sample`` for each row of an Arrow file or stream.

    Raises:
        DatasetError: as ``read``.
    """
    del notes, thorough
    ipc = pyarrow_module("ipc")
    with source.opened() as stream:
        yield from _samples(_batches_of_arrow(ipc, stream, is_file=source.head.startswith(b"ARROW1")), source.name)


def _batches_of_parquet(parquet: ModuleType, stream: BinaryIO, span: Span) -> Iterator[Any]:
    # no pre-buffering: it would hold whole row groups, with all their pictures
    file = parquet.ParquetFile(_own_file(stream), pre_buffer=False, buffer_size=1 << 16)
    for group in range(file.num_row_groups)[span.start : span.end]:
        found = file.metadata.row_group(group)
        size = _rows_at_once(found.num_rows, found.total_byte_size)
        yield from file.iter_batches(batch_size=size, row_groups=[group], use_threads=False)


def _batches_of_arrow(ipc: ModuleType, stream: BinaryIO, *, is_file: bool) -> Iterator[Any]:
    opened = ipc.open_file(stream) if is_file else None
    numbers = range(opened.num_record_batches if opened else 0)
    yield from map(opened.get_batch, numbers) if opened else ipc.open_stream(stream)


def _own_file(stream: BinaryIO) -> Any:
    """Return an open file as pyarrow reads it itself: through Python's reader each page is copied twice more."""
    if type(getattr(stream, "raw", None)) is not io.FileIO:  # what is read may be decompressed, or in a store
        return stream
    try:
        return pyarrow_module("lib").OSFile(f"/dev/fd/{stream.fileno()}")
    except OSError:  # the system has no such names
        return stream


def _rows_at_once(rows: int, size: int) -> int:
    """Return how many of so many rows are read at once, if all of them have ``size`` bytes."""
    return max(1, min(_MOST_ROWS, _AT_ONCE * rows // max(size, 1)))


def _samples(batches: Iterator[Any], file: str, row: int = 0) -> Iterator[Row]:
    make: Any = tuple.__new__  # half the cost of the constructor, once a row
    while (batch := _next(batches, file)) is not None:
        size = _rows_at_once(len(batch), batch.nbytes)
        for at in range(0, len(batch), size):
            for columns in _rows(batch.slice(at, size)):
                if type(columns) is dict:
                    yield make(Sample, (columns, id_of(columns, row), file, None, row, False, None, (), _NONE, None))
                else:
                    yield columns.located(file=file, sample=str(row))
                row += 1


def _next(batches: Iterator[Any], file: str) -> Any:
    try:
        batch = next(batches, None)
        names = [] if batch is None else batch.schema.names
    except Exception as error:  # noqa: BLE001  # a damaged file gives errors of any type
        raise _damaged(file, error) from None
    if len(names) != len(set(names)):
        twice = next(name for name in names if names.count(name) > 1)
        what = f"two columns are named {shown(twice)}"
        raise DatasetError(what, "rename one of them").located(file=file, column=twice)
    return batch


def _damaged(file: str, error: Exception) -> DatasetError:
    return DatasetError(f"the file is damaged: {shown(str(error))}", "write it again").located(file=file)


def _rows(batch: Any) -> list[Any]:
    """Return the rows of a batch, with an error for each that Python cannot hold, such as a date in the year 40000."""
    try:
        batch.validate(full=True)  # the library reads memory that is not its own where offsets are wrong
        rows: list[Any] = batch.to_pylist()
    except Exception as error:  # noqa: BLE001  # pyarrow raises errors of any type here
        if len(batch) == 1:
            return [RowError(f"the row cannot be read: {shown(str(error))}", "correct its values")]
        return [row for at in range(len(batch)) for row in _rows(batch.slice(at, 1))]
    return rows


def pyarrow_module(part: str) -> ModuleType:
    """Return a module of pyarrow.

    Raises:
        DatasetError: it is not installed, or its release refuses the NumPy that is.
    """
    import importlib  # noqa: PLC0415  # only where such a file is read

    try:
        return importlib.import_module(f"pyarrow.{part}")
    except ModuleNotFoundError:
        install = "pip install 'mmprompt[parquet]'"
    except ImportError:  # pyarrow 26 refuses NumPy 1
        install = "pip install 'pyarrow<26'"
    raise DatasetError("reading Parquet and Arrow needs pyarrow", f"{install}, {WITHOUT}", code="MM903")
