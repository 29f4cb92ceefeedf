"""The roles of a meta template, checked and compiled once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict, cast

from mmprompt.errors import MMPromptError, PromptError, TemplateError, nearest, shown
from mmprompt.messages import Message
from mmprompt.meta_template.turns import MetaRoleDict, Outer, RoleSpec, Round, affix
from mmprompt.templates.raw_messages import ROLES, MessageDict, message_of

_KEYS = frozenset({"begin", "round", "end", "reserved_roles", "eos_token_id"})
_ROLE_KEYS = frozenset({"role", "begin", "end", "prompt", "generate", "api_role"})


class MetaDict(TypedDict, total=False):
    """A meta template."""

    begin: str | int | MetaRoleDict | Sequence[str | int | MetaRoleDict]
    round: Sequence[str | MetaRoleDict]
    end: str | int | MetaRoleDict | Sequence[str | int | MetaRoleDict]
    reserved_roles: Sequence[MetaRoleDict]
    eos_token_id: int | list[int]


def checked_meta(meta: object) -> MetaDict:
    """Return a meta template that is a dict with known keys."""
    if not isinstance(meta, Mapping):
        what = f"a meta template is a dict, not {type(meta).__name__}"
        raise TemplateError(what, "give a dict, a list of messages, or None for none")
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
    return cast("MetaDict", meta)


def compile_round(meta: MetaDict) -> Round:
    """Return the round and the reserved roles of a meta template compiled."""
    roles: dict[str, RoleSpec] = {}
    entries: list[RoleSpec | str] = []
    for index, item in enumerate(meta.get("round") or ()):
        place = f"meta_template.round[{index}]"
        entries.append(item if isinstance(item, str) else _compiled_role(item, index, place, roles))
    for index, item in enumerate(meta.get("reserved_roles") or ()):
        _compiled_role(item, None, f"meta_template.reserved_roles[{index}]", roles)
    return Round(tuple(entries), roles, any(isinstance(e, RoleSpec) and e.generate for e in entries))


def _compiled_role(item: object, index: int | None, place: str, roles: dict[str, RoleSpec]) -> RoleSpec:
    """Return a role dict compiled, and add it to ``roles``."""
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
        raise TemplateError(error.what, error.hint, code=error.code).located(template=place) from None
    generate = bool(item.get("generate", False))
    roles[name] = RoleSpec(name, begin, end, item.get("prompt"), generate, item.get("api_role"), index)
    return roles[name]


def compile_outer(value: object, place: str) -> Outer:
    """Return the begin or end of a meta template as strings, token ids and role dicts, in order."""
    out: list[str | int | MetaRoleDict] = []
    for item in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(item, Mapping):
            _compiled_role(item, None, place, {})
            out.append(cast("MetaRoleDict", item))
            continue
        try:
            out.extend(affix(item, place.rpartition(".")[2]))
        except PromptError as error:
            raise TemplateError(error.what, error.hint, code=error.code).located(template=place) from None
    return tuple(out)


def meta_messages(meta: Sequence[object]) -> tuple[Message, ...]:
    """Return a meta template that is a list of message dicts as messages."""
    messages = []
    for number, item in enumerate(meta):
        place = f"meta_template[{number}]"
        if not isinstance(item, Mapping) or "role" not in item or "content" not in item:
            hint = 'give {"role": "system", "content": "…"}, or a meta template with \'round\''
            raise TemplateError("an element is not a message", hint).located(template=place)
        if item["role"] not in ROLES:
            what = f"unknown role {shown(item['role'])} in a meta template of messages"
            raise TemplateError(what, nearest(item["role"], ROLES)).located(template=place)
        for key in item:
            if key not in ("role", "content", "name"):
                hint = nearest(key, ("role", "content", "name"))
                raise TemplateError(f"unknown key {shown(key)}", hint).located(template=place)
        try:
            messages.append(message_of(cast("MessageDict", item), number))
        except MMPromptError as error:
            raise TemplateError(error.what, error.hint, code=error.code).located(template=place) from None
    return tuple(messages)
