"""The prompt of one row of an lm-eval task: its ``doc_to_…`` templates, filled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.datasets.media_columns import media_of_cell
from mmprompt.datasets.placeholders import MediaQueue, holds_mark
from mmprompt.datasets.sample import Sample
from mmprompt.errors import MMPromptError, RowError, TaskError, nearest, shown
from mmprompt.errors.findings import Note
from mmprompt.messages import TextPart
from mmprompt.tasks.config import Section
from mmprompt.tasks.section_values import ConfigValue
from mmprompt.tasks.yaml_text import FunctionName
from mmprompt.templates.jinja_text import JinjaText

BEGIN, TURN, PREFIX, ANSWER, CHOICES = "begin", "turn", "prefix", "answer", "choices"
"""The columns of a row that is sent: the system message, the question, and what the answer begins with."""

_NAME = re.compile(r"[^\W\d]\w*")
_MEDIA = {"doc_to_image": "image", "doc_to_visual": "image", "doc_to_audio": "audio"}
_MOST_MEDIA = 100
_NEED_COLUMN = ("doc_to_text", "doc_to_target", "doc_to_choice", *_MEDIA)


class Field(NamedTuple):
    """A ``doc_to_…``: a value (``constant``), or a text that is the name of a column or else Jinja."""

    key: str
    constant: ConfigValue
    text: JinjaText | None
    source: str = ""

    @classmethod
    def of(cls, key: str, value: ConfigValue) -> Field:
        """Return a compiled field.

        Raises:
            TaskError: the text is not valid Jinja.
        """
        if not isinstance(value, str):
            return cls(key, value, None)
        try:
            return cls(key, None, JinjaText(value, as_columns=True), value)
        except MMPromptError as error:
            raise TaskError(f"{key}: {error.what}", error.hint).located(setting=key) from None

    def fill(self, row: Sample) -> tuple[object, bool]:
        """Return the value for a row, and whether it is a column's own.

        Raises:
            RowError: a name that no column has.
            TemplateError: the Jinja text fails.
        """
        columns = row.columns
        if self.text is None:
            return self.constant, False
        if self.source in columns:
            return columns[self.source], True
        if self.key in _NEED_COLUMN and _NAME.fullmatch(self.source):
            raise RowError(f"{self.key}: no column '{self.source}'", nearest(self.source, columns), code="MM006")
        try:
            return self.text.fill(columns), False
        except MMPromptError as error:
            missing = "is undefined" in error.what
            hint = "give the rows this column, or test it with {% if NAME is defined %}" if missing else error.hint
            raise type(error)(f"{self.key}: {error.what}", hint, error.where, error.code) from None


class DocPrompts(NamedTuple):
    """The fields of a task. ``compares`` says that the choices are compared, so that each is an answer."""

    question: Field
    target: Field | None
    choices: Field | None
    description: Field | None
    prefix: Field | None
    media: tuple[tuple[str, Field], ...]
    compares: bool
    is_example: bool = False

    @classmethod
    def of(cls, keys: Section, *, compares: bool, example: bool = False) -> DocPrompts:
        """Return the compiled fields of a task's keys; an ``example`` ends with its answer, and has no media.

        Raises:
            TaskError: a text is not valid Jinja, or there are no choices to compare.
        """
        fields = {key: Field.of(key, value) for key in _FIELDS if (value := keys.get(key)) is not None and value != ""}
        sources: list[tuple[str, Field]] = []
        for key, modality in () if example else _MEDIA.items():
            named = keys.get(key)
            names = named if isinstance(named, (list, tuple)) else [named] if named else ()
            if len(names) > _MOST_MEDIA:
                what = f"{key} names {len(names)} columns"
                raise TaskError(what, f"name at most {_MOST_MEDIA}").located(setting=key)
            sources += [(modality, Field.of(key, name)) for name in names]
        question = fields.get("doc_to_text") or Field("doc_to_text", "", None)
        if isinstance(question.constant, int):
            what = "doc_to_text is a number: each choice is a question of its own, which is not supported"
            raise TaskError(what, "write doc_to_text as a text").located(setting="doc_to_text")
        if keys.get("output_type") == "multiple_choice" and "doc_to_choice" not in fields:
            raise TaskError("multiple_choice without doc_to_choice", "write doc_to_choice").located(
                setting="output_type"
            )
        target, choices = fields.get("doc_to_target"), fields.get("doc_to_choice")
        begin, prefix = fields.get("description"), fields.get("gen_prefix")
        return cls(question, target, choices, begin, prefix, tuple(sources), compares, example)

    def shape(self, row: Sample) -> Sample:
        """Return the row with its prompt."""
        choices = self._choices(row)
        made: dict[str, object] = {
            BEGIN: self._begin(row),
            TURN: [{"role": "user", "content": self._content(row, bool(choices))}],
            PREFIX: self._prefix(row),
        }
        if self.target is not None:
            made[ANSWER] = _answer(self.target, row, choices)
        if choices:
            made[CHOICES] = choices
        if self.is_example:
            made = {TURN: [*made[TURN], *_reply(made)]}  # type: ignore[misc]  # a list
        return row._replace(columns=made, scanned=False, messages=None, sent=frozenset())

    def _begin(self, row: Sample) -> list[dict[str, str]]:
        text = "" if self.description is None else str(self.description.fill(row)[0])
        return [{"role": "system", "content": text}] if text else []

    def _content(self, row: Sample, has_choices: bool) -> str | list[object]:
        """Return the question: a text, or with media a list of parts, in the place of their marks."""
        value, own = self.question.fill(row)
        if value is None or isinstance(value, (list, dict)):
            what = f"doc_to_text is {'null' if value is None else type(value).__name__}"
            raise RowError(what, "give the column a text").located(column=self.question.source)
        text = str(value)
        if has_choices and text.isdigit() and not (own and isinstance(value, str)):
            what = "doc_to_text gives a number: each choice is a question of its own, which is not supported"
            raise RowError(what, "write doc_to_text as a text").located(column=self.question.source)
        if not self.media:
            return text
        media: dict[str, list[object]] = {modality: [] for modality, _ in self.media}
        for modality, field in self.media:
            media[modality] += _sources(field, row)
        queue = MediaQueue(media)
        parts = queue.place(text) if holds_mark(text) else [TextPart(text)]
        if holds_mark(text):
            queue.close()
        return [*queue.unplaced(), *[part for part in parts if part != TextPart("")]]

    def _prefix(self, row: Sample) -> str:
        text = "" if self.prefix is None else str(self.prefix.fill(row)[0])
        return f"{text} " if self.compares and text and not text[-1].isspace() else text

    def _choices(self, row: Sample) -> list[str]:
        if self.choices is None:
            return []
        value, _ = self.choices.fill(row)
        found = list(value.values()) if isinstance(value, Mapping) else list_of_cell(value, cells=True)
        if not found or found == [value]:
            raise RowError(f"doc_to_choice gives {shown(value)}", "give a list of choices").located(
                column=self.choices.source
            )
        return [str(choice) for choice in found]


def _reply(made: Mapping[str, object]) -> list[dict[str, str]]:
    """Return the message with the answer of an example: of several, the first; none for an empty one."""
    answer = made.get(ANSWER, "")
    shown = answer[0] if isinstance(answer, list) and answer else answer
    return [] if shown in ("", None) else [{"role": "assistant", "content": f"{made[PREFIX]}{shown}"}]


def _answer(target: Field, row: Sample, choices: list[str]) -> object:
    """Return the answer: with choices the text of the right one, or a list of such."""
    value, own = target.fill(row)
    if isinstance(value, str) and not own:
        if value.isdigit() and choices:
            value = int(value)
        elif value[:1] == "[" and value[-1:] == "]":
            value = _list(value)
    if not choices:
        return value
    return [_chosen(v, choices) for v in value] if isinstance(value, list) else _chosen(value, choices)


_FIELDS = ("doc_to_text", "doc_to_target", "doc_to_choice", "description", "gen_prefix")


def _chosen(value: object, choices: list[str]) -> object:
    """Return the choice that an index names; a text is itself."""
    if not isinstance(value, int):
        return value
    if not -len(choices) <= value < len(choices):
        raise RowError(
            f"doc_to_target is {value}, and the row has {len(choices)} choices", "give an index from 0", code="MM702"
        )
    return choices[value]


def _list(text: str) -> object:
    found = list_of_cell(text, cells=True)
    return text if found == [text] else found


def _sources(field: Field, row: Sample) -> list[object]:
    """Return the media that a field names: those of a column, or of a list that Jinja gives."""
    value, own = field.fill(row)
    return media_of_cell(value, cells=not own)


_OVERRIDES = ("doc_to_text", "doc_to_target", "doc_to_choice", "gen_prefix")
_UNUSED = ("fewshot_indices", "target_delimiter", "fewshot_delimiter")
_KNOWN = ("sampler", "split", "samples", "process_docs", *_OVERRIDES, *_UNUSED)
_MOST_EXAMPLES = 10_000
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
    if not isinstance(count, int) or not 0 <= count <= _MOST_EXAMPLES:
        hint = f"give a whole number from 0 to {_MOST_EXAMPLES}"
        raise TaskError(f"num_fewshot is {shown(count)}", hint).located(setting="num_fewshot")
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
