"""Whatever a decoder, a change or ``to_hf`` raises is the error of its own row."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import PIL.Image
import pytest
from clips import clip
from decode_targets import raise_named
from image_files import png, saved
from sound_files import tone, written

from mmprompt import MediaPolicy, to_hf
from mmprompt.cli import main
from mmprompt.errors import SourceError
from mmprompt.media.engine import CHANGERS
from mmprompt.media.image.reading import check_image, decode_image, image_facts
from mmprompt.media.reader import MediaReader
from mmprompt.media.sandbox.decoders import InlineDecoder
from mmprompt.messages import MediaPart, MediaRef, Message, TextPart

FAULTS = ("AssertionError", "MemoryError", "RecursionError", "ZeroDivisionError")
HERE = MediaPolicy(isolate=False)
POLICIES = [
    "trusted",
    pytest.param("default", marks=pytest.mark.skipif(sys.platform == "win32", reason="children under limits")),
]
NO_PALETTE = png(1, 1, 8, 3, [b"\0"])
WAV = written(tone(16000, 440), 16000, "WAV", "PCM_16")
WHOLE = {
    "image": saved(PIL.Image.new("RGB", (4, 4)), "BMP"),
    "audio": written(tone(16000, 440), 16000, "FLAC", "PCM_16"),
    "video": clip(2),
}
CASES = [
    ("image", ("--max-side", "2")),
    ("image", ("--fit",)),
    ("image", ("--fit", "--max-side", "2")),
    ("audio", ("--audio-rate", "8000")),
    ("audio", ("--fit",)),
    ("video", ("--frames", "1")),
]


def rendered(folder: Path, modality: str, files: list[bytes], *options: str) -> tuple[int, list[int]]:
    """Return the exit code of a run over these files, one a row, and the ids of the rows that came out."""
    rows = []
    for number, data in enumerate(files):
        (folder / f"{number}.bin").write_bytes(data)
        rows.append({"id": number, "question": "?", modality: f"{number}.bin"})
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    code = main(["render", str(folder / "rows.jsonl"), "-o", str(folder / "out.jsonl"), *options])
    lines = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
    return code, [json.loads(line)["id"] for line in lines]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("modality", "options"),
    [case if n % 2 else pytest.param(*case, marks=pytest.mark.slow) for n, case in enumerate(CASES)],
)
def test_whatever_a_change_raises_costs_its_own_row(modality, options, policy, tmp_path, monkeypatch, capsys):
    faulty, was = "decode_targets:raise_what_the_file_names", CHANGERS[modality]
    changers = was._replace(change=faulty, fit=faulty, both=was.both and faulty)
    monkeypatch.setitem(CHANGERS, modality, changers)
    files = [WHOLE[modality]]
    for fault in FAULTS:
        files += [WHOLE[modality] + b"raise " + fault.encode(), WHOLE[modality]]
    code, ids = rendered(tmp_path, modality, files, "--policy", policy, "--target", "openai", *options)
    lines = [line for line in capsys.readouterr().err.splitlines() if ".jsonl:" in line]
    assert (code, ids) == (1, [0, 2, 4, 6, 8])
    for row, fault, line in zip((2, 4, 6, 8), FAULTS, lines, strict=True):
        assert line.startswith(f"{tmp_path / 'rows.jsonl'}:{row}: MM902 the decoder ")
        assert line.endswith(f" ({modality}, sample {row - 1})")
        assert ("memory" if fault == "MemoryError" else f"({fault})") in line
        assert "; " in line
        assert "secret" not in line


@pytest.mark.parametrize("policy", POLICIES)
def test_a_picture_whose_palette_is_missing_costs_its_own_row(policy, tmp_path, capsys):
    assert len(NO_PALETTE) < 70
    with pytest.raises(AssertionError), PIL.Image.open(io.BytesIO(NO_PALETTE)) as image:
        image.has_transparency_data  # noqa: B018  # what our own code looks at, too
    files = [WHOLE["image"], NO_PALETTE, WHOLE["image"]]
    code, ids = rendered(tmp_path, "image", files, "--policy", policy, "--max-side", "2")
    assert (code, ids) == (1, [0, 2])
    assert "rows.jsonl:2: MM300 1.bin: the PNG is cut or damaged (AssertionError); " in capsys.readouterr().err
    for look in (image_facts, decode_image, check_image):
        with pytest.raises(SourceError, match="the PNG is cut or damaged"):
            look(NO_PALETTE, HERE)


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_to_hf_raises_is_an_error_of_its_part(fault, monkeypatch):
    monkeypatch.setattr(PIL.Image, "frombytes", lambda *_: raise_named(fault))
    picture = MediaPart("image", "image/bmp", WHOLE["image"])
    with pytest.raises(SourceError) as caught:
        to_hf([Message("system", (TextPart("?"),)), Message("user", (TextPart("?"), picture))], policy=HERE)
    assert (caught.value.where.message, caught.value.where.part) == (2, 2)
    assert caught.value.hint
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("fault", [*FAULTS, "EOFError", "BufferError"])
def test_whatever_an_object_in_a_row_raises_is_an_error_of_its_medium(fault, monkeypatch):
    class Stream:
        def read(self, _size):
            raise_named(fault)

    monkeypatch.setattr(PIL.Image.Image, "copy", lambda _: raise_named(fault))
    for source in (Stream(), PIL.Image.new("RGB", (4, 4))):
        with pytest.raises(SourceError) as caught:
            MediaReader(HERE).read(MediaRef("image", source))
        assert caught.value.hint
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes(interrupt):
    with pytest.raises(interrupt):
        InlineDecoder().run(raise_named, interrupt.__name__)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a limit on the address space")
@pytest.mark.parametrize("command", ["render", "check"])
def test_a_file_larger_than_the_memory_costs_its_own_row(command, tmp_path, command_environment):
    whole = saved(PIL.Image.new("RGB", (4, 4)), "PNG")
    for name, data in (("small", whole), ("large", whole + bytes(600 << 20))):
        (tmp_path / name).write_bytes(data)
    rows = [{"id": number, "question": "?", "image": name} for number, name in enumerate(["small", "large", "small"])]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29)); "
        "from mmprompt.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [command, tmp_path / "rows.jsonl", "--policy", "trusted"]
    words += ["-o", tmp_path / "out.jsonl"] if command == "render" else ["--select", "MM902"]
    done = subprocess.run(
        [sys.executable, "-c", script, *words], env=command_environment, timeout=60, capture_output=True, check=False
    )
    assert done.returncode == 1, done.stderr
    told = done.stderr if command == "render" else done.stdout
    assert told.count(b"MM902") == 1
    file = b"" if command == "render" else b"large: "  # a finding names its file
    assert b"rows.jsonl:2: MM902 %bthe row needs more memory than there is; " % file in told
    if command == "render":
        assert (tmp_path / "out.jsonl").read_bytes().count(b"\n") == 2
    else:
        assert b"3 rows checked" in done.stderr
