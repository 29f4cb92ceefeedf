"""Journals scored and compared, in Python and on the command line."""

from __future__ import annotations

import json
import random
import re
import tracemalloc
from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here

from mmprompt import TaskError, compare_journals, score_journal
from mmprompt.run.intervals import bootstrap, interval_of, mcnemar, wilson
from mmprompt.run.journal import JournalLine


def write(path: Path, lines: Iterable[JournalLine], **manifest: Any) -> Path:
    path.write_bytes(b"".join(line.to_json() for line in lines))
    if manifest:
        beside = path.with_name(path.name + ".manifest.json")
        beside.write_text(json.dumps({"version": 1, "model": "m", **manifest}), encoding="utf-8")
    return path


def said(row: int, prediction: str | None, answer: Any = "yes", **more: Any) -> JournalLine:
    error = "MM901 the server answered 503" if prediction is None else None
    return JournalLine(row, f"q-{row}", prediction=prediction, answer=answer, error=error, **more)


TEN = [said(n, "yes" if n < 8 else "no" if n < 9 else None, groups={"category": "ab"[n % 2]}) for n in range(10)]


def test_a_score_is_over_all_rows_and_over_the_answered(tmp_path: Path) -> None:
    report = score_journal(write(tmp_path / "j.jsonl", TEN))
    total = report.total
    assert (total.rows, total.answered, total.score, total.over_answered) == (10, 9, 0.8, 8 / 9)
    assert total.interval == wilson(8, 10)
    assert total.interval_answered == wilson(8, 9)
    assert {name: score.score for name, score in report.groups["category"].items()} == {"a": 0.8, "b": 0.8}
    assert [(one.line.row, one.score) for one in report.worst] == [(8, 0)]
    assert report.errors == {"MM901 the server answered 503": 1}
    assert report.scorer == "exact"


def test_the_last_line_of_a_row_counts_and_lines_of_labels_do_not(tmp_path: Path) -> None:
    lines = [said(0, None), said(1, "no"), said(0, "yes"), said(1, None, label="yes", perplexity=2.0)]
    report = score_journal(write(tmp_path / "j.jsonl", lines))
    assert (report.total.rows, report.total.answered, report.total.score) == (2, 2, 0.5)


def test_repeats_of_a_row_count_as_one_row_with_their_mean(tmp_path: Path) -> None:
    lines = [said(row, "yes" if repeat < row else "no", repeat=repeat) for row in range(3) for repeat in range(2)]
    total = score_journal(write(tmp_path / "j.jsonl", lines)).total
    assert (total.rows, total.score) == (3, 0.5)
    assert total.interval == bootstrap([0, 0.5, 1])


def test_rows_of_one_number_and_different_ids_are_no_repeats(tmp_path: Path) -> None:
    lines = [said(0, "yes"), said(1, "no"), said(0, "no")._replace(id="of-older-data")]
    total = score_journal(write(tmp_path / "j.jsonl", lines)).total
    assert (total.rows, total.interval) == (3, wilson(1, 3))


def test_each_turn_is_scored_by_its_own_answer_and_turns_are_a_group(tmp_path: Path) -> None:
    lines = [said(row, "yes", answer="yes" if turn else "no", turn=turn) for row in range(2) for turn in range(2)]
    report = score_journal(write(tmp_path / "j.jsonl", lines))
    assert report.total.score == 0.5
    assert {name: score.score for name, score in report.groups["turn"].items()} == {"0": 0, "1": 1}


def test_scorer_and_index_base_are_those_of_the_manifest_unless_given(tmp_path: Path) -> None:
    lines = [said(0, "It is B", answer=1, choices=("cat", "dog")), said(1, "A", answer=1, choices=("cat", "dog"))]
    assert score_journal(write(tmp_path / "a.jsonl", lines)).total.score == 0.5
    path = write(tmp_path / "b.jsonl", lines[1:], scorer="choice", index_base=1)
    assert score_journal(path).total.score == 1
    assert score_journal(path, index_base=0).total.score == 0
    assert score_journal(path, "exact").total.score == 0
    report = score_journal(path, lambda reply, answers, choices: len(choices) / 4)
    assert (report.total.score, report.model) == (0.5, "m")
    with pytest.raises(TaskError, match="returned 'None'"):
        score_journal(path, lambda reply, answers, choices: None)  # type: ignore[arg-type, return-value]


def test_answers_that_can_be_read_in_two_ways_are_told(tmp_path: Path) -> None:
    lines = [
        said(0, "A", answer="A", choices=("B", "A")),
        said(1, "(A)", answer="A", choices=("B", "A")),
        said(2, "x", answer="z", choices=("x", "y")),
        said(3, "x", answer=None, choices=("x", "y")),
        said(4, "x", answer=2, choices=("x", "y")),
    ]
    report = score_journal(write(tmp_path / "j.jsonl", lines))
    assert [note.code for note in report.notes] == ["MM718", "MM702", "MM701"]
    assert "taken for the choice 'B' (1 more)" in report.notes[0]
    assert "'z' is none of the 2 choices (1 more)" in report.notes[1]
    assert report.unscored == 1
    assert report.total.score == 0.5  # A is the letter of the first choice, and no right answer is x


def test_torn_lines_are_told_and_no_answer_at_all_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "j.jsonl", TEN)
    path.write_bytes(path.read_bytes().replace(b'"row":3,', b'"row', 1))
    report = score_journal(path)
    assert report.total.rows == 9
    assert [note.code for note in report.notes] == ["MM002"]
    with pytest.raises(TaskError, match="has no row with a right answer"):
        score_journal(write(tmp_path / "none.jsonl", [said(0, "x", answer=None)]))
    with pytest.raises(TaskError, match=r"no line of .* has the column 'categry'; did you mean 'category'\?"):
        score_journal(write(tmp_path / "j.jsonl", TEN), group_by=["categry"])


def test_memory_for_a_line_is_small(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"

    def peak(count: int) -> int:
        write(path, (said(n, "no" if n % 3 else "yes", groups={"category": str(n % 5)}) for n in range(count)))
        tracemalloc.start()
        score_journal(path)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(100)
    assert (peak(3_000) - peak(1_000)) / 2_000 < 300


def other(lines: Sequence[JournalLine], changed: Sequence[int]) -> list[JournalLine]:
    return [line._replace(prediction="no") if line.row in changed else line for line in lines]


def test_two_journals_are_compared_row_by_row(tmp_path: Path) -> None:
    right = [said(n, "yes" if n % 2 else "no") for n in range(40)]
    after = [line._replace(prediction="yes") if line.row in (0, 2, 4) else line for line in other(right, [1])]
    one = write(tmp_path / "a.jsonl", [*right, said(90, "yes")])
    found = compare_journals(one, write(tmp_path / "b.jsonl", after))
    assert (found.rows, found.better, found.worse, found.p_value) == (40, 3, 1, mcnemar(3, 1))
    assert (found.before.score, found.after.score, found.difference) == (0.5, 0.55, pytest.approx(0.05))
    assert found.interval == bootstrap([-1, 1, 1, 1, *[0] * 36])
    assert (found.before.only, found.after.only) == (1, 0)
    assert [(one.before.row, one.score_before, one.score_after) for one in found.changed] == [
        (1, 1, 0), (0, 0, 1), (2, 0, 1), (4, 0, 1),
    ]  # fmt: skip


def test_journals_of_different_datasets_or_scorers_are_refused(tmp_path: Path) -> None:
    one = write(tmp_path / "a.jsonl", TEN, scorer=None)
    two = write(tmp_path / "b.jsonl", [line._replace(answer="no") for line in TEN], scorer=None)
    with pytest.raises(TaskError, match=r"10 of 10 rows have other answers or choices in .* than in "):
        compare_journals(one, two)
    with pytest.raises(TaskError, match="no row in common"):
        compare_journals(one, write(tmp_path / "c.jsonl", [line._replace(row=line.row + 50) for line in TEN]))
    with pytest.raises(TaskError, match="name one with --scorer"):
        compare_journals(one, write(tmp_path / "d.jsonl", TEN, scorer="contains"))
    assert compare_journals(one, tmp_path / "d.jsonl", "exact").difference == 0


@pytest.mark.slow
def test_intervals_hold_the_mean_as_often_as_they_say() -> None:
    """Of 200 samples each, between 92% and 98% of the intervals hold the true mean."""
    chance = random.Random(8)
    for draw, mean in ((lambda: float(chance.random() < 0.7), 0.7), (lambda: chance.random() ** 2, 1 / 3)):
        intervals = [interval_of([draw() for _ in range(60)]) for _ in range(200)]
        held = sum(low <= mean <= high for low, high in filter(None, intervals))
        assert 184 <= held <= 196, held


def test_known_intervals_and_p_values() -> None:
    assert [round(bound, 4) for bound in wilson(0, 10)] == [0, 0.2775]
    assert [round(bound, 4) for bound in wilson(45, 50)] == [0.7864, 0.9565]
    assert mcnemar(10, 20) == pytest.approx(0.098737, abs=1e-6)
    assert mcnemar(480, 521) == pytest.approx(0.206107, abs=1e-6)
    assert mcnemar(100, 2000) < 1e-300
    assert interval_of([]) is None
    assert bootstrap([0.5] * 9) == (0.5, 0.5)
    many = [n / 5000 for n in range(5000)]
    low, high = bootstrap(many)
    assert (round(low, 2), round(high, 2)) == (0.49, 0.51)
    assert bootstrap(many[::-1]) == (low, high)


class Page(HTMLParser):
    """What a page holds that could load or run something, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_command_prints_a_table_and_writes_reports(tmp_path: Path) -> None:
    hostile = said(20, "<script>alert(1)</script>\x1b[31m\n" + "x" * 2000, groups={"category": '"><img src=x>'})
    write(tmp_path / "j.jsonl", [*TEN, hostile], scorer="exact")
    done = run_here("score", "j.jsonl", "--report", "r.json", "--report", "r.html", "--fail-under", "0.9", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == b"mmprompt: the score 0.7273 is below 0.9 (--fail-under)\n"
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "j.jsonl: scored by exact, model m"
    assert lines[2].split() == ["all", "11", "10", "0.7273", "0.4344", "to", "0.9025", "0.8000"]
    data = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert (data["score"], data["groups"]["category"]["a"]["rows"], data["worst"][0]["id"]) == (8 / 11, 5, "q-8")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    page = Page(text)
    assert not page.tags & {"script", "img", "iframe", "object", "form", "a"}
    assert not {name for name in page.attributes if name.startswith("on") or name in ("style", "src")}
    assert "<script>alert(1)</script>" in "".join(page.text)
    assert "\x1b" not in text
    assert "unsafe" not in re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', text)[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("score", "j.jsonl", "--scorer", "exakt"), "unknown scorer 'exakt'; did you mean 'exact'?"),
        (("score", "j.jsonl", "--report", "r.txt"), "--report 'r.txt' is neither JSON nor HTML; end its name"),
        (("score", "data.jsonl"), "'data.jsonl' is not a journal of mmprompt run; name another file"),
        (("score", "none.jsonl"), "no such file: none.jsonl; check the path"),
        (("compare", "j.jsonl", "j.jsonl", "--report", "r.html"), "--report 'r.html' is not JSON"),
        (("score", "j.jsonl", "--report", "j.json/r.html"), "does not exist"),
    ],
)
def test_wrong_usage_is_told_in_one_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    write(tmp_path / "j.jsonl", TEN)
    (tmp_path / "data.jsonl").write_text('{"question": "?"}\n', encoding="utf-8")
    done = run_here(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert done.stdout == b""


def test_the_command_compares(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", TEN, scorer=None)
    write(tmp_path / "b.jsonl", other(TEN, [0, 1]), scorer=None)
    done = run_here("compare", "a.jsonl", "b.jsonl", "--report", "c.json", cwd=tmp_path)
    assert done.returncode == 0
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "10 rows scored by exact"
    assert lines[1].split()[:3] == ["a.jsonl", "(m)", "0.8000"]
    assert lines[3].split()[:2] == ["difference", "-0.2000"]
    assert lines[4] == "better: 0, worse: 2; p = 0.5 (McNemar's exact test)"
    assert lines[5:] == [
        "worse:",
        "  row 0 (sample q-0) 1 -> 0: 'yes' -> 'no'",
        "  row 1 (sample q-1) 1 -> 0: 'yes' -> 'no'",
    ]
    assert json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))["worse"] == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"prediction": 5}, {"prediction": ["B"]}, {"choices": [1, None]}, {"choices": True}, {"groups": ["a"]}, {"groups": None},
        {"turn": [[1]]}, {"row": "7"}, {"repeat": "x"}, {"label": 1.5}, {"usage": "x"}, {"error": {}, "prediction": None},
    ],
)  # fmt: skip
def test_a_line_whose_values_are_of_another_kind_is_left_out(tmp_path: Path, wrong: dict[str, Any]) -> None:
    path = write(tmp_path / "j.jsonl", TEN)
    record = {**json.loads(said(20, "yes").to_json()), **wrong}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
    report = score_journal(path)
    assert report.total.rows == 10
    assert [str(note) for note in report.notes] == [
        f"{path}: torn lines that are left out: 1, the first is line 11; run mmprompt run again: it asks their rows anew"
    ]
