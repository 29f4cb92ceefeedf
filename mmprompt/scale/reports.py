"""What the files that a done shard leaves may hold: its report, and the errors and notes of its rows."""

from __future__ import annotations

from types import EllipsisType
from typing import TypeAlias, Union

from mmprompt import errors
from mmprompt.targets.json_files import CODE, COUNT, FINDING, FLAG, TEXT, TEXTS, WHERE, Form, Kind

HINT = "remove the folder to begin anew"
"""How a work folder is mended that holds something else."""

_ERRORS = {
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.MMPromptError)
}
_ERROR = Kind("the name of an error of mmprompt", frozenset((str,)), _ERRORS.__contains__)
_Keys: TypeAlias = dict[Union[str, EllipsisType], Form]
_COUNTS: Form = {...: COUNT}
_SHAPE: Form = [TEXTS, COUNT, _COUNTS, {...: TEXTS}]
_SEEN: Form = {
    "remarks": [[TEXT, CODE, TEXT, WHERE, COUNT]],
    "rows": {"shapes": [_SHAPE], "others": COUNT, "found": [[TEXT, COUNT, TEXT, CODE]], "left": _COUNTS},
    "unfilled": (TEXTS, None),
    "columns": TEXTS,
}
_FAULT: Form = ({"kind": _ERROR, "what": TEXT, "hint": TEXT, "where": WHERE, "code": CODE}, None)
_DONE: _Keys = {"rows": COUNT, "files": {...: [COUNT, TEXT]}}
_TOLD: _Keys = {**_DONE, "seen": _SEEN, "failed": COUNT, "fault": _FAULT, "warnings": [[TEXT, CODE, TEXT]]}
_RUN_COUNTS: Form = {
    **dict.fromkeys(("answered", "kept", "failed", "stale", "torn", "repeated"), COUNT),
    "interrupted": FLAG,
}

DONE: Form = _DONE
"""The report of any shard."""

RENDERED: Form = {**_TOLD, "taken": COUNT}
"""The report of ``render_shard``."""

ASKED: Form = {**_TOLD, "counts": _RUN_COUNTS}
"""The report of ``run_shard``."""

CHECKED: Form = {**_DONE, "seen": _SEEN, "items": COUNT, "found": [[CODE], [[(COUNT, None), CODE, TEXT]], [FINDING]]}
"""The report of ``check_shard``."""

EVENT: Form = ([FINDING, TEXT, TEXT, (TEXT, None), FLAG, COUNT], [CODE, TEXT, TEXT, WHERE, TEXT])
"""The error of a row, as of a ``RowFault``, or a note."""
