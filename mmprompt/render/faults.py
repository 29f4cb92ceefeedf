"""The errors of rows as plain data, in which they go from one process to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import mmprompt.errors
from mmprompt.datasets.repeated_ids import RepeatedIdError
from mmprompt.datasets.sample import Sample
from mmprompt.errors import MMPromptError, Where
from mmprompt.errors.findings import Finding
from mmprompt.render.builder import FailedRow


class RowFault(NamedTuple):
    """The error of a row, to be told and counted.

    ``what`` and ``hint`` are its words without the place. ``setting`` is that of its ``Where``. ``leaves_out``: the row
    is left out. ``read`` is how many rows were read so far.
    """

    finding: Finding
    what: str
    hint: str
    setting: str | None
    leaves_out: bool
    read: int

    @classmethod
    def of(cls, failed: FailedRow, row: int | None, read: int) -> RowFault:
        """Return the fault of a row. ``row`` is its number; None for an error about all rows."""
        error = failed.error
        finding = Finding.of(error, row, failed.row.id if isinstance(failed.row, Sample) else None)
        leaves_out = row is not None and not isinstance(error, RepeatedIdError)
        return cls(finding, error.what, error.hint, error.where.setting, leaves_out, read)

    @classmethod
    def from_data(cls, data: list[Any]) -> RowFault:
        """Return the fault that JSON holds."""
        return cls(Finding(*data[0]), *data[1:])


def error_data(error: MMPromptError) -> dict[str, Any]:
    """Return an error as plain data."""
    kind = next(each for each in type(error).__mro__ if each.__module__ == mmprompt.errors.__name__)
    return {
        "kind": kind.__name__,
        "what": error.what,
        "hint": error.hint,
        "where": list(error.where),
        "code": error.code,
    }


def error_of(data: Mapping[str, Any]) -> MMPromptError:
    """Return the error that plain data hold."""
    kind: type[MMPromptError] = getattr(mmprompt.errors, data["kind"])
    return kind(data["what"], data["hint"], Where(*data["where"]), data["code"])
