r"""Task YAML of lm-evaluation-harness and lmms-eval, without ``!function`` where a prompt depends on it.

    task: capitals
    dataset_path: json
    dataset_kwargs: {data_files: capitals.jsonl}
    doc_to_text: "{{question}}\nAnswer:"
    doc_to_target: "{{answer}}"

The messages are those of ``lm_eval --apply_chat_template``: the description is the system message, and each in-context
example is a question and its answer. ``output_type: multiple_choice`` compares the choices of each row.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from mmprompt.datasets.read import Dataset
from mmprompt.errors import TaskError, names_in_short, nearest, shown
from mmprompt.errors.findings import Note
from mmprompt.tasks.config import Section
from mmprompt.tasks.files import TaskFile
from mmprompt.tasks.section_values import ConfigValue
from mmprompt.tasks.upstream.includes import Includes
from mmprompt.tasks.upstream.lm_eval_prompts import (
    ANSWER,
    BEGIN,
    CHOICES,
    PREFIX,
    TURN,
    DocPrompts,
    Examples,
    examples_of,
)
from mmprompt.tasks.upstream.shaped_rows import ShapedDataset
from mmprompt.tasks.yaml_text import FunctionName

_PROMPT_KEYS = ("doc_to_text", "doc_to_target", "doc_to_choice", "doc_to_image", "doc_to_audio", "doc_to_visual",
                "description", "gen_prefix")  # fmt: skip
_ROW_KEYS = ("dataset_path", "dataset_name", "dataset_kwargs", "training_split", "validation_split", "test_split")
_KEYS = (
    *_PROMPT_KEYS, *_ROW_KEYS, "include", "task", "group", "output_type", "generation_kwargs", "num_fewshot",
    "fewshot_split", "fewshot_config", "target_delimiter", "fewshot_delimiter",
)  # fmt: skip
_UNUSED = (
    "task_alias", "tag", "group_alias", "aggregate_metric_list", "metric_list", "filter_list", "repeats", "metadata",
    "should_decontaminate", "doc_to_decontamination_query", "process_results", "unsafe_code", "batch_size",
    "lmms_eval_specific_kwargs", "model_specific_prompt_kwargs", "model_specific_generation_kwargs",
    "model_specific_target_kwargs", "process_results_use_image", "full_docs", "version", "score_key", "cluster_key",
    "reasoning_tags", "auto_strip_thinking",
)  # fmt: skip
"""Keys without effect on a prompt. Model-specific settings reach only prompts that a function makes."""

_CODE = ("process_docs", "custom_dataset", "use_prompt", "class", "doc_to_messages", "recipe", "task_list")
"""Keys that make prompts or rows by code, or are not of a single task."""

MARKS = frozenset(
    (*_PROMPT_KEYS[:6], *_ROW_KEYS[:1], "output_type", "include", "group", "task", "class", "test_split", "metric_list")
)
"""A mapping with one of these keys is such a file."""

_TYPES = ("generate_until", "multiple_choice")
_LOCAL = ("json", "csv", "parquet", "arrow", "text", "imagefolder", "audiofolder", "webdataset")


class LmEvalRows:
    """The rows of a task. ``local`` is the section ``dataset`` of rows that lie in files, None for those on a hub."""

    def __init__(self, prompts: DocPrompts, examples: Examples, local: Section | None, keys: Section) -> None:
        self._prompts = prompts
        self._examples = examples
        self._local = local
        self._split = keys.get("test_split") or keys.get("validation_split")
        self._keys = keys

    def section(self, dataset: ConfigValue) -> ConfigValue:
        """Return the section ``dataset``; in a folder that the caller gives, the splits are those of the file.

        Raises:
            TaskError: the rows lie on a hub, and the caller gives no dataset.
        """
        if dataset is None:
            if self._local is None:
                raise self._no_rows()
            return None
        given: dict[str, ConfigValue] = dict(dataset) if isinstance(dataset, Mapping) else {"path": dataset}
        splits: dict[str, ConfigValue] = {}
        if self._examples.samples and "train" not in given and "train_rows" not in given:
            given["train_rows"] = self._examples.samples
        elif self._examples.needs_file and "train" not in given and given.get("path") not in (None, "-"):
            if _is_folder(given["path"]):
                splits["train"] = self._examples.split
            if splits or self._examples.split == self._split:
                given["train"] = given["path"]
        if _is_folder(given.get("path")) and self._split and "splits" not in given:
            given["splits"] = {"path": self._split, **splits}
        return given

    def _no_rows(self) -> TaskError:
        train = " --train FILE" if self._examples.needs_file else ""
        hint = f"give them: --dataset FILE{train}; in Python dataset="
        hub, kwargs = self._keys.get("dataset_path"), self._keys.get("dataset_kwargs")
        if isinstance(kwargs, Mapping) and isinstance(kwargs.get("data_files"), Mapping):
            return _at("dataset_kwargs", f"data_files names no file on this machine for the split {self._split}", hint)
        where = f"dataset {shown(hub)}, which is not a file" if hub else "no dataset"
        return TaskError(f"the task's rows lie in {where}", hint)

    def shaped(self, own: Dataset | None, train: Dataset | None) -> tuple[Dataset | None, Dataset | None]:
        """Return the rows with their prompts."""
        return (
            None if own is None else ShapedDataset(own, self._prompts.shape),
            None if train is None else ShapedDataset(train, self._examples.prompts.shape),
        )


def read(path: str, text: str, config: Section, roots: Sequence[str]) -> TaskFile:
    """Return the task of a file, whose text holds ``config``; from ``roots`` it may include files too.

    Raises:
        TaskError: it is a group, or a prompt depends on a function or on a key that is unknown.
    """
    merged = Includes(path, roots).merged(path, text, config)
    try:
        return _task(merged.keys, os.path.dirname(path))
    except TaskError as error:
        at, line = merged.place(error.where.setting)
        raise error.located(file=at, line=line) from None


def _task(keys: Section, folder: str) -> TaskFile:
    _check_keys(keys)
    kind = keys.get("output_type", _TYPES[0])
    if kind not in _TYPES:
        what = f"output_type {kind} scores a text that is given, and no model answers it"
        raise _at("output_type", what, "include this file in one of yours that sets output_type: generate_until")
    compares = kind == _TYPES[1]
    prompts = DocPrompts.of(keys, compares=compares)
    examples = examples_of(keys, compares=compares)
    unused = [key for key in keys if key in _UNUSED]
    inferencer, more = _inferencer(keys, compares=compares)
    local, others = _local_rows(keys, folder, examples)
    begin: list[ConfigValue] = [{"expand_column": BEGIN}, "</E>"]
    turn: list[ConfigValue] = [{"expand_column": TURN}, {"role": "assistant", "content": f"{{{PREFIX}}}{{{ANSWER}}}"}]
    infer: dict[str, ConfigValue] = {
        "prompt_template": {"type": "RawPromptTemplate", "messages": [*begin, *turn]},
        "inferencer": inferencer,
    }
    if examples.retriever is not None:
        infer["ice_template"] = {"type": "RawPromptTemplate", "messages": turn[:1]}
        infer["retriever"] = examples.retriever
    config: dict[str, ConfigValue] = {"reader_cfg": {"output_column": ANSWER, "missing": "error"}, "infer_cfg": infer}
    if local is not None:
        config["dataset"] = local
    unused += [*more, *others, *examples.unused]
    what = f"these keys do not change the prompts and are not used: {names_in_short(unused)}"
    notes = (*([Note("MM614", what)] if unused else []), *examples.notes)
    return TaskFile(config, notes, upstream=True, is_data=True, rows=LmEvalRows(prompts, examples, local, keys))


def _check_keys(keys: Section) -> None:
    """Refuse a group, keys that make prompts or rows by code, and unknown keys."""
    tasks = keys.get("task")
    if isinstance(tasks, (list, tuple)):
        names = [str(t.get("task", "…")) if isinstance(t, Mapping) else str(t) for t in tasks]
        what = f"the file is a group of {len(names)} tasks ({names_in_short(names[:10])})"
        raise _at("task", what, "give the file of one of them")
    for key, value in keys.items():
        if key in _UNUSED:
            continue
        if isinstance(value, FunctionName):
            what = f"{key} is the Python function {shown(value.name)}, and a file of data is not run"
            raise _at(key, what, _HINTS.get(key, f"write {key} as a text with columns, such as '{{{{question}}}}'"))
        if key in _CODE and value is not None:
            raise _at(
                key, f"{key} is not supported", _HINTS.get(key, f"remove {key}, and give the rows with --dataset")
            )
        if key not in _KEYS and key not in _CODE:
            raise _at(key, f"unknown key {shown(key)} in a task of lm-eval", nearest(key, (*_KEYS, *_UNUSED)))
    if keys.get("doc_to_text") is None:
        what = "the file has no doc_to_text"
        raise TaskError(what, "give the file of a task that includes this one, or write doc_to_text")


_HINTS = {
    "process_docs": "save the rows as it returns them, give them with --dataset, and remove process_docs from the file",
    "use_prompt": "write doc_to_text and doc_to_target",
    "doc_to_visual": "name the columns of the pictures: doc_to_visual: image",
    "doc_to_image": "name the columns of the pictures: doc_to_image: [image]",
    "doc_to_audio": "name the columns of the sounds: doc_to_audio: [audio]",
    "doc_to_messages": "write doc_to_text and doc_to_visual with columns",
    "class": "give the task as YAML with doc_to_text and doc_to_target",
}


def _at(key: str, what: str, hint: str) -> TaskError:
    return TaskError(what, hint).located(setting=key)


def _inferencer(keys: Section, *, compares: bool) -> tuple[dict[str, ConfigValue], list[str]]:
    """Return the inferencer of a task, and the names of the settings that it does not use."""
    given = keys.get("generation_kwargs")
    if compares:
        unused = ["generation_kwargs"] if given else []
        return {"type": "PPLInferencer", "labels_column": CHOICES}, unused
    if given is not None and not isinstance(given, Mapping):
        raise _at("generation_kwargs", f"generation_kwargs is {type(given).__name__}", "give a mapping")
    settings = dict(given or {"temperature": 0})
    made: dict[str, ConfigValue] = {"type": "GenInferencer"}
    lengths = [settings.pop(name) for name in ("max_gen_toks", "max_new_tokens", "max_tokens") if name in settings]
    if lengths:
        made["max_out_len"] = lengths[0]
    until = settings.pop("until", keys.get("fewshot_delimiter", "\n\n"))
    stops = [until] if isinstance(until, str) else until
    if not isinstance(stops, (list, tuple)):
        raise _at("generation_kwargs", f"generation_kwargs.until is {type(until).__name__}", "give a list of texts")
    made["stopping_criteria"] = [str(stop) for stop in stops if stop not in ("", None)]
    made["generation_kwargs"] = {name: settings.pop(name) for name in ("temperature", "top_p") if name in settings}
    return made, [f"generation_kwargs.{name}" for name in settings]


def _is_folder(path: ConfigValue) -> bool:
    return isinstance(path, (str, os.PathLike)) and os.path.isdir(path)


def _local_rows(keys: Section, folder: str, examples: Examples) -> tuple[Section | None, list[str]]:
    """Return the section ``dataset`` of rows in files, None for rows on a hub, and the settings that are not used."""
    path, kwargs = keys.get("dataset_path"), keys.get("dataset_kwargs") or {}
    if not isinstance(kwargs, Mapping):
        raise _at("dataset_kwargs", f"dataset_kwargs is {type(kwargs).__name__}", "give a mapping")
    unused = [f"dataset_kwargs.{name}" for name in kwargs if name not in ("data_files", "data_dir")]
    split = keys.get("test_split") or keys.get("validation_split")
    files = kwargs.get("data_files")
    section: dict[str, ConfigValue] = {}
    if isinstance(files, Mapping):
        wanted = {"path": split, "train": examples.split if examples.needs_file else None}
        section = {role: files[name] for role, name in wanted.items() if isinstance(name, str) and name in files}
        if "path" not in section:
            return None, unused
    elif files is not None and path in _LOCAL:
        section = {"path": files}
        if examples.needs_file:
            section["train"] = files
    else:
        data = kwargs.get("data_dir") if path in _LOCAL else path
        if isinstance(data, str) and os.path.isdir(os.path.join(folder, data)):
            section = {"path": data, "splits": {"path": split}}
            if examples.needs_file:
                section.update(train=data, splits={"path": split, "train": examples.split})
    if any("://" in str(name) for name in section.values()):
        return None, unused
    if section and examples.samples:
        section["train_rows"] = examples.samples
    return section or None, [*unused, *(["dataset_name"] if keys.get("dataset_name") and section else [])]
