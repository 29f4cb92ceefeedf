"""Requests behind short texts that a runner passes through its prompts, its caches and its files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from mmprompt.errors import TaskError, shown
from mmprompt.render.request import Request

_MARKER = re.compile(r"mmprompt:\d+:[0-9a-f]{16}")


class MarkedRequests:
    """The requests of one process by their markers, ``mmprompt:ROW:HASH``.

    A runner's task puts the marker into the runner's prompt, and our model for that runner sends the request in its
    place. The hash is of the whole request, so a reply that a runner has cached belongs to the same request.
    ``model`` is True once our model exists: any other model would send the marker itself.
    """

    def __init__(self) -> None:
        self._requests: dict[str, Request] = {}
        self.model = False

    def add(self, requests: Iterable[Request]) -> list[str]:
        """Keep requests, and return their markers."""
        made = {_marker(row, request): request for row, request in enumerate(requests)}
        self._requests.update(made)
        return list(made)

    def request(self, prompt: object) -> Request:
        """Return the request of a runner's prompt.

        Raises:
            TaskError: the prompt is not the marker of one of these requests alone.
        """
        found = self._requests.get(prompt) if isinstance(prompt, str) else None
        if found is None and isinstance(prompt, str) and _MARKER.fullmatch(prompt):
            raise TaskError(f"{prompt} is the marker of another run", "delete the runner's cache of prompts")
        if found is None:
            what = f"the model of mmprompt asks rows of mmprompt's tasks only, and the prompt is {shown(prompt)}"
            raise TaskError(what, "use a model of the runner for its own tasks")
        return found

    def require_model(self, hint: str) -> None:
        """Refuse to go on with another model than ours; ``hint`` says how to choose ours.

        Raises:
            TaskError: our model has not been made in this process.
        """
        if not self.model:
            raise TaskError("another model would get a marker in place of each request", hint)


def _marker(row: int, request: Request) -> str:
    return f"mmprompt:{row}:{hashlib.sha256(request.body()).hexdigest()[:16]}"


MARKED = MarkedRequests()
"""Those of this process: a runner gives its tasks and its models no place to meet."""
