"""A task: a dataset, how its rows become prompts, and the model they are for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, Union

from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import MMPromptError, RowError, TaskError
from mmprompt.errors.findings import Note
from mmprompt.icl.slot_rules import Columns
from mmprompt.media.sources import RootedPath
from mmprompt.messages import Message
from mmprompt.tasks.config import MediaSection, TaskConfig
from mmprompt.tasks.default_prompt import content_messages, default_messages
from mmprompt.tasks.examples import CountTokens, compiled_assembly, length_check
from mmprompt.tasks.locate import Place, place_of
from mmprompt.tasks.media_slots import SlotTally, with_media_slots
from mmprompt.tasks.notes import RowNotes, prompt_notes
from mmprompt.templates.sample_view import CONTENT, SampleView

if TYPE_CHECKING:
    from mmprompt.datasets.read import Dataset
    from mmprompt.icl.assembly import Assembled, Assembly, Prompt
    from mmprompt.media.changes import Changes
    from mmprompt.media.policy import MediaPolicy
    from mmprompt.meta_template.meta_template import MetaTemplate
    from mmprompt.meta_template.text import RenderedString
    from mmprompt.render.request import Request

_T = TypeVar("_T")
OnError = Callable[[MMPromptError], None]
Prompts = Union["Prompt", dict[object, "Prompt"]]
Strings = Union["RenderedString", dict[object, "RenderedString"]]
Messages = Union[list[Message], dict[object, list[Message]]]
"""What one request of a row holds; for a task that compares labels a dict by label"""


class Task:
    """A compiled task, made by ``load_task``. Immutable.

    ``prompts``, ``strings`` and ``messages`` are lazy and run in constant memory. A row that cannot be rendered raises
    its error; with ``on_error`` the error is passed to it and the row is left out.
    """

    dataset: Dataset | None
    train: Dataset | None
    config: TaskConfig
    assembly: Assembly | None
    map_columns: Mapping[str, str]
    policy: MediaPolicy | None
    _columns: Columns
    _plain: bool  # no template, meta template or columns: rows are sent as default messages
    _list_cells: bool  # a cell may be a list written as text
    _count_tokens: CountTokens | None
    _own_notes: tuple[Note, ...]
    row_notes: RowNotes  # for notes only: no prompt depends on it
    tally: SlotTally | None = None  # of a shard

    def __init__(
        self,
        config: TaskConfig,
        dataset: Dataset | None,
        train: Dataset | None = None,
        *,
        map_columns: Mapping[str, str] | None = None,
        count_tokens: CountTokens | None = None,
        policy: MediaPolicy | None = None,
        notes: Sequence[Note] = (),
    ) -> None:
        cells = dataset is not None and dataset.format in {"csv", "tsv"}
        templated = config.infer_cfg is not None or config.meta_template is not None
        vars(self)["config"] = config
        assembly = compiled_assembly(self, dataset, train, count_tokens, list_cells=cells) if templated else None
        vars(self).update(
            dataset=dataset,
            train=train,
            assembly=assembly,
            map_columns=dict(map_columns or {}),
            _columns=config.columns,
            _plain=not (templated or config.input_columns or map_columns),
            _list_cells=cells,
            _count_tokens=count_tokens,
            policy=policy,
            _own_notes=tuple(notes),
            row_notes=RowNotes(config, assembly, map_columns or {}, list_cells=cells),
        )

    def __repr__(self) -> str:
        """Show the dataset, or None."""
        return f"Task({self.dataset!r})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a task is immutable: '{name}' cannot be set")

    @cached_property
    def meta_template(self) -> MetaTemplate:
        """The compiled meta template; one that adds nothing if the task names none."""
        from mmprompt.meta_template.meta_template import MetaTemplate  # noqa: PLC0415  # 3 ms, and many tasks name none

        return MetaTemplate(self.config.meta_template)

    @property
    def output_column(self) -> str:
        """The column that goes out as ``answer``."""
        return self.config.output_column

    @property
    def media(self) -> MediaSection:
        """The checked section ``media``: ``mode``, ``roots``, ``max_bytes``, ``fetch``, ``allow_domains``."""
        return self.config.media

    @property
    def mode(self) -> str:
        """``"gen"`` or ``"ppl"``."""
        return "gen" if self.assembly is None else self.assembly.mode

    def require_one_reply(self, who: str) -> None:
        """Refuse a task that needs more than one reply for a sample; ``who`` asks once, and is named in the error.

        Raises:
            TaskError: the task compares labels, or later turns need the replies to earlier ones.
        """
        if self.mode == "ppl" or (self.assembly is not None and self.assembly.needs_replies):
            hint = "use GenInferencer, or infer_mode last or every_with_gt"
            raise TaskError(f"{who} asks once for each sample, but the task needs more than one reply", hint)

    def samples(self) -> Iterator[Row]:
        """Give the rows of the dataset: samples, and errors of rows that cannot be read.

        Raises:
            TaskError: the task names no dataset.
            DatasetError: the dataset cannot be read.
        """
        if self.dataset is None:
            hint = "give dataset: {path: FILE}, or --dataset FILE; in Python dataset= takes rows"
            raise TaskError("the task names no dataset", hint)
        chosen = self.row_notes.observed(self.dataset.chosen(self.config.test_range))
        return with_media_slots(chosen, *self.slots, self.tally) if self.slots[0] else chosen

    @property
    def slots(self) -> tuple[Collection[str], str]:
        """The media columns that some row must have, and what names them, for messages."""
        return (self.map_columns, "--map") if self.assembly is None else (self.assembly.media_slots, "a media slot")

    def notes(self, *, replied: bool = False) -> list[Note]:
        """Return notes on the rows read so far: what is accepted but odd, and what no request sends.

        ``replied`` says that a model replied, so that the later turns of dialogues were asked too.
        """
        notes = [*self._own_notes, *(() if self.dataset is None else self.dataset.notes), *self.row_notes.texts()]
        return [*notes, *prompt_notes(self.config, self.assembly, self.train is not None, replied=replied)]

    def requests(
        self,
        target: str = "vllm",
        *,
        media: str | None = None,
        policy: MediaPolicy | None = None,
        changes: Mapping[str, object] | Changes | None = None,
        workers: int = 1,
        on_error: OnError | None = None,
    ) -> Iterator[Request]:
        """Yield a ``Request`` for each row, or for each of its turns or labels: the whole path, ready to be sent.

        The stream is lazy, in order, and runs in constant memory:

            for request in load_task("task.yaml").requests():
                reply = client.chat.completions.create(model="qwen", **request)

        Args:
            target: ``"vllm"`` (any OpenAI-compatible server), ``"openai"``, ``"anthropic"``, ``"gemini"``, ``"hf"`` or
                a target of your own.
            media: how media are sent: ``"inline"``, ``"file"``, ``"url"`` or ``"keep"``; by default the task's
                ``media.mode``, else ``"inline"``.
            policy: which media may be read; by default those below the dataset's folder, as the task says.
            changes: changes of media, named as in the task's ``media`` section and laid over it. None keeps the task's
                own; a ``Changes`` replaces all of them.
            workers: threads that decode media, each with one decoding process. Rows whose media are only passed on are
                prepared in one thread.
            on_error: receives the error of a row that cannot be sent, and the row is left out; without it the error
                is raised.

        Raises:
            TargetError: the target is unknown.
            TaskError: a change is unknown, or the task names no dataset.
            MMPromptError: without ``on_error``, the first row that cannot be sent, with its place.
        """
        from mmprompt.render.request import task_requests  # noqa: PLC0415  # an import against the order

        return task_requests(
            self, target, media=media, policy=policy, changes=changes, workers=workers, on_error=on_error
        )

    def _repr_html_(self) -> str:
        """Return the first rows for a notebook."""
        from mmprompt.viewer.notebook import task_html  # noqa: PLC0415  # an import against the order

        return task_html(self)

    def prompts(self, *, on_error: OnError | None = None) -> Iterator[tuple[object, Prompts]]:
        """Give ``(id, prompt)`` before the meta template: a string or a PromptList, under PPL a dict by label.

        A dialogue under ``every_with_gt`` gives one for each turn, under ``last`` its last, under ``every`` its first.
        """
        if self.assembly is not None:
            return self._each(lambda sample: [made.prompt for made in self.assembled(sample)], on_error)
        from mmprompt.tasks.prompt_items import shown_prompt  # noqa: PLC0415  # loads with the first prompt

        return self._each(lambda sample: [shown_prompt(self._default(sample))], on_error)

    def strings(self, *, on_error: OnError | None = None) -> Iterator[tuple[object, Strings]]:
        """Give ``(id, string)`` after the meta template, for language models; ``.media`` holds the media beside it."""
        return self._each(lambda sample: [self.string_of(made) for made in self.assembled(sample)], on_error)

    def messages(self, *, on_error: OnError | None = None) -> Iterator[tuple[object, Messages]]:
        """Give ``(id, messages)`` after the meta template, for API models; their media are named, not read."""
        from mmprompt.tasks.forms import MessageForms, has_forms  # noqa: PLC0415  # loads with the first messages

        usable = self.assembly is not None and has_forms(self.assembly)  # without a template little is to be made
        return self._each(MessageForms(self._all_messages, usable=usable).of, on_error)

    def assembled(
        self, sample: Sample, *, max_images: int | None = None, replies: Sequence[str] = ()
    ) -> list[Assembled]:
        """Return the prompts of one sample before the meta template, each with its turn and examples.

        Examples are dropped, the last first, while a prompt is longer than ``max_seq_len`` or has more than
        ``max_images`` images. With ``replies`` it is the turn of a dialogue that comes after them, if there is one.
        """
        if self.assembly is None:
            from mmprompt.icl.assembly import Assembled  # noqa: PLC0415  # loads with the first prompt
            from mmprompt.tasks.prompt_items import default_prompt  # noqa: PLC0415  # loads with the first prompt

            return [Assembled(default_prompt(self._default(sample)))]
        most, mode = self.assembly.arguments.get("max_seq_len"), self.assembly.mode
        fits = None
        if (most is not None or max_images is not None) and self.assembly.needs_examples:
            fits = length_check(most, max_images, self._count_tokens, lambda prompt: self._to_string(prompt, mode))
        return self.assembly.assemble(sample, fits, replies)

    def string_of(self, made: Assembled) -> Strings:
        """Return the string of an assembled prompt, under PPL a dict by label."""
        return _each_label(made, self._to_string)

    def messages_of(self, made: Assembled) -> Messages:
        """Return the messages of an assembled prompt, under PPL a dict by label."""
        return _each_label(made, self.meta_template.to_messages)

    def plain_messages(self, sample: Sample) -> list[Message]:
        """Return the messages of a sample of a task without a template, after the meta template."""
        if self._plain and sample.messages is None:
            content = sample.columns.get(CONTENT)
            if type(content) is str:
                return content_messages(content, scanned=sample.scanned)
        messages = self._default(sample)
        return messages if self.config.meta_template is None else self.meta_template.merge_messages(messages)

    def place_of(self, sample: Sample, source: object) -> Place:
        """Return the column, and the offset in it, that name a source of the sample; empty if the task composed it."""
        return {} if type(source) is RootedPath else place_of(sample.columns, source, self.output_column)

    def _all_messages(self, sample: Sample) -> list[Messages]:
        if self.assembly is None:
            return [self.plain_messages(sample)]
        return [self.messages_of(made) for made in self.assembled(sample)]

    def _default(self, sample: Sample) -> list[Message]:
        self._columns.check_input(sample.columns)
        if sample.messages is not None:
            return list(sample.messages)
        tagged, cells = self._columns.tagged, self._list_cells
        entry = SampleView(sample.columns, scanned=sample.scanned, tagged=tagged, list_cells=cells)
        return default_messages(entry, self.map_columns, self.output_column)

    def _to_string(self, prompt: Prompt, mode: str) -> RenderedString:
        kept = self.config.media_placeholder
        return self.meta_template.to_string(prompt, mode, media_placeholder=kept)  # type: ignore[no-any-return]  # text

    def _each(self, make: Callable[[Sample], list[_T]], on_error: OnError | None) -> Iterator[tuple[object, _T]]:
        for row in self.samples():
            try:
                if isinstance(row, RowError):
                    raise row
                made = make(row)
            except MMPromptError as error:
                located = error if isinstance(row, RowError) else row.located(error)
                if on_error is None:
                    raise located from None
                on_error(located)
            else:
                yield from ((row.id, one) for one in made)


def _each_label(made: Assembled, render: Callable[[Prompt, str], _T]) -> _T | dict[object, _T]:
    """Return an assembled prompt rendered, under PPL the prompt of each label."""
    if isinstance(made.prompt, dict):
        return {label: render(prompt, "ppl") for label, prompt in made.prompt.items()}
    return render(made.prompt, "gen")
