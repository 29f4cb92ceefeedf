"""Which rules a check tells: codes by prefix, as ruff's users know them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mmprompt.errors import TaskError, nearest, shown
from mmprompt.errors.rules import RULES

ALL = "ALL"
"""Stands for every code."""

_FAMILIES = sorted({code[:3] for code in RULES})
_CODES = {rule.name: code for code, rule in RULES.items()}
_BY_DEFAULT = frozenset(code for code, rule in RULES.items() if rule.severity != "info")


class Selection:
    """The rules that are reported: those of ``select`` and ``extend_select`` without those of ``ignore``.

    Each is a list of codes or beginnings of codes, such as ``MM2``. The longest one that a code begins with decides;
    of two of the same length ``ignore`` wins. Without ``select`` all errors and warnings are told.

    >>> selection = Selection(["MM2"], ignore=["MM204"])
    >>> "MM201" in selection, "MM204" in selection, "MM301" in selection
    (True, False, False)

    Raises:
        TaskError: no code begins so.
    """

    def __init__(
        self, select: Sequence[str] = (), ignore: Sequence[str] = (), extend_select: Sequence[str] = ()
    ) -> None:
        chosen = [known_prefix(prefix) for prefix in (*select, *extend_select)]
        left_out = [known_prefix(prefix) for prefix in ignore]
        self.codes = [code for code in RULES if _selected(code, chosen, left_out, bool(select))]
        self._codes = frozenset(self.codes)

    def __contains__(self, code: object) -> bool:
        return code in self._codes


def known_prefix(given: str) -> str:
    """Return a code, or the beginning of one, in capitals. The name of a rule is returned as its code.

    Raises:
        TaskError: no code begins so.
    """
    prefix = code_of(given)
    if prefix != ALL and not (prefix and any(code.startswith(prefix) for code in RULES)):
        raise TaskError(f"unknown code {shown(given)}", nearest_code(given))
    return prefix


def code_of(given: str) -> str:
    """Return a code in capitals, given it or the name of its rule."""
    return _CODES.get(given.lower(), given.upper())


def nearest_code(given: str, *, prefixes: bool = True) -> str:
    """Return which code or name was meant, or how one is written; with ``prefixes`` one may be cut short."""
    known = [*_CODES] if "-" in given else [*RULES, *((*_FAMILIES, ALL) if prefixes else ())]
    meant = nearest(given.lower() if "-" in given else given.upper(), known)
    more = "its beginning, such as MM2, or ALL" if prefixes else "or the name of its rule"
    return meant if meant.startswith("did") else f"write a code, such as MM204, {more}"


def covers(prefixes: Iterable[str], code: str) -> bool:
    """Return whether one of the prefixes stands for a code."""
    return any(prefix == ALL or code.startswith(prefix) for prefix in prefixes)


def _selected(code: str, chosen: Sequence[str], left_out: Sequence[str], named: bool) -> bool:
    by_default = 0 if not named and code in _BY_DEFAULT else -1
    return max(by_default, _longest(code, chosen)) > _longest(code, left_out)


def _longest(code: str, prefixes: Sequence[str]) -> int:
    """Return the length of the longest prefix of a code, 0 for ``ALL``, -1 without any."""
    return max([0 if p == ALL else len(p) for p in prefixes if p == ALL or code.startswith(p)], default=-1)
