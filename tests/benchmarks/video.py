"""Frames of a video to JPEG, against a bare loop of PyAV; and videos and sounds passed through to requests."""

from __future__ import annotations

import io
import json
import os
import wave
from collections.abc import Iterator

import av
import inputs
import numpy as np
import pybase64
from grid_bound import warm_heap
from PIL import Image
from rendering import check_same, drop, render_to_nowhere
from timing import Row, against, interleaved

from mmprompt import dataset_task
from mmprompt.media import MediaPolicy
from mmprompt.media.changes import Changes
from mmprompt.media.video.changes import change_video
from mmprompt.messages import MediaPart

FRAMES_BAR = 0.95
KEY_FRAMES_BAR = 3.0
PASSED_BAR = 0.9
SECONDS, RATE, WIDTH, HEIGHT = 10, 30, 854, 480
WANTED = 8

_QUESTION = "What happens in it?"


def frames(*, repetitions: int = 7) -> list[Row]:
    """Take eight frames of a 10 s clip of 480p: evenly, against decoding all of it; and key frames alone."""
    data = h264_clip(SECONDS * RATE, WIDTH, HEIGHT)
    part = MediaPart("video", "video/mp4", data)
    policy = MediaPolicy()
    contenders = {
        "eight": lambda: change_video(part, Changes(frames=WANTED), policy).frames,
        "bare": lambda: _bare(data),
        "key": lambda: change_video(part, Changes(frames=WANTED, key_frames=True), policy).frames,
    }
    if contenders["eight"]() != contenders["bare"]():
        raise SystemExit("the frames are not those of the bare loop")
    timed = interleaved(contenders, repetitions)
    return [
        against("8 frames of 10 s 480p, against decode + JPEG", timed, "eight", "bare", 1, FRAMES_BAR),
        against("key frames of the same, against 8 frames", timed, "key", "eight", 1, KEY_FRAMES_BAR),
    ]


def passed_through(folder: str, *, count: int = 2000, repetitions: int = 75) -> list[Row]:
    """Render rows with an MP4 or a WAV file each, passed on unchanged."""
    warm_heap()
    rows = []
    clips = [h264_clip(length, WIDTH, HEIGHT) for length in (90, 150, 210, 300)]
    sounds = [_wav(seconds) for seconds in (1, 3, 5, 10)]
    for modality, suffix, files in (("video", "mp4", clips), ("audio", "wav", sounds)):
        names = [f"{number:05}.{suffix}" for number in range(count)]
        for number, name in enumerate(names):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(files[number % len(files)])
        rows.append(_passed(folder, modality, f"{modality}/{suffix}", names, repetitions))
    return rows


def _passed(folder: str, modality: str, media_type: str, names: list[str], repetitions: int) -> Row:
    dataset = os.path.join(folder, f"{modality}.jsonl")
    with open(dataset, "w", encoding="utf-8") as file:
        for number, name in enumerate(names):
            tag = f"<AIS_{modality.upper()}_START>{name}<AIS_CONTENT_TAG>"
            content = f"{tag}<AIS_TEXT_START>{_QUESTION}<AIS_CONTENT_TAG>"
            file.write(json.dumps({"id": f"q-{number}", "content": content, "answer": "1"}) + "\n")
    task = dataset_task(dataset)
    check_same(task, _lines(folder, modality, media_type, names))
    contenders = {
        "mmprompt": lambda: render_to_nowhere(task),
        "bound": lambda: drop(_lines(folder, modality, media_type, names)),
    }
    timed = interleaved(contenders, repetitions)
    what = f"{media_type} rows, against read + pybase64 + join"
    return against(what, timed, "mmprompt", "bound", len(names), PASSED_BAR)


def _lines(folder: str, modality: str, media_type: str, names: list[str]) -> Iterator[bytes]:
    """Read, encode and join, with no check of anything."""
    kind = f"{modality}_url"
    tail = f'"}}}},{{"type":"text","text":"{_QUESTION}"}}]}}],"answer":"1"}}\n'.encode()
    for number, name in enumerate(names):
        head = f'{{"id":"q-{number}","messages":[{{"role":"user","content":[{{"type":"{kind}","{kind}":{{"url":"data:{media_type};base64,'
        descriptor = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_CLOEXEC)
        data = os.read(descriptor, 1 << 22)
        os.close(descriptor)
        yield b"".join((head.encode(), pybase64.b64encode(data), tail))


def _bare(data: bytes) -> tuple[bytes, ...]:
    """Decode everything in order and make JPEG of the frames that linspace names."""
    total = SECONDS * RATE
    wanted = {number * (total - 1) // (WANTED - 1) for number in range(WANTED)}
    found = []
    with av.open(io.BytesIO(data)) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if number in wanted:
                buffer = io.BytesIO()
                Image.fromarray(frame.to_ndarray(format="rgb24")).save(buffer, "JPEG", quality=85)
                found.append(buffer.getvalue())
    return tuple(found)


def h264_clip(count: int, width: int, height: int) -> bytes:
    """Return an H.264 clip that pans over a photograph, with x264's own key frame interval."""
    photograph = Image.open(os.path.join(inputs.PHOTOGRAPHS, "coffee.jpg")).convert("RGB")
    pixels = np.asarray(photograph.resize((width + 128, height + 128)))
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as out:
        stream = out.add_stream("libx264", rate=RATE)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for number in range(count):
            x, y = (round(64 + 60 * wave_at(number / 40)) for wave_at in (np.sin, np.cos))
            view = np.ascontiguousarray(pixels[y : y + height, x : x + width])
            out.mux(stream.encode(av.VideoFrame.from_ndarray(view, format="rgb24")))
        out.mux(stream.encode())
    return file.getvalue()


def _wav(seconds: int) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(16_000)
        out.writeframes(np.random.default_rng(seconds).integers(-9000, 9000, 16_000 * seconds, np.int16).tobytes())
    return file.getvalue()
