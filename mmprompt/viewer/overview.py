"""The overview of a page: tiles with a number each, and plots as plain data, which the page draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from mmprompt.check.statistics import Statistics
from mmprompt.errors.rules import RULES
from mmprompt.run.intervals import interval_of
from mmprompt.viewer.index import Counts

_MOST_BARS = 12

WORDS = {"right": "right", "partly": "partly right", "wrong": "wrong", "failed": "no reply", "none": "without score"}
"""What each kind of score is called."""


def tiles_of(counts: Counts, statistics: Statistics | None) -> list[tuple[str, str]]:
    """Return numbers and what they count."""
    scores = tuple(counts.scored.get(("", ""), Counter[float]()).copy().elements())  # more rows may come meanwhile
    tiles = [(f"{counts.rows:,}", "samples")]
    if (interval := interval_of(scores)) is not None:
        what = f"mean score of {len(scores):,}, 95% {interval.low:.3f} to {interval.high:.3f}"
        tiles.append((f"{sum(scores) / len(scores):.3f}", what))
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
    scored = list(counts.scored.items())  # more rows may come meanwhile
    found = sorted((value, scores.copy()) for (group, value), scores in scored if group == name)
    bars = [_score_bar(value, tuple(scores.elements())) for value, scores in found[:_MOST_BARS]]
    return {"title": f"Mean score by {name}", "most": 1, "bars": bars}


def _score_bar(name: str, scores: Sequence[float]) -> dict[str, Any]:
    """Return a bar with the 95% interval of a mean."""
    bar = {"name": name, "value": sum(scores) / len(scores), "rows": len(scores)}
    interval = interval_of(scores)
    return bar if interval is None else {**bar, **interval._asdict()}
