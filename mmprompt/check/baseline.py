"""Known findings, in a file beside the project: they are not reported again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator

from mmprompt.datasets.side_files import side_bytes
from mmprompt.errors import TaskError, shown
from mmprompt.errors.findings import Finding
from mmprompt.targets.json_files import ANY, COUNT, TEXT, Form, checked_json

_FORM: Form = {
    "findings": [
        {
            **dict.fromkeys(("code", "message"), TEXT),
            **dict.fromkeys(("file", "column"), (TEXT, None)),
            "id": ANY,
            "row": (COUNT, None),
        }
    ]
}
_KEYS = ("code", "file", "id", "row", "column", "message")


class Baseline:
    """The findings that a file lists. Lines may move: a finding is known by its rule, file, sample, column and words.

    Raises:
        TaskError: the file is not there, or no baseline.
        OSError: it cannot be read.
    """

    def __init__(self, path: str) -> None:
        self._root = os.path.dirname(os.path.abspath(path))
        try:
            found = checked_json(side_bytes(path, typed=True), _FORM, path, "write it anew with --write-baseline")
            self._known = {_digest([one.get(key) for key in _KEYS]) for one in found["findings"]}
        except FileNotFoundError:
            raise TaskError(f"no such baseline: {shown(path)}", "write it with --write-baseline") from None
        except TaskError as error:
            raise TaskError(f"{shown(path)} is not a baseline: {error.what}", error.hint, error.where) from error

    @property
    def digest(self) -> str:
        """A text that differs for other findings."""
        return hashlib.sha256(b"".join(sorted(self._known))).hexdigest()

    def __contains__(self, finding: Finding) -> bool:
        return _digest(_values(finding, self._root)) in self._known


def baseline_chunks(path: str, findings: Iterable[Finding]) -> Iterator[str]:
    """Yield the text of a baseline that is written to ``path``."""
    root = os.path.dirname(os.path.abspath(path))
    yield '{"findings": ['
    separator = "\n"
    for finding in findings:
        values = dict(zip(_KEYS, _values(finding, root), strict=True))
        yield separator + json.dumps(values, ensure_ascii=True, default=str)
        separator = ",\n"
    yield "\n]}\n"


def _values(finding: Finding, root: str) -> list[object]:
    """Return what a finding is known by; the path of its file begins at ``root``, so that the project may move."""
    file = None if finding.file is None else os.path.relpath(os.path.abspath(finding.file), root).replace(os.sep, "/")
    row = finding.row if finding.id is None else None
    return [finding.code, file, finding.id, row, finding.column, finding.message]


def _digest(values: list[object]) -> bytes:
    return hashlib.sha256(json.dumps(values, ensure_ascii=True, default=str).encode("ascii")).digest()[:16]
