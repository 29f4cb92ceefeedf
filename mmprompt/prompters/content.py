"""The values that fill a prompter: text, or content parts where there are media.

Values from the caller become ``PromptContent`` first, and content part dicts (or text and placeholders) last.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from numbers import Number
from typing import Union

from mmprompt.errors import MMPromptError, PromptError, TemplateError, nearest, shown
from mmprompt.media.sources import as_written, in_short
from mmprompt.messages import MODALITIES, PARTS, MediaPart, MediaRef, Message, Part, TextPart, part_dict, part_of
from mmprompt.meta_template.text import rendered_string
from mmprompt.targets.json_values import JSONObject, JSONValue, plain
from mmprompt.targets.openai import to_openai
from mmprompt.templates.slots import Slot

PromptContent = Union[str, "tuple[Part, ...]"]
"""Text, or parts in order. To tell them apart, test for ``str``: a part is a tuple too."""


def content_of(value: object, place: str) -> PromptContent:
    """Return ``value`` as content: text and numbers as text, content parts, part dicts and lists of them as parts.

    A list may also hold texts, but not texts alone. Errors name the ``place``: ``slot 'question'``, ``history[0]``.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, PARTS):
        return (value,)
    if isinstance(value, Mapping):
        return (_part_of(value, place),)
    if isinstance(value, (list, tuple)):
        return _parts_of(value, place)
    if isinstance(value, Number):
        return str(value)
    if value is None:
        raise TemplateError(f"{place} is null", "give text; '' is an empty text")
    hint = "give text, a number, or content parts; media go into a MediaRef or a part dict"
    raise TemplateError(f"{place} is {type(value).__name__}, neither text nor content parts", hint)


def _parts_of(values: list[object] | tuple[object, ...], place: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    texts = 0
    for value in values:
        if isinstance(value, str):
            parts.append(TextPart(value))
            texts += 1
        elif isinstance(value, PARTS):
            parts.append(value)
        elif isinstance(value, Mapping):
            parts.append(_part_of(value, place))
        else:
            raise TemplateError(f"{place} holds {type(value).__name__} in a list", "give texts and content parts in it")
    if texts and texts == len(parts):
        raise TemplateError(f"{place} is a list of texts", "join them into one text, or give content parts")
    return tuple(parts)


def _part_of(value: Mapping[str, object], place: str) -> Part:
    try:
        return part_of(value)
    except MMPromptError as error:
        raise error.located(template=place) from None


def joined(*contents: PromptContent) -> PromptContent:
    """Return contents joined without a separator. Neighbouring texts become one text."""
    texts = [c for c in contents if isinstance(c, str)]
    if len(texts) == len(contents):
        return "".join(texts)
    out: list[Part] = []
    held = ""
    for content in contents:
        for part in (TextPart(content),) if isinstance(content, str) else content:
            if isinstance(part, TextPart) and not part.extra:
                held += part.text
                continue
            if held:
                out.append(TextPart(held))
                held = ""
            out.append(part)
    if not out:
        return held
    return (*out, TextPart(held)) if held else tuple(out)


def cut_before_media(content: PromptContent) -> tuple[PromptContent, PromptContent]:
    """Return content in two: what stands before its first medium, and the rest, which is empty if there is none."""
    if isinstance(content, str):
        return content, ""
    at = next((n for n, part in enumerate(content) if not isinstance(part, TextPart)), len(content))
    return joined(content[:at]), joined(content[at:])


def kept(content: PromptContent) -> PromptContent:
    """Return a copy of the content that shares nothing mutable with the caller's values."""
    if isinstance(content, str):
        return content
    return tuple([_kept_part(part) for part in content])


def _kept_part(part: Part) -> Part:
    extra = tuple([(key, plain(value)) for key, value in part.extra])
    if isinstance(part, TextPart):
        return part._replace(extra=extra)
    return part._replace(extra=extra, options=tuple([(key, plain(value)) for key, value in part.options]))


def wire_content(content: PromptContent) -> str | list[JSONValue]:
    """Return content as in a message of OpenAI's chat form: text, or a list of new part dicts."""
    return content if isinstance(content, str) else [_wire_part(part) for part in content]


def _wire_part(part: Part) -> JSONObject:
    if isinstance(part, MediaPart):
        wire: list[JSONObject] = to_openai([Message("user", [part])], content="parts")[0]["content"]
        return wire[0]
    if isinstance(part, TextPart):
        return _copied(part_dict(part))
    form = part.form if part.form == "input_audio" else ""  # the chat form has no others
    source = part.source if part.name is None else part.name
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if not isinstance(source, str):
        what = f"{part.modality} {shown(in_short(source))} is an object in memory, which a message cannot name"
        raise PromptError(what, "give its path, URL or data URI, or read it first: read_messages(...)")
    return _copied(part_dict(part._replace(form=form), source if form else as_written(source, part.modality)))


def _copied(wire: dict[str, object]) -> JSONObject:
    return {key: plain(value) for key, value in wire.items()}


class StringWriter:
    """Writes a prompt as one string. ``placeholders`` maps a modality to the text that stands for its media.

    Raises:
        TemplateError: a key of ``placeholders`` is not a modality, or a value is not text.
    """

    def __init__(self, placeholders: Mapping[str, str] | None) -> None:
        self._placeholders = placeholders
        self._out: list[str] = []
        self._media: list[MediaRef | MediaPart] = []
        for modality, placeholder in (placeholders or {}).items():
            if modality not in MODALITIES:
                raise TemplateError(
                    f"unknown modality {shown(modality)} in media_placeholder", nearest(modality, MODALITIES)
                )
            if not isinstance(placeholder, str) or not placeholder:
                raise TemplateError(
                    f"the placeholder of {modality} is empty or not text", "give a text such as '<image>'"
                )

    def lay_out(self, template: Iterable[str | Slot], fields: Mapping[str, PromptContent]) -> None:
        """Write a template with its fields. Its own line ends at the beginning of the string are left out."""
        out = self._out
        for piece in template:
            if isinstance(piece, str):
                text = piece if out else piece.lstrip("\n")
                if text:
                    out.append(text)
            else:
                content = fields[piece.column]
                if not isinstance(content, str):
                    out.extend([p.text if isinstance(p, TextPart) else self._placed(p) for p in content])
                elif content:
                    out.append(content)

    def _placed(self, part: MediaRef | MediaPart) -> str:
        placeholder = (self._placeholders or {}).get(part.modality)
        if placeholder is None:
            raise PromptError(
                f"the prompt holds {part.modality}, which a string cannot carry",
                f"give media_placeholder={{'{part.modality}': '…'}}, or return_dict=True",
                code="MM605",
            )
        self._media.append(part)
        return placeholder

    def result(self, finished: Callable[[str], str]) -> str:
        """Return the string after ``finished``. With placeholders it has the media as its attribute ``media``."""
        text = finished("".join(self._out))
        if self._placeholders is None:
            return text
        for placeholder in set(self._placeholders.values()):
            if text.count(placeholder) != sum(self._placeholders[m.modality] == placeholder for m in self._media):
                raise PromptError(
                    f"the text contains {shown(placeholder)}, the placeholder of media",
                    "change the text or the placeholder",
                    code="MM107",
                )
        return rendered_string(text, self._media)  # type: ignore[arg-type]  # it takes media that were read too
