"""Content parts: in templates as skeletons with slots, in prompts as the ``PartDict`` that a sample makes of one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import is_
from typing import Any, NamedTuple, Union

from mmprompt.datasets.media_columns import media_of_cell
from mmprompt.errors import MMPromptError, PromptError, TemplateError
from mmprompt.media.sources import as_written, compose_as_written
from mmprompt.messages import MODALITIES, PARTS, MediaPart, MediaRef, Part, TextPart, part_of
from mmprompt.templates.jinja_text import Text
from mmprompt.templates.sample_view import SampleView
from mmprompt.templates.slots import Slot, SlotText

_new = tuple.__new__  # half the time of the class, and this runs for every part


class PartDict(dict[str, object]):
    """A content part dict that keeps the part it was written from, so that nothing has to read it back.

    It equals a plain dict with the same content. Edit it like any dict: the part of an edited one is read from it, as
    is that of one made without ``part``.
    """

    __slots__ = ("_part", "_written")

    def __init__(self, written: Mapping[str, object], part: TextPart | MediaRef | None = None) -> None:
        super().__init__(written)
        self._part = part
        self._written = _contents(self)

    @property
    def part(self) -> TextPart | MediaRef:
        """The part that the dict stands for."""
        return self._kept() or part_of(self)

    def _kept(self) -> TextPart | MediaRef | None:
        """Return the part, if the dict and each dict in it hold the very objects they were made with; else None."""
        now = _contents(self)
        return self._part if len(now) == len(self._written) and all(map(is_, now, self._written)) else None

    def copied(self, contents: Mapping[str, object]) -> PartDict:
        """Return a copy of this dict that holds ``contents``, which are copies of its values."""
        part = self._kept()
        if isinstance(part, MediaRef) and (part.options or not isinstance(part.source, str)):
            part = None  # it would share what was copied
        return PartDict(contents, None if part is None or part.extra else part)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with the part, unless the dict was edited."""
        return (PartDict, (dict(self), self._kept()))


def text_dict(text: str) -> PartDict:
    """Return the content part dict of a text."""
    return PartDict({"type": "text", "text": text}, _new(TextPart, (text, ())))


def part_in(item: object) -> Part | None:
    """Return the part that an element of a prompt is or stands for; None if it is neither a part nor a part dict."""
    if type(item) is PartDict:
        return item.part
    if isinstance(item, PARTS):
        return item
    return part_of(item) if isinstance(item, Mapping) else None


def prompt_parts(prompt: object, what: str = "a prompt") -> list[Part]:
    """Return what an item of a prompt says, text or content parts, as parts; ``what`` names it in errors.

    Raises:
        PromptError: it is neither, or a part has no known type or no source.
    """
    if isinstance(prompt, str):
        return [_new(TextPart, (prompt, ()))]
    if not isinstance(prompt, (list, tuple)) or isinstance(prompt, PARTS):
        raise PromptError(f"{what} is {type(prompt).__name__}", "give text, or a list of content parts")
    parts: list[Part] = []
    for item in prompt:
        part = item.part if type(item) is PartDict else part_in(item)
        if part is None:
            raise PromptError(f"{what} holds {type(item).__name__}", "give a list of content parts")
        parts.append(part)
    return parts


def _contents(item: PartDict) -> list[object]:
    """Return the keys and values of a part dict, and those of the dicts in it."""
    found = [*item, *item.values()]
    for value in item.values():
        if type(value) is dict:
            found += value
            found += value.values()
    return found


class TextSkeleton(NamedTuple):
    """A text part: its text, and its other keys, compiled."""

    keys: dict[str, Any]
    text: Text

    def part(self, text: str, columns: Mapping[str, object]) -> PartDict:
        """Return the part that says ``text``."""
        if not self.keys:
            return text_dict(text)
        keys = _filled_deep(self.keys, columns)
        return PartDict({"type": "text", "text": text, **keys}, TextPart(text, tuple(keys.items())))

    def is_only(self, slots: Collection[str]) -> bool:
        """Return True if the text consists of these slots alone."""
        return all(isinstance(p, Slot) and p.column in slots for p in self.text.pieces)


class MediaSkeleton(NamedTuple):
    """A media part.

    ``key`` is its key in ``prompt_mm``, ``type`` its content part type, ``body`` the key of its body. ``text`` is that
    of its source, and ``slots`` has each slot in it: the column, and the texts before and after the slot. The source
    stands in the body under ``source_key``, or is the body itself if that is empty. ``options`` are the keys beside the
    source, ``extra`` those of the part. ``is_plain``: no other key can be taken for that of the body or of the source.
    ``place`` is where the part stands in the template.
    """

    key: str
    type: str
    body: str
    text: SlotText
    slots: tuple[tuple[str, SlotText, SlotText], ...]
    source_key: str
    options: dict[str, Any]
    extra: dict[str, Any]
    is_plain: bool
    place: str

    def part(
        self, modality: str, value: object, slots: Collection[str], columns: Mapping[str, object]
    ) -> PartDict | None:
        """Return the part whose source is ``value``, put where the first of ``slots`` stands; None if none does.

        A ``value`` that is a part gives its source, and its own options and keys win over the skeleton's.
        """
        for slot in self.slots:
            if slot[0] in slots:
                break
        else:
            return None
        _, before, after = slot
        prefix = before.fill(columns) if before.literal is None else before.literal
        suffix = after.fill(columns) if after.literal is None else after.literal
        if not isinstance(value, (MediaRef, MediaPart)):
            return self._part(modality, compose_as_written(prefix, value, suffix), columns)
        source: object = value.source if isinstance(value, MediaRef) else list(value.frames) or value.data
        written = compose_as_written(prefix, source, suffix)
        return self._part(modality, written, columns, dict(value.options), dict(value.extra))

    def from_columns(self, view: SampleView, columns: Mapping[str, object]) -> list[PartDict]:
        """Return the parts that a plain column fills, one for each element of a list; one part for a constant source.

        A column that is missing, null or blank gives none. A number is put in as text.

        Raises:
            SourceError: an element is not a source.
            TemplateError: the sample cannot fill the other slots.
        """
        if not self.slots:
            modality = self.key if self.key in MODALITIES else ""
            return [self._part(self.key, as_written(self.text.fill(columns), modality), columns)]
        named = [column for column in self.text.columns if column in columns]
        if not named:
            return []
        column = self.key if self.key in self.text.columns else named[-1]
        if column == view.hidden:
            return []
        modality = self.key if self.key != "mm_url" else _modality_of(columns, column)
        parts = []
        for element in media_of_cell(columns.get(column), cells=view.list_cells):
            try:
                is_number = isinstance(element, (int, float)) and not isinstance(element, bool)
                value = str(element) if is_number else element
                part = self.part(modality, value, {column}, columns)
            except MMPromptError as error:
                raise error.located(column=column, template=self.place) from None
            if part is not None:
                parts.append(part)
        return parts

    def _part(
        self,
        modality: str,
        source: object,
        columns: Mapping[str, object],
        own_options: Mapping[str, object] | None = None,
        own_keys: Mapping[str, object] | None = None,
    ) -> PartDict:
        kind = f"{modality}_url" if self.key == "mm_url" else self.type
        options = _filled_deep(self.options, columns) if self.options else {}
        extra = _filled_deep(self.extra, columns) if self.extra else {}
        body: object = source
        if self.source_key or own_options:
            body = {self.source_key or "url": source, **options, **(own_options or {})}
        item = {"type": kind, kind if self.body == self.type else self.body: body, **extra, **(own_keys or {})}
        if not self.is_plain or isinstance(source, Mapping):
            return PartDict(item)  # the source may be read from another key
        if own_options or own_keys:
            return PartDict(item, part_of(item))
        form = "" if kind == f"{modality}_url" else kind
        ref = (modality, source, form, tuple(options.items()), tuple(extra.items()), None)
        return PartDict(item, _new(MediaRef, ref))


Skeletons = Sequence[tuple[str, Union[TextSkeleton, MediaSkeleton]]]
"""Compiled parts, each with its key: text, a modality or mm_url"""


def _filled_deep(value: Any, columns: Mapping[str, object]) -> Any:
    """Return a compiled value with its texts filled."""
    if isinstance(value, SlotText):
        return value.fill(columns)
    if isinstance(value, Mapping):
        return {k: _filled_deep(v, columns) for k, v in value.items()}
    if isinstance(value, list):
        return [_filled_deep(v, columns) for v in value]
    return value


def _modality_of(columns: Mapping[str, object], column: str) -> str:
    """Return the modality of a plain column under ``mm_url``: the sample's ``type``, as mm_custom rows have it."""
    named = str(columns.get("type", column)).lower()
    found = next((m for m in MODALITIES if m in named), None)
    if found is None:
        raise TemplateError(
            f"mm_url cannot tell the modality of column '{column}'",
            "use image, audio or video instead, or give the sample a 'type' column",
        ).located(column=column)
    return found
