"""Lines of JSON in any spelling: the same bytes, errors and notes by a form as by a walk."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from form_rows import by_form, lines_of, template
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmprompt import load_task
from mmprompt.errors import MMPromptError
from mmprompt.render.builder import PreparedRow, RequestBuilder
from mmprompt.render.renderer import Renderer
from mmprompt.render.request import RequestMaker
from mmprompt.tasks.notes import _MOST_SHAPES

ROOT = Path(__file__).parents[2]
TOUR = ROOT / "fixtures" / "tour"
CONTENT = "<AIS_IMAGE_START>%s<AIS_CONTENT_TAG><AIS_TEXT_START>%s<AIS_CONTENT_TAG>"
URL = "https://a.example/%s.jpg"
USUAL = [{"id": f"u-{n}", "content": CONTENT % (URL % n, "What?"), "answer": f"a {n}"} for n in range(6)]
Row = dict[str, Any]


def lines_file(folder: Path, lines: list[bytes]) -> str:
    if not (folder / "media").exists():
        (folder / "media").symlink_to(TOUR / "media")
    (folder / "rows.jsonl").write_bytes(b"".join(lines))
    return str(folder / "rows.jsonl")


def written(rows: list[Row]) -> list[bytes]:
    return [json.dumps(row).encode() + b"\n" for row in rows]


def requests_of(task: Any, target: str, *, formed: bool) -> list[Any]:
    """Return what the requests of a task are and say, and the errors of its rows."""
    errors: list[MMPromptError] = []
    if formed:
        requests = list(task.requests(target, on_error=errors.append))
    else:
        builder = RequestBuilder(task, target, formed=False)
        maker, requests = RequestMaker(builder), []
        for row in task.samples():
            made = builder.prepare(row)
            if isinstance(made, PreparedRow):
                requests += maker.of(made)
            else:
                errors.append(made.error)
    return [
        [
            (r.body(), r.id, type(r.id), r.answers, r.choices, r.turn, r.label, r.where, r.notes, r.dropped, r.media)
            for r in requests
        ],
        [str(error) for error in errors],
        task.notes(),
    ]


def assert_same(task: Any, target: str = "vllm") -> None:
    assert lines_of(task, target, formed=True) == lines_of(task, target, formed=False)
    if target != "hf":
        assert requests_of(task, target, formed=True) == requests_of(task, target, formed=False)


SPELLINGS: list[Callable[[Row], bytes]] = [
    lambda row: json.dumps(row).encode(),
    lambda row: json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass"),
    lambda row: json.dumps(row, separators=(",", ":")).encode(),
    lambda row: json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"),
    lambda row: json.dumps(row, separators=(" , ", " : ")).encode(),
    lambda row: json.dumps(row, separators=(",  ", ": ")).encode(),
    lambda row: b"  " + json.dumps(row).encode() + b" \t ",
    lambda row: b"\xef\xbb\xbf" + json.dumps(row).encode(),
    lambda row: json.dumps(row, ensure_ascii=False).replace("/", "\\/").encode("utf-8", "surrogatepass"),
    lambda row: json.dumps(row).replace("a", "\\u0061").encode(),
    lambda row: json.dumps(row).replace("i", "I", 1).encode(),
    lambda row: b'{"id":"first",' + json.dumps(row).encode()[1:],
    lambda row: json.dumps(row).encode()[:-1] + b', "answer": "last"}',
    lambda row: json.dumps(dict(sorted(row.items(), reverse=True))).encode(),
    lambda row: json.dumps(row).replace("What", "Wh\x01at").encode(),
    lambda row: json.dumps(row).replace("What", "Wh\x00at").encode(),
    lambda row: json.dumps(row).replace("What", "Wh\tat").encode(),
    lambda row: json.dumps(row).replace("What", "Wh\x7fat").encode(),
    lambda row: json.dumps(row).encode().replace(b"What", b"Wh\xffat"),
    lambda row: json.dumps(row).encode().replace(b"What", b"Wh\xed\xa0\x80at"),
    lambda row: json.dumps(row).encode().replace(b"What", b"Wh\xc0\xafat"),
    lambda row: json.dumps(row).encode().replace(b"What", b"\xc2\x85What"),
    lambda row: json.dumps(row)[:-1].encode(),
    lambda row: json.dumps(row).encode() + b"{}",
    lambda row: json.dumps([row]).encode(),
    lambda row: b"",
    lambda row: b" \t",
]
END = [b"\n", b"\r\n", b"\r\r\n", b" \n", b"\n\n", b"\x0c\n"]

texts = st.one_of(
    st.sampled_from(
        ["What?", 'What\n"now"?\t\\ \b', "\nWhat", " What", '"What"', "", " ", "é世What", "\u2003What", "a < b", "<b>",
         "What <AIS_IMAGE_START>", "<ais_image_start>x", "x <AIS_CONTENT_TAG>", "[1]", "A. x", "{What}", "100%", "\x7f",
         "\x1f", "What\u2028", "\ud800", "\U0001f600", "\\n", "(a)", "'a'", "What" * 300, "%s", "None"]
    ),
    st.text(max_size=8),
)  # fmt: skip
ids = st.one_of(
    st.uuids().map(str),
    st.integers(),
    st.booleans(),
    st.none(),
    st.floats(),
    st.sampled_from([10**30, -0.0, "q", 1]),
    texts,
)
sources = st.one_of(
    st.sampled_from(
        ["media/coffee.jpg", "media/missing.jpg", "media/../media/cat.webp", "http://a.example", "https://a.example:80/b.jpg",
         "https://a.example:800000/b", "https://a.example?b=%20", "HTTPS://A.example/b.jpg", "https://user@a.example/b.jpg",
         "https://a.example/b c.jpg", 'https://a.example/"', "ftp://a.example/b.jpg", "data:image/png;base64,AAAA"]
    ),
    st.integers(0, 9).map(lambda n: URL % n),
    st.integers(0, 9).map(lambda n: URL % n),
)  # fmt: skip
contents = st.builds(lambda source, text: CONTENT % (source, text), sources, texts)
rows = st.one_of(
    st.fixed_dictionaries({"id": st.uuids().map(str), "content": contents, "answer": texts}),
    st.fixed_dictionaries({"id": ids, "content": contents, "answer": st.one_of(texts, ids)}),
    st.fixed_dictionaries({"id": ids, "question": texts, "image": sources, "answer": texts}),
)
plainly = st.sampled_from(SPELLINGS[:4])
lines = st.lists(
    st.builds(
        lambda row, spelt, end: spelt(row) + end,
        rows,
        st.one_of(plainly, plainly, st.sampled_from(SPELLINGS)),
        st.one_of(st.just(b"\n"), st.sampled_from(END)),
    ),
    max_size=16,
)
TASKS: dict[str, Row] = {
    "none": {},
    "string": {"infer_cfg": template("PromptTemplate", "Q: {content}{question}\nA:")},
    "multimodal": {
        "infer_cfg": template(
            "MMPromptTemplate",
            {
                "round": [
                    {
                        "role": "HUMAN",
                        "prompt_mm": {
                            "image": {"type": "image_url", "image_url": "{image}"},
                            "text": {"type": "text", "text": "{question} 100%"},
                        },
                    }
                ]
            },
        )
    },
}


@pytest.mark.parametrize("name", TASKS)
@settings(max_examples=settings().max_examples // 2, deadline=None, suppress_health_check=list(HealthCheck))
@given(odd=lines, cut=st.booleans())
def test_lines_of_any_spelling_are_the_same_both_ways(
    name: str, odd: list[bytes], cut: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    usual = [{"id": f"v-{n}", "question": f"q {n}", "image": URL % n, "answer": "x"} for n in range(6)]
    every = [*written(USUAL), *written(usual), *odd]
    every[-1] = every[-1].rstrip() if cut else every[-1]
    file = lines_file(tmp_path_factory.mktemp("rows"), every)
    assert_same(load_task({"dataset": file, "media": {"roots": [str(TOUR)]}, **TASKS[name]}))


@pytest.mark.parametrize("target", ["vllm", "openai", "hf", "anthropic", "gemini"])
@pytest.mark.parametrize("end", END)
def test_each_spelling_is_the_same_both_ways(target: str, end: bytes, tmp_path: Path) -> None:
    row = {"id": "q", "content": CONTENT % (URL % "q", 'What\n"é世"?'), "answer": "é"}
    file = lines_file(tmp_path, [*written(USUAL), *[spelt(row) + end for spelt in SPELLINGS], *written(USUAL)])
    assert_same(load_task({"dataset": file, "model": {"generation": {"max_tokens": 9}}}), target)


def test_rows_with_files_keep_their_notes_and_errors(tmp_path: Path) -> None:
    rows = [{"id": f"f-{n}", "content": CONTENT % ("media/coffee.jpg", "What?"), "answer": "x"} for n in range(9)]
    rows[7]["content"] = CONTENT % ("media/missing.jpg", "What?")
    (tmp_path / "wrong.png").write_bytes((TOUR / "media" / "coffee.jpg").read_bytes())
    rows.append({"id": "w", "content": CONTENT % ("wrong.png", "What?"), "answer": "x"})
    task = load_task({"dataset": lines_file(tmp_path, written(rows)), "media": {"roots": [str(TOUR)]}})
    bytes_, errors, notes, _ = lines_of(task, "vllm", formed=True)
    assert len(bytes_.splitlines()) == 9
    assert len(errors) == 1
    assert "missing.jpg" in errors[0]
    assert notes
    assert_same(task)


def test_a_line_that_is_rendered_twice_is_the_same_twice(tmp_path: Path) -> None:
    rows = [{"id": f"t-{n}", "content": CONTENT % ("media/coffee.jpg", f"{n}?"), "answer": "x"} for n in range(9)]
    task = load_task({"dataset": lines_file(tmp_path, written([*rows, *USUAL])), "media": {"roots": [str(TOUR)]}})
    renderer = Renderer(task)
    for row in task.samples():
        one, other = renderer.render(row), renderer.render(row)
        assert b"".join(one.chunks) == b"".join(other.chunks)
        assert [*one.notes] == [*other.notes]


def test_the_notes_on_tags_and_on_columns_stay(tmp_path: Path) -> None:
    rows = [{"id": f"t-{n}", "question": f"What {n}?", "extra": f"e {n}", "answer": "x"} for n in range(8)]
    rows[6] |= {"question": "<ais_image_start>x", "extra": ""}
    rows[7] |= {"question": "What <AIS_TEXT_START> ?"}
    form = {"round": [{"role": "HUMAN", "prompt": "{question}"}]}
    for config in {}, {"infer_cfg": template("PromptTemplate", form)}:
        task = load_task({"dataset": lines_file(tmp_path, written(rows)), **config})
        assert_same(task)


def test_repeated_ids_and_places_are_those_of_rows(tmp_path: Path) -> None:
    rows = [*USUAL, *USUAL[3:], {**USUAL[0], "id": 'a"b'}, {**USUAL[0], "id": 'a"b'}]
    every = written(rows)
    every.insert(3, b"\n")
    task = load_task(lines_file(tmp_path, every))
    found = lines_of(task, "vllm", formed=True)
    assert len(found[1]) == 4
    assert "the same id stands in line 5" in found[1][0]
    assert found == lines_of(task, "vllm", formed=False)


def test_requests_of_lines_pickle_and_count_as_before(tmp_path: Path) -> None:
    task = load_task(lines_file(tmp_path, written(USUAL * 2)))
    requests = list(task.requests())
    again = pickle.loads(pickle.dumps(requests))
    assert [r.body() for r in again] == [r.body() for r in requests]
    assert [r.digest() for r in again] == [r.digest() for r in requests]
    assert [r.answers for r in again] == [(row["answer"],) for row in USUAL * 2]


def test_rows_of_more_shapes_than_are_counted_apart_are_counted_all_the_same(tmp_path: Path) -> None:
    usual: list[Row] = [{"id": f"u-{n}", "content": "x", "question": f"q {n}", "answer": "a"} for n in range(6)]
    rows: list[Row] = []
    for n in range(_MOST_SHAPES):
        rows += [{f"k{n}": 1, "id": n}, *(usual if n % 500 == 0 else [])]
    rows += [{"id": f"s-{n}", "question": f"q {n}", "answer": "x"} for n in range(9)]
    config = {"infer_cfg": template("PromptTemplate", "Q: {question}"), "reader_cfg": {"tagged_columns": ["content"]}}
    task = load_task({"dataset": lines_file(tmp_path, written(rows)), **config})
    assert by_form(task) == 12 + 9
    assert f" of {len(rows)} rows: " in task.notes()[-1]
