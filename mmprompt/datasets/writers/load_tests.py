"""Forms of evaluation and load-test tools. mmprompt writes them and does not read them."""

from __future__ import annotations

from mmprompt.datasets.writers.chats import wire_messages
from mmprompt.datasets.writers.record import Record, only_user_message
from mmprompt.datasets.writers.stored_media import MediaStore
from mmprompt.errors import RowError

Row = dict[str, object]


def promptfoo(record: Record, store: MediaStore) -> Row:
    """Return a test of promptfoo: its messages as the variable ``messages``, and an assertion on the answer."""
    test: Row = {} if record.id is None else {"description": str(record.id)}
    test["vars"] = {"messages": wire_messages(record, store)}
    if record.answer is not None:
        answers = record.answer if isinstance(record.answer, list) else [record.answer]
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
    """Return a row of evalscope's ``general_vqa``: ``messages`` and ``answer``."""
    own: Row = {"messages": wire_messages(record, store)}
    return _with(record, own if record.answer is None else {**own, "answer": record.answer})


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
        raise RowError(
            f"evalscope-perf holds messages only, and the row has {named}", "write --to vllm-bench", code="MM800"
        )
    return {"messages": wire_messages(record, store)}


def _with(record: Record, own: Row) -> Row:
    made: Row = {} if record.id is None else {"id": record.id}
    return made | own | {name: value for name, value in record.others.items() if name not in own}
