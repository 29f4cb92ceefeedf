"""How the items of a prompt fall into turns under a meta template.

The walk gives steps: a role is rendered (with the dataset's item, or by its default alone), a loose text stands, or
the model starts to generate and nothing follows. Both outputs of a meta template are made from these steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Union

from mmprompt.errors import PromptError, nearest, shown
from mmprompt.templates.prompt_list import BY_HAND, Section, section_of

Affix = tuple[Union[str, int], ...]
"""A ``begin`` or ``end``: strings and token ids"""


class RoleSpec(NamedTuple):
    """What a meta template says about a role. ``place`` is where it stands in the round, None for a reserved role."""

    role: str
    begin: Affix = ()
    end: Affix = ()
    prompt: str | None = None
    generate: bool = False
    api_role: str | None = None
    place: int | None = None


class Step(NamedTuple):
    """One step of the walk.

    ``kind`` is ``"role"``, ``"text"`` or ``"generate"``; ``item`` is the dataset's role dict or text, None where the
    role is there by default only; ``spec`` has the dataset's values merged in.
    """

    kind: str
    spec: RoleSpec | None
    item: Any


class Round(NamedTuple):
    """The meta round: its entries in order (strings are put in place each turn) and all roles by name."""

    entries: tuple[RoleSpec | str, ...]
    roles: Mapping[str, RoleSpec]

    @property
    def generates(self) -> bool:
        """Whether a role of the round generates."""
        return any(isinstance(e, RoleSpec) and e.generate for e in self.entries)

    def spec_of(self, item: Mapping[str, Any]) -> RoleSpec:
        """Return the role of an item, its fallback role if the role is unknown.

        Raises:
            PromptError: neither is known; the message lists the known.
        """
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
            )
        return spec

    def falls_back(self, item: Mapping[str, Any]) -> bool:
        """Tell whether the item is rendered as its fallback role."""
        return item.get("role") not in self.roles


def affix(value: object, place: str) -> Affix:
    """Return a ``begin`` or ``end`` as its strings and token ids.

    Raises:
        PromptError: it is neither text, a token id, nor a list of these.
    """
    if value is None or value == "":
        return ()
    items = value if isinstance(value, (list, tuple)) else [value]
    for item in items:
        if not isinstance(item, (str, int)) or isinstance(item, bool):
            raise PromptError(f"{place} holds {type(item).__name__}", "give text, or a list of text and token ids")
    return tuple(items)


def merged(spec: RoleSpec, item: Mapping[str, Any]) -> RoleSpec:
    """Return ``spec`` with the values of the dataset's item, which win."""
    changes: dict[str, Any] = {}
    for key in ("begin", "end"):
        if key in item:
            changes[key] = affix(item[key], f"{key} of role {spec.role}")
    if "generate" in item:
        changes["generate"] = bool(item["generate"])
    if item.get("api_role") is not None:
        changes["api_role"] = item["api_role"]
    return spec._replace(**changes) if changes else spec


def walk(prompt: Sequence[Any], meta: Round, mode: str) -> Iterator[Step]:
    """Give the steps of a whole prompt; a ``"generate"`` step is the last one.

    Raises:
        PromptError: an item that is neither text nor a role dict, or an unknown role.
    """
    groups = _groups(prompt)
    last_round = max((i for i, (kind, _) in enumerate(groups) if kind == "round"), default=-1)
    generating = mode == "gen" and _will_generate(groups, last_round, meta)
    for number, (kind, items) in enumerate(groups):
        if kind in {"round", "ice"}:
            for step in _walk_round(items, meta, stop=generating and number == last_round):
                yield step
                if step.kind == "generate":
                    return
        else:
            yield from (_alone(item, meta) for item in items)


def _groups(prompt: Sequence[Any]) -> list[tuple[str, list[Any]]]:
    """Return the prompt cut into runs of items of one section; an item put in by hand continues the round beside it."""
    groups: list[tuple[str, list[Any]]] = []
    before: Section | None = None
    for item in prompt:
        section = section_of(item)
        by_hand = BY_HAND in (section, before) and before is not None and before.kind == section.kind
        if section is not before and not by_hand:
            groups.append((section.kind, []))
        before = section
        groups[-1][1].append(item)
    return groups


def _will_generate(groups: Sequence[tuple[str, list[Any]]], last_round: int, meta: Round) -> bool:
    if last_round < 0:
        return False
    own = any(isinstance(i, Mapping) and i.get("generate") for i in groups[last_round][1])
    return own or meta.generates


def _alone(item: Any, meta: Round) -> Step:
    if isinstance(item, str):
        return Step("text", None, item)
    return Step("role", merged(meta.spec_of(item), item), item)


def _walk_round(items: Sequence[Any], meta: Round, *, stop: bool) -> Iterator[Step]:
    """Give the steps of one round; with ``stop`` its last turn ends where a role generates."""
    if not meta.entries:
        yield from _walk_in_order(items, meta, stop=stop)
        return
    indices = _turn_indices(items, meta)
    starts = _turn_starts(indices)
    next_starts = _next_starts(indices, starts)
    last_start = max((i for i, start in enumerate(starts) if start), default=-1)
    position: int | None = None
    called: RoleSpec | None = None
    for number, item in enumerate(items):
        index = indices[number]
        if position is not None and next_starts[number]:
            yield from _defaults(position, len(meta.entries), meta, stop=False)
            position, called = None, None
        if index is None:
            yield _alone(item, meta)
            continue
        in_last = stop and number >= last_start
        for step in _defaults(position or 0, index, meta, stop=in_last):
            yield step
            if step.kind == "generate":
                return
        spec = merged(meta.entries[index], item)  # type: ignore[arg-type]  # an index is that of a role
        if in_last and spec.generate and not item.get("tool_calls"):
            yield Step("generate", spec, item)
            return
        called = spec if spec.generate else None  # it has called a tool: it speaks again after the results
        yield Step("role", spec, item)
        position = index + 1
    if position is None:
        return
    if stop and called is not None:
        yield Step("generate", called, None)
        return
    yield from _defaults(position, len(meta.entries), meta, stop=stop)


def _walk_in_order(items: Sequence[Any], meta: Round, *, stop: bool) -> Iterator[Step]:
    speakers = [n for n, i in enumerate(items) if isinstance(i, Mapping) and i.get("generate")]
    for number, item in enumerate(items):
        step = _alone(item, meta)
        if stop and speakers and number == speakers[-1]:
            yield step._replace(kind="generate")
            return
        yield step


def _turn_indices(items: Sequence[Any], meta: Round) -> list[int | None]:
    """Return for each item its place in the meta round; None where it is rendered alone.

    An item that falls back counts as its fallback role, unless it would begin a turn and a role that itself begins a
    turn comes next: then it stands before that turn.
    """
    indices = [None if isinstance(item, str) else meta.spec_of(item).place for item in items]
    following: list[int | None] = [None] * len(items)
    for number in range(len(items) - 2, -1, -1):
        after = indices[number + 1]
        following[number] = following[number + 1] if after is None else after
    previous = len(meta.entries)
    for number, item in enumerate(items):
        index, after = indices[number], following[number]
        if index is None:
            continue
        if meta.falls_back(item) and index <= previous and after is not None and after <= index:
            indices[number] = None
            continue
        previous = index
    return indices


def _turn_starts(indices: Sequence[int | None]) -> list[bool]:
    starts = []
    previous = -1
    for index in indices:
        starts.append(index is not None and (index <= previous or previous < 0))
        previous = previous if index is None else index
    return starts


def _next_starts(indices: Sequence[int | None], starts: Sequence[bool]) -> list[bool]:
    """Tell for each item whether it, or the first item of the round after it, begins a turn."""
    out = [False] * len(indices)
    upcoming = False
    for number in range(len(indices) - 1, -1, -1):
        if indices[number] is not None:
            upcoming = starts[number]
        out[number] = upcoming
    return out


def _defaults(begin: int, end: int, meta: Round, *, stop: bool) -> Iterator[Step]:
    """Give the entries of the meta round that the dataset left out."""
    for entry in meta.entries[begin:end]:
        if isinstance(entry, str):
            yield Step("text", None, entry)
        elif stop and entry.generate:
            yield Step("generate", entry, None)
            return
        else:
            yield Step("role", entry, None)
