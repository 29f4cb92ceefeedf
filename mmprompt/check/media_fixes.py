"""New values for media that stand in a row as base64 text and are written oddly."""

from __future__ import annotations

from collections.abc import Mapping

from mmprompt.check.rule import CheckedMedium, Fix
from mmprompt.media.base64_text import encode_text
from mmprompt.media.sources import classify_or_path

_MENDED = frozenset(("MM204", "MM219"))


def medium_fix(code: str, medium: CheckedMedium, columns: Mapping[str, object]) -> Fix | None:
    """Return the fix of a data URI with another type than its bytes, or of base64 that is not plain.

    None for other findings, and where the text does not stand in a column of its own row.
    """
    source, part, column = medium.source, medium.part, medium.column
    if code not in _MENDED or part is None or part.frames or column is None or type(source) is not str:
        return None
    if not _holds(columns.get(column), source):
        return None
    kind = classify_or_path(source)
    if kind == "data":
        return Fix(column, f"data:{part.media_type};base64,{encode_text(part.data)}", old=source)
    return Fix(column, encode_text(part.data), old=source) if kind == "base64" and code == "MM219" else None


def _holds(value: object, source: str) -> bool:
    return source in value if isinstance(value, (str, list)) else False
