"""``ChatTemplate`` over the processors of real models; tests/meta_template/test_chat_template.py has what needs no PyTorch."""

import io

import numpy as np
import pytest
import soundfile
from PIL import Image

from mmprompt import PromptError, read_messages, to_hf
from mmprompt.meta_template.chat_template import ChatTemplate

torch = pytest.importorskip("torch")
import tiny_models as tiny  # noqa: E402  # after the skip

pytestmark = pytest.mark.models
MODELS = {"llava": "image", "gemma3": "image", "qwen2_audio": "audio"}


@pytest.fixture(scope="module", params=MODELS)
def made(request):
    return getattr(tiny, request.param)(), MODELS[request.param]


def source(modality, seed=0):
    """The bytes of a file of a modality."""
    random = np.random.default_rng(seed)
    buffer = io.BytesIO()
    if modality == "image":
        Image.fromarray(random.integers(0, 256, (40, 60, 3), "uint8")).save(buffer, "PNG")
    else:
        soundfile.write(buffer, random.uniform(-0.5, 0.5, 16000), 16000, format="WAV", subtype="PCM_16")
    return buffer.getvalue()


def media(modality, seed=0):
    return {"type": modality, modality: source(modality, seed)}


def text(value):
    return {"type": "text", "text": value}


def prompt_of(modality, *texts):
    first = {"role": "HUMAN", "prompt": [media(modality), text(texts[0]), media(modality, 1)]}
    rest = [{"role": ("BOT", "HUMAN")[n % 2], "prompt": each} for n, each in enumerate(texts[1:])]
    return [first, *rest]


@pytest.mark.parametrize("mode", ["gen", "ppl"])
def test_the_string_is_what_apply_chat_template_makes_of_the_request(made, mode):
    tiny_model, modality = made
    chat = ChatTemplate(tiny_model.processor)
    prompt = prompt_of(modality, "What {is} this?", "A thing.", "Sure?")
    if mode == "ppl":
        prompt.append({"role": "BOT", "prompt": "Yes."})
    request = to_hf(read_messages(chat.to_messages(prompt, mode)))
    own = tiny_model.processor.apply_chat_template(
        request.messages, tokenize=False, add_generation_prompt=mode == "gen"
    )
    got = chat.to_string(prompt, mode)
    assert got == own
    assert [part.modality for part in got.media] == [modality, modality]
    assert ("Yes." in got) == (mode == "ppl")


def test_the_string_and_its_media_make_the_inputs_of_the_request(made):
    tiny_model, modality = made
    processor = tiny_model.processor
    chat = ChatTemplate(processor)
    prompt = prompt_of(modality, "What is this?")
    request = to_hf(read_messages(chat.to_messages(prompt)))
    inputs = processor.apply_chat_template(
        request.messages, tokenize=True, return_dict=True, add_generation_prompt=True, return_tensors="pt"
    )
    beside = {"images": request.images} if modality == "image" else {"audio": request.audios, "sampling_rate": 16000}
    by_string = processor(text=str(chat.to_string(prompt)), return_tensors="pt", add_special_tokens=False, **beside)
    assert set(by_string) == set(inputs)
    for key in inputs:
        assert torch.equal(by_string[key], inputs[key]), key
    reply = tiny_model.model.generate(**by_string, max_new_tokens=4, min_new_tokens=4, do_sample=False)
    assert reply.shape[1] == inputs["input_ids"].shape[1] + 4


@pytest.mark.parametrize("form", ["parts", "string"])
def test_the_placeholder_of_the_model_is_refused_in_text(made, form):
    tiny_model, modality = made
    processor = tiny_model.processor
    token = getattr(processor, f"{modality}_token")
    injected = f"see {token} here"
    prompt = prompt_of(modality, injected) if form == "parts" else injected
    with pytest.raises(PromptError, match="a special token of the model"):
        ChatTemplate(processor).to_messages(prompt)
    assert token in ChatTemplate(processor, special_tokens="allow").to_string(prompt)


def test_media_that_the_model_has_no_place_for_are_refused(made):
    tiny_model, modality = made
    with pytest.raises(PromptError, match="no place for video"):
        ChatTemplate(tiny_model.processor).to_string(
            [{"role": "HUMAN", "prompt": [media(modality), {"type": "video", "video": "v.mp4"}]}]
        )
