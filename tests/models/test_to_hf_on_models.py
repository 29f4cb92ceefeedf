"""``to_hf`` through real models of a few thousand weights: LLaVA, Gemma 3 and Qwen2-Audio, made on the spot."""

import io
import json

import numpy as np
import pytest
import soundfile
from PIL import Image

from mmprompt import MediaPart, MediaPolicy, Message, MMPromptTemplate, TextPart, read_messages, to_hf
from mmprompt.meta_template.chat_template import ChatTemplate
from mmprompt.targets.hf import HFWriter

torch = pytest.importorskip("torch")
import tiny_models as tiny  # noqa: E402  # after the skip

pytestmark = pytest.mark.models
FOUR = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False}


@pytest.fixture(scope="module", params=["llava", "gemma3"])
def vision(request):
    return getattr(tiny, request.param)()


@pytest.fixture(scope="module")
def hearing():
    return tiny.qwen2_audio()


def noise(seed, size=(70, 50)):
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), "uint8")
    return Image.fromarray(pixels)


def picture(image, form="PNG"):
    buffer = io.BytesIO()
    image.save(buffer, form, quality=95)
    return MediaPart("image", f"image/{form.lower()}", buffer.getvalue())


def sound(hertz, rate=16000, seconds=1.5):
    samples = 0.4 * np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)
    buffer = io.BytesIO()
    soundfile.write(buffer, samples.astype("float32"), rate, format="WAV", subtype="FLOAT")
    return MediaPart("audio", "audio/wav", buffer.getvalue())


def user(*parts):
    return [Message("HUMAN", parts)]


def inputs_of(made, messages):
    return made.processor.apply_chat_template(
        messages, tokenize=True, return_dict=True, add_generation_prompt=True, return_tensors="pt"
    )


def image_tokens(made, inputs):
    return int((inputs["input_ids"] == made.model.config.image_token_id).sum())


def test_pictures_reach_the_model_and_it_generates(vision):
    red, blue = noise(1), noise(2, (40, 90))
    request = to_hf(user(picture(red), TextPart("first {x}"), picture(blue), TextPart("What colour is it?")))
    inputs = inputs_of(vision, request.messages)
    prompt = vision.processor.apply_chat_template(request.messages, tokenize=False, add_generation_prompt=True)
    by_hand = vision.processor(text=prompt, images=[red, blue], return_tensors="pt", add_special_tokens=False)
    assert torch.equal(inputs["pixel_values"], by_hand["pixel_values"])
    assert torch.equal(inputs["input_ids"], by_hand["input_ids"])
    tokens = tiny.PATCHES if "Llava" in type(vision.processor).__name__ else tiny.GEMMA_TOKENS
    assert image_tokens(vision, inputs) == 2 * tokens
    made = vision.model.generate(**inputs, **FOUR)
    assert made.shape[1] == inputs["input_ids"].shape[1] + 4


def test_two_pictures_swapped_are_swapped_in_the_model(vision):
    one, two = picture(noise(1)), picture(noise(2))
    first = inputs_of(vision, to_hf(user(one, TextPart("then"), two)).messages)
    second = inputs_of(vision, to_hf(user(two, TextPart("then"), one)).messages)
    assert torch.equal(first["pixel_values"].flip(0), second["pixel_values"])
    assert torch.equal(first["input_ids"], second["input_ids"])
    with torch.no_grad():
        apart = (vision.model(**first).logits[:, -1] - vision.model(**second).logits[:, -1]).abs().max()
    assert apart > 1e-6


@pytest.mark.parametrize("form", ["JPEG", "WEBP", "BMP"])
def test_other_formats_give_what_pillow_decodes(vision, form):
    part = picture(noise(3), form)
    by_hand = vision.processor.image_processor(Image.open(io.BytesIO(part.data)), return_tensors="pt")["pixel_values"]
    assert torch.equal(inputs_of(vision, to_hf(user(part)).messages)["pixel_values"], by_hand)


def test_text_with_braces_and_tokens_that_are_not_the_models_stays(vision):
    text = "{x} {{ y }} {% raw %} <video> [INST] \\n 问题"
    inputs = inputs_of(vision, to_hf(user(picture(noise(1)), TextPart(text))).messages)
    assert text in vision.processor.tokenizer.decode(inputs["input_ids"][0])


def test_two_conversations_are_a_batch(vision):
    batch = [to_hf(user(picture(noise(n)), TextPart("What colour is it?" * n))).messages for n in (1, 2)]
    inputs = vision.processor.apply_chat_template(
        batch, tokenize=True, return_dict=True, add_generation_prompt=True, return_tensors="pt", padding=True
    )
    assert inputs["input_ids"].shape[0] == 2
    assert vision.model.generate(**inputs, **FOUR).shape[0] == 2


def test_the_text_form_gives_the_model_the_same_picture(vision):
    told = user(picture(noise(4), "JPEG"), TextPart("What?"))
    as_text = inputs_of(vision, json.loads(json.dumps(HFWriter().write(told))))
    assert torch.equal(as_text["pixel_values"], inputs_of(vision, to_hf(told).messages)["pixel_values"])


def test_frames_are_pictures_for_a_model_without_video(vision):
    frames = [picture(noise(n), "JPEG").data for n in range(3)]
    video = MediaPart("video", "video/jpeg", b"", tuple(frames))
    inputs = inputs_of(vision, to_hf(user(video, TextPart("What?")), frames_as_images=True).messages)
    assert inputs["pixel_values"].shape[0] == 3
    assert vision.model.generate(**inputs, **FOUR).shape[0] == 1


def test_sound_reaches_the_model_and_it_generates(hearing):
    request = to_hf(user(sound(440), TextPart("What do you hear?")), sampling_rate=16000)
    inputs = inputs_of(hearing, request.messages)
    extractor = hearing.processor.feature_extractor
    by_hand = extractor(request.audios[0], sampling_rate=16000, return_tensors="pt", padding="max_length")
    assert torch.equal(inputs["input_features"], by_hand["input_features"])
    samples, _ = soundfile.read(io.BytesIO(sound(440).data), dtype="float32")
    assert np.array_equal(samples, request.audios[0])
    frames = int(inputs["feature_attention_mask"].sum())
    heard = int((inputs["input_ids"] == hearing.model.config.audio_token_id).sum())
    assert heard == (((frames - 1) // 2 + 1) - 2) // 2 + 1
    made = hearing.model.generate(**inputs, **FOUR)
    assert made.shape[1] == inputs["input_ids"].shape[1] + 4


def test_two_sounds_swapped_are_swapped_in_the_model(hearing):
    low, high = sound(300), sound(2000)
    first = inputs_of(hearing, to_hf(user(low, TextPart("then"), high)).messages)["input_features"]
    second = inputs_of(hearing, to_hf(user(high, TextPart("then"), low)).messages)["input_features"]
    assert not torch.equal(first[0], first[1])
    assert torch.equal(first.flip(0), second)


def test_sound_of_another_rate_has_its_pitch_only_when_resampled(hearing):
    """The processor takes an array to have its own rate, and says nothing: hence ``sampling_rate``."""
    rate = hearing.processor.feature_extractor.sampling_rate

    def heard(part, **options):
        inputs = inputs_of(hearing, to_hf(user(part), **options).messages)
        return int(inputs["input_features"][0, :, 50].argmax())

    right = heard(sound(1000, rate))
    assert heard(sound(1000, 48000)) != right
    assert heard(sound(1000, 48000), sampling_rate=rate) == right


@pytest.fixture(scope="module")
def knows_colours():
    made = tiny.llava()
    tiny.train_on_two_colours(made)
    return made


TEMPLATE = {
    "round": [
        {
            "role": "HUMAN",
            "prompt_mm": {
                "image": {"type": "image_url", "image_url": {"url": "file://{image}"}},
                "text": {"type": "text", "text": "{question}"},
            },
        },
    ]
}


def test_a_model_that_knows_colours_sees_those_of_the_files_in_their_order(knows_colours, tmp_path):
    """Row and files → template → messages → read → ``to_hf`` → answer; swapped pictures, swapped answer."""
    for number, name in enumerate(tiny.COLOURS):
        tiny.coloured(name, 0.9 + number / 100, (90, 70)).save(tmp_path / f"{name}.jpg", quality=90)
    template, chat = MMPromptTemplate(template=TEMPLATE), ChatTemplate(knows_colours.processor)

    def answer(*names):
        tagged = "".join(f"<AIS_IMAGE_START>{name}.jpg<AIS_CONTENT_TAG>" for name in names)
        row = {"content": f"{tagged}<AIS_TEXT_START>{tiny.QUESTION}<AIS_CONTENT_TAG>"}
        messages = read_messages(chat.to_messages(template.generate_item(row)), MediaPolicy(roots=[tmp_path]))
        inputs = inputs_of(knows_colours, to_hf(messages).messages)
        reply = knows_colours.model.generate(**inputs, max_new_tokens=4, do_sample=False)
        return knows_colours.processor.tokenizer.decode(
            reply[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True
        )

    pairs = [("red", "blue"), ("blue", "red"), ("green", "white"), ("white", "green"), ("black", "red")]
    assert [answer(*pair) for pair in pairs] == [f" {first} {second}" for first, second in pairs]
