"""Messages written by hand: ``user("What is this?", image="cat.jpg")``.

A path that the caller writes here is permission to read that file; a path in a sample is not. The two are different
types, so a path from a dataset never becomes a permission.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Union

from mmprompt.errors import PromptError, SourceError, expect, shown
from mmprompt.media.file_errors import name_hint
from mmprompt.media.objects import is_frames
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.reader import MediaReader
from mmprompt.media.sources import RootedPath, classify
from mmprompt.messages import PARTS, MediaPart, MediaRef, Message, Part, TextPart, checked
from mmprompt.targets.json_values import JSONValue

Content = Union[str, TextPart, MediaRef, MediaPart]
"""What the builders take by position: text, or a part."""


class CallerPath(RootedPath):
    """A path or ``file://`` URL that the caller wrote: permission to read that file. It begins at ``root``."""

    __slots__ = ()
    owner: ClassVar[str] = ""


def user(*content: Content, image: object = None, audio: object = None, video: object = None) -> Message:
    """Return a message of the user: the media given by keyword, then ``content`` in order.

    A medium is a path, URL, data URI, base64, bytes, a PIL image or anything else that a sample may hold. A list or
    tuple gives several media. To put text between media, write ``user(image("a.jpg"), "and", image("b.jpg"))``.

    Raises:
        PromptError: content is neither text nor a part, or a list of media is empty.
        SourceError: a medium cannot be a source.
    """
    return _message("user", content, image, audio, video)


def assistant(*content: Content, image: object = None, audio: object = None, video: object = None) -> Message:
    """Return a message of the model; arguments and errors as in ``user``."""
    return _message("assistant", content, image, audio, video)


def system(*content: Content) -> Message:
    """Return a system message; as ``user``, but without media by keyword."""
    return _message("system", content, None, None, None)


def image(source: object, **options: JSONValue) -> MediaRef:
    """Return an image to put between texts.

    Args:
        source: a path, URL, bytes or anything else that ``user`` takes.
        options: keys beside the source in the content part, such as ``detail="low"``.

    Raises:
        SourceError: ``source`` cannot be a source.
    """
    return MediaRef("image", _own(source), options=tuple(options.items()))


def audio(source: object, **options: JSONValue) -> MediaRef:
    """Return a sound; arguments and errors as in ``image``."""
    return MediaRef("audio", _own(source), options=tuple(options.items()))


def video(source: object, **options: JSONValue) -> MediaRef:
    """Return a video, given as a file or a list of frames; arguments and errors as in ``image``."""
    return MediaRef("video", _own(source), options=tuple(options.items()))


def read_caller_media(
    messages: Iterable[Message], base: str | os.PathLike[str] = "", policy: MediaPolicy | None = None
) -> list[Message]:
    """Return messages with their media read.

    Args:
        messages: from the functions above, or from a task.
        base: the folder where the caller's relative paths begin; by default the working directory.
        policy: what else may be read, for media that a sample names. Its limits hold for all media.

    Raises:
        MediaError: a medium cannot be read.
        TargetError: an item is not a ``Message``, but for example a dict.
    """
    given = [checked(message) for message in messages]
    placed = [[_placed(part, base) for part in message.parts] for message in given]
    named = {path: path.full(str(classify(str(path)).value)) for parts in placed for path in _caller_paths(parts)}
    reader = MediaReader((policy or MediaPolicy()).with_files(*named.values()))

    def read(ref: MediaRef) -> MediaPart | MediaRef:
        for path in _caller_paths([ref]):
            if not os.path.lexists(named[path]):
                hint = f"check the path: it was looked for in {os.path.dirname(named[path])}{name_hint(path)}"
                raise SourceError(f"no such file: {shown(path)}", hint, code="MM201")
        return reader.read(ref)

    request = reader.request(read)
    return [m._replace(parts=tuple(map(request.part, parts))) for m, parts in zip(given, placed, strict=True)]


def _placed(part: Part, base: str | os.PathLike[str]) -> Part:
    """Return a part whose caller's paths begin at the folder ``base``."""
    if not isinstance(part, MediaRef):
        return part
    folder = os.fspath(base)
    if isinstance(part.source, list):
        frames = [CallerPath(s, folder) if isinstance(s, CallerPath) else s for s in part.source]
        return part._replace(source=frames)
    return part._replace(source=CallerPath(part.source, folder)) if isinstance(part.source, CallerPath) else part


def _caller_paths(parts: Iterable[Part]) -> Iterator[CallerPath]:
    """Yield the caller's paths among the media and frames of ``parts``."""
    for part in parts:
        if isinstance(part, MediaRef):
            sources = part.source if isinstance(part.source, list) else [part.source]
            yield from (source for source in sources if isinstance(source, CallerPath))


def _message(role: str, content: Sequence[Content], image: object, audio: object, video: object) -> Message:
    parts: list[Part] = []
    for modality, given in (("image", image), ("audio", audio), ("video", video)):
        sources = [] if given is None else _several(given)
        if given is not None and not sources:
            raise PromptError(f"{modality}= is empty", "name the media, or leave it out")
        parts += [s if isinstance(s, (MediaRef, MediaPart)) else MediaRef(modality, _own(s)) for s in sources]
    for part in content:
        expect(part, (str, *PARTS), "the content", "give text, or media as image=, audio=, video=", PromptError)
        parts.append(TextPart(part) if isinstance(part, str) else part)
    return Message(role, parts)


def _several(given: object) -> list[object]:
    """Return the sources of one keyword: the items of a list, a tuple of frames, or an iterator such as ``glob``."""
    if isinstance(given, (list, tuple)):
        return list(given) if isinstance(given, list) or is_frames(given) else [given]
    if isinstance(given, Iterator) and not hasattr(given, "read"):
        return list(given)
    return [given]


def _own(source: object) -> object:
    """Return a source whose paths are the caller's; a list of frames may hold several."""
    kind, _ = classify(source)
    if isinstance(source, (list, tuple)) and is_frames(source):
        return [_own(frame) for frame in source]
    if kind in ("path", "file") and isinstance(source, (str, os.PathLike)):
        return CallerPath(os.fsdecode(source), "")
    return source
