"""Errors in the words of a runner's config, and all faulty rows of a dataset in one of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mmprompt.errors import MediaError, MMPromptError, TaskError
from mmprompt.plugins.bridge.row_faults import all_told, in_config_words, told
from mmprompt.plugins.bridge.table_rows import tables
from mmprompt.plugins.bridge.task_rows import TaskRows


@pytest.mark.parametrize(
    ("hint", "ours"),
    [
        (
            "add it with --media-root DIR, media: {roots: [DIR]} or MediaPolicy(roots=[DIR])",
            'add it with media=dict(roots=["DIR"])',
        ),
        (
            "allow it with --allow-domain HOST (MediaPolicy(fetch=True, allow_domains=[HOST]))",
            'allow it with media=dict(fetch=True, allow_domains=["HOST"])',
        ),
        (
            "raise max_bytes to allow it, or use --policy trusted",
            'raise max_bytes to allow it, or use media=dict(policy="trusted")',
        ),
        ("shrink it: pass --max-side N or --fit", "shrink it: pass media=dict(max_side=N) or media=dict(fit=True)"),
        (
            "pass --media-root '/a b'; in Python give policy=, in a runner's config media_root=",
            'pass media=dict(roots=["/a b"])',
        ),
    ],
)
def test_an_option_is_a_key_of_media(hint: str, ours: str) -> None:
    error = in_config_words(MediaError("it is refused", hint).located(line=3))
    assert (type(error), error.hint, error.where.line) == (MediaError, ours, 3)


class Retriever:
    """A retriever as AISBench and OpenCompass have them: it hands its template one row after the other."""

    def __init__(self, template: Any, rows: list[dict[str, Any]]) -> None:
        self.template = template
        self.test_ds = rows

    def generate_prompt_for_generate_task(self, idx: int) -> str:
        return str(self.template.generate_item(self.test_ds[idx]))


class Template:
    """Refuses odd numbers, and everything if ``setting`` names a setting."""

    def __init__(self, setting: str | None = None) -> None:
        self.setting = setting
        self.asked: list[int] = []

    @all_told
    def generate_item(self, entry: dict[str, Any]) -> str:
        self.asked.append(entry["n"])
        if self.setting is not None or entry["n"] % 2:
            raise MediaError(f"odd: {entry['n']}", "pass --max-side N").located(setting=self.setting)
        return "fine"


ROWS = [{"n": n} for n in (0, 2, 3, 4, 5, 7)]


def test_the_first_faulty_row_brings_those_after_it(capfd: pytest.CaptureFixture[str]) -> None:
    template = Template()
    retriever = Retriever(template, ROWS)
    assert [retriever.generate_prompt_for_generate_task(n) for n in (0, 1)] == ["fine", "fine"]
    with pytest.raises(MMPromptError) as caught:
        retriever.generate_prompt_for_generate_task(2)
    assert template.asked == [0, 2, 3, 4, 5, 7]
    assert str(caught.value).splitlines() == [
        "3 of 6 rows cannot be asked; correct them and run again",
        *[f"  row {line}: MM200 odd: {n}; pass media=dict(max_side=N)" for line, n in ((3, 3), (5, 5), (6, 7))],
    ]
    frames = [entry.name for entry in caught.traceback][-2:]
    assert frames == ["generate_prompt_for_generate_task", "generate"]
    assert capfd.readouterr().err == ""  # the runner shows the error itself, unless it writes to a log file


def test_a_setting_that_is_wrong_for_all_rows_is_told_once() -> None:
    template = Template("media.roots")
    with pytest.raises(MediaError, match=r"^odd: 0; pass media=dict"):
        Retriever(template, ROWS).generate_prompt_for_generate_task(0)
    assert template.asked == [0]


def test_a_row_that_is_asked_by_nobody_s_list_raises_its_own_error() -> None:
    with pytest.raises(MediaError, match=r"^odd: 3"):
        Template().generate_item({"n": 3})


def test_an_error_of_a_function_is_in_the_words_of_a_config() -> None:
    @told
    def refuse() -> None:
        raise TaskError("no", "pass --fit")

    with pytest.raises(TaskError, match=r"no; pass media=dict\(fit=True\)"):
        refuse()


def test_rows_that_cannot_be_read_are_told_with_the_others(tmp_path: Path) -> None:
    lines = ['{"question": "1+1=?", "answer": "2"}', "{", '{"question": null}', "[]"]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    infer = {"prompt_template": {"template": "{question}"}}
    (tmp_path / "task.json").write_text(json.dumps({"dataset": "rows.jsonl", "infer_cfg": infer}), encoding="utf-8")
    rows = TaskRows(str(tmp_path / "task.json"))

    class Task:
        @all_told
        def generate_item(self, entry: Any) -> Any:
            with rows.sample_of(entry) as sample:
                return rows.messages(sample)

    table = tables(str(tmp_path / "task.json"))["test"]
    entries = [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]
    retriever = Retriever(Task(), entries)
    retriever.generate_prompt_for_generate_task(0)
    with pytest.raises(MMPromptError) as caught:
        retriever.generate_prompt_for_generate_task(1)
    first, *faults = str(caught.value).splitlines()
    assert first.startswith("3 of 4 rows")
    assert [line.strip().rpartition(": MM")[0].rpartition("/")[2] for line in faults] == [
        "rows.jsonl:2", "rows.jsonl:3", "rows.jsonl:4",
    ]  # fmt: skip


def test_a_config_allows_what_a_task_file_cannot_and_changes_its_media(tmp_path: Path, tour: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"content": "<AIS_IMAGE_START>coffee.jpg"}), encoding="utf-8")
    (tmp_path / "task.json").write_text('{"dataset": "rows.jsonl", "media": {"policy": "trusted"}}', encoding="utf-8")
    path = str(tmp_path / "task.json")
    with pytest.raises(TaskError, match="policy: trusted"):
        TaskRows(path)
    media = {"policy": "trusted", "roots": [str(tour / "media")], "max_side": 32}
    rows = TaskRows(path, media=media)
    table = tables(path, media=media)["test"]
    [entry] = [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]
    with rows.sample_of(entry) as sample:
        [message] = rows.messages(sample)
    [part] = message["content"]
    assert part["type"] == "image_url"
    assert len(part["image_url"]["url"]) < 5000
    with pytest.raises(TaskError, match="takes no 'mode' from a config"):
        TaskRows(path, media={"mode": "url"})
