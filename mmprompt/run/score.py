"""The score of a journal: what a model's predictions are worth, over all rows and in groups."""

from __future__ import annotations

import heapq
import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from mmprompt.check.answer_forms import readings_of
from mmprompt.errors import TaskError, Where, nearest, shown
from mmprompt.errors.findings import Note
from mmprompt.run.journal import JournalLine, read_journal
from mmprompt.run.manifest import manifest_path, read_manifest
from mmprompt.run.scorers import Scorer, answers_of, name_of, scorer_of
from mmprompt.run.scorers.choice import right_choice, several_letters
from mmprompt.run.tally import Score, Tally
from mmprompt.targets.json_values import JSONValue

WORST = 50
"""Lines with the lowest scores that a report holds."""

_TURN = "turn"
_ERRORS = 1000


class NoAnswersError(TaskError):
    """A journal holds no right answers, so its predictions have no score."""


class ScoredLine(NamedTuple):
    """A line of a journal and its score."""

    line: JournalLine
    score: float


class ScoreReport(NamedTuple):
    """The scores of a journal.

    ``scorer`` is the name of the scorer. ``groups`` has the scores by column and value. ``worst`` are the lines with
    the lowest scores below 1. ``errors`` counts the errors by their words. ``unscored`` lines have no right answer, and
    count nowhere else. ``notes`` are findings on answers that can be read in several ways, and such.
    """

    journal: str
    model: str | None
    scorer: str
    total: Score
    groups: dict[str, dict[str, Score]]
    worst: tuple[ScoredLine, ...]
    errors: dict[str, int]
    unscored: int
    notes: tuple[Note, ...]


class JournalScorer:
    """Scores the lines of one journal, and keeps what is odd about their answers.

    A scorer or ``index_base`` that is None is taken from the journal's manifest, if it has one.
    """

    def __init__(self, path: str, scorer: str | Scorer | None = None, index_base: int | None = None) -> None:
        self._path = path
        self.manifest = read_manifest(path) if os.path.exists(manifest_path(path)) else {}
        named = cast("str | None", self.manifest.get("scorer"))
        base = cast("int | None", self.manifest.get("index_base"))
        self._base = base if index_base is None else index_base
        chosen = named if scorer is None else scorer
        self.chosen = "choice or exact" if chosen is None else name_of(chosen)
        self._by_row = chosen is None
        self._names = [] if chosen is None else [self.chosen]
        self._score = scorer_of(chosen, self._base)
        self.unscored = 0
        self.scored = 0
        self._torn: list[int] = []
        self._odd: dict[str, list[Note]] = {}
        self._counts: Counter[str] = Counter()

    @property
    def name(self) -> str:
        """The name of the scorer, or of those that rows with and without choices have."""
        return " and ".join(self._names) or "exact"

    @property
    def model(self) -> str | None:
        """The model's name, None if it is not known."""
        return cast("str | None", self.manifest.get("model"))

    def lines(self) -> Iterator[ScoredLine]:
        """Yield the lines that have a right answer, with their scores: 0 without a prediction.

        Raises:
            TaskError: the file is not a journal, or the scorer returned no number.
            OSError: it cannot be read.
        """
        for line in read_journal(self._path, self._torn.append):
            score = self._scored(line)
            if score is not None:
                yield ScoredLine(line, score)

    def _scored(self, line: JournalLine) -> float | None:
        """Return the score of a line, None if it has no right answer, or is of a label."""
        if line.label is not None:
            return None
        answers = answers_of(line.answer)
        if not answers:
            self.unscored += 1
            return None
        self.scored += 1
        used = ("choice" if line.choices else "exact") if self._by_row else self._names[0]
        if used not in self._names:
            self._names.append(used)
        if used == "choice" and line.choices:
            for answer in answers:
                self._look_at(answer, line)
        if line.prediction is None:
            return 0.0
        score = self._score(line.prediction, answers, line.choices)
        try:
            number = float(score)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise TaskError(f"the scorer returned {shown(repr(score))}", "let it return a number from 0 to 1")
        return number

    def notes(self) -> tuple[Note, ...]:
        """Return a note on each kind of oddity: the first, and how many more."""
        notes = []
        for code, (first, *_) in self._odd.items():
            more = self._counts[code] - 1
            what = f"{first.what} ({more} more)" if more else first.what
            notes.append(Note(code, what, first.hint, first.where))
        if self.unscored:
            what = f"{self.unscored} of {self.unscored + self.scored} rows have no right answer and are not scored"
            notes.append(Note("MM701", what, "name the column with the answer: --map COLUMN=answer"))
        if self._torn:
            what = f"torn lines that are left out: {len(self._torn)}, the first is line {self._torn[0]}"
            notes.append(Note("MM002", what, "run mmprompt run again: it asks their rows anew", Where(self._path)))
        return tuple(notes)

    def _look_at(self, answer: JSONValue, line: JournalLine) -> None:
        """Note an answer that names no choice, or that can be read as two."""
        if right_choice(answer, line.choices, self._base) < 0 and not several_letters(answer, line.choices):
            hint = "write the letter or the text of one; for integers from 1 set eval_cfg.index_base to 1"
            self._note("MM702", f"the answer {shown(answer)} is none of the {len(line.choices)} choices", hint, line)
        elif readings_of(answer, line.choices, self._base):
            read = line.choices[right_choice(answer, line.choices, self._base)]
            what = f"the answer {shown(answer)} can be read in two ways, and is taken for the choice {shown(read)}"
            hint = "write the letter; for integers set eval_cfg.index_base to 0 or 1"
            self._note("MM718", what, hint, line)

    def _note(self, code: str, what: str, hint: str, line: JournalLine) -> None:
        self._counts[code] += 1
        if code not in self._odd:
            self._odd[code] = [Note(code, what, hint, Where(sample=str(line.id)))]


def score_journal(
    path: str | os.PathLike[str],
    scorer: str | Scorer | None = None,
    *,
    group_by: Sequence[str] = (),
    index_base: int | None = None,
) -> ScoreReport:
    """Score the predictions of a journal, without a model.

    Args:
        path: the journal of ``mmprompt run``.
        scorer: ``"exact"``, ``"contains"``, ``"choice"``, ``"anls"``, ``"vqa"``, ``"number"``, or a function that takes
            the reply, the right answers and the texts of the choices and returns a number from 0 to 1; by default that
            of the run, else ``"choice"`` for rows with choices and ``"exact"`` for others.
        group_by: columns that the run kept for grouping, or ``"turn"``; by default all that the journal has.
        index_base: the number of the first choice, where answers are numbers of choices: 0, or 1.

    Raises:
        TaskError: the file is not a journal, has no row that can be scored, or lacks a column of ``group_by``.
        OSError: it cannot be read.
    """
    name = os.fspath(path)
    scoring, tally, errors = JournalScorer(name, scorer, index_base), Tally(), Counter[str]()
    worst: list[tuple[float, int, JournalLine]] = []
    seen: set[str] = set()
    for line, score in scoring.lines():
        named = _groups_of(line)
        seen.update(named)
        tally.add(line, score, {name: named[name] for name in group_by if name in named} if group_by else named)
        if line.prediction is None:
            words = str(line.error)
            errors[words if words in errors or len(errors) < _ERRORS else "other errors"] += 1
        elif score < 1:
            heapq.heappush(worst, (-score, -len(tally), line))
            if len(worst) > WORST:
                heapq.heappop(worst)
    _require(name, tally, seen, group_by)
    lines = [ScoredLine(line, -score) for score, _, line in sorted(worst, key=lambda one: (-one[0], -one[1]))]
    found = tally.total(), tally.groups(), tuple(lines), dict(errors.most_common())
    return ScoreReport(name, scoring.model, scoring.name, *found, scoring.unscored, scoring.notes())


def _groups_of(line: JournalLine) -> dict[str, JSONValue]:
    groups = dict(line.groups)
    if line.turn is not None:
        groups.setdefault(_TURN, line.turn)
    return groups


def _require(path: str, tally: Tally, seen: set[str], group_by: Sequence[str]) -> None:
    if not len(tally):
        hint = "run it with an answer column, or name one"
        raise NoAnswersError(f"{shown(path)} has no row with a right answer", hint)
    for name in group_by:
        if name not in seen:
            hint = f"{nearest(name, seen)}; or " if seen else ""
            hint += f"run mmprompt run again with --group-by {name}: no row is asked anew"
            raise TaskError(f"no line of {shown(path)} has the column {shown(name)}", hint)
