"""Golden cases: one directory under fixtures/golden each, ``case.json`` and ``expected.json``.

The kinds of cases and what may be expected of each are told in ``fixtures/golden/README.md``.
"""

import base64
import json
import re
from pathlib import Path

import pytest

from mmprompt import MetaTemplate, load_task, prompters, to_openai
from mmprompt.icl.assembly import build_template
from mmprompt.icl.dialogues import converse

FIXTURES = Path(__file__).parent.parent / "fixtures"
CASES = sorted(path.parent for path in (FIXTURES / "golden").glob("*/case.json"))


def load(path):
    def encoded(match):
        return base64.b64encode((FIXTURES / match.group(1)).read_bytes()).decode()

    return json.loads(re.sub(r"\{base64:([^}]+)\}", encoded, path.read_text(encoding="utf-8")))


def template_outcome(case, keys):
    """A template and one sample: the prompt, and the string and messages of each mode."""
    prompt = build_template(case["template"], "template").generate_item(case["entry"], case.get("output_column"))
    meta = MetaTemplate(case.get("meta_template"))
    made = {
        "prompt": lambda: prompt,
        "string_gen": lambda: meta.to_string(prompt, "gen"),
        "string_ppl": lambda: meta.to_string(prompt, "ppl"),
        "messages_gen": lambda: to_openai(meta.to_messages(prompt, "gen")),
        "messages_ppl": lambda: to_openai(meta.to_messages(prompt, "ppl")),
    }
    return {key: made[key]() for key in keys}


def task_outcome(case, keys):
    """A task of rows: everything that comes of each row, in order."""
    task = load_task(case["task"])
    made = {"prompts": task.prompts, "strings": task.strings, "messages": task.messages}

    def wire(messages):
        return {k: to_openai(v) for k, v in messages.items()} if isinstance(messages, dict) else to_openai(messages)

    return {key: [wire(made_of) if key == "messages" else made_of for _, made_of in made[key]()] for key in keys}


def dialogue_outcome(case, keys):
    """A dialogue of several turns with what the model replies: the prompt of each call."""
    replies = iter(case["replies"])
    exchanges = list(
        converse(
            build_template(case["template"], "template"),
            case["entry"],
            lambda _messages: next(replies),
            infer_mode=case["infer_mode"],
            meta_template=MetaTemplate(case.get("meta_template")),
            output_field=case.get("output_column"),
        )
    )
    assert next(replies, None) is None, "a reply nobody asked for"
    made = {
        "prompts": lambda: [exchange.prompt for exchange in exchanges],
        "messages": lambda: [to_openai(exchange.messages) for exchange in exchanges],
    }
    return {key: made[key]() for key in keys}


def prompter_outcome(case, keys):
    """A prompter and one call: the string, and the dict of messages."""
    prompter = getattr(prompters, case["prompter"])(**case["arguments"])
    made = {
        "string": lambda: prompter.generate_prompt(**case["call"]),
        "dict": lambda: prompter.generate_prompt(**case["call"], return_dict=True),
    }
    return {key: made[key]() for key in keys}


def outcome(case, keys):
    if "task" in case:
        return task_outcome(case, keys)
    if "prompter" in case:
        return prompter_outcome(case, keys)
    return dialogue_outcome(case, keys) if "infer_mode" in case else template_outcome(case, keys)


@pytest.mark.parametrize("directory", CASES, ids=lambda d: d.name)
def test_golden_case_comes_out_as_expected(directory):
    case, expected = load(directory / "case.json"), load(directory / "expected.json")
    assert expected, "nothing is expected"
    assert outcome(case, list(expected)) == expected


def test_every_directory_is_a_case():
    directories = {path for path in (FIXTURES / "golden").iterdir() if path.is_dir()}
    assert directories == set(CASES)
    assert CASES
