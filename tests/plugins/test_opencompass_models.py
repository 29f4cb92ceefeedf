"""On OpenCompass's own classes: which models carry media, what becomes of answers, and the rows of shipped configs."""

from __future__ import annotations

import base64
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from opencompass_family import SKELETONS
from runner_present import need

from mmprompt import load_task
from mmprompt.errors import MMPromptError, TargetError

need("opencompass", "opencompass")
pytestmark = [pytest.mark.runners, pytest.mark.filterwarnings("ignore")]  # OpenCompass warns where it is imported

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import opencompass.models as stock
    from opencompass.datasets.vlmevalkit.image import convert_vlmeval_prompt
    from opencompass.models.base import BaseModel
    from opencompass.models.huggingface_above_v4_33 import _convert_chat_messages
    from opencompass.openicl.icl_inferencer import GenInferencer
    from opencompass.openicl.icl_raw_prompt_template import RawPromptTemplate
    from opencompass.openicl.icl_retriever import ZeroRetriever

    from mmprompt.plugins.opencompass import MMPromptDataset, MMPromptMessages, MMPromptTask
    from mmprompt.plugins.opencompass.models import CARRYING, CLAUDE, TEXT_ONLY

BLOCKS = {"target": "anthropic"}
PICTURE = {
    "begin": [{"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Be brief."}],
    "round": [{"role": "HUMAN", "prompt_mm": {key: SKELETONS[key] for key in ("image", "text")}}],
}
LOCAL = ("HuggingFacewithChatTemplate", "VLLMwithChatTemplate", "TurboMindModelwithChatTemplate")


class Mine(BaseModel):
    """A model of a user's own."""

    def __init__(self) -> None:
        self.is_api = True


@pytest.fixture
def rows(tmp_path: Path, tour: Path) -> str:
    row = {"question": "What is it?", "image": str(tour / "media" / "coffee.jpg"), "answer": "a cup"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row), encoding="utf-8")
    return str(tmp_path / "rows.jsonl")


def asked(rows: str, name: str, template: Any) -> list[dict[str, Any]]:
    """The messages of the row as OpenCompass's inferencer has them for a model of this class."""
    kind = Mine if name == "Mine" else getattr(stock, name)
    model = kind.__new__(kind)  # without the packages and weights that it would load
    model.is_api = True
    dataset = MMPromptDataset(path=rows, reader_cfg={"input_columns": ["id"], "output_column": "answer"})
    inferencer = GenInferencer(model=model, max_out_len=4)
    [prompt] = inferencer.get_generation_prompt_list_from_retriever_indices(
        [[]], ZeroRetriever(dataset), "", prompt_template=template
    )
    return list(prompt)


@pytest.mark.parametrize("name", [*CARRYING, "Mine"])
def test_a_picture_goes_to_the_models_that_carry_it(rows: str, tour: Path, name: str) -> None:
    messages = asked(rows, name, MMPromptMessages(PICTURE, media={"roots": [str(tour)]}))
    assert [part["type"] for part in messages[1]["content"]] == ["image_url", "text"]


def test_claude_gets_anthropic_s_blocks(rows: str, tour: Path) -> None:
    messages = asked(rows, CLAUDE, MMPromptMessages(PICTURE, media={"roots": [str(tour)]}, **BLOCKS))
    sent, system = stock.ClaudeSDK._convert_prompt_list(messages)
    template = {"type": "MMPromptTemplate", "template": PICTURE}
    task = {"dataset": rows, "infer_cfg": {"prompt_template": template}, "media": {"roots": [str(tour)]}}
    [request] = load_task(task).requests("anthropic")
    assert (sent, system) == (request["messages"], [request["system"]])
    assert system == ["Be brief."]
    assert [block["type"] for block in sent[0]["content"]] == ["image", "text"]


@pytest.mark.parametrize(
    ("name", "options", "what"),
    [
        *[(name, {}, f"{name} carries text alone; use one of OpenAI") for name in TEXT_ONLY],
        *[(name, {}, f"{name} does not take messages; use one of OpenAI") for name in (*LOCAL, "Gemini", "Qwen")],
        (CLAUDE, {}, 'ClaudeSDK takes Anthropic\'s blocks; give the template target="anthropic"'),
        ("OpenAISDK", BLOCKS, "OpenAISDK does not take Anthropic's blocks; leave target out"),
    ],
)
def test_a_model_that_would_lose_the_picture_is_refused_by_name(
    rows: str, tour: Path, name: str, options: dict[str, str], what: str
) -> None:
    with pytest.raises(TargetError, match=what):
        asked(rows, name, MMPromptMessages(PICTURE, media={"roots": [str(tour)]}, **options))


def test_a_task_is_refused_as_a_template_is(tour: Path) -> None:
    task = str(tour / "task.yaml")
    with pytest.raises(TargetError, match="GeminiSDK carries text alone"):
        asked(task, "GeminiSDK", MMPromptTask(task))


def test_a_text_goes_to_gemini(rows: str) -> None:
    [message] = asked(rows, "GeminiSDK", MMPromptMessages("{question}"))
    contents, _ = stock.GeminiSDK._convert_prompt_list([message])
    assert contents == [{"role": "user", "parts": [{"text": "What is it?"}]}]


def test_what_the_refused_models_would_do() -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "?"}]}]
    contents, _ = stock.GeminiSDK._convert_prompt_list(messages)
    assert contents[0]["parts"][0]["text"] == messages[0]["content"]
    with pytest.raises(KeyError, match="prompt"):
        _convert_chat_messages([messages])


def test_all_models_of_the_list_are_opencompass_s() -> None:
    assert all(hasattr(stock, name) for name in (*CARRYING, CLAUDE, *TEXT_ONLY))


@pytest.mark.parametrize(
    ("answers", "kept"),
    [
        ([["a", "b"], ["c"]], True),
        ([{"answer": "a", "count": 3}, {"answer": "b", "count": 1}], True),
        ([1, 2], True),
        ([0.5, None], True),
        ([1, 0.5], False),
        ([1, "one"], False),
        ([{"a": 1}, {"b": 2}], False),
    ],
)
def test_answers_of_one_type_stay_and_others_become_text(tmp_path: Path, answers: list[Any], kept: bool) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps({"question": "?", "answer": answer}) for answer in answers), encoding="utf-8")
    reader = {"input_columns": ["id"], "output_column": "answer"}
    found = MMPromptDataset(path=str(path), reader_cfg=reader).test["answer"]
    as_text = [answer if isinstance(answer, str) else json.dumps(answer) for answer in answers]
    assert list(found) == (answers if kept else as_text)


def test_the_swapped_template_takes_the_rows_of_the_shipped_configs(tour: Path) -> None:
    picture = tour / "media" / "coffee.jpg"
    prompt = convert_vlmeval_prompt([{"type": "image", "value": str(picture)}, {"type": "text", "value": "{answer}?"}])
    options = {"messages": [{"expand_column": "prompt"}], "format_variables": False}
    [shipped] = RawPromptTemplate(**options).generate_item({"prompt": prompt, "answer": "A"})
    assert shipped["content"][0] == {"type": "image", "image_url": str(picture)}
    row = {"prompt": prompt, "answer": "A"}
    [ours] = MMPromptMessages(media={"roots": [str(tour)]}, **options).generate_item(row, "answer")
    url = ours["content"][0]["image_url"]["url"]
    assert base64.b64decode(url.removeprefix("data:image/jpeg;base64,")) == picture.read_bytes()
    assert ours["content"][1] == {"type": "text", "text": "{answer}?"}
    with pytest.raises(MMPromptError, match=r'name the folder that holds the media: media=dict\(roots=\["DIR"\]\)'):
        MMPromptMessages(**options).generate_item(row, "answer")
