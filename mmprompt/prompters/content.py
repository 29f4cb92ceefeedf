"""What a prompter is filled with: text, or content parts where media stand.

Values from outside become ``PromptContent`` at the door and dicts (or text and placeholders) at the other; in between
nothing looks into them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from numbers import Number
from typing import Any, Union

from mmprompt.errors import MMPromptError, PromptError, TemplateError, nearest, shown
from mmprompt.media.sources import as_written, in_short
from mmprompt.messages import MODALITIES, PARTS, MediaPart, MediaRef, Message, Part, TextPart, part_dict, part_of
from mmprompt.meta_template.text import rendered_string
from mmprompt.targets.json_values import plain
from mmprompt.targets.openai import to_openai
from mmprompt.templates.slots import Slot

PromptContent = Union[str, "tuple[Part, ...]"]
"""Text, or parts in order. Parts are tuples themselves: ask whether a content is ``str``, never whether it is tuple."""


def content_of(value: object, place: str) -> PromptContent:
    """Return ``value`` as content: text or a number as text; parts, part dicts and lists of them as parts.

    A list may hold texts too, but not texts alone.

    Args:
        value: what the caller gave; it is never changed.
        place: what it was given for, for errors: ``slot 'question'``, ``history[0]``.

    Raises:
        TemplateError: null, or a value that is neither text nor content parts.
        PromptError: a part dict of unknown type or without a source.
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
        raise TemplateError(f"{place} is null", "give text; '' is an empty one")
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
        raise TemplateError(f"{place} is a list of texts", "join them to one text, or give content parts")
    return tuple(parts)


def _part_of(value: Mapping[str, object], place: str) -> Part:
    try:
        return part_of(value)
    except MMPromptError as error:
        raise type(error)(f"{place}: {error.what}", error.hint, error.where) from None


def joined(*contents: PromptContent) -> PromptContent:
    """Return contents put one after the other without a separator; texts that meet are one text."""
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


def kept(content: PromptContent) -> PromptContent:
    """Return content that shares nothing changeable with its caller: further keys of its parts are copied."""
    if isinstance(content, str):
        return content
    return tuple([_kept_part(part) for part in content])


def _kept_part(part: Part) -> Part:
    extra = tuple([(key, plain(value)) for key, value in part.extra])
    if isinstance(part, TextPart):
        return part._replace(extra=extra)
    return part._replace(extra=extra, options=tuple([(key, plain(value)) for key, value in part.options]))


def wire_content(content: PromptContent) -> str | list[dict[str, Any]]:
    """Return content as a message of OpenAI's chat form holds it: text, or a list of new part dicts.

    Raises:
        PromptError: media that only an object in memory holds, which JSON cannot name.
        TargetError: a further key of a part that JSON cannot hold.
    """
    return content if isinstance(content, str) else [_wire_part(part) for part in content]


def _wire_part(part: Part) -> dict[str, Any]:
    if isinstance(part, MediaPart):
        wire: list[dict[str, Any]] = to_openai([Message("user", [part])], content="parts")[0]["content"]
        return wire[0]
    if isinstance(part, TextPart):
        return _copied(part_dict(part))
    form = part.form if part.form == "input_audio" else ""  # other forms are not of the chat form
    source = part.source if part.name is None else part.name
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if not isinstance(source, str):
        what = f"{part.modality} {shown(in_short(source))} is an object, which a message cannot name"
        raise PromptError(what, "give its path, URL or data URI, or let it be read first: read_messages(...)")
    return _copied(part_dict(part._replace(form=form), source if form else as_written(source, part.modality)))


def _copied(wire: dict[str, object]) -> dict[str, Any]:
    return {key: plain(value) for key, value in wire.items()}


class StringWriter:
    """Writes a prompt as one string, with placeholders for its media where the caller gave them.

    Raises:
        TemplateError: ``placeholders`` that name no modality, or are no text.
    """

    def __init__(self, placeholders: Mapping[str, str] | None) -> None:
        self._placeholders = placeholders
        self._out: list[str] = []
        self._media: list[MediaRef | MediaPart] = []
        for modality, placeholder in (placeholders or {}).items():
            if modality not in MODALITIES:
                raise TemplateError(
                    f"no modality {shown(modality)} in media_placeholder", nearest(modality, MODALITIES)
                )
            if not isinstance(placeholder, str) or not placeholder:
                raise TemplateError(f"the placeholder of {modality} is no text", "give a text such as '<image>'")

    def lay_out(self, template: Iterable[str | Slot], fields: Mapping[str, PromptContent]) -> None:
        """Write a template with its fields; line ends of its own that would begin the string are left out.

        Raises:
            PromptError: media without a placeholder.
        """
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
            )
        self._media.append(part)
        return placeholder

    def result(self, finished: Callable[[str], str]) -> str:
        """Return the string, ``finished``, with ``media`` beside it if there were placeholders to put.

        Raises:
            PromptError: the text itself contains a placeholder.
        """
        text = finished("".join(self._out))
        if self._placeholders is None:
            return text
        for placeholder in set(self._placeholders.values()):
            if text.count(placeholder) != sum(self._placeholders[m.modality] == placeholder for m in self._media):
                raise PromptError(
                    f"the text contains {shown(placeholder)}, the placeholder of media",
                    "it would stand for media that is not there: change the text or the placeholder",
                )
        return rendered_string(text, self._media)  # type: ignore[arg-type]  # media that was read may stand beside too
