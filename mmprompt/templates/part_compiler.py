"""The compiler of content parts: ``prompt_mm`` and lists of parts, checked and made into skeletons once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mmprompt.errors import TemplateError, nearest, shown
from mmprompt.messages import MODALITIES
from mmprompt.templates.jinja_text import is_jinja
from mmprompt.templates.part_skeleton import MediaSkeleton, Skeletons, TextSkeleton
from mmprompt.templates.role_text import Tokens
from mmprompt.templates.slots import Slot, slot_text

PART_TYPES = (
    "image_url", "audio_url", "video_url", "input_audio", "input_image", "input_video", "image", "audio", "video",
    "mm_url",
)  # fmt: skip
KEYS = ("text", *MODALITIES, "mm_url")
_TEXT_TYPES = ("text", "input_text")
_SOURCE_KEYS = ("url", "data", "path")
_BODY_KEYS = {*PART_TYPES, "url", "path"}
_STRUCT_KEYS = {*_SOURCE_KEYS, "bytes", "array"}


def skeletons_of_prompt_mm(prompt_mm: object, tokens: Tokens, place: str) -> Skeletons:
    """Return the parts of a ``prompt_mm`` compiled, each with its key: text, a modality or mm_url."""
    if not isinstance(prompt_mm, Mapping) or not prompt_mm:
        what = "prompt_mm is not a dict of modality to content part"
        raise TemplateError(what, 'give {"text": {"type": "text", "text": …}, …}').located(template=place)
    for key in prompt_mm:
        if key not in KEYS:
            what = f"unknown modality {shown(key)} in prompt_mm"
            raise TemplateError(what, nearest(key, KEYS)).located(template=place)
    parts = [(key, part, f"{place}['{key}']") for key, part in prompt_mm.items()]
    return _compiled(parts, tokens)


def skeletons_of_list(content: Sequence[object], tokens: Tokens, place: str) -> Skeletons:
    """Return a list of content parts compiled, each with its modality as key."""
    if not content:
        raise TemplateError("there are no content parts", "give text, or at least one part").located(template=place)
    parts = [(_modality(part, f"{place}[{n}]"), part, f"{place}[{n}]") for n, part in enumerate(content)]
    return _compiled(parts, tokens)


def _compiled(parts: Iterable[tuple[str, object, str]], tokens: Tokens) -> Skeletons:
    """Return parts, given with their keys and places, compiled."""
    return [
        (key, _compiled_text(part, tokens, at) if key == "text" else _compiled_medium(key, part, tokens, at))
        for key, part, at in parts
    ]


def _modality(part: object, place: str) -> str:
    """Return the modality of a content part dict."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in _TEXT_TYPES:
        return "text"
    found = next((m for m in MODALITIES if isinstance(kind, str) and m in kind), None)
    if found is None:
        what = f"unknown content part type {shown(kind)}" if isinstance(part, Mapping) else "no content part"
        hint = 'give {"type": "text", "text": …} or {"type": "image_url", …}'
        raise TemplateError(what, hint).located(template=place)
    return found


def _compiled_text(skeleton: object, tokens: Tokens, place: str) -> TextSkeleton:
    """Return a text part compiled: ``{"type": "text", "text": …}``, or its text alone."""
    if isinstance(skeleton, str):
        skeleton = {"type": "text", "text": skeleton}
    if is_jinja(skeleton):
        skeleton = {"type": "text", "text": skeleton}
    if not isinstance(skeleton, Mapping) or not (
        isinstance(skeleton.get("text"), str) or is_jinja(skeleton.get("text"))
    ):
        raise TemplateError("no text part", 'give {"type": "text", "text": "…"}').located(template=place)
    if skeleton.get("type", "text") not in ("text", "input_text"):
        what = f"a text part of type {shown(skeleton['type'])}"
        raise TemplateError(what, 'give it the type "text"').located(template=place)
    keys = {k: _compiled_deep(v, tokens) for k, v in skeleton.items() if k not in {"type", "text"}}
    return TextSkeleton(keys, tokens.compile_any(skeleton["text"], place))


def _compiled_medium(key: str, skeleton: object, tokens: Tokens, place: str) -> MediaSkeleton:
    """Return a media part compiled: ``{"type": T, T: {"url": …}}``, ``{"type": T, T: …}``, or its source alone."""
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
        hint = f"give it the type '{key}_url'"
        raise TemplateError(f"{key} under type '{kind}'", hint).located(template=place)
    body_key = kind if kind in skeleton else "url"
    body = skeleton.get(body_key)
    source, source_key, options = body, "", {}
    if isinstance(body, Mapping):
        source_key = next((k for k in _SOURCE_KEYS if isinstance(body.get(k), str)), "")
        source = body.get(source_key)
        options = {k: _compiled_deep(v, tokens) for k, v in body.items() if k != source_key}
    if not isinstance(source, str):
        hint = f'give {{"type": "{kind}", "{kind}": {{"url": "{{{key}}}"}}}}'
        raise TemplateError(f"the {key} part names no source", hint).located(template=place)
    extra = {k: _compiled_deep(v, tokens) for k, v in skeleton.items() if k not in {"type", body_key}}
    text = tokens.compile(source)
    pieces = text.pieces
    slots = tuple(
        (piece.column, slot_text(pieces[:at]), slot_text(pieces[at + 1 :]))
        for at, piece in enumerate(pieces)
        if isinstance(piece, Slot)
    )
    typed = bool(slots) if key == "mm_url" else key in kind
    plain = typed and not (_BODY_KEYS & set(extra) or _STRUCT_KEYS & set(options))
    return MediaSkeleton(key, kind, body_key, text, slots, source_key, options, extra, plain, place)


def _compiled_deep(value: Any, tokens: Tokens) -> Any:
    """Return a value with the strings in it that have slots compiled; everything else stays as it is."""
    if isinstance(value, str):
        text = tokens.compile(value)
        return text if any(not isinstance(p, str) for p in text.pieces) else value
    if isinstance(value, Mapping):
        return {k: _compiled_deep(v, tokens) for k, v in value.items()}
    if isinstance(value, list):
        return [_compiled_deep(v, tokens) for v in value]
    return value
