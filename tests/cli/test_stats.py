"""``mmprompt stats``: the numbers of a dataset."""

from __future__ import annotations

import json
import wave
from pathlib import Path

import pytest
from PIL import Image

from mmprompt.cli import main

SIZES = [(10, 20), (30, 40), (30, 40), (100, 50)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = []
    for number, size in enumerate(SIZES):
        Image.new("RGB", size, "red").save(tmp_path / f"{number}.png")
        rows.append(
            {"id": number, "question": "?" * (number + 1), "image": f"{number}.png", "answer": "AB"[number > 2]}
        )
    rows.append({"id": 4, "question": "Why?", "answer": None})
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{broken\n")
    return path


def stats(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["stats", *map(str, arguments)])
    written = capsys.readouterr()
    return code, written.out, written.err


def test_the_numbers_are_those_of_the_rows(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = stats(capsys, data, "--output-format", "json")
    told = json.loads(out)
    assert code == 0
    assert (told["rows"], told["media"], told["distinct_media"]) == (6, {"image": 4}, {"image": 3})
    assert (told["formats"], told["answers"], told["distinct_answers"]) == ({"image/png": 4}, {"A": 3, "B": 1}, 2)
    by_name = {each["name"]: each for each in told["distributions"]}
    widths, lengths = by_name["width of an image"], by_name["length of the question"]
    assert [widths[key] for key in ("values", "least", "median", "most")] == [4, 10, 30, 100]
    assert [lengths[key] for key in ("values", "least", "median", "most", "total")] == [5, 1, 3, 4, 14]
    for each in told["distributions"]:
        assert sum(one["values"] for one in each["bins"]) == each["values"]
        assert (each["bins"][0]["low"], each["bins"][-1]["high"]) == (each["least"], each["most"])
    size = sum((data.parent / f"{number}.png").stat().st_size for number in range(4))
    assert by_name["size of an image"]["total"] == size


def test_the_text_says_the_same(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = stats(capsys, data)
    assert (code, err) == (0, "mmprompt: 1 of 6 rows cannot be read; mmprompt check says why\n")
    lines = out.splitlines()
    assert lines[:3] == ["rows: 6", "image: 4, 3 distinct", "  image/png: 4"]
    assert "width of an image, pixels: least 10, median 30, most 100" in lines
    assert lines[-3:] == ["answers: 2 distinct", "  3 A", "  1 B"]


def test_answers_that_are_not_shown_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps({"question": "?", "answer": f"a{n:02}"}) + "\n" for n in range(13)))
    lines = stats(capsys, data)[1].splitlines()
    assert lines[-2:] == ["  1 a09", "  … and 3 more"]


def test_tokens_of_media_are_counted_as_each_target_publishes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, size in enumerate([(1024, 1024), (960, 540)]):
        Image.new("RGB", size).save(tmp_path / f"{number}.png")
    with wave.open(str(tmp_path / "2.wav"), "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(bytes(range(256)) * 125)  # 2 s
    rows: list[dict[str, object]] = [{"id": n, "question": "What?", "image": f"{n}.png"} for n in range(2)]
    rows.append({"id": 2, "question": "What?", "audio": "2.wav"})
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, out, _ = stats(capsys, tmp_path / "data.jsonl", "--output-format", "json")
    tokens = json.loads(out)["tokens"]
    media = {target: (count["media"], count["uncounted"]) for target, count in tokens.items() if count}
    assert media == {
        "openai": ({"image": 765 + 85 + 170 * 4}, 1),
        "anthropic": ({"image": 37 * 37 + 35 * 20}, 1),
        "gemini": ({"image": 258 * (4 + 6), "audio": 64}, 0),
    }
    assert tokens["vllm"] is tokens["hf"] is None
    _, out, _ = stats(capsys, tmp_path / "data.jsonl")
    assert "  gemini: audio 64, image 2,580 (Gemini 2.0 and 2.5)\n" in out
    assert "  openai: image 1,530, 1 media without a count (gpt-4o and gpt-4.1 at detail high)\n" in out
    assert "  vllm, hf" in out
    assert ": depends on the model\n" in out


def test_without_decoding_sides_are_unknown(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = stats(capsys, data, "--no-decode", "--limit", "2")
    assert "rows: 2\n" in out
    assert "size of an image" in out
    assert "width" not in out


def test_a_wrong_format_is_wrong_usage(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = stats(capsys, data, "--output-format", "jsn")
    assert (code, out) == (2, "")
    assert "did you mean 'json'?" in err
