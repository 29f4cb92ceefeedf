"""Converts the inferencer of a runner's config to that of a task, and names the keys that a task does not use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mmprompt.errors import TaskError, shown
from mmprompt.icl.types import CHAT, INFERENCERS, short_name
from mmprompt.tasks.config import Section

_SECTIONS = ("ice_template", "prompt_template", "retriever", "inferencer")
_OTHER_RUNS = ("multiround", "gen_field_replace_token", "min_out_len", "fix_id_list")
"""Arguments of inferencers that change what the model is asked."""

_GENERATION = ("temperature",)
_DIALOGUE = {"begin", "round", "end"}


def task_infer_cfg(infer: Mapping[str, Any], reader: Section, place: str) -> tuple[dict[str, Any], list[str]]:
    """Return the ``infer_cfg`` of a task for that of a config, and the names of the keys that it does not use.

    ``max_out_len`` beside the inferencer and ``temperature`` in it are settings of the requests.

    Raises:
        TaskError: an argument changes what the model is asked, and a task has no such setting.
    """
    kept: dict[str, Any] = {key: value for key, value in infer.items() if key in _SECTIONS}
    unused = [f"infer_cfg.{key}" for key in infer if key not in _SECTIONS]
    given = kept.get("inferencer")
    if not isinstance(given, Mapping) or (name := short_name(given.get("type"))) not in INFERENCERS:
        return kept, unused  # the error of an unknown type comes where the task is compiled
    known = (*INFERENCERS[name], "type")
    for key in _OTHER_RUNS:
        if given.get(key):
            what = (
                f"{name} with {key}={shown(given[key])} changes what the model is asked, and a task has no such setting"
            )
            raise TaskError(what, f"remove {key}").located(template=f"{place}.inferencer")
    inferencer = {key: value for key, value in given.items() if key in known}
    others = [key for key in given if key not in known]
    if "generation_kwargs" in known:
        settings = {key: given[key] for key in others if key in _GENERATION}
        others = [key for key in others if key not in settings]
        if settings:
            inferencer["generation_kwargs"] = {**settings, **(given.get("generation_kwargs") or {})}
        if infer.get("max_out_len") is not None and "max_out_len" not in inferencer:
            inferencer["max_out_len"] = infer["max_out_len"]
            unused.remove("infer_cfg.max_out_len")
    kept["inferencer"] = inferencer
    if name == CHAT:
        kept["prompt_template"] = _turn_template(kept, reader)
        kept.pop("ice_template", None)
    return kept, unused + [f"infer_cfg.inferencer.{key}" for key in others]


def _turn_template(infer: Mapping[str, Any], reader: Section) -> Any:
    """Return the template of a chat's turns: the config's own, with the answer as the model's words.

    Without one, the only input column is what the user says.
    """
    answer = f"{{{reader['output_column']}}}" if reader.get("output_column") else ""
    reply = {"role": "BOT", "prompt": answer}
    columns = reader.get("input_columns")
    names = columns.split() if isinstance(columns, str) else columns
    given = infer.get("prompt_template")
    template = given.get("template") if isinstance(given, Mapping) else given
    if template is None and isinstance(names, (list, tuple)) and len(names) == 1:
        template = f"{{{names[0]}}}"
    if isinstance(template, str):
        template = {"round": [{"role": "HUMAN", "prompt": template}]}
    if not isinstance(template, Mapping) or not set(template) <= _DIALOGUE or not isinstance(template["round"], list):
        return given
    said = [item.get("role") for item in template["round"] if isinstance(item, Mapping)]
    turns = template["round"] if "BOT" in said else [*template["round"], reply]
    return {"type": "MultiTurnPromptTemplate", "template": {**template, "round": turns}}
