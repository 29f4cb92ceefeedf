"""What one fault hides or mends beside another, and what is told of odd values of a row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from findings import findings_of, in_process
from planted import encoded, pixels

from mmprompt import check_dataset, load_task
from mmprompt.check.checker import Checker
from mmprompt.check.mending import MendedFile
from mmprompt.check.store import Store
from mmprompt.cli import main
from mmprompt.errors import Where
from mmprompt.errors.findings import Finding
from mmprompt.media.policy import MediaPolicy
from mmprompt.tasks.load import dataset_task

END = "<AIS_CONTENT_TAG>"


def written(tmp_path: Path, *rows: dict[str, object]) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text("".join([json.dumps(row) + "\n" for row in rows]))
    return path


def codes_of(tmp_path: Path, *rows: dict[str, object]) -> set[str]:
    return {finding.code for finding in findings_of(written(tmp_path, *rows))}


def told(tmp_path: Path, *rows: dict[str, object]) -> list[tuple[str, str | None, str]]:
    """Return code, column and message of each finding."""
    return [(finding.code, finding.column, finding.message) for finding in findings_of(written(tmp_path, *rows))]


def test_one_explained_file_does_not_hide_another_of_its_column(tmp_path: Path) -> None:
    (tmp_path / "Cat.jpg").write_bytes(encoded(pixels(1)))
    content = f"<AIS_IMAGE_START>cat.jpg{END}<AIS_IMAGE_START>dog.jpg{END}<AIS_TEXT_START>Which?{END}"
    rows: list[dict[str, object]] = [
        {"id": 1, "question": "Which?", "image": ["cat.jpg", "dog.jpg"], "answer": "x"},
        {"id": 2, "content": content, "answer": "x"},
    ]
    found = told(tmp_path, *rows)
    assert sorted([code for code, *_ in found if code in ("MM201", "MM207")]) == ["MM201", "MM201", "MM207", "MM207"]
    assert all("dog.jpg" in message for code, _, message in found if code == "MM201")
    swapped = {"id": 1, "question": "b.jpg", "image": ["What is in the picture?", "dog.jpg"], "answer": "x"}
    assert {"MM706", "MM201"} <= codes_of(tmp_path, swapped)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (5, None),
        (0, None),
        ({}, "the row has no question"),
        ("  ", "the row asks nothing: its text is blank"),
        ("\u200b \u200b", "the row asks nothing: its text is blank"),
    ],
)
def test_a_missing_question_is_told_in_its_own_words(tmp_path: Path, question: object, message: str | None) -> None:
    (tmp_path / "a.png").write_bytes(encoded(pixels(1), "PNG"))
    (tmp_path / "b.png").write_bytes(encoded(pixels(2), "PNG"))
    row: dict[str, object] = {"id": 2, "image": "b.png", "question": question, "answer": "x"}
    if question == {}:
        del row["question"]
    good: dict[str, object] = {"id": 1, "image": "a.png", "question": "What is it?", "answer": "x"}
    found = [text for code, _, text in told(tmp_path, good, row) if code == "MM700"]
    assert found == ([] if message is None else [message])


@pytest.mark.parametrize(
    "choices", [["caf\u00c3\u00a9", "bar"], '["caf\u00c3\u00a9", "bar"]', {"A": "caf\u00c3\u00a9", "B": "bar"}]
)
def test_the_answer_is_mended_with_its_choice_or_not_at_all(tmp_path: Path, choices: object) -> None:
    row: dict[str, object] = {"id": 1, "question": "Which?", "choices": choices, "answer": "caf\u00c3\u00a9"}
    path = written(tmp_path, row)
    task = dataset_task(path)
    checker = Checker(task, policy=in_process(task))
    with Store() as store:
        for _ in checker.check(store):
            pass
        mended = MendedFile(str(path), "jsonl", store, unsafe=True)
        new = b"".join([record.new for record in mended.records()])
    checker.close()
    path.write_bytes(new)
    left = codes_of(tmp_path, json.loads(new))
    assert "MM702" not in left
    assert ("MM005" in left) is isinstance(choices, dict)


@pytest.mark.parametrize("answer", [[], "", None])
def test_a_missing_answer_is_told_once(tmp_path: Path, answer: object) -> None:
    row = {"id": 1, "question": "Which?", "choices": ["a", "b"], "answer": answer}
    assert codes_of(tmp_path, row) == {"MM701"}


def test_an_integer_that_counts_from_1_is_told_its_letter(tmp_path: Path) -> None:
    row = {"id": 1, "question": "Which?", "choices": ["w", "xx", "yy", "zz"], "answer": 4}
    (finding,) = findings_of(written(tmp_path, {**row, "choices": ["ww", "xx", "yy", "zz"]}))
    assert (finding.code, finding.hint) == ("MM718", "write the letter, D")


def test_an_integer_answer_is_not_held_against_choices_that_a_row_does_not_have(tmp_path: Path) -> None:
    assert codes_of(tmp_path, {"id": 1, "question": "How many cats are there?", "answer": 0}) == set()


def test_the_words_that_give_an_answer_away_are_shown_as_they_stand(tmp_path: Path) -> None:
    row = {
        "id": 1,
        "image": "a.jpg",
        "question": "Gro\u00df: what is left of a red car on a hill?",
        "answer": "A red car on a hill",
    }
    assert [m for code, _, m in told(tmp_path, row) if code == "MM704"] == [
        "the question says the answer: 'a red car on a hill'"
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("What does the SVG <image> element do?", None),
        ("Why is <img src='a.png'> not shown on my page?", None),
        ("<image>\nWhat is this?", "MM107"),
        ("What is this?\n<image>", "MM107"),
        ("Is <image> larger than <image> here?", "MM107"),
        ("<image_1> shows what?", "MM107"),
        ('<img src="a.png"> What is this?', "MM107"),
        ("What is wrong?\n```html\n<img src='a.png'>\n```", None),
        ("`x` and <img src='a.png'>", "MM107"),
        ("<image >\nWhat is this?", "MM107"),
        ("&lt;AIS_IMAGE_START&gt;a.png&lt;AIS_CONTENT_TAG&gt; What?", "MM105"),
        ("\uff1cAIS_IMAGE_START\uff1ea.png What?", "MM105"),
        ("What is &lt;b&gt; and \uff1cAIS\uff1e for?", None),
    ],
)
def test_marks_of_media_in_text_are_told_from_prose(tmp_path: Path, text: str, code: str | None) -> None:
    assert codes_of(tmp_path, {"id": 1, "question": text, "answer": "x"}) == ({code} if code else set())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("What does the SVG <image> element do?", False),
        ("What does `<img src='a.png'>` do?", False),
        ("What does <image> show of it?", True),
        ("What does <image > show of it?", True),
    ],
)
def test_marks_beside_a_medium_are_prose_where_the_text_speaks_of_markup(
    tmp_path: Path, text: str, found: bool
) -> None:
    (tmp_path / "a.png").write_bytes(encoded(pixels(1), "PNG"))
    row = {"id": 1, "image": "a.png", "question": text, "answer": "x"}
    assert [f.hint for f in findings_of(written(tmp_path, row)) if f.code == "MM107"] == ["remove it"] * found


def test_escaped_tags_of_tagged_text_are_near_misses(tmp_path: Path) -> None:
    content = f"<AIS_TEXT_START>What?{END}&lt;AIS_IMAGE_START&gt;a.png&lt;AIS_CONTENT_TAG&gt;"
    (finding, *_) = [
        f for f in findings_of(written(tmp_path, {"id": 1, "content": content, "answer": "x"})) if f.code == "MM102"
    ]
    assert (finding.hint, finding.offset) == ("write <AIS_IMAGE_START>, if it is meant as a tag", content.index("&lt;"))


def test_a_row_whose_text_has_a_misspelt_tag_is_not_told_to_send_media_alone(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded(pixels(1), "PNG"))
    content = f"<AIS_IMAGE_START>a.png{END}<ais_text_start>What?{END}"
    row = {"id": 1, "content": content, "question": "Which wood is it?", "answer": "x"}
    codes = codes_of(tmp_path, row)
    assert "MM102" in codes
    assert "MM606" not in codes
    assert "MM606" in codes_of(tmp_path, {**row, "content": f"<AIS_IMAGE_START>a.png{END}"})


def test_a_hint_names_llava_where_there_are_conversations(tmp_path: Path) -> None:
    (finding,) = findings_of(written(tmp_path, {"id": 1, "question": "<image>\nWhat?", "answer": "x"}))
    assert finding.hint == "remove it, and name the medium in a column, such as 'image'"


def test_a_row_without_choices_beside_rows_with_some_is_found(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"id": n, "question": f"Which is {n}?", "choices": ["a", "b"], "answer": "ab"[n % 2]} for n in range(40)
    ]
    rows[7]["choices"] = []
    found = [(code, text) for code, _, text in told(tmp_path, *rows) if code == "MM019"]
    assert found == [("MM019", "the row has no 'choices', which 39 of 40 rows have")]
    for row in rows[::8]:
        row["choices"] = None
    assert "MM019" not in codes_of(tmp_path, *rows)


def test_notes_of_reading_say_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(encoded(pixels(1), "PNG"))
    path = written(tmp_path, {"id": 1, "image": "a.jpg", "question": "What?", "answer": "x"})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    found = {finding.code: finding.hint for finding in findings_of(path)}
    assert found == {
        "MM004": "save the file as UTF-8 without it",
        "MM204": "rename the file, or correct the declared type",
    }


@pytest.mark.parametrize("head", ["id,question", "index\tquestion\tA\tB", "id\tquestion"])
def test_a_mark_before_any_table_says_what_to_do_and_is_mended(tmp_path: Path, head: str) -> None:
    mark = "\t" if "\t" in head else ","
    path = tmp_path / ("data.tsv" if mark == "\t" else "data.csv")
    text = f"{head}{mark}answer\n" + mark.join(["1", "What?", "red", "blue"][: len(head.split(mark))] + ["red\n"])
    path.write_text(text, "utf-8-sig")
    (found,) = findings_of(path)
    assert (found.code, found.hint, found.fixable) == ("MM004", "save the file as UTF-8 without it", True)
    assert main(["check", str(path), "--fix"]) == 0
    assert (tmp_path / f"data.fixed{path.suffix}").read_text("utf-8") == text


def test_a_repeated_id_names_its_column(tmp_path: Path) -> None:
    rows = [{"index": "7", "question": question, "answer": "x"} for question in ("Who?", "What?")]
    assert [(code, column) for code, column, _ in told(tmp_path, *rows)] == [("MM009", "index")]


def test_a_row_without_any_text_leaves_out_no_column(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}.png").write_bytes(encoded(pixels(number), "PNG"))
    good: dict[str, object] = {"id": 1, "image": "1.png", "question": "What is it?", "A": "", "B": "", "answer": "x"}
    assert codes_of(tmp_path, good, {**good, "id": 2, "image": "2.png", "question": ""}) == {"MM700"}


@pytest.mark.parametrize("question", ["What is in the picture?", "图中的图形是什么颜色？（第46题）"])
def test_swapped_columns_are_told_in_each_form_of_a_row(tmp_path: Path, question: str) -> None:
    asked = f"b.jpg\nA. red\nB. blue{END}"
    rows: list[dict[str, object]] = [
        {"id": 1, "question": "b.jpg", "image": question, "answer": "x"},
        {"id": 2, "content": f"<AIS_IMAGE_START>{question}{END}<AIS_TEXT_START>{asked}", "answer": "x"},
    ]
    assert [codes_of(tmp_path, row) for row in rows] == [{"MM706"}, {"MM706"}]
    table = {"id": [1], "image": [{"bytes": None, "path": question}], "question": ["b.jpg"], "answer": ["x"]}
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pytest.importorskip("pyarrow").table(table), tmp_path / "data.parquet")
    assert [finding.code for finding in findings_of(tmp_path / "data.parquet")] == ["MM706"]


@pytest.mark.parametrize(("right", "told"), [(0, [2]), (1, [2]), (20, list(range(2, 22)))])
def test_a_swapped_header_is_told_once(tmp_path: Path, right: int, told: list[int]) -> None:
    lines = [f"{n},What cat is in picture {n}?,b{n}.jpg,cat" for n in range(20)]
    for n in range(20, 20 + right):
        (tmp_path / f"a{n}.jpg").write_bytes(encoded(pixels(n), "JPEG"))
        lines.append(f"{n},a{n}.jpg,What is in picture {n}?,cat")
    (tmp_path / "data.csv").write_text("\n".join(["id,image,question,answer", *lines, ""]))
    found = [finding for finding in findings_of(tmp_path / "data.csv") if finding.code not in ("MM312", "MM316")]
    assert [(finding.code, finding.line) for finding in found] == [("MM706", line) for line in told]
    assert ("(and 19 more rows)" in found[0].message) == (right < 20)


def test_a_question_of_bytes_is_told(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = {"id": [1], "question": pa.array(["什么？".encode("gbk")], pa.binary()), "answer": ["x"]}
    pq.write_table(pa.table(table), tmp_path / "data.parquet")
    (found,) = findings_of(tmp_path / "data.parquet")
    assert (found.code, found.message) == ("MM007", "the row: 'question' is bytes, sent as Python writes it")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("cut.jpg", encoded(pixels(1))[:-200], "cut.jpg: the JPEG is cut or damaged: it ends too early"),
        ("gone.jpg", None, "no such file: 'gone.jpg'"),
    ],
)
def test_an_error_names_its_file_once(tmp_path: Path, name: str, data: bytes | None, message: str) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    row: dict[str, object] = {"id": 1, "image": name, "question": "What?", "answer": "x"}
    assert [text for code, _, text in told(tmp_path, row) if code in ("MM201", "MM301")] == [message]


def test_a_fault_of_a_setting_has_the_same_words_in_all_rows() -> None:
    task = load_task({}, {"rows": [{"image": f"{n}.png", "question": f"What is {n}?"} for n in range(5)]})
    found = [f.message for f in check_dataset(task, select="MM206", policy=MediaPolicy(isolate=False))]
    assert found == ["no media root is set, so no path is read"] * 5


def test_bytes_are_called_by_their_path_or_by_what_they_are() -> None:
    rows = [
        {"id": at, "image": {"bytes": encoded(pixels(1)[:3, :3], "PNG"), "path": path}, "question": f"{at}?"}
        for at, path in enumerate(("small.png", None, "", "png"))
    ]
    task = load_task({}, {"rows": rows})
    found = [f.message for f in check_dataset(task, select="MM308", policy=MediaPolicy(isolate=False))]
    assert found == [f"{name} has 3 x 3 pixels" for name in ("small.png", "the image", "the image", "the image")]


def test_rows_of_a_file_without_lines_have_their_numbers() -> None:
    finding = Finding.at("MM700", "the row asks nothing", "", Where("a.parquet"), 3, "q-3")
    assert str(finding) == "a.parquet, row 3: MM700 the row asks nothing (sample q-3)"
    assert finding._replace(row=None).place == "a.parquet"
    assert finding._replace(line=7).place == "a.parquet:7"
    assert finding._replace(file=None, line=7).place == "row 7"


def test_mojibake_is_found_in_each_turn_of_a_chat(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {
            "id": wrong,
            "messages": [
                {"role": role, "content": "A cafÃ© here." if turn == wrong else f"Turn {turn} of {wrong}."}
                for turn, role in enumerate(("user", "assistant", "user"))
            ],
            "answer": "x",
        }
        for wrong in range(4)
    ]
    assert [f.id for f in findings_of(written(tmp_path, *rows)) if f.code == "MM005"] == [0, 1, 2]


def test_more_marks_than_media_are_told_as_that(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded(pixels(1), "PNG"))
    turn = [{"from": "human", "value": "<image>\n<image>\nWhich?"}, {"from": "gpt", "value": "This."}]
    found = told(tmp_path, {"id": 1, "image": "a.png", "conversations": turn})
    assert ("MM108", "the text holds more than 1 mark <image>, but the row has 1 image") in [
        (c, m) for c, _, m in found
    ]


@pytest.mark.parametrize("answer", [[None], ["", None], [" "], []])
def test_an_answer_without_an_element_is_missing(tmp_path: Path, answer: list[object]) -> None:
    assert codes_of(tmp_path, {"id": 1, "question": "Why?", "answer": answer}) == {"MM701"}
    assert codes_of(tmp_path, {"id": 1, "question": "Why?", "answer": [*answer, "x"]}) == set()


@pytest.mark.parametrize(("question", "found"), [("nan", {"MM010"}), (" NULL", {"MM010"}), ("nan?", set())])
def test_a_question_that_stands_for_a_missing_value_is_found(tmp_path: Path, question: str, found: set[str]) -> None:
    assert codes_of(tmp_path, {"id": 1, "question": question, "answer": "x"}) == found
