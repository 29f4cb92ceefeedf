"""Notes on many rows are those on each of them, also where rows are alike and are looked at once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmprompt import load_task, render_file
from mmprompt.datasets.sample import Sample
from mmprompt.tasks.row_shapes import likeness

TEMPLATE = {"template": {"round": [{"role": "HUMAN", "prompt_mm": {"image": "{image}", "text": "{question}"}}]}}
TASKS: dict[str, dict[str, Any]] = {
    "plain": {},
    "template": {"infer_cfg": {"prompt_template": {"type": "MMPromptTemplate", **TEMPLATE}}},
    "answer": {"reader_cfg": {"output_column": "label"}},
}
URL = "https://images.example/cat.jpg"
CONTENT = f"<AIS_IMAGE_START>{URL}<AIS_CONTENT_TAG><AIS_TEXT_START>What is it?<AIS_CONTENT_TAG>"
NAMES = ("question", "image", "hint", "answer", "label", "note", "picture", "video", "A", "B", "options", "option_1")
usual = st.sampled_from(["cat", "What is it?", "a b", "naïve", "问题", "NAs", 'a "b"', "5"])
odd = st.sampled_from(
    ["", " ", "\u3000", "\n", " x", "nan", "NA", "<NA>", "null ", "a <image> b", '["a", "b"]', URL, "a.wav"]
)
listed = st.sampled_from(
    [["cat", "dog"], ["cat", "dog", "mouse"], ["cat"], ["cat", ""], ["nan", "dog"], [["cat"], "dog"], [URL]]
)
others = st.one_of(listed, st.sampled_from([None, 5, 0.5, float("inf"), True, [], {"A": "cat"}]))
values = st.one_of(usual, usual, usual, usual, odd, odd, others)
texts = st.one_of(usual, usual, odd)


@st.composite
def datasets(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw rows of one or two sets of columns. From the second row of a set on, most have a form."""
    rows = []
    for _ in range(draw(st.integers(1, 2))):
        names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=6))
        tagged, drawn = draw(st.booleans()), draw(st.sampled_from([texts, values]))
        for _ in range(draw(st.integers(1, 12))):
            row: dict[str, Any] = {
                "id": draw(st.sampled_from([f"q-{len(rows)}", len(rows), None])),
                **{name: draw(drawn) for name in names},
            }
            if "image" in row and draw(st.integers(0, 4)):
                row["image"] = URL
            rows.append({**row, "content": CONTENT} if tagged else row)
    return rows


def counted(folder: Path, rows: list[dict[str, Any]], config: dict[str, Any]) -> Counter[Any]:
    """Return what is noted on rows of a file, with the numbers of rows."""
    (folder / "rows.jsonl").write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )
    task = load_task({"dataset": str(folder / "rows.jsonl"), **config})
    render_file(task, folder / "requests.jsonl", on_error=lambda _: None)
    state = task.row_notes.state
    found: Counter[Any] = Counter({fact: rest[0] for fact, *rest in state["found"]})
    found.update({("left", name): count for name, count in state["left"].items()})
    for columns, count, empty, _ in state["shapes"]:
        found[tuple(columns)] += count
        found.update({("empty", *columns, name): rows for name, rows in empty.items()})
    return found


@pytest.mark.parametrize("name", TASKS)
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=datasets())
def test_notes_on_many_rows_are_those_on_each(
    name: str, rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    alone: Counter[Any] = Counter()
    for row in rows:
        alone.update(counted(folder, [row], TASKS[name]))
    assert counted(folder, rows, TASKS[name]) == alone


def like(**columns: object) -> object:
    return likeness(Sample(columns, 1, None, 1, 0, scanned=True))


@pytest.mark.parametrize(
    "value", ["", " x", "\u2003", "[1]", "nan", "NA ", "a < b", [], ["a", ""], ["nan"], [5], float("nan")]
)
def test_a_value_that_may_be_worth_a_note_is_not_ordinary(value: object) -> None:
    assert like(question="What?", note="x") is not None
    assert like(question="What?", note=value) is None


def test_rows_whose_values_have_other_types_are_not_alike() -> None:
    kinds = [like(question="What?", note=value) for value in ("x", None, 5, ["a"], True)]
    assert len({*kinds}) == len(kinds)
    assert None not in kinds


@pytest.mark.parametrize("column", ["note", "hint", "question", "answer"])
@pytest.mark.parametrize("tagged", [False, True])
def test_an_odd_value_among_rows_with_a_form_is_noted(tagged: bool, column: str, tmp_path: Path) -> None:
    content = {"content": CONTENT} if tagged else {"image": URL}
    as_usual = {"question": "What?", "hint": "look", "answer": "a", "note": "x", **content}
    rows = [{"id": f"q-{number}", **as_usual} for number in range(20)]
    for number, value in enumerate(["", " ", "\u3000", "\n", "nan", "NA", "a <image> b"]):
        rows[10 + number][column] = value
    alone: Counter[Any] = Counter()
    for row in rows:
        alone.update(counted(tmp_path, [row], {}))
    assert counted(tmp_path, rows, {}) == alone
