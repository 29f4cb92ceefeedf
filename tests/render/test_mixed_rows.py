"""Rows of many shapes within one file, odd values among them: with and without forms a run gives the same."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from form_rows import lines_of, messages_of, template
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmprompt import load_task
from mmprompt.render.builder import FailedRow, RequestBuilder
from mmprompt.render.media import media_of
from mmprompt.render.request import RequestMaker
from mmprompt.targets.wire_json import json_body, keyed

ROOT = Path(__file__).parents[2] / "fixtures" / "tour"
TARGETS = ("vllm", *[pytest.param(name, marks=pytest.mark.slow) for name in ("openai", "anthropic", "gemini", "hf")])
GIF = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
Row = dict[str, Any]

plain = st.sampled_from(["What is it?", "cat", "a dog", "100% é世", 'Which "one"?\n'])
odd_texts = st.one_of(
    st.sampled_from(
        ["", " ", "\u2003", "\n", "A. cat", "B. dog", "[1, 2]", '["a"]', "{hint}", "%s", "a\0b", "\ud800", "<image>", "nan", "5",
         "a < b", "<ais_image_start>x", "<AIS_TEXT_START>x<AIS_CONTENT_TAG>", "</E>", "\u2028"]
    ),
    st.text(max_size=6),
)  # fmt: skip
texts = st.one_of(plain, plain, plain, odd_texts)
sources = st.one_of(
    st.sampled_from(["media/coffee.jpg", "media/cat.webp", "https://a.example/b.jpg", "https://a.example/c.png?d=%20"]),
    st.sampled_from(
        ["media/missing.jpg", "../tour.csv", "media", "tour.csv", f"data:image/png;base64,{GIF}", GIF, "HTTPS://a.example/d", "s3://b/x",
         "https://u@a.example/x", "file://media/coffee.jpg", " media/coffee.jpg", "", " ", "media/coffee.jpg\n", "data:,x"]
    ),
)  # fmt: skip
numbers = st.one_of(st.integers(-3, 3), st.integers(), st.sampled_from([10**20, 2**63]))
floats = st.one_of(st.floats(), st.sampled_from([math.nan, 1e16, 1e-7, -0.0, 2.0]))
scalars = st.one_of(texts, numbers, floats, st.none(), st.booleans(), sources)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "text", "url", "path", "bytes", "type", "A", "B"]), inner, max_size=2),
    ),
    max_leaves=4,
)
choice_lists = st.lists(texts, max_size=4)
options = st.one_of(
    choice_lists,
    choice_lists,
    choice_lists.map(lambda found: {"text": found, "label": list("ABCD"[: len(found)])}),
    choice_lists.map(lambda found: dict(zip("ABCD", found, strict=False))),
    choice_lists.map(lambda found: [{"label": "ABCD"[n], "text": text} for n, text in enumerate(found)]),
    choice_lists.map(lambda found: [f"{'ABCD'[n]}. {text}" for n, text in enumerate(found)]),
    choice_lists.map(json.dumps),
    st.lists(st.one_of(numbers, floats, texts, st.none()), max_size=4),
)
parts = st.one_of(
    sources.map(lambda source: {"type": "image_url", "image_url": {"url": source, "detail": "low"}}),
    texts.map(lambda text: {"type": "text", "text": text}),
    sources.map(lambda source: {"bytes": None, "path": source}),
)
tagged = st.lists(
    st.one_of(
        texts.map(lambda t: ("TEXT", t)), sources.map(lambda s: ("IMAGE", s)), sources.map(lambda s: ("AUDIO", s))
    ),
    max_size=3,
).map(lambda pairs: "".join([f"<AIS_{kind}_START>{text}<AIS_CONTENT_TAG>" for kind, text in pairs]))
media = st.one_of(
    sources, sources, sources, st.lists(sources, max_size=3), st.lists(st.one_of(sources, parts, scalars), max_size=2)
)
ids = st.one_of(st.integers(0, 99), st.uuids().map(str), floats, scalars)
SHAPES = [
    {"id": ids, "question": texts, "image": media, "answer": scalars},
    {"id": ids, "content": tagged, "answer": texts},
    {"question": texts, "hint": texts, "options": options, "answer": texts},
    {"id": ids, "question": texts, "A": texts, "B": texts, "C": st.one_of(texts, floats)},
    {"qid": ids, "images": st.lists(sources, max_size=3), "question": texts, "note": values},
    {"id": ids, "question": st.lists(texts, max_size=3), "answer": st.lists(texts, max_size=3), "image": media},
    {"id": ids, "question": values, "content": st.one_of(tagged, values)},
]


@st.composite
def mixed(draw: st.DrawFn) -> list[Row]:
    """Draw rows of two or three shapes, a value of another kind here and there, and a column that is missing."""
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    found = []
    for _ in range(draw(st.integers(2, 16))):
        row = draw(st.fixed_dictionaries(draw(st.sampled_from(shapes))))
        if not draw(st.integers(0, 5)):
            row[draw(st.sampled_from(sorted(row)))] = draw(values)
        if not draw(st.integers(0, 8)):
            del row[draw(st.sampled_from(sorted(row)))]
        found.append(row)
    return found


SAYS = {"role": "HUMAN", "prompt": "{question}\n{options}{hint}"}
MEDIA = {
    "role": "HUMAN",
    "prompt_mm": {
        "image": {"type": "image_url", "image_url": {"url": "file://{image}", "detail": "low"}},
        "text": {"type": "text", "text": "{question} ({hint})"},
    },
}
REPLY = {"role": "BOT", "prompt": "{answer}"}
SHOWN = {"retriever": {"type": "FixKRetriever", "fix_id_list": [0, 1]}}
TURNS = {"inferencer": {"type": "MultiTurnGenInferencer", "infer_mode": "every_with_gt"}}
LABELS = {"A": {"round": [SAYS]}, "B": {"round": [SAYS, REPLY]}}
INFER: dict[str, Row] = {
    "none": {},
    "dialogue": template("PromptTemplate", {"begin": [{"role": "SYSTEM", "prompt": "{hint}"}], "round": [SAYS, REPLY, SAYS]}),
    "media": template("MMPromptTemplate", {"round": [MEDIA]}),
    "jinja": template("PromptTemplate", {"round": [{"role": "HUMAN", "prompt": {"jinja": "{{ question }}{{ row.note }}"}}]}),
    "turns": {**template("MultiTurnPromptTemplate", {"round": [MEDIA, REPLY]}), **TURNS},
    "labels": {**template("PromptTemplate", LABELS), "inferencer": {"type": "PPLInferencer"}},
    "shots": {
        "ice_template": {"type": "MMPromptTemplate", "template": {"round": [MEDIA, REPLY]}},
        "prompt_template": {
            "type": "MMPromptTemplate",
            "template": {"begin": ["</E>"], "round": [MEDIA]},
            "ice_token": "</E>",
        },
        "inferencer": {"type": "GenInferencer"},
        **SHOWN,
    },
}  # fmt: skip
TRAIN = [
    {"question": f"shot {n}", "hint": "h", "image": name, "answer": "cup"}
    for n, name in enumerate(["media/coffee.jpg", "https://a.example/t.jpg"])
]


FIRST = {
    "id": "first",
    "question": "What?",
    "hint": "h",
    "image": "media/cat.webp",
    "options": ["a", "b"],
    "answer": "x",
}


def sent(task: Any, target: str, *, formed: bool) -> list[Any]:
    """Return what each request of a task is and says, and the error of each row without one."""
    builder = RequestBuilder(task, target, formed=formed)
    maker, found = RequestMaker(builder), list[Any]()
    for row in task.samples():
        made = builder.prepare(row)
        if isinstance(made, FailedRow):
            found.append((str(made.error), made.error.code, made.error.where))
            continue
        for request in made.requests:
            read = [repr(part) for part in media_of(request.wire)]
            found.append((*request[1:], read, json_body(dict(keyed(request.wire)))))
        if target != "hf":
            found += [(r.body(), repr(r.id), r.answers, r.choices, r.where, r.notes, r.media) for r in maker.of(made)]
    return found


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", INFER)
@settings(max_examples=max(10, settings().max_examples // 3), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=mixed(), mode=st.sampled_from(["inline", "inline", "file", "keep"]), missing=st.sampled_from(["keep", "error"])
)
def test_rows_of_many_shapes_are_the_same_both_ways(
    name: str, target: str, rows: list[Row], mode: str, missing: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    file.write_text("".join([json.dumps(row) + "\n" for row in [FIRST, *rows]]))
    config: Row = {
        "model": {"generation": {"max_tokens": 9}},
        "media": {"mode": mode},
        "reader_cfg": {"missing": missing},
    }
    if INFER[name]:
        config["infer_cfg"] = INFER[name]
    else:
        del config["reader_cfg"]
    (file.parent / "train.jsonl").write_text("".join([json.dumps(row) + "\n" for row in TRAIN]))
    (file.parent / "media").mkdir()
    for picture in ("coffee.jpg", "cat.webp"):
        (file.parent / "media" / picture).write_bytes((ROOT / "media" / picture).read_bytes())
    dataset = {"path": str(file), **({"train": str(file.parent / "train.jsonl")} if name == "shots" else {})}
    task = load_task({"dataset": dataset, **config})
    assert lines_of(task, target, formed=True) == lines_of(task, target, formed=False)
    assert repr(sent(task, target, formed=True)) == repr(sent(task, target, formed=False))
    if task.mode == "gen" and task.assembly is not None:
        assert messages_of(task, formed=True) == messages_of(task, formed=False)
