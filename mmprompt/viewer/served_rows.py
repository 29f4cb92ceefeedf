"""The rows of a page that a server shows, in a temporary SQLite file: memory does not grow with the rows."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from mmprompt.datasets.sample import Row, Sample
from mmprompt.media.sandbox.decoders import decoder
from mmprompt.media.thumbnail import thumbnail
from mmprompt.messages import MediaPart
from mmprompt.viewer.exhibit import Exhibit
from mmprompt.viewer.index import Counts, entry_of, rules_of, score_kind
from mmprompt.viewer.media_files import EXTENSIONS, NAME
from mmprompt.viewer.overview import plots_of, tiles_of
from mmprompt.viewer.row_view import RowView, RowViews
from mmprompt.viewer.side import row_data
from mmprompt.viewer.viewed_rows import Choice, ViewedRow, viewed_rows

_SCHEMA = """
CREATE TABLE rows (place INTEGER PRIMARY KEY, number INTEGER, entry TEXT, search TEXT, modalities TEXT, codes TEXT,
    score TEXT, groups TEXT, findings TEXT, row BLOB);
CREATE TABLE media (name TEXT PRIMARY KEY, place INTEGER, medium INTEGER, frame INTEGER) WITHOUT ROWID;
CREATE INDEX by_number ON rows (number);
"""
_EVERY = 200
"""Rows between two savings."""

_TOGETHER = 100
"""Words of a query that stand in one pair of brackets: SQLite takes a chain of 1,000 at most."""

MOST = 500
"""The most entries of one answer."""


class ServedRows:
    """Reads the rows of a task in a thread, and gives those that are asked for. Close it to end its processes."""

    def __init__(self, exhibit: Exhibit, choice: Choice) -> None:
        self.exhibit = exhibit
        self.counts = Counts()
        self.done = False
        self.fault = ""
        self._choice = choice
        self._views = RowViews(exhibit.task, choice.target, choice.policy, fit=choice.fit)
        self._decoder = decoder(self._views.policy)
        self._statistics: Any = None
        self._whole: list[dict[str, Any]] = []
        self._ends = threading.Event()
        self._folder = tempfile.TemporaryDirectory(prefix="mmprompt-view-")
        self._path = os.path.join(self._folder.name, "rows")
        with self._database() as database:
            database.executescript(f"PRAGMA journal_mode = WAL; {_SCHEMA}")
        self._thread = threading.Thread(target=self._read, name="mmprompt view", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the reading, its processes, and the file."""
        self._ends.set()
        self._thread.join(10)
        self._views.close()
        self._decoder.close()
        self._folder.cleanup()

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=30)) as database, database:
            database.execute("PRAGMA synchronous = OFF")
            yield database

    def _read(self) -> None:
        """Read all rows, without building what a page shows of each."""
        try:
            with self._database() as database, closing(self._made_views()) as views:
                for place, viewed in enumerate(viewed_rows(self.exhibit.task, views, self._choice)):
                    if self._ends.is_set():
                        return
                    self._keep(database, place, viewed)
                    if place % _EVERY == 0:
                        database.commit()
        except Exception as error:  # noqa: BLE001  # a thread has no caller; the page says it
            self.fault = f"{type(error).__name__}: {error}"
        self.done = True

    def _made_views(self) -> RowViews:
        return RowViews(self.exhibit.task, self._choice.target, self._choice.policy, targets=(), fit=self._choice.fit)

    def _keep(self, database: sqlite3.Connection, place: int, viewed: ViewedRow) -> None:
        if viewed.view is None:
            self._statistics = viewed.statistics
            self._whole = [finding._asdict() for finding in viewed.findings if finding.row is None]
            for finding in viewed.findings:
                self._add_finding(database, finding.row, finding._asdict())
            return
        entry = entry_of(viewed.view, viewed, self.exhibit)
        self.counts.add(entry)
        search = "\n".join([entry[name] for name in ("id", "text", "answer", "prediction")]).lower()
        findings = json.dumps([finding._asdict() for finding in viewed.findings], default=str)
        values = (
            place,
            viewed.number,
            json.dumps(entry, default=str),
            search.encode("utf-8", "replace").decode(),
            " ".join(entry["modalities"]),
            " ".join(entry["codes"]),
            score_kind(entry),
            json.dumps(entry["groups"]),
            findings,
            pickle.dumps(viewed.view.row),
        )
        database.execute("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        media = [(d[:NAME], place, n, f) for n, m in enumerate(viewed.view.media) for f, d in enumerate(m.digests)]
        database.executemany("INSERT OR IGNORE INTO media VALUES (?, ?, ?, ?)", media)

    def _add_finding(self, database: sqlite3.Connection, number: int | None, finding: dict[str, Any]) -> None:
        found = database.execute("SELECT place, entry, codes FROM rows WHERE number = ?", (number,)).fetchone()
        if found is None:
            return
        place, entry, codes = found[0], json.loads(found[1]), f"{found[2]} {finding['code']}".strip()
        if finding["code"] not in entry["codes"]:
            entry["codes"].append(finding["code"])
            self.counts.codes[finding["code"]] += 1
        entry.setdefault("findings", []).append(finding)
        values = (json.dumps(entry, default=str), codes, place)
        database.execute("UPDATE rows SET entry = ?, codes = ? WHERE place = ?", values)

    # ---- what the page asks for

    @property
    def head(self) -> dict[str, Any]:
        """What the page says of all rows that were read so far."""
        done = self.done  # looked at first: rows that come from here on are not counted below
        return {
            "sides": [
                {
                    "title": self.exhibit.title,
                    "rows": self.counts.rows,
                    "tiles": tiles_of(self.counts, self._statistics),
                    "plots": plots_of(self.counts, self._statistics),
                    "findings": [note.finding._asdict() for note in self.exhibit.notes] + self._whole,
                }
            ],
            "counts": self.counts.data,
            "codes": rules_of([*self.counts.codes, *[finding["code"] for finding in self._whole]]),
            "chunk": 1,
            "target": self._choice.target,
            "extensions": EXTENSIONS,
            "folder": "media",
            "served": True,
            "done": done,
            "fault": self.fault,
        }

    def entries(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Return the entries that match what is asked, from ``from``, at most ``count``, and how many match."""
        done = self.done  # before the rows are looked up
        where, values = _condition(asked)
        first, count = _natural(asked.get("from")), min(_natural(asked.get("count")), MOST)
        with self._database() as database:
            [(total,)] = database.execute(f"SELECT COUNT(*) FROM rows WHERE {where}", values)  # noqa: S608  # no data
            sql = f"SELECT place, entry FROM rows WHERE {where} ORDER BY place LIMIT ? OFFSET ?"  # noqa: S608
            found = database.execute(sql, [*values, count, first]).fetchall()
            [(every,)] = database.execute("SELECT COUNT(*) FROM rows")
        rows = [{"place": place, "entry": json.loads(entry)} for place, entry in found]
        return {"total": total, "all": every, "done": done, "rows": rows}

    def detail(self, place: int) -> dict[str, Any] | None:
        """Return all that the page shows of a row; None if there is no such row."""
        found = self._view(place)
        if found is None:
            return None
        view, number, findings = found
        return row_data(self._views, view, ViewedRow(view, [], number), self.exhibit) | {
            "findings": json.loads(findings)
        }

    def medium(self, name: str, *, small: bool) -> tuple[str, bytes] | None:
        """Return the media type and the bytes of a medium, or of its small picture; None if there is none."""
        with self._database() as database:
            asked = database.execute("SELECT place, medium, frame FROM media WHERE name = ?", (name,)).fetchone()
        found = None if asked is None else self._view(asked[0])
        part = None if found is None or asked[1] >= len(found[0].parts) else found[0].parts[asked[1]]
        if part is None:
            return None
        if part.frames:
            part = MediaPart("image", "image/jpeg", part.frames[asked[2]])
        if not small:
            return part.media_type, part.data
        made = self._decoder.run(thumbnail, part, self._views.policy)
        return ("image/jpeg", made) if made else None

    def _view(self, place: int) -> tuple[RowView, int, str] | None:
        sql = "SELECT row, number, findings FROM rows WHERE place = ?"
        with self._database() as database:
            found = database.execute(sql, (place,)).fetchone()
        if found is None:
            return None
        row: Row = pickle.loads(found[0])  # noqa: S301  # our own file, in a folder of ours
        return self._views.view(row), found[1] if isinstance(row, Sample) else place, found[2]


def _natural(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 12 else 0


def _condition(asked: Mapping[str, str]) -> tuple[str, list[object]]:
    """Return the condition of a query and its values."""
    terms, values = ["1"], list[object]()
    words = list(dict.fromkeys(asked.get("query", "").lower().split()))
    counts = [len(words[at : at + _TOGETHER]) for at in range(0, len(words), _TOGETHER)]
    terms += [f"({' AND '.join(['instr(search, ?)'] * count)})" for count in counts]
    values += words
    if modality := asked.get("modality"):
        terms.append("modalities = ''" if modality == "text" else "instr(modalities, ?)")
        values += [] if modality == "text" else [modality]
    if code := asked.get("code"):
        terms.append("codes != ''" if code == "any" else "instr(codes, ?)")
        values += [] if code == "any" else [code]
    if score := asked.get("score"):
        terms.append("score = ?")
        values.append(score)
    for name, value in asked.items():
        if name.startswith("group.") and value:
            terms.append("EXISTS (SELECT 1 FROM json_each(groups) WHERE key = ? AND CAST(value AS TEXT) = ?)")
            values += [name[6:], value]
    return " AND ".join(terms), values
