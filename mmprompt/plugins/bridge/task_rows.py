"""A task's requests and prompts, asked for by the rows of a runner's table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mmprompt._log import log
from mmprompt.datasets.sample import Sample
from mmprompt.errors import MMPromptError, TaskError, nearest, shown
from mmprompt.icl.assembly import Assembled
from mmprompt.messages import Message
from mmprompt.meta_template.meta_template import role_dict
from mmprompt.plugins.bridge.message_writer import MessageWriter
from mmprompt.plugins.bridge.table_rows import CARRIED, carried, row_text
from mmprompt.tasks.load import load_task
from mmprompt.templates.prompt_list import PromptList


class TaskRows:
    """The requests and prompts of a task, asked for by rows of its own table.

    Args:
        task: a task file.
        abbr: chooses among the datasets of a runner's config.
        target: as in ``MessageWriter``.
        runner_opens_paths: as in ``MessageWriter``.
    """

    def __init__(
        self, task: str, abbr: str | None = None, target: str = "vllm", *, runner_opens_paths: str = ""
    ) -> None:
        self._task = load_task(task, abbr=abbr)
        self.outgoing = MessageWriter(self._task, target, runner_opens_paths=runner_opens_paths)
        self._samples: dict[int, Sample] = {}
        self._noted = False

    @property
    def labels(self) -> tuple[object, ...]:
        """The labels that the task compares; empty if it asks for replies."""
        return () if self._task.assembly is None else self._task.assembly.labels

    @contextmanager
    def sample_of(self, row: Mapping[str, Any]) -> Iterator[Sample]:
        """Give the sample of a row; errors in the block get its place. After the first, the task's notes are logged.

        Raises:
            TaskError: the row is of another dataset.
            PolicyError: a medium is longer than ``max_bytes``.
        """
        kept = carried(row)
        if not self._samples:
            self._samples = {s.row: s for s in self._task.samples() if isinstance(s, Sample)}
        sample = None if kept is None else self._samples.get(kept.row)
        if sample is None or row_text(sample, self._task.dataset) != row[CARRIED]:
            raise TaskError("the row is none of the task's dataset", "use MMPromptDataset with the same task")
        try:
            yield self.outgoing.builder.received(sample)
        except MMPromptError as error:
            raise sample.located(error) from None
        if not self._noted:
            self._noted = True
            self._log_notes()

    def _log_notes(self) -> None:
        """Log the task's notes; those of its dataset's reader were logged when the table was made."""
        of_dataset = () if self._task.dataset is None else self._task.dataset.notes
        for note in self._task.notes():
            if note not in of_dataset:
                log.warning("%s", note)

    def messages(self, sample: Sample) -> Any:
        """Return the messages of a sample's one request.

        Raises:
            TaskError: the task compares labels, or asks for more than one reply.
            MMPromptError: the row cannot be sent.
        """
        self._check_mode("gen")
        requests = self.outgoing.requests(sample)
        self._check_one(len(requests))
        return requests[0]

    def prompt(self, sample: Sample) -> Any:
        """Return the one prompt of a sample; if the task has a meta template, its messages as items of a prompt.

        Raises:
            TaskError: as ``messages``.
        """
        plain = self._task.plain_messages(sample)
        if plain is not None:
            return _prompt(plain)
        made = self._assembled(sample, "gen")
        meta = self._task.meta_template
        return made.prompt if meta.meta is None else _prompt(meta.to_messages(made.prompt))

    def label_prompt(self, sample: Sample, label: object) -> Any:
        """Return the prompt of one label, as ``prompt``.

        Raises:
            TaskError: the task asks for a reply, or has no such label.
        """
        made = self._assembled(sample, "ppl")
        if self._task.meta_template.meta is None:
            return _of_label(made.prompt, label)
        return _prompt(_of_label(self._task.messages_of(made), label))

    def label_string(self, sample: Sample, label: object) -> str:
        """Return the prompt of one label after the meta template, as text; raises as ``label_prompt``."""
        return str(_of_label(self._task.string_of(self._assembled(sample, "ppl")), label))

    def _assembled(self, sample: Sample, mode: str) -> Assembled:
        self._check_mode(mode)
        made = self._task.assembled(sample)
        self._check_one(len(made))
        return made[0]

    def _check_mode(self, mode: str) -> None:
        if self._task.mode != mode:
            asked, other = (
                ("compares labels", "PPLInferencer") if mode == "gen" else ("asks for a reply", "GenInferencer")
            )
            raise TaskError(f"the task {asked}", f"use the runner's {other}")

    def _check_one(self, count: int) -> None:
        if count != 1 or (self._task.assembly is not None and self._task.assembly.needs_replies):
            hint = "use infer_mode last, or give the runner a template of turns"
            raise TaskError("the task asks for more than one reply to a row", hint)


def _of_label(by_label: Any, label: object) -> Any:
    if label not in by_label:
        raise TaskError(f"the task has no label {shown(label)}", nearest(label, by_label))
    return by_label[label]


def _prompt(messages: Iterable[Message]) -> PromptList:
    """Return messages as a prompt whose parts are values."""
    return PromptList({**role_dict(m._replace(parts=())), "prompt": list(m.parts)} for m in messages)
