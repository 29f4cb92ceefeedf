"""A list of content parts as a template: its strings have slots, and the parts come in the order of the list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mmprompt.datasets.media_columns import parts_of_value
from mmprompt.errors import TemplateError, shown
from mmprompt.media.sources import as_written
from mmprompt.messages import MODALITIES, MediaRef, part_of
from mmprompt.segments import begins_tagged
from mmprompt.templates.part_skeleton import MediaSkeleton, TextSkeleton, compile_media, compile_text_skeleton
from mmprompt.templates.prompt_list import copied
from mmprompt.templates.role_parts import ContentItem
from mmprompt.templates.role_text import Examples, Said, Tokens, filled
from mmprompt.templates.sample_view import CONTENT, SampleView

_TEXT_TYPES = ("text", "input_text")


class PartList:
    """What a message of content parts says.

    Without tagged columns each part is filled where it stands, a medium once per element of a list column. Where a
    column that feeds the message is tagged, its parts follow the sample, as ``prompt_mm`` has it.
    """

    __slots__ = ("_by_modality", "_parts", "_place", "_repeated", "has_marker", "names")

    def __init__(self, content: list[Any] | tuple[Any, ...], tokens: Tokens, place: str) -> None:
        self._place = place
        self._parts: list[TextSkeleton | MediaSkeleton] = []
        by_modality: dict[str, Any] = {}
        self._repeated = ""
        for number, part in enumerate(content):
            here = f"{place}[{number}]"
            key = _modality(part, here)
            if key == "text":
                self._parts.append(compile_text_skeleton(part, tokens, here))
            else:
                self._parts.append(compile_media(key, part, tokens, here))
            self._repeated = key if key in by_modality else self._repeated
            by_modality[key] = part
        if not self._parts:
            raise TemplateError("there are no content parts", "give text, or at least one part").located(template=place)
        options: Any = {"column": None, "by_key": False, "repeat_text": True}
        self._by_modality = None if self._repeated else ContentItem(by_modality, tokens, place, **options)
        texts = [p.text if isinstance(p, TextSkeleton) else p.source for p in self._parts]
        self.names = tuple(dict.fromkeys(name for text in texts for name in text.columns))
        self.has_marker = False

    def render(self, entry: SampleView, examples: Examples) -> Said:
        """Return the content parts for ``entry``.

        Raises:
            TemplateError: a tagged column that this list cannot take, or a sample that gives no part at all.
            MMPromptError: a source of the sample is at fault.
        """
        tagged = next((c for c in (*self.names, CONTENT) if _is_tagged(entry, c)), None)
        if tagged is not None:
            if self._by_modality is None:
                what = f"column '{tagged}' is tagged and the message has several {self._repeated} parts"
                hint = "give one part per modality, which takes all segments of it"
                raise TemplateError(what, hint).located(template=self._place, column=tagged)
            return self._by_modality.render(entry, examples)
        columns = entry.columns
        out: list[dict[str, Any]] = []
        for skeleton in self._parts:
            if isinstance(skeleton, TextSkeleton):
                text = filled(skeleton.text, columns, "", self._place)
                out.append(skeleton.part(text, columns, self._place))
            else:
                out.extend([normalised_part(part) for part in skeleton.from_columns(entry, columns)])
        if not out:
            what = f"the sample gives no content part: it has none of the columns {', '.join(self.names)}"
            raise TemplateError(what, "fill one, or drop the row").located(template=self._place)
        return out


def normalised(content: Any) -> Any:
    """Return the content of a message with its media sources as a prompt shows them: bare base64 as a data URI.

    Raises:
        PromptError: a content part of unknown type, or without a source.
    """
    return [normalised_part(part) for part in content] if isinstance(content, (list, tuple)) else content


def normalised_part(part: Any) -> Any:
    """Return a content part dict with its source as a prompt shows it; what is no dict stays as it is.

    Raises:
        PromptError: the part has no known type, or names no source.
    """
    if not isinstance(part, Mapping):
        return part
    named = part_of(part)
    source = named.source if isinstance(named, MediaRef) else None
    if isinstance(source, str) and (written := as_written(source, named.modality)) is not source:  # type: ignore[union-attr]  # it is a MediaRef
        return {key: _with_source(value, source, written) for key, value in part.items()}
    return copied(part)


def _with_source(value: object, source: str, written: object) -> object:
    if isinstance(value, Mapping):
        return {key: written if item is source else item for key, item in value.items()}
    return written if value is source else value


def _modality(part: object, place: str) -> str:
    """Return the modality of a part of a template.

    Raises:
        TemplateError: it is no content part of a known type.
    """
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in _TEXT_TYPES:
        return "text"
    found = next((m for m in MODALITIES if isinstance(kind, str) and m in kind), None)
    if found is None:
        what = f"unknown content part type {shown(kind)}" if isinstance(part, Mapping) else "no content part"
        hint = 'give {"type": "text", "text": …} or {"type": "image_url", …}'
        raise TemplateError(what, hint).located(template=place)
    return found


def _is_tagged(entry: SampleView, column: str) -> bool:
    """Tell whether a column holds more than plain text or a medium: tags, or a list of parts."""
    if column not in entry.raw or column == entry.hidden:
        return False
    value = entry.raw[column]
    if not isinstance(value, str):
        return parts_of_value(value, media=False) is not None
    if column != CONTENT and not begins_tagged(value) and column not in (entry.tagged or ()):
        return False
    segments = entry.segments(column)
    return segments is not None and [s.value for s in segments] != [value]
