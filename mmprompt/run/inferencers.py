"""How a row is asked: once or in turns that need no reply, turn after turn, or by comparing labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from math import inf, isfinite
from typing import NamedTuple

from mmprompt.datasets.sample import Sample
from mmprompt.errors import MMPromptError, TargetError
from mmprompt.render.request import Request
from mmprompt.run.journal import JournalLine, line_key
from mmprompt.run.model import Answer
from mmprompt.run.reply import Reply
from mmprompt.targets.json_values import JSONValue
from mmprompt.targets.wire_json import record_chunks

NextTurn = Callable[[Sample, Sequence[str]], "Request | MMPromptError | None"]
"""Returns the request of the turn after some replies, the error in its place, or None after the last turn."""

Stood = Callable[[int], "tuple[int, JournalLine] | None"]
"""Returns the line with a key that stands in the journal, and its place there; each line once."""


class Facts(NamedTuple):
    """What a row's lines in the journal say beside the request and the reply. ``answer`` is given by turn."""

    answer: Callable[[int | None], JSONValue]
    groups: Mapping[str, JSONValue]


class Job:
    """One request of a row in flight. ``digest`` is the hash of its body, computed by the thread that asks."""

    __slots__ = ("answer", "asked", "digest", "request")

    def __init__(self, asked: AskedRow, request: Request, digest: str = "") -> None:
        self.asked = asked
        self.request = request
        self.digest = digest
        self.answer: Answer | None = None


class AskedRow:
    """A row that is asked, with all its requests; the base asks each of them, in any order.

    ``kept`` are its lines that stand in the journal already, and ``places`` says where. ``renewed`` are those of them
    that the row gives another answer or other groups by now. ``repeat`` is the number of the round of a run that asks
    several times.
    """

    def __init__(self, row: Sample, requests: Sequence[Request], facts: Facts, repeat: int | None = None) -> None:
        self.row = row
        self.facts = facts
        self.repeat = repeat
        self.kept: list[JournalLine] = []
        self.places: dict[int, int] = {}
        self.renewed: list[JournalLine] = []
        self.jobs = [Job(self, request) for request in requests]
        self._left = 0

    def begin(self, stood: Stood, digest: Callable[[Request], str], next_turn: NextTurn) -> list[Job]:  # noqa: ARG002  # for dialogues
        """Return the jobs to ask first, without those whose predictions stand in the journal."""
        wanted = []
        for job in self.jobs:
            line = self.stood(stood, job.request.turn)
            if line is not None:
                job.digest = digest(job.request)
                if line.request == job.digest and line.prediction is not None:
                    self.renew(line, job.request.choices)
                    continue
            wanted.append(job)
        self.jobs = wanted
        self._left = len(wanted)
        return wanted

    def take(self, job: Job, answer: Answer) -> list[Job]:
        """Keep the answer of a job, and return the jobs that follow from it."""
        job.answer = answer if answer.reply is None else answer._replace(reply=_writable(answer.reply))
        self._left -= 1
        return []

    @property
    def finished(self) -> bool:
        """Whether all its requests have an answer."""
        return self._left == 0

    @property
    def error(self) -> MMPromptError | None:
        """The first error among its answers."""
        return next((job.answer.error for job in self.jobs if job.answer is not None and job.answer.error), None)

    @property
    def may_pass(self) -> bool:
        """Whether each of its errors may not come again."""
        return all(job.answer.passing for job in self.jobs if job.answer is not None and job.answer.error is not None)

    def lines(self) -> list[JournalLine]:
        """Return the lines to write: those of the requests that have an answer, and the renewed ones."""
        return [*self.renewed, *[self.line(job) for job in self.jobs if job.answer is not None]]

    def line(self, job: Job) -> JournalLine:
        """Return the line of one request."""
        return self._line(job.request.turn, job.digest, job.answer or Answer(), job.request.choices)

    def failure(self, error: MMPromptError, turn: int | None, choices: tuple[str, ...] = ()) -> JournalLine:
        """Return the line of a request that could not be made."""
        return self._line(turn, None, Answer(error=error, attempts=0), choices)

    def stood(self, stood: Stood, turn: int | None, label: str | None = None) -> JournalLine | None:
        """Return the line of a turn or label that stands in the journal, and keep it."""
        key = line_key(self.row.row, self.row.id, turn, label, self.repeat)  # type: ignore[arg-type]  # see _line
        found = stood(key)
        if found is None:
            return None
        self.places[key], line = found
        self.kept.append(line)
        return line

    def renew(self, line: JournalLine, choices: tuple[str, ...]) -> None:
        """Take what the row says now into a line that keeps its prediction."""
        groups = {**line.groups, **self.facts.groups}
        now = line._replace(answer=self.facts.answer(line.turn), choices=choices, groups=groups, gone=False)
        if now.to_json() != line.to_json():
            self.renewed.append(now)

    def _line(
        self, turn: int | None, digest: str | None, answer: Answer, choices: tuple[str, ...], label: str | None = None
    ) -> JournalLine:
        reply, error = answer.reply, answer.error
        own = label is None
        return JournalLine(
            self.row.row,
            self.row.id,  # type: ignore[arg-type]  # a row's id is JSON, or its line cannot be written
            turn,
            label,
            self.repeat,
            digest,
            None if reply is None else str(reply),
            None if error is None else words(error),
            answer.perplexity,
            self.facts.answer(turn) if own else None,
            choices if own else (),
            self.facts.groups if own else {},
            {} if reply is None else reply.usage,
            round(answer.seconds, 3),
            answer.attempts,
            "" if reply is None else reply.finish_reason,
        )


class Dialogue(AskedRow):
    """A dialogue whose turns need the model's replies: each is asked after the reply to the one before it."""

    def begin(self, stood: Stood, digest: Callable[[Request], str], next_turn: NextTurn) -> list[Job]:
        """Return the job of the first turn that has no reply in the journal; see ``AskedRow``."""
        self._next_turn = next_turn
        self._replies: list[str] = []
        self._failed: MMPromptError | None = None
        first, self.jobs = self.jobs[0], []
        request: Request | MMPromptError | None = first.request
        while isinstance(request, Request):
            line = self.stood(stood, request.turn)
            if line is None or line.prediction is None or line.request != digest(request):
                break
            self.renew(line, request.choices)
            self._replies.append(line.prediction)
            request = next_turn(self.row, self._replies)
        return self._following(request)

    def take(self, job: Job, answer: Answer) -> list[Job]:
        """Keep the reply to a turn, and return the job of the next one."""
        super().take(job, answer)
        if job.answer is None or job.answer.reply is None:
            return []
        self._replies.append(str(job.answer.reply))
        return self._following(self._next_turn(self.row, self._replies))

    def lines(self) -> list[JournalLine]:
        """Return the lines of the turns that were asked, and of one that could not be."""
        failed = [] if self._failed is None else [self.failure(self._failed, len(self._replies))]
        return [*super().lines(), *failed]

    @property
    def error(self) -> MMPromptError | None:
        """The error of a turn that has no answer, or could not be asked."""
        return self._failed or super().error

    @property
    def may_pass(self) -> bool:
        """Whether the error may not come again."""
        return self._failed is None and super().may_pass

    def _following(self, request: Request | MMPromptError | None) -> list[Job]:
        if isinstance(request, MMPromptError):
            self._failed = request
        if not isinstance(request, Request):
            return []
        self.jobs.append(Job(self, request))
        self._left += 1
        return self.jobs[-1:]


class LabelledRow(AskedRow):
    """A row whose labels are compared: that of the lowest perplexity is the prediction, the first one on ties."""

    def begin(self, stood: Stood, digest: Callable[[Request], str], next_turn: NextTurn) -> list[Job]:  # noqa: ARG002  # for dialogues
        """Return the jobs of all labels, or none if the row's prediction stands in the journal."""
        line = self.stood(stood, self.jobs[0].request.turn)
        for job in self.jobs:
            self.stood(stood, job.request.turn, str(job.request.label))
        if line is not None:
            for job in self.jobs:
                job.digest = digest(job.request)
            if line.prediction is not None and line.request == self._digest():
                self.renew(line, self.jobs[0].request.choices)
                self.renewed += [one._replace(gone=False) for one in self.kept if one.gone and one.label is not None]
                self.jobs = []
        self._left = len(self.jobs)
        return self.jobs

    def lines(self) -> list[JournalLine]:
        """Return the lines of the labels, and that of the row; none before all labels have an answer."""
        if not self.jobs or not self.finished:
            return self.renewed
        first = self.jobs[0].request
        answers = [job.answer or Answer() for job in self.jobs]
        lines = [
            self._line(job.request.turn, job.digest, answer, (), str(job.request.label))
            for job, answer in zip(self.jobs, answers, strict=True)
        ]
        whole = Answer(seconds=sum(a.seconds for a in answers), attempts=sum(a.attempts for a in answers))
        row = self._line(first.turn, self._digest(), whole, first.choices)
        if self.error is not None:
            return [*lines, row._replace(error=words(self.error))]
        return [*lines, row._replace(prediction=str(self._best()))]

    def _best(self) -> object:
        """Return the label of the lowest perplexity.

        Labels with the same prompt tie at the lowest of their perplexities, whose last digits depend on the batch.
        """
        worth: dict[str, float] = {}
        for job in self.jobs:
            own = inf if job.answer is None else _finite(job.answer.perplexity)
            worth[job.digest] = min(own, worth.get(job.digest, inf))
        return min(self.jobs, key=lambda job: worth[job.digest]).request.label

    def _digest(self) -> str:
        """Return a hash of the requests of all labels."""
        return sha256("".join([job.digest for job in self.jobs]).encode()).hexdigest()


def _writable(reply: Reply) -> Reply:
    """Return a reply with U+FFFD for each half of a character, and without a usage that JSON cannot hold."""
    try:
        record_chunks({"prediction": reply, "finish_reason": reply.finish_reason, "usage": reply.usage})
    except TargetError:
        text, reason = (
            t.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for t in (reply, reply.finish_reason)
        )
        return Reply(text, reason)
    return reply


def _finite(perplexity: float | None) -> float:
    return perplexity if perplexity is not None and isfinite(perplexity) else inf


def words(error: MMPromptError) -> str:
    """Return an error as the journal has it: its code, what is wrong, and what to do."""
    return "; ".join(filter(None, (f"{error.code} {error.what}", error.hint)))


def check_line(row: Sample, facts: Facts) -> None:
    """Raise the error of a row whose line could not be written, before it is asked.

    Raises:
        TargetError: its id or answer is not JSON.
    """
    try:
        JournalLine(row.row, row.id, answer=facts.answer(None), groups=facts.groups).to_json()  # type: ignore[arg-type]
    except TargetError as error:
        raise row.located(error) from None
