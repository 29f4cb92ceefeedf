"""Patterns that name the files of a dataset: they match as those of ``glob``, and their walk is bounded."""

from __future__ import annotations

import glob
import os
from pathlib import Path

import pytest

from mmprompt import DatasetError
from mmprompt.datasets.read import open_dataset

ROW = '{"question": "?"}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a/x.jsonl", "a/y.jsonl", "b/x.jsonl", "b/.hidden.jsonl", ".c/x.jsonl", "[d]/x.jsonl", "B/é.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(ROW)
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "gone").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "pattern",
    ["*/x.jsonl", "a/*", "[ab]/x.*", "./?/*.jsonl", "*/.h*", ".c/*", "[[]d]/*", "*", "*/", "a//*", "**/x.jsonl",
     "b/[!x]*", "none*", "a/x.jsonl/*", "*/x.jsonl/", "[z-a]*", "*/../a/x.jsonl"],
)  # fmt: skip
@pytest.mark.parametrize("absolute", [False, True])
def test_a_pattern_names_the_files_that_glob_finds(pattern: str, absolute: bool, folder: Path) -> None:
    pattern = os.path.join(folder, pattern) if absolute else pattern
    found = sorted(glob.glob(pattern))
    if ".." in pattern:
        what = r"goes up \('\.\.'\) behind a wildcard; write the folder out"
    elif not found:
        what = "no file matches"
    elif any(os.path.isdir(name) or not os.path.exists(name) for name in found):
        what = "is a directory among several files|holds several splits|no such file"
    else:
        assert open_dataset(pattern).files == found
        return
    with pytest.raises(DatasetError, match=what):
        open_dataset(pattern)


def test_a_name_that_holds_a_null_is_no_file(folder: Path) -> None:
    with pytest.raises(DatasetError, match="no file matches"):
        open_dataset("a\0/*")


@pytest.mark.slow
@pytest.mark.parametrize("paths", ["*/*/*/*/*/*/*/*", ["*/*/*/*/*"] * 10])
def test_patterns_look_at_a_million_names_at_most(
    paths: str | list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten links to their own folder are a hundred million names at the eighth level."""
    for name in range(10):
        (tmp_path / f"l{name}").symlink_to(".")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        DatasetError, match=r"looked at 1,000,000 names, the last in 'l.*'; name the files or their fol"
    ):
        open_dataset(paths)
