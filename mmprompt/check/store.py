"""Findings and facts of the rows that were checked, in a file: memory does not grow with the rows.

It is an SQLite file, a temporary one unless a name is given. Rules on the whole dataset query it, and a run that was
stopped goes on from it.
"""

from __future__ import annotations

import errno
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from mmprompt.check.kept import APPLICATION, FORMAT, SCHEMA, KeptFix, MediumFacts, Progress, SampleFacts
from mmprompt.check.state_form import is_state
from mmprompt.datasets.side_files import opened_side, require_regular
from mmprompt.errors import TaskError, shown
from mmprompt.errors.findings import Finding

_AFTER_ROWS = 1 << 62
_OTHER_RUN = "is of a run with other data, other options or another version of mmprompt"
_ANEW = "remove it, or leave out --resume to check everything anew"
_EVERY = 1.0
"""Seconds between two savings."""

_AT_ONCE = 256
"""Rows that wait in memory to be written to a table together."""


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
        if path is not None:
            _require_own(path, resume=resume)
            if not resume:
                Path(path).unlink(missing_ok=True)
        self.path = path or ""  # SQLite keeps the database "" in a file without a name, which ends with it
        self._saved = time.monotonic()
        self._waiting: dict[str, list[tuple[object, ...]]] = {}
        with self._faults():
            self._database = sqlite3.connect(self.path)
            if self._temporary:
                self._database.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
            try:
                if self._database.execute("PRAGMA user_version").fetchone() != (FORMAT,):
                    self._database.executescript(SCHEMA)  # not again: a store that is only read keeps its bytes
                else:
                    self._require_state()
                self._go_on(signature)
            except BaseException:
                self._database.close()
                raise

    def _require_state(self) -> None:
        """Refuse a file that holds anything but the state of a check.

        Raises:
            TaskError: it does.
        """
        try:
            if is_state(self._database):
                return
        except (sqlite3.Error, UnicodeDecodeError):
            pass
        raise TaskError(f"{shown(self.path)} is damaged: it is not the state of a check", _ANEW)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Name the file in the errors of SQLite."""
        try:
            yield
        except sqlite3.OperationalError as error:
            import tempfile  # noqa: PLC0415  # heavy

            place = self.path or tempfile.gettempdir()
            raise OSError(errno.EIO, f"cannot keep the state of the check ({error})", place) from None
        except sqlite3.DatabaseError:
            raise TaskError(f"{shown(self.path)} {_OTHER_RUN}", _ANEW) from None

    def _go_on(self, signature: str) -> None:
        """Take up what an earlier run has left, or begin."""
        found = next(self.query("SELECT * FROM progress"), None)
        if found is None:
            self._write("INSERT INTO progress VALUES (?, 0, 0, 0, '[]', '[]')", [(signature,)])
            self._commit()
            return
        kept, items, rows, finished, codes, shared = found
        if kept != signature:
            raise TaskError(f"{shown(self.path)} {_OTHER_RUN}", _ANEW)
        told = frozenset([(code, message) for code, message in json.loads(shared)])
        self.progress = Progress(items, rows, bool(finished), frozenset(json.loads(codes)), told)

    def save(self, progress: Progress, *, now: bool = False) -> None:
        """Write how far the check came, with all that was kept so far: once a second, or ``now``."""
        self.progress = progress
        if self._temporary or (not now and time.monotonic() - self._saved < _EVERY):
            return
        values = (progress.items, progress.rows, progress.finished, *map(_listed, (progress.codes, progress.shared)))
        self._write("UPDATE progress SET items = ?, rows = ?, finished = ?, codes = ?, shared = ?", [values])
        self._commit()
        self._saved = time.monotonic()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; a temporary one is gone then. What was not saved is lost."""
        self._database.close()

    def remove(self) -> None:
        """Close and remove the file."""
        self._database.close()
        if not self._temporary:
            Path(self.path).unlink(missing_ok=True)

    def add(self, findings: Iterable[Finding], sample: SampleFacts | None, media: Iterable[MediumFacts]) -> None:
        """Keep what was found in a row, and its facts."""
        self.add_findings(findings)
        if sample is not None:
            self._write("INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [sample])
        self._write("INSERT INTO media VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", media)

    def take(self, path: str, findings: Iterable[Finding]) -> None:
        """Keep what the store in another file has of the rows after these, with these findings in place of its own."""
        self._commit()  # nothing can be attached before
        with self._faults():
            self._database.execute("ATTACH ? AS other", [path])
            for table in ("samples", "media", "fixes", "thumbnails"):
                self._database.execute(f"INSERT OR IGNORE INTO {table} SELECT * FROM other.{table} ORDER BY rowid")  # noqa: S608  # our own names
            self._database.commit()
            self._database.execute("DETACH other")
        self.add_findings(findings)

    def add_findings(self, findings: Iterable[Finding]) -> None:
        """Keep findings. One without a row comes after those of all rows."""
        self._write(
            "INSERT INTO findings VALUES (?, ?, ?)",
            [(_AFTER_ROWS if f.row is None else f.row, f.code, json.dumps(f, default=str)) for f in findings],
        )

    def add_fixes(self, fixes: Iterable[KeptFix]) -> None:
        """Keep new values of columns."""
        kept = [fix._replace(value=json.dumps(fix.value)) for fix in fixes]
        self._write("INSERT INTO fixes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", kept)

    def add_thumbnails(self, thumbnails: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep small JPEGs by the digests of their media."""
        self._write("INSERT OR IGNORE INTO thumbnails VALUES (?, ?)", thumbnails)

    def thumbnails(self, finding: Finding) -> Iterator[bytes]:
        """Yield the small JPEGs of the media that a finding is about: those of its row, then what they look like.

        If its column holds media, they are those of the column.
        """
        sql = (
            "SELECT data FROM media JOIN thumbnails USING (digest) WHERE row = ?1 AND (?3 IS NULL OR number = ?3)"
            " AND (column_name = ?2 OR NOT EXISTS (SELECT 1 FROM media WHERE row = ?1 AND column_name = ?2))"
            " UNION ALL SELECT data FROM alike JOIN thumbnails USING (digest)"
            " WHERE ?5 = 'MM709' AND row = ?1 AND column_name IS ?2 AND offset IS ?4 LIMIT 4"
        )
        place = finding.row, finding.column, finding.part, finding.offset, finding.code
        yield from dict.fromkeys([data for (data,) in self.query(sql, *place)])

    def add_alike(self, row: int, column: str | None, offset: int | None, digest: bytes) -> None:
        """Keep the digest of the medium that the one at a place looks like."""
        self._write("INSERT INTO alike VALUES (?, ?, ?, ?)", [(row, column, offset, digest)])

    def pictures(self, finding: Finding) -> Iterator[str]:
        """Yield the names of the pictures that were read and that a finding is about, chosen as in ``thumbnails``."""
        sql = (
            "SELECT DISTINCT name FROM media WHERE modality = 'image' AND size > 0 AND row = ?"
            " AND (? IS NULL OR column_name = ?) AND (? IS NULL OR number = ?) LIMIT 4"
        )
        for (name,) in self.query(sql, finding.row, *[finding.column] * 2, *[finding.part] * 2):
            yield name

    def findings_of(self, code: str, most: int = -1) -> Iterator[Finding]:
        """Yield the first findings of a code, in the order of rows."""
        for (data,) in self.query("SELECT data FROM findings WHERE code = ? ORDER BY row, rowid LIMIT ?", code, most):
            yield Finding(*json.loads(data))

    def fixes(self, file: str, *, unsafe: bool) -> Iterator[KeptFix]:
        """Yield the new values for a file, in the order of lines."""
        sql = "SELECT * FROM fixes WHERE file = ? AND line IS NOT NULL AND (safe OR ?) ORDER BY line, rowid"
        for row, name, line, code, column, value, safe, old in self.query(sql, file, unsafe):
            yield KeptFix(row, name, line, code, column, json.loads(value), bool(safe), old)

    def has(self, code: str, file: str) -> bool:
        """Return whether there is a finding of a code in a file."""
        return any(finding.file == file for finding in self.findings_of(code))

    def drop(self, fix: KeptFix) -> int:
        """Drop the findings that a fix mends, and return how many."""
        found = self.query("SELECT rowid, data FROM findings WHERE row = ? AND code = ?", fix.row, fix.code)
        gone = [(at,) for at, data in found if Finding(*json.loads(data)).column == fix.column]
        self._write("DELETE FROM findings WHERE rowid = ?", gone)
        return len(gone)

    def drop_all(self, code: str, file: str) -> int:
        """Drop the findings of a code in a file, and return how many."""
        found = self.query("SELECT rowid, data FROM findings WHERE code = ?", code)
        gone = [(at,) for at, data in found if Finding(*json.loads(data)).file == file]
        self._write("DELETE FROM findings WHERE rowid = ?", gone)
        return len(gone)

    def findings(self) -> Iterator[Finding]:
        """Yield all findings, in the order of their rows."""
        for (data,) in self.query("SELECT data FROM findings ORDER BY row, rowid"):
            yield Finding(*json.loads(data))

    def count(self) -> int:
        """Return the number of findings."""
        return int(next(self.query("SELECT COUNT(*) FROM findings"))[0])

    def add_against(self, row: SampleFacts) -> None:
        """Keep the place and the digest of a row of the other dataset, such as the training set."""
        self._write("INSERT INTO against VALUES (?, ?, ?, ?)", [(row.file, row.line, row.row, row.sent)])

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
        self._write("DELETE FROM findings WHERE code = ?", [(code,)])
        self.add_findings(kept)
        return kept

    def sample(self, row: int) -> SampleFacts | None:
        """Return the facts of a row."""
        found = next(self.query("SELECT * FROM samples WHERE row = ?", row), None)
        return None if found is None else SampleFacts(*found)

    def query(self, sql: str, *values: object) -> Iterator[Any]:
        """Yield the rows of a query: tuples."""
        self._write_waiting()
        with self._faults():
            yield from self._database.execute(sql, values)

    def _write(self, sql: str, values: Iterable[tuple[object, ...]]) -> None:
        """Keep the values of a statement until many can be written at once: each statement takes time of its own."""
        if not (more := list(values)):
            return
        waiting = self._waiting.setdefault(sql, [])
        waiting += more
        if len(waiting) >= _AT_ONCE or not sql.startswith("INSERT"):
            self._write_waiting()

    def _write_waiting(self) -> None:
        waiting, self._waiting = self._waiting, {}
        with self._faults():
            for sql, values in waiting.items():
                self._database.executemany(sql, values)

    def _commit(self) -> None:
        self._write_waiting()
        with self._faults():
            self._database.commit()


def _listed(values: Iterable[object]) -> str:
    return json.dumps(sorted(values, key=str))


def _require_own(path: str, *, resume: bool) -> None:
    """Refuse to overwrite a file that is not of this class, and to ``resume`` from one of another format."""
    for ending in ("-journal", "-wal", "-shm"):  # which SQLite opens beside it, whatever they are
        require_regular(path + ending)
    try:
        with opened_side(path, own=True) as file:
            head = file.read(72)
    except FileNotFoundError:
        return
    if not head:  # a run was killed when it had just begun
        return
    if head.startswith(b"SQLite format 3\0") and head[68:] == APPLICATION.to_bytes(4, "big"):
        if resume and head[60:64] != FORMAT.to_bytes(4, "big"):
            raise TaskError(f"{shown(path)} was written by another version of mmprompt", _ANEW)
        return
    what = f"{shown(path)} is there, and is not the state of a check"
    raise TaskError(what, "move it away, or write elsewhere with --output-file")
