"""What a rule is, what it is given, and what it finds.

A rule is one small function with one code. It yields a ``Hit`` for each fault, and stands in a module of its family
below ``mmprompt/check/rules``. Its page stands in ``mmprompt/check/pages``; its severity in ``mmprompt.errors.rules``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mmprompt.errors import MMPromptError

if TYPE_CHECKING:
    from mmprompt.check.store import Store
    from mmprompt.datasets.sample import Sample
    from mmprompt.media.inspection import AudioContent, ImageContent, VideoContent
    from mmprompt.messages import MediaPart, Message
    from mmprompt.tasks.task import Task


class Fix(NamedTuple):
    """A new value for a column of the row. ``safe``: the meaning of the row stays.

    With ``old`` the value replaces that text in the column, or that element of its list, and not all of it.
    """

    column: str
    value: object
    safe: bool = True
    old: str | None = None


class Hit(NamedTuple):
    """A fault that a rule found. A rule on the whole dataset names its 0-based ``row``.

    ``part`` is the number of the medium, since a column may hold several. ``left_out``: the
    row is not sent, so the finding is an error also where its rule is a warning.
    """

    message: str
    hint: str
    column: str | None = None
    offset: int | None = None
    row: int | None = None
    fix: Fix | None = None
    part: int | None = None
    left_out: bool = False


@dataclass(slots=True)
class CheckedMedium:
    """A medium of a row.

    ``source`` is as the row names it, ``name`` the same in short. ``column`` and ``offset`` say where it stands, and
    ``number`` is its 1-based number among the content parts of its message. ``part`` holds its bytes and ``content``
    what decoding found; None where the medium could not be read or decoded. ``thumbnail`` is a small JPEG for reports,
    empty where none was made.
    """

    modality: str
    source: object
    name: str
    column: str | None
    offset: int | None
    number: int
    part: MediaPart | None = None
    content: ImageContent | AudioContent | VideoContent | None = None
    digest: bytes = b""
    thumbnail: bytes = b""


class RowText(NamedTuple):
    """A text of a row: a column, one segment or element of it, or a message (``column`` is None).

    ``offset`` is where it begins in a tagged column, None in others. ``tagged`` is True for the text segments of a
    tagged column, whose tags are read.
    """

    column: str | None
    text: str
    offset: int | None = None
    tagged: bool = False

    def at(self, position: int) -> int:
        """Return the offset in the column of a position in the text."""
        return (self.offset or 0) + position


@dataclass(slots=True)
class CheckedRow:
    """A row as rules see it.

    ``columns`` are those of the sample. ``texts`` are all that it holds but its answer, its id and the names of its
    media. ``question`` is the text that is asked, ``""`` if there is none. ``choices`` are the texts of a
    multiple-choice row, ``choice_columns`` where they stand. ``answer`` is the value of the output column.
    ``messages`` are those of its first request with their media named, None if they cannot be made. ``roots`` are the
    folders below which its media may lie.
    """

    sample: Sample
    task: Task
    target: str = "vllm"
    roots: Sequence[str] = ()
    texts: Sequence[RowText] = ()
    question: str = ""
    choices: Sequence[str] = ()
    choice_columns: Sequence[str] = ()
    answer: object = None
    messages: Sequence[Message] | None = None
    media: list[CheckedMedium] = field(default_factory=list)
    errors: list[MMPromptError] = field(default_factory=list)

    @property
    def columns(self) -> Mapping[str, object]:
        """The columns of the row."""
        return self.sample.columns


RowRule = Callable[[CheckedRow], Iterable[Hit]]
MediumRule = Callable[[CheckedMedium], Iterable[Hit]]
DatasetRule = Callable[["Store"], Iterable[Hit]]
TaskRule = Callable[["Task"], Iterable[Hit]]

ROW_RULES: dict[str, RowRule] = {}
EXPLAINED: dict[str, frozenset[str]] = {}
"""The codes of errors that a rule on rows explains. Where it finds something, they are left out for that part."""

MEDIUM_RULES: dict[str, tuple[str, MediumRule]] = {}
"""Rules on one medium by code, with the modality that they are for; ``""`` for all."""

DATASET_RULES: dict[str, DatasetRule] = {}
TASK_RULES: dict[str, TaskRule] = {}


CHOICE_RULES: set[str] = set()
"""The codes of rules on rows that run only for rows with choices."""


def row_rule(code: str, explains: Iterable[str] = (), *, on_choices: bool = False) -> Callable[[RowRule], RowRule]:
    """Register a rule on one row.

    ``explains``: codes of errors of the same place that it makes superfluous. ``on_choices``: it runs only for rows
    with choices.
    """

    def register(rule: RowRule) -> RowRule:
        ROW_RULES[code] = rule
        if on_choices:
            CHOICE_RULES.add(code)
        EXPLAINED[code] = frozenset(explains)
        return rule

    return register


def medium_rule(code: str, modality: str = "") -> Callable[[MediumRule], MediumRule]:
    """Register a rule on one medium that was read; with ``modality`` on media of that modality that were decoded."""

    def register(rule: MediumRule) -> MediumRule:
        MEDIUM_RULES[code] = (modality, rule)
        return rule

    return register


def dataset_rule(code: str) -> Callable[[DatasetRule], DatasetRule]:
    """Register a rule on the whole dataset, which runs when all rows were read."""

    def register(rule: DatasetRule) -> DatasetRule:
        DATASET_RULES[code] = rule
        return rule

    return register


def task_rule(code: str) -> Callable[[TaskRule], TaskRule]:
    """Register a rule on the task itself, which runs once."""

    def register(rule: TaskRule) -> TaskRule:
        TASK_RULES[code] = rule
        return rule

    return register
