"""Rules on the templates of a task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mmprompt.check.rule import Hit, task_rule

if TYPE_CHECKING:
    from mmprompt.tasks.task import Task


@task_rule("MM608")
def answer_in_prompt(task: Task) -> Iterator[Hit]:
    """The label templates of a task show the answer column."""
    column = task.output_column
    if task.mode == "ppl" and task.assembly is not None and column in task.assembly.template.slot_names:
        hint = f"write the label itself in place of {{{column}}}"
        yield Hit(f"the prompts of the labels show the answer column '{column}'", hint, column)
