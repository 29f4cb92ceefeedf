"""The table of guards, and the tests that each threat names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import of_decoders
import of_files
import of_strangers
from guard import Guard

import mmprompt

TESTS = Path(__file__).parent.parent
SOURCE = Path(mmprompt.__file__).parent

GUARDS: tuple[Guard, ...] = (*of_files.GUARDS, *of_decoders.GUARDS, *of_strangers.GUARDS)
WITHOUT = of_files.WITHOUT
"""Threats against which no check can be switched off, and why."""

for _folder in (TESTS, TESTS / "media"):
    if str(_folder) not in sys.path:  # pytest has put them there
        sys.path.append(str(_folder))

from test_threat_table import _TEST, FOLDER, TABLES, rows  # noqa: E402

THREATS = {threat: tuple([f"{file}::{test}" for file, test in _TEST.findall(cell)]) for threat, cell in rows(TABLES)}


def named_tests(guard: Guard) -> list[str]:
    """Return the tests of a guard as pytest takes them: those that it names, or those of its threat."""
    named = guard.tests or THREATS[guard.threat]
    return [os.path.relpath(os.path.join(FOLDER, name), TESTS.parent) for name in named]


def texts_without(guard: Guard) -> dict[str, str]:
    """Return the files that a guard changes, with the guard switched off.

    Raises:
        ValueError: a text is not there exactly once.
    """
    texts: dict[str, str] = {}
    for file, text, instead in guard.changes:
        before = texts.get(file) or (SOURCE / file).read_text(encoding="utf-8")
        if before.count(text) != 1:
            raise ValueError(f"{file} holds {before.count(text)} times: {text}")
        texts[file] = before.replace(text, instead)
    return texts
