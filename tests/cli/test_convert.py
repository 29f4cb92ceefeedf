"""``mmprompt convert`` and the options that say how a dataset is read."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from command_line import run_here

MEDIA = Path(__file__).parents[2] / "fixtures" / "tour" / "media"


def mmprompt(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    done = run_here(*words, cwd=folder)
    return subprocess.CompletedProcess(words, done.returncode, done.stdout.decode(), done.stderr.decode())


def put(folder: Path, *rows: object) -> None:
    shutil.copy(MEDIA / "coffee.jpg", folder / "coffee.jpg")
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


ROW = {"id": "a", "image": "coffee.jpg", "question": "What?", "answer": "a cup"}


def test_a_dataset_is_written_in_another_format_and_read_back(tmp_path: Path) -> None:
    put(tmp_path, ROW)
    done = mmprompt(tmp_path, "convert", "rows.jsonl", "rows.tar", "--to", "webdataset")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("mmprompt: 1 rows written to rows.tar\n")
    shown = mmprompt(tmp_path, "render", "rows.tar")
    assert shown.stderr.startswith("mmprompt: rows.tar is read as webdataset\n")
    assert shown.stdout == mmprompt(tmp_path, "render", "rows.jsonl").stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["coffee.jpg", "rows.jsonl", "rows.tar"]


def test_semicolons_become_commas_and_are_noted(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id;question;answer\n1;Where, when?;here\n2;x\n", "utf-8")
    done = mmprompt(tmp_path, "convert", "rows.csv", "new.csv", "--to", "csv")
    assert done.returncode == 1
    assert (tmp_path / "new.csv").read_text() == 'id,question,answer\n1,"Where, when?",here\n'
    assert "rows.csv:3: MM008 the row has 2 cells" in done.stderr
    assert "note: rows.csv:1: MM026 ';' separates the columns" in done.stderr
    checked = mmprompt(tmp_path, "check", "rows.csv", "--ignore", "MM008")
    assert (checked.returncode, checked.stdout) == (0, "All checks passed!\n")
    assert "MM026" in mmprompt(tmp_path, "check", "rows.csv", "--select", "MM026").stdout
    assert "Where, when?" in mmprompt(tmp_path, "view", "rows.csv").stdout


def test_media_go_into_files_beside_the_output(tmp_path: Path) -> None:
    put(tmp_path, ROW)
    done = mmprompt(tmp_path, "convert", "rows.jsonl", "out.csv", "--to", "csv", "--store", "files")
    assert done.returncode == 0
    (file,) = (tmp_path / "out_media").iterdir()
    assert file.read_bytes() == (MEDIA / "coffee.jpg").read_bytes()
    assert (tmp_path / "out.csv").read_text() == f"id,image,question,answer\na,out_media/{file.name},What?,a cup\n"


def test_a_folder_of_media_is_written_and_read(tmp_path: Path) -> None:
    put(tmp_path, ROW)
    assert mmprompt(tmp_path, "convert", "rows.jsonl", "pictures", "--to", "imagefolder").returncode == 0
    assert mmprompt(tmp_path, "render", "pictures").stdout == mmprompt(tmp_path, "render", "rows.jsonl").stdout
    again = mmprompt(tmp_path, "convert", "rows.jsonl", "pictures", "--to", "imagefolder")
    assert (again.returncode, "is a folder that exists" in again.stderr) == (2, True)


def test_a_row_that_the_format_cannot_hold_is_left_out(tmp_path: Path) -> None:
    put(tmp_path, ROW, {"id": "b", "question": "no picture"})
    done = mmprompt(tmp_path, "convert", "rows.jsonl", "out.tsv", "--to", "vlmevalkit")
    assert done.returncode == 1
    assert (
        "rows.jsonl:2: MM800 vlmevalkit holds pictures, and the row has none; write --to jsonl (sample b)\n"
        in done.stderr
    )
    assert done.stderr.endswith("mmprompt: 1 rows written to out.tsv, 1 left out\n")


def test_a_path_outside_the_roots_is_not_copied(tmp_path: Path) -> None:
    put(tmp_path, {**ROW, "image": "/etc/passwd"})
    for store in ("embed", "files"):
        done = mmprompt(tmp_path, "convert", "rows.jsonl", "out.jsonl", "--to", "jsonl", "--store", store)
        assert done.returncode == 1
        assert "'/etc/passwd' is outside the media roots" in done.stderr
        assert not (tmp_path / "out.jsonl").exists()


def test_names_that_lead_nowhere_from_the_output_are_a_note(tmp_path: Path) -> None:
    put(tmp_path, ROW)
    (tmp_path / "out").mkdir()
    for output, noted in (("beside.jsonl", False), ("out/rows.jsonl", True)):
        done = mmprompt(tmp_path, "convert", "rows.jsonl", output, "--to", "jsonl", "--store", "keep")
        assert (done.returncode, "note: MM206 media keep their relative names" in done.stderr) == (0, noted)
    hint = f"read the output with --media-root {shlex.quote(str(tmp_path.resolve()))}, or write it with --store files"
    assert hint in done.stderr
    assert mmprompt(tmp_path, "render", "out/rows.jsonl").returncode == 1
    assert mmprompt(tmp_path, "render", "out/rows.jsonl", "--media-root", ".").returncode == 0


def test_choices_of_any_number_and_their_answers_suit_vlmevalkit(tmp_path: Path) -> None:
    row = {"image": "coffee.jpg", "question": "Which?"}
    put(tmp_path, *[{"id": n, **row, "choices": ["x", "y", "z"][: 3 - n], "answer": 1} for n in range(2)])
    done = mmprompt(tmp_path, "convert", "rows.jsonl", "out.tsv", "--to", "vlmevalkit")
    assert done.returncode == 0, done.stderr
    lines = map(json.loads, mmprompt(tmp_path, "render", "out.tsv").stdout.splitlines())
    asked = [(line["messages"][0]["content"][1]["text"], line["answer"]) for line in lines]
    assert asked == [("Which?\nA. x\nB. y\nC. z", "B"), ("Which?\nA. x\nB. y", "B")]


def test_choices_that_a_row_has_twice_are_written_once(tmp_path: Path) -> None:
    row = {"id": "a", "question": "Which?", "answer": "A"}
    same, other = {"choice_a": "x", "choice_b": "y"}, {"option_1": "z", "option_2": "y"}
    put(tmp_path, *[{**row, "options": options, **same, **other} for options in (["x", "y"], ["A. x", "B. y"])])
    assert mmprompt(tmp_path, "convert", "rows.jsonl", "new.jsonl", "--to", "jsonl").returncode == 0
    written = [json.loads(line) for line in (tmp_path / "new.jsonl").read_text().splitlines()]
    assert written == [{**row, "options": options, **other} for options in (["x", "y"], ["A. x", "B. y"])]


def test_choices_in_columns_of_other_names_are_choices_in_every_format(tmp_path: Path) -> None:
    row = {"id": "a", "question": "Which?", "optionA": "ice", "optionB": "fire", "answer": "B"}
    put(tmp_path, row, {**row, "id": "b", "optionA": "up"})
    assert mmprompt(tmp_path, "convert", "rows.jsonl", "rows.csv", "--to", "csv").returncode == 0
    text = (tmp_path / "rows.csv").read_text()
    assert text == 'id,question,options,answer\na,Which?,"[""ice"", ""fire""]",B\nb,Which?,"[""up"", ""fire""]",B\n'
    assert mmprompt(tmp_path, "render", "rows.csv").stdout == mmprompt(tmp_path, "render", "rows.jsonl").stdout
    odd = {**row, "answer": "C"}
    put(tmp_path, odd)
    assert "MM702" in mmprompt(tmp_path, "check", "rows.jsonl").stdout


def test_rows_without_an_id_have_their_numbers_as_index_in_vlmevalkit(tmp_path: Path) -> None:
    put(tmp_path, *[{"image": "coffee.jpg", "question": f"{n}?", "answer": "x"} for n in range(2)])
    done = mmprompt(tmp_path, "convert", "rows.jsonl", "out.tsv", "--to", "vlmevalkit")
    assert done.returncode == 0, done.stderr
    lines = map(json.loads, mmprompt(tmp_path, "render", "out.tsv").stdout.splitlines())
    assert [(line["id"], line["messages"][0]["content"][1]["text"]) for line in lines] == [("0", "0?"), ("1", "1?")]


def test_a_wrong_word_names_the_nearest(tmp_path: Path) -> None:
    put(tmp_path, ROW)
    for words, told in (
        (("--to", "parqet"), "did you mean 'parquet'?"),
        (("--to", "jsonl", "--store", "embd"), "did you mean 'embed'?"),
        (("--to", "webdataset", "--store", "keep"), "use --store embed"),
        (("--to", "jsonl", "--map", "image=pictur"), "write COLUMN=ROLE"),
        (("--to", "jsonl", "--join", "rows.jsonl"), "write --join FILE:COLUMN"),
    ):
        done = mmprompt(tmp_path, "convert", "rows.jsonl", "out", *words)
        assert (done.returncode, told in done.stderr) == (2, True), done.stderr


def test_the_roles_of_columns_reach_the_messages(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "pic": "coffee.jpg",
            "Q": "What?",
            "label": "B",
            "nr": 7,
            "opts": ["x", "y"],
            "say": "Be brief.",
            "tip": "Look.",
        },
    )
    roles = {
        "pic": "image",
        "Q": "question",
        "label": "answer",
        "nr": "id",
        "opts": "choices",
        "say": "system",
        "tip": "hint",
    }
    maps = [word for column, role in roles.items() for word in ("--map", f"{column}={role}")]
    done = mmprompt(tmp_path, "render", "rows.jsonl", "--media", "keep", *maps)
    assert done.returncode == 0
    assert json.loads(done.stdout) == {
        "id": 7,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "coffee.jpg"}},
                    {"type": "text", "text": "Look.\nWhat?\nA. x\nB. y"},
                ],
            },
        ],
        "answer": "B",
    }
    assert "not sent" not in done.stderr


def test_several_files_and_a_pattern_are_one_dataset(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"part-{number}.jsonl").write_text(json.dumps({"question": f"q{number}"}) + "\n", "utf-8")
    for words in (("part-0.jsonl", "part-1.jsonl", "part-2.jsonl"), ("part-*.jsonl",)):
        lines = mmprompt(tmp_path, "render", *words).stdout.splitlines()
        assert [json.loads(line)["id"] for line in lines] == [0, 1, 2]


def test_a_row_without_partner_and_a_missing_column_are_told(tmp_path: Path) -> None:
    put(tmp_path, {"question": "a", "nr": 1}, {"question": "b", "nr": 2}, {"question": "c"})
    (tmp_path / "gold.csv").write_text("nr,answer\n1,x\n", "utf-8")
    done = mmprompt(tmp_path, "render", "rows.jsonl", "--join", "gold.csv:nr")
    assert [json.loads(line).get("answer") for line in done.stdout.splitlines()] == ["x", None]
    assert "note: gold.csv: MM024 1 row has no partner in gold.csv (first: '1')" in done.stderr
    assert (
        "rows.jsonl:3: MM006 no column 'nr', by which rows are joined; known: question (nr, sample 2)\n" in done.stderr
    )


def test_text_in_another_encoding_is_read(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes("id,question\n1,这是什么?\n".encode("gb18030"))
    done = mmprompt(tmp_path, "render", "rows.csv", "--encoding", "gb18030")
    assert json.loads(done.stdout)["messages"][0]["content"] == "这是什么?"
    assert mmprompt(tmp_path, "render", "rows.csv").returncode == 1
    wrong = mmprompt(tmp_path, "render", "rows.csv", "--encoding", "utf-99")
    assert (wrong.returncode, "unknown encoding 'utf-99'" in wrong.stderr) == (2, True)


def test_the_splits_and_columns_of_a_task_file_count(tmp_path: Path) -> None:
    rows = [{"split": "test", "Q": "t", "label": "x"}, {"split": "dev", "Q": "d", "label": "y"}]
    put(tmp_path, *rows)
    (tmp_path / "task.yaml").write_text(
        "dataset: {path: rows.jsonl, splits: test, columns: {Q: question, label: answer}}\n"
        "infer_cfg: {prompt_template: {type: PromptTemplate, template: {round: [{role: HUMAN, prompt: 'Q: {question} {Q}'}]}}}\n",
        "utf-8",
    )
    done = mmprompt(tmp_path, "render", "task.yaml")
    (line,) = map(json.loads, done.stdout.splitlines())
    assert (line["messages"][0]["content"], line["answer"]) == ("Q: t t", "x")


def test_options_of_a_dataset_beside_a_task_file_are_refused(tmp_path: Path) -> None:
    put(tmp_path, ROW)
    (tmp_path / "task.yaml").write_text("dataset: rows.jsonl\n", "utf-8")
    done = mmprompt(tmp_path, "render", "task.yaml", "--key", "data")
    assert (done.returncode, "--key beside a task file" in done.stderr) == (2, True)


BATCH = [
    {
        "custom_id": "a", "method": "POST", "url": "/v1/chat/completions",
        "body": {"model": "m", "max_tokens": 3, "messages": [{"role": "user", "content": "Hi"}], "temperature": 0},
    },
    {"custom_id": "b", "body": {"messages": [{"role": "user", "content": "Ho"}], "stop": ["END"]}, "answer": "x"},
]  # fmt: skip


def test_lines_of_a_batch_file_stay_such_lines_in_openais_format(tmp_path: Path) -> None:
    put(tmp_path, *BATCH)
    done = mmprompt(tmp_path, "convert", "rows.jsonl", "out.jsonl", "--to", "openai")
    assert (done.returncode, done.stderr) == (0, "mmprompt: 2 rows written to out.jsonl\n")
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()] == BATCH
    task = ["render", "--emit", "batch", "out.jsonl"]
    assert mmprompt(tmp_path, *task).stdout == mmprompt(tmp_path, *task[:-1], "rows.jsonl").stdout


def test_a_format_that_does_not_hold_a_batch_lines_settings_names_them(tmp_path: Path) -> None:
    put(tmp_path, *BATCH, {"custom_id": "c", "body": {"messages": [{"role": "user", "content": "He"}]}})
    done = mmprompt(tmp_path, "convert", "rows.jsonl", "out.jsonl", "--to", "ais")
    assert (done.returncode, len((tmp_path / "out.jsonl").read_text().splitlines())) == (0, 3)
    said = "note: MM614 2 rows: the Batch lines' own settings are not written (model, max_tokens, temperature, stop);"
    assert f"{said} --to openai keeps them\n" in done.stderr


def test_errors_of_a_conversion_go_to_a_file_as_data(tmp_path: Path) -> None:
    put(
        tmp_path,
        ROW,
        {"id": 7, "question": "no picture"},
        ["no row"],
        {"id": "c", "image": "gone.jpg", "question": "q"},
    )
    words = ["convert", "rows.jsonl", "out.tsv", "--to", "vlmevalkit", "--errors", "errors.jsonl"]
    done = mmprompt(tmp_path, *words)
    assert done.returncode == 1
    faults = [json.loads(line) for line in (tmp_path / "errors.jsonl").read_text("utf-8").splitlines()]
    assert [(f["line"], f["row"], f["id"]) for f in faults] == [(2, 1, 7), (3, 2, None), (4, 3, "c")]
    assert all(fault["message"] in done.stderr and fault["severity"] == "error" for fault in faults)
    done = mmprompt(tmp_path, *words[:1], "gone.jsonl", *words[2:])
    [fault] = map(json.loads, (tmp_path / "errors.jsonl").read_text("utf-8").splitlines())
    assert (done.returncode, fault["message"]) == (2, "no such file: 'gone.jsonl'")


def test_errors_of_a_conversion_that_are_only_counted_name_the_option(tmp_path: Path) -> None:
    put(tmp_path, ROW, *[{"question": "no picture"}] * 5)
    done = mmprompt(tmp_path, "convert", "rows.jsonl", "out.tsv", "--to", "vlmevalkit")
    assert "… --errors FILE.jsonl writes all errors to a file\n" in done.stderr


def test_errors_of_a_conversion_overwrite_no_other_file_of_it(tmp_path: Path) -> None:
    put(tmp_path, ROW)
    before = (tmp_path / "rows.jsonl").read_bytes()
    for errors in ("rows.jsonl", "./rows.jsonl", "out.tsv"):
        (tmp_path / "out.tsv").write_text("old")
        done = mmprompt(tmp_path, "convert", "rows.jsonl", "out.tsv", "--to", "vlmevalkit", "--errors", errors)
        assert (done.returncode, "is also an input or output" in done.stderr) == (2, True)
        assert ((tmp_path / "rows.jsonl").read_bytes(), (tmp_path / "out.tsv").read_text()) == (before, "old")


@pytest.mark.parametrize(("name", "noted"), [("rows.csv", False), ("rows.tsv", False), ("rows.jsonl", True)])
def test_only_rows_that_may_have_types_are_told_to_become_text(tmp_path: Path, name: str, noted: bool) -> None:
    mark = "\t" if name.endswith("tsv") else ","
    text = '{"id": 1, "question": "q"}\n' if noted else f"id{mark}question\n1{mark}q\n"
    (tmp_path / name).write_text(text, encoding="utf-8")
    done = mmprompt(tmp_path, "convert", name, "out.csv", "--to", "csv")
    assert (done.returncode, "MM007 csv holds text only" in done.stderr) == (0, noted)
