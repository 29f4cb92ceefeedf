"""A whole run: every row of a task rendered to a writer, with a report of what was done."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from mmprompt.datasets.repeated_ids import IdFile, RepeatedIdError, RepeatedIds
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import MMPromptError, Where
from mmprompt.errors.findings import Note
from mmprompt.render.builder import FailedRow
from mmprompt.render.renderer import Renderer
from mmprompt.render.wire_request import LinesTogether
from mmprompt.tasks.media_slots import UnfilledSlotError

_LINE_BITS = 31
_MOST_LINES = (1 << _LINE_BITS) - 1
"""The place of a row in one integer: its number, then its line, 0 if it has none."""

_IDS_AT_ONCE = 256
"""How many ids are stored together. Between two files, which drive code out of the cache, one takes much longer."""

_Seen = tuple[object, int, "int | None"]
"""The id of a row, its number and its line."""

OnError = Callable[[FailedRow, "int | None"], object]
"""Receives a row that was left out, and its 0-based number. A ``RepeatedIdError`` leaves out no row; nor does an error
without a number, which is about all rows."""

OnNote = Callable[[Note], object]
"""Receives a note, with the place of its row."""


class RowWriter(Protocol):
    """Receives the lines of one row after another, such as a ``ChunkWriter``."""

    def write(self, chunks: list[bytes], /) -> None:
        """Take the lines of a row, in pieces."""

    def write_rows(self, lines: list[bytes], /) -> None:
        """Take the lines of several rows, one a row."""

    def flush(self) -> None:
        """Write what was collected."""


class RenderReport(NamedTuple):
    """How many rows were rendered and left out, and how many ids stood before on another line."""

    rendered: int
    failed: int
    repeated: int


def unheard(*_: object) -> None:
    """Do nothing with an error or a note."""


def render(
    renderer: Renderer,
    rows: Iterable[Row],
    writer: RowWriter,
    *,
    limit: int | None = None,
    strict: bool = False,
    workers: int = 1,
    on_error: OnError = unheard,
    on_note: OnNote = unheard,
    on_row: Callable[[], object] = unheard,
    ids: RepeatedIds | IdFile | None = None,
) -> RenderReport:
    """Render ``rows`` to ``writer``, in order. The output is the same for any ``workers``.

    Args:
        renderer: renders each row.
        rows: samples, and errors of rows that could not be read.
        writer: receives the lines.
        limit: reads at most this many rows.
        strict: raises the first error; without it a bad row is left out.
        workers: threads that prepare rows.
        on_error: receives each bad row.
        on_note: receives what is accepted but odd, such as a wrong declared type.
        on_row: called after each row, before its error.
        ids: receives the ids; by default they are compared, and those that stood before are reported.
    """
    chosen, done, failed, seen = itertools.islice(rows, limit), 0, 0, list[_Seen]()
    with ids or RepeatedIds() as kept, renderer.prepared(chosen, workers, ahead=not strict) as prepared:
        write, remember, finish = writer.write, renderer.remembering(kept), renderer.finish
        for ready in prepared:
            if len(seen) >= _IDS_AT_ONCE:
                _remember(seen, remember)
            if type(ready) is LinesTogether:
                done += _put_together(ready, seen, writer, on_row)
            elif isinstance(made := ready if type(ready) is tuple else finish(ready), FailedRow):  # type: ignore[arg-type]  # not together
                failed += _left_out(made, _number(made.row, renderer.rows, done + failed), seen, on_row, on_error)
                if strict:
                    raise _flushed(writer, made.error)
            else:
                row, chunks, notes = made  # type: ignore[misc]  # prepared and failed rows are no plain tuples
                seen.append((row.id, row.row, row.line))
                done += 1
                write(chunks)
                on_row()
                for note in notes:
                    on_note(note.located(Where(row.file, row.line, sample=row.label)))
        writer.flush()
        _remember(seen, remember)
        return RenderReport(done, failed, report_repeats(kept.repeats(), renderer, on_error))


def _flushed(writer: RowWriter, error: MMPromptError) -> MMPromptError:
    """Write the rows before an error that ends the run, and return it."""
    writer.flush()
    return error


def _put_together(ready: LinesTogether, seen: list[_Seen], writer: RowWriter, on_row: Callable[[], object]) -> int:
    """Write the lines of several rows, and return how many there are."""
    seen += [(row[1], row[4], row[3]) for row in ready.rows]
    writer.write_rows(ready.lines)
    for _ in ready.rows:
        on_row()
    return len(ready.rows)


def _left_out(
    failed: FailedRow,
    number: int,
    seen: list[_Seen],
    on_row: Callable[[], object],
    on_error: OnError,
) -> bool:
    """Report a row that has no line, and return whether it is a row: an error may be about all of them."""
    row = failed.row
    is_row = type(row) is not UnfilledSlotError
    if is_row:
        on_row()
    if type(row) is Sample:
        seen.append((row.id, row.row, row.line))
    on_error(failed, number if is_row else None)
    return is_row


def _remember(seen: list[_Seen], remember: Callable[[Sequence[object], Sequence[int]], None]) -> None:
    """Store the ids of rows, each with its place: its number and its line in one integer. ``seen`` is then empty."""
    places = [number << _LINE_BITS | min(line or 0, _MOST_LINES) for _, number, line in seen]
    remember([name for name, _, _ in seen], places)
    seen.clear()


def report_repeats(repeats: Iterable[tuple[int, int]], renderer: Renderer, on_error: OnError) -> int:
    """Report the ids that stood before, given by their places, and return how many."""
    repeated = 0
    for place, first in repeats:
        repeated += 1
        row, line, first_line = place >> _LINE_BITS, place & _MOST_LINES, first & _MOST_LINES
        what = f"row {row} has the id of row {first >> _LINE_BITS} (counted from 0)"
        if line:
            what = f"the same id stands in line {first_line}"
        again = RepeatedIdError(what, "give each row its own id", code="MM808" if renderer.in_batch else "MM009")
        again = again.located(file=renderer.file, line=line or None, column="id")
        on_error(FailedRow(again, again), row)
    return repeated


def _number(row: Row, rows: slice, place: int) -> int:
    """Return the number of a row in its dataset; a row that could not be read has its ``place`` among ``rows``."""
    return row.row if isinstance(row, Sample) else (rows.start or 0) + place * (rows.step or 1)
