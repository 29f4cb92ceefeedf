"""What the tests of runners run: the same tasks, and what mmprompt itself makes of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from opencompass_family import few_shot


@pytest.fixture(scope="module")
def tasks(tour: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("tasks")
    chats = {"dataset": {"path": str(tour / "tour_chat.jsonl")}}
    for name, task in (("chats", chats), ("shots", few_shot(tour))):
        (folder / f"{name}.json").write_text(json.dumps(task), encoding="utf-8")
    return {"task": str(tour / "task.yaml"), "chats": str(folder / "chats.json"), "shots": str(folder / "shots.json")}


@pytest.fixture(scope="module")
def rendered(tasks: dict[str, str], command: Any) -> dict[str, list[dict[str, Any]]]:
    lines = {}
    for name, task in tasks.items():
        done = command("render", task)
        assert done.returncode == 0, done.stderr
        lines[name] = [json.loads(line) for line in done.stdout.splitlines()]
    return lines


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """The task of drawn pictures, and the score of the built-in model's replies in the journal of ``mmprompt run``."""
    from mmprompt.run.scorers import scorer_of
    from mmprompt.run.task_run import run_task

    path = Path(__file__).parent.parent.parent / "fixtures" / "shapes" / "task.yaml"
    journal = tmp_path_factory.mktemp("shapes") / "journal.jsonl"
    run_task(path, "builtin:shapes", journal)
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 60
    exact = scorer_of("exact")
    return path, sum(exact(line["prediction"], [line["answer"]], line["choices"]) for line in lines) / len(lines)


HEAD = ("runner", "rows", "SHA-256 of media", "as render", "score = wanted", "refused by name")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the rows of the tour's table that this run has made, and write them to the file of the variable."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)]
    made = [value for report in reports for name, value in report.user_properties if name == "tour_table"]
    if not made:
        return
    widths = [max(map(len, column)) for column in zip(HEAD, *made, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (HEAD, *made)]
    terminalreporter.write_line("\n" + "\n".join(line.rstrip() for line in lines))
    if file := os.environ.get("MMPROMPT_TOUR_TABLE"):
        with open(file, "a", encoding="utf-8") as table:
            table.writelines(line.rstrip() + "\n" for line in lines[1:])
