"""The media engine: changes through cache and child process give what they give without."""

from __future__ import annotations

import importlib.util
import io
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import decode_targets
import pytest
from PIL import Image
from time_taken import wait_until

from mmprompt.errors import SourceError, TaskError
from mmprompt.errors.findings import Note
from mmprompt.media import engine as engine_module
from mmprompt.media.cache.cache import MediaCache
from mmprompt.media.changes import Changes, TargetRoom
from mmprompt.media.engine import CHANGERS, MediaEngine
from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MediaPart

SMALL = Changes(max_side=32)
HERE, CHILD = MediaPolicy(isolate=False), MediaPolicy(timeout=20)
on_posix = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children under limits")


def picture(number: int = 0, side: int = 64) -> MediaPart:
    buffer = io.BytesIO()
    Image.linear_gradient("L").rotate(number * 7).resize((side, side)).convert("RGB").save(buffer, "JPEG")
    return MediaPart(
        "image", "image/jpeg", buffer.getvalue(), origin=f"{number}.jpg", findings=(Note("MM204", "read"),)
    )


@pytest.fixture(autouse=True)
def changers(monkeypatch, tmp_path):
    """Put functions of the tests in place of the media modules' own, and give the file that counts their calls."""
    told = tmp_path / "told"
    told.write_bytes(b"")
    monkeypatch.setenv("TOLD", str(told))
    stand_in = CHANGERS["image"]._replace(change="decode_targets:small_jpeg", fit="decode_targets:fit_small")
    monkeypatch.setitem(CHANGERS, "image", stand_in)
    return told


def calls(told: Path) -> int:
    return len(told.read_bytes())


@pytest.mark.parametrize("changes", [Changes(quality=0), Changes(mode="CMYK"), Changes(frames=0), Changes(start=-1.0)])
def test_changes_made_by_hand_are_checked_before_the_first_medium(changes):
    with pytest.raises(TaskError, match=" is "):
        MediaEngine(MediaPolicy(), changes)


def test_what_is_changed_keeps_what_is_carried_along():
    part = picture()._replace(
        form="input_image", options=(("detail", object()),), extra=(("k", [1]),), changes=("before",)
    )
    made = MediaEngine(HERE, SMALL).change(part)
    assert made.data != part.data
    assert Image.open(io.BytesIO(made.data)).size == (32, 32)
    assert made == part._replace(data=made.data, changes=("before", "64x64 to 32x32 (max_side)"))


@pytest.mark.parametrize("policy", [HERE, pytest.param(CHILD, marks=on_posix)])
@pytest.mark.parametrize("cached", [False, True])
def test_what_needs_no_change_is_the_same_object(policy, cached):
    part = picture(side=20)
    with MediaEngine(policy, SMALL, MediaCache() if cached else None) as engine:
        assert engine.change(part) is part
        assert engine.change(part) is part


def test_what_is_not_asked_is_not_even_looked_at(changers):
    sound = MediaPart("audio", "audio/wav", b"no sound")
    text = MediaPart("text", "text/plain", b"")
    taken = TargetRoom("openai", frozenset(("image/jpeg",)), still=frozenset(("image/gif",)), max_bytes=1 << 20)
    broken = MediaPart("image", "image/jpeg", b"broken")
    for changes in (Changes(), Changes(fit=True), Changes(audio_rate=16000)):
        assert MediaEngine(HERE, changes).change(broken, taken) is broken
    for part in (sound, text):
        assert MediaEngine(HERE, SMALL).change(part) is part
    assert calls(changers) == 0


def test_fit_needs_both_the_wish_and_a_room():
    part, room = picture(side=20), TargetRoom("t", frozenset(("image/png",)))
    assert MediaEngine(HERE, Changes(fit=True)).change(part) is part
    assert MediaEngine(HERE, Changes()).change(part, room) is part
    assert MediaEngine(HERE, Changes(fit=True)).change(part, room) == part._replace(
        findings=(Note("MM204", "read"), Note("MM804", "t does not take it"))
    )


@pytest.mark.parametrize("on_disk", [False, True])
def test_cold_and_warm_are_the_same_and_warm_makes_nothing(on_disk, changers, tmp_path):
    folder = tmp_path / "cache" if on_disk else None
    parts = [picture(n) for n in range(5)]
    plain = [MediaEngine(HERE, SMALL).change(p) for p in parts]
    before = calls(changers)
    cache = MediaCache(folder=folder)
    cold = [MediaEngine(HERE, SMALL, cache).change(p) for p in parts]
    assert calls(changers) - before == 5
    warm_cache = MediaCache(folder=folder) if on_disk else cache
    warm = [MediaEngine(HERE, SMALL, warm_cache).change(p) for p in parts]
    assert calls(changers) - before == 5
    assert plain == cold == warm


def test_the_same_picture_from_another_place_is_made_once_and_keeps_its_place(changers):
    engine = MediaEngine(HERE, SMALL, MediaCache())
    one = engine.change(picture())
    other = engine.change(picture()._replace(origin="copy.jpg", findings=("other",), form="image"))
    assert calls(changers) == 1
    assert (other.data, other.origin, other.findings, other.form) == (one.data, "copy.jpg", ("other",), "image")


def test_another_wish_or_another_limit_is_another_result(changers):
    cache = MediaCache()
    for changes in (SMALL, Changes(max_side=16), Changes(max_side=32, quality=50)):
        MediaEngine(HERE, changes, cache).change(picture())
    MediaEngine(MediaPolicy(max_pixels=5, isolate=False), SMALL, cache).change(picture())
    assert calls(changers) == 4
    MediaEngine(MediaPolicy(timeout=3, isolate=False), SMALL._replace(audio_rate=8000), cache).change(picture())
    assert calls(changers) == 4


@on_posix
def test_here_and_in_a_child_give_the_same():
    parts = [picture(n) for n in range(4)]
    with MediaEngine(CHILD, SMALL) as there:
        assert [there.change(p) for p in parts] == [MediaEngine(HERE, SMALL).change(p) for p in parts]


@pytest.mark.parametrize("policy", [HERE, pytest.param(CHILD, marks=on_posix)])
@pytest.mark.parametrize("cached", [False, True])
def test_four_threads_give_what_one_gives(policy, cached):
    parts = [picture(n % 6) for n in range(24)]
    one = [MediaEngine(HERE, SMALL).change(p) for p in parts]
    with MediaEngine(policy, SMALL, MediaCache() if cached else None) as engine, ThreadPoolExecutor(4) as pool:
        assert list(pool.map(engine.change, parts)) == one


@on_posix
def test_a_crash_is_an_error_of_its_sample_alone(monkeypatch):
    monkeypatch.setitem(CHANGERS, "audio", CHANGERS["audio"]._replace(change="decode_targets:crash_on_change"))
    bad = MediaPart("audio", "audio/wav", b"x")
    cache = MediaCache()
    with MediaEngine(CHILD, SMALL._replace(mono=True), cache) as engine:
        before = engine.change(picture())
        for _ in range(2):
            with pytest.raises(SourceError, match=r"the decoder crashed \(SIGSEGV\)"):
                engine.change(bad)
        assert engine.change(picture(1)) == MediaEngine(HERE, SMALL).change(picture(1))
        assert engine.change(picture()) == before


@on_posix
def test_what_a_child_that_was_taken_over_answers_is_an_error_of_its_sample(monkeypatch):
    monkeypatch.setattr(engine_module, "make_changes", decode_targets.wrong_medium)
    with MediaEngine(CHILD, SMALL) as engine:
        for number in range(8):
            with pytest.raises(SourceError, match="the decoder returned something that is not a medium"):
                engine.change(MediaPart("image", "image/jpeg", bytes(number)))


@pytest.mark.parametrize("policy", [HERE, pytest.param(CHILD, marks=on_posix)])
def test_an_engine_pickles(policy, tmp_path):
    with MediaEngine(policy, SMALL, MediaCache(folder=tmp_path / "c"), memory_bytes=1 << 30) as engine:
        made = engine.change(picture())
        with pickle.loads(pickle.dumps(engine)) as copy:
            assert copy.change(picture()) == made
            assert (copy.policy, copy.changes) == (engine.policy, engine.changes)


RUN = """
import pickle, sys
sys.path.insert(0, sys.argv[3])
from mmprompt.media import engine
from mmprompt.media.cache.cache import MediaCache
from mmprompt.media.changes import Changes
from mmprompt.media.policy import MediaPolicy
engine.CHANGERS["image"] = engine.CHANGERS["image"]._replace(change="decode_targets:small_jpeg")
with open(sys.argv[2], "rb") as file:
    parts = pickle.load(file)
it = engine.MediaEngine(MediaPolicy(), Changes(max_side=32), MediaCache(0, sys.argv[1], 1 << 20))
print("ready", flush=True)
made = [it.change(part) for part in parts]
sys.stdout.write(repr([tuple(part) for part in made]))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_two_processes_that_share_a_folder_while_one_is_killed_give_what_one_gives(tmp_path, command_environment):
    parts = [picture(n % 70, 120) for n in range(140)]
    (tmp_path / "parts").write_bytes(pickle.dumps(parts))
    words = [sys.executable, "-c", RUN, tmp_path / "cache", tmp_path / "parts", Path(__file__).parent]
    one, other = [subprocess.Popen(words, env=command_environment, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        assert one.stdout.readline() == other.stdout.readline() == b"ready\n"
        assert wait_until(lambda: len(list((tmp_path / "cache").glob("*"))) > 3)
        one.send_signal(signal.SIGKILL)  # it has not ended: nobody reads what it says, which is more than a pipe holds
        given = other.stdout.read()  # not communicate, which passes over what readline has taken in already
        assert other.wait(timeout=60) == 0
    finally:
        for process in (one, other):
            process.kill()
            process.wait()
            process.stdout.close()
    assert one.returncode == -signal.SIGKILL
    assert len(given) > 1 << 16
    plain = MediaEngine(HERE, SMALL)
    assert given.decode() == repr([tuple(plain.change(p)) for p in parts])
    warm = MediaEngine(HERE, SMALL, MediaCache(0, tmp_path / "cache"))
    assert [warm.change(p) for p in parts[:20]] == [plain.change(p) for p in parts[:20]]


# ---- the functions of the media package themselves


def test_every_function_of_the_table_is_there():
    table = {**vars(engine_module)["CHANGERS"], "image": REAL_IMAGE}
    for changers in table.values():
        for name in filter(None, (changers.change, changers.fit, changers.both)):
            module, _, function = name.partition(":")
            if importlib.util.find_spec(module) is None:
                pytest.skip(f"{module} is not there yet")
            assert callable(getattr(importlib.import_module(module), function)), name


REAL_IMAGE = CHANGERS["image"]


@on_posix
def test_pictures_by_the_packages_own_functions(monkeypatch):
    pytest.importorskip("mmprompt.media.image.fit")
    monkeypatch.setitem(CHANGERS, "image", REAL_IMAGE)
    part, room = picture(3, 300), TargetRoom("t", frozenset(("image/png",)), max_side=100)
    changes, cache = Changes(fit=True, mode="L"), MediaCache()
    made = MediaEngine(HERE, changes).change(part, room)
    assert (made.media_type, Image.open(io.BytesIO(made.data)).size) == ("image/png", (100, 100))
    with MediaEngine(CHILD, changes, cache) as there:
        assert there.change(part, room) == made
        assert there.change(part, room) == made


def test_the_quality_asked_reaches_fit(monkeypatch):
    monkeypatch.setitem(CHANGERS, "image", REAL_IMAGE)
    room, frame = TargetRoom("t", frozenset(("image/jpeg",)), max_side=100), picture(3, 300)
    video = MediaPart("video", "video/jpeg", b"", (frame.data,))
    cache = MediaCache()
    for quality in (40, 85, 95):
        engine = MediaEngine(HERE, Changes(fit=True, quality=quality), cache)
        for part in (frame, video):
            assert engine.change(part, room).changes[-1].endswith(f"quality {quality}")
