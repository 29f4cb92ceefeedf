"""Messages written by hand: ``user("What is this?", image="cat.jpg")``.

A path that a caller writes here is permission for that one file, unlike a path that a sample holds: the two are
different types, so that a dataset's names stay names wherever they go.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Union

from mmprompt.errors import MediaError, PromptError, SourceError, shown
from mmprompt.media.objects import is_frames
from mmprompt.media.path_hints import name_hint
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.reader import MediaReader
from mmprompt.media.sources import classify, in_short
from mmprompt.messages import PARTS, MediaPart, MediaRef, Message, Part, TextPart, checked

Content = Union[str, TextPart, MediaRef, MediaPart]
"""What a message takes by position: text, or a part."""


class CallerPath(str):
    """A path or ``file://`` URL that the caller wrote, which is permission for that file."""

    __slots__ = ()


def user(*content: Content, image: object = None, audio: object = None, video: object = None) -> Message:
    """Return a message of the user: the media that are given by keyword, then ``content`` in order.

    A medium is a path, URL, data URI, base64, bytes, a PIL image or whatever else a sample may hold; a list or tuple
    gives several. To put text between media write ``user(image("a.jpg"), "and", image("b.jpg"))``.

    Raises:
        PromptError: content that is neither text nor a part, or a list that is empty.
        SourceError: a medium that is none.
    """
    return _message("user", content, image, audio, video)


def assistant(*content: Content, image: object = None, audio: object = None, video: object = None) -> Message:
    """Return a message of the model; as ``user``."""
    return _message("assistant", content, image, audio, video)


def system(*content: Content) -> Message:
    """Return a system message; as ``user``, without media by keyword."""
    return _message("system", content, None, None, None)


def image(source: object, **options: Any) -> MediaRef:
    """Return an image to be put among texts; ``options`` are keys beside its source, such as ``detail="low"``.

    Raises:
        SourceError: the source is none.
    """
    return MediaRef("image", _own(source), options=tuple(options.items()))


def audio(source: object, **options: Any) -> MediaRef:
    """Return a sound; as ``image``."""
    return MediaRef("audio", _own(source), options=tuple(options.items()))


def video(source: object, **options: Any) -> MediaRef:
    """Return a video, or a list of its frames; as ``image``."""
    return MediaRef("video", _own(source), options=tuple(options.items()))


def read_caller_media(
    messages: Iterable[Message], base: str | os.PathLike[str] = "", policy: MediaPolicy | None = None
) -> list[Message]:
    """Return messages with their media read.

    Args:
        messages: from the functions above, or from a task.
        base: the folder that the caller's relative paths begin at; by default the working directory.
        policy: what else may be read: media that a sample names need it. Its limits hold for all.

    Raises:
        MediaError: the first medium that cannot be read.
        TargetError: what is given is no message, such as a dict.
    """
    folder = os.path.abspath(base)
    given = [checked(message) for message in messages]
    sources = [path for m in given for p in m.parts if isinstance(p, MediaRef) for path in _own_paths(p.source)]
    full = {source: os.path.join(folder, str(classify(source).value)) for source in sources}
    reader = MediaReader((policy or MediaPolicy()).with_files(*full.values()))

    def read(ref: MediaRef) -> MediaPart | MediaRef:
        paths = _own_paths(ref.source)
        return _read_own_files(ref, {path: full[path] for path in paths}, reader) if paths else reader.read(ref)

    request = reader.request(read)
    return [message._replace(parts=tuple(map(request.part, message.parts))) for message in given]


def _own_paths(source: object) -> list[CallerPath]:
    """Return the paths of the caller's that a source is, or has among its frames."""
    found = source if isinstance(source, list) else [source]
    return [path for path in found if type(path) is CallerPath]


def _read_own_files(ref: MediaRef, full: Mapping[CallerPath, str], reader: MediaReader) -> MediaPart | MediaRef:
    """Read a file of the caller's, or those of frames; errors show them as they were written."""
    for source, path in full.items():
        if not os.path.lexists(path):
            hint = f"it was looked for in {os.path.dirname(path)}{name_hint(source)}"
            raise SourceError(f"no such file: {shown(source)}", hint)

    frames = ref.source if isinstance(ref.source, list) else None
    found = [Path(full[s]) if type(s) is CallerPath else s for s in ([ref.source] if frames is None else frames)]
    try:
        part = reader.read(ref._replace(source=found[0] if frames is None else found))
    except MediaError as error:
        what = error.what
        for source, path in full.items():
            what = what.replace(shown(path), shown(source))
        raise type(error)(what, error.hint) from None
    if frames is not None or not isinstance(part, MediaPart):
        return part
    return part._replace(origin=in_short(str(ref.source)))


def _message(role: str, content: Sequence[Content], image: object, audio: object, video: object) -> Message:
    parts: list[Part] = []
    for modality, given in (("image", image), ("audio", audio), ("video", video)):
        sources = [] if given is None else _several(given)
        if given is not None and not sources:
            raise PromptError(f"{modality}= is empty", "name the media, or leave it out")
        parts += [s if isinstance(s, (MediaRef, MediaPart)) else MediaRef(modality, _own(s)) for s in sources]
    for part in content:
        if not isinstance(part, (str, *PARTS)):
            raise PromptError(f"content of type {type(part).__name__}", "give text, or media as image=, audio=, video=")
        parts.append(TextPart(part) if isinstance(part, str) else part)
    return Message(role, parts)


def _several(given: object) -> list[object]:
    """Return the sources of one keyword: those of a list, of a tuple that is no sound with its rate, of a ``glob``."""
    if isinstance(given, (list, tuple)):
        return list(given) if isinstance(given, list) or is_frames(given) else [given]
    if isinstance(given, Iterator) and not hasattr(given, "read"):
        return list(given)
    return [given]


def _own(source: object) -> object:
    """Return a source with the caller's permission, where it is a path or a list of frames with paths."""
    kind, _ = classify(source)
    if isinstance(source, (list, tuple)) and is_frames(source):
        return [_own(frame) for frame in source]
    if kind in ("path", "file") and isinstance(source, (str, os.PathLike)):
        return CallerPath(os.fsdecode(source))
    return source
