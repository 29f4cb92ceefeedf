import base64

import pytest

from mmprompt import RowError, Segment, TagError, TaskError, TemplateError
from mmprompt.datasets.sample import Sample
from mmprompt.icl.ranking import RowText

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde" + bytes(60)
TAGGED = "<AIS_TEXT_START>two cats<AIS_CONTENT_TAG><AIS_IMAGE_START>dog.jpg<AIS_CONTENT_TAG> and a hat"


def text(value, scanned=True, column="q", **options):
    row = Sample({column: value}, "s1", "a.jsonl", 4, 3, scanned)
    return RowText([column], options.get("output"), options.get("tagged"))(row)


def test_values_read_as_text_one_column_a_line():
    row = Sample(
        {"q": "What?", "n": 3, "none": None, "l": ["a", ["b"]], "d": {"x": "c"}, "a": "no"}, 1, None, 1, 0, True
    )
    assert RowText("q n none l d a", "a", None)(row) == "What?\n3\na\nb\nc"


def test_of_a_tagged_column_the_text_segments_count():
    assert text(TAGGED) == text(TAGGED, column="content") == "two cats\n and a hat"
    assert text([Segment("text", "hi"), Segment("image", "x.png")]) == "hi"
    assert text("plain", tagged=["q"]) == "plain"


def test_tags_in_a_format_that_is_never_scanned_are_text():
    assert text(TAGGED, scanned=False) == TAGGED


def test_media_in_a_value_are_no_text_but_names_of_media_are():
    encoded = base64.b64encode(PNG).decode()
    for media in (PNG, encoded, "data:image/png;base64," + encoded, [encoded], {"bytes": PNG, "path": None}):
        assert text(media) == ""
    for name in ("cats/1.jpg", "https://example.org/1.jpg", "很" * 100, "x" * 100):
        assert text(name) == name


def test_faults_name_the_row():
    with pytest.raises(RowError, match=r"a.jsonl:4 \(sample s1\): no column 'x'"):
        RowText(["x"], None, None)(Sample({"q": "1"}, "s1", "a.jsonl", 4, 3, True))
    with pytest.raises(TagError, match=r"a.jsonl:4 q @"):
        text("<AIS_TEXT_START>a<AIS_TEXT_START>b")
    with pytest.raises(TemplateError, match="null"):
        text(None, column="content")
    with pytest.raises(TaskError, match="no columns to compare"):
        text("x", output="q")
