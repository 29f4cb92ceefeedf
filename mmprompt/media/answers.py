"""What a decoding process may say: values only, for its memory may have been damaged by what it decoded.

Answers are pickled with a short list of what may be made of them. Arrays travel as bytes with a type and a shape,
since NumPy's own way of unpickling believes what it is told.
"""

from __future__ import annotations

import io
import math
import pickle
import re
import sys
from typing import TYPE_CHECKING, Any

from mmprompt.errors import MMPromptError

if TYPE_CHECKING:
    import numpy as np

_PLAIN = {("builtins", "complex"), ("builtins", "frozenset"), ("builtins", "set"), ("fractions", "Fraction")}
_OURS = re.compile(r"mmprompt\.(errors|parts|media\.\w+)\Z")
_BROKEN = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
)
"""What unpickling raises for bytes that are no pickle, found by trying."""


class AnswerError(Exception):
    """Bytes that are no answer."""


def packed_answer(kind: str, value: object) -> bytes:
    """Return an answer as bytes.

    Raises:
        TypeError, AttributeError, pickle.PicklingError: the value is of a type that does not pickle.
    """
    buffer = io.BytesIO()
    _Pickler(buffer, 5).dump((kind, value))
    return buffer.getvalue()


def answer_of(message: bytes | bytearray) -> tuple[str, Any]:
    """Return an answer: its kind, and its value.

    Values are plain ones, named tuples of the media package, our errors, fractions and arrays of numbers; a number of
    NumPy's comes as Python's.

    Raises:
        AnswerError: it is none, or names something else.
    """
    try:
        answer = _Unpickler(io.BytesIO(message)).load()
    except _BROKEN as error:
        raise AnswerError(str(error) if type(error) is pickle.UnpicklingError else type(error).__name__) from None
    if type(answer) is not tuple or len(answer) != 2 or type(answer[0]) is not str:
        raise AnswerError("it is no pair")
    return answer


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any, /) -> Any:
        """Return how an object is made again: arrays and numbers of NumPy as plain data, others as usual."""
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray) and not value.dtype.hasobject:
            return _array, (value.dtype.str, value.shape, value.tobytes())
        if numpy is not None and isinstance(value, numpy.generic):
            return _number, (value.item(),)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Return what a pickle names, if it may be made."""
        if (module_name, global_name) in _PLAIN:
            return super().find_class(module_name, global_name)
        if module_name == __name__ and global_name in ("_array", "_number"):
            return globals()[global_name]
        if _OURS.match(module_name) and global_name.isidentifier():
            found = super().find_class(module_name, global_name)
            if isinstance(found, type) and issubclass(found, (tuple, MMPromptError)):
                return found
        raise pickle.UnpicklingError("it is of a type that may not be sent")


def _array(dtype: str, shape: tuple[int, ...], data: bytes) -> np.ndarray[Any, Any]:
    """Return an array of numbers, judged before it is made."""
    import numpy as np  # noqa: PLC0415  # heavy

    kind = np.dtype(str(dtype))
    if kind.kind not in "biufc" or type(data) is not bytes or len(data) != kind.itemsize * math.prod(shape):
        raise ValueError("an array that is none")
    return np.frombuffer(data, kind).reshape(shape).copy()


def _number(value: complex) -> complex:
    return value
