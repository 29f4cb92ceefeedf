"""What roles say, as text: ``begin + prompt + end``, with placeholders for media."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from mmprompt.errors import PromptError, Where, shown
from mmprompt.messages import PARTS, MediaRef, Part, TextPart, part_of
from mmprompt.meta_template.turns import Affix, RoleSpec, Round, Step, affix


class Tokenizer(Protocol):
    """What ``to_string`` needs of a tokenizer."""

    def decode(self, token_ids: list[int]) -> str:
        """Return the text of token ids."""
        ...


class RenderedString(str):
    """The string for a language model; ``media`` are the media beside it, in the order of their placeholders."""

    __slots__ = ("media",)
    media: tuple[MediaRef, ...]

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with the media."""
        return (rendered_string, (str(self), self.media))


def rendered_string(text: str, media: Iterable[MediaRef]) -> RenderedString:
    """Return ``text`` with its media beside it."""
    rendered = RenderedString(text)
    rendered.media = tuple(media)
    return rendered


class RoleWriter:
    """Writes steps as text, and keeps the media beside.

    Raises:
        PromptError: ``placeholders`` is no mapping of modality to text.
    """

    def __init__(self, placeholders: Mapping[str, str], tokenizer: Tokenizer | None) -> None:
        if not isinstance(placeholders, Mapping) or not all(isinstance(t, str) and t for t in placeholders.values()):
            raise PromptError("media_placeholder is no mapping of modality to text", "give {'image': '<image>'}")
        self._placeholders = placeholders
        self._tokenizer = tokenizer
        self.media: list[MediaRef] = []

    def finished(self, text: str) -> RenderedString:
        """Return the whole string, checked: each placeholder in it stands for a medium, and no text forges one.

        Raises:
            PromptError: the text holds a placeholder that stands for nothing.
        """
        for placeholder in set(self._placeholders.values()):
            media = sum(self._placeholders.get(ref.modality) == placeholder for ref in self.media)
            if text.count(placeholder) != media:
                raise PromptError(
                    f"the text contains {shown(placeholder)}, which is a media placeholder",
                    "it would stand for media that is not there: change the text or the placeholder",
                )
        return rendered_string(text, self.media)

    def step(self, step: Step) -> str:
        """Write one step; where the model generates, the begin of its role alone."""
        if step.spec is None:
            return str(step.item)
        if step.kind == "generate":
            return self.affix(step.spec.begin)
        return self.role(step.spec, step.item)

    def role(self, spec: RoleSpec, item: Mapping[str, Any] | None) -> str:
        """Write ``begin + prompt + end`` of a role."""
        prompt = (item or {}).get("prompt")
        text = spec.prompt or "" if prompt is None else self.said(prompt)
        return self.affix(spec.begin) + text + self.affix(spec.end)

    def outer(self, outer: Sequence[Any], round_: Round) -> str:
        """Write the meta template's own begin or end."""
        return "".join(
            [self.role(outer_spec(o, round_), o) if isinstance(o, Mapping) else self.affix((o,)) for o in outer]
        )

    def affix(self, pieces: Affix) -> str:
        """Write strings and token ids."""
        return "".join([p if isinstance(p, str) else self._token(p) for p in pieces])

    def _token(self, token_id: int) -> str:
        return f"<META_TOKEN_{token_id}>" if self._tokenizer is None else self._tokenizer.decode([token_id])

    def said(self, prompt: Any) -> str:
        """Write a prompt, text or content parts, with placeholders for its media."""
        if isinstance(prompt, str):
            return prompt
        out = []
        for part in parts_said(prompt):
            if isinstance(part, TextPart):
                out.append(part.text)
                continue
            placeholder = self._placeholders.get(part.modality)
            if not placeholder:
                raise PromptError(
                    f"the prompt holds {part.modality}, which a string cannot carry",
                    f"give media_placeholder={{'{part.modality}': '…'}}, or use to_messages",
                    Where(setting="model.media_placeholder"),
                )
            self.media.append(part)  # type: ignore[arg-type]  # a prompt's media are names
            out.append(placeholder)
        return "".join(out)


def joined_lines(items: Sequence[Any], writer: RoleWriter) -> str:
    """Write a prompt without a meta template: the items that are not empty, on lines of their own."""
    out = ""
    for number, item in enumerate(items):
        if isinstance(item, str):
            text = writer.said(item)
        else:
            spec = RoleSpec(str(item.get("role")), affix(item.get("begin"), "begin"), affix(item.get("end"), "end"))
            text = writer.role(spec, item)
        if text:
            out += f"\n{text}" if number else text
    return out


def parts_said(prompt: Any) -> list[Part]:
    """Return a prompt, text or content part dicts, as parts.

    Raises:
        PromptError: it is neither.
    """
    if isinstance(prompt, str):
        return [TextPart(prompt)]
    if not isinstance(prompt, (list, tuple)):
        raise PromptError(f"a prompt is {type(prompt).__name__}", "give text, or a list of content parts")
    parts: list[Part] = []
    for part in prompt:
        if not isinstance(part, (Mapping, *PARTS)):
            raise PromptError(f"a prompt holds {type(part).__name__}", "its list holds content parts")
        parts.append(part_of(part) if isinstance(part, Mapping) else part)
    return parts


def outer_spec(outer: Mapping[str, Any], round_: Round) -> RoleSpec:
    """Return the role of a meta template's own begin or end that is a role dict."""
    known = round_.roles.get(outer["role"]) or RoleSpec(outer["role"])
    changes: dict[str, Any] = {k: affix(outer[k], k) for k in ("begin", "end") if k in outer}
    return known._replace(**changes, api_role=outer.get("api_role", known.api_role))
