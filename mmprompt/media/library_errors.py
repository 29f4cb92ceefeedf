"""Turns what a library raises on a medium into an error of ours, so that it costs one row and not the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mmprompt.errors import MMPromptError, SourceError


@contextmanager
def library_errors(what: str, fault: str, hint: str, code: str = "MM200") -> Iterator[None]:
    """Raise a SourceError in place of every exception that is not ours. Interrupts pass.

    Decoders raise more than their own errors on damaged files: AssertionError, MemoryError, RecursionError and others.
    Their words are left out, because they may hold addresses and paths.

    Args:
        what: the medium or the decoder, the subject of the message.
        fault: what happened to it.
        hint: what to do about it.
        code: that of the error.
    """
    try:
        yield
    except MMPromptError:
        raise
    except MemoryError:
        raise SourceError(f"{what} needs more memory than there is", "make the medium smaller", code=code) from None
    except Exception as error:  # noqa: BLE001  # the one place that decides about the exceptions of decoders
        raise SourceError(f"{what} {fault} ({type(error).__name__})", hint, code=code) from None
