"""What a request says beside its messages: the model, the length of the reply, stop strings and generation settings."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import NamedTuple

from mmprompt.errors import TargetError, TaskError, Where
from mmprompt.targets.json_values import JSONValue
from mmprompt.targets.limits import limits, require_chat_target
from mmprompt.targets.part_writer import Wire
from mmprompt.targets.wire_json import json_body, keyed
from mmprompt.tasks.task import Task

_MAX_TOKENS = {"openai": "max_tokens", "anthropic": "max_tokens", "gemini": "maxOutputTokens"}
_STOP = {"openai": "stop", "anthropic": "stop_sequences", "gemini": "stopSequences"}
_MOST_HEADS = 64
_LENGTHS = ("max_tokens", "max_completion_tokens", "maxOutputTokens")


class RequestSettings(NamedTuple):
    """The settings that all requests of a task share.

    ``generation`` is the inferencer's ``generation_kwargs`` with the task's ``model.generation`` laid over them.
    ``max_tokens`` is the inferencer's ``max_out_len``: a number, or one for each turn. ``stop`` holds its
    ``stopping_criteria``.
    """

    target: str
    wire: str
    model: str | None
    generation: Wire
    max_tokens: int | tuple[int, ...] | None
    stop: tuple[str, ...]
    heads: dict[tuple[int | None, str | None, str], bytes]
    """What stands before the messages in the bodies made so far, by turn, model and further settings."""

    def head(self, turn: int | None, model: str | None, options: Mapping[str, JSONValue] | None = None) -> bytes:
        """Return the JSON of ``body`` before its messages, which are its last key; errors as there."""
        key = (turn, model, repr(options) if options else "")
        head = self.heads.get(key)
        if head is None:
            if len(self.heads) >= _MOST_HEADS:
                self.heads.clear()
            head, _, _ = json_body(self.body([], turn, model, None if options is None else dict(options))).rpartition(
                b"[]}"
            )
            self.heads[key] = head
        return head

    def keys_of(self, turn: int | None, own: Wire | None = None) -> Wire:
        """Return the settings of a request as the wire form's own keys; Gemini's are one ``generationConfig``.

        ``own`` are settings of the row, which stand in place of the task's where the wire form is OpenAI's.
        """
        keys: Wire = deepcopy(self.generation) if self.generation else {}  # so that no caller changes the task
        if own is not None and self.wire == "openai":
            if any(name in own for name in _LENGTHS):
                keys = {key: value for key, value in keys.items() if key not in _LENGTHS}
            keys.update(deepcopy(own))
        length = self.max_tokens
        if isinstance(length, tuple):
            length = length[min(turn or 0, len(length) - 1)]
        if length is not None and not any(name in keys for name in _LENGTHS):
            keys[_MAX_TOKENS.get(self.wire, "max_tokens")] = length
        stop = _STOP.get(self.wire, "stop")
        if self.stop and stop not in keys:
            keys[stop] = list(self.stop)
        return {"generationConfig": keys} if self.wire == "gemini" and keys else keys

    def body(
        self, wire: Wire | list[Wire], turn: int | None, model: str | None = None, own: Wire | None = None
    ) -> Wire:
        """Return the body of a request: its settings, its messages, and ``model``, else the row's model or the task's.

        Media in it are a ``Payload`` still. Gemini names the model in the address, so its body has none. For
        ``own`` see ``keys_of``.

        Raises:
            TargetError: the target has no server, such as ``hf``.
            TaskError: Anthropic requires the length of the reply, and the task does not say it.
        """
        if self.wire not in _MAX_TOKENS:
            raise TargetError(f"{self.target} is not a server, so its requests have no body", "use request.messages")
        body: Wire = self.keys_of(turn, own)
        if self.wire == "anthropic" and "max_tokens" not in body:
            hint = "set model.generation.max_tokens, or beside a template infer_cfg.inferencer.max_out_len"
            raise TaskError(f"{self.target} requires max_tokens in each request", hint, Where(setting="max_out_len"))
        if (named := model or body.get("model") or self.model) and self.wire != "gemini":
            body["model"] = named
        for key, value in keyed(wire).items():
            body.pop(key, None)  # the messages come last, whatever the settings name
            body[key] = value
        return body


def request_settings(task: Task, target: str) -> RequestSettings:
    """Return what the requests of a task say beside their messages."""
    arguments = {} if task.assembly is None else task.assembly.arguments
    length = arguments.get("max_out_len")
    stop = arguments.get("stopping_criteria") or ()
    return RequestSettings(
        target,
        limits(target).wire,
        task.config.model_name,
        {**(arguments.get("generation_kwargs") or {}), **task.config.generation},
        tuple(length) if isinstance(length, (list, tuple)) and length else length or None,
        (stop,) if isinstance(stop, str) else tuple(map(str, stop)),
        {},
    )


def batch_settings(task: Task, target: str) -> RequestSettings:
    """Return the settings of a task whose requests become the lines of OpenAI's batch files.

    Raises:
        TargetError: the target has another wire form than OpenAI's.
        TaskError: the task names no model, or compares labels.
    """
    require_chat_target(target, "a batch file")
    settings = request_settings(task, target)
    if not settings.model and (task.dataset is None or task.dataset.format != "openai"):  # these may name their own
        raise no_model()
    if task.mode == "ppl":
        raise TaskError("a batch asks for replies, and this task compares labels", "use --emit messages")
    return settings


def no_model() -> TaskError:
    """Return the error of a batch line for which neither the task nor its row names a model."""
    what = "a batch line needs the name of a model"
    return TaskError(what, "give model: {model: NAME} in a task file", Where(setting="model"))
