"""inspect_ai samples: ``input`` (a text, or messages with media), ``target``, ``choices``, ``id``."""

from __future__ import annotations

from collections.abc import Mapping

from mmprompt.datasets.layouts.layout import Layout, choice_list, with_columns
from mmprompt.datasets.sample import Sample, column_error
from mmprompt.messages import Message, Part, TextPart


def _read(sample: Sample) -> Sample:
    asked = sample.columns["input"]
    target = sample.columns.get("target")
    choices = choice_list(sample, "choices")
    new = {"answer": target, "choices": choices}
    if isinstance(asked, str):
        return with_columns(sample, {"question": asked, **new}, renamed=("input", "target"))
    if not isinstance(asked, list) or not asked:
        raise column_error("input", "'input' is neither text nor messages", "give one of them", "MM007")
    from mmprompt.targets.openai import from_openai  # noqa: PLC0415  # only chat rows need the targets

    messages = from_openai([{k: v for k, v in m.items() if k in _KEYS} if isinstance(m, Mapping) else m for m in asked])
    if choices:
        lines = [f"{chr(ord('A') + number)}. {choice}" for number, choice in enumerate(choices)]
        messages[-1] = _with_lines(messages[-1], lines)
    changed = with_columns(sample, new, renamed=("input", "target", "choices"))
    return changed._replace(messages=tuple(messages))


_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id")
"""The keys of a message that are sent; inspect's own (``id``, ``source``, …) are about its log."""


def _with_lines(message: Message, lines: list[str]) -> Message:
    parts: list[Part] = list(message.parts)
    last = parts[-1] if parts else None
    if isinstance(last, TextPart):
        parts[-1] = TextPart("\n".join([last.text, *lines]), last.extra)
    else:
        parts.append(TextPart("\n".join(lines)))
    return message._replace(parts=tuple(parts))


def _recognises(columns: Mapping[str, object]) -> bool:
    asked = columns.get("input")
    return "target" in columns and isinstance(asked, (str, list)) and "instruction" not in columns


LAYOUT = Layout("inspect", ("input", "target"), _recognises, _read)
