"""What a guard is: a piece of the source that keeps a threat out, and what stands there when it is switched off."""

from __future__ import annotations

from typing import NamedTuple


class Guard(NamedTuple):
    """A guard against one threat.

    ``threat`` is the first cell of its row in the tables of ``mmprompt/media/README.md``. ``off`` says what is switched
    off. Each change is a file below ``mmprompt/``, a text that stands in it once, and the text to put in its place. Where
    two guards keep the same thing out, the changes switch off both. ``tests`` stand in the place of those of the row.
    """

    threat: str
    off: str
    changes: tuple[tuple[str, str, str], ...]
    tests: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The threat, and what is switched off."""
        return f"{self.threat} [{self.off}]"


def guard(threat: str, off: str, *changes: tuple[str, str, str], tests: tuple[str, ...] = ()) -> Guard:
    """Return a guard with these changes."""
    return Guard(threat, off, changes, tests)
