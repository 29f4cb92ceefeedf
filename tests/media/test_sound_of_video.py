"""The sound of a video, sent in its place where a task asks for it."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
import soundfile
from clips import clip
from closing_line import closing

from mmprompt import MediaPolicy, Message, TaskError, change_messages, load_task, read_messages
from mmprompt.errors import SourceError
from mmprompt.messages import MediaPart, MediaRef
from mmprompt.tasks.media import task_changes

ROW = {"id": 1, "video": "a.mp4", "question": "What is heard?"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.mp4").write_bytes(clip(25, sound=True))
    (tmp_path / "mute.mp4").write_bytes(clip(5))
    (tmp_path / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    return tmp_path


def rendered(folder: Path, command: Any, media: dict[str, Any], *options: str) -> Any:
    (folder / "task.json").write_text(json.dumps({"dataset": {"path": "data.jsonl"}, "media": media}))
    done = command("render", folder / "task.json", *options)
    assert (done.returncode, closing(done.stderr.decode()).told) == (0, "")
    return json.loads(done.stdout)


def heard(data: bytes) -> Any:
    return soundfile.info(io.BytesIO(data))


def video(folder: Path, name: str = "a.mp4") -> list[Message]:
    part = MediaRef("video", name, "video_url", (("fps", 2),), (("min_pixels", 9),))
    return read_messages([Message("user", (part,))], MediaPolicy(roots=[folder]))


@pytest.mark.parametrize("target", ["vllm", "openai", "gemini"])
def test_a_task_sends_the_sound_of_a_video_in_its_place(folder, command, target):
    media = {"sound_track": True, "audio_rate": 16000, "mono": True}
    line = rendered(folder, command, media, "--target", target)
    part = (line["messages"][0]["content"] if target != "gemini" else line["contents"][0]["parts"])[0]
    data = {
        "vllm": lambda: part["audio_url"]["url"].removeprefix("data:audio/wav;base64,"),
        "openai": lambda: part["input_audio"]["data"],
        "gemini": lambda: part["inline_data"]["data"],
    }[target]()
    info = heard(base64.b64decode(data, validate=True))
    assert (info.format, info.samplerate, info.channels) == ("WAV", 16000, 1)
    assert info.duration == pytest.approx(1, abs=0.1)


def test_a_string_has_no_placeholder_for_the_sound_in_a_videos_place(folder, command):
    part = {"type": "video_url", "video_url": {"url": "{video}"}}
    task = {
        "dataset": {"path": "data.jsonl"},
        "media": {"sound_track": True},
        "infer_cfg": {"prompt_template": {"type": "MMPromptTemplate", "template": {"round": [{"role": "HUMAN", "prompt_mm": {"video": part}}]}}},
        "model": {"media_placeholder": {"video": "<v>"}},
    }  # fmt: skip
    (folder / "task.json").write_text(json.dumps(task))
    done = command("render", folder / "task.json", "--emit", "string")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"the string holds a placeholder of video, and audio would go in its place; use --emit mess" in done.stderr


def test_the_sound_is_made_to_fit_the_target(folder, command):
    asked = {"sound_track": True, "audio_format": "mp3"}
    line = rendered(folder, command, asked, "--target", "openai", "--fit")
    assert line["messages"][0]["content"][0]["input_audio"]["format"] == "mp3"


def test_what_is_said_of_the_video_does_not_stay_and_what_was_done_is_told(folder):
    [message] = change_messages(video(folder), sound_track=True)
    part = message.parts[0]
    assert isinstance(part, MediaPart)
    assert (part.modality, part.media_type, part.form, part.options, part.extra) == ("audio", "audio/wav", "", (), ())
    assert part.changes == ("the sound of video/mp4 as WAV, 16-bit PCM (sound_track)",)
    assert heard(part.data).samplerate == 44100


def test_the_sound_is_the_same_in_a_child_process(folder):
    isolated = MediaPolicy(isolate=True)
    assert change_messages(video(folder), isolated, sound_track=True) == change_messages(
        video(folder), sound_track=True
    )


def test_a_video_without_sound_is_an_error(folder):
    with pytest.raises(SourceError, match="holds no sound"):
        change_messages(video(folder, "mute.mp4"), sound_track=True)
    frames = change_messages(video(folder), frames=2)
    with pytest.raises(SourceError, match="single frames, which have no sound"):
        change_messages(frames, sound_track=True)


def test_pictures_and_sounds_are_left_as_they_are(tour):
    parts = (MediaRef("image", "media/coffee.jpg"), MediaRef("audio", "media/train.wav"))
    read = read_messages([Message("user", parts)], MediaPolicy(roots=[tour]))
    assert change_messages(read, sound_track=True) == read


def test_sound_and_frames_are_asked_for_one_at_a_time(folder):
    with pytest.raises(TaskError, match="sound_track and frames each replace the video"):
        change_messages(video(folder), sound_track=True, frames=2)
    with pytest.raises(TaskError, match="sound_track is '1'"):
        change_messages(video(folder), sound_track=1)
    task = load_task({"dataset": {"rows": [ROW]}, "media": {"sound_track": True}})
    assert not task_changes(task, frames=3).sound_track
