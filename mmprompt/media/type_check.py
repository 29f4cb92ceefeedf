"""Bytes held against what a sample says they are: their modality, and the suffix of their name."""

from __future__ import annotations

from collections.abc import Sequence

from mmprompt.errors import SourceError, shown
from mmprompt.media.media_types import Kind, agree, any_type, media_type_for, sniff, suffix_type
from mmprompt.media.not_media import not_media

_AN = {"image": "an image", "audio": "a sound", "video": "a video"}


def checked_type(data: bytes, modality: str, name: str = "", read_also: Sequence[str] = ()) -> tuple[Kind, str]:
    """Return the kind and media type of bytes that a sample calls ``modality``; errors call them ``name``.

    Raises:
        SourceError: they are no media, of another modality, or of a format that ``read_also`` has to name.
    """
    kind = sniff(data)
    subject = shown(name) if name else f"the {modality} source"
    if kind is None:
        found = not_media(data)
        rest = "a format that is not taken" if modality in found.modalities else f"not {_AN[modality]}"
        raise SourceError(f"{subject} is {found.name}, {rest}", found.hint or f"give {_AN[modality]}")
    media_type = media_type_for(kind, modality)
    if media_type is None:
        tag = any_type(kind).partition("/")[0]
        raise SourceError(f"{subject} is {kind.name}, which is no {modality}", f"tag it as {tag}, or name another file")
    if kind.by_choice and kind.name.lower() not in read_also:
        choice = f", or let --read-also {kind.name.lower()} and --fit do it"
        raise SourceError(f"{subject} is {kind.name}, which is not sent as it is", kind.hint + choice)
    return kind, media_type


def suffix_findings(path: str, kind: Kind, media_type: str) -> tuple[str, ...]:
    """Return what is to be told of a path whose suffix speaks of another format, for ``MediaPart.findings``."""
    claimed = suffix_type(path)
    if claimed is None or agree(claimed, media_type) or path.lower().endswith(kind.suffixes):
        return ()
    return (f"named {path[path.rfind('.') :].lower()}, bytes are {kind.name}",)
