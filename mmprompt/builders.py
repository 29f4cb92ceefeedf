"""Messages written by hand: ``user("What is this?", image="cat.jpg")``.

A path that a caller writes here is permission for that one file, unlike a path that a sample holds: the two are
different types, so that a dataset's names stay names wherever they go.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Union

from mmprompt.errors import MediaError, PromptError, SourceError, shown
from mmprompt.media.classify import classify, in_short
from mmprompt.media.objects import is_frames
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.read import MediaReader
from mmprompt.parts import MediaPart, MediaRef, Message, Part, TextPart, checked

Content = Union[str, TextPart, MediaRef, MediaPart]
"""What a message takes by position: text, or a part."""


class OwnPath(str):
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


def read_own(
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
    sources = [p.source for m in given for p in m.parts if isinstance(p, MediaRef) and type(p.source) is OwnPath]
    full = {source: os.path.join(folder, str(classify(source).value)) for source in sources}
    reader = MediaReader((policy or MediaPolicy()).with_files(*full.values()))

    def read(part: Part) -> Part:
        if not isinstance(part, MediaRef) or part.name is not None:
            return part
        if type(part.source) is OwnPath:
            return _read_own_file(part, part.source, full[part.source], reader)
        return reader.read(part)

    return [message._replace(parts=tuple(map(read, message.parts))) for message in given]


def _read_own_file(ref: MediaRef, source: OwnPath, full: str, reader: MediaReader) -> MediaPart | MediaRef:
    """Read a file of the caller's; errors show it as it was written."""
    if not os.path.lexists(full):
        raise SourceError(f"no such file: {shown(source)}", f"it was looked for in {os.path.dirname(full)}")
    try:
        part = reader.read(ref._replace(source=Path(full)))
    except MediaError as error:
        raise type(error)(error.what.replace(shown(full), shown(source)), error.mend) from None
    return part._replace(origin=in_short(str(source))) if isinstance(part, MediaPart) else part


def _message(role: str, content: Sequence[Content], image: object, audio: object, video: object) -> Message:
    parts: list[Part] = []
    for modality, given in (("image", image), ("audio", audio), ("video", video)):
        sources = [] if given is None else _several(given)
        if given is not None and not sources:
            raise PromptError(f"{modality}= is empty", "name the media, or leave it out")
        parts += [s if isinstance(s, (MediaRef, MediaPart)) else MediaRef(modality, _own(s)) for s in sources]
    for part in content:
        if not isinstance(part, (str, TextPart, MediaRef, MediaPart)):
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
    """Return a source with the caller's permission, where it is a path."""
    kind, _ = classify(source)
    if kind in ("path", "file") and isinstance(source, (str, os.PathLike)):
        return OwnPath(os.fsdecode(source))
    return source
