"""Tasks and datasets by their settings: ``reader_cfg``, ``media``, roles of columns, ranges, and configs of other runners."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import corpus_chats
import corpus_rows
from corpus_chats import media_part
from corpus_chats import turns as chat_turns
from corpus_media import photographs, source
from corpus_rows import ROWS, flat, numbered, tagged, with_choices
from corpus_tasks import BOT, IMAGE, META, SYSTEM, TEXT, looked_at, loose, question, task
from corpus_values import Made, Row, drawn, json_lines, json_text, odd_value, phrase, text

MEDIA = {"round": [{"role": "HUMAN", "prompt_mm": {"image": IMAGE, "text": TEXT}}, BOT]}


def reader_settings(draw: Random, n: int) -> Made:
    """What ``reader_cfg`` says of columns."""
    settings: tuple[Row, ...] = (
        {"tagged_columns": ["story"]}, {"optional_columns": ["hint", "note"]}, {"literal_slots": ["x", "y", "hint"]}, {"missing": "keep"},
        {"output_column": "gold"}, {"output_column": "", "optional_columns": ["hint"]}, {"input_columns": ["question", "image"]}, {"test_range": "[3:20]", "output_column": "answer"},
    )  # fmt: skip

    def row(draw: Random) -> Row:
        made: Row = {
            **flat(draw, "url"),
            "hint": draw.choice((phrase(draw), None, "")),
            "gold": text(draw),
            "story": tagged(draw, draw.choice(("it", "t", "tit"))),
        }
        for name in draw.sample([*made], draw.choice((0, 0, 1))):
            del made[name]
        return made

    words = (
        "{story}",
        "{question} {hint} {note}",
        "\\frac{x}{y} {hint} {question}",
        "{question} {hint} {nothing} {0}",
        "{question} = {gold} {answer}",
    )[min(n, 4)]
    shown: Row = {"text": {"type": "text", "text": words}, "image": IMAGE}
    template: Any = (
        {"type": "MMPromptTemplate", "template": {"round": [{"role": "HUMAN", "prompt_mm": shown}]}}
        if n % 8 in (0, 6)
        else {"template": words}
    )
    return task(draw, n, drawn(draw, [row], ROWS), {"prompt_template": template}, reader_cfg=settings[n % 8])


def slots(draw: Random, n: int) -> Made:
    """Slots whose columns are missing in some rows, in all, or hold what is no text."""
    words = (
        "{question} {hint}",
        "{image} {question}",
        "{options}\n{question}",
        "{image!s}: {question}",
        "{Question} {hint}",
        "{question} {answer} {more}",
        "{a b}{é}",
        "{hint}",
    )[n % 8]

    def odd(draw: Random) -> Row:
        made = question(draw)
        made[draw.choice(("question", "hint", "image", "a b", "é", "options"))] = odd_value(draw)
        return made

    makers = [question, partial(flat, how="jpg"), loose, partial(with_choices, form="list"), odd]
    template: Any = (
        words
        if n % 2
        else {
            "template": {"round": [{"role": "HUMAN", "prompt": words}, BOT], "begin": [{**SYSTEM, "prompt": "{hint}"}]}
        }
    )
    return task(
        draw,
        n,
        drawn(draw, makers, ROWS),
        {"prompt_template": template},
        reader_cfg={"missing": "keep"} if n % 4 == 3 else {},
    )


def media_modes(draw: Random, n: int) -> Made:
    """Media sent by name, by address and as written."""
    mode = ("file", "url", "keep", "inline")[n % 4]
    makers = [
        looked_at,
        partial(flat, how="url"),
        partial(flat, how="data"),
        partial(flat, how="file"),
        lambda draw: {**looked_at(draw), "image": source(draw, odd=0.5)},
    ]
    infer = {"prompt_template": {"type": "MMPromptTemplate", "template": MEDIA}} if n < 4 else {}
    makers += [] if n < 4 else [lambda draw: {"content": tagged(draw, "tit")}]
    return task(draw, n, drawn(draw, makers, ROWS), infer, media={"mode": mode})


def media_limits(draw: Random, n: int) -> Made:
    """Limits of what a request may hold, and policies."""
    limits: tuple[Row, ...] = (
        {"max_bytes": 120},
        {"max_request_media": 2},
        {"max_request_bytes": 600},
        {"policy": "hostile"},
    )

    def row(draw: Random) -> Row:
        return {
            "image": [source(draw, odd=0.05) for _ in range(draw.randint(0, 4))],
            "question": text(draw),
            "answer": phrase(draw),
        }

    infer = {"prompt_template": {"type": "MMPromptTemplate", "template": MEDIA}} if n % 2 else {}
    return task(draw, n, drawn(draw, [row], ROWS // 2), infer, media=limits[n // 2 % 4])


def changed_media(draw: Random, n: int) -> Made:
    """Media that are scaled, converted and cut. They are decoded, so there are few."""
    changes: tuple[Row, ...] = (
        {"max_side": 64}, {"fit": True, "frames": 2, "max_side": 32}, {"image_mode": "L", "image_format": "png"}, {"audio_rate": 8000, "seconds": 0.5, "max_side": 48},
        {"upright": True, "max_pixels": 2000}, {"fit": True}, {"image_format": "jpeg", "quality": 60, "background": [9, 9, 9]}, {"times": [0.2, 0.5], "max_side": 40},
    )  # fmt: skip
    names = [*photographs()]

    def row(draw: Random) -> Row:
        name = draw.choice(names)
        column = "audio" if name.endswith("wav") else "video" if name.endswith("mp4") else "image"
        return {
            column: draw.choice((name, name, [name, "media/p3.png"] if column == "image" else name)),
            "question": phrase(draw),
        }

    rows = [row(draw) for _ in range(8)]
    made = task(draw, n, rows, {}, media={**changes[n % 8], **({"isolate": True} if n == 2 else {})})
    return made._replace(files={**made.files, **photographs()}, decodes=True)


def other_names(draw: Random, n: int) -> Made:
    """Columns that ``--map`` and ``dataset.columns`` name, second files, and the options of the command line."""

    def row(draw: Random) -> Row:
        made: Row = {
            "nr": draw.randint(0, 99),
            "pic": source(draw),
            "Q": text(draw),
            "label": phrase(draw),
            "opts": [phrase(draw), phrase(draw)],
            "sys": phrase(draw),
        }
        return {**made, "pic": None} if draw.random() < 0.1 else made

    def short(draw: Random) -> Row:
        made = row(draw)
        del made[draw.choice([*made])]
        return made

    roles = {"pic": "image", "Q": "question", "label": "answer", "nr": "id", "opts": "choices", "sys": "system"}
    roles = {k: v for k, v in roles.items() if n % 3 or v in ("image", "question")}
    rows = drawn(draw, [row, row, *([short] if n % 2 else [])], ROWS)
    words = ["rows.jsonl", *(f"--map={column}={role}" for column, role in roles.items())]
    extra = (
        ["--limit", "20"],
        ["--strict"],
        ["--media", "keep"],
        ["--strict-notes"],
        ["--workers", "2"],
        ["--policy", "trusted"],
        [],
        ["--media-root", "media"],
    )[n % 8]
    dataset: Row = {"path": "rows.jsonl", "columns": roles}
    files = {"rows.jsonl": json_lines(rows, draw)}
    if n % 4 == 2:
        gold = [{"nr": number, "gold": phrase(draw), "extra": number} for number in range(0, 99, 2)]
        files["gold.jsonl"] = json_lines(gold, draw)
        dataset["join"] = ["gold.jsonl:nr"]
        words += ["--join", "gold.jsonl:nr"]
    return Made(files, {"dataset": dataset}, (*words, *extra))


def meta_templates(draw: Random, n: int) -> Made:
    """A meta template without another template: over tags, columns and chats."""

    def row(draw: Random) -> Row:
        return {"content": tagged(draw, draw.choice(("it", "t", "tit", "at")))}

    def chat(draw: Random) -> Row:
        return {"messages": chat_turns(draw, draw.randint(1, 5), media_part)}

    makers = (
        [row],
        [chat],
        [partial(flat, how="url"), partial(flat, how="jpg")],
        [partial(with_choices, form="list"), question],
    )[n % 4]
    return task(draw, n, drawn(draw, makers, ROWS), {}, model={"meta_template": META[(n // 2 + n) % len(META)]})


UPSTREAM = """
from opencompass.openicl.icl_prompt_template import PromptTemplate
from opencompass.openicl.icl_retriever import FixKRetriever, ZeroRetriever
from opencompass.openicl.icl_inferencer import ChatInferencer, GenInferencer, PPLInferencer
from ais_bench.benchmark.openicl.icl_prompt_template.icl_prompt_template_mm import MMPromptTemplate
from opencompass.datasets import SomeDataset

some_datasets = [dict(abbr='some', type=SomeDataset, path='made', reader_cfg=dict(input_columns=['question'], output_column='answer'), infer_cfg=dict(
    prompt_template=dict(type=%s, template=%r%s),
    %sretriever=dict(type=%s), inferencer=dict(type=%s, max_out_len=32)))]
"""


def upstream(draw: Random, n: int) -> Made:
    """Configs of OpenCompass and AISBench, whose slots without a column stay as they are written."""
    kind, template, token, ice, retriever, inferencer = (
        ("PromptTemplate", "{question} {hint} {nothing}\n{answer}", "", "", "ZeroRetriever", "GenInferencer"),
        ("PromptTemplate", {"round": [{"role": "HUMAN", "prompt": "{question}"}, BOT], "begin": ["</E>"]}, ", ice_token='</E>'",
         "ice_template=dict(type=PromptTemplate, template='{question} {answer}'), ", "FixKRetriever, fix_id_list=[0, 1]", "GenInferencer"),
        ("MMPromptTemplate", MEDIA, "", "", "ZeroRetriever", "GenInferencer"),
        ("PromptTemplate", {"A": "{question} {hint}", "B": "{question} B"}, "", "", "ZeroRetriever", "PPLInferencer"),
        ("PromptTemplate", {"round": [{"role": "HUMAN", "prompt": "{question}"}, BOT]}, "", "", "ZeroRetriever", "ChatInferencer"),
    )[n % 5]  # fmt: skip
    config = UPSTREAM % (kind, template, token, ice, retriever, inferencer)
    config = config.replace(", max_out_len=32", "") if inferencer == "PPLInferencer" else config

    def chat(draw: Random) -> Row:
        return {
            "question": draw.choice(
                (chat_turns(draw, draw.randint(1, 7), None), chat_turns(draw, 3, None), [phrase(draw)], phrase(draw))
            ),
            "answer": "x",
        }

    rows = drawn(
        draw, [(looked_at if n % 5 == 2 else chat if n % 5 == 4 else question), *([loose] if n > 4 else [])], ROWS
    )
    data = json_lines(numbered(rows, "text", draw), draw)
    train = json_lines([question(draw) for _ in range(3)], draw)
    words = ("config.py", "--dataset", "rows.jsonl", "--train", "train.jsonl")
    return Made(
        {"rows.jsonl": data, "train.jsonl": train, "config.py": config.encode()},
        "config.py",
        words,
        dataset={"path": "rows.jsonl", "train": "train.jsonl"},
    )


HARNESS = """
task: some
dataset_path: json
dataset_kwargs: {data_files: {test: rows.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}{%% if hint is defined and hint %%} ({{hint}}){%% endif %%}"
doc_to_target: answer
description: "%s"
num_fewshot: %d
fewshot_config: {sampler: first_n, samples: [{question: "1+1?", answer: "2", hint: ""}, {question: "2+2?", answer: "4", hint: "even"}]}
generation_kwargs: {until: ["\\n"], max_gen_toks: 16}
"""


def harness(draw: Random, n: int) -> Made:
    """Task files of lm-eval, with texts by Jinja and examples."""
    config = HARNESS % (("", "Answer briefly. ")[n % 2], n % 3)
    rows = drawn(draw, [question, *([loose] if n % 2 else [])], ROWS // 2)
    return Made({"rows.jsonl": json_lines(rows, draw), "some.yaml": config.encode()}, "some.yaml")


def published(draw: Random, n: int) -> Made:
    """Rows as MathVista, MedMCQA, inspect-ai, ScienceQA and others publish them."""
    answer = draw.choice(("A", 1, "x"))
    makers: tuple[Any, ...] = (
        lambda draw: {"pid": str(draw.randrange(999)), "query": text(draw), "question": phrase(draw), "image": source(draw), "answer": phrase(draw),
                      "choices": None, "question_type": "free_form", "answer_type": "text", "precision": None, "unit": None, "metadata": {}},
        lambda draw: {"id": "m", "question": text(draw), "opa": phrase(draw), "opb": phrase(draw), "opc": phrase(draw), "opd": phrase(draw), "cop": draw.randint(0, 3)},
        lambda draw: {"input": text(draw), "target": phrase(draw), "choices": [phrase(draw), phrase(draw)]},
        lambda draw: {"question": text(draw), "choices": {"text": [phrase(draw), phrase(draw)], "label": ["A", "B"]}, "answerKey": answer},
        lambda draw: {"input": chat_turns(draw, 1, None), "target": [phrase(draw), phrase(draw)]},
        lambda draw: {"id": "validation_X_1", "question": f"<image 1> {text(draw)}", "options": repr([phrase(draw), phrase(draw)]), "image_1": source(draw),
                      "image_2": None, "answer": "A", "question_type": "multiple-choice", "subfield": "s"},
        lambda draw: {"question": text(draw), "choices": [phrase(draw), phrase(draw)], "answer": 1, "hint": draw.choice(("", phrase(draw))), "image": None,
                      "lecture": "", "solution": "", "task": "t", "grade": "g"},
        lambda draw: {"question_id": draw.randrange(999), "question": text(draw), "image_id": "p1", "answers": [phrase(draw)] * 3, "image": source(draw)},
    )  # fmt: skip
    rows = drawn(
        draw,
        [makers[n % 8], *([lambda draw: {**makers[n % 8](draw), "question": odd_value(draw)}] if n % 2 else [])],
        ROWS // 2,
    )
    return Made({"rows.jsonl": json_lines(rows, draw)}, "rows.jsonl")


def other_files(draw: Random, n: int) -> Made:
    """Templates over tables, arrays and published layouts."""
    files = (
        corpus_rows.tables, corpus_rows.mm_custom, corpus_rows.mmbench, corpus_rows.json_files, corpus_rows.parquet_rows, corpus_rows.tables,
        corpus_chats.llava, corpus_chats.sharegpt,
    )  # fmt: skip
    made = files[n](draw, n)
    words = ("{question}", "Q: {question}")[n % 2]
    template: Any = {
        "type": "MMPromptTemplate",
        "template": {"round": [{"role": "HUMAN", "prompt_mm": {"image": IMAGE, "text": words}}, BOT]},
    }
    if n == 5:
        template = {"template": {"begin": [SYSTEM], "round": [{"role": "HUMAN", "prompt": "{question}"}, BOT]}}
    config = {
        "dataset": {"path": made.source},
        "infer_cfg": {"prompt_template": template},
        "model": {"model": "some-model"},
    }
    return made._replace(
        files={**made.files, "task.json": json_text(config).encode()}, source="task.json", words=("task.json",)
    )


KINDS = {
    function.__name__: function
    for function in (
        reader_settings, slots, media_modes, media_limits, changed_media, other_names, meta_templates, upstream, harness, published, other_files,
    )
}  # fmt: skip
