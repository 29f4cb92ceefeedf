"""The encoding of text that is not UTF-8 is named, and the error of a row gives the option that reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmprompt.datasets.likely_encoding import encoding_hint, likely_encoding
from mmprompt.datasets.read import open_dataset
from mmprompt.datasets.sample import Sample
from mmprompt.errors import DatasetError, RowError

TEXTS = {
    "gb18030": ["这张图片中有几只猫？", "图中的红色汽车停在什么地方？", "颜色"],
    "big5": ["這張圖片中有幾隻貓？", "圖中的紅色汽車停在什麼地方？", "請描述這幅畫的主要內容。"],
    "cp932": ["この写真には猫が何匹いますか？", "赤い車はどこに止まっていますか。", "カタカナ"],
    "euc_kr": ["이 사진에 고양이가 몇 마리 있습니까?", "빨간 자동차는 어디에 있나요?"],
    "cp1251": ["Сколько кошек на этой фотографии?", "Где стоит красная машина?"],
    "cp1252": ["Où est garée la voiture déjà vue ?", "Größe der Straße", "C’est “l’été”", "café", "señor niño"],
    "utf-16": ["Wie groß ist das Haus?", "这张图片中有几只猫？"],
    "utf-16-le": ["How large is the house?"],
    "utf-16-be": ["How large is the house?"],
}


@pytest.mark.parametrize(("codec", "text"), [(codec, text) for codec, texts in TEXTS.items() for text in texts])
def test_each_encoding_is_named_even_from_one_row(codec: str, text: str) -> None:
    for line in (text, f'{{"id": 7, "question": "{text}", "answer": "B"}}'):
        found = likely_encoding(line.encode(codec))
        assert found is not None
        assert found[0] == codec


def test_utf_8_and_noise_are_no_other_encoding() -> None:
    assert likely_encoding("Où est garée la voiture ?".encode()) is None
    assert likely_encoding(b"plain") is None
    assert likely_encoding(bytes(range(128, 256)) * 4) is None


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "tsv"])
def test_the_hint_of_a_row_reads_the_whole_file(tmp_path: Path, suffix: str) -> None:
    texts = TEXTS["gb18030"] * 20
    rows = [f'{{"question": "{text}"}}' for text in texts] if suffix == "jsonl" else ["question", *texts]
    file = tmp_path / f"data.{suffix}"
    file.write_bytes("\n".join(rows).encode("gb18030"))
    found = list(open_dataset(file))
    assert all(isinstance(row, RowError) and row.code == "MM003" for row in found)
    assert {row.hint for row in found if isinstance(row, RowError)} == {
        "pass --encoding gb18030 (the text looks like GBK), or save the file as UTF-8"
    }
    assert [
        row.columns["question"] for row in open_dataset(file, encoding="gb18030") if isinstance(row, Sample)
    ] == texts


def test_one_wrong_row_among_utf_8_is_to_be_written_again() -> None:
    head = "\n".join(["Où est garée la voiture ?"] * 5).encode()
    assert encoding_hint("déjà vu".encode("cp1252"), head).startswith("write the row again")


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_refused_with_the_option_that_reads_it(tmp_path: Path, codec: str) -> None:
    file = tmp_path / "data.csv"
    file.write_bytes("id,question\n1,Wie groß?\n".encode(codec))
    with pytest.raises(DatasetError, match=f"--encoding {codec}") as caught:
        list(open_dataset(file))
    assert caught.value.code == "MM003"
    assert [row.columns for row in open_dataset(file, encoding=codec) if isinstance(row, Sample)] == [
        {"id": "1", "question": "Wie groß?"}
    ]


def test_signs_of_gbk_without_a_chinese_character_are_not_big5() -> None:
    assert likely_encoding("What word is on the sign, e.g. “STOP” – or none?".encode("gbk")) == ("gb18030", "GBK")
    assert likely_encoding("“STOP”，…".encode("big5")) == ("big5", "Big5")
