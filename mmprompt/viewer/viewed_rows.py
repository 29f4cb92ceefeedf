"""The rows of a task as they are shown: each with its view and the findings of a check, in one pass."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from itertools import islice
from typing import NamedTuple

from mmprompt.check.check import Codes
from mmprompt.check.checker import Checker
from mmprompt.check.kept import MediumFacts
from mmprompt.check.row_check import RowReport
from mmprompt.check.selection import Selection
from mmprompt.check.statistics import Statistics, statistics_of
from mmprompt.check.store import Store
from mmprompt.datasets.sample import Row
from mmprompt.errors.findings import Finding
from mmprompt.media.policy import MediaPolicy
from mmprompt.tasks.task import Task
from mmprompt.viewer.journal_task import is_held
from mmprompt.viewer.row_view import RowView, RowViews

_KEPT = 1 << 15
"""Of how many media it is remembered how long they play."""

Chosen = Callable[[Row], bool]


class ViewedRow(NamedTuple):
    """A row and what a check found in it. The findings on the whole dataset come last, without a ``view``.

    ``number`` is that of the row in the dataset. ``statistics`` come with the findings on the whole dataset.
    """

    view: RowView | None
    findings: list[Finding]
    number: int | None = None
    statistics: Statistics | None = None


class Choice(NamedTuple):
    """Which rows are shown, for which target, and how they are checked.

    ``policy`` says which media may be read, by default those that the task says. ``chosen`` picks rows; the rules on
    the whole dataset run only without it. ``check``: look for findings; ``decode``: look inside media too. ``codes``
    are those to report, by default all errors and warnings. ``fit``: change media as little as each target needs.
    """

    target: str = "vllm"
    policy: MediaPolicy | None = None
    limit: int | None = None
    chosen: Chosen | None = None
    check: bool = True
    decode: bool = True
    codes: Codes = ()
    workers: int = 1
    fit: bool = False


def viewed_rows(task: Task, views: RowViews, choice: Choice) -> Iterator[ViewedRow]:
    """Yield the rows of a task, and at the end the findings on the whole dataset."""
    codes = [choice.codes] if isinstance(choice.codes, str) else list(choice.codes)
    if not choice.check or is_held(task):
        for number, row in enumerate(_chosen(task, choice)):
            yield ViewedRow(views.view(row), [], _number(row, number))
        return
    lengths = _Lengths()
    selection = Selection(codes, [], [])
    checker = Checker(task, policy=choice.policy, decode=choice.decode, codes=selection, limit=choice.limit)
    with closing(checker), Store() as store, closing(_reports(checker, store, choice)) as reports:
        for report in reports:
            if report.row is None:
                yield ViewedRow(None, report.findings, statistics=statistics_of(store))
                continue
            lengths.note(report.media)
            place = _number(report.row, report.number)
            yield ViewedRow(views.view(report.row, lengths.seconds), [*report.findings, *report.shared], place)


def _chosen(task: Task, choice: Choice) -> Iterator[Row]:
    rows = task.samples() if choice.chosen is None else filter(choice.chosen, task.samples())
    return islice(rows, choice.limit)


def _reports(checker: Checker, store: Store, choice: Choice) -> Generator[RowReport, None, None]:
    if choice.chosen is None:
        yield from checker.check(store, choice.workers)
    else:
        yield from checker.reports(_chosen(checker.task, choice))


def _number(row: Row, number: int | None) -> int | None:
    return number if isinstance(row, Exception) else row.row


class _Lengths:
    """How long media play, by the digests of their bytes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, float] = OrderedDict()

    def note(self, media: tuple[MediumFacts, ...]) -> None:
        for medium in media:
            if medium.seconds is not None:
                self._kept[medium.digest.hex()] = medium.seconds
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)

    def seconds(self, digest: str) -> float | None:
        return self._kept.get(digest)
