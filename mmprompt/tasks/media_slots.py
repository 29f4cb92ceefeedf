"""Finds media slots that no row fills. A row may lack media, so a wrong name shows only after all rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from mmprompt.datasets.media_columns import parts_of_value
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import RowError, TaskError, nearest
from mmprompt.segments import START_TAGS
from mmprompt.templates.sample_view import CONTENT

_MODALITIES = frozenset(("image", "audio", "video", "mm_url"))
"""Slots that the segments of a tagged column fill too."""


class UnfilledSlotError(RowError):
    """No row has the column that a media slot names. It follows the last row and is about all of them."""

    code = "MM603"


class SlotTally:
    """Which media columns no row of a part of a dataset had, and all columns that rows had.

    ``is_first`` is True for the part with which the dataset begins. ``unfilled`` is None until all rows are read.
    """

    def __init__(self, *, is_first: bool) -> None:
        self.is_first = is_first
        self.unfilled: list[str] | None = None
        self.columns: list[str] = []


def with_media_slots(
    rows: Iterable[Row], names: Collection[str], by: str = "a media slot", tally: SlotTally | None = None
) -> Iterator[Row]:
    """Yield the rows, and at the end an error for each of the media columns ``names`` that no row had.

    ``by`` is what names them, for messages: a slot of the template, or ``--map``. If the rows are a part of a dataset,
    ``tally`` receives these columns, and there is no error.

    Raises:
        TaskError: the first row lacks such a column and has one of nearly that name.
    """
    unfilled = dict.fromkeys(names)
    every: set[str] = set()
    stream = iter(rows)
    for row in stream if unfilled else ():
        if isinstance(row, Sample):
            for name in [name for name in unfilled if _fills(name, row)]:
                del unfilled[name]
            if not every and (tally is None or tally.is_first):
                _check_names(unfilled, row, names, by)
            every.update(row.columns)
        yield row
        if not unfilled:
            break
    yield from stream
    if tally is not None:
        tally.unfilled, tally.columns = list(unfilled), sorted(every)
    elif every:
        yield from unfilled_slots(unfilled, every, by)


def unfilled_slots(names: Iterable[str], every: Collection[str], by: str) -> Iterator[UnfilledSlotError]:
    """Yield an error for each of the media columns ``names`` that no row had; ``every`` are the columns of the rows."""
    for name in names:
        hint = f"name a media column of the rows ({nearest(name, every)}), or remove it"
        yield UnfilledSlotError(f"no row has the column '{name}', which {by} names", hint, code="MM603").located(
            column=name
        )


def _fills(name: str, sample: Sample) -> bool:
    columns = sample.columns
    if name in columns or sample.messages is not None:
        return True
    return name in _MODALITIES and (
        CONTENT in columns
        or any(_holds_tags(value) or parts_of_value(value, media=False) is not None for value in columns.values())
    )


def _holds_tags(value: object) -> bool:
    """Return True for a text with a start tag, and for a list, such as that of a dialogue's turns, that holds one."""
    if isinstance(value, (list, tuple)):
        return any(map(_holds_tags, value))
    return isinstance(value, str) and any(tag in value for tag in START_TAGS)


def _check_names(unfilled: Collection[str], sample: Sample, slots: Collection[str], by: str) -> None:
    others = [name for name in sample.columns if name not in slots]
    for name in unfilled:
        import difflib  # noqa: PLC0415  # only for a fault

        if near := difflib.get_close_matches(name, others, n=1, cutoff=0.75):
            what = f"the first row has no column '{name}', which {by} names"
            raise TaskError(what, f"did you mean '{near[0]}'?").located(file=sample.file, line=sample.line, column=name)
