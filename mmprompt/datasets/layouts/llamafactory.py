"""LLaMA-Factory: ``messages`` with marks, and the lists ``images``, ``videos`` and ``audios``.

Its Alpaca form has ``instruction``, ``input``, ``output``, ``system`` and ``history`` in place of ``messages``.
"""

from __future__ import annotations

from collections.abc import Mapping

from mmprompt.datasets.layouts.conversations import dialogue, media_of, turns_of
from mmprompt.datasets.layouts.layout import Layout, text_of
from mmprompt.datasets.sample import Sample
from mmprompt.errors import RowError

_LISTS = ("images", "videos", "audios")


def _read(sample: Sample) -> Sample:
    if "messages" in sample.columns:
        turns = turns_of(sample, "messages", "role", "content")
        system = sample.columns.get("system")
        if isinstance(system, str) and system and turns[0][0] != "system":
            turns.insert(0, ("system", system))
    elif "instruction" in sample.columns:
        turns = _alpaca_turns(sample)
    else:
        raise RowError("no column 'messages', which llamafactory has", "give 'messages'", code="MM006").located(
            column="messages"
        )
    return dialogue(sample, turns, media_of(sample))


def _alpaca_turns(sample: Sample) -> list[tuple[str, str]]:
    columns = sample.columns
    turns = [("system", columns["system"])] if isinstance(columns.get("system"), str) and columns["system"] else []
    history = columns.get("history") or ()
    for pair in history if isinstance(history, (list, tuple)) else ():
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise RowError("an element of the history is not a pair", "give [question, answer]", code="MM007").located(
                column="history"
            )
        turns += [("user", str(pair[0])), ("assistant", str(pair[1]))]
    asked = text_of(sample, "instruction")
    more = columns.get("input")
    turns.append(("user", f"{asked}\n{more}" if isinstance(more, str) and more else asked))
    if columns.get("output") is not None:
        turns.append(("assistant", text_of(sample, "output")))
    return [(role, str(text)) for role, text in turns]


def _recognises(columns: Mapping[str, object]) -> bool:
    if "instruction" in columns and "output" in columns:
        return "messages" not in columns
    messages = columns.get("messages")
    if not isinstance(messages, list) or columns.keys().isdisjoint(_LISTS):
        return False
    return all(isinstance(m, Mapping) and isinstance(m.get("content"), str) for m in messages)


LAYOUT = Layout("llamafactory", (), _recognises, _read)
