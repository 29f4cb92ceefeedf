"""A report as one page of HTML: counts, histograms, and the findings with small pictures of what is wrong.

The page holds all that it shows and runs no script.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from html import escape
from typing import ClassVar

from mmprompt.check.reports.histogram import histogram
from mmprompt.check.reports.report import Report, page_head, printable
from mmprompt.check.statistics import statistics_of
from mmprompt.check.store import Store
from mmprompt.check.summary import Summary
from mmprompt.errors.findings import Finding
from mmprompt.errors.rules import RULES
from mmprompt.media.base64_text import encode_text

_OF_PICTURES = frozenset([code for code in RULES if code[:3] in {"MM2", "MM3"}])

_SHOWN = 50
"""Findings of one code that a dataset's part of the page shows; the others are counted."""

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --error: #c62828; --warning: #b26a00; --info: #1565c0; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.8rem 0 .4rem; }
table { border-collapse: collapse; } td { padding: .25rem .8rem .25rem 0; text-align: left; vertical-align: top; }
td.count { text-align: right; font-variant-numeric: tabular-nums; }
ul.codes { columns: 18rem; list-style: none; padding: 0; } ul.codes a { text-decoration: none; color: inherit; }
.error { color: var(--error); } .warning { color: var(--warning); } .info { color: var(--info); }
table.findings { width: 100%; } .findings td { border-top: 1px solid var(--line); overflow-wrap: anywhere; }
.findings td.look { width: 170px; } .findings td.place { width: 16rem; font-family: ui-monospace, monospace; }
.look img { display: block; max-width: 160px; max-height: 160px; border: 1px solid var(--line); }
.look .unseen { border: 1px dashed var(--line); color: #777; font-size: .8rem; padding: 1.5rem .5rem;
  text-align: center; }
.none, .hint { color: #777; } .charts { display: flex; flex-wrap: wrap; gap: 1.5rem; }
figure { margin: 0; } figcaption { font-size: .85rem; } svg text { font: 10px system-ui, sans-serif; fill: #777; }
svg rect { fill: #4b83c3; }
"""


class HTMLReport(Report):
    """One page. The counts of all datasets stand at its end."""

    thumbnails: ClassVar[bool] = True
    _number = 0

    def begin(self) -> None:
        """Write the head of the page."""
        self.write(page_head("mmprompt check", _STYLE) + "<h1>mmprompt check</h1>\n")

    def dataset(self, name: str, store: Store) -> None:
        """Write the part of a dataset: its counts, its histograms, and its findings by code."""
        self._number += 1
        self.write(f"<h2>{_text(name)}</h2>\n")
        counts = list(store.query("SELECT code, COUNT(*) FROM findings GROUP BY code ORDER BY 2 DESC, 1"))
        self._charts(store)
        self.write('<ul class="codes">\n' if counts else "<p>All checks passed!</p>\n")
        for code, count in counts:
            rule = RULES[code]
            words = f'<b class="{rule.severity}">{code}</b> {_text(rule.name.replace("-", " "))}: {count:,}'
            self.write(f'<li><a href="#{code}-{self._number}">{words}</a></li>\n')
        self.write("</ul>\n" if counts else "")
        for code, count in counts:
            self._of_code(code, count, store)

    def _charts(self, store: Store) -> None:
        found = statistics_of(store)
        self.write('<div class="charts">\n')
        for each in found.distributions:
            bars = [(one.low, one.high, one.values) for one in each.bins]
            self.write(histogram(f"{each.name} ({each.unit})", bars))
        answers = "".join(
            f'<tr><td class="count">{count:,}</td><td>{_text(answer)}</td></tr>'
            for answer, count in found.answers.items()
        )
        if answers:
            caption = f"most frequent of {found.distinct_answers:,} answers"
            self.write(f"<figure><figcaption>{caption}</figcaption><table>{answers}</table></figure>\n")
        self.write("</div>\n")

    def _of_code(self, code: str, count: int, store: Store) -> None:
        rule = RULES[code]
        heading = f'<h3 id="{code}-{self._number}"><span class="{rule.severity}">{code}</span>'
        self.write(f'{heading} {_text(rule.name.replace("-", " "))}</h3>\n<table class="findings">\n')
        for finding in store.findings_of(code, _SHOWN):
            self.write(f'<tr><td class="look">{"".join(_looks(finding, store))}</td>')
            self.write(f'<td class="place">{_place(finding)}</td><td>{_text(finding.message)}')
            self.write(f'<div class="hint">{_text(finding.hint)}</div></td></tr>\n')
        self.write("</table>\n")
        if count > _SHOWN:
            self.write(f'<p class="none">and {count - _SHOWN:,} more</p>\n')

    def end(self, summary: Summary) -> None:
        """Write the counts."""
        self.write(f"<h2>All</h2>\n<p>{_text(str(summary))}</p>\n</body></html>\n")


def _place(finding: Finding) -> str:
    words = [finding._replace(file=os.path.basename(finding.file or "")).place]
    words += [] if finding.id is None else [f"sample {finding.id}"]
    words += [] if finding.column is None else [finding.column]
    return "<br>".join(_text(word) for word in words if word)


def _looks(finding: Finding, store: Store) -> Iterator[str]:
    """Yield the small pictures of the media that a finding is about; where none can be made, the names of pictures."""
    found = list(store.thumbnails(finding))
    for data in found:
        source = "data:image/jpeg;base64," + encode_text(data)
        yield f'<img alt="" loading="lazy" src="{source}">'
    if not found and finding.code in _OF_PICTURES:
        for name in store.pictures(finding):
            yield f'<div class="unseen">cannot be shown<br>{_text(name)}</div>'


def _text(text: str) -> str:
    """Return a text for HTML; control characters, and what no text can hold, are escaped."""
    return escape(printable(text, "\n"))
