"""What a run writes to standard error: progress, the errors of rows, notes, and a last line of counts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from logging import Handler, LogRecord
from typing import TYPE_CHECKING

from mmprompt._log import log
from mmprompt.cli import FINDINGS, OK, say
from mmprompt.errors import MMPromptError

if TYPE_CHECKING:
    from mmprompt.render.run import RenderReport

_NOTES_SHOWN = 20
_FAULTS_COUNTED = 100


def report_and_exit_code(report: RenderReport, lines: Iterable[str]) -> int:
    """Write the lines and the counts of a run, and return its exit code."""
    for line in lines:
        say(line)
    total = report.rendered + report.failed
    if not total:
        say("note: there is no row to render")
    if not report.failed and not report.repeated:
        return OK
    if not report.rendered:
        say("mmprompt: no row could be rendered, nothing was written")
        return FINDINGS
    ids = "1 id is repeated" if report.repeated == 1 else f"{report.repeated} ids are repeated"
    again = f", {ids}" if report.repeated else ""
    say(f"mmprompt: {report.rendered} of {total} rows rendered, {report.failed} left out{again}")
    return FINDINGS


class ErrorReport:
    """Writes the error of each row that is left out. A fault of the task, which many rows share, is written once."""

    def __init__(self) -> None:
        self.make_room: Callable[[], object] | None = None
        self._rows: dict[tuple[str, str], int] = {}

    def report(self, error: MMPromptError) -> None:
        """Write the error, or count its row."""
        fault = (error.where.setting or "", error.hint)
        if fault[0] and (fault in self._rows or len(self._rows) < _FAULTS_COUNTED):
            self._rows[fault] = self._rows.get(fault, 0) + 1
            if self._rows[fault] > 1:
                return
        if self.make_room is not None:
            self.make_room()
        say(str(error))

    def texts(self) -> list[str]:
        """Return a line for each fault that several rows share."""
        return [
            f"… and {rows - 1} more rows have this error; {hint}" for (_, hint), rows in self._rows.items() if rows > 1
        ]


class NoteReport:
    """Keeps the first notes of a run and counts the rest: a million rows may have the same small fault."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._more = 0

    def add(self, note: str) -> None:
        """Keep the note, or count it."""
        if len(self._first) < _NOTES_SHOWN:
            self._first.append(note)
        else:
            self._more += 1

    def texts(self) -> list[str]:
        """Return a line for each note kept, and one for the others."""
        first = [f"note: {note}" for note in self._first]
        return [*first, f"note: … and {self._more} more such notes"] if self._more else first


@contextmanager
def progress(errors: ErrorReport) -> Iterator[Callable[[], object] | None]:
    """Give the function to call after each row: it moves a progress bar. None if standard error is not a terminal.

    The bar is cleared before an error is written.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm  # noqa: PLC0415  # only on a terminal

    with tqdm(unit=" rows", mininterval=0.2, file=sys.stderr) as bar:
        errors.make_room = bar.clear
        yield bar.update
        errors.make_room = None


@contextmanager
def logged(note: Callable[[str], object]) -> Iterator[None]:
    """Pass the package's log warnings (such as a cache folder that cannot be used) to ``note``, each kind once."""
    kinds = set()

    class NoteHandler(Handler):
        def emit(self, record: LogRecord) -> None:
            if record.msg not in kinds:
                kinds.add(record.msg)
                note(record.getMessage())

    handler = NoteHandler()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
