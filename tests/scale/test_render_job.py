"""A dataset rendered in shards by an engine of one's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

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
