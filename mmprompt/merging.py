"""Drafts of messages to messages: loose texts find their message, neighbours of one role become one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mmprompt.parts import ROLES, Message, Part, TextPart


class Draft(NamedTuple):
    """A message in the making; ``role`` is empty for loose text. ``seek``: it joins the first message of its role."""

    role: str
    parts: list[Part]
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
    out: list[Draft] = []
    for draft in _with_loose_joined(_sought(drafts)):
        named = draft._replace(role=ROLES.get(draft.role, draft.role))
        if out and out[-1].takes(named):
            out[-1] = named._replace(parts=joined(out[-1].parts, named.parts))
        else:
            out.append(named)
    return [Message(d.role, d.parts, d.name, d.tool_calls, d.tool_call_id) for d in out]


def joined(before: Sequence[Part], after: Sequence[Part]) -> list[Part]:
    """Return the parts of two messages as one: a line break joins two texts at the seam."""
    last = before[-1] if before else None
    first = after[0] if after else None
    if isinstance(last, TextPart) and isinstance(first, TextPart) and last.extra == first.extra:
        return [*before[:-1], TextPart(f"{last.text}\n{first.text}", last.extra), *after[1:]]
    return [*before, *after]


def _sought(drafts: Sequence[Draft]) -> list[Draft]:
    """Put each seeking draft before the first other draft of its role, where there is one."""
    out = [d for d in drafts if not d.seek]
    for draft in reversed([d for d in drafts if d.seek]):
        at = next((i for i, d in enumerate(out) if d.role == draft.role), 0)
        out.insert(at, draft._replace(seek=False))
    return out


def _with_loose_joined(drafts: Sequence[Draft]) -> list[Draft]:
    out: list[Draft] = []
    held: list[Part] = []
    for draft in drafts:
        if not draft.role:
            held = joined(held, draft.parts)
        elif held and draft.tool_call_id is None:
            out.append(draft._replace(parts=joined(held, draft.parts)))
            held = []
        else:
            out.append(draft)
    if held and out:
        out[-1] = out[-1]._replace(parts=joined(out[-1].parts, held))
    elif held:
        out.append(Draft("HUMAN", held))
    return out
