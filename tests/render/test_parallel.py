"""The ordered map: results in order, and a bound on what waits in memory."""

import threading
import time

import pytest

from mmprompt import MMPromptError, RowError, load_task
from mmprompt.datasets.sample import Sample
from mmprompt.messages import MediaPart, Message
from mmprompt.render.media import sample_bytes
from mmprompt.render.parallel import WAITING_BYTES, ordered_map
from mmprompt.render.renderer import Renderer
from mmprompt.render.run import render
from mmprompt.targets.chunk_writer import ChunkWriter


class Waiting:
    """Work that waits, as for a disk, and counts how many wait at once."""

    def __init__(self, seconds=0.004):
        self.seconds = seconds
        self.now = self.most = self.begun = 0
        self.lock = threading.Lock()
        self.threads = set()

    def __call__(self, item):
        with self.lock:
            self.now += 1
            self.begun += 1
            self.most = max(self.most, self.now)
            self.threads.add(threading.current_thread().name)
        time.sleep(self.seconds)
        with self.lock:
            self.now -= 1
        return -item


def size_of(_):
    return 1000


def own_threads():
    """The threads that work ahead; one that asks a resolver for an earlier test may end when it likes."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("mmprompt_")]


def test_results_come_in_order_and_work_that_waits_overlaps():
    work = Waiting()
    assert list(ordered_map(work, range(400), 4, result_bytes=size_of, item_bytes=size_of)) == [-n for n in range(400)]
    assert work.most > 1
    assert any(name.startswith("mmprompt_") for name in work.threads)  # as own_threads() knows them
    assert threading.current_thread().name not in work.threads


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_few_items_or_none(count):
    assert list(ordered_map(lambda n: n, range(count), 2, result_bytes=size_of, item_bytes=size_of)) == list(
        range(count)
    )


@pytest.mark.parametrize("place", [3, 250])
def test_an_error_comes_at_its_turn_and_the_threads_end(place):
    waiting = Waiting()

    def work(item):
        if item == place:
            raise LookupError(item)
        return waiting(item)

    given = []
    with pytest.raises(LookupError):
        given.extend(ordered_map(work, range(400), 4, result_bytes=size_of, item_bytes=size_of))
    assert given == [-n for n in range(place)]
    assert not own_threads()


def test_an_iteration_that_is_left_ends_its_threads():
    results = ordered_map(Waiting(), range(10_000), 4, result_bytes=size_of, item_bytes=size_of)
    for _ in range(200):
        next(results)
    results.close()
    assert not own_threads()


def test_what_waits_is_bounded_by_bytes_not_by_items():
    """A consumer that is slow keeps the threads back: few large results are made that nobody has taken."""
    made = taken = most = 0
    lock = threading.Lock()
    large = WAITING_BYTES // 2

    def work(item):
        nonlocal made, most
        time.sleep(0.003)
        with lock:
            made += 1
            most = max(most, made - taken)
        return item

    for number, item in enumerate(ordered_map(work, range(200), 2, result_bytes=lambda _: large, item_bytes=size_of)):
        assert item == number
        with lock:
            taken += 1
        time.sleep(0.001)
    assert most * large <= WAITING_BYTES + 3 * large


def test_items_that_are_heavy_themselves_are_not_taken_far_ahead():
    """What a batch holds is its items too: rows with long texts, of which only thumbnails are made."""
    taken = given = most = 0

    def items():
        nonlocal taken, most
        for number in range(300):
            taken += 1
            most = max(most, taken - given)
            yield number

    def work(item):
        time.sleep(0.002)
        return item

    for item in ordered_map(work, items(), 2, result_bytes=lambda _: 1, item_bytes=lambda _: 1 << 20):
        assert item == given
        given += 1
    assert 1 < most <= 2 * 2 + 1


def test_a_row_weighs_what_is_nested_in_it_too():
    columns = {"q": "x" * 10, "images": [{"bytes": b"y" * 100}, "z" * 1000, ["w" * 10_000]], "n": 5, "none": None}
    assert sample_bytes(Sample(columns, 1, None, 1, 0, True)) == 11_110


def test_the_weight_of_a_chat_row_counts_the_frames_of_its_videos():
    clip = MediaPart("video", "video/jpeg", b"", frames=(bytes(700), bytes(300)))
    message = Message("user", (clip, MediaPart("image", "image/png", bytes(50))))
    assert sample_bytes(Sample({}, 1, None, 1, 0, True, messages=(message,))) == 1050


def test_an_error_of_the_items_comes_after_what_came_before_it():
    def items():
        yield from range(150)
        raise RowError("no row")

    given = []
    with pytest.raises(RowError):
        given.extend(ordered_map(Waiting(), items(), 4, result_bytes=size_of, item_bytes=size_of))
    assert given == [-n for n in range(150)]


def test_a_strict_run_that_stops_leaves_no_thread(tmp_path):
    rows = [{"id": n, "image": "none.jpg" if n == 3 else None, "content": "text"} for n in range(4)]
    rows[3]["content"] = "<AIS_IMAGE_START>none.jpg<AIS_CONTENT_TAG>"
    task = load_task({}, {"rows": rows})
    with open(tmp_path / "out", "wb") as file, pytest.raises(MMPromptError) as caught:
        render(Renderer(task), task.samples(), ChunkWriter(file), strict=True, workers=4)
    assert caught.value.where.line == 4
    assert not own_threads()
