"""Reads JSON exactly as Python's ``json`` does, at orjson's speed where the two agree.

orjson turns integers beyond 64 bits into floats, and refuses NaN, Infinity, numbers beyond a double, lone surrogates
and a byte order mark. ``json`` reads again whatever orjson refuses or may have rounded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

import orjson

from mmprompt.errors import RowError, TargetError

MAX_DEPTH = 500
"""How deep a value may be nested: half of what Python's stack takes, so that printing never overflows it."""

_ROUNDED = 9.2e18  # below 2**63: an integer that orjson could not hold is read as a float of at least this magnitude
_INFINITE = float("inf")
_MANY = 1 << 16
_PLAIN = frozenset((str, int, bool, type(None)))
_DICTS = frozenset((dict,))
_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
BOM = b"\xef\xbb\xbf"


class Remark(NamedTuple):
    """Something unusual in a row that was accepted: its kind, the column if known, a sentence for a report, the code.

    Of remarks of one kind only the first is reported in full.
    """

    kind: str
    column: str | None
    message: str
    code: str


def loads(line: bytes | str) -> object:
    """Return what ``json.loads`` returns for ``line``: exact integers, NaN accepted, the last of two equal keys kept.

    Raises:
        RowError: invalid JSON or UTF-8, a lone surrogate, an integer that Python refuses to convert, or nesting beyond
            ``MAX_DEPTH``. ``where.offset`` is the character offset in ``line`` if it is known.
    """
    return loads_with_remarks(line)[0]


def loads_with_remarks(line: bytes | str) -> tuple[object, tuple[Remark, ...]]:
    """Return what ``loads`` returns, and the remarks of ``loads_noting`` except on repeated keys. Just as fast."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return loads_noting(line)
    kind = type(value)
    if kind is dict:
        if _PLAIN.issuperset(map(type, value.values())) or faithful(value):
            return value, ()
    elif kind in _PLAIN or faithful([value]):
        return value, ()
    return loads_noting(line)


def faithful(value: dict[str, Any] | list[Any]) -> bool:
    """Return whether orjson read this container as ``json`` does: it holds no float that may be a rounded integer."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for container in level:
            items = container.values() if type(container) is dict else container
            kinds = {*map(type, items)}
            if kinds <= _PLAIN:
                continue
            if kinds == _DICTS:  # the messages of a chat: what they hold is looked at together
                below.append([*chain.from_iterable(map(dict.values, items))])
                continue
            for item in items:
                kind = type(item)
                if kind in _PLAIN:
                    continue
                if kind is float:
                    if not -_ROUNDED < item < _ROUNDED:
                        return False
                else:
                    below.append(item)
        if not below:
            return True
        level = below
    raise RowError(f"nested deeper than {MAX_DEPTH} levels", "flatten the row", code="MM011")


def loads_noting(line: bytes | str) -> tuple[object, tuple[Remark, ...]]:
    """Return what ``loads`` returns, read by ``json``, and remarks on what other readers refuse or change.

    The kinds of remarks are ``bom``, ``nan`` (also Infinity), ``integer`` (over 64 bits) and ``key`` (repeated).
    """
    remarks: list[Remark] = []
    if isinstance(line, str):
        text = line
    else:
        if line.startswith(BOM):
            remarks.append(Remark("bom", None, "begins with a byte order mark", "MM004"))
            line = line[len(BOM) :]
        text = _decoded(line)
    text = text.rstrip(" \t\r\n")  # an error at its end must not point at the line end
    try:
        value = _UNREPEATED.decode(text)
    except (ValueError, RecursionError):  # what is wrong is found below
        value = _loads_with_repeats(text, remarks)
    faithful([value])
    remarks.extend(examine(value))
    return value, tuple(remarks)


def _unrepeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key stands twice")
    return made


_UNREPEATED = json.JSONDecoder(object_pairs_hook=_unrepeated)  # json.loads makes a decoder for each text


def _loads_with_repeats(text: str, remarks: list[Remark]) -> object:
    """Return what a JSON text says, and add a remark on each repeated key; otherwise as ``loads``."""
    repeated: dict[str, None] = {}

    def pairs_to_dict(pairs: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(pairs)
        if len(made) < len(pairs):
            seen: set[str] = set()
            repeated.update((key, None) for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]  # add gives None
        return made

    try:
        value: object = json.loads(text, object_pairs_hook=pairs_to_dict)
    except json.JSONDecodeError as error:
        raise invalid(error.msg, error.pos, len(text)) from None
    except RecursionError:
        raise RowError(f"nested deeper than {MAX_DEPTH} levels", "flatten the row", code="MM011") from None
    except ValueError as error:  # the limit on the digits of an integer
        raise RowError(
            f"a number that Python refuses to read: {error}", "shorten it, or write it as a string", code="MM007"
        ) from None
    for key in repeated:
        column = key if isinstance(value, dict) and key in value else None
        remarks.append(Remark("key", column, "a key stands twice in one object; its last value counts", "MM015"))
    return value


def _decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RowError(
            f"byte 0x{line[error.start]:02x} at byte offset {error.start} is not UTF-8",
            "save the file as UTF-8",
            code="MM003",
        ).located(offset=len(line[: error.start].decode("utf-8"))) from None


def invalid(message: str, offset: int, length: int) -> RowError:
    """Return the error for invalid JSON in a row of ``length`` characters, from the message and offset of ``json``."""
    cut = offset >= length or message.startswith("Unterminated string")
    hint = "write the row again: it looks cut off" if cut else "write one JSON value"
    return RowError(f"invalid JSON: {message[0].lower()}{message[1:]}".rstrip(": "), hint, code="MM002").located(
        offset=offset
    )


def examine(value: object) -> list[Remark]:
    """Return remarks on the numbers of a value that ``json`` read, column by column if the value is a row.

    Raises:
        RowError: a lone surrogate in a string or key. ``where.column`` is its column in a row.
    """
    if not isinstance(value, dict):
        return _examine_column(None, value)
    remarks: list[Remark] = []
    for column, item in value.items():
        _check_surrogates(column, None)
        remarks.extend(_examine_column(column, item))
    return remarks


def _examine_column(column: str | None, value: object) -> list[Remark]:
    found: dict[str, Remark] = {}
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            _check_surrogates(item, column)
        elif isinstance(item, float):
            if not -_INFINITE < item < _INFINITE:
                found["nan"] = Remark("nan", column, f"{json.dumps(item)}, which JSON does not have", "MM018")
        elif isinstance(item, int):
            if not -(1 << 63) <= item < 1 << 64:
                found["integer"] = Remark("integer", column, "an integer over 64 bits, kept exactly", "MM021")
        elif isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return list(found.values())


def _check_surrogates(text: str, column: str | None) -> None:
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RowError(
            f"lone surrogate \\u{ord(text[error.start]):04x}",
            "write the character whole: it is half of a pair",
            code="MM012",
        ).located(column=column, offset=error.start) from None


def finite(value: object) -> object:
    """Return a value in which NaN and infinity are the texts ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``."""
    if isinstance(value, float) and not -_INFINITE < value < _INFINITE:
        return json.dumps(float(value))
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


def dumps(value: object) -> bytes:
    """Return ``value`` as compact JSON in UTF-8, without ASCII escapes, with numbers as ``json`` prints them.

    Raises:
        TargetError: NaN, infinity, an object that JSON cannot hold, a lone surrogate, a cycle, or too deep nesting.
    """
    if not _has_float(value):
        try:
            return orjson.dumps(value, option=_OPTIONS)
        except orjson.JSONEncodeError:
            pass
    return _dumps_slowly(value)


def _has_float(value: object) -> bool:
    """Return whether it holds a number that orjson may print differently (1e300) or not at all (NaN)."""
    pending = [value]
    for item in pending:
        if isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, (list, tuple)):
            pending.extend(item)
        elif isinstance(item, float):
            return True
        if len(pending) > _MANY:  # a cycle, or so large that json alone is as fast
            return True
    return False


def _dumps_slowly(value: object) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_refuse, allow_nan=False)
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TargetError(
            f"a text holds the lone surrogate \\u{ord(error.object[error.start]):04x}",
            "write the character whole",
            code="MM012",
        ) from None
    except RecursionError:
        raise TargetError("a value is nested too deeply for JSON", "flatten it", code="MM011") from None
    except (TypeError, ValueError) as error:  # a key that is not a string, or a cycle
        raise TargetError(f"a value cannot be written as JSON: {error}", "use plain data", code="MM007") from None


def _refuse(value: object) -> object:
    """Return a NumPy number as a Python number. ``json`` asks this for each value that it cannot write."""
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.item()  # type: ignore[attr-defined]  # every NumPy scalar has it
    raise TargetError(
        f"a value of type {type(value).__name__} cannot be written as JSON",
        "use text, numbers, lists or mappings",
        code="MM007",
    )
