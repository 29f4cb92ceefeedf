"""The runner: takes the requests of a task row by row, keeps some in flight, and writes the journal as they finish."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import NamedTuple

from mmprompt.datasets.repeated_ids import IdFile, RepeatedIds
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import DatasetError, MMPromptError, TargetError
from mmprompt.render.builder import FailedRow, RequestBuilder, prepared_rows
from mmprompt.render.request import Request, RequestMaker
from mmprompt.run.flight import ATTEMPTS, Flight
from mmprompt.run.inferencers import AskedRow, Dialogue, Job, LabelledRow
from mmprompt.run.interruption import Interruption
from mmprompt.run.journal import JournalLine
from mmprompt.run.journal_file import JournalFile
from mmprompt.run.model import Answer, Model
from mmprompt.run.passing_failure import PassingFailure
from mmprompt.run.row_facts import RowFacts
from mmprompt.targets.json_values import JSONValue

OnFailed = Callable[[FailedRow, "int | None"], object]
"""Receives a row that ends without a prediction, with its error, and its number; None if it could not be read."""

Round = tuple[int, "int | None"]
"""The number of a row, and the number of its repeat if there are several."""


class RunSettings(NamedTuple):
    """How a run asks; see ``run_task``."""

    options: Mapping[str, JSONValue] = {}
    limit: int | None = None
    repeats: int = 1
    workers: int = 1
    concurrency: int | None = None
    rpm: float | None = None
    retry_errors: bool = False
    group_by: tuple[str, ...] = ()
    attempts: int = ATTEMPTS


class Counts(NamedTuple):
    """What became of the rows. With repeats a row counts once for each.

    ``answered`` rows have a prediction in the journal now; ``kept`` of them had it before this run. ``failed`` rows
    ended with an error. ``stale`` lines of the journal belong to no row of the dataset and count in no score, and
    ``torn`` ones cannot be read. ``repeated`` rows have the id of an earlier row.
    """

    answered: int
    kept: int
    failed: int
    stale: int
    torn: int
    repeated: int
    interrupted: bool


class Runner:
    """Asks a model the requests of a task and writes the answers to a journal. Use it once.

    Args:
        builder: builds the requests, for the model's target.
        model: what is asked.
        journal: receives the lines, and knows those of earlier runs.
        settings: how to ask.
        on_failed: receives each row that ends without a prediction.
        on_row: called after each row that is finished.
        observed: takes the rows of the dataset on their way to the requests, and returns them.
        ids: receives the rows' ids; by default they are compared, and those that stood before are counted.
    """

    def __init__(
        self,
        builder: RequestBuilder,
        model: Model,
        journal: JournalFile,
        settings: RunSettings,
        *,
        on_failed: OnFailed | None = None,
        on_row: Callable[[], object] | None = None,
        observed: Callable[[Iterator[Row]], Iterator[Row]] | None = None,
        ids: RepeatedIds | IdFile | None = None,
    ) -> None:
        self._builder = builder
        self._model = model
        self._journal = journal
        self._settings = settings
        self._on_failed: OnFailed = on_failed or (lambda *_: None)
        self._on_row: Callable[[], object] = on_row or (lambda: None)
        self._observed = observed or iter
        self._ids = ids
        self._task = builder.task
        self._maker = RequestMaker(builder)
        self._facts = RowFacts(self._task, settings.group_by)
        assembly = self._task.assembly
        self._first_turn = 0 if assembly is not None and assembly.infer_mode else None
        dialogue = assembly is not None and assembly.needs_replies
        self._kind = LabelledRow if self._task.mode == "ppl" else Dialogue if dialogue else AskedRow
        self._repeats: tuple[int | None, ...] = (None,) if settings.repeats == 1 else tuple(range(settings.repeats))
        self._again: dict[Round, PassingFailure] | None = {}
        self._probed = self._task.mode != "ppl"
        self._answered = self._kept = self._failed = 0

    def run(self, interruption: Interruption) -> Counts:
        """Ask all rows, then once more those whose error may have passed.

        Raises:
            MMPromptError: the dataset cannot be read, or every request would fail.
            OSError: the journal cannot be written.
        """
        only = self._journal.failed_rows if self._settings.retry_errors else None
        with self._ids or RepeatedIds() as ids, closing(self._jobs(only, ids=ids)) as jobs:
            self._ask(jobs, interruption)
            repeated = sum(1 for _ in ids.repeats())
        again, self._again = self._again or {}, None
        if again and not interruption:
            numbers = {row for row, _ in again}
            with suppress(DatasetError), closing(self._jobs(numbers, again)) as jobs:  # unless it was standard input
                self._ask(jobs, interruption)
        for (number, _), failure in again.items():
            self._fail(failure.row(self._journal.line_at(failure.place)), number)
        whole = self._settings.limit is None and only is None and not interruption
        stale = self._journal.retire() if whole else 0
        counts = (self._answered, self._kept, self._failed, stale, self._journal.torn, repeated)
        return Counts(*counts, interrupted=bool(interruption))

    def _ask(self, jobs: Iterator[Job], interruption: Interruption) -> None:
        """Keep jobs in flight until there are no more, and write each row when its last answer comes."""
        settings, more = self._settings, True
        with Flight(
            self._answers_of,
            concurrency=min(settings.concurrency or self._model.concurrency, self._model.concurrency),
            batch=self._model.batch,
            attempts=settings.attempts,
            rpm=settings.rpm,
            met=self._answered > self._kept,
        ) as flight:
            interruption.stop = flight.stop
            while True:
                while more and flight.room() and not interruption:
                    if (job := next(jobs, None)) is None:
                        more = False
                        break
                    flight.add(job)
                    if not self._probed:  # a server without log-probabilities is asked once
                        break
                if (done := flight.next()) is None:
                    break
                self._probed = True
                for job in self._take(*done):
                    flight.add(job)
            interruption.stop = None
            for asked in {job.asked for job in flight.left()}:
                self._journal.write(asked.lines())

    def _answers_of(self, jobs: Sequence[Job]) -> list[Answer]:
        """Ask for one batch; a thread of the flight calls this."""
        for job in jobs:
            job.digest = job.digest or self._digest(job.request)
        if self._task.mode == "ppl":
            return self._model.perplexities([job.request for job in jobs])
        by_repeat: dict[int | None, list[Job]] = {}
        for job in jobs:
            by_repeat.setdefault(job.asked.repeat, []).append(job)
        answers = {
            job: answer
            for repeat, same in by_repeat.items()
            for job, answer in zip(same, self._model.ask([j.request for j in same], self._options(repeat)), strict=True)
        }
        return [answers[job] for job in jobs]

    def _options(self, repeat: int | None) -> Mapping[str, JSONValue]:
        """Return the generation settings. Each repeat has its own seed: with the same a local model says the same."""
        options = self._settings.options
        seed = options.get("seed", 0 if self._model.target == "hf" else None)
        return {**options, "seed": seed + repeat} if repeat and isinstance(seed, int) else options

    def _take(self, job: Job, answer: Answer) -> list[Job]:
        """Keep an answer, and return the jobs that follow from it."""
        if answer.hopeless and answer.error is not None:
            raise answer.error
        following = job.asked.take(job, answer)
        if job.asked.finished:
            self._finish(job.asked)
            job.asked.jobs.clear()  # jobs and row hold each other, and the media of both would stay for a while
        return following

    def _jobs(
        self,
        only: Collection[int] | None,
        rounds: dict[Round, PassingFailure] | None = None,
        ids: RepeatedIds | IdFile | None = None,
    ) -> Generator[Job, None, None]:
        """Yield the jobs to begin with: of all rows, or of those whose numbers are in ``only``.

        ``rounds`` are asked again; each is taken out when its turn comes. ``ids`` receives the rows' ids.
        """
        rows = self._observed(itertools.islice(self._task.samples(), self._settings.limit))
        if only is not None:
            rows = (row for row in rows if isinstance(row, Sample) and row.row in only)
        with prepared_rows(self._builder, self._builder.prepare, rows, self._settings.workers) as prepared:
            for made in prepared:
                if ids is not None and isinstance(made.row, Sample):
                    ids.add(made.row.id, made.row.row)
                if isinstance(made, FailedRow):
                    self._fail_unasked(made, rounds)
                    continue
                try:
                    facts = self._facts.of(made.row)
                except TargetError as error:
                    self._fail(FailedRow(made.row, error), made.row.row)
                    continue
                requests = self._maker.of(made)
                for repeat in self._repeats:
                    if rounds is None or rounds.pop((made.row.row, repeat), None) is not None:
                        yield from self._begun(self._kind(made.row, requests, facts, repeat))

    def _begun(self, asked: AskedRow) -> list[Job]:
        """Return the first jobs of a row; none if it is answered already."""
        jobs = asked.begin(self._stood, self._digest, self._next_turn)
        if not jobs and asked.error is not None:
            self._finish(asked)
        elif not jobs:
            if asked.renewed:
                self._journal.write(asked.renewed)
            self._kept += 1
            self._answered += 1
            self._on_row()
        return jobs

    def _finish(self, asked: AskedRow) -> None:
        """Write the lines of a row, without errors that stand there word for word."""
        lines = asked.lines()
        wrong = next((line.key for line in lines if line.error is not None), 0)
        if asked.kept:
            before = {line.key: line for line in asked.kept}
            lines = [line for line in lines if not _is_same_error(line, before.get(line.key))]
        places = self._journal.write(lines)
        row, error = asked.row, asked.error
        if error is None:
            self._answered += 1
        elif asked.may_pass and self._again is not None:
            stands = {**asked.places, **dict(zip([line.key for line in lines], places, strict=True))}
            for key, place in stands.items():
                self._journal.remember(key, place)
            self._again[row.row, asked.repeat] = PassingFailure(stands[wrong], row.file, row.line)
            return
        else:
            self._fail(FailedRow(row, row.located(error)), row.row)
            return
        self._on_row()

    def _fail_unasked(self, failed: FailedRow, rounds: dict[Round, PassingFailure] | None) -> None:
        """Write the error of a row that gives no request; a row that cannot be read has no line."""
        if not isinstance(failed.row, Sample):
            self._fail(failed, None)
            return
        for repeat in self._repeats:
            if rounds is not None:
                rounds.pop((failed.row.row, repeat), None)
            with suppress(TargetError):  # its id or answer is not JSON
                asked = AskedRow(failed.row, (), self._facts.of(failed.row), repeat)
                line = asked.failure(failed.error, self._first_turn)
                if not _is_same_error(line, asked.stood(self._stood, self._first_turn)):
                    self._journal.write([line])
        self._fail(failed, failed.row.row)

    def _fail(self, failed: FailedRow, number: int | None) -> None:
        self._failed += 1
        self._on_row()
        self._on_failed(failed, number)

    def _stood(self, key: int) -> tuple[int, JournalLine] | None:
        """Return where the line with a key stands in the journal, and the line."""
        place = self._journal.place(key)
        return None if place is None else (place, self._journal.line_at(place))

    def _digest(self, request: Request) -> str:
        return request.digest(self._model.name)

    def _next_turn(self, row: Sample, replies: Sequence[str]) -> Request | MMPromptError | None:
        made = self._builder.prepare(row, replies)
        if isinstance(made, FailedRow):
            return made.error
        return next(iter(self._maker.of(made)), None)


def _is_same_error(line: JournalLine, before: JournalLine | None) -> bool:
    return (
        before is not None
        and line.error is not None
        and (line.error, line.request, line.gone) == (before.error, before.request, before.gone)
    )
