"""``mmprompt init``: the task file that it writes renders the dataset, each row with all it holds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mmprompt import load_task

ROWS: dict[str, tuple[str, list[list[str]]]] = {
    "columns.jsonl": (
        '{"id": 1, "pic": "coffee.jpg", "Question": "What?", "gt_answer": "cup", "source": "x"}\n',
        [["coffee.jpg", "What?"]],
    ),
    "choices.tsv": (
        "index\timage_path\tquestion\thint\tA\tB\tC\tanswer\n1\tcoffee.jpg\tWhich?\tLook.\tx\ty\t\tA\n2\tcoffee.jpg\tWho?\tAgain.\tx\ty\tz\tA\n",
        [["coffee.jpg", "Look.\nWhich?\nA. x\nB. y"], ["coffee.jpg", "Again.\nWho?\nA. x\nB. y\nC. z"]],
    ),
    "named.csv": (
        "question,option_a,option_b,option_c,answer\nWhich?,x,y,,B\nWho?,x,y,z,C\n",
        [["Which?\nA. x\nB. y"], ["Who?\nA. x\nB. y\nC. z"]],
    ),
    "mixed.jsonl": (
        '{"image": "coffee.jpg", "question": "Which?", "options": ["x", "y"], "hint": "Look."}\n{"question": "Who?"}\n',
        [["coffee.jpg", "Look.\nWhich?\nA. x\nB. y"], ["Who?"]],
    ),
    "tagged.jsonl": (
        '{"content": "<AIS_IMAGE_START>coffee.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>What?<AIS_CONTENT_TAG>", "answer": "cup"}\n',
        [["coffee.jpg", "What?"]],
    ),
    "text.csv": ("Problem,label\n1+1=?,2\n", [["1+1=?"]]),
    "excel.csv": ("pic;Question;label\ncoffee.jpg;What, where?;cup\n", [["coffee.jpg", "What, where?"]]),
    "two.jsonl": (
        '{"left": "coffee.jpg", "right": "coffee.jpg", "question": "Same?"}\n',
        [["coffee.jpg", "coffee.jpg", "Same?"]],
    ),
    "chat.jsonl": ('{"messages": [{"role": "user", "content": "Hi"}]}\n', [["Hi"]]),
}


@pytest.mark.parametrize("name", list(ROWS))
def test_the_task_file_sends_all_that_a_row_holds(name: str, tmp_path: Path, tour: Path, command: Any) -> None:
    text, wanted = ROWS[name]
    shutil.copy(tour / "media" / "coffee.jpg", tmp_path)
    (tmp_path / name).write_text(text, encoding="utf-8")
    done = command("init", tmp_path / name, "-o", tmp_path / "task.yaml")
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)
    assert first["messages"][-1]["role"] == "user"
    task = load_task(tmp_path / "task.yaml")
    said = [[getattr(p, "text", None) or p.source for p in m[-1].parts] for _, m in task.messages()]  # type: ignore[union-attr,index]
    assert said == wanted
    assert len(list(task.requests())) == len(wanted)
    assert "wrote" in done.stderr.decode()


def test_the_names_of_a_coco_picture_are_one_picture(tmp_path: Path, tour: Path, command: Any) -> None:
    (tmp_path / "val2017").mkdir()
    shutil.copy(tour / "media" / "coffee.jpg", tmp_path / "val2017")
    urls = {"coco_url": "http://example.com/coffee.jpg", "flickr_url": "http://example.com/c.jpg"}
    captions = {
        "images": [{"id": 1, "file_name": "coffee.jpg", **urls}],
        "annotations": [{"image_id": 1, "id": 2, "caption": "A cup."}],
    }
    (tmp_path / "captions_val2017.json").write_text(json.dumps(captions), encoding="utf-8")
    done = command("init", tmp_path / "captions_val2017.json", "-o", tmp_path / "task.yaml")
    assert done.returncode == 0, done.stderr
    [content] = [message["content"] for message in json.loads(done.stdout)["messages"]]
    assert [part["type"] for part in content] == ["image_url"]


def test_an_answer_that_no_column_holds_is_not_named(tmp_path: Path, command: Any) -> None:
    (tmp_path / "rows.jsonl").write_text('{"question": "q", "hint": "h"}\n{"question": "r"}\n', encoding="utf-8")
    assert command("init", tmp_path / "rows.jsonl", "-o", tmp_path / "task.yaml").returncode == 0
    written = (tmp_path / "task.yaml").read_text(encoding="utf-8")
    assert "# reader_cfg: {output_column: NAME}  # name the column of the answers, if there is one" in written
    assert b"no notes" in command("render", tmp_path / "task.yaml").stderr


def test_a_prompt_of_media_alone_is_noted(tmp_path: Path, tour: Path, command: Any) -> None:
    shutil.copy(tour / "media" / "coffee.jpg", tmp_path)
    (tmp_path / "rows.csv").write_text("Nr,Foto,Frage\n1,coffee.jpg,Was?\n", encoding="utf-8")
    done = command("init", tmp_path / "rows.csv", "-o", tmp_path / "task.yaml")
    assert done.returncode == 0
    what = "note: MM606 no column looks like the question, so the prompt holds media alone"
    assert f'{what}; write text: "{{COLUMN}}" beside them (columns: Nr, Frage)' in done.stderr.decode()


@pytest.mark.parametrize("hint", [{}, {"hint": "Look."}])
def test_choices_as_one_text_stand_in_the_prompt(tmp_path: Path, command: Any, hint: dict[str, str]) -> None:
    rows = [{"question": "q", "options": "A. cat\nB. dog", "answer": "B"}]
    rows.append({**rows[0], **hint})
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = command("init", tmp_path / "rows.jsonl", "-o", tmp_path / "task.yaml")
    assert json.loads(done.stdout)["messages"][0]["content"] == "q\nA. cat\nB. dog"


def test_columns_that_look_like_choices_are_named_with_the_names_that_count(tmp_path: Path, command: Any) -> None:
    (tmp_path / "rows.csv").write_text("question,option_2,option_3,answer\nq,cat,dog,2\n", encoding="utf-8")
    done = command("init", tmp_path / "rows.csv", "-o", tmp_path / "task.yaml")
    assert done.returncode == 0
    note = "note: MM606 the prompt leaves out the choices in 'option_2', 'option_3'; rename the columns to A, B, …"
    assert note in done.stderr.decode()


def test_pictures_with_labels_alone_are_noted_and_the_text_that_is_named_is_asked(
    tmp_path: Path, tour: Path, command: Any
) -> None:
    shutil.copy(tour / "media" / "coffee.jpg", tmp_path)
    (tmp_path / "rows.csv").write_text("file,label\ncoffee.jpg,cup\n", encoding="utf-8")
    done = command("init", tmp_path / "rows.csv", "-o", tmp_path / "task.yaml")
    assert 'so the prompt holds media alone; write text: "YOUR QUESTION" beside them\n' in done.stderr.decode()
    written = (tmp_path / "task.yaml").read_text(encoding="utf-8")
    image = '            image: "{file}"\n'
    assert image in written
    (tmp_path / "task.yaml").write_text(written.replace(image, f'{image}            text: "Is it a cup?"\n'))
    asked = json.loads(command("render", tmp_path / "task.yaml").stdout)["messages"][0]["content"]
    assert [part.get("text") for part in asked] == [None, "Is it a cup?"]


def test_media_in_another_folder_are_found_as_the_error_says(tmp_path: Path, tour: Path, command: Any) -> None:
    (tmp_path / "pictures").mkdir()
    shutil.copy(tour / "media" / "coffee.jpg", tmp_path / "pictures")
    (tmp_path / "rows.csv").write_text("file,question\ncoffee.jpg,What?\n", encoding="utf-8")
    done = command("init", "rows.csv", "-o", "first.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert b"--media-root DIR" in done.stderr
    done = command("init", "rows.csv", "-o", "task.yaml", "--media-root", "pictures", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["messages"][0]["content"][1]["text"]) == (0, "What?")
    typed = done.stderr.decode().partition("next: mmprompt ")[2].split()
    assert command(*typed, cwd=tmp_path).returncode == 0


def test_a_file_that_exists_is_kept(tmp_path: Path, command: Any) -> None:
    (tmp_path / "rows.csv").write_text("question\nq\n", encoding="utf-8")
    (tmp_path / "task.yaml").write_text("mine", encoding="utf-8")
    done = command("init", tmp_path / "rows.csv", "-o", tmp_path / "task.yaml")
    assert done.returncode == 2
    assert b"exists already; give another name with -o" in done.stderr
    assert (tmp_path / "task.yaml").read_text(encoding="utf-8") == "mine"


def test_a_dataset_without_a_question_says_which_columns_it_has(tmp_path: Path, command: Any) -> None:
    (tmp_path / "rows.csv").write_text("size,weight\n1,2\n", encoding="utf-8")
    done = command("init", tmp_path / "rows.csv", "-o", tmp_path / "task.yaml")
    assert done.returncode == 2
    assert b"no column holds a question or media" in done.stderr
    assert b"size, weight" in done.stderr


def put(folder: Path, tour: Path, name: str, value: object) -> None:
    shutil.copy(tour / "media" / "coffee.jpg", folder)
    (folder / name).write_text(json.dumps(value), encoding="utf-8")


ODD = {
    "pic": "coffee.jpg",
    "Q": "What?",
    "opts": ["x", "y"],
    "label": "A",
    "nr": 7,
    "say": "Be short.",
    "more": "Look.",
}
MAPPED = ["pic=image", "Q=question", "opts=choices", "label=answer", "nr=id", "say=system", "more=hint"]


def test_the_roles_of_columns_go_into_the_task_file_and_its_template(tmp_path: Path, tour: Path, command: Any) -> None:
    put(tmp_path, tour, "rows.json", [ODD, {**ODD, "nr": 8}])
    options = [word for item in MAPPED for word in ("--map", item)]
    done = command("init", tmp_path / "rows.json", "-o", tmp_path / "task.yaml", *options)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "task.yaml").read_text(encoding="utf-8")
    assert "columns that this prompt does not use" not in text
    assert not any(f"{{{name}}}" in text for name in ODD)
    task = load_task(tmp_path / "task.yaml")
    sent = list(task.requests())
    assert [(request.id, request.answers, request.choices) for request in sent] == [
        (7, ("A",), ("x", "y")), (8, ("A",), ("x", "y")),
    ]  # fmt: skip
    system, user = sent[0].messages  # type: ignore[misc]
    assert system == {"role": "system", "content": "Be short."}
    assert [part["type"] for part in user["content"]] == ["image_url", "text"]
    assert user["content"][1]["text"] == "Look.\nWhat?\nA. x\nB. y"
    by_options = command("render", tmp_path / "rows.json", *options)
    assert command("render", tmp_path / "task.yaml").stdout == by_options.stdout


@pytest.mark.parametrize(
    ("row", "options"),
    [
        ({"Q": "What?", "say": "Be short."}, ["Q=question", "say=system"]),
        ({"a": "coffee.jpg", "b": "coffee.jpg", "question": "Same?"}, ["a=image", "b=image"]),
        (
            {"left": "coffee.jpg", "pic": "coffee.jpg", "Q": "Same?", "say": "s"},
            ["pic=image", "Q=question", "say=system"],
        ),
    ],
)
def test_each_template_sends_what_the_roles_name(
    row: dict[str, Any], options: list[str], tmp_path: Path, tour: Path, command: Any
) -> None:
    put(tmp_path, tour, "rows.json", [row])
    words = [word for item in options for word in ("--map", item)]
    done = command("init", tmp_path / "rows.json", "-o", tmp_path / "task.yaml", *words)
    assert done.returncode == 0, done.stderr
    [request] = load_task(tmp_path / "task.yaml").requests()
    said = str(request.messages)
    assert len(request.media) == sum(value == "coffee.jpg" for value in row.values())
    assert all(value in said for value in row.values() if value != "coffee.jpg")
    assert [message["role"] for message in request.messages or ()] == ["system", "user"][-1 - ("say" in row) :]


def test_key_join_split_and_encoding_go_into_the_task_file(tmp_path: Path, command: Any) -> None:
    (tmp_path / "data").mkdir()
    rows = [{"nr": 1, "question": "Où?", "split": "test"}, {"nr": 2, "question": "q", "split": "dev"}]
    (tmp_path / "data" / "all.json").write_text(json.dumps({"rows": rows}, ensure_ascii=False), encoding="latin-1")
    (tmp_path / "data" / "gold.csv").write_text("nr,answer\n1,ici\n2,a\n", encoding="utf-8")
    options = ["--key", "rows", "--join", tmp_path / "data" / "gold.csv:nr", "--split", "test", "--encoding", "latin-1"]
    done = command("init", tmp_path / "data" / "all.json", "-o", tmp_path / "task.yaml", *options)
    assert done.returncode == 0, done.stderr
    [request] = load_task(tmp_path / "task.yaml").requests()
    assert (request.messages, request.answers) == ([{"role": "user", "content": "Où?"}], ("ici",))
    assert 'join: ["data/gold.csv:nr"]' in (tmp_path / "task.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("item", ["pix=image", "Qu=question"])
def test_a_role_of_a_column_that_no_row_has_is_an_error_with_the_nearest(
    item: str, tmp_path: Path, tour: Path, command: Any
) -> None:
    put(tmp_path, tour, "rows.json", [{"pic": "coffee.jpg", "Q": "?"}])
    done = command("init", tmp_path / "rows.json", "-o", tmp_path / "task.yaml", "--map", item)
    assert done.returncode == 2
    name = item.partition("=")[0]
    assert f"no column '{name}', which has the role {item.partition('=')[2]}" in done.stderr.decode()
    assert not (tmp_path / "task.yaml").exists()


def test_a_folder_of_media_below_the_task_file_stands_in_it_and_any_other_is_told(
    tmp_path: Path, tour: Path, command: Any
) -> None:
    for folder in ("own/pics", "other"):
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(tour / "media" / "coffee.jpg", tmp_path / folder / f"{Path(folder).name}.jpg")
    rows = [{"image": f"{name}.jpg", "question": "What?", "answer": "a"} for name in ("pics", "other")]
    data, made = tmp_path / "own" / "rows.jsonl", tmp_path / "own" / "task.yaml"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    own, other = tmp_path / "own" / "pics", tmp_path / "other"
    done = command("init", data, "-o", made, "--media-root", own, "--media-root", other)
    told = done.stderr.decode()
    assert (done.returncode, f"next: mmprompt render {made} --media-root {other}\n" in told) == (0, True)
    assert 'media: {roots: ["pics"]}' in made.read_text()
    alone, both = command("render", made), command("render", made, "--media-root", other)
    assert (alone.returncode, alone.stdout.count(b"\n"), both.stdout.count(b"\n")) == (1, 1, 2)
