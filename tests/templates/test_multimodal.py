import base64
import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mmprompt import (
    MediaRef,
    MMPromptTemplate,
    PromptList,
    Segment,
    TagError,
    TemplateError,
    TextPart,
    join_segments,
)
from mmprompt.templates.sample_view import SampleView

MEDIA = Path(__file__).parents[2] / "fixtures" / "tour" / "media"
IMAGE = {"type": "image_url", "image_url": {"url": "file://{image}"}}
FULL = {
    "text": {"type": "text", "text": "Q: {question}"},
    "image": IMAGE,
    "audio": {"type": "audio_url", "audio_url": {"url": "file://{audio}"}},
    "video": {"type": "video_url", "video_url": {"url": "file://{video}"}},
}


def item(prompt_mm, entry, **options):
    template = MMPromptTemplate({"round": [{"role": "HUMAN", "prompt_mm": prompt_mm}]}, **options)
    return template.generate_item(entry, "answer")[0]["prompt"]


def text(value):
    return {"type": "text", "text": value}


def image(url, **more):
    return {"type": "image_url", "image_url": {"url": url, **more}}


def tagged(*pairs):
    return join_segments(pairs)


def test_parts_come_in_the_order_of_the_sample():
    content = tagged(("text", "a"), ("image", "1.jpg"), ("text", "b"), ("image", "2.jpg"))
    assert item(FULL, {"content": content}) == [text("Q: a"), image("1.jpg"), text("Q: b"), image("2.jpg")]


def test_order_template_groups_by_key():
    content = tagged(("image", "1.jpg"), ("text", "a"), ("audio", "s.wav"), ("image", "2.jpg"))
    parts = item(FULL, {"content": content}, order="template")
    assert [p["type"] for p in parts] == ["text", "image_url", "image_url", "audio_url"]


def test_tags_work_in_any_column_that_a_slot_names():
    assert item(FULL, {"question": tagged(("text", "a"), ("image", "1.jpg"))}) == [text("Q: a"), image("1.jpg")]


def test_other_columns_are_filled_beside_the_tagged_one():
    prompt_mm = {"text": text("{hint}: {question} {gone}"), "image": IMAGE}
    entry = {"question": tagged(("text", "{hint}"), ("image", "1.jpg")), "hint": "{question}"}
    assert item(prompt_mm, entry) == [text("{question}: {hint} {gone}"), image("1.jpg")]


def test_two_tagged_columns_are_joined_in_the_order_of_their_slots():
    prompt_mm = {"text": text("[{context}|{question}]"), "image": IMAGE}
    entry = {
        "question": tagged(("text", "q"), ("image", "q.jpg")),
        "context": tagged(("image", "c.jpg"), ("text", "c")),
    }
    assert item(prompt_mm, entry) == [image("c.jpg"), text("[c|]"), text("[|q]"), image("q.jpg")]


def test_a_tagged_content_feeds_an_item_whose_slots_name_no_tagged_column():
    entry = {"content": tagged(("text", "from content")), "question": "plain"}
    assert item({"text": text("Q: {question}")}, entry) == [text("Q: from content")]


def test_column_names_the_feeding_column_outright():
    entry = {"content": tagged(("text", "no")), "body": tagged(("image", "1.jpg"), ("text", "yes"))}
    assert item({"text": text("{body}"), "image": IMAGE}, entry, column="body") == [image("1.jpg"), text("yes")]
    with pytest.raises(TemplateError, match="no column 'boddy'; did you mean 'body'"):
        item({"text": text("{body}")}, entry, column="boddy")


def test_without_tags_columns_fill_the_parts_in_the_order_of_the_keys():
    prompt_mm = {"image": IMAGE, "text": text("{question}"), "audio": FULL["audio"]}
    assert item(prompt_mm, {"question": "q?", "image": ["1.jpg", "2.jpg"]}) == [
        image("1.jpg"),
        image("2.jpg"),
        text("q?"),
    ]


@pytest.mark.parametrize(
    "nothing", [None, "", "  ", float("nan"), [], [None], ["", float("nan")], {"bytes": None, "path": None}]
)
def test_a_media_column_without_a_medium_gives_no_part(nothing):
    assert item(FULL, {"question": "q", "image": nothing}) == item(FULL, {"question": "q"}) == [text("Q: q")]
    assert item(FULL, {"question": "q", "image": [nothing, "a.jpg"]}) == [text("Q: q"), image("a.jpg")]
    tagged_beside = {"question": tagged(("image", "b.jpg")), "image": nothing}
    assert image("b.jpg") in item(FULL, tagged_beside)
    folder = {"image": {"type": "image_url", "image_url": {"url": "{folder}/{image}"}}, "text": "{question}"}
    assert item(folder, {"question": "q", "folder": "pics", "image": nothing}) == [text("q")]
    assert item(folder, {"question": "q", "folder": "pics"}) == [text("q")]


def test_rows_of_several_kinds_in_one_table_go_through_one_template():
    rows = [
        {"content": tagged(("image", "a.jpg"), ("text", "look")), "question": None, "image": None},
        {"content": None, "question": "see", "image": "b.jpg"},
        {"content": None, "question": "think", "image": None},
    ]
    assert [item(FULL, row) for row in rows] == [
        [image("a.jpg"), text("Q: look")],
        [text("Q: see"), image("b.jpg")],
        [text("Q: think")],
    ]
    with pytest.raises(TemplateError, match="column 'content' is null"):
        item(FULL, {"content": None, "question": None})


@pytest.mark.parametrize(("number", "source"), [(7, "7.jpg"), (1.5, "1.5.jpg"), ([3, 12], "3.jpg 12.jpg")])
def test_a_number_in_a_media_slot_prints_as_text(number, source):
    skeleton = {"image": {"type": "image_url", "image_url": {"url": "file://{image_id}.jpg"}}}
    found = item(skeleton, {"image_id": number})
    assert " ".join(part["image_url"]["url"] for part in found) == source


@pytest.mark.parametrize("prefix", ["file://", "data:image/jpeg;base64,"])
@pytest.mark.parametrize(
    "source",
    ["a.jpg", "file://a.jpg", "https://h/a.jpg", "/data/a.jpg", "a%20b#c?.jpg", "data:image/png;base64,iVBORw0KGgo="],
)
def test_the_sources_own_form_wins_over_the_skeletons_prefix(prefix, source):
    skeleton = {"type": "image_url", "image_url": {"url": prefix + "{image}"}}
    assert item({"image": skeleton}, {"content": tagged(("image", source))}) == [image(source)]


def test_bare_base64_becomes_a_data_uri_of_the_type_its_bytes_say():
    jpeg = base64.b64encode((MEDIA / "clock.jpg").read_bytes()).decode()
    png = base64.b64encode((MEDIA / "alpha.png").read_bytes()).decode()
    skeleton = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,{image}"}}
    parts = item({"image": skeleton}, {"content": tagged(("image", jpeg), ("image", png))})
    assert parts == [image("data:image/jpeg;base64," + jpeg), image("data:image/png;base64," + png)]


def test_a_folder_in_the_skeleton_goes_before_a_path_and_slots_in_it_are_filled():
    skeleton = {"type": "image_url", "image_url": {"url": "{folder}/{image}", "detail": "{detail}"}, "min_pixels": 4}
    parts = item(
        {"image": skeleton},
        {"content": tagged(("image", "a.jpg"), ("image", "https://h/a")), "folder": "pics", "detail": "low"},
    )
    assert parts == [
        {**image("pics/a.jpg", detail="low"), "min_pixels": 4},
        {**image("https://h/a", detail="low"), "min_pixels": 4},
    ]


def test_mm_url_takes_any_medium():
    prompt_mm = {"mm_url": "file://{mm_url}", "text": text("{question}")}
    parts = item(prompt_mm, {"content": tagged(("image", "a.jpg"), ("video", "b.mp4"), ("text", "q"))})
    assert parts == [image("a.jpg"), {"type": "video_url", "video_url": {"url": "b.mp4"}}, text("q")]


def test_repeat_text_false_puts_the_surroundings_around_all_text():
    content = tagged(("text", "a"), ("image", "1.jpg"), ("text", "b"))
    prompt_mm = {"text": text("<{question}>"), "image": IMAGE}
    assert item(prompt_mm, {"content": content}, repeat_text=False) == [text("<a"), image("1.jpg"), text("b>")]
    assert item(prompt_mm, {"content": tagged(("text", "a"))}, repeat_text=False) == [text("<a>")]


def test_without_a_text_segment_the_text_is_emitted_once_after_the_media():
    content = tagged(("image", "1.jpg"), ("image", "2.jpg"))
    assert item({"text": text("Describe. {question}"), "image": IMAGE}, {"content": content}) == [
        image("1.jpg"),
        image("2.jpg"),
        text("Describe. "),
    ]
    assert item({"text": text("{question}"), "image": IMAGE}, {"content": content}) == [image("1.jpg"), image("2.jpg")]


def test_a_text_segment_that_no_slot_receives_is_an_error():
    with pytest.raises(
        TemplateError, match=r"a text segment that no slot of the template receives; write \{question\}"
    ):
        item({"text": text("Describe."), "image": IMAGE}, {"content": tagged(("image", "a.jpg"), ("text", "lost"))})


def test_a_modality_that_the_template_lacks_is_an_error_with_its_place():
    with pytest.raises(TemplateError, match="the sample has audio and the template no audio part") as caught:
        item({"text": text("{question}"), "image": IMAGE}, {"content": tagged(("text", "q"), ("audio", "s.wav"))})
    assert caught.value.where.column == "content"
    assert caught.value.where.offset == 51


def test_a_sample_that_gives_no_part_is_an_error():
    with pytest.raises(TemplateError, match="gives no content part"):
        item(FULL, {"content": ""})


def test_bad_tags_are_reported_with_column_and_offset():
    with pytest.raises(TagError, match=r"^question @17: "):
        item(FULL, {"question": "<AIS_TEXT_START>a<AIS_TEXT_START>b"})


def test_ordinary_prompts_read_tagged_columns_as_text_and_refuse_media():
    template = MMPromptTemplate({"begin": "On {question}", "round": [{"role": "HUMAN", "prompt": "{question}!"}]})
    assert template.generate_item({"question": tagged(("text", "a"), ("text", "b"))}) == [
        "On ab",
        {"role": "HUMAN", "prompt": "ab!"},
    ]
    with pytest.raises(TemplateError, match="column 'question' holds image and is used in a text"):
        template.generate_item({"question": tagged(("image", "a.jpg"))})


def test_system_and_bot_prompts_are_filled_and_masked():
    template = MMPromptTemplate(
        {
            "begin": [{"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Be {style}."}],
            "round": [
                {"role": "HUMAN", "prompt_mm": {"text": text("{question}{answer}")}},
                {"role": "BOT", "prompt": "A: {answer}"},
            ],
        }
    )
    assert template.generate_item({"question": "q", "answer": "gold", "style": "brief"}, "answer") == [
        {"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Be brief."},
        {"role": "HUMAN", "prompt": [text("q")]},
        {"role": "BOT", "prompt": "A: "},
    ]


def test_several_items_are_each_fed_by_their_own_column():
    rounds = [
        {"role": "HUMAN", "prompt_mm": {"text": text("{first}"), "image": IMAGE}},
        {"role": "BOT", "prompt": "ok"},
        {"role": "HUMAN", "prompt_mm": {"text": text("{second}"), "image": IMAGE}},
    ]
    entry = {
        "first": tagged(("image", "1.jpg"), ("text", "one")),
        "second": tagged(("text", "two"), ("image", "2.jpg")),
    }
    prompt = MMPromptTemplate({"round": rounds}).generate_item(entry)
    assert [p["prompt"] for p in prompt] == [[image("1.jpg"), text("one")], "ok", [text("two"), image("2.jpg")]]


def test_an_example_carries_its_media_and_answer():
    rounds = [{"role": "HUMAN", "prompt_mm": FULL}, {"role": "BOT", "prompt": "{answer}"}]
    template = MMPromptTemplate({"begin": "</E>", "round": rounds}, ice_token="</E>")
    example = template.generate_ice_item({"content": tagged(("image", "e.jpg"), ("text", "e")), "answer": "yes"})
    prompt = template.generate_item(
        {"content": tagged(("image", "q.jpg"), ("text", "q")), "answer": "no"}, "answer", example
    )
    assert prompt == PromptList(
        [
            {"role": "HUMAN", "prompt": [image("e.jpg"), text("Q: e")]},
            {"role": "BOT", "prompt": "yes"},
            {"role": "HUMAN", "prompt": [image("q.jpg"), text("Q: q")]},
            {"role": "BOT", "prompt": ""},
        ]
    )


def test_a_column_may_hold_segments_or_content_parts():
    expected = [image("1.jpg"), text("Q: <AIS_IMAGE_START>x")]
    assert item(FULL, {"content": [Segment("image", "1.jpg"), Segment("text", "<AIS_IMAGE_START>x")]}) == expected
    assert item(FULL, {"content": [image("1.jpg"), text("<AIS_IMAGE_START>x")]}) == expected


@pytest.mark.parametrize(
    ("prompt_mm", "message"),
    [
        ({"images": IMAGE}, "unknown modality 'images' in prompt_mm; did you mean 'image'"),
        ({"image": {"type": "img_url", "img_url": "x"}}, "unknown content part type 'img_url'"),
        ({"image": {"type": "video_url", "video_url": {"url": "{image}"}}}, "image under type 'video_url'"),
        ({"image": {"type": "image_url"}}, "names no source"),
        ({"text": {"type": "text"}}, "no text part"),
        ({}, "not a dict of modality"),
        ("x", "not a dict of modality"),
    ],
)
def test_faults_of_a_skeleton_are_found_at_construction(prompt_mm, message):
    with pytest.raises(TemplateError, match=message):
        MMPromptTemplate({"round": [{"role": "HUMAN", "prompt_mm": prompt_mm}]})


def test_a_string_is_no_multimodal_template():
    with pytest.raises(TemplateError, match="is a dialogue, not a string"):
        MMPromptTemplate("{question}")


def test_multimodal_templates_pickle_with_their_options():
    prompt_mm = {**FULL, "text": text("<{c}>")}
    template = MMPromptTemplate(
        {"round": [{"role": "HUMAN", "prompt_mm": prompt_mm}]}, column="c", order="template", repeat_text=False
    )
    entry = {"c": tagged(("image", "1.jpg"), ("text", "a"), ("text", "b"))}
    assert pickle.loads(pickle.dumps(template)).generate_item(entry) == template.generate_item(entry)


def test_a_question_cannot_put_its_own_picture_in_the_place_of_the_rows():
    entry = {"image": "real.jpg", "question": tagged(("image", "other.jpg"), ("text", "q"))}
    with pytest.raises(TemplateError, match="image in the text of column 'question', beside the column 'image'"):
        item(FULL, entry)
    template = MMPromptTemplate({"round": [{"role": "HUMAN", "prompt_mm": FULL}]})
    declared = template.generate_item(SampleView(entry, tagged=frozenset({"question"})))
    assert declared[0]["prompt"] == [image("other.jpg"), text("Q: q")]


def test_text_tags_beside_a_picture_lose_neither():
    entry = {"image": "real.jpg", "question": "<AIS_TEXT_START> is a tag. What is it for?"}
    assert item(FULL, entry) == [text("Q:  is a tag. What is it for?"), image("real.jpg")]


def test_a_format_that_carries_structure_is_never_scanned():
    template = MMPromptTemplate({"round": [{"role": "HUMAN", "prompt_mm": FULL}]})
    attack = tagged(("image", "/etc/passwd"), ("text", "q"))
    prompt = template.generate_item(SampleView({"question": attack}, scanned=False))
    assert prompt[0]["prompt"] == [text("Q: " + attack)]


def test_columns_of_objects_reach_the_parts():
    picture = Image.new("RGB", (2, 2))
    assert item(FULL, {"question": "q", "image": picture}) == [text("Q: q"), image(picture)]
    assert item(FULL, {"content": picture}) == [image(picture), text("Q: ")]
    parts = [TextPart("a"), MediaRef("image", "b.jpg", "", (("detail", "low"),))]
    assert item(FULL, {"content": parts}) == [text("Q: a"), image("b.jpg", detail="low")]
    array = np.zeros((2, 2, 3), "uint8")
    assert item({"image": IMAGE}, {"image": array})[0]["image_url"]["url"] is array


def test_an_editable_result_does_not_edit_the_template():
    prompt_mm = {"text": {"type": "text", "text": "{q}", "cache_control": {"type": "ephemeral"}}}
    template = MMPromptTemplate({"round": [{"role": "HUMAN", "prompt_mm": prompt_mm}]})
    template.generate_item({"q": "a"})[0]["prompt"][0]["cache_control"]["type"] = "changed"
    assert template.generate_item({"q": "a"})[0]["prompt"][0]["cache_control"] == {"type": "ephemeral"}
