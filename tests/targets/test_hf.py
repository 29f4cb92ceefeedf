"""What ``to_hf`` gives, held against real processors that need no PyTorch; models are tried in tests/models."""

import io
import json
import os
import pickle
import struct
import subprocess

import numpy as np
import pytest
import soundfile
import transformers
from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngInfo

from mmprompt import (
    ChatTemplate,
    MediaPart,
    MediaPolicy,
    MediaRef,
    Message,
    PolicyError,
    SourceError,
    TargetError,
    TextPart,
    change_messages,
    from_openai,
    read_messages,
    register_target,
    to_openai,
)
from mmprompt import to_hf as to_hf_isolated
from mmprompt.targets.hf import HFWriter
from mmprompt.targets.wire_json import Payload, record_chunks

TRUSTED = MediaPolicy.preset("trusted")
SINCE_5 = int(transformers.__version__.split(".")[0]) >= 5
TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }}: {% for c in m['content'] %}"
    "{% if c['type'] == 'text' %}{{ c['text'] }}{% else %}<{{ c['type'] }}>{% endif %}{% endfor %}|{% endfor %}"
)


def to_hf(messages, target="hf", *, policy=TRUSTED, **options):
    """``to_hf`` without the process in which it decodes by default: most requests here hold a dot or two."""
    return to_hf_isolated(messages, target, policy=policy, **options)


def encoded(image, form="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def picture(colour="red", size=(20, 10), form="PNG", mode="RGB", **more):
    data = encoded(Image.new(mode, size, colour), form)
    return MediaPart("image", f"image/{form.lower()}", data, **more)


def wav(samples, rate=16000):
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format="WAV", subtype="FLOAT")
    return MediaPart("audio", "audio/wav", buffer.getvalue())


def sine(hertz=440.0, rate=16000, seconds=0.5):
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)).astype("float32")


def video(*colours):
    return MediaPart("video", "video/jpeg", b"", tuple(picture(c, form="JPEG").data for c in colours))


def user(*parts):
    return [Message("HUMAN", parts)]


def turned(orientation):
    """A JPEG, dark at one corner, whose EXIF asks for a turn."""
    image = Image.new("RGB", (32, 16), "white")
    image.paste("black", (0, 0, 20, 4))
    exif = Image.Exif()
    exif[0x0112] = orientation
    return MediaPart("image", "image/jpeg", encoded(image, "JPEG", exif=exif.tobytes()))


def llava(template=TEMPLATE):
    """A LLaVA processor with the image processor that needs no PyTorch."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlavaProcessor, PreTrainedTokenizerFast

    try:
        from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil as ImageProcessor
    except ImportError:
        from transformers import CLIPImageProcessor as ImageProcessor
    letters = {letter: n for n, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    bpe = Tokenizer(models.BPE(letters, []))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    own = PreTrainedTokenizerFast(tokenizer_object=bpe, additional_special_tokens=["<image>"])
    side = {"height": 28, "width": 28}
    return LlavaProcessor(
        ImageProcessor(size=side, crop_size=side),
        own,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=template,
    )


def features(processor, messages, key="pixel_values"):
    """What the processor makes of messages, as arrays of NumPy."""
    return processor.apply_chat_template(messages, tokenize=True, return_dict=True, return_tensors="np")[key]


def test_parts_are_as_processors_take_them_with_their_objects_beside():
    sound = wav(sine())
    told = [
        Message("SYSTEM", "Be brief."),
        *user(picture("red"), TextPart("and"), sound, picture("blue"), video("red", "green"), TextPart("?")),
        Message("BOT", "ok"),
        *user(picture("green")),
    ]
    got = to_hf(told)
    assert [m["role"] for m in got.messages] == ["system", "user", "assistant", "user"]
    assert got.messages[0]["content"] == [{"type": "text", "text": "Be brief."}]
    kinds = [part["type"] for part in got.messages[1]["content"]]
    assert kinds == ["image", "text", "audio", "image", "video", "text"]
    assert [image.getpixel((0, 0)) for image in got.images] == [(255, 0, 0), (0, 0, 255), (0, 128, 0)]
    parts = [part for message in got.messages for part in message["content"]]
    for modality, beside in (("image", got.images), ("audio", got.audios), ("video", got.videos)):
        held = [part[modality] for part in parts if part["type"] == modality]
        assert [id(each) for each in held] == [id(each) for each in beside]
    assert [[frame.size for frame in frames] for frames in got.videos] == [[(20, 10), (20, 10)]]
    assert got.sampling_rates == [16000]
    assert got.notes == []


def test_sound_is_mono_float32_with_its_rate_beside():
    left, right = sine(440), np.zeros(8000, "float32")
    got = to_hf(user(wav(left), wav(np.stack([left, right], 1), 22050)))
    assert [(a.dtype, a.shape) for a in got.audios] == [(np.dtype("float32"), (8000,))] * 2
    assert got.sampling_rates == [16000, 22050]
    np.testing.assert_array_equal(got.audios[0], left)
    np.testing.assert_allclose(got.audios[1], left / 2, atol=1e-7)
    assert got.notes == ["audio 2: 2 channels mixed into one"]


@pytest.mark.parametrize("rate", [8000, 22050, 44100, 48000])
def test_sound_is_resampled_to_the_rate_that_is_asked(rate):
    got = to_hf(user(wav(sine(1000, rate, 1.0), rate)), sampling_rate=16000)
    [samples] = got.audios
    assert got.sampling_rates == [16000]
    assert got.notes == [f"audio 1: {rate} Hz to 16000 Hz"]
    assert abs(len(samples) - 16000) <= 32
    middle = samples[2000:14000] * np.hanning(12000)
    spectrum = np.abs(np.fft.rfft(middle))
    assert abs(spectrum.argmax() * 16000 / 12000 - 1000) < 2
    assert 0.48 < np.abs(samples[2000:14000]).max() < 0.52


def test_sound_of_the_asked_rate_is_left_alone():
    got = to_hf(user(wav(sine())), sampling_rate=16000)
    np.testing.assert_array_equal(got.audios[0], sine())
    assert got.notes == []


@pytest.mark.parametrize("rate", [0, -1, 3999, 384001, 16000.0, "16000", True])
def test_a_sampling_rate_that_is_none_is_refused(rate):
    with pytest.raises(TargetError, match="sampling_rate is"):
        to_hf([], sampling_rate=rate)


@pytest.mark.parametrize("mode", ["L", "1", "P", "RGBA", "LA"])
def test_a_picture_keeps_its_mode_and_processors_take_it(mode):
    got = to_hf(user(picture(0, mode=mode)))
    assert got.images[0].mode == mode
    assert features(llava(), got.messages).shape == (1, 3, 28, 28)


def test_a_mode_that_processors_clip_is_noted():
    got = to_hf(user(picture(1000, mode="I;16")))
    assert got.images[0].mode == "I;16"
    assert "clip mode I;16" in got.notes[0]


def test_the_pixel_values_are_those_of_the_same_picture_given_by_hand():
    processor = llava()
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 60, 3), "uint8"))
    for form in ("PNG", "JPEG", "WEBP", "BMP"):
        part = MediaPart("image", f"image/{form.lower()}", encoded(noise, form))
        by_hand = Image.open(io.BytesIO(part.data))
        expected = processor(text="<image>", images=[by_hand], return_tensors="np")["pixel_values"]
        np.testing.assert_array_equal(features(processor, to_hf(user(part)).messages), expected)


@pytest.mark.parametrize("orientation", range(2, 9))
def test_a_picture_is_not_turned_whatever_the_release_does_with_exif(orientation, tmp_path):
    processor = llava()
    part = turned(orientation)
    stored = Image.open(io.BytesIO(part.data))
    as_stored = Image.fromarray(np.asarray(stored))
    (tmp_path / "a.jpg").write_bytes(part.data)
    bait = features(processor, [{"role": "user", "content": [{"type": "image", "path": str(tmp_path / "a.jpg")}]}])
    got = to_hf(user(part))
    seen = features(processor, got.messages)
    assert not np.array_equal(seen, bait)  # transformers turns what it opens itself
    np.testing.assert_array_equal(
        seen, processor(text="<image>", images=[as_stored], return_tensors="np")["pixel_values"]
    )
    assert got.notes == [f"image 1: EXIF orientation {orientation} is not applied"]
    assert ImageOps.exif_transpose(got.images[0]).tobytes() == got.images[0].tobytes()


def test_exif_that_cannot_be_read_does_no_harm():
    said = PngInfo()
    said.add_text("Raw profile type exif", "\nexif\n4\nno hexadecimal")
    data = encoded(Image.new("RGB", (8, 8)), pnginfo=said)
    with pytest.raises(ValueError, match="hex"):
        ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    got = to_hf(user(MediaPart("image", "image/png", data)))
    assert ImageOps.exif_transpose(got.images[0]).size == (8, 8)
    assert features(llava(), got.messages).shape == (1, 3, 28, 28)


def test_two_pictures_keep_their_order():
    processor = llava()
    red, blue = picture("red"), picture("blue")
    first = features(processor, to_hf(user(red, TextPart("then"), blue)).messages)
    second = features(processor, to_hf([*user(blue), Message("BOT", "ok"), *user(red)]).messages)
    assert not np.array_equal(first[0], first[1])
    np.testing.assert_array_equal(first[::-1], second)


def test_every_picture_has_its_tokens():
    processor = llava()
    ids = features(processor, to_hf(user(picture(), TextPart("a"), picture())).messages, "input_ids")
    assert (np.asarray(ids) == processor.image_token_id).sum() == 2 * 4


@pytest.mark.parametrize("text", ["{x} {{ y }} {% if z %}", "a | b\n\n c", "问题 🙂 \\n", "</s><|im_start|>"])
def test_text_reaches_the_model_as_it_is(text):
    processor = llava()
    ids = features(processor, to_hf(user(picture(), TextPart(text))).messages, "input_ids")
    assert processor.tokenizer.decode(list(np.asarray(ids).ravel())) == "user: " + 4 * "<image>" + text + "|"


def test_the_string_is_that_of_the_chat_template():
    processor = llava()
    source = picture("red").data
    prompt = [{"role": "SYSTEM", "prompt": "Be brief."}, {"role": "HUMAN", "prompt": "hi"}]
    prompt[1]["prompt"] = [{"type": "image", "image": source}, {"type": "text", "text": "What {is} this?"}]
    chat = ChatTemplate(processor)
    request = to_hf(read_messages(chat.to_messages(prompt)))
    assert chat.to_string(prompt) == processor.apply_chat_template(request.messages, tokenize=False)


def test_text_alone_is_a_string_on_request():
    told = [Message("SYSTEM", "Be brief."), *user(picture(), TextPart("?")), Message("BOT", [])]
    assert [type(m["content"]) for m in to_hf(told).messages] == [list] * 3
    auto = [m["content"] for m in to_hf(told, content="auto").messages]
    assert [auto[0], type(auto[1]), auto[2]] == ["Be brief.", list, ""]
    with pytest.raises(TargetError, match="did you mean 'parts'"):
        to_hf(told, content="part")


def test_names_and_tool_calls_survive():
    calls = [{"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}]
    told = [
        Message("HUMAN", "hi", name="Ann"),
        Message("BOT", "", tool_calls=calls),
        Message("tool", "2", tool_call_id="c"),
    ]
    got = to_hf(told).messages
    assert got[0]["name"] == "Ann"
    assert (got[1]["tool_calls"], got[1]["content"]) == (calls, [])
    assert got[2]["tool_call_id"] == "c"


def test_frames_become_images_on_request():
    got = to_hf(user(TextPart("a"), video("red", "blue"), TextPart("b")), frames_as_images=True)
    assert [part["type"] for part in got.messages[0]["content"]] == ["text", "image", "image", "text"]
    assert (len(got.images), got.videos) == (2, [])
    assert features(llava(), got.messages).shape == (2, 3, 28, 28)


def test_what_has_not_been_read_is_refused():
    for source in ("cat.jpg", "https://example.com/cat.jpg", "file:///etc/passwd"):
        for name in (None, source):
            with pytest.raises(TargetError, match=r"message 1, part 2: image '.*' has not been read"):
                to_hf(user(TextPart("a"), MediaRef("image", source, name=name)))


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (MediaPart("video", "video/mp4", b"\0\0\0\x18ftypmp42"), "hf takes video as jpeg, not video/mp4"),
        (MediaPart("image", "image/tiff", b"II*\0"), "not image/tiff"),
        (MediaPart("image", "image/gif", encoded(Image.new("L", (4, 4)), "GIF", save_all=True, append_images=[Image.new("L", (4, 4), 200)])), "no animated GIF"),
    ],
)  # fmt: skip
def test_what_the_target_does_not_take_is_refused(part, said):
    with pytest.raises(TargetError, match=said):
        to_hf(user(part))
    with pytest.raises(TargetError, match=said):
        HFWriter().write(user(part))


def test_media_that_cannot_be_decoded_or_is_too_large_is_refused_with_its_place():
    whole = picture("red", (300, 300), "JPEG")
    with pytest.raises(SourceError, match="message 1, part 2: "):
        to_hf(user(TextPart("a"), whole._replace(data=whole.data[:200])))
    with pytest.raises(SourceError, match="message 1, part 1: "):
        to_hf(user(wav(sine())._replace(data=b"RIFF\0\0\0\0WAVEfmt ")))
    with pytest.raises(SourceError, match="not finite"):
        to_hf(user(wav(np.array([0, np.nan, 0], "float32"))))
    with pytest.raises(PolicyError, match="message 1, part 1: "):
        to_hf(user(whole), policy=MediaPolicy(max_pixels=1000))
    with pytest.raises(PolicyError, match="message 1, part 1: "):
        to_hf(user(wav(sine(seconds=2))), policy=MediaPolicy(max_seconds=1))


def test_a_video_without_frames_is_refused():
    for write in (to_hf, HFWriter().write):
        with pytest.raises(SourceError, match="the video has no frames"):
            write(user(video()))


def test_messages_must_be_messages_and_the_target_one_of_this_form():
    with pytest.raises(TargetError, match="a message is dict"):
        to_hf([{"role": "user", "content": "hi"}])
    with pytest.raises(TargetError, match="use to_openai"):
        to_hf([], "vllm")
    with pytest.raises(TargetError, match="use to_hf"):
        to_openai([], "hf")


def test_a_target_of_ones_own_limits_the_count():
    register_target("test-one-picture", like="hf", max_count={"image": 1}, source="https://example.com/limits")
    assert len(to_hf(user(picture()), "test-one-picture").images) == 1
    with pytest.raises(TargetError, match="2 parts of image"):
        to_hf(user(picture(), picture()), "test-one-picture")


def test_a_file_that_a_target_of_ones_own_takes_as_a_video_is_not_decoded_to_nothing(tour):
    register_target("test-files", like="hf", formats={"video": ["video/mp4", "video/jpeg"]})
    film = user(MediaPart("video", "video/mp4", (tour / "media/short.mp4").read_bytes()))
    assert HFWriter("test-files").write(film)[0]["content"][0]["video"].startswith("data:video/mp4;base64,")
    with pytest.raises(TargetError, match=r"this one is video/mp4; send its frames: change_messages\(\.\.\., frames=N"):
        to_hf(film, "test-files")
    assert len(to_hf(change_messages(film, frames=2), "test-files").videos[0]) == 2


@pytest.mark.parametrize("where", ["options", "extra"])
@pytest.mark.parametrize("key", ["path", "url", "base64", "image_url", "audio", "video", "text", "type", "image"])
def test_a_key_that_names_a_second_source_is_refused(where, key):
    part = picture(**{where: ((key, "/etc/passwd"),)})
    for write in (to_hf, HFWriter().write):
        with pytest.raises(TargetError, match=f"the key '{key}' beside image names a second source"):
            write(user(part))
    with pytest.raises(TargetError, match="beside text"):
        to_hf(user(TextPart("a", ((key, "/etc/passwd"),))))


def test_a_row_cannot_make_transformers_open_a_file(tmp_path):
    """A key beside the picture would be opened: apply_chat_template reads every key that it knows."""
    secret = tmp_path / "secret.png"
    secret.write_bytes(picture("blue").data)
    twice = llava(TEMPLATE.replace("<{{ c['type'] }}>", "<image><image>"))
    naive = {"type": "image", "image": Image.new("RGB", (20, 10), "red"), "path": str(secret)}
    stolen = features(twice, [{"role": "user", "content": [naive]}])
    alone = features(llava(), to_hf(user(picture("blue"))).messages)
    np.testing.assert_array_equal(stolen[1], alone[0])
    uri = to_openai(user(picture()))[0]["content"][0]["image_url"]["url"]
    inside = {"type": "image_url", "image_url": {"url": uri, "path": str(secret)}}
    beside = {"type": "image_url", "image_url": {"url": uri}, "path": str(secret)}
    for part in (inside, beside):
        with pytest.raises(TargetError, match="'path' beside image names a second source"):
            to_hf(from_openai([{"role": "user", "content": [part]}]))


def test_other_keys_stay_with_the_part():
    got = to_hf(user(picture(options=(("detail", "low"),), extra=(("min_pixels", 4),))))
    part = got.messages[0]["content"][0]
    assert {k: v for k, v in part.items() if k != "image"} == {"type": "image", "detail": "low", "min_pixels": 4}


def test_as_text_transformers_decodes_the_same_picture_itself():
    processor = llava()
    for form in ("PNG", "JPEG", "WEBP"):
        told = user(TextPart("?"), picture("red", form=form), picture("blue", form=form))
        line = json.dumps(HFWriter().write(told))
        np.testing.assert_array_equal(features(processor, json.loads(line)), features(processor, to_hf(told).messages))


def test_as_text_sound_and_frames_are_data_uris():
    [message] = HFWriter().write(user(wav(sine()), video("red", "blue")))
    sound, frames = message["content"]
    assert sound["type"] == "audio"
    assert sound["audio"].startswith("data:audio/wav;base64,")
    assert [frame[:23] for frame in frames["video"]] == ["data:image/jpeg;base64,"] * 2


def test_payloads_are_written_without_a_copy_and_give_the_same_line():
    told = user(TextPart("?"), picture(), wav(sine()), video("red", "blue"))
    chunks = record_chunks({"id": 1, "messages": HFWriter(payload=Payload).write(told)})
    assert json.loads(b"".join(chunks)) == {"id": 1, "messages": HFWriter().write(told)}


@pytest.mark.skipif(not SINCE_5, reason="transformers 4 reads no sound from text")
def test_as_text_transformers_decodes_the_same_sound_itself():
    pytest.importorskip("soxr", reason="transformers wants it to read sound")
    from transformers.audio_utils import load_audio

    [message] = HFWriter().write(user(wav(sine())))
    np.testing.assert_allclose(load_audio(message["content"][0]["audio"], 16000), sine(), atol=1e-6)


def test_as_text_web_addresses_stay_and_other_names_are_refused():
    web = MediaRef("image", "https://example.com/a.png")
    assert HFWriter().write(user(web))[0]["content"] == [{"type": "image", "image": "https://example.com/a.png"}]
    [message] = HFWriter().write(user(web._replace(options=(("detail", "low"),), extra=(("min_pixels", 4),))))
    assert {k: v for k, v in message["content"][0].items() if k not in ("type", "image")} == {
        "detail": "low",
        "min_pixels": 4,
    }
    for source in ("cat.jpg", "gs://b/a.png", "file:///etc/passwd"):
        with pytest.raises(TargetError, match=r"takes names with http|has not been read"):
            HFWriter().write(user(MediaRef("image", source, name=source)))


def test_a_reader_is_asked_for_what_was_only_named(tmp_path):
    from mmprompt import MediaReader

    (tmp_path / "a.png").write_bytes(picture().data)
    writer = HFWriter(read=MediaReader(MediaPolicy(roots=[tmp_path])).read)
    [message] = writer.write(user(MediaRef("image", "a.png")))
    assert message["content"][0]["image"].startswith("data:image/png;base64,")
    with pytest.raises(PolicyError):
        writer.write(user(MediaRef("image", "/etc/passwd")))


def test_a_request_pickles_and_changes_nothing_of_the_callers():
    told = user(picture(), wav(sine()), TextPart("?"))
    before = pickle.dumps(told)  # not made anew: a WAV file of floats says when it was written
    got = to_hf(told)
    again = pickle.loads(pickle.dumps(got))
    assert again.images[0].tobytes() == got.images[0].tobytes()
    np.testing.assert_array_equal(again.audios[0], got.audios[0])
    assert told == pickle.loads(before)


# ---- the policy, and pictures that are hostile


def photo(width, height, **options):
    return encoded(Image.new("RGB", (width, height), "red"), "JPEG", **options)


def started(monkeypatch):
    """Every child process that is started from here on."""
    children = []
    start = subprocess.Popen.__init__

    def noted(self, *args, **kwargs):
        children.append(self)
        start(self, *args, **kwargs)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    return children


@pytest.mark.skipif(os.name != "posix", reason="isolation needs POSIX")
def test_decoding_is_done_in_a_child_that_ends_with_the_request(monkeypatch):
    children = started(monkeypatch)
    parts = [picture(mode=mode, colour=0) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")]
    parts += [picture(form="GIF"), picture(form="WEBP"), wav(sine()), video("red", "blue")]
    got = to_hf_isolated(user(*parts))
    assert len(children) == 1
    assert children[0].returncode is not None
    plain = to_hf(user(*parts), policy=MediaPolicy.preset("trusted"))
    assert len(children) == 1
    for one, other in zip(got.images + got.videos[0], plain.images + plain.videos[0], strict=True):
        assert (one.mode, one.size, one.info) == (other.mode, other.size, other.info)
        assert (one.tobytes(), one.getpalette()) == (other.tobytes(), other.getpalette())
        assert one.convert("RGBA").tobytes() == other.convert("RGBA").tobytes()
    assert np.array_equal(got.audios[0], plain.audios[0])


@pytest.mark.skipif(os.name != "posix", reason="isolation needs POSIX")
def test_the_child_ends_where_a_picture_fails(monkeypatch):
    children = started(monkeypatch)
    cut = MediaPart("image", "image/png", picture().data[:40])
    with pytest.raises(SourceError, match="message 1, part 2: "):
        to_hf(user(picture(), cut), policy=MediaPolicy.preset("hostile"))
    assert [child.returncode is not None for child in children] == [True]


def test_palettes_and_clear_colours_are_those_of_the_file():
    image = Image.new("P", (4, 1))
    image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    image.putdata([0, 1, 2, 1])
    for options in ({}, {"transparency": 1}, {"transparency": b"\xff\x80\x00"}):
        for form in ("PNG", "GIF") if options.get("transparency") in (None, 1) else ("PNG",):
            data = encoded(image, form, **options)
            (got,) = to_hf(user(MediaPart("image", f"image/{form.lower()}", data))).images
            with Image.open(io.BytesIO(data)) as bare:
                assert (got.mode, got.info.get("transparency")) == (bare.mode, bare.info.get("transparency"))
                assert got.convert("RGBA").tobytes() == bare.convert("RGBA").tobytes()


def test_the_pictures_of_a_request_are_together_bounded():
    policy = MediaPolicy(max_pixels=10_000)
    fits = MediaPart("video", "video/jpeg", b"", (photo(100, 100),) * 7)
    assert len(to_hf(user(fits, picture(size=(100, 100))), policy=policy).videos[0]) == 7
    with pytest.raises(PolicyError, match=r"message 1, part 3: .* more than 8 x max_pixels \(10000\) pixels"):
        to_hf(user(fits, picture(size=(100, 100)), picture(size=(1, 1))), policy=policy)


def test_a_video_of_many_frames_has_one_time_limit():
    frames = MediaPart("video", "video/jpeg", b"", (photo(2000, 1500),) * 40)
    with pytest.raises(PolicyError, match=r"longer than timeout \(0.05 s\)"):
        to_hf(user(frames), policy=MediaPolicy(timeout=0.05, isolate=False))


def test_exif_that_ends_too_early_is_neither_an_error_nor_a_warning(recwarn, capfd):
    directory = b"Exif\0\0II*\0\x08"
    far = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x0e\x01\x02\0\xff\xff\0\0\xff\xff\0\0"
    with Image.open(io.BytesIO(photo(8, 8, exif=directory))) as bare, pytest.raises(struct.error):
        bare.copy().getexif()
    for exif in (directory, far):
        for form in ("JPEG", "WEBP", "PNG"):
            data = encoded(Image.new("RGB", (8, 8)), form, exif=exif)
            (image,) = to_hf(user(MediaPart("image", f"image/{form.lower()}", data))).images
            assert ImageOps.exif_transpose(image).size == (8, 8)
    assert not [w for w in recwarn if w.category is not ResourceWarning]  # that is of what earlier tests left
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_an_orientation_in_xmp_alone_turns_nothing_either(form):
    xmp = '<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    written = PngInfo()
    written.add_itxt("XML:com.adobe.xmp", xmp)
    options = {"pnginfo": written} if form == "PNG" else {"xmp": xmp.encode()}
    data = encoded(Image.new("RGB", (20, 10)), form, **options)
    with Image.open(io.BytesIO(data)) as bare:
        assert ImageOps.exif_transpose(bare).size == (10, 20)
    got = to_hf(user(MediaPart("image", f"image/{form.lower()}", data)))
    assert ImageOps.exif_transpose(got.images[0]).size == (20, 10)
    assert got.notes == ["image 1: XMP orientation 6 is not applied"]


def test_further_keys_of_a_video_stand_on_its_last_frame():
    mark = ("cache_control", {"type": "ephemeral"})
    frames = video("red", "blue", "green")._replace(options=(("detail", "low"),), extra=(mark,))
    (message,) = to_hf(user(frames), frames_as_images=True).messages
    assert ["cache_control" in part for part in message["content"]] == [False, False, True]
    assert [part["detail"] for part in message["content"]] == ["low"] * 3
