"""The index of a page: what its list shows of each row, searches and filters; and the counts of rows of each kind."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mmprompt.datasets.sample import GROUPS, Sample
from mmprompt.errors import Where
from mmprompt.errors.rules import RULES
from mmprompt.messages import MODALITIES
from mmprompt.viewer.exhibit import Exhibit
from mmprompt.viewer.medium import Medium
from mmprompt.viewer.row_view import RowView
from mmprompt.viewer.viewed_rows import ViewedRow

SEARCHED = 4000
"""Characters of a row's texts that a search looks at."""

_SHORT = 200
_MOST_VALUES = 200
"""A column with more values than this is no group."""

_Entry = dict[str, Any]


def entry_of(view: RowView, viewed: ViewedRow, exhibit: Exhibit) -> _Entry:
    """Return the entry of a row."""
    row, number, findings = view.row, viewed.number, viewed.findings
    replies = exhibit.told(number)
    sample, place = (row, Where(row.file, row.line)) if isinstance(row, Sample) else (None, row.where)
    answer = None if sample is None else sample.columns.get(exhibit.task.output_column)
    asked = _asked(view)
    picture = next((m for m in asked.media if m.modality == "image" and m.digests), None)
    picture = picture or next((m for m in asked.media if m.digests and m.modality == "video"), None)
    scores = [reply["score"] for reply in replies if reply.get("score") is not None]
    return {
        "key": json.dumps(number if sample is None else sample.id, default=str),
        "id": "" if sample is None else sample.label,
        "row": number,
        "file": os.path.basename(place.file or ""),
        "line": place.line,
        "text": asked.text[:SEARCHED] or ("" if view.error is None else view.error.what[:_SHORT]),
        "answer": "" if answer is None else str(answer)[:_SHORT],
        "modalities": [name for name in MODALITIES if any(m.modality == name for m in view.media)],
        "codes": list(dict.fromkeys(finding.code for finding in findings)),
        "score": sum(scores) / len(scores) if scores else None,
        "failed": bool(replies) and all(reply.get("error") is not None for reply in replies),
        "error": view.error is not None,
        "groups": {} if sample is None else _groups(sample, replies),
        "picture": None if picture is None else [picture.digests[0], picture.media_type],
        "hash": _digest(view),
        "prediction": "\n".join([str(reply.get("prediction", "")) for reply in replies])[:SEARCHED],
    }


class _Asked(NamedTuple):
    text: str
    media: list[Medium]


def _asked(view: RowView) -> _Asked:
    """Return what a row itself asks: the texts of its own, else all of its user messages, and the last one's media."""
    users = [m for request in view.requests[:1] for m in request.messages if m.role not in ("system", "assistant")]
    own = [span.text for m in users for part in m.parts for span in part.spans if span.origin == "row"]
    every = [span.text for m in users for part in m.parts for span in part.spans]
    numbers = [part.medium for part in (users[-1].parts if users else ()) if part.medium is not None]
    return _Asked(" ".join(own or every), [view.media[number] for number in numbers])


class Counts:
    """How many rows are of each kind, for the choices above the list."""

    def __init__(self) -> None:
        self.rows = self.errors = 0
        self.modalities: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self.scores: Counter[str] = Counter()
        self.groups: dict[str, Counter[str]] = {}
        self.scored: dict[tuple[str, str], Counter[float]] = {}  # how often each score occurs

    def add(self, entry: _Entry) -> None:
        """Count a row."""
        self.rows += 1
        self.errors += entry["error"]
        self.modalities.update(entry["modalities"] or ["text"])
        self.codes.update(entry["codes"])
        self.scores[score_kind(entry)] += 1
        for name, value in (("", ""), *entry["groups"].items()):
            if name:
                self.groups.setdefault(name, Counter())[str(value)] += 1
            if entry["score"] is not None:
                self.scored.setdefault((name, str(value)), Counter())[entry["score"]] += 1

    @property
    def data(self) -> dict[str, Any]:
        """The counts for a page."""
        groups = {name: _ordered(values) for name, values in self.groups.items() if 1 < len(values) <= _MOST_VALUES}
        scores = {
            kind: self.scores[kind] for kind in ("right", "partly", "wrong", "failed", "none") if self.scores[kind]
        }
        codes = dict(sorted(self.codes.items()))
        return {"modalities": _ordered(self.modalities), "codes": codes, "scores": scores, "groups": groups}


def rules_of(codes: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the severity and the name of each code."""
    return {
        code: {"severity": RULES[code].severity, "name": RULES[code].name.replace("-", " ")}
        for code in sorted(set(codes))
    }


def score_kind(entry: _Entry) -> str:
    """Return how good the replies to a row are, in one word."""
    if entry["failed"]:
        return "failed"
    if entry["score"] is None:
        return "none"
    return "right" if entry["score"] >= 1 else "wrong" if entry["score"] <= 0 else "partly"


def _groups(sample: Sample, replies: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    found = {name: sample.columns[name] for name in GROUPS if sample.columns.get(name) not in (None, "")}
    for reply in replies[:1]:
        found = {**found, **reply.get("groups", {})}
    return {name: str(value)[:_SHORT] for name, value in found.items() if isinstance(value, (str, int, float))}


def _ordered(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items(), key=lambda item: (-item[1], item[0])))


def _digest(view: RowView) -> str:
    """Return a digest of what the requests of a row say, to see whether two differ."""
    digest = hashlib.sha256()
    for request in view.requests:
        said = [(m.role, m.text, m.beside) for m in request.messages]
        digest.update(json.dumps([said, request.turn, str(request.label)], default=str).encode())
    for medium in view.media:
        digest.update(repr((medium.digests, medium.url)).encode())
    return digest.hexdigest()[:16]
