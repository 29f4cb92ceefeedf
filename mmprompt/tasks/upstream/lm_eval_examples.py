"""The in-context examples of an lm-eval task: ``num_fewshot``, ``fewshot_split`` and ``fewshot_config``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mmprompt.errors import TaskError, nearest
from mmprompt.errors.findings import Note
from mmprompt.tasks.config import Section
from mmprompt.tasks.section_values import ConfigValue
from mmprompt.tasks.upstream.lm_eval_prompts import DocPrompts
from mmprompt.tasks.yaml_text import FunctionName

_OVERRIDES = ("doc_to_text", "doc_to_target", "doc_to_choice", "gen_prefix")
_UNUSED = ("fewshot_indices", "target_delimiter", "fewshot_delimiter")
_KNOWN = ("sampler", "split", "samples", "process_docs", *_OVERRIDES, *_UNUSED)
_SEED = 1234
"""lm-eval's default ``--seed`` for examples."""

_DRAWN = Note(
    "MM614",
    "the examples are drawn for each row by its id, so a row gets others than in lm-eval",
    "set fewshot_config: {sampler: first_n} to have the same",
)


class Examples(NamedTuple):
    """The examples: their retriever (None for none), and the prompts of their rows.

    ``samples`` are rows that stand in the task itself; else the rows are those of ``split``.
    """

    retriever: Section | None
    prompts: DocPrompts
    samples: list[ConfigValue] | None = None
    split: str | None = None
    unused: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def needs_file(self) -> bool:
        """Whether there are examples, and they stand in a file."""
        return self.retriever is not None and self.samples is None


def examples_of(keys: Section, *, compares: bool) -> Examples:
    """Return the examples of a task; ``compares`` as in ``DocPrompts.of``.

    Raises:
        TaskError: they depend on a function, or a setting is unknown.
    """
    count, config = keys.get("num_fewshot") or 0, keys.get("fewshot_config") or {}
    if not isinstance(count, int) or count < 0:
        raise TaskError(f"num_fewshot is {count}", "give a whole number, 0 or more").located(setting="num_fewshot")
    if not isinstance(config, Mapping):
        what = f"fewshot_config is {type(config).__name__}"
        raise TaskError(what, "give a mapping").located(setting="fewshot_config")
    if count == 0:
        unused = [key for key in ("fewshot_split", "fewshot_config") if keys.get(key)]
        return Examples(None, DocPrompts.of(keys, compares=compares), unused=tuple(unused))
    _check(config)
    own: dict[str, ConfigValue] = {key: config[key] for key in _OVERRIDES if config.get(key) is not None}
    prompts = DocPrompts.of({**keys, **own}, compares=True, example=True)
    split = config.get("split") or keys.get("fewshot_split")
    samples = config.get("samples") if split is None else None
    if samples is not None and not isinstance(samples, list):
        raise TaskError("fewshot_config.samples is not a list", "give a list of rows").located(setting="fewshot_config")
    if split is None:
        splits = ("training_split", "validation_split", "test_split")
        split = next((keys[key] for key in splits if keys.get(key)), None)
    retriever: dict[str, ConfigValue] = {"type": "RandomRetriever", "ice_num": count, "seed": _SEED}
    first = config.get("sampler") == "first_n"
    if first:
        retriever = {"type": "FixKRetriever", "fix_id_list": list(range(count))}
    delimiters = [key for key in ("target_delimiter", "fewshot_delimiter") if key in keys]
    unused = [*delimiters, *[f"fewshot_config.{key}" for key in _UNUSED if key in config]]
    return Examples(retriever, prompts, samples, str(split), tuple(unused), () if first else (_DRAWN,))


def _check(config: Section) -> None:
    """Refuse settings that are unknown, or that only code can follow."""
    for key, value in config.items():
        if key not in _KNOWN:
            raise TaskError(f"unknown key '{key}' in fewshot_config", nearest(key, _KNOWN)).located(
                setting="fewshot_config"
            )
        if isinstance(value, FunctionName):
            what = f"fewshot_config.{key} is the Python function '{value.name}', and a file of data is not run"
            hint = "set num_fewshot: 0, or write the examples as fewshot_config.samples, a list of rows"
            raise TaskError(what, hint).located(setting="fewshot_config")
    if config.get("sampler", "default") not in ("default", "first_n"):
        what = f"fewshot_config.sampler is '{config['sampler']}'"
        raise TaskError(what, nearest(config["sampler"], ("default", "first_n"))).located(setting="fewshot_config")
