"""Models of a few thousand weights with their processors, made on the spot: nothing is downloaded."""

import os
from typing import Any, NamedTuple

os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")

LLAVA_TEMPLATE = (
    "{% for m in messages %}{{ m['role'] | upper }}: {% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<image>{% elif c['type'] == 'text' %}{{ c['text'] }}{% endif %}{% endfor %}\n{% endfor %}"
    "{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)
GEMMA_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ '<start_of_turn>' + m['role'] + '\n' }}{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}{{ '<start_of_image>' }}{% elif c['type'] == 'text' %}{{ c['text'] }}{% endif %}{% endfor %}"
    "{{ '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
COLOURS = {"red": (220, 30, 30), "green": (30, 180, 40), "blue": (30, 50, 220), "white": (240, 240, 240), "black": (12, 12, 12)}  # fmt: skip
PATCHES = 16
"""Image tokens of one picture of 56 pixels in patches of 14."""

GEMMA_TOKENS = 4
_CORPUS = [
    "What colour is it?",
    "red green blue white black",
    "first second What do you hear? Describe.",
    "USER: ASSISTANT:",
]


class Tiny(NamedTuple):
    model: Any
    processor: Any


def tokenizer(special, **named):
    """A byte-level BPE tokenizer trained here; ``named`` are its special tokens by role."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<pad>", "<s>", "</s>", *special],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(_CORPUS, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token="<s>", eos_token="</s>", pad_token="<pad>", **named)


def _text_sizes(vocabulary):
    return {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": 1024,
    }


def _vision_sizes():
    return {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 56,
        "patch_size": 14,
    }


def llava() -> Tiny:
    import torch
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    own = tokenizer(["<image>"])
    side = {"height": 56, "width": 56}
    processor = LlavaProcessor(
        CLIPImageProcessorPil(size=side, crop_size=side),
        own,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token="<image>",
        chat_template=LLAVA_TEMPLATE,
    )
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**_vision_sizes(), projection_dim=32),
        text_config=LlamaConfig(**_text_sizes(len(own)), pad_token_id=0, bos_token_id=1, eos_token_id=2),
        image_token_index=own.convert_tokens_to_ids("<image>"),
        vision_feature_select_strategy="default",
        vision_feature_layer=-1,
    )
    torch.manual_seed(0)
    return Tiny(LlavaForConditionalGeneration(config).eval(), processor)


def gemma3() -> Tiny:
    import torch
    from transformers import (
        Gemma3Config,
        Gemma3ForConditionalGeneration,
        Gemma3Processor,
        Gemma3TextConfig,
        SiglipVisionConfig,
    )
    from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil

    extra = {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"}
    own = tokenizer([*extra.values(), "<start_of_turn>", "<end_of_turn>"], extra_special_tokens=extra)
    processor = Gemma3Processor(
        Gemma3ImageProcessorPil(size={"height": 56, "width": 56}),
        own,
        chat_template=GEMMA_TEMPLATE,
        image_seq_length=GEMMA_TOKENS,
    )
    config = Gemma3Config(
        text_config=Gemma3TextConfig(
            **_text_sizes(len(own)), head_dim=16, pad_token_id=0, bos_token_id=1, eos_token_id=2
        ),
        vision_config=SiglipVisionConfig(**_vision_sizes(), vision_use_head=False),
        mm_tokens_per_image=GEMMA_TOKENS,
        boi_token_index=own.convert_tokens_to_ids("<start_of_image>"),
        eoi_token_index=own.convert_tokens_to_ids("<end_of_image>"),
        image_token_index=own.convert_tokens_to_ids("<image_soft_token>"),
    )
    torch.manual_seed(0)
    model = Gemma3ForConditionalGeneration(config).eval()
    # it begins at zero, and then the model sees nothing
    torch.nn.init.normal_(model.model.multi_modal_projector.mm_input_projection_weight)
    return Tiny(model, processor)


def qwen2_audio() -> Tiny:
    import torch
    from transformers import (
        Qwen2AudioConfig,
        Qwen2AudioEncoderConfig,
        Qwen2AudioForConditionalGeneration,
        Qwen2AudioProcessor,
        Qwen2Config,
        WhisperFeatureExtractor,
    )

    own = tokenizer(["<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>", "<|im_start|>", "<|im_end|>"])
    processor = Qwen2AudioProcessor(WhisperFeatureExtractor(feature_size=16, chunk_length=4), own)
    config = Qwen2AudioConfig(
        audio_config=Qwen2AudioEncoderConfig(
            num_mel_bins=16,
            encoder_layers=1,
            encoder_attention_heads=2,
            encoder_ffn_dim=64,
            d_model=32,
            max_source_positions=200,
        ),
        text_config=Qwen2Config(**_text_sizes(len(own)), pad_token_id=0, bos_token_id=1, eos_token_id=2),
        audio_token_index=own.convert_tokens_to_ids("<|AUDIO|>"),
    )
    torch.manual_seed(0)
    return Tiny(Qwen2AudioForConditionalGeneration(config).eval(), processor)


QUESTION = "What colour is it?"


def coloured(name, seed, size=(64, 48)):
    """A picture of one colour with noise; ``seed`` is from 0 to 1."""
    import numpy as np
    from PIL import Image

    random = np.random.default_rng(int(seed * 2**53))
    pixels = random.normal(COLOURS[name], 20, (size[1], size[0], 3))
    return Image.fromarray(pixels.clip(0, 255).astype("uint8"))


def train_on_two_colours(made, steps=140):
    """Teach a LLaVA to name the colours of two pictures in order; about four seconds of one core."""
    import torch

    batches = [_batch(made.processor, number) for number in range(40)]
    torch.manual_seed(0)
    optimizer = torch.optim.AdamW(made.model.parameters(), lr=3e-3)
    made.model.train()
    for step in range(steps):
        inputs, labels = batches[step % len(batches)]
        optimizer.zero_grad()
        made.model(**inputs, labels=labels).loss.backward()
        optimizer.step()
    made.model.eval()


def _batch(processor, seed):
    """Sixteen pairs of pictures, the question, and the answers as labels."""
    import random

    draw = random.Random(seed)
    part = [{"type": "image"}] * 2
    said = [{"role": "user", "content": [*part, {"type": "text", "text": QUESTION}]}]
    prompt = processor.apply_chat_template(said, tokenize=False, add_generation_prompt=True)
    names = [draw.choices(list(COLOURS), k=2) for _ in range(16)]
    images = [[coloured(name, draw.random()) for name in pair] for pair in names]
    texts = [f"{prompt} {' '.join(pair)}</s>" for pair in names]
    inputs = processor(text=texts, images=images, return_tensors="pt", padding=True, padding_side="right")
    start = processor(text=[prompt], images=images[:1], return_tensors="pt")["input_ids"].shape[1]
    labels = inputs["input_ids"].clone()
    labels[:, :start] = -100
    labels[inputs["attention_mask"] == 0] = -100
    return inputs, labels
