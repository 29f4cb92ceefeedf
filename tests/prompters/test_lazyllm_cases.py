"""The recorded cases of LazyLLM's prompters and of their documentation, each equal or in a list that says why not.

``expect`` is what LazyLLM 1.4 gives and is held against ``dialect="lazyllm"``; ``doc_expect`` is what the documentation
prints and is held against the default. Both lists are exact: a case that begins to agree fails too.
"""

import json
from pathlib import Path

import pytest

from mmprompt import MMPromptError, TextPart
from mmprompt.prompters import AlpacaPrompter, ChatPrompter, EmptyPrompter

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
RECORDED = json.loads((FIXTURES / "reference" / "lazyllm_cases.json").read_text(encoding="utf-8"))
CASES = RECORDED["cases"]
CLASSES = {"AlpacaPrompter": AlpacaPrompter, "ChatPrompter": ChatPrompter, "EmptyPrompter": EmptyPrompter}
PNG = RECORDED["fixtures"]["files_base64"]["pix.png"]

UNLIKE_LAZYLLM = {
    "mm-encode": "SPEC 8: media are content parts at their own place; there is no text that carries files beside it",
    "mm-decode": "SPEC 8: as mm-encode",
    "mm-split-encoded": "SPEC 8: as mm-encode",
    "mm-split-interleaved": "SPEC 8: as mm-encode; content parts keep their order themselves",
    "core-empty-mapping": "a prompt is a string or messages, so a mapping gives the text of its one key",
    "legacy-template-alpaca": "SPEC 8 names three prompters; the older class Prompter is not among them",
    "legacy-get-response": "SPEC 8: as legacy-template-alpaca",
}
"""Cases whose outcome under ``dialect="lazyllm"`` is not LazyLLM's."""

COMMA = "SPEC 8: the printed full-width comma, where the instruction has another"
USER_HALF = 'SPEC 8: a {"user": …} instruction goes to the user half (the seed\'s rule, not its print)'
UNLIKE_THE_PRINT = {
    "seed-01-try-string": USER_HALF,
    "seed-02-try-dict": USER_HALF,
    "seed-01b-as-plain-string": COMMA,
    "seed-02b-as-plain-string": COMMA,
    "seed-03-step6": USER_HALF,
    "seed-03b-step5": USER_HALF + "; it also prints another input than its own",
    "seed-07-chat-no-slot": "SPEC 8: the cut-off last marker",
    "seed-07m-with-markers": "SPEC 8: the cut-off last marker",
}
"""Printed outputs that the default does not give."""

INTERNLM = {
    "sos": "<|im_start|>system\n", "eos": "<|im_end|>\n", "soh": "<|im_start|>user\n", "eoh": "<|im_end|>\n",
    "soa": "<|im_start|>assistant\n", "eoa": "<|im_end|>",
    "system": "You are an AI assistant whose name is InternLM (书生·浦语).\n"
    "- InternLM (书生·浦语) is a conversational language model that is developed by Shanghai AI Laboratory "
    "(上海人工智能实验室). It is designed to be helpful, honest, and harmless.\n"
    "- InternLM (书生·浦语) can understand and communicate fluently in the language chosen by the user such as English "
    "and 中文.",
}  # fmt: skip
OPENAI = {"system": "You are ChatGPT, a large language model trained by OpenAI. You are a helpful assistant."}


def tools_if_w(query):
    return [{"type": "function", "function": {"name": "weather"}}] if "w" in query else None


def decoded(value):
    if isinstance(value, dict):
        if "$tuple" in value:
            return tuple(decoded(item) for item in value["$tuple"])
        if "$callable" in value:
            return {"tools-if-w-in-query": tools_if_w}[value["$callable"]]
        return {key: decoded(item) for key, item in value.items()}
    return [decoded(item) for item in value] if isinstance(value, list) else value


def outcome(case, dialect):
    """What ours gives for a case: a value, or the error."""
    configs = dict({"model_markers": INTERNLM, "online_payload": OPENAI}.get(case["op"], case.get("configs", {})))
    options = {"system": configs.pop("system")} if "system" in configs else {}
    call = decoded(case["call"])
    if case["op"] == "online_payload":
        call["return_dict"] = True
        if "lazyllm_files" in call:  # the file beside the text, as the part after it
            image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
            assert call.pop("lazyllm_files") == "pix.png"
            call["input"] = [TextPart(call["input"]), image]
    arguments = decoded(case["init"] if "init" in case else {"instruction": case["prompt"]})
    try:
        prompter = CLASSES[case.get("class", "ChatPrompter")](**arguments, **options, markers=configs, dialect=dialect)
        method = prompter.get_response if case["op"] == "get_response" else prompter.generate_prompt
        return method(**call)
    except MMPromptError as error:
        return error


def agrees(case):
    expected = case["expect"]
    if case.get("class", "ChatPrompter") not in CLASSES or case["op"] in ("encode_query", "decode_query", "get_files"):
        return False  # nothing of ours to call
    got = outcome(case, "lazyllm")
    if expected["type"] == "error":
        return isinstance(got, MMPromptError)
    value = expected["value"]
    return got == ({"messages": value["payload"]["messages"]} if case["op"] == "online_payload" else value)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_lazyllm_dialect_gives_what_lazyllm_gives(case):
    assert agrees(case) == (case["id"] not in UNLIKE_LAZYLLM)


def test_the_empty_prompter_gives_the_text_of_a_mapping_of_one_key():
    case = next(case for case in CASES if case["id"] == "core-empty-mapping")
    assert [outcome(case, dialect) for dialect in (None, "lazyllm")] == list(case["call"]["input"].values()) * 2


PRINTED = [case for case in CASES if "doc_expect" in case]


@pytest.mark.parametrize("case", PRINTED, ids=lambda case: case["id"])
def test_the_default_gives_what_the_documentation_prints(case):
    assert (outcome(case, None) == case["doc_expect"]) == (case["id"] not in UNLIKE_THE_PRINT)


@pytest.mark.parametrize(
    "case", [c for c in PRINTED if UNLIKE_THE_PRINT.get(c["id"]) == COMMA], ids=lambda case: case["id"]
)
def test_only_the_comma_differs_where_the_comma_is_the_reason(case):
    printed = json.dumps(case["doc_expect"], ensure_ascii=False)
    assert printed.replace("输入，现在", "输入, 现在") == json.dumps(outcome(case, None), ensure_ascii=False)


@pytest.mark.parametrize("case", [c for c in PRINTED if c["id"].startswith("seed-07")], ids=lambda case: case["id"])
def test_only_the_end_differs_where_the_print_is_cut_off(case):
    assert outcome(case, None) == case["doc_expect"] + ":\n"


RULES = {
    "rule-tools-twice-forbidden": "tools are given at construction and at the call",
    "rule-alpaca-no-history": "takes no history",
    "rule-string-input-two-slots": "2 slots: 'a', 'b'",
    "rule-alpaca-needs-slot": "no slot for the input",
    "rule-instruction-keys": "unknown key 'sys'",
}


@pytest.mark.parametrize("name", RULES)
def test_the_default_holds_the_rules_of_the_documentation_that_refuse(name):
    case = next(case for case in CASES if case["id"] == name)
    error = outcome(case, None)
    assert isinstance(error, MMPromptError)
    assert RULES[name] in str(error)


def test_the_lists_name_cases_that_there_are():
    ids = {case["id"] for case in CASES}
    assert len(ids) == len(CASES) == 62
    assert set(UNLIKE_LAZYLLM) | set(UNLIKE_THE_PRINT) | set(RULES) <= ids
    assert len(PRINTED) == 23
