"""The scores of a journal's lines, held compactly: about 30 bytes for each."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from mmprompt.run.intervals import Interval, interval_of
from mmprompt.run.journal import JournalLine, line_key

if TYPE_CHECKING:
    import numpy as np

    Floats = np.typing.NDArray[np.float64]
    Mask = np.typing.NDArray[np.bool_]

_MOST_VALUES = 1000
"""Values of a column. One with more is no group, but a text or a number of its own for each row."""

_MISSING = -1


class Score(NamedTuple):
    """The score of some rows, each turn of a dialogue counted as a row.

    ``score`` is the mean over all rows, where an error counts 0, and ``over_answered`` that over the rows with a
    prediction; both with their 95% intervals. They are None where there are no such rows.
    """

    rows: int
    answered: int
    score: float | None
    interval: Interval | None
    over_answered: float | None
    interval_answered: Interval | None


class Tally:
    """Counts scores line by line, and then says what they are over all rows and in each group.

    Several lines of a row, one for each repeat, count as one row with their mean.
    """

    def __init__(self) -> None:
        self._rows = array("q")
        self._scores = array("d")
        self._answered = array("b")
        self._columns: dict[str, array[int]] = {}
        self._values: dict[str, dict[str, int]] = {}

    def add(self, line: JournalLine, score: float, groups: Mapping[str, object]) -> None:
        """Count a line. The score of a line without a prediction is 0."""
        count = len(self._scores)
        self._rows.append(line_key(line.row, line.id, line.turn, None, None))
        self._scores.append(score)
        self._answered.append(line.prediction is not None)
        for name, value in groups.items():
            if name not in self._columns:
                self._columns[name], self._values[name] = array("i"), {}
            column, values = self._columns[name], self._values[name]
            column.extend([_MISSING] * (count - len(column)))
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if len(values) <= _MOST_VALUES:
                column.append(values.setdefault(text, len(values)))

    def total(self) -> Score:
        """Return the score of all rows."""
        import numpy as np  # noqa: PLC0415  # loads on use

        return self._of(np.ones(len(self._scores), dtype=np.bool_))

    def groups(self) -> dict[str, dict[str, Score]]:
        """Return the scores by column and value, in the order of the values; rows without a value are left out."""
        import numpy as np  # noqa: PLC0415  # loads on use

        found: dict[str, dict[str, Score]] = {}
        for name, codes in self._columns.items():
            values = self._values[name]
            if len(values) <= _MOST_VALUES:
                codes.extend([_MISSING] * (len(self._scores) - len(codes)))
                column = np.frombuffer(codes, dtype=np.int32)
                found[name] = {text: self._of(column == code) for text, code in sorted(values.items(), key=_natural)}
        return found

    def __len__(self) -> int:
        return len(self._scores)

    def _of(self, mask: Mask) -> Score:
        import numpy as np  # noqa: PLC0415  # loads on use

        rows, scores = np.frombuffer(self._rows, dtype=np.int64)[mask], np.frombuffer(self._scores)[mask]
        answered = np.frombuffer(self._answered, dtype=np.int8)[mask].astype(np.bool_)
        over_all, over_answered = _by_row(rows, scores), _by_row(rows[answered], scores[answered])
        return Score(len(over_all), len(over_answered), *_mean(over_all), *_mean(over_answered))


def _by_row(rows: np.typing.NDArray[np.int64], scores: Floats) -> Floats:
    """Return the mean score of each row."""
    import numpy as np  # noqa: PLC0415  # loads on use

    found, place, counts = np.unique(rows, return_inverse=True, return_counts=True)
    return scores if len(found) == len(rows) else np.bincount(place, scores) / counts


def _mean(scores: Floats) -> tuple[float | None, Interval | None]:
    return (float(scores.mean()), interval_of(scores)) if len(scores) else (None, None)


def _natural(item: tuple[str, int]) -> tuple[int, float, str]:
    """Return what puts numbers before texts, and each in its order."""
    try:
        return 0, float(item[0]), item[0]
    except ValueError:
        return 1, 0.0, item[0]
