import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmprompt import Segment, TagError, join_segments, parse_segments
from mmprompt.segments import START_TAGS, TERMINATOR, near_miss_in_text

TAGS = [*START_TAGS, TERMINATOR]
MISSES = {
    "<ais_image_start>": "<AIS_IMAGE_START>",
    "<AIS_IMG_START>": "<AIS_IMAGE_START>",
    "<Ais_Text_Start>": "<AIS_TEXT_START>",
    "< AIS_AUDIO_START >": "<AIS_AUDIO_START>",
    "<AIS-VIDEO-START>": "<AIS_VIDEO_START>",
    "<AIS VIDEO STRAT>": "<AIS_VIDEO_START>",
    "<AIS_VIDEO>": "<AIS_VIDEO_START>",
    "<AIS_IMAGE_START/>": "<AIS_IMAGE_START>",
    "<AIS_IMAGE_START": "<AIS_IMAGE_START>",
    "</AIS_CONTENT_TAG>": TERMINATOR,
    "</AIS_IMAGE_START>": TERMINATOR,
    "<AIS_TEXT_END>": TERMINATOR,
    "<AIS_CONTENT_END>": TERMINATOR,
    "<AIS_CONTENTTAG>": TERMINATOR,
}
misses = st.sampled_from(sorted(MISSES))
prose = st.text(alphabet=st.characters(exclude_characters="<", exclude_categories=["Cs"]), max_size=8).map(
    lambda t: f" {t} "
)
pieces = st.lists(
    st.one_of(st.sampled_from(TAGS), st.text(max_size=8), st.sampled_from(["<AIS_", ">", " ", "\n", "<"]), misses)
)
tagged_texts = pieces.map("".join)


def pairs(text, **options):
    return [(s.modality, s.value) for s in parse_segments(text, **options)]


def test_segments_come_in_order_with_their_values():
    text = "<AIS_TEXT_START>What?<AIS_CONTENT_TAG><AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG><AIS_AUDIO_START>b.wav<AIS_CONTENT_TAG><AIS_VIDEO_START>c.mp4<AIS_CONTENT_TAG>"
    assert pairs(text) == [("text", "What?"), ("image", "a.jpg"), ("audio", "b.wav"), ("video", "c.mp4")]


def test_offsets_are_those_of_the_value():
    text = "lead <AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG> mid <AIS_TEXT_START>q"
    for segment in parse_segments(text):
        assert text[segment.start : segment.end] == segment.value


def test_a_text_without_tags_is_one_text_segment_even_when_blank():
    assert pairs("plain {text}") == [("text", "plain {text}")]
    assert pairs("") == [("text", "")]
    assert pairs(" \n") == [("text", " \n")]


def test_text_outside_tags_is_kept_unless_blank():
    assert pairs("see <AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG>\n<AIS_TEXT_START>q<AIS_CONTENT_TAG> end") == [
        ("text", "see "),
        ("image", "a.jpg"),
        ("text", "q"),
        ("text", " end"),
    ]


def test_the_last_terminator_may_be_missing():
    assert pairs("<AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>q") == [("image", "a.jpg"), ("text", "q")]


def test_empty_and_blank_text_segments_are_kept():
    assert pairs("<AIS_TEXT_START><AIS_CONTENT_TAG><AIS_TEXT_START> <AIS_CONTENT_TAG>") == [("text", ""), ("text", " ")]


NOT_NEAR = [
    "<aisle>",
    "<ais-stats/>",
    "<ais-instant-search>",
    "<image_start>",
    "AIS_IMAGE_START>",
    "a < AIS",
    "<ais is not>",
]


@pytest.mark.parametrize(("miss", "tag"), MISSES.items())
@pytest.mark.parametrize(
    ("before", "after"),
    [("", ""), ("see ", " it"), ("<AIS_TEXT_START>q<AIS_CONTENT_TAG>", "a.jpg<AIS_CONTENT_TAG>"), ("<AIS_IMAGE_START>a.jpg", "<AIS_TEXT_START>q")],
)  # fmt: skip
def test_a_near_miss_of_a_tag_is_an_error_that_names_the_tag(before, after, miss, tag):
    with pytest.raises(TagError) as caught:
        parse_segments(before + miss + after)
    assert caught.value.where.offset == len(before)
    assert caught.value.what == f"misspelt tag {miss}"
    assert caught.value.hint.startswith(f"write {tag}")


@pytest.mark.parametrize("miss", MISSES)
def test_a_near_miss_inside_a_text_segment_is_text(miss):
    text = f"<AIS_TEXT_START>see {miss} here<AIS_CONTENT_TAG><AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG>"
    assert pairs(text) == [("text", f"see {miss} here"), ("image", "a.jpg")]
    assert near_miss_in_text(text) == miss


@pytest.mark.parametrize("text", NOT_NEAR)
def test_what_only_resembles_a_tag_stays_text(text):
    assert pairs(text) == [("text", text)]
    assert near_miss_in_text(f"<AIS_TEXT_START>{text}") is None


@given(prose, misses, prose)
def test_a_near_miss_is_found_wherever_it_stands_and_lenient_leaves_it(before, miss, after):
    loose, value = before + miss + after, f"<AIS_IMAGE_START>a{before}{miss}{after}<AIS_CONTENT_TAG>"
    for text in (loose, value):
        with pytest.raises(TagError, match="misspelt tag") as caught:
            parse_segments(text)
        assert text.startswith(miss, caught.value.where.offset)
    assert pairs(loose, lenient=True) == [("text", loose)]
    assert pairs(value, lenient=True) == [("image", value[17:-17])]
    inside = f"<AIS_TEXT_START>{loose}<AIS_CONTENT_TAG>"
    assert pairs(inside) == [("text", loose)]
    assert near_miss_in_text(inside) == miss


@pytest.mark.parametrize(
    "hostile", ["<" * 200_000, "<ais " * 50_000, "< \n" * 60_000, "<ais a b" * 30_000, "<" + " " * 200_000]
)
def test_a_text_full_of_brackets_takes_linear_time(hostile):
    begun = time.process_time()
    assert pairs(hostile) == [("text", hostile)]
    assert time.process_time() - begun < 2


def test_a_start_tag_inside_an_open_segment_is_an_error_with_its_offset():
    with pytest.raises(TagError) as caught:
        parse_segments("<AIS_IMAGE_START>a.jpg<AIS_TEXT_START>q<AIS_CONTENT_TAG>")
    assert caught.value.where.offset == 22
    assert str(caught.value) == (
        "@22: start tag <AIS_TEXT_START> inside an open image segment; close the segment before it with <AIS_CONTENT_TAG>"
    )


def test_a_stray_terminator_is_an_error_with_its_offset():
    with pytest.raises(TagError, match=r"^@38: terminator <AIS_CONTENT_TAG> with no open segment"):
        parse_segments("<AIS_TEXT_START>hello<AIS_CONTENT_TAG><AIS_CONTENT_TAG>")
    with pytest.raises(TagError, match=r"^@2: terminator"):
        parse_segments("hi<AIS_CONTENT_TAG>")


def test_lenient_closes_the_open_segment_and_ignores_stray_terminators():
    text = "<AIS_IMAGE_START>a.jpg<AIS_TEXT_START>q<AIS_CONTENT_TAG><AIS_CONTENT_TAG>tail"
    assert pairs(text, lenient=True) == [("image", "a.jpg"), ("text", "q"), ("text", "tail")]


@pytest.mark.parametrize("blank", ["", "  ", "\n\t"])
def test_a_blank_media_segment_is_an_error(blank):
    with pytest.raises(TagError, match="blank image segment"):
        parse_segments(f"<AIS_IMAGE_START>{blank}<AIS_CONTENT_TAG>")


@pytest.mark.parametrize("value", [None, 3, b"x", ["a"]])
def test_what_is_no_text_is_refused_by_name(value):
    kind = "None" if value is None else type(value).__name__
    with pytest.raises(TagError, match=f"^the tagged text is {kind}; give the text of one column$"):
        parse_segments(value)


def test_segments_compare_by_modality_and_value_alone():
    assert Segment("text", "a", 1, 2) == Segment("text", "a", 7, 8)
    assert Segment("text", "a") != Segment("image", "a")
    assert len({Segment("text", "a", 1, 2), Segment("text", "a")}) == 1


def test_join_refuses_a_value_that_contains_a_tag():
    with pytest.raises(TagError, match="contains the tag <AIS_CONTENT_TAG>"):
        join_segments([("text", "x<AIS_CONTENT_TAG><AIS_IMAGE_START>/etc/passwd")])


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ([], "no segments"),
        ([("image", " ")], "blank image"),
        ([("txt", "a")], "did you mean 'text'"),
        ([("image", "a.jpg</AIS_CONTENT_TAG>")], "contains the tag </AIS_CONTENT_TAG>"),
        ([("image", b"x")], "holds bytes, not text"),
    ],
)
def test_join_refuses_what_cannot_be_read_back(segments, message):
    with pytest.raises(TagError, match=message):
        join_segments(segments)


@given(tagged_texts)
def test_parsing_raises_nothing_but_its_own_error_and_loses_nothing(text):
    try:
        segments = parse_segments(text)
    except TagError as error:
        assert error.where.offset is not None
        assert 0 <= error.where.offset <= len(text)
        return
    kept = set()
    for segment in segments:
        assert text[segment.start : segment.end] == segment.value
        kept.update(range(segment.start, segment.end))
    lost = "".join(c if i not in kept else "\0" for i, c in enumerate(text))
    for tag in TAGS:
        lost = lost.replace(tag, "\0")
    assert not lost.replace("\0", "").strip()


@given(tagged_texts)
def test_lenient_parsing_only_refuses_blank_media(text):
    try:
        parse_segments(text, lenient=True)
    except TagError as error:
        assert "blank" in error.what


@given(st.lists(st.tuples(st.sampled_from(["text", "image", "audio", "video"]), st.text()), max_size=6))
def test_join_and_parse_round_trip_for_all_that_join_accepts(segments):
    try:
        text = join_segments(segments)
    except TagError:
        return
    assert pairs(text) == segments
    assert join_segments(parse_segments(text)) == text


def test_the_error_of_a_tag_in_lower_case_says_that_tags_are_upper_case():
    with pytest.raises(TagError) as caught:
        parse_segments("<ais_image_start>a.jpg<ais_content_tag>")
    assert caught.value.hint.startswith("write <AIS_IMAGE_START> (tags are upper case), or put text between")
    with pytest.raises(TagError) as caught:
        parse_segments("<AIS_IMG_START>a.jpg<AIS_CONTENT_TAG>")
    assert caught.value.hint.startswith("write <AIS_IMAGE_START>, or put text between")
