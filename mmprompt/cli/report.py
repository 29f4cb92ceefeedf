"""What a run writes to standard error: errors of rows, notes and a last line; and the file of ``--errors``."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mmprompt._log import LISTENERS
from mmprompt.cli import say, system_words
from mmprompt.datasets.output import error_output, first_line
from mmprompt.errors import NO_COLUMN, MMPromptError, TaskError, Where, shown
from mmprompt.errors.findings import Finding, Note
from mmprompt.errors.missing_files import TOLD, MissingFiles
from mmprompt.render.builder import FailedRow
from mmprompt.render.faults import RowFault
from mmprompt.targets.chunk_writer import ChunkWriter
from mmprompt.targets.exact_json import finite

INTERRUPTION = "interrupted"
"""Why a run stopped that its user interrupted."""

_ALIKE = 3
"""How often the same message is written."""

_OF_A_KIND = 20
"""How many messages are written that differ in quoted values and numbers only."""

_KINDS = 100
_OTHER = ("", "of several kinds", "")
_OF_ROWS = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".tar", ".gz", ".zst")
_VALUES = r"'[^']*'|\d+"

Message = tuple[str, str, str]
"""A code, what is wrong or odd, and what to do about it."""


class ErrorReport:
    """Writes the error of each row that is left out. Of similar errors it writes the first ones and counts the others.

    An error of the task or the command, which many rows share, is written once, and so is a column that no row has had
    so far. If each of the first rows misses a file, this is written with the folders of ``missing``, and the rows are
    counted. ``data`` receives every error as a line of JSON. ``count`` is the number of errors, ``rows`` that of the
    rows left out.
    """

    def __init__(self, data: ChunkWriter | None = None, path: str | None = None) -> None:
        self.make_room: Callable[[], object] | None = None
        self.missing = MissingFiles()
        self.count = self.rows = 0
        self._data, self._path = data, path
        self._alike = _AlikeMessages()

    def report(self, failed: FailedRow, row: int | None, read: int = 0) -> None:
        """Write the error of a row, or count it. ``row`` is its number, and ``read`` how many rows were read so far."""
        self.tell(RowFault.of(failed, row, read))

    def tell(self, fault: RowFault) -> None:
        """Write a fault, or count it."""
        self.count += 1
        self.rows += fault.leaves_out
        self.record(fault.finding)
        of_kind = TOLD if self.missing.holds(fault.finding) else _OF_A_KIND
        shows = self._alike.shows((fault.finding.code, fault.what, fault.hint), self._most(fault), of_kind)
        texts = [str(fault.finding)] if shows else []
        texts += [f"… {self.missing.news}"] if self.missing.news and not (shows and fault.finding.row) else []
        if texts and self.make_room is not None:
            self.make_room()
        for text in texts:
            say(text)

    def _most(self, fault: RowFault) -> int:
        """Return how often an error is written. A row that went out had the column that this one lacks."""
        some_have_it = fault.setting == NO_COLUMN and fault.read > self.rows
        return 1 if fault.setting and not some_have_it else _ALIKE

    def record(self, finding: Finding) -> None:
        """Write an error as data."""
        if self._data is None:
            return
        try:
            self._data.write([_json_line(finding)])
            self._data.flush()
        except OSError as error:
            error.filename = self._path
            raise

    def texts(self) -> list[str]:
        """Return a line for each kind of error that was only counted, and one on ``--errors``."""
        texts = [
            f"… and {rows} more row{'s have' if rows > 1 else ' has'} this error: {_text(message)}"
            for message, rows in self._alike.counted()
        ]
        return [*texts, "… --errors FILE.jsonl writes all errors to a file"] if texts and self._data is None else texts


class NoteReport:
    """Keeps the notes of a run for its end. Of similar notes it keeps the first ones and counts the others."""

    def __init__(self) -> None:
        self.count = 0
        self._kept: list[str] = []
        self._alike = _AlikeMessages()

    def add(self, note: Note) -> None:
        """Keep a note on the run."""
        self.count += 1
        self._kept.append(f"note: {note.finding}")

    def add_of_row(self, note: Note) -> None:
        """Keep a note on a row, or count it."""
        self.count += 1
        if self._alike.shows((note.code, note.what, note.hint), _ALIKE):
            self._kept.append(f"note: {note.finding}")

    def texts(self) -> list[str]:
        """Return a line for each note kept, and one for each kind of note that was only counted."""
        counted = [
            f"note: … and {number} more such note{'s' if number > 1 else ''}: {_text(message)}"
            for message, number in self._alike.counted()
        ]
        return self._kept + counted


class _Kind:
    """Messages that differ in their values only."""

    def __init__(self) -> None:
        self.shown: Counter[Message] = Counter()
        self.counted: Counter[Message] = Counter()


class _AlikeMessages:
    """Decides which of many messages are shown, in memory that does not grow with their number."""

    def __init__(self) -> None:
        self._kinds: dict[Message, _Kind] = {}

    def shows(self, message: Message, most: int, most_of_kind: int = _OF_A_KIND) -> bool:
        """Return whether to show a message; one that is not shown is counted."""
        kind = (message[0], re.sub(_VALUES, "…", message[1]), re.sub(_VALUES, "…", message[2]))
        if kind not in self._kinds and len(self._kinds) >= _KINDS:
            kind = _OTHER
        of_kind = self._kinds.setdefault(kind, _Kind())
        if of_kind.shown[message] < most and of_kind.shown.total() < most_of_kind:
            of_kind.shown[message] += 1
            return True
        of_kind.counted[message if message in of_kind.shown else kind] += 1
        return False

    def counted(self) -> Iterator[tuple[Message, int]]:
        """Yield the messages that were counted, and how often; a value that differs reads as ``…``."""
        for of_kind in self._kinds.values():
            yield from of_kind.counted.items()


def _text(message: Message) -> str:
    code, what, hint = message
    text = f"{code} {what}" if code else what
    return f"{text}; {hint}" if hint else text


class Outcome(NamedTuple):
    """The counts of a run, for its last line.

    ``written`` and ``left_out`` are rows; ``size`` is in bytes. ``output`` is the file, None for standard output.
    ``stopped`` says why the run ended early. If it did, or if no row could be rendered, an older output file stays.
    """

    written: int
    left_out: int
    size: int
    output: str | None
    repeated: int = 0
    notes: int = 0
    stopped: str = ""

    def __str__(self) -> str:
        """Return the line."""
        where = "standard output" if self.output in (None, "-") else str(self.output)
        rows = f"{self.written} of {self.written + self.left_out} rows written to {where}, {self.size:,} bytes"
        if where is self.output and (self.stopped or (self.left_out and not self.written)):
            rows = f"nothing was written to {where}"
        ids = f"{self.repeated} repeated id{'s' * (self.repeated > 1)}" if self.repeated else ""
        notes = f"{self.notes or 'no'} note{'s' * (self.notes != 1)}"
        counts = ", ".join(filter(None, (f"{self.left_out} left out", ids, notes)))
        return "mmprompt: " + "; ".join(filter(None, (self.stopped, rows, counts)))


def tell_stop() -> None:
    """Say what a run does after the first ``^C``."""
    say("mmprompt: finishing what is in flight; press ^C again to stop at once")


def _json_line(finding: Finding) -> bytes:
    # in JSON the escape of a lone surrogate stands for itself
    return (
        json.dumps(finite(finding._asdict()), ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")
        + b"\n"
    )


@contextmanager
def logged(note: Callable[[Note], object]) -> Iterator[None]:
    """Pass the package's log warnings (such as a cache folder that cannot be used) to ``note``, each kind once."""
    kinds = set()

    def listen(code: str, kind: str, what: str) -> None:
        if kind not in kinds:
            kinds.add(kind)
            note(Note(code, what))

    LISTENERS.append(listen)
    try:
        yield
    finally:
        LISTENERS.remove(listen)


@contextmanager
def error_report(path: str | None) -> Iterator[ErrorReport]:
    """Give the report of a run's errors, which also writes them to the file."""
    with error_output(path) as data:
        errors = ErrorReport(data, path)
        try:
            yield errors
        except (MMPromptError, OSError) as error:
            if not isinstance(error, BrokenPipeError) and getattr(error, "filename", None) != path:
                errors.record(_finding(error))
            raise


@contextmanager
def recorded(path: str | None) -> Iterator[None]:
    """Write an error that ends the command before its first row to the file of ``--errors`` too.

    A file that holds something else is left alone: it may be the dataset of a task that cannot be loaded.
    """
    try:
        yield
    except (MMPromptError, OSError) as error:
        if path is not None and os.path.isfile(path) and not _holds_errors(path):
            say(f"note: {shown(path)} holds something else than errors, so the error is not written to it")
        elif path is not None:
            with error_output(path) as data:
                ErrorReport(data, path).record(_finding(error))
        raise


def _finding(error: MMPromptError | OSError) -> Finding:
    """Return an error as data. One of the system, such as a full disk, has the words of the command's last line."""
    if isinstance(error, MMPromptError):
        return Finding.of(error)
    return Finding.at("MM900", system_words(error), "", Where())


def refuse_rows(path: str | None) -> None:
    """Refuse a report over a file of rows: it may be the dataset that could not be opened.

    Raises:
        TaskError: the file has the suffix of a dataset, and holds no report.
    """
    if path is None or not path.lower().endswith(_OF_ROWS) or not os.path.isfile(path):
        return
    if not (_holds_errors(path) or first_line(path).startswith(b'{"findings": [')):
        what = f"{shown(path)} holds no report, and may be the dataset that cannot be opened"
        raise TaskError(what, "write the report to another file")


def _holds_errors(path: str) -> bool:
    """Return whether a file is empty, or begins with an error as data."""
    line = first_line(path)
    try:
        first = json.loads(line or "{}")
    except (ValueError, RecursionError):
        return False
    return not line or (isinstance(first, dict) and first.keys() >= {"severity", "message", "hint"})
