"""No format goes out with something missing and nobody told: one fault a dataset, for each published format.

The faults: a column renamed, a value null, a mark too many, a choice empty, a picture missing. Each row at fault gives
an error that names its column, or a note; what goes out is never less than the row holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import published
import pytest
from published import Case

from mmprompt import MediaPolicy, MMPromptError, dataset_task

Change = Callable[[dict[str, Any]], None]


def rows_in(value: Any) -> list[dict[str, Any]]:
    """The rows that a JSON file of any of the formats holds."""
    if isinstance(value, list):
        return value
    for key in ("data", "questions", "images"):
        if key in value:
            return value[key]
    return list(value.values())


def changed(case: Case, change: Change) -> None:
    """Change the last row of a dataset in place, whatever file holds it."""
    path = case.path
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        change(rows[-1])
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    elif path.suffix == ".json":
        value = json.loads(path.read_text("utf-8"))
        change(rows_in(value)[-1])
        path.write_text(json.dumps(value, indent=1), "utf-8")
    elif path.suffix == ".tsv":
        import pandas as pd

        frame = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
        rows = frame.to_dict("records")
        change(rows[-1])
        pd.DataFrame(rows).to_csv(path, sep="\t", index=False)
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        rows = table.to_pylist()
        change(rows[-1])
        names = list(dict.fromkeys(name for row in rows for name in row))
        kept = [table.schema.field(n) if n in table.schema.names else pa.field(n, _kind(n, table)) for n in names]
        pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(kept)), path)


def _kind(name: str, table: Any) -> Any:
    return table.schema.field(name.removesuffix("_renamed")).type


def rename(column: str) -> Change:
    def change(row: dict[str, Any]) -> None:
        row[f"{column}_renamed"] = row.pop(column)

    return change


def null(column: str) -> Change:
    return lambda row: row.update({column: None})


def put(column: str, value: Any) -> Change:
    return lambda row: row.update({column: value})


def marked(row: dict[str, Any]) -> None:
    """One mark more than the row has media."""
    for key, text in (("conversations", "value"), ("messages", "content")):
        if key in row:
            mark = "<img></img>" if "<img>" in row[key][0][text] else "<image>"
            row[key][0][text] += mark


def unmarked(row: dict[str, Any]) -> None:
    """One mark fewer."""
    for key, text in (("conversations", "value"), ("messages", "content")):
        if key in row:
            for mark in ("<image>", "<video>"):
                row[key][0][text] = row[key][0][text].replace(mark, "", 1)


def gone(value: str) -> str:
    return f"missing-{value}"


FAULTS: list[tuple[str, str, Change, str]] = [
    # format, fault, change, what the error names
    *[(name, "renamed", rename(key), key) for name, key in (
        ("llava", "conversations"), ("sharegpt", "conversations"), ("qwen", "conversations"),
        ("qwen_vl", "conversations"), ("llamafactory", "messages"), ("mmmu", "question"),
        ("scienceqa", "choices"), ("scienceqa", "hint"), ("vqav2", "question"), ("vqav2", "image_id"),
        ("textvqa", "question"), ("docvqa", "image"), ("mathvista", "question"), ("coco", "file_name"),
        ("mvbench", "candidates"), ("air_bench", "path"), ("inspect", "target"),
        ("audiobench", "instruction"), ("videomme", "options"),
    )],
    *[(name, "null", null(key), key) for name, key in (
        ("llava", "conversations"), ("mmmu", "question"), ("scienceqa", "question"), ("scienceqa", "choices"),
        ("vqav2", "question"), ("textvqa", "question"), ("docvqa", "question"), ("docvqa", "image"),
        ("mathvista", "question"), ("mathvista", "image"), ("videomme", "videoID"), ("videomme", "options"),
        ("mvbench", "video"), ("air_bench", "question"), ("inspect", "input"), ("audiobench", "context"),
        ("audiobench", "instruction"),
    )],
    *[(name, "marks", change, "<im") for name in ("llava", "sharegpt", "llamafactory", "qwen", "qwen_vl")
      for change in (marked,)],
    *[(name, "marks", unmarked, "mark") for name in ("llava", "sharegpt", "qwen")],
    ("mmmu", "marks", put("question", "Look at <image 3>."), "<image 3>"),
    ("mmmu", "marks", put("question", "Look."), "mark"),
    ("mmmu", "choice", put("options", "['a', '', 'b']"), "choice 2"),
    ("mmmu", "choice", lambda row: row.update(question_type="multiple-choice", options=None), "options"),
    ("scienceqa", "choice", put("choices", ["", "b"]), "choice 1"),
    ("mathvista", "choice", put("choices", ["a", " "]), "choice 2"),
    ("videomme", "choice", put("options", ["A. x", ""]), "choice 2"),
    ("mvbench", "choice", put("candidates", ["a", None]), "choice 2"),
    ("air_bench", "choice", lambda row: row.update(choice_a="", choice_b="b"), "choice_a"),
    ("inspect", "choice", put("choices", ["", "b"]), "choice 1"),
    ("vlmevalkit", "choice", lambda row: row.update(A="", B="x"), "choice 'A'"),
    ("vlmevalkit", "picture", put("image", "77"), "'77'"),
    ("vlmevalkit", "picture", put("image", ""), "no picture"),
    ("llava", "picture", put("image", "missing.jpg"), "missing.jpg"),
    ("docvqa", "picture", put("image", "missing.jpg"), "missing.jpg"),
    ("scienceqa", "picture", put("image", "missing.jpg"), "missing.jpg"),
    ("textvqa", "picture", put("image_id", "missing"), "missing.jpg"),
    ("vqav2", "picture", put("image_id", 1), "COCO_val2014_000000000001.jpg"),
    ("coco", "picture", put("file_name", "missing.jpg"), "missing.jpg"),
    ("mvbench", "picture", put("video", "missing.mp4"), "missing.mp4"),
    ("air_bench", "picture", put("dataset_name", "missing"), "Audio_Grounding_missing"),
    ("videomme", "picture", put("videoID", "missing"), "missing.mp4"),
    ("mmmu", "picture", put("image_1", None), "<image 1>"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "fault", "change", "named"), FAULTS)
def test_a_fault_is_an_error_that_names_it(name, fault, change, named, tmp_path: Path):
    case = getattr(published, name)(tmp_path)
    changed(case, change)
    forced = case.format if len(case.rows) == 1 or fault == "renamed" else None
    if name in {"vqav2", "coco"}:
        forced = None
    task = dataset_task(case.path, format=forced)
    roots = [root for root in (task.dataset.root, *map(str, case.roots)) if root is not None]
    errors: list[MMPromptError] = []
    try:
        sent = list(task.requests(policy=MediaPolicy(roots=roots), on_error=errors.append))
    except MMPromptError as error:  # of the file as a whole
        errors.append(error)
        sent = []
    assert len(sent) == len(case.rows) - 1 or not sent
    assert named in str(errors[-1])
    assert errors[-1].where.sample is not None or errors[-1].where.line is not None
