"""All faults of a dataset at once: at the first of them, the rows that the runner has not yet asked for are tried too.

AISBench and OpenCompass make all prompts of a dataset before they send the first, one row after the other, and end at
the first error.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from types import FrameType
from typing import Any, NamedTuple, TypeVar

from mmprompt.errors import NO_COLUMN, DatasetError, MMPromptError
from mmprompt.errors.findings import Finding
from mmprompt.plugins.bridge.console import tell
from mmprompt.plugins.bridge.table_rows import TableRow

_F = TypeVar("_F", bound=Callable[..., Any])

_CALLERS = 16
"""How many calls may lie between a template and what the runner asks it with."""

_SHOWN = 20
"""How many rows a message lists."""


class Asker(NamedTuple):
    """The runner's retriever that asks a template for a row: all its rows, the number of this one, the dataset."""

    rows: Sequence[TableRow]
    number: int
    dataset: str


def all_told(method: _F) -> _F:
    """Return a template's method, which takes a row, with all faults of the dataset in one error.

    The error names the keys of a config. If the runner writes this process's output to a file, it is on the console of
    the runner's command too.
    """

    @wraps(method)
    def generate(self: object, entry: TableRow, *args: Any, **options: Any) -> Any:
        try:
            return method(self, entry, *args, **options)
        except MMPromptError as error:
            fault, asker = error, _asker()
        if asker is None or fault.where.setting not in (None, NO_COLUMN):  # of all rows
            raise _told(in_config_words(fault)) from None
        faults = [_of_row(fault, asker.number)]
        for number in range(asker.number + 1, len(asker.rows)):
            try:
                method(self, asker.rows[number], *args, **options)
            except MMPromptError as error:
                faults.append(_of_row(error, number))
        raise _told(_summary(faults, asker)) from None

    return generate  # type: ignore[return-value]  # the same arguments


def told(function: _F) -> _F:
    """Return a function with its errors in the words of a config, and on the console; see ``all_told``."""

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except MMPromptError as error:
            fault = error
        raise _told(in_config_words(fault)) from None

    return called  # type: ignore[return-value]  # the same arguments


def _told(error: MMPromptError) -> MMPromptError:
    tell(f"mmprompt: {error}")
    return error


def _asker() -> Asker | None:
    """Return who asks for a row, with the number of the row."""
    for frame in _callers():
        caller, number = frame.f_locals.get("self"), frame.f_locals.get("idx")
        rows = getattr(caller, "test_ds", None)
        if rows is not None and isinstance(number, int):
            return Asker(rows, number, str(getattr(getattr(caller, "dataset", None), "abbr", "")))
    return None


def caller_with(attribute: str) -> object:
    """Return the nearest object that called, and has this attribute; None if there is none."""
    callers = (frame.f_locals.get("self") for frame in _callers())
    return next((caller for caller in callers if hasattr(caller, attribute)), None)


def _callers() -> Iterator[FrameType]:
    """Yield the calls below this one. A runner gives a template the row alone, so the calls tell what else there is."""
    frame = inspect.currentframe()
    for _ in range(_CALLERS):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _of_row(error: MMPromptError, number: int) -> MMPromptError:
    return in_config_words(error.located(line=number + 1))


def _summary(faults: Sequence[MMPromptError], asker: Asker) -> DatasetError:
    """Return one error that lists the first of these, one a line."""
    of_dataset = f" of the dataset {asker.dataset}" if asker.dataset else ""
    lines = "\n".join(f"  {Finding.of(error)}" for error in faults[:_SHOWN])
    more = f"\n  … and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
    them = "it" if len(faults) == 1 else "them"
    what = f"{len(faults)} of {len(asker.rows)} rows{of_dataset} cannot be asked; correct {them} and run again"
    return DatasetError(f"{what}\n{lines}{more}")


_E = TypeVar("_E", bound=MMPromptError)

_KEYS = {
    "media-root": 'roots=["{}"]', "allow-domain": 'fetch=True, allow_domains=["{}"]', "read-also": 'read_also=["{}"]',
    "policy": 'policy="{}"', "media": 'mode="{}"', "max-side": "max_side={}", "frames": "frames={}",
    "fetch": "fetch=True", "fit": "fit=True",
}  # fmt: skip
_VALUED = "|".join(name for name in _KEYS if name not in ("fetch", "fit"))
_OPTION = re.compile(rf"--(?:({_VALUED}) ('[^']*'|[^\s,;)]+)|(fetch|fit)\b)")
_OTHERS = re.compile(
    r", media: \{roots: \[DIR\]\} or MediaPolicy\(roots=\[DIR\]\)| \(MediaPolicy\([^()]*\)\)"
    r"| \((?:allow_domains|fetch: true)\)"
    r"|; in Python give policy=(?:, in a runner's config media_root=)?"
)
"""What a hint says for other users: of task files, or of Python."""


def in_config_words(error: _E) -> _E:
    """Return an error whose text names the keys of a config's ``media`` in the place of options."""
    what, hint = (_OPTION.sub(_as_key, _OTHERS.sub("", text)) for text in (error.what, error.hint))
    return type(error)(what, hint, error.where, error.code)


def _as_key(found: re.Match[str]) -> str:
    name, value = found[1] or found[3], (found[2] or "").strip("'")
    return f"media=dict({_KEYS[name].format(value)})"
