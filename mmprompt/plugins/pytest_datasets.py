"""Datasets as tests of pytest: one for each row, and one for the dataset as a whole.

A test fails if ``mmprompt check`` tells a finding of its row. The codes are those of ``[tool.mmprompt]`` in the
``pyproject.toml`` of pytest's root folder. The dataset is checked once, when the first of its tests runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from mmprompt.check.check import check_dataset
from mmprompt.check.configuration import project_configuration
from mmprompt.datasets.read import open_dataset
from mmprompt.errors import MMPromptError, RowError, short_name

if TYPE_CHECKING:
    from mmprompt.errors.findings import Finding

_WHOLE = "dataset"


class FindingsError(Exception):
    """The findings of a row, as text."""


class DatasetFile(pytest.File):
    """A dataset; its rows are tests."""

    _findings: dict[int | None, list[Finding]] | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """Yield a test for each row, and one for the dataset as a whole."""
        names: dict[str, int] = {}
        number = 0
        try:
            for row in open_dataset(str(self.path)):
                if isinstance(row, RowError):
                    line, name = row.where.line, f"line {row.where.line}"
                else:
                    line, name = row.line, short_name(row.id)
                names[name] = names.get(name, 0) + 1
                again = f"[{names[name]}]" if names[name] > 1 else ""
                yield RowItem.from_parent(self, name=name + again, number=number, line=line)
                number += 1
        except MMPromptError:
            pass  # a finding on the dataset as a whole
        yield RowItem.from_parent(self, name=_WHOLE, number=None, line=None)

    def findings(self, number: int | None) -> list[Finding]:
        """Return the findings of a row, or with None those of the dataset as a whole."""
        if self._findings is None:
            found: dict[int | None, list[Finding]] = {}
            project = project_configuration(str(self.config.rootpath))
            told = check_dataset(
                self.path,
                select=project.select,
                ignore=project.ignore,
                extend_select=project.extend_select,
                target=project.target,
            )
            for finding in told:
                if not project.hides(finding):
                    found.setdefault(finding.row, []).append(finding)
            self._findings = found
        return self._findings.get(number, [])


class RowItem(pytest.Item):
    """The test of a row; without a number that of the dataset as a whole."""

    def __init__(self, *, number: int | None, line: int | None, **options: Any) -> None:
        super().__init__(**options)
        self._number = number
        self._line = line

    def runtest(self) -> None:
        """Fail if the row has findings."""
        file = self.parent
        found = file.findings(self._number) if isinstance(file, DatasetFile) else []
        if found:
            raise FindingsError("\n".join(map(str, found)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: object) -> str:
        """Return the findings; for other errors what pytest says."""
        if isinstance(excinfo.value, (FindingsError, MMPromptError)):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Return file, line and name of the test."""
        return self.path, None if self._line is None else self._line - 1, self.name
