"""The page of ``mmprompt view`` in Chromium: nothing is loaded from elsewhere, nothing fails, and everything works."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mmprompt import view_html
from mmprompt.viewer.exhibit import exhibit_of
from mmprompt.viewer.served_rows import ServedRows
from mmprompt.viewer.server import PageServer
from mmprompt.viewer.view import write_page
from mmprompt.viewer.viewed_rows import Choice

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright")

Open = Callable[..., Any]


@pytest.fixture
def browse() -> Iterator[Open]:
    """Return a function that opens a page; at the end nothing was told, and nothing asked for elsewhere."""
    told: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

        def opened(page: Path, **options: Any) -> Any:
            tab = browser.new_page(**{"viewport": {"width": 1280, "height": 860}, **options})
            tab.on("console", lambda message: told.append(message.text))
            tab.on("pageerror", lambda error: told.append(str(error)))
            tab.on("dialog", lambda dialog: told.append(dialog.message) or dialog.dismiss())
            own = ("file:", "blob:")
            tab.on("request", lambda request: None if request.url.startswith(own) else told.append(request.url))
            tab.goto(page.as_uri(), wait_until="load")
            tab.wait_for_selector("html[data-ready]")
            return tab

        yield opened
        browser.close()
    assert told == []


@pytest.fixture(scope="module")
def tour_page(tour: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("page") / "tour.html"
    view_html(tour / "task.yaml", page)
    return page


def shown(tab: Any, sample: str) -> None:
    """Choose a sample by its id, as a person does."""
    tab.fill("#search", sample)
    tab.wait_for_function("() => state.shown.length === 1")
    tab.click(".item")
    tab.wait_for_function("name => document.querySelector('#sample h2')?.textContent === name", arg=sample)


@pytest.mark.parametrize(("sample", "kind"), [("tour-04", "audio"), ("tour-06", "audio"), ("tour-07", "video")])
def test_sounds_and_videos_play(sample: str, kind: str, tour_page: Path, browse: Open) -> None:
    tab = browse(tour_page)
    shown(tab, sample)
    tab.wait_for_selector(f"#sample {kind}")
    play = f"""async () => {{
        const player = document.querySelector('#sample {kind}');
        player.muted = true;
        await player.play();
        for (let n = 0; n < 200 && player.currentTime === 0; n++) await new Promise((done) => setTimeout(done, 25));
        return player.currentTime;
    }}"""
    assert tab.evaluate(play) > 0


def test_every_sample_shows_its_pictures_and_texts(tour_page: Path, browse: Open) -> None:
    tab = browse(tour_page)
    seen = 0
    for place in range(25):
        tab.evaluate("place => select(place)", place)
        tab.wait_for_function(
            "place => document.querySelector('#sample h2')?.textContent === state.shown[place].entries[0].id", arg=place
        )
        tab.wait_for_function(
            "() => [...document.querySelectorAll('#sample figure')].every((f) => f.children.length > 1)"
        )
        tab.wait_for_function("() => [...document.querySelectorAll('#sample img')].every((i) => i.complete)")
        assert (
            tab.evaluate("() => [...document.querySelectorAll('#sample img')].filter((i) => !i.naturalWidth).length")
            == 0
        )
        seen += tab.evaluate("() => document.querySelectorAll('#sample img, #sample audio, #sample video').length")
    assert seen == 31  # the picture at an address is not fetched
    assert tab.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")


def test_search_filters_and_tabs(tour_page: Path, browse: Open) -> None:
    tab = browse(tour_page)
    tab.select_option("select[aria-label='Any modality']", "video")
    tab.wait_for_function("() => state.shown.length === 2")
    assert tab.inner_text("#count") == "2 of 25 samples"
    tab.select_option("select[aria-label='Any modality']", "")
    tab.select_option("select[aria-label='Any findings']", "MM705")
    tab.wait_for_function("() => state.shown.length === 1")
    tab.select_option("select[aria-label='Any findings']", "")
    shown(tab, "tour-08")
    for name, words in {
        "Media": "clip",
        "Segments": "media/coffee.jpg",
        "Prompt": "HUMAN",
        "Row": "AIS_IMAGE_START",
    }.items():
        tab.click(f"#sample [role=tab]:has-text('{name}')")
        assert tab.get_attribute("#sample [role=tabpanel]", "aria-label") == name
        assert words in tab.inner_text("#sample [role=tabpanel]") or name == "Media"
    tab.click("#sample [role=tab]:has-text('Request')")
    tab.click("#sample [role=tab]:has-text('gemini')")
    body = json.loads(tab.inner_text("#sample pre"))
    assert body["contents"][0]["parts"][1]["inline_data"]["data"].endswith("bytes)")


def test_the_keyboard_is_enough(tour_page: Path, browse: Open) -> None:
    tab = browse(tour_page)
    tab.keyboard.press("/")
    tab.keyboard.type("tour-1")
    tab.wait_for_function("() => state.shown.length === 10")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowDown")
    tab.wait_for_function("() => document.querySelector('#sample h2')?.textContent === 'tour-11'")
    tab.keyboard.press("End")
    tab.wait_for_function("() => document.querySelector('#sample h2')?.textContent === 'tour-19'")
    tab.focus("#sample [role=tab][aria-selected=true]")
    tab.keyboard.press("ArrowRight")
    assert tab.get_attribute("#sample [role=tabpanel]", "aria-label") == "Media"
    tab.keyboard.press("ArrowLeft")
    tab.focus("#sample button.picture")
    tab.keyboard.press("Enter")
    assert tab.evaluate("() => document.getElementById('full').open")
    tab.keyboard.press("Escape")
    assert not tab.evaluate("() => document.getElementById('full').open")


def test_template_and_row_are_told_apart_by_more_than_colour(tour_page: Path, browse: Open) -> None:
    tab = browse(tour_page)
    shown(tab, "tour-01")
    assert tab.inner_text("#sample .message .template") == "Answer in a few words."
    assert "underline" in tab.evaluate(
        "() => getComputedStyle(document.querySelector('#sample .message .template')).textDecoration"
    )


def test_two_tasks_are_compared(tmp_path: Path, browse: Open) -> None:
    for name, word in (("a", "blue"), ("b", "green")):
        rows = [
            {"id": n, "question": f"Is the {word if n == 3 else 'red'} ball {n}?", "answer": "yes"} for n in range(5)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    view_html(tmp_path / "a.jsonl", tmp_path / "page.html", tmp_path / "b.jsonl", check=False)
    tab = browse(tmp_path / "page.html")
    tab.wait_for_selector("#sample .side:nth-child(2)")
    assert tab.inner_text("#sample .side h2") == "3"
    assert tab.inner_text("#sample ins") == "green"
    assert tab.inner_text("#sample del") == "blue"
    tab.select_option("select[aria-label='Changed or not']", "any")
    tab.wait_for_function("() => state.shown.length === 1")


@pytest.mark.parametrize("options", [{"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 800}}])
def test_dark_and_narrow_screens(options: dict[str, Any], tour_page: Path, browse: Open) -> None:
    tab = browse(tour_page, **options)
    tab.click(".item:nth-child(3)")
    tab.wait_for_selector("#sample h2")
    tab.click("#show-overview")
    tab.wait_for_selector("#overview svg")
    assert tab.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    contrast = """() => {
        const levels = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        const light = (colour) => { const [r, g, b] = levels(colour); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const style = getComputedStyle(document.querySelector('.tile span')), back = getComputedStyle(document.querySelector('.tile'));
        const [a, b] = [light(style.color), light(back.backgroundColor)].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
    }"""
    assert tab.evaluate(contrast) >= 4.5


def test_hostile_text_stays_text(tmp_path: Path, browse: Open) -> None:
    hostile = (
        '</script><script>alert(1)</script></style><img src=x onerror="alert(2)"><svg onload=alert(3)>\u202e\u0007'
    )
    row = {"id": hostile, "question": hostile, "answer": hostile, "category": hostile, "hint": hostile}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n" + json.dumps({**row, "id": 2, "category": "x"}) + "\n")
    view_html(tmp_path / "rows.jsonl", tmp_path / "page.html")
    tab = browse(tmp_path / "page.html")
    tab.wait_for_selector("#sample h2")
    assert "<img src=x onerror=" in tab.inner_text("#sample .message")
    assert "U+202E" in tab.inner_text("#sample .message")
    for name in ("Prompt", "Request", "Row"):
        tab.click(f"#sample [role=tab]:has-text('{name}')")
    tab.click("#show-overview")
    tab.wait_for_selector("#overview .tile")
    assert tab.evaluate("() => document.querySelectorAll('img, [onerror], [onload]').length") == 0


def test_media_beside_the_page_are_shown_and_played(tour: Path, tmp_path: Path, browse: Open) -> None:
    write_page([exhibit_of(tour / "task.yaml")], str(tmp_path / "a page.html"), Choice(check=False), most=60_000)
    tab = browse(tmp_path / "a page.html")
    shown(tab, "tour-08")
    tab.wait_for_function("() => document.querySelector('#sample video')?.readyState > 0")
    tab.wait_for_function("() => document.querySelector('#sample audio')?.readyState > 0")
    tab.click("#sample button.picture")
    tab.wait_for_function("() => document.querySelector('dialog img').naturalWidth === 512")


def test_a_served_page_shows_rows_as_they_are_asked_for(tmp_path: Path) -> None:
    rows = [{"id": n, "question": f"What is {n}?"} for n in range(2000)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told: list[str] = []
    exhibit = exhibit_of(tmp_path / "rows.jsonl")
    with closing(ServedRows(exhibit, Choice(check=False))) as served, PageServer(served) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with sync_api.sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                tab = browser.new_page()
                tab.on("console", lambda message: told.append(message.text))
                tab.on("pageerror", lambda error: told.append(str(error)))
                tab.goto(server.address)
                tab.wait_for_function("() => document.getElementById('count').textContent === '2,000 samples'")
                tab.evaluate("() => select(1999)")
                tab.wait_for_function("() => document.querySelector('#sample h2')?.textContent === '1999'")
                tab.fill("#search", "is 1777?")
                tab.wait_for_function("() => state.shown.length === 1")
                tab.click(".item")
                tab.wait_for_function("() => document.querySelector('#sample h2')?.textContent === '1777'")
                browser.close()
        finally:
            server.shutdown()
            thread.join()
    assert told == []


def test_what_browsers_do_not_play_shows_its_facts(tmp_path: Path, browse: Open) -> None:
    from PIL import Image

    Image.new("RGB", (40, 30), "red").save(tmp_path / "scan.tiff")
    (tmp_path / "rows.jsonl").write_text(json.dumps({"id": 1, "question": "What?", "image": "scan.tiff"}) + "\n")
    (tmp_path / "task.yaml").write_text("dataset: {path: rows.jsonl}\n")
    from mmprompt import MediaPolicy

    view_html(tmp_path / "task.yaml", tmp_path / "page.html", policy=MediaPolicy([tmp_path], read_also={"tiff": None}))
    tab = browse(tmp_path / "page.html")
    assert "Browsers do not show image/tiff" in tab.inner_text("#sample .medium")


def test_thousands_of_rows_are_listed_searched_and_scrolled_at_once(tmp_path: Path, browse: Open) -> None:
    rows = [{"id": n, "question": f"What is {n} and {n * 7}? " + "word " * 60} for n in range(5000)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    view_html(tmp_path / "rows.jsonl", tmp_path / "page.html", check=False)
    tab = browse(tmp_path / "page.html")
    assert tab.evaluate("() => document.querySelectorAll('.item').length") < 40
    assert tab.evaluate("() => document.getElementById('spacer').offsetHeight") == 5000 * 72
    search = "async () => { const began = performance.now(); state.query = 'is 4999'; await filter(); return [state.shown.length, performance.now() - began]; }"
    found, took = tab.evaluate(search)
    assert found == 1
    assert took < 3000  # 10 ms on a machine at rest
    tab.evaluate("async () => { state.query = ''; await filter(); list.scrollTop = 4000 * HEIGHT; }")
    tab.wait_for_selector("#item-4003")
