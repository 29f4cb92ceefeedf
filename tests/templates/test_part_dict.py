"""Part dicts that keep their part: they behave as plain dicts, and an edit is never lost."""

import copy
import json
import pickle

import pytest

from mmprompt import (
    MediaRef,
    MetaTemplate,
    MMPromptTemplate,
    PromptError,
    PromptList,
    RawPromptTemplate,
    TextPart,
    join_segments,
)
from mmprompt.messages import part_of
from mmprompt.templates.part_skeleton import PartDict
from mmprompt.templates.prompt_list import copied

SKELETONS = {
    "text": {"type": "text", "text": "Q: {question}", "cache_control": {"type": "ephemeral"}},
    "image": {"type": "image_url", "image_url": {"url": "file://{image}", "detail": "{detail}"}, "min_pixels": 4},
    "audio": {"type": "input_audio", "input_audio": {"data": "{audio}", "format": "wav"}},
    "video": {"type": "video", "video": "{video}"},
}
ROW = {
    "content": join_segments([("image", "a.jpg"), ("text", "q"), ("audio", "s.wav"), ("video", "v.mp4")]),
    "detail": "low",
}


def prompt(prompt_mm=SKELETONS, row=ROW):
    return MMPromptTemplate({"round": [{"role": "HUMAN", "prompt_mm": prompt_mm}]}).generate_item(row)


def sent(items):
    return MetaTemplate(None).to_messages(items)[0].parts


@pytest.mark.parametrize(
    ("prompt_mm", "row"),
    [
        (SKELETONS, ROW),
        ({"mm_url": "file://{mm_url}"}, {"content": join_segments([("image", "a.jpg"), ("video", "b.mp4")])}),
        ({"image": {"type": "image_url", "url": "{image}"}}, {"image": ["a.jpg", "b.jpg"]}),
        ({"image": {"type": "image_url", "url": "{image}", "image": "decoy"}}, {"image": "a.jpg"}),
        ({"image": {"type": "image", "image": "{image}"}}, {"image": {"path": "a.jpg", "bytes": None}}),
        ({"image": {"type": "input_image", "input_image": {"url": "x/{image}", "data": None}}}, {"image": "a.jpg"}),
        (
            {"image": {"type": "image_url", "image_url": {"url": "{image}", "detail": "low"}}},
            {"content": [MediaRef("image", "a.jpg", "", (("detail", "high"),), (("min_pixels", 4),))]},
        ),
    ],
)
def test_the_part_that_is_kept_is_the_part_that_would_be_read(prompt_mm, row):
    said = prompt(prompt_mm, row)[0]["prompt"]
    plain = json.loads(json.dumps(said))
    assert said == plain
    try:
        expected = [part_of(item) for item in plain]
    except PromptError as error:
        with pytest.raises(PromptError, match=str(error)):
            sent(prompt(prompt_mm, row))
    else:
        assert list(sent([{"role": "HUMAN", "prompt": said}])) == expected


def edits(part):
    """Ways to edit the dict of ``image_url`` in place."""
    return {
        "source": lambda: part["image_url"].update(url="b.jpg"),
        "option": lambda: part["image_url"].update(detail="high"),
        "no option": lambda: part["image_url"].pop("detail"),
        "body": lambda: part.update(image_url={"url": "b.jpg"}),
        "key": lambda: part.update(min_pixels=9),
        "no key": lambda: part.pop("min_pixels"),
        "other key": lambda: (part.pop("min_pixels"), part.update(max_pixels=4)),
        "all": lambda: (part.clear(), part.update(type="text", text="gone")),
        "or": lambda: part.__ior__({"type": "video_url", "video_url": {"url": "b.mp4"}}),
        "frames": lambda: part["image_url"].update(url=["1.jpg", "2.jpg"]),
    }


@pytest.mark.parametrize("name", edits({}))
@pytest.mark.parametrize("again", [lambda p: p, copy.deepcopy, copied, lambda p: pickle.loads(pickle.dumps(p))])
def test_an_edited_part_is_sent_as_edited(name, again):
    items = again(prompt())
    part = items[0]["prompt"][0]
    edits(part)[name]()
    expected = part_of(json.loads(json.dumps(part)))
    assert sent(again(items))[0] == expected


def test_a_text_that_is_edited_is_sent_as_edited():
    items = prompt({"text": {"type": "text", "text": "{question}"}}, {"question": "q"})
    items[0]["prompt"][0]["text"] += "!"
    assert sent(items) == (TextPart("q!"),)
    assert str(items.format()) == "q!"


def test_an_edit_that_leaves_no_part_is_an_error_when_it_is_sent():
    items = prompt()
    del items[0]["prompt"][0]["image_url"]
    with pytest.raises(PromptError, match="names no source"):
        sent(copied(pickle.loads(pickle.dumps(items))))


def test_a_part_is_a_dict_in_all_respects():
    parts = prompt()[0]["prompt"]
    image = {"type": "image_url", "image_url": {"url": "a.jpg", "detail": "low"}, "min_pixels": 4}
    assert parts[0] == image
    assert repr(parts[0]) == repr(image)
    assert json.dumps(parts) == json.dumps([dict(part) for part in parts])
    for twin in (copy.copy(parts[0]), copy.deepcopy(parts[0]), pickle.loads(pickle.dumps(parts[0])), copied(parts[0])):
        assert twin == image
        twin["image_url"] = None
        assert parts[0] == image


def test_copies_keep_the_part_and_share_nothing():
    parts = prompt({"image": "{image}", "text": "{question}"}, {"image": "a.jpg", "question": "q"})[0]["prompt"]
    for twin in (copied(parts), copy.deepcopy(parts), pickle.loads(pickle.dumps(parts))):
        assert [type(part) for part in twin] == [PartDict, PartDict]
        assert [part.part for part in twin] == [MediaRef("image", "a.jpg"), TextPart("q")]
        twin[0]["image_url"]["url"] = "changed"
        assert parts[0]["image_url"]["url"] == "a.jpg"


def test_media_in_messages_of_a_column_keep_their_part():
    image = {"type": "image_url", "image_url": {"url": "a.jpg"}}
    template = RawPromptTemplate([{"expand_column": "history"}, {"role": "user", "content": [image]}])
    made = template.generate_item({"history": [{"role": "user", "content": [image, {"type": "text", "text": "t"}]}]})
    assert [type(part) for message in made for part in message["content"]] == [PartDict] * 3
    assert [m.parts for m in MetaTemplate(None).to_messages(made)] == [
        (MediaRef("image", "a.jpg"), TextPart("t")),
        (MediaRef("image", "a.jpg"),),
    ]


def test_parts_by_hand_and_parts_as_values_are_taken_too():
    said = [{"type": "text", "text": "a"}, TextPart("b"), MediaRef("image", "c.jpg")]
    assert sent(PromptList([{"role": "HUMAN", "prompt": said}])) == (
        TextPart("a"),
        TextPart("b"),
        MediaRef("image", "c.jpg"),
    )
