"""Forms: each row is made once by its form and once by a walk, and both give the same to the byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from form_rows import by_form, lines_of, messages_of, template
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmprompt import load_task
from mmprompt.datasets.sample import Sample
from mmprompt.media.sources import RootedPath
from mmprompt.messages import MediaPart
from mmprompt.render.builder import FailedRow, PreparedRow, RequestBuilder
from mmprompt.render.media import media_of
from mmprompt.targets import limits
from mmprompt.tasks.load import dataset_task

ROOT = Path(__file__).parents[2]
TARGETS = ("vllm", "openai", "anthropic", "gemini", "hf")
LATER = [pytest.param(name, marks=pytest.mark.slow) for name in ("openai", "gemini", "hf")]
TOUR = ROOT / "fixtures" / "tour"
QUESTION = {"role": "HUMAN", "prompt": "{question} ({hint})\n"}


def assert_same_both_ways(task: Any, target: str, **options: Any) -> None:
    assert lines_of(task, target, formed=True, **options) == lines_of(task, target, formed=False, **options)
    if task.assembly is not None:
        assert messages_of(task, formed=True) == messages_of(task, formed=False)
    bodies = []
    for formed in (True, False):
        builder = RequestBuilder(task, target, formed=formed)
        made = [builder.prepare(row) for row in task.samples()]
        rows = [m for m in made if isinstance(m, PreparedRow)]
        bodies.append([repr([(r.turn, r.label, r.dropped) for r in m.requests]) for m in rows])
    assert bodies[0] == bodies[1]


TASKS: dict[str, dict[str, Any]] = {
    "none": {},
    "string": {"infer_cfg": template("PromptTemplate", "Q: {question} {hint}\nA:")},
    "dialogue": {
        "infer_cfg": template(
            "PromptTemplate", {"begin": [{"role": "SYSTEM", "prompt": "Be {hint}."}], "round": [QUESTION]}
        )
    },
    "multimodal": {
        "infer_cfg": template(
            "MMPromptTemplate",
            {
                "round": [
                    {
                        "role": "HUMAN",
                        "prompt_mm": {
                            "image": {"type": "image_url", "image_url": "{image}", "detail": "low"},
                            "text": {"type": "text", "text": "{question} 100% {hint}"},
                        },
                    }
                ]
            },
        )
    },
    "options": {
        "infer_cfg": template("PromptTemplate", "{question}\n{options}\n{A}"),
        "reader_cfg": {"missing": "keep"},
    },
    "content": {
        "infer_cfg": template(
            "MMPromptTemplate",
            {
                "round": [
                    {
                        "role": "HUMAN",
                        "prompt_mm": {
                            "text": {"type": "text", "text": "Look: {question}"},
                            "image": {"type": "image_url", "image_url": "{image}"},
                        },
                    }
                ]
            },
        )
    },
}

odd_texts = st.one_of(
    st.sampled_from(
        [
            "", " ", "A. cat", "[1, 2]", "<b>bold</b>", "{x}", "%s %d", "a\x7fb", "a\0b", "a\\u0000b", "\ud800", "é世 \n",
            "<AIS_IMAGE_START>coffee.jpg<AIS_CONTENT_TAG>", "media/coffee.jpg", "https://a.example/b.jpg?c=%20d", '"q"',
            'http://a.example/b"c.jpg', "HTTPS://A.example", "https://user@a.example/x", "tail ", "<AIS_", "mm7", "None",
            "<ais_image_start>x", "true", "3", "data:text/plain,hi", "a\tb", "\u2028line",
        ]
    ),
    st.text(max_size=12),
)  # fmt: skip
values = st.one_of(
    odd_texts,
    odd_texts,
    odd_texts,
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.lists(odd_texts, max_size=2),
)
tagged = st.lists(st.tuples(st.sampled_from(["TEXT", "IMAGE", "AUDIO"]), odd_texts), max_size=3).map(
    lambda pairs: "".join([f"<AIS_{kind}_START>{text}<AIS_CONTENT_TAG>" for kind, text in pairs])
)
plain = st.sampled_from(["What is it?", 'Which "one"?\n', "100% é世", "a < b", "Say {x}."])
images = st.sampled_from(
    [
        "media/coffee.jpg",
        "media/cat.webp",
        "https://a.example/b.jpg",
        "https://a.example/c.png?d=1&e=%20",
        "missing.jpg",
    ]
)
pairs = st.tuples(images, plain).map(
    lambda p: f"<AIS_IMAGE_START>{p[0]}<AIS_CONTENT_TAG><AIS_TEXT_START>{p[1]}<AIS_CONTENT_TAG>"
)
rows_of_one_shape = st.fixed_dictionaries(
    {"id": st.one_of(st.uuids().map(str), st.integers(0, 99)), "question": plain, "hint": plain, "image": images}
)
rows_of_content = st.fixed_dictionaries({"id": st.uuids().map(str), "content": pairs, "answer": plain, "hint": plain})
odd_rows = st.dictionaries(
    st.sampled_from(["id", "question", "hint", "image", "answer", "A", "options", "image_2"]), values, max_size=6
)
odd_content = st.fixed_dictionaries(
    {"id": values, "content": st.one_of(tagged, odd_texts), "answer": values, "hint": plain}
)
choices = st.one_of(st.sampled_from(["cat", "a dog", "A. cat", "B. dog", "C) rat", "(A) cat", "NA", "5", ""]), plain)
rows_of_choices = st.fixed_dictionaries(
    {"id": st.uuids().map(str), "question": plain, "image": images, "A": choices, "B": choices, "C": choices}
)
mixed_rows = st.lists(
    st.one_of(rows_of_one_shape, rows_of_content, rows_of_content, rows_of_choices, odd_rows, odd_content), max_size=20
)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("target", ["vllm", "anthropic", *LATER])
@settings(max_examples=settings().max_examples // 3, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=mixed_rows)
def test_odd_rows_are_the_same_both_ways(
    name: str, target: str, rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    (file.parent / "media").symlink_to(TOUR / "media")
    usual = [{"id": f"u-{n}", "content": CONTENT % f"u{n}", "answer": "x", "hint": "y"} for n in range(5)]
    usual += [{"id": f"v-{n}", "question": f"q {n}", "hint": "y", "image": "media/coffee.jpg"} for n in range(5)]
    picture = {"question": "Which?", "image": "media/coffee.jpg"}
    usual += [{"id": f"w-{n}", **picture, "A": f"cat {n}", "B": "dog", "C": "rat"} for n in range(5)]
    file.write_bytes(b"".join([json.dumps(row).encode() + b"\n" for row in [*usual, *rows]]))
    task = load_task({"dataset": str(file), "media": {"roots": [str(TOUR)]}, **TASKS[name]})
    assert_same_both_ways(task, target)


CONTENT = "<AIS_IMAGE_START>https://a.example/%s.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>What?<AIS_CONTENT_TAG>"


@pytest.mark.parametrize("target", ["vllm", "anthropic", *LATER])
@pytest.mark.parametrize(
    "path",
    [
        "fixtures/tour/task.yaml",
        "fixtures/tour/tour.jsonl",
        "fixtures/tour/tour.csv",
        "fixtures/tour/tour_columns.jsonl",
        "fixtures/broken/broken.jsonl",
        "fixtures/check/clean.jsonl",
        "fixtures/check/columns.yaml",
        "fixtures/check/media.jsonl",
        "fixtures/check/texts.jsonl",
    ],
)
def test_rows_of_fixtures_seen_again_are_the_same_both_ways(path: str, target: str) -> None:
    task = load_task(str(ROOT / path))
    rows = [row for row in task.samples() if isinstance(row, Sample)]
    builders = [RequestBuilder(task, target, formed=formed) for formed in (True, False)]
    for _ in range(6):
        for row in rows:
            one, other = [builder.prepare(row) for builder in builders]
            assert type(one) is type(other)
            if isinstance(one, PreparedRow) and isinstance(other, PreparedRow):
                assert [bytes_of(r) for r in one.requests] == [bytes_of(r) for r in other.requests]
            elif isinstance(one, FailedRow) and isinstance(other, FailedRow):
                assert (str(one.error), one.error.code) == (str(other.error), other.error.code)


def bytes_of(request: Any) -> tuple[Any, ...]:
    from mmprompt.targets.wire_json import json_body, keyed

    return (*request[1:], json_body(dict(keyed(request.wire))), [part.findings for part in media_of(request.wire)])


def rows_task(rows: list[dict[str, Any]], **config: Any) -> Any:
    return load_task({"dataset": {"rows": rows}, **config})


def test_rows_with_the_same_answers_have_a_form() -> None:
    rows = [{"id": f"q-{n}", "content": CONTENT % n, "answer": str(n)} for n in range(20)]
    for target in ("vllm", "openai", "anthropic", "hf"):
        assert by_form(rows_task(rows), target) == 20


def test_rows_with_choices_and_lists_have_a_form() -> None:
    rows: list[dict[str, Any]] = [
        {"id": n, "question": "Which?", "A": f"cat {n}", "B": "dog", "answer": "A"} for n in range(20)
    ]
    assert by_form(rows_task(rows)) == 20
    listed = [{"id": n, "question": "Which?", "options": ["cat", f"dog {n}"], "answer": 1} for n in range(20)]
    assert by_form(rows_task(listed)) == 20
    pictures = [
        {"id": n, "question": "Which?", "images": [f"https://a.example/{k}.jpg" for k in range(n)]} for n in range(9)
    ]
    assert by_form(rows_task(pictures)) == 9


def test_a_value_that_no_question_covers_makes_its_row_a_walked_one() -> None:
    lettered = [{"id": n, "question": "Which?", "A": f"A. cat {n}", "B": "B. dog", "answer": "A"} for n in range(20)]
    assert by_form(rows_task(lettered)) == 0
    jinja = {
        "infer_cfg": template("PromptTemplate", {"round": [{"role": "HUMAN", "prompt": {"jinja": "{{ question }}"}}]})
    }
    assert by_form(rows_task([{"id": n, "question": f"Which {n}?"} for n in range(5)], **jinja)) == 0


def test_a_number_that_is_none_is_a_missing_value_beside_numbers() -> None:
    rows = [
        {"id": n, "question": "Which?", "options": ["cat", value, "dog", value]}
        for n, value in enumerate([1.5, 2.5, float("nan"), 3.5])
    ]
    assert_same_both_ways(rows_task(rows[:2]), "vllm")
    columns = [
        {"id": n, "question": "Which?", "A": "cat", "B": "dog", "C": value}
        for n, value in enumerate([1.5, 2.5, float("nan"), 3.5])
    ]
    assert_same_both_ways(rows_task(columns), "vllm")
    texts = [request.messages[0]["content"] for request in rows_task(columns).requests()]
    assert [text.endswith("B. dog") for text in texts] == [False, False, True, False]


@pytest.mark.parametrize("target", ["vllm", "gemini"])
def test_an_address_of_each_modality_has_its_type(target: str) -> None:
    rows = [
        {"id": n, "question": "What?", "audio": f"https://a.example/{n}.{end}"}
        for n, end in enumerate(["wav", "mp3", "wav", "x"] * 3)
    ]
    assert_same_both_ways(rows_task(rows), target)


@pytest.mark.parametrize("media", ["inline", "file", "keep"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_writer_may_send_all_that_is_known_of_a_medium(
    target: str, media: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a writer puts into a request, it is that of the row's own medium."""
    writer = type(RequestBuilder(rows_task([]), target).writer)
    embedded, named = writer._embedded, writer._named

    def all_of(wire: Any, part: Any, *names: str) -> Any:
        facts = {name: getattr(part, name) for name in names}
        return {
            **wire,
            **facts,
            "display_name": str(part.origin if "origin" in names else part.name).rpartition("/")[2],
        }

    monkeypatch.setattr(
        writer,
        "_embedded",
        lambda self, part: all_of(
            embedded(self, part), part, "origin", "changes", "findings", "media_type", "modality", "form"
        ),
    )
    monkeypatch.setattr(writer, "_named", lambda self, ref: all_of(named(self, ref), ref, "source", "name", "form"))
    kinds = {"a.jpg": "coffee.jpg", "b.png": "coffee.jpg", "c.webp": "cat.webp", "d.jpg": "coffee.jpg"}
    for name, source in kinds.items():
        (tmp_path / name).write_bytes((TOUR / "media" / source).read_bytes())
    rows = [
        {"id": n, "question": f"What {n}?", "image": name}
        for n, name in enumerate([*kinds, "https://a.example/e.jpg", "https://a.example/f.png"] * 4)
    ]
    config = {"media": {"roots": [str(tmp_path)], "mode": media}}
    one, other = [lines_of(rows_task(rows, **config), target, formed=formed) for formed in (True, False)]
    assert one == other
    if target == "vllm" and media == "inline":
        found = [json.loads(line)["messages"][0]["content"][0]["display_name"] for line in one[0].splitlines()]
        assert found == [*kinds, "e.jpg", "f.png"] * 4


def test_choices_that_begin_with_their_letters_among_others_lose_them() -> None:
    rows = [{"id": n, "question": "Which?", "A": f"cat {n}", "B": "dog", "answer": "A"} for n in range(8)]
    rows[7] |= {"A": "A. cat", "B": "B. dog"}
    texts = [request.messages[0]["content"] for request in rows_task(rows).requests()]
    assert texts[6:] == ["Which?\nA. cat 6\nB. dog", "Which?\nA. cat\nB. dog"]


def test_few_shot_examples_with_pictures_have_a_form() -> None:
    shots = [{"id": n, "question": f"shot {n}", "image": "media/coffee.jpg", "answer": "cup"} for n in range(3)]
    rows = [{"id": n, "question": f"which {n}?", "image": "media/cat.webp", "answer": "cat"} for n in range(12)]
    form = {
        "round": [
            {
                "role": "HUMAN",
                "prompt_mm": {
                    "image": {"type": "image_url", "image_url": "{image}"},
                    "text": {"type": "text", "text": "{question}"},
                },
            },
            {"role": "BOT", "prompt": "{answer}"},
        ]
    }
    infer = {
        "ice_template": {"type": "MMPromptTemplate", "template": form},
        "prompt_template": {
            "type": "MMPromptTemplate",
            "template": {"begin": ["</E>"], "round": form["round"][:1]},
            "ice_token": "</E>",
        },
        "retriever": {"type": "FixKRetriever", "fix_id_list": [0, 2]},
        "inferencer": {"type": "GenInferencer"},
    }
    task = load_task(
        {"dataset": {"rows": rows, "train_rows": shots}, "infer_cfg": infer, "media": {"roots": [str(TOUR)]}}
    )
    assert by_form(task) == 12
    assert_same_both_ways(task, "vllm")
    eighth, ninth = [messages for _, messages in task.messages()][8:10]
    assert [one is other for one, other in zip(eighth, ninth, strict=True)] == [True] * 4 + [False]  # not made again


def test_a_request_of_a_form_is_plain_data_for_a_client() -> None:
    rows = [{"id": f"q-{n}", "content": CONTENT % n, "answer": str(n)} for n in range(9)]
    requests = list(rows_task(rows, model={"model": "m", "generation": {"temperature": 0}}).requests())
    assert requests[8]["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "https://a.example/8.jpg"}},
                {"type": "text", "text": "What?"},
            ],
        }
    ]
    assert json.loads(requests[8].body()) == {"temperature": 0, "model": "m", "messages": requests[8]["messages"]}
    assert requests[8].body("n") == requests[0].body("n").replace(b"/0.jpg", b"/8.jpg")
    assert [medium.origin for medium in requests[8].media] == ["https://a.example/8.jpg"]


def mm(image: str, text: str, **more: Any) -> dict[str, Any]:
    parts = {
        "image": {"type": "image_url", "image_url": image},
        "text": {"type": "text", "text": text},
    }
    infer = template("MMPromptTemplate", {"round": [{"role": "HUMAN", "prompt_mm": parts}]})
    infer["prompt_template"].update(more)
    return infer


def usual(**columns: str) -> list[dict[str, Any]]:
    return [{"id": f"q-{n}", **{key: value % n for key, value in columns.items()}} for n in range(8)]


@pytest.mark.parametrize("blank", ["\u2003", "\u3000", "\x85", "\u00a0x", "\u2028line", "\x1f"])
def test_a_text_that_begins_with_a_blank_of_unicode_is_the_same_both_ways(blank: str) -> None:
    rows = [*usual(question="What is %s?", hint="hint %s"), {"id": "b", "question": blank, "hint": "h"}]
    rows.append({"id": "c", "question": "What?", "hint": blank})
    assert_same_both_ways(rows_task(rows), "vllm")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("blank", [" ", "\n", "\u2003", "\t", "\\", "\n\\", " \nWhat?"])
def test_a_tagged_text_of_blanks_is_the_same_both_ways(blank: str, target: str) -> None:
    rows = [{"id": f"q-{n}", "content": CONTENT % n} for n in range(8)]
    rows.append({"id": "b", "content": (CONTENT % 9).replace("What?", blank)})
    assert_same_both_ways(rows_task(rows), target)


def test_a_request_without_values_is_the_same_both_ways() -> None:
    task = rows_task(usual(question="What is %s?"), infer_cfg=template("PromptTemplate", "Say yes."))
    assert_same_both_ways(task, "vllm")


def test_tags_inside_the_column_that_a_template_names_are_read() -> None:
    tag = "Look: <AIS_IMAGE_START>https://a.example/x.jpg<AIS_CONTENT_TAG>"
    rows = [*usual(q="What is %s?"), {"id": "t", "q": tag}]
    task = rows_task(rows, infer_cfg=mm("{image}", "{q}", column="q"))
    assert_same_both_ways(task, "vllm")
    lines, *_ = lines_of(task, "vllm", formed=True)
    (message,) = json.loads(lines.splitlines()[-1])["messages"]
    address = {"type": "image_url", "image_url": {"url": "https://a.example/x.jpg"}}
    assert message == {"role": "user", "content": [{"type": "text", "text": "Look: "}, address]}


@pytest.mark.parametrize("mode", ["inline", "keep"])
def test_bare_base64_in_a_template_is_the_same_both_ways(mode: str) -> None:
    gif = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
    rows = [
        *usual(question="What is %s?", image="https://a.example/%s.jpg"),
        {"id": "g", "question": "?", "image": gif},
    ]
    task = rows_task(rows, infer_cfg=mm("{image}", "{question}"), media={"mode": mode})
    assert_same_both_ways(task, "vllm")
    origins = []
    for formed in (True, False):
        made = [RequestBuilder(task, formed=formed).prepare(row) for row in [*task.samples()] * 2]
        origins.append([[p.origin for p in media_of(m.requests[0].wire)] for m in made if isinstance(m, PreparedRow)])
    assert origins[0] == origins[1]


class Loud(str):
    __slots__ = ()

    def __str__(self) -> str:
        return self.upper()


def test_subclasses_of_text_and_long_integers_are_the_same_both_ways(tmp_path: Path) -> None:
    rows = [*usual(question="What is %s?"), {"id": "l", "question": Loud("what?")}]
    assert_same_both_ways(rows_task(rows), "vllm")
    (tmp_path / "x.gif").write_bytes(b"GIF89a")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "x.gif").write_bytes(b"GIF89a")
    pictures = [{"id": f"p-{n}", "image": "x.gif", "question": "What?"} for n in range(8)]
    pictures.append({"id": "own", "image": RootedPath("x.gif", str(tmp_path / "away")), "question": "What?"})
    assert_same_both_ways(rows_task(pictures, media={"roots": [str(tmp_path)]}), "vllm")
    counted: list[dict[str, Any]] = [{"id": f"n-{n}", "n": n, "question": "What?"} for n in range(8)]
    assert_same_both_ways(rows_task([*counted, {"id": "long", "n": 10**5000, "question": "What?"}]), "vllm")


def test_an_id_that_map_takes_from_another_column_stands_in_the_line(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows = [{"id": f"a-{n}", "key": f"k-{n}", "question": f"What is {n}?"} for n in range(8)]
    file.write_text("".join([json.dumps(row) + "\n" for row in rows]))
    assert_same_both_ways(dataset_task(str(file), map_columns={"key": "id"}), "vllm")


def test_forms_keep_the_base64_of_few_bytes_of_media() -> None:
    forms = RequestBuilder(rows_task(usual(question="What is %s?"))).forms
    small, large = [MediaPart("image", "image/png", bytes(size)) for size in (20 << 20, 30 << 20)]
    assert forms.kept(small, "").base64 is not None
    assert forms.kept(large, "").base64 is None


def test_a_tree_keeps_a_bounded_number_of_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmprompt.tasks.forms.MOST_FORMS", 10)
    builder = RequestBuilder(rows_task([]))
    for number in range(25):
        row = Sample({"question": "Which?", f"column {number}": "x"}, number, None, None, number, scanned=True)
        assert isinstance(builder.prepare(row), PreparedRow)
        assert len(builder.forms) <= 10


@pytest.mark.parametrize("target", ["vllm", "openai", "anthropic", "gemini"])
def test_the_texts_of_a_request_are_counted_together(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system text stands beside the messages for some targets, and counts with them."""
    monkeypatch.setitem(limits._REGISTERED, "small", limits.limits(target)._replace(name="small", request_bytes=1000))
    form = {"begin": [{"role": "SYSTEM", "prompt": "{hint}"}], "round": [{"role": "HUMAN", "prompt": "{question}"}]}
    rows = [
        {"id": n, "hint": "h" * n, "question": "é" * (n // 2)} for n in (10, 300, 400, 480, 499, 500, 501, 600, 1100)
    ]
    task = rows_task(rows, infer_cfg=template("PromptTemplate", form))
    assert_same_both_ways(task, "small")
    assert len(lines_of(task, "small", formed=True)[1]) == 3
    made = [RequestBuilder(task, "small", formed=formed) for formed in (True, False)]
    kinds = [[type(builder.prepare(row)) for row in task.samples()] for builder in made]
    assert kinds[0] == kinds[1]
