"""What a role says, or what stands loose in begin and end: text compiled once, with places for examples inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Union

from mmprompt.errors import TemplateError, nearest
from mmprompt.templates.sample_view import SampleView
from mmprompt.templates.slots import Marker, SlotText, compile_text

Examples = Union[str, list[Any], None]
"""In-context examples: text, or the items of a prompt."""
Said = Union[str, list[dict[str, Any]]]


class Speech(Protocol):
    """What a role says, or what stands loose in begin and end: it can be rendered for a sample.

    ``names`` are the names in braces: the columns that it may use.
    """

    has_marker: bool
    names: tuple[str, ...]

    def render(self, entry: SampleView, examples: Examples) -> Said:
        """Return the text or the content parts for ``entry``; ``examples`` go where the text has its marker."""
        ...


class TextSpeech:
    """Ordinary text."""

    __slots__ = ("_around", "_place", "has_marker", "names", "text")

    def __init__(self, text: SlotText, place: str) -> None:
        self.text = text
        self._place = place
        self.names = text.columns
        self.has_marker = text.has_marker
        self._around = split_at_marker(text)

    def columns(self, entry: SampleView) -> Mapping[str, object]:
        """Return the columns as this text sees them; the hidden one is masked as the text is filled."""
        return entry.raw

    def render(self, entry: SampleView, examples: Examples) -> Said:
        """Return the text with the slots filled from the columns; parts where dialogue examples stand inside it."""
        if isinstance(examples, list) and self.has_marker:
            parts = parts_with_examples(self.around_marker(entry), examples)
            return parts if any(p.get("type") != "text" for p in parts) else "".join([p["text"] for p in parts])
        if self.text.literal is not None:
            return self.text.literal
        try:
            return self.text.fill(self.columns(entry), entry.hidden, examples if isinstance(examples, str) else "")
        except KeyError as error:
            raise _no_column(error.args[0], entry.raw, self._place) from None

    def constants(self) -> list[str] | None:
        """Return the texts around the places of the examples; None if one of them has slots."""
        texts = [piece.literal for piece in self._around]
        return None if None in texts else texts  # type: ignore[return-value]  # no None is left

    def around_marker(self, entry: SampleView) -> list[str]:
        """Return the filled texts before, between and after the places of the examples."""
        columns = self.columns(entry)
        return [filled(piece, columns, "", self._place, entry.hidden) for piece in self._around]


class Tokens(NamedTuple):
    """The literal tokens of a template."""

    ice: str | None
    sep: str | None
    columns: Mapping[str, str]

    def compile(self, text: str) -> SlotText:
        """Compile a text with these tokens."""
        return compile_text(text, tokens=self.columns, ice_token=self.ice, sep_token=self.sep)


def filled(text: SlotText, columns: Mapping[str, object], examples: str, place: str, masked: str | None = None) -> str:
    """Fill a text, turning a missing column of ``column_token_map`` into our error."""
    try:
        return text.fill(columns, masked, examples)
    except KeyError as error:
        raise _no_column(error.args[0], columns, place) from None


def _no_column(name: str, columns: Mapping[str, object], place: str) -> TemplateError:
    what = f"column '{name}' of column_token_map is not in the sample"
    return TemplateError(what, nearest(name, columns)).located(template=place)


def around_marker(text: SlotText, columns: Mapping[str, object], place: str, masked: str | None = None) -> list[str]:
    """Return the filled texts before, between and after the places of the examples."""
    return [filled(piece, columns, "", place, masked) for piece in split_at_marker(text)]


def split_at_marker(text: SlotText) -> list[SlotText]:
    """Return the texts before, between and after the places of the examples."""
    return text.split_at(lambda p: isinstance(p, Marker))


def parts_with_examples(texts: Sequence[str], examples: Sequence[Any]) -> list[dict[str, Any]]:
    """Return texts with what dialogue examples say between them, as content parts; texts that touch become one."""
    parts: list[dict[str, Any]] = []

    def add(piece: Any) -> None:
        if not isinstance(piece, str):
            parts.append(piece)
        elif piece and parts and parts[-1].get("type") == "text":
            parts[-1] = {**parts[-1], "text": parts[-1]["text"] + piece}
        elif piece:
            parts.append({"type": "text", "text": piece})

    add(texts[0])
    for after in texts[1:]:
        for example in examples:
            prompt = example if isinstance(example, str) else example.get("prompt") or ""
            for piece in [prompt] if isinstance(prompt, str) else prompt:
                add(piece["text"] if not isinstance(piece, str) and piece.get("type") == "text" else piece)
        add(after)
    return parts
