"""Rows to requests through both doors, to the null device.

One door is ``render_file``, which is what the command line does. The other is ``task.requests`` with ``body()``, as a
Python program sends requests.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

from mmprompt import Task, render_file

COMPARED = 50


def bodies(task: Task, target: str = "vllm") -> Iterator[bytes]:
    """Yield the body of each request."""
    return (request.body() for request in task.requests(target))


def render_to_nowhere(task: Task, limit: int | None = None, target: str = "vllm") -> None:
    """Render a task's rows to the null device."""
    render_file(task, os.devnull, target=target, limit=limit)


def drop(made: Iterator[bytes]) -> None:
    """Write each request to the null device."""
    with open(os.devnull, "wb") as sink:
        sink.writelines(made)


def check_same(task: Task, bound: Iterator[bytes], target: str = "vllm", made: Iterator[bytes] | None = None) -> None:
    """Refuse to compare programs that do not do the same: the first lines must be equal, and hold the bodies.

    ``made`` stands in place of the bodies, for a task that has none.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lines")
        render_file(task, path, target=target, limit=COMPARED)
        with open(path, "rb") as file:
            lines = list(file)
    for ours, line, body in zip(lines, bound, made or bodies(task, target), strict=False):  # these two go on
        sent = body[1:-1].replace(b'"max_tokens":64,', b"").removesuffix(b',"max_tokens":64')
        other = line if ours != line else sent
        if ours != line or sent not in line:
            at = next((n for n, (a, b) in enumerate(zip(ours, other, strict=False)) if a != b), 0)
            shown = "\n".join(repr(text[max(0, at - 200) : at + 200]) for text in (ours, other))
            raise SystemExit(f"lines differ from the bound's, or from the bodies, after {at} bytes:\n{shown}")
