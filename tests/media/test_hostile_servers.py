"""Whatever the server of a URL answers is an error of the package."""

from __future__ import annotations

import pytest
from hostile_answers import BODIES, CHUNKS, FRAMES, TYPICAL, Hostile, serving
from time_taken import GENEROUS

from mmprompt import MMPromptError
from mmprompt.errors import SourceError
from mmprompt.media import MediaPolicy, MediaReader
from mmprompt.media.fetch import fetcher
from mmprompt.messages import MediaRef

ANSWERS = {**FRAMES, **{name: Hostile(answer) for name, answer in BODIES.items() if answer.startswith(b"HTTP/")}}
NAMES = [pytest.param(name, marks=() if name in TYPICAL else pytest.mark.slow) for name in ANSWERS]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "_FIRST_PAUSE", 0.001)


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_answer_is_an_error_of_the_package(name: str) -> None:
    with serving(ANSWERS[name]) as server:
        policy = MediaPolicy(allow_domains=[f"127.0.0.1:{server.port}"], fetch=True, timeout=ANSWERS[name].timeout)
        with pytest.raises(MMPromptError):
            MediaReader(policy).read(MediaRef("image", f"http://127.0.0.1:{server.port}/hostile.png"))


def test_after_a_chunk_of_a_negative_size_no_more_is_read_than_the_limits_allow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetcher, "_MOST_FRAMING", 1 << 20)
    endless = Hostile(CHUNKS + b"-1\r\n", "repeat", (bytes(1 << 16),))
    with serving(endless) as server:
        policy = MediaPolicy(
            allow_domains=[f"127.0.0.1:{server.port}"], fetch=True, timeout=GENEROUS, max_bytes=1 << 20
        )
        with pytest.raises(SourceError, match="was cut off"):
            MediaReader(policy).read(MediaRef("image", f"http://127.0.0.1:{server.port}/hostile.png"))
