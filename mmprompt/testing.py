"""For the tests of those who write datasets, tasks and prompts: messages by hand, and what would be sent.

    from mmprompt.testing import assert_sends, system, user

    def test_the_first_question():
        assert_sends("vqa.jsonl", {"q-1": [user("What is this?", image="cat.jpg")]})

Nothing is asked of any server. Media are compared by their bytes, as SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from mmprompt.errors import MMPromptError, PromptError, RowError, nearest, shown
from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MediaPart, Message
from mmprompt.run.builders import assistant, audio, image, read_caller_media, system, user, video
from mmprompt.targets.records import keyed, labelled, writer_for
from mmprompt.targets.wire_json import Payload

if TYPE_CHECKING:
    from mmprompt.run.conversation import Asker, Conversation
    from mmprompt.run.reply import Reply
    from mmprompt.tasks.task import Task

__all__ = [
    "Asker",
    "Conversation",
    "Reply",
    "assert_sends",
    "assistant",
    "audio",
    "image",
    "sent",
    "sent_by",
    "system",
    "user",
    "video",
]

Source = Union["Task", str, "os.PathLike[str]", Mapping[str, Any]]
"""A task, the name of a task file or a dataset, or a task as a mapping."""


def __getattr__(name: str) -> object:
    """Load a type of the fixture ``vlm``, for annotations; messages by hand need none of them."""
    if name not in ("Asker", "Conversation", "Reply"):
        raise AttributeError(f"module 'mmprompt.testing' has no attribute '{name}'")
    from mmprompt.run import conversation  # noqa: PLC0415  # 3 ms, paid by the first use

    return getattr(conversation, name)


def sent(
    messages: Message | Iterable[Message],
    *,
    target: str = "vllm",
    base: str | os.PathLike[str] = "",
    policy: MediaPolicy | None = None,
) -> dict[str, Any]:
    """Return what would be sent for messages: a request's keys as plain data, each medium as its stub.

    A stub stands where the base64 would: ``data:image/jpeg;base64,<27255 bytes, sha256 1b63…>``.

    Args:
        messages: one or several, from ``user`` and the others or from a task.
        target: for whom the request is written.
        base: the folder that relative paths begin at; by default the working directory.
        policy: what media named by samples may be read; a path written in a call of ``user`` needs none.

    Raises:
        MediaError: a medium that cannot be read.
        TargetError: a message that the target cannot carry.
    """
    given = [messages] if isinstance(messages, Message) else list(messages)
    write = writer_for(target, _stub, lambda ref: ref).write
    return keyed(write(read_caller_media(given, base, policy)))


def sent_by(
    source: Source, *, target: str = "vllm", policy: MediaPolicy | None = None, only: Iterable[object] | None = None
) -> dict[object, dict[str, Any]]:
    """Return what a task or dataset would send: for each id the request, as ``sent`` returns it.

    Where a sample gives several, the key is the id with the number of the turn: ``("q-1", 0)``. An id that is a list
    or an object goes by its JSON text.

    Args:
        source: the task or dataset.
        target: for whom the requests are written.
        policy: what media may be read; by default those below the dataset's folder.
        only: the keys that are wanted; rows behind the last of them are not read, and faults of others not told.

    Raises:
        MMPromptError: a row that cannot be sent.
    """
    task = _task(source)
    wanted = None if only is None else set(only)
    ids = set(map(_id, wanted or ()))
    errors: list[MMPromptError] = []
    found: dict[object, dict[str, Any]] = {}
    labels: dict[object, dict[str, Any]] = {}
    for request in task.requests(target, policy=policy, on_error=errors.append):
        bad = next((error for error in errors if wanted is None or error.where.sample in ids), None)
        if bad is not None:
            raise bad
        name = json.dumps(request.id) if isinstance(request.id, (list, dict)) else request.id
        key = name if request.turn is None else (name, request.turn)
        if wanted is not None and key not in found and wanted <= found.keys():
            break
        stubbed = _stubbed(request.unencoded)
        if task.mode == "ppl":
            labels.setdefault(key, {})[str(request.label)] = stubbed
            stubbed = labelled(labels[key])
        found[key] = stubbed
    for error in errors:
        if wanted is None or error.where.sample in ids:
            raise error
    return found if wanted is None else {key: value for key, value in found.items() if _id(key) in ids}


def _id(key: object) -> str:
    return str(key[0] if isinstance(key, tuple) else key)


def assert_sends(
    source: Source,
    expected: Mapping[Any, Message | Sequence[Message] | Mapping[str, Sequence[Message]]],
    *,
    target: str = "vllm",
    base: str | os.PathLike[str] | None = None,
    policy: MediaPolicy | None = None,
) -> None:
    """Hold that a task or dataset sends these messages for these ids, to the byte; others are not looked at.

    Args:
        source: the task or dataset.
        expected: for each id its messages; for a task that compares labels, a mapping from label to messages.
        target: for whom the requests are written.
        base: the folder that paths in ``expected`` begin at; by default the dataset's own, else the working directory.
        policy: what media the samples may name; by default those below the dataset's folder.

    Raises:
        AssertionError: a sample is missing, cannot be sent, or is sent otherwise; it names the first difference.
        MMPromptError: the task or dataset cannot be read, or a medium of ``expected``.
    """
    if not isinstance(expected, Mapping):
        raise PromptError(f"what is expected is {type(expected).__name__}", "give a mapping from ids to messages")
    task = _task(source)
    root = task.dataset.root if task.dataset is not None else None
    folder = base if base is not None else root or ""
    try:
        sends_all = sent_by(task, target=target, policy=policy, only=expected)
    except MMPromptError as error:
        raise AssertionError(f"a sample is not sent: {error}") from None
    for key, messages in expected.items():
        if isinstance(messages, Mapping):
            wanted = labelled({label: sent(m, target=target, base=folder) for label, m in messages.items()})
        else:
            wanted = sent(messages, target=target, base=folder)
        if key not in sends_all:
            raise AssertionError(f"there is no sample {shown(key)}{_near(task, key)}")
        place, expects, sends = _difference(wanted, sends_all[key], "")
        if place:
            what = f"sample {shown(key)} is sent otherwise than expected, at {place[1:]}"
            raise AssertionError(f"{what}\n  expected: {expects}\n      sent: {sends}")


def _task(source: Any) -> Task:
    from mmprompt.tasks.load import load_task  # noqa: PLC0415  # loads with the first use
    from mmprompt.tasks.task import Task  # noqa: PLC0415  # likewise

    if isinstance(source, Task):
        return source
    if not isinstance(source, (str, os.PathLike, Mapping)):
        hint = "give a file, a Task, or a mapping: {'dataset': {'rows': […]}}"
        raise PromptError(f"the source is {type(source).__name__}", hint)
    return load_task(source)


def _near(task: Task, key: object) -> str:
    ids = [row.id for row in task.samples() if not isinstance(row, RowError)]
    alike = next((name for name in ids if str(name) == str(key)), None)
    if alike is not None:
        return f"; the id is {type(alike).__name__}: write {alike!r}"
    return f"; {nearest(key, ids)}" if len(ids) < 1000 else ""


def _stub(prefix: str, part: MediaPart) -> str:
    """Return what stands for a payload: how long the bytes are, and their digest; of several frames each."""
    stubs = [f"<{len(d)} bytes, sha256 {hashlib.sha256(d).hexdigest()}>" for d in part.frames or (part.data,)]
    return prefix + ",".join(stubs)


def _stubbed(value: Any) -> Any:
    if isinstance(value, Payload):
        return _stub(value.prefix, value.part)
    if isinstance(value, dict):
        return {key: _stubbed(item) for key, item in value.items()}
    return [_stubbed(item) for item in value] if isinstance(value, list) else value


def _difference(expected: Any, found: Any, place: str) -> tuple[str, str, str]:
    """Return where two values differ first, and what stands there in each; an empty place where nowhere."""
    if isinstance(expected, dict) and isinstance(found, dict):
        pairs = [(f".{key}", expected.get(key), found.get(key)) for key in {**expected, **found}]
    elif isinstance(expected, list) and isinstance(found, list) and expected and found:
        longest = max(len(expected), len(found))
        more = [[*items, *[None] * (longest - len(items))] for items in (expected, found)]
        pairs = [(f"[{number}]", *pair) for number, pair in enumerate(zip(*more, strict=True))]
    else:
        same = expected == found and type(expected) is type(found)
        return ("", "", "") if same else (place, _words(expected), _words(found))
    differences = (_difference(one, other, place + step) for step, one, other in pairs)
    return next((difference for difference in differences if difference[0]), ("", "", ""))


def _words(value: Any) -> str:
    return "nothing" if value is None else shown(value, 400)
