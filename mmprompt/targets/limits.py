"""What each target takes. ``limits.toml`` says it, ``register_target`` adds to it, ``check_media`` enforces it."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from mmprompt.errors import TargetError, nearest, shown
from mmprompt.media.changes import TargetRoom
from mmprompt.media.image.headers import is_animated, picture_size
from mmprompt.media.media_types import HEIC, VIDEO_FRAMES, normal_type
from mmprompt.messages import MODALITIES, Hole, MediaPart


class ModalityLimits(NamedTuple):
    """What a target takes of one modality. ``None`` means that no limit is known.

    ``formats`` are media types. ``still``: formats accepted only as single-frame images. ``forms`` are content part
    types, the target's own first. ``max_bytes`` limits one file before base64, ``max_count`` the parts of one request,
    ``max_side`` the pixels of the longer side. ``date`` is when this was checked, ``source`` where.
    """

    formats: frozenset[str]
    forms: tuple[str, ...]
    still: frozenset[str] = frozenset()
    max_bytes: int | None = None
    max_count: int | None = None
    max_side: int | None = None
    date: str = ""
    source: str = ""

    @property
    def looks_at_bytes(self) -> bool:
        """Whether more than the media type of a file decides that it is taken."""
        return bool(self.still) or self.max_bytes is not None or self.max_side is not None


class Limits(NamedTuple):
    """What a target takes: its wire form, the URL schemes that it follows, and its modalities.

    ``request_bytes`` limits the texts of one request plus its media as base64. ``part_keys`` are the further keys that
    a content part may have, ``source_keys`` those beside a source; ``None`` allows all. ``left_out`` are optional keys
    of other wire forms, which are dropped in silence. ``counted`` is true if the number of parts is limited for some
    modality.
    """

    name: str
    wire: str
    schemes: frozenset[str]
    modalities: Mapping[str, ModalityLimits]
    request_bytes: int | None = None
    date: str = ""
    source: str = ""
    counted: bool = False
    part_keys: frozenset[str] | None = None
    source_keys: frozenset[str] | None = None
    left_out: frozenset[str] = frozenset()

    @property
    def frames_as_images(self) -> bool:
        """Whether the frames of a video are sent as images."""
        video = self.modalities.get("video")
        return video is None or VIDEO_FRAMES not in video.formats


_TARGETS: dict[str, Limits] = {}
_REGISTERED: dict[str, Limits] = {}


def limits(target: str) -> Limits:
    """Return what ``target`` takes."""
    found = _TARGETS.get(target) or _REGISTERED.get(target)
    if found is None and not _TARGETS:
        _TARGETS.update(_shipped())
        found = _TARGETS.get(target)
    if found is None:
        raise TargetError(f"unknown target {shown(target)}", nearest(target, target_names()))
    return found


def require_chat_target(target: str, who: str) -> Limits:
    """Return what ``target`` takes, having checked that its messages have OpenAI's chat form.

    ``who`` needs that form, such as ``"a batch file"``; the error names it.

    Raises:
        TargetError: an unknown target, or one of another wire form.
    """
    known = limits(target)
    if known.wire != "openai":
        raise TargetError(f"{who} needs OpenAI's chat form, and {target} has another", "use the target vllm or openai")
    return known


def target_names() -> list[str]:
    """Return the names of all targets, the shipped ones first."""
    if not _TARGETS:
        _TARGETS.update(_shipped())
    return [*_TARGETS, *_REGISTERED]


def register_target(
    name: str,
    *,
    like: str = "vllm",
    schemes: Iterable[str] | str | None = None,
    formats: Mapping[str, Iterable[str] | str] | None = None,
    max_bytes: Mapping[str, int] | None = None,
    max_count: Mapping[str, int] | None = None,
    max_side: Mapping[str, int] | None = None,
    source: str = "",
) -> Limits:
    """Register a target of your own in this process, and return what it takes.

    Registering a name again replaces it. Other processes, such as spawned workers, have to register it too.

    Args:
        name: the new name.
        like: a known target. The new one has its wire form, and takes what it takes except for the following.
        schemes: the URL schemes that it follows.
        formats: media types by modality. An empty list refuses the modality.
        max_bytes: the bytes of one file, by modality.
        max_count: the parts of one request, by modality.
        max_side: the pixels of the longer side of a picture or of a video's frames, by modality.
        source: where these limits are documented.

    Raises:
        TargetError: ``name`` is a shipped target, ``like`` is unknown, ``like`` does not take the modality of a key, a
            scheme or media type is malformed, or a limit is not a whole number from 1.
    """
    origin = limits(like)
    if not name or name in _TARGETS:
        raise TargetError(f"the target {shown(name)} cannot be registered", "choose another name")
    modalities = dict(origin.modalities)
    own = origin._replace(name=name, modalities=modalities, source=source)
    for modality, types in (formats or {}).items():
        modalities[modality] = modality_limits(own, modality)._replace(formats=_types(modality, types), source=source)
    for limit, numbers in (("max_bytes", max_bytes), ("max_count", max_count), ("max_side", max_side)):
        for modality, number in (numbers or {}).items():
            if type(number) is not int or number < 1:
                raise TargetError(f"{limit} of {modality} is {shown(number)}", "give a whole number from 1")
            if (limit, modality) == ("max_side", "audio"):
                raise TargetError("max_side is given for audio", "remove it: audio has no sides")
            changes: dict[str, Any] = {limit: number, "source": source}
            modalities[modality] = modality_limits(own, modality)._replace(**changes)
    if schemes is not None:
        own = own._replace(schemes=_schemes(schemes))
    kept = {modality: taken for modality, taken in modalities.items() if taken.formats}
    _REGISTERED[name] = own._replace(modalities=kept, counted=_counted(kept))
    return _REGISTERED[name]


def _types(modality: str, types: Iterable[str] | str) -> frozenset[str]:
    """Return media types under their usual names. A string is one type."""
    names = frozenset(normal_type(str(name)) for name in ((types,) if isinstance(types, str) else types))
    for name in names:
        if name.partition("/")[0] != modality:
            raise TargetError(f"{shown(name)} is not a media type of {modality}", f"write it as {modality}/FORMAT")
    return names


def _schemes(schemes: Iterable[str] | str) -> frozenset[str]:
    """Return URL schemes in lower case. A string is one scheme."""
    names = frozenset(str(name).lower() for name in ((schemes,) if isinstance(schemes, str) else schemes))
    for name in names:
        if not re.fullmatch(r"[a-z][a-z0-9+.-]*", name):
            raise TargetError(f"{shown(name)} is not a URL scheme", "write the part before ://, such as https")
    return names


def modality_limits(known: Limits, modality: str) -> ModalityLimits:
    """Return what a target takes of a modality."""
    taken = known.modalities.get(modality)
    if taken is None:
        hint = _frames_of(known) if modality == "video" else "choose another target"
        raise TargetError(f"{known.name} takes no {shown(modality)[1:-1]}", hint, code="MM804")
    return taken


def target_room(target: str, modality: str) -> TargetRoom:
    """Return how far media of a modality must be changed so that the target takes them."""
    taken = modality_limits(limits(target), modality)
    return TargetRoom(target, taken.formats, taken.still, taken.max_bytes, taken.max_side)


def check_media(part: MediaPart, known: Limits) -> ModalityLimits:
    """Return what the target takes of the part's modality, having checked the part against it.

    Raises:
        TargetError: the target refuses the modality, the format, an animation, or the size of the file or picture.
        SourceError: the header of a picture cannot be read where the target limits its sides or its frames.
    """
    taken = modality_limits(known, part.modality)
    if part.media_type not in taken.formats:
        hint = HEIC.hint if part.media_type == HEIC.image else "convert it, or pass --fit"
        if part.modality == "video":
            hint = _frames_of(known)
        names = ", ".join(sorted(kind.partition("/")[2] for kind in taken.formats))
        raise TargetError(f"{known.name} takes {part.modality} as {names}, not {part.media_type}", hint, code="MM804")
    data: object = part.data
    if type(data) is Hole:  # its bytes are looked at when a row fills it
        return taken
    if part.media_type in taken.still and is_animated(part.data):
        kind = part.media_type.partition("/")[2].upper()
        raise TargetError(
            f"{known.name} takes no animated {kind}",
            "send a single frame, or pass --fit to send the first",
            code="MM804",
        )
    if taken.max_bytes is not None and (size := len(part.data) + sum(map(len, part.frames))) > taken.max_bytes:
        hint = _frames_of(known) if part.modality == "video" else "shrink it, or pass --fit"
        if part.frames:
            hint = "send fewer or smaller frames: --frames N, --max-side N"
        raise TargetError(
            f"the {part.modality} has {size} bytes, {known.name} takes {taken.max_bytes}", hint, code="MM802"
        )
    if taken.max_side is not None:
        for picture in part.frames or ((part.data,) if part.modality == "image" else ()):
            _check_side(picture, known.name, taken.max_side)
    return taken


def _frames_of(known: Limits) -> str:
    """Return the hint for a video that a target does not take."""
    return "send frames as images: --frames N" if known.frames_as_images else "send its frames: --frames N"


def _check_side(picture: bytes, target: str, most: int) -> None:
    width, height = picture_size(picture)
    if max(width, height) > most:
        size = f"{width} x {height} pixels"
        raise TargetError(
            f"the image has {size}, {target} takes {most} a side", "shrink it: pass --max-side N or --fit", code="MM803"
        )


def check_count(modality: str, count: int, known: Limits) -> None:
    """Raise a TargetError if a request holds more parts of a modality than the target takes."""
    most = known.modalities[modality].max_count
    if most is not None and count > most:
        raise TargetError(
            f"a request holds {count} parts of {modality}, {known.name} takes {most}", "send fewer", code="MM801"
        )


def _shipped() -> dict[str, Limits]:
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    beside = os.path.join(os.path.dirname(__file__), "limits.toml")
    source: Any = __spec__
    text = source.loader.get_data(beside).decode("utf-8")  # importlib.resources takes 6 ms to load
    return {name: _limits(name, table) for name, table in toml.loads(text).items()}


def _limits(name: str, table: dict[str, Any]) -> Limits:
    facts = _with_sets(table)
    modalities = {
        modality: ModalityLimits(**_with_sets(facts.pop(modality))) for modality in MODALITIES if modality in table
    }
    return Limits(name, modalities=modalities, counted=_counted(modalities), **facts)


def _with_sets(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table of the file with its lists as sets, those in order as tuples, and its date as text."""
    facts = {key: frozenset(value) if isinstance(value, list) else value for key, value in table.items()}
    ordered = {"forms": tuple(table["forms"])} if "forms" in table else {}
    return {**facts, **ordered, "date": str(table["date"])}


def _counted(modalities: Mapping[str, ModalityLimits]) -> bool:
    return any(taken.max_count is not None for taken in modalities.values())
