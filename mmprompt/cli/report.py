"""What a run tells on standard error: how far it is, what it could not do, and what is worth a look."""

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


def told(report: RenderReport, lines: Iterable[str]) -> int:
    """Say what a run did, and return its exit code."""
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
    again = f", {report.repeated} of the ids came again" if report.repeated else ""
    say(f"mmprompt: {report.rendered} of {total} rows rendered, {report.failed} left out{again}")
    return FINDINGS


class Faults:
    """Why rows are left out: told as it comes; a fault of the task, which other rows have too, once."""

    def __init__(self) -> None:
        self.make_room: Callable[[], object] | None = None
        self._rows: dict[tuple[str, str], int] = {}

    def tell(self, error: MMPromptError) -> None:
        """Tell the error, or count its row."""
        fault = (error.where.setting or "", error.hint)
        if fault[0] and (fault in self._rows or len(self._rows) < _FAULTS_COUNTED):
            self._rows[fault] = self._rows.get(fault, 0) + 1
            if self._rows[fault] > 1:
                return
        if self.make_room is not None:
            self.make_room()
        say(str(error))

    def texts(self) -> list[str]:
        """Return a line for each fault that several rows had."""
        return [f"… and {rows - 1} more rows likewise; {hint}" for (_, hint), rows in self._rows.items() if rows > 1]


class Notes:
    """The first notes of a run, and how many more there were: a million rows may all have the same small fault."""

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
def progress(faults: Faults) -> Iterator[Callable[[], object] | None]:
    """Give what to call after each row: a progress bar if standard error is a terminal, else nothing.

    ``faults`` are told without the bar on their line.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm  # noqa: PLC0415  # only on a terminal

    with tqdm(unit=" rows", mininterval=0.2, file=sys.stderr) as bar:
        faults.make_room = bar.clear
        yield bar.update
        faults.make_room = None


@contextmanager
def logged(tell: Callable[[str], object]) -> Iterator[None]:
    """Tell what the package warns of in its log (a cache folder that cannot be used), each kind of warning once."""
    kinds = set()

    class Told(Handler):
        def emit(self, record: LogRecord) -> None:
            if record.msg not in kinds:
                kinds.add(record.msg)
                tell(record.getMessage())

    told = Told()
    log.addHandler(told)
    try:
        yield
    finally:
        log.removeHandler(told)
