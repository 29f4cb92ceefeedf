"""What a decoding process may say: unpickled with a list of what may be made, for it may have been taken over."""

from __future__ import annotations

import io
import pickle
import re
from typing import Any

from mmprompt.errors import MMPromptError

_PLAIN = {
    ("builtins", "bytearray"),
    ("builtins", "complex"),
    ("builtins", "frozenset"),
    ("builtins", "set"),
    ("fractions", "Fraction"),
}
_NUMPY = re.compile(r"numpy(\._?core\.(multiarray|numeric))?\Z")
_NUMPY_NAMES = {"_frombuffer", "_reconstruct", "dtype", "ndarray", "scalar"}
_OURS = re.compile(r"mmprompt\.(errors|parts|media\.\w+)\Z")
_BROKEN = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    TypeError,
    ValueError,
)
"""What unpickling raises for bytes that are no pickle, found by trying."""


class AnswerError(Exception):
    """Bytes that are no answer."""


def answer_of(message: bytes | bytearray) -> tuple[str, Any]:
    """Return an answer: its kind, and its value.

    Values are plain ones, named tuples of the media package, our errors, fractions and NumPy arrays.

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


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Return what a pickle names, if it may be made."""
        if (module_name, global_name) in _PLAIN:
            return super().find_class(module_name, global_name)
        if _NUMPY.match(module_name) and global_name in _NUMPY_NAMES:
            return super().find_class(module_name, global_name)
        if _OURS.match(module_name) and global_name.isidentifier():
            found = super().find_class(module_name, global_name)
            if (
                isinstance(found, type)
                and found.__module__ == module_name
                and issubclass(found, (tuple, MMPromptError))
            ):
                return found
        raise pickle.UnpicklingError("it is of a type that may not be sent")
