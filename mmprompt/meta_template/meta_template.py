"""``MetaTemplate``: a prompt to what a model takes, one string or role messages.

The rules are those of the documentation of OpenCompass and AISBench; where their parsers fail on their own documents
(bare lists, ``end``, reserved roles in a round, media beside a system message) this one does what the documents say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from mmprompt._log import log
from mmprompt.errors import PromptError, TemplateError, nearest, shown
from mmprompt.messages import Message, Part, TextPart
from mmprompt.meta_template.merge import Draft, merge
from mmprompt.meta_template.text import RoleWriter, Tokenizer, joined_lines, outer_spec, parts_said
from mmprompt.meta_template.turns import RoleSpec, Round, Step, affix, walk
from mmprompt.templates.prompt_list import PromptList, copied
from mmprompt.templates.raw_messages import is_ready, merge_meta, meta_messages, ready_messages

MODES = ("gen", "ppl")
_KEYS = frozenset({"begin", "round", "end", "reserved_roles", "eos_token_id"})
_ROLE_KEYS = frozenset({"role", "begin", "end", "prompt", "generate", "api_role"})
_DEFAULT = {
    "round": [{"role": "HUMAN"}, {"role": "BOT", "generate": True}],
    "reserved_roles": [{"role": "SYSTEM"}, {"role": "TOOL", "api_role": "tool"}],
}

Meta = Union[Mapping[str, Any], Sequence[Mapping[str, Any]]]
"""A meta template as it is given"""


class MetaTemplate:
    """What a model wants around each role's words; compiled and validated at construction, immutable.

    Args:
        meta: ``begin``, ``round``, ``end``, ``reserved_roles`` and ``eos_token_id``; or a list of messages, each put
            before the prompt's own of the same role; or None for no meta template.

    A prompt that is ready messages (``role`` and ``content``) keeps its roles, whatever the meta template.

    Source: OpenCompass, Meta Template, its first edition and the present one.

    Raises:
        TemplateError: with the place as ``where.template``.
    """

    def __init__(self, meta: Meta | None = None) -> None:
        listed = isinstance(meta, (list, tuple)) and bool(meta)
        self._messages = meta_messages(meta) if listed and isinstance(meta, Sequence) else ()
        self._given = copied(meta)
        self._meta = None if meta is None or listed else copied(_checked(meta))
        self._loose_seen: list[bool] = []
        source = _DEFAULT if self._meta is None else self._meta
        self._round = _compile_round(source)
        self._begin = _compile_outer(source.get("begin"), "meta_template.begin")
        self._end = _compile_outer(source.get("end"), "meta_template.end")

    @property
    def meta(self) -> Meta | None:
        """A copy of the meta template as given."""
        given: Meta | None = copied(self._given)
        return given

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
        ``media_placeholder`` maps a modality to the text that stands for it; ``tokenizer`` turns token ids of
        ``begin`` and ``end`` into text, which else read ``<META_TOKEN_id>``.

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
        if self._messages or is_ready(prompt):
            lines = [{"role": m.role, "prompt": m.parts} for m in self.to_messages(prompt, mode)]
            return writer.finished(joined_lines(lines, writer))
        if self._meta is None:
            return writer.finished(joined_lines(_items_of(prompt), writer))
        out = [writer.outer(self._begin, self._round)]
        generated = False
        for step in walk(_items_of(prompt), self._round, mode):
            generated = step.kind == "generate"
            out.append(writer.step(step))
        if not generated:
            out.append(writer.outer(self._end, self._round))
        return writer.finished("".join(out))

    def to_messages(self, prompt: Any, mode: str = "gen") -> Any:
        """Return the prompt as a list of messages for an API model.

        A string is one user message. A plain list of strings or of prompts is a batch and gives a list of lists. Of
        ready messages an empty last one of the assistant is left out in ``gen``: there the model speaks.

        Raises:
            PromptError: an unknown role, or a prompt that gives no message.
        """
        _check_mode(mode)
        if isinstance(prompt, str):
            return [Message("user", prompt)]
        if _is_batch(prompt):
            return [self.to_messages(p, mode) for p in prompt]
        if is_ready(prompt):
            return merge_meta(self._messages, ready_messages(prompt, generate=mode == "gen"))
        return merge_meta(self._messages, self._rendered(prompt, mode))

    def _rendered(self, prompt: Any, mode: str) -> list[Message]:
        """Return a prompt of role dicts as messages."""
        drafts: list[Draft] = [_outer_draft(o, self._round) for o in self._begin]
        generated = False
        for step in walk(_items_of(prompt), self._round, mode):
            generated = step.kind == "generate"
            if step.kind == "text":
                self._warn_loose(step.item)
                drafts.append(Draft.loose(step.item))
            elif step.kind == "role" and (draft := _draft(step)) is not None:
                drafts.append(draft)
        if not generated:
            drafts.extend(_outer_draft(o, self._round, at_end=True) for o in self._end)
        messages = merge(drafts)
        if not messages:
            raise PromptError("the prompt gives no message", "give a role a prompt")
        return messages

    def _warn_loose(self, text: str) -> None:
        if text.strip() and not self._loose_seen:
            self._loose_seen.append(True)
            log.warning("loose text %s has no role; it joins the message beside it", shown(text))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as the argument."""
        return (type(self), (self._given,))

    def __repr__(self) -> str:
        """Show the class and what it was given."""
        return f"MetaTemplate({self._given!r})"


def _draft(step: Step) -> Draft | None:
    spec, item = step.spec, step.item
    if spec is None or (item is None and spec.prompt is None):
        return None
    prompt = None if item is None else item.get("prompt")
    parts = parts_said(spec.prompt or "" if prompt is None else prompt)
    writer = RoleWriter({}, None)
    keys = item or {}
    return Draft(
        spec.api_role or spec.role,
        _wrapped(writer.affix(spec.begin), parts, writer.affix(spec.end)),
        keys.get("name"),
        tuple(keys.get("tool_calls") or ()),
        keys.get("tool_call_id"),
    )


def _wrapped(begin: str, parts: list[Part], end: str) -> list[Part]:
    """Put a role's begin and end around its parts, joined to the text they touch."""
    if begin:
        first = parts[0] if parts else None
        rest = parts[1:] if isinstance(first, TextPart) else parts
        parts = [TextPart(begin + first.text, first.extra) if isinstance(first, TextPart) else TextPart(begin), *rest]
    if end:
        last = parts[-1] if parts else None
        rest = parts[:-1] if isinstance(last, TextPart) else parts
        parts = [*rest, TextPart(last.text + end, last.extra) if isinstance(last, TextPart) else TextPart(end)]
    return parts


def _outer_draft(outer: Any, round_: Round, *, at_end: bool = False) -> Draft:
    """Return the meta template's own begin or end as a message: of SYSTEM if there is one, else of HUMAN."""
    if isinstance(outer, Mapping):
        spec = outer_spec(outer, round_)
        writer = RoleWriter({}, None)
        parts = _wrapped(writer.affix(spec.begin), parts_said(outer.get("prompt") or ""), writer.affix(spec.end))
        return Draft(spec.api_role or spec.role, parts)
    text = RoleWriter({}, None).affix((outer,))
    owner = next((round_.roles[r] for r in ("SYSTEM", "HUMAN") if r in round_.roles), RoleSpec("HUMAN"))
    role = owner.api_role or owner.role
    return Draft(role, [TextPart(text)], seek=owner.role != "SYSTEM" and not at_end)


def _items_of(prompt: Any) -> list[Any]:
    if isinstance(prompt, Mapping) or not isinstance(prompt, Iterable):
        raise PromptError(f"a prompt is {type(prompt).__name__}", "give a string, a PromptList or a list of role dicts")
    items = list(prompt)
    for number, item in enumerate(items):
        if not isinstance(item, (str, Mapping)):
            what = f"item {number} of the prompt is {type(item).__name__}"
            raise PromptError(what, "its items are strings and role dicts")
        if isinstance(item, Mapping) and "prompt_mm" in item:
            what = f"item {number} of the prompt holds prompt_mm, which is a template"
            raise PromptError(what, "fill it first: MMPromptTemplate(…).generate_item(row)")
        if isinstance(item, Mapping) and "content" in item and "prompt" not in item:
            what = f"item {number} of the prompt is a message with 'content' among items of another form"
            raise PromptError(what, "give messages only, or role dicts with 'prompt'")
    return items


def _is_batch(prompt: Any) -> bool:
    """Tell whether a plain list holds several prompts: strings or lists, and no role dict."""
    return (
        isinstance(prompt, (list, tuple))
        and not isinstance(prompt, PromptList)
        and bool(prompt)
        and all(isinstance(p, (str, list, tuple)) for p in prompt)
    )


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise PromptError(f"unknown mode {shown(mode)}", "give 'gen' or 'ppl'")


def _checked(meta: Any) -> Mapping[str, Any]:
    if not isinstance(meta, Mapping):
        raise TemplateError(
            f"a meta template is a dict, not {type(meta).__name__}", "give a dict, a list of messages, or None for none"
        )
    for key in meta:
        if key not in _KEYS:
            raise TemplateError(f"unknown key {shown(key)}", nearest(key, _KEYS)).located(template="meta_template")
    for key in ("round", "reserved_roles"):
        if not isinstance(meta.get(key) or [], (list, tuple)):
            what = f"'{key}' is {type(meta[key]).__name__}"
            raise TemplateError(what, "give a list of role dicts").located(template=f"meta_template.{key}")
    ids = meta.get("eos_token_id")
    if ids is not None and not all(type(i) is int for i in (ids if isinstance(ids, list) else [ids])):
        raise TemplateError(f"eos_token_id is {shown(ids)}", "give the id of a token").located(template="meta_template")
    return meta


def _compile_round(meta: Mapping[str, Any]) -> Round:
    roles: dict[str, RoleSpec] = {}
    entries: list[RoleSpec | str] = []
    for index, item in enumerate(meta.get("round") or ()):
        if isinstance(item, str):
            entries.append(item)
            continue
        spec = _compile_role(item, index, f"meta_template.round[{index}]", roles)
        entries.append(spec)
    for index, item in enumerate(meta.get("reserved_roles") or ()):
        _compile_role(item, None, f"meta_template.reserved_roles[{index}]", roles)
    return Round(tuple(entries), roles)


def _compile_role(item: Any, index: int | None, place: str, roles: dict[str, RoleSpec]) -> RoleSpec:
    if not isinstance(item, Mapping) or not isinstance(item.get("role"), str):
        raise TemplateError("no role dict", "give a dict with 'role'").located(template=place)
    for key in item:
        if key not in _ROLE_KEYS:
            raise TemplateError(f"unknown key {shown(key)}", nearest(key, _ROLE_KEYS)).located(template=place)
    for key, kind in (("prompt", str), ("api_role", str), ("generate", bool)):
        if item.get(key) is not None and not isinstance(item[key], kind):
            what = f"'{key}' is {type(item[key]).__name__}"
            raise TemplateError(what, f"give {kind.__name__}").located(template=place)
    name = item["role"]
    if name in roles:
        raise TemplateError(f"role '{name}' twice", "give each role once").located(template=place)
    try:
        begin, end = affix(item.get("begin"), "begin"), affix(item.get("end"), "end")
    except PromptError as error:
        raise TemplateError(error.what, error.hint).located(template=place) from None
    generate = bool(item.get("generate", False))
    roles[name] = RoleSpec(name, begin, end, item.get("prompt"), generate, item.get("api_role"), index)
    return roles[name]


def _compile_outer(value: Any, place: str) -> tuple[Any, ...]:
    """Return the meta template's own begin or end: strings, token ids and role dicts, in order."""
    out: list[Any] = []
    for item in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(item, Mapping):
            _compile_role(item, None, place, {})
            out.append(item)
            continue
        try:
            out.extend(affix(item, place.rpartition(".")[2]))
        except PromptError as error:
            raise TemplateError(error.what, error.hint).located(template=place) from None
    return tuple(out)
