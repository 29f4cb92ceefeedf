"""Chats whose media stand in columns: each part without a source takes the next; counts must agree."""

from __future__ import annotations

from typing import Any

import pytest

from mmprompt import MediaRef, MMPromptError, load_task

IMAGE, TEXT = {"type": "image"}, {"type": "text", "text": "q"}


def sent(*content: Any, **columns: Any) -> list[Any]:
    """Return the parts of the one message of a chat: texts, and the sources of media."""
    row = {"messages": [{"role": "user", "content": list(content)}], **columns}
    ((_, (message,)),) = load_task({"dataset": {"rows": [row]}}).messages()
    return [part.source if isinstance(part, MediaRef) else part.text for part in message.parts]


def said(text: str, **columns: Any) -> list[Any]:
    """Return what ``sent`` returns for a chat whose content is a text."""
    ((_, (message,)),) = load_task(
        {"dataset": {"rows": [{"prompt": [{"role": "user", "content": text}], **columns}]}}
    ).messages()
    return [part.source if isinstance(part, MediaRef) else part.text for part in message.parts]


def test_a_mark_in_a_text_takes_the_next_medium_of_its_column() -> None:
    assert said("<audio>\nIs it <image>?", audio="a.wav", image="a.png") == ["a.wav", "Is it ", "a.png", "?"]
    assert said("What does <image> mean?") == ["What does <image> mean?"]
    for images, words in (
        (["a.png", "b.png"], "1 image has no mark <image> in the text"),
        ([], "the text holds <image>, but the row has 0 images"),
    ):
        with pytest.raises(MMPromptError, match=words):
            said("<image>q", images=images)


def test_empty_media_columns_of_a_text_are_no_unsent_columns() -> None:
    rows = [{"prompt": [{"role": "user", "content": "1 + 1?"}], "images": images} for images in ([], None, ["a.png"])]
    task = load_task({"dataset": {"rows": rows}})
    list(task.messages())
    assert [(note.code, note.what[:6]) for note in task.notes()] == [("MM605", "1 of 3")]


def test_each_modality_has_its_own_columns() -> None:
    parts = ({"type": "audio"}, {"type": "video"}, IMAGE, TEXT, {"type": "video", "video": None})
    media = {"images": ["a.png"], "audio": "a.wav", "videos": ["a.mp4", "b.mp4"]}
    assert sent(*parts, **media) == ["a.wav", "a.mp4", "a.png", "q", "b.mp4"]


@pytest.mark.parametrize(
    ("content", "images", "words"),
    [
        ([IMAGE, IMAGE, TEXT], ["a.png"], 'more than 1 mark {"type": "image"}, but the row has 1 image'),
        ([IMAGE, TEXT], None, 'the text holds {"type": "image"}, but the row has 0 images'),
        ([IMAGE, TEXT], ["a.png", "b.png"], '1 image has no mark {"type": "image"} in the text'),
        ([TEXT], "a.png", '1 image has no mark {"type": "image"} in the text'),
        ([{**IMAGE, "index": 0}, {**IMAGE, "index": 2}, TEXT], ["a.png", "b.png"], "but the row has 2 images"),
        ([{**IMAGE, "index": -1}, TEXT], ["a.png"], "but the row has 1 image"),
        ([{**IMAGE, "index": 0}, {**IMAGE, "index": 0}, TEXT], ["a.png", "b.png"], "1 image has no mark"),
    ],
)
@pytest.mark.parametrize("column", ["messages", "prompt"])
def test_another_number_of_parts_than_media_is_the_rows_error(
    content: list[Any], images: Any, words: str, column: str
) -> None:
    rows = [{column: [{"role": "user", "content": each}], "images": images} for each in (content, [])]
    with pytest.raises(MMPromptError) as told:
        list(load_task({"dataset": {"rows": rows}}).messages())
    assert words in told.value.what
    assert (told.value.code, told.value.where.column, told.value.where.sample) == ("MM108", column, "0")


@pytest.mark.parametrize("nothing", [None, "", " ", float("nan"), {"bytes": None, "path": None}])
def test_an_empty_cell_of_a_media_column_is_no_medium(nothing: Any) -> None:
    assert sent(TEXT, image=nothing) == ["q"]
    assert sent(IMAGE, TEXT, image=nothing, images=[nothing, "a.png"]) == ["a.png", "q"]


def test_parts_that_name_their_media_are_sent_as_they_are_and_the_column_is_noted() -> None:
    named = {"type": "image", "image": "own.png"}
    assert sent(named, TEXT, images=["a.png"]) == ["own.png", "q"]
    assert sent(named, IMAGE, images=["a.png"]) == ["own.png", "a.png"]
    chat = [{"role": "system", "content": "Write <image> for a picture."}, {"role": "user", "content": [named, TEXT]}]
    ((_, (system, _)),) = load_task({"dataset": {"rows": [{"messages": chat, "images": ["a.png"]}]}}).messages()
    assert system.text == "Write <image> for a picture."


def test_what_stands_beside_a_part_goes_with_it_but_for_its_number() -> None:
    row = {"messages": [{"role": "user", "content": [{**IMAGE, "index": 0, "max_pixels": 9}]}], "images": ["a.png"]}
    ((_, (message,)),) = load_task({"dataset": {"rows": [row]}}).messages()
    assert message.parts == (MediaRef("image", "a.png", extra=(("max_pixels", 9),)),)


@pytest.mark.parametrize(
    "completion",
    [[], [{"role": "assistant", "content": "a"}] * 2, [{"role": "assistant", "content": [{**IMAGE, "url": "a.png"}]}]],
)
def test_a_completion_that_is_no_text_is_the_rows_error(completion: list[Any]) -> None:
    row = {"prompt": [{"role": "user", "content": "q"}], "completion": completion}
    with pytest.raises(MMPromptError, match="the completion is not one message of text") as told:
        list(load_task({"dataset": {"rows": [row]}}).messages())
    assert told.value.where.column == "completion"


def test_the_answer_of_the_row_stands_before_its_completion() -> None:
    row = {"prompt": [{"role": "user", "content": "q"}], "completion": "b", "answer": "a"}
    [request] = load_task({"dataset": {"rows": [row]}}).requests()
    assert request.answers == ("a",)


def test_a_completion_of_another_form_is_told_where_it_stands() -> None:
    row = {"prompt": [{"role": "user", "content": "q"}], "completion": [{"content": "a"}]}
    with pytest.raises(MMPromptError, match="the message has no role") as told:
        list(load_task({"dataset": {"rows": [row]}}).messages())
    assert told.value.where.column == "completion"
