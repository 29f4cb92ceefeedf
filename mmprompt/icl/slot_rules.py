"""The rule of task files for slots: each names a column of the row. Templates alone keep an unknown slot as text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mmprompt.datasets.choices import OPTIONS, choices_in, is_null, option_lines
from mmprompt.errors import NO_COLUMN, RowError, TemplateError, Where, nearest, shown
from mmprompt.templates.sample_view import CONTENT, CONTENT_SLOTS, SampleView, held_by_content

if TYPE_CHECKING:
    from mmprompt.icl.types import Template

_NAME = re.compile(r"[^\W\d_][\w ]*")
"""A slot that reads like a name; ``{0}``, ``{a.b}`` and ``{"x": 1}`` are text."""


class Columns(NamedTuple):
    """The columns that ``reader_cfg`` names.

    A slot of one in ``optional`` reads as ``""`` where the row has no value. Slots in ``literal`` are text. Without
    ``strict`` a slot without a column stays as it is written.
    """

    input: tuple[str, ...] = ()
    output: str = "answer"
    masked: str | None = "answer"
    tagged: frozenset[str] | None = None
    optional: frozenset[str] = frozenset()
    literal: frozenset[str] = frozenset()
    strict: bool = False

    def check_input(self, columns: Mapping[str, object]) -> None:
        """Raise a RowError if a row lacks a column of ``input``."""
        for name in self.input:
            if name not in columns and not held_by_content(name, columns):
                hint = nearest(name, columns)
                where = Where(column=name, setting=NO_COLUMN)
                raise RowError(f"no column '{name}', which input_columns lists", hint, where, "MM006")

    def fate(self, name: str, *, in_text: bool, hides: bool) -> str:
        """Return what happens to a slot without a column; empty if ``reader_cfg`` names it, or the row is an error.

        ``in_text`` is False for a variable that only Jinja texts have. ``hides``: prompts hide the answer.
        """
        if self.strict and (name in self.optional or name in self.literal):
            return ""
        if name == self.masked and (self.strict or hides):
            return "is empty"
        if not in_text:
            return "is undefined in a Jinja text"
        return "" if self.strict and _NAME.fullmatch(name) else "stays as it is"


class SlotRules:
    """What the slots of one template ask of a row. ``masks``: the template hides the answer."""

    def __init__(self, template: Template, columns: Columns, *, masks: bool) -> None:
        from mmprompt.templates.text import PromptTemplate  # noqa: PLC0415  # the columns of a task without one need none

        names = template.text_slots if columns.strict else ()
        optional = columns.optional | {columns.masked} if masks else columns.optional
        self._optional = tuple([n for n in template.slot_names if n in optional]) if columns.strict else ()
        free = columns.literal.union(self._optional)
        self._needed = tuple([n for n in names if _NAME.fullmatch(n) and n not in free])
        self._literal = columns.literal
        self._in_content = () if type(template) is PromptTemplate else CONTENT_SLOTS

    def completed(self, columns: Mapping[str, object]) -> Mapping[str, object]:
        """Return the columns as the template sees them.

        Optional ones that are missing or null are ``""``, ``options`` holds the choices as lettered lines, and columns
        with the names of literal slots are left out.

        Raises:
            TemplateError: a slot has no column in the row, or the column is null.
            RowError: a choice before the last is empty.
        """
        changed: dict[str, object] = {}
        for name in self._optional:
            value = columns.get(name)
            if type(value) is not str and is_null(value):
                changed[name] = ""
        for name in self._needed:
            value = columns.get(name)
            if type(value) is str and name != OPTIONS:
                continue
            if name == OPTIONS and (choices := choices_in(columns)).texts:
                changed[name] = option_lines(choices)
            elif not (name in self._in_content and CONTENT in columns) and is_null(value):
                raise _unfilled(name, columns)
        if not changed and self._literal.isdisjoint(columns):
            return columns
        return {**{name: value for name, value in columns.items() if name not in self._literal}, **changed}


def _unfilled(name: str, columns: Mapping[str, object]) -> TemplateError:
    optional = f"set reader_cfg.optional_columns: [{name}] to leave it empty"
    if name in columns:
        return TemplateError(
            f"column '{name}' is null, and the slot {{{name}}} needs it", optional, code="MM604"
        ).located(column=name)
    near = nearest(name, columns)
    hint = near if near.startswith("did") else f"{optional}, or literal_slots: [{name}] if {{{name}}} is text"
    where = Where(column=name, setting=NO_COLUMN)
    return TemplateError(f"no column '{name}' for the slot {{{name}}}", hint, where, "MM603")


def label_views(
    entry: SampleView, labels: Sequence[object], column: str | None, output: str
) -> Mapping[object, SampleView]:
    """Return the row as each label's prompt sees it.

    ``labels`` are those of the task. With ``column`` the row lists its own there, and ``output`` reads as the label.

    Raises:
        TemplateError: the column does not hold a list of different texts.
    """
    if column is None:
        return dict.fromkeys(labels, entry)
    own = entry.raw.get(column)
    if not isinstance(own, (list, tuple)) or not own:
        raise TemplateError("the row has no list of labels", "give the column a list").located(column=column)
    texts = [str(label) for label in own]
    if alike := [text for text, count in Counter(texts).items() if count > 1]:
        what = f"the label {shown(alike[0])} is listed twice"
        raise TemplateError(what, "list each label once", code="MM703").located(column=column)
    return {text: entry.with_columns({output: text}) for text in texts}
