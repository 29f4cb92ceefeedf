"""``MetaTemplate``: a prompt to what a model takes, one string or role messages.

The rules are those of the documentation of OpenCompass and AISBench; where their parsers fail on their own documents
(bare lists, ``end``, reserved roles in a round, media beside a system message) this one does what the documents say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union, cast

from mmprompt._log import warn
from mmprompt.errors import PromptError, shown
from mmprompt.media.sources import as_written
from mmprompt.messages import MediaRef, Message, Part, TextPart, is_blank, real_text
from mmprompt.meta_template.merge import MessageDraft, merge, merge_meta
from mmprompt.meta_template.roles import MetaDict, checked_meta, compile_outer, compile_round, meta_messages
from mmprompt.meta_template.text import RoleWriter, Tokenizer, affix_text, joined_lines
from mmprompt.meta_template.turns import Affix, MetaRoleDict, RoleSpec, Round, walk
from mmprompt.templates.part_skeleton import prompt_parts
from mmprompt.templates.prompt_list import PromptItem, PromptList, RoleDict, copied
from mmprompt.templates.raw_messages import is_ready, ready_messages

MODES = ("gen", "ppl")
_NAMES = {"user": "HUMAN", "assistant": "BOT", "system": "SYSTEM", "tool": "TOOL"}
_DEFAULT: MetaDict = {
    "round": [{"role": "HUMAN"}, {"role": "BOT", "generate": True}],
    "reserved_roles": [{"role": "SYSTEM"}, {"role": "TOOL", "api_role": "tool"}],
}

Meta = Union[MetaDict, Mapping[str, Any], Sequence[Mapping[str, Any]]]
"""A meta template as it is given"""


class MetaTemplate:
    """What a model expects around each role's words; checked and compiled at construction, immutable.

    Args:
        meta: a dict of ``begin``, ``round``, ``end``, ``reserved_roles`` and ``eos_token_id``; or a list of messages,
            each put before the prompt's own of the same role; or None for no meta template.

    A prompt that is a list of message dicts (``role`` and ``content``) keeps its roles under any meta template.

    Source: OpenCompass, Meta Template, its first edition and the present one.

    Raises:
        TemplateError: with the place as ``where.template``.
    """

    def __init__(self, meta: Meta | None = None) -> None:
        self._given = copied(meta)
        self._messages: tuple[Message, ...] = ()
        self._meta: MetaDict | None = None
        if meta and isinstance(meta, (list, tuple)):
            self._messages = meta_messages(meta)
        elif meta is not None:
            self._meta = checked_meta(self._given)
        self._loose_seen: list[bool] = []
        source = _DEFAULT if self._meta is None else self._meta
        self._round = compile_round(source)
        self._begin = compile_outer(source.get("begin"), "meta_template.begin")
        self._end = compile_outer(source.get("end"), "meta_template.end")

    @property
    def meta(self) -> Meta | None:
        """A copy of the meta template as given."""
        return copied(self._given)

    @property
    def generating_roles(self) -> frozenset[str]:
        """The roles that the model speaks for: those that generate, else BOT."""
        roles = [spec.role for spec in self._round.roles.values() if spec.generate]
        return frozenset(roles or ("BOT",))

    @property
    def eos_token_id(self) -> int | list[int] | None:
        """The id of the token that ends a reply, or several such, if the meta template names any."""
        return self._meta.get("eos_token_id") if self._meta else None

    def to_string(
        self,
        prompt: Any,
        mode: str = "gen",
        *,
        media_placeholder: Mapping[str, str] | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> Any:
        """Return the prompt as one string for a language model, with ``media`` beside it.

        A string is returned as it is. A plain list of strings or of prompts is a batch and gives a list.
        ``media_placeholder`` maps a modality to the text that stands for it. ``tokenizer`` turns the token ids of
        ``begin`` and ``end`` into text; without one they read ``<META_TOKEN_id>``.

        Raises:
            PromptError: an unknown role, media without a placeholder, or text that contains a placeholder.
        """
        _check_mode(mode)
        if _is_batch(prompt):
            options: dict[str, Any] = {"media_placeholder": media_placeholder, "tokenizer": tokenizer}
            return [self.to_string(p, mode, **options) for p in prompt]
        writer = RoleWriter({} if media_placeholder is None else media_placeholder, tokenizer)
        if isinstance(prompt, str):
            return writer.finished(prompt)
        items = None if self._messages else _role_items(prompt)
        if items is None:
            lines: list[PromptItem] = [{"role": m.role, "prompt": m.parts} for m in self.to_messages(prompt, mode)]
            return writer.finished(joined_lines(lines, writer))
        if self._meta is None:
            return writer.finished(joined_lines(items, writer))
        steps = walk(items, self._round, mode)
        out = [writer.outer(self._begin, self._round), *map(writer.step, steps)]
        if not (steps and steps[-1].generates):
            out.append(writer.outer(self._end, self._round))
        return writer.finished("".join(out))

    def to_messages(self, prompt: Any, mode: str = "gen") -> Any:
        """Return the prompt as a list of messages for an API model.

        A string is one user message. A plain list of strings or of prompts is a batch and gives a list of lists. In
        ``gen`` an empty last message of the assistant is left out of message dicts: the model speaks there.

        Raises:
            PromptError: an unknown role, or a prompt that gives no message.
        """
        _check_mode(mode)
        if isinstance(prompt, str):
            return [Message("user", prompt)]
        if _is_batch(prompt):
            return [self.to_messages(p, mode) for p in prompt]
        items = _role_items(prompt)
        own = ready_messages(prompt, generate=mode == "gen") if items is None else self._rendered(items, mode)
        return merge_meta(self._messages, own)

    def merge_messages(self, messages: Sequence[Message], mode: str = "gen") -> list[Message]:
        """Return messages as this meta template sends them, as ``to_messages`` does for a prompt of their roles.

        Raises:
            PromptError: an unknown role, or no messages.
        """
        _check_mode(mode)
        return merge_meta(self._messages, self._rendered([role_dict(message) for message in messages], mode))

    def _rendered(self, items: Sequence[PromptItem], mode: str) -> list[Message]:
        """Return the items of a prompt as messages."""
        drafts = [_outer_draft(outer, self._round) for outer in self._begin]
        steps = walk(items, self._round, mode)
        for spec, item, text, generates in steps:
            if spec is None:
                self._warn_loose(text)
                if text:
                    drafts.append(MessageDraft("", [TextPart(text)]))
            elif not generates and (draft := _draft(spec, item)) is not None:
                drafts.append(draft)
        if not (steps and steps[-1].generates):
            drafts += [_outer_draft(outer, self._round, at_end=True) for outer in self._end]
        messages = merge(drafts)
        if not messages:
            raise PromptError("the prompt gives no message", "give a role a prompt")
        return messages

    def _warn_loose(self, text: str) -> None:
        if not is_blank(text) and not self._loose_seen:
            self._loose_seen.append(True)
            what = "loose text %s has no role; it joins the message beside it"
            warn("MM601", what, shown(real_text(text)))

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self._given,))

    def __repr__(self) -> str:
        return f"MetaTemplate({self._given!r})"


def _draft(spec: RoleSpec, item: RoleDict | None) -> MessageDraft | None:
    """Return what a role says as a draft; None for a role without item and default."""
    said = None if item is None else item.get("prompt")
    if said is None:
        if item is None and spec.prompt is None:
            return None
        said = spec.prompt or ""
    parts: list[Part] = [TextPart(said)] if isinstance(said, str) else prompt_parts(said)
    if spec.begin or spec.end:
        parts = _wrapped(spec.begin, parts, spec.end)
    role = spec.api_role or spec.role
    if item is None:
        return MessageDraft(role, parts)
    return MessageDraft(role, parts, item.get("name"), tuple(item.get("tool_calls") or ()), item.get("tool_call_id"))


def _wrapped(begin: Affix, parts: list[Part], end: Affix) -> list[Part]:
    """Return parts with a role's begin and end around them, joined to the text that they touch."""
    if before := affix_text(begin):
        first = parts[0] if parts else None
        rest = parts[1:] if isinstance(first, TextPart) else parts
        parts = [TextPart(before + first.text, first.extra) if isinstance(first, TextPart) else TextPart(before), *rest]
    if after := affix_text(end):
        last = parts[-1] if parts else None
        rest = parts[:-1] if isinstance(last, TextPart) else parts
        parts = [*rest, TextPart(last.text + after, last.extra) if isinstance(last, TextPart) else TextPart(after)]
    return parts


def _outer_draft(outer: str | int | MetaRoleDict, round_: Round, *, at_end: bool = False) -> MessageDraft:
    """Return the meta template's begin or end as a draft: of SYSTEM if there is such a role, else of HUMAN."""
    if isinstance(outer, Mapping):
        spec = round_.outer_spec(outer)
        return MessageDraft(
            spec.api_role or spec.role, _wrapped(spec.begin, prompt_parts(outer.get("prompt") or ""), spec.end)
        )
    owner = next((round_.roles[r] for r in ("SYSTEM", "HUMAN") if r in round_.roles), RoleSpec("HUMAN"))
    seek = owner.role != "SYSTEM" and not at_end
    return MessageDraft(owner.api_role or owner.role, [TextPart(affix_text((outer,)))], seek=seek)


def role_dict(message: Message) -> RoleDict:
    """Return a message as an item of a prompt, whose media are named as prompts name them."""
    parts = [_as_named(part) if isinstance(part, MediaRef) else part for part in message.parts]
    item = {"role": _NAMES.get(message.role, message.role), "prompt": parts or "", **message.beside_content()}
    return cast("RoleDict", item)


def _as_named(ref: MediaRef) -> MediaRef:
    """Return media as a content part dict would name them."""
    source = as_written(ref.source)
    form = "" if ref.form == f"{ref.modality}_url" else ref.form
    if source is ref.source and form == ref.form and ref.name is None:
        return ref
    return ref._replace(source=source, form=form, name=None)


def _role_items(prompt: object) -> list[PromptItem] | None:
    """Return the strings and role dicts of a prompt; None if it is a list of message dicts."""
    if isinstance(prompt, Mapping) or not isinstance(prompt, Iterable):
        raise PromptError(f"a prompt is {type(prompt).__name__}", "give a string, a PromptList or a list of role dicts")
    items = list(prompt)
    for number, item in enumerate(items):
        if not isinstance(item, (str, Mapping)):
            what = f"item {number} of the prompt is {type(item).__name__}"
            raise PromptError(what, "give strings and role dicts")
        if isinstance(item, Mapping) and "prompt_mm" in item:
            what = f"item {number} of the prompt holds prompt_mm, which is a template"
            raise PromptError(what, "fill it first: MMPromptTemplate(…).generate_item(row)")
        if isinstance(item, Mapping) and "content" in item:
            if number == 0 and is_ready(prompt):
                return None
            if "prompt" not in item:
                what = f"item {number} of the prompt is a message with 'content' among items of another form"
                raise PromptError(what, "give messages only, or role dicts with 'prompt'")
    return items


def _is_batch(prompt: object) -> bool:
    """Return True for a plain list of several prompts: strings or lists, and no role dict."""
    return (
        isinstance(prompt, (list, tuple))
        and not isinstance(prompt, PromptList)
        and bool(prompt)
        and all(isinstance(p, (str, list, tuple)) for p in prompt)
    )


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise PromptError(f"unknown mode {shown(mode)}", "give 'gen' or 'ppl'")
