"""What roles say, as text: ``begin + prompt + end``, with placeholders for media."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from mmprompt.errors import PromptError, Where, shown
from mmprompt.messages import MediaRef, TextPart
from mmprompt.meta_template.turns import Affix, MetaRoleDict, Outer, RoleSpec, Round, Step, affix
from mmprompt.templates.part_skeleton import prompt_parts
from mmprompt.templates.prompt_list import PromptItem, RoleDict


class Tokenizer(Protocol):
    """What ``to_string`` needs of a tokenizer."""

    def decode(self, token_ids: list[int]) -> str:
        """Return the text of token ids."""
        ...


class RenderedString(str):
    """The string for a language model; ``media`` are the media beside it, in the order of their placeholders."""

    __slots__ = ("media",)
    media: tuple[MediaRef, ...]

    def __reduce__(self) -> tuple[Callable[..., RenderedString], tuple[str, tuple[MediaRef, ...]]]:
        return (rendered_string, (str(self), self.media))


def rendered_string(text: str, media: Iterable[MediaRef]) -> RenderedString:
    """Return ``text`` with its media beside it."""
    rendered = RenderedString(text)
    rendered.media = tuple(media)
    return rendered


class RoleWriter:
    """Writes steps as text, and collects the media beside it.

    Raises:
        PromptError: ``placeholders`` is not a mapping of modality to text.
    """

    def __init__(self, placeholders: Mapping[str, str], tokenizer: Tokenizer | None) -> None:
        if not isinstance(placeholders, Mapping) or not all(isinstance(t, str) and t for t in placeholders.values()):
            what = "media_placeholder is not a mapping of modality to text"
            raise PromptError(what, "give {'image': '<image>'}")
        self._placeholders = placeholders
        self._tokenizer = tokenizer
        self.media: list[MediaRef] = []

    def finished(self, text: str) -> RenderedString:
        """Return the whole string with its media.

        Raises:
            PromptError: the text holds a placeholder that does not stand for one of the media.
        """
        for placeholder in dict.fromkeys(self._placeholders.values()):
            media = sum(self._placeholders.get(ref.modality) == placeholder for ref in self.media)
            if text.count(placeholder) != media:
                raise PromptError(
                    f"the text contains {shown(placeholder)}, which is a media placeholder",
                    "change the text or the placeholder: it would stand for media that are not there",
                    code="MM107",
                )
        return rendered_string(text, self.media)

    def step(self, step: Step) -> str:
        """Return one step as text; where the model generates, only the begin of its role."""
        if step.spec is None:
            return step.text
        if step.generates:
            return affix_text(step.spec.begin, self._tokenizer)
        return self.role(step.spec, step.item)

    def role(self, spec: RoleSpec, item: RoleDict | MetaRoleDict | None) -> str:
        """Return ``begin + prompt + end`` of a role."""
        prompt = None if item is None else item.get("prompt")
        text = spec.prompt or "" if prompt is None else self.prompt(prompt)
        return affix_text(spec.begin, self._tokenizer) + text + affix_text(spec.end, self._tokenizer)

    def outer(self, outer: Outer, round_: Round) -> str:
        """Return the begin or end of the meta template as text."""
        return "".join(
            [
                self.role(round_.outer_spec(o), o) if isinstance(o, Mapping) else affix_text((o,), self._tokenizer)
                for o in outer
            ]
        )

    def prompt(self, prompt: str | Sequence[object]) -> str:
        """Return a prompt, text or content parts, with placeholders for its media."""
        if isinstance(prompt, str):
            return prompt
        out = []
        for part in prompt_parts(prompt):
            if isinstance(part, TextPart):
                out.append(part.text)
                continue
            placeholder = self._placeholders.get(part.modality)
            if not placeholder:
                raise PromptError(
                    f"the prompt holds {part.modality}, which a string cannot carry",
                    f"give media_placeholder={{'{part.modality}': '…'}}, in a task file model: {{media_placeholder: "
                    f"{{{part.modality}: '…'}}}}, or send messages: to_messages, --emit messages",
                    Where(setting="model.media_placeholder"),
                    code="MM605",
                )
            self.media.append(part)  # type: ignore[arg-type]  # the media of a prompt are names
            out.append(placeholder)
        return "".join(out)


def affix_text(pieces: Affix, tokenizer: Tokenizer | None = None) -> str:
    """Return a begin or end as text; without a tokenizer the token 5 reads ``<META_TOKEN_5>``."""
    decoded = [
        p if isinstance(p, str) else f"<META_TOKEN_{p}>" if tokenizer is None else tokenizer.decode([p]) for p in pieces
    ]
    return "".join(decoded)


def joined_lines(items: Sequence[PromptItem], writer: RoleWriter) -> str:
    """Return a prompt without a meta template: the items that are not empty, each on its own line."""
    out = ""
    for number, item in enumerate(items):
        if isinstance(item, str):
            text = item
        else:
            spec = RoleSpec(str(item.get("role")), affix(item.get("begin"), "begin"), affix(item.get("end"), "end"))
            text = writer.role(spec, item)
        if text:
            out += f"\n{text}" if number else text
    return out
