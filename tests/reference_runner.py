"""Runs a recorded reference case through mmprompt, and compares the result with what was recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mmprompt import (
    MetaTemplate,
    MMPromptTemplate,
    MultiTurnPromptTemplate,
    PromptTemplate,
    RandomRetriever,
    RawPromptTemplate,
    load_task,
)
from mmprompt.errors import MMPromptError
from mmprompt.icl.dialogues import converse
from mmprompt.messages import TextPart
from mmprompt.targets.openai import to_openai
from mmprompt.targets.openai_reading import from_openai
from mmprompt.templates.prompt_list import PromptList, Section, in_section

REFERENCE = Path(__file__).parent.parent / "fixtures" / "reference"
NAMES = {"user": "HUMAN", "assistant": "BOT", "system": "SYSTEM"}
ERROR = "error"


def decoded(value: Any) -> Any:
    """Return recorded data as objects; the section marks of a PromptList become our sections."""
    if isinstance(value, list):
        return [decoded(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "@pl" in value:
        return _prompt_list(value["@pl"])
    if "@t" in value:
        return tuple(decoded(v) for v in value["@t"])
    if "@d" in value:
        return {decoded(k): decoded(v) for k, v in value["@d"]}
    return {k: decoded(v) for k, v in value.items()}


def _prompt_list(items: list[Any]) -> PromptList:
    out, open_sections = PromptList(), []
    for item in items:
        if isinstance(item, dict) and set(item) == {"section", "pos"}:
            if open_sections and item["pos"] == "end" and open_sections[-1].kind == item["section"]:
                open_sections.pop()
            else:  # upstream opens the end section with an end mark
                open_sections.append(Section(item["section"]))
        else:
            out.append(in_section(decoded(item), open_sections[-1]) if open_sections else decoded(item))
    return out


def plain(value: Any) -> Any:
    """Return recorded data without section marks, all lists plain."""
    if isinstance(value, list):
        return [plain(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "@pl" in value:
        marks = [i for i in value["@pl"] if isinstance(i, dict) and set(i) == {"section", "pos"}]
        return [plain(i) for i in value["@pl"] if i not in marks]
    if "@t" in value:
        return [plain(v) for v in value["@t"]]
    return {k: plain(v) for k, v in value.items()}


def api_items(messages: Any, *, raw: bool = False) -> Any:
    """Return messages as upstream's API models get them; ready messages stay messages."""
    if messages and isinstance(messages[0], list):
        return [api_items(m, raw=raw) for m in messages]
    wire = to_openai(messages)
    if raw:
        return [{"role": m["role"], "content": m["content"]} for m in wire]
    return [{"role": NAMES.get(m["role"], m["role"]), "prompt": m["content"]} for m in wire]


def parse(meta: Any, kind: str, prompt: Any, mode: str) -> Any:
    """Put a prompt through a meta template as upstream's model of that kind does."""
    template = MetaTemplate(meta)
    if not isinstance(prompt, str) and "'content'" in str(prompt) and kind == "api":
        return api_items(template.to_messages(prompt, mode), raw=True)
    if kind == "lm" or meta is None or isinstance(prompt, str):
        return template.to_string(prompt, mode)
    return api_items(template.to_messages(prompt, mode))


def run(case: dict[str, Any]) -> Any:
    """Run a case and return the value as plain JSON data; our own errors give ``"error"``."""
    given, op = decoded(case["in"]), case["op"]
    try:
        return json.loads(json.dumps(OPS[op](given), default=str))
    except MMPromptError:
        return ERROR


def recorded(case: dict[str, Any]) -> list[Any]:
    """Return the values that count as equal: one for each flavour; errors of any class are ``"error"``."""
    return [plain(out["value"]) if "value" in out else ERROR for out in case["out"].values()]


def _pt(method: str) -> Any:
    def op(given: dict[str, Any]) -> Any:
        template = PromptTemplate(**given["cfg"])
        if method == "item":
            return template.generate_item(given["entry"], given.get("output_field"), given.get("ice"))
        if method == "ice":
            return template.generate_ice_item(given["entry"], given.get("label"))
        return template.generate_label_prompt_item(given["entry"], given.get("ice"), given.get("label"))

    return op


def _iadd(given: dict[str, Any]) -> Any:
    left = given["left"]
    left += given["right"]
    return left


def _config(cfg: Any) -> Any:
    return None if cfg is None else {"type": "PromptTemplate", **cfg}


def _task(given: dict[str, Any]) -> Any:
    ppl = given.get("infer") == "ppl"
    infer = {
        "ice_template": _config(given.get("ice_template")),
        "prompt_template": _config(given.get("prompt_template")),
        "retriever": given.get("retriever"),
        "inferencer": {"type": "PPLInferencer" if ppl else "GenInferencer"},
    }
    if ppl and given.get("labels"):
        infer["inferencer"]["labels"] = given["labels"]
    if given.get("max_seq_len"):
        infer["inferencer"]["max_seq_len"] = given["max_seq_len"]
    dataset = {"rows": given["test"], **({"train_rows": given["train"]} if given.get("train") else {})}
    known = set().union(*given["test"])
    reader = {
        "input_columns": [c for c in given["input_columns"] if c in known],
        "output_column": given["output_column"],
    }
    meta = {} if given.get("meta") is None else {"model": {"meta_template": given["meta"]}}
    return load_task(
        {"dataset": dataset, "reader_cfg": reader, "infer_cfg": infer, **meta}, tokenizer=lambda t: len(t.split())
    )


def _pipeline(given: dict[str, Any]) -> Any:
    task = _task(given)
    out = []
    for sample in task.samples():
        (made,) = task.assembled(sample)
        if task.mode == "ppl":
            out.append(
                {
                    str(k): {"prompt": p, "parsed": parse(given.get("meta"), given["kind"], p, "ppl")}
                    for k, p in made.prompt.items()
                }
            )
            continue
        row = {"prompt": made.prompt, "parsed": parse(given.get("meta"), given["kind"], made.prompt, "gen")}
        if given.get("messages"):
            row["messages"] = [{"content": m["content"], "role": m["role"]} for m in to_openai(task.messages_of(made))]
        out.append(row)
    return out


def _multimodal(given: dict[str, Any]) -> Any:
    prompt = MMPromptTemplate(**given["cfg"]).generate_item(given["entry"], "answer")
    return {
        "item": [
            {k.replace("prompt", "prompt_mm") if isinstance(v, list) else k: v for k, v in i.items()}
            if isinstance(i, dict)
            else i
            for i in prompt
        ]
    }


def _turns(given: dict[str, Any]) -> Any:
    replies = iter(given["replies"])
    meta = MetaTemplate(given["meta"])
    done = converse(
        MultiTurnPromptTemplate(**given["cfg"]), given["entry"], lambda *_, **__: next(replies), infer_mode=given["infer_mode"],
        meta_template=meta, output_field="answer", max_out_len=64,
    )  # fmt: skip
    return [{"input": parse(given["meta"], given["kind"], d.prompt, "gen"), "max_out_len": d.max_out_len} for d in done]


def _random(given: dict[str, Any]) -> Any:
    arguments = {k: v for k, v in given["retriever"].items() if k != "type"}
    task = load_task({"dataset": {"rows": given["test"]}})
    train = list(load_task({"dataset": {"rows": given["train"]}}).samples())
    bound = RandomRetriever(**arguments).bind(train)
    return [bound.ids(s) for s in task.samples()]


def _raw(given: dict[str, Any]) -> Any:
    template = RawPromptTemplate(**given["cfg"])
    return {
        "item": template.generate_item(given["entry"], None, given.get("ice")),
        "ice_item": template.generate_ice_item(given["entry"]),
    }


def _chat(given: dict[str, Any]) -> Any:
    """Run a dialogue of OpenCompass's chat inferencer; one that is a chat column comes as our columns of lists."""
    entry, cfg = given["entry"], given["cfg"]
    round_ = [{"role": "HUMAN", "prompt": "{question}"}, {"role": "BOT", "prompt": "{answer}"}]
    template = cfg["template"] if cfg else {"round": round_}
    if "chat" in entry:
        said = {role: [m["content"] for m in entry["chat"] if m["role"] == role] for role in NAMES}
        template = {"begin": [{"role": "SYSTEM", "prompt": said["system"][0]}], "round": round_}
        entry = {"question": said["user"], "answer": said["assistant"]}
    meta = MetaTemplate(given["meta"])

    def sent(prompt: Any) -> Any:
        through = meta.to_string if given["kind"] == "lm" else lambda p, mode: api_items(meta.to_messages(p, mode))
        return {"input": [through(prompt, "gen")], "max_out_len": 64}

    if not any(isinstance(v, list) for v in entry.values()):
        return {"sent": [sent(PromptTemplate(template).generate_item(entry, "answer"))]}
    replies = iter(given["replies"])
    done = converse(
        MultiTurnPromptTemplate(template), entry, lambda *_, **__: next(replies), infer_mode=given["infer_mode"],
        meta_template=meta, output_field="answer", max_out_len=64,
    )  # fmt: skip
    return {"sent": [sent(d.prompt) for d in done]}


def _labels(given: dict[str, Any]) -> Any:
    task = _task({**given, "input_columns": [], "infer": "ppl", "train": given["test"]})
    return [str(label) for sample in task.samples() for made in task.assembled(sample) for label in made.prompt]


def _retrieved(given: dict[str, Any]) -> Any:
    task = _task({**given, "input_columns": ["question"], "ice_template": given["prompt_template"]})
    return [list(made.example_ids) for sample in task.samples() for made in task.assembled(sample)]


def _parts(given: dict[str, Any]) -> Any:
    """Build the parts of one item: a list is the parts themselves."""
    item = given["item"]["prompt_mm"]
    if isinstance(item, list):
        (message,) = to_openai(MetaTemplate(None).to_messages(PromptList([{"role": "HUMAN", "prompt": item}]), "ppl"), content="parts")  # fmt: skip
        return message["content"]
    return MMPromptTemplate({"round": [{"role": "HUMAN", "prompt_mm": item}]}).generate_item({}, None)[0]["prompt"]


OPS = {
    "oc.chat": _chat,
    "labels": _labels,
    "retrieve": _retrieved,
    "mm.get": _parts,
    "messages": lambda g: to_openai(MetaTemplate(None).to_messages(g["parsed"], "ppl")),
    "mm.url": lambda g: {
        "round": [{"prompt_mm": p["prompt"]} for p in MMPromptTemplate(g["template"]).generate_item(g["entry"])]
    },
    "is_mm": lambda g: any(m.parts and not isinstance(m.parts[0], TextPart) for m in from_openai(g["prompt"])),
    "oc.raw": _raw,
    "safe_format": lambda g: PromptList([g["s"]]).format(g["kw"])[0],
    "pl.format": lambda g: PromptList(g["items"]).format(g["kw"]),
    "pl.replace": lambda g: PromptList(g["items"]).replace(g["src"], g["dst"]),
    "pl.add": lambda g: g["left"] + g["right"],
    "pl.iadd": _iadd,
    "pl.str": lambda g: str(PromptList(g["items"])),
    "pt.new": lambda g: {"prompt_type": PromptTemplate(**g["cfg"]).prompt_type},
    "pt.item": _pt("item"),
    "pt.ice_item": _pt("ice"),
    "pt.label_item": _pt("label"),
    "parse": lambda g: parse(g["meta"], g["kind"], g["prompt"], g["mode"]),
    "pipeline": _pipeline,
    "trunc": lambda g: [row["parsed"] for row in _pipeline(g)],
    "mm.pipeline": _multimodal,
    "mt.item": lambda g: MultiTurnPromptTemplate(**g["cfg"]).generate_item(g["entry"]),
    "mt.infer": _turns,
}
