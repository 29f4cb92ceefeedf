import copy
import json
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmprompt import MediaRef, MMPromptError, PromptError, TemplateError, TextPart
from mmprompt.prompters import AlpacaPrompter

SYSTEM = "You are an AI-Agent developed by LazyLLM."
HEAD = (
    "Below is an instruction that describes a task, paired with extra messages such as input that provides further "
    "context if possible. Write a response that appropriately completes the request.\n\n ### Instruction:\n"
)
TOOLS = [{"type": "function", "function": {"name": "example"}}]
EXTRA = "Here are some extra messages you can referred to:\n\n"
IMAGE = {"type": "image_url", "image_url": {"url": "a.png", "detail": "low"}}

words = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["{a}", "{b}", "{{a}}", "### Response:\n", "{tools}", "{system}"]
)


def test_an_instruction_is_followed_by_a_blank_line_and_the_response():
    assert AlpacaPrompter("do {x}").generate_prompt("it") == f"{SYSTEM}\n{HEAD}do it\n\n\n### Response:\n"


def test_extra_keys_stand_under_headings_of_their_own():
    prompt = AlpacaPrompter("go", extra_keys=["k", "a b"]).generate_prompt({"k": "1", "a b": "2"})
    assert prompt == f"{SYSTEM}\n{HEAD}go\n\n{EXTRA}### k:\n1\n\n### a b:\n2\n\n\n### Response:\n"


def test_a_user_half_stands_before_the_response_and_is_followed_by_a_blank_line():
    prompter = AlpacaPrompter({"system": "S {a}", "user": "U {b}"}, system="SYS")
    assert prompter.generate_prompt({"a": "1", "b": "2"}) == f"SYS\n{HEAD}S 1\nU 2\n\n### Response:\n"
    assert prompter.generate_prompt({"a": "1", "b": "2"}, return_dict=True) == {
        "messages": [{"role": "system", "content": f"SYS\n{HEAD}S 1"}, {"role": "user", "content": "U 2"}]
    }


def test_extra_keys_of_a_dict_instruction_join_its_user_half():
    prompter = AlpacaPrompter({"system": "S", "user": "U"}, extra_keys="k")
    assert prompter.generate_prompt("3") == f"{SYSTEM}\n{HEAD}S\nU\n\n{EXTRA}### k:\n3\n\n### Response:\n"
    assert prompter.generate_prompt("3", return_dict=True)["messages"][1]["content"] == f"U\n\n{EXTRA}### k:\n3\n\n"


def test_tools_come_before_the_user_half():
    prompt = AlpacaPrompter({"system": "S", "user": "U"}, tools=TOOLS).generate_prompt("")
    assert prompt == f"{SYSTEM}\n{HEAD}S\n### Function-call Tools. \n\n{json.dumps(TOOLS)}\n\nU\n\n### Response:\n"


def test_no_system_text_leaves_no_empty_line():
    assert AlpacaPrompter("x", system="").generate_prompt("").startswith("Below is")
    assert AlpacaPrompter("x").generate_prompt("", system="").startswith("Below is")
    assert AlpacaPrompter("x").generate_prompt("", system="Hi.").startswith("Hi.\nBelow is")


def test_a_label_follows_in_the_string_and_is_no_message():
    prompter = AlpacaPrompter("{x}")
    assert prompter.generate_prompt("1", label="gold").endswith("### Response:\ngold")
    assert prompter.generate_prompt("1", label=0).endswith("### Response:\n0")
    assert prompter.generate_prompt("1", label="gold", return_dict=True) == prompter.generate_prompt(
        "1", return_dict=True
    )


def test_a_history_is_refused_at_construction_and_at_the_call():
    with pytest.raises(PromptError, match="AlpacaPrompter takes no history; use ChatPrompter"):
        AlpacaPrompter("{x}", history=[["u", "a"]])
    with pytest.raises(PromptError, match="takes no history"):
        AlpacaPrompter("{x}").generate_prompt("1", history=[["u", "a"]], return_dict=True)
    assert AlpacaPrompter("{x}", history=[]).generate_prompt("1", history=[])


def test_input_without_a_slot_is_refused():
    with pytest.raises(TemplateError, match=r"no slot for the input; put \{input\} in it"):
        AlpacaPrompter("go").generate_prompt("1")
    with pytest.raises(TemplateError, match="no slot for the input"):
        AlpacaPrompter("go").generate_prompt([IMAGE])
    assert AlpacaPrompter("go").generate_prompt("").endswith("go\n\n\n### Response:\n")


def test_missing_slots_are_named():
    with pytest.raises(TemplateError, match="no value for slots 'b', 'c'; give values for 'a', 'b', 'c'"):
        AlpacaPrompter("{a} {b} {c}").generate_prompt({"a": "1"})


def test_a_mistyped_slot_is_named_with_what_was_given():
    with pytest.raises(TemplateError, match=r"no value for slot 'context' \(did you mean 'contxt'\?\)"):
        AlpacaPrompter("{context} {q}").generate_prompt({"contxt": "1", "q": "2"})


def test_unknown_slots_are_named():
    with pytest.raises(TemplateError, match="key that is not a slot: 'qq'; did you mean 'q'"):
        AlpacaPrompter("{q}").generate_prompt({"q": "1", "qq": "2"})
    with pytest.raises(
        TemplateError, match="keys that are not slots: 'x', 'y'; give one key for the user's turn, beside the slots 'q'"
    ):
        AlpacaPrompter("{q}").generate_prompt({"q": "1", "x": "2", "y": "3"})


def test_one_text_for_several_slots_is_refused_with_their_names():
    with pytest.raises(TemplateError, match="the input is one text, and the instruction has 2 slots: 'a', 'b'"):
        AlpacaPrompter("{a} {b} {a}").generate_prompt("1")
    assert "1 1" in AlpacaPrompter("{a} {a}").generate_prompt("1")


@pytest.mark.parametrize(
    "text", ['{"k": 1}', "{ a }", "{a!r}", "{a:>5}", "{a.b}", "{}", "a {", "}", "{{}}", "{a-b}", "{'x': {}}"]
)
def test_braces_that_are_no_slot_are_text(text):
    assert AlpacaPrompter(text).slots == ()
    assert f"{HEAD}{text} v\n\n" in AlpacaPrompter(text + " {q}").generate_prompt("v")
    assert f"{HEAD}{text} v\n\n" in AlpacaPrompter(text + " {q}").generate_prompt({"q": "v"})


def test_doubled_braces_around_a_slot_leave_one_pair():
    assert f"{HEAD}{{v}}\n" in AlpacaPrompter("{{q}}").generate_prompt("v")


def test_instruction_keys_other_than_system_and_user_are_refused():
    with pytest.raises(TemplateError, match="in instruction: unknown key 'sys'; did you mean 'system'"):
        AlpacaPrompter({"sys": "x"})
    with pytest.raises(TemplateError, match="the user half is int"):
        AlpacaPrompter({"user": 3})
    with pytest.raises(TemplateError, match="in instruction: it is list; give text, or a dict of system and user"):
        AlpacaPrompter(["x"])


@pytest.mark.parametrize("keys", [3, {"a"}, [""], ["a", "a"], [None]])
def test_extra_keys_that_are_no_names_are_refused(keys):
    with pytest.raises(TemplateError, match=r"extra.key"):
        AlpacaPrompter("x", extra_keys=keys)


def test_tools_given_twice_are_refused():
    with pytest.raises(TemplateError, match="tools are given at construction and at the call"):
        AlpacaPrompter("{x}", tools=TOOLS).generate_prompt("1", tools=TOOLS)
    with pytest.raises(TemplateError, match="tools are given at construction and at the call"):
        AlpacaPrompter("{x}", tools=TOOLS).generate_prompt("1", tools=[])  # none, says the call
    assert "tools" not in AlpacaPrompter("{x}").generate_prompt("1", tools=[], return_dict=True)


@pytest.mark.parametrize("tools", [TOOLS[0], "example", [1], [{"x": object()}]])
def test_tools_that_are_no_list_of_plain_mappings_are_refused(tools):
    with pytest.raises(TemplateError, match="tools"):
        AlpacaPrompter("{x}", tools=tools)
    with pytest.raises(TemplateError, match="tools"):
        AlpacaPrompter("{x}").generate_prompt("1", tools=tools)


def test_media_in_a_slot_stand_in_the_users_message_with_what_follows_them():
    messages = AlpacaPrompter("look {img} and say {q}").generate_prompt(
        {"img": [IMAGE], "q": "what"}, return_dict=True
    )["messages"]
    assert messages == [
        {
            "role": "system",
            "content": f"{SYSTEM}\n{HEAD}look ",
        },
        {"role": "user", "content": [IMAGE, {"type": "text", "text": " and say what\n\n"}]},
    ]


@pytest.mark.parametrize("dialect", [None, "lazyllm"])
def test_media_come_before_the_user_half(dialect):
    prompter = AlpacaPrompter({"system": "look {img}", "user": "say {q}"}, system="S", dialect=dialect)
    system, user = prompter.generate_prompt({"img": [IMAGE, "here", IMAGE], "q": "what"}, return_dict=True)["messages"]
    assert isinstance(system["content"], str)
    assert system["content"].endswith("\nlook ")
    assert user["content"] == [IMAGE, {"type": "text", "text": "here"}, IMAGE, {"type": "text", "text": "\nsay what"}]


def test_media_in_the_user_half_leave_the_instruction_as_it_is():
    prompter = AlpacaPrompter({"system": "look", "user": "{img}"}, system="S")
    messages = prompter.generate_prompt({"img": [IMAGE]}, return_dict=True)["messages"]
    assert [m["content"] for m in messages] == [f"S\n{HEAD}look", [IMAGE]]


def test_a_string_refuses_media_without_a_placeholder():
    with pytest.raises(
        PromptError, match=r"holds image, which a string cannot carry; give media_placeholder=\{'image': '…'\}"
    ):
        AlpacaPrompter("{q}").generate_prompt([IMAGE])


def test_a_string_with_placeholders_has_its_media_beside():
    prompt = AlpacaPrompter("a {x} b {y}").generate_prompt(
        {"x": [IMAGE], "y": MediaRef("image", "b.png")}, media_placeholder={"image": "<image>"}
    )
    assert f"{HEAD}a <image> b <image>\n" in prompt
    assert [m.source for m in prompt.media] == ["a.png", "b.png"]
    assert pickle.loads(pickle.dumps(prompt)).media == prompt.media


def test_text_that_contains_a_placeholder_is_refused():
    with pytest.raises(PromptError, match="the text contains '<image>'"):
        AlpacaPrompter("{x} {y}").generate_prompt(
            {"x": [IMAGE], "y": "<image>"}, media_placeholder={"image": "<image>"}
        )
    with pytest.raises(PromptError, match="the text contains '<image>'"):
        AlpacaPrompter("{x}{y}").generate_prompt({"x": "<im", "y": "age>"}, media_placeholder={"image": "<image>"})


@pytest.mark.parametrize("value", [None, b"x", {"a": 1}, {1, 2}, ["a", "b"], [["a"]], object()])
def test_a_slot_value_that_is_neither_text_nor_parts_is_refused_by_name(value):
    with pytest.raises(MMPromptError, match="slot 'q'"):
        AlpacaPrompter("{q}").generate_prompt({"q": value})


def test_numbers_are_written_as_text():
    assert f"{HEAD}1 2.5 True\n" in AlpacaPrompter("{a} {b} {c}").generate_prompt({"a": 1, "b": 2.5, "c": True})


def test_no_input_is_refused():
    with pytest.raises(TemplateError, match="the input is missing"):
        AlpacaPrompter("go").generate_prompt()


def test_the_response_is_what_follows_the_prompt_or_the_last_mark():
    prompter = AlpacaPrompter("{q}")
    prompt = prompter.generate_prompt("1")
    assert prompter.get_response(prompt + "see ### Response:\nyes", prompt) == "see ### Response:\nyes"
    assert prompter.get_response(prompt + "yes") == "yes"
    assert prompter.get_response("yes") == "yes"


def test_a_prompter_cannot_be_changed():
    prompter = AlpacaPrompter("{q}")
    with pytest.raises(AttributeError, match="cannot be changed"):
        prompter.system = "x"
    with pytest.raises(AttributeError, match="cannot be changed"):
        del prompter._system


def test_an_unknown_dialect_is_refused():
    with pytest.raises(TemplateError, match="unknown dialect 'lazylm'; did you mean 'lazyllm'"):
        AlpacaPrompter("x", dialect="lazylm")
    with pytest.raises(TemplateError, match="unknown dialect"):
        AlpacaPrompter("x", dialect=["lazyllm"])


@given(a=words, b=words, dialect=st.sampled_from([None, "lazyllm"]))
def test_no_value_is_expanded(a, b, dialect):
    prompter = AlpacaPrompter({"system": "[{a}|{b}]", "user": "({b}|{a})"}, dialect=dialect)
    prompt = prompter.generate_prompt({"a": a, "b": b})
    assert prompt.count(f"[{a}|{b}]") >= 1
    assert prompt.count(f"({b}|{a})") >= 1
    marks = AlpacaPrompter({"system": "[{a}|{b}]", "user": "({b}|{a})"}, dialect=dialect).generate_prompt(
        {"a": "", "b": ""}
    )
    assert len(prompt) == len(marks) + 2 * (len(a) + len(b))


@given(text=st.text(max_size=30) | st.lists(words, max_size=5).map("".join), value=words)
def test_any_instruction_compiles_and_its_slots_take_any_value(text, value):
    prompter = AlpacaPrompter(text)
    prompt = prompter.generate_prompt(dict.fromkeys(prompter.slots, value))
    body = re.sub(r"\{\w+\}", lambda _: value, text)
    assert prompt == f"{SYSTEM}\n{HEAD}{body}\n\n\n### Response:\n"


@given(st.data())
def test_nothing_of_the_callers_changes_and_nothing_is_shared(data):
    parts = data.draw(
        st.lists(
            st.sampled_from([IMAGE, TextPart("t"), "x", {"type": "text", "text": "c", "cache_control": {"type": "e"}}]),
            min_size=1,
        )
    )
    if all(part == "x" for part in parts):
        parts.append(IMAGE)
    tools = copy.deepcopy(TOOLS)
    arguments = {"input": {"q": copy.deepcopy(parts)}, "tools": tools, "return_dict": True}
    before = copy.deepcopy(arguments)
    prompter = AlpacaPrompter("{q}!")
    first = prompter.generate_prompt(**arguments)
    again = copy.deepcopy(first)
    first["tools"][0]["function"]["name"] = "changed"
    for message in first["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            part.get("image_url", {})["url"] = "changed"
            part.get("cache_control", {})["type"] = "changed"
    assert arguments == before
    assert prompter.generate_prompt(**arguments) == again


def test_changing_what_a_prompter_was_made_of_changes_nothing():
    instruction, tools, markers, keys = {"system": "S"}, copy.deepcopy(TOOLS), {"sos": "<s>"}, ["k"]
    prompter = AlpacaPrompter(instruction, keys, tools=tools, markers=markers)
    before = copy.deepcopy((prompter.generate_prompt("1"), prompter.generate_prompt("1", return_dict=True)))
    instruction["system"], markers["sos"], tools[0]["function"]["name"], keys[0] = "T", "<t>", "other", "l"
    prompter.generate_prompt("1", return_dict=True)["tools"][0]["function"]["name"] = "other"
    assert (prompter.generate_prompt("1"), prompter.generate_prompt("1", return_dict=True)) == before
