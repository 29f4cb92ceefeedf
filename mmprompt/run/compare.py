"""Two journals of the same rows: which model is better, how sure that is, and which rows changed."""

from __future__ import annotations

import os
from array import array
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from mmprompt.errors import TaskError, shown
from mmprompt.errors.findings import Note
from mmprompt.run.intervals import Interval, bootstrap, interval_of, mcnemar
from mmprompt.run.journal import JournalLine, read_journal
from mmprompt.run.score import JournalScorer
from mmprompt.run.scorers import Scorer
from mmprompt.targets import exact_json
from mmprompt.targets.json_values import JSONValue

if TYPE_CHECKING:
    import numpy as np

    Integers = np.typing.NDArray[np.int64]
    Floats = np.typing.NDArray[np.float64]

CHANGED = 50
"""The most rows that got worse, and the most that got better, that a comparison holds."""


class Change(NamedTuple):
    """A row whose score changed: its lines and its scores. Of a row with repeats the line is the first."""

    before: JournalLine
    after: JournalLine
    score_before: float
    score_after: float


class Side(NamedTuple):
    """One of two journals: its score over the rows of both, with its interval, and how many rows it has alone."""

    journal: str
    model: str | None
    score: float
    interval: Interval
    only: int


class Comparison(NamedTuple):
    """What two journals say about the rows that both have, each turn of a dialogue counted as a row.

    ``difference`` is the second score less the first, with its interval from a paired bootstrap. ``better`` and
    ``worse`` count the rows whose score rose and fell. ``p_value`` is that of McNemar's exact test, None if a score is
    neither 0 nor 1. ``changed`` holds some of these rows, those that got worse first.
    """

    scorer: str
    rows: int
    before: Side
    after: Side
    difference: float
    interval: Interval
    better: int
    worse: int
    p_value: float | None
    changed: tuple[Change, ...]
    notes: tuple[Note, ...]


def compare_journals(
    before: str | os.PathLike[str],
    after: str | os.PathLike[str],
    scorer: str | Scorer | None = None,
    *,
    index_base: int | None = None,
) -> Comparison:
    """Compare two journals of the same rows, paired by row, id and turn.

    Args:
        before: the journal of the first model.
        after: that of the second.
        scorer: as for ``score_journal``; by default that of the runs.
        index_base: as for ``score_journal``.

    Raises:
        TaskError: a file is not a journal, the journals are of different datasets, or of runs with different scorers.
        OSError: one cannot be read.
    """
    import numpy as np  # noqa: PLC0415  # loads on use

    one, two = (_Scored(os.fspath(path), scorer, index_base) for path in (before, after))
    if scorer is None and one.scoring.chosen != two.scoring.chosen:
        named = f"{one.scoring.chosen}, {shown(two.path)} with {two.scoring.chosen}"
        what = f"{shown(one.path)} was run with the scorer {named}"
        raise TaskError(what, "name one with --scorer")
    keys, first, second = np.intersect1d(one.keys, two.keys, assume_unique=True, return_indices=True)
    if not len(keys):
        hint = "compare journals of the same dataset"
        raise TaskError(f"{shown(one.path)} and {shown(two.path)} have no row in common", hint)
    _require_same(one, two, keys[one.answers[first] != two.answers[second]], len(keys))
    scores = one.scores[first], two.scores[second]
    by = scores[1] - scores[0]
    better, worse = int((by > 0).sum()), int((by < 0).sum())
    binary = bool(np.isin(np.concatenate(scores), (0.0, 1.0)).all())
    return Comparison(
        one.scoring.name,
        len(keys),
        one.side(scores[0]),
        two.side(scores[1]),
        float(by.mean()),
        bootstrap(by),
        better,
        worse,
        mcnemar(better, worse) if binary else None,
        tuple(_changes(one, two, keys, scores)),
        one.scoring.notes(),
    )


class _Scored:
    """The scores of one journal by row, in the order of their keys, with the digests of the right answers."""

    def __init__(self, path: str, scorer: str | Scorer | None, index_base: int | None) -> None:
        import numpy as np  # noqa: PLC0415  # loads on use

        self.path, self.scoring = path, JournalScorer(path, scorer, index_base)
        keys, scores, answers = array("q"), array("d"), array("q")
        for line, score in self.scoring.lines():
            keys.append(_key(line))
            scores.append(score)
            answers.append(_digest([line.answer, list(line.choices)]))
        if not keys:
            raise TaskError(f"{shown(path)} has no row with a right answer", "name another journal")
        found = np.unique(np.frombuffer(keys, dtype=np.int64), return_index=True, return_inverse=True)
        self.keys: Integers = found[0]
        self.scores: Floats = np.bincount(found[2], np.frombuffer(scores)) / np.bincount(found[2])
        self.answers: Integers = np.frombuffer(answers, dtype=np.int64)[found[1]]

    def side(self, scores: Floats) -> Side:
        """Return what these scores, a part of its own, come to."""
        interval = interval_of(scores) or Interval(0.0, 1.0)
        only = len(self.keys) - len(scores)
        return Side(self.path, self.scoring.model, float(scores.mean()), interval, only)

    def lines(self, keys: set[int]) -> dict[int, JournalLine]:
        """Return the first line of each of these rows, read again."""
        found: dict[int, JournalLine] = {}
        for line in read_journal(self.path):
            if line.label is None and (key := _key(line)) in keys:
                found.setdefault(key, line)
                if len(found) == len(keys):
                    break
        return found


def _changes(one: _Scored, two: _Scored, keys: Integers, scores: tuple[Floats, Floats]) -> list[Change]:
    """Return the rows that changed most, those that got worse first, each kind in the order of rows."""
    import numpy as np  # noqa: PLC0415  # loads on use

    by = scores[1] - scores[0]
    order = np.argsort(by, kind="stable")
    worst = [place for place in order[:CHANGED].tolist() if by[place] < 0]
    best = [place for place in order[::-1][:CHANGED].tolist() if by[place] > 0]
    wanted = {int(keys[place]) for place in (*worst, *best)}
    before, after = one.lines(wanted), two.lines(wanted)
    changes = [
        [
            Change(before[key], after[key], float(scores[0][place]), float(scores[1][place]))
            for place in places
            if (key := int(keys[place])) in before and key in after
        ]
        for places in (worst, best)
    ]
    return [
        change for part in changes for change in sorted(part, key=lambda one: (one.before.row, one.before.turn or 0))
    ]


def _require_same(one: _Scored, two: _Scored, different: Integers, count: int) -> None:
    """Refuse rows of the same id whose right answers or choices differ."""
    if not len(different):
        return
    line = one.lines({int(different[0])}).popitem()[1]
    what = (
        f"{len(different)} of {count} rows have other answers or choices in {shown(two.path)} than in {shown(one.path)}"
    )
    hint = "compare journals of the same dataset"
    raise TaskError(f"{what}, the first is row {line.row} (sample {line.id})", hint)


def _key(line: JournalLine) -> int:
    return _digest([line.row, line.id, line.turn])


def _digest(value: JSONValue) -> int:
    return int.from_bytes(blake2b(exact_json.dumps(value), digest_size=8).digest(), "big", signed=True)
