"""What ``dialect="lazyllm"`` does beyond the recorded cases."""

import pytest

from mmprompt import PromptError, TemplateError
from mmprompt.prompters import AlpacaPrompter, ChatPrompter, EmptyPrompter
from mmprompt.prompters.lazyllm_rules import json5_text

SYSTEM = "You are an AI-Agent developed by LazyLLM."
TOOLS = [{"type": "function", "function": {"name": "get"}}]
TOKENS = {"tool_start_token": "<T>", "tool_args_token": "<A>", "tool_end_token": "<E>"}


def chat(instruction="x", **more):
    return ChatPrompter(instruction, dialect="lazyllm", **more)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            {"type": 1, "function": 2, "a-b": 3, "1a": 4, "$x_1": 5, "": 6},
            '{type: 1, "function": 2, "a-b": 3, "1a": 4, $x_1: 5, "": 6}',
        ),
        ({"naïve": 1, "天气": 2, "²": 3, "x²": 4, "é_1": 5}, '{naïve: 1, 天气: 2, "²": 3, "x²": 4, é_1: 5}'),
        (
            {"input": None, "default": True, 1: 1.0, None: float("inf")},
            '{input: null, "default": true, "1": 1.0, "null": Infinity}',
        ),
        (['"\\\n\t\x0b\x00\x1f\x7f\u2028é', [], {}, ()], '["\\"\\\\\\n\\t\\v\\0\\u001f\x7f\\u2028é", [], {}, []]'),
    ],
)
def test_tools_are_written_as_json5(value, expected):
    assert json5_text(value) == expected
    with pytest.raises(TemplateError, match="a value of type set cannot be written as JSON5"):
        json5_text([{1}])


def test_doubled_braces_are_single_where_one_text_fills_the_only_slot():
    prompter = chat('{{"a": {q}}} {1-2}')
    assert (
        prompter.generate_prompt("v", return_dict=True)["messages"][0]["content"] == f'{SYSTEM}\n{{"a": v}} {{1-2}}\n\n'
    )
    assert (
        prompter.generate_prompt({"q": "v"}, return_dict=True)["messages"][0]["content"]
        == f'{SYSTEM}\n{{{{"a": v}}}} {{1-2}}\n\n'
    )


def test_braces_of_a_value_stay_as_they_are():
    assert (
        chat("{q}").generate_prompt("{{v}}", return_dict=True)["messages"][0]["content"] == f"{SYSTEM}\n{{{{v}}}}\n\n"
    )


def test_tools_at_the_call_take_the_place_of_those_of_the_construction():
    other = [{"type": "function", "function": {"name": "other"}}]
    assert chat(tools=TOOLS).generate_prompt("q", tools=other, return_dict=True)["tools"] == other
    assert chat(tools=TOOLS).generate_prompt("q", tools=[], return_dict=True)["tools"] == TOOLS


def test_tools_in_a_string_bring_a_how_to_that_needs_its_tokens():
    with pytest.raises(TemplateError, match="tools in a string need the markers tool_args_token, tool_end_token"):
        chat(tools=TOOLS, markers={"tool_start_token": "<T>"}).generate_prompt("q")
    prompt = chat(tools=TOOLS, markers=TOKENS).generate_prompt("q")
    assert '\n\n<T>tool name (one of ["get"])\n<A>the input to the tool' in prompt
    with pytest.raises(TemplateError, match="a tool names no function"):
        chat(tools=[{"type": "search"}], markers=TOKENS).generate_prompt("q")


def test_a_dict_instruction_has_no_how_to():
    prompt = chat({"system": "S"}, tools=TOOLS, markers=TOKENS).generate_prompt("q")
    assert (
        prompt
        == f'{SYSTEM}S### Function-call Tools. \n\n[{{type: "function", "function": {{name: "get"}}}}]\n\n\n\n\n\nq\n\n'
    )


def test_an_empty_instruction_loses_its_extra_keys():
    assert chat("", extra_keys="k").slots == ()
    assert ChatPrompter("", extra_keys="k").slots == ("k",)


def test_an_empty_system_message_is_kept():
    assert chat("", system="").generate_prompt("q", return_dict=True)["messages"][0] == {
        "role": "system",
        "content": "",
    }


def test_a_string_shows_the_turns_of_user_assistant_and_tool():
    history = [
        {"role": "system", "content": "gone"},
        {
            "role": "assistant",
            "content": "a",
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "get", "arguments": '{"x": 1}'}}],
        },
        {"role": "tool", "content": '{"y": true}'},
        {"role": "tool", "content": "plain"},
    ]
    assert (
        chat(markers=TOKENS)
        .generate_prompt("q", history=history)
        .endswith('a<T>\nget<A>"{\\"x\\": 1}"<E>\n{\'y\': True}plain\n\nq\n\n')
    )
    assert "{'name': 'get', 'arguments': '{\"x\": 1}'}\n" in chat().generate_prompt("q", history=history)
    assert [m["role"] for m in chat().generate_prompt("q", history=history, return_dict=True)["messages"]] == [
        "system",
        "system",
        "assistant",
        "tool",
        "tool",
        "user",
    ]


def test_the_anthropic_format_has_its_system_text_apart():
    got = chat(tools=TOOLS).generate_prompt(
        "q", history=[{"role": "system", "content": "S"}, ["u", "a"]], format="anthropic"
    )
    assert got["system"] == f"{SYSTEM}\nx\n\n\nS"
    assert [m["content"] for m in got["messages"]] == ["u", "a", "q"]
    assert got["tools"] == TOOLS


def test_leading_line_ends_are_cut_whosever_they_are():
    assert ChatPrompter(dialect="lazyllm", system="").generate_prompt("\n\nq") == "q\n\n"


def test_alpaca_refuses_a_history_here_too():
    with pytest.raises(PromptError, match="takes no history"):
        AlpacaPrompter("{q}", dialect="lazyllm").generate_prompt("1", history=[["u", "a"]])


def test_text_that_looks_like_its_inner_marks_is_text():
    value = "a<!lazyllm-spliter!>b</!lazyllm-spliter!>c"
    messages = chat({"system": "S", "user": "U {q}"}).generate_prompt(value, return_dict=True)["messages"]
    assert [m["content"] for m in messages] == [f"{SYSTEM}\nS", f"U {value}"]


def test_an_empty_prompter_gives_the_input_unchanged_and_no_label():
    prompter = EmptyPrompter(dialect="lazyllm")
    assert prompter.generate_prompt("\n\nq", [["a", "b"]], TOOLS, "yes") == "\n\nq"
    assert prompter.generate_prompt("q", label="yes", return_dict=True) == {
        "messages": [{"role": "user", "content": "q"}]
    }
    assert EmptyPrompter().generate_prompt("q", label=" yes") == "q yes"


@pytest.mark.parametrize("as_messages", [False, True])
@pytest.mark.parametrize("prompter", [AlpacaPrompter, ChatPrompter, EmptyPrompter])
def test_a_float_is_no_input(prompter, as_messages):
    made = prompter(dialect="lazyllm") if prompter is EmptyPrompter else prompter("{x}", dialect="lazyllm")
    with pytest.raises(TemplateError, match="the input is float, which LazyLLM refuses; give it as text"):
        made.generate_prompt(1.5, return_dict=as_messages)
    assert "7" in str(made.generate_prompt(7, return_dict=as_messages))
    assert "True" in str(made.generate_prompt(True, return_dict=as_messages))


def test_an_empty_prompter_has_no_system_text_in_the_anthropic_format():
    got = EmptyPrompter(dialect="lazyllm").generate_prompt("q", format="anthropic")
    assert got == {"messages": [{"role": "user", "content": "q"}]}
    assert chat("", system="").generate_prompt("q", format="anthropic")["system"] == ""
