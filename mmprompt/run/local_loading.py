"""Loads a model and its processor by transformers: safetensors only, no code of the model, no download."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from mmprompt.errors import ServerError, shown
from mmprompt.media.outputs import refuse_replaced

_WORDS = 300
_FOLDER = "give the folder of a model in the form of save_pretrained: config.json, *.safetensors, tokenizer, processor"


class LoadedModel(NamedTuple):
    """A model in evaluation mode, its processor, and the processor's tokenizer; the same object if there is no other.

    ``media_ids`` are the ids of the tokens that stand for media in a prompt.
    """

    model: Any
    processor: Any
    tokenizer: Any
    media_ids: frozenset[int]


def load_model(folder: str, device: str) -> LoadedModel:
    """Return the model in ``folder``, on ``device``.

    Raises:
        ServerError: torch is missing, the folder holds no usable model, or the device cannot be used.
    """
    if not os.path.isdir(folder):
        raise ServerError(f"{shown(folder)} is not a folder", "give the folder of a model; nothing is downloaded")
    for path in filter(os.path.isfile, [os.path.join(folder, name) for name in os.listdir(folder)]):
        refuse_replaced(os.stat(path))
    try:
        import torch  # noqa: F401, PLC0415  # an extra, and heavy
    except ImportError:
        raise ServerError("local models need PyTorch", "pip install 'mmprompt[local]'", code="MM903") from None
    with _loading_errors(folder):
        model, processor = _loaded(folder)
    tokenizer = getattr(processor, "tokenizer", processor)
    if getattr(processor, "chat_template", None) is None and getattr(tokenizer, "chat_template", None) is None:
        raise ServerError(f"the model in {shown(folder)} has no chat template", "put chat_template.jinja beside it")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    try:
        model = model.eval().to(device)
    except (RuntimeError, AssertionError, ValueError) as error:
        what = f"the device {shown(device)} cannot be used: {shown(str(error), _WORDS)}"
        raise ServerError(what, "give cpu, cuda or cuda:N") from None
    return LoadedModel(model, processor, tokenizer, frozenset(_media_ids(model, processor)))


def _loaded(folder: str) -> tuple[Any, Any]:
    """Return the model and its processor.

    Raises:
        ServerError: weights are missing, or the model is of a kind that cannot be asked.
    """
    import transformers  # noqa: PLC0415  # heavy

    auto: Any = transformers
    safe = {"local_files_only": True, "trust_remote_code": False}
    processor = auto.AutoProcessor.from_pretrained(folder, **safe)
    config = auto.AutoConfig.from_pretrained(folder, **safe)
    if getattr(config, "is_encoder_decoder", False):
        raise ServerError(f"{shown(folder)} holds an encoder-decoder model", "give a model that continues its prompt")
    with _without_progress():
        model, report = _class_of(config).from_pretrained(
            folder, config=config, use_safetensors=True, output_loading_info=True, dtype="auto", **safe
        )
    if absent := sorted(map(str, report["missing_keys"])):
        what = f"{len(absent)} weights are missing, the first {shown(absent[0])}"
        raise ServerError(f"the model in {shown(folder)} is not whole: {what}", "copy all its files")
    if hasattr(model, "disable_talker"):  # Qwen-Omni would speak its replies
        model.disable_talker()
    return model, processor


def _class_of(config: Any) -> Any:
    """Return the class that loads a model: of images and text, of text, or the one that the model names."""
    import transformers  # noqa: PLC0415  # heavy

    if type(config) in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        return transformers.AutoModelForImageTextToText
    named = getattr(transformers, (getattr(config, "architectures", None) or [""])[0], None)
    if isinstance(named, type) and issubclass(named, transformers.GenerationMixin):  # such as those that hear
        return named
    return transformers.AutoModelForCausalLM


def _media_ids(model: Any, processor: Any) -> Iterator[int]:
    """Yield the ids of the tokens that stand for media; processors and configurations have several names for them."""
    for owner in (processor, getattr(processor, "tokenizer", None), model.config):
        for modality in ("image", "video", "audio"):
            for name in (f"{modality}_token_id", f"{modality}_token_index", f"{modality}_token_ids"):
                found = getattr(owner, name, None)
                yield from (each for each in (found if isinstance(found, list) else [found]) if isinstance(each, int))


@contextmanager
def _loading_errors(folder: str) -> Iterator[None]:
    """Raise a ServerError in place of whatever transformers raises on a folder."""
    try:
        yield
    except ServerError:
        raise
    except Exception as error:  # noqa: BLE001  # files of any content, read by many classes
        said = shown(" ".join(str(error).split()) or type(error).__name__, _WORDS)
        hint = "install what it asks for" if isinstance(error, ImportError) else _FOLDER
        raise ServerError(f"the model in {shown(folder)} cannot be loaded: {said}", hint) from None


@contextmanager
def _without_progress() -> Iterator[None]:
    """Keep transformers from drawing its progress bar."""
    import transformers  # noqa: PLC0415  # heavy

    logging: Any = transformers.utils.logging
    drawn = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if drawn:
            logging.enable_progress_bar()
