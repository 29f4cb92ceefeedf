"""Task files: a dataset, how its rows become prompts, and the model they are for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mmprompt.default_prompt import default_messages
from mmprompt.errors import MMPromptError, RowError, TaskError, nearest
from mmprompt.icl.assembly import Assembly
from mmprompt.media.classify import as_written
from mmprompt.meta_template import MetaTemplate
from mmprompt.origins import place_of
from mmprompt.parts import MediaPart, MediaRef, Message, Part, part_dict
from mmprompt.prompt_list import PromptList
from mmprompt.task_files import read_task_file
from mmprompt.templates.entry import Entry

if TYPE_CHECKING:
    from mmprompt.datasets.read import Dataset
    from mmprompt.datasets.sample import Sample

_KEYS = ("dataset", "reader_cfg", "infer_cfg", "media", "model", "eval_cfg")
_DATASET_KEYS = ("path", "train", "format", "rows", "train_rows")
_READER_KEYS = ("input_columns", "output_column", "tagged_columns")
_MEDIA_KEYS = ("mode", "roots", "max_bytes")
_EVAL_KEYS = ("scorer",)
_MODEL_KEYS = ("base_url", "model", "path", "meta_template", "media_placeholder", "generation")
_LATER = ("fit", "max_pixels", "max_side", "frames", "fps", "audio_rate", "fetch", "allow_domains", "max_seconds")

OnError = Callable[[MMPromptError], None]


class Task:
    """What a task file says, compiled; made by ``load_task``. Immutable.

    ``prompts``, ``strings`` and ``messages`` are lazy and run in constant memory. A row that cannot be rendered raises
    its error, which ends the iteration; with ``on_error`` the error is passed to it and the row is left out.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        dataset: Dataset | None,
        *,
        map_columns: Mapping[str, str] | None = None,
        base: str = "",
    ) -> None:
        _check_keys(config, _KEYS, "the task")
        reader = _section(config, "reader_cfg", _READER_KEYS)
        model = _section(config, "model", _MODEL_KEYS)
        _section(config, "eval_cfg", _EVAL_KEYS)
        self.media = _media_options(config, base)
        self.dataset = dataset
        self.input_columns = _names(reader.get("input_columns"), "reader_cfg.input_columns")
        self.tagged_columns = (
            None if "tagged_columns" not in reader else _names(reader["tagged_columns"], "tagged_columns")
        )
        self.output_column: str = _name(reader.get("output_column"), "reader_cfg.output_column") or "answer"
        self.map_columns = dict(map_columns or {})
        infer = config.get("infer_cfg")
        masked = reader.get("output_column") or None
        self.assembly = None if infer is None else Assembly(_mapping(infer, "infer_cfg"), masked)
        self.meta_template = MetaTemplate(model.get("meta_template"))
        self.media_placeholder: Mapping[str, str] = model.get("media_placeholder") or {}

    @property
    def mode(self) -> str:
        """``"gen"`` or ``"ppl"``."""
        return "gen" if self.assembly is None else self.assembly.mode

    def samples(self) -> Iterator[Sample | RowError]:
        """Give the rows of the dataset: samples, and the errors of rows that cannot be read.

        Raises:
            TaskError: the task names no dataset.
            DatasetError: the dataset cannot be read.
        """
        if self.dataset is None:
            raise TaskError("the task names no dataset", "give dataset={'path': …} or {'rows': […]}")
        return iter(self.dataset)

    def notes(self) -> list[str]:
        """Return what the dataset's reader accepted and found worth a report, so far."""
        return list(self.dataset.notes) if self.dataset is not None else []

    def prompts(self, *, on_error: OnError | None = None) -> Iterator[tuple[object, Any]]:
        """Give ``(id, prompt)`` before the meta template: a string or a PromptList, under PPL a dict by label."""
        return self._each(self.prompt_of, on_error)

    def strings(self, *, on_error: OnError | None = None) -> Iterator[tuple[object, Any]]:
        """Give ``(id, string)`` after the meta template, for language models; ``.media`` holds the media beside it."""
        return self._each(self.string_of, on_error)

    def messages(self, *, on_error: OnError | None = None) -> Iterator[tuple[object, Any]]:
        """Give ``(id, messages)`` after the meta template, for API models; their media are named, not read."""
        return self._each(self.messages_of, on_error)

    def prompt_of(self, sample: Sample) -> Any:
        """Return the prompt of one sample before the meta template."""
        entry = self.entry_of(sample)
        if self.assembly is not None:
            return self.assembly.prompt(entry)
        return PromptList(_role_dict(m) for m in self._default(entry, sample))

    def string_of(self, sample: Sample) -> Any:
        """Return the string of one sample."""
        return self._through(self.prompt_of(sample), self._to_string)

    def messages_of(self, sample: Sample) -> Any:
        """Return the messages of one sample, under PPL a dict by label."""
        if self.assembly is None:
            return self._default(self.entry_of(sample), sample)
        return self._through(self.assembly.prompt(self.entry_of(sample)), self.meta_template.to_messages)

    def entry_of(self, sample: Sample) -> Entry:
        """Return a sample as templates see it.

        Raises:
            RowError: a column of ``input_columns`` is missing.
        """
        columns = sample.columns
        for column in self.input_columns:
            if column not in columns:
                raise RowError(f"no column '{column}', which input_columns lists", nearest(column, columns))
        cells = self.dataset is not None and self.dataset.format in {"csv", "tsv"}
        return Entry(columns, scanned=sample.scanned, tagged=self.tagged_columns, list_cells=cells)

    def place_of(self, sample: Sample, source: object) -> dict[str, Any]:
        """Return the column, and the offset in it, where a source of the sample stands; empty where it was composed."""
        return place_of(sample.columns, source, self.output_column)

    def _default(self, entry: Entry, sample: Sample) -> list[Message]:
        if sample.messages is not None:
            return list(sample.messages)
        return default_messages(entry, self.map_columns, self.output_column)

    def _to_string(self, prompt: Any, mode: str) -> Any:
        return self.meta_template.to_string(prompt, mode, media_placeholder=self.media_placeholder)

    def _through(self, prompt: Any, render: Callable[[Any, str], Any]) -> Any:
        if self.mode == "ppl":
            return {label: render(p, "ppl") for label, p in prompt.items()}
        return render(prompt, "gen")

    def _each(self, make: Callable[[Sample], Any], on_error: OnError | None) -> Iterator[tuple[object, Any]]:
        for row in self.samples():
            try:
                if isinstance(row, RowError):
                    raise row
                yield row.id, make(row)
            except MMPromptError as error:
                located = error if isinstance(row, RowError) else at(error, row)
                if on_error is None:
                    raise located from None
                on_error(located)


def at(error: MMPromptError, sample: Sample) -> MMPromptError:
    """Return the error with the origin of its sample."""
    return error.located(file=sample.file, line=sample.line, sample=sample.label)


def load_task(task: str | os.PathLike[str] | Mapping[str, Any], dataset: Any = None) -> Task:
    """Load a task from a YAML, TOML, JSON or Python file, or from a mapping.

    ``dataset`` takes the place of the task's own: a path, or a mapping with ``path`` or ``rows``. A relative path in
    a task file is relative to that file.

    Raises:
        TaskError: the file or mapping is no task; unknown keys come with the nearest known one.
        TemplateError: a template cannot be compiled.
        DatasetError: the dataset cannot be opened.
    """
    if isinstance(task, Mapping):
        config: Mapping[str, Any] = task
        base = ""
    else:
        path = os.fspath(task)
        config = read_task_file(path, _KEYS)
        base = os.path.dirname(path)
    own = config.get("dataset") if dataset is None else dataset
    return Task(config, _open_dataset(own, base if dataset is None else ""), base=base)


def dataset_task(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002  # the word users know
    map_columns: Mapping[str, str] | None = None,
) -> Task:
    """Return the task of a dataset without a task file: each row gives one user message, see ``default_messages``."""
    from mmprompt.datasets.read import open_dataset  # noqa: PLC0415  # opened on use

    return Task({}, open_dataset(os.fspath(path), format=format), map_columns=map_columns)


def _open_dataset(config: Any, base: str) -> Dataset | None:
    from mmprompt.datasets.read import open_dataset, rows_dataset  # noqa: PLC0415  # opened on use

    if config is None:
        return None
    if isinstance(config, (str, os.PathLike)):
        config = {"path": config}
    config = _mapping(config, "dataset")
    _check_keys(config, _DATASET_KEYS, "dataset")
    if "rows" in config:
        return rows_dataset(config["rows"])
    if "path" not in config:
        raise TaskError("the dataset names no path", "give 'path' or 'rows'")
    path = config["path"]
    if not isinstance(path, (str, os.PathLike)):
        raise TaskError(f"dataset.path is {type(path).__name__}", "give the name of a file")
    path = os.fspath(path)
    return open_dataset(path if path == "-" else os.path.join(base, path), format=config.get("format"))


def _role_dict(message: Message) -> dict[str, Any]:
    names = {"user": "HUMAN", "assistant": "BOT", "system": "SYSTEM"}
    parts = [_shown_part(p) for p in message.parts]
    prompt: Any = parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts
    return {"role": names.get(message.role, message.role), "prompt": prompt if parts else ""}


def _shown_part(part: Part) -> dict[str, Any]:
    if not isinstance(part, MediaPart):
        return part_dict(part, as_written(part.source) if isinstance(part, MediaRef) else None)
    from mmprompt.targets.openai import to_openai  # noqa: PLC0415  # only for chat rows that carry their media

    content: list[dict[str, Any]] = to_openai([Message("user", [part])], content="parts")[0]["content"]
    return content[0]


def _media_options(config: Mapping[str, Any], base: str) -> Mapping[str, Any]:
    media = _mapping(config.get("media") or {}, "media")
    for key in media:
        if key in _LATER:
            raise TaskError(f"media.{key} asks for a change of media", "this version passes media through unchanged")
    _check_keys(media, _MEDIA_KEYS, "media")
    roots = media.get("roots") or ()
    roots = [roots] if isinstance(roots, (str, os.PathLike)) else roots
    if not isinstance(roots, (list, tuple)) or not all(isinstance(root, (str, os.PathLike)) for root in roots):
        raise TaskError("media.roots is no list of folders", "give a folder, or a list of them")
    return {**media, "roots": [os.path.join(base, root) for root in roots]}


def _section(config: Mapping[str, Any], name: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    section = _mapping(config.get(name) or {}, name)
    _check_keys(section, known, name)
    return section


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TaskError(f"{name} is {type(value).__name__}", "give a mapping")
    return value


def _check_keys(mapping: Mapping[str, Any], known: tuple[str, ...], name: str) -> None:
    for key in mapping:
        if key not in known:
            raise TaskError(f"unknown key '{key}' in {name}", nearest(key, known))


def _name(value: Any, place: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TaskError(f"{place} is {type(value).__name__}", "give the name of one column")


def _names(value: Any, place: str) -> tuple[str, ...]:
    """Return column names given as a list, or as one string with blanks between them."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(value.split())
    names = list(value) if isinstance(value, Iterable) else [None]
    if not all(isinstance(name, str) for name in names):
        raise TaskError(f"{place} is no list of column names", "give a list, or names separated by blanks")
    return tuple([str(name) for name in names])
