"""The file of ``--errors``: the errors of rows, and the error that ends the command."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from mmprompt.cli import say, system_words
from mmprompt.cli.output import data_output, first_line
from mmprompt.cli.report import ErrorReport
from mmprompt.errors import MMPromptError, Where, shown
from mmprompt.errors.findings import Finding


@contextmanager
def error_report(path: str | None) -> Iterator[ErrorReport]:
    """Give the report of a run's errors, which also writes them to the file."""
    with data_output(path) as data:
        errors = ErrorReport(data)
        try:
            yield errors
        except (MMPromptError, OSError) as error:
            if not isinstance(error, BrokenPipeError) and getattr(error, "filename", None) != path:
                errors.record(_finding(error))
            raise


@contextmanager
def recorded(path: str | None) -> Iterator[None]:
    """Write an error that ends the command before its first row to the file of ``--errors`` too.

    A file that holds something else is left alone: it may be the dataset of a task that cannot be loaded.
    """
    try:
        yield
    except (MMPromptError, OSError) as error:
        if path is not None and os.path.isfile(path) and not _holds_errors(path):
            say(f"note: {shown(path)} holds something else than errors, so the error is not written to it")
        elif path is not None:
            with data_output(path) as data:
                ErrorReport(data).record(_finding(error))
        raise


def _finding(error: MMPromptError | OSError) -> Finding:
    """Return an error as data. One of the system, such as a full disk, has the words of the command's last line."""
    if isinstance(error, MMPromptError):
        return Finding.of(error)
    return Finding.at("MM900", system_words(error), "", Where())


def _holds_errors(path: str) -> bool:
    """Return whether a file is empty, or begins with an error as data."""
    line = first_line(path)
    try:
        first = json.loads(line or "{}")
    except (ValueError, RecursionError):
        return False
    return not line or (isinstance(first, dict) and first.keys() >= {"severity", "message", "hint"})
