import pytest

from mmprompt import MediaRef, PromptError, TemplateError
from mmprompt.prompters import EmptyPrompter

TOOLS = [{"type": "function", "function": {"name": "example"}}]
IMAGE = {"type": "image_url", "image_url": {"url": "a.png"}}


@pytest.mark.parametrize("text", ["hello", "", "\n\n{a} {{b}} ", "<|Human|>:"])
def test_the_string_is_the_input(text):
    assert EmptyPrompter().generate_prompt(text) == text
    assert EmptyPrompter().generate_prompt({"anything": text}) == text
    assert EmptyPrompter().slots == ()


def test_the_messages_are_the_users_one():
    assert EmptyPrompter().generate_prompt("hello", return_dict=True) == {
        "messages": [{"role": "user", "content": "hello"}]
    }
    assert EmptyPrompter().generate_prompt([IMAGE, "x"], return_dict=True) == {
        "messages": [{"role": "user", "content": [IMAGE, {"type": "text", "text": "x"}]}]
    }


def test_messages_have_a_place_for_history_tools_and_system():
    got = EmptyPrompter(system="S").generate_prompt("q", history=[["u", "a"]], tools=TOOLS, return_dict=True)
    assert [(m["role"], m["content"]) for m in got["messages"]] == [
        ("system", "S"),
        ("user", "u"),
        ("assistant", "a"),
        ("user", "q"),
    ]
    assert got["tools"] == TOOLS


@pytest.mark.parametrize("more", [{"history": [["u", "a"]]}, {"tools": TOOLS}, {"system": "S"}])
def test_a_string_refuses_what_it_has_no_place_for(more):
    with pytest.raises(PromptError, match=f"no place for {next(iter(more))}; give return_dict=True"):
        EmptyPrompter().generate_prompt("q", **more)
    with pytest.raises(PromptError, match="no place for"):
        EmptyPrompter(**more).generate_prompt("q")


def test_the_lazyllm_dialect_leaves_them_out():
    prompter = EmptyPrompter(dialect="lazyllm", system="S")
    more = {"history": [["u", "a"]], "tools": TOOLS}
    assert prompter.generate_prompt("q", **more) == "q"
    assert prompter.generate_prompt("q", return_dict=True, **more) == {"messages": [{"role": "user", "content": "q"}]}


def test_a_label_follows_in_the_string():
    assert EmptyPrompter().generate_prompt("q ", label="gold") == "q gold"
    with pytest.raises(TemplateError, match="the label is list"):
        EmptyPrompter().generate_prompt("q ", label=["gold"])


def test_media_need_a_placeholder_in_the_string():
    with pytest.raises(PromptError, match="which a string cannot carry"):
        EmptyPrompter().generate_prompt([IMAGE])
    prompt = EmptyPrompter().generate_prompt(
        ["see ", MediaRef("image", "a.png")], media_placeholder={"image": "<image>"}
    )
    assert (prompt, prompt.media[0].source) == ("see <image>", "a.png")


def test_several_keys_and_no_input_are_refused():
    with pytest.raises(
        TemplateError,
        match="keys that are not slots: 'a', 'b'; give one key for the user's turn, since the instruction has no slots",
    ):
        EmptyPrompter().generate_prompt({"a": "1", "b": "2"})
    with pytest.raises(TemplateError, match="the input is missing"):
        EmptyPrompter().generate_prompt()


def test_the_response_is_the_output_without_the_input():
    assert EmptyPrompter().get_response("q yes", "q ") == "yes"
    assert EmptyPrompter().get_response("q yes") == "q yes"
