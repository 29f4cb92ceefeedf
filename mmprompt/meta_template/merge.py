"""Messages put together: loose texts join their message, neighbours of one role become one message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mmprompt.messages import ROLES, Message, Part, TextPart, joined_text

_new = tuple.__new__  # half the time of the class, and this runs for every message


class MessageDraft(NamedTuple):
    """A message in the making. Loose text has no ``role``. With ``seek`` it goes before the first of its role."""

    role: str
    parts: Sequence[Part]
    name: str | None = None
    tool_calls: tuple[object, ...] = ()
    tool_call_id: str | None = None
    seek: bool = False

    def takes(self, following: MessageDraft) -> bool:
        """Return True if ``following`` can continue this message.

        A tool call ends a message, and the result of a tool is a separate message.
        """
        if self.tool_calls or self.tool_call_id is not None or following.tool_call_id is not None:
            return False
        same_role = ROLES.get(self.role, self.role) == ROLES.get(following.role, following.role)
        return same_role and self.name == following.name


def merge(drafts: Sequence[MessageDraft]) -> list[Message]:
    """Return the messages of ``drafts``.

    Loose text joins the message after it, or the one before it if none follows. Neighbours of one role merge, with a
    line break between two texts that touch.
    """
    groups: list[list[MessageDraft]] = []
    loose: list[MessageDraft] = []
    for draft in _sought(drafts):
        if not draft.role:
            loose.append(draft)
            continue
        held, loose = ([], loose) if draft.tool_call_id is not None else (loose, [])
        if groups and groups[-1][-1].takes(draft):
            groups[-1] += [*held, draft]
        else:
            groups.append([*held, draft])
    if loose and groups:
        last = groups[-1].pop()
        groups[-1].append(last._replace(parts=joined([last, *loose])))
    elif loose:
        groups.append([*loose, MessageDraft("user", [])])
    return [_message(group) for group in groups]


def _message(group: Sequence[MessageDraft]) -> Message:
    """Return neighbours as one message, with the role, name and tool calls of the last."""
    last = group[-1]
    parts = tuple([p for p in (last.parts if len(group) == 1 else joined(group)) if type(p) is not TextPart or p.text])
    return _new(Message, (ROLES.get(last.role, last.role), parts, last.name, last.tool_calls, last.tool_call_id))


def joined(drafts: Iterable[MessageDraft]) -> list[Part]:
    """Return the parts of neighbours as one list; a line break joins two texts that touch."""
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
            out[-1] = TextPart(joined_text(texts, "\n"), out[-1].extra)
        out.extend(parts)
        texts = [out[-1].text] if isinstance(out[-1], TextPart) else []
    if texts:
        out[-1] = TextPart(joined_text(texts, "\n"), out[-1].extra)
    return out


def _sought(drafts: Sequence[MessageDraft]) -> Sequence[MessageDraft]:
    """Return the drafts, each one with ``seek`` moved before the first other of its role and the loose text there."""
    seeking = [d for d in drafts if d.seek]
    if not seeking:
        return drafts
    out = [d for d in drafts if not d.seek]
    for draft in reversed(seeking):
        at = next((i for i, d in enumerate(out) if d.role == draft.role), 0)
        while at and not out[at - 1].role:
            at -= 1
        out.insert(at, draft._replace(seek=False))
    return out


def merge_meta(meta: Sequence[Message], prompt: Sequence[Message]) -> list[Message]:
    """Return the messages of a prompt with those of a meta template put in.

    A message of the meta template goes to the next message of its role: the contents are joined, the meta template's
    first. Where the rest of the prompt has no such message, it becomes a separate message at that position.
    """
    out: list[Message] = []
    at = 0
    for own in meta:
        while at < len(prompt) and prompt[at].role != own.role:
            if all(message.role != own.role for message in prompt[at:]):
                break
            out.append(prompt[at])
            at += 1
        if at < len(prompt) and prompt[at].role == own.role:
            out.append(_put_before(own, prompt[at]))
            at += 1
        else:
            out.append(own)
    return [*out, *prompt[at:]]


def _put_before(own: Message, message: Message) -> Message:
    """Return ``message`` with the content of ``own`` before its own; two texts that touch become one."""
    before, after = list(own.parts), list(message.parts)
    last, first = before[-1] if before else None, after[0] if after else None
    if isinstance(last, TextPart) and isinstance(first, TextPart) and last.extra == first.extra:
        before[-1:], after[0] = [], TextPart(last.text + first.text, first.extra)
    return message._replace(parts=(*before, *after), name=message.name or own.name)
