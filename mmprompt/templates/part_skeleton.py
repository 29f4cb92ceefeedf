"""Content part skeletons: a part whose strings have slots, and which of them is the source of the medium."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.errors import MMPromptError, TemplateError, nearest, shown
from mmprompt.media.sources import as_written, compose
from mmprompt.messages import MODALITIES, MediaPart, MediaRef
from mmprompt.templates.role_text import Tokens, filled
from mmprompt.templates.sample_view import SampleView, check_source
from mmprompt.templates.slots import Slot, SlotText, slot_text

PART_TYPES = (
    "image_url", "audio_url", "video_url", "input_audio", "input_image", "input_video", "image", "audio", "video",
    "mm_url",
)  # fmt: skip
_SOURCE_KEYS = ("url", "data", "path")


class TextSkeleton(NamedTuple):
    """A text part: the compiled keys beside the text, and the text."""

    keys: dict[str, Any]
    text: SlotText

    def part(self, text: str, columns: Mapping[str, object], place: str) -> dict[str, Any]:
        """Return the part that says ``text``."""
        if not self.keys:
            return {"type": "text", "text": text}
        return {"type": "text", "text": text, **_filled_deep(self.keys, columns, place)}

    def is_only(self, slots: Collection[str]) -> bool:
        """Tell whether the text is nothing but these slots."""
        return all(isinstance(p, Slot) and p.column in slots for p in self.text.pieces)


class MediaSkeleton(NamedTuple):
    """A media part.

    ``type`` is its content part type and ``body`` the key of its body. ``source`` is the compiled text of its source,
    ``source_key`` where that stands in the body (``url``, or ``""`` for the body itself), ``options`` the keys beside
    it, ``extra`` those of the part.
    """

    key: str
    type: str
    body: str
    source: SlotText
    source_key: str
    options: dict[str, Any]
    extra: dict[str, Any]
    place: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the source's slots."""
        return self.source.columns

    def part(
        self, modality: str, value: object, slots: Collection[str], columns: Mapping[str, object]
    ) -> dict[str, Any] | None:
        """Return the part for one source, put where the first of ``slots`` stands; None if none of them does.

        A value that is a part itself gives its source, and its own options win over the skeleton's.
        """
        pieces = self.source.pieces
        at = next((i for i, p in enumerate(pieces) if isinstance(p, Slot) and p.column in slots), None)
        if at is None:
            return None
        prefix = filled(slot_text(pieces[:at]), columns, "", self.place)
        suffix = filled(slot_text(pieces[at + 1 :]), columns, "", self.place)
        if isinstance(value, (MediaRef, MediaPart)):
            source: object = value.source if isinstance(value, MediaRef) else list(value.frames) or value.data
            part = self._part(modality, as_written(compose(prefix, source, suffix)), columns, dict(value.options))
            return {**part, **dict(value.extra)}
        return self._part(modality, as_written(compose(prefix, value, suffix)), columns, {})

    def from_columns(self, entry: SampleView, columns: Mapping[str, object]) -> Iterator[dict[str, Any]]:
        """Give the parts that a plain column fills: one per element of a list; a constant source gives one part.

        Raises:
            TemplateError: the column is null.
            SourceError: the column is blank.
        """
        if not self.source.columns:
            yield self._part(self.key, filled(self.source, columns, "", self.place), columns, {})
            return
        column = self._column(columns)
        if column is None or column == entry.hidden:
            return
        modality = self.key if self.key != "mm_url" else _modality_of(columns, column)
        for element in list_of_cell(columns[column], cells=entry.list_cells):
            try:
                check_source(element, column)
                part = self.part(modality, element, {column}, columns)
            except MMPromptError as error:
                raise error.located(column=column, template=self.place) from None
            if part is not None:
                yield part

    def _column(self, columns: Mapping[str, object]) -> str | None:
        """Return the column of the medium: the slot named like it, else the last slot that names a column."""
        named = [c for c in self.source.columns if c in columns]
        return self.key if self.key in named else (named[-1] if named else None)

    def _part(
        self, modality: str, source: object, columns: Mapping[str, object], own: Mapping[str, object]
    ) -> dict[str, Any]:
        kind = f"{modality}_url" if self.key == "mm_url" else self.type
        body: object = source
        if self.source_key or own:
            options = _filled_deep(self.options, columns, self.place) if self.options else {}
            body = {self.source_key or "url": source, **options, **own}
        part = {"type": kind, kind if self.body == self.type else self.body: body}
        return {**part, **_filled_deep(self.extra, columns, self.place)} if self.extra else part


def compile_text_skeleton(skeleton: object, tokens: Tokens, place: str) -> TextSkeleton:
    """Compile the text part: ``{"type": "text", "text": …}``, or its text alone.

    Raises:
        TemplateError: it is neither.
    """
    if isinstance(skeleton, str):
        skeleton = {"type": "text", "text": skeleton}
    if not isinstance(skeleton, Mapping) or not isinstance(skeleton.get("text"), str):
        raise TemplateError("no text part", 'give {"type": "text", "text": "…"}').located(template=place)
    if skeleton.get("type", "text") not in ("text", "input_text"):
        raise TemplateError(f"a text part of type {shown(skeleton['type'])}", 'its type is "text"').located(
            template=place
        )
    keys = {k: _compiled_deep(v, tokens) for k, v in skeleton.items() if k not in {"type", "text"}}
    return TextSkeleton(keys, tokens.compile(skeleton["text"]))


def compile_media(key: str, skeleton: object, tokens: Tokens, place: str) -> MediaSkeleton:
    """Compile a media part: ``{"type": T, T: {"url": …}}``, ``{"type": T, T: …}``, or its source alone.

    Raises:
        TemplateError: the part has no known type, or no source.
    """
    if isinstance(skeleton, str):
        kind = "mm_url" if key == "mm_url" else f"{key}_url"
        skeleton = {"type": kind, kind: {"url": skeleton}}
    if not isinstance(skeleton, Mapping):
        raise TemplateError("no content part", f'give {{"type": "{key}_url", …}}').located(template=place)
    kind = str(skeleton.get("type"))
    if kind not in PART_TYPES:
        what = f"unknown content part type {shown(kind)}"
        raise TemplateError(what, nearest(kind, PART_TYPES)).located(template=place)
    if key != "mm_url" and kind != "mm_url" and key not in kind:
        raise TemplateError(f"{key} under type '{kind}'", f"its type is '{key}_url'").located(template=place)
    body_key = kind if kind in skeleton else "url"
    body = skeleton.get(body_key)
    extra = {k: _compiled_deep(v, tokens) for k, v in skeleton.items() if k not in {"type", body_key}}
    if isinstance(body, str):
        return MediaSkeleton(key, kind, body_key, tokens.compile(body), "", {}, extra, place)
    source_key = next((k for k in _SOURCE_KEYS if isinstance(body, Mapping) and isinstance(body.get(k), str)), None)
    if source_key is None or not isinstance(body, Mapping):
        hint = f'give {{"type": "{kind}", "{kind}": {{"url": "{{{key}}}"}}}}'
        raise TemplateError(f"the {key} part names no source", hint).located(template=place)
    options = {k: _compiled_deep(v, tokens) for k, v in body.items() if k != source_key}
    source = tokens.compile(body[source_key])
    return MediaSkeleton(key, kind, body_key, source, source_key, options, extra, place)


def _compiled_deep(value: Any, tokens: Tokens) -> Any:
    """Compile the strings with slots in a value beside the source; everything else stays as it is."""
    if isinstance(value, str):
        text = tokens.compile(value)
        return text if any(not isinstance(p, str) for p in text.pieces) else value
    if isinstance(value, Mapping):
        return {k: _compiled_deep(v, tokens) for k, v in value.items()}
    if isinstance(value, list):
        return [_compiled_deep(v, tokens) for v in value]
    return value


def _filled_deep(value: Any, columns: Mapping[str, object], place: str) -> Any:
    if isinstance(value, SlotText):
        return filled(value, columns, "", place)
    if isinstance(value, Mapping):
        return {k: _filled_deep(v, columns, place) for k, v in value.items()}
    if isinstance(value, list):
        return [_filled_deep(v, columns, place) for v in value]
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
