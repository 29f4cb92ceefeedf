"""What comes out of the corpus is what was recorded, but for the stated differences: lines, errors, notes and exit codes.

If it differs, record both checkouts and see what differs:

    git worktree add ../base 010a3094
    PYTHONPATH=../base python tests/recorded/record.py before.jsonl KIND
    python tests/recorded/record.py after.jsonl KIND
    python tests/recorded/compare.py before.jsonl after.jsonl
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import compare
import corpus
import corpus_doors
import pytest
import reference

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="names of files and of folders are recorded")

Expected = dict[str, dict[str, reference.Hashes]]


@pytest.fixture(scope="module")
def expected() -> Expected:
    return reference.expected()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with corpus.work_folder() as path:
        yield path


def differing(name: str, expected: Expected, folder: Path, chosen: slice) -> dict[str, list[str]]:
    """Return the parts that differ, by door."""
    case = corpus.made(name)
    if not corpus.can_run(case):
        pytest.skip(f"{name} needs {case.needs or 'pyarrow'}")
    corpus.put(case, folder)
    found = {}
    for door in corpus.doors(name, case)[chosen]:
        now = reference.hashes({"case": name, **corpus_doors.record(case, door)})
        if parts := [part for part in reference.PARTS if now[part] != expected[name][door][part]]:
            found[door] = parts
    return found


SAMPLE = [(kind, at) for at, kind in enumerate(corpus.KINDS) if kind != "changed_media"]  # which starts processes


@pytest.mark.parametrize(("kind", "at"), SAMPLE)
def test_a_case_of_each_kind_comes_out_as_recorded(kind: str, at: int, expected: Expected, folder: Path) -> None:
    assert not differing(f"{kind}/{at % corpus.CASES}", expected, folder, slice(at % 4, None, 4))


@pytest.mark.slow
@pytest.mark.parametrize("kind", corpus.KINDS)
def test_all_cases_come_out_as_recorded(kind: str, expected: Expected, folder: Path) -> None:
    names = [f"{kind}/{number}" for number in range(corpus.CASES)]
    assert not {name: found for name in names if (found := differing(name, expected, folder, slice(None)))}


def test_each_kind_meets_all_pairs_of_target_and_emit(expected: Expected) -> None:
    pairs = {f"render {target} {emit}" for target, emit in corpus.PAIRS}
    of_kind = {kind: {d for n in range(corpus.CASES) for d in expected[f"{kind}/{n}"]} for kind in corpus.KINDS}
    assert not {kind: pairs - doors for kind, doors in of_kind.items() if pairs - doors and kind != "changed_media"}


def test_the_reference_has_each_case_and_door(expected: Expected) -> None:
    assert list(expected) == corpus.names()
    assert all(
        [*doors] == corpus.doors(name, corpus.made(name)) for name, doors in expected.items() if name.endswith("/3")
    )


# ---- the comparison itself

A, B = "tags/0", "tags/1"
ROW = {"case": A, "door": "messages", "lines": ["one", "two", "three"], "errors": [], "notes": [["MM1", "x"]], "end": 0}


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    def write(name: str, *records: Any) -> Path:
        (tmp_path / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="ascii")
        return tmp_path / name

    return write


def test_a_comparison_names_what_was_swapped_dropped_and_added(written: Callable[..., Path]) -> None:
    before = written("a", ROW, {**ROW, "case": B}, {**ROW, "door": "prompts"})
    after = written("b", {**ROW, "lines": ["two", "one", "three"], "notes": []}, {**ROW, "case": B, "end": 1})
    assert [*compare.changes(before, after, (), "")] == [
        (A, "messages", "lines", "[0]", "one", "two"),
        (A, "messages", "lines", "[1]", "two", "one"),
        (A, "messages", "notes", "[0]", ["MM1", "x"], None),
        (B, "messages", "end", "", 0, 1),
    ]
    assert [change[0] for change in compare.changes(before, after, [B], "mess")] == [B]


def test_a_stated_difference_holds_for_its_new_outcome_alone(
    written: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = tmp_path / "differences.json"
    stated.write_text("[]", encoding="utf-8")
    monkeypatch.setattr(reference, "DIFFERENCES", stated)
    monkeypatch.setattr(compare, "DIFFERENCES", stated)
    before, after = written("a", ROW), written("b", {**ROW, "lines": ["1"]})
    compare.state("lines are numbers", [*compare.changes(before, after, (), "")], after)
    assert not [*compare.changes(before, after, (), "")]
    assert [*compare.changes(before, written("c", {**ROW, "lines": ["2"]}), (), "")]
    assert [difference["reason"] for difference in json.loads(stated.read_text(encoding="utf-8"))] == [
        "lines are numbers"
    ]
    assert reference.expected()[A]["messages"]["lines"] == reference.hashes({**ROW, "lines": ["1"]})["lines"]


def test_each_stated_difference_has_a_reason_and_is_recorded_otherwise() -> None:
    recorded = dict(_recorded())
    for difference in json.loads(reference.DIFFERENCES.read_text(encoding="utf-8")):
        assert difference["reason"].strip()
    assert not {key for key, value in reference.stated().items() if recorded[key] == value}


def _recorded() -> Iterator[tuple[tuple[str, str, str], str]]:
    with pytest.MonkeyPatch.context() as here:
        here.setattr(reference, "stated", dict)
        for case, doors in reference.expected().items():
            for door, parts in doors.items():
                yield from (((case, door, part), value) for part, value in parts.items())
