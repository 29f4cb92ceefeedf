"""The package's log warnings in a shard, kept for the report of the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from logging import Handler, LogRecord

from mmprompt._log import log


@contextmanager
def warnings_kept() -> Iterator[list[tuple[str, str, str]]]:
    """Give a list that receives kind, code and words of each log warning while the block runs, of each kind once."""
    kept: dict[str, tuple[str, str, str]] = {}
    listed: list[tuple[str, str, str]] = []

    class Kept(Handler):
        def emit(self, record: LogRecord) -> None:
            if record.msg not in kept:
                kept[record.msg] = (str(record.msg), getattr(record, "code", "MM900"), record.getMessage())
                listed.append(kept[record.msg])

    handler = Kept()
    log.addHandler(handler)
    try:
        yield listed
    finally:
        log.removeHandler(handler)
