"""Checks the rows of a task one by one: what its requests' errors and notes say, and what the rules find."""

from __future__ import annotations

import itertools
import json
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from typing import NamedTuple

import mmprompt.check.rules  # noqa: F401  # registers the rules
from mmprompt.check.facts import digest_of, facts_of, question_of, texts_of
from mmprompt.check.rule import (
    DATASET_RULES,
    EXPLAINED,
    MEDIUM_RULES,
    ROW_RULES,
    TASK_RULES,
    CheckedMedium,
    CheckedRow,
    Hit,
)
from mmprompt.check.store import MediumFacts, SampleFacts, Store
from mmprompt.datasets.choices import choices_in
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import MediaError, MMPromptError, RowError, Where
from mmprompt.errors.findings import Finding
from mmprompt.media.inspection import inspect
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.sandbox.decoders import decoder
from mmprompt.media.sources import in_short
from mmprompt.messages import MediaPart, MediaRef, Message, TextPart
from mmprompt.render.builder import FAULTS, RequestBuilder
from mmprompt.render.media import sample_bytes
from mmprompt.render.parallel import ordered_map
from mmprompt.tasks.task import Task

_SAME = {"MM611": "MM715", "MM102": "MM105"}
"""Notes on all rows that a rule tells better, row by row."""


class RowReport(NamedTuple):
    """What a row gives: its findings, and facts for the rules on the whole dataset."""

    findings: list[Finding]
    sample: SampleFacts | None = None
    media: tuple[MediumFacts, ...] = ()


class Checker:
    """Checks the rows of a task. Close it to end its decoding processes.

    Args:
        task: the task, or a dataset's default one.
        target: the target whose limits hold.
        policy: which media may be read; by default those below the dataset's folder.
        decode: look inside media; without it their headers alone are judged.
    """

    def __init__(
        self, task: Task, target: str = "vllm", *, policy: MediaPolicy | None = None, decode: bool = True
    ) -> None:
        self.task = task
        self.builder = RequestBuilder(task, target, media="inline", policy=policy)
        self._decoder = decoder(self.builder.media.reader.policy) if decode else None

    def close(self) -> None:
        """End the decoding processes."""
        self.builder.close()
        if self._decoder is not None:
            self._decoder.close()

    def check(self, store: Store, workers: int = 1) -> Iterator[RowReport]:
        """Check all rows, then the whole dataset. Yields the report of each row as it is kept, in order."""
        store.target, store.output_column = self.builder.target, self.task.output_column
        rows = self.task.config.test_range
        numbers = itertools.count(rows.start or 0, rows.step or 1)
        with closing(self._reports(zip(self.task.samples(), numbers, strict=False), workers)) as reports:
            for report in reports:
                store.add(*report)
                yield report
        store.once("MM003")
        for code, rule in DATASET_RULES.items():
            store.add_findings([self._of_dataset(code, hit, store) for hit in rule(store)])
        for code, of_task in TASK_RULES.items():
            store.add_findings([self._of_dataset(code, hit, store) for hit in of_task(self.task)])
        told = {code for (code,) in store.query("SELECT DISTINCT code FROM findings")}
        notes = [note for note in self.task.notes() if told.isdisjoint((note.code, _SAME.get(note.code)))]
        store.add_findings([note.finding for note in notes])

    def _reports(self, rows: Iterable[tuple[Row, int]], workers: int) -> Generator[RowReport, None, None]:
        def report(numbered: tuple[Row, int]) -> RowReport:
            return self.row(*numbered)

        if workers == 1:
            yield from map(report, rows)
        else:
            size = lambda numbered: sample_bytes(numbered[0])  # noqa: E731
            yield from ordered_map(report, rows, workers, item_bytes=size, result_bytes=lambda _: 0)

    def row(self, row: Row, number: int) -> RowReport:
        """Check one row; ``number`` is its 0-based number in the dataset."""
        if isinstance(row, RowError):
            return RowReport([Finding.of(row, number)])
        checked, requests = self._checked(row)
        hits = [(code, hit) for code, rule in ROW_RULES.items() for hit in rule(checked)]
        explained = {(error, hit.column) for code, hit in hits for error in EXPLAINED[code]}
        errors = [row.located(error) for error in checked.errors if (error.code, error.where.column) not in explained]
        findings = [Finding.of(error, row.row, row.id) for error in errors]
        where = Where(row.file, row.line)
        findings += [
            Finding.at(r.code, r.message, "", where._replace(column=r.column), row.row, row.id) for r in row.remarks
        ]
        findings += [self._of_row(code, hit, row) for code, hit in hits]
        for medium in checked.media:
            findings += self._of_medium(medium, row)
        return RowReport(
            findings, facts_of(checked, requests), tuple([_medium_facts(row, medium) for medium in checked.media])
        )

    def _checked(self, sample: Sample) -> tuple[CheckedRow, list[list[Message]]]:
        """Return a row as rules see it, and the messages of its requests."""
        row = CheckedRow(sample, self.task, self.builder.target, self.builder.media.reader.policy.roots)
        row.texts = tuple(texts_of(sample, self.task))
        row.question = question_of(sample, self.task, row.texts)
        row.choices, row.choice_columns = choices_in(sample.columns)
        row.answer = sample.columns.get(self.task.output_column)
        try:
            requests = self._messages(sample)
        except FAULTS as error:
            row.errors.append(_ours(error))
            return row, []
        row.messages = requests[0] if requests else None
        read: dict[tuple[str, int], CheckedMedium] = {}
        for messages in requests:
            self._read(row, messages, read)
        row.media = list(read.values())
        if not row.errors:
            for messages in requests:
                self._write(row, messages, read)
        return row, requests

    def _messages(self, sample: Sample) -> list[list[Message]]:
        """Return the messages of each request of a row, with their media named."""
        plain = self.task.plain_messages(self.builder.received(sample, change=False))
        if plain is not None:
            return [plain]
        found: list[list[Message]] = []
        for made in self.builder.assembled(sample):
            messages = self.task.messages_of(made)
            found += messages.values() if isinstance(messages, dict) else [messages]
        return found

    def _read(self, row: CheckedRow, messages: list[Message], read: dict[tuple[str, int], CheckedMedium]) -> None:
        """Read and decode the media of a request that were not read yet; each error is one of the row."""
        for message in messages:
            for number, part in enumerate(message.parts, 1):
                if isinstance(part, TextPart) or (key := _key(part)) in read:
                    continue
                source = part.source if isinstance(part, MediaRef) else part.origin
                place = self.task.place_of(row.sample, source) if isinstance(part, MediaRef) else {}
                column, offset = place.get("column"), place.get("offset")
                medium = CheckedMedium(
                    part.modality,
                    source,
                    in_short(source) if isinstance(part, MediaRef) else part.origin,
                    column if isinstance(column, str) else None,
                    offset if isinstance(offset, int) else None,
                    number,
                )
                read[key] = medium
                try:
                    medium.part = self._part(part)
                    if medium.part is not None:
                        medium.digest = digest_of(medium.part)
                        if self._decoder is not None:
                            medium.content = self._decoder.run(inspect, medium.part, self.builder.media.reader.policy)
                except FAULTS as error:
                    where = {"column": column, "offset": offset, "part": number}
                    row.errors.append(_ours(error).located(**where))

    def _part(self, part: MediaPart | MediaRef) -> MediaPart | None:
        made = self.builder.media.reader.read(part) if isinstance(part, MediaRef) else part
        return made if isinstance(made, MediaPart) else None

    def _write(self, row: CheckedRow, messages: list[Message], read: dict[tuple[str, int], CheckedMedium]) -> None:
        """Compare a request with the limits of its target."""
        held = [
            m._replace(parts=tuple([p if isinstance(p, TextPart) else read[_key(p)].part or p for p in m.parts]))
            for m in messages
        ]
        try:
            self.builder.wire(row.sample, held)
        except FAULTS as error:
            row.errors.append(_ours(error))

    def _of_row(self, code: str, hit: Hit, row: Sample) -> Finding:
        where = Where(row.file, row.line, hit.column, hit.offset)
        return Finding.at(code, hit.message, hit.hint, where, row.row, row.id)._replace(fixable=hit.fix is not None)

    def _of_medium(self, medium: CheckedMedium, row: Sample) -> list[Finding]:
        where = Where(row.file, row.line, medium.column, medium.offset, part=medium.number)
        notes = [] if medium.part is None else medium.part.findings
        found = [Finding.at(n.code, f"{medium.name}: {n.what}", n.hint, where, row.row, row.id) for n in notes]
        for code, (modality, rule) in MEDIUM_RULES.items():
            if medium.part is None or (modality and (modality != medium.modality or medium.content is None)):
                continue
            found += [Finding.at(code, hit.message, hit.hint, where, row.row, row.id) for hit in rule(medium)]
        return found

    def _of_dataset(self, code: str, hit: Hit, store: Store) -> Finding:
        """Return the finding of a rule on the whole dataset, with the place of its row."""
        known = None if hit.row is None else store.sample(hit.row)
        if known is None:
            return Finding.at(code, hit.message, hit.hint, Where(column=hit.column), hit.row)
        where = Where(known.file, known.line, hit.column, hit.offset)
        return Finding.at(code, hit.message, hit.hint, where, hit.row, json.loads(known.id))


def _key(part: MediaPart | MediaRef) -> tuple[str, int]:
    held = part.source if isinstance(part, MediaRef) else part
    return part.modality, hash(held) if isinstance(held, str) else id(held)


def _ours(error: MMPromptError | MemoryError) -> MMPromptError:
    if isinstance(error, MMPromptError):
        return error
    return MediaError("the row needs more memory than there is", "make its media smaller", code="MM902")


def _medium_facts(row: Sample, medium: CheckedMedium) -> MediumFacts:
    place = (medium.column, medium.offset)
    return MediumFacts(row.row, medium.number, medium.modality, medium.name, *place, medium.digest)
