"""Runs a recorded reference case through mmprompt: its input as objects of ours, its result as plain JSON."""

from __future__ import annotations

import json
from typing import Any

from reference_values import decoded

from mmprompt import (
    MediaRef,
    Message,
    MetaTemplate,
    MMPromptError,
    MMPromptTemplate,
    MultiTurnPromptTemplate,
    PromptList,
    PromptTemplate,
    RawPromptTemplate,
    TextPart,
    converse,
    from_openai,
    load_task,
    to_openai,
)

NAMES = {"user": "HUMAN", "assistant": "BOT", "system": "SYSTEM"}
MAX_OUT_LEN = 64  # what the recorded dialogues were asked with


def api_items(messages: Any, *, raw: bool = False) -> Any:
    """Return messages as upstream's API models get them; ready messages stay messages."""
    if messages and isinstance(messages[0], list):
        return [api_items(m, raw=raw) for m in messages]
    return stripped(to_openai(messages)) if raw else _roles(to_openai(messages))


def _roles(wire: Any) -> Any:
    """Return messages with the roles and keys that upstream's parsed prompts have."""
    return [{"role": NAMES.get(m["role"], m["role"]), "prompt": m["content"]} for m in wire]


def stripped(wire: Any) -> Any:
    """Return the role and the content of messages."""
    return [{"role": m["role"], "content": m["content"]} for m in wire]


def parse(meta: Any, kind: str, prompt: Any, mode: str) -> Any:
    """Put a prompt through a meta template as upstream's model of that kind does."""
    template = MetaTemplate(meta)
    if not isinstance(prompt, str) and "'content'" in str(prompt) and kind == "api":
        return api_items(template.to_messages(prompt, mode), raw=True)
    if kind == "lm" or meta is None or isinstance(prompt, str):
        return template.to_string(prompt, mode)
    return api_items(template.to_messages(prompt, mode))


def run(case: dict[str, Any]) -> Any:
    """Run a case and return the value as plain JSON data; an error as its class and what it says."""
    given, op = decoded(case["in"]), case["op"]
    return json.loads(json.dumps(attempted(lambda: OPS[op](given)), default=str))


def attempted(make: Any) -> Any:
    """Return a value, or our own error as data."""
    try:
        return make()
    except MMPromptError as error:
        return {"error": type(error).__name__, "says": str(error)}


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
    if "replies" in given:
        infer["inferencer"]["max_out_len"] = MAX_OUT_LEN
    dataset = {"rows": given["test"], **({"train_rows": given["train"]} if given.get("train") else {})}
    known = set().union(*given["test"])
    reader = {
        "input_columns": [c for c in given["input_columns"] if c in known],
        "output_column": given["output_column"],
        "missing": "keep",
    }
    meta = {} if given.get("meta") is None else {"model": {"meta_template": given["meta"]}}
    return load_task(
        {"dataset": dataset, "reader_cfg": reader, "infer_cfg": infer, **meta}, tokenizer=lambda t: len(t.split())
    )


def _pipeline(given: dict[str, Any]) -> Any:
    task = _task(given)

    def row(prompt: Any) -> dict[str, Any]:
        return {"prompt": prompt, "parsed": parse(given.get("meta"), given["kind"], prompt, task.mode)}

    if task.mode == "ppl":
        return [{str(label): row(p) for label, p in prompts.items()} for _, prompts in task.prompts()]
    out = [row(prompt) for _, prompt in task.prompts()]
    for made, (_, messages) in zip(out, task.messages() if given.get("messages") else (), strict=False):
        made["messages"] = stripped(to_openai(messages))
    return out


def _multimodal(given: dict[str, Any]) -> Any:
    """Render a multimodal sample: the prompt, then what API models and language models get of it."""
    prompt = MMPromptTemplate(**given["cfg"]).generate_item(given["entry"], "answer")
    messages = _named(MetaTemplate(given.get("meta")).to_messages(prompt, "gen"))
    wire = to_openai(messages)
    return {
        "item": [
            {k.replace("prompt", "prompt_mm") if isinstance(v, list) else k: v for k, v in i.items()}
            if isinstance(i, dict)
            else i
            for i in prompt
        ],
        "api": _roles(wire),
        "messages": stripped(wire),
        "nometa": _roles(to_openai(_named(MetaTemplate(None).to_messages(prompt, "gen")))),
        "lm": attempted(lambda: MetaTemplate(None).to_string(prompt, "gen")),
        "is_mm": _hold_media(messages),
    }


def _hold_media(messages: list[Message]) -> bool:
    return any(not isinstance(part, TextPart) for message in messages for part in message.parts)


def _named(messages: list[Message]) -> list[Message]:
    """Return messages whose media go out by the name that the sample gives them."""
    return [
        m._replace(parts=tuple(p._replace(name=p.source) if isinstance(p, MediaRef) else p for p in m.parts))
        for m in messages
    ]


def _dialogue(given: dict[str, Any], template: Any, entry: Any) -> list[tuple[PromptList, int]]:
    """Hold a dialogue; return the prompt of each request with the length that the model was asked for."""
    replies, lengths = iter(given["replies"]), []

    def reply(_messages: list[Message], *, max_out_len: int) -> str:
        lengths.append(max_out_len)
        return next(replies)

    done = converse(
        MultiTurnPromptTemplate(**template), entry, reply, infer_mode=given["infer_mode"],
        meta_template=MetaTemplate(given["meta"]), output_field="answer", max_out_len=MAX_OUT_LEN,
    )  # fmt: skip
    return [(turn.prompt, length) for turn, length in zip(done, lengths, strict=True)]


def _turns(given: dict[str, Any]) -> Any:
    done = _dialogue(given, given["cfg"], given["entry"])
    return [{"input": parse(given["meta"], given["kind"], p, "gen"), "max_out_len": length} for p, length in done]


def _raw(given: dict[str, Any]) -> Any:
    template = RawPromptTemplate(**given["cfg"])
    return {
        "item": template.generate_item(given["entry"], given.get("output_field"), given.get("ice")),
        "ice_item": template.generate_ice_item(given["entry"]),
    }


def _chat(given: dict[str, Any]) -> Any:
    """Hold a dialogue of OpenCompass's chat inferencer: the dialogue with its answers, and what is sent of it."""
    template, entry = _columns(given)
    meta = MetaTemplate(given["meta"])

    def sent(prompt: Any, length: int) -> Any:
        through = meta.to_string if given["kind"] == "lm" else lambda p, mode: api_items(meta.to_messages(p, mode))
        return {"input": [through(prompt, "gen")], "max_out_len": length}

    if any(isinstance(v, list) for v in entry.values()):
        full = MultiTurnPromptTemplate(**template).generate_item(entry)
        requests = _dialogue(given, template, entry)
    else:
        full = PromptTemplate(**template).generate_item(entry)
        task = _task({**given, "prompt_template": template, "test": [entry]})
        requests = [(prompt, task.assembly.arguments["max_out_len"]) for _, prompt in task.prompts()]
    chat = stripped(to_openai(MetaTemplate(None).to_messages(full, "ppl")))
    return {"chat": chat, "sent": [sent(prompt, length) for prompt, length in requests]}


def _columns(given: dict[str, Any]) -> tuple[Any, Any]:
    """Return the template and the row of a chat case; a chat column becomes columns of lists."""
    entry, round_ = given["entry"], [{"role": "HUMAN", "prompt": "{question}"}, {"role": "BOT", "prompt": "{answer}"}]
    if "chat" not in entry:
        return given["cfg"] or {"template": {"round": round_}}, entry
    said = {role: [m["content"] for m in entry["chat"] if m["role"] == role] for role in NAMES}
    template = {"begin": [{"role": "SYSTEM", "prompt": said["system"][0]}], "round": round_}
    return {"template": template}, {"question": said["user"], "answer": said["assistant"]}


def _labels(given: dict[str, Any]) -> Any:
    task = _task({**given, "input_columns": [], "infer": "ppl", "train": given["test"]})
    return [str(label) for _, prompts in task.prompts() for label in prompts]


def _retrieved(given: dict[str, Any]) -> Any:
    template = {"template": "</E>x", "ice_token": "</E>"}  # the recorded ids were taken before any template
    task = _task({**given, "input_columns": ["question"], "ice_template": template, "prompt_template": template})
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
    "messages": lambda g: to_openai([Message(i["role"], i["prompt"]) for i in g["parsed"]]),
    "mm.url": lambda g: {
        "round": [{"prompt_mm": p["prompt"]} for p in MMPromptTemplate(g["template"]).generate_item(g["entry"])]
    },
    "is_mm": lambda g: _hold_media(from_openai(g["prompt"])),
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
