"""Golden cases: one directory under fixtures/golden each, ``case.json`` and ``expected.json``.

``case.json``: ``template`` (a config with ``type``), ``entry``, ``output_column``, perhaps ``meta_template``;
``expected.json``: ``prompt``, perhaps ``string_gen``, ``string_ppl``, ``messages_gen``, ``messages_ppl``.
``{base64:FILE}`` stands for the base64 of a fixture.
"""

import base64
import json
import re
from pathlib import Path

import pytest

from mmprompt import MetaTemplate, to_openai
from mmprompt.icl.assembly import build_template

FIXTURES = Path(__file__).parent.parent / "fixtures"
CASES = sorted((FIXTURES / "golden").iterdir())


def load(path):
    def encoded(match):
        return base64.b64encode((FIXTURES / match.group(1)).read_bytes()).decode()

    return json.loads(re.sub(r"\{base64:([^}]+)\}", encoded, path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("directory", CASES, ids=lambda d: d.name)
def test_golden_case_comes_out_as_printed(directory):
    case, expected = load(directory / "case.json"), load(directory / "expected.json")
    prompt = build_template(case["template"], "template").generate_item(case["entry"], case.get("output_column"))
    assert prompt == expected.pop("prompt")
    meta = MetaTemplate(case.get("meta_template"))
    for key, value in expected.items():
        output, mode = key.split("_")
        if output == "string":
            assert meta.to_string(prompt, mode) == value, key
        else:
            assert to_openai(meta.to_messages(prompt, mode)) == value, key


def test_there_are_golden_cases():
    assert len(CASES) >= 11
