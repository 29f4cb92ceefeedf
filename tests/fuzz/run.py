"""Fuzzing: ``python tests/fuzz/run.py [COUNT [SEED [WAY]]]`` feeds changed media files to the whole media engine.

COUNT files in all (20,000 by default), an equal share of each kind, each kind in a process of its own so that a crash
in a decoder names its kind and file. SEED is the day's date by default. WAY is ``mutated`` (bytes, see
``mutations.py``) or ``structured`` (parts, see ``structures.py``), by default both in turn. Only our own errors may
come out, no file may take longer than ``SLOWEST`` seconds, and memory may neither grow nor pass ``MOST``. Exits with 1
otherwise.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from mutations import KINDS, MODALITY, mutated, originals
from structures import CONTAINERS, restructured

from mmprompt import MediaPolicy, MediaReader, MediaRef
from mmprompt.errors import MMPromptError
from mmprompt.media.audio.changes import change_audio, fit_audio
from mmprompt.media.audio.reading import audio_facts, decode_audio
from mmprompt.media.changes import Changes, TargetRoom
from mmprompt.media.image.changes import change_image
from mmprompt.media.image.fit import fit_image
from mmprompt.media.image.reading import check_image, decode_image, image_facts
from mmprompt.media.video.changes import change_video
from mmprompt.media.video.reading import video_facts
from mmprompt.messages import MediaPart

WAYS = ("mutated", "structured")
COUNT = 20_000
SLOWEST = 5.0
GROWTH, MOST = 64 << 10, 500 << 10  # KiB
POLICY = MediaPolicy(
    max_bytes=1 << 20, max_pixels=1_000_000, max_seconds=60.0, max_frames=200, timeout=3.0, read_also=("avif",)
)
_IMAGES = TargetRoom("openai", frozenset({"image/png"}), still=frozenset({"image/gif"}), max_bytes=8000, max_side=20)
_SOUNDS = TargetRoom("openai", frozenset({"audio/wav"}), max_bytes=8000)

Step = Callable[[MediaPart], object]
STEPS: dict[str, tuple[Step, ...]] = {
    "image": (
        lambda part: image_facts(part.data, POLICY),
        lambda part: check_image(part.data, POLICY),
        lambda part: decode_image(part.data, POLICY),
        lambda part: change_image(part, Changes(upright=True, mode="RGB", max_side=16), POLICY),
        lambda part: fit_image(part, _IMAGES, POLICY),
    ),
    "audio": (
        lambda part: audio_facts(part.data, POLICY),
        lambda part: decode_audio(part.data, POLICY),
        lambda part: change_audio(part, Changes(audio_format="wav", mono=True, audio_rate=8000), POLICY),
        lambda part: fit_audio(part, _SOUNDS, POLICY),
    ),
    "video": (
        lambda part: video_facts(part.data, POLICY),
        lambda part: change_video(part, Changes(frames=2), POLICY),
        lambda part: change_video(part, Changes(frames=2, key_frames=True, max_side=16), POLICY),
    ),
}


class Outcome(NamedTuple):
    """What became of one file: the steps that gave a value and were refused, the faults, and the slowest step."""

    given: int
    refused: int
    faults: list[str]
    slowest: float


def feed(data: bytes, modality: str) -> Outcome:
    """Put one file through the reader and every step of its modality; anything but our own errors is a fault."""
    faults: list[str] = []
    given = refused = 0
    slowest = 0.0
    try:
        part = MediaReader(POLICY).read(MediaRef(modality, data))
    except MMPromptError:
        return Outcome(0, 1, faults, slowest)
    for step in STEPS[modality]:
        began = time.perf_counter()
        try:
            step(part)
            given += 1
        except MMPromptError:
            refused += 1
        except Exception:  # the fault that this program looks for
            faults.append(traceback.format_exc(limit=-4))
        slowest = max(slowest, time.perf_counter() - began)
    return Outcome(given, refused, faults, slowest)


def files(kind: str, count: int, seed: int, way: str = "mutated") -> Iterator[bytes]:
    """Give ``count`` changed files of a kind, the same for the same seed."""
    draw = random.Random(f"{seed}/{kind}" if way == "mutated" else f"{seed}/{kind}/{way}")
    sound = originals().get(kind, [])
    for _ in range(count if sound else 0):
        whole = draw.choice(sound)
        yield mutated(whole, draw, sound) if way == "mutated" else restructured(kind, whole, draw, sound)


def fuzz(kind: str, count: int, seed: int, way: str) -> int:
    """Feed the mutations of one kind, print what became of them, and return the number of faults."""
    warnings.simplefilter("error")
    total: Counter[str] = Counter()
    slowest, faults, early = 0.0, 0, 0
    for number, data in enumerate(files(kind, count, seed, way)):
        print(number, end="\r", file=sys.stderr, flush=True)
        outcome = feed(data, MODALITY.get(kind, "audio"))
        total.update(given=outcome.given, refused=outcome.refused)
        slowest = max(slowest, outcome.slowest)
        for fault in outcome.faults:
            faults += 1
            print(f"{kind} {number}:\n{fault}", flush=True)
        if number == count // 4:
            early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    faults += (slowest > SLOWEST) + (most - early > GROWTH) + (most > MOST)
    print(f"{kind:5} {count} {way} files: {total['given']} steps gave a value, {total['refused']} were refused, {faults} faults, "
          f"slowest {slowest:.2f} s, memory {most / 1024:.0f} MiB, after the first quarter {(most - early) / 1024:+.1f}", flush=True)  # fmt: skip
    return faults


def main(count: int = COUNT, seed: int | None = None, *ways: str) -> int:
    """Fuzz each kind in a process of its own."""
    failed = 0
    seed = int(time.strftime("%Y%m%d")) if seed is None else seed
    print(f"seed {seed}", flush=True)
    turns = [(kind, way) for way in ways or WAYS for kind in (KINDS if way == "mutated" else CONTAINERS)]
    for kind, way in turns:
        share = str(count // len(turns))
        command = [sys.executable, "-X", "faulthandler", __file__, "--kind", kind, share, str(seed), way]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=3600, check=False)
        if done.returncode:
            failed += 1
            print(f"{kind}: exit {done.returncode} {done.stderr[-2000:]}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--kind"]:
        sys.exit(int(fuzz(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]) > 0))
    sys.exit(main(*map(int, sys.argv[1:3]), *sys.argv[3:]))
