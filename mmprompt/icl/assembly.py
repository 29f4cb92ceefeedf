"""An ``infer_cfg``, compiled: which template makes the prompt of a sample, and with which examples."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Union

from mmprompt.errors import TaskError, TemplateError, nearest, shown
from mmprompt.prompt_list import PromptList
from mmprompt.templates.entry import Entry
from mmprompt.templates.multimodal import MMPromptTemplate
from mmprompt.templates.text import PromptTemplate

TEMPLATES: Mapping[str, type[PromptTemplate]] = {"PromptTemplate": PromptTemplate, "MMPromptTemplate": MMPromptTemplate}
RETRIEVERS = {"ZeroRetriever": ("ice_eos_token", "ice_separator", "ice_num")}
INFERENCERS = {
    "GenInferencer": ("max_out_len", "max_seq_len", "batch_size", "generation_kwargs", "stopping_criteria"),
    "PPLInferencer": ("max_seq_len", "batch_size", "labels"),
}
"""The types of each kind, and the arguments that each takes."""
_KEYS = ("ice_template", "prompt_template", "retriever", "inferencer")

Prompt = Union[str, PromptList]


class Assembly:
    """Makes the prompts of a task.

    ``prompt_template`` may be left out: ``ice_template`` then serves as both.

    Raises:
        TaskError: an unknown key or type, or no template at all.
        TemplateError: a template that cannot be compiled.
    """

    def __init__(self, infer_cfg: Mapping[str, Any], output_column: str | None) -> None:
        for key in infer_cfg:
            if key not in _KEYS:
                raise TaskError(f"unknown key '{key}' in infer_cfg", nearest(key, _KEYS))
        self.output_column = output_column
        self.ice_template = build_template(infer_cfg.get("ice_template"), "infer_cfg.ice_template")
        prompt_template = build_template(infer_cfg.get("prompt_template"), "infer_cfg.prompt_template")
        template = prompt_template or self.ice_template
        if template is None:
            raise TaskError("infer_cfg has neither prompt_template nor ice_template", "give one of them")
        self.template = template
        _check_type(infer_cfg.get("retriever"), RETRIEVERS, "infer_cfg.retriever")
        self.inferencer = (
            _check_type(infer_cfg.get("inferencer"), INFERENCERS, "infer_cfg.inferencer") or "GenInferencer"
        )
        if self.inferencer == "GenInferencer" and template.labels:
            mend = "use PPLInferencer, or a template of begin, round and end"
            raise TaskError("a template of labels with GenInferencer", mend)
        inferencer = infer_cfg.get("inferencer")
        given = inferencer.get("labels") if isinstance(inferencer, Mapping) else None
        self.labels: tuple[object, ...] = tuple(given or template.labels)
        if self.inferencer == "PPLInferencer" and not self.labels:
            mend = "map each label to its template, or give the inferencer 'labels'"
            raise TaskError("PPLInferencer with a template without labels", mend)

    @property
    def mode(self) -> str:
        """``"gen"`` or ``"ppl"``."""
        return "ppl" if self.inferencer == "PPLInferencer" else "gen"

    def prompt(self, entry: Entry) -> Prompt | dict[object, Prompt]:
        """Return the prompt of a sample, or under ``PPLInferencer`` one for each label.

        Raises:
            TemplateError: the sample cannot fill the template.
        """
        if self.mode == "gen":
            return self.template.generate_item(entry, self.output_column)
        return {label: self.template.generate_label_prompt_item(entry, None, label) for label in self.labels}


def build_template(config: object, place: str) -> PromptTemplate | None:
    """Return the template of a config: one that is built already, or a mapping with ``type`` and its arguments.

    Raises:
        TaskError: an unknown type or argument.
        TemplateError: the template cannot be compiled.
    """
    if config is None or isinstance(config, PromptTemplate):
        return config
    if not isinstance(config, Mapping):
        raise TaskError(f"{place} is {type(config).__name__}", "give a mapping with 'type' and 'template'")
    named = config.get("type", "PromptTemplate")
    cls = named if isinstance(named, type) and issubclass(named, PromptTemplate) else TEMPLATES.get(_short_name(named))
    if cls is None:
        raise TaskError(f"{place} has unknown type {shown(_short_name(named))}", nearest(_short_name(named), TEMPLATES))
    arguments = {k: v for k, v in config.items() if k != "type"}
    if "template" not in arguments:
        raise TaskError(f"{place} has no template", "give 'template'")
    known = tuple(inspect.signature(cls).parameters)
    for argument in arguments:
        if argument not in known:
            raise TaskError(f"{cls.__name__} takes no argument {shown(argument)}", nearest(argument, known))
    try:
        return cls(**arguments)
    except TemplateError as error:
        within = error.where.template or ""
        raise type(error)(
            error.what, error.mend, error.where._replace(template=f"{place}: {within}".rstrip(": "))
        ) from None


def _check_type(config: object, known: Mapping[str, tuple[str, ...]], place: str) -> str | None:
    if config is None:
        return None
    named = config.get("type") if isinstance(config, Mapping) else config
    name = _short_name(named)
    if name not in known:
        raise TaskError(f"{place} has unknown type {shown(name)}", nearest(name, known))
    for key in config if isinstance(config, Mapping) else ():
        if key != "type" and key not in known[name]:
            raise TaskError(f"{name} takes no argument {shown(key)}", nearest(key, known[name]))
    return name


def _short_name(named: object) -> str:
    """Return the class name of a type given as a class, a name or a dotted path."""
    return named.__name__ if isinstance(named, type) else str(named).rpartition(".")[2]
