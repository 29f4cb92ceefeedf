"""The overview of a page: tiles with a number each, and plots as plain data, which the page draws."""

from __future__ import annotations

from typing import Any

from mmprompt.check.statistics import Statistics
from mmprompt.errors.rules import RULES
from mmprompt.viewer.index import Counts

_MOST_BARS = 12

WORDS = {"right": "right", "partly": "partly right", "wrong": "wrong", "failed": "no reply", "none": "without score"}
"""What each kind of score is called."""


def tiles_of(counts: Counts, statistics: Statistics | None) -> list[tuple[str, str]]:
    """Return numbers and what they count."""
    total, rows = counts.scored.get(("", ""), (0.0, 0.0))
    tiles = [(f"{counts.rows:,}", "samples")]
    tiles += [(f"{total / rows:.3f}", f"mean score of {rows:,.0f}")] if rows else []
    tiles += [(f"{counts.scores['failed']:,}", "without reply")] if counts.scores["failed"] else []
    tiles += [(f"{counts.errors:,}", "cannot be sent")] if counts.errors else []
    tiles += [(f"{sum(counts.codes.values()):,}", "findings")] if counts.codes else []
    media = {} if statistics is None else statistics.media
    return tiles + [(f"{count:,}", f"{name}s" if name != "audio" else "sounds") for name, count in media.items()]


def plots_of(counts: Counts, statistics: Statistics | None) -> list[dict[str, Any]]:
    """Return the plots: scores by group, findings, answers, and the distributions of texts and media."""
    plots = [_scores(name, counts) for name in counts.groups if any(key[0] == name for key in counts.scored)]
    if len(counts.scores) > 1:
        plots.append(_bars("Replies", {WORDS[kind]: counts.scores[kind] for kind in WORDS if counts.scores[kind]}))
    for name, values in counts.groups.items():
        plots.append(_bars(f"Samples by {name}", dict(values.most_common(_MOST_BARS))))
    if counts.codes:
        found = counts.codes.most_common(_MOST_BARS)
        plots.append(_bars("Findings", {f"{code} {RULES[code].name.replace('-', ' ')}": n for code, n in found}))
    if statistics is not None:
        if max(statistics.answers.values(), default=0) > 1:
            plots.append(_bars(f"Most frequent of {statistics.distinct_answers:,} answers", statistics.answers))
        if statistics.formats:
            plots.append(_bars("Media types", statistics.formats))
        for each in statistics.distributions:
            bins = [one._asdict() for one in each.bins]
            plots.append({"title": each.name[:1].upper() + each.name[1:], "unit": each.unit, "bins": bins})
    return plots


def _bars(title: str, values: dict[str, int]) -> dict[str, Any]:
    return {"title": title, "bars": [{"name": name, "value": value} for name, value in values.items()]}


def _scores(name: str, counts: Counts) -> dict[str, Any]:
    found = sorted(
        (value, total / rows, rows) for (group, value), (total, rows) in counts.scored.items() if group == name
    )
    bars = [{"name": value, "value": mean, "rows": int(rows)} for value, mean, rows in found[:_MOST_BARS]]
    return {"title": f"Mean score by {name}", "most": 1, "bars": bars}
