"""What a child process may answer: plain values only, because its memory may have been damaged by what it decoded.

An answer is JSON with its bytes behind it. It is not a pickle: a few wrong bytes in a pickle can allocate gigabytes or
crash the reader, even with a list of allowed types.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mmprompt.errors import MMPromptError, Where
from mmprompt.errors.findings import Note
from mmprompt.errors.rules import RULES

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy as np

    Blob = bytes | memoryview
    Plain = None | bool | float | str | list["Plain"]
    Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
    Value = (
        None | bool | float | str | bytes | Fraction | Array | MMPromptError
        | list["Value"] | tuple["Value", ...] | set["Value"] | frozenset["Value"] | dict["Value", "Value"]
    )  # fmt: skip

READY, RESULT, ERROR, MEMORY, FAULT = "ready", "result", "error", "memory", "fault"
"""The kinds of answers: the child has started; the function's value; an error of ours that it raised; too little
memory; the name of any other exception."""

LENGTH = 8
"""Bytes of the length (big-endian) that is written before each answer."""

_OURS = re.compile(r"mmprompt\.(errors|messages|media(?:\.\w+)+)\Z")
_NUMBERS = re.compile(r"[<>|][biuf](?:1|2|4|8)\Z")
_LONGEST_HEADER = 1 << 23
"""Bytes of JSON; 100,000 frames take 3 MB. As objects it is ten times larger, in a process without a limit."""
_SCALARS = frozenset((bool, float, int, str, type(None)))
_COLLECTIONS: dict[str, type] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


Blobs = Iterator[tuple[int, memoryview]]
"""The blobs of an answer that are not used yet, numbered."""

_MALFORMED = (
    ArithmeticError, AttributeError, ImportError, LookupError, MemoryError, RecursionError, TypeError, ValueError,
)  # fmt: skip


class AnswerError(Exception):
    """The bytes are not an answer."""


def packed_answer(kind: str, value: object) -> list[Blob]:
    """Return an answer as the buffers to write, one after the other.

    Args:
        kind: one of the kinds above.
        value: None, a bool, number, text, bytes, fraction or array of numbers; a list, tuple, set or dict of values; a
            named tuple of the media package; an error of ours. A NumPy number becomes a Python number.

    Raises:
        TypeError: the value has another type.
    """
    blobs: list[Blob] = []
    header = json.dumps([kind, _plain(value, blobs), [len(blob) for blob in blobs]]).encode("ascii")
    return [len(header).to_bytes(4, "big") + header, *blobs]


def answer_of(message: Blob) -> tuple[str, Value]:
    """Return the kind and the value of an answer; see ``packed_answer``.

    Raises:
        AnswerError: the bytes are not an answer.
    """
    end = 4 + int.from_bytes(message[:4], "big")
    if end > _LONGEST_HEADER:
        raise AnswerError("the header is too long")
    try:
        kind, plain, sizes = json.loads(bytes(message[4:end]))
        if type(kind) is not str or not all(type(size) is int and size >= 0 for size in sizes):
            raise AnswerError("the header is malformed")
        blobs = []
        view = memoryview(message)
        for size in sizes:
            blobs.append(view[end : end + size])
            end += size
        if end != len(message):
            raise AnswerError("the lengths do not add up")
        return kind, _value(plain, enumerate(blobs))
    except _MALFORMED as error:
        raise AnswerError(type(error).__name__) from None


def _plain(value: Any, blobs: list[Blob]) -> Plain:  # any value; one that cannot be sent is refused below
    """Return a value as JSON holds it: scalars as they are, others as lists that begin with their type."""
    kind = type(value)
    if value is None or (isinstance(value, (bool, int, float, str)) and kind in (bool, int, float, str)):
        return value
    if kind is Note:
        return ["note", value.code, value.what, value.hint]
    if kind is bytes:
        blobs.append(value)
        return ["bytes", len(blobs) - 1]
    if kind.__name__ in _COLLECTIONS and kind in _COLLECTIONS.values():
        return [kind.__name__, *[_plain(item, blobs) for item in value]]
    if kind is dict:
        return ["dict", *[[_plain(k, blobs), _plain(v, blobs)] for k, v in value.items()]]
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        items = [item if type(item) in _SCALARS else _plain(item, blobs) for item in value]
        return ["fields", kind.__module__, kind.__qualname__, *items]
    if isinstance(value, MMPromptError):
        return ["error", kind.__module__, kind.__qualname__, value.what, value.hint, [*value.where], value.code]
    fractions, numpy = sys.modules.get("fractions"), sys.modules.get("numpy")
    if fractions is not None and kind is fractions.Fraction:
        return ["fraction", value.numerator, value.denominator]
    if numpy is not None and isinstance(value, numpy.generic):
        return _plain(value.item(), blobs)
    if numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind in "biuf":
        blobs.append(memoryview(numpy.ascontiguousarray(value).reshape(-1).view("u1")))
        return ["array", value.dtype.str, list(value.shape), len(blobs) - 1]
    raise TypeError(f"a value of type {kind.__name__} cannot be sent")


def _blob(number: object, blobs: Blobs) -> memoryview:
    """Return the next blob. It must have this number: each is used once, so that no answer grows when it is read."""
    index, blob = next(blobs, (-1, memoryview(b"")))
    if type(number) is not int or index != number:
        raise AnswerError("the blobs are out of order")
    return blob


def _value(plain: Any, blobs: Blobs) -> Any:
    """Return the value that ``_plain`` turned into this."""
    if type(plain) is not list:
        if type(plain) is dict:
            raise AnswerError("a JSON object is not a value")
        return plain
    kind, *rest = plain
    if kind == "bytes":
        return bytes(_blob(rest[0], blobs))
    if kind in _COLLECTIONS:
        return _COLLECTIONS[kind]([_value(item, blobs) for item in rest])
    if kind == "note":
        code, what, hint = rest
        return Note(code if code in RULES else "MM200", str(what), str(hint))
    if kind == "dict":
        return {_value(k, blobs): _value(v, blobs) for k, v in rest}
    if kind == "fraction":
        over, under = rest
        if type(over) is not int or type(under) is not int:  # Fraction would compute a text such as "1e999999999"
            raise AnswerError("a fraction of other values than whole numbers")
        from fractions import Fraction  # noqa: PLC0415  # only of videos and sounds

        return Fraction(over, under)
    if kind == "array":
        dtype, shape, number = rest
        return _array(dtype, shape, _blob(number, blobs))
    found = _named(*rest[:2])
    if kind == "fields" and issubclass(found, tuple) and len(rest) - 2 == len(getattr(found, "_fields", ())) > 0:
        items = [item if type(item) in _SCALARS else _value(item, blobs) for item in rest[2:]]
        return tuple.__new__(found, items)
    if kind == "error" and issubclass(found, MMPromptError):
        what, hint, where, code = rest[2:]
        return found(str(what), str(hint), Where(*where), code if code in RULES else None)
    raise AnswerError("an unknown kind of value")


@lru_cache(64)
def _named(module: str, name: str) -> type:
    if not _OURS.match(module) or not name.isidentifier():
        raise AnswerError("a type that may not be sent")
    found = getattr(importlib.import_module(module), name)
    if not isinstance(found, type):
        raise AnswerError("the name is not a type")
    return found


def _array(dtype: str, shape: list[int], data: memoryview) -> np.ndarray[Any, Any]:
    """Return an array of numbers. Type and size are checked before it is made."""
    import numpy as np  # noqa: PLC0415  # heavy

    if not _NUMBERS.match(dtype):  # np.dtype understands a whole language, with faults of its own
        raise AnswerError("an array of a type that may not be sent")
    kind = np.dtype(dtype)
    if len(data) != kind.itemsize * math.prod(shape):
        raise AnswerError("an array of another size than its data")
    return np.frombuffer(bytearray(data), kind).reshape(shape)
