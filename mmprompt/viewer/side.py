"""One side of a page: a task's rows, or a journal's, packed into an index and chunks."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

from mmprompt.errors.findings import Finding
from mmprompt.media.base64_text import encode_text
from mmprompt.viewer.exhibit import Exhibit
from mmprompt.viewer.index import Counts, entry_of
from mmprompt.viewer.media_files import MediaFiles
from mmprompt.viewer.overview import plots_of, tiles_of
from mmprompt.viewer.row_view import RowView, RowViews
from mmprompt.viewer.viewed_rows import ViewedRow

CHUNK = 20
"""Rows that a page unpacks together."""


PutRows = Callable[[str, str], None]
"""Takes the name of a chunk, and the chunk."""


class Side:
    """Collects the rows of one side. ``put`` receives each chunk of rows when it is full."""

    def __init__(self, number: int, exhibit: Exhibit, views: RowViews, media: MediaFiles, put: PutRows) -> None:
        self.title = exhibit.title
        self.counts = Counts()
        self._number = number
        self._exhibit = exhibit
        self._views = views
        self._media = media
        self._put = put
        self._index: list[dict[str, Any]] = []
        self._rows: list[dict[str, Any]] = []
        self._chunks = 0
        self._whole: list[Finding] = []
        self._statistics: Any = None

    def add(self, viewed: ViewedRow) -> None:
        """Add a row, or the findings on the whole dataset."""
        view = viewed.view
        if view is None:
            self._whole, self._statistics = viewed.findings, viewed.statistics
            return
        for medium, part in zip(view.media, view.parts, strict=True):
            if part is not None:
                self._media.add(medium.digests, part)
        self._index.append(entry_of(view, viewed, self._exhibit))
        self._rows.append(row_data(self._views, view, viewed, self._exhibit))
        if len(self._rows) == CHUNK:
            self._flush()

    def finish(self) -> tuple[str, dict[str, Any]]:
        """Return the packed index, and what the head of the page says of this side."""
        if self._rows:
            self._flush()
        self._spread()
        for entry in self._index:
            self.counts.add(entry)
        notes = [note.finding for note in self._exhibit.notes]
        told = [finding._asdict() for finding in (*notes, *self._whole) if finding.row is None]
        head = {
            "title": self.title,
            "rows": len(self._index),
            "tiles": tiles_of(self.counts, self._statistics),
            "plots": plots_of(self.counts, self._statistics),
            "findings": told,
        }
        return packed(self._index), head

    def _spread(self) -> None:
        """Give the findings of the whole dataset that name a row to its entry."""
        places = {entry["row"]: entry for entry in self._index}
        for finding in self._whole:
            entry = places.get(finding.row)
            if entry is not None:
                entry.setdefault("findings", []).append(finding._asdict())
                entry["codes"] = list(dict.fromkeys([*entry["codes"], finding.code]))

    def _flush(self) -> None:
        self._put(f"rows-{self._number}-{self._chunks}", packed(self._rows))
        self._chunks += 1
        self._rows = []


def row_data(views: RowViews, view: RowView, viewed: ViewedRow, exhibit: Exhibit) -> dict[str, Any]:
    """Return all that a page shows of a row."""
    findings = [finding._asdict() for finding in viewed.findings]
    return {**views.data(view), "findings": findings, "replies": exhibit.told(viewed.number)}


def packed(value: object) -> str:
    """Return a value as JSON, compressed, in base64."""
    return encode_text(gzip.compress(json.dumps(value, default=str).encode("ascii"), 6, mtime=0))
