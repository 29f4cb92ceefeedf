"""A value put into a line of JSON or a record of CSV changes that value and nothing else."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmprompt.check.kept import KeptFix
from mmprompt.check.mending import MendedFile
from mmprompt.check.store import Store
from mmprompt.errors import Where
from mmprompt.errors.findings import Finding

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0\ufeff"), max_size=6) | st.sampled_from(
    ['"', ",", "\n", '""', 'a"b', "a,b", " ", "a\nb"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
BOUNDED = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def mended(path: Path, kind: str, *fixes: KeptFix) -> bytes:
    with Store() as store:
        store.add_fixes(fixes)
        return b"".join([record.new for record in MendedFile(str(path), kind, store).records()])


@given(
    before=st.dictionaries(TEXT, VALUES, max_size=3),
    key=TEXT,
    old=VALUES,
    after=st.dictionaries(TEXT, VALUES, max_size=3),
    new=TEXT,
    marks=st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", "\t : ")]),
    plain=st.booleans(),
)
@BOUNDED
def test_one_value_of_an_object_changes(
    tmp_path: Path,
    before: dict[str, object],
    key: str,
    old: object,
    after: dict[str, object],
    new: str,
    marks: tuple[str, str],
    plain: bool,
) -> None:
    row = {**before, key: old, **{name: value for name, value in after.items() if name != key}}
    line = json.dumps(row, ensure_ascii=plain, separators=marks).encode() + b"\n"
    path = tmp_path / "data.jsonl"
    path.write_bytes(b"{}\n" + line + b'{"last": 1}')
    result = mended(path, "jsonl", KeptFix(1, str(path), 2, "MM104", key, new, True))
    assert result.startswith(b"{}\n")
    assert result.endswith(b'\n{"last": 1}')
    assert json.loads(result[3:-12]) == {**row, key: new}
    if new == old:
        assert result == path.read_bytes()


@given(
    rows=st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=4),
    chosen=st.integers(0, 3),
    column=st.integers(0, 2),
    new=CELL,
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    mark=st.sampled_from([("csv", ","), ("tsv", "\t")]),
    end=st.sampled_from(["\n", "\r\n"]),
)
@BOUNDED
def test_one_cell_of_a_table_changes(
    tmp_path: Path,
    rows: list[tuple[str, str, str]],
    chosen: int,
    column: int,
    new: str,
    quoting: int,
    mark: tuple[str, str],
    end: str,
) -> None:
    chosen %= len(rows)
    held = io.StringIO()
    writer = csv.writer(held, delimiter=mark[1], lineterminator=end, quoting=quoting)
    writer.writerow(["a", "b", "c"])
    lines = []
    for row in rows:
        lines.append(held.getvalue().count("\n") + 1)
        writer.writerow(row)
    path = tmp_path / f"data.{mark[0]}"
    path.write_bytes(held.getvalue().encode())
    fix = KeptFix(chosen, str(path), lines[chosen], "MM104", "abc"[column], new, True)
    result = mended(path, mark[0], fix).decode()
    expected = [list(row) for row in rows]
    expected[chosen][column] = new
    assert list(csv.reader(io.StringIO(result, newline=""), delimiter=mark[1]))[1:] == expected
    if new == rows[chosen][column]:
        assert result == held.getvalue()


def test_twice_the_fixes_take_twice_the_steps_in_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect, ticks = sqlite3.connect, []

    def counted(path: str) -> sqlite3.Connection:
        made = connect(path)
        made.set_progress_handler(lambda: ticks.append(1), 100)
        return made

    monkeypatch.setattr(sqlite3, "connect", counted)

    def steps(count: int) -> int:
        path = tmp_path / "data.jsonl"
        path.write_text('{"a": 1}\n' * count)
        with Store() as store:
            for row in range(count):
                where = Where(str(path), row + 1, "a")
                store.add_findings([Finding.at("MM104", "open", "close it", where, row)])
                store.add_fixes([KeptFix(row, str(path), row + 1, "MM104", "a", 2, True)])
            ticks.clear()
            file = MendedFile(str(path), "jsonl", store)
            assert all(record.new == b'{"a": 2}\n' for record in file.records())
            assert (file.count, store.count()) == (count, 0)
            return len(ticks)

    assert 100 < steps(1600) < 2.5 * steps(800)  # four times as many if each fix looks at all findings
