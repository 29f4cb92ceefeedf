"""The ways to mend a fault as a config of AISBench or OpenCompass writes them: keys of ``media``, not our options."""

from __future__ import annotations

import re
from typing import TypeVar

from mmprompt.errors import MMPromptError

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
