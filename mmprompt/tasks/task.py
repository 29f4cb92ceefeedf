"""A task: a dataset, how its rows become prompts, and the model they are for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mmprompt.errors import MMPromptError, RowError, TaskError, nearest
from mmprompt.icl.assembly import Assembled, Assembly, Columns
from mmprompt.media.sources import RootedPath
from mmprompt.messages import Message
from mmprompt.meta_template.meta_template import MetaTemplate
from mmprompt.tasks.config import TaskConfig
from mmprompt.tasks.default_prompt import content_messages, default_messages
from mmprompt.tasks.locate import place_of
from mmprompt.tasks.notes import FirstRow, column_notes, example_notes, shown_answer_notes, unsent_notes
from mmprompt.tasks.prompt_items import CountTokens, images_in, role_item, shown_item
from mmprompt.templates.prompt_list import PromptList
from mmprompt.templates.sample_view import CONTENT, SampleView, held_by_content

if TYPE_CHECKING:
    from mmprompt.datasets.read import Dataset
    from mmprompt.datasets.sample import Sample

OnError = Callable[[MMPromptError], None]


class Task:
    """What a task file says, compiled; made by ``load_task``. Immutable.

    ``prompts``, ``strings`` and ``messages`` are lazy and run in constant memory. A row that cannot be rendered raises
    its error, which ends the iteration; with ``on_error`` the error is passed to it and the row is left out.
    """

    dataset: Dataset | None
    train: Dataset | None
    config: TaskConfig
    assembly: Assembly | None
    meta_template: MetaTemplate
    map_columns: Mapping[str, str]
    _tagged: frozenset[str] | None
    _plain: bool  # nothing shapes rows or asks for columns of them: they go out as default messages
    _count_tokens: CountTokens | None
    _own_notes: tuple[str, ...]
    _first: FirstRow  # for notes alone: what is made of a row never hangs on it

    def __init__(
        self,
        config: TaskConfig,
        dataset: Dataset | None,
        train: Dataset | None = None,
        *,
        map_columns: Mapping[str, str] | None = None,
        count_tokens: CountTokens | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        infer = config.infer_cfg
        meta = MetaTemplate(config.meta_template)
        tagged = None if config.tagged_columns is None else frozenset(config.tagged_columns)
        columns = Columns(config.input_columns, config.output_column, config.masked, tagged)
        vars(self).update(
            config=config,
            dataset=dataset,
            train=train,
            assembly=None if infer is None else Assembly(infer, columns, meta),
            meta_template=meta,
            map_columns=dict(map_columns or {}),
            _tagged=tagged,
            _plain=infer is None and config.meta_template is None and not config.input_columns and not map_columns,
            _count_tokens=count_tokens,
            _first=FirstRow(),
            _own_notes=tuple(notes),
        )
        if self.assembly is not None:
            self._bind(self.assembly)

    def _bind(self, assembly: Assembly) -> None:
        """Read the examples, and refuse what can be known to fail at each row.

        Raises:
            TaskError: no examples where they are asked for, or no tokenizer to keep ``max_seq_len``.
            RowError: an example that cannot be read.
        """
        if assembly.arguments.get("max_seq_len") is not None and self._count_tokens is None:
            raise TaskError("max_seq_len needs the model's tokenizer", "load_task(…, tokenizer=…), or leave it out")
        if not assembly.needs_examples or (self.train is None and self.dataset is None):
            return
        if self.train is None:
            name = type(assembly.retriever).__name__
            raise TaskError(f"{name} needs examples", "give dataset.train, their file (--train FILE), or train_rows")
        rows = []
        chosen = self.config.train_range
        for row in itertools.islice(self.train, chosen.start, chosen.stop, chosen.step):
            if isinstance(row, RowError):
                raise row
            rows.append(row)
        own = self.train.root if self.dataset is None or self.train.root != self.dataset.root else None
        assembly.over(rows, own)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: a task is immutable."""
        raise AttributeError(f"a task is immutable: '{name}' cannot be set")

    @property
    def output_column(self) -> str:
        """The column that goes out as ``answer``."""
        return self.config.output_column

    @property
    def media(self) -> Mapping[str, Any]:
        """What the task says of media: ``mode``, ``roots``, ``max_bytes``, ``fetch``, ``allow_domains``."""
        return self.config.media

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
            raise TaskError(
                "the task names no dataset",
                "give dataset: {path: FILE}, or --dataset FILE; in Python dataset= takes rows",
            )
        rows = self.config.test_range
        return itertools.islice(self.dataset, rows.start, rows.stop, rows.step)

    def notes(self) -> list[str]:
        """Return what the dataset's reader accepted and found worth a report, so far, and what cannot be rendered."""
        notes = [*self._own_notes, *(() if self.dataset is None else self.dataset.notes)]
        columns = self._first.columns
        if columns is not None:
            notes += column_notes(self.config, columns)
            unknown = () if self.assembly is None else dict.fromkeys(self.assembly.unknown_slots(columns))
            stays = "in a template names no column, so it stays as it is"
            notes += [f"{{{name}}} {stays}; {nearest(name, columns)}" for name in unknown]
        notes += self._first.unsent or ()
        if self.assembly is None or not self.assembly.needs_examples:
            notes += example_notes(self.config, self.train is not None)
        if self.assembly is not None and self.assembly.needs_replies:
            notes.append("infer_mode 'every' needs a model's replies: only turn 0 of each dialogue is rendered")
        return notes

    def prompts(self, *, on_error: OnError | None = None) -> Iterator[tuple[object, Any]]:
        """Give ``(id, prompt)`` before the meta template: a string or a PromptList, under PPL a dict by label.

        A dialogue under ``every_with_gt`` gives one for each turn, under ``last`` its last, under ``every`` its first.
        """
        return self._each(lambda sample: [self._shown(made.prompt) for made in self.assembled(sample)], on_error)

    def strings(self, *, on_error: OnError | None = None) -> Iterator[tuple[object, Any]]:
        """Give ``(id, string)`` after the meta template, for language models; ``.media`` holds the media beside it."""
        return self._each(lambda sample: [self.string_of(made) for made in self.assembled(sample)], on_error)

    def messages(self, *, on_error: OnError | None = None) -> Iterator[tuple[object, Any]]:
        """Give ``(id, messages)`` after the meta template, for API models; their media are named, not read."""
        return self._each(self._all_messages, on_error)

    def assembled(self, sample: Sample, *, max_images: int | None = None) -> list[Assembled]:
        """Return the prompts of one sample before the meta template, with how each came about.

        Examples are dropped, the last first, while a prompt is longer than ``max_seq_len`` or has more than
        ``max_images`` images.
        """
        entry = self.entry_of(sample)
        if self.assembly is None:
            return [Assembled(PromptList(role_item(m) for m in self._default(entry, sample)))]
        self._look_at(sample)
        limit = self.assembly.arguments.get("max_seq_len")
        bounded = limit is not None or max_images is not None
        fits = (lambda prompt: self._fits(prompt, limit, max_images)) if bounded else None
        return self.assembly.assemble(entry, sample, sample.row, fits)

    def string_of(self, made: Assembled) -> Any:
        """Return the string of an assembled prompt, under PPL a dict by label."""
        return self._through(made.prompt, self._to_string)

    def messages_of(self, made: Assembled) -> Any:
        """Return the messages of an assembled prompt, under PPL a dict by label."""
        return self._through(made.prompt, self.meta_template.to_messages)

    def plain_messages(self, sample: Sample) -> list[Message] | None:
        """Return the messages of a sample that no template shapes, None where one does."""
        if self._plain:
            content = sample.columns.get(CONTENT)
            if type(content) is str and sample.messages is None:
                messages = content_messages(content, scanned=sample.scanned)
                if self._first.unsent is None:
                    self._look_at(sample, messages)
                return messages
        elif self.assembly is not None or self.meta_template.meta is not None:
            return None
        return self._default(self.entry_of(sample), sample)

    def _all_messages(self, sample: Sample) -> list[Any]:
        plain = self.plain_messages(sample)
        return [plain] if plain is not None else [self.messages_of(made) for made in self.assembled(sample)]

    def _fits(self, prompt: Any, max_tokens: int | None, max_images: int | None) -> bool:
        if max_images is not None and images_in(prompt) > max_images:
            return False
        if max_tokens is None or self._count_tokens is None:
            return True
        return (
            self._count_tokens(str(prompt if images_in(prompt) else self._to_string(prompt, self.mode))) <= max_tokens
        )

    def entry_of(self, sample: Sample) -> SampleView:
        """Return a sample as templates see it.

        Raises:
            RowError: a column of ``input_columns`` is missing, and is no name for what ``content`` holds.
        """
        columns = sample.columns
        for column in self.config.input_columns:
            if column not in columns and not held_by_content(column, columns):
                raise RowError(f"no column '{column}', which input_columns lists", nearest(column, columns))
        cells = self.dataset is not None and self.dataset.format in {"csv", "tsv"}
        return SampleView(columns, scanned=sample.scanned, tagged=self._tagged, list_cells=cells)

    def place_of(self, sample: Sample, source: object) -> dict[str, Any]:
        """Return the column, and the offset in it, where a source of the sample stands; empty where it was composed."""
        if type(source) is RootedPath:
            return {}  # that of an example
        return place_of(sample.columns, source, self.output_column)

    def _default(self, entry: SampleView, sample: Sample) -> list[Message]:
        if sample.messages is not None:
            messages = list(sample.messages)
        else:
            messages = default_messages(entry, self.map_columns, self.output_column)
        self._look_at(sample, messages)
        return messages

    def _look_at(self, sample: Sample, messages: list[Message] | None = None) -> None:
        """Keep what notes are due for the first sample; ``messages`` are its default ones."""
        first = self._first
        if first.columns is None:
            first.columns = tuple(sample.columns)
        if messages is not None and first.unsent is None:
            entry = self.entry_of(sample)
            chat = sample.messages is not None
            first.unsent = unsent_notes(entry, messages, self.map_columns, self.output_column, chat=chat)
            if chat and self.meta_template.meta is None:
                first.unsent += shown_answer_notes(messages, self.output_column)

    def _to_string(self, prompt: Any, mode: str) -> Any:
        return self.meta_template.to_string(prompt, mode, media_placeholder=self.config.media_placeholder)

    def _shown(self, prompt: Any) -> Any:
        """Return a prompt as plain data: that of a chat row may hold media that came with their bytes."""
        return prompt if self.assembly is not None else PromptList(map(shown_item, prompt))

    def _through(self, prompt: Any, render: Callable[[Any, str], Any]) -> Any:
        if self.mode == "ppl":
            return {label: render(p, "ppl") for label, p in prompt.items()}
        return render(prompt, "gen")

    def _each(self, make: Callable[[Sample], list[Any]], on_error: OnError | None) -> Iterator[tuple[object, Any]]:
        for row in self.samples():
            try:
                if isinstance(row, RowError):
                    raise row
                made = make(row)
            except MMPromptError as error:
                located = error if isinstance(row, RowError) else at(error, row)
                if on_error is None:
                    raise located from None
                on_error(located)
            else:
                yield from ((row.id, one) for one in made)


def at(error: MMPromptError, sample: Sample) -> MMPromptError:
    """Return the error with the origin of its sample."""
    return error.located(file=sample.file, line=sample.line, sample=sample.label)
