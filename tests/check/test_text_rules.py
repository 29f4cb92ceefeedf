"""The rules on texts, columns and answers: what they must not take for a fault, and the values of their fixes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from findings import findings_for, findings_of, overlap_of
from planted import encoded, pixels

from mmprompt.check.answer_forms import choice_of, readings_of
from mmprompt.check.checker import Checker
from mmprompt.check.kept import SampleFacts
from mmprompt.check.rules.targets import batch_too_large
from mmprompt.check.store import Store
from mmprompt.tasks.load import dataset_task

CHOICES = ("red", "green", "7", "none of these")
END = "<AIS_CONTENT_TAG>"


def written(tmp_path: Path, *rows: dict[str, object]) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text("".join([json.dumps(row) + "\n" for row in rows]))
    return path


def codes_of(tmp_path: Path, *rows: dict[str, object]) -> set[str]:
    return {finding.code for finding in findings_of(written(tmp_path, *rows))}


@pytest.mark.parametrize(
    "text",
    [
        "Où est-ce ? À côté du café, « là » – déjà vu… né…” CAFÉ” VOILÀ… IRMÃ.",
        "Größe: 5 °C ± 2 % • ‘Straße’ — Ähnlich wie “früher”",
        "Welcher Buchstabe fehlt: ÀÂÄÉÈÊËÏÎÔÙÛÜ? ÁÉÍÓÚÜÑ¿ ×××××× ¡¡¡¡¡¡",
        "¿Dónde está el niño? ¡Qué señal! ‘está’…",
        "Сколько кошек? Ёлка",
        "这张图片中有几只猫？颜色",
        "Είναι αυτό; ελληνικά",
        "שלום עולם, العربية",
        "naïve façade, Ångström, Øre, Þór, ½ × ¾ = ⅜ 😀 👩‍👩‍👧",
        "tabs\tand\nlines\r\nare fine",
        "if a < b and c > d: print('<b>bold</b>') [1] <- x <|> y <html>",
        "Is the answer red or green? Answer with a letter.",
    ],
)
def test_ordinary_texts_are_no_fault(tmp_path: Path, text: str) -> None:
    content = f"<AIS_TEXT_START>{text}{END}"
    assert codes_of(tmp_path, {"id": 1, "question": text, "answer": "x"}) == set()
    assert codes_of(tmp_path, {"id": 1, "content": content, "answer": "x"}) == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Why does é turn into Ã© when UTF-8 is read as Latin-1?", False),
        ("In cp1252, 'café' becomes 'cafÃ©': what is this called?", False),
        ("What is the mojibake “Ã¼” of?", False),
        ("Which encoding does the cafÃ© use?", True),
        ("Où est le cafÃ© ?", True),
        ("The signs ½¼¾½¼¾ and ±²³±²³", False),
        ("Ã© ist ein Zeichen", True),
    ],
)
def test_a_text_about_encodings_may_show_mojibake(tmp_path: Path, text: str, found: bool) -> None:
    assert ("MM005" in codes_of(tmp_path, {"id": 1, "question": text, "answer": "x"})) is found


@pytest.mark.parametrize("text", ["ЁРЁСЁ", "Сімʼя і РІК: СІРІ", "РЁ СЁ РЄ", "С’est РµС‚ Р°"])
def test_cyrillic_as_it_should_be_is_no_mojibake(tmp_path: Path, text: str) -> None:
    assert "MM005" not in codes_of(tmp_path, {"id": 1, "question": f"Что это: {text}?", "answer": "x"})


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("caf\u00c3\u00a9", "café"),
        ("it\u00e2\u20ac\u2122s", "it’s"),
        ("5 \u00c2\u00b0C", "5 °C"),
        ("\u00d0\u00ba\u00d0\u00be\u00d1\u201a", "кот"),
        (
            "У него кошка и я. Иди!".encode().decode("cp1251", "surrogateescape").replace("\udc98", "\x98"),
            "У него кошка и я. Иди!",
        ),
        ("\u00e7\u0152\u00ab\u00e7\u2039\u2014", "猫狗"),
        ("\u00f0\u0178\u02dc\u20ac", "😀"),
        ("图中的图形是什么颜色？".encode("gbk").decode("latin-1"), "图中的图形是什么颜色？"),
        ("图形是什么颜色？ A. 红色 B. 蓝".encode("gbk").decode("latin-1"), "图形是什么颜色？ A. 红色 B. 蓝"),
    ],
)
def test_mojibake_is_named_with_what_it_was_and_mended_on_request(tmp_path: Path, wrong: str, right: str) -> None:
    path = written(tmp_path, {"id": 1, "question": f"What is {wrong}?", "answer": "x"})
    checker = Checker(dataset_task(path))
    with Store() as store:
        (report, _) = checker.check(store)
    checker.close()
    assert [finding.code for finding in report.findings] == ["MM005"]
    (fix,) = report.fixes
    assert (fix.value, fix.safe) == (f"What is {right}?", False)


def test_safe_fixes_give_the_value_that_was_meant(tmp_path: Path) -> None:
    (tmp_path / "Pictures").mkdir()
    (tmp_path / "Pictures" / "Cat.JPG").write_bytes(b"\xff\xd8\xff")
    rows: list[dict[str, object]] = [
        {"id": 1, "content": "<AIS_TEXT_START>What?", "answer": "x"},
        {"id": 2, "question": "What?", "image": "pictures/cat.jpg", "answer": "x"},
        {"id": 3, "content": f"<AIS_IMAGE_START>Pictures/cat.jpg{END}What?", "answer": "x"},
        {"id": 4, "question": "What is it?", "answer": " x\n"},
        {"id": 5, "content": f"Look <AIS_TEXT_START>at{END} this", "answer": "x"},
    ]
    checker = Checker(dataset_task(written(tmp_path, *rows)))
    with Store() as store:
        fixes = [fix for report in checker.check(store) for fix in report.fixes]
    checker.close()
    assert [(fix.code, fix.column, fix.value, fix.safe) for fix in fixes] == [
        ("MM104", "content", f"<AIS_TEXT_START>What?{END}", True),
        ("MM207", "image", "Pictures/Cat.JPG", True),
        ("MM207", "content", "Pictures/Cat.JPG", True),
        ("MM717", "answer", "x", True),
        (
            "MM103",
            "content",
            f"<AIS_TEXT_START>Look {END}<AIS_TEXT_START>at{END}<AIS_TEXT_START> this{END}",
            True,
        ),
    ]


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("red", 0), (" RED ", 0), ("A", 0), ("b", 1), ("(B)", 1), ("B.", 1), ("B) green", 1), ("B. green", 1), (1, 1),
        (0, 0), (7, 2), ("7", 2), (4, 3), ("0", 0), (1.0, 1), (["A", "green"], 0), ("A, C", 0), ("AC", 0), ("A and D", 0),
        ('["B", "C"]', 1), ("E", -1), ("B. red", -1), (9, -1), ("blue", -1), ("A, E", -1), (["A", "blue"], -1), ([], -1),
        (True, -1), (None, -1),
    ],
)  # fmt: skip
def test_an_answer_names_a_choice_by_text_letter_or_number(answer: object, number: int) -> None:
    assert choice_of(answer, CHOICES) == number


@pytest.mark.parametrize(
    ("answer", "choices", "readings"),
    [
        ("A", ("B", "A"), [0, 1]), (1, ("0", "2", "1"), [1, 2]), (3, ("x", "y", "z"), [2]), ("A", ("A", "B"), []),
        (0, ("0", "1"), []), ("B", CHOICES, []), (2, CHOICES, []), (7, CHOICES, []), ("red", CHOICES, []), (True, CHOICES, []),
    ],
)  # fmt: skip
def test_an_answer_that_can_be_read_in_two_ways_is_known(
    answer: object, choices: tuple[str, ...], readings: list[int]
) -> None:
    assert readings_of(answer, choices) == readings


def test_lettered_choices_are_named_by_their_texts() -> None:
    assert choice_of("cat", ("A. cat", "B. dog")) == 0
    assert choice_of("B. dog", ("A. cat", "B. dog")) == 1


@pytest.mark.parametrize(
    "row",
    [
        {"question": "Is this a mg or a Mg?", "options": ["mg", "Mg"], "answer": "mg"},
        {"question": "Which applies?", "options": ["None", "N/A", "Na"], "answer": "None"},
        {"question": "Which is it?", "options": {"A": "cat", "B": "dog"}, "answer": "b"},
        {"question": "Which is it?", "A": "cat", "B": "dog", "C": "", "answer": "dog"},
        {"question": "What does the sign say?", "answer": "the sign"},
    ],
)
def test_ordinary_choices_and_answers_are_no_fault(tmp_path: Path, row: dict[str, object]) -> None:
    assert codes_of(tmp_path, {"id": 1, **row}) == set()


def test_an_empty_choice_is_found_where_a_template_sends_choices_itself(tmp_path: Path) -> None:
    written(tmp_path, {"id": 1, "question": "Which?", "A": "red", "B": "", "C": "blue", "answer": "A"})
    template = {"type": "PromptTemplate", "template": "{question} {A} {B} {C}"}
    (tmp_path / "task.json").write_text(
        json.dumps({"dataset": {"path": "data.jsonl"}, "infer_cfg": {"prompt_template": template}})
    )
    found = [(finding.code, finding.column) for finding in findings_for(tmp_path / "task.json")]
    assert found == [("MM714", "B")]


@pytest.mark.parametrize(
    ("name", "answer", "found"),
    [
        ("cat_001.jpg", "cat", True),
        ("a-black-cat.jpg", "black cat", True),
        ("IMG_0042.jpg", "42", False),
        ("concatenate.jpg", "cat", False),
        ("no_parking_3.jpg", "no", False),
        ("b.jpg", "B", False),
        ("COCO_train2014_000000000025.jpg", "train", False),
        ("page_12.png", "page", False),
        ("frame_00012.jpg", "frame", False),
        ("test_12.png", "test", False),
        ("black cat/black_cat_3.jpg", "black cat", False),
        ("cat/cat_dog_3.jpg", "dog", True),
    ],
)
def test_an_answer_in_a_file_name_is_a_whole_word(tmp_path: Path, name: str, answer: str, found: bool) -> None:
    row = {"id": 1, "question": "What is shown here?", "image": name, "answer": answer}
    assert ("MM705" in codes_of(tmp_path, row)) is found


@pytest.mark.parametrize(
    ("question", "answer", "found"),
    [
        ("What is it? Answer: a red car", "a red car", True),
        ("What is it? The correct answer is (B)", "B", True),
        ("What is it? The answer is: a red car.", "a red car", True),
        ("这是什么？答案：B", "B", True),
        ("答案是\uff1aB", "B", True),
        ("答案是A还是B？", "A", False),
        ("答案：是/否", "是", False),
        ("答案是A、B还是C？", "A", False),
        ("答案是A\uff0cB或C？", "A", False),
        ("这是什么？答案是猫。", "猫", True),
        ("What is left of a red car on a hill?", "a red car on a hill", True),
        ("Is it a cat or a dog?", "a dog", False),
        ("Is there a cat? Answer yes or no.", "yes", False),
        ("Is there a cat? Answer: yes, no or unclear", "yes", False),
        ("Do you hear a steady tone in one ear or in both?", "a steady tone in one ear", False),
        ("Answer: yes or no?", "no", False),
        ("Is the answer between 1 and 5?", "1", False),
    ],
)
def test_a_question_gives_its_answer_by_words_that_say_so(
    tmp_path: Path, question: str, answer: str, found: bool
) -> None:
    row = {"id": 1, "question": question, "image": "a.jpg", "answer": answer}
    assert ("MM704" in codes_of(tmp_path, row)) is found


def test_rows_that_differ_by_design_are_no_fault(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"id": n, "question": f"What is {n}?", "answer": "it"} for n in range(40)]
    for row in rows[::3]:
        row["hint"] = "look closely"
    for row in rows[::4]:
        row["level"] = 3 if row["id"] == 8 else "hard"
    assert codes_of(tmp_path, *rows) <= {"MM616"}


def test_a_test_set_without_answers_gives_one_finding(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"id": n, "question": f"What is {n}?", "answer": None} for n in range(40)]
    (finding,) = findings_of(written(tmp_path, *rows))
    assert (finding.code, finding.row) == ("MM701", None)
    assert "all 40 rows" in finding.message


def test_the_only_row_without_an_answer_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('["no row"]\n{"question": "What?", "answer": null}\n')
    (finding,) = [found for found in findings_of(path) if found.code == "MM701"]
    assert str(finding) == (f"{path}:2: MM701 'answer' is null; give the answer, or drop the row (answer, sample 1)")


@pytest.mark.parametrize(
    ("name", "data", "codes"),
    [
        ("empty.jsonl", b"", ["MM014"]),
        ("header.csv", b"id,question\n", ["MM014"]),
        ("gbk.csv", "编号,question\n1,图中有几只猫\n".encode("gbk"), ["MM003"]),
        ("broken.jsonl", b'{"id": 1, "question": }\n', ["MM002"]),
    ],
)
def test_a_dataset_without_rows_is_named_once(tmp_path: Path, name: str, data: bytes, codes: list[str]) -> None:
    (tmp_path / name).write_bytes(data)
    assert [finding.code for finding in findings_of(tmp_path / name)] == codes


def test_rows_of_the_training_set_are_found(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    rows: list[dict[str, object]] = [{"id": n, "question": f"What is {n}?", "answer": "it"} for n in range(10)]
    train = written(tmp_path / "train", *[{**row, "id": f"t{row['id']}", "answer": "x"} for row in rows[3:5]])
    path = written(tmp_path, *rows)
    found = [(f.code, f.row, f.message) for f in overlap_of(path, train)]
    assert found == [("MM711", n, f"the row stands in {train}:{n - 2} too") for n in (3, 4)]


@pytest.mark.parametrize("retriever", ["FixKRetriever", "RandomRetriever"])
def test_rows_of_the_tasks_own_training_set_are_found(tmp_path: Path, retriever: str) -> None:
    (tmp_path / "dev").mkdir()
    for folder in (tmp_path, tmp_path / "dev"):
        (folder / "a.png").write_bytes(encoded(pixels(1), "PNG"))
        (folder / "b.png").write_bytes(encoded(pixels(2), "PNG"))
    rows: list[dict[str, object]] = [
        {"id": n, "question": f"What is {n // 2}?", "image": "ab"[n % 2] + ".png", "answer": "it"} for n in range(6)
    ]
    written(tmp_path, *rows)
    written(tmp_path / "dev", {**rows[3], "id": "d"}, {**rows[4], "id": "e", "question": "What is this?"})
    (tmp_path / "task.json").write_text(
        json.dumps(
            {
                "dataset": {"path": "data.jsonl", "train": "dev/data.jsonl"},
                "infer_cfg": {
                    "ice_template": {
                        "type": "MMPromptTemplate",
                        "ice_token": "</E>",
                        "template": {
                            "begin": "</E>",
                            "round": [
                                {
                                    "role": "HUMAN",
                                    "prompt_mm": {
                                        "image": {"type": "image_url", "image_url": {"url": "{image}"}},
                                        "text": {"type": "text", "text": "{question}"},
                                    },
                                },
                                {"role": "BOT", "prompt": "{answer}"},
                            ],
                        },
                    },
                    "retriever": {"type": retriever, **({"fix_id_list": [0]} if retriever == "FixKRetriever" else {})},
                },
            }
        )
    )
    found = [(f.code, f.row) for f in findings_for(tmp_path / "task.json")]
    assert found == [("MM711", 3)]


def test_digests_of_rows_with_examples_leave_the_examples_out(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"id": n, "question": f"What is {n % 3}?", "answer": f"{n % 3}"} for n in range(6)]
    written(tmp_path, *rows)
    (tmp_path / "task.json").write_text(
        json.dumps(
            {
                "dataset": {"path": "data.jsonl", "train": "data.jsonl"},
                "infer_cfg": {
                    "ice_template": {
                        "type": "PromptTemplate",
                        "template": "</E>{question} {answer}",
                        "ice_token": "</E>",
                    },
                    "retriever": {"type": "RandomRetriever", "ice_num": 2},
                },
            }
        )
    )
    found = [(f.code, f.row) for f in findings_for(tmp_path / "task.json") if f.code == "MM707"]
    assert found == [("MM707", 3), ("MM707", 4), ("MM707", 5)]


@pytest.mark.parametrize(("target", "requests", "size", "hits"), [
    ("openai", 50_000, 10, 0), ("openai", 50_001, 10, 1), ("openai", 2, 150 * 10**6, 1), ("vllm", 50_001, 10**9, 0),
])  # fmt: skip
def test_a_batch_has_a_number_of_requests_and_of_bytes(target: str, requests: int, size: int, hits: int) -> None:
    with Store() as store:
        store.target = target
        for row, count in enumerate((requests, 0)):
            store.add([], SampleFacts(row, None, None, str(row), requests=count, size=size), [])
        assert len(list(batch_too_large(store))) == hits


def test_a_text_that_is_cut_in_a_message_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": 1, "question": "What colour is the cafÃ© by the old harbour?", "answer": "x"})
    assert findings_of(path)[0].message == "'…r is the cafÃ© by the old …' holds 'Ã©', which was 'é'"


@pytest.mark.parametrize(
    ("wrong", "words", "mended"),
    [
        ("<ais_image_start>a.png<AIS_CONTENT_TAG>", "<ais_image_start>", True),
        ("<AIS_IMG_START>a.png<ais_content_tag>", "s <AIS_IMG_START>, <ais_content_tag>", True),
        ("<AIS_IMG_START>a.png</AIS_CONTENT_TAG>", "s <AIS_IMG_START>, </AIS_CONTENT_TAG>", False),
        ("<AIS_IMAGE>a.png<AIS_CONTENT_TAG>", "<AIS_IMAGE>", False),
        ("<ais_image_start>a.png", "<ais_image_start>", False),
    ],
)
def test_all_misspelt_tags_of_a_column_are_told_and_mended_where_they_are_certain(
    tmp_path: Path, wrong: str, words: str, mended: bool
) -> None:
    (tmp_path / "a.png").write_bytes(encoded(pixels(1), "PNG"))
    end = f"<AIS_TEXT_START>What is it?{END}"
    path = written(tmp_path, {"id": 1, "content": f"{wrong}{end}", "answer": "x"})
    checker = Checker(dataset_task(path))
    with Store() as store:
        (report, _) = checker.check(store)
    checker.close()
    (finding,) = [each for each in report.findings if each.code == "MM102"]
    assert (finding.severity, finding.fixable, finding.offset) == ("error", mended, 0)
    assert finding.message.removeprefix("misspelt tag").strip() == words
    fixes = [fix.value for fix in report.fixes if fix.code == "MM102"]
    assert fixes == [f"<AIS_IMAGE_START>a.png{END}{end}"] * mended
