"""Tasks: rows with a template of text, of media, of messages, of labels, of turns, and with examples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

from corpus_media import PICTURES, data_uri, jpeg, source
from corpus_rows import ROWS, flat, numbered, tagged, with_choices
from corpus_values import Made, Row, drawn, json_lines, json_text, odd_value, phrase, text

IMAGE = {"type": "image_url", "image_url": {"url": "file://{image}"}}
AUDIO = {"type": "audio_url", "audio_url": {"url": "file://{audio}"}}
VIDEO = {"type": "video_url", "video_url": {"url": "file://{video}"}}
TEXT = {"type": "text", "text": "{question}"}
PLACEHOLDERS = {"image": "<image>", "audio": "<audio>", "video": "<video>"}
BOT = {"role": "BOT", "prompt": "{answer}"}
SYSTEM = {"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Answer in a few words."}

CALLS = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]

META: Sequence[Any] = (
    None,
    {"round": [{"role": "HUMAN", "api_role": "user"}, {"role": "BOT", "api_role": "assistant", "generate": True}]},
    {
        "begin": "<s>", "end": "</s>", "eos_token_id": 2,
        "round": [{"role": "HUMAN", "begin": "<|user|>", "end": "<|end|>\n"}, {"role": "BOT", "begin": "<|bot|>", "end": "<|end|>\n", "generate": True}],
        "reserved_roles": [{"role": "SYSTEM", "begin": "<|system|>", "end": "<|end|>\n"}],
    },
    {
        "begin": [{"role": "SYSTEM", "prompt": "You look closely."}],
        "round": [{"role": "HUMAN", "begin": "[H] ", "end": " [/H]"}, {"role": "THOUGHT", "api_role": "assistant", "prompt": "Hm."}, {"role": "BOT", "generate": True}],
        "reserved_roles": [{"role": "SYSTEM", "api_role": "system", "begin": "[S] "}],
    },
    [{"role": "system", "content": "Be brief."}],
    {"round": ["- ", {"role": "HUMAN", "begin": ["<h>", 7]}, " / ", {"role": "BOT", "end": [8, "</b>"], "generate": True}], "end": [9]},
)  # fmt: skip
"""Meta templates: none, roles of an API, a string with all of its keys, default prompts, messages, strings and token ids."""


def task(
    draw: Random, n: int, rows: Sequence[Row], infer: Row, *, train: Sequence[Row] = (), ids: str = "", **sections: Any
) -> Made:
    """Return a task with its rows, as JSON, as YAML or as a mapping in Python."""
    files = {"rows.jsonl": json_lines(numbered(rows, ids or ("text", "number", "none", "mixed")[n % 4], draw), draw)}
    dataset: Row = {"path": "rows.jsonl", **sections.pop("dataset", {})}
    if train:
        files["train.jsonl"] = json_lines(numbered(train, "text", draw), draw)
        dataset["train"] = "train.jsonl"
    model = {"model": "some-model", "media_placeholder": PLACEHOLDERS, **sections.pop("model", {})}
    config = {"dataset": dataset, **({"infer_cfg": infer} if infer else {}), "model": model, **sections}
    name = f"task.{('json', 'yaml')[n % 2]}"
    return Made({**files, name: json_text(config).encode()}, config if n % 5 == 4 else name, (name,))


def question(draw: Random) -> Row:
    """Return a row of texts."""
    return {"question": text(draw, 0.2), "hint": text(draw, 0.1), "answer": text(draw, 0.1)}


def dotted(draw: Random) -> Row:
    """Return such a row with columns whose names look like paths, numbers and conversions."""
    names = ("a.b", "0", "question!s", "messages[0].content", "", 'q"uote', "row", "é", "{x}")
    return {**question(draw), **{name: text(draw) for name in draw.sample(names, draw.randint(1, 9))}}


def loose(draw: Random) -> Row:
    """Return such a row that lacks a column, or holds a value of another type."""
    row = question(draw)
    name = draw.choice([*row])
    if draw.random() < 0.4:
        del row[name]
    else:
        row[name] = odd_value(draw)
    return {**row, "more": 1} if draw.random() < 0.2 else row


TEXTS = (
    "Q: {question}\nA: {answer}", "{hint}\n\n{question}", "{question}", "Hint: {hint} {0} {a.b} {question!s}\n{answer}", "{question}{question}{hint}",
    "constant", "\n{question}\n", "{options}\n{question}",
)  # fmt: skip


def text_templates(draw: Random, n: int) -> Made:
    """A text with slots."""
    makers = [question, question, *([loose] if n % 2 else []), *([loose] if n % 4 == 3 else [])]
    makers = [partial(with_choices, form=form) for form in ("columns", "list", "lettered")] if n == 7 else makers
    makers += [dotted] if n == 3 else []
    template: Any = TEXTS[n % len(TEXTS)]
    infer = {
        "prompt_template": template if n % 3 and "{" in template else {"type": "PromptTemplate", "template": template}
    }
    return task(draw, n, drawn(draw, makers, ROWS), infer, model={"meta_template": META[n % 3]})


def dialogues(draw: Random, n: int) -> Made:
    """Dialogues of text: begin, round, end, roles that fall back, with each meta template."""
    forms: Sequence[Any] = (
        {"begin": [SYSTEM], "round": [{"role": "HUMAN", "prompt": "{question}"}, BOT]},
        {
            "round": [
                {"role": "HUMAN", "prompt": "{hint}"},
                {"role": "BOT", "prompt": "I see."},
                {"role": "HUMAN", "prompt": "{question}"},
                BOT,
            ]
        },
        {
            "begin": "Start. {hint}",
            "round": [{"role": "HUMAN", "prompt": "{question}", "begin": "<<", "end": ">>"}],
            "end": "End.",
        },
        {
            "round": [{"role": "HUMAN", "prompt": "{question}"}, {"role": "HUMAN", "prompt": "{hint}"}, BOT],
            "end": [{"role": "HUMAN", "prompt": "Now."}],
        },
        {
            "begin": [SYSTEM, "loose"],
            "round": [{"role": "USER", "fallback_role": "HUMAN", "prompt": "{question} {answer}"}, BOT],
        },
        {
            "round": [
                {"role": "HUMAN", "prompt": "{question}", "name": "Ann"},
                {"role": "BOT", "prompt": "", "tool_calls": CALLS},
                {"role": "TOOL", "fallback_role": "HUMAN", "prompt": "{hint}", "tool_call_id": "c1"},
                BOT,
            ]
        },
        {
            "begin": [{"role": "BOT", "prompt": "Hello."}],
            "round": [{"role": "BOT", "prompt": "{hint}"}, {"role": "HUMAN", "prompt": "{question}"}, BOT],
        },
    )
    makers = [question, *([loose] if n % 2 else [])]
    infer = {"prompt_template": {"type": "PromptTemplate", "template": forms[n % len(forms)]}}
    return task(
        draw,
        n,
        drawn(draw, makers, ROWS),
        infer,
        model={"meta_template": META[n % len(META)], "generation": {"temperature": 0, "seed": n}},
    )


def labels(draw: Random, n: int) -> Made:
    """Texts and dialogues by label, fixed or listed in the row."""
    said = {"round": [{"role": "HUMAN", "prompt": "{question} Is it {hint}?"}, {"role": "BOT", "prompt": "yes"}]}
    forms: Sequence[Any] = (
        {"a": "{question} a", "b": "{question} b {answer}"},
        {"yes": said, "no": {**said, "begin": [SYSTEM]}},
        "{question} {answer}",
    )
    inferencer: Row = {"type": "PPLInferencer"}
    rows = drawn(draw, [question, *([loose] if n % 2 else [])], ROWS)
    if n % 4 == 2:
        inferencer["labels"] = ["x", "y", 3]
    if n % 4 == 3:
        inferencer["labels_column"] = "names"
        rows = [
            {
                **row,
                "names": [text(draw) for _ in range(draw.randint(1, 5))] if draw.random() < 0.9 else odd_value(draw),
            }
            for row in rows
        ]
    template = forms[min(n % 4, 2)]
    infer = {"prompt_template": {"template": template}, "inferencer": inferencer}
    return task(draw, n, rows, infer, model={"meta_template": META[n % 3]})


def _shots(n: int, retriever: Row, *, inside: bool = False) -> Row:
    shown = "{question} => {answer}" if inside else {"round": [{"role": "HUMAN", "prompt": "{question}"}, BOT]}
    asked: Any = {"begin": [SYSTEM, "</E>"], "round": [{"role": "HUMAN", "prompt": "{question}"}, BOT]}
    if inside:
        asked = (
            "Solve.\n</E>{question} => {answer}"
            if n % 2
            else {"round": [{"role": "HUMAN", "prompt": "Look: </E> {question}"}, BOT]}
        )
    return {
        "ice_template": {"type": "PromptTemplate", "template": shown},
        "prompt_template": {"type": "PromptTemplate", "template": asked, "ice_token": "</E>"},
        "retriever": retriever,
    }  # fmt: skip


def fixed_examples(draw: Random, n: int) -> Made:
    """The same examples for each row."""
    infer = _shots(n, {"type": "FixKRetriever", "fix_id_list": [[0], [1, 3, 0], [], [2, 2]][n % 4]}, inside=n % 2 == 1)
    rows = drawn(draw, [question, *([loose] if n % 3 == 2 else [])], ROWS)
    return task(draw, n, rows, infer, train=[question(draw) for _ in range(6)], model={"meta_template": META[n % 4]})


def drawn_examples(draw: Random, n: int) -> Made:
    """Examples drawn at random by the id of the row, or those before it."""
    retrievers = (
        {"type": "RandomRetriever", "ice_num": 2},
        {"type": "SlidingWindowRetriever", "k": 3},
        {"type": "RandomRetriever", "ice_num": 9, "seed": 7},
    )
    retriever = {**retrievers[n % 3], **({"ice_separator": " | ", "ice_eos_token": " #\n"} if n % 2 else {})}
    infer = _shots(n, retriever, inside=n % 4 > 1)
    rows = drawn(draw, [question, *([loose] if n % 2 else [])], ROWS)
    train = [question(draw) for _ in range(ROWS if n % 3 == 1 else 9)] + [loose(draw)] * (n == 3) + rows[:2]
    return task(draw, n, rows, infer, train=train, model={"meta_template": META[n % 3]})


def similar_examples(draw: Random, n: int) -> Made:
    """Examples that BM25 finds."""
    infer = _shots(n, {"type": "BM25Retriever", "ice_num": 1 + n % 3}, inside=n % 2 == 1)
    train = [question(draw) for _ in range(12)]
    reader = {"input_columns": ["question", "hint"], "output_column": "answer"}
    made = task(draw, n, drawn(draw, [question], ROWS // 2), infer, train=train, reader_cfg=reader)
    return made._replace(needs="bm25s")


def nearest_examples(draw: Random, n: int) -> Made:
    """Examples whose vectors are near, those of the row itself left out."""
    infer = _shots(
        n, {"type": "TopkRetriever", "ice_num": 2, "embed": _counts, "metric": ("cosine", "inner_product")[n % 2]}
    )
    rows = drawn(draw, [question], ROWS // 2)
    config = {
        "dataset": {"rows": rows, "train_rows": [*rows[:3], *(question(draw) for _ in range(9))]},
        "infer_cfg": infer,
    }
    return Made({}, {**config, "reader_cfg": {"input_columns": ["question"]}, "model": {"model": "some-model"}}, ())


def _counts(texts: list[str]) -> list[list[int]]:
    """Return a vector of whole numbers for each text."""
    return [[text.count(letter) for letter in "aeiou "] for text in texts]


def long_examples(draw: Random, n: int) -> Made:
    """Examples that are left out while a prompt is too long, alike for all labels."""
    infer = _shots(n, {"type": "FixKRetriever", "fix_id_list": [0, 1, 2, 3]}, inside=n % 4 == 1)
    if n % 4 == 3:
        infer["prompt_template"] = {
            "template": {"a": "</E>{question} a", "b": "</E>{question} b {hint}"},
            "ice_token": "</E>",
        }
        infer["ice_template"] = "{question} {answer}"
    infer["inferencer"] = {"type": ("GenInferencer", "PPLInferencer")[n % 4 == 3], "max_seq_len": 30 + 4 * n}
    made = task(
        draw,
        n,
        drawn(draw, [question], ROWS // 2),
        infer,
        train=[question(draw) for _ in range(4)],
        model={"meta_template": META[n % 3]},
    )
    return made._replace(words=(), counts=True)


def looked_at(draw: Random, how: str = "jpg") -> Row:
    """Return a row of a picture, a list of pictures or none."""
    row = flat(draw, how)
    value = draw.choice((row["image"], row["image"], [row["image"], source(draw)], None, []))
    return {**row, "image": value}


def _media_template(n: int) -> Row:
    skeletons: Sequence[Row] = (
        {"image": IMAGE, "text": TEXT}, {"text": TEXT, "image": {"type": "image_url", "image_url": {"url": "{image}", "detail": "low"}}},
        {"image": {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,{image}"}}, "text": {"type": "text", "text": "Look: {question} ({hint})"}},
        {"text": TEXT, "image": IMAGE, "audio": AUDIO, "video": VIDEO}, {"mm_url": {"type": "image_url", "image_url": {"url": "file://{image}"}}, "text": TEXT},
        {"image": {**IMAGE, "min_pixels": 16}, "text": {**TEXT, "cache_control": {"type": "ephemeral"}}},
        {"audio": {"type": "input_audio", "input_audio": {"data": "{audio}", "format": "wav"}}, "text": TEXT},
        {"audio": {"type": "input_audio", "input_audio": {"data": "{audio}", "format": "mp3"}}, "image": IMAGE, "text": TEXT},
    )  # fmt: skip
    return {"role": "HUMAN", "prompt_mm": skeletons[n % len(skeletons)]}


def media_columns(draw: Random, n: int) -> Made:
    """Parts filled from plain columns."""

    def row(draw: Random) -> Row:
        made = {**looked_at(draw, ("jpg", "url", "data", "base64")[n % 4]), "hint": phrase(draw)}
        if n % 8 in (3, 6, 7):
            made |= {
                "audio": draw.choice((source(draw, "audio"), None)),
                "video": draw.choice((source(draw, "video"), "")),
            }
        return made

    def odd(draw: Random) -> Row:
        return {
            **row(draw),
            "image": draw.choice((source(draw, odd=0.8), [source(draw, odd=0.5)])),
            "question": draw.choice((phrase(draw), odd_value(draw))),
        }

    template = {"begin": [SYSTEM] if n % 2 else [], "round": [_media_template(n), BOT]}
    infer = {
        "prompt_template": {"type": "MMPromptTemplate", "template": template},
        "inferencer": {"type": "GenInferencer", "max_out_len": 16},
    }
    return task(
        draw,
        n,
        drawn(draw, [row, row, *([odd] if n > 3 else [])], ROWS),
        infer,
        model={"meta_template": META[n % len(META)]},
    )


def media_tags(draw: Random, n: int) -> Made:
    """Parts filled from tagged texts, in the order of the sample or of the template."""
    options: Row = ({}, {"order": "template"}, {"repeat_text": False}, {"column": "content"})[n % 4]
    patterns = ("it", "tit", "iit", "t", "i", "titi", "tt")[: 3 + n % 5]
    two = {"reader_cfg": {"tagged_columns": ["content", "hint"]}} if n in (6, 7) else {}

    def row(draw: Random, pattern: str) -> Row:
        made = {"content": tagged(draw, pattern, 0.03), "question": phrase(draw), "answer": text(draw)}
        return {**made, "hint": tagged(draw, draw.choice(("t", "it")), 0) if two else phrase(draw)}

    skeleton = {
        "text": {
            "type": "text",
            "text": ("{question}", "Q: {question} A:", "{content}", "{hint} {question}")[n // 2 % 4],
        },
        "image": IMAGE,
    }
    template = {"round": [{"role": "HUMAN", "prompt_mm": skeleton}, BOT], "begin": [SYSTEM]}
    infer = {"prompt_template": {"type": "MMPromptTemplate", "template": template, **options}}
    return task(
        draw,
        n,
        drawn(draw, [partial(row, pattern=p) for p in patterns], ROWS),
        infer,
        model={"meta_template": META[n % 3]},
        **two,
    )


def media_examples(draw: Random, n: int) -> Made:
    """Examples that have pictures of their own."""
    shown = {"round": [{"role": "HUMAN", "prompt_mm": {"image": IMAGE, "text": TEXT}}, BOT]}
    asked = {**shown, "begin": [SYSTEM, "</E>"]}
    retriever = (
        {"type": "FixKRetriever", "fix_id_list": [0, 2]},
        {"type": "RandomRetriever", "ice_num": 2},
        {"type": "SlidingWindowRetriever", "k": 4},
    )[n % 3]
    infer = {
        "ice_template": {"type": "MMPromptTemplate", "template": shown}, "retriever": retriever,
        "prompt_template": {"type": "MMPromptTemplate", "template": asked, "ice_token": "</E>"},
    }  # fmt: skip
    train = [looked_at(draw, "png") for _ in range(ROWS if n % 3 == 2 else 6)] + (
        [{"image": "media/missing.png", "question": "x", "answer": "y"}] if n % 4 == 3 else []
    )
    made = task(draw, n, drawn(draw, [looked_at], ROWS), infer, train=train, model={"meta_template": META[n % 3]})
    if n % 4 < 2:
        return made
    files = {
        name.replace("train", "deep/train"): data.replace(b'"train.jsonl"', b'"deep/train.jsonl"')
        for name, data in made.files.items()
    }
    files["deep/train.jsonl"] = files["deep/train.jsonl"].replace(b'"media/', b'"down/')
    return made._replace(files=files, source=made.words[0] if made.words else "")


def turns(draw: Random, n: int) -> Made:
    """Dialogues of several turns, in each way to ask for them, with and without pictures."""

    def row(draw: Random, odd: float = 0.0) -> Row:
        count = draw.randint(1, 6)
        made: Row = {
            "question": [text(draw) for _ in range(count)],
            "answer": [text(draw) for _ in range(count)],
            "name": phrase(draw, 2),
        }
        made["image"] = [
            draw.choice((source(draw), source(draw), None, [source(draw), source(draw)])) for _ in range(count)
        ]
        if draw.random() < odd:
            name = draw.choice([*made])
            made[name] = draw.choice((made[name][:-1], odd_value(draw), [odd_value(draw)] * count))
        return made

    asked: Row = (
        {"role": "HUMAN", "prompt_mm": {"image": IMAGE, "text": TEXT}}
        if n % 2
        else {"role": "HUMAN", "prompt": "{question}"}
    )
    template = {"begin": [{**SYSTEM, "prompt": "A lesson of {name}."}], "round": [asked, BOT]}
    mode = ("every", "every_with_gt", "last")[n % 3]
    infer = {
        "prompt_template": {"type": "MultiTurnPromptTemplate", "template": template},
        "inferencer": {"type": "MultiTurnGenInferencer", "infer_mode": mode, **({"max_out_len": 8} if n > 2 else {})},
    }  # fmt: skip
    rows = drawn(draw, [row, row, *([partial(row, odd=0.7)] if n > 4 else [])], ROWS // 2)
    return task(draw, n, rows, infer, model={"meta_template": META[n % 4]})


def raw_messages(draw: Random, n: int) -> Made:
    """Templates written as messages, with examples and the messages of a column."""
    history = {"expand_column": "history"}
    lists: Sequence[list[Any]] = (
        [{"role": "user", "content": "{question}"}],
        [
            {"role": "system", "content": "{hint}"},
            history,
            {"role": "user", "content": [{"type": "text", "text": "{question}"}, IMAGE]},
        ],
        [{"role": "system", "content": "Look."}, "</E>", {"role": "user", "content": "{question}"}],
        [
            {
                "role": "user",
                "content": [TEXT, {"type": "image_url", "image_url": {"url": "https://example.com/{hint}.png"}}],
            },
            {"role": "assistant", "content": "{answer}"},
        ],
    )

    def row(draw: Random) -> Row:
        said = [{"role": ("user", "assistant")[k % 2], "content": text(draw)} for k in range(draw.randint(0, 4))]
        return {
            **flat(draw, "jpg"),
            "hint": phrase(draw, 2),
            "history": said if draw.random() < 0.9 else odd_value(draw),
        }

    infer: Row = {"prompt_template": {"type": "RawPromptTemplate", "messages": lists[n % 4]}}
    if n % 4 == 2:
        infer["ice_template"] = {
            "type": "RawPromptTemplate",
            "messages": [{"role": "user", "content": "{question}"}, {"role": "assistant", "content": "{answer}"}],
        }
        infer["retriever"] = {"type": "RandomRetriever", "ice_num": 2}
    rows = drawn(draw, [row, *([loose] if n > 3 else [])], ROWS)
    return task(draw, n, rows, infer, train=[question(draw) for _ in range(5)] if n % 4 == 2 else ())


JINJA = (
    "{% if hint %}Hint: {{ hint }}\n{% endif %}{{ question }}", "{{ question }}{% for c in choices %}\n({{ c.letter }}) {{ c.text }}{% endfor %}",
    "{{ row['question'] | upper }} {{ answer }}", "{% for w in question.split() %}{{ loop.index }}{{ w }}{% endfor %}", "{{ missing }}", "{{ 7 // number }}",
    "{{ question ~ ' ' ~ hint }} {{ number * 3 + 1 }} {{ question.replace('a', 'b') }}", "{{ choices | map(attribute='text') | join('; ') }}{% if hint is defined %}!{% endif %}",
)  # fmt: skip


def jinja(draw: Random, n: int) -> Made:
    """Texts that Jinja fills, alone, in dialogues and in parts."""
    written = {"jinja": JINJA[n % len(JINJA)]}
    forms: Sequence[Any] = (
        {"template": written}, {"template": {"round": [{"role": "HUMAN", "prompt": written}, BOT], "begin": [SYSTEM]}},
        {"type": "MMPromptTemplate", "template": {"round": [{"role": "HUMAN", "prompt_mm": {"image": IMAGE, "text": {"type": "text", "text": written}}}]}},
    )  # fmt: skip

    def row(draw: Random) -> Row:
        made = {**looked_at(draw), "hint": draw.choice((phrase(draw), "", None)), "number": draw.randint(0, 3)}
        return {**made, "choices": [phrase(draw) for _ in range(draw.randint(0, 4))]} if draw.random() < 0.7 else made

    rows = drawn(draw, [row, row, *([loose] if n % 4 == 3 else [])], ROWS)
    reader = {"reader_cfg": {"optional_columns": ["hint"]}} if n % 3 == 0 else {}
    return task(draw, n, rows, {"prompt_template": forms[n % 3]}, **reader)


def tokens(draw: Random, n: int) -> Made:
    """Tokens in place of slots, and tokens that are removed, in texts whose values hold them too."""
    template: Any = (
        "</Q> [SEP]{hint}</E>"
        if n % 2
        else {"round": [{"role": "HUMAN", "prompt": "[SEP]</Q> {hint}"}, BOT], "begin": ["</E>"]}
    )
    prompt = {
        "type": "PromptTemplate",
        "template": template,
        "column_token_map": {"question": "</Q>"},
        "sep_token": "[SEP]",
        "ice_token": "</E>",
    }
    infer = {
        "ice_template": {"type": "PromptTemplate", "template": "</Q>: {answer}[SEP]", "column_token_map": {"question": "</Q>"}, "sep_token": "[SEP]"},
        "prompt_template": prompt, "retriever": {"type": "FixKRetriever", "fix_id_list": [0]},
    }  # fmt: skip

    def row(draw: Random) -> Row:
        return {**question(draw), "hint": draw.choice((phrase(draw), "</Q>", "[SEP] </E>", "{question}"))}

    return task(
        draw,
        n,
        drawn(draw, [row], ROWS // 2),
        infer if n % 4 < 2 else {"prompt_template": prompt},
        train=[row(draw)] * 2,
    )


def inline(draw: Random, n: int) -> Made:
    """Rows that hold their pictures, and pictures of the template's own."""
    own = {
        "type": "image_url",
        "image_url": {"url": ("https://example.com/own.png", data_uri(jpeg(1), "image/jpeg"), "media/p1.png")[n % 3]},
    }
    template = {"round": [{"role": "HUMAN", "prompt_mm": {"image": own, "text": TEXT}}, _media_template(0), BOT]}

    def row(draw: Random) -> Row:
        return {"image": data_uri(jpeg(draw.randrange(PICTURES)), "image/png"), "question": phrase(draw), "answer": 1}

    return task(
        draw,
        n,
        drawn(draw, [row, looked_at], ROWS // 2),
        {"prompt_template": {"type": "MMPromptTemplate", "template": template}},
    )


KINDS = {
    function.__name__: function
    for function in (
        text_templates, dialogues, labels, fixed_examples, drawn_examples, similar_examples, nearest_examples, long_examples, media_columns, media_tags,
        media_examples, turns,
        raw_messages, jinja, tokens, inline,
    )
}  # fmt: skip
