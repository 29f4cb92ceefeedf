"""The media of one request together: how many, how many bytes, and each file read once."""

from __future__ import annotations

import json
import os
import pathlib
import tracemalloc

import numpy as np
import pytest

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media import MediaPolicy, MediaReader, read_messages
from mmprompt.media.request_reader import RequestReader
from mmprompt.media.sources import RootedPath
from mmprompt.messages import MediaPart, MediaRef, Message, TextPart
from mmprompt.run.builders import assistant, image, read_caller_media, user
from mmprompt.tasks.load import load_task
from mmprompt.tasks.media import TaskMedia

FIXTURES = pathlib.Path(__file__).parents[2] / "fixtures"
TOUR = FIXTURES / "tour"
CLOCK = "media/clock.jpg"
JPEG = (TOUR / CLOCK).read_bytes()


def request(**limits):
    return MediaReader(MediaPolicy([TOUR], **limits)).request()


def test_a_large_file_named_a_hundred_times_is_read_once_and_memory_stays_flat(tmp_path):
    size = 8 << 20
    (tmp_path / "large.jpg").write_bytes(JPEG + bytes(size - len(JPEG)))
    reading = MediaReader(MediaPolicy([tmp_path], max_request_bytes=100 * size)).request()
    tracemalloc.start()
    try:
        parts = [reading.read(MediaRef("image", "large.jpg")) for _ in range(100)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(parts) == 100
    assert all(part is parts[0] for part in parts)
    assert peak < 1.1 * size
    with pytest.raises(PolicyError, match="max_request_bytes"):
        reading.read(MediaRef("image", "large.jpg"))


def test_a_file_named_twice_counts_twice():
    assert len(JPEG) > 1
    fitting = request(max_request_bytes=2 * len(JPEG))
    assert fitting.read(MediaRef("image", CLOCK)) is fitting.read(MediaRef("image", CLOCK))
    tight = request(max_request_bytes=2 * len(JPEG) - 1)
    tight.read(MediaRef("image", CLOCK))
    with pytest.raises(PolicyError) as caught:
        tight.read(MediaRef("image", CLOCK))
    assert str(caught.value) == (
        f"the media of one request have more than max_request_bytes ({2 * len(JPEG) - 1}) together; "
        "send fewer or smaller media, raise max_request_bytes, or use --policy trusted"
    )


def test_what_the_request_before_has_read_is_not_read_again_but_counts():
    before = request()
    ref = MediaRef("image", CLOCK)
    part = before.read(ref)
    never = MediaReader(MediaPolicy()).read  # without a root
    following = RequestReader(MediaPolicy(max_request_media=1), never, before.files)
    assert following.read(ref) is part
    with pytest.raises(PolicyError, match="max_request_media"):
        following.read(ref)
    with pytest.raises(PolicyError, match="root"):
        RequestReader(MediaPolicy(), never, before.files).read(MediaRef("image", "media/coffee.jpg"))


def test_examples_that_rows_share_are_read_once(tmp_path):
    for name in ("shot", "one", "two"):
        (tmp_path / f"{name}.jpg").write_bytes(JPEG)
    rows = [{"content": f"<AIS_IMAGE_START>{name}.jpg<AIS_CONTENT_TAG>" * 2, "answer": "a"} for name in ("one", "two")]
    shot = {"content": "<AIS_IMAGE_START>shot.jpg<AIS_CONTENT_TAG>", "answer": "b"}
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "train.jsonl").write_text(json.dumps(shot) + "\n")
    turn = {"role": "HUMAN", "prompt_mm": {"image": {"type": "image_url", "image_url": {"url": "file://{image}"}}}}
    kind = {"type": "MMPromptTemplate", "ice_token": "</E>"}
    infer = {
        "ice_template": {"type": "MMPromptTemplate", "template": {"round": [turn]}},
        "prompt_template": {**kind, "template": {"begin": ["</E>"], "round": [turn]}},
        "retriever": {"type": "FixKRetriever", "fix_id_list": [0]},
    }
    files = {"path": str(tmp_path / "rows.jsonl"), "train": str(tmp_path / "train.jsonl")}
    stream = load_task({"dataset": files, "infer_cfg": infer}).requests()
    first = next(stream)
    (tmp_path / "shot.jpg").unlink()
    second = next(stream)
    assert [len(r.media) for r in (first, second)] == [3, 3]
    assert first.body() == second.body()


def test_one_request_has_at_most_so_many_media_and_the_next_begins_anew():
    reader = MediaReader(MediaPolicy([TOUR], max_request_media=2))
    for _ in range(3):
        reading = reader.request()
        for _ in range(2):
            reading.read(MediaRef("image", CLOCK))
        with pytest.raises(PolicyError) as caught:
            reading.read(MediaRef("image", CLOCK))
    assert str(caught.value) == (
        "one request has more than max_request_media (2) media; "
        "send fewer media, raise max_request_media, or use --policy trusted"
    )


def test_media_that_go_by_name_count_without_bytes():
    reading = request(max_request_bytes=1, max_request_media=2)
    url = MediaRef("image", "https://example.com/a.png")
    assert reading.read(url).name == "https://example.com/a.png"
    assert reading.part(url._replace(name="https://example.com/a.png")).modality == "image"
    with pytest.raises(PolicyError, match="max_request_media"):
        reading.read(url)


def test_each_use_of_a_file_keeps_its_own_keys_and_modality():
    reading = request()
    low, high = (reading.read(MediaRef("image", CLOCK, options=(("detail", d),))) for d in ("low", "high"))
    assert (low.options, high.options) == ((("detail", "low"),), (("detail", "high"),))
    assert reading.read(MediaRef("image", CLOCK, extra=(("cache_control", {}),))).extra == (("cache_control", {}),)
    assert reading.read(MediaRef("image", CLOCK, form="image")).form == "image"
    array = np.zeros(2)
    both = [reading.read(MediaRef("image", CLOCK, extra=(("x", value),))) for value in (array, array + 1)]
    assert [part.extra[0][1][0] for part in both] == [0, 1]
    types = [reading.read(MediaRef(m, "media/clip.mp4")).media_type for m in ("audio", "video", "audio")]
    assert types == ["audio/mp4", "video/mp4", "audio/mp4"]


def test_paths_of_examples_with_other_roots_are_other_files(tmp_path):
    for name, data in (("one", JPEG), ("two", JPEG + b"2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.jpg").write_bytes(data)
    roots = [tmp_path / "one", tmp_path / "two"]
    reading = MediaReader(MediaPolicy(roots)).request()
    sources = ["a.jpg", *[RootedPath("a.jpg", str(root)) for root in roots], pathlib.Path("a.jpg")]
    assert [reading.read(MediaRef("image", source)).data for source in sources] == [JPEG, JPEG, JPEG + b"2", JPEG]
    assert reading.read(MediaRef("image", sources[2])).data == JPEG + b"2"


def test_a_file_is_read_once_in_each_request_and_not_kept_beyond_it(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(JPEG)
    reader = MediaReader(MediaPolicy([tmp_path]))
    reading, ref = reader.request(), MediaRef("image", "a.jpg")
    assert reading.read(ref).data == JPEG
    os.unlink(path)
    assert reading.read(ref).data == JPEG
    with pytest.raises(SourceError, match="no such file"):
        reader.request().read(ref)


def test_what_cannot_be_read_raises_each_time():
    reading = request()
    for _ in range(2):
        with pytest.raises(SourceError, match="no such file"):
            reading.read(MediaRef("image", "missing.jpg"))


def test_what_is_counted_is_what_goes_out():
    """A reader that makes media smaller is given to ``request``: its result counts."""
    reader = MediaReader(MediaPolicy([TOUR], max_request_bytes=10))
    small = reader.request(lambda ref: reader.read(ref)._replace(data=JPEG[:5]))
    assert [len(small.read(MediaRef("image", CLOCK)).data) for _ in range(2)] == [5, 5]
    with pytest.raises(PolicyError, match="max_request_bytes"):
        small.read(MediaRef("image", CLOCK))


def test_frames_and_media_that_came_with_their_bytes_count():
    reading = request(max_request_bytes=10)
    assert reading.part(TextPart("a text of more than ten bytes")).text
    video = MediaPart("video", "video/jpeg", b"", (b"1234", b"1234"))
    assert reading.part(video) is video
    with pytest.raises(PolicyError, match="max_request_bytes"):
        reading.part(MediaPart("image", "image/jpeg", b"123"))


def test_read_messages_holds_its_messages_for_one_request():
    messages = [
        Message("user", [MediaRef("image", CLOCK), TextPart("and")]),
        Message("user", [MediaRef("image", CLOCK)]),
    ]
    first, second = read_messages(messages, MediaPolicy([TOUR], max_request_bytes=2 * len(JPEG)))
    assert first.parts[0] is second.parts[0]
    with pytest.raises(PolicyError, match="max_request_bytes"):
        read_messages(messages, MediaPolicy([TOUR], max_request_bytes=2 * len(JPEG) - 1))
    with pytest.raises(PolicyError, match="max_request_media"):
        read_messages(messages, MediaPolicy([TOUR], max_request_media=1))


def test_messages_written_by_hand_are_held_for_one_request_too():
    asked = [user("What is this?", image=CLOCK), assistant("A clock."), user(image(CLOCK), "And this?")]
    first, _, third = read_caller_media(asked, TOUR)
    assert first.parts[0] is third.parts[0]
    for limits in ({"max_request_media": 1}, {"max_request_bytes": len(JPEG)}):
        with pytest.raises(PolicyError, match=next(iter(limits))):
            read_caller_media(asked, TOUR, MediaPolicy(**limits))
        with pytest.raises(PolicyError, match=next(iter(limits))):  # sent again, as a conversation does
            read_caller_media([first, third], TOUR, MediaPolicy(**limits))


def test_the_presets_have_their_bounds():
    bounds = {
        name: (policy.max_request_bytes, policy.max_request_media)
        for name in ("trusted", "default", "hostile")
        for policy in [MediaPolicy.preset(name)]
    }
    assert bounds == {"trusted": (4 << 30, 10_000), "default": (512 << 20, 10_000), "hostile": (64 << 20, 256)}
    for name in ("max_request_bytes", "max_request_media"):
        with pytest.raises(PolicyError, match=name):
            MediaPolicy(**{name: 0})


def test_the_media_beside_a_string_are_bounded_as_they_are_read(tmp_path):
    size = 8 << 20
    (tmp_path / "large.jpg").write_bytes(JPEG + bytes(size - len(JPEG)))
    messages = [Message("user", [MediaRef("image", "large.jpg")] * 30)]
    media = TaskMedia(load_task({}), "vllm", policy=MediaPolicy([tmp_path], max_request_bytes=30 * size))
    tracemalloc.start()
    try:
        [read] = media.in_place(messages)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(read.parts) == 30
    assert peak < 1.1 * size
    tight = TaskMedia(load_task({}), "vllm", policy=MediaPolicy([tmp_path], max_request_bytes=29 * size))
    with pytest.raises(PolicyError, match="max_request_bytes") as caught:
        tight.in_place(messages)
    assert (caught.value.where.message, caught.value.where.part) == (1, 30)
