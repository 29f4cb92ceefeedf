"""Raw messages: the template, its prompts, and how they pass a meta template."""

import json
import logging
import pickle
from pathlib import Path

import pytest

from mmprompt import (
    MetaTemplate,
    MMPromptError,
    MMPromptTemplate,
    PromptError,
    PromptList,
    PromptTemplate,
    TemplateError,
    to_openai,
)
from mmprompt.templates.raw import RawPromptTemplate
from mmprompt.templates.raw_messages import RawMessages
from mmprompt.templates.sample_view import SampleView

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def user(content):
    return {"role": "user", "content": content}


def assistant(content):
    return {"role": "assistant", "content": content}


def system(content):
    return {"role": "system", "content": content}


def test_slots_are_filled_in_one_pass_and_the_answer_is_masked():
    template = RawPromptTemplate([system("About {topic}"), user("{q}"), assistant("{answer}")])
    entry = {"topic": "birds", "q": "say {answer}", "answer": "SECRET"}
    assert template.generate_item(entry, "answer") == [system("About birds"), user("say {answer}"), assistant("")]
    assert template.generate_ice_item(entry, "any") == [
        system("About birds"),
        user("say {answer}"),
        assistant("SECRET"),
    ]
    assert template.generate_label_prompt_item(entry, None, "A")[-1] == assistant("SECRET")


def test_without_format_variables_contents_stay_as_written():
    parts = [{"type": "text", "text": "{q}"}]
    template = RawPromptTemplate([user("{q}"), user(parts)], format_variables=False)
    assert template.generate_item({"q": "x"}) == [user("{q}"), user(parts)]


def test_content_parts_are_filled_and_the_sources_own_form_wins():
    image = {"type": "image_url", "image_url": {"url": "file://{image}", "detail": "{detail}"}, "min_pixels": 4}
    template = RawPromptTemplate(
        [user([{"type": "text", "text": "1: {q}"}, image, {"type": "text", "text": "2: {q}"}])]
    )

    def sources(value):
        content = template.generate_item({"q": "why?", "image": value, "detail": "low"})[0]["content"]
        assert [content[0], content[-1]] == [{"type": "text", "text": "1: why?"}, {"type": "text", "text": "2: why?"}]
        assert all(p["image_url"]["detail"] == "low" and p["min_pixels"] == 4 for p in content[1:-1])
        return [p["image_url"]["url"] for p in content[1:-1]]

    assert sources("a.jpg") == ["a.jpg"]
    assert sources("https://example.com/a.jpg") == ["https://example.com/a.jpg"]
    assert sources(PNG) == [f"data:image/png;base64,{PNG}"]
    assert sources(["a.jpg", "b.jpg"]) == ["a.jpg", "b.jpg"]


def test_a_tagged_column_feeds_the_parts_in_the_order_of_the_sample():
    template = RawPromptTemplate(
        [user([{"type": "text", "text": "{question}"}, {"type": "image_url", "image_url": {"url": "file://{image}"}}])]
    )
    entry = {
        "content": "<AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>what?<AIS_CONTENT_TAG><AIS_IMAGE_START>b.jpg"
    }
    assert template.generate_item(entry)[0]["content"] == [
        {"type": "image_url", "image_url": {"url": "a.jpg"}},
        {"type": "text", "text": "what?"},
        {"type": "image_url", "image_url": {"url": "b.jpg"}},
    ]
    assert template.generate_item({"content": "plain", "question": "q", "image": "a.jpg"})[0]["content"][0] == {
        "type": "text",
        "text": "q",
    }
    several = RawPromptTemplate([user([{"type": "text", "text": "{content}"}, {"type": "text", "text": "!"}])])
    with pytest.raises(TemplateError, match="several text parts"):
        several.generate_item(entry)


def test_a_constant_source_is_shown_as_those_of_samples_are():
    part = {"type": "image_url", "image_url": {"url": PNG}}
    shown = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    assert RawPromptTemplate([user([part])]).generate_item({}) == [user([shown])]
    multimodal = MMPromptTemplate({"round": [{"role": "HUMAN", "prompt_mm": {"image": part}}]})
    assert multimodal.generate_item({}) == [{"role": "HUMAN", "prompt": [shown]}]


def test_an_empty_text_is_a_part_of_plain_columns_and_none_of_a_tagged_one():
    image = {"type": "image_url", "image_url": {"url": "{image}"}}
    template = RawPromptTemplate([user([{"type": "text", "text": "{hint}"}, image])])
    shown = {"type": "image_url", "image_url": {"url": "a.jpg"}}
    assert template.generate_item({"hint": "", "image": "a.jpg"}) == [user([{"type": "text", "text": ""}, shown])]
    assert template.generate_item({"hint": "", "content": "<AIS_IMAGE_START>a.jpg"}) == [user([shown])]


def test_a_tag_in_a_format_that_carries_structure_is_text():
    template = RawPromptTemplate([user([{"type": "text", "text": "{q}"}])])
    tagged = "<AIS_IMAGE_START>/etc/passwd<AIS_CONTENT_TAG>"
    assert template.generate_item(SampleView({"q": tagged}, scanned=False)) == [
        user([{"type": "text", "text": tagged}])
    ]


def test_expanded_messages_are_data():
    template = RawPromptTemplate([system("s"), {"expand_column": "history"}, user("{q}")])
    history = [user("{q} </E>"), {**assistant(None), "tool_calls": [{"id": "1"}]}, {"role": "tool", "content": "t"}]
    entry = {"q": "x", "history": history}
    got = template.generate_item(entry)
    assert got == [system("s"), *history, user("x")]
    got[1]["content"] = "changed"
    assert entry["history"][0]["content"] == "{q} </E>"


def test_expanded_messages_show_bare_base64_as_a_data_uri():
    template = RawPromptTemplate([{"expand_column": "history"}])
    part = {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}
    shown = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}}
    assert template.generate_item({"history": [user([part])]}) == [user([shown])]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"hist": []}, "no column 'history'; did you mean 'hist'"),
        ({"history": None}, "null"),
        ({"history": "text"}, "holds str"),
        ({"history": ["text"]}, "element 0 of column 'history' is not a message"),
        ({"history": [{"role": "user"}]}, "is not a message"),
        ({"history": [{"role": "user", "content": [{"type": "hologram"}]}]}, "unknown type 'hologram'"),
    ],
)
def test_a_column_that_holds_no_messages_is_an_error(entry, message):
    with pytest.raises(MMPromptError, match=message):
        RawPromptTemplate([{"expand_column": "history"}]).generate_item(entry)


def test_a_csv_cell_may_hold_the_messages_as_json():
    entry = SampleView({"history": json.dumps([user("h")])}, list_cells=True)
    assert RawPromptTemplate([{"expand_column": "history"}]).generate_item(entry) == [user("h")]


def test_examples_take_the_place_of_the_token():
    template = RawPromptTemplate([system("s"), "</E>", user("{q}")])
    examples = RawMessages([user("1 {q}"), assistant("2")])
    assert template.generate_item({"q": "x"}, None, examples) == [system("s"), *examples, user("x")]
    assert template.generate_label_prompt_item({"q": "x"}, examples, "A") == [system("s"), *examples, user("x")]
    assert template.generate_item({"q": "x"}) == [system("s"), user("x")]
    own = RawPromptTemplate(["<ice>", user("{q}")], ice_token="<ice>")
    assert own.generate_item({"q": "x"}, None, examples) == [*examples, user("x")]


def test_examples_of_a_dialogue_become_messages():
    dialogue = PromptTemplate({"round": [{"role": "HUMAN", "prompt": "{q}"}, {"role": "BOT", "prompt": "{a}"}]})
    ice = dialogue.generate_ice_item({"q": "1", "a": "2"})
    assert isinstance(ice, PromptList)
    got = RawPromptTemplate(["</E>", user("{q}")]).generate_item({"q": "x"}, None, ice)
    assert got == [user("1"), assistant("2"), user("x")]


@pytest.mark.parametrize(
    ("messages", "ice"), [(["</E>", user("{q}")], "text"), ([user("{q}")], [user("lost")]), ([user("{q}")], "text")]
)
def test_examples_without_a_place_are_told_once_and_can_be_refused(messages, ice, caplog):
    template = RawPromptTemplate(messages)
    with caplog.at_level(logging.WARNING, "mmprompt"):
        assert template.generate_item({"q": "x"}, None, ice) == [user("x")]
        template.generate_item({"q": "x"}, None, ice)
    assert len(caplog.records) == 1
    with pytest.raises(TemplateError, match="examples"):
        template.check_examples(ice)
    template.check_examples(None)
    template.check_examples("")


@pytest.mark.parametrize(
    ("messages", "place", "message"),
    [
        ("x", "messages", "is str"),
        ([], "messages", "the list of messages is empty"),
        ([3], "messages[0]", "is int"),
        ([user("a"), "stray"], "messages[1]", "'stray' is not a message"),
        ([{"role": "user"}], "messages[0]", "without content"),
        ([{"content": "x"}], "messages[0]", "without role"),
        ([{"role": "HUMAN", "content": "x"}], "messages[0]", "write 'user'"),
        ([{"role": "tool", "content": "x"}], "messages[0]", "unknown role"),
        ([{**user("x"), "contents": 1}], "messages[0]", "did you mean 'content'"),
        ([{"expand_column": 3}], "messages[0]", "is int"),
        ([{"expand_column": "h", "role": "user"}], "messages[0]", "unknown key 'role'"),
        ([user(None)], "messages[0].content", "NoneType"),
        ([user([])], "messages[0].content", "no content parts"),
        ([user([{"type": "imag"}])], "messages[0].content[0]", "unknown content part type 'imag'"),
        ([user([{"type": "image_url"}])], "messages[0].content[0]", "names no source"),
        ([user("see </E>")], "messages[0].content", "inside a text"),
    ],
)
def test_a_fault_is_an_error_at_construction_with_its_place(messages, place, message):
    with pytest.raises(TemplateError) as caught:
        RawPromptTemplate(messages)
    assert caught.value.where.template == place
    assert message in str(caught.value)


def test_the_template_is_what_was_given_and_nothing_of_it_is_shared():
    given = [user("{q}"), "</E>"]
    template = RawPromptTemplate(given)
    given[0]["content"] = "changed"
    template.template[0]["content"] = "changed"
    prompt = template.generate_item({"q": "x"})
    assert prompt == [user("x")]
    assert (template.prompt_type, template.ice_token, template.sep_token, template.labels) == (
        "raw_messages", "</E>", None, (),
    )  # fmt: skip
    again = pickle.loads(pickle.dumps((template, prompt)))
    assert again[0].generate_item({"q": "x"}) == again[1] == prompt
    assert isinstance(again[1], RawMessages)
    assert str(prompt) == "x"


def test_the_tool_calls_of_a_template_are_copied_for_each_sample():
    template = RawPromptTemplate([{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}, user("q")])
    template.generate_item({})[0]["tool_calls"][0]["id"] = "changed"
    assert template.generate_item({})[0]["tool_calls"] == [{"id": "1"}]


# Ready messages through a meta template


def through(meta, prompt, mode="gen"):
    return to_openai(MetaTemplate(meta).to_messages(prompt, mode))


def test_ready_messages_keep_their_roles_whatever_the_meta_template():
    prompt = [system("s"), user("a"), user("b"), {"role": "observer", "content": "c"}]
    assert through(None, prompt) == prompt
    assert through({"round": [{"role": "HUMAN", "api_role": "HUMAN"}]}, RawMessages(prompt)) == prompt
    assert through(None, [prompt[:2], prompt[1:]][0]) == prompt[:2]
    batch = MetaTemplate(None).to_messages([prompt[:2], prompt[1:]])
    assert [to_openai(m) for m in batch] == [prompt[:2], prompt[1:]]


def test_an_empty_last_message_of_the_assistant_is_where_the_model_speaks():
    prompt = [user("q"), assistant("")]
    assert through(None, prompt) == [user("q")]
    assert through(None, prompt, "ppl") == prompt
    assert through(None, [assistant(""), user("q")]) == [assistant(""), user("q")]


def test_tool_calls_names_and_parts_survive():
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    prompt = [
        {"role": "user", "name": "Ann", "content": [{"type": "text", "text": "t"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "r"},
        user([{"type": "image_url", "image_url": {"url": "https://example.com/a.jpg"}}]),
    ]
    messages = MetaTemplate(None).to_messages(prompt)
    assert messages[0].name == "Ann"
    assert messages[1].tool_calls == (call,)
    assert (messages[2].tool_call_id, messages[2].text) == ("1", "r")
    assert messages[3].parts[0].source == "https://example.com/a.jpg"


@pytest.mark.parametrize(
    ("meta", "prompt", "expected"),
    [
        ([system("M ")], [system("s"), user("u")], [system("M s"), user("u")]),
        ([system("M ")], [user("u")], [system("M "), user("u")]),
        ([system("M "), user("P ")], [system("s"), user("u")], [system("M s"), user("P u")]),
        ([user("P ")], [system("s"), user("u"), user("v")], [system("s"), user("P u"), user("v")]),
        ([assistant("x")], [system("s"), user("u")], [assistant("x"), system("s"), user("u")]),
        ([user("P "), system("M ")], [system("s"), user("u")], [system("s"), user("P u"), system("M ")]),
    ],
)
def test_a_meta_template_of_messages_is_merged_in(meta, prompt, expected):
    assert through(meta, prompt) == expected
    assert MetaTemplate(meta).to_string(prompt) == "\n".join(m["content"] for m in expected)


def test_a_meta_template_of_messages_serves_dialogues_too():
    prompt = [{"role": "HUMAN", "prompt": "q"}, {"role": "BOT", "prompt": ""}]
    assert through([system("M")], prompt) == [system("M"), user("q")]
    meta = pickle.loads(pickle.dumps(MetaTemplate([system("M")])))
    assert meta.meta == [system("M")]
    assert meta.eos_token_id is None


def test_a_string_of_ready_messages_joins_their_texts():
    image = {"type": "image_url", "image_url": {"url": "a.jpg"}}
    prompt = [system("s"), user([image, {"type": "text", "text": "q"}]), assistant("")]
    text = MetaTemplate(None).to_string(prompt, media_placeholder={"image": "<image>"})
    assert text == "s\n<image>q"
    assert [m.source for m in text.media] == ["a.jpg"]
    with pytest.raises(PromptError, match="which a string cannot carry"):
        MetaTemplate(None).to_string(prompt)


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ([{"role": "tool", "content": "x"}], "unknown role 'tool'"),
        ([{"role": "system"}], "not a message"),
        (["x"], "not a message"),
        ([{"role": "system", "content": 3}], "is int"),
        ([{"role": "system", "content": "x", "prompt": "y"}], "unknown key 'prompt'"),
    ],
)
def test_a_meta_template_of_messages_is_checked(meta, message):
    with pytest.raises(TemplateError, match=message) as caught:
        MetaTemplate(meta)
    assert caught.value.where.template == "meta_template[0]"


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([{"role": "HUMAN", "prompt": "a"}, user("b")], "among items of another form"),
        ([user(3)], "is int"),
        ([user([3])], "holds int"),
        ([{"role": 3, "content": "x"}], "role '3'"),
        ([assistant("")], "no message"),
    ],
)
def test_a_prompt_of_messages_is_checked(prompt, message):
    with pytest.raises(PromptError, match=message):
        MetaTemplate(None).to_messages(prompt)


# What OpenCompass gave, as recorded

RECORDED = json.loads((Path(__file__).parents[2] / "fixtures/reference/reference_cases.json").read_text("utf-8"))
CASES = [c for c in RECORDED["cases"] if c["group"] == "oc-raw"]
STATED = {"oc-raw/024": "text parts have their slots filled; OpenCompass sends them as written"}


def as_recorded(messages):
    if isinstance(messages[0], list):
        return [as_recorded(m) for m in messages]
    return [{"role": m.role, "content": m.text} for m in messages]


def outcome(case):
    given = case["in"]
    if case["op"] == "parse":
        return as_recorded(MetaTemplate(given["meta"]).to_messages(given["prompt"], given["mode"]))
    template = RawPromptTemplate(**given["cfg"])
    item = template.generate_item(given["entry"], None, given["ice"])
    return {"item": item, "ice_item": template.generate_ice_item(given["entry"])}


@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_a_recorded_case_comes_out_equal(case):
    recorded = case["out"]["oc"]
    if "error" in recorded:
        with pytest.raises(TemplateError):
            outcome(case)
    else:
        assert (outcome(case) == recorded["value"]) != (case["id"] in STATED)
