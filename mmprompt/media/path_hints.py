"""What is odd about the name of a file that is not there."""

from __future__ import annotations

import re

from mmprompt.media.media_types import suffix_type

_BETWEEN_NAMES = re.compile(r"[,;|\s]+")
_LONG_NAME = 300
"""Characters; a name of a file has hardly as many."""


def name_hint(path: str) -> str:
    """Return what may be wrong with a name, behind a semicolon; empty where it looks like any other."""
    if "\\" in path:
        return "; write / for the backslashes"
    if path != path.strip():
        return "; it begins or ends with a blank"
    if path.startswith(('"', "'")):
        return "; take the quotes off"
    if path.startswith(("~", "$")):
        return f"; write the folder out: {path[0]} means nothing here"
    if len(path) > _LONG_NAME:
        return "; if it is base64, write nothing before or behind it"
    if len([name for name in _BETWEEN_NAMES.split(path) if suffix_type(name)]) > 1:
        return '; several names are a list: ["a.jpg", "b.jpg"]'
    return ""
