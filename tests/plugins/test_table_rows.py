"""Samples as rows of a runner's table, and back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mmprompt import MediaPolicy, MetaTemplate, MMPromptTemplate, Segment, load_task, to_openai
from mmprompt.errors import RowError, TaskError, TemplateError
from mmprompt.plugins.bridge.table_rows import entry_of_row, sample_of_row, tables
from mmprompt.plugins.bridge.task_rows import TaskRows


def rows_of(path: str) -> list[dict[str, Any]]:
    table = tables(path)["test"]
    return [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]


def test_an_error_has_the_number_and_the_id_of_its_row(tmp_path: Path) -> None:
    lines = [{"id": "q-1", "question": "1+1=?"}, {"id": "q-2", "question": "2+2=?"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    rows = rows_of(str(tmp_path / "rows.jsonl"))
    with pytest.raises(TemplateError, match=r"^row 2 question \(sample q-2\): empty"), entry_of_row(rows[1]):
        raise TemplateError("empty").located(column="question")


def test_an_error_of_another_dataset_s_row_has_its_id_if_it_has_one() -> None:
    for row, text in (({"index": 7, "q": "?"}, r"^\(sample 7\): empty"), ({"q": "?"}, "^empty")):
        with pytest.raises(TemplateError, match=text), entry_of_row(row):
            raise TemplateError("empty")


def test_a_chat_that_a_template_would_replace_is_refused_with_its_row() -> None:
    carried = json.dumps({"row": 4, "columns": {"id": "c"}, "scanned": False, "list_cells": False, "chat": True})
    with (
        pytest.raises(RowError, match=r"^row 5 \(sample c\): the row is a chat already"),
        entry_of_row({"mmprompt": carried}),
    ):
        pass


def test_a_row_of_another_dataset_is_refused_though_it_has_a_row_of_that_number(tmp_path: Path) -> None:
    tasks = []
    for name in ("sums", "names"):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"question": "{name}?"}}', encoding="utf-8")
        (tmp_path / f"{name}.json").write_text(f'{{"dataset": "{name}.jsonl"}}', encoding="utf-8")
        tasks.append(str(tmp_path / f"{name}.json"))
    [sums], [names] = map(rows_of, tasks)
    rows = TaskRows(tasks[0])
    with rows.sample_of(sums) as sample:
        assert sample.columns["question"] == "sums?"
    with pytest.raises(TaskError, match="the row is not in the task's dataset"), rows.sample_of(names):
        pass


def test_answers_stay_as_they_are(tmp_path: Path) -> None:
    answers = ["coffee", 3, "7", True, ["杯", "cup"], None]
    lines = [{"question": "?", "answer": answer} for answer in answers]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    found = tables(str(tmp_path / "rows.jsonl"))["test"]["answer"]
    assert found == ["coffee", 3, "7", True, ["杯", "cup"], None]


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("mm_type", "known: format, infer_mode, media, media_root, output_column, task_abbr, train"),
        ("formt", "did you mean 'format'?"),
    ],
)
def test_an_option_of_another_dataset_class_is_refused(tmp_path: Path, option: str, hint: str) -> None:
    with pytest.raises(TaskError, match=f"^MMPromptDataset takes no argument '{option}'; {re.escape(hint)}$"):
        tables(str(tmp_path / "rows.jsonl"), **{option: "path"})


def test_rows_of_mm_custom_keep_their_segments(tmp_path: Path) -> None:
    row = {"type": "image", "path": ["a.jpg", "b.jpg"], "question": "<AIS_AUDIO_START>?", "answer": "x"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row), encoding="utf-8")
    image = {"type": "image_url", "image_url": {"url": "file://{image}"}}
    skeletons = {"text": {"type": "text", "text": "{question}"}, "image": image}
    template = MMPromptTemplate({"round": [{"role": "HUMAN", "prompt_mm": skeletons}]})
    [carried] = rows_of(str(tmp_path / "rows.jsonl"))
    with entry_of_row(carried) as entry:
        prompt = template.generate_item(entry)
    assert [prompt] == [
        p for _, p in load_task({"infer_cfg": {"prompt_template": template}}, str(tmp_path / "rows.jsonl")).prompts()
    ]
    assert [part.get("text") or part["image_url"]["url"] for part in prompt[0]["prompt"]] == [
        "a.jpg",
        "b.jpg",
        "<AIS_AUDIO_START>?",
    ]
    assert sample_of_row(carried, 0).columns["content"][2] == Segment("text", "<AIS_AUDIO_START>?")


def test_a_row_that_holds_objects_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text("dataset = {'rows': [{'id': 7, 'image': b'\\xff\\xd8'}]}\n", encoding="utf-8")
    with pytest.raises(
        RowError, match=r"^row 1 \(sample 7\): .* of type bytes .*; name media by path, URL or data URI$"
    ):
        tables(str(tmp_path / "task.py"))


def test_columns_that_inferencers_read_from_a_row_themselves_go_along(tmp_path: Path) -> None:
    rows = [{"question": "Is snow", "cont": text, "choices": ["no", "yes"], "answer": "yes"} for text in ("cold", "")]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    table = tables(str(tmp_path / "rows.jsonl"))["test"]
    assert (table["cont"], table["choices"]) == (["cold", ""], [["no", "yes"]] * 2)
    assert list(table) == ["cont", "choices", "id", "answer", "mmprompt"]
    assert tables(str(tmp_path / "rows.jsonl"), output_column="cont")["test"]["cont"] == ["cold", ""]


@pytest.mark.parametrize("odd", [{}, {"cont": 3, "choices": "yes"}, {"cont": None, "choices": ["yes", 1]}])
def test_columns_of_these_names_that_are_something_else_do_not(tmp_path: Path, odd: dict[str, Any]) -> None:
    rows = [{"question": "q", "cont": "a", "choices": ["a"]}, {"question": "q", **odd}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert list(tables(str(tmp_path / "rows.jsonl"))["test"]) == ["id", "answer", "mmprompt"]


def test_what_is_worth_a_look_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "rows.csv").write_text("q|a\n1|2\n3|4\n", encoding="utf-8")
    infer = {"prompt_template": {"template": "{p}?"}}
    task = {"dataset": "rows.csv", "reader_cfg": {"missing": "keep"}, "infer_cfg": infer}
    (tmp_path / "task.json").write_text(json.dumps(task), encoding="utf-8")
    table = rows_of(str(tmp_path / "task.json"))
    rows = TaskRows(str(tmp_path / "task.json"))
    for row in table:
        with rows.sample_of(row) as sample:
            rows.prompt(sample)
    [header, slot] = caplog.messages
    assert "the header is one column" in header
    assert slot.startswith("MM609 all 2 rows: {p} in a template names no column")


def test_a_dataset_without_rows_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "rows.jsonl").touch()
    assert tables(str(tmp_path / "rows.jsonl"))["test"]["id"] == []
    assert caplog.messages == ["there is no row to ask"]


META = {
    "begin": [{"role": "SYSTEM", "prompt": "Be exact."}],
    "round": [
        {"role": "HUMAN", "api_role": "user", "begin": "Q: "},
        {"role": "BOT", "api_role": "assistant", "generate": True},
    ],
    "reserved_roles": [{"role": "SYSTEM", "api_role": "system"}],
}
ASKED = {"round": [{"role": "HUMAN", "prompt": "{q}?"}, {"role": "BOT", "prompt": "{answer}"}]}


@pytest.mark.parametrize("labels", [False, True])
def test_a_prompt_for_a_runner_keeps_what_the_task_s_meta_template_says(tmp_path: Path, labels: bool) -> None:
    infer: dict[str, Any] = {"prompt_template": {"template": {"A": ASKED} if labels else ASKED}}
    if labels:
        infer["inferencer"] = {"type": "PPLInferencer"}
    (tmp_path / "rows.jsonl").write_text('{"q": "1+1", "answer": "2"}', encoding="utf-8")
    task = {"dataset": "rows.jsonl", "infer_cfg": infer, "model": {"meta_template": META}}
    (tmp_path / "task.json").write_text(json.dumps(task), encoding="utf-8")
    path = str(tmp_path / "task.json")
    [(_, wanted)] = load_task(path).messages()
    rows = TaskRows(path)
    with rows.sample_of(rows_of(path)[0]) as sample:
        prompt = rows.label_prompt(sample, "A") if labels else rows.prompt(sample)
    sent = MetaTemplate(None).to_messages(prompt, "ppl" if labels else "gen")
    assert sent == (wanted["A"] if labels else wanted)
    assert "Be exact." in str(sent)


@pytest.mark.parametrize("mode", ["every", "every_with_gt", "last"])
def test_a_dialogue_of_several_turns_is_one_prompt_or_is_refused(tmp_path: Path, mode: str) -> None:
    infer = {
        "prompt_template": {"type": "MultiTurnPromptTemplate", "template": ASKED},
        "inferencer": {"type": "MultiTurnGenInferencer", "infer_mode": mode},
    }
    (tmp_path / "rows.jsonl").write_text('{"q": ["1+1", "2+2"], "answer": ["2", "4"]}', encoding="utf-8")
    (tmp_path / "task.json").write_text(json.dumps({"dataset": "rows.jsonl", "infer_cfg": infer}), encoding="utf-8")
    path = str(tmp_path / "task.json")
    rows = TaskRows(path)
    with rows.sample_of(rows_of(path)[0]) as sample:
        if mode != "last":
            for made in (rows.prompt, rows.messages):
                with pytest.raises(TaskError, match="the task asks for more than one reply to a row"):
                    made(sample)
            return
        [(_, wanted)] = load_task(path).messages()
        assert MetaTemplate(None).to_messages(rows.prompt(sample)) == wanted
        assert rows.messages(sample) == to_openai(wanted)


@pytest.mark.parametrize(
    ("mode", "answers"), [("every", ["2", "7"]), ("every_with_gt", ["2", "7"]), ("last", ["6", "7"])]
)
def test_the_answer_of_a_dialogue_is_that_of_the_turn_that_is_scored(
    tmp_path: Path, mode: str, answers: list[str]
) -> None:
    rows = [{"q": ["1+1", "2+2", "3+3"], "answer": ["2", "4", "6"]}, {"q": ["3+4"], "answer": ["7"]}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    infer = {
        "prompt_template": {"type": "MultiTurnPromptTemplate", "template": ASKED},
        "inferencer": {"type": "MultiTurnGenInferencer", "infer_mode": mode},
    }
    (tmp_path / "task.json").write_text(json.dumps({"dataset": "rows.jsonl", "infer_cfg": infer}), encoding="utf-8")
    assert tables(str(tmp_path / "task.json"))["test"]["answer"] == answers
    assert tables(str(tmp_path / "rows.jsonl"), infer_mode=mode)["test"]["answer"] == answers
    assert tables(str(tmp_path / "rows.jsonl"))["test"]["answer"] == [["2", "4", "6"], ["7"]]
    with pytest.raises(TaskError, match="unknown infer_mode 'lst'; did you mean 'last'"):
        tables(str(tmp_path / "rows.jsonl"), infer_mode="lst")


def test_a_row_without_an_id_has_its_number_in_the_file_whatever_a_runner_filters(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"q": "a"}\n{"q": "b"}', encoding="utf-8")
    sample = sample_of_row(rows_of(str(tmp_path / "rows.jsonl"))[1], 0)
    assert (sample.id, sample.row) == (1, 1)


def test_a_task_file_s_further_roots_need_the_permission_of_the_runner_s_config(tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    media = Path(__file__).parents[2] / "fixtures" / "tour" / "media"
    (tmp_path / "task" / "rows.jsonl").write_text('{"image": "coffee.jpg", "question": "?"}', encoding="utf-8")
    path = tmp_path / "task" / "task.json"
    path.write_text(json.dumps({"dataset": "rows.jsonl", "media": {"roots": [str(media)]}}), encoding="utf-8")
    for refused in (tables, TaskRows):
        with pytest.raises(TaskError, match=r"a task file cannot allow by itself: media\.roots"):
            refused(str(path))
    table = tables(str(path), media_root=[str(media)])["test"]
    rows = TaskRows(str(path), media_root=str(media))
    with rows.sample_of({name: cells[0] for name, cells in table.items()}) as sample:  # type: ignore[arg-type]
        [message] = rows.messages(sample)
    assert message == next(load_task(str(path), policy=MediaPolicy(roots=[media])).requests()).messages[0]  # type: ignore[index]


def test_a_folder_that_the_task_file_does_not_name_may_be_read_too(tmp_path: Path) -> None:
    media = Path(__file__).parents[2] / "fixtures" / "tour" / "media"
    (tmp_path / "rows.jsonl").write_text('{"image": "coffee.jpg", "question": "?"}', encoding="utf-8")
    (tmp_path / "task.json").write_text('{"dataset": "rows.jsonl"}', encoding="utf-8")
    [row] = rows_of(str(tmp_path / "task.json"))
    rows = TaskRows(str(tmp_path / "task.json"), media_root=str(media))
    with rows.sample_of(row) as sample:
        assert "data:image/jpeg;base64," in str(rows.messages(sample))


def test_a_dataset_without_a_task_file_says_where_its_roots_are_named(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"question": "?"}', encoding="utf-8")
    with pytest.raises(TaskError, match="media_root is for a task file; give the template media=dict"):
        tables(str(tmp_path / "rows.jsonl"), media_root="media")


def test_files_of_several_folders_are_refused(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rows.jsonl").write_text('{"image": "a.jpg", "question": "q"}\n', encoding="utf-8")
    with pytest.raises(TaskError, match="lie in several folders"):
        tables(str(tmp_path / "*" / "rows.jsonl"))
