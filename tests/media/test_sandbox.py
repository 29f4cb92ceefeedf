"""Decoders in a child process: what comes back, what is limited, and that nothing is left behind."""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import itertools
import json
import math
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import baits
import decode_targets
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_files import saved
from leaks import held, left_behind
from PIL import Image, features
from time_taken import wait_until

from mmprompt.errors import PolicyError, SourceError, Where
from mmprompt.media.image.reading import image_facts
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.sandbox import process as decoder_process
from mmprompt.media.sandbox.answers import AnswerError, answer_of, packed_answer
from mmprompt.media.sandbox.decoders import InlineDecoder, IsolatedDecoder, decoder
from mmprompt.media.sandbox.jobs import name_of, run_each

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

MIB = 1 << 20


def jpeg(side: int = 64) -> bytes:
    buffer = io.BytesIO()
    Image.frombytes("RGB", (side, side), bytes(i % 251 for i in range(side * side * 3))).save(buffer, "JPEG")
    return buffer.getvalue()


def answer(kind: str, value: object) -> bytes:
    return b"".join(packed_answer(kind, value))


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def is_gone_soon(pid: int) -> bool:
    return wait_until(lambda: not is_alive(pid))


@pytest.fixture
def isolated():
    with IsolatedDecoder(MediaPolicy(timeout=20)) as it:
        yield it


# ---- what comes back


def test_the_child_gives_what_the_function_gives_here(isolated):
    data = jpeg()
    assert (
        isolated.run(decode_targets.size_of_image, data)
        == (64, 64)
        == InlineDecoder().run(decode_targets.size_of_image, data)
    )


def test_values_come_back_as_they_were(isolated):
    sent, back = decode_targets.some_values(), isolated.run(decode_targets.some_values)
    assert [type(v) for v in back[:-1]] == [type(v) for v in sent[:-1]]
    array = back.pop(-2)
    assert array.dtype == np.dtype("<i2")
    assert array.tolist() == sent.pop(-2).tolist()
    assert back == sent


def test_media_of_megabytes_go_through_the_pipe_both_ways(isolated):
    data = os.urandom(9 * MIB + 1)
    assert isolated.run(decode_targets.echo, data) == data


def test_an_error_of_ours_comes_back_as_itself_and_costs_no_restart(isolated):
    pid = isolated.run(decode_targets.surroundings)["pid"]
    with pytest.raises(SourceError) as caught:
        isolated.run(decode_targets.refuse, "no \u00e9 image")
    error = caught.value
    assert (type(error), error.what, error.hint, error.where) == (
        SourceError,
        "no \u00e9 image",
        "mend it",
        Where("a.jsonl", 3),
    )
    assert isolated.run(decode_targets.surroundings)["pid"] == pid


def test_a_child_is_used_again_by_the_next_call(isolated):
    assert len({isolated.run(decode_targets.surroundings)["pid"] for _ in range(5)}) == 1


def test_the_policy_decides_where_decoders_run():
    for policy, kind in ((MediaPolicy.preset("trusted"), InlineDecoder), (MediaPolicy(), IsolatedDecoder)):
        with decoder(policy) as runs:
            assert type(runs) is kind
            assert (runs.run(os.getpid) == os.getpid()) == (not policy.isolate)


# ---- what goes wrong


def test_a_crash_is_named_and_costs_one_restart(isolated):
    done = subprocess.run(
        [sys.executable, "-c", "import ctypes; ctypes.string_at(0)"], capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGSEGV  # the bait works
    first = isolated.run(decode_targets.surroundings)["pid"]
    with pytest.raises(SourceError, match=r"^the decoder crashed \(SIGSEGV\); "):
        isolated.run(decode_targets.crash, b"x")
    second = isolated.run(decode_targets.surroundings)["pid"]
    assert second != first
    assert isolated.run(decode_targets.surroundings)["pid"] == second


def test_an_abort_and_an_exit_are_named(isolated):
    with pytest.raises(SourceError, match=r"crashed \(SIGABRT\)"):
        isolated.run(decode_targets.abort)
    with pytest.raises(SourceError, match=r"crashed \(exit status 7\)"):
        isolated.run(decode_targets.leave)


def test_too_much_memory_is_named_and_the_host_stays_small():
    with IsolatedDecoder(MediaPolicy(timeout=20), memory_bytes=256 * MIB) as isolated:
        assert isolated.run(decode_targets.grow, 64) == 64 * MIB
        with pytest.raises(SourceError, match=r"^the decoder needed more than 256 MiB of memory; "):
            isolated.run(decode_targets.grow, 400)
        assert isolated.run(decode_targets.grow, 64) == 64 * MIB


def test_growth_by_four_gibibytes_costs_its_own_call(isolated):
    with pytest.raises(SourceError, match=r"^the decoder needed more than \d+ MiB of memory; "):
        isolated.run(decode_targets.grow, 4096)
    assert isolated.run(decode_targets.echo, 1) == 1


def test_a_picture_that_swells_is_ended_before_it_harms_the_host():
    buffer = io.BytesIO()
    Image.new("1", (9_000, 9_000)).save(buffer, "PNG")
    bomb = buffer.getvalue()
    assert len(bomb) < 100_000
    with IsolatedDecoder(MediaPolicy(timeout=60), memory_bytes=2048 * MIB) as wide:
        assert wide.run(decode_targets.memory_as_rgb, bomb) > 300 * MIB  # the bait works: Pillow does not even warn
    with IsolatedDecoder(MediaPolicy(timeout=20), memory_bytes=256 * MIB) as isolated:
        with pytest.raises(SourceError, match="needed more than 256 MiB"):
            isolated.run(decode_targets.memory_as_rgb, bomb)
        assert isolated.run(decode_targets.size_of_image, jpeg()) == (64, 64)


@pytest.mark.skipif(sys.platform != "linux" or not features.check("avif"), reason="Linux's limits, and AVIF")
@pytest.mark.slow
def test_an_avif_larger_than_its_header_is_ended_and_the_next_is_decoded():
    policy = MediaPolicy(read_also=("avif",))
    lie, honest = baits.LYING_AVIF, saved(Image.new("RGB", (2000, 2000)), "AVIF", speed=10)
    assert image_facts(lie, policy)[2:4] == (100, 100)
    with IsolatedDecoder(policy) as isolated:
        isolated.run(decode_targets.memory_as_rgb, lie)
        assert isolated.run(decode_targets.peak_memory) > 400 * MIB
    with IsolatedDecoder(policy) as isolated:
        with pytest.raises(SourceError, match="the AVIF is cut or damaged"):
            isolated.run(decode_targets.decoded_size, lie, policy)
        assert isolated.run(decode_targets.decoded_size, honest, policy) == (2000, 2000)
        assert isolated.run(decode_targets.peak_memory) < 200 * MIB


@pytest.mark.parametrize(
    "closed", ["0", *(pytest.param(c, marks=pytest.mark.slow) for c in ("1", "2", "01", "02", "12")), "012"]
)
def test_standard_streams_that_are_closed_do_not_matter(closed, tmp_path, command_environment):
    (tmp_path / "a.jpg").write_bytes(jpeg())
    script = (
        "import os, sys\n"
        "for stream in sys.argv[1]: os.close(int(stream))\n"
        "from mmprompt import MediaPolicy, MediaRef, Message, change_messages, read_messages\n"
        "for preset in 'default', 'hostile', 'trusted':\n"
        "    policy = MediaPolicy.preset(preset, [sys.argv[2]])\n"
        "    read = read_messages([Message('user', [MediaRef('image', 'a.jpg')])], policy)\n"
        "    [message] = change_messages(read, policy, max_side=32)\n"
        "    open(sys.argv[2] + '/' + preset, 'w').write(message.parts[0].changes[0])\n"
    )
    words = [sys.executable, "-c", script, closed, tmp_path]
    subprocess.run(words, env=command_environment, timeout=60, check=True, capture_output=True)
    for preset in ("default", "hostile", "trusted"):
        assert (tmp_path / preset).read_text() == "64x64 to 32x32 (max_side 32)"


def test_without_descriptors_no_child_starts_and_none_is_lost(isolated):
    import resource

    gc.collect()  # what earlier tests left must not be closed, and so be free, in the middle
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = max(int(name) for name in os.listdir("/proc/self/fd"))
    held = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 4, hard))
        while True:
            try:
                held.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        for _ in range(3):  # none, two, four free ones
            with pytest.raises(PolicyError, match="does not start"):
                isolated.run(decode_targets.echo, 1)
            for descriptor in (held.pop(), held.pop()) if len(held) > 1 else ():
                os.close(descriptor)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in held:
            os.close(descriptor)
    assert isolated.run(decode_targets.echo, 1) == 1


def test_where_no_limit_can_be_set_the_child_is_watched_and_ended(monkeypatch):
    monkeypatch.setattr(decoder_process, "HARD_LIMIT", False)
    with IsolatedDecoder(MediaPolicy(timeout=20), memory_bytes=256 * MIB) as isolated:
        assert isolated.run(decode_targets.grow, 5) == 5 * MIB
        with pytest.raises(SourceError, match="needed more than 256 MiB"):
            isolated.run(decode_targets.grow_and_stay, 400)


@pytest.mark.parametrize("busy", ["sleep", "spin"])
def test_too_much_time_is_named(busy):
    with IsolatedDecoder(MediaPolicy(timeout=0.3)) as isolated:
        began = time.monotonic()
        with pytest.raises(SourceError, match=r"^the decoder took more than 0.3 s; "):
            isolated.run(getattr(decode_targets, busy), 60)
        assert time.monotonic() - began < 30
        isolated.policy = MediaPolicy(timeout=20)  # in which a new child can import what it runs on any machine
        assert isolated.run(decode_targets.echo, 1) == 1


def test_a_fault_of_the_function_itself_is_named_without_its_text(isolated):
    with pytest.raises(SourceError, match=r"^the decoder failed \(KeyError\); ") as caught:
        isolated.run(decode_targets.bug)
    assert "secret" not in str(caught.value)
    with pytest.raises(SourceError, match=r"failed \(TypeError\)"):
        isolated.run(decode_targets.unsendable)


def test_damage_by_an_earlier_sample_does_not_fall_on_a_later_one(isolated):
    pids = [isolated.run(decode_targets.crash_if_used) for _ in range(3)]
    assert len(set(pids)) == 3


def test_a_child_that_was_killed_while_idle_is_replaced(isolated):
    pid = isolated.run(decode_targets.surroundings)["pid"]
    os.kill(pid, signal.SIGKILL)
    assert is_gone_soon(pid)
    assert isolated.run(decode_targets.echo, 5) == 5


def test_an_interrupt_in_the_host_leaves_no_answer_for_the_next_call(isolated):
    def interrupt(*_):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            isolated.run(decode_targets.interrupt_the_host_and_sleep, int(signal.SIGUSR1), 30)
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert isolated.run(decode_targets.echo, "mine") == "mine"


# ---- answers that are none


@pytest.mark.parametrize(
    "message",
    [
        (1 << 62).to_bytes(8, "big"),
        (20).to_bytes(8, "big") + b"x" * 20,
        (40).to_bytes(8, "big") + pickle.dumps(("result", 1)).ljust(40, b"."),
        b"".join((len(p := answer("other", 1)).to_bytes(8, "big"), p)),
    ],
    ids=["too long", "no JSON", "a pickle", "unknown kind"],
)
def test_a_forged_answer_is_an_error(isolated, message):
    with pytest.raises(SourceError, match="the decoder crashed"):
        isolated.run(decode_targets.forge, message)


def test_an_answer_too_many_is_not_taken_for_that_of_the_next_job(isolated):
    packed = answer("result", "forged")
    assert isolated.run(decode_targets.forge_and_go_on, len(packed).to_bytes(8, "big") + packed) == "forged"
    [(child, _)] = isolated._children._idle
    assert child._early or child._hears.poll(20_000)  # the second answer is there
    assert isolated.run(decode_targets.echo, "mine") == "mine"


def test_an_announced_length_costs_the_host_no_memory(isolated):
    import tracemalloc

    tracemalloc.start()
    try:
        with pytest.raises(SourceError, match=r"took more than|crashed"):
            isolated.run(decode_targets.forge_and_leave, (1 << 30).to_bytes(8, "big") + b"x")
        assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    finally:
        tracemalloc.stop()


def test_signals_that_the_host_blocks_do_not_keep_a_child_alive(isolated):
    old = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    try:
        assert isolated.run(decode_targets.blocked_signals) == []
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def test_an_answer_makes_no_type_but_ours():
    blob = answer("result", Where())
    for module, name in [
        (b"subprocess", b"Popen"),
        (b"mmprompt.errors", b"shown"),
        (b"mmprompt.media.files", b"os.system"),
    ]:
        forged = blob[4:].replace(b"mmprompt.errors", module).replace(b"Where", name)
        assert forged != blob[4:]
        with pytest.raises(AnswerError):
            answer_of(len(forged).to_bytes(4, "big") + forged)


def forged_answer(value: object, *sizes: int) -> bytes:
    header = json.dumps(["result", value, sizes]).encode()
    return len(header).to_bytes(4, "big") + header + bytes(sum(sizes))


def test_an_answer_imports_no_module_but_ours(tmp_path, monkeypatch):
    (tmp_path / "stranger.py").write_text(
        "from typing import NamedTuple\nclass Pair(NamedTuple):\n    a: int\n    b: int\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(AnswerError):
        answer_of(forged_answer(["fields", "stranger", "Pair", 1, 2]))
    assert "stranger" not in sys.modules


def test_a_long_header_costs_the_host_no_memory():
    import tracemalloc

    message = forged_answer([[]] * 3_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(AnswerError):
            answer_of(message)
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()


def test_an_answer_cannot_make_the_host_work():
    assert Fraction("1e5000").numerator.bit_length() > 16_000  # of 1e99999999 it would take minutes
    with pytest.raises(SyntaxError):
        np.dtype("i4,,")
    many = [[]] * 3_000_000
    answers = (
        ["fraction", "1e99999999", None],
        ["fraction", 1.5, 2],
        ["array", "i4,,", [1], 0],
        ["array", "|V4", [1], 0],
        many,
    )
    began = time.process_time()
    for value in answers:
        with pytest.raises(AnswerError):
            answer_of(forged_answer(value, 4))
    assert time.process_time() - began < 5
    for value in (Fraction(-3, 7), np.arange(3, dtype=">i2"), np.array([True]), (b"x",) * 100_000):
        back = answer_of(answer("result", value))[1]
        assert back.tolist() == value.tolist() if isinstance(value, np.ndarray) else back == value


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 400), st.integers(0, 400))
def test_any_bytes_are_an_answer_or_refused(noise, at, cut):
    good = answer("result", decode_targets.some_values())
    assert answer_of(good)[0] == "result"
    for message in (noise, good[:at] + noise + good[at + cut :]):
        with contextlib.suppress(AnswerError):
            answer_of(message)


# ---- many jobs in a row


def test_one_job_of_many_gives_their_values_and_errors(isolated):
    many = [("echo", b"x" * 9000), ("refuse", "no image"), ("echo", 3)]
    first, second, third = isolated.run(run_each, name_of(decode_targets.do), many, 60)
    assert (first, third) == (b"x" * 9000, 3)
    assert (type(second), second.what, second.where) == (SourceError, "no image", Where("a.jsonl", 3))
    with pytest.raises(SourceError, match="the decoder crashed"):
        isolated.run(run_each, name_of(decode_targets.do), [("echo", 1), ("crash", 1)], 60)


def test_one_job_of_many_begins_nothing_after_its_time(isolated):
    many = [("echo", 1), ("nap", 0.05), ("echo", 2)]
    assert isolated.run(run_each, name_of(decode_targets.do), many, 0.04) == [1, 0.05]


@pytest.mark.parametrize("in_memory", [True, False])
def test_each_job_has_its_own_bytes_whichever_way_they_go(in_memory, monkeypatch):
    def refuse(name):
        raise OSError(errno.ENOSYS, name)

    if not in_memory:
        monkeypatch.setattr(os, "memfd_create", refuse, raising=False)
    data = [os.urandom(size) for size in (5000, 3 * MIB, 9 * MIB, 4096, 100, 4 * MIB, 4 * MIB + 1, 70_000) * 3]
    with IsolatedDecoder(MediaPolicy(timeout=20)) as decoder:
        assert [decoder.run(decode_targets.echo, one) for one in data] == data
        pairs = list(itertools.pairwise(data))
        assert [decoder.run(decode_targets.echo, pair) for pair in pairs] == pairs


def has_memory_files() -> bool:
    try:
        os.close(os.memfd_create("probe"))
    except (AttributeError, OSError):
        return False
    return True


def test_a_limit_on_the_sizes_of_files_does_not_end_the_host(command_environment):
    script = """if True:
        import resource, signal
        import decode_targets
        from mmprompt.media.policy import MediaPolicy
        from mmprompt.media.sandbox.decoders import IsolatedDecoder
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # as in a host that is not Python
        resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
        with IsolatedDecoder(MediaPolicy()) as decoder:
            print(decoder.run(decode_targets.length, bytes(100_000)))
    """
    places = command_environment["PYTHONPATH"], str(Path(__file__).parent)
    environment = {**command_environment, "PYTHONPATH": os.pathsep.join(places)}
    words = [sys.executable, "-c", script]
    run = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (run.returncode, run.stdout.strip()) == (0, "100000"), run.stderr


# ---- manners


def test_the_child_inherits_nothing(isolated, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with open(tmp_path / "open", "wb") as file:
        os.set_inheritable(file.fileno(), True)
        about = isolated.run(decode_targets.surroundings)
    assert about.pop("pid") != os.getpid()
    ours = ["/dev/null"] * 3 + ["/memfd"] * has_memory_files() + ["pipe"] * 3
    assert sorted(n for n in about.pop("descriptors") if not n.startswith("/proc")) == ours
    assert about == {"threads": 1, "secret": None, "main": None, "core": 0, "directory": "/"}


def test_the_child_prints_nothing_reads_nothing_and_writes_no_file(isolated, capfd, tmp_path):
    assert isolated.run(decode_targets.say) == ""
    assert isolated.run(decode_targets.write_file, str(tmp_path / "f")) == "OSError"
    assert capfd.readouterr() == ("", "")


def test_nothing_is_left_after_crashes_timeouts_and_the_end_of_the_object():
    before = held()
    it = IsolatedDecoder(MediaPolicy(timeout=0.3))
    for function, argument in [("crash", b""), ("sleep", 60), ("echo", 1), ("bug", None)]:
        with contextlib.suppress(SourceError):
            it.run(getattr(decode_targets, function), *([] if argument is None else [argument]))
    it.policy = MediaPolicy(timeout=20)
    assert it.run(decode_targets.echo, 1) == 1
    assert "child" in left_behind(before, patience=0.0)
    del it
    assert left_behind(before, patience=0.0) == ""


def test_close_ends_the_children_and_the_decoder_can_be_used_again(isolated):
    pid = isolated.run(decode_targets.surroundings)["pid"]
    isolated.close()
    assert not is_alive(pid)
    assert isolated.run(decode_targets.surroundings)["pid"] != pid


def test_threads_have_children_of_their_own_and_all_get_their_answers(isolated):
    data = [jpeg(side) for side in (8, 16, 24, 32)] * 10
    before = held().children
    with ThreadPoolExecutor(4) as pool:
        sizes = list(pool.map(lambda d: isolated.run(decode_targets.size_of_image, d), data))
    assert sizes == [isolated.run(decode_targets.size_of_image, d) for d in data]
    assert len(held().children - before) <= 4


def test_a_decoder_pickles_without_its_children(isolated):
    assert isolated.run(decode_targets.echo, 1) == 1
    with pickle.loads(pickle.dumps(isolated)) as copy:
        assert (copy.policy, copy.memory_bytes) == (isolated.policy, isolated.memory_bytes)
        assert copy.run(decode_targets.surroundings)["pid"] != isolated.run(decode_targets.surroundings)["pid"]


def _pid_in(it):
    with it:
        return it.run(decode_targets.surroundings)["pid"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_decoder_works_in_a_process_made_by(method, isolated):
    mine = isolated.run(decode_targets.surroundings)["pid"]
    with multiprocessing.get_context(method).Pool(1) as pool:
        theirs = pool.apply_async(_pid_in, (isolated,)).get(60)
        pool.close()
        pool.join()
    assert theirs != mine
    assert not is_alive(theirs)
    assert isolated.run(decode_targets.surroundings)["pid"] == mine


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_uses_a_child_of_its_own_and_harms_none(isolated):
    mine = isolated.run(decode_targets.surroundings)["pid"]
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writes, str(isolated.run(decode_targets.surroundings)["pid"]).encode())
            isolated.close()
        finally:
            os._exit(0)
    os.close(writes)
    os.waitpid(pid, 0)
    theirs = int(os.read(reads, 20))
    os.close(reads)
    assert theirs != mine
    assert is_gone_soon(theirs)
    assert isolated.run(decode_targets.surroundings)["pid"] == mine


HOST = """
import sys, time
import decode_targets
from mmprompt.media.sandbox.decoders import IsolatedDecoder
from mmprompt.media.policy import MediaPolicy
it = IsolatedDecoder(MediaPolicy(timeout=20))
print(it.run(decode_targets.surroundings)["pid"], flush=True)
it.policy = MediaPolicy(timeout=float(sys.argv[2]))
it.run(getattr(decode_targets, sys.argv[1]), 60, sys.argv[3]) if sys.argv[1] != "idle" else time.sleep(60)
"""


@pytest.mark.parametrize("busy", ["idle", "sleep", "spin"])
def test_the_child_ends_when_its_parent_is_killed(busy, command_environment, tmp_path):
    environment = {**command_environment, "PYTHONPATH": os.pathsep.join((command_environment["PYTHONPATH"], str(Path(__file__).parent)))}  # fmt: skip
    begun = tmp_path / "begun"
    for seconds in ("90", "120"):  # far longer than we wait: it is not the time limit that ends the child
        words = [sys.executable, "-c", HOST, busy, seconds, begun]
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as host:
            try:
                pid = int(host.stdout.readline())
                assert busy == "idle" or wait_until(lambda: begun.exists() or host.poll() is not None)
                was_alive = is_alive(pid)
            finally:
                host.kill()
        assert is_gone_soon(pid)
        if was_alive and host.returncode == -signal.SIGKILL:
            return
        begun.unlink(missing_ok=True)
    pytest.fail("the child was not at work when its parent was killed")


# ---- hosts that are no Python


@pytest.mark.parametrize("executable", ["", "/bin/true", "/nowhere/python"])
def test_a_host_without_a_python_is_told_so(executable, monkeypatch):
    monkeypatch.setattr(sys, "executable", executable)
    monkeypatch.delitem(sys.modules, "multiprocessing.spawn", raising=False)
    with IsolatedDecoder(MediaPolicy()) as it, pytest.raises(PolicyError, match=r"multiprocessing.set_executable"):
        it.run(decode_targets.echo, 1)


def test_a_frozen_host_is_not_started_again(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.delitem(sys.modules, "multiprocessing.spawn", raising=False)
    with IsolatedDecoder(MediaPolicy()) as it, pytest.raises(PolicyError, match="a frozen program"):
        it.run(decode_targets.echo, 1)


def test_a_child_starts_no_child(isolated):
    with pytest.raises(PolicyError, match="cannot start another"):
        isolated.run(decode_targets.run_isolated, 1)


def test_memory_that_is_too_little_to_start_is_refused():
    for memory in (0, -1, 1.5, True, math.inf, 255 * MIB):
        with pytest.raises(PolicyError, match="memory_bytes"):
            IsolatedDecoder(MediaPolicy(), memory_bytes=memory)
