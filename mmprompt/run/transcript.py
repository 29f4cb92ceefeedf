"""A conversation as text for a person: media are shown by type, size and name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from mmprompt.media.sources import in_short
from mmprompt.messages import MediaPart, MediaRef, Message, Part, TextPart
from mmprompt.run.conversation import Exchange
from mmprompt.run.reply import Reply

_MOST = 4000
"""The most characters shown of one text."""


def transcript(exchanges: Iterable[Exchange]) -> str:
    """Return exchanges as lines ``role: content``; a turn shows only the messages that are new in it."""
    lines: list[str] = []
    before: list[Message] = []
    for messages, reply in exchanges:
        goes_on = bool(before) and list(messages[: len(before)]) == before
        for message in messages[len(before) :] if goes_on else messages:
            lines += _lines(message.role, [stub(part) for part in message.parts])
        lines += _lines("reply", ["(none)" if reply is None else _said(reply)])
        before = [*messages, Message("assistant", reply or "")]
    return "\n".join(lines)


def stub(part: Part) -> str:
    """Return a part as text; a medium as ``[image/jpeg, 12,345 bytes, cat.jpg]``."""
    if isinstance(part, TextPart):
        return _printable(part.text)
    if isinstance(part, MediaRef):
        return f"[{part.modality}, {in_short(part.name or part.source)}]"
    size = len(part.data) + sum(map(len, part.frames))
    frames = f", {len(part.frames)} frames" if part.frames else ""
    return f"[{part.media_type}, {size:,} bytes{frames}{_name(part)}]"


def _said(reply: Reply) -> str:
    """Return a reply; if it is empty or cut off, with the reason."""
    why = f"finish_reason {reply.finish_reason}" if reply.finish_reason else "no finish_reason"
    beside = ", ".join([key for key, value in reply.message.items() if value and key not in ("role", "content")])
    if not reply:
        return _printable(f"(empty: {why}{'; it holds ' if beside else ''}{beside})")
    return _printable(reply) + (f" ({why})" if reply.finish_reason == "length" else "")


def _name(part: MediaPart) -> str:
    """Return the name of the file that a medium came from, after a comma; empty for other sources."""
    name = os.path.basename(part.origin)
    return f", {_printable(name)}" if name and os.path.splitext(name)[1] and " bytes" not in name else ""


def _lines(role: str, contents: Sequence[str]) -> list[str]:
    """Return the lines of one message: the role in the first line, the others indented."""
    head = f"{_printable(role)}: "
    lines = [line for content in contents or [""] for line in content.split("\n")]
    return [(" " * len(head) if number else head) + line for number, line in enumerate(lines)]


def _printable(text: str) -> str:
    """Return text with control characters escaped, so that a terminal only prints it."""
    cut = text if len(text) <= _MOST else f"{text[:_MOST]}… ({len(text):,} characters)"
    return "".join([c if c.isprintable() or c in "\n\u3000" else c.encode("unicode_escape").decode() for c in cut])
