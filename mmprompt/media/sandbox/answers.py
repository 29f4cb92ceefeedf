"""What a decoding process may say: values only, for its memory may have been damaged by what it decoded.

An answer is JSON with its bytes behind it. It is no pickle: unpickling gigabytes or a crash out of a few wrong bytes
is easy, with a list of allowed types as without one.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mmprompt.errors import MMPromptError, Where

if TYPE_CHECKING:
    import numpy as np

_OURS = re.compile(r"mmprompt\.(errors|messages|media(?:\.\w+)+)\Z")
_NUMBERS = re.compile(r"[<>|][biuf](?:1|2|4|8)\Z")
_LONGEST_HEADER = 1 << 23
"""Bytes of JSON; 100,000 frames take 3 MB. As objects it is some ten times larger, in a process without a limit."""
_ROWS: dict[str, type] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


class AnswerError(Exception):
    """Bytes that are no answer."""


def packed_answer(kind: str, value: object) -> bytes:
    """Return an answer as bytes.

    Args:
        kind: a word that says what the value is.
        value: None, a bool, number, text, bytes, fraction or array of numbers; a list, tuple, set or dict of values; a
            named tuple of the media package; an error of ours. A number of NumPy's becomes Python's.

    Raises:
        TypeError: it is something else.
    """
    blobs: list[bytes] = []
    header = json.dumps([kind, _plain(value, blobs), [len(blob) for blob in blobs]]).encode("ascii")
    return b"".join((len(header).to_bytes(4, "big"), header, *blobs))


def answer_of(message: bytes | bytearray) -> tuple[str, Any]:
    """Return the kind and the value of an answer; see ``packed_answer``.

    Raises:
        AnswerError: the bytes are no answer.
    """
    end = 4 + int.from_bytes(message[:4], "big")
    if end > _LONGEST_HEADER:
        raise AnswerError("a header that is too long")
    try:
        kind, plain, sizes = json.loads(bytes(message[4:end]))
        if type(kind) is not str or not all(type(size) is int and size >= 0 for size in sizes):
            raise AnswerError("no header")
        blobs = []
        for size in sizes:
            blobs.append(bytes(memoryview(message)[end : end + size]))
            end += size
        if end != len(message):
            raise AnswerError("other lengths")
        return kind, _value(plain, blobs)
    except (ArithmeticError, AttributeError, ImportError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise AnswerError(type(error).__name__) from None


def _plain(value: Any, blobs: list[bytes]) -> object:
    """Return a value as JSON has it: scalars as they are, others as lists that begin with what they are."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is bytes:
        blobs.append(value)
        return ["bytes", len(blobs) - 1]
    if kind.__name__ in _ROWS and kind in _ROWS.values():
        return [kind.__name__, *[_plain(item, blobs) for item in value]]
    if kind is dict:
        return ["dict", *[[_plain(k, blobs), _plain(v, blobs)] for k, v in value.items()]]
    if kind is Fraction:
        return ["fraction", value.numerator, value.denominator]
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return ["fields", kind.__module__, kind.__qualname__, *[_plain(item, blobs) for item in value]]
    if isinstance(value, MMPromptError):
        return ["error", kind.__module__, kind.__qualname__, value.what, value.hint, [*value.where]]
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return _plain(value.item(), blobs)
    if numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind in "biuf":
        blobs.append(value.tobytes())
        return ["array", value.dtype.str, list(value.shape), len(blobs) - 1]
    raise TypeError(f"a value of type {kind.__name__} is not sent")


def _value(plain: Any, blobs: list[bytes]) -> Any:
    """Return the value that ``_plain`` gave this for."""
    if type(plain) is not list:
        if type(plain) is dict:
            raise AnswerError("a value that is none")
        return plain
    kind, *rest = plain
    if kind == "bytes":
        return blobs[rest[0]]
    if kind in _ROWS:
        return _ROWS[kind]([_value(item, blobs) for item in rest])
    if kind == "dict":
        return {_value(k, blobs): _value(v, blobs) for k, v in rest}
    if kind == "fraction":
        over, under = rest
        if type(over) is not int or type(under) is not int:  # of a text such as "1e999999999" it would make the number
            raise AnswerError("a fraction that is none")
        return Fraction(over, under)
    if kind == "array":
        dtype, shape, number = rest
        return _array(dtype, shape, blobs[number])
    found = _named(*rest[:2])
    if kind == "fields" and issubclass(found, tuple) and len(rest) - 2 == len(getattr(found, "_fields", ())) > 0:
        return tuple.__new__(found, [_value(item, blobs) for item in rest[2:]])
    if kind == "error" and issubclass(found, MMPromptError):
        what, hint, where = rest[2:]
        return found(str(what), str(hint), Where(*where))
    raise AnswerError("a value that is none")


def _named(module: str, name: str) -> type:
    if not _OURS.match(module) or not name.isidentifier():
        raise AnswerError("a type that is not sent")
    found = getattr(importlib.import_module(module), name)
    if not isinstance(found, type):
        raise AnswerError("a type that is none")
    return found


def _array(dtype: str, shape: list[int], data: bytes) -> np.ndarray[Any, Any]:
    """Return an array of numbers, judged before it is made."""
    import numpy as np  # noqa: PLC0415  # heavy

    kind = np.dtype(dtype if _NUMBERS.match(dtype) else "V")  # others take a whole language, with faults of its own
    if kind.kind == "V" or len(data) != kind.itemsize * math.prod(shape):
        raise AnswerError("an array that is none")
    return np.frombuffer(data, kind).reshape(shape).copy()
