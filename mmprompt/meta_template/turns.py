"""The roles of a meta template, and the steps in which the items of a prompt fall into turns under it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict, Union

from mmprompt.errors import PromptError, nearest, shown
from mmprompt.messages import text_of
from mmprompt.templates.prompt_list import BY_HAND, PromptItem, RoleDict, Section

_OVERRIDES = frozenset({"begin", "end", "generate", "api_role"})

Affix = tuple[Union[str, int], ...]
"""A ``begin`` or ``end``: strings and token ids"""


class MetaRoleDict(TypedDict, total=False):
    """A role dict of a meta template."""

    role: str
    begin: str | int | Sequence[str | int]
    end: str | int | Sequence[str | int]
    prompt: str
    generate: bool
    api_role: str


Outer = tuple[Union[str, int, MetaRoleDict], ...]
"""The begin or end of a whole meta template: strings, token ids and role dicts"""


class RoleSpec(NamedTuple):
    """What a meta template says about a role. ``place`` is its position in the round, None for a reserved role."""

    role: str
    begin: Affix = ()
    end: Affix = ()
    prompt: str | None = None
    generate: bool = False
    api_role: str | None = None
    place: int | None = None

    def with_values_of(self, item: RoleDict) -> RoleSpec:
        """Return this role with the values that an item of the dataset gives, which win."""
        if _OVERRIDES.isdisjoint(item):
            return self
        changes: dict[str, Any] = {}
        if "begin" in item:
            changes["begin"] = affix(item["begin"], f"begin of role {self.role}")
        if "end" in item:
            changes["end"] = affix(item["end"], f"end of role {self.role}")
        if "generate" in item:
            changes["generate"] = bool(item["generate"])
        if item.get("api_role") is not None:
            changes["api_role"] = item["api_role"]
        return self._replace(**changes)


class Round(NamedTuple):
    """The round of a meta template.

    ``entries`` are its roles and strings in order; the strings go into each turn. ``roles`` are all roles by name, the
    reserved ones too. ``generates``: a role of the round generates.
    """

    entries: tuple[RoleSpec | str, ...]
    roles: Mapping[str, RoleSpec]
    generates: bool

    def spec_of(self, item: RoleDict) -> RoleSpec:
        """Return the role of an item, or its fallback role if the role is unknown."""
        role, fallback = item.get("role"), item.get("fallback_role")
        spec = self.roles.get(role) if isinstance(role, str) else None
        if spec is None and isinstance(fallback, str):
            spec = self.roles.get(fallback)
        if spec is None:
            if not self.entries and isinstance(role, str):
                return RoleSpec(role)
            known = ", ".join(self.roles)
            raise PromptError(
                f"unknown role {shown(role)} and no known fallback_role",
                f"{nearest(role, self.roles)} (the meta template has {known})",
                code="MM607",
            )
        return spec

    def outer_spec(self, outer: MetaRoleDict) -> RoleSpec:
        """Return the role of a role dict in the begin or end of the meta template."""
        known = self.roles.get(outer["role"]) or RoleSpec(outer["role"])
        begin = affix(outer["begin"], "begin") if "begin" in outer else known.begin
        end = affix(outer["end"], "end") if "end" in outer else known.end
        return known._replace(begin=begin, end=end, api_role=outer.get("api_role", known.api_role))


def affix(value: object, place: str) -> Affix:
    """Return a ``begin`` or ``end`` as its strings and token ids."""
    if value is None or value == "":
        return ()
    items = value if isinstance(value, (list, tuple)) else [value]
    for item in items:
        if not isinstance(item, (str, int)) or isinstance(item, bool):
            raise PromptError(f"{place} holds {type(item).__name__}", "give text, or a list of text and token ids")
    return tuple(items)


class Step(NamedTuple):
    """One step of the walk: a role, or a loose ``text`` if ``spec`` is None.

    ``item`` is the role dict of the dataset, None for a role that it left out. ``spec`` has the item's values.
    ``generates``: the model starts to speak here, and nothing follows.
    """

    spec: RoleSpec | None
    item: RoleDict | None = None
    text: str = ""
    generates: bool = False


def walk(prompt: Iterable[PromptItem], meta: Round, mode: str) -> list[Step]:
    """Return the steps of a whole prompt; if the model generates, that is the last step."""
    groups = _groups(prompt)
    last_round = max([number for number, (kind, _) in enumerate(groups) if kind == "round"], default=-1)
    generating = mode == "gen" and last_round >= 0 and (meta.generates or _generates(groups[last_round][1]))
    steps: list[Step] = []
    for number, (kind, items) in enumerate(groups):
        if kind not in ("round", "ice"):
            steps += [_alone(item, meta) for item in items]
            continue
        stop = generating and number == last_round
        add = _add_round if meta.entries else _add_in_order
        add(items, meta, stop, steps)
        if stop and steps[-1].generates:
            break
    return steps


def _groups(prompt: Iterable[PromptItem]) -> list[tuple[str, list[PromptItem]]]:
    """Return the prompt cut into runs of items of one section; an item put in by hand continues the round beside it."""
    groups: list[tuple[str, list[PromptItem]]] = []
    before: Section | None = None
    for item in prompt:
        section = getattr(item, "section", BY_HAND)
        if section is not before:
            by_hand = before is not None and BY_HAND in (section, before) and before.kind == section.kind
            if not by_hand:
                groups.append((section.kind, []))
            before = section
        groups[-1][1].append(item)
    return groups


def _generates(items: Iterable[PromptItem]) -> bool:
    return any(not isinstance(item, str) and item.get("generate") for item in items)


def _calls(item: PromptItem) -> bool:
    """Return True for an item that calls a tool: the model is not asked for it."""
    return not isinstance(item, str) and bool(item.get("tool_calls"))


def _alone(item: PromptItem, meta: Round) -> Step:
    """Return the step of an item that is not part of a turn."""
    if isinstance(item, str):
        return Step(None, text=item)
    return Step(meta.spec_of(item).with_values_of(item), item)


def _add_in_order(items: Sequence[PromptItem], meta: Round, stop: bool, steps: list[Step]) -> None:
    """Add the items of one round under a meta template without a round: in order, each by itself."""
    own = [_alone(item, meta) for item in items]
    last = max([n for n, item in enumerate(items) if stop and _generates([item])], default=None)
    if last is None:
        steps += own
    elif _calls(items[last]):
        steps += [*own, own[last]._replace(item=None, generates=True)]
    else:
        steps += [*own[:last], own[last]._replace(generates=True)]


def _add_round(items: Sequence[PromptItem], meta: Round, stop: bool, steps: list[Step]) -> None:
    """Add the items of one round, with the roles that they leave out; with ``stop`` it ends where a role generates."""
    specs = [None if isinstance(item, str) else meta.spec_of(item) for item in items]
    indices = _turn_indices(items, specs, meta)
    calls = [not isinstance(item, str) and bool(item.get("tool_calls")) for item in items]  # _calls, inline
    starts = _turn_starts(indices, calls)
    next_starts = _next_starts(indices, starts)
    last_start = len(starts) - 1 - starts[::-1].index(True) if True in starts else -1
    position: int | None = None
    called: RoleSpec | None = None
    for number, item in enumerate(items):
        index = indices[number]
        if position is not None and next_starts[number]:
            _add_defaults(meta.entries[position:], False, steps)
            position, called = None, None
        spec = specs[number]
        if spec is None or isinstance(item, str):
            steps.append(Step(None, text=text_of(item)))
            continue
        own = spec.with_values_of(item)
        if index is None:
            steps.append(Step(own, item))
            continue
        in_last = stop and number >= last_start
        left_out = meta.entries[position or 0 : index]
        if left_out and _add_defaults(left_out, in_last, steps):
            return
        if own.generate:
            if in_last and not calls[number]:
                steps.append(Step(own, item, generates=True))
                return
            called = own if calls[number] else None  # it speaks again after the results of the tools
        steps.append(Step(own, item))
        position = index + 1
    if stop and called is not None:
        steps.append(Step(called, None, generates=True))
    elif position is not None:
        _add_defaults(meta.entries[position:], stop, steps)


def _turn_indices(items: Sequence[PromptItem], specs: Sequence[RoleSpec | None], meta: Round) -> list[int | None]:
    """Return for each item its position in the meta round; None where it is rendered alone.

    An item that falls back counts as its fallback role. But where it would begin a turn and the next item with a
    position begins one too, it is rendered alone, before that turn.
    """
    indices = [None if spec is None else spec.place for spec in specs]
    following: list[int | None] = [None] * len(indices)
    for number in range(len(indices) - 2, -1, -1):
        after = indices[number + 1]
        following[number] = following[number + 1] if after is None else after
    previous = len(meta.entries)
    for number, index in enumerate(indices):
        if index is None:
            continue
        after = following[number]
        if index <= previous and after is not None and after <= index:
            item = items[number]
            if not isinstance(item, str) and item.get("role") not in meta.roles:
                indices[number] = None
                continue
        previous = index
    return indices


def _turn_starts(indices: Sequence[int | None], calls: Sequence[bool]) -> list[bool]:
    """Return for each item whether it begins a turn: its role does not come later in the round than the one before.

    A role that has called a tool and speaks again continues its turn.
    """
    starts = []
    previous, called = -1, -1
    if True not in calls:
        for index in indices:
            starts.append(index is not None and (index <= previous or previous < 0))
            previous = previous if index is None else index
        return starts
    for index, calling in zip(indices, calls, strict=True):
        starts.append(index is not None and index != called and (index <= previous or previous < 0))
        if index is not None:
            if calling or starts[-1] or index == called:
                called = index if calling else -1
            previous = index
    return starts


def _next_starts(indices: Sequence[int | None], starts: Sequence[bool]) -> list[bool]:
    """Return for each item whether it, or the first item with a position after it, begins a turn."""
    out = [False] * len(indices)
    upcoming = False
    for number in range(len(indices) - 1, -1, -1):
        if indices[number] is not None:
            upcoming = starts[number]
        out[number] = upcoming
    return out


def _add_defaults(entries: Iterable[RoleSpec | str], stop: bool, steps: list[Step]) -> bool:
    """Add the entries of the meta round that the dataset left out; return True if a role among them generates."""
    for entry in entries:
        if isinstance(entry, str):
            steps.append(Step(None, text=entry))
        elif stop and entry.generate:
            steps.append(Step(entry, None, generates=True))
            return True
        else:
            steps.append(Step(entry))
    return False
