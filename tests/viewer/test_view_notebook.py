"""What tasks, requests and runs show of themselves in a notebook."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from mmprompt import load_task, run_task


def test_a_task_shows_its_first_rows_with_their_media(tour: Path) -> None:
    shown = load_task(tour / "task.yaml")._repr_html_()
    assert re.findall("<h4>(.*?)</h4>", shown) == ["tour-01", "tour-02", "tour-03"]
    assert '<span class="template">Answer in a few words.</span>' in shown
    assert '<span class="row">What drink is in the cup?</span>' in shown
    coffee = base64.b64encode((tour / "media/coffee.jpg").read_bytes()).decode()
    assert f'src="data:image/jpeg;base64,{coffee}"' in shown
    assert "<script" not in shown


def test_what_is_shown_is_bounded_and_escaped() -> None:
    rows = [{"question": "<script>alert(1)</script>" + "x" * 100_000} for _ in range(50)]
    shown = load_task({"dataset": {"rows": rows}})._repr_html_()
    assert len(shown) < 20_000
    assert "&lt;script&gt;alert(1)" in shown
    assert "<script" not in shown


def test_rows_that_can_be_read_once_are_not_read() -> None:
    task = load_task({"dataset": {"rows": iter([{"question": "Why?"}])}})
    assert "Dataset" in task._repr_html_()
    assert len(list(task.requests())) == 1


def test_a_task_whose_rows_are_wrong_shows_why() -> None:
    shown = load_task({"dataset": {"rows": [{"id": 1, "question": "Why?", "image": "none.png"}]}})._repr_html_()
    assert 'class="error">MM' in shown


def test_a_request_shows_its_messages_or_its_json(tour: Path) -> None:
    task = load_task(tour / "task.yaml")
    shown = next(task.requests())._repr_html_()
    assert "What drink is in the cup?" in shown
    assert "<img" in shown
    other = next(task.requests("anthropic"))._repr_html_()
    assert "&quot;media_type&quot;: &quot;image/jpeg&quot;" in other
    assert "bytes)" in other
    assert len(other) < 5000


def test_a_run_shows_its_first_replies(tmp_path: Path) -> None:
    shapes = Path(__file__).parent.parent.parent / "fixtures/shapes/task.yaml"
    report = run_task(shapes, "builtin:shapes", tmp_path / "run.jsonl", limit=2)
    assert "2 rows answered, 0 failed" in report._repr_html_()
    assert report._repr_html_().count("<tr>") == 3
