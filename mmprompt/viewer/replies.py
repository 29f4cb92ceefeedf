"""What a journal says of each row: replies, errors and scores."""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from mmprompt.datasets.sample import LONGEST_ROW, Sample
from mmprompt.datasets.side_files import opened_side
from mmprompt.run.journal import JournalLine, parsed_line, placed_lines
from mmprompt.run.manifest import manifest_path, read_manifest
from mmprompt.run.scorers import Scorer, answers_of, scorer_of
from mmprompt.targets.json_values import JSONValue

_SHOWN = (
    "turn",
    "label",
    "repeat",
    "prediction",
    "error",
    "perplexity",
    "usage",
    "seconds",
    "attempts",
    "finish_reason",
)


class Replies:
    """The lines of a journal by row, each with the score of its prediction.

    A row takes 16 bytes of memory: where its lines begin is kept, and they are read again when they are shown.

    Raises:
        TaskError: the file is not a journal, or its manifest names an unknown scorer.
        OSError: it cannot be read.
    """

    def __init__(self, path: str) -> None:
        import numpy as np  # noqa: PLC0415  # loads on use

        facts = read_manifest(path) if is_journal(path) else {}
        self.title = os.path.basename(path)
        self.model = facts.get("model")
        scorer, base = facts.get("scorer"), facts.get("index_base")
        self._score = scorer_of(scorer if isinstance(scorer, str) else None, base if isinstance(base, int) else None)
        self._path = path
        rows, places = array("q"), array("q")
        for place, line in placed_lines(path):
            if 0 <= line.row <= sys.maxsize:  # no dataset has others
                rows.append(line.row)
                places.append(place)
        found = np.array(rows, dtype=np.int64)
        order = np.argsort(found, kind="stable")
        self._rows = found[order]
        self._places = np.array(places, dtype=np.int64)[order]

    def of(self, row: int) -> list[dict[str, JSONValue]]:
        """Return what the journal says of a row, by 0-based number.

        Raises:
            OSError: the journal is not there any more.
        """
        first, end = self._rows.searchsorted((row, row + 1)).tolist()
        return [_shown_line(line, self._score) for line in self._lines(row, first, end)]

    def samples(self) -> Iterator[Sample]:
        """Yield each row as far as the journal holds it: its id, answer, choices and groups.

        Raises:
            OSError: the journal is not there any more.
        """
        first = 0
        while first < len(self._rows):
            row = int(self._rows[first])
            end = int(self._rows.searchsorted(row, "right"))
            for line in self._lines(row, first, first + 1):
                held = {"answer": line.answer, "choices": list(line.choices), **line.groups}
                columns = {name: value for name, value in held.items() if value not in (None, [])}
                yield Sample(columns, line.id, self._path, None, row, scanned=False)
            first = end

    def _lines(self, row: int, first: int, end: int) -> Iterator[JournalLine]:
        """Yield the lines of a row from its ``first`` to before its ``end``."""
        if first < end:
            with opened_side(self._path, typed=True) as file:
                for place in self._places[first:end].tolist():
                    file.seek(place)
                    line = parsed_line(file.readline(LONGEST_ROW))
                    if line is not None and line.row == row:  # else another file has taken its place
                        yield line


def is_journal(path: str) -> bool:
    """Return whether a file is a journal: its first line is one, and its manifest lies beside it."""
    if not (os.path.isfile(path) and os.path.isfile(manifest_path(path))):
        return False
    with opened_side(path, typed=True) as file:
        return parsed_line(file.readline(LONGEST_ROW)) is not None


def _shown_line(line: JournalLine, score: Scorer) -> dict[str, Any]:
    found = {name: value for name in _SHOWN if (value := getattr(line, name)) not in (None, "", {})}
    answers: Sequence[JSONValue] = answers_of(line.answer)
    if line.prediction is not None and line.label is None and answers:
        found["score"] = float(score(line.prediction, answers, line.choices))
    if line.groups:
        found["groups"] = dict(line.groups)
    return found
