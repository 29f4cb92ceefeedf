"""An ``infer_cfg``, compiled: the template that makes the prompts of a sample, and its in-context examples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Union

from mmprompt.datasets.sample import Sample
from mmprompt.errors import MMPromptError, TaskError, nearest
from mmprompt.icl.dialogues import chat_prompts, check_mode, one_turn, turn_prompts
from mmprompt.icl.example_media import rooted_items
from mmprompt.icl.retrievers import BoundRetriever, ZeroRetriever, join_examples
from mmprompt.icl.slot_rules import Columns, SlotRules, label_views
from mmprompt.icl.types import CHAT, Template, build_retriever, build_template, inferencer_of
from mmprompt.meta_template.meta_template import MetaTemplate
from mmprompt.templates.multiturn import MultiTurnPromptTemplate
from mmprompt.templates.prompt_list import PromptItem, PromptList, copy_of
from mmprompt.templates.raw import RawPromptTemplate
from mmprompt.templates.raw_messages import RawMessages
from mmprompt.templates.role_text import Examples
from mmprompt.templates.sample_view import CONTENT, SampleView

_KEYS = ("ice_template", "prompt_template", "retriever", "inferencer")
_KEPT_EXAMPLES = 4096
_KEPT_JOINED = 64
_OF_TURNS = ("MultiTurnGenInferencer", CHAT)
_MEDIA_SLOTS = ("image", "audio", "video", "mm_url")

Prompt = Union[str, PromptList, RawMessages]
Fits = Callable[[Prompt], bool]


class Assembled(NamedTuple):
    """A prompt of a sample (under PPL, one for each label) and its examples.

    ``turn`` is the number of a turn in a dialogue. ``example_ids`` are the rows shown as examples. ``dropped`` is the
    number of examples that were left out because the prompt was too long.
    """

    prompt: Prompt | dict[object, Prompt]
    turn: int | None = None
    example_ids: tuple[int, ...] = ()
    dropped: int = 0


class Assembly:
    """Makes the prompts of a task's samples. ``over`` binds the index set.

    Without ``prompt_template``, ``ice_template`` serves as both. ``mode`` is ``"gen"`` or ``"ppl"``.
    With ``list_cells`` a cell may be a list written as text.

    Raises:
        TaskError: an unknown key, type or argument, no template, or types that do not go together.
        TemplateError: a template that cannot be compiled.
    """

    def __init__(
        self, infer_cfg: Mapping[str, Any], columns: Columns, meta_template: MetaTemplate, *, list_cells: bool = False
    ) -> None:
        for key in infer_cfg:
            if key not in _KEYS:
                raise TaskError(f"unknown key '{key}' in infer_cfg", nearest(key, _KEYS))
        self._columns = columns
        self._list_cells = list_cells
        self._meta = meta_template
        self._ice_template = build_template(infer_cfg.get("ice_template"), "infer_cfg.ice_template")
        template = build_template(infer_cfg.get("prompt_template"), "infer_cfg.prompt_template") or self._ice_template
        if template is None:
            raise TaskError("infer_cfg has neither prompt_template nor ice_template", "give one of them")
        self._template = template
        self._rules = SlotRules(template, columns, masks=True)
        self.retriever = build_retriever(infer_cfg.get("retriever"), "infer_cfg.retriever")
        self.inferencer, self.arguments = inferencer_of(infer_cfg.get("inferencer"), "infer_cfg.inferencer")
        self.mode = "ppl" if self.inferencer == "PPLInferencer" else "gen"
        self._labels: tuple[object, ...] = tuple(self.arguments.get("labels") or template.labels)
        self._check_together()
        self._infer_mode = check_mode(self.arguments.get("infer_mode", "last" if self.inferencer == CHAT else "every"))
        self._bound: BoundRetriever | None = None
        self._root: str | None = None
        self._examples: dict[int, Prompt] = {}
        self._kept: dict[tuple[int, ...], list[PromptItem] | str] = {}

    def _check_together(self) -> None:
        """Raise a TaskError if the template, the inferencer and the retriever do not go together."""
        if self.inferencer == "PPLInferencer":
            if not self._labels and "labels_column" not in self.arguments:
                hint = "map each label to its template, or give the inferencer 'labels' or 'labels_column'"
                raise TaskError("PPLInferencer needs labels, and the template has none", hint)
            if len(set(map(str, self._labels))) < len(set(self._labels)):
                alike = ", ".join(map(repr, self._labels))
                raise TaskError(f"several labels have the same text: {alike}", "give each label its own text")
        elif self._template.labels:
            hint = "use PPLInferencer, or a template of begin, round and end"
            raise TaskError(f"{self.inferencer} cannot use a template of labels", hint)
        if isinstance(self._template, MultiTurnPromptTemplate) != (self.inferencer in _OF_TURNS):
            what = f"{type(self._template).__name__} does not go with {self.inferencer}"
            raise TaskError(what, "use MultiTurnPromptTemplate with MultiTurnGenInferencer")
        if self.needs_examples and self._ice_template is None:
            what = f"{type(self.retriever).__name__} needs ice_template"
            raise TaskError(what, "give the template of the examples")

    @property
    def template(self) -> Template:
        """The template of the prompts."""
        return self._template

    def unknown_slots(self, columns: Collection[str]) -> dict[str, str]:
        """Return the names in braces that are not columns of a sample, each with what happens to it.

        A slot that ``reader_cfg`` names, or whose absence is an error of the row, is not among them.
        """
        templates = dict.fromkeys(t for t in (self._template, self._ice_template) if t is not None)
        media = [name for template in templates for name in template.media_slots]
        known = {*columns, *_MEDIA_SLOTS, *media, *(("question",) if CONTENT in columns else ())}
        texts = {name for template in templates for name in template.text_slots}
        names = [name for template in templates for name in template.slot_names if name not in known]
        hides = self.mode == "gen"
        fates = {name: self._columns.fate(name, in_text=name in texts, hides=hides) for name in names}
        return {name: fate for name, fate in fates.items() if fate}

    @property
    def media_slots(self) -> tuple[str, ...]:
        """The names in braces of media, where each has to name a column of some row; empty in a runner's config."""
        return self._template.media_slots if self._columns.strict else ()

    @property
    def labels(self) -> tuple[object, ...]:
        """The labels that ``PPLInferencer`` compares. Other inferencers have none."""
        return self._labels if self.mode == "ppl" else ()

    @property
    def needs_examples(self) -> bool:
        """Whether the retriever needs an index set."""
        return not isinstance(self.retriever, ZeroRetriever)

    @property
    def same_examples(self) -> bool:
        """Whether all samples get the same examples, or none."""
        return not self.needs_examples if self._bound is None else self._bound.always is not None

    @property
    def needs_replies(self) -> bool:
        """Whether later turns need the model's replies, so that only the first can be rendered without a model."""
        return self.inferencer in _OF_TURNS and self._infer_mode == "every"

    def over(self, index_rows: Sequence[Sample], root: str | None) -> None:
        """Bind the index set. ``root`` is the folder of its media, or None if it is that of the test set.

        Raises:
            TaskError: ids outside the index set, or more examples than it has rows.
        """
        self._root = root
        self._bound = self.retriever.bind(
            index_rows,
            input_columns=self._columns.input,
            output_column=self._columns.output,
            tagged_columns=self._columns.tagged,
        )

    @property
    def infer_mode(self) -> str:
        """How the turns of a dialogue are asked, such as ``"every"``; empty for tasks without turns."""
        return self._infer_mode if self.inferencer in _OF_TURNS else ""

    def assemble(self, sample: Sample, fits: Fits | None = None, replies: Sequence[str] = ()) -> list[Assembled]:
        """Return the prompts of a sample: one, or one for each turn that needs no reply.

        As long as a prompt does not fit, the last example is dropped. Without examples it may stay too long. With
        ``replies``, the model's words in the first turns, the prompt is that of the turn after them, if there is one.

        Raises:
            RowError: the row lacks a column of ``input_columns``.
            TemplateError: a slot has no value in the row.
        """
        entry = self._view(sample)
        ids = self._ids(sample)
        kept = len(ids)
        while True:
            ice = self._joined(ids[:kept])
            made = self._made(entry, ice, replies)
            if not kept or fits is None or all(fits(p) for _, prompt in made for p in _each(prompt)):
                break
            kept -= 1
        return [Assembled(prompt, turn, ids[:kept], len(ids) - kept) for turn, prompt in made]

    def with_examples(self, sample: Sample, ids: tuple[int, ...], change: Callable[[str], str]) -> list[Assembled]:
        """Return the prompts of a sample with these examples, in whose texts ``change`` replaces each text.

        Raises:
            MMPromptError: as ``assemble``.
        """
        ice = self._joined(ids)
        changed = change(ice) if isinstance(ice, str) else ice and PromptList(ice).with_texts(change)
        return [Assembled(prompt, turn, ids) for turn, prompt in self._made(self._view(sample), changed, ())]

    def _view(self, sample: Sample) -> SampleView:
        """Return a sample as the template sees it."""
        self._columns.check_input(sample.columns)
        columns = self._rules.completed(sample.columns)
        return SampleView(columns, scanned=sample.scanned, tagged=self._columns.tagged, list_cells=self._list_cells)

    def _made(
        self, entry: SampleView, ice: Examples, replies: Sequence[str]
    ) -> list[tuple[int | None, Prompt | dict[object, Prompt]]]:
        masked = self._columns.masked
        if isinstance(self._template, RawPromptTemplate):
            self._template.check_examples(ice)
        if self.inferencer == CHAT:
            if (chat := chat_prompts(entry, self._columns.input, self._infer_mode, replies)) is not None:
                return list(chat)
            entry = one_turn(entry, (*self._columns.input, self._columns.output))
        if isinstance(self._template, MultiTurnPromptTemplate):
            return list(turn_prompts(self._template, entry, self._infer_mode, self._meta, masked, ice, replies))
        if self.mode == "gen":
            return [(None, self._template.generate_item(entry, masked, ice))]
        own = partial(copy_of, ice) if isinstance(ice, list) else lambda: ice
        views = label_views(entry, self._labels, self.arguments.get("labels_column"), self._columns.output)
        make = self._template.generate_label_prompt_item
        return [(None, {label: make(view, own(), label) for label, view in views.items()})]

    def _ids(self, sample: Sample) -> tuple[int, ...]:
        if (bound := self._bound) is not None:
            return bound.always if bound.always is not None else tuple(bound.ids(sample, sample.row))
        if not self.needs_examples:
            return ()
        what = f"{type(self.retriever).__name__} needs examples"
        raise TaskError(what, "give dataset.train, their file (--train FILE), or train_rows")

    def _joined(self, ids: tuple[int, ...]) -> Examples:
        """Return the examples as one, in new items that the prompt may change."""
        kept = self._kept.get(ids) if ids else ""
        if kept is None:
            again = [number in ids[:place] for place, number in enumerate(ids)]  # has to be rounds of its own
            examples = [self._rendered(n) if twice else self._example(n) for n, twice in zip(ids, again, strict=True)]
            dialogue = any(isinstance(e, list) for e in examples)
            joined = join_examples(examples, self.retriever, dialogue)
            kept = joined
            if len(self._kept) < _KEPT_JOINED:
                self._kept[ids] = kept
        return copy_of(kept) if isinstance(kept, list) else kept or None

    def _example(self, number: int) -> Prompt:
        """Return a rendered example. Each is rendered once."""
        found = self._examples.get(number)
        if found is None:
            found = self._rendered(number)
            if len(self._examples) < _KEPT_EXAMPLES:
                self._examples[number] = found
        return found

    def _rendered(self, number: int) -> Prompt:
        if self._ice_template is None or self._bound is None:
            raise TaskError("examples need ice_template", "give the template of the examples")
        row = self._bound.index_rows[number]
        label = row.columns.get(self._columns.output)
        try:
            columns = SlotRules(self._ice_template, self._columns, masks=False).completed(row.columns)
            entry = SampleView(columns, scanned=row.scanned, tagged=self._columns.tagged)
            example = self._ice_template.generate_ice_item(entry, label)
        except MMPromptError as error:
            raise error.located(file=row.file, line=row.line, sample=str(row.id)) from None
        root = row.folder or self._root
        return rooted_items(example, root) if isinstance(example, list) and root is not None else example

    def __getstate__(self) -> dict[str, Any]:
        """Pickle with the index set, without cached examples."""
        return {**vars(self), "_examples": {}, "_kept": {}}


def _each(prompt: Prompt | dict[object, Prompt]) -> list[Prompt]:
    return list(prompt.values()) if isinstance(prompt, dict) else [prompt]
