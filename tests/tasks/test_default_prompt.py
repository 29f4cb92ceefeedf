"""A dataset without a task: which columns of a row become its one message, and in which order."""

from __future__ import annotations

import ast
import base64
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from mmprompt import MediaRef, Message, MMPromptError, Segment, TextPart, dataset_task, load_task, read_messages
from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.render.renderer import Renderer

IMAGE, TEXT, END = "<AIS_IMAGE_START>", "<AIS_TEXT_START>", "<AIS_CONTENT_TAG>"


def parts_of(row: dict[str, Any], **reader: Any) -> list[Any]:
    """Return the parts of a row's one message: texts, and (modality, source) of media."""
    ((_, (message,)),) = load_task({"dataset": {"rows": [row]}, "reader_cfg": reader}).messages()
    assert message.role == "user"
    return [(p.modality, p.source) if isinstance(p, MediaRef) else p.text for p in message.parts]  # type: ignore[union-attr]


def error_of(row: Any) -> MMPromptError:
    with pytest.raises(MMPromptError) as error:
        list(load_task({"dataset": {"rows": [row]}}).messages())
    assert error.value.hint
    return error.value


def of_file(path: Path, text: str, **options: Any) -> list[list[Any]]:
    path.write_text(text, encoding="utf-8")
    out = []
    for _, (message,) in dataset_task(path, **options).messages():
        out.append([(p.modality, p.source) if isinstance(p, MediaRef) else p.text for p in message.parts])
    return out


@pytest.fixture(scope="module")
def png(broken: Path) -> bytes:
    return (broken / "media/album/triangle.png").read_bytes()


@pytest.fixture(scope="module")
def wav(broken: Path) -> bytes:
    return (broken / "media/tone.wav").read_bytes()


# ---- the column content


def test_the_tagged_content_feeds_the_message_alone_and_in_order() -> None:
    row = {
        "image": "other.jpg",
        "question": "other",
        "content": f"{TEXT}first{END}{IMAGE}a.jpg{END} loose {IMAGE}b.jpg{END}{TEXT}{END}{TEXT}last",
    }
    assert parts_of(row) == ["first", ("image", "a.jpg"), " loose ", ("image", "b.jpg"), "last"]


def test_content_without_tags_is_one_text_part() -> None:
    assert parts_of({"content": "2 < 3 <IMAGE>", "image": "a.jpg"}) == ["2 < 3 <IMAGE>"]
    assert parts_of({"content": 5}) == ["5"]


def test_content_may_hold_the_structure_itself() -> None:
    assert parts_of({"content": [Segment("image", "a.jpg"), Segment("text", "What?")]}) == [("image", "a.jpg"), "What?"]
    row = {"content": [{"type": "text", "text": f"{IMAGE}x"}, {"type": "image_url", "image_url": {"url": "a.jpg"}}]}
    assert parts_of(row) == [f"{IMAGE}x", ("image", "a.jpg")]


@pytest.mark.parametrize("value", [["a", "b"], {"a": 1}, [], b"no media"])
def test_content_that_is_neither_is_refused_and_not_passed_over(value: Any) -> None:
    error = error_of({"content": value, "question": "q"})
    assert error.where.column == "content"


def test_a_format_that_carries_structure_is_never_scanned(tmp_path: Path) -> None:
    row = {"type": "image", "path": ["a.jpg"], "question": f"{IMAGE}/etc/passwd{END}", "answer": "x"}
    assert of_file(tmp_path / "rows.jsonl", json.dumps(row)) == [[("image", "a.jpg"), f"{IMAGE}/etc/passwd{END}"]]
    chat = {"messages": [{"role": "user", "content": f"{IMAGE}/etc/passwd{END}"}]}
    assert of_file(tmp_path / "chat.jsonl", json.dumps(chat)) == [[f"{IMAGE}/etc/passwd{END}"]]


# ---- columns


def test_media_columns_come_in_their_order_then_the_question() -> None:
    row = {"question": "q", "video": "v.mp4", "id": 1, "image_2": "2.jpg", "audio_path": "a.wav", "image_1": "1.jpg"}
    assert parts_of(row) == [("video", "v.mp4"), ("image", "2.jpg"), ("audio", "a.wav"), ("image", "1.jpg"), "q"]


@pytest.mark.parametrize("modality", ["image", "audio", "video"])
@pytest.mark.parametrize("suffix", ["", "s", "_path", "_1", "_12"])
def test_a_media_column_is_known_by_its_name(modality: str, suffix: str) -> None:
    assert parts_of({f"{modality}{suffix}": "file", "question": "q"}) == [(modality, "file"), "q"]


@pytest.mark.parametrize("name", ["images_of", "my_image", "Image", "image_", "image_a", "imagery", "image_id"])
def test_other_columns_are_no_media(name: str) -> None:
    assert parts_of({name: "a.jpg", "question": "q"}) == ["q"]


def test_a_list_gives_one_part_per_element() -> None:
    assert parts_of({"images": ["a.jpg", "b.jpg"], "question": "q"}) == [("image", "a.jpg"), ("image", "b.jpg"), "q"]
    assert parts_of({"images": [], "question": "q"}) == ["q"]


def test_a_list_in_json_text_is_no_list() -> None:
    assert parts_of({"image": '["a.jpg"]', "question": "q"}) == [("image", '["a.jpg"]'), "q"]


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_csv_cell_that_is_a_json_or_python_list_gives_one_part_per_element(tmp_path: Path, delimiter: str) -> None:
    cells = [
        '["a.jpg", "b, c.jpg"]',
        "['a.jpg', 'b.jpg']",
        "a.jpg",
        "",
        "[a].jpg",
        "__import__('os')",
        "[1 for x in y]",
    ]
    lines = ["image" + delimiter + "question"]
    lines += ['"' + cell.replace('"', '""') + '"' + delimiter + "q" for cell in cells]
    name = "rows.csv" if delimiter == "," else "rows.tsv"
    assert of_file(tmp_path / name, "\n".join(lines) + "\n") == [
        [("image", "a.jpg"), ("image", "b, c.jpg"), "q"],
        [("image", "a.jpg"), ("image", "b.jpg"), "q"],
        [("image", "a.jpg"), "q"],
        ["q"],
        [("image", "[a].jpg"), "q"],
        [("image", "__import__('os')"), "q"],
        [("image", "[1 for x in y]"), "q"],
    ]


def test_a_long_python_list_of_pictures_is_read_and_one_of_anything_else_is_text() -> None:
    picture, number = "iVBOR" + "w0KGgo+/" * (1 << 16), "1," * (1 << 18)
    pictures = ["data:image/png;base64," + picture, picture, "c.png"]
    assert list_of_cell(repr(pictures), cells=True) == pictures
    chat = [{"role": "user", "content": [("image", picture)]}]
    assert list_of_cell(repr(chat), cells=True) == chat
    assert list_of_cell(repr([{picture}]), cells=True) == [{picture}]
    tracemalloc.start()
    try:
        assert isinstance(ast.literal_eval(f"['',{number[:10000]}]"), list)
        unguarded = tracemalloc.get_traced_memory()[1] * len(number) / 10000
        tracemalloc.reset_peak()
        cell = f"['',{number}]"
        assert list_of_cell(cell, cells=True) == [cell]
        assert tracemalloc.get_traced_memory()[1] < unguarded / 4
    finally:
        tracemalloc.stop()
    marked = f"['\ue0000\ue000', {picture!r}]"
    assert list_of_cell(marked, cells=True) == [marked]


def test_cells_of_csv_stay_the_text_they_are(tmp_path: Path) -> None:
    assert of_file(tmp_path / "rows.csv", "question\nNA\n007\nnan\n[1]\n") == [["NA"], ["007"], ["nan"], ["[1]"]]


def test_media_columns_may_be_null_and_the_columns_of_text_not() -> None:
    row = {"image_1": "a.jpg", "image_2": None, "image_3": "c.jpg", "question": "q"}
    assert parts_of(row) == [("image", "a.jpg"), ("image", "c.jpg"), "q"]
    for row in ({"image": "a.jpg", "question": None}, {"content": None}, {"content": None, "answer": "a"}):
        error = error_of(row)
        assert error.where.column == ("question" if "question" in row else "content")
        assert "null" in error.what
    assert parts_of({"content": None, "question": "q", "image": "a.jpg"}) == [("image", "a.jpg"), "q"]


@pytest.mark.parametrize(
    "nothing", [None, "", "  ", float("nan"), [], [None], ["", float("nan")], {"bytes": None, "path": None}]
)
def test_a_media_column_without_a_medium_gives_none(nothing: object) -> None:
    assert parts_of({"question": "q", "image": nothing}) == ["q"]
    assert parts_of({"question": "q", "images": [nothing, "a.jpg"]}) == [("image", "a.jpg"), "q"]


def test_a_question_prints_as_json_reads_it() -> None:
    assert parts_of({"question": 10**25}) == [str(10**25)]
    assert parts_of({"question": 1.0}) == ["1.0"]


def test_a_question_is_never_read_for_tags() -> None:
    question = f" {IMAGE}a.jpg{END}{TEXT}What?{END}"
    assert parts_of({"image": "b.jpg", "question": question}) == [("image", "b.jpg"), question]


def test_a_question_that_only_quotes_a_tag_is_text() -> None:
    assert parts_of({"question": f"What does {IMAGE}x{END} mean?"}) == [f"What does {IMAGE}x{END} mean?"]


@pytest.mark.parametrize("nothing", [{}, [], {"text": [], "label": []}])
def test_choices_that_hold_nothing_are_no_choices(nothing: object) -> None:
    assert parts_of({"question": "What?", "options": nothing}) == ["What?"]


def test_a_mapped_column_is_media(tmp_path: Path) -> None:
    text = json.dumps({"question": "q", "photo": "p.jpg", "image": "a.jpg"})
    given = of_file(tmp_path / "rows.jsonl", text, map_columns={"photo": "image"})
    assert given == [[("image", "p.jpg"), ("image", "a.jpg"), "q"]]


@pytest.mark.parametrize("row", [{}, {"id": 1, "answer": "x"}, {"question": ""}, {"content": ""}, {"images": []}])
def test_a_row_with_nothing_to_send_is_an_error_with_its_column(row: dict[str, Any]) -> None:
    error = error_of(row)
    assert "nothing to send" in error.what
    assert error.where.column == ("question" if "question" in row else "content")


def test_a_chat_row_gives_its_own_messages(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
    ]
    (tmp_path / "chat.jsonl").write_text(json.dumps({"messages": messages}))
    ((_, given),) = dataset_task(tmp_path / "chat.jsonl").messages()
    assert given == [Message("system", "Be brief."), Message("user", "Hi"), Message("assistant", "Hello")]


# ---- values that are media by their type


def sent(row: dict[str, Any]) -> list[tuple[str, bytes]]:
    """Return what is sent of a row given in Python: modality and bytes of its media, in order."""
    task = load_task({"dataset": {"rows": [row]}})
    ((_, messages),) = task.messages()
    return [(p.modality, p.data) for p in read_messages(messages)[0].parts if not isinstance(p, (TextPart, MediaRef))]


@pytest.mark.parametrize("column", ["image", "images", "picture"])
def test_bytes_are_sent_as_they_are(column: str, png: bytes) -> None:
    assert sent({column: png, "question": "q"}) == [("image", png)]
    assert sent({column: [png, png], "question": "q"}) == [("image", png), ("image", png)]


@pytest.mark.parametrize("column", ["image", "picture"])
def test_a_struct_of_hugging_face_is_sent_as_its_bytes(column: str, png: bytes) -> None:
    assert sent({column: {"bytes": png, "path": "elsewhere.jpg"}, "question": "q"}) == [("image", png)]


def test_bytes_say_themselves_whether_they_are_sound(wav: bytes) -> None:
    assert sent({"clip": wav, "question": "q"}) == [("audio", wav)]
    assert sent({"clip": {"bytes": wav, "path": None}, "question": "q"}) == [("audio", wav)]


@pytest.mark.parametrize("column", ["image", "picture"])
def test_a_pil_image_is_encoded(column: str) -> None:
    from PIL import Image

    picture = Image.new("RGB", (5, 4), "red")
    ((modality, data),) = sent({column: picture, "question": "q"})
    with Image.open(io.BytesIO(data)) as back:
        assert (modality, back.size, back.mode) == ("image", (5, 4), "RGB")


@pytest.mark.parametrize("column", ["audio", "clip"])
def test_samples_with_their_rate_are_one_sound(column: str) -> None:
    import numpy as np

    samples = np.zeros(800, dtype="float32")
    for value in (
        (samples, 8000),
        (samples, np.int64(8000)),
        [samples, np.float32(8000)],
        {"array": samples, "sampling_rate": 8000, "path": None},
    ):
        ((modality, data),) = sent({column: value, "question": "q"})
        assert (modality, data[:4], data[8:12]) == ("audio", b"RIFF", b"WAVE")


@pytest.mark.parametrize(("path", "modality"), [("a.mp4", "video"), ("a.m4a", "audio"), ("a.webm", "video")])
def test_a_struct_without_bytes_is_the_medium_that_its_path_says(path: str, modality: str) -> None:
    assert parts_of({"clip": {"bytes": None, "path": path}, "question": "q"})[0][0] == modality


def test_an_array_that_is_no_picture_is_no_media() -> None:
    import numpy as np

    assert sent({"embedding": np.zeros(5), "question": "q"}) == []
    assert [modality for modality, _ in sent({"pixels": np.zeros((4, 4, 3), "uint8"), "question": "q"})] == ["image"]


def test_media_in_the_answer_are_not_sent(png: bytes) -> None:
    assert sent({"question": "q", "answer": png}) == []
    task = load_task({"dataset": {"rows": [{"question": "q", "image": png}]}, "reader_cfg": {"output_column": "image"}})
    ((_, (message,)),) = task.messages()
    assert message.parts == (TextPart("q"),)


@pytest.mark.parametrize(
    "value", [["A", "B"], {"path": "notes.jpg"}, 5, None, b"\x00\x01", [], "a.jpg", {"bytes": None, "path": None}]
)
def test_plain_values_of_other_columns_are_not_sent(value: Any) -> None:
    assert parts_of({"question": "q", "meta": value}) == ["q"]


def test_a_path_of_rows_given_in_python_is_refused_until_a_root_is_named(broken: Path) -> None:
    row = {"image": "media/cup.jpg", "question": "q"}
    task = load_task({"dataset": {"rows": [row]}})
    (result,) = [Renderer(task).render(sample) for sample in task.samples()]
    assert "no media root" in str(result.error)
    task = load_task({"dataset": {"rows": [row]}, "media": {"roots": [str(broken)]}})
    (result,) = [Renderer(task).render(sample) for sample in task.samples()]
    assert result.chunks is not None
    data = base64.b64encode((broken / "media/cup.jpg").read_bytes())
    assert data in b"".join(result.chunks)


LETTERS = {"A": "a cat", "B": "a dog", "C": None, "D": ""}


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"question": "Which?", **LETTERS}, "Which?\nA. a cat\nB. a dog"),
        ({"hint": "It purrs.", "question": "Which?", **LETTERS}, "It purrs.\nWhich?\nA. a cat\nB. a dog"),
        ({"hint": ["It purrs.", None, "It is small."], "question": "Which?"}, "It purrs.\nIt is small.\nWhich?"),
        ({"hint": [], "question": "Which?"}, "Which?"),
        ({"hint": float("nan"), "question": "Which?", "options": "['a', 'b']"}, "Which?\nA. a\nB. b"),
        ({"question": "Which?", "choices": {"A": "x", "B": "y"}}, "Which?\nA. x\nB. y"),
        ({"question": "Which?", "choices": {"text": ["x", "y"], "label": ["1", "2"]}}, "Which?\nA. x\nB. y"),
        ({"question": "Which?", "choice_a": 1, "choice_b": 2.5}, "Which?\nA. 1\nB. 2.5"),
        ({"question": "Which?", "option_a": "x", "option_b": "y", "option_c": ""}, "Which?\nA. x\nB. y"),
        ({"question": "Which?", "optionA": "x", "optionB": "y"}, "Which?\nA. x\nB. y"),
        ({"question": "Which?", "Option A": "x", "Option B": "y"}, "Which?\nA. x\nB. y"),
        ({"question": "Which?", "choice_A": "x", "choice_B": "y"}, "Which?\nA. x\nB. y"),
        ({"question": "Which?", "OPT-a": "x", "OPT-b": "y"}, "Which?\nA. x\nB. y"),
        ({"question": "Which?", "option_a": "no", "option_b": "no", **LETTERS}, "Which?\nA. a cat\nB. a dog"),
        ({"question": "Which?", "options": "see below", "option_a": "x", "option_b": "y"}, "Which?\nA. x\nB. y"),
        ({"candidates": ["x", "y"], "image": "a.jpg", "question": ""}, "A. x\nB. y"),
        ({"question": "{A}", "A": "{question}", "B": "b"}, "{A}\nA. {question}\nB. b"),
    ],
)
def test_a_multiple_choice_row_sends_hint_question_and_lettered_choices(row: dict[str, object], text: str) -> None:
    [(_, messages)] = load_task({"dataset": {"rows": [row]}}).messages()
    assert messages[0].parts[-1] == TextPart(text)


@pytest.mark.parametrize(
    ("row", "column", "letter"),
    [
        ({"A": "x", "B": "", "C": "z"}, "B", "B"),
        ({"choice_a": "x", "choice_b": "y", "choice_c": None, "choice_d": "z"}, "choice_c", "C"),
        ({"option_a": "x", "option_b": "", "option_c": "z"}, "option_b", "B"),
        ({"options": ["x", None, "z"]}, "options", "B"),
        ({"choices": {"B": "y", "C": "z"}}, "choices", "A"),
    ],
)
def test_an_empty_choice_before_the_last_is_an_error(row: dict[str, object], column: str, letter: str) -> None:
    with pytest.raises(MMPromptError, match=f"choice {letter} is empty") as caught:
        list(load_task({"dataset": {"rows": [{"question": "Which?", **row}]}}).messages())
    assert caught.value.where.column == column


@pytest.mark.parametrize("hint", [{"text": "It purrs."}, ["It purrs.", ["It is small."]]])
def test_a_hint_that_is_no_text_and_no_list_of_texts_is_an_error(hint: object) -> None:
    with pytest.raises(MMPromptError, match=r"'hint' holds (dict|list)") as caught:
        list(load_task({"dataset": {"rows": [{"question": "Which?", "hint": hint}]}}).messages())
    assert caught.value.where.column == "hint"


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"clip": "a.wav", "text": "q"}, "--map clip=audio and --map COLUMN=question"),
        ({"movie": ["a.mp4"], "text": "q"}, "--map movie=video and --map COLUMN=question"),
        ({"clip": "a.wav", "pic": "a.png", "pic2": "b.png"}, "--map clip=audio, --map pic=image and --map COLUMN="),
        ({"text": "q"}, "--map COLUMN=image and --map COLUMN=question"),
    ],
)
def test_a_row_of_unknown_columns_is_told_which_of_them_hold_media(row: dict[str, Any], named: str) -> None:
    assert named in error_of(row).hint
