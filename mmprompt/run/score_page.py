"""A score report as one page of HTML: the score, a plot for each group, and the rows with the lowest scores.

The page holds all that it shows, runs no script and asks no other host.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import islice

from mmprompt.check.reports.report import page_head, printable
from mmprompt.run.score import ScoredLine, ScoreReport
from mmprompt.run.tally import Score
from mmprompt.targets.json_values import JSONValue

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --bar: #4b83c3; --soft: #777; --bad: #c62828; --ground: #8881; }
@media (prefers-color-scheme: dark) { :root { --bar: #5b96d8; --soft: #999; --bad: #ef6a6a; } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin-top: 2.5rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
.about, .soft { color: var(--soft); }
.cards { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.5rem 0; }
.cards div { background: var(--ground); border-radius: .5rem; padding: .7rem 1.1rem; }
.cards b { display: block; font-size: 1.7rem; font-variant-numeric: tabular-nums; line-height: 1.25; }
.plots { display: flex; flex-wrap: wrap; gap: 1.5rem 2rem; }
figure { margin: 0; } figcaption { font-weight: 600; margin-bottom: .3rem; }
svg { max-width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
svg .soft { fill: var(--soft); font-size: 11px; } svg rect { fill: var(--bar); }
svg path { stroke: currentColor; fill: none; } svg path.grid { stroke: var(--line); }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; } th, td { padding: .4rem .8rem .4rem 0; vertical-align: top; }
td { border-top: 1px solid var(--line); overflow-wrap: anywhere; }
td:first-child { min-width: 6rem; } td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
td.reply, td.answer { white-space: pre-wrap; } td.reply { width: 50%; } td.answer { width: 20%; }
.zero { color: var(--bad); } summary { cursor: pointer; color: var(--soft); } ul { padding-left: 1.2rem; }
"""
_MOST_BARS = 60
_LONGEST = 600
"""Characters of a text that are shown at first; a longer reply opens below."""

_BEGINNING = 200
"""Characters of a long reply's beginning that are shown; the others are its end, which mostly has the answer."""

_LONGEST_WHOLE = 20_000
_NAME, _BAR, _VALUE, _ROW = 184, 216, 108, 24
"""Widths and height of a plot's parts."""

_LONGEST_LABEL = 28


def score_page(report: ScoreReport) -> Iterator[str]:
    """Yield the page in pieces."""
    yield page_head("mmprompt score", _STYLE)
    yield f"<h1>{_text(report.journal)}</h1>\n"
    model = "" if report.model is None else f" \u00b7 model <b>{_text(report.model)}</b>"
    yield f'<div class="about">scored by <b>{_text(report.scorer)}</b>{model}</div>\n'
    yield from _cards(report)
    if report.notes:
        yield f"<ul>{''.join(f'<li>{_text(note.code)} {_text(note)}</li>' for note in report.notes)}</ul>\n"
    if report.groups:
        yield '<h2>Scores by group</h2>\n<div class="plots">\n'
        yield from [_plot(column, values) for column, values in report.groups.items()]
        yield "</div>\n"
    if report.worst:
        yield f"<h2>The {len(report.worst)} lowest scores</h2>\n<table>\n"
        yield "<tr><th>row</th><th>score</th><th>answer</th><th>reply</th></tr>\n"
        yield from map(_row, report.worst)
        yield "</table>\n"
    if report.errors:
        yield "<h2>Errors</h2>\n<table>\n"
        for words, count in islice(report.errors.items(), _MOST_BARS):
            yield f'<tr><td class="number">{count:,}</td><td>{_text(words[:_LONGEST])}</td></tr>\n'
        yield "</table>\n"
    yield "</body></html>\n"


def _cards(report: ScoreReport) -> Iterator[str]:
    total = report.total
    yield '<div class="cards">\n'
    interval = "" if total.interval is None else f"95%: {total.interval.low:.3f} to {total.interval.high:.3f}"
    yield f"<div>score<b>{_number(total.score)}</b><span class='soft'>{interval}</span></div>\n"
    failed = total.rows - total.answered
    errors = f"{failed:,} errors, which count 0" if failed else "all answered"
    yield f"<div>rows<b>{total.rows:,}</b><span class='soft'>{errors}</span></div>\n"
    if failed:
        yield f"<div>of answered<b>{_number(total.over_answered)}</b>"
        yield f"<span class='soft'>{total.answered:,} rows</span></div>\n"
    yield "</div>\n"


def _plot(column: str, values: Mapping[str, Score]) -> str:
    """Return a figure with a bar for each value, its interval as a whisker."""
    shown = list(islice(values.items(), _MOST_BARS))
    height = len(shown) * _ROW + 20
    drawn = [f'<path class="grid" d="M{_x(tick)} 0V{height - 18}"/>' for tick in (0, 0.25, 0.5, 0.75, 1)]
    drawn += [
        f'<text class="soft" x="{_x(tick)}" y="{height - 4}" text-anchor="middle">{tick:g}</text>'
        for tick in (0, 0.5, 1)
    ]
    for number, (name, score) in enumerate(shown):
        drawn += _bar(name, score, number * _ROW)
    more = f'<div class="soft">and {len(values) - _MOST_BARS:,} more</div>' if len(values) > _MOST_BARS else ""
    width, label = _NAME + _BAR + _VALUE, _text(column)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    picture = f'<svg {size} role="img" aria-label="{label}">{"".join(drawn)}</svg>'
    return f"<figure><figcaption>{label}</figcaption>{picture}{more}</figure>\n"


def _bar(name: str, score: Score, top: int) -> Iterator[str]:
    middle, base = top + _ROW / 2, top + 16
    short = name if len(name) <= _LONGEST_LABEL else name[: _LONGEST_LABEL - 1] + "\u2026"
    yield f'<text x="{_NAME - 10}" y="{base}" text-anchor="end">{_text(short)}<title>{_text(name)}</title></text>'
    if score.score is None or score.interval is None:
        return
    length = min(1.0, max(0.0, score.score)) * _BAR
    low, high = _x(score.interval.low), _x(score.interval.high)
    about = f"{name}: {score.score:.4f}, 95% {score.interval.low:.4f} to {score.interval.high:.4f}, {score.rows:,} rows"
    yield f'<rect x="{_NAME}" y="{top + 5}" width="{length:.1f}" height="{_ROW - 10}" rx="2">'
    yield f"<title>{_text(about)}</title></rect>"
    yield f'<path d="M{low} {middle}H{high}M{low} {middle - 4}v8M{high} {middle - 4}v8"/>'
    value = f'{score.score:.3f} <tspan class="soft">of {score.rows:,}</tspan>'
    yield f'<text x="{_NAME + _BAR + 14}" y="{base}">{value}</text>'


def _x(score: float) -> str:
    return f"{_NAME + min(1.0, max(0.0, score)) * _BAR:.1f}"


def _row(one: ScoredLine) -> str:
    line = one.line
    names = [f"{line.row}", f"sample {line.id}"] + ([] if line.turn is None else [f"turn {line.turn}"])
    names += [", ".join(map(_value, line.groups.values()))]
    place = f"{_text(names[0])}<div class='soft'>{'<br>'.join(map(_text, names[1:]))}</div>"
    number = f"<span{' class=zero' if one.score <= 0 else ''}>{one.score:.3g}</span>"
    answer = f"{_text(_value(line.answer))}{_choices(line.choices)}"
    cells = f'<td>{place}</td><td class="number">{number}</td><td class="answer">{answer}</td>'
    return f'<tr>{cells}<td class="reply">{_reply(line.prediction or "")}</td></tr>\n'


def _choices(choices: Sequence[str]) -> str:
    if not choices:
        return ""
    items = "".join(f"<li>{_text(choice[:_LONGEST])}</li>" for choice in choices[:_MOST_BARS])
    return f'<details><summary>{len(choices)} choices</summary><ol type="A">{items}</ol></details>'


def _reply(reply: str) -> str:
    if not reply.strip():
        return '<span class="soft">empty</span>'
    if len(reply) <= _LONGEST:
        return _text(reply)
    short = f"{reply[:_BEGINNING]} \u2026 {reply[_BEGINNING - _LONGEST :]}"
    whole = _text(reply[:_LONGEST_WHOLE]) + ("\u2026" if len(reply) > _LONGEST_WHOLE else "")
    summary = f"<details><summary>{len(reply):,} characters</summary>{whole}</details>"
    return f"{_text(short)}{summary}"


def _value(value: JSONValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "\u2026"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _text(text: str) -> str:
    """Return a text for HTML; control characters, which a reply may hold, are escaped."""
    return escape(printable(text, "\n"))
