"""That the tables of threats in the README beside the media code name tests that are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from readme_blocks import documents

FOLDER = Path(__file__).parent
THREATS = documents()["mmprompt/media/README.md"].read_text(encoding="utf-8").partition("\n## Threats\n")[2]
TABLES = THREATS.partition("\n## ")[0]
_TEST = re.compile(r"`([\w./]+\.py)::(test_\w+)`")


def rows(text: str) -> list[tuple[str, str]]:
    """Return the threat and the tests of each row."""
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [(row[0], row[1]) for row in cells if row[1] not in ("test", "---")]


@cache
def names_in(file: str) -> frozenset[str]:
    """Return the names of the tests in a file, as pytest would find them, without running it."""
    tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
    return frozenset(n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_"))


def missing(text: str) -> list[str]:
    """Return the tests that the tables name and that are not there."""
    every = [pair for _, cell in rows(text) for pair in _TEST.findall(cell)]
    return [f"{f}::{t}" for f, t in every if not (FOLDER / f).is_file() or t not in names_in(f)]


def test_every_test_that_the_tables_name_exists():
    assert missing(TABLES) == []
    wrong = TABLES.replace("test_an_absolute_path_outside_is_refused", "test_that_was_renamed")
    assert missing(wrong) == ["test_threats_files.py::test_that_was_renamed"]
    wrong = TABLES.replace("`test_threats_sound.py::", "`test_gone.py::")
    assert all(name.startswith("test_gone.py::") for name in missing(wrong))
    assert len(missing(wrong)) > 5


def test_every_threat_has_one_line_and_each_line_a_test():
    threats = rows(TABLES)
    assert len({threat for threat, _ in threats}) == len(threats) > 45
    for threat, cell in threats:
        assert re.fullmatch(rf"{_TEST.pattern}(, {_TEST.pattern})*", cell), threat
