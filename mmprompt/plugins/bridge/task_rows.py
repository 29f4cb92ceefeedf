"""A task's requests and prompts, asked for by the rows of a runner's table.

AISBench and OpenCompass apply the meta template of the model in their own config after the template's. AISBench also
cuts prompts into turns. So they get prompts or the text of a label, not requests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from mmprompt._log import log
from mmprompt.datasets.sample import Sample
from mmprompt.errors import MMPromptError, TaskError, nearest, shown
from mmprompt.icl.assembly import Assembled, Prompt
from mmprompt.messages import Message
from mmprompt.meta_template.meta_template import role_dict
from mmprompt.plugins.bridge.requests import MediaRoot, open_task
from mmprompt.plugins.bridge.runner_builder import MediaSection, RunnerBuilder, config_grants, listed
from mmprompt.plugins.bridge.table_rows import CARRIED, TableRow, carried, row_text
from mmprompt.render.builder import FailedRow
from mmprompt.targets.json_values import JSONObject
from mmprompt.targets.wire_json import decoded
from mmprompt.templates.prompt_list import PromptList, Section, in_section


class TaskRows:
    """The requests and prompts of a task file, asked for by the rows of its table.

    ``abbr`` chooses one of the datasets of a runner's config. ``media_root`` names folders that media may lie in, which
    the task file may name too. ``media`` allows more: ``roots``, ``policy``, ``fetch``, ``allow_domains`` and
    ``read_also``, and asks for changes such as ``max_side``. The other arguments are those of ``RunnerBuilder``.
    """

    def __init__(
        self,
        task: str,
        abbr: str | None = None,
        target: str = "vllm",
        *,
        media_root: MediaRoot = None,
        media: MediaSection | None = None,
        opens_paths: str = "",
        wires: Collection[str] = ("openai",),
    ) -> None:
        grants = config_grants(media, media_root)
        self._task = open_task(task, grants=grants, abbr=abbr)
        self.builder = RunnerBuilder(
            self._task, target, grants=grants, changes=media, opens_paths=opens_paths, wires=wires
        )
        self._samples: dict[int, Sample] = {}
        self._noted = False

    @property
    def labels(self) -> tuple[object, ...]:
        """The labels that the task compares; empty if it asks for replies."""
        return () if self._task.assembly is None else self._task.assembly.labels

    @contextmanager
    def sample_of(self, row: TableRow) -> Iterator[Sample]:
        """Give the sample of a row; errors in the block get its place. After the first, the task's notes are logged.

        Raises:
            TaskError: the row is of another dataset.
        """
        kept = carried(row)
        if not self._samples:
            self._samples = {s.row: s for s in self._task.samples() if isinstance(s, Sample)}
        sample = None if kept is None else self._samples.get(kept.row)
        if sample is None or row_text(sample, self._task.dataset) != row[CARRIED]:
            raise TaskError("the row is not in the task's dataset", "use MMPromptDataset with the same task")
        try:
            yield sample
        except MMPromptError as error:
            raise sample.located(error) from None
        if not self._noted:
            self._noted = True
            self._log_notes()

    def _log_notes(self) -> None:
        """Log the task's notes. Those of its dataset's reader were logged when the table was made."""
        of_dataset = () if self._task.dataset is None else self._task.dataset.notes
        for note in self._task.notes():
            if note not in of_dataset:
                log.warning("%s", note.finding)

    def messages(self, sample: Sample) -> list[JSONObject]:
        """Return the messages of a sample's one request, as ``Task.requests`` gives them."""
        self._check("gen")
        made = self.builder.prepare(sample)
        if isinstance(made, FailedRow):
            raise made.error
        self._check("gen", len(made.requests))
        return listed(decoded(made.requests[0].wire))

    def prompt(self, sample: Sample) -> Prompt:
        """Return the one prompt of a sample; if the task has a meta template, its messages as items of a prompt."""
        made = self._assembled(self.builder.received(sample), "gen")
        if self._task.meta_template.meta is None and not isinstance(made.prompt, dict):
            return made.prompt
        return _prompt(self._task.meta_template.to_messages(made.prompt))

    def label_prompt(self, sample: Sample, label: object) -> Prompt:
        """Return the prompt of one label, as ``prompt``."""
        made = self._assembled(sample, "ppl")
        if self._task.meta_template.meta is not None:
            return _prompt(_of_label(self._task.messages_of(made), label))
        prompt: Prompt = _of_label(made.prompt, label)
        return prompt

    def label_string(self, sample: Sample, label: object) -> str:
        """Return the prompt of one label after the meta template, as text; raises as ``label_prompt``."""
        return str(_of_label(self._task.string_of(self._assembled(sample, "ppl")), label))

    def _assembled(self, sample: Sample, mode: str) -> Assembled:
        self._check(mode)
        made = self.builder.assembled(sample)
        self._check(mode, len(made))
        return made[0]

    def _check(self, mode: str, count: int = 1) -> None:
        """Refuse a task that does not ask for exactly one reply, or one comparison of labels, for each row."""
        if self._task.mode != mode:
            asked, other = {"gen": ("compares labels", "PPL"), "ppl": ("asks for a reply", "Gen")}[mode]
            raise TaskError(f"the task {asked}", f"use the runner's {other}Inferencer")
        if count != 1 or (self._task.assembly is not None and self._task.assembly.needs_replies):
            hint = "use infer_mode last, or give the runner a template of turns"
            raise TaskError("the task asks for more than one reply to a row", hint)


def _of_label(by_label: Any, label: object) -> Any:
    if label not in by_label:
        raise TaskError(f"the task has no label {shown(label)}", nearest(label, by_label))
    return by_label[label]


def _prompt(messages: Iterable[Message]) -> PromptList:
    """Return messages as a prompt whose content parts are values, not dicts.

    The system messages at its head are its begin: AISBench's own parser takes no such role in a round.
    """
    items = [{**role_dict(m._replace(parts=())), "prompt": list(m.parts)} for m in messages]
    first = next((n for n, item in enumerate(items) if item["role"] != "SYSTEM"), len(items))
    begin = Section("begin")
    return PromptList([*(in_section(item, begin) for item in items[:first]), *items[first:]])
