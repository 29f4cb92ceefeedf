"""That the table of threats in README.md names tests that are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import groupby
from pathlib import Path

FOLDER = Path(__file__).parent
PARTS = {"Files": 6, "Decoders": 13, "Network": 6, "Text": 8}
"""The parts in their order, and how many threats each has."""

_TEST = re.compile(r"`(…|[\w./]+\.py)::(test_\w+)`")


def rows(text: str) -> list[list[str]]:
    """Return the cells of the table's rows, its head and rule left out."""
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def named(cell: str) -> list[tuple[str, str]]:
    """Return file and name of each test that a cell names; ``…`` stands for the file before it."""
    found: list[tuple[str, str]] = []
    for file, test in _TEST.findall(cell):
        found.append((found[-1][0] if file == "…" else file, test))
    return found


@cache
def names_in(file: str) -> frozenset[str]:
    """Return the names of the tests in a file, as pytest would find them, without running it."""
    tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
    return frozenset(n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_"))


def missing(text: str) -> list[str]:
    """Return the tests that the table names and that are not there."""
    every = [pair for *_, cell in rows(text) for pair in named(cell)]
    return [f"{f}::{t}" for f, t in every if not (FOLDER / f).is_file() or t not in names_in(f)]


TABLE = (FOLDER / "README.md").read_text(encoding="utf-8")


def test_every_test_that_the_table_names_exists():
    assert missing(TABLE) == []
    wrong = TABLE.replace("test_an_absolute_path_outside_is_refused", "test_that_was_renamed")
    assert missing(wrong) == ["test_threats_files.py::test_that_was_renamed"]
    wrong = TABLE.replace("`test_threats_sound.py::", "`test_gone.py::")
    assert all(name.startswith("test_gone.py::") for name in missing(wrong))
    assert len(missing(wrong)) > 5


def test_every_threat_has_its_line_and_each_line_a_test():
    cells = rows(TABLE)
    assert [(part, len(list(lines))) for part, lines in groupby(cells, lambda row: row[0])] == list(PARTS.items())
    for row in cells:
        assert len(row) == 3, row[1]
        assert named(row[2]), row[1]
    threats = [row[1] for row in cells]
    assert len(set(threats)) == len(threats)


def test_every_name_in_the_table_is_read():
    assert sum(len(named(cell)) for *_, cell in rows(TABLE)) == TABLE.count("::test_") > 150


def test_every_test_of_the_files_of_threats_is_in_the_table():
    listed = {pair for *_, cell in rows(TABLE) for pair in named(cell)}
    files = sorted(path.name for path in FOLDER.glob("test_threats_*.py"))
    assert len(files) >= 4
    assert [f"{file}::{test}" for file in files for test in sorted(names_in(file)) if (file, test) not in listed] == []
