"""What mmprompt gives for a recorded reference case: upstream's result, changed as the listed differences say.

``differences.json`` names the reasons, and says of each case that differs which of them hold and how each changes the
result: by the rule of that name (``RULES``), by other words in some texts, or with a result that is given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from reference_values import CASES, REFERENCE, plain

LISTED = json.loads((REFERENCE / "differences.json").read_text(encoding="utf-8"))
REASONS, EVERYWHERE, DIFFERENCES = LISTED["reasons"], LISTED["everywhere"], LISTED["cases"]
REFUSALS, FLAVOURS = LISTED["refusals"], LISTED["flavours"]
ROLES = {"HUMAN": "user", "BOT": "assistant", "SYSTEM": "system"}
REFUSED = "refused"

Case = dict[str, Any]
Rule = Callable[[Case, Any], Any]


def expected(case: Case) -> list[Any]:
    """Return the values that are right for a case: upstream's, or what its listed differences make of them."""
    if case["id"] in REFUSALS:
        return [REFUSALS[case["id"]]]
    steps = DIFFERENCES.get(case["id"], {})
    if outright := [how for how in steps.values() if is_outright(how)]:
        return [how.get("gives", how) for how in outright]
    steps = {**steps, **EVERYWHERE.get(case["op"], {})}
    return [_through(steps, case, value) for value in given(case)]


def is_outright(how: Any) -> bool:
    """Tell a result that the fixture gives, whatever upstream's: a value or an error."""
    return isinstance(how, dict) and not how.keys().isdisjoint({"gives", "error"})


def given(case: Case) -> list[Any]:
    """Return what upstream gave, one value for each flavour; of a difference the value that it sets out from."""
    chosen = FLAVOURS.get(case["id"])
    outs = case["out"].values() if chosen is None else [case["out"][chosen]]
    values = [plain(out["value"]) if "value" in out else REFUSED for out in outs]
    if case["id"] in DIFFERENCES:
        return ([v for v in values if v != REFUSED] or [REFUSED])[:1]
    return values


def agrees(result: Any, right: Any) -> bool:
    """Compare a result with the right one: all of it, or of an error its class and a fragment of what it says."""
    if isinstance(right, dict) and "error" in right:
        return isinstance(result, dict) and result.get("error") == right["error"] and right["says"] in result["says"]
    if isinstance(right, dict) and isinstance(result, dict):
        return set(result) == set(right) and all(agrees(result[k], v) for k, v in right.items())
    if isinstance(right, list) and isinstance(result, list):
        return len(result) == len(right) and all(agrees(g, r) for g, r in zip(result, right, strict=True))
    return bool(result == right) and type(result) is type(right)


def _through(steps: dict[str, Any], case: Case, value: Any) -> Any:
    for reason, how in steps.items():
        value = changed(reason, how, case, value)
    return value


def changed(reason: str, how: Any, case: Case, value: Any) -> Any:
    """Return a result as one difference changes it."""
    if how == "rule":
        return RULES[reason](case, value)
    if "as" in how:
        (value,) = (v for v in expected(CASES[how["as"]]) if v != REFUSED)
        return value
    if "words" in how:
        return _reworded(value, how["words"])
    if "parts" in how:
        return _each_parts(value, lambda _: how["parts"])
    return how.get("gives", how)


def _reworded(value: Any, words: dict[str, str]) -> Any:
    if isinstance(value, str):
        for old, new in words.items():
            value = value.replace(old, new)
    if isinstance(value, list):
        return [_reworded(v, words) for v in value]
    return {k: _reworded(v, words) for k, v in value.items()} if isinstance(value, dict) else value


# Multimodal results


def _each_parts(value: Any, change: Callable[[list[Any]], Any]) -> Any:
    """Return a multimodal result with its lists of content parts changed."""

    def told(item: Any) -> Any:
        if isinstance(item, str):
            return item
        return {
            k: change(v) if k in ("prompt_mm", "prompt", "content") and isinstance(v, list) else v
            for k, v in item.items()
        }

    return {**value, **{key: [told(i) for i in value[key]] for key in ("item", "api", "messages")}}


def _skeletons(case: Case) -> dict[str, Any]:
    """Return the content part skeletons of a multimodal template by part type."""
    (mm,) = (i["prompt_mm"] for i in case["in"]["cfg"]["template"]["round"] if "prompt_mm" in i)
    return {skeleton["type"]: skeleton for skeleton in mm.values()}


def _url(part: Any) -> str:
    held = part[part["type"]]
    return held["url"] if isinstance(held, dict) else held


def _own_form(case: Case, value: Any) -> Any:
    def named(part: Any) -> Any:
        if part["type"] == "text":
            return part
        prefix = _url(_skeletons(case)[part["type"]]).partition("{")[0]
        return _reworded(part, {_url(part): _url(part).removeprefix(prefix)})

    return _each_parts(value, lambda parts: [named(p) for p in parts])


def _text_after_media(case: Case, value: Any) -> Any:
    text = _reworded(_skeletons(case)["text"], {"{question}": ""})
    return _each_parts(value, lambda parts: [*parts, text])


def _wire_url(_case: Case, value: Any) -> Any:
    def change(parts: list[Any]) -> list[Any]:
        return [p if p["type"] == "text" else {**p, p["type"]: {"url": _url(p)}} for p in parts]

    return {**_each_parts(value, change), "item": value["item"]}


def _text_alone(_case: Case, value: Any) -> Any:
    def change(parts: list[Any]) -> Any:
        return parts[0]["text"] if [p["type"] for p in parts] == ["text"] else parts

    return {**_each_parts(value, change), "item": value["item"]}


def _holds_media(_case: Case, value: Any) -> Any:
    return {
        **value,
        "is_mm": any(not isinstance(m["content"], str) and _media_in(m["content"]) for m in value["messages"]),
    }


def _media_in(parts: list[Any]) -> list[str]:
    return [p["type"].removesuffix("_url") for p in parts if p["type"] != "text"]


def _media_in_strings(_case: Case, value: Any) -> Any:
    texts = []
    for item in value["item"]:
        parts = item if isinstance(item, str) else item.get("prompt_mm", item.get("prompt"))
        if isinstance(parts, list) and _media_in(parts):
            return {**value, "lm": {"error": "PromptError", "says": f"media_placeholder={{'{_media_in(parts)[0]}'"}}
        texts.append(parts if isinstance(parts, str) else "".join(p["text"] for p in parts))
    return {**value, "lm": _lines(texts)}


# Results of prompts and of their parsing


def _rows(value: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the results of a pipeline: one a row, or one a label of a row."""
    for row in value:
        yield from [row] if "prompt" in row else row.values()


def _per_row(change: Callable[[Case, dict[str, Any]], dict[str, Any]]) -> Rule:
    def rule(case: Case, value: Any) -> Any:
        copy = json.loads(json.dumps(value))
        for row in _rows(copy):
            row.update(change(case, row))
        return copy

    return rule


def _lines(texts: list[str]) -> str:
    """Join texts by line breaks: the empty ones give none, but that one at the head leaves its line break."""
    return ("\n" if texts and not texts[0] else "") + "\n".join(t for t in texts if t)


def _said(item: Any) -> str:
    return item if isinstance(item, str) else item.get("begin", "") + item["prompt"] + item.get("end", "")


def _spliced(case: Case, row: dict[str, Any]) -> dict[str, Any]:
    retriever = case["in"]["retriever"]
    between = ("", retriever.get("ice_separator", "\n"), retriever.get("ice_eos_token", "\n"))
    return {"prompt": [i for i in row["prompt"] if i not in between]}


def _affixes(_case: Case, row: dict[str, Any]) -> dict[str, Any]:
    return {"parsed": _lines([_said(i) for i in row["prompt"]])}


def _roles(_case: Case, row: dict[str, Any]) -> dict[str, Any]:
    spoken = row["prompt"][:-1] if row["prompt"][-1]["role"] == "BOT" else row["prompt"]  # there the model speaks
    return {"messages": [{"role": ROLES[i["role"]], "content": _said(i)} for i in spoken]}


def _roles_kept(case: Case, value: Any) -> Any:
    return {**value, "nometa": value["api"]} if case["op"] == "mm.pipeline" else _per_row(_roles)(case, value)


def _meta_begin(_case: Case, value: Any) -> Any:
    if value and isinstance(value[0], str):
        text, first, *rest = value
        return [{**first, "prompt": f"{text}\n{first['prompt']}"}, *rest]
    return _per_row(lambda case, row: {"parsed": _meta_begin(case, row["parsed"])})(_case, value)


def _loose_text(case: Case, value: Any) -> Any:
    """Join the one loose text of a prompt to the message after it, or to the last message where none follows."""
    if case["op"] == "pipeline":
        return _per_row(_loose_in_row)(case, value)
    return _joined(plain(case["in"]["prompt"]), value, "prompt")


def _loose_in_row(_case: Case, row: dict[str, Any]) -> dict[str, Any]:
    until = next(n for n, i in enumerate(row["prompt"]) if isinstance(i, str))
    rest = [i for i in row["prompt"][until + 1 :] if not isinstance(i, str)]  # a text of the end is not sent
    prompt = [*row["prompt"][: until + 1], *rest]
    return {
        "parsed": _joined(prompt, row["parsed"], "prompt"),
        "messages": _joined(prompt, row["messages"], "content"),
    }


def _joined(prompt: list[Any], messages: list[Any], key: str) -> list[Any]:
    (place,) = (n for n, item in enumerate(prompt) if isinstance(item, str))
    after = place + 1 < len(prompt)
    out = list(messages)
    said = out[place if after else -1]
    pair = (prompt[place], said[key]) if after else (said[key], prompt[place])
    out[place if after else -1] = {**said, key: "\n".join(pair)}
    return out


def _no_empty_message(_case: Case, value: Any) -> Any:
    return [{**m, "prompt": m["prompt"].removesuffix("\n")} for m in value if m["prompt"]]


RULES: dict[str, Rule] = {
    "own-form": _own_form,
    "text-after-media": _text_after_media,
    "wire-url": _wire_url,
    "text-alone": _text_alone,
    "roles-kept": _roles_kept,
    "media-in-strings": _media_in_strings,
    "holds-media": _holds_media,
    "spliced": _per_row(_spliced),
    "affixes": _per_row(_affixes),
    "meta-begin": _meta_begin,
    "loose-text": _loose_text,
    "no-empty-message": _no_empty_message,
}
"""The differences that follow from upstream's result, by the reason they carry out."""
