"""Defects of the systems that mmprompt follows, which must not exist here; each test is named for one."""

import json

import pytest

from mmprompt import (
    MetaTemplate,
    MMPromptTemplate,
    PromptError,
    PromptList,
    PromptTemplate,
    TagError,
    TemplateError,
    dataset_task,
    load_task,
    parse_segments,
    to_openai,
)

IMAGE = {"type": "image_url", "image_url": {"url": "file://{image}"}}
MM = MMPromptTemplate(
    {
        "round": [
            {
                "role": "HUMAN",
                "prompt_mm": {"text": {"type": "text", "text": "{anything} Q: {question}"}, "image": IMAGE},
            }
        ]
    }
)
LM = {
    "round": [
        {"role": "HUMAN", "begin": "H:", "end": "\n"},
        {"role": "BOT", "begin": "B:", "end": "\n", "generate": True},
    ]
}
API = {"round": [{"role": "HUMAN"}, {"role": "BOT", "generate": True}]}


def parts(entry, template=MM):
    return template.generate_item(entry)[0]["prompt"]


def urls(found):
    return [p["image_url"]["url"] for p in found if p["type"] == "image_url"]


def test_tags_in_question_are_read_with_other_slots_beside_it():
    entry = {"anything": "A", "question": "<AIS_TEXT_START>what<AIS_CONTENT_TAG><AIS_IMAGE_START>a.jpg"}
    assert parts(entry) == [{"type": "text", "text": "A Q: what"}, {"type": "image_url", "image_url": {"url": "a.jpg"}}]


def test_text_outside_tags_is_not_dropped():
    assert [
        p["text"]
        for p in parts({"content": "see <AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG> and say", "anything": ""})
        if p["type"] == "text"
    ] == [" Q: see ", " Q:  and say"]


def test_a_missing_middle_terminator_swallows_no_segment():
    with pytest.raises(TagError, match="start tag <AIS_IMAGE_START> inside an open text segment"):
        parts({"content": "<AIS_TEXT_START>a<AIS_IMAGE_START>b.jpg<AIS_CONTENT_TAG>"})


def test_file_scheme_is_not_written_twice():
    assert urls(
        parts({"content": "<AIS_IMAGE_START>file://a.jpg<AIS_CONTENT_TAG><AIS_IMAGE_START>https://h/a.jpg"})
    ) == ["file://a.jpg", "https://h/a.jpg"]


def test_bare_prompt_lists_go_through_a_meta_template():
    bare = PromptList([{"role": "HUMAN", "prompt": "q"}, {"role": "BOT", "prompt": "a"}])
    assert MetaTemplate(LM).to_string(bare, "ppl") == "H:q\nB:a\n"
    assert MetaTemplate(LM).to_string(bare) == "H:q\nB:"
    assert [m.role for m in MetaTemplate(API).to_messages(bare)] == ["user"]


def test_the_end_section_works_in_ppl_and_in_gen():
    prompt = PromptTemplate(
        {
            "round": [{"role": "HUMAN", "prompt": "q"}],
            "end": [{"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "bye"}],
        }
    ).generate_item({})
    assert MetaTemplate(LM).to_string(prompt, "ppl") == "H:q\nB:\nH:bye\n"
    assert MetaTemplate(LM).to_string(prompt, "gen") == "H:q\nB:"


def test_system_falls_back_to_human_with_media():
    template = MMPromptTemplate(
        {
            "begin": [{"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Be brief."}],
            "round": [{"role": "HUMAN", "prompt_mm": {"image": IMAGE}}],
        }
    )
    [message] = MetaTemplate(API).to_messages(template.generate_item({"image": "https://h/a.jpg"}))
    assert to_openai([message]) == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Be brief."},
                {"type": "image_url", "image_url": {"url": "https://h/a.jpg"}},
            ],
        }
    ]


def test_neighbours_of_one_role_with_media_merge():
    image = {"type": "image_url", "image_url": {"url": "https://h/a.jpg"}}
    [message] = MetaTemplate(API).to_messages([{"role": "HUMAN", "prompt": [image]}, {"role": "HUMAN", "prompt": "q"}])
    assert [type(p).__name__ for p in message.parts] == ["MediaRef", "TextPart"]


def test_media_are_kept_beside_a_system_message():
    image = {"type": "image_url", "image_url": {"url": "https://h/a.jpg"}}
    system, user = MetaTemplate(None).to_messages(
        [{"role": "SYSTEM", "prompt": "s"}, {"role": "HUMAN", "prompt": [image]}]
    )
    assert (system.role, user.parts[0].source) == ("system", "https://h/a.jpg")


def test_a_reserved_role_may_stand_in_a_round():
    meta = {**LM, "reserved_roles": [{"role": "SYSTEM", "begin": "S:", "end": "\n"}]}
    prompt = PromptTemplate(
        {"round": [{"role": "SYSTEM", "prompt": "s"}, {"role": "HUMAN", "prompt": "q"}]}
    ).generate_item({})
    assert MetaTemplate(meta).to_string(prompt) == "S:s\nH:q\nB:"
    assert [m.role for m in MetaTemplate({**API, "reserved_roles": [{"role": "SYSTEM"}]}).to_messages(prompt)] == [
        "system",
        "user",
    ]


def test_a_list_plus_a_prompt_list_ends():
    assert ["a"] + PromptList(["b"]) == PromptList(["a", "b"])


def test_columns_may_be_named_self_and_input_str():
    row = {"self": "S", "input_str": "I"}
    assert PromptTemplate("{self}{input_str}").generate_item(row) == "SI"
    assert PromptList(["{self}{input_str}"]).format(row) == ["SI"]


def test_str_of_a_prompt_list_is_the_text():
    assert str(PromptList([{"role": "HUMAN", "prompt": 'say "问"\n'}])) == 'say "问"\n'


def test_a_stray_terminator_is_reported():
    with pytest.raises(TagError, match="no open segment"):
        parse_segments("a<AIS_CONTENT_TAG>")


def test_a_media_only_sample_is_no_empty_request():
    template = MMPromptTemplate(
        {"round": [{"role": "HUMAN", "prompt_mm": {"text": {"type": "text", "text": "{question}"}, "image": IMAGE}}]}
    )
    assert parts({"content": "<AIS_IMAGE_START>a.jpg"}, template) == [
        {"type": "image_url", "image_url": {"url": "a.jpg"}}
    ]
    with pytest.raises(TemplateError, match="gives no content part"):
        parts({"content": ""}, template)


def test_a_text_skeleton_without_a_slot_loses_no_text():
    template = MMPromptTemplate(
        {"round": [{"role": "HUMAN", "prompt_mm": {"text": {"type": "text", "text": "Describe."}, "image": IMAGE}}]}
    )
    assert parts({"content": "<AIS_IMAGE_START>a.jpg"}, template)[1] == {"type": "text", "text": "Describe."}
    with pytest.raises(TemplateError, match="no slot of the template receives"):
        parts({"content": "<AIS_TEXT_START>lost"}, template)


def test_two_tagged_columns_both_arrive():
    entry = {
        "anything": "<AIS_IMAGE_START>c.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>ctx",
        "question": "<AIS_TEXT_START>q<AIS_CONTENT_TAG><AIS_IMAGE_START>q.jpg",
    }
    found = parts(entry)
    assert urls(found) == ["c.jpg", "q.jpg"]
    assert [p["text"] for p in found if p["type"] == "text"] == ["ctx Q: ", " Q: q"]


def test_an_unknown_modality_in_a_prompt_is_an_error_not_a_key_error():
    with pytest.raises(TemplateError, match="the sample has video and the template no video part"):
        parts({"content": "<AIS_VIDEO_START>a.mp4"})


def test_loose_strings_are_not_lost_for_api_models():
    assert (
        MetaTemplate(API).to_messages(["Instruction.", {"role": "HUMAN", "prompt": "q"}])[0].text == "Instruction.\nq"
    )


def test_an_unknown_role_is_an_error_not_a_printed_line(capsys):
    with pytest.raises(PromptError, match="unknown role 'X'"):
        MetaTemplate(LM).to_string([{"role": "X", "prompt": "q"}])
    assert capsys.readouterr() == ("", "")


def test_integers_over_64_bits_nan_and_a_bom_are_read_as_python_reads_them(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"id": 1, "n": 123456789012345678901234567890, "x": NaN}\n{"id": 123456789012345678901234567890, "n": -0.0, "x": 1e400}\n'
    )
    task = load_task(
        {
            "dataset": {"path": str(path)},
            "reader_cfg": {"missing": "keep"},
            "infer_cfg": {"prompt_template": {"type": "PromptTemplate", "template": "{n} {x}"}},
        }
    )
    expected = [json.loads(line) for line in path.read_text(encoding="utf-8-sig").splitlines()]
    assert list(task.prompts()) == [(e["id"], f"{e['n']} {e['x']}") for e in expected]
    assert [s.id for s in dataset_task(str(path)).samples()] == [1, 123456789012345678901234567890]
