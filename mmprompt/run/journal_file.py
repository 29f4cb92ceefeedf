"""The journal as a run writes it: each finished row in one ``write``, and the lines of earlier runs found by key."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

from mmprompt.datasets.sample import LONGEST_ROW
from mmprompt.datasets.side_files import opened_side, side_descriptor
from mmprompt.errors import TaskError, shown
from mmprompt.run.journal import JournalLine, journal_lines, parsed_line
from mmprompt.run.manifest import Manifest, manifest_path
from mmprompt.run.side_lock import SideLock

_SYNC_SECONDS = 1.0
_BEGINNING = b'{"row":'
"""How each line begins."""


class JournalFile:
    """A journal that one run writes. Use it as a context manager, in one thread.

    A torn last line is cut off. For each line that counts, memory holds where it stands: about 150 bytes. ``torn`` is
    the number of torn lines in the middle, which stay and are left out. ``failed_rows`` are the rows that stand with an
    error.

    Args:
        path: where it is; what is there is gone on with.
        manifest: what the run is about.
        overwrite: begin anew; what is there is lost.

    Raises:
        TaskError: another run writes it, it is no journal, or it was begun with other settings.
        OSError: it cannot be written.
    """

    def __init__(self, path: str, manifest: Manifest, *, overwrite: bool = False) -> None:
        self.path = path
        self.torn = 0
        self.failed_rows: set[int] = set()
        self._places: dict[int, int] = {}
        if path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
            raise TaskError(f"the journal {shown(path)} is not a file", "write to another file with -o")
        _require_journal(path)
        self._lock = SideLock(path)
        try:
            self._open(manifest, overwrite=overwrite)
        except BaseException:
            self._lock.close()
            raise
        self._unsynced = False
        self._lost: OSError | None = None
        self._ended = threading.Event()
        self._syncing = threading.Thread(target=self._sync, name="mmprompt-journal", daemon=True)
        self._syncing.start()

    def _open(self, manifest: Manifest, *, overwrite: bool) -> None:
        """Open the file, and look up what stands there if the run goes on with it."""
        goes_on = not overwrite and os.path.isfile(self.path) and os.path.getsize(self.path) > 0
        if goes_on:
            manifest.require_same(self.path)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        self._descriptor = side_descriptor(self.path, flags if goes_on else flags | os.O_TRUNC, typed=True)
        self._reader = opened_side(self.path, typed=True)
        try:
            manifest.save(self.path)
            self._size = self._scanned() if goes_on else 0
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> JournalFile:
        return self

    def __exit__(self, *_: object) -> None:
        """Bring everything to the disk, and let go of the journal."""
        self._ended.set()
        self._syncing.join()
        try:
            self._bring_to_disk()
        finally:
            self._close()
            self._lock.close()
        if self._lost is not None:
            raise self._lost

    def _close(self) -> None:
        os.close(self._descriptor)
        self._reader.close()

    def place(self, key: int) -> int | None:
        """Return where the line with this key stands, and forget it; None if there is none."""
        return self._places.pop(key, None)

    def remember(self, key: int, place: int) -> None:
        """Keep where a line stands, for ``place``."""
        self._places[key] = place

    def retire(self) -> int:
        """Write the lines that no row has taken once more, as gone, and return how many there are.

        They keep their predictions, which count again if their rows come back.
        """
        places = list(self._places.values())
        for line in map(self.line_at, places):
            if not line.gone:
                self.write([line._replace(gone=True)])
        return len(places)

    def line_at(self, place: int) -> JournalLine:
        """Return the line that begins at a place.

        Raises:
            TaskError: it is not there any more.
        """
        self._reader.seek(place)
        line = parsed_line(self._reader.readline())
        if line is None:
            raise TaskError(f"{shown(self.path)} was changed while the run wrote it", "run again")
        return line

    def write(self, lines: Sequence[JournalLine]) -> list[int]:
        """Append the lines of a row in one call, and return where each begins. Lines that they replace are forgotten.

        Raises:
            OSError: the disk is full or gone; nothing of the row is left in the file.
        """
        if self._lost is not None:
            raise self._lost
        texts = [line.to_json() for line in lines]
        rest = memoryview(b"".join(texts))
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            os.ftruncate(self._descriptor, self._size)
            error.filename = self.path
            raise
        places = []
        for line, text in zip(lines, texts, strict=True):
            if self._places:
                self._places.pop(line.key, None)
            places.append(self._size)
            self._size += len(text)
        self._unsynced = True
        return places

    def _scanned(self) -> int:
        """Look up the lines that count, cut off a torn end, and return the size."""
        failed: dict[int, int] = {}
        size = 0
        for _, line in journal_lines(self._reader, self.path):
            if line is None:
                self.torn += 1
            else:
                self._places[line.key] = size
                failed.pop(line.key, None)
                if line.error is not None and not line.gone:
                    failed[line.key] = line.row
            size = self._reader.tell()
        self.failed_rows = set(failed.values())
        os.ftruncate(self._descriptor, size)
        return size

    def _sync(self) -> None:
        """Bring what was written to the disk once a second: what the thread of its own does."""
        while not self._ended.wait(_SYNC_SECONDS):
            if self._unsynced:
                self._unsynced = False
                try:
                    self._bring_to_disk()
                except OSError as error:  # the system says it once, and the run has to end
                    self._lost = error
                    return

    def _bring_to_disk(self) -> None:
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            error.filename = self.path
            raise


def _require_journal(path: str) -> None:
    """Refuse a file that is no journal: it may be a dataset.

    Raises:
        TaskError: it holds something else.
    """
    if not os.path.isfile(path) or not os.path.getsize(path):
        return
    with opened_side(path, typed=True) as file:
        first = file.readline(LONGEST_ROW)
    torn = _BEGINNING.startswith(first[: len(_BEGINNING)]) and not first.endswith(b"\n")  # the first run was killed
    if not (torn and os.path.isfile(manifest_path(path))) and parsed_line(first) is None:
        raise TaskError(f"{shown(path)} is not a journal of mmprompt run", "write to another file with -o")
