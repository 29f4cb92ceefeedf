"""Turn dataset rows into the exact multimodal requests that models expect.

    >>> from mmprompt import image, load_task, user
    >>> task = load_task("fixtures/tour/task.yaml")  # or load_task({"dataset": "rows.jsonl"})
    >>> request = next(task.requests("openai"))  # one for each row, with its media read
    >>> request.id, [message["role"] for message in request.messages]
    ('tour-01', ['system', 'user'])
    >>> body = request.body(model="my-model")  # JSON; an SDK takes **request
    >>> question = user("Which is older?", image("a.jpg"), "or", image("b.jpg"))  # a message by hand
    >>> [type(part).__name__ for part in question.parts]
    ['TextPart', 'MediaRef', 'TextPart', 'MediaRef']

Start with ``load_task``, ``Task.requests`` and the message builders ``user``, ``assistant``, ``system``, ``image``,
``audio`` and ``video``. Every public name is here and is loaded when it is first used: ``import mmprompt`` is fast.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost 15 ms

if TYPE_CHECKING:
    from mmprompt._version import __version__
    from mmprompt.check.check import check_dataset
    from mmprompt.errors import (
        DatasetError,
        MediaError,
        MMPromptError,
        PolicyError,
        PromptError,
        RowError,
        ServerError,
        SourceError,
        TagError,
        TargetError,
        TaskError,
        TemplateError,
        Where,
    )
    from mmprompt.icl.bm25 import BM25Retriever
    from mmprompt.icl.dialogues import converse
    from mmprompt.icl.retrievers import FixKRetriever, RandomRetriever, SlidingWindowRetriever, ZeroRetriever
    from mmprompt.icl.topk import TopkRetriever
    from mmprompt.media.policy import MediaPolicy
    from mmprompt.media.reader import MediaReader, read_messages
    from mmprompt.messages import MediaPart, MediaRef, Message, TextPart
    from mmprompt.meta_template.chat_template import ChatTemplate
    from mmprompt.meta_template.meta_template import MetaTemplate
    from mmprompt.prompters import AlpacaPrompter, ChatPrompter, EmptyPrompter
    from mmprompt.render.file import render_file
    from mmprompt.render.request import Request
    from mmprompt.run.builders import assistant, audio, image, system, user, video
    from mmprompt.run.compare import compare_journals
    from mmprompt.run.score import score_journal
    from mmprompt.run.task_run import RunReport, run_task
    from mmprompt.segments import Segment, join_segments, parse_segments
    from mmprompt.targets.anthropic import to_anthropic
    from mmprompt.targets.fitting import change_messages
    from mmprompt.targets.gemini import to_gemini
    from mmprompt.targets.hf import HFRequest, to_hf
    from mmprompt.targets.limits import register_target
    from mmprompt.targets.openai import to_openai
    from mmprompt.targets.openai_reading import from_openai
    from mmprompt.tasks.convert import convert_dataset
    from mmprompt.tasks.load import dataset_task, load_task
    from mmprompt.tasks.task import Task
    from mmprompt.templates.multimodal import MMPromptTemplate
    from mmprompt.templates.multiturn import MultiTurnPromptTemplate
    from mmprompt.templates.prompt_list import PromptList
    from mmprompt.templates.raw import RawPromptTemplate
    from mmprompt.templates.text import PromptTemplate
    from mmprompt.viewer.view import view_html

_HOMES = {
    "mmprompt._version": ("__version__",),
    "mmprompt.check.check": ("check_dataset",),
    "mmprompt.errors": (
        "DatasetError", "MMPromptError", "MediaError", "PolicyError", "PromptError", "RowError", "ServerError",
        "SourceError", "TagError", "TargetError", "TaskError", "TemplateError", "Where",
    ),
    "mmprompt.meta_template.chat_template": ("ChatTemplate",),
    "mmprompt.icl.bm25": ("BM25Retriever",),
    "mmprompt.icl.dialogues": ("converse",),
    "mmprompt.icl.retrievers": ("FixKRetriever", "RandomRetriever", "SlidingWindowRetriever", "ZeroRetriever"),
    "mmprompt.icl.topk": ("TopkRetriever",),
    "mmprompt.prompters": ("AlpacaPrompter", "ChatPrompter", "EmptyPrompter"),
    "mmprompt.templates.multiturn": ("MultiTurnPromptTemplate",),
    "mmprompt.templates.raw": ("RawPromptTemplate",),
    "mmprompt.media.policy": ("MediaPolicy",),
    "mmprompt.media.reader": ("MediaReader", "read_messages"),
    "mmprompt.meta_template.meta_template": ("MetaTemplate",),
    "mmprompt.messages": ("MediaPart", "MediaRef", "Message", "TextPart"),
    "mmprompt.templates.prompt_list": ("PromptList",),
    "mmprompt.render.file": ("render_file",),
    "mmprompt.render.request": ("Request",),
    "mmprompt.run.builders": ("assistant", "audio", "image", "system", "user", "video"),
    "mmprompt.run.compare": ("compare_journals",),
    "mmprompt.run.score": ("score_journal",),
    "mmprompt.run.task_run": ("RunReport", "run_task"),
    "mmprompt.segments": ("Segment", "join_segments", "parse_segments"),
    "mmprompt.targets.anthropic": ("to_anthropic",),
    "mmprompt.targets.fitting": ("change_messages",),
    "mmprompt.targets.gemini": ("to_gemini",),
    "mmprompt.targets.hf": ("HFRequest", "to_hf"),
    "mmprompt.targets.limits": ("register_target",),
    "mmprompt.targets.openai": ("to_openai",),
    "mmprompt.targets.openai_reading": ("from_openai",),
    "mmprompt.tasks.convert": ("convert_dataset",),
    "mmprompt.tasks.load": ("dataset_task", "load_task"),
    "mmprompt.tasks.task": ("Task",),
    "mmprompt.templates.multimodal": ("MMPromptTemplate",),
    "mmprompt.templates.text": ("PromptTemplate",),
    "mmprompt.viewer.view": ("view_html",),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "AlpacaPrompter", "BM25Retriever", "ChatPrompter", "ChatTemplate", "DatasetError", "EmptyPrompter", "FixKRetriever",
    "HFRequest", "MMPromptError", "MMPromptTemplate", "MediaError", "MediaPart", "MediaPolicy", "MediaReader",
    "MediaRef", "Message", "MetaTemplate", "MultiTurnPromptTemplate", "PolicyError", "PromptError", "PromptList",
    "PromptTemplate", "RandomRetriever", "RawPromptTemplate", "Request", "RowError", "RunReport", "Segment",
    "ServerError", "SlidingWindowRetriever", "SourceError", "TagError", "TargetError", "Task", "TaskError",
    "TemplateError", "TextPart", "TopkRetriever", "Where", "ZeroRetriever", "__version__", "assistant", "audio",
    "change_messages", "check_dataset", "compare_journals", "converse", "convert_dataset", "dataset_task",
    "from_openai", "image", "join_segments", "load_task", "parse_segments", "read_messages",
    "register_target", "render_file", "run_task", "score_journal", "system", "to_anthropic", "to_gemini", "to_hf",
    "to_openai", "user", "video", "view_html",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Load a public name from its home."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'mmprompt' has no attribute '{name}'")
    import importlib  # noqa: PLC0415  # 1 ms, paid by the first use

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
