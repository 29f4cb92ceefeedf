"""Files that a task of lm-eval includes: each is read once, and all together are bounded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from time_taken import processor_seconds

from mmprompt import TaskError, load_task

QUESTION = 'doc_to_text: "Q: {{question}}"\ndoc_to_target: answer\n'
ROWS = {"rows": [{"question": "1+1", "answer": "2"}]}


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder / "task.yaml"


def refused(path: Path) -> TaskError:
    with pytest.raises(TaskError) as caught:
        load_task(path, ROWS)
    return caught.value


def test_files_that_include_the_next_one_twice_are_read_once_each(tmp_path: Path) -> None:
    """Sixteen such files took over a minute, since the last was read 65,536 times."""
    files = {f"f{n}": f"{QUESTION}include: [f{n + 1}.yaml, f{n + 1}.yaml]\n" for n in range(40)}
    path = written(tmp_path, **files, f40=QUESTION, task="include: f0.yaml\n")
    assert processor_seconds(lambda: load_task(path, ROWS), enough=0.5) < 2


def test_of_two_included_files_the_later_counts_with_all_that_it_includes(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        base="doc_to_text: base\ndoc_to_target: base\n",
        left="include: base.yaml\ndoc_to_text: left\n",
        right="include: base.yaml\ndoc_to_target: right\n",
        task="include: [left.yaml, right.yaml]\n",
    )
    row = {name: f"of {name}" for name in ("base", "left", "right")}
    (request,) = load_task(path, {"rows": [row]}).requests()
    assert request["messages"] == [{"role": "user", "content": "of base"}]
    assert request.answers == ("of right",)


@pytest.mark.parametrize("task", ["include: task.yaml", "include: [other.yaml]", "include: sub/../task.yaml"])
def test_files_that_include_each_other_are_refused(task: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    error = refused(written(tmp_path, task=f"{task}\n{QUESTION}", other="include: task.yaml\n"))
    assert "includes itself, with the files between" in error.what
    assert error.hint == "break the circle of 'include'"


def test_a_task_includes_at_most_a_hundred_files(tmp_path: Path) -> None:
    def path(count: int) -> Path:
        files = {f"f{n}": f"include: f{n + 1}.yaml\n" for n in range(1, count)}
        return written(tmp_path, **files, **{f"f{count}": QUESTION}, task="include: f1.yaml\n")

    assert load_task(path(100), ROWS)
    error = refused(path(101))
    assert (error.what, error.hint) == ("the task includes more than 100 files", "write their keys into fewer files")
    assert error.where.file == str(tmp_path / "f100.yaml")
    assert "more than 100 files" in refused(written(tmp_path, task=f"include: [{'f1.yaml, ' * 101}]\n")).what


def test_included_files_have_at_most_one_mebibyte_together(tmp_path: Path) -> None:
    half = QUESTION + "# " + "x" * (1 << 19)
    path = written(tmp_path, a=half, b=half, task="include: [a.yaml, b.yaml]\n")
    assert "the included files are larger than 1 MiB together" in refused(path).what


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    path = written(tmp_path, task="include: pipe.yaml\n")
    os.mkfifo(tmp_path / "pipe.yaml")
    assert "'pipe.yaml' is no file" in refused(path).what


@pytest.mark.parametrize("include", ["5", "{a: b}", "[5]", "[[a]]"])
def test_what_includes_no_file_is_refused(include: str, tmp_path: Path) -> None:
    error = refused(written(tmp_path, task=f"{QUESTION}include: {include}\n"))
    assert error.what == "include is not the name of a file"


def test_only_the_line_of_a_wrong_key_is_looked_up(tmp_path: Path) -> None:
    """Looking up those of 100,000 keys took over a minute."""
    path = written(tmp_path, task="#" * 500_000 + f"\n{QUESTION}" + "".join(f"k{n}: 1\n" for n in range(2_000)))

    def load() -> None:
        error = refused(path)
        assert (error.where.file, error.where.line) == (str(path), 4)

    assert processor_seconds(load, enough=1.5) < 4


def test_a_prompt_takes_media_from_at_most_a_hundred_columns(tmp_path: Path) -> None:
    """A hundred thousand names took over a minute and 400 MB, since each was compiled as Jinja."""

    def path(count: int) -> Path:
        return written(tmp_path, task=f"{QUESTION}doc_to_image: [{', '.join(['a'] * count)}]\n")

    assert load_task(path(100), ROWS)
    assert "doc_to_image names 101 columns; name at most 100" in str(refused(path(101)))


@pytest.mark.parametrize("sampler", ["first_n", "default"])
def test_a_row_has_at_most_ten_thousand_examples(sampler: str, tmp_path: Path) -> None:
    """300,000,000 of them took 7 GB before the first row was read."""
    more = f"num_fewshot: 300000000\nfewshot_split: test\nfewshot_config: {{sampler: {sampler}}}\n"
    error = refused(written(tmp_path, task=QUESTION + more))
    assert (error.what, error.hint) == ("num_fewshot is '300000000'", "give a whole number from 0 to 10000")
