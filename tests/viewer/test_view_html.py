"""``view_html``: a page holds what ``render`` sends, and nothing of the data is markup."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from opened_page import OpenedPage
from PIL import Image

from mmprompt import TaskError, load_task, view_html
from mmprompt.cli import main
from mmprompt.viewer.view import exhibit_of, write_page
from mmprompt.viewer.viewed_rows import Choice


def sent(part: dict[str, Any]) -> object:
    """A content part of a request: its text, or the digest of its bytes, or its URL."""
    if part["type"] == "text":
        return part["text"]
    body = part[part["type"]]
    address = body.get("url") or body["data"]
    if address.startswith("http"):
        return address
    return hashlib.sha256(base64.b64decode(address.rpartition(",")[2])).hexdigest()


def shown(part: dict[str, Any], media: list[dict[str, Any]]) -> object:
    if "spans" in part:
        return "".join(text for _, text in part["spans"])
    medium = media[part["medium"]]
    return medium["digests"][0] if "digests" in medium else medium["url"]


@pytest.mark.parametrize(
    "name", ["task.yaml", "tour.jsonl", "tour_chat.jsonl", "tour_mm_custom.jsonl", "tour_columns.jsonl"]
)
def test_a_page_shows_what_render_sends(name: str, tour: Path, tmp_path: Path) -> None:
    view_html(tour / name, tmp_path / "page.html", decode=False)
    page = OpenedPage(tmp_path / "page.html")
    failed: list[object] = []
    requests = list(load_task(tour / name).requests(on_error=failed.append))
    rows = [row for row in page.rows() if not row["error"]]
    assert len(rows) == len(requests)
    assert [e["id"] for e in page.index() if not e["error"]] == [str(r.id) for r in requests]
    for row, request in zip(rows, requests, strict=True):
        [of_page] = row["requests"]
        assert [m["role"] for m in of_page["messages"]] == [m["role"] for m in request.messages or ()]
        for message, own in zip(of_page["messages"], request.messages or (), strict=True):
            content = own.get("content") or []
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            assert [shown(part, row["media"]) for part in message["parts"]] == [sent(part) for part in parts]
        for medium in row["media"]:
            for digest in medium.get("digests", ()):
                assert hashlib.sha256(page.medium(digest)).hexdigest() == digest
    assert page.head["folder"] == ""


@pytest.mark.parametrize("target", ["openai", "vllm", "anthropic", "gemini"])
def test_the_request_of_each_target_is_its_body_with_media_in_short(target: str, tour: Path, tmp_path: Path) -> None:
    view_html(tour / "task.yaml", tmp_path / "page.html", limit=3, check=False)
    rows = OpenedPage(tmp_path / "page.html").rows()
    requests = list(itertools.islice(load_task(tour / "task.yaml").requests(target), 3))
    for row, request in zip(rows, requests, strict=True):
        [body] = row["bodies"][target]
        whole = json.loads(request.body()) if target != "anthropic" else dict(request)
        assert same_but_for_media(json.loads(body["json"]), json.loads(json.dumps(whole)))
        assert len(body["json"]) < 4000


def same_but_for_media(short: object, whole: object) -> bool:
    if isinstance(short, dict) and isinstance(whole, dict):
        return short.keys() == whole.keys() and all(same_but_for_media(short[key], whole[key]) for key in short)
    if isinstance(short, list) and isinstance(whole, list):
        return len(short) == len(whole) and all(map(same_but_for_media, short, whole))
    if isinstance(short, str) and isinstance(whole, str) and re.search(r"… \([\d,]+ bytes\)$", short):
        return whole.startswith(short.partition("…")[0])
    return short == whole


class Elements(HTMLParser):
    """The elements of a page and their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


HOSTILE = '</script><script>alert(1)</script></style><img src=x onerror="alert(2)">\u202e\u2066 & "quotes"'


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    name = tmp_path / "rows & <b>.jsonl"
    rows = [{"id": HOSTILE, "question": HOSTILE, "answer": HOSTILE, "category": HOSTILE, "pic<ture": HOSTILE}]
    name.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"id": 2, "question": "", "category": "x"}]))
    view_html(name, tmp_path / "page.html")
    page, elements = OpenedPage(tmp_path / "page.html"), Elements()
    elements.feed(page.text)
    assert HOSTILE not in page.text
    assert not [attributes for tag, attributes in elements.found if tag == "img"]
    assert not [key for _, attributes in elements.found for key in attributes if key.startswith("on") or key == "style"]
    assert "<h1>rows &amp; &lt;b&gt;.jsonl</h1>" in page.text
    assert page.index()[0]["text"] == HOSTILE
    assert HOSTILE in json.dumps(page.head, ensure_ascii=False).replace('\\"', '"')  # a category to choose


def test_the_policy_names_the_script_and_the_styles_and_no_address(tour: Path, tmp_path: Path) -> None:
    view_html(tour / "tour.jsonl", tmp_path / "page.html", limit=2, check=False)
    page = OpenedPage(tmp_path / "page.html")
    [script] = page.scripts
    [css] = re.findall(r"<style>(.*?)</style>", page.text, re.DOTALL)
    assert page.allows(script)
    assert page.allows(css)
    assert not page.allows(script + " ")
    assert "default-src &#39;none&#39;" in page.text
    assert "unsafe" not in page.text.partition("<style>")[0]
    assert not re.findall(r"""(?:src|href)=["']?(?:https?:)?//""", page.text)


def test_a_page_without_room_has_its_media_and_rows_beside_it(tour: Path, tmp_path: Path) -> None:
    report = write_page([exhibit_of(tour / "task.yaml")], str(tmp_path / "page.html"), Choice(check=False), most=60_000)
    page = OpenedPage(tmp_path / "page.html")
    assert report.folder == str(tmp_path / "page" / "assets")
    assert re.fullmatch("page/assets/[0-9a-f]{12}", page.head["folder"])
    assert report.size < 120_000
    assert len(page.rows()) == len(page.index()) == report.rows == 25
    assert [name for name in page.blocks if name.startswith("t-")]
    assert not [name for name in page.blocks if name.startswith("m-")]
    for row in page.rows():
        for medium in row["media"]:
            for digest in medium.get("digests", ()):
                assert hashlib.sha256(page.medium(digest)).hexdigest() == digest


def test_findings_of_rows_and_of_the_whole_dataset_stand_at_their_rows(tmp_path: Path) -> None:
    Image.new("RGB", (64, 64), "red").save(tmp_path / "red.png")
    rows = [{"id": n, "question": "Why?", "image": "red.png", "answer": "x"} for n in (1, 2)]
    rows.append({"id": 3, "question": "How?", "image": "none.png", "answer": "y"})
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    view_html(tmp_path / "rows.jsonl", tmp_path / "page.html")
    page = OpenedPage(tmp_path / "page.html")
    first, second, third = page.index()
    assert "MM707" in [*first["codes"], *second["codes"]]
    assert third["error"]
    assert "MM201" in third["codes"]
    refused = page.rows()[2]
    assert refused["error"]["message"].startswith("no such file")
    assert [p.get("spans") for p in refused["requests"][0]["messages"][0]["parts"]] == [None, [["row", "How?"]]]
    assert refused["media"] == [{"modality": "image", "name": "none.png"}]
    assert page.head["counts"]["codes"]["MM201"] == 1
    assert page.head["codes"]["MM201"]["severity"] == "error"


def test_two_tasks_stand_beside_each_other(tour: Path, tmp_path: Path) -> None:
    rows = [{"id": n, "question": f"What is {n}?", "answer": str(n)} for n in range(3)]
    one = load_task({"dataset": {"rows": rows}})
    changed = load_task({"dataset": {"rows": [rows[1], {**rows[2], "question": "What is two?"}]}})
    view_html(one, tmp_path / "page.html", changed, check=False)
    page = OpenedPage(tmp_path / "page.html")
    hashes = {entry["id"]: entry["hash"] for entry in page.index(0)}
    others = {entry["id"]: entry["hash"] for entry in page.index(1)}
    assert hashes["1"] == others["1"]
    assert hashes["2"] != others["2"]
    assert len(page.head["sides"]) == 2


def test_the_command_writes_a_page(tour: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(tour / "tour.jsonl"), "--html", str(tmp_path / "page.html"), "-p", "tour-1?"]) == 0
    assert len(OpenedPage(tmp_path / "page.html").index()) == 10
    assert "10 samples" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_an_output_that_is_a_folder_is_refused(tour: Path, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="is a folder"):
        view_html(tour / "tour.jsonl", tmp_path)
