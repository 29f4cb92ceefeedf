"""The end of a runner that goes on after an exception, and then ends with exit code 0."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mmprompt.errors import MMPromptError
from mmprompt.errors.findings import Finding


@contextmanager
def runner_ended() -> Iterator[None]:
    """End the runner's process if the block raises an error of ours: the message on standard error, exit code 1.

    Raises:
        SystemExit: in the error's place.
    """
    try:
        yield
    except MMPromptError as error:
        raise SystemExit(f"mmprompt: {Finding.of(error)}") from None
