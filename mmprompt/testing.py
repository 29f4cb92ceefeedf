"""Helpers for your tests of datasets, tasks and prompts: write messages by hand, and assert what would be sent.

    from mmprompt.testing import assert_sends, system, user

    def test_the_first_question():
        assert_sends("vqa.jsonl", {"q-1": [user("What is this?", image="cat.jpg")]})

No server is asked. Media are compared by the SHA-256 of their bytes. ``check_dataset`` asserts that a dataset has no
fault.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, TypedDict, Union, cast

from mmprompt.errors import MMPromptError, PromptError, RowError, nearest, shown
from mmprompt.errors.findings import Finding
from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MediaPart, Message
from mmprompt.run.builders import assistant, audio, image, read_caller_media, system, user, video
from mmprompt.targets.json_values import JSONObject, JSONValue
from mmprompt.targets.part_writer import Wire, WireValue
from mmprompt.targets.wire_json import Payload, keyed, labelled, writer_for

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
    "check_dataset",
    "image",
    "sent",
    "sent_by",
    "system",
    "user",
    "video",
]

Source = Union["Task", str, "os.PathLike[str]", Mapping[str, object]]
"""A task, the name of a task file or a dataset, or a task as a mapping."""

_LISTED = 20
"""Most findings that an error lists."""


class SentRequest(TypedDict, total=False):
    """A request as plain data, with stubs for media. Which keys it has depends on the target.

    For a task that compares labels each value is a mapping from label to value.
    """

    messages: Any
    system: Any
    contents: Any
    system_instruction: Any


def __getattr__(name: str) -> object:
    """Load a type of the fixture ``vlm`` when an annotation uses it."""
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
) -> SentRequest:
    """Return the request that would be sent for messages, as plain data. A stub stands in place of each base64 text.

    A stub looks like this: ``data:image/jpeg;base64,<27255 bytes, sha256 1b63…>``.

    Args:
        messages: one message or several, from ``user`` and the other builders or from a task.
        target: the wire form, such as ``"vllm"``.
        base: the folder that relative paths begin at; by default the working directory.
        policy: which media of samples may be read. A path that you write in a call of ``user`` needs no policy.

    Raises:
        MediaError: a medium cannot be read.
        TargetError: the target does not accept a message.
    """
    given = [messages] if isinstance(messages, Message) else list(messages)
    write = writer_for(target, _stub, lambda ref: ref).write
    return _stubbed_request(keyed(write(read_caller_media(given, base, policy))))


def sent_by(
    source: Source, *, target: str = "vllm", policy: MediaPolicy | None = None, only: Iterable[object] | None = None
) -> dict[object, SentRequest]:
    """Return what a task or dataset would send: for each id the request, in the form of ``sent``.

    If a sample gives several requests, the key is the id with the number of the turn: ``("q-1", 0)``. For an id that is
    a list or an object, the key is its JSON text.

    Args:
        source: the task or dataset.
        target: the wire form, such as ``"vllm"``.
        policy: which media may be read; by default those below the dataset's folder.
        only: keys to return. Stops reading after the last one; errors in other rows are ignored.

    Raises:
        MMPromptError: a row cannot be sent.
    """
    task = _task(source)
    wanted = None if only is None else set(only)
    ids = set(map(_id, wanted or ()))
    errors: list[MMPromptError] = []
    found: dict[object, SentRequest] = {}
    labels: dict[Hashable, dict[str, Wire]] = {}
    for request in task.requests(target, policy=policy, on_error=errors.append):
        bad = next((error for error in errors if wanted is None or error.where.sample in ids), None)
        if bad is not None:
            raise bad
        name = json.dumps(request.id) if isinstance(request.id, (list, dict)) else request.id
        key = name if request.turn is None else (name, request.turn)
        if wanted is not None and key not in found and wanted <= found.keys():
            break
        wire = request.unencoded
        if task.mode == "ppl":
            labels.setdefault(key, {})[str(request.label)] = wire
            wire = labelled(labels[key])
        found[key] = _stubbed_request(wire)
    for error in errors:
        if wanted is None or error.where.sample in ids:
            raise error
    return found if wanted is None else {key: value for key, value in found.items() if _id(key) in ids}


def _id(key: Hashable) -> str:
    return str(key[0] if isinstance(key, tuple) else key)


def assert_sends(
    source: Source,
    expected: Mapping[Any, Message | Sequence[Message] | Mapping[str, Sequence[Message]]],
    *,
    target: str = "vllm",
    base: str | os.PathLike[str] | None = None,
    policy: MediaPolicy | None = None,
) -> None:
    """Assert that a task or dataset sends exactly these messages for these ids. Other ids are not checked.

    Args:
        source: the task or dataset.
        expected: for each id its messages; for a task that compares labels, a mapping from label to messages.
        target: the wire form, such as ``"vllm"``.
        base: the folder that paths in ``expected`` begin at; by default the dataset's own, else the working directory.
        policy: which media of samples may be read; by default those below the dataset's folder.

    Raises:
        AssertionError: a sample is missing, cannot be sent, or differs; the error shows the first difference.
        MMPromptError: the task, the dataset or a medium of ``expected`` cannot be read.
    """
    if not isinstance(expected, Mapping):
        raise PromptError(f"'expected' is {type(expected).__name__}", "give a mapping from ids to messages")
    task = _task(source)
    root = task.dataset.root if task.dataset is not None else None
    folder = base if base is not None else root or ""
    try:
        sends_all = sent_by(task, target=target, policy=policy, only=expected)
    except MMPromptError as error:
        raise AssertionError(f"a sample cannot be sent: {Finding.of(error)}") from None
    for key, messages in expected.items():
        if isinstance(messages, Mapping):
            of_labels = {label: sent(m, target=target, base=folder) for label, m in messages.items()}
            wanted = _stubbed_request(labelled(cast("dict[str, Wire]", of_labels)))
        else:
            wanted = sent(messages, target=target, base=folder)
        if key not in sends_all:
            raise AssertionError(f"no sample has the id {shown(key)}{_near(task, key)}")
        place, expects, sends = _difference(cast("JSONObject", wanted), cast("JSONObject", sends_all[key]), "")
        if place:
            what = f"sample {shown(key)} is not sent as expected, at {place[1:]}"
            raise AssertionError(f"{what}\n  expected: {expects}\n      sent: {sends}")


def check_dataset(
    source: Source,
    *,
    select: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    target: str | None = None,
    policy: MediaPolicy | None = None,
    decode: bool = True,
) -> None:
    """Assert that ``mmprompt check`` finds nothing wrong or odd in a dataset or task.

    The arguments are those of ``mmprompt.check_dataset``.

    Raises:
        AssertionError: there are findings; the error lists the first ones.
        MMPromptError: the task, a code or the target is wrong.
    """
    from mmprompt.check.check import check_dataset as findings_of  # noqa: PLC0415  # loads with the first use

    found = findings_of(source, select=select, ignore=ignore, target=target, policy=policy, decode=decode)
    told = list(islice(found, _LISTED + 1))
    if told:
        more = 1 + sum(1 for _ in found) if len(told) > _LISTED else 0
        lines = [str(finding) for finding in told[:_LISTED]] + ([f"… and {more} more"] if more else [])
        count = len(told[:_LISTED]) + more
        raise AssertionError("\n".join([f"{count} finding{'s' * (count > 1)}", *lines]))


def _task(source: Source) -> Task:
    from mmprompt.tasks.load import load_task  # noqa: PLC0415  # loads with the first use
    from mmprompt.tasks.task import Task  # noqa: PLC0415  # loads with the first use

    if isinstance(source, Task):
        return source
    given: object = source
    if not isinstance(given, (str, os.PathLike, Mapping)):
        hint = "give a file, a Task, or a mapping: {'dataset': {'rows': […]}}"
        raise PromptError(f"the source is {type(given).__name__}", hint)
    return load_task(source)


def _near(task: Task, key: Hashable) -> str:
    """Return a hint at the id that was meant."""
    ids = [row.id for row in task.samples() if not isinstance(row, RowError)]
    alike = next((name for name in ids if str(name) == str(key)), None)
    if alike is not None:
        return f"; the id is {type(alike).__name__}: write {alike!r}"
    return f"; {nearest(key, ids)}" if len(ids) < 1000 else ""


def _stub(prefix: str, part: MediaPart) -> str:
    """Return the stub of a medium: the length and digest of its bytes, for a video of each frame."""
    stubs = [f"<{len(d)} bytes, sha256 {hashlib.sha256(d).hexdigest()}>" for d in part.frames or (part.data,)]
    return prefix + ",".join(stubs)


def _stubbed_request(wire: Wire) -> SentRequest:
    return cast("SentRequest", {key: _stubbed(value) for key, value in wire.items()})


def _stubbed(value: WireValue) -> JSONValue:
    if isinstance(value, Payload):
        return _stub(value.prefix, value.part)
    if isinstance(value, Mapping):
        return {key: _stubbed(item) for key, item in value.items()}
    return value if value is None or isinstance(value, (str, int, float)) else [_stubbed(item) for item in value]


def _difference(expected: JSONValue, found: JSONValue, place: str) -> tuple[str, str, str]:
    """Return the first place where two values differ, and what each has there; an empty place if they are equal."""
    if isinstance(expected, dict) and isinstance(found, dict):
        pairs = [(f".{key}", expected.get(key), found.get(key)) for key in {**expected, **found}]
    elif isinstance(expected, list) and isinstance(found, list) and expected and found:
        longest = zip_longest(expected, found)
        pairs = [(f"[{number}]", one, other) for number, (one, other) in enumerate(longest)]
    else:
        same = expected == found and type(expected) is type(found)
        return ("", "", "") if same else (place, _words(expected), _words(found))
    differences = (_difference(one, other, place + step) for step, one, other in pairs)
    return next((difference for difference in differences if difference[0]), ("", "", ""))


def _words(value: JSONValue) -> str:
    return "nothing" if value is None else shown(value, 400)
