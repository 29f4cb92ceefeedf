"""Scores and comparisons as lines of text, and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from mmprompt.errors import shown
from mmprompt.run.compare import Change, Comparison, Side
from mmprompt.run.intervals import Interval
from mmprompt.run.journal import JournalLine
from mmprompt.run.score import ScoreReport
from mmprompt.run.tally import Score
from mmprompt.targets.json_values import JSONValue

_MOST_VALUES = 50
"""Values of a column whose scores are printed; a report holds all."""

_HEAD = ("rows", "answered", "score", "95% interval", "of answered")
_WIDTHS = (8, 10, 9, 19, 13)
_LONGEST_NAME = 40
_MOST_CHANGES = 20
"""Rows that got worse, and rows that got better, that are printed; a report holds more."""

_REPLY = 60
"""Characters of a reply in one line."""


def score_lines(report: ScoreReport) -> Iterator[str]:
    """Yield a table: the score of all rows, and those of the groups."""
    model = "" if report.model is None else f", model {report.model}"
    yield f"{report.journal}: scored by {report.scorer}{model}"
    named = [f"  {name}" for values in report.groups.values() for name in islice(values, _MOST_VALUES)]
    width = min(_LONGEST_NAME, max([len(name) for name in (*named, *report.groups, "all")]))
    yield " " * width + "".join(text.rjust(size) for text, size in zip(_HEAD, _WIDTHS, strict=True))
    yield _score_line("all", report.total, width)
    for column, values in report.groups.items():
        yield column
        for name, score in islice(values.items(), _MOST_VALUES):
            yield _score_line(f"  {name}", score, width)
        if len(values) > _MOST_VALUES:
            yield f"  and {len(values) - _MOST_VALUES} more"


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """Yield a table of two scores and their difference, and the rows that changed."""
    yield f"{comparison.rows:,} rows scored by {comparison.scorer}"
    sides = (comparison.before, comparison.after)
    names = [name if side.model is None else f"{name} ({side.model})" for side in sides for name in [side.journal]]
    width = max(map(len, (*names, "difference")))
    for name, side in zip(names, sides, strict=True):
        yield f"{name:{width}}  {side.score:7.4f}   {_interval(side.interval)}"
    low, high = comparison.interval
    yield f"{'difference':{width}}  {comparison.difference:+7.4f}   {low:+.4f} to {high:+.4f} (95%, paired bootstrap)"
    test = "" if comparison.p_value is None else f"; p = {comparison.p_value:.4g} (McNemar's exact test)"
    yield f"better: {comparison.better:,}, worse: {comparison.worse:,}{test}"
    yield from [f"rows in {side.journal} only: {side.only:,}" for side in sides if side.only]
    for name, count, sign in (("worse", comparison.worse, -1), ("better", comparison.better, 1)):
        changes = [one for one in comparison.changed if (one.score_after - one.score_before) * sign > 0]
        if changes:
            yield f"{name}:"
            yield from map(_change_line, changes[:_MOST_CHANGES])
        if count > _MOST_CHANGES:
            yield f"  and {count - min(len(changes), _MOST_CHANGES):,} more"


def score_data(report: ScoreReport) -> dict[str, JSONValue]:
    """Return a report as plain data."""
    return {
        "journal": report.journal,
        "model": report.model,
        "scorer": report.scorer,
        **_score_data(report.total),
        "groups": {
            column: {name: _score_data(score) for name, score in values.items()}
            for column, values in report.groups.items()
        },
        "worst": [{**_line_data(one.line), "score": one.score} for one in report.worst],
        "errors": dict(report.errors),
        "unscored": report.unscored,
        "notes": list(map(str, report.notes)),
    }


def comparison_data(comparison: Comparison) -> dict[str, JSONValue]:
    """Return a comparison as plain data."""
    return {
        **comparison._asdict(),
        "before": _side_data(comparison.before),
        "after": _side_data(comparison.after),
        "interval": list(comparison.interval),
        "changed": [
            {
                **_line_data(change.before),
                "prediction_after": change.after.prediction,
                "score": change.score_before,
                "score_after": change.score_after,
            }
            for change in comparison.changed
        ],
        "notes": list(map(str, comparison.notes)),
    }


def _score_line(name: str, score: Score, width: int) -> str:
    name = name if len(name) <= width else name[: width - 1] + "\u2026"
    cells = (
        f"{score.rows:,}",
        f"{score.answered:,}",
        _number(score.score),
        "" if score.interval is None else _interval(score.interval),
        _number(score.over_answered),
    )
    return f"{name:{width}}" + "".join(text.rjust(size) for text, size in zip(cells, _WIDTHS, strict=True))


def _interval(interval: Interval) -> str:
    return f"{interval.low:.4f} to {interval.high:.4f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _change_line(change: Change) -> str:
    turn = "" if change.before.turn is None else f", turn {change.before.turn}"
    replies = " -> ".join(_reply(line) for line in (change.before, change.after))
    place = f"row {change.before.row} (sample {change.before.id}{turn})"
    return f"  {place} {change.score_before:g} -> {change.score_after:g}: {replies}"


def _reply(line: JournalLine) -> str:
    """Return a reply quoted in short: of a long one its end, which mostly has the answer."""
    if line.prediction is None:
        return "error"
    text = " ".join(line.prediction.split())
    return shown(text if len(text) <= _REPLY else f"\u2026{text[-_REPLY:]}")


def _score_data(score: Score) -> dict[str, JSONValue]:
    data: dict[str, JSONValue] = {**score._asdict()}
    for name in ("interval", "interval_answered"):
        interval = getattr(score, name)
        data[name] = None if interval is None else list(interval)
    return data


def _side_data(side: Side) -> dict[str, JSONValue]:
    return {**side._asdict(), "interval": list(side.interval)}


def _line_data(line: JournalLine) -> dict[str, JSONValue]:
    own = {"row": line.row, "id": line.id, "turn": line.turn, "prediction": line.prediction}
    return {**own, "answer": line.answer, "choices": list(line.choices), "groups": dict(line.groups)}
