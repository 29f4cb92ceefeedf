"""Messages written by hand: ``user("What is this?", image="cat.jpg")``.

A path that a caller writes here is permission for that one file, unlike a path that a sample holds: the two are
different types, so that a dataset's names stay names wherever they go.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Union

from mmprompt.errors import PromptError
from mmprompt.media.classify import classify
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.read import MediaReader, read_message
from mmprompt.media.rooted import RootedPath
from mmprompt.parts import MediaPart, MediaRef, Message, Part, TextPart
from mmprompt.targets.part_writer import checked

Content = Union[str, TextPart, MediaRef, MediaPart]
"""What a message takes by position: text, or a part."""


class OwnPath(str):
    """A path or ``file://`` URL that the caller wrote, which is permission for that file."""

    __slots__ = ()


def user(*content: Content, image: object = None, audio: object = None, video: object = None) -> Message:
    """Return a message of the user: the media that are given by keyword, then ``content`` in order.

    A medium is a path, URL, data URI, base64, bytes, a PIL image or whatever else a sample may hold; a list gives
    several. To put text between media write ``user(image("a.jpg"), "and", image("b.jpg"))``.

    Raises:
        PromptError: content that is neither text nor a part.
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
    files: list[str] = []

    def rooted(part: Part) -> Part:
        if not isinstance(part, MediaRef) or type(part.source) is not OwnPath:
            return part
        source = RootedPath(part.source, folder)
        files.append(source.full(classify(source).value))
        return part._replace(source=source)

    found = [checked(message)._replace(parts=tuple(map(rooted, message.parts))) for message in messages]
    reader = MediaReader((policy or MediaPolicy()).with_files(*files))
    return [read_message(message, reader) for message in found]


def _message(role: str, content: Sequence[Content], image: object, audio: object, video: object) -> Message:
    parts: list[Part] = []
    for modality, given in (("image", image), ("audio", audio), ("video", video)):
        sources = given if isinstance(given, list) else [] if given is None else [given]
        parts += [s if isinstance(s, (MediaRef, MediaPart)) else MediaRef(modality, _own(s)) for s in sources]
    for part in content:
        if not isinstance(part, (str, TextPart, MediaRef, MediaPart)):
            raise PromptError(f"content of type {type(part).__name__}", "give text, or media as image=, audio=, video=")
        parts.append(TextPart(part) if isinstance(part, str) else part)
    return Message(role, parts)


def _own(source: object) -> object:
    """Return a source with the caller's permission, where it is a path."""
    kind, _ = classify(source)
    if kind in ("path", "file") and isinstance(source, (str, os.PathLike)):
        return OwnPath(os.fsdecode(source))
    return source
