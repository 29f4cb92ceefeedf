"""OpenCompass's inferencers that read a local model's own scores, over a model of a few weights."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from runner_present import need

from mmprompt.errors import TargetError

need("opencompass", "opencompass")
pytestmark = [pytest.mark.runners, pytest.mark.filterwarnings("ignore")]  # OpenCompass warns where it is imported

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from datasets import Dataset, DatasetDict
    from opencompass.datasets.base import BaseDataset
    from opencompass.models import HuggingFaceCausalLM
    from opencompass.openicl.icl_inferencer import CLPInferencer, LLInferencer
    from opencompass.openicl.icl_prompt_template import PromptTemplate as Stock
    from opencompass.openicl.icl_retriever import FixKRetriever
    from transformers import LlamaConfig, LlamaForCausalLM

    from mmprompt.plugins.opencompass import MMPromptDataset, MMPromptMessages, MMPromptText

ROWS = [
    {"question": "Is snow cold ?", "cont": "cold ?", "choices": ["no", "yes"], "answer": "yes"},
    {"question": "Is {answer} red ?", "cont": "red ?", "choices": ["no", "yes"], "answer": "no"},
]
WORDS = ("[UNK]", "[PAD]", "no", "yes", "Is", "snow", "cold", "?", "red", "Q", "A", "answer")
TEXT = "</E>Q {question} A {answer}"
LABELS = {label: f"</E>Q {{question}} A {label}" for label in ("no", "yes")}


class Rows(BaseDataset):
    @staticmethod
    def load(path: str) -> Any:
        return DatasetDict({split: Dataset.from_list(ROWS) for split in ("train", "test")})


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("model")
    words = {"type": "WordLevel", "vocab": {word: n for n, word in enumerate(WORDS)}, "unk_token": "[UNK]"}
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None}
    whole |= {"pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None, "model": words}
    (folder / "tokenizer.json").write_text(json.dumps(whole), encoding="utf-8")
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(kind), encoding="utf-8")
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 1, "num_key_value_heads": 1}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(WORDS), num_hidden_layers=1, **sizes)).save_pretrained(folder)
    return HuggingFaceCausalLM(path=str(folder), max_seq_len=128, model_kwargs={"torch_dtype": "torch.float"})


def inferred(
    inferencer: Any, template: Any, example: Any, model: Any, folder: Path, rows: Any = Rows
) -> list[dict[str, Any]]:
    """What the inferencer writes of each row, the first row shown as an example."""
    path = folder / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    columns = ["question"] if rows is Rows else ["id"]
    dataset = rows(path=str(path), reader_cfg={"input_columns": columns, "output_column": "answer"})
    run = inferencer(model, max_seq_len=128, output_json_filepath=str(folder), output_json_filename="rows.json")
    run.inference(FixKRetriever(dataset, [0]), ice_template=example, prompt_template=template)
    return list(json.loads((folder / "rows.json").read_text(encoding="utf-8")).values())


@pytest.mark.parametrize(("inferencer", "template"), [(LLInferencer, LABELS), (CLPInferencer, TEXT)])
def test_a_text_scores_as_the_stock_template_s_does_but_for_slots_in_its_values(
    model: Any, tmp_path: Path, inferencer: Any, template: Any
) -> None:
    stock, ours = (
        inferred(inferencer, kind(template, ice_token="</E>"), kind(TEXT, ice_token="</E>"), model, tmp_path)
        for kind in (Stock, MMPromptText)
    )
    assert stock[0] == ours[0]
    assert "Is no red ?" in json.dumps(stock[1]) or "Is  red ?" in json.dumps(stock[1])
    assert "Is {answer} red ?" in json.dumps(ours[1])
    assert [row["gold"] for row in ours] == [row["answer"] for row in ROWS]


@pytest.mark.parametrize(("inferencer", "template"), [(LLInferencer, LABELS), (CLPInferencer, TEXT)])
def test_our_dataset_has_the_columns_that_they_read(model: Any, tmp_path: Path, inferencer: Any, template: Any) -> None:
    own, ours = (
        inferred(
            inferencer,
            MMPromptText(template, ice_token="</E>"),
            MMPromptText(TEXT, ice_token="</E>"),
            model,
            tmp_path,
            rows,
        )
        for rows in (Rows, MMPromptDataset)
    )
    assert ours == own


def test_messages_are_not_scored_as_text(model: Any, tmp_path: Path) -> None:
    example = MMPromptMessages("{question}")
    with pytest.raises(TargetError, match="HuggingFaceCausalLM does not take messages"):
        inferred(CLPInferencer, MMPromptMessages("</E>{question}", ice_token="</E>"), example, model, tmp_path)
