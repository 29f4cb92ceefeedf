import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmprompt import MediaPart, MediaRef, Message, MMPromptError, PromptError, TemplateError, TextPart, from_openai
from mmprompt.prompters import AlpacaPrompter, ChatPrompter, EmptyPrompter

SYSTEM = "You are an AI-Agent developed by LazyLLM."
TOOLS = [{"type": "function", "function": {"name": "example"}}]
CALL = {"id": "1", "type": "function", "function": {"name": "get", "arguments": '{"x": 1}'}}
IMAGE = {"type": "image_url", "image_url": {"url": "a.png", "detail": "low"}}
SHORT = {"sos": "<s>", "eos": "</s>", "soh": "<h>", "eoh": "</h>", "soa": "<a>", "eoa": "</a>"}


def text(value):
    return {"type": "text", "text": value}


def user(content):
    return {"role": "user", "content": content}


def assistant(content):
    return {"role": "assistant", "content": content}


def turns(prompter, value="q", **call):
    """The messages after the system message."""
    messages = prompter.generate_prompt(value, return_dict=True, **call)["messages"]
    assert messages[0]["role"] == "system"
    return messages[1:]


def chat(**more):
    return ChatPrompter("x", **more)


def test_the_default_markers_are_the_printed_ones():
    assert (
        chat().generate_prompt("q")
        == f"<|start_system|>{SYSTEM}x\n\n<|end_system|>\n\n\n<|Human|>:\nq\n<|Assistant|>:\n"
    )


def test_markers_are_given_at_construction_and_the_call_has_the_last_word():
    prompter = chat(markers=SHORT, system="S ")
    assert prompter.generate_prompt("q") == "<s>S x\n\n</s>\n\n\n<h>\nq\n</h><a>\n"
    assert prompter.generate_prompt("q", markers={"sos": "[", "eos": None}) == "[S x\n\n</s>\n\n\n<h>\nq\n</h><a>\n"
    assert prompter.generate_prompt("q") == "<s>S x\n\n</s>\n\n\n<h>\nq\n</h><a>\n"


@pytest.mark.parametrize("markers", [{"soss": "x"}, {"sos": 1}, "x", {1: "x"}])
def test_markers_that_are_none_are_refused(markers):
    with pytest.raises(TemplateError, match="marker"):
        chat(markers=markers)
    with pytest.raises(TemplateError, match="marker"):
        chat().generate_prompt("q", markers=markers)


def test_line_ends_of_the_layout_do_not_begin_a_string_and_those_of_the_input_may():
    bare = ChatPrompter(system="", markers=dict.fromkeys(SHORT, ""))
    assert bare.generate_prompt("q") == "q\n\n"
    assert bare.generate_prompt("\n\nq") == "\n\nq\n\n"


def test_an_instruction_half_for_the_user_stands_before_the_input():
    prompter = ChatPrompter({"system": "S {a}", "user": "U {b}: "}, markers=SHORT)
    value = {"a": "1", "b": "2", "anything": "q"}
    assert prompter.generate_prompt(value) == f"<s>{SYSTEM}S 1</s>\n\n\n<h>\nU 2: q\n</h><a>\n"
    assert prompter.generate_prompt(value, return_dict=True)["messages"] == [
        {"role": "system", "content": f"{SYSTEM}\nS 1"},
        user("U 2: q"),
    ]


def test_extra_keys_follow_the_instruction_on_lines_of_their_own():
    block = "Here are some extra messages you can referred to:\n\n### k:\n1\n\n"
    value = {"k": "1", "q": "Q"}
    assert (
        ChatPrompter("I", extra_keys="k").generate_prompt(value, return_dict=True)["messages"][0]["content"]
        == f"{SYSTEM}\nI\n{block}\n"
    )
    assert (
        ChatPrompter(extra_keys="k").generate_prompt(value, return_dict=True)["messages"][0]["content"]
        == f"{SYSTEM}\n{block}\n"
    )
    assert turns(ChatPrompter({"system": "S", "user": "U"}, extra_keys="k"), value) == [user(f"U\n{block}Q")]


def test_a_system_text_of_nothing_leaves_no_system_message():
    assert ChatPrompter(system="").generate_prompt("q", return_dict=True) == {"messages": [user("q")]}
    assert chat(system="").generate_prompt("q", return_dict=True)["messages"][0]["content"] == "x\n\n"
    assert ChatPrompter().generate_prompt("q", system="", return_dict=True) == {"messages": [user("q")]}
    with pytest.raises(TemplateError, match="system is int"):
        chat(system=1)


def test_history_as_pairs_and_as_messages_is_the_same_in_both_outputs():
    pairs = [["u", "a"], ("v", "b")]
    messages = [user("u"), assistant("a"), Message("HUMAN", "v"), {"role": "BOT", "content": "b"}]
    mixed = [pairs[0], *messages[2:]]
    for history in (pairs, messages, mixed):
        assert turns(chat(), history=history) == [user("u"), assistant("a"), user("v"), assistant("b"), user("q")]
        assert "</s>\n\n<h>u</h><a>a</a><h>v</h><a>b</a>\n<h>\nq" in chat(markers=SHORT).generate_prompt(
            "q", history=history
        )
        assert chat(history=history).generate_prompt("q") == chat().generate_prompt("q", history=history)


def test_history_of_the_construction_comes_first():
    assert turns(chat(history=[["u", "a"]]), history=[["v", "b"]])[:4] == [
        user("u"),
        assistant("a"),
        user("v"),
        assistant("b"),
    ]


@pytest.mark.parametrize(
    ("pair", "expected"), [(["u"], [user("u")]), (["u", None], [user("u")]), ([None, "a"], [assistant("a")]), ([], [])]
)
def test_a_pair_may_lack_a_side_in_both_outputs(pair, expected):
    assert turns(chat(), history=[pair]) == [*expected, user("q")]
    shown = "".join(f"<{m['role'][0]}>{m['content']}" for m in expected).replace("<u>", "<h>")
    string = chat(markers={**SHORT, "eoh": "", "eoa": ""}).generate_prompt("q", history=[pair])
    assert string == f"<s>{SYSTEM}x\n\n</s>\n\n{shown}\n<h>\nq\n<a>\n"


@pytest.mark.parametrize(
    ("history", "words"),
    [
        (["u", "a"], "history[0] is str"),
        ("u", "history is str, not a list"),
        ({"role": "user"}, "history is dict, not a list"),
        (iter([]), "not a list"),
        ([["a", "b", "c"]], "history[0] has 3 texts"),
        ([["a", "b"], TextPart("x")], "history[1] is TextPart"),
        ([{"content": "x"}], "history[0] has no role"),
        ([{"role": "usr", "content": "x"}], "unknown role 'usr'; did you mean 'user'"),
        ([{"role": "user"}], "history[0], content is null"),
        ([assistant(None)], "history[0], content is null"),
        ([["a", 1j, 3]], "history[0]"),
        ([[b"a"]], "history[0], user is bytes"),
        ([user(["a", "b"])], "history[0], content is a list of texts"),
        ([user([{"type": "picture"}])], "history[0], content: a content part of unknown type 'picture'"),
    ],
)
def test_a_history_that_is_none_is_refused_with_its_place(history, words):
    for make in (lambda: chat(history=history), lambda: chat().generate_prompt("q", history=history)):
        with pytest.raises(MMPromptError) as caught:
            make()
        assert words in str(caught.value)


def test_tool_calls_and_results_of_a_history_survive():
    history = [
        user("u"),
        {**assistant(None), "tool_calls": [CALL]},
        {"role": "tool", "content": "5", "tool_call_id": "1"},
    ]
    assert turns(chat(), history=history) == [*history, user("q")]
    marked = chat(
        markers={
            **SHORT,
            "soe": "<e>",
            "eoe": "</e>",
            "tool_start_token": "<T>",
            "tool_args_token": "<A>",
            "tool_end_token": "<E>",
        }
    )
    assert '<h>u</h><a><T>\nget<A>{"x": 1}<E>\n</a><e>5</e>\n<h>' in marked.generate_prompt("q", history=history)
    plain = chat(markers=SHORT).generate_prompt("q", history=history)
    assert json.dumps({"name": "get", "arguments": '{"x": 1}'}) in plain
    assert "<h>5</h>" in plain  # without marks of their own, results have the human's


def test_a_tool_call_without_a_function_is_refused_in_a_string():
    with pytest.raises(PromptError, match="names no function"):
        chat().generate_prompt("q", history=[{**assistant("a"), "tool_calls": [{"id": "1"}]}])


def test_a_message_value_with_tool_calls_survives():
    history = [Message("assistant", (), tool_calls=[CALL]), Message("tool", "5", tool_call_id="1")]
    assert turns(chat(), history=history)[:2] == [
        {**assistant(None), "tool_calls": [CALL]},
        {"role": "tool", "content": "5", "tool_call_id": "1"},
    ]


def test_a_system_turn_of_a_history_is_in_both_outputs():
    history = [{"role": "system", "content": "be brief"}]
    assert turns(chat(), history=history) == [*history, user("q")]
    assert "<s>be brief</s>\n<h>" in chat(markers=SHORT).generate_prompt("q", history=history)


def test_the_input_may_be_messages_such_as_the_results_of_tools():
    result = {"role": "tool", "content": "5", "tool_call_id": "1"}
    for value in ({"input": result}, [result], {"input": [result]}):
        assert turns(chat(), value) == [result]
    marked = chat(markers={**SHORT, "soe": "<e>", "eoe": "</e>"})
    assert marked.generate_prompt([result, {**result, "content": "6"}], history=[["u", "a"]]).endswith(
        "<h>u</h><a>a</a>\n<e>\n5\n6\n</e><a>\n"
    )
    assert turns(ChatPrompter({"user": "U "}, system="S"), [result])[0]["content"] == "U 5"
    with pytest.raises(PromptError, match="the input of a string holds a message of assistant; give it as history"):
        chat().generate_prompt([assistant("a")])


def test_a_message_given_bare_as_input_is_refused_with_the_way_out():
    with pytest.raises(TemplateError, match="put the message or content part into a list"):
        chat().generate_prompt(user("q"))
    with pytest.raises(TemplateError, match="put the message or content part into a list"):
        chat().generate_prompt(IMAGE)


def test_one_key_beside_the_slots_is_the_input_and_two_are_refused():
    prompter = ChatPrompter("{a}")
    assert turns(prompter, {"a": "1", "b": "2"}) == [user("2")]
    assert turns(prompter, {"a": "1"}) == [user("")]
    with pytest.raises(
        TemplateError, match="keys that are not slots: 'b', 'c'; give one key for the user's turn, beside the slots 'a'"
    ):
        prompter.generate_prompt({"a": "1", "b": "2", "c": "3"})
    with pytest.raises(TemplateError, match="input 'b' is null"):
        prompter.generate_prompt({"a": "1", "b": None})


def test_text_fills_the_only_slot_and_leaves_the_users_turn_empty():
    assert ChatPrompter("n={n}").generate_prompt(5, return_dict=True)["messages"] == [
        {"role": "system", "content": f"{SYSTEM}\nn=5\n\n"},
        user(""),
    ]
    assert turns(chat(), 5) == [user("5")]


def test_content_parts_stand_at_their_own_place():
    image = MediaRef("image", "b.png", options=(("detail", "high"),))
    assert turns(chat(), [IMAGE, "what is it?"]) == [user([IMAGE, text("what is it?")])]
    assert turns(chat(), {"input": image}) == [
        user([{"type": "image_url", "image_url": {"url": "b.png", "detail": "high"}}])
    ]
    assert turns(ChatPrompter({"user": "see {x}: "}), {"x": [IMAGE], "q": ["and ", image, "!"]})[-1] == user(
        [
            text("see "),
            IMAGE,
            text(": and "),
            {"type": "image_url", "image_url": {"url": "b.png", "detail": "high"}},
            text("!"),
        ]
    )
    assert turns(chat(), history=[[[IMAGE, "u"], "a"], user([text("v"), IMAGE])])[:3] == [
        user([IMAGE, text("u")]),
        assistant("a"),
        user([text("v"), IMAGE]),
    ]


def test_a_slot_of_the_system_half_takes_media_too():
    content = ChatPrompter("style {x}.").generate_prompt([IMAGE], return_dict=True)["messages"][0]["content"]
    assert content == [text(f"{SYSTEM}\nstyle "), IMAGE, text(".\n\n")]


def test_content_without_media_is_a_string():
    assert turns(chat(), [TextPart("a"), text("b")]) == [user("ab")]
    assert turns(chat(), []) == [user("")]


def test_text_parts_with_keys_of_their_own_stay_parts():
    part = {**text("a"), "cache_control": {"type": "ephemeral"}}
    assert turns(chat(), [part, "b"]) == [user([part, text("b")])]


def test_media_that_was_read_goes_out_as_a_data_uri():
    part = MediaPart("image", "image/png", b"\x89PNG\r\n\x1a\n")
    assert turns(chat(), [part])[0]["content"][0]["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgo="
    assert from_openai(turns(chat(), [part])) == [Message("user", [part])]


def test_other_forms_of_parts_go_out_in_the_chat_form():
    assert turns(chat(), [{"type": "image", "image": "a.png"}]) == [
        user([{"type": "image_url", "image_url": {"url": "a.png"}}])
    ]
    assert turns(chat(), [{"type": "image_url", "image_url": "a.png"}]) == [
        user([{"type": "image_url", "image_url": {"url": "a.png"}}])
    ]
    audio = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    assert turns(chat(), [audio]) == [user([audio])]


def test_media_in_memory_that_nobody_read_are_refused_as_messages():
    with pytest.raises(PromptError, match=r"image .*is an object in memory, which a message cannot name"):
        chat().generate_prompt([MediaRef("image", b"\x89PNG")], return_dict=True)


def test_bare_base64_goes_out_as_a_data_uri():
    assert (
        turns(chat(), [MediaRef("image", "/9j/4AAQSkZJRgABAQAAAQ==")])[0]["content"][0]["image_url"]["url"]
        == "data:image/jpeg;base64,/9j/4AAQSkZJRgABAQAAAQ=="
    )


def test_a_string_has_placeholders_for_media_of_history_and_input():
    value = {"input": ["see ", IMAGE]}
    history = [[[MediaRef("audio", "u.wav"), "?"], "a"]]
    with pytest.raises(PromptError, match="holds audio, which a string cannot carry"):
        chat().generate_prompt(value, history=history)
    with pytest.raises(PromptError, match="holds image"):
        chat().generate_prompt(value, history=history, media_placeholder={"audio": "<au>"})
    prompt = chat(markers=SHORT).generate_prompt(
        value, history=history, media_placeholder={"audio": "<au>", "image": "<im>"}
    )
    assert prompt.endswith("</s>\n\n<h><au>?</h><a>a</a>\n<h>\nsee <im>\n</h><a>\n")
    assert [(m.modality, m.source) for m in prompt.media] == [("audio", "u.wav"), ("image", "a.png")]


def test_one_placeholder_may_stand_for_several_modalities():
    prompt = chat().generate_prompt(
        [IMAGE, MediaRef("video", "v.mp4")], media_placeholder={"image": "<m>", "video": "<m>"}
    )
    assert prompt.count("<m>") == len(prompt.media) == 2


@pytest.mark.parametrize("placeholders", [{"picture": "<x>"}, {"image": ""}, {"image": 1}])
def test_placeholders_that_are_none_are_refused(placeholders):
    with pytest.raises(TemplateError, match="placeholder"):
        chat().generate_prompt("q", media_placeholder=placeholders)


def test_tools_are_asked_of_a_function_at_each_call():
    def tools(query, history):
        return TOOLS if "w" in query and not history else None

    prompter = chat(tools=tools)
    assert prompter.generate_prompt("w", return_dict=True)["tools"] == TOOLS
    assert "tools" not in prompter.generate_prompt("q", return_dict=True)
    assert "tools" not in prompter.generate_prompt("w", history=[["u", "a"]], return_dict=True)
    assert "### Function-call Tools. \n\n" in prompter.generate_prompt("w")
    with pytest.raises(TemplateError, match="tools are given at construction and at the call"):
        prompter.generate_prompt("w", tools=TOOLS)
    with pytest.raises(TemplateError, match="tools are not a list"):
        chat(tools=lambda: "x").generate_prompt("q")


def test_tools_in_a_string_are_json_with_the_users_own_letters():
    tools = [{"type": "function", "function": {"name": "天气", "strict": True}}]
    assert '\n\n[{"type": "function", "function": {"name": "天气", "strict": true}}]\n\n' in chat().generate_prompt(
        "q", tools=tools
    )


def test_the_response_is_what_follows_the_assistants_last_mark():
    prompter = chat()
    prompt = prompter.generate_prompt("q", history=[["u", "a"]])
    assert prompter.get_response(prompt + "yes") == "yes"
    assert prompter.get_response(prompt + "yes", prompt) == "yes"
    assert prompter.get_response("yes") == "yes"
    assert prompter.get_response("q[A]\nyes", markers={"soa": "[A]"}) == "yes"
    assert prompter.get_response("q\nyes", markers={"soa": ""}) == "q\nyes"
    with pytest.raises(TemplateError, match="output is list"):
        prompter.get_response(["yes"])


def test_formats_other_than_openai_are_refused():
    assert chat().generate_prompt("q", format="openai") == chat().generate_prompt("q", return_dict=True)
    with pytest.raises(TemplateError, match="unknown format 'opnai'; did you mean 'openai'"):
        chat().generate_prompt("q", format="opnai")
    with pytest.raises(TemplateError, match="to_anthropic"):
        chat().generate_prompt("q", format="anthropic")


texts = st.text(max_size=10) | st.sampled_from(
    ["{a}", "{{b}}", "<|Assistant|>:\n", "<|end_system|>", "{history}", "{input}", "</!lazyllm-spliter!>"]
)
contents = texts | st.lists(st.sampled_from([IMAGE, text("t"), TextPart("p"), MediaRef("audio", "a.wav")]), max_size=3)
histories = st.lists(st.tuples(contents, contents) | st.builds(user, contents), max_size=3)


@given(a=texts, b=texts, q=texts, h=texts, dialect=st.sampled_from([None, "lazyllm"]))
def test_no_value_is_expanded_or_moved(a, b, q, h, dialect):
    prompter = ChatPrompter({"system": "[{a}]", "user": "({b}) "}, dialect=dialect)
    value = {"a": a, "b": b, "the rest": q}
    system, first, last = prompter.generate_prompt(value, history=[[h]], return_dict=True)["messages"]
    assert (system["content"], first["content"], last["content"]) == (f"{SYSTEM}\n[{a}]", h, f"({b}) {q}")
    marks = {**SHORT, "eoh": ""}
    assert (
        prompter.generate_prompt(value, history=[[h]], markers=marks)
        == f"<s>{SYSTEM}[{a}]</s>\n\n<h>{h}\n<h>\n({b}) {q}\n<a>\n"
    )


@given(value=contents, history=histories, dialect=st.sampled_from([None, "lazyllm"]))
def test_nothing_of_the_callers_changes_and_nothing_is_shared(value, history, dialect):
    history = [list(item) if isinstance(item, tuple) else item for item in history]
    prompter = ChatPrompter({"user": "U"}, dialect=dialect, history=history)
    arguments = {"input": {"input": value}, "history": history, "tools": TOOLS, "return_dict": True}
    before = copy.deepcopy(arguments)
    first = prompter.generate_prompt(**arguments)
    expected = copy.deepcopy(first)
    assert arguments == before
    for message in first["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            for body in part.values():
                if isinstance(body, dict):
                    body["url"] = "changed"
        message["content"] = "changed"
    first["tools"][0]["function"]["name"] = "changed"
    assert arguments == before
    assert prompter.generate_prompt(**arguments) == expected


@given(history=histories, system=texts, soa=texts, dialect=st.sampled_from([None, "lazyllm"]))
def test_a_pickled_prompter_gives_the_same(history, system, soa, dialect):
    history = [list(item) if isinstance(item, tuple) else item for item in history]
    made = ChatPrompter(
        "{a} {{b}}", "k", tools=TOOLS, history=history, system=system, markers={"soa": soa}, dialect=dialect
    )
    for copied in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        assert type(copied) is ChatPrompter
        value = {"a": "1", "b": "2", "k": "3", "q": "4"}
        assert copied.generate_prompt(value, return_dict=True) == made.generate_prompt(value, return_dict=True)
        assert repr(copied) == repr(made)


def test_changing_what_a_prompter_was_made_of_changes_nothing():
    part = {**text("t"), "cache_control": {"type": "e"}}
    history = [[[part, IMAGE], "a"], {**assistant("b"), "tool_calls": [copy.deepcopy(CALL)]}]
    prompter = chat(history=history)
    before = copy.deepcopy(prompter.generate_prompt("q", return_dict=True))
    part["cache_control"]["type"] = "changed"
    history[1]["tool_calls"][0]["function"]["name"] = "changed"
    history.append(["u", "a"])
    assert prompter.generate_prompt("q", return_dict=True) == before


def test_prompters_of_all_kinds_pickle_and_refuse_changes():
    for made in (AlpacaPrompter("{a}"), chat(), EmptyPrompter()):
        copied = pickle.loads(pickle.dumps(made))
        assert copied.generate_prompt("q") == made.generate_prompt("q")
        with pytest.raises(AttributeError, match="cannot be changed"):
            copied.anything = 1


def test_threads_may_share_a_prompter():
    prompter = ChatPrompter("{a}", history=[["u", [IMAGE]]], tools=TOOLS)
    with ThreadPoolExecutor(8) as pool:
        got = list(
            pool.map(lambda n: prompter.generate_prompt({"a": str(n), "q": [IMAGE]}, return_dict=True), range(400))
        )
    assert got == [prompter.generate_prompt({"a": str(n), "q": [IMAGE]}, return_dict=True) for n in range(400)]


def test_a_prompter_shows_its_slots():
    assert ChatPrompter({"system": "{b} {a}", "user": "{a} {问题}"}, extra_keys="k").slots == ("b", "a", "问题", "k")
    assert repr(ChatPrompter("{a}", dialect="lazyllm")) == "ChatPrompter(slots=['a'], dialect='lazyllm')"
