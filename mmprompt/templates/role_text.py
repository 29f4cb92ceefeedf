"""What a role says as text, compiled once; the text may have a place for in-context examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Union

from mmprompt.errors import TemplateError
from mmprompt.messages import joined_text, text_of
from mmprompt.templates.jinja_text import JINJA, JinjaText, Text, slot_columns
from mmprompt.templates.part_skeleton import PartDict, text_dict
from mmprompt.templates.prompt_list import PromptItem
from mmprompt.templates.sample_view import SampleView
from mmprompt.templates.slots import SlotText, compile_text

Examples = Union[str, list[PromptItem], None]
"""In-context examples: text, or the items of a prompt"""

Content = Union[str, list[PartDict]]
"""What an item of a prompt says: text, or content part dicts"""


class RoleContent(Protocol):
    """What a role says, compiled.

    ``names`` are the columns that it may use. ``text_names`` are those of slots whose value becomes text, and
    ``media_names`` those of slots in media; the variables of Jinja texts are in neither. ``has_marker``: the examples
    have a place in it.
    """

    has_marker: bool
    names: tuple[str, ...]
    text_names: tuple[str, ...]
    media_names: tuple[str, ...]

    def render(self, view: SampleView, examples: Examples) -> Content:
        """Return the text or the content parts for a sample; ``examples`` go to their place."""
        ...


class TextContent:
    """Text with slots. With ``reads_tags`` a tagged column reads as its text segments joined, else with its tags."""

    __slots__ = ("_place", "has_marker", "names", "reads_tags", "text", "text_names")

    media_names: tuple[str, ...] = ()

    def __init__(self, text: Text, place: str, *, reads_tags: bool = False) -> None:
        self.text = text
        self._place = place
        self.reads_tags = reads_tags
        self.names = text.columns
        self.text_names = slot_columns(text)
        self.has_marker = text.has_marker

    def render(self, view: SampleView, examples: Examples) -> Content:
        """Return the text for a sample; content parts if examples with media stand inside it."""
        text = self.text
        if text.literal is not None:
            return text.literal
        if isinstance(examples, list) and self.has_marker:
            parts = parts_with_examples(self.around_examples(view), examples)
            has_media = any(part.get("type") != "text" for part in parts)
            return parts if has_media else joined_text([text_of(part["text"]) for part in parts])
        try:
            columns = self._columns(view) if self.reads_tags else view.raw
            return text.fill(columns, view.hidden, examples if isinstance(examples, str) else "")
        except TemplateError as error:
            raise error.located(template=self._place) from None

    def around_examples(self, view: SampleView) -> list[str]:
        """Return the filled texts before, between and after the places of the examples."""
        try:
            columns = self._columns(view) if self.reads_tags else view.raw
            return self.text.around_examples(columns, view.hidden)
        except TemplateError as error:
            raise error.located(template=self._place) from None

    def _columns(self, view: SampleView) -> Mapping[str, object]:
        """Return the columns of a sample, the tagged ones as their text."""
        tagged = {}
        for column in self.names:
            if column in view.raw and view.segments(column) is not None:
                tagged[column] = view.text(column)
        return {**view.raw, **tagged} if tagged else view.raw


class Tokens(NamedTuple):
    """The literal tokens of a template: of the examples, of the separator, and those that stand for columns."""

    ice: str | None
    sep: str | None
    columns: Mapping[str, str]

    def compile(self, text: str) -> SlotText:
        """Return a text compiled with these tokens."""
        return compile_text(text, tokens=self.columns, ice_token=self.ice, sep_token=self.sep)

    def compile_any(self, text: str | Mapping[str, str], place: str) -> Text:
        """Return a text or Jinja text compiled; a Jinja text keeps the tokens as text.

        Raises:
            TemplateError: a Jinja text is malformed; ``where.template`` is ``place``.
        """
        if isinstance(text, str):
            return self.compile(text)
        try:
            return JinjaText(text[JINJA])
        except TemplateError as error:
            raise error.located(template=place) from None


def parts_with_examples(texts: Sequence[str], examples: Sequence[PromptItem]) -> list[PartDict]:
    """Return content parts: the texts with all examples between each two of them. Texts that touch become one."""
    pieces: list[Any] = [texts[0]]
    for after in texts[1:]:
        for example in examples:
            said = example if isinstance(example, str) else example.get("prompt") or ""
            pieces += [said] if isinstance(said, str) else said
        pieces.append(after)
    parts: list[PartDict] = []
    touching: list[str] = []
    for piece in [*pieces, None]:
        if isinstance(piece, str):
            touching.append(piece)
        elif piece is not None and piece.get("type") == "text":
            touching.append(piece["text"])
        else:
            if text := joined_text(touching):
                parts.append(text_dict(text))
            touching = []
            if piece is not None:
                parts.append(piece)
    return parts
