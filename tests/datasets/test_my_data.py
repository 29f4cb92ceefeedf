"""The table "My data look like this" of the datasets page: each row's command is typed, beside data as it describes."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import published
import pytest
from published import CAT, CUP, Case, Sent, dump, image, lines, put, user

import mmprompt
from mmprompt.cli import main

PAGE = (Path(mmprompt.__file__).parent / "datasets" / "README.md").read_text(encoding="utf-8")
TABLE = PAGE.split("## My data look like this")[1].split("\n### ")[0]
ROWS = dict(re.findall(r"^\| (?!my data \||---)(.+?) \| (.+?) \|$", TABLE, re.MULTILINE))

SENT = [
    Sent("r-1", [user(image(), "What is it?")], ("a cup",)),
    Sent("r-2", [user(image(CAT), "杯 NA")], ("007",)),
]
PLAIN = [
    {"id": "r-1", "image": CUP, "question": "What is it?", "answer": "a cup"},
    {"id": "r-2", "image": CAT, "question": "杯 NA", "answer": "007"},
]


def table(path: Path, rows: list[dict[str, str]], delimiter: str = ",", encoding: str = "utf-8") -> None:
    with open(path, "w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=delimiter).writerows([list(rows[0]), *[list(row.values()) for row in rows]])


def plain(folder: Path) -> list[Sent]:
    put(folder, CUP, CAT)
    lines(folder / "vqa.jsonl", *PLAIN)
    dump(folder / "vqa.json", PLAIN)
    table(folder / "vqa.csv", PLAIN)
    table(folder / "vqa.tsv", PLAIN, "\t")
    return SENT


def other_names(folder: Path) -> list[Sent]:
    put(folder, CUP, CAT)
    names = {"id": "qid", "image": "pic", "question": "Q", "answer": "label"}
    table(folder / "vqa.csv", [{names[name]: value for name, value in row.items()} for row in PLAIN])
    return SENT


def under_a_key(folder: Path) -> list[Sent]:
    put(folder, CUP, CAT)
    dump(folder / "all.json", {"authors": [{"name": "x"}], "data": PLAIN})
    dump(folder / "one.json", {"version": 1, "data": PLAIN})
    return SENT


def second_file(folder: Path) -> list[Sent]:
    put(folder, CUP, CAT)
    asked = [{"question_id": row["id"], "image": row["image"], "question": row["question"]} for row in PLAIN]
    lines(folder / "questions.jsonl", *asked)
    table(folder / "answers.csv", [{"question_id": row["id"], "answer": row["answer"]} for row in PLAIN])
    return SENT


def encoded(folder: Path) -> list[Sent]:
    put(folder, CUP, CAT)
    table(folder / "vqa.csv", PLAIN, encoding="gb18030")
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in PLAIN)
    (folder / "vqa.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    zstandard = pytest.importorskip("zstandard", reason="needs zstandard: pip install zstandard")
    (folder / "vqa.jsonl.zst").write_bytes(zstandard.compress(text.encode()))
    return SENT


Words = dict[str, str]
"""Words of the command, and what stands in their place."""


def case(
    made: Callable[[Path], Case], word: str, pattern: str = "", within: str = ""
) -> Callable[[Path], tuple[list[Sent], Words]]:
    """Return a function that makes a published dataset; its path, or ``pattern``, stands in place of ``word``."""

    def prepare(folder: Path) -> tuple[list[Sent], Words]:
        (folder / within).mkdir(exist_ok=True)
        found = made(folder / within)
        roots = found.roots or (folder,)
        return found.rows, {word: pattern or str(found.path), "IMAGES": str(roots[0])}

    return prepare


def own(make: Callable[[Path], list[Sent]], **words: str) -> Callable[[Path], tuple[list[Sent], Words]]:
    """Return a function that makes data of ours under the names of the command; ``words`` takes another of them."""
    return lambda folder: (make(folder), {"vqa.jsonl": words["file"]} if "file" in words else {})


p = published
DATA = {
    "JSON lines": [own(plain), *[own(plain, file=f"vqa.{suffix}") for suffix in ("json", "csv", "tsv")]],
    "the same with other names": [own(other_names)],
    "a JSON file with the rows": [own(under_a_key), lambda f: (under_a_key(f), {"all.json": "one.json", "--key": ""})],
    "answers in a second file": [own(second_file)],
    "MMBench": [case(p.vlmevalkit, "MMBench_DEV_EN.tsv")],
    "MMMU, Video-MME": [
        case(made, "test-00000-of-00001.parquet") for made in (p.mmmu, p.videomme, p.audiobench, p.parquet)
    ],
    "a folder of Parquet files": [case(p.parquet, "FOLDER"), case(p.saved, "FOLDER")],
    "several files": [case(p.parquet, "data/*.parquet", "data/*.parquet")],
    "pictures or sounds": [case(p.imagefolder, "FOLDER"), case(p.audiofolder, "FOLDER")],
    "WebDataset": [case(p.tar, "shards/*.tar", "shards/*.tar", "shards"), case(p.packed_tar, "shards/*.tar", "shards/*.tar.gz", "shards")],
    "LLaVA, ShareGPT": [case(made, "train.json") for made in (p.llava, p.sharegpt, p.llamafactory, p.alpaca, p.qwen)],
    "chats for TRL": [case(p.vsft, "train.parquet"), case(p.trl, "train.parquet", "train.jsonl")],
    "InternVL": [case(p.internvl, "meta.json")],
    "ScienceQA, MathVista": [
        case(made, "problems.json")
        for made in (
            p.scienceqa, p.mathvista, p.textvqa, p.docvqa, p.vqav2, p.coco, p.mvbench, p.arc, p.arc_of_ai2, p.air_bench
        )
    ],
    "inspect-ai samples": [case(p.inspect, "samples.jsonl")],
    "text that is not UTF-8": [own(encoded), lambda f: (encoded(f), {"vqa.jsonl.gz": "vqa.jsonl.zst"})],
    "rows in Python": [],
}  # fmt: skip
"""By the beginning of the first cell: what makes such data."""


def part_of(part: dict[str, Any]) -> tuple[str, str]:
    if part["type"] == "text":
        return "text", part["text"]
    uri = part[part["type"]]["url"]
    return part["type"].partition("_")[0], hashlib.sha256(base64.b64decode(uri.partition(",")[2])).hexdigest()


def sent(line: str) -> Sent:
    row = json.loads(line)
    messages = [
        (m["role"], [("text", m["content"])] if isinstance(m["content"], str) else [*map(part_of, m["content"])])
        for m in row["messages"]
    ]
    answer = row.get("answer")
    return Sent(row["id"], messages, () if answer is None else tuple(answer) if isinstance(answer, list) else (answer,))


def test_each_row_of_the_table_has_data_here() -> None:
    found = [[beginning for beginning in DATA if row.startswith(beginning)] for row in ROWS]
    assert [len(beginnings) for beginnings in found] == [1] * len(DATA)
    assert [beginnings[0] for beginnings in found] == list(DATA)


@pytest.mark.parametrize(
    ("beginning", "number"), [(beginning, n) for beginning, makers in DATA.items() for n in range(len(makers))]
)
def test_what_a_row_of_the_table_says_is_typed_and_sends_the_data(
    beginning: str, number: int, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected, words = DATA[beginning][number](tmp_path)
    row = next(row for row in ROWS if row.startswith(beginning))
    commands = re.findall(r"`(mmprompt .+?)`", ROWS[row])
    assert commands
    for command in commands:
        typed = [words.get(word, word) for word in shlex.split(command)[1:]]
        if "" in typed:  # an option that is left out, and its value
            del typed[typed.index("") : typed.index("") + 2]
        if words.get("IMAGES", str(tmp_path)) != str(tmp_path) and words["IMAGES"] not in typed:
            typed += ["--media-root", words["IMAGES"]]  # as the page says where media lie elsewhere
        assert main(typed) == 0, capfd.readouterr().err
        assert [sent(line) for line in capfd.readouterr().out.splitlines()] == expected, typed


def test_rows_from_python_are_on_the_page() -> None:
    assert ROWS["rows in Python, a pandas frame, a `datasets` Dataset"] == "[Rows from Python](#rows-from-python)"
    assert "\n## Rows from Python\n\n" in PAGE
