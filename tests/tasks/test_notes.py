from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mmprompt import dataset_task, load_task

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def notes_of(rows: list[dict[str, Any]], **config: Any) -> list[str]:
    task = load_task({**config, "dataset": {"rows": rows}})
    assert len(list(task.messages())) == len(rows)
    return task.notes()


def test_an_output_column_that_is_not_there_is_a_note_since_the_answer_goes_to_the_model() -> None:
    template = {"prompt_template": {"type": "PromptTemplate", "template": "{question} {answer}"}}
    row = {"question": "q", "answer": "a"}
    [note] = notes_of([row, row], reader_cfg={"output_column": "anser"}, infer_cfg=template)
    assert note.startswith("all 2 rows: no column 'anser', which output_column names, so rows go out without an answer")
    assert note.endswith("did you mean 'answer'?")
    for reader in ({}, {"output_column": "answer"}, {"output_column": None}):
        assert notes_of([row], reader_cfg=reader, infer_cfg=template) == []
    assert notes_of([{"question": "q"}], infer_cfg=template)[0].startswith(
        "the row: {answer} in a template names no column"
    )


@pytest.mark.parametrize("name", ["Answer", "answers"])
def test_an_answer_by_nearly_the_default_name_is_a_note(name: str) -> None:
    [note] = notes_of([{"question": "q", name: "a"}])
    assert note.startswith("the row: no column 'answer', which output_column names, so rows go out without an answer")
    assert note.endswith(f"did you mean '{name}'?")
    assert notes_of([{"question": "q", name: "a"}], reader_cfg={"output_column": name}) == []
    assert notes_of([{"question": "q", name: "a", "answer": "b"}]) == []
    assert "output_column" not in notes_of([{"question": "q", "answer_type": "number"}])[0]


def test_a_tagged_column_that_is_not_there_is_a_note_since_its_tags_go_out_as_text() -> None:
    note, left = notes_of([{"question": "q", "text": "t"}], reader_cfg={"tagged_columns": ["txt"]})
    assert left == "the row: 'text' is not sent; use a task with a template"
    assert note == "the row: no column 'txt', which tagged_columns names; did you mean 'text'?"


@pytest.mark.parametrize(
    ("value", "modality"),
    [
        ("pics/cat.JPG", "image"),
        ("https://example.com/cat.png?size=3", "image"),
        (["a.jpg", "b.jpg"], "image"),
        (PNG, "image"),
        (f"data:image/png;base64,{PNG}", "image"),
        ("file:///a/b.mp4", "video"),
        ("clips/a.wav", "audio"),
    ],
)
def test_media_in_a_column_of_another_name_are_a_note(value: object, modality: str) -> None:
    [note] = notes_of([{"id": 1, "Image": value, "question": "What is it?"}])
    assert note == (
        f"the row: only text is sent, but 'Image' looks like {modality}; add --map Image={modality}, or use a task with a template"
    )


@pytest.mark.parametrize(
    ("beside", "unsent"),
    [
        ({"page": "https://example.com/cats"}, "'page' is"),
        (
            {"theme": "cats. And dogs", "years": ["cat"], "distractors": {"a": 1}},
            "'theme', 'years', 'distractors' are",
        ),
        ({"size": 3, "nothing": None, "blank": " ", "nan": float("nan")}, "'size' is"),
        ({"image": "cat.jpg", "image_name": "cat.jpg"}, "'image_name' is"),
        ({"lines": "one\ntwo.jpg"}, "'lines' is"),
    ],
)
def test_a_column_that_is_not_sent_is_a_note(beside: dict[str, object], unsent: str) -> None:
    assert notes_of([{"question": "What is it?", **beside}]) == [
        f"the row: {unsent} not sent; use a task with a template"
    ]


@pytest.mark.parametrize(
    ("beside", "names", "hint"),
    [
        ({"options": "A. cat\nB. dog"}, "'options'", 'write them as a list: ["cat", "dog"]'),
        ({"choices": "cat|dog", "page": 7}, "'choices'", 'write them as a list: ["cat", "dog"]'),
        ({"option_a": "cat", "option_c": "dog"}, "'option_a', 'option_c'", "rename the columns to A, B, …"),
        ({"option_b": "cat", "option_c": "dog"}, "'option_b', 'option_c'", "rename the columns to A, B, …"),
        (
            {"option_a": "cat", "option_b": "dog", "option_d": "cow"},
            "'option_a', 'option_b', 'option_d'",
            "rename the columns to A, B, …",
        ),
        ({"Option 1": "cat", "Option 3": "dog"}, "'Option 1', 'Option 3'", "rename the columns to A, B, …"),
        ({"a": "cat", "b": "dog", "c": ""}, "'a', 'b', 'c'", "rename the columns to A, B, …"),
    ],
)
def test_choices_that_are_not_sent_are_a_warning(beside: dict[str, object], names: str, hint: str) -> None:
    task = load_task({}, {"rows": [{"question": "What is it?", "answer": "B", **beside}]})
    list(task.requests())
    note = next(note for note in task.notes() if "choices" in note)
    assert note == f"the row: the choices in {names} are not sent; {hint}, or use a task with a template"
    assert note.code == "MM606"


@pytest.mark.parametrize(
    "beside",
    [{"options": ["cat", "dog"], "option_a": "x", "option_b": "y"}, {"a": "cat"}, {"option_a": "cat", "option_b": " "}],
)
def test_one_column_or_a_second_list_are_no_unsent_choices(beside: dict[str, object]) -> None:
    assert not [note for note in notes_of([{"question": "What is it?", **beside}]) if "choices" in note]


@pytest.mark.parametrize(
    "beside",
    [{"id": "cat.jpg"}, {"answer": "cat.jpg"}, {"image": "cat.jpg"}, {"hint": "It purrs."}, {"A": "cat", "B": "dog"}],
)
def test_what_is_sent_and_the_answer_are_no_note(beside: dict[str, object]) -> None:
    assert notes_of([{"question": "What is it?", **beside}]) == []


def test_unsent_columns_are_counted_over_all_rows() -> None:
    rows = [{"question": "q", "page": 1, "part": "x"}, {"question": "q", "page": 2, "part": None}, {"question": "q"}]
    assert notes_of(rows) == [
        "2 of 3 rows: 'page' is not sent; use a task with a template",
        "1 of 3 rows: 'part' is not sent; use a task with a template",
    ]


def test_media_beside_a_content_column_are_a_note() -> None:
    [note] = notes_of([{"content": "What is it?", "image": "cat.jpg"}])
    assert note.endswith("'image' looks like image; put it into 'content', or use a task with a template")
    tagged = "<AIS_IMAGE_START>cat.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>What is it?"
    assert notes_of([{"content": tagged, "image": "cat.jpg"}]) == [
        "the row: 'image' is not sent; use a task with a template"
    ]


def test_media_beside_a_chat_are_a_note(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    row = {"messages": [{"role": "user", "content": "What?"}], "photos": ["a.jpg"], "source": "x"}
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    task = dataset_task(path)
    list(task.messages())
    note, left = task.notes()
    assert left == "the row: 'source' is not sent; use a task with a template"
    assert note.startswith("the row: only text is sent, but 'photos' looks like image; put it into 'messages', or")


GOLD = {"output_column": "gold"}


def chat(*roles: str) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": f"{role} speaks"} for role in roles]}


def test_a_chat_that_ends_with_the_answer_is_a_note_and_goes_out_as_it_is() -> None:
    task = load_task({"dataset": {"rows": [{**chat("user", "assistant"), "gold": "a"}]}, "reader_cfg": GOLD})
    [(_, messages)] = task.messages()
    assert [message.text for message in messages] == ["user speaks", "assistant speaks"]
    [note] = task.notes()
    assert note.startswith("the row: the last message is the assistant's, and it is sent to the model; if it is the ")
    assert note.endswith("answer, pass --drop-last-assistant, or give it as 'gold'")


def test_an_answer_at_the_end_that_a_meta_template_leaves_out_is_no_note() -> None:
    meta = {"round": [{"role": "HUMAN"}, {"role": "BOT", "generate": True}]}
    task = load_task({"dataset": {"rows": [chat("user", "assistant")]}, "model": {"meta_template": meta}})
    [(_, messages)] = task.messages()
    assert [message.text for message in messages] == ["user speaks"]
    assert task.notes() == []


@pytest.mark.parametrize("roles", [("user",), ("system", "user", "assistant", "user"), ("user", "assistant", "tool")])
def test_a_chat_that_ends_with_somebody_else_is_no_note(roles: tuple[str, ...]) -> None:
    assert notes_of([chat(*roles)]) == []


def test_a_question_beside_a_content_column_of_media_alone_is_a_note() -> None:
    [note] = notes_of([{"content": "<AIS_IMAGE_START>a.jpg", "question": "What is it?"}])
    assert note.startswith("the row: only media are sent, but not the text of 'question'; tag the text in 'content'")


def test_nested_texts_beside_media_are_a_note() -> None:
    turns = [{"from": "human", "value": "What?"}]
    note, left = notes_of([{"image": "a.jpg", "dialogue": turns, "box": [1, 2], "size": 3}])
    assert left == "the row: 'box', 'size' are not sent; use a task with a template"
    assert note.startswith(
        "the row: only media are sent, but not the text of 'dialogue'; name the text with --map COLUMN=question"
    )


def test_a_question_that_is_no_text_is_a_note() -> None:
    [note] = notes_of([{"question": ["What?", "Why?"]}])
    assert note == "the row: 'question' is list, sent as Python writes it; use a task with a template"


def test_a_misspelt_tag_inside_a_text_segment_is_noted_with_the_number_of_rows() -> None:
    row = {"content": "<AIS_TEXT_START>see <ais_image_start>a.jpg</AIS_CONTENT_TAG><AIS_CONTENT_TAG>"}
    rows = [row, {"content": "<AIS_TEXT_START>2 < 3<AIS_CONTENT_TAG>"}, row]
    assert notes_of(rows) == [
        "2 of 3 rows: a text segment of 'content' holds a misspelt tag, which is sent as text; correct <ais_image_start>"
    ]
    template = {"prompt_template": {"type": "PromptTemplate", "template": "{q}"}}
    rows = [
        {"q": "<AIS_TEXT_START>see <AIS_IMG_START>"},
        {"q": "<ais_text_start>what?"},
        {"q": "if a <ais_text_start>"},
    ]
    wanted = [
        "1 of 3 rows: a text segment of 'q' holds a misspelt tag, which is sent as text; correct <AIS_IMG_START>",
        (
            "1 of 3 rows: 'q' begins with a misspelt tag, so it is sent as text and its tags are not read;"
            " write <AIS_TEXT_START> in place of <ais_text_start>"
        ),
    ]
    assert [note for note in notes_of(rows, infer_cfg=template) if "tag" in note] == wanted


def test_choices_beside_a_tagged_content_are_a_note() -> None:
    assert notes_of([{"content": "Which?", "A": "cat", "B": "dog", "answer": "A"}]) == [
        "the row: 'A', 'B' are not sent; use a task with a template"
    ]


def test_media_for_which_the_template_has_no_place_are_a_note() -> None:
    template = {"prompt_template": {"type": "PromptTemplate", "template": "{question}"}}
    rows = [{"question": "q", "image": "a.jpg"}, {"question": "q", "image": None}, {"question": "q"}]
    assert notes_of(rows, infer_cfg=template) == [
        "1 of 3 rows: 'image' holds media, and the template has no place for it; write {image} in a media part of the template"
    ]


def test_media_that_a_later_row_alone_has_are_counted_whatever_the_first_row_of_the_column_is() -> None:
    template = {"prompt_template": {"type": "PromptTemplate", "template": "{question}"}}
    photo = {"bytes": None, "path": "a.jpg"}
    rows = [{"question": "q", "shot": None}, {"question": "q", "shot": photo}, {"question": "q", "shot": [photo]}]
    assert notes_of(rows, infer_cfg=template) == [
        "2 of 3 rows: 'shot' holds media, and the template has no place for it; write {shot} in a media part of the template"
    ]


IMAGE = {"type": "image_url", "image_url": {"url": "file://{image}"}}
SEES = {"round": [{"role": "HUMAN", "prompt_mm": {"image": IMAGE, "text": {"type": "text", "text": "{question}"}}}]}
TEMPLATES: list[dict[str, Any]] = [
    {},
    {"infer_cfg": {"prompt_template": {"type": "MMPromptTemplate", "template": SEES}}},
    {"infer_cfg": {"prompt_template": {"type": "RawPromptTemplate", "messages": [{"role": "user", "content": [{"type": "text", "text": "{question}"}, IMAGE]}]}}},
]  # fmt: skip


@pytest.mark.parametrize("config", TEMPLATES)
def test_rows_without_media_are_one_note(config: dict[str, Any]) -> None:
    empty: list[dict[str, Any]] = [{"image": value} for value in (None, "", float("nan"), [], [None])]
    rows = [{"question": "q", **image} for image in (*empty, {"image": "a.jpg"}, {"image": ["b.jpg", None]}, {})]
    what = "the media column 'image' is missing, null or blank, so it gives no media; fill it where a row should have media"
    assert notes_of(rows, **config) == [f"6 of 8 rows: {what}"]
    assert notes_of(rows[5:7], **config) == []


def test_rows_of_two_modalities_are_counted_for_each_media_column() -> None:
    other = {"question": "q", "audio": "a.wav"}
    for nulls in ({}, {"image": None}):
        assert [
            note.partition(" is missing")[0]
            for note in notes_of([{"question": "q", "image": "a.jpg"}, {**other, **nulls}, other])
        ] == [
            "1 of 3 rows: the media column 'audio'",
            "2 of 3 rows: the media column 'image'",
        ]


def test_rows_that_need_no_media_column_are_no_note() -> None:
    tagged = {"content": "<AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>q"}
    for config in TEMPLATES[:2]:
        assert notes_of([tagged, tagged], **config) == []
    assert notes_of([{"question": "q", "image_1": "a.jpg", "image_2": None, "image_3": ""}]) == []
    [note] = notes_of([{"question": "q", "image_1": "", "image_2": None}, {"question": "q", "image_1": "a.jpg"}])
    assert note.startswith("1 of 2 rows: the media column 'image_1' is missing, null or blank")
    assert notes_of([{"question": "q", "picture": None}], reader_cfg={"output_column": "picture"}) == []


def test_a_media_slot_of_no_column_is_a_note_with_the_nearest() -> None:
    template = json.loads(json.dumps(SEES).replace("{image}", "{pictur}"))
    infer = {"prompt_template": {"type": "MMPromptTemplate", "template": template}}
    config: dict[str, Any] = {"infer_cfg": infer, "reader_cfg": {"missing": "keep"}}
    note, *_ = [n for n in notes_of([{"question": "q", "picture": "a.jpg"}], **config) if "pictur'" in n]
    assert note.startswith("the row: the media column 'pictur' is missing, null or blank, so it gives no media")
    assert note.endswith("did you mean 'picture'?")


def test_lists_in_cells_of_a_csv_file_count_as_lists(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('image,question\n[],q\n"[""a.jpg""]",q\n,q\n', encoding="utf-8")
    task = dataset_task(str(tmp_path / "rows.csv"))
    assert len(list(task.messages())) == 3
    [note] = task.notes()
    assert note.startswith("2 of 3 rows: the media column 'image' is missing, null or blank")


def test_columns_of_very_many_names_are_noted_in_bounded_memory() -> None:
    task = load_task({"dataset": {"rows": [{"id": n, "question": "q", f"own {n}": "x"} for n in range(3000)]}})
    assert len(list(task.samples())) == 3000
    assert len(task.row_notes.state["left"]) == 1000
    (note,) = [note for note in task.notes() if "not sent" in note]
    assert "'own 0', 'own 1'" in note
