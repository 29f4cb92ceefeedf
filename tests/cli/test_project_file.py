"""The ``pyproject.toml`` of a stranger's dataset: it is data, so ``mmprompt check`` says what it chose, and bounds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmprompt.check.configuration import project_configuration
from mmprompt.cli import main
from mmprompt.errors import TaskError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()
    for name in ("data.jsonl", "sub/data.jsonl"):
        Path(name).write_text('{"id": 1, "question": "Why?", "image": "none.jpg", "answer": "x"}\n')
    return tmp_path


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    code = main(["check", *arguments])
    return code, capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("data", ["data.jsonl", "sub/data.jsonl", "./sub/../data.jsonl"])
def test_a_file_beside_the_data_that_chose_the_rules_is_named(
    data: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pyproject.toml").write_text('[tool.mmprompt]\nignore = ["ALL"]\nworkers = 1\n')
    code, told = checked(capsys, data)
    named = f"mmprompt: {folder.resolve()}/pyproject.toml, which lies with the data, chose the rules: ignore"
    assert (code, told) == (0, [named, "mmprompt: 1 row checked: no finding"])


def test_a_file_above_the_data_is_named_from_the_folder_of_the_data(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("pyproject.toml").write_text('[tool.mmprompt.ignore]\n"*" = ["ALL"]\n')
    monkeypatch.chdir(folder / "sub")
    assert f"{folder.resolve()}/pyproject.toml" in checked(capsys, "data.jsonl")[1][0]


def test_the_callers_own_settings_for_data_elsewhere_need_no_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "own").mkdir()
    monkeypatch.chdir(folder / "own")
    Path("pyproject.toml").write_text('[tool.mmprompt]\nignore = ["ALL"]\n')
    assert checked(capsys, "../data.jsonl") == (0, ["mmprompt: 1 row checked: no finding"])


def test_a_file_that_chooses_no_rules_is_not_named(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text("[tool.mmprompt]\nworkers = 1\n")
    assert checked(capsys, "data.jsonl")[1] == ["mmprompt: 1 row checked: 1 error"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"[tool.mmprompt]\n{'.'.join(['a'] * 2000)} = 1\n", "a key with more than 100 dots; flatten it"),
        (f"# {'x' * (1 << 20)}\n", "at most 1 MiB"),
        (f"x = {'[' * 100_000}", "nested too deeply; flatten it"),
        (f"x = {'1' * 5000}\n", "a number that Python refuses to read"),
        ('x = "\udcff"\n', "is not UTF-8 at byte 5; save it as UTF-8"),
        ("[tool.mmprompt\n", "pyproject.toml:1: malformed TOML"),
        ("tool = 1\n", "tool is not a table; write [tool.mmprompt]"),
        ("[tool]\nmmprompt = 1\n", "tool.mmprompt is not a table; write [tool.mmprompt]"),
    ],
)
def test_the_limits_of_task_files_hold_for_it(text: str, words: str, folder: Path) -> None:
    Path("pyproject.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(TaskError) as caught:
        project_configuration()
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{folder.resolve()}/pyproject.toml:")


@pytest.mark.parametrize("name", ["../known.json", "link.json", "folder/known.json", "a\\u0000b"])
def test_a_baseline_outside_its_folder_takes_the_callers_word(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = folder / "known.json"
    outside.write_text("mine")
    monkeypatch.chdir(folder / "sub")
    Path("link.json").symlink_to(outside)
    Path("folder").symlink_to(folder)
    Path("pyproject.toml").write_text(f'[tool.mmprompt]\nbaseline = "{name}"\n')
    code, told = checked(capsys, "data.jsonl", "--write-baseline")
    shown = name.replace("\\u0000", "\\x00")
    assert code == 2
    where = f"{folder.resolve()}/sub/pyproject.toml"
    what = f"the baseline '{shown}' lies outside this folder; name it with --baseline FILE"
    assert told == [f"mmprompt: {where}: MM602 {what}"]
    assert outside.read_text() == "mine"
