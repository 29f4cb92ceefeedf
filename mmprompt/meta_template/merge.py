"""Drafts of messages to messages: loose texts find their message, neighbours of one role become one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mmprompt.messages import ROLES, Message, Part, TextPart


class Draft(NamedTuple):
    """A message in the making; ``role`` is empty for loose text. ``seek``: it goes before the first of its role."""

    role: str
    parts: Sequence[Part]
    name: str | None = None
    tool_calls: tuple[object, ...] = ()
    tool_call_id: str | None = None
    seek: bool = False

    @classmethod
    def loose(cls, text: str) -> Draft:
        """Make a draft of text without a role."""
        return cls("", [TextPart(text)] if text else [])

    def takes(self, following: Draft) -> bool:
        """Whether ``following`` can continue this message; a tool call ends it, and a tool's result stands alone."""
        same = self.role == following.role and self.name == following.name
        return same and not self.tool_calls and self.tool_call_id is None and following.tool_call_id is None


def merge(drafts: Sequence[Draft]) -> list[Message]:
    """Return the messages of ``drafts``.

    A loose text joins the message after it, or the one before if none follows. Neighbours of one role merge, with a
    line break between two texts at the seam.
    """
    groups: list[list[Draft]] = []
    loose: list[Draft] = []
    for draft in _sought(drafts):
        if not draft.role:
            loose.append(draft)
            continue
        named = draft._replace(role=ROLES.get(draft.role, draft.role))
        held, loose = ([], loose) if named.tool_call_id is not None else (loose, [])
        if groups and groups[-1][-1].takes(named):
            groups[-1] += [*held, named]
        else:
            groups.append([*held, named])
    if loose and groups:
        groups[-1] = _followed(groups[-1], loose)
    elif loose:
        groups.append([*loose, Draft("user", [])])
    return [_message(group) for group in groups]


def _followed(group: Sequence[Draft], loose: Sequence[Draft]) -> list[Draft]:
    """Put loose text behind the last message, which keeps what it is besides text."""
    *before, last = group
    return [*before, last._replace(parts=joined([last, *loose]))]


def _message(group: Sequence[Draft]) -> Message:
    last = group[-1]
    return Message(last.role, joined(group), last.name, last.tool_calls, last.tool_call_id)


def joined(drafts: Iterable[Draft]) -> list[Part]:
    """Return the parts of neighbours as one; a line break joins two texts at a seam."""
    out: list[Part] = []
    texts: list[str] = []  # of the last part, joined once: a thousand neighbours are joined in linear time
    for draft in drafts:
        parts = draft.parts
        first = parts[0] if parts else None
        if out and texts and isinstance(first, TextPart) and first.extra == out[-1].extra:
            texts.append(first.text)
            parts = parts[1:]
        if not parts:
            continue
        if texts:
            out[-1] = TextPart("\n".join(texts), out[-1].extra)
        out.extend(parts)
        texts = [out[-1].text] if isinstance(out[-1], TextPart) else []
    if texts:
        out[-1] = TextPart("\n".join(texts), out[-1].extra)
    return out


def _sought(drafts: Sequence[Draft]) -> list[Draft]:
    """Put each seeking draft before the first other draft of its role, and before the loose text that joins it."""
    out = [d for d in drafts if not d.seek]
    for draft in reversed([d for d in drafts if d.seek]):
        at = next((i for i, d in enumerate(out) if d.role == draft.role), 0)
        while at and not out[at - 1].role:
            at -= 1
        out.insert(at, draft._replace(seek=False))
    return out
