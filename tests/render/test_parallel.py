"""Work done ahead by threads: in order, bounded, and only where it helps."""

import threading
import time

import pytest
from time_taken import GENEROUS

from mmprompt import MMPromptError, RowError, load_task
from mmprompt.datasets.sample import Sample
from mmprompt.messages import MediaPart, Message
from mmprompt.render.parallel import LARGEST_BATCH, ahead
from mmprompt.render.renderer import Renderer
from mmprompt.render.run import render
from mmprompt.render.rows import weight_of
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


@pytest.fixture(autouse=True)
def soon_in_threads(monkeypatch):
    """Try threads after a moment: what is held here holds from then on."""
    monkeypatch.setattr("mmprompt.render.parallel._ALONE", 0.05)


@pytest.fixture
def for_long_in_threads(monkeypatch):
    """Try threads for so long that no standstill of the machine takes all of it."""
    monkeypatch.setattr("mmprompt.render.parallel._PROBE", GENEROUS)


@pytest.mark.usefixtures("for_long_in_threads")
def test_results_come_in_order_and_work_that_waits_overlaps():
    work = Waiting()
    assert list(ahead(work, range(400), 4, size_of, size_of)) == [-n for n in range(400)]
    assert work.most > 1
    assert any(name.startswith("mmprompt_") for name in work.threads)  # as own_threads() knows them
    assert threading.current_thread().name in work.threads


def test_a_short_run_starts_no_thread(monkeypatch):
    monkeypatch.setattr("mmprompt.render.parallel._ALONE", 20.0)  # the run is short on any machine
    work = Waiting(0)
    assert list(ahead(work, range(100), 4, size_of, size_of)) == [-n for n in range(100)]
    assert work.threads == {threading.current_thread().name}


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_few_items_or_none(count):
    assert list(ahead(lambda n: n, range(count), 2, size_of, size_of)) == list(range(count))


@pytest.mark.parametrize("place", [3, 250])
def test_an_error_comes_at_its_turn_and_the_threads_end(place):
    waiting = Waiting()

    def work(item):
        if item == place:
            raise LookupError(item)
        return waiting(item)

    given = []
    with pytest.raises(LookupError):
        given.extend(ahead(work, range(400), 4, size_of, size_of))
    assert given == [-n for n in range(place)]
    assert not own_threads()


def test_an_iteration_that_is_left_ends_its_threads():
    results = ahead(Waiting(), range(10_000), 4, size_of, size_of)
    for _ in range(200):
        next(results)
    results.close()
    assert not own_threads()


def test_what_waits_is_bounded_by_bytes_not_by_items():
    """A consumer that is slow keeps the threads back: few large results are made that nobody has taken."""
    made = taken = most = 0
    lock = threading.Lock()
    large = LARGEST_BATCH // 2

    def work(item):
        nonlocal made, most
        time.sleep(0.003)
        with lock:
            made += 1
            most = max(most, made - taken)
        return item

    for number, item in enumerate(ahead(work, range(200), 2, lambda _: large, size_of)):
        assert item == number
        with lock:
            taken += 1
        time.sleep(0.001)
    assert most * large <= 5 * (LARGEST_BATCH + large)


@pytest.mark.usefixtures("for_long_in_threads")
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

    for item in ahead(work, items(), 2, lambda _: 1, lambda _: 1 << 20):
        assert item == given
        given += 1
    assert 1 < most <= 5 * (LARGEST_BATCH >> 20)


def test_a_row_weighs_what_is_nested_in_it_too():
    columns = {"q": "x" * 10, "images": [{"bytes": b"y" * 100}, "z" * 1000, ["w" * 10_000]], "n": 5, "none": None}
    assert weight_of(Sample(columns, 1, None, 1, 0, True)) == 11_110


def test_the_weight_of_a_chat_row_counts_the_frames_of_its_videos():
    clip = MediaPart("video", "video/jpeg", b"", frames=(bytes(700), bytes(300)))
    message = Message("user", (clip, MediaPart("image", "image/png", bytes(50))))
    assert weight_of(Sample({}, 1, None, 1, 0, True, messages=(message,))) == 1050


def test_an_error_of_the_items_comes_after_what_came_before_it():
    def items():
        yield from range(150)
        raise RowError("no row")

    given = []
    with pytest.raises(RowError):
        given.extend(ahead(Waiting(), items(), 4, size_of, size_of))
    assert given == [-n for n in range(150)]


def test_a_strict_run_that_stops_leaves_no_thread(tmp_path):
    rows = [{"id": n, "image": "none.jpg" if n == 3 else None, "content": "text"} for n in range(4)]
    rows[3]["content"] = "<AIS_IMAGE_START>none.jpg<AIS_CONTENT_TAG>"
    task = load_task({}, {"rows": rows})
    with open(tmp_path / "out", "wb") as file, pytest.raises(MMPromptError) as caught:
        render(Renderer(task), task.samples(), ChunkWriter(file), strict=True, workers=4)
    assert caught.value.where.line == 4
    assert not own_threads()


@pytest.mark.usefixtures("for_long_in_threads")
def test_slow_items_are_not_handed_over_by_the_dozen():
    """Who waits for a result, or leaves, waits for the end of a batch: a batch of seconds would look like a hang."""
    begun_late = []
    while not begun_late or begun_late[-1] > 4:  # each thread ends with the item it is at
        assert len(begun_late) < 5  # or this one stood still on its way into close()
        work = Waiting(0.02)
        results = ahead(work, range(10_000), 4, size_of, size_of)
        most = 0
        for given in range(1, 61):
            next(results)
            most = max(most, work.begun - given)
        assert 1 < most <= 5 * 5  # batches of 0.1 s: four with the threads, one that is given
        before = work.begun
        results.close()
        begun_late.append(work.begun - before)
