"""The media options of a run, on the command line and in a task file, by what comes out of it."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import av
import pytest
import soundfile
from closing_line import closing
from command_line import exit_code
from PIL import Image
from time_taken import wait_until

from mmprompt import (
    MediaPolicy,
    TaskError,
    load_task,
    register_target,
)
from mmprompt.cli import main
from mmprompt.media.changes import Changes
from mmprompt.render.builder import FailedRow
from mmprompt.render.renderer import Renderer
from mmprompt.tasks.media import TaskMedia, task_changes, task_policy

COFFEE = {"image": "media/coffee.jpg", "question": "What is it?", "answer": "coffee"}


@pytest.fixture
def folder(tmp_path: Path, tour: Path) -> Path:
    (tmp_path / "media").symlink_to(tour / "media")  # links are followed by the roots below
    return tmp_path


@pytest.fixture
def run(folder: Path, tour: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Render rows with options, or with the section ``media`` of a task; give the exit code, lines and reports.

    Unless the options name a policy, files are trusted: to start a process for the decoders takes longer than all else.
    """
    monkeypatch.chdir(folder)

    def rendered(rows: Any, *options: object, media: Any = None, **task: Any) -> tuple[int, list[Any], str]:
        rows = rows if isinstance(rows, list) else [rows]
        (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        (folder / "task.json").write_text(json.dumps({"dataset": "data.jsonl", "media": media or {}, **task}))
        name = "data.jsonl" if media is None and not task else "task.json"
        try:
            code = main(["render", name, "--media-root", str(tour), "--policy", "trusted", *map(str, options)])
        except SystemExit as left:
            code = int(str(left.code))
        out, err = capfd.readouterr()
        return code, [json.loads(line) for line in out.splitlines()], err if code == 2 else closing(err).told

    return rendered


def media_of(value: Any) -> list[bytes]:
    """Return the bytes of all data URIs and of all ``input_audio`` of a line; frames one by one."""
    if isinstance(value, dict):
        return [data for v in value.values() for data in media_of(v)] + (
            [base64.b64decode(value["data"])] if "format" in value else []
        )
    if isinstance(value, list):
        return [data for v in value for data in media_of(v)]
    if isinstance(value, str) and value.startswith("data:"):
        return [base64.b64decode(piece) for piece in value.partition(",")[2].split(",")]
    return []


def pictures(lines: Any) -> list[Image.Image]:
    return [Image.open(io.BytesIO(data)) for data in media_of(lines)]


def sound(lines: Any) -> Any:
    [data] = media_of(lines)
    return soundfile.info(io.BytesIO(data))


# ---- each change does what it says


def test_nothing_is_changed_unless_asked(run: Any, tour: Path) -> None:
    names = ("rotated.jpg", "depth16.png", "spinner.gif")
    code, [line], err = run({"images": [f"media/{name}" for name in names]})
    assert (code, err) == (0, "")
    assert media_of(line) == [(tour / "media" / name).read_bytes() for name in names]


@pytest.mark.parametrize(
    ("asked", "name", "seen"),
    [
        ({"max_side": 64}, "coffee.jpg", lambda p: max(p.size) == 64),
        ({"max_pixels": 5000}, "coffee.jpg", lambda p: 4500 < p.width * p.height <= 5000),
        ({"upright": True}, "rotated.jpg", lambda p: p.getexif().get(0x0112, 1) == 1 and p.size == (336, 448)),
        ({"image_mode": "L"}, "coffee.jpg", lambda p: p.mode == "L"),
        ({"image_mode": "RGB"}, "depth16.png", lambda p: p.mode == "RGB"),
        ({"image_mode": "RGB", "background": [9, 8, 7]}, "alpha.png", lambda p: p.getpixel((0, 0)) == (9, 8, 7)),
        ({"image_format": "png"}, "coffee.jpg", lambda p: p.format == "PNG"),
        ({"image_format": "webp"}, "coffee.jpg", lambda p: p.format == "WEBP"),
        ({"upright": True, "max_side": 50, "image_format": "png"}, "rotated.jpg", lambda p: max(p.size) == 50),
    ],
)
def test_pictures_are_changed_as_a_task_asks(asked: Any, name: str, seen: Any, run: Any) -> None:
    code, lines, err = run({"image": f"media/{name}"}, media=asked)
    assert (code, err) == (0, "")
    [picture] = pictures(lines)
    assert seen(picture)


def test_quality_is_that_of_what_is_encoded(run: Any) -> None:
    sizes = [
        len(media_of(run({"image": "media/coffee.jpg"}, media={"max_side": 200, "quality": quality})[1])[0])
        for quality in (20, 85, 100)
    ]
    assert sizes == sorted(sizes)
    assert 2 * sizes[0] < sizes[1] < sizes[2] / 1.5


def test_sound_is_changed_as_a_task_asks(run: Any, folder: Path) -> None:
    soundfile.write(folder / "two.wav", [[0.25, -0.25], [0.5, 0.0]] * 24_000, 24_000)
    row = {"audio": "two.wav"}
    for asked, seen in (
        ({"mono": True}, lambda s: (s.channels, s.samplerate, s.frames) == (1, 24_000, 48_000)),
        ({"audio_rate": 16_000}, lambda s: (s.channels, s.samplerate, s.frames) == (2, 16_000, 32_000)),
        ({"seconds": 0.5}, lambda s: s.frames == 12_000),
        ({"start": 1.75}, lambda s: s.frames == 6_000),
        ({"start": 0.5, "seconds": 1, "mono": True}, lambda s: (s.channels, s.frames) == (1, 24_000)),
        ({"audio_format": "mp3"}, lambda s: (s.format, s.channels) == ("MP3", 2)),
    ):
        code, lines, err = run(row, media=asked)
        assert (code, err) == (0, "")
        assert seen(sound(lines)), asked


@pytest.mark.parametrize(
    ("asked", "count"),
    [({"frames": 3}, 3), ({"fps": 1}, 3), ({"times": [0.5, 1, 2.5]}, 3), ({"fps": 4, "frames": 5}, 5)],
)
def test_a_video_becomes_the_frames_that_a_task_asks_for(asked: Any, count: int, run: Any) -> None:
    code, lines, err = run({"video": "media/clip.mp4"}, media={**asked, "max_side": 32})
    assert (code, err) == (0, "")
    frames = pictures(lines)
    assert len(frames) == count
    assert {(frame.format, max(frame.size)) for frame in frames} == {("JPEG", 32)}


def test_key_frames_are_those_of_the_file(run: Any, tour: Path) -> None:
    with av.open(tour / "media/clip.mp4") as clip:
        keys = sum(packet.is_keyframe for packet in clip.demux(video=0) if packet.size)
    assert 1 <= keys < 30
    assert len(pictures(run({"video": "media/clip.mp4"}, media={"key_frames": True})[1])) == keys


@pytest.mark.parametrize(
    ("option", "asked"),
    [
        (["--max-side", 50], {"max_side": 50}),
        (["--max-pixels", 900], {"max_pixels": 900}),
        (["--audio-rate", 8000], {"audio_rate": 8000}),
        (["--frames", 2], {"frames": 2}),
        (["--fps", 0.5], {"fps": 0.5}),
        (["--fps", 4, "--frames", 3], {"fps": 4, "frames": 3}),
        (["--fit", "--target", "openai"], {"fit": True}),
    ],
)
def test_an_option_gives_what_the_task_gives_and_not_what_neither_gives(option: Any, asked: Any, run: Any) -> None:
    row = {"image": "media/spinner.gif", "audio": "media/weather.flac", "video": "media/short.mp4"}
    row = row if "fit" not in asked else {k: row[k] for k in ("image", "audio")}
    target = option[option.index("--target") :] if "--target" in option else []
    by_option, by_task, neither = run(row, *option), run(row, *target, media=asked), run(row, *target)
    assert by_option == by_task
    assert by_option[0] == 0
    assert by_option != neither


# ---- the target


def test_frames_are_pictures_for_openai_and_one_video_for_vllm(run: Any) -> None:
    row = {"video": "media/clip.mp4", "question": "What moves?"}
    [openai] = run(row, "--frames", 3, "--target", "openai")[1]
    kinds = [part["type"] for part in openai["messages"][0]["content"]]
    assert kinds == ["image_url"] * 3 + ["text"]
    assert [p.format for p in pictures(openai)] == ["JPEG"] * 3
    [vllm] = run(row, "--frames", 3)[1]
    [video, _] = vllm["messages"][0]["content"]
    assert video["type"] == "video_url"
    assert video["video_url"]["url"].startswith("data:video/jpeg;base64,")
    assert media_of(vllm) == media_of(openai)


def test_a_video_without_frames_is_refused_by_a_target_that_takes_none(run: Any) -> None:
    code, lines, err = run({"id": 5, "video": "media/clip.mp4"}, "--fit", "--target", "openai")
    assert (code, lines) == (1, [])
    assert err.startswith("data.jsonl:1: MM804 openai takes no video; ")
    assert "--frames N" in err


def test_fit_changes_only_what_the_target_refuses(run: Any, tour: Path) -> None:
    row = {"images": ["media/spinner.gif", "media/coffee.jpg"]}
    assert "pass --fit to send the first" in run(row, "--target", "openai")[2]
    [line] = run(row, "--target", "openai", "--fit")[1]
    still, coffee = media_of(line)
    assert getattr(Image.open(io.BytesIO(still)), "n_frames", 1) == 1
    assert coffee == (tour / "media/coffee.jpg").read_bytes()


@pytest.mark.parametrize(
    "like", [*(pytest.param(t, marks=pytest.mark.slow) for t in ("openai", "gemini")), "anthropic", "vllm"]
)
def test_frames_are_fitted_as_what_they_are_sent_as(like: str, tour: Path) -> None:
    sides = {"video": 48} if like == "vllm" else {"image": 48}
    register_target("narrow", like=like, max_side=sides)
    task = load_task({"media": {"fit": True, "frames": 2}}, {"path": str(tour / "tour.jsonl")})
    media = TaskMedia(task, "narrow")
    part = next(
        p for _, messages in task.messages() for p in messages[0].parts if getattr(p, "modality", "") == "video"
    )
    made = media.read(part)
    assert [max(Image.open(io.BytesIO(frame)).size) for frame in made.frames] == [48, 48]
    assert any("(fit: narrow takes max_side 48)" in change for change in made.changes)


def test_a_picture_that_cannot_be_made_to_fit_leaves_its_row_out(run: Any, folder: Path) -> None:
    (folder / "own.py").write_text(
        "from mmprompt import register_target\n"
        "register_target('tiny', like='openai', max_bytes={'image': 500})\n"
        "dataset = 'data.jsonl'\n"
    )
    run([{"id": "a", "question": "q"}, {"id": "b", "image": "media/coffee.jpg"}, {"id": "c", "question": "q"}])
    code = main(["render", "own.py", "--media-root", str(folder), "--target", "tiny", "--fit", "-o", "out.jsonl"])
    assert code == 1
    assert [json.loads(line)["id"] for line in (folder / "out.jsonl").read_text().splitlines()] == ["a", "c"]


@pytest.mark.parametrize("policy", ["default", "hostile"])
def test_a_tiff_becomes_a_png_where_it_may_be_read_and_fit_is_asked(policy: str, run: Any, folder: Path) -> None:
    Image.new("RGB", (30, 20), "red").save(folder / "scan.tif", compression="tiff_lzw")
    row = {"image": "scan.tif", "question": "What?"}
    code, lines, err = run(row)
    assert (code, lines) == (1, [])
    assert "scan.tif' is TIFF, which is not sent unchanged; convert it to PNG or JPEG, or pass --read-also tiff" in err
    code, lines, err = run(row, "--read-also", "tiff")
    assert (code, lines) == (1, [])
    assert "not image/tiff; convert it, or pass --fit" in err
    code, [line], err = run(row, "--read-also", "tiff", "--fit", "--policy", policy)
    assert (code, err) == (0, "")
    [picture] = pictures(line)
    assert (picture.format, picture.size, picture.getpixel((0, 0))) == ("PNG", (30, 20), (255, 0, 0))


def test_what_cannot_be_made_to_fit_is_told_with_its_place_and_a_mend(run: Any, tour: Path) -> None:
    register_target("tiny", like="openai", max_bytes={"image": 500})
    rows = [{"id": "a", "question": "q"}, {"id": "b", "question": "q", "image": "media/coffee.jpg"}]
    code, lines, err = run(rows, "--fit", "--target", "tiny")
    assert (code, [line["id"] for line in lines]) == (1, ["a"])
    told, _ = err.splitlines()  # the row without a picture is a note
    assert told.startswith("data.jsonl:2: MM802 the image of ")
    assert "500 bytes that tiny takes" in told
    assert told.endswith("; crop it, or leave it out (image, sample b)")


def test_damage_is_found_where_a_medium_is_changed(run: Any, folder: Path, tour: Path) -> None:
    whole = (tour / "media/coffee.jpg").read_bytes()
    (folder / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    rows = [{"image": "cut.jpg"}, {"image": "media/coffee.jpg"}]
    assert run(rows)[0] == 0  # sent as it is
    for policy in ("default", "hostile"):
        code, lines, err = run(rows, "--max-side", 64, "--policy", policy)
        assert (code, len(lines)) == (1, 1)
        assert err.startswith("data.jsonl:1: MM301 ")
        assert err.endswith(" (image, sample 0)\n")


# ---- everything that carries media


def test_media_inside_chat_rows_are_changed(run: Any, tour: Path) -> None:
    uri = "data:image/jpeg;base64," + base64.b64encode((tour / "media/coffee.jpg").read_bytes()).decode()
    wav = base64.b64encode((tour / "media/train.wav").read_bytes()).decode()
    parts = [
        {"type": "image_url", "image_url": {"url": uri, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "media/chelsea.jpg"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/cat.jpg"}},
        {"type": "input_audio", "input_audio": {"data": wav, "format": "wav"}},
        {"type": "text", "text": "What?"},
    ]
    row = {"id": "r", "messages": [{"role": "user", "content": parts}]}
    code, [line], err = run(row, "--max-side", 40, "--audio-rate", 8000)
    assert (code, err) == (0, "")
    [one, other, named, heard, text] = line["messages"][0]["content"]
    assert [max(p.size) for p in pictures([one, other])] == [40, 40]
    assert one["image_url"]["detail"] == "low"
    assert [named, text] == [parts[2], parts[4]]  # what goes by name was not read, and so not changed
    assert sound(heard).samplerate == 8000


@pytest.mark.parametrize("media", [{}, {"start": 0.2, "seconds": 0.5}, {"max_side": 40, "image_format": "jpeg"}])
def test_media_inside_chat_rows_are_changed_once_whether_or_not_there_is_a_meta_template(
    media: dict[str, Any], run: Any, tour: Path
) -> None:
    wav = base64.b64encode((tour / "media/train.wav").read_bytes()).decode()
    uri = "data:image/png;base64," + base64.b64encode((tour / "media/coffee.jpg").read_bytes()).decode()
    parts = [
        {"type": "input_audio", "input_audio": {"data": wav, "format": "mp3"}},
        {"type": "image_url", "image_url": {"url": uri, "detail": "low"}},
        {"type": "text", "text": "What?"},
    ]
    row = {"id": "r", "messages": [{"role": "user", "content": parts}]}
    without = run(row, media=media)
    meta = {"round": [{"role": "HUMAN", "api_role": "HUMAN"}, {"role": "BOT", "api_role": "BOT", "generate": True}]}
    assert run(row, media=media, model={"meta_template": meta}) == without
    assert without[0] == 0
    assert "MM204 audio: declared audio/mpeg, bytes are audio/wav (sample r)" in without[2]  # it has no name of its own


@pytest.mark.parametrize("mode", ["file", "url"])
def test_bytes_inside_chat_rows_are_no_names(mode: str, run: Any, tour: Path) -> None:
    uri = "data:image/jpeg;base64," + base64.b64encode((tour / "media/coffee.jpg").read_bytes()).decode()
    part = {"type": "image_url", "image_url": {"url": uri}}
    row = {"messages": [{"role": "user", "content": [part]}]}
    plain = {"messages": [{"role": "user", "content": "q"}]}
    code, lines, err = run([row, plain], "--media", mode)
    assert (code, [line["id"] for line in lines]) == (1, [1])
    assert f"the chat holds image as bytes, and media mode {mode} sends names; use --media inline" in err
    assert run(row, "--media", "keep")[1][0]["messages"][0]["content"] == [part]


def test_a_template_may_say_the_format_of_its_input_audio(run: Any) -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "{audio}", "format": "mp3"}}
    template = {"round": [{"role": "HUMAN", "prompt_mm": {"audio": audio}}]}
    infer = {"prompt_template": {"type": "MMPromptTemplate", "template": template}}
    row = {"audio": "media/train.wav"}
    code, [line], err = run(row, infer_cfg=infer)
    assert (code, err) == (
        0,
        "note: data.jsonl:1: MM204 media/train.wav: declared audio/mpeg, bytes are audio/wav (sample 0)\n",
    )
    [heard] = line["messages"][0]["content"]
    assert heard["input_audio"]["format"] == "wav"  # as the bytes are
    assert run(row, "--target", "gemini", infer_cfg=infer)[0] == 0


def test_a_damaged_medium_inside_a_chat_row_is_an_error_of_its_row(run: Any, tour: Path) -> None:
    cut = (tour / "media/coffee.jpg").read_bytes()[:9000]
    uri = "data:image/jpeg;base64," + base64.b64encode(cut).decode()
    row = {"id": "r", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": uri}}]}]}
    code, lines, err = run([row, {**row, "messages": [{"role": "user", "content": "q"}]}], "--max-side", 40)
    assert (code, len(lines)) == (1, 1)
    assert err.startswith("data.jsonl:1: MM301 message 1: the JPEG is cut or damaged: it ends too early; ")
    assert err.splitlines()[0].endswith(" (sample r, part 1)")


def template_of(question: str, **more: Any) -> dict[str, Any]:
    parts = {
        "image": {"type": "image_url", "image_url": {"url": "file://{image}"}},
        "text": {"type": "text", "text": question},
    }
    rounds = [{"role": "HUMAN", "prompt_mm": parts}, {"role": "BOT", "prompt": "{answer}"}]
    return {"type": "MMPromptTemplate", "template": {"round": rounds, **more}}


def test_the_media_beside_a_string_are_changed(run: Any) -> None:
    task = {
        "infer_cfg": {"prompt_template": template_of("{question}")},
        "model": {"media_placeholder": {"image": "<i>"}},
    }
    code, [line], err = run(COFFEE, "--emit", "string", "--max-side", 40, **task)
    assert (code, err) == (0, "")
    assert "<i>" in line["string"]
    assert [max(p.size) for p in pictures(line["media"])] == [40]


@pytest.mark.parametrize(("target", "sent"), [("openai", "images"), ("gemini", "images"), ("vllm", ""), ("hf", "")])
def test_what_a_string_has_no_placeholder_for_is_refused(target: str, sent: str, run: Any) -> None:
    template = template_of("{question}")
    template["template"]["round"][0]["prompt_mm"] = {"video": {"type": "video_url", "video_url": {"url": "{video}"}}}
    task = {"infer_cfg": {"prompt_template": template}, "model": {"media_placeholder": {"video": "<v>"}}}
    options = ("--emit", "string", "--target", target)
    code, lines, err = run({"video": "media/clip.mp4"}, *options, media={"frames": 2}, **task)
    if not sent:
        assert (code, lines[0]["string"].count("<v>"), len(lines[0]["media"])) == (0, 1, 1)
        return
    assert (code, lines) == (1, [])
    what = f"the string holds a placeholder of video, and {sent} would go in its place; use --emit messages"
    assert err.startswith(f"data.jsonl:1: MM800 {what} (video, sample 0)\n")


def test_the_media_of_label_prompts_are_changed(run: Any) -> None:
    labels = {label: template_of("{question}")["template"] for label in "AB"}
    infer = {
        "prompt_template": {"type": "MMPromptTemplate", "template": labels},
        "inferencer": {"type": "PPLInferencer"},
    }
    code, [line], err = run(COFFEE, media={"max_side": 40}, infer_cfg=infer)
    assert (code, err) == (0, "")
    assert [[max(p.size) for p in pictures(line["messages"][label])] for label in "AB"] == [[40], [40]]


def test_the_media_of_examples_are_changed(run: Any, folder: Path, tour: Path) -> None:
    (folder / "shots").mkdir()
    (folder / "shots" / "cat.jpg").write_bytes((tour / "media/chelsea.jpg").read_bytes())
    (folder / "shots" / "train.jsonl").write_text('{"image": "cat.jpg", "question": "q", "answer": "cat"}\n')
    infer = {
        "ice_template": template_of("{question}"),
        "prompt_template": {**template_of("{question}", begin="</E>"), "ice_token": "</E>"},
        "retriever": {"type": "FixKRetriever", "fix_id_list": [0]},
    }
    dataset = {"path": "data.jsonl", "train": "shots/train.jsonl"}
    code, [line], err = run(COFFEE, "--max-side", 40, dataset=dataset, infer_cfg=infer)
    assert (code, err) == (0, "")
    assert [max(p.size) for p in pictures(line)] == [40, 40]


def test_batch_lines_hold_changed_media(run: Any) -> None:
    code, [line], err = run(COFFEE, "--emit", "batch", "--max-side", 40, model={"model": "m"})
    assert (code, err) == (0, "")
    assert [max(p.size) for p in pictures(line["body"])] == [40]


def test_a_prompt_holds_its_media_as_the_sample_does(run: Any, tour: Path) -> None:
    uri = "data:image/jpeg;base64," + base64.b64encode((tour / "media/coffee.jpg").read_bytes()).decode()
    parts = [{"type": "image_url", "image_url": {"url": uri}}, {"type": "text", "text": "q"}]
    row = {"id": 1, "messages": [{"role": "user", "content": parts}]}
    code, [line], _ = run(row, "--emit", "prompt", media={"max_side": 40})
    assert (code, line["prompt"]) == (0, [{"role": "HUMAN", "prompt": parts}])
    code, lines, err = run(row, "--emit", "prompt", "--max-side", 40, "--fit")
    assert (code, lines) == (2, [])
    assert err.startswith("mmprompt: MM602 --fit, --max-side with --emit prompt; ")


# ---- the command line and the task


def test_the_command_line_wins_over_the_task(run: Any) -> None:
    [line] = run(COFFEE, "--max-side", 40, media={"max_side": 50, "image_format": "png"})[1]
    [picture] = pictures(line)
    assert (max(picture.size), picture.format) == (40, "PNG")  # what it does not say stays the task's
    assert len(pictures(run(COFFEE, "--media", "inline", media={"mode": "keep"})[1])) == 1
    assert pictures(run(COFFEE, "--media", "keep", media={"mode": "inline"})[1]) == []


@pytest.mark.parametrize("own", [{"key_frames": True}, {"times": [1]}])
def test_a_choice_of_frames_on_the_command_line_takes_the_place_of_the_tasks(own: Any, run: Any) -> None:
    row = {"video": "media/clip.mp4"}
    assert run(row, "--fps", 1, media=own) == run(row, "--fps", 1)
    assert run(row, "--frames", 2, media={"times": [1]}) == run(row, "--frames", 2)


def test_a_policy_of_the_command_line_takes_the_place_of_the_tasks() -> None:
    task = load_task({"media": {"policy": "hostile"}}, {"rows": []})
    assert task_policy(task).isolate
    assert not task_policy(task, preset="trusted").isolate
    kept = load_task({"media": {"policy": "hostile", "isolate": False, "max_bytes": 7}}, {"rows": []})
    assert (task_policy(kept).isolate, task_policy(kept).max_bytes) == (False, 7)


@pytest.mark.parametrize("mode", ["inline", "file", "keep"])
def test_the_mode_of_a_task_is_how_its_media_are_sent(mode: str, run: Any, tour: Path) -> None:
    code, [line], err = run(COFFEE, media={"mode": mode})
    assert (code, err) == (0, "")
    begins = {"inline": "data:image/jpeg", "file": "file:///", "keep": "media/coffee.jpg"}
    assert line["messages"][0]["content"][0]["image_url"]["url"].startswith(begins[mode])


def test_paths_of_examples_in_a_folder_of_their_own_and_in_structs_are_kept_as_written(
    tmp_path: Path, tour: Path
) -> None:
    for folder in ("test", "dev"):
        (tmp_path / folder).mkdir()
        shutil.copy(tour / "media" / "coffee.jpg", tmp_path / folder / f"{folder}.jpg")
    (tmp_path / "test/rows.jsonl").write_text('{"picture": {"bytes": null, "path": "test.jpg"}}\n', encoding="utf-8")
    (tmp_path / "dev/rows.jsonl").write_text('{"picture": "dev.jpg"}\n', encoding="utf-8")
    ask = {"role": "HUMAN", "prompt_mm": {"image": {"type": "image_url", "image_url": {"url": "file://{picture}"}}}}
    kind = {"type": "MMPromptTemplate", "ice_token": "</E>"}
    infer = {
        "ice_template": {"type": "MMPromptTemplate", "template": {"round": [ask]}},
        "prompt_template": {**kind, "template": {"begin": ["</E>"], "round": [ask]}},
        "retriever": {"type": "FixKRetriever", "fix_id_list": [0]},
    }
    files = {"path": str(tmp_path / "test/rows.jsonl"), "train": str(tmp_path / "dev/rows.jsonl")}
    task = load_task({"infer_cfg": infer}, files)
    [sample] = task.samples()
    done = Renderer(task, media="keep").render(sample)
    assert not isinstance(done, FailedRow)
    [message] = json.loads(b"".join(done.chunks or ()))["messages"]
    assert [part["image_url"]["url"] for part in message["content"]] == ["dev.jpg", "test.jpg"]


@pytest.mark.parametrize("mode", ["file", "keep"])
def test_a_target_that_takes_no_names_of_files_says_how_to_send_them(mode: str, run: Any) -> None:
    code, lines, err = run([COFFEE, {"question": "q"}], "--media", mode, "--target", "anthropic")
    assert (code, len(lines)) == (1, 1)
    assert "anthropic takes names with https; send it inline: --media inline" in err


@pytest.mark.parametrize("mode", ["keep", "file", "url"])
@pytest.mark.parametrize("by_task", [False, True])
def test_changes_of_media_that_go_by_name_are_refused(mode: str, by_task: bool, run: Any) -> None:
    if by_task:
        code, lines, err = run(COFFEE, media={"mode": mode, "fit": True, "max_side": 9, "image_mode": "L"})
        names = "fit, max_side, image_mode"
    else:
        code, lines, err = run(COFFEE, "--media", mode, "--max-side", 9, "--fit")
        names = "fit, max_side"
    assert (code, lines) == (2, [])
    said = f"{names} with media mode {mode}; pass --media inline, or"
    assert err.startswith(f"mmprompt: MM602 {said}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--policy", "nonsense"], "unknown policy preset 'nonsense'; known: default, hostile, trusted"),
        (["--policy", "hostil"], "did you mean 'hostile'?"),
        (["--policy", ""], "unknown policy preset ''"),
        (["--max-side", "0"], "'0' is not a whole number from 1"),
        (["--max-pixels", "many"], "'many' is not a whole number"),
        (["--frames", "1.5"], "'1.5' is not a whole number"),
        (["--fps", "often"], "'often'"),
        (["--fps", "nan"], "'nan' is not a number above 0"),
        (["--fps", "-1"], "'-1' is not a number above 0"),
        (["--audio-rate", "100"], "audio_rate is '100'; give a whole number from 4000"),
        (["--media-cache", ""], "the cache folder '' is not a path"),
        (["--fetch"], "no host is allowed; name each with --allow-domain"),
        (["--allow-domain", "a.example"], "add --fetch"),
    ],
)
def test_a_wrong_option_is_one_line(options: Any, said: str, run: Any) -> None:
    code, lines, err = run(COFFEE, *options)
    assert (code, lines, err.count("\n")) == (2, [], 1)
    assert said in err


@pytest.mark.parametrize(
    ("media", "said"),
    [
        ({"fitt": True}, "unknown key 'fitt' in media; did you mean 'fit'?"),
        ({"fit": "yes"}, "media: fit is 'yes'; give true or false"),
        ({"mode": "RGB"}, "unknown media.mode 'RGB'; known: file, inline, keep, url"),
        ({"mode": ["a"]}, "unknown media.mode"),
        ({"image_mode": "CMYK"}, "media: image_mode is 'CMYK'; known: L, RGB"),
        ({"image_format": "jpg"}, "did you mean 'jpeg'?"),
        ({"max_side": 64.5}, "media: max_side is '64.5'; give a whole number from 1"),
        ({"max_side": True}, "max_side is 'True'"),
        ({"times": 3}, "give a list of seconds"),
        ({"background": [1, 2]}, "give red, green and blue from 0 to 255"),
        ({"frames": 2, "times": [1]}, "media: times and frames each choose the frames of a video; give one of them"),
        ({"policy": "hostil"}, "media: unknown policy preset 'hostil'; did you mean 'hostile'?"),
        ({"policy": ["hostile"]}, "media.policy is list"),
        ({"isolate": "yes"}, "media: isolate is 'yes'"),
        ({"max_bytes": 0}, "media: max_bytes is '0'"),
        ({"read_also": ["gif"]}, "media: unknown format 'gif' in read_also"),
        ({"read_also": 3}, "media.read_also is not a list of formats; give a format, or a list of them"),
        ({"fetch": True, "allow_domains": "http://a.example/"}, "'http://a.example/' is not a host name"),
    ],
)
def test_a_wrong_value_in_a_task_is_one_line_that_names_the_file(media: Any, said: str, run: Any) -> None:
    code, lines, err = run(COFFEE, media=media)
    assert (code, lines, err.count("\n")) == (2, [], 1)
    assert err.startswith("mmprompt: task.json: ")
    assert said in err


def test_changes_from_python_go_before_those_of_the_task() -> None:
    task = load_task({"media": {"fit": True, "frames": 3}}, {"rows": [{"question": "q"}]})
    assert task_changes(task) == Changes(fit=True, frames=3)
    assert task_changes(task, frames=5, fit=None) == Changes(fit=True, frames=5)
    Renderer(task, media="keep", changes=Changes()).close()
    with pytest.raises(TaskError, match="frames with media mode keep"):
        Renderer(task, media="keep", changes=Changes(frames=2))


# ---- the cache, and the children


def test_a_cache_folder_holds_what_was_changed_and_nothing_else(run: Any, folder: Path) -> None:
    code, _, err = run(COFFEE, "--media-cache", "kept")
    assert (code, err.count("\n")) == (0, 1)
    assert "note: MM904 --media-cache keeps changed media, but no change is asked for" in err
    assert not (folder / "kept").exists()
    one = run([COFFEE, COFFEE], "--media-cache", "kept", "--max-side", 40)
    assert len(os.listdir(folder / "kept")) == 1
    assert run([COFFEE, COFFEE], "--media-cache", "kept", "--max-side", 40) == one


def test_a_cache_folder_that_cannot_be_used_is_noted(run: Any, folder: Path) -> None:
    (folder / "kept").write_text("a file")
    code, lines, err = run([COFFEE, {"image": "media/chelsea.jpg"}], "--media-cache", "kept", "--max-side", 40)
    assert (code, len(lines), err.count("\n")) == (0, 2, 1)
    assert err.startswith("note: MM904 the media cache folder cannot be used")


def children(pid: int) -> set[int]:
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has ended meanwhile
            found.update(map(int, (task / "children").read_text().split()))
    return found


def lives(pid: int) -> bool:
    """Tell whether a process is there and has not ended; one whose parent has gone is for the system to wait for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


THREADS = """
import sys
from mmprompt.render import parallel as ahead
ahead._ALONE, ahead._GAIN = 0.0, 1e9  # threads from the second row on, however little there is to gain
from mmprompt.cli import main
sys.exit(main())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("workers", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("end", ["all is read", "a row is bad", "Ctrl-C"])
def test_no_child_outlives_the_run(
    end: str, workers: int, tour: Path, folder: Path, interrupted_environment: dict[str, str]
) -> None:
    options = ["--policy", "hostile", "--max-side", "40", "--strict", "--workers", str(workers)]
    words = [sys.executable, "-c", THREADS, "render", "-", "--media-root", tour, "-o", folder / "out.jsonl", *options]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    hear = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    process = subprocess.Popen(words, env=interrupted_environment, **pipes, **hear)
    try:
        rows = [json.dumps({"image": f"media/{path.name}"}) + "\n" for path in sorted((tour / "media").glob("*.jpg"))]
        deadline = time.monotonic() + 20
        started: set[int] = set()
        while len(started) < min(workers, 2):  # one child may be done before the next thread wants one: more rows
            assert time.monotonic() < deadline
            process.stdin.write("".join(rows).encode())
            process.stdin.flush()
            until = time.monotonic() + 0.5
            while len(started := children(process.pid)) < min(workers, 2) and time.monotonic() < until:
                time.sleep(0.005)
        if end == "Ctrl-C":
            process.send_signal(signal.SIGINT)
        elif end == "a row is bad":
            process.stdin.write(b'{"image": "media/nowhere.jpg"}\n')
        _, err = process.communicate(timeout=20)
    finally:
        process.kill()
        process.communicate()
    assert exit_code(process) == {"all is read": 0, "a row is bad": 1, "Ctrl-C": 130}[end], err
    assert b"Traceback" not in err
    if end == "Ctrl-C":  # one that was being started just then ends by itself: its pipe is closed
        wait_until(lambda: not any(map(lives, started)))
    assert not [pid for pid in started if lives(pid)]


def test_a_task_can_only_tighten_the_policy_that_the_caller_names():
    media = {"isolate": False, "max_bytes": 1 << 40, "max_seconds": 5.0, "policy": "trusted"}
    task = load_task({"media": media, "dataset": {"rows": []}})
    policy = task_policy(task, preset="hostile")
    assert policy.isolate
    assert policy.max_bytes == MediaPolicy.preset("hostile").max_bytes
    assert policy.max_seconds == 5.0
    assert task_policy(task).max_bytes == 1 << 40
    more = load_task({"media": {"read_also": "tiff"}, "dataset": {"rows": []}})
    assert task_policy(more).read_also == ("tiff",)
    assert task_policy(more, read_also=["avif"]).read_also == ("tiff", "avif")
    assert task_policy(more, preset="default", read_also=["avif"]).read_also == ("avif",)
    loose = load_task({"media": {"isolate": True}, "dataset": {"rows": []}})
    assert task_policy(loose, preset="trusted").isolate
