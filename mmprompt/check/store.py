"""Findings and facts of the rows that were checked, in a file: memory does not grow with the rows.

It is an SQLite file, a temporary one unless a name is given. Rules on the whole dataset query it, and a run that was
stopped goes on from it.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

from mmprompt.check.kept import KeptFix, MediumFacts, Progress, SampleFacts
from mmprompt.errors import TaskError, shown
from mmprompt.errors.findings import Finding

_SCHEMA = """
CREATE TABLE IF NOT EXISTS findings (row INTEGER, code TEXT, data TEXT);
CREATE TABLE IF NOT EXISTS samples (row INTEGER PRIMARY KEY, file TEXT, line INTEGER, id TEXT,
    question BLOB, sent BLOB, answer TEXT, shape TEXT, length INTEGER, choice INTEGER, requests INTEGER, size INTEGER);
CREATE TABLE IF NOT EXISTS against (file TEXT, line INTEGER, sent BLOB);
CREATE TABLE IF NOT EXISTS media (row INTEGER, number INTEGER, modality TEXT, name TEXT, column_name TEXT,
    offset INTEGER, digest BLOB, cells BLOB, pixels INTEGER, media_type TEXT, size INTEGER, width INTEGER,
    height INTEGER, seconds REAL);
CREATE TABLE IF NOT EXISTS thumbnails (digest BLOB PRIMARY KEY, data BLOB);
CREATE INDEX IF NOT EXISTS media_of_row ON media (row);
CREATE TABLE IF NOT EXISTS fixes (row INTEGER, file TEXT, line INTEGER, code TEXT, column_name TEXT, value TEXT,
    safe INTEGER, old TEXT);
CREATE TABLE IF NOT EXISTS progress (signature TEXT, items INTEGER, rows INTEGER, finished INTEGER, codes TEXT,
    shared TEXT);
"""
_AFTER_ROWS = 1 << 62
_EVERY = 1.0
"""Seconds between two savings."""


class Store:
    """Keeps findings and facts. Use it as a context manager, in one thread.

    ``target`` and ``output_column`` are those of the task whose rows it keeps. ``progress`` says how far it came.

    Args:
        path: the file, from which a later run can go on; None for a temporary one.
        signature: what the run is about. A file of another signature is not gone on with.
        resume: go on with the file, if there is one.

    Raises:
        TaskError: the file cannot be gone on with.
        OSError: it cannot be written.
    """

    target = "vllm"
    output_column = "answer"

    def __init__(self, path: str | None = None, signature: str = "", *, resume: bool = False) -> None:
        self.progress = Progress()
        self._temporary = path is None
        if path is None:
            handle, path = tempfile.mkstemp(prefix="mmprompt-check-", suffix=".sqlite")
            os.close(handle)
        elif not resume:
            _remove(path)
        self.path = path
        self._saved = time.monotonic()
        try:
            self._database = sqlite3.connect(path)
        except sqlite3.OperationalError:
            raise OSError(errno.EACCES, "cannot write", path) from None
        if self._temporary:
            self._database.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
        try:
            self._database.executescript(_SCHEMA)
            self._go_on(signature)
        except sqlite3.DatabaseError:
            self._database.close()
            raise _other_run(path) from None

    def _go_on(self, signature: str) -> None:
        """Take up what an earlier run has left, or begin."""
        found = next(self.query("SELECT * FROM progress"), None)
        if found is None:
            self._database.execute("INSERT INTO progress VALUES (?, 0, 0, 0, '[]', '[]')", (signature,))
            self._database.commit()
            return
        kept, items, rows, finished, codes, shared = found
        if kept != signature:
            self._database.close()
            raise _other_run(self.path)
        told = frozenset([(code, message) for code, message in json.loads(shared)])
        self.progress = Progress(items, rows, bool(finished), frozenset(json.loads(codes)), told)

    def save(self, progress: Progress, *, now: bool = False) -> None:
        """Write how far the check came, with all that was kept so far: once a second, or ``now``."""
        self.progress = progress
        if self._temporary or (not now and time.monotonic() - self._saved < _EVERY):
            return
        values = (progress.items, progress.rows, progress.finished, *map(_listed, (progress.codes, progress.shared)))
        self._database.execute("UPDATE progress SET items = ?, rows = ?, finished = ?, codes = ?, shared = ?", values)
        self._database.commit()
        self._saved = time.monotonic()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; a temporary one is removed. What was not saved is lost."""
        self._database.close()
        if self._temporary:
            _remove(self.path)

    def remove(self) -> None:
        """Close and remove the file."""
        self._database.close()
        _remove(self.path)

    def add(self, findings: Iterable[Finding], sample: SampleFacts | None, media: Iterable[MediumFacts]) -> None:
        """Keep what was found in a row, and its facts."""
        self.add_findings(findings)
        if sample is not None:
            self._database.execute("INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", sample)
        self._database.executemany("INSERT INTO media VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", media)

    def add_findings(self, findings: Iterable[Finding]) -> None:
        """Keep findings. One without a row comes after those of all rows."""
        self._database.executemany(
            "INSERT INTO findings VALUES (?, ?, ?)",
            [(_AFTER_ROWS if f.row is None else f.row, f.code, json.dumps(f, default=str)) for f in findings],
        )

    def add_fixes(self, fixes: Iterable[KeptFix]) -> None:
        """Keep new values of columns."""
        kept = [fix._replace(value=json.dumps(fix.value)) for fix in fixes]
        self._database.executemany("INSERT INTO fixes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", kept)

    def add_thumbnails(self, thumbnails: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep small JPEGs by the digests of their media."""
        self._database.executemany("INSERT OR IGNORE INTO thumbnails VALUES (?, ?)", thumbnails)

    def thumbnails(self, finding: Finding) -> Iterator[bytes]:
        """Yield the small JPEGs of the media that a finding is about: those of its row, in its column if it has one."""
        sql = (
            "SELECT DISTINCT thumbnails.data FROM media JOIN thumbnails USING (digest) WHERE row = ?"
            " AND (? IS NULL OR column_name = ?) AND (? IS NULL OR number = ?) LIMIT 4"
        )
        for (data,) in self.query(sql, finding.row, *[finding.column] * 2, *[finding.part] * 2):
            yield data

    def findings_of(self, code: str, most: int) -> Iterator[Finding]:
        """Yield the first findings of a code, in the order of rows."""
        for (data,) in self.query("SELECT data FROM findings WHERE code = ? ORDER BY row, rowid LIMIT ?", code, most):
            yield Finding(*json.loads(data))

    def fixes(self, file: str, *, unsafe: bool) -> Iterator[KeptFix]:
        """Yield the new values for a file, in the order of lines."""
        sql = "SELECT * FROM fixes WHERE file = ? AND line IS NOT NULL AND (safe OR ?) ORDER BY line, rowid"
        for row, name, line, code, column, value, safe, old in self.query(sql, file, unsafe):
            yield KeptFix(row, name, line, code, column, json.loads(value), bool(safe), old)

    def has(self, code: str) -> bool:
        """Return whether there is a finding of a code."""
        return next(self.query("SELECT 1 FROM findings WHERE code = ?", code), None) is not None

    def drop(self, code: str, row: int | None = None, column: str | None = None) -> int:
        """Drop the findings of a code, or those of them that are on a column of a row, and return how many."""
        sql = "SELECT rowid, data FROM findings WHERE code = ? AND (? IS NULL OR row = ?)"
        found = [(at, Finding(*json.loads(data))) for at, data in self.query(sql, code, row, row)]
        gone = [(at,) for at, finding in found if column is None or finding.column == column]
        self._database.executemany("DELETE FROM findings WHERE rowid = ?", gone)
        return len(gone)

    def findings(self) -> Iterator[Finding]:
        """Yield all findings, in the order of their rows."""
        for (data,) in self.query("SELECT data FROM findings ORDER BY row, rowid"):
            yield Finding(*json.loads(data))

    def count(self) -> int:
        """Return the number of findings."""
        return int(next(self.query("SELECT COUNT(*) FROM findings"))[0])

    def add_against(self, file: str | None, line: int | None, sent: bytes) -> None:
        """Keep the digest of a row of the other dataset, such as the training set; see ``SampleFacts.sent``."""
        self._database.execute("INSERT INTO against VALUES (?, ?, ?)", (file, line, sent))

    def once(self, code: str) -> list[Finding]:
        """Keep of the findings of a code the first of each file, with the number of the others, and return them."""
        first: dict[str | None, tuple[int, Finding]] = {}
        more: Counter[str | None] = Counter()
        for at, data in self.query("SELECT rowid, data FROM findings WHERE code = ? ORDER BY row, rowid", code):
            finding = Finding(*json.loads(data))
            if first.setdefault(finding.file, (at, finding))[0] != at:
                more[finding.file] += 1
        kept = []
        for file, (_, finding) in first.items():
            rows = f" (and {more[file]} more row{'s' * (more[file] > 1)})" if more[file] else ""
            kept.append(finding._replace(message=finding.message + rows))
        self._database.execute("DELETE FROM findings WHERE code = ?", (code,))
        self.add_findings(kept)
        return kept

    def sample(self, row: int) -> SampleFacts | None:
        """Return the facts of a row."""
        found = next(self.query("SELECT * FROM samples WHERE row = ?", row), None)
        return None if found is None else SampleFacts(*found)

    def query(self, sql: str, *values: object) -> Iterator[Any]:
        """Yield the rows of a query: tuples."""
        return self._database.execute(sql, values)


def _listed(values: Iterable[object]) -> str:
    return json.dumps(sorted(values, key=str))


def _remove(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)


def _other_run(path: str) -> TaskError:
    hint = "remove it, or leave out --resume to check everything anew"
    return TaskError(f"{shown(path)} is of a run with other data or options", hint)
