"""The HTML report of ``mmprompt check``, held against an HTML parser and opened in a browser."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import shutil
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

from mmprompt.cli import main

CHROMIUM = shutil.which("chromium")
VOID = {"meta", "link", "br", "img", "rect"}


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Write a report of rows with faults, one with a hostile id, and return its path."""
    Image.new("RGB", (3, 3), "red").save(tmp_path / "tiny.png")
    Image.linear_gradient("L").save(tmp_path / "good.png")
    Image.linear_gradient("L").resize((2000, 20)).save(tmp_path / "wide.png")
    rows: list[dict[str, object]] = [
        {"id": "<script>alert(1)</script>", "question": "Why?", "image": "tiny.png", "answer": "<b>x</b>"},
        {"id": "\ud800", "question": "Who\u0007?", "image": '"><img src=x onerror=alert(1)>.png', "answer": "y"},
        {"id": 3, "question": "How so, and where?", "image": "wide.png", "answer": "y"},
        {"id": 4, "question": "So?", "image": "good.png", "answer": "z"},
    ]
    rows += [{"id": 10 + n, "question": f"Why {n}?", "image": "nowhere.png", "answer": "x"} for n in range(60)]
    (tmp_path / "a&b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code = main(
        ["check", str(tmp_path / "a&b.jsonl"), "--output-format", "html", "--output-file", str(tmp_path / "r.html")]
    )
    assert code == 1
    return tmp_path / "r.html"


class Elements(HTMLParser):
    """Counts elements, and checks that each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count: Counter[str] = Counter()
        self.text = ""
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] += 1
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_holds_all_it_shows_and_nothing_of_the_data_is_markup(page: Path) -> None:
    elements = Elements()
    elements.feed(page.read_text(encoding="utf-8"))
    assert elements.open == []
    assert elements.count["script"] == 0
    assert "sample <script>alert(1)</script>" in elements.text
    assert "a&b.jsonl" in elements.text
    sources = [value or "" for name, value in elements.attributes if name in ("src", "href")]
    assert all(source.startswith(("data:", "#")) for source in sources)
    assert not [name for name, _ in elements.attributes if name.startswith("on")]


def test_links_lead_to_their_findings(tmp_path: Path) -> None:
    for name in ("a b.jsonl", "a-b.csv"):
        (tmp_path / name).write_text("id,question,image\n1,Why?,no.png\n")
    (tmp_path / "a b.jsonl").write_text('{"id": 1, "question": "Why?", "image": "no.png"}\n')
    names = [str(tmp_path / name) for name in ("a b.jsonl", "a-b.csv")]
    report = tmp_path / "r.html"
    main(["check", *names, "--output-format", "html", "--output-file", str(report), "--select", "MM201"])
    elements = Elements()
    elements.feed(report.read_text(encoding="utf-8"))
    anchors = [value or "" for name, value in elements.attributes if name == "id"]
    links = [value for name, value in elements.attributes if name == "href" and value != "data:,"]
    assert links == [f"#{anchor}" for anchor in anchors]
    assert len(set(anchors)) == 2
    assert not any(set(anchor) & set(" \t\n") for anchor in anchors)


def test_findings_show_their_pictures_and_the_rest_is_counted(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    rows = re.findall(r'<tr><td class="look">(.*?)</td><td class="place">(.*?)</td><td>(.*?)<div', text)
    tiny = [look for look, place, _ in rows if "script" in place and place.endswith("<br>image")]
    assert tiny
    assert all(look.startswith('<img alt="" loading="lazy" src="data:image/jpeg;base64,') for look in tiny)
    missing = [look for look, _, words in rows if "nowhere.png" in words and "no such file" in words]
    assert missing
    assert not any(missing)
    assert "and 10 more" in text  # of MM201
    assert text.count("<svg") >= 4


def test_of_a_damaged_picture_its_rest_or_its_name_is_shown(tmp_path: Path) -> None:
    for name, kept in (("half.jpg", 0.5), ("head.jpg", 0.0)):
        Image.effect_noise((300, 200), 90).save(tmp_path / name)
        data = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(data[: max(700, int(len(data) * kept))])
    rows = [{"id": n, "question": "Why?", "image": name} for n, name in enumerate(("half.jpg", "head.jpg"))]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    written = tmp_path / "r.html"
    options = ["--select", "MM3", "--output-format", "html", "--output-file", str(written)]
    assert main(["check", str(tmp_path / "data.jsonl"), *options]) == 1
    found = re.findall(r'<td class="look">(.*?)</td><td class="place">(.*?)</td>', written.read_text(encoding="utf-8"))
    looks = {place: look for look, place in found}
    shown = looks["data.jsonl:1<br>sample 0<br>image"].partition("base64,")[2].partition('"')[0]
    with Image.open(io.BytesIO(base64.b64decode(shown))) as image:
        assert (image.width, image.height) == (160, 107)
        top, bottom = image.convert("L").crop((0, 0, 160, 40)), image.convert("L").crop((0, 75, 160, 107))
    assert top.getextrema()[1] > 100 > bottom.getextrema()[1]
    assert looks["data.jsonl:2<br>sample 1<br>image"] == '<div class="unseen">cannot be shown<br>head.jpg</div>'


def test_both_of_two_similar_pictures_are_shown_and_the_picture_of_a_row_whose_answer_is_wrong(tmp_path: Path) -> None:
    Image.effect_mandelbrot((320, 240), (-1.6, -1.2, 0.8, 1.2), 60).save(tmp_path / "a.png")
    Image.open(tmp_path / "a.png").resize((240, 180)).save(tmp_path / "b.png")
    rows = [
        {"id": n, "question": f"Why {n // 2}?", "image": name, "A": "this", "B": "that", "answer": answer}
        for n, (name, answer) in enumerate((("a.png", "A"), ("a.png", "B"), ("b.png", "E")))
    ]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    written = tmp_path / "r.html"
    options = ["--select", "MM709,MM710,MM702", "--output-format", "html", "--output-file", str(written)]
    assert main(["check", str(tmp_path / "data.jsonl"), *options]) == 1
    found = re.findall(r'id="(MM...)-1">.*?<td class="look">(.*?)</td>', written.read_text(encoding="utf-8"), re.DOTALL)
    looks = {code: re.findall('base64,([^"]*)', look) for code, look in found}
    (first,), (own,) = looks["MM710"], looks["MM702"]
    assert looks["MM709"] == [own, first]
    assert own != first


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_shows_the_page_without_an_error(page: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1200, "height": 1000})
        told: list[str] = []
        tab.on("console", lambda message: told.append(message.text))
        tab.on("pageerror", lambda error: told.append(str(error)))
        tab.on(
            "request", lambda request: told.append(request.url) if request.url[:5] not in ("file:", "data:") else None
        )
        tab.goto(page.as_uri(), wait_until="load")
        tab.evaluate("document.images.length && [...document.images].forEach(image => image.loading = 'eager')")
        tab.wait_for_function("[...document.images].every(image => image.complete)")
        broken = tab.evaluate("[...document.images].filter(image => !image.naturalWidth).length")
        wide = tab.evaluate("document.documentElement.scrollWidth > window.innerWidth")
        bars = tab.evaluate(
            "[...document.querySelectorAll('rect')].filter(bar => bar.getBoundingClientRect().height).length"
        )
        browser.close()
    assert (told, broken, wide) == ([], 0, False)
    assert bars > 4


def test_the_pages_of_check_and_score_allow_their_own_styles_alone(page: Path, tmp_path: Path) -> None:
    line = {"row": 0, "id": 1, "request": "", "prediction": "x", "answer": "x", "model": "m"}
    (tmp_path / "j.jsonl").write_text(json.dumps(line) + "\n")
    assert main(["score", str(tmp_path / "j.jsonl"), "--report", str(tmp_path / "s.html")]) == 0
    for name in (page.name, "s.html"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        [style] = re.findall("<style>(.*?)</style>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        rules = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
        assert re.findall('Content-Security-Policy" content="(.*?)"', text) == [rules]
        assert " style=" not in text
