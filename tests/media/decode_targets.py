"""Functions that tests have run in the decoding process: those that behave, and those that do not."""

import ctypes
import os
import signal
import sys
import threading
import time

from mmprompt.errors import SourceError, Where
from mmprompt.errors.findings import Note

calls = []


def length(data):
    return len(data)


def echo(value):
    return value


def wrong_medium(part, _steps, _policy):
    from mmprompt.media.cache.entry import CacheEntry

    wrong = (
        5,
        None,
        CacheEntry(changes=5),
        CacheEntry("x", None),
        CacheEntry(5, b"x"),
        CacheEntry("x", b"x", (1,)),
        CacheEntry(unchanged=1),
        CacheEntry("x", b"x", (), (), ("a text",)),
    )
    return wrong[len(part.data)]


def do(name, argument):
    return globals()[name](argument)


def nap(seconds):
    time.sleep(seconds)
    return seconds


def leave_now(_):
    os._exit(7)


def swell(_):
    return grow(4096)


def size_of_image(data):
    import io

    from PIL import Image

    with Image.open(io.BytesIO(data), formats=("JPEG", "PNG")) as image:
        return image.size


def walk_image(data):
    import io

    from PIL import Image

    with Image.open(io.BytesIO(data), formats=("JPEG",)) as image:
        image.draft("RGB", (image.width // 8, image.height // 8))
        image.load()
        return image.size


def memory_as_rgb(data):
    """Decode a picture as careless code does, and return the most memory that this process has had."""
    import io
    import resource

    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        image.convert("RGB")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def run_isolated(value):
    from mmprompt.media import MediaPolicy
    from mmprompt.media.sandbox.decoders import IsolatedDecoder

    with IsolatedDecoder(MediaPolicy()) as decoder:
        return decoder.run(echo, value)


def crash(data=b""):
    ctypes.string_at(0)


def abort(_=None):
    os.abort()


def crash_if_used():
    calls.append(1)
    if len(calls) > 1:
        os.abort()
    return os.getpid()


def grow(mebibytes):
    held = bytearray(mebibytes << 20)
    for at in range(0, len(held), 4096):
        held[at] = 1
    return len(held)


def grow_and_stay(mebibytes):
    held = b"x" * (mebibytes << 20)
    time.sleep(60)
    return len(held)


def sleep(seconds, begun=os.devnull):
    with open(begun, "wb"):
        pass
    time.sleep(seconds)
    return seconds


def interrupt_the_host_and_sleep(number, seconds):
    os.kill(os.getppid(), number)
    time.sleep(seconds)


def spin(seconds, begun=os.devnull):
    with open(begun, "wb"):
        pass
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return seconds


def refuse(what):
    raise SourceError(what, "mend it", Where("a.jsonl", 3))


def bug(_=None):
    raise KeyError("/secret/path")


def leave():
    os._exit(7)


def forge(message):
    """Send something else in place of the answer, as a process whose memory is damaged may."""
    descriptor = max(int(name) for name in os.listdir("/proc/self/fd") if is_pipe(name))
    os.write(descriptor, message)
    time.sleep(30)


def forge_and_go_on(message):
    descriptor = max(int(name) for name in os.listdir("/proc/self/fd") if is_pipe(name))
    os.write(descriptor, message)


def forge_and_leave(message):
    forge_and_go_on(message)
    os._exit(3)


def blocked_signals():
    return [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())]


def is_pipe(name):
    try:
        return os.readlink(f"/proc/self/fd/{name}").startswith("pipe:")
    except OSError:
        return False


def surroundings():
    import resource

    return {
        "pid": os.getpid(),
        "threads": threading.active_count(),
        "descriptors": sorted(os.readlink(f"/proc/self/fd/{name}").split(":")[0] for name in os.listdir("/proc/self/fd") if is_open(name)),
        "secret": os.environ.get("OPENAI_API_KEY"),
        "main": getattr(sys.modules["__main__"], "__file__", None),
        "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
        "directory": os.getcwd(),
    }  # fmt: skip


def is_open(name):
    return os.path.exists(f"/proc/self/fd/{name}") or is_pipe(name)


def say():
    os.write(1, b"out")
    os.write(2, b"err")
    print("hello")
    return sys.stdin.read()


def write_file(path):
    try:
        with open(path, "wb") as file:
            file.write(b"x" * 100)
    except OSError as error:
        return type(error).__name__
    return ""


def some_values():
    from fractions import Fraction

    import numpy as np

    from mmprompt.messages import MediaPart

    part = MediaPart("image", "image/png", b"\x89PNG" * 9, changes=("a to b",))
    return [None, True, -(2**70), 1.5, float("inf"), "e\u0301\ud800", b"", (1, [2]), {1}, frozenset({"a"}), {"k": (1,), 2: b"x"}, Fraction(1, 3), part, np.arange(6, dtype="<i2").reshape(2, 3), np.float64(2.5)]  # fmt: skip


def unsendable():
    return object()


def small_jpeg(part, changes, policy):
    """A change as the media modules make it: encoded by Pillow, said in words; the same part where nothing is asked."""
    import io

    from PIL import Image

    with open(os.environ.get("TOLD", os.devnull), "ab") as told:
        told.write(b"x")
    with Image.open(io.BytesIO(part.data), formats=("JPEG", "PNG")) as image:
        side = changes.max_side
        if side is None or max(image.size) <= side:
            return part
        before = image.size
        small = image.convert("RGB")
        small.thumbnail((side, side))
        buffer = io.BytesIO()
        small.save(buffer, "JPEG", quality=changes.quality)
    words = f"{before[0]}x{before[1]} to {small.width}x{small.height} (max_side)"
    return part._replace(media_type="image/jpeg", data=buffer.getvalue(), changes=part.changes + (words,))


def fit_small(part, room, policy):
    if part.media_type in room.formats:
        return part
    return part._replace(findings=part.findings + (Note("MM804", f"{room.target} does not take it"),))


def crash_on_change(part, changes, policy):
    crash()


def raise_what_the_file_names(part, _wanted, _policy, *_more):
    """A change that raises the exception whose name stands behind ``raise`` at the end of the file."""
    import builtins

    name = part.data.rpartition(b"raise ")[2].decode("latin-1")
    if hasattr(builtins, name):
        raise getattr(builtins, name)("/secret/path")
    if part.modality == "video":
        return part._replace(media_type="video/jpeg", data=b"", frames=(b"\xff\xd8\xff\xe0",))
    return part._replace(media_type={"image": "image/png", "audio": "audio/wav"}[part.modality], data=b"changed")


def raise_named(name):
    import builtins

    raise getattr(builtins, name)("/secret/path")


def decoded_size(data, policy):
    from mmprompt.media.image.reading import decode_image

    return decode_image(data, policy).size


def peak_memory():
    """Return the most memory that this program has had; ``ru_maxrss`` would count that of the host before it."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))
