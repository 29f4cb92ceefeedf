"""The cache of media results: the same with it as without, bounded, and safe from other threads and processes."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from time_taken import GENEROUS, wait_until

from mmprompt.errors import PolicyError, SourceError
from mmprompt.errors.findings import Note
from mmprompt.errors.rules import RULES
from mmprompt.media.cache.cache import MediaCache, cache_key
from mmprompt.media.cache.entry import CacheEntry, pack, unpack
from mmprompt.media.changes import Changes, TargetRoom
from mmprompt.messages import MediaPart

PART = MediaPart("image", "image/jpeg", b"\xff\xd8\xff" + bytes(100))
KEPT = CacheEntry("image/png", b"\x89PNG" * 50, (b"frame", b""), ("a to b (why \u00e9)",), (Note("MM204", "found", "mend it"),))  # fmt: skip
texts = st.text(max_size=8)
entries = st.builds(
    CacheEntry, texts, st.binary(max_size=40), st.lists(st.binary(max_size=9), max_size=3).map(tuple),
    st.lists(texts, max_size=2).map(tuple),
    st.lists(st.builds(Note, st.sampled_from(sorted(RULES)), texts, texts), max_size=2).map(tuple),
    st.booleans(),
)  # fmt: skip


def key(number: int) -> str:
    return f"{number:064x}"


def never() -> CacheEntry:
    raise AssertionError("made again")


def entry(size: int, fill: int = 1) -> CacheEntry:
    return CacheEntry("image/png", bytes([fill]) * size)


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


# ---- keys


def test_a_key_is_the_contents_and_what_is_asked():
    base = cache_key(PART, Changes(max_side=9))
    same = PART._replace(
        form="image_url", options=(("detail", "low"),), origin="b.jpg", findings=("x",), changes=("y",)
    )
    assert cache_key(same, Changes(max_side=9)) == base
    others = [
        cache_key(PART, Changes(max_side=8)),
        cache_key(PART, Changes(max_side=9), None),
        cache_key(PART, TargetRoom("openai", frozenset())),
        cache_key(PART._replace(data=PART.data + b"\x00"), Changes(max_side=9)),
        cache_key(PART._replace(media_type="image/png"), Changes(max_side=9)),
        cache_key(PART._replace(modality="video"), Changes(max_side=9)),
        cache_key(PART._replace(data=b"", frames=(PART.data,)), Changes(max_side=9)),
        cache_key(PART._replace(data=b"", frames=(PART.data[:50], PART.data[50:])), Changes(max_side=9)),
        cache_key(PART._replace(data=b"", frames=(PART.data[:51], PART.data[51:])), Changes(max_side=9)),
    ]
    assert len({base, *others}) == len(others) + 1


def test_a_key_is_the_same_in_every_process(command_environment):
    code = (
        "from mmprompt.media.cache.cache import cache_key; from mmprompt.media.changes import *; from mmprompt.messages import *;"
        "print(cache_key(MediaPart('image', 'image/png', b'x'), TargetRoom('t', frozenset(map(str, range(20))))))"
    )
    keys = {
        subprocess.check_output([sys.executable, "-c", code], env={**command_environment, "PYTHONHASHSEED": seed})
        for seed in ("1", "2", "3")
    }
    assert len(keys) == 1


# ---- in memory


@pytest.mark.parametrize("on_disk", [False, True])
def test_what_was_made_once_is_given_again(on_disk, folder):
    cache = MediaCache(folder=folder if on_disk else None)
    assert cache.get_or_make(key(1), lambda: KEPT) == KEPT
    assert cache.get_or_make(key(1), never) == KEPT
    assert cache.get_or_make(key(2), lambda: entry(5)) == entry(5)


def test_memory_stays_in_its_bound_and_the_least_used_goes_first():
    cache = MediaCache(max_bytes=10_000)
    for number in range(50):
        cache.get_or_make(key(number), lambda: entry(2000))
        cache.get_or_make(key(0), lambda: entry(2000))
        assert cache.bytes_held <= 10_000
    assert cache.get_or_make(key(0), never)
    made = []
    cache.get_or_make(key(1), lambda: made.append(1) or entry(2000))
    assert made


def test_what_is_larger_than_the_bound_is_given_but_not_kept():
    for cache in (MediaCache(max_bytes=1000), MediaCache(max_bytes=0)):
        assert cache.get_or_make(key(1), lambda: entry(2000)) == entry(2000)
        assert cache.bytes_held == 0
        assert cache.get_or_make(key(1), lambda: entry(3000)) == entry(3000)


def test_errors_come_through_and_are_not_kept(folder):
    cache = MediaCache(folder=folder)

    def fail():
        raise SourceError("broken")

    for _ in range(2):
        with pytest.raises(SourceError, match="broken"):
            cache.get_or_make(key(1), fail)
    assert cache.get_or_make(key(1), lambda: KEPT) == KEPT


@pytest.mark.parametrize("held", [1 << 20, 0])
def test_threads_that_race_for_a_key_have_it_made_once(held):
    cache = MediaCache(max_bytes=held)
    made, together = [], threading.Barrier(8)

    def make():
        made.append(1)
        [making] = cache._making.values()
        assert wait_until(lambda: len(making.done._cond._waiters) == 7)
        return KEPT

    def ask(_):
        together.wait()
        return cache.get_or_make(key(1), make)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == [KEPT] * 8
    assert len(made) == 1


def test_a_thread_that_waited_for_a_failure_makes_it_itself():
    cache, began = MediaCache(), threading.Event()

    def fail():
        began.set()
        time.sleep(0.1)
        raise SourceError("broken")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get_or_make, key(1), fail)
        began.wait()
        assert pool.submit(cache.get_or_make, key(1), lambda: KEPT).result() == KEPT
        assert isinstance(first.exception(), SourceError)


def test_no_lock_is_held_while_something_is_made(folder):
    cache = MediaCache(folder=folder)
    assert cache.get_or_make(key(1), lambda: cache.get_or_make(key(2), lambda: KEPT)) == KEPT


def test_many_threads_and_keys_in_a_small_cache_always_get_their_own(folder):
    cache = MediaCache(max_bytes=5000, folder=folder, max_disk_bytes=20_000)

    def ask(number):
        n = number * 7 % 23
        return cache.get_or_make(key(n), lambda: entry(700, n)) == entry(700, n)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(600)))
    assert cache.bytes_held <= 5000


@pytest.mark.parametrize("number", [-1, 1.5, True, "9", None])
def test_a_bound_that_is_no_number_of_bytes_is_refused(number):
    with pytest.raises(PolicyError, match="max_bytes of a cache"):
        MediaCache(max_bytes=number)
    with pytest.raises(PolicyError, match="max_disk_bytes of a cache"):
        MediaCache(max_disk_bytes=number)


@pytest.mark.parametrize("name", ["", " ", "a\x00b", b"bytes", 3])
def test_a_folder_that_is_no_path_is_refused(name):
    with pytest.raises(PolicyError, match="the cache folder"):
        MediaCache(folder=name)


def test_a_cache_pickles_without_its_memory(folder):
    cache = MediaCache(1 << 20, folder, 1 << 21)
    cache.get_or_make(key(1), lambda: entry(100_000))
    sent = pickle.dumps(cache)
    assert len(sent) < 1000
    copy = pickle.loads(sent)
    assert (copy.max_bytes, copy.folder, copy.max_disk_bytes, copy.bytes_held) == (1 << 20, str(folder), 1 << 21, 0)
    assert copy.get_or_make(key(1), never) == entry(100_000)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_process_forked_while_a_thread_makes_a_key_does_not_wait_for_it():
    cache, began, done = MediaCache(), threading.Event(), threading.Event()

    def slow():
        began.set()
        done.wait(60)
        return KEPT

    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(cache.get_or_make, key(1), slow)
        began.wait()
        with cache._lock:  # the worst moment
            pid = os.fork()
            if pid == 0:
                signal.alarm(30)
                good = False
                try:
                    good = cache.get_or_make(key(1), lambda: KEPT) == KEPT
                finally:
                    os._exit(0 if good else 1)
        assert os.waitpid(pid, 0)[1] == 0
        done.set()
        assert made.result() == KEPT


# ---- the file of an entry


@settings(max_examples=settings().max_examples // 2, deadline=None)
@given(entries)
def test_an_entry_is_read_as_it_was_written(kept):
    again = unpack(key(1), pack(key(1), kept))
    assert again == kept
    assert repr(again) == repr(kept)
    assert [(n.code, n.hint) for n in again.findings] == [(n.code, n.hint) for n in kept.findings]


@settings(deadline=None)
@given(entries, st.data())
def test_an_entry_that_is_cut_or_changed_anywhere_is_none(kept, data):
    packed = pack(key(1), kept)
    at = data.draw(st.integers(0, len(packed) - 1))
    flipped = bytearray(packed)
    flipped[at] ^= data.draw(st.integers(1, 255))
    for broken in (bytes(flipped), packed[:at], packed + b"x"):
        assert unpack(key(1), broken) is None
    assert unpack(key(2), packed) is None


# ---- on disk


def test_a_second_run_and_its_output_are_those_of_the_first(folder):
    cold = MediaCache(folder=folder).get_or_make(key(1), lambda: KEPT)
    warm = MediaCache(folder=folder).get_or_make(key(1), never)
    assert warm == cold == KEPT


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_the_folder_and_its_files_are_for_their_owner_only(folder):
    cache = MediaCache(folder=folder)
    assert not folder.exists()
    cache.get_or_make(key(1), lambda: KEPT)
    (file,) = files(folder)
    assert (stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE(file.stat().st_mode)) == (0o700, 0o600)


def spoilt(path: Path, how: str, outside: Path) -> None:
    data = path.read_bytes()
    path.unlink()
    if how == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "flipped":
        path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    elif how == "foreign":
        path.write_bytes(pickle.dumps(print))
    elif how == "of another key":
        path.write_bytes(pack(key(2), entry(3)))
    elif how == "link":
        outside.write_bytes(data)
        path.symlink_to(outside)
    elif how == "fifo":
        os.mkfifo(path)


@pytest.mark.skipif(os.name != "posix", reason="links and FIFOs")
@pytest.mark.parametrize("how", ["cut", "empty", "flipped", "foreign", "of another key", "link", "fifo"])
def test_a_damaged_or_foreign_entry_is_dropped_and_made_again(how, folder, tmp_path):
    MediaCache(folder=folder).get_or_make(key(1), lambda: KEPT)
    (file,) = files(folder)
    spoilt(file, how, tmp_path / "outside")
    if how != "fifo":
        assert file.read_bytes() != b"" or how == "empty"  # the bait is there
    other = CacheEntry("image/png", b"made again")
    assert MediaCache(folder=folder).get_or_make(key(1), lambda: other) == other
    assert MediaCache(folder=folder).get_or_make(key(1), never) == other
    assert files(folder) == [file]
    assert stat.S_ISREG(file.lstat().st_mode)


def test_the_folder_stays_in_its_bound_and_what_was_used_stays(folder):
    cache = MediaCache(max_bytes=0, folder=folder, max_disk_bytes=100_000)
    for number in range(60):
        cache.get_or_make(key(number), lambda: entry(4000))
        held = files(folder)
        assert sum(f.stat().st_size for f in held) <= 100_000
        for age, file in enumerate(held):  # as if each were a minute older than the next
            os.utime(file, (0, time.time() - 60 * (len(held) - age)))
        cache.get_or_make(key(0), lambda: entry(4000))
    assert len(held) > 15
    assert MediaCache(folder=folder).get_or_make(key(0), never)


def test_what_is_not_ours_is_neither_counted_nor_removed(folder):
    folder.mkdir(mode=0o700)
    (folder / "notes.txt").write_bytes(b"x" * 200_000)
    (folder / "0.partial").write_bytes(b"x")
    os.utime(folder / "0.partial", (0, 0))
    cache = MediaCache(max_bytes=0, folder=folder, max_disk_bytes=50_000)
    for number in range(30):
        cache.get_or_make(key(number), lambda: entry(4000))
    assert len(files(folder)) > 5
    assert {"notes.txt", "0.partial"} <= {f.name for f in files(folder)}


def test_what_an_ended_process_left_half_written_goes_and_what_is_written_now_stays(folder):
    folder.mkdir(mode=0o700)
    old, new = folder / f"{1:016x}.partial", folder / f"{2:016x}.partial"
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (0, time.time() - 3600))
    MediaCache(folder=folder).get_or_make(key(1), lambda: KEPT)
    assert new in files(folder)
    assert old not in files(folder)


# ---- folders that cannot be used


def used_in_vain(cache: MediaCache, caplog) -> None:
    caplog.clear()
    with caplog.at_level(logging.INFO, "mmprompt"):
        for number in (1, 2, 1, 2):
            assert cache.get_or_make(key(number), lambda: KEPT) == KEPT
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("mmprompt", "WARNING")
    assert "the media cache folder cannot be" in record.getMessage()
    assert str(cache.folder) not in record.getMessage()


def test_a_folder_that_cannot_be_made_is_one_line_in_the_log(tmp_path, caplog):
    (tmp_path / "file").write_bytes(b"")
    used_in_vain(MediaCache(max_bytes=0, folder=tmp_path / "file"), caplog)
    assert "is not a folder" in caplog.text
    caplog.clear()
    used_in_vain(MediaCache(max_bytes=0, folder=tmp_path / "file" / "below"), caplog)


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o702])
def test_a_folder_in_which_others_may_write_is_not_used(folder, mode, caplog):
    folder.mkdir()
    folder.chmod(mode)
    used_in_vain(MediaCache(max_bytes=0, folder=folder), caplog)
    assert not files(folder)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_not_used(folder, caplog):
    folder.mkdir()
    os.chown(folder, 12345, -1)
    used_in_vain(MediaCache(max_bytes=0, folder=folder), caplog)
    assert not files(folder)


LIMITED = """
import logging, os, resource, sys
from mmprompt.media.cache.cache import MediaCache
from mmprompt.media.cache.entry import CacheEntry
logging.basicConfig(stream=sys.stdout, format="%(name)s %(message)s")
kept = CacheEntry("image/png", b"x" * 10_000)
if sys.argv[2] == "full":
    sys.dont_write_bytecode = True  # a compiled module would be cut, and stay so
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))  # a write fails in the middle, as on a full disk
else:
    MediaCache(folder=sys.argv[1]).get_or_make("1" * 64, lambda: kept)
    os.chmod(sys.argv[1], 0o555)
    if os.geteuid() == 0:  # whom no mode stops
        for name in os.listdir(sys.argv[1]):
            os.chown(os.path.join(sys.argv[1], name), 65534, -1)
        os.seteuid(65534)
cache = MediaCache(max_bytes=0, folder=sys.argv[1])
for name in "1213":
    assert cache.get_or_make(name * 64, lambda: kept) == kept
if sys.argv[2] != "full":
    def never(): raise AssertionError
    assert cache.get_or_make("1" * 64, never) == kept
assert not [name for name in os.listdir(sys.argv[1]) if name.endswith(".partial")]
"""


@pytest.mark.skipif(os.name != "posix", reason="limits and modes of POSIX")
@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_full_disk_or_a_folder_that_is_only_read_fails_nothing(how, command_environment):
    with tempfile.TemporaryDirectory() as top:  # not below a folder that only its owner may enter
        os.chmod(top, 0o755)
        folder = Path(top, "cache")
        unmeasured = {k: v for k, v in command_environment.items() if not k.startswith("COVERAGE_")}
        done = subprocess.run(
            [sys.executable, "-c", LIMITED, folder, how], env=unmeasured, capture_output=True, text=True, timeout=60, check=False
        )  # fmt: skip
        if how == "read-only":
            folder.chmod(0o755)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("mmprompt the media cache folder cannot be written (")
    assert done.stdout.count("\n") == 1


# ---- several processes


WRITER = """
import sys
from mmprompt.media.cache.cache import MediaCache
from mmprompt.media.cache.entry import CacheEntry
cache = MediaCache(max_bytes=0, folder=sys.argv[1], max_disk_bytes=64 << 20)
print("ready", flush=True)
for number in range(100_000):
    n = number % 9
    kept = cache.get_or_make(f"{n:064x}", lambda: CacheEntry("image/png", bytes([n]) * (n << 20)))
    assert kept.data == bytes([n]) * (n << 20)
    if n == 8:
        cache._disk._remove(cache._disk._path(f"{n:064x}"))  # so that it is written again and again
"""


def is_half_written(folder: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return any(f.suffix == ".partial" and f.stat().st_size > 0 for f in folder.glob("*.partial"))
    return False


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_process_killed_in_the_middle_of_writing_harms_no_other(folder, command_environment):
    cache = MediaCache(max_bytes=0, folder=folder, max_disk_bytes=64 << 20)
    halves = 0
    for _ in range(5):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, folder], env=command_environment, stdout=subprocess.PIPE
        )
        try:
            assert writer.stdout.readline() == b"ready\n"
            end = time.monotonic() + GENEROUS
            while time.monotonic() < end:
                n = int(time.monotonic() * 1e6) % 9
                assert cache.get_or_make(key(n), lambda n=n: entry(n << 20, n)) == entry(n << 20, n)
                if is_half_written(folder):
                    break
            assert writer.poll() is None
        finally:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            writer.stdout.close()
        halves += is_half_written(folder)
        if halves == 2:
            break
    assert halves
    for n in range(9):
        for _ in range(2):
            got = MediaCache(folder=folder).get_or_make(key(n), lambda n=n: entry(n << 20, n))
            assert got == entry(n << 20, n)
    assert sum(f.stat().st_size for f in files(folder)) <= 64 << 20
