"""The answers of rows. In a dialogue, each turn has its own answer."""

from __future__ import annotations

from mmprompt.datasets.sample import Sample
from mmprompt.tasks.task import Task


class RowAnswers:
    """The answers of a task's rows, taken from its output column. ``dialogues``: each row is one, whatever the task."""

    def __init__(self, task: Task, *, dialogues: bool = False) -> None:
        self._column = task.output_column
        self._asked = int(dialogues)  # how often in each turn of a dialogue; 0 for other rows
        if task.assembly is not None:
            from mmprompt.templates.multiturn import MultiTurnPromptTemplate  # noqa: PLC0415  # loads with a template

            if isinstance(template := task.assembly.template, MultiTurnPromptTemplate):
                self._asked = template.times_asked(task.meta_template.generating_roles)

    def value(self, sample: Sample, turn: int | None) -> object:
        """Return what a row holds as its answer; of a dialogue the element of this turn, where -1 is the last.

        None if the row has no answer.
        """
        value = sample.columns.get(self._column)
        if turn is None or not self._asked or not isinstance(value, (list, tuple)):
            return value
        number = turn // self._asked
        return value[number] if number < len(value) and value else None

    def of(self, sample: Sample, turn: int | None) -> tuple[object, ...]:
        """Return the right answers of a row or turn: the elements of a list, or the one value; empty if it has none."""
        value = self.value(sample, turn)
        if value is None:
            return ()
        return tuple(value) if isinstance(value, (list, tuple)) else (value,)
