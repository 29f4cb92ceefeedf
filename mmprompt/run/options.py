"""The options of a request that a caller may set: generation settings and whatever else the server accepts."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mmprompt.errors import ServerError
from mmprompt.targets.json_values import JSONValue

_OWN = "leave it out: the client sets it"
_RESERVED = {
    **dict.fromkeys(("messages", "model"), _OWN),
    "n": "ask again for another reply",
    "timeout": "it is a setting of the client",
    **dict.fromkeys(("extra_body", "extra_headers", "extra_query"), "write the server's own keys: top_k=5"),
}
"""Options that are refused, each with a hint: the client sets them, or they would lose part of the reply."""


def checked_options(options: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    """Return the options of a request; a stream of pieces will end with the usage.

    Raises:
        ServerError: the client sets such an option itself, or it holds NaN or infinity.
    """
    for name, value in options.items():
        if name in _RESERVED:
            raise ServerError(f"{name} is not an option of a request", _RESERVED[name])
        _check_numbers(name, value)
    return {**({"stream_options": {"include_usage": True}} if options.get("stream") else {}), **options}


def _check_numbers(name: str, value: object) -> None:
    """Refuse an option that holds NaN or infinity. Other values that are not JSON are refused when they are written."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        raise ServerError(f"{name} holds NaN or infinity, which JSON does not have", "give a finite number") from None
    except (TypeError, RecursionError):
        return
