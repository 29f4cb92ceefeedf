"""What a report is: it writes findings as they come, or those of a dataset when it was checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import ClassVar

from mmprompt.check.store import Store
from mmprompt.check.summary import Summary
from mmprompt.errors.findings import Finding
from mmprompt.errors.missing_files import MissingFiles
from mmprompt.media.base64_text import encode_text
from mmprompt.targets.exact_json import finite

Write = Callable[[str], object]


class Report:
    """Writes what a check found, as text. Call ``begin``, ``dataset`` for each dataset, and ``end``.

    A report that ``streams`` may get each finding by ``finding`` as soon as it is known, in place of ``dataset``: those
    on rows in the order of rows, then those on the whole dataset. ``thumbnails``: it shows small pictures of media.
    """

    streams: ClassVar[bool] = False
    thumbnails: ClassVar[bool] = False

    def __init__(self, write: Write) -> None:
        self.write = write
        self.missing = MissingFiles()

    def begin(self) -> None:
        """Write what stands before the first finding."""

    def finding(self, finding: Finding) -> None:
        """Write a finding."""

    def dataset(self, name: str, store: Store) -> None:  # noqa: ARG002  # some reports write it
        """Write all findings of a dataset, in the order of rows; ``name`` is its path as given."""
        for finding in store.findings():
            self.finding(finding)

    def end(self, summary: Summary) -> None:
        """Write what stands after the last finding."""


def page_head(title: str, style: str) -> str:
    """Return the beginning of a page, up to its body. The page may use these styles and inline pictures, and no other.

    ``title`` and ``style`` are our own words. The browser knows the styles by their digest.
    """
    import hashlib  # noqa: PLC0415  # OpenSSL takes 3 ms to load

    digest = encode_text(hashlib.sha256(style.encode()).digest())
    rules = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="{rules}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<style>{style}</style></head><body>
"""


def printable(text: str, kept: str = "") -> str:
    """Return a text with its control characters, which may come from the data, escaped, but for those of ``kept``."""
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() or c in kept else c.encode("unicode_escape").decode("ascii") for c in text])


def json_text(value: object) -> str:
    """Return a value as JSON on one line. NaN and infinity, which JSON lacks, are texts."""
    return json.dumps(finite(value), ensure_ascii=False, default=str)
