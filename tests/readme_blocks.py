"""The README files of the repository, and the fenced blocks in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import mmprompt

ROOT = Path(__file__).parent.parent
PACKAGE = Path(mmprompt.__file__).parent
_BLOCK = re.compile(r"(?:^<!-- (file|not run|runner): (.+?) -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: the line of its first line of text, its language, its text, and the comment before it.

    The comment is ``file: NAME`` (the block is that file), ``runner: NAME`` (a test of that runner runs it) or
    ``not run: REASON``.
    """

    line: int
    language: str
    text: str
    comment: str
    value: str


def documents() -> dict[str, Path]:
    """All Markdown files, by their path in the repository: those of the package are taken from where it is installed."""
    found = {"README.md": ROOT / "README.md"}
    found |= {f"mmprompt/{p.relative_to(PACKAGE).as_posix()}": p for p in sorted(PACKAGE.rglob("*.md"))}
    for folder in ("tests", "fixtures", ".github"):
        found |= {p.relative_to(ROOT).as_posix(): p for p in sorted((ROOT / folder).rglob("*.md"))}
    return found


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a document, in order."""
    text = path.read_text(encoding="utf-8")
    return [
        Block(text.count("\n", 0, match.start(4)) + 1, match[3], match[4], match[1] or "", match[2] or "")
        for match in _BLOCK.finditer(text)
    ]


def blocks_of_runner(document: str, runner: str) -> list[Block]:
    """The blocks of a document that a test of the runner runs."""
    return [b for b in blocks(documents()[document]) if (b.comment, b.value) == ("runner", runner)]
