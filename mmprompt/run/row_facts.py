"""What the journal says of a row beside its request and reply: its answer, and the columns by which it is grouped."""

from __future__ import annotations

from collections.abc import Sequence

from mmprompt.datasets.sample import GROUPS, Sample
from mmprompt.errors import TaskError, nearest, shown
from mmprompt.render.answers import RowAnswers
from mmprompt.run.inferencers import Facts, check_line
from mmprompt.tasks.task import Task

_TURN = "turn"
"""Scores of dialogues can be grouped by turn, which is no column."""


class RowFacts:
    """The facts of a task's rows; ``group_by`` are further columns to group by."""

    def __init__(self, task: Task, group_by: Sequence[str]) -> None:
        self._answers = RowAnswers(task)
        self._asked = [name for name in group_by if name != _TURN]
        self._names = tuple(dict.fromkeys((*self._asked, *GROUPS)))
        self._seen = bool(task.dataset is not None and task.dataset.first)  # of a shard the first row may be any

    def of(self, row: Sample) -> Facts:
        """Return the facts of a row.

        Raises:
            TargetError: its id, answer or groups are not JSON, so that its line could not be written.
            GroupError: the first row lacks a column of ``group_by``: most often its name is misspelt.
        """
        if not self._seen:
            self.require_groups(row)
        self._seen = True
        groups = {name: row.columns[name] for name in self._names if name in row.columns}
        facts = Facts(lambda turn: self._answers.value(row, turn), groups)  # type: ignore[arg-type, return-value]
        check_line(row, facts)
        return facts

    def require_groups(self, row: Sample) -> None:
        """Refuse columns to group by that a row lacks.

        Raises:
            GroupError: it lacks one.
        """
        for name in self._asked:
            if name not in row.columns:
                hint = f"{nearest(name, row.columns)}; or leave out --group-by {name}"
                raise row.located(GroupError(f"the row has no column {shown(name)} to group by", hint))


class GroupError(TaskError):
    """A column by which scores are to be grouped is not there."""
