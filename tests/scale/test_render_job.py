"""A dataset rendered in shards by an engine of one's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from shard_cases import dataset

from mmprompt import TaskError, load_task
from mmprompt.render.renderer import Renderer
from mmprompt.scale import merge_rendered, render_shard, render_specs

TOUR = Path(__file__).resolve().parents[2] / "fixtures/tour/task.yaml"


def renderer(**settings: Any) -> Renderer:
    return Renderer(load_task(TOUR), **settings)


def test_shards_of_another_renderer_are_not_mixed_in(tmp_path: Path) -> None:
    specs = render_specs(renderer(media="keep"), tmp_path / "work", rows=4)
    for spec in specs:
        render_shard(spec)
    for other in ({"media": "inline"}, {"media": "keep", "target": "gemini"}, {"media": "keep", "emit": "string"}):
        with pytest.raises(TaskError, match="begun with another renderer"):
            render_specs(renderer(**other), tmp_path / "work", rows=4)
    again = render_specs(renderer(media="keep"), tmp_path / "work", rows=4)
    assert merge_rendered(again, tmp_path / "out.jsonl").rendered == 25


def test_a_run_that_another_process_begins_at_the_same_time_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    begun: list[object] = []
    listed = os.listdir

    def later(path: str) -> list[str]:
        if not begun:
            begun.append(None)
            begun[:] = render_specs(renderer(), work, rows=4)
        return listed(path)

    monkeypatch.setattr(os, "listdir", later)
    assert len(render_specs(renderer(), work, rows=4)) == len(begun) == 7


DYING = """
import os, sys
from mmprompt import load_task
from mmprompt.render.renderer import Renderer
from mmprompt.scale import merge_rendered, render_shard, render_specs

def dies(event, arguments):
    if event == "open" and str(arguments[0]).endswith("poison.png"):
        os._exit(9)

data, folder, session = sys.argv[1:]
sys.addaudithook(dies)
specs = render_specs(Renderer(load_task({}, data)), folder, rows=50, session=int(session))
for spec in specs:
    render_shard(spec)
faults = []
merge_rendered(specs, "out.jsonl", on_fault=faults.append)
print([fault.finding.line for fault in faults if fault.finding.code == "MM902"])
"""


def died(folder: Path, environment: dict[str, str], session: int) -> str | None:
    """Run all shards in one process; return what it prints, or None if it died."""
    words = [sys.executable, "-c", DYING, str(folder / "data.jsonl"), "work", str(session)]
    done = subprocess.run(words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode in (0, 9)
    return done.stdout if done.returncode == 0 else None


@pytest.mark.parametrize("session", [0, pytest.param(7, marks=pytest.mark.slow)])
def test_a_row_of_which_two_processes_of_a_session_died_is_left_out(
    session: int, tmp_path: Path, command_environment: dict[str, str]
) -> None:
    dataset(tmp_path, n37="poison.png")
    ends = [died(tmp_path, command_environment, session) for _ in range(3)]
    assert ends == [None, None, "[38]\n"]


def test_a_row_in_progress_when_another_session_ended_counts_as_no_death(
    tmp_path: Path, command_environment: dict[str, str]
) -> None:
    dataset(tmp_path, n37="poison.png")
    assert [died(tmp_path, command_environment, session) for session in (1, 2, 3)] == [None, None, None]
