"""The errors and notes of a shard's rows, as lines of JSON in a file of their own."""

from __future__ import annotations

import json

from mmprompt.datasets.crash_record import CrashRecord
from mmprompt.errors.findings import Note
from mmprompt.render.builder import FailedRow
from mmprompt.render.faults import RowFault
from mmprompt.targets.chunk_writer import ChunkWriter


class RowEvents:
    """Counts rows, also in the record of the shard, and writes their errors and notes.

    ``rows`` are those read, ``errors`` the errors.
    """

    def __init__(self, writer: ChunkWriter, record: CrashRecord) -> None:
        self.rows = self.errors = 0
        self._writer, self._record = writer, record

    def read(self) -> None:
        """Count a row."""
        self.rows += 1
        self._record.done(self.rows)

    def failed(self, failed: FailedRow, row: int | None) -> None:
        """Write the error of a row, whose number is ``row``."""
        self.errors += 1
        self._write(RowFault.of(failed, row, self.rows))

    def noted(self, note: Note) -> None:
        """Write a note."""
        self._write([note.code, note.what, note.hint, note.where, note.medium])

    def _write(self, event: object) -> None:
        self._writer.write([json.dumps(event, default=str).encode() + b"\n"])
