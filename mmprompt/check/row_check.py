"""Checks one row: the errors and notes of its requests, and what the rules on rows and media find."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from mmprompt.check.facts import facts_of, question_of, texts_of
from mmprompt.check.kept import KeptFix, MediumFacts, SampleFacts
from mmprompt.check.media_check import (
    MediaCheck,
    ReadAhead,
    media_of,
    medium_key,
    with_media,
)
from mmprompt.check.media_fixes import medium_fix
from mmprompt.check.rule import CHOICE_RULES, EXPLAINED, MEDIUM_RULES, ROW_RULES, CheckedMedium, CheckedRow, Hit
from mmprompt.check.rules.pixels import BLURRED
from mmprompt.check.target_check import TargetCheck
from mmprompt.datasets.choices import choices_in
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import MediaError, MMPromptError, RowError, Where
from mmprompt.errors.findings import Finding
from mmprompt.media.inspection import ImageContent, VideoContent
from mmprompt.media.medium_names import name_of_medium, naming
from mmprompt.messages import MODALITIES, MediaPart, MediaRef, Message
from mmprompt.render.builder import FAULTS, RequestBuilder
from mmprompt.tasks.task import Task

_T = TypeVar("_T")
_Made = list[list[Message]] | MMPromptError
"""The messages of each request of a row, with their media named; or the error of making them."""

_Rules = Sequence[tuple[str, Callable[[_T], Iterable[Hit]]]]
FAULT = "MM900"
"""The code of a fault in a rule. It is reported whatever codes are chosen."""

HINTS = {
    "MM004": "save the file as UTF-8 without it",
    "MM204": "rename the file, or correct the declared type",
    "MM219": "write it as plain base64",
}
"""What to do about notes of reading that do not say it themselves."""

_KEPT_SHARED = 64
"""How many media of examples and templates are kept between rows."""


class RowReport(NamedTuple):
    """What a row gives: its findings, and facts for the rules on the whole dataset.

    ``number`` is that of the row in the dataset; None for a report on all rows. ``shared`` are findings on media of
    examples and templates, which other rows send too. ``fixes`` mend some of the findings,
    ``thumbnails`` show media by their digests. ``row`` is the row itself.
    """

    findings: list[Finding]
    number: int | None = None
    sample: SampleFacts | None = None
    media: tuple[MediumFacts, ...] = ()
    shared: tuple[Finding, ...] = ()
    fixes: tuple[KeptFix, ...] = ()
    thumbnails: tuple[tuple[bytes, bytes], ...] = ()
    row: Row | None = None


class RowCheck:
    """Checks rows one by one. Safe to share between threads.

    Args:
        task: the task.
        builder: makes the requests of its rows.
        media: reads and decodes media.
        target: holds requests against the limits of targets.
        codes: the codes of the rules that run.
    """

    def __init__(
        self, task: Task, builder: RequestBuilder, media: MediaCheck, target: TargetCheck, codes: Container[str]
    ) -> None:
        self.task = task
        self._builder = builder
        self._media = media
        self._target = target
        self._row_rules = [(code, rule) for code, rule in ROW_RULES.items() if code in codes]
        self._rules_without_choices = [named for named in self._row_rules if named[0] not in CHOICE_RULES]
        self._medium_rules = {
            kind: [(code, rule) for code, (of, rule) in MEDIUM_RULES.items() if of in ("", kind) and code in codes]
            for kind in ("", *MODALITIES)
        }
        self._shared: dict[object, tuple[CheckedMedium, MMPromptError | None]] = {}

    def reports(self, rows: Sequence[tuple[Row, int | None]]) -> Iterator[RowReport]:
        """Check rows, each with its 0-based number in the dataset, None for an error on all rows."""
        made = [self._made(row) for row, _ in rows]
        ahead = self._media.read_ahead(self._to_read(made)) if len(rows) > 1 else {}
        for (row, number), each in zip(rows, made, strict=True):
            yield self._report(row, number, each, ahead)

    def _to_read(self, made: Iterable[_Made]) -> Iterator[MediaRef]:
        """Yield the different media that rows name."""
        known: set[object] = set(self._shared)
        for requests in made:
            for _, part in media_of(requests) if isinstance(requests, list) else ():
                if isinstance(part, MediaRef) and (key := medium_key(part)) not in known:
                    known.add(key)
                    yield part

    def _report(self, row: Row, number: int | None, made: _Made, ahead: ReadAhead) -> RowReport:
        """Check one row, given the messages of its requests or their error."""
        if isinstance(row, RowError):
            return RowReport([Finding.of(row, number)], number, row=row)
        checked = CheckedRow(row, self.task, self._builder.target, self._media.policy.roots)
        shared: list[CheckedMedium] = []
        shared_errors: list[MMPromptError] = []
        requests = self._fill(checked, made, shared, shared_errors, ahead)
        where = Where(row.file, row.line)
        hits = _hits(self._row_rules if checked.choices else self._rules_without_choices, checked)
        explained = {(e, hit.column, hit.offset, hit.part) for code, hit in hits for e in EXPLAINED.get(code, ())}
        places = [(e.code, e.where.column, e.where.offset, e.where.part) for e in checked.errors]
        told = [e for e, place in zip(checked.errors, places, strict=True) if place not in explained]
        errors = [row.located(error) for error in told]
        findings = [Finding.of(error, row.row, row.id) for error in errors]
        findings += [
            Finding.at(
                r.code, r.message, HINTS.get(r.code, ""), where._replace(column=r.column), row.row, row.id
            )._replace(fixable=r.code == "MM004")
            for r in row.remarks
        ]
        found = [_of_hit(code, hit, row, where) for code, hit in hits]
        for medium in checked.media:
            found += self._of_medium(medium, row)
        of_shared = [Finding.of(row.located(error), row.row, row.id) for error in shared_errors]
        of_shared += [finding for medium in shared for finding, _ in self._of_medium(medium, row)]
        media = tuple([_medium_facts(row, medium) for medium in checked.media])
        thumbnails = tuple([(m.digest, m.thumbnail) for m in (*checked.media, *shared) if m.thumbnail])
        facts = facts_of(checked, requests)
        if shared_errors:
            facts = facts._replace(sent=None, question=None)
        fixes = tuple([fix for _, fix in found if fix is not None])
        findings += [finding for finding, _ in found]
        return RowReport(findings, number, facts, media, tuple(of_shared), fixes, thumbnails, row)

    def _fill(
        self,
        row: CheckedRow,
        requests: _Made,
        shared: list[CheckedMedium],
        shared_errors: list[MMPromptError],
        ahead: ReadAhead,
    ) -> list[list[Message]]:
        """Fill in what the rules are given: texts, messages, media and errors. Return the messages of each request."""
        sample = row.sample
        row.texts = tuple(texts_of(sample, self.task))
        row.question = question_of(sample, self.task, row.texts)
        row.choices, row.choice_columns = choices_in(sample.columns)
        row.answer = sample.columns.get(self.task.output_column)
        if isinstance(requests, MMPromptError):
            row.errors.append(requests)
            return []
        row.messages = requests[0] if requests else None
        read: dict[object, CheckedMedium] = {}
        for number, part in media_of(requests):
            key = medium_key(part)
            if key in read:
                continue
            medium = read[key] = self._named(sample, part, number)
            if self.task.assembly is not None and medium.column is None and isinstance(part, MediaRef):
                fault = self._look_once(key, read, part, ahead)
                shared.append(read[key])
                shared_errors += [] if fault is None else [fault]
                continue
            row.media.append(medium)
            try:
                self._media.look(medium, part, ahead)
            except FAULTS as error:
                where = {"column": medium.column, "offset": medium.offset, "part": number}
                row.errors.append(naming(medium.name, _ours(error)).located(**where))
        if not row.errors and not shared_errors:
            held = [[with_media(message, read) for message in messages] for messages in requests]
            row.errors += self._target.errors(sample, held)
        return requests

    def _made(self, row: Row) -> _Made:
        """Return the messages of each request of a row, or the error of making them."""
        try:
            return [] if isinstance(row, RowError) else self._messages(row)
        except FAULTS as error:
            return _ours(error)

    def _messages(self, sample: Sample) -> list[list[Message]]:
        """Return the messages of each request of a row, with their media named."""
        if self.task.assembly is None:
            return [self.task.plain_messages(self._builder.received(sample, change=False))]
        found: list[list[Message]] = []
        for made in self._builder.assembled(sample):
            messages = self.task.messages_of(made)
            found += messages.values() if isinstance(messages, dict) else [messages]
        return found

    def _named(self, sample: Sample, part: MediaPart | MediaRef, number: int) -> CheckedMedium:
        """Return a medium that is not read yet, with its place in the row."""
        if isinstance(part, MediaPart):
            return CheckedMedium(part.modality, part.origin, part.origin, None, None, number)
        place = self.task.place_of(sample, part.source)
        column, offset = place.get("column"), place.get("offset")
        return CheckedMedium(
            part.modality,
            part.source,
            name_of_medium(part),
            column if isinstance(column, str) else None,
            offset if isinstance(offset, int) else None,
            number,
        )

    def _look_once(
        self, key: object, read: dict[object, CheckedMedium], part: MediaRef, ahead: ReadAhead
    ) -> MMPromptError | None:
        """Look at a medium of an example or a template, which many rows send, and return its error."""
        known = self._shared.get(key)
        if known is None:
            medium, fault = read[key], None
            try:
                self._media.look(medium, part, ahead)
            except FAULTS as error:
                fault = naming(medium.name, _ours(error)).located(part=medium.number)
            if len(self._shared) >= _KEPT_SHARED:
                self._shared.clear()
            known = self._shared[key] = medium, fault
        read[key] = known[0]
        return known[1]

    def _of_medium(self, medium: CheckedMedium, row: Sample) -> list[tuple[Finding, KeptFix | None]]:
        if medium.part is None:
            return []
        where = Where(row.file, row.line, medium.column, medium.offset, part=medium.number)
        found = []
        for note in medium.part.findings:
            fix = medium_fix(note.code, medium, row.columns)
            found.append(
                _of_hit(
                    note.code,
                    Hit(f"{medium.name}: {note.what}", note.hint or HINTS.get(note.code, ""), fix=fix),
                    row,
                    where,
                )
            )
        rules = self._medium_rules["" if medium.content is None else medium.modality]
        return found + [_of_hit(told, hit, row, where) for told, hit in _hits(rules, medium)]


def _hits(rules: _Rules[_T], given: _T) -> list[tuple[str, Hit]]:
    """Return what rules find, each with its code. A fault of ours in a rule costs neither row nor run."""
    found = []
    for code, rule in rules:
        try:
            for hit in rule(given):
                found.append((code, hit))  # noqa: PERF401  # a list of each rule would take time
        except Exception as error:  # noqa: BLE001  # whatever it is, the other rules and rows are checked
            fault = Hit(f"the rule {code} failed ({type(error).__name__})", "report it, with this row")
            found = [(other, hit) for other, hit in found if other != code] + [(FAULT, fault)]
    return found


def _of_hit(code: str, hit: Hit, row: Sample, where: Where) -> tuple[Finding, KeptFix | None]:
    """Return the finding of a hit, and its fix."""
    column = where.column if hit.column is None else hit.column
    offset = where.offset if hit.offset is None else hit.offset
    place = where._replace(column=column, offset=offset, part=where.part if hit.part is None else hit.part)
    finding = Finding.at(code, hit.message, hit.hint, place, row.row, row.id)
    severity, fixable = "error" if hit.left_out else finding.severity, hit.fix is not None and hit.fix.safe
    fix = None if hit.fix is None else KeptFix(row.row, row.file, row.line, code, *hit.fix)
    return finding._replace(severity=severity, fixable=fixable), fix


def _ours(error: MMPromptError | MemoryError) -> MMPromptError:
    if isinstance(error, MMPromptError):
        return error
    return MediaError("the row needs more memory than there is", "make its media smaller", code="MM902")


def _medium_facts(row: Sample, medium: CheckedMedium) -> MediumFacts:
    name = medium.name.encode("utf-8", "backslashreplace").decode()  # the store refuses lone surrogates
    place = row.row, medium.number, medium.modality, name, medium.column, medium.offset
    held, part = medium.content, medium.part
    cells, pixels, width, height, seconds = None, None, None, None, None
    if isinstance(held, ImageContent):
        width, height, pixels = held.width, held.height, held.width * held.height
        smooth = held.sharpness is not None and held.sharpness < BLURRED  # its cells say little
        cells = None if smooth else held.cells
    elif isinstance(held, VideoContent):
        width, height, seconds = held.width, held.height, held.seconds
    elif held is not None:
        seconds = held.seconds
    size = 0 if part is None else len(part.data) or sum(map(len, part.frames))
    media_type = None if part is None else part.media_type
    return MediumFacts(*place, medium.digest, cells, pixels, media_type, size, width, height, seconds)
