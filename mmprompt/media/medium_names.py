"""How errors name the medium that they are about."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypeVar

from mmprompt.errors import MMPromptError, shown
from mmprompt.media.sources import classify_or_path, in_short
from mmprompt.messages import MediaRef

_OF_FILES = ("path", "file", "url")
_Error = TypeVar("_Error", bound=MMPromptError)


def name_of_medium(part: MediaRef) -> str:
    """Return the name of a medium in short; bytes and objects without one are called by their modality.

    The path of bytes in a tar file is their suffix alone.
    """
    source = part.source
    named = "." in str(source.get("path")) if isinstance(source, Mapping) else isinstance(source, (str, os.PathLike))
    return in_short(source) if named else f"the {part.modality}"


def naming(name: str, error: _Error) -> _Error:
    """Return the error with the name of its medium before its words, unless they hold it or a setting is at fault."""
    if error.where.setting is not None or name in error.what or shown(name) in error.what:
        return error
    return type(error)(f"{name}: {error.what}", error.hint, error.where, error.code)


def naming_file(part: MediaRef, error: _Error) -> _Error:
    """Return the error with the name of its medium before its words, as ``naming``, if the medium is a file or URL."""
    source = part.source
    named = isinstance(source, os.PathLike) or (isinstance(source, str) and classify_or_path(source) in _OF_FILES)
    return naming(in_short(source), error) if named else error
