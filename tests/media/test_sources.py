"""What a string or object is, told without opening anything; what templates and prompt lists make of it."""

from __future__ import annotations

import base64
import builtins
import os
import pathlib
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from mmprompt.errors import MMPromptError, SourceError
from mmprompt.media.sources import as_written, classify, compose, in_short

TOUR = pathlib.Path(__file__).parents[2] / "fixtures" / "tour" / "media"
JPEG = base64.b64encode((TOUR / "clock.jpg").read_bytes()).decode()
PNG = base64.b64encode((TOUR / "alpha.png").read_bytes()).decode()


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("a.jpg", "path"),
        ("images/val 2014/a#1?.jpg", "path"),
        ("/data/a.jpg", "path"),
        ("/9j/4AAQ.jpg", "path"),
        ("/9j/" + "abcd" * 40 + ".jpg", "path"),
        ("//host/share/photos", "path"),
        ("__pycache__/x", "path"),
        ("AAAA/BBBB/CCCC", "path"),
        ("UkwithoutDot", "path"),
        ("C:\\photos\\cup.jpg", "path"),
        ("C:/photos/cup.jpg", "path"),
        ("1:2.jpg", "path"),
        ("a/b://c", "path"),
        ("图片/杯子.jpg", "path"),
        (" leading.jpg", "path"),
        ("data:image/png;base64,AAAA", "data"),
        ("DATA:IMAGE/PNG;BASE64,AAAA", "data"),
        ("http://example.com/a.jpg", "url"),
        ("HTTPS://example.com:8080/a.jpg?x=1#f", "url"),
        ("http://[::1]:80/a", "url"),
        ("https://example.com/图.jpg", "url"),
        ("file://a.jpg", "file"),
        ("FILE:///a.jpg", "file"),
        ("gs://bucket/a.jpg", "scheme"),
        ("ftp://example.com/a.jpg", "scheme"),
        (JPEG, "base64"),
        (PNG, "base64"),
        (f"{JPEG},{JPEG}", "base64"),
        (JPEG[:40] + "\n" + JPEG[40:], "base64"),
        ("\n " + JPEG, "base64"),
        (JPEG.replace("/", "_").replace("+", "-"), "base64"),
        ("/9j/4AAQSkZJRgABAQAA", "base64"),
    ],
)
def test_a_string_has_one_kind(source, kind):
    assert classify(source).kind == kind


@pytest.mark.parametrize(
    "name", ["cat.webp", "chart.png", "spinner.gif", "train.wav", "train.flac", "train.mp3", "clip.mp4"]
)
def test_bare_base64_of_every_kind_is_known_by_its_head(name):
    data = (TOUR / name).read_bytes()
    assert classify(base64.b64encode(data).decode()).kind == "base64"
    assert classify(base64.urlsafe_b64encode(data).decode()).kind == "base64"


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:///abs/a.jpg", "/abs/a.jpg"),
        ("file://localhost/abs/a.jpg", "/abs/a.jpg"),
        ("file://LOCALHOST/abs/a.jpg", "/abs/a.jpg"),
        ("file://rel/a.jpg", "rel/a.jpg"),
        ("file://host/share/x.jpg", "host/share/x.jpg"),
        ("file:///a%20b%2520.jpg", "/a b%20.jpg"),
        ("file:///a#1?x.jpg", "/a#1?x.jpg"),
        ("file://media/%E6%9D%AF.jpg", "media/杯.jpg"),
        ("file://media/杯%20.jpg", "media/杯 .jpg"),
        ("file://100%.jpg", "100%.jpg"),
        ("file://%2e%2e/x.jpg", "../x.jpg"),
    ],
)
def test_file_urls_are_decoded_once(url, path):
    assert classify(url) == ("file", path)


def test_a_path_is_never_decoded():
    assert classify("a%20b.jpg") == ("path", "a%20b.jpg")
    assert classify("%2e%2e/x") == ("path", "%2e%2e/x")


@pytest.mark.parametrize(
    "url", ["file://%FF.jpg", "file://a%00.jpg", "file://", "file://localhost/%C3%28", "file://\ud800%20"]
)
def test_file_urls_that_name_nothing_are_refused(url):
    with pytest.raises(SourceError):
        classify(url)


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("http://good\\@127.0.0.1/", "backslash"),
        ("http://example.com/a\\b", "backslash"),
        ("http://example.com/a\r\nX: 1", "control"),
        ("http://example.com/\x00", "control"),
        ("http://example.com/a b.jpg", "blank"),
        ("http://example.com/a.jpg\n", "control"),
        ("http://example.com/\u3000.jpg", "blank"),
        (" http://example.com/a.jpg", "blanks before"),
        ("https://user:password@example.com/x", "user information"),
        ("https://user@example.com", "user information"),
        ("http:///path", "no host"),
        ("http://", "no host"),
        ("http://:80/", "no host"),
        ("http://host:port/", "host or port"),
        ("http://[::1/", "host or port"),
        ("http://example.com\uff0fevil/", "differently"),
        ("http://a\uff20b/", "differently"),
    ],
)
def test_urls_that_parsers_read_differently_are_refused(url, word):
    with pytest.raises(SourceError, match=word) as caught:
        classify(url)
    assert "password" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    "source",
    [
        None,
        "",
        "  \n",
        7,
        1.5,
        True,
        {},
        {"bytes": None, "path": None},
        {"x": 1},
        [],
        [1],
        object(),
        b"",
        ("a", 3),
        {"path": {"path": "a"}},
    ],
)
def test_what_is_no_source_is_refused(source):
    with pytest.raises(SourceError):
        classify(source)


def test_objects_are_sources():
    assert classify(bytearray(b"ab")) == ("bytes", b"ab")
    assert classify(memoryview(b"ab")) == ("bytes", b"ab")
    assert classify(pathlib.PurePosixPath("http:/x")) == ("path", "http:/x")
    assert classify({"bytes": b"ab", "path": "x.jpg"}) == ("bytes", b"ab")
    assert classify({"bytes": None, "path": "x.jpg"}) == ("path", "x.jpg")
    image, array = Image.new("RGB", (2, 2)), np.zeros(4, "f4")
    for source in (
        image,
        (array, 16000),
        {"array": array, "sampling_rate": 16000, "path": None},
        [image, image],
        sys.stdin.buffer,
    ):
        kind, value = classify(source)
        assert kind == "object"
        assert value is source


@pytest.mark.parametrize(
    "own",
    [
        f"data:image/png;base64,{PNG}",
        "https://h/a.jpg",
        "file://a%20b.jpg",
        "gs://b/a",
        JPEG,
        f"{JPEG},{JPEG}",
        b"bytes",
        {"bytes": b"x"},
    ],
)
@pytest.mark.parametrize(
    "prefix", ["file://", "data:image/jpeg;base64,", "images/", "https://host/", "file:///data/x/"]
)
def test_a_form_of_its_own_wins_over_the_skeleton(own, prefix):
    assert compose(prefix, own, ".jpg") is own


@pytest.mark.parametrize(
    ("prefix", "source", "suffix", "composed"),
    [
        ("", "a%20b.jpg", "", "a%20b.jpg"),
        ("file://", "a%20b.jpg", "", "a%20b.jpg"),
        ("FILE://", "a.jpg", "", "a.jpg"),
        ("file://", "/abs/a.jpg", "", "/abs/a.jpg"),
        ("file://", "a", ".jpg", "a.jpg"),
        ("data:image/jpeg;base64,", "a.jpg", "", "a.jpg"),
        ("file:///data/x/", "a%20b.jpg", "", "/data/x/a%20b.jpg"),
        ("file:///data%20x/", "a%20b.jpg", "", "/data x/a%20b.jpg"),
        ("file://images/", "a.jpg", "", "images/a.jpg"),
        ("images/", "a.jpg", "", "images/a.jpg"),
        ("images/", "/abs/a.jpg", "", "/abs/a.jpg"),
        ("file://images/", "/abs/a.jpg", "", "/abs/a.jpg"),
        ("https://host/", "a.jpg", "?v=1", "https://host/a.jpg?v=1"),
        ("https://host", "/a.jpg", "", "https://host/a.jpg"),
        ("", "17", ".jpg", "17.jpg"),
    ],
)
def test_prefix_and_suffix_are_put_around_a_plain_path(prefix, source, suffix, composed):
    assert compose(prefix, source, suffix) == composed


@pytest.mark.parametrize("source", [None, "", " ", 3])
def test_no_source_composes_to_nothing(source):
    with pytest.raises(SourceError):
        compose("images/", source, "")


def test_as_written_keeps_strings_and_gives_bare_base64_its_type():
    for source in ("a.jpg", "https://h/a", f"data:x;base64,{PNG}", b"b", None, 3):
        assert as_written(source) is source
    assert as_written(PNG) == f"data:image/png;base64,{PNG}"
    assert as_written(f"{JPEG},{JPEG}") == f"data:video/jpeg;base64,{JPEG},{JPEG}"
    clip = base64.b64encode((TOUR / "clip.mp4").read_bytes()).decode()
    assert as_written(clip) == f"data:video/mp4;base64,{clip}"
    assert as_written(clip, "audio") == f"data:audio/mp4;base64,{clip}"


@pytest.mark.parametrize(
    "source",
    [
        JPEG,
        f"data:image/png;base64,{PNG}",
        f"data:{PNG}",
        b"x" * 999,
        "a" * 500 + ".jpg",
        "https://h/" + "p" * 300,
        "\x1b" * 100,
        Image.new("RGB", (2, 2)),
    ],
)
def test_a_source_in_short_is_short_and_shows_no_payload(source):
    short = in_short(source)
    assert len(short) <= 80
    assert short.isprintable()
    assert PNG[20:60] not in short


def test_a_source_in_short_shows_no_query_and_no_password():
    short = in_short("https://user:secret@h/a.jpg?token=key#frag")
    assert short == "https://…@h/a.jpg"
    assert "se/cret" not in in_short("https://user:se/cret@h/a")


@given(
    st.one_of(
        st.text(),
        st.text().map("file://".__add__),
        st.text().map("http://".__add__),
        st.text().map("data:".__add__),
        st.text("/9jAQkU+_-=,. \n"),
    )
)
def test_any_text_is_classified_or_refused_and_nothing_is_opened(text):
    opened = []
    real_open, real_os_open = builtins.open, os.open
    builtins.open = lambda *a, **k: opened.append(a) or real_open(*a, **k)
    os.open = lambda *a, **k: opened.append(a) or real_os_open(*a, **k)
    try:
        for act in (
            classify,
            as_written,
            in_short,
            lambda s: compose("file://", s, ""),
            lambda s: compose("images/", s, ".jpg"),
        ):
            try:
                act(text)
            except MMPromptError as error:
                assert len(str(error)) < 400  # most texts raise nothing
    finally:
        builtins.open, os.open = real_open, real_os_open
    assert opened == []
