"""A page of a journal: replies, scores and comparisons; the journal finds its task by its manifest."""

from __future__ import annotations

import base64
import json
import os
import shutil
from pathlib import Path

import pytest
from opened_page import OpenedPage

from mmprompt import TaskError, load_task, run_task, view_html
from mmprompt.cli import main
from mmprompt.run.intervals import wilson
from mmprompt.viewer.replies import Replies

SHAPES = Path(__file__).parent.parent.parent / "fixtures/shapes/task.yaml"


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of the built-in model on twelve rows, above the folder of its task."""
    folder = tmp_path_factory.mktemp("journal")
    shutil.copytree(SHAPES.parent, folder / "shapes")
    path = folder / "shapes.jsonl"
    assert run_task(folder / "shapes" / "task.yaml", "builtin:shapes", path, limit=12).answered == 12
    return path


def test_a_journal_finds_its_task_and_shows_replies_with_scores(journal: Path, tmp_path: Path) -> None:
    view_html(journal, tmp_path / "page.html", limit=12, check=False)
    page = OpenedPage(tmp_path / "page.html")
    lines = {line["row"]: line for line in map(json.loads, journal.read_text().splitlines())}
    assert len(page.index()) == 12
    for entry, row in zip(page.index(), page.rows(), strict=True):
        line = lines[entry["row"]]
        [reply] = row["replies"]
        assert row["requests"][0]["messages"]
        assert reply["prediction"] == line["prediction"] == entry["prediction"]
        assert entry["score"] == reply["score"] == float(line["prediction"] == line["answer"])
        assert entry["groups"]["category"] in ("shape", "colour")
    assert page.head["counts"]["scores"]["right"] >= 10
    [plot] = [plot for plot in page.head["sides"][0]["plots"] if plot["title"] == "Mean score by category"]
    for bar in plot["bars"]:
        assert (bar["low"], bar["high"]) == wilson(round(bar["value"] * bar["rows"]), bar["rows"])
    assert any(words.startswith("mean score of 12, 95% 0.") for _, words in page.head["sides"][0]["tiles"])


def changed(journal: Path) -> Path:
    """Write the journal with the reply of row 4 changed and an error in place of that of row 7."""
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    for line in lines:
        if line["row"] == 4:
            line["prediction"] = "a dodecahedron"
        if line["row"] == 7:
            del line["prediction"]
            line["error"] = "MM906 the server hung up"
    other = journal.parent / "other.jsonl"
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))
    Path(f"{other}.manifest.json").write_text(Path(f"{journal}.manifest.json").read_text())
    return other


def test_replies_are_read_when_they_are_shown(journal: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    again = {**lines[3], "prediction": "another"}
    odd = {**lines[5], "row": 1 << 70}
    path = tmp_path / "again.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [*reversed(lines), again, odd]))
    replies = Replies(str(path))
    assert [[reply["prediction"] for reply in replies.of(line["row"])] for line in lines] == [
        ["another" if line["row"] == again["row"] else line["prediction"]] for line in lines
    ]
    assert replies.of(12) == replies.of(-1) == []
    path.write_text("".join(json.dumps({**line, "row": 99}) + "\n" for line in lines))
    assert not any(replies.of(row) for row in range(12)), "another file has taken its place"


def test_two_journals_are_compared_row_by_row(journal: Path, tmp_path: Path) -> None:
    other = changed(journal)
    assert main(["view", str(journal), str(other), "--html", str(tmp_path / "page.html"), "--no-check"]) == 0
    page = OpenedPage(tmp_path / "page.html")
    differ = [a["row"] for a, b in zip(page.index(0), page.index(1), strict=True) if a["prediction"] != b["prediction"]]
    assert differ == [4, 7]
    assert page.index(1)[4]["score"] == 0
    assert page.index(1)[7]["failed"]
    assert page.index(1)[7]["score"] is None
    assert page.rows(1)[7]["replies"][0]["error"] == "MM906 the server hung up"


def test_the_terminal_shows_reply_and_score(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(journal), "--id", "shapes-02", "--no-check"]) == 0
    assert "  model  circle  score 1\n" in capsys.readouterr().out


def test_a_journal_is_named_beside_a_task(journal: Path, tmp_path: Path) -> None:
    view_html(load_task(SHAPES), tmp_path / "page.html", journal=journal, limit=2, check=False)
    assert [row["replies"][0]["prediction"] for row in OpenedPage(tmp_path / "page.html").rows()]


def test_a_journal_whose_rows_had_no_file_says_how_to_name_the_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / "rows.jsonl"
    run_task(SHAPES, "builtin:shapes", journal, limit=1)
    manifest = Path(f"{journal}.manifest.json")
    facts = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**facts, "task": None, "dataset": {"path": None}}))
    capsys.readouterr()
    assert main(["view", str(journal), "-n", "--no-check"]) == 0
    assert "view TASK --journal" in capsys.readouterr().err
    assert main(["view", str(SHAPES), "--journal", str(journal), "-n", "--no-check"]) == 0


def test_two_inputs_need_a_page(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(journal), str(journal)]) == 2
    assert "add --html OUT.html" in capsys.readouterr().err


def test_a_journal_shows_the_rows_as_the_run_read_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = SHAPES.parent / "media" / "shapes-02.png"
    (tmp_path / "a.png").write_bytes(picture.read_bytes())
    (tmp_path / "gold.csv").write_text("Nr,gold\n1,orange\n")
    (tmp_path / "rows.csv").write_bytes("Bild,Frage,Nr,é\na.png,What colour is the shape?,1,ü\n".encode("latin-1"))
    journal = tmp_path / "journal.jsonl"
    named = ["--map", "Bild=image", "--map", "Frage=question", "--map", "gold=answer", "--encoding", "latin-1"]
    asked = ["run", str(tmp_path / "rows.csv"), "--model", "builtin:shapes", "-o", str(journal), *named]
    assert main([*asked, "--join", f"{tmp_path / 'gold.csv'}:Nr"]) == 0
    capsys.readouterr()
    assert main(["view", str(journal), "-n", "--no-check"]) == 0
    shown = capsys.readouterr().out
    assert "[image/png " in shown
    assert "What colour is the shape?\n  answer  orange\n  model  orange  score 1\n" in shown


def test_a_journal_of_a_split_shows_the_rows_of_all_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    picture = base64.b64encode((SHAPES.parent / "media" / "shapes-02.png").read_bytes()).decode()
    row = {"image": picture, "question": "Which shape is this?", "answer": "circle"}
    folder.mkdir()
    for name in ("train", "test", "tests_2"):
        (folder / f"{name}.jsonl").write_text(json.dumps({**row, "id": name}) + "\n")
    journal = tmp_path / "journal.jsonl"
    for given, ids in (
        ([str(folder), "--split", "test"], ["test"]),
        ([str(folder / "train.jsonl"), str(folder / "tests_2.jsonl")], ["train", "tests_2"]),
        ([str(folder / "test*.jsonl")], ["test", "tests_2"]),
    ):
        assert main(["run", *given, "--model", "builtin:shapes", "-o", str(journal), "--overwrite"]) == 0
        view_html(journal, tmp_path / "page.html", check=False)
        page = OpenedPage(tmp_path / "page.html")
        assert [entry["id"] for entry in page.index()] == ids
        assert [row["replies"][0]["prediction"] for row in page.rows()] == ["circle"] * len(ids)


def test_options_that_no_run_writes_are_passed_over(journal: Path, tmp_path: Path) -> None:
    other = changed(journal)
    manifest = Path(f"{other}.manifest.json")
    facts = json.loads(manifest.read_text())
    facts["dataset"]["read"] = {
        "format": 7, "map_columns": {"image": ["image"]}, "path": [7], "join": "a:b", "policy": "trusted"
    }  # fmt: skip
    manifest.write_text(json.dumps({**facts, "task": None}))
    view_html(other, tmp_path / "page.html", limit=1, check=False)
    assert len(OpenedPage(tmp_path / "page.html").index()) == 1


def test_the_answers_that_a_run_took_from_its_chats_are_not_shown_as_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.png").write_bytes((SHAPES.parent / "media" / "shapes-02.png").read_bytes())
    content = [{"type": "image_url", "image_url": {"url": "a.png"}}, {"type": "text", "text": "Which shape is this?"}]
    messages = [{"role": "user", "content": content}, {"role": "assistant", "content": "circle"}]
    (tmp_path / "chats.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    journal = tmp_path / "journal.jsonl"
    asked = ["run", str(tmp_path / "chats.jsonl"), "--model", "builtin:shapes", "-o", str(journal)]
    assert main([*asked, "--drop-last-assistant"]) == 0
    capsys.readouterr()
    assert main(["view", str(journal), "-n", "--no-check"]) == 0
    shown = capsys.readouterr().out
    assert "answer  circle" in shown
    assert "assistant" not in shown


SECRET = "the neighbour's secret"


def manifest_of(journal: Path, **facts: object) -> None:
    """Lay a manifest beside a journal that has one line."""
    line = {"row": 0, "id": "q-1", "prediction": "circle", "answer": "circle", "choices": ["circle", "star"]}
    journal.write_text(json.dumps(line) + "\n")
    Path(f"{journal}.manifest.json").write_text(json.dumps({"version": 1, **facts}))


def neighbour(folder: Path) -> Path:
    """Return a dataset beside the folder of the journal."""
    folder.mkdir()
    (folder / "rows.jsonl").write_text(json.dumps({"id": "q-1", "question": SECRET, "answer": "circle"}) + "\n")
    (folder / "task.yaml").write_text("dataset: rows.jsonl\n")
    return folder / "rows.jsonl"


def opening(way: str, rows: Path, mine: Path) -> dict[str, object]:
    """Return the facts of a manifest that names the rows of another folder in one of the ways that there are."""
    if way == "dataset":
        return {"dataset": {"path": str(rows)}}
    if way == "read.path":
        return {"dataset": {"path": "own.jsonl", "read": {"path": [str(rows)]}}}
    if way == "pattern":
        return {"dataset": {"path": "own.jsonl", "read": {"path": [f"{rows.parent}/*.jsonl"]}}}
    if way == "join":
        return {"dataset": {"path": str(mine / "own.jsonl"), "read": {"join": [f"{rows}:id"]}}}
    if way == "task":
        return {"task": str(rows.parent / "task.yaml")}
    if way == "task of the folder":
        (mine / "task.yaml").write_text(json.dumps({"dataset": os.path.relpath(rows, mine)}))
        return {"task": str(mine / "task.yaml")}
    if way == "rows for the task":
        (mine / "task.yaml").write_text(json.dumps({"dataset": "own.jsonl"}))
        return {"task": "task.yaml", "dataset": {"path": str(rows)}}
    if way == "relative":
        return {"dataset": {"path": os.path.relpath(rows, mine)}}
    (mine / "linked").mkdir()
    (mine / "linked" / "rows.jsonl").symlink_to(rows)
    if way == "task of a folder of links":
        (mine / "task.yaml").write_text(json.dumps({"dataset": "linked"}))
        return {"task": "task.yaml"}
    return {"dataset": {"path": {"link": "linked/rows.jsonl", "folder of links": "linked"}[way]}}


@pytest.mark.parametrize(
    "way",
    [
        "dataset", "read.path", "pattern", "join", "task", "task of the folder", "rows for the task", "relative",
        "link", "folder of links", "task of a folder of links",
    ],
)  # fmt: skip
def test_a_manifest_opens_nothing_outside_its_folder(
    way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, mine = neighbour(tmp_path / "theirs"), tmp_path / "mine"
    mine.mkdir()
    (mine / "own.jsonl").write_text(json.dumps({"id": "q-1", "question": "Which shape?"}) + "\n")
    journal = mine / "run.jsonl"
    manifest_of(journal, **opening(way, rows, mine))
    assert main(["view", str(journal), "--html", str(mine / "page.html")]) == 0
    page = OpenedPage(mine / "page.html")
    assert SECRET not in json.dumps([page.head, page.index(), page.rows()])
    [row], [finding] = page.rows(), page.head["sides"][0]["findings"]
    assert row["replies"][0]["prediction"] == "circle"
    assert row["requests"] == []
    assert finding["code"] == "MM206"
    assert "pass --dataset" in finding["hint"] or "mmprompt view" in finding["hint"]
    assert finding["hint"] in capsys.readouterr().err


def test_the_caller_names_the_rows_of_a_journal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, mine = neighbour(tmp_path / "theirs"), tmp_path / "mine"
    mine.mkdir()
    manifest_of(mine / "run.jsonl", dataset={"path": str(rows), "read": {"map_columns": {"question": "question"}}})
    assert main(["view", str(mine / "run.jsonl"), "-n", "--dataset", str(rows)]) == 0
    assert SECRET in capsys.readouterr().out
    view_html(mine / "run.jsonl", mine / "page.html", dataset=rows)
    assert OpenedPage(mine / "page.html").rows()[0]["replies"][0]["prediction"] == "circle"
    with pytest.raises(TaskError, match="this is none"):
        view_html(rows, mine / "page.html", dataset=rows)


def test_rows_of_a_journal_alone_keep_their_numbers(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    manifest_of(journal)
    lines = [{"row": row, "id": f"q-{row}", "prediction": "a", "answer": "a"} for row in (7, 2, 7, 900)]
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    view_html(journal, tmp_path / "page.html")
    page = OpenedPage(tmp_path / "page.html")
    assert [(entry["row"], entry["id"], entry["score"]) for entry in page.index()] == [
        (2, "q-2", 1.0), (7, "q-7", 1.0), (900, "q-900", 1.0),
    ]  # fmt: skip


def test_a_dataset_whose_first_line_is_no_reply_is_no_journal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = neighbour(tmp_path / "theirs")
    Path(f"{rows}.manifest.json").write_text(json.dumps({"version": 1, "task": "helpers.py"}))
    assert main(["view", str(rows), "-n"]) == 0
    assert SECRET in capsys.readouterr().out
