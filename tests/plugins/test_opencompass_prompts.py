"""Random templates, rows and meta templates: the prompts are those of OpenCompass's own classes.

Only what both mean alike is drawn. ``fixtures/reference/differences.json`` lists what mmprompt changes on purpose, such as
a value that holds braces, or a text without a role.
"""

from __future__ import annotations

import copy
import random
import warnings
from types import SimpleNamespace
from typing import Any

import pytest
from runner_present import need

from mmprompt import load_task

need("opencompass", "opencompass")
pytestmark = pytest.mark.runners

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from opencompass.models.base import LMTemplateParser
    from opencompass.models.base_api import APITemplateParser
    from opencompass.openicl.icl_prompt_template import PromptTemplate as Stock
    from opencompass.openicl.icl_retriever import FixKRetriever, ZeroRetriever

SEEDS = 800
TEXTS = (
    "Q: {q}", "{q}", "{answer}", "{q2} ", "{missing}", "{{q}}", "{ q }", "{0}", "}", "\n", "问题", "</Q>", "%s", "",
)  # fmt: skip
VALUES = ("1+1=?", "two words", "答案", "a\nb", "", " ", None, 3, 2.5, 1e20, True, [1, "a"], {"k": 1}, "😀", "</Q>")
LABELS = ("A", "no", "0", "是")
TOKEN = "</E>"
Config = dict[str, Any]


def drawn_text(draw: random.Random) -> str:
    return "".join(draw.choices(TEXTS, k=draw.randint(0, 5)))


def drawn_dialogue(draw: random.Random, token: str = "", *, api: bool) -> dict[str, Any]:
    roles = ["HUMAN", "BOT"] * draw.randint(1, 2)
    if not api and draw.random() < 0.5:  # messages have no text for a role that is left out
        roles = draw.choices(["HUMAN", "BOT"], k=draw.randint(1, 3))
    turns = [{"role": role, "prompt": drawn_text(draw)} for role in roles]
    begin: list[Any] = [{"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": drawn_text(draw)}] * draw.randint(0, 1)
    if token:
        begin.insert(draw.randint(0, len(begin)), token)
    return {"begin": begin, "round": turns} if begin else {"round": turns}


def drawn_template(draw: random.Random, kind: str, token: str = "", *, api: bool) -> Any:
    if kind == "labels":
        return {label: drawn_template(draw, "text", token, api=api) for label in LABELS}
    return drawn_dialogue(draw, token, api=api) if kind == "dialogue" else drawn_text(draw) + token + drawn_text(draw)


def drawn_meta(draw: random.Random, *, api: bool) -> Config:
    def role(name: str, **more: Any) -> Config:
        affixes = {key: draw.choice((f"<{name}>", "\n", "")) for key in ("begin", "end") if draw.random() < 0.6}
        return {"role": name, "api_role": name, **affixes, **more}

    meta: Config = {"round": [role("HUMAN"), role("BOT", generate=True)]}
    if draw.random() < 0.5:
        meta["reserved_roles"] = [role("SYSTEM")]
    return meta if api else {**meta, "begin": draw.choice(("", "<s>")), "end": draw.choice(("", "</s>"))}


def drawn_config(seed: int) -> Config:
    draw = random.Random(seed)
    kind = draw.choice(("text", "dialogue", "dialogue", "labels"))
    api = kind == "dialogue" and draw.random() < 0.5
    shots = draw.choice((0, 1, 3))
    rows = [[dict(zip(("q", "q2"), draw.choices(VALUES, k=2), strict=True)) for _ in range(3)] for _ in range(2)]
    for row in (*rows[0], *rows[1]):
        row["answer"] = draw.choice(LABELS)
    prompt = {"template": drawn_template(draw, kind, TOKEN if shots else "", api=api)}
    return {
        "rows": rows[0],
        "train": rows[1],
        "labels": LABELS if kind == "labels" else (),
        "api": api,
        "ids": [draw.randrange(2) for _ in range(shots)],
        "ice": {"template": drawn_template(draw, kind, api=api)} if shots else None,
        "prompt": {**prompt, "ice_token": TOKEN} if shots else prompt,
        "meta": drawn_meta(draw, api=api) if api or draw.random() < 0.8 else None,
    }


def theirs(config: Config) -> list[Any]:
    ice, prompt = [None if c is None else Stock(**copy.deepcopy(c)) for c in (config["ice"], config["prompt"])]
    dataset = SimpleNamespace(
        reader=SimpleNamespace(output_column="answer"), train=config["train"], test=config["rows"]
    )
    retriever = FixKRetriever(dataset, config["ids"]) if config["ids"] else ZeroRetriever(dataset)
    parser = (APITemplateParser if config["api"] else LMTemplateParser)(config["meta"])
    mode = "ppl" if config["labels"] else "gen"
    made: list[Any] = []
    for number in range(len(config["rows"])):
        examples = retriever.generate_ice(config["ids"], ice_template=ice)
        both = {"ice_template": ice, "prompt_template": prompt}
        made += [retriever.generate_label_prompt(number, examples, label, **both) for label in config["labels"]]
        if not config["labels"]:
            made.append(retriever.generate_prompt_for_generate_task(number, examples, **both))
    return [(without_marks(prompt), sent(parser.parse_template(prompt, mode))) for prompt in made]


def without_marks(prompt: Any) -> Any:
    return prompt if isinstance(prompt, str) else [item for item in prompt if item and "section" not in item]


def sent(parsed: Any) -> Any:
    return parsed if isinstance(parsed, str) else [(item["role"], item["prompt"]) for item in parsed]


def ours(config: Config) -> list[Any]:
    infer = {
        "ice_template": config["ice"],
        "prompt_template": config["prompt"],
        "retriever": {"type": "FixKRetriever", "fix_id_list": config["ids"]} if config["ids"] else None,
        "inferencer": {"type": "PPLInferencer" if config["labels"] else "GenInferencer"},
    }
    given = {
        "dataset": {"rows": config["rows"], "train_rows": config["train"]},
        "reader_cfg": {"output_column": "answer", "missing": "keep"},
        "infer_cfg": {key: value for key, value in infer.items() if value},
        "model": {"meta_template": config["meta"]} if config["meta"] else {},
    }
    task = load_task(given)
    roles = {"user": "HUMAN", "assistant": "BOT", "system": "SYSTEM"}
    prompts = [each for _, prompt in task.prompts() for each in (prompt.values() if config["labels"] else [prompt])]
    if config["api"]:
        model = [[(roles[m.role], "".join(p.text for p in m.parts)) for m in said] for _, said in task.messages()]  # type: ignore[union-attr,misc]
    else:
        model = [each for _, said in task.strings() for each in (said.values() if config["labels"] else [said])]
    return list(zip(prompts, model, strict=True))


def test_the_prompts_are_those_of_opencompass() -> None:
    for seed in range(SEEDS):
        config = drawn_config(seed)
        assert ours(config) == theirs(config), f"seed {seed}: {config}"
