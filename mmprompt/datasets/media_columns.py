"""Columns that hold media: as values (parts, segments, images, sound, bytes), or by their name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from math import isnan

from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.errors import SourceError
from mmprompt.media.audio.facts import is_sound_pair
from mmprompt.media.base64_text import clean_head
from mmprompt.media.media_types import any_type, sniff, suffix_type
from mmprompt.media.sources import classify, is_media_object
from mmprompt.messages import MODALITIES, PARTS, MediaRef, Part, TextPart, ask, is_blank, part_of
from mmprompt.segments import Segment

_NAMED = re.compile(r"(image|audio|video)(?:s|_path|_paths|_url|_urls|(_\d+))?")


def holds_no_medium(value: object) -> bool:
    """Return True for a cell of a media column without a medium: null, NaN, blank text, or a list of only these.

    A Hugging Face struct without bytes and path is null too.
    """
    if value is None:
        return True
    if isinstance(value, str):
        return is_blank(value)
    if isinstance(value, float):
        return ask(value, isnan)
    if isinstance(value, Mapping):
        return "bytes" in value and value["bytes"] is None and not value.get("path")
    return type(value) in (list, tuple) and all(map(holds_no_medium, value))  # type: ignore[call-overload]  # a list


def media_of_cell(value: object, *, cells: bool = False) -> list[object]:
    """Return the media that a media column holds: its elements, see ``list_of_cell``, without the empty ones."""
    if holds_no_medium(value):
        return []
    return [element for element in list_of_cell(value, cells=cells) if not holds_no_medium(element)]


def parts_of_value(value: object, *, media: bool = True) -> list[Part] | None:
    """Return the content parts that a column's value holds, or None if it is plain data.

    Accepts a segment, a part, or a list of segments, parts and content part dicts. With ``media`` it also accepts a
    medium itself (bytes, a PIL image, (samples, rate), a Hugging Face struct) and a list of media. Empty
    elements of a list are left out.

    Raises:
        PromptError: a content part dict has an unknown type, or no source.
    """
    if value is None or isinstance(value, (str, int, float)):
        return None
    if isinstance(value, (list, tuple)) and not isinstance(value, (*PARTS, Segment)) and not is_sound_pair(value):
        kept = [v for v in value if not holds_no_medium(v)]
        if not kept or not all(_is_part(v, media) for v in kept):
            return None
        return [part for v in kept for part in _parts_of(v)]
    return _parts_of(value) if _is_part(value, media) else None


def _is_part(value: object, media: bool) -> bool:
    if isinstance(value, (*PARTS, Segment)):
        return True
    if isinstance(value, Mapping) and isinstance(value.get("type"), str):
        return True
    return media and modality_of(value) is not None


def _parts_of(value: object) -> list[Part]:
    if isinstance(value, PARTS):
        return [value]
    if isinstance(value, Segment):
        if value.modality != "text":
            return [MediaRef(value.modality, value.value)]
        return [TextPart(str(value.value))]
    if isinstance(value, Mapping) and isinstance(value.get("type"), str):
        return [part_of(value)]
    modality = modality_of(value)
    return [MediaRef(modality, value)] if modality else []


def modality_of(value: object) -> str | None:
    """Return the modality of a value whose type shows that it is media, or None; its column's name does not count."""
    if value is None or isinstance(value, (str, int, float)):
        return None
    if isinstance(value, (bytes, bytearray, memoryview)):
        kind = sniff(bytes(value[:4096]))
        return any_type(kind).partition("/")[0] if kind else None
    if isinstance(value, Mapping):
        if "array" in value and "sampling_rate" in value:
            return "audio"
        if value.get("bytes") is not None:
            return modality_of(value["bytes"])
        path = value.get("path")
        named = suffix_type(path) if "bytes" in value and isinstance(path, str) else None
        return named.partition("/")[0] if named else None
    if isinstance(value, (list, tuple)):
        if is_sound_pair(value):
            return "audio"
        found = {modality_of(element) for element in value if not holds_no_medium(element)}
        return found.pop() if len(found) == 1 else None
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return "image" if str(value.dtype) == "uint8" and len(value.shape) in (2, 3) else None
    return "image" if is_media_object(value) else None


def looks_like(value: object, cells: bool) -> str | None:
    """Return the modality of the first medium in a column; None if it holds none."""
    return next(filter(None, map(_named_modality, list_of_cell(value, cells=cells))), None)


def _named_modality(value: object) -> str | None:
    """Return the modality of a value that is a medium or clearly names one, else None."""
    if not isinstance(value, str):
        return modality_of(value)
    try:
        kind = classify(value).kind
    except SourceError:
        return None
    if kind == "base64":
        found = sniff(clean_head(value) or b"")
        named = any_type(found) if found else None
    elif kind == "data":
        named = value.lower().removeprefix("data:")
    else:
        named = suffix_type(value.partition("?")[0] if kind == "url" else value)
    modality = (named or "").partition("/")[0]
    return modality if modality in MODALITIES and "\n" not in value else None


@lru_cache(maxsize=1024)
def media_column(column: object) -> tuple[str, bool] | None:
    """Return the modality in a column's name, and whether the name is numbered (``image_2``); None for other names."""
    match = _NAMED.fullmatch(column) if isinstance(column, str) else None
    return (match.group(1), match.group(2) is not None) if match else None
