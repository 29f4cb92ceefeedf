"""The types that an ``infer_cfg`` may name, and the functions that build them from its mappings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Union

from mmprompt.errors import TaskError, TemplateError, nearest, shown
from mmprompt.icl.bm25 import BM25Retriever
from mmprompt.icl.retrievers import (
    FixKRetriever,
    RandomRetriever,
    Retriever,
    SlidingWindowRetriever,
    ZeroRetriever,
)
from mmprompt.icl.topk import TopkRetriever
from mmprompt.templates.jinja_text import is_jinja
from mmprompt.templates.multimodal import MMPromptTemplate
from mmprompt.templates.multiturn import MultiTurnPromptTemplate
from mmprompt.templates.raw import RawPromptTemplate
from mmprompt.templates.text import PromptTemplate

Template = Union[PromptTemplate, RawPromptTemplate]

TEMPLATES: dict[str, type[Any]] = {
    "PromptTemplate": PromptTemplate,
    "MMPromptTemplate": MMPromptTemplate,
    "MultiTurnPromptTemplate": MultiTurnPromptTemplate,
    "RawPromptTemplate": RawPromptTemplate,
}
RETRIEVERS: dict[str, type[Retriever]] = {
    "ZeroRetriever": ZeroRetriever,
    "FixKRetriever": FixKRetriever,
    "RandomRetriever": RandomRetriever,
    "SlidingWindowRetriever": SlidingWindowRetriever,
    "BM25Retriever": BM25Retriever,
    "TopkRetriever": TopkRetriever,
}
_COMMON = ("max_out_len", "max_seq_len", "batch_size", "generation_kwargs", "stopping_criteria")
CHAT = "ChatInferencer"
INFERENCERS: dict[str, tuple[str, ...]] = {
    "GenInferencer": _COMMON,
    "PPLInferencer": ("max_seq_len", "batch_size", "labels", "labels_column"),
    "MultiTurnGenInferencer": (*_COMMON, "infer_mode"),
    CHAT: (*_COMMON, "infer_mode"),
}
"""The inferencers and the arguments of each. ``ChatInferencer`` is OpenCompass's ``MultiTurnGenInferencer``."""

_LENGTHS = {"max_out_len", "max_seq_len"}


def build_template(config: object, place: str) -> Template | None:
    """Return the template of a config: a template, a mapping of ``type`` and its arguments, or a text with slots.

    Raises:
        TaskError: an unknown type or argument.
        TemplateError: the template cannot be compiled.
    """
    if config is None or isinstance(config, (PromptTemplate, RawPromptTemplate)):
        return config
    if is_jinja(config) or (isinstance(config, str) and "{" in config):
        config = {"template": config}
    cls, arguments = _class_of(config, TEMPLATES, (PromptTemplate, RawPromptTemplate), place, "PromptTemplate")
    needed = "messages" if issubclass(cls, RawPromptTemplate) else "template"
    if needed not in arguments:
        raise TaskError(f"{place} has no {needed}", f"give '{needed}'")
    try:
        template: Template = cls(**arguments)
    except TemplateError as error:
        within = f"{place}: {error.where.template}" if error.where.template else place
        raise type(error)(error.what, error.hint, error.where._replace(template=within), error.code) from None
    return template


def build_retriever(config: object, place: str) -> Retriever:
    """Return the retriever of a config, by default ``ZeroRetriever``."""
    if config is None or isinstance(config, Retriever):
        return config or ZeroRetriever()
    cls, arguments = _class_of(config, RETRIEVERS, (Retriever,), place)
    try:
        inspect.signature(cls).bind(**arguments)
    except TypeError as error:
        raise TaskError(f"{place}: {cls.__name__} {error}", "give its arguments") from None
    retriever: Retriever = cls(**arguments)
    return retriever


def inferencer_of(config: object, place: str) -> tuple[str, Mapping[str, Any]]:
    """Return the name and the arguments of an inferencer, by default ``GenInferencer``."""
    if config is None:
        return "GenInferencer", {}
    named = config.get("type") if isinstance(config, Mapping) else config
    name = short_name(named)
    if name not in INFERENCERS:
        raise TaskError(f"{place} has unknown type {shown(name)}", nearest(name, INFERENCERS))
    arguments = {k: v for k, v in config.items() if k != "type"} if isinstance(config, Mapping) else {}
    for argument in arguments:
        if argument not in INFERENCERS[name]:
            raise TaskError(f"{name} takes no argument {shown(argument)}", nearest(argument, INFERENCERS[name]))
    for argument in _LENGTHS & arguments.keys():
        value = arguments[argument]
        of_turns = argument == "max_out_len" and isinstance(value, (list, tuple))
        for length in value if of_turns else [value]:
            if length is not None and (type(length) is not int or length < 1):
                raise TaskError(f"{place}: {argument} is {shown(length)}", "give a whole number from 1")
    return name, arguments


def _class_of(
    config: object, known: Mapping[str, type[Any]], base: tuple[type[Any], ...], place: str, default: str = ""
) -> tuple[type[Any], dict[str, Any]]:
    """Return the class that a config names, and its arguments."""
    if isinstance(config, (str, type)):
        config = {"type": config}
    if not isinstance(config, Mapping):
        raise TaskError(f"{place} is {type(config).__name__}", "give a mapping with 'type' and its arguments")
    named = config.get("type", default)
    cls = named if isinstance(named, type) and issubclass(named, base) else known.get(short_name(named))
    if cls is None:
        raise TaskError(f"{place} has unknown type {shown(short_name(named))}", nearest(short_name(named), known))
    arguments = {k: v for k, v in config.items() if k != "type"}
    takes = tuple(inspect.signature(cls).parameters)
    for argument in arguments:
        if argument not in takes:
            raise TaskError(f"{cls.__name__} takes no argument {shown(argument)}", nearest(argument, takes))
    return cls, arguments


def short_name(named: object) -> str:
    """Return the class name of a type that is given as a class, a name or a dotted path."""
    return named.__name__ if isinstance(named, type) else str(named).rpartition(".")[2]
