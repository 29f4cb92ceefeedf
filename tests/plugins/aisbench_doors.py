"""AISBench and OpenCompass as doors of the tour's table: a config of theirs with our classes."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

from tour_doors import Ask, Door, Results

ROWS = """
datasets = [dict(
    abbr="tour", type=MMPromptDataset, path={path!r}, reader_cfg=dict(input_columns=["id"], output_column="answer"),
    infer_cfg=dict(prompt_template=dict(type=MMPromptTask, task={path!r}), retriever=dict(type=ZeroRetriever),
                   inferencer=dict(type=GenInferencer{length})),
    eval_cfg=dict(evaluator=dict(type=AccEvaluator)))]
work_dir = "out"
"""
AISBENCH = """
from ais_bench.benchmark.openicl.icl_evaluator import AccEvaluator
from ais_bench.benchmark.openicl.icl_inferencer import GenInferencer
from ais_bench.benchmark.openicl.icl_retriever import ZeroRetriever
from ais_bench.benchmark.summarizers import DefaultSummarizer
from mmprompt.plugins.aisbench import MMPromptChat, MMPromptDataset, MMPromptTask

models = [dict(attr="service", type=MMPromptChat, abbr="m", path="", model={model!r}, host_ip="127.0.0.1",
               host_port={port}, max_out_len=16, batch_size=64, request_rate=0, retry=1,
               generation_kwargs=dict(temperature=0))]
summarizer = dict(attr="accuracy", type=DefaultSummarizer)
"""
OPENCOMPASS = """
from opencompass.models import OpenAI
from opencompass.openicl.icl_evaluator import AccEvaluator
from opencompass.openicl.icl_inferencer import GenInferencer
from opencompass.openicl.icl_retriever import ZeroRetriever
from mmprompt.plugins.opencompass import MMPromptDataset, MMPromptTask

models = [dict(type=OpenAI, abbr="m", path={model!r}, key="x", tokenizer_path="tokenizer", query_per_second=100,
               openai_api_base="http://127.0.0.1:{port}/v1/chat/completions", batch_size=1, max_out_len=16,
               max_seq_len=4096, temperature=0)]
"""


def write_tokenizer(folder: Path) -> None:
    """Write a tokenizer of one word: OpenCompass's models count tokens before they send."""
    words = {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None}
    whole |= {"pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None, "model": words}
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps(whole), encoding="utf-8")
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(kind), encoding="utf-8")


def _write(ask: Ask, head: str, length: str) -> None:
    port = urlsplit(ask.url).port
    text = head.format(model=ask.model, port=port) + ROWS.format(path=str(ask.path), length=length)
    (ask.folder / "cfg.py").write_text(text, encoding="utf-8")


def _aisbench(ask: Ask) -> list[object]:
    _write(ask, AISBENCH, "")
    return ["ais_bench", "cfg.py", "--mode", "all", "--debug"]


def _opencompass(ask: Ask) -> list[object]:
    _write(ask, OPENCOMPASS, ", max_out_len=16")
    write_tokenizer(ask.folder / "tokenizer")
    return ["opencompass", "cfg.py", "--max-num-workers", "1"]


def _results(folder: Path) -> Results:
    [file] = folder.glob("out/*/results/m/tour.json")
    return Results(json.loads(file.read_text(encoding="utf-8"))["accuracy"] / 100, None)


# Both end with exit code 0 whatever becomes of a dataset.
ROOTS, FAULTS = 'media=dict(roots=["DIR"])', "5 of 60 rows"
FAMILY = (
    Door(
        "aisbench", "ais_bench", _aisbench, _results, ROOTS, told=FAULTS, stops=False,
        warm_up=1, adds=frozenset(("stream", "max_tokens", "temperature")),
        variables=lambda url: {"PYTHONWARNINGS": "ignore"},
    ),
    Door(
        "opencompass", "opencompass", _opencompass, _results, ROOTS, told=FAULTS, stops=False,
        adds=frozenset(("max_tokens", "n", "logprobs", "top_logprobs", "stop", "temperature")),
        variables=lambda url: {"PYTHONWARNINGS": "ignore"}, in_one_process=("--debug",),
    ),
)  # fmt: skip
