"""Content parts and messages: immutable values between a template and a wire form.

``MediaRef`` is what a sample *named*. ``MediaPart`` is what was *read*. They are different types because a string that
names a medium is not a permission to read it. Target writers refuse a ``MediaRef``, unless the target takes names.

All are named tuples: cheap to create by the million, picklable, and equal if their fields are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Union

from mmprompt.errors import PromptError, TargetError, shown
from mmprompt.errors.findings import Note

Pairs = tuple[tuple[str, object], ...]
"""Further keys of a content part and their values, in order."""

_SHOWN_PARTS = 10

MODALITIES = ("image", "audio", "video")
"""The kinds of media."""

ROLES = {"HUMAN": "user", "BOT": "assistant", "SYSTEM": "system"}
"""The roles of the prompt system and their names in messages. Other roles keep their names."""


class TextPart(NamedTuple):
    """A piece of text. ``extra`` holds further keys of its content part, such as ``cache_control``."""

    text: str
    extra: Pairs = ()

    def __repr__(self) -> str:
        """Show at most 80 characters of the text."""
        return f"TextPart({shown(self.text)})"


class MediaRef(NamedTuple):
    """Media that a sample names and nobody has read.

    ``source`` is a path, URL, data URI or bare base64 as written, or an object that holds the media (bytes, a PIL
    image, a Hugging Face struct). ``form`` is the content part type that the template asked for (``image_url``,
    ``input_audio``, …; empty: the target's own). ``options`` are keys beside the source (``detail``), ``extra`` keys
    of the part itself (``min_pixels``). ``name`` is what goes on the wire where the reader decided to send a name.
    """

    modality: str
    source: object
    form: str = ""
    options: Pairs = ()
    extra: Pairs = ()
    name: str | None = None

    def __repr__(self) -> str:
        """Show the modality and at most 80 characters of the source; of an object its type."""
        plain = isinstance(self.source, (str, bytes))
        return f"MediaRef({self.modality}, {shown(self.source) if plain else f'<{type(self.source).__name__}>'})"


class MediaPart(NamedTuple):
    """Media that was read under a policy: the user's bytes, unchanged unless ``changes`` says so.

    ``media_type`` was judged from the bytes. A video of single frames has type ``video/jpeg`` and its encoded frames
    in ``frames`` instead of ``data``. ``origin`` is the source in short, for messages; it takes no part in comparisons
    of the wire forms. ``changes`` lists the transformations made, each in words; ``findings`` what the reader noticed.
    """

    modality: str
    media_type: str
    data: bytes
    frames: tuple[bytes, ...] = ()
    form: str = ""
    options: Pairs = ()
    extra: Pairs = ()
    origin: str = ""
    changes: tuple[str, ...] = ()
    findings: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        """Show the type, the size and the origin; never the bytes."""
        size = len(self.data) + sum(map(len, self.frames))
        frames = f", {len(self.frames)} frames" if self.frames else ""
        return f"MediaPart({self.media_type}, {size:,} bytes{frames}, {shown(self.origin)})"


Part = Union[TextPart, MediaRef, MediaPart]
PARTS = (TextPart, MediaRef, MediaPart)


class _MessageFields(NamedTuple):
    role: str
    parts: tuple[Part, ...]
    name: str | None
    tool_calls: tuple[object, ...]
    tool_call_id: str | None


class Message(_MessageFields):
    """One message: a role and its content parts.

    HUMAN, BOT and SYSTEM become ``user``, ``assistant`` and ``system``; other roles stay. ``parts`` may be given as
    text or as any iterable of parts; text parts without text are left out.
    """

    __slots__ = ()

    def __new__(
        cls,
        role: str,
        parts: str | Iterable[Part] = (),
        name: str | None = None,
        tool_calls: Iterable[object] = (),
        tool_call_id: str | None = None,
    ) -> Message:
        """Make a message; see the class."""
        if isinstance(parts, str):
            kept: tuple[Part, ...] = (TextPart(parts),) if parts else ()
        else:
            kept = tuple([p for p in parts if not (isinstance(p, TextPart) and not p.text)])
            for part in kept:
                if not isinstance(part, PARTS):
                    raise PromptError(f"a message holds {type(part).__name__}", "give text, or a list of content parts")
        return super().__new__(cls, ROLES.get(role, role), kept, name, tuple(tool_calls), tool_call_id)

    def __getnewargs__(self) -> tuple[object, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        """Show the role and at most ten parts, each in short."""
        more = ", …" if len(self.parts) > _SHOWN_PARTS else ""
        return f"Message({self.role}: {', '.join(map(repr, self.parts[:_SHOWN_PARTS]))}{more})"

    def beside_content(self) -> dict[str, Any]:
        """Return the keys beside the content that the message has: ``name``, ``tool_calls``, ``tool_call_id``."""
        found: dict[str, Any] = {}
        if self.name is not None:
            found["name"] = self.name
        if self.tool_calls:
            found["tool_calls"] = list(self.tool_calls)
        if self.tool_call_id is not None:
            found["tool_call_id"] = self.tool_call_id
        return found

    @property
    def text(self) -> str:
        """The texts of the message joined without a separator."""
        return "".join([p.text for p in self.parts if isinstance(p, TextPart)])


def checked(message: object) -> Message:
    """Return ``message`` if it is a ``Message``.

    Raises:
        TargetError: it is anything else, such as a dict.
    """
    if not isinstance(message, Message):
        kind = type(message).__name__
        raise TargetError(f"a message is {kind}", "give a list of Messages; from_openai(…) makes them of dicts")
    return message


_SOURCE_KEYS = ("url", "data", "path")
_TEXT_TYPES = ("text", "input_text", "output_text")


def part_of(part: Mapping[str, object]) -> TextPart | MediaRef:
    """Return a content part dict as a ``TextPart`` or ``MediaRef``. Nothing is read.

    Takes the forms of OpenAI (``image_url`` as object or string, ``input_audio``, ``input_image``), of vLLM
    (``audio_url``, ``video_url``) and of Hugging Face (``{"type": "image", "image": …}`` or ``"url"``). A null is a
    missing key, because tables give all parts the same keys.

    Raises:
        PromptError: the part has no known type, or names no source.
    """
    kind = part.get("type")
    if kind in _TEXT_TYPES and isinstance(part.get("text"), str):
        return TextPart(str(part["text"]), _others(part, ("type", "text")))
    modality = next((m for m in MODALITIES if isinstance(kind, str) and m in kind), None)
    if modality is None or not isinstance(kind, str):
        raise PromptError(f"a content part of unknown type {shown(kind)}", "see the targets for the known types")
    used = next((k for k in (kind, modality, f"{modality}_url", "url", "path") if part.get(k) is not None), "")
    body = part.get(used)
    options: Pairs = ()
    if isinstance(body, Mapping) and not ("bytes" in body or "array" in body):
        key = next((k for k in _SOURCE_KEYS if body.get(k) is not None), "")
        options = _others(body, (key,))
        body = body.get(key)
    if body is None:
        raise PromptError(f"a content part of type '{kind}' names no source", f"give '{kind}'", code="MM715")
    form = "" if kind == f"{modality}_url" else kind
    return MediaRef(modality, body, form, options, _others(part, ("type", used)))


def part_dict(part: TextPart | MediaRef, source: object = None) -> dict[str, object]:
    """Return a part as the content part dict that names it, the inverse of ``part_of``; nothing is read."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text, **dict(part.extra)}
    kind = part.form or f"{part.modality}_url"
    key = "data" if kind == "input_audio" else "url"
    return {
        "type": kind,
        kind: {key: part.source if source is None else source, **dict(part.options)},
        **dict(part.extra),
    }


def _others(mapping: Mapping[str, object], known: tuple[str, ...]) -> Pairs:
    return tuple([(k, v) for k, v in mapping.items() if k not in known and v is not None])
