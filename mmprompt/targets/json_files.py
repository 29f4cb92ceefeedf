"""JSON from files that anyone may have written: read within bounds, and held against a form.

A form says what a value may be:

- a ``Kind``, such as ``TEXT`` or ``COUNT``, or None,
- a tuple: one of these forms,
- ``[form]``: a list of such values; ``[form, form, …]``: a list of exactly these,
- a mapping: these keys, each with its form; a key that is not there counts as null. ``...`` stands for every other key;
  without it the others may be anything.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import contains
from types import EllipsisType
from typing import Any, NamedTuple, TypeAlias, Union

from mmprompt.errors import TaskError, Where, malformed, short_name, shown
from mmprompt.errors.rules import RULES
from mmprompt.targets.exact_json import MAX_DEPTH

_LARGEST = 1 << 53
"""Sums of a few numbers below it fit into 64 bits."""

_MOST = sys.float_info.max
_HOLDERS = (Mapping, list, tuple)
_DEEP = f"it is nested too deeply: lists and objects stand in each other on more than {MAX_DEPTH} levels"


@dataclass(frozen=True, slots=True)
class Kind:
    """What a value that holds no others may be: in words for an error, its types, and a function for the rest."""

    words: str
    types: frozenset[type]
    holds: Callable[[Any], bool] | None = None

    def __call__(self, value: object) -> bool:
        """Return whether a value is of this kind."""
        return type(value) in self.types and (value is None or self.holds is None or self.holds(value))


Form: TypeAlias = Union[Kind, tuple["Form", ...], list["Form"], dict[Union[str, EllipsisType], "Form"], None]


def _can_be_opened(name: str) -> bool:
    """Return whether the system takes a name. Bytes that are no UTF-8 are lone surrogates in it."""
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        return False


_TEXT = frozenset((str,))
ANY = Kind("anything", frozenset((str, int, float, bool, type(None), list, dict)))
TEXT = Kind("a text", _TEXT)
FLAG = Kind("true or false", frozenset((bool,)))
OBJECT = Kind("an object", frozenset((dict,)))
TEXTS = Kind("a list of texts", frozenset((list,)), lambda value: _TEXT.issuperset(map(type, value)))
COUNT = Kind("a whole number from 0", frozenset((int,)), lambda value: 0 <= value < _LARGEST)
NUMBER = Kind("a number", frozenset((int, float)), lambda value: -_MOST <= value <= _MOST)
FILE = Kind("the name of a file", _TEXT, _can_be_opened)
CODE = Kind("the code of a rule", _TEXT, lambda value: value in RULES)
_SEVERITY = Kind("error, warning or info", _TEXT, lambda value: value in ("error", "warning", "info"))

WHERE: Form = [*[(TEXT, None), (COUNT, None)] * 2, *[(TEXT, None)] * 3, *[(COUNT, None)] * 2, (TEXT, None)]
"""The fields of a ``Where``."""

FINDING: Form = [
    *(CODE, _SEVERITY, TEXT, TEXT, (TEXT, None), (COUNT, None), (COUNT, None), ANY, (TEXT, None)),
    *((COUNT, None), (COUNT, None), FLAG, TEXT, (TEXT, None)),
]
"""The fields of a ``Finding``."""


def or_null(kind: Kind) -> Kind:
    """Return the form ``(kind, None)`` as a kind, for ``Fields``."""
    return Kind(f"{kind.words} or null", kind.types | {type(None)}, kind.holds)


def checked_json(data: bytes, form: Form, path: str, hint: str) -> Any:
    """Return the value of the JSON in a file, which fits ``form``. ``hint`` says in errors how to mend the file.

    Raises:
        TaskError: it is not UTF-8 or JSON, is nested too deeply, or does not fit.
    """
    try:
        value = parsed_json(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise TaskError(f"the file is not UTF-8 at byte {error.start}", hint, Where(path)) from None
    except TaskError as error:
        raise TaskError(error.what, hint, error.where).located(file=path) from None
    require_form(value, form, hint, path)
    return value


def parsed_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        TaskError: it is not JSON, holds a key twice, or is nested deeper than ``MAX_DEPTH``.
    """
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise malformed("JSON", error.msg, "correct the text there", error.lineno, error.colno) from None
    except RecursionError:
        raise TaskError(_DEEP, "flatten it") from None
    except ValueError as error:
        raise unread_number(error) from None
    if is_deeper(value, MAX_DEPTH):
        raise TaskError(_DEEP, "flatten it")
    return value


def unread_number(error: ValueError) -> TaskError:
    """Return the error for a number of thousands of digits, which Python does not read."""
    return TaskError(f"a number that Python refuses to read: {error}", "write it as a string")


def is_deeper(value: object, depth: int) -> bool:
    """Return whether lists and mappings stand in each other on more levels than ``depth``; aliases count once."""
    level = [value]
    for _ in range(depth + 1):
        inner = [held.values() if isinstance(held, Mapping) else held for held in level if isinstance(held, _HOLDERS)]
        if not inner:
            return False
        level = list({id(item): item for items in inner for item in items}.values())
    return True


def require_form(value: object, form: Form, hint: str, path: str | None = None) -> None:
    """Refuse a value that does not fit a form. ``path`` is the file that holds it.

    Raises:
        TaskError: where in the value, what stands there, and what may.
    """
    if (found := _misfit(value, form)) is not None:
        place = found.place.lstrip(".") or "the file"
        raise TaskError(f"{short_name(place)} is {_said(found.value)}, not {_words(found.form)}", hint, Where(path))


class Fields:
    """A form of kinds by key, made ready for a million mappings: most of the work is done by functions in C.

    A key that is not there counts as what ``missing`` has for it, or null.
    """

    def __init__(self, form: Mapping[str, Kind], missing: Mapping[str, object]) -> None:
        self._keys = tuple(form)
        self._missing = [missing.get(key) for key in form]
        self._types = [kind.types for kind in form.values()]
        self._holds = [(at, kind.holds) for at, kind in enumerate(form.values()) if kind.holds is not None]

    def values(self, value: object) -> list[Any] | None:
        """Return what a mapping holds under each key; None if it does not fit."""
        if type(value) is not dict:
            return None
        found = [*map(value.get, self._keys, self._missing)]
        return found if self.fit(found) else None

    def fit(self, values: Sequence[Any]) -> bool:
        """Return whether values fit the kinds, in the order of the form."""
        if not all(map(contains, self._types, map(type, values))):
            return False
        return all([holds(item) for at, holds in self._holds if (item := values[at]) is not None])  # noqa: C419  # faster


class _Misfit(NamedTuple):
    """A value that does not fit its form, and where it stands in the whole."""

    place: str
    value: object
    form: Form

    def below(self, place: str) -> _Misfit:
        return self._replace(place=place + self.place)


def _misfit(value: object, form: Form) -> _Misfit | None:
    """Return the first value that does not fit."""
    if isinstance(form, Kind):
        return None if form(value) else _Misfit("", value, form)
    if isinstance(form, tuple):
        inner = _Misfit("", value, form)
        for each in form:
            if (found := _misfit(value, each)) is None:
                return None
            inner = found if found.place else inner
        return inner
    if isinstance(form, list) and isinstance(value, (list, tuple)) and (len(form) == 1 or len(form) == len(value)):
        for at, item in enumerate(value):
            if (found := _misfit(item, form[at % len(form)])) is not None:
                return found.below(f"[{at}]")
        return None
    if isinstance(form, dict) and isinstance(value, dict):
        return _misfit_below(value, form)
    return None if value is None and form is None else _Misfit("", value, form)


def _misfit_below(value: dict[str, object], form: dict[str | EllipsisType, Form]) -> _Misfit | None:
    for key, own in form.items():
        if isinstance(key, str) and (found := _misfit(value.get(key), own)) is not None:
            return found.below(f".{key}")
    if ... in form:
        for name, item in value.items():
            if name not in form and (found := _misfit(item, form[...])) is not None:
                return found.below(f".{name}")
    return None


def _said(value: object) -> str:
    """Return a value in short."""
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, Mapping):
        return "an object"
    return shown(value) if isinstance(value, str) else shown(json.dumps(value, default=str))[1:-1]


def _words(form: Form) -> str:
    """Return what a value may be."""
    if isinstance(form, Kind):
        return form.words
    if isinstance(form, tuple):
        return " or ".join(map(_words, form))
    if isinstance(form, list):
        return "a list" if len(form) == 1 else f"a list of {len(form)} values"
    return "null" if form is None else "an object"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; a repeated key is an error."""
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        name = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]  # add gives None
        raise TaskError(f"the key {shown(name)} is given twice in one object", "keep one of the two")
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_once)
