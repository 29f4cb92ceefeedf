"""Forms of evaluation and load-test tools. mmprompt writes them and does not read them."""

from __future__ import annotations

import re
from typing import Any

from mmprompt.datasets.writers.chats import wire_messages
from mmprompt.datasets.writers.record import Record, not_held, only_user_message
from mmprompt.datasets.writers.stored_media import MediaStore
from mmprompt.errors import RowError

Row = dict[str, object]

_PLACEHOLDER = re.compile(r"<(?:image|video|audio)[_ ]\d+>")
_SOUND = re.compile(r"data:audio/(?:wav|mp3|mpeg);|(?!data:|https?:).*\.(?:wav|mp3)$", re.IGNORECASE | re.DOTALL)


def promptfoo(record: Record, store: MediaStore) -> Row:
    """Return a test of promptfoo: its messages as the variable ``messages``, and an assertion on the answer."""
    test: Row = {} if record.id is None else {"description": str(record.id)}
    test["vars"] = {"messages": wire_messages(record, store)}
    answers = record.answer if isinstance(record.answer, list) else [record.answer]
    if record.answer is not None and answers:
        checks = [{"type": "equals", "value": answer} for answer in answers]
        test["assert"] = (
            checks if len(checks) == 1 else [{"type": "assert-set", "threshold": 1 / len(checks), "assert": checks}]
        )
    if record.others:
        test["metadata"] = dict(record.others)
    return test


def openai_evals(record: Record, store: MediaStore) -> Row:
    """Return a sample of OpenAI's evals: ``input`` and ``ideal``.

    Raises:
        RowError: the row has no answer.
    """
    if record.answer is None:
        raise RowError("openai-evals needs an answer for each row", "name it: --map COLUMN=answer", code="MM701")
    return _with(record, {"input": wire_messages(record, store), "ideal": record.answer})


def general_vqa(record: Record, store: MediaStore) -> Row:
    """Return a row of evalscope's ``general_vqa``: ``messages`` and ``answer``.

    A text such as ``<image 1>`` would be its placeholder, unless the text is a part.

    Raises:
        RowError: the row holds a sound that is neither WAV nor MP3, or goes by a URL.
    """
    messages = wire_messages(record, store)
    for message in messages:
        content = message["content"]
        if isinstance(content, str) and _PLACEHOLDER.search(content):
            message["content"] = [{"type": "text", "text": content}]
        elif isinstance(content, list):
            message["content"] = [_sound(part) if "audio" in part["type"] else part for part in content]
    own: Row = {"messages": messages}
    return _with(record, own if record.answer is None else {**own, "answer": record.answer})


def _sound(part: dict[str, Any]) -> Row:
    """Return a sound as evalscope reads it: ``input_audio`` whose data are a data URI or a path."""
    inner = part[part["type"]]
    source = inner.get("url") or f"data:audio/{inner['format']};base64,{inner['data']}"
    found = _SOUND.match(source)
    if found is None:
        what = "general-vqa holds sounds as WAV or MP3, embedded or by path"
        raise RowError(what, "convert the sound, or leave the row out", code="MM800")
    kind = "wav" if "wav" in found[0].lower() else "mp3"
    return {"type": "input_audio", "input_audio": {"data": source, "format": kind}}


def vllm_bench(record: Record, store: MediaStore) -> Row:
    """Return a line of ``vllm bench serve``'s custom image dataset: ``content``, the parts in order."""
    message = only_user_message(record, "vllm-bench")
    content = wire_messages(record._replace(messages=(message,)), store)[0]["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return _with(record, {"content": parts})


def evalscope_perf(record: Record, store: MediaStore) -> Row:
    """Return the messages of a line; a load test has no place for ids, answers and other columns.

    Raises:
        RowError: the row has other columns.
    """
    if record.others:
        named = ", ".join(map(repr, record.others))
        raise not_held(f"evalscope-perf holds messages only, and the row has {named}", "vllm-bench")
    return {"messages": wire_messages(record, store)}


def _with(record: Record, own: Row) -> Row:
    made: Row = {} if record.id is None else {"id": record.id}
    return made | own | {name: value for name, value in record.others.items() if name not in own}
