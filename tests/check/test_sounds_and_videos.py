"""The rules on sounds and videos: each finds its fault in a real file, and good files give nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from clips import clip, picture, turned
from findings import findings_of
from media.sound_files import sweep, tone, wav_header, written

RATE = 16000


def stereo(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.concatenate([left, right], axis=1)


def with_nan() -> np.ndarray:
    samples = tone(RATE, 440)
    samples[100:200] = np.nan
    return samples


def still(_number: int, width: int, height: int) -> np.ndarray:
    return picture(5, width, height)


def black(_number: int, width: int, height: int) -> np.ndarray:
    return np.zeros((height, width, 3), np.uint8)


def declaring(frames: int) -> bytes:
    """Return an AVI of 50 frames whose header declares another number."""
    data = clip(50, container="avi", codec="mpeg4")
    at = data.index(b"strh") + 8 + 32  # the length of the stream, in frames
    return data[:at] + frames.to_bytes(4, "little") + data[at + 4 :]


SOUNDS = {
    "MM401": written(sweep(RATE, 4000, 3), RATE)[: RATE * 2],
    "MM402": written(np.zeros((0, 1), np.float32), RATE),
    "MM403": written(np.zeros((RATE, 1), np.float32), RATE),
    "MM404": written(np.clip(tone(RATE, 440) * 4, -1, 1), RATE),
    "MM407": written(tone(RATE, 440, 0.05), RATE),
    "MM408": written(tone(6000, 440), 6000),
    "MM409": written(stereo(tone(RATE, 440), tone(RATE, 440) * 0), RATE),
    "MM410": written(with_nan(), RATE, subtype="FLOAT"),
}
UNEVEN = tuple(sum(40 if n % 3 else 120 for n in range(end)) for end in range(1, 31))
VIDEOS = {
    "MM500": clip(100)[:2000],
    "MM502": declaring(60),
    "MM503": clip(30, ticks=UNEVEN, clock=Fraction(1, 1000)),
    "MM504": b"\xff\xd8\xff\xe0" + bytes(100),
    "MM505": declaring(400),
    "MM507": clip(25, size=(18, 16)),
    "MM508": clip(30, paint=black),
    "MM510": clip(1),
    "MM511": clip(60, paint=still),
}


def codes_of(tmp_path: Path, modality: str, name: str, data: bytes) -> dict[str, str]:
    (tmp_path / name).write_bytes(data)
    row = {"id": 1, "question": "What is this?", modality: name, "answer": "it"}
    (tmp_path / "data.jsonl").write_text(json.dumps(row) + "\n")
    return {finding.code: str(finding) for finding in findings_of(tmp_path / "data.jsonl")}


@pytest.mark.parametrize("code", SOUNDS)
def test_a_fault_of_a_sound_is_found(code: str, tmp_path: Path) -> None:
    found = codes_of(tmp_path, "audio", "a.wav", SOUNDS[code])
    assert set(found) == {code}, found
    assert "a.wav" in found[code]


@pytest.mark.parametrize("code", VIDEOS)
def test_a_fault_of_a_video_is_found(code: str, tmp_path: Path) -> None:
    found = codes_of(tmp_path, "video", "a.avi" if code in ("MM502", "MM505") else "a.mp4", VIDEOS[code])
    assert code in found, found
    assert not set(found) - {code, "MM507", "MM204"}


def test_a_turned_video_is_found(tmp_path: Path) -> None:
    assert set(codes_of(tmp_path, "video", "a.mp4", turned(clip(30), (0, 1, -1, 0)))) == {"MM512"}


def test_good_sounds_and_videos_give_nothing(tmp_path: Path) -> None:
    for modality, name, data in (
        ("audio", "a.wav", written(sweep(RATE, 4000), RATE)),
        ("audio", "a.flac", written(sweep(44100, 9000, channels=2), 44100, "FLAC")),
        ("audio", "a.mp3", written(sweep(44100, 9000), 44100, "MP3")),
        ("audio", "a.ogg", written(sweep(44100, 9000), 44100, "OGG")),
        ("video", "a.mp4", clip(60, sound=True)),
        ("video", "a.mkv", clip(60, container="matroska")),
        ("video", "a.avi", clip(60, container="avi", codec="mpeg4")),
    ):
        assert codes_of(tmp_path, modality, name, data) == {}, name


@pytest.mark.parametrize(("rate", "hertz"), [(RATE, 440), (RATE, 3999), (44100, 82), (48000, 997)])
def test_a_tone_that_reaches_full_scale_is_not_clipped(rate: int, hertz: float, tmp_path: Path) -> None:
    for amplitude in (1, 0.99998):
        sound = written(tone(rate, hertz, 2) * 2 * amplitude, rate)
        assert codes_of(tmp_path, "audio", "a.wav", sound) == {}, amplitude


def typed(number: int, width: int, height: int) -> np.ndarray:
    """Return a white page on which a line of thin strokes grows."""
    page = np.full((height, width, 3), 255, np.uint8)
    for stroke in range(number // 6):
        page[21:29, 13 + 6 * stroke : 14 + 6 * stroke] = 0
    return page


def slide(number: int, width: int, height: int) -> np.ndarray:
    """Return a title, and below it one more stroke every second."""
    page = typed(6 + number // 25 * 6, width, height)
    page[5:15, 20:120] = 90
    return page


@pytest.mark.parametrize("paint", [typed, slide])
def test_a_page_that_is_written_on_is_neither_blank_nor_still(
    paint: Callable[[int, int, int], np.ndarray], tmp_path: Path
) -> None:
    assert codes_of(tmp_path, "video", "a.mp4", clip(100, paint=paint, size=(320, 240))) == {}


def noisy(number: int, width: int, height: int) -> np.ndarray:
    """Return a grey wall, as a camera with noise sees it."""
    draw = np.random.default_rng(number)
    return np.clip(draw.normal(120, 6, (height, width, 3)), 0, 255).astype(np.uint8)


def test_noise_of_a_camera_hides_no_blank_video(tmp_path: Path) -> None:
    assert set(codes_of(tmp_path, "video", "a.mp4", clip(50, paint=noisy, size=(640, 480)))) == {"MM508"}


def test_a_header_alone_is_not_a_sound(tmp_path: Path) -> None:
    assert codes_of(tmp_path, "audio", "a.wav", wav_header(RATE, 1, b"")).keys() & {"MM402", "MM400"}
