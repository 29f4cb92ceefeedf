"""``LocalModel``: a model in a folder, asked by transformers in this process."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from mmprompt.errors import MMPromptError, PromptError, ServerError, TargetError, shown
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.sandbox.decoders import decoder
from mmprompt.messages import MODALITIES, Message
from mmprompt.run.generation import Generation, generation_of
from mmprompt.run.local_loading import load_model
from mmprompt.run.model import Answer
from mmprompt.run.reply import Reply
from mmprompt.targets.hf import HFWriter
from mmprompt.targets.hf_media import HFDecoder
from mmprompt.targets.json_values import JSONValue
from mmprompt.targets.part_writer import Payload, Wire, WireValue

if TYPE_CHECKING:
    from mmprompt.render.request import Request

_Messages = list[dict[str, Any]]
_Outcome = Union[Reply, float, MMPromptError]

BATCH = 8
"""The most requests in one forward pass."""

_WORDS = 300


class LocalModel:
    """A model in a folder: of images and text, of sound and text, or of text alone.

    It loads safetensors only, runs no code of the model, and downloads nothing. Replies are greedy unless a request
    asks for a temperature; then its seed decides, so that the same request has the same reply. Pictures are turned
    as their files ask, as servers do. Threads may share it; they take turns.

    Args:
        path: the folder of the model, in the form of ``save_pretrained``.
        device: ``"cpu"``, ``"cuda"`` or ``"cuda:N"``.
        batch: the most requests in one forward pass.
        policy: the limits of decoding media, and whether it runs in a child process.

    Raises:
        ServerError: PyTorch is missing, the folder holds no usable model, or the device cannot be used.
    """

    target = "hf"
    concurrency = 1

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        device: str = "cpu",
        batch: int = BATCH,
        policy: MediaPolicy | None = None,
    ) -> None:
        folder = os.path.abspath(os.fspath(path))
        self.name = folder
        self.batch = batch
        self._model, self._processor, self._tokenizer, self._media_ids = load_model(folder, device)
        self._longest = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        self._about = f"{type(self._model).__name__} on {self._model.device}"
        self._policy = policy or MediaPolicy()
        self._decoder = decoder(self._policy)
        self._rate = getattr(getattr(self._processor, "feature_extractor", None), "sampling_rate", None)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        """Show the folder and the class of the model."""
        return f"<LocalModel {self.name}: {self._about}>"

    def ask(self, requests: Sequence[Request], options: Mapping[str, JSONValue]) -> list[Answer]:
        """Return the replies, one for each request in order; see ``Model.ask``. Errors are answers too."""
        return self._answers(requests, lambda request: generation_of({**request.generation, **options}))

    def perplexities(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the perplexity of each request; see ``Model.perplexities``.

        The text is that of the chat template without a generation prompt.
        """
        return self._answers(requests, lambda _: None)

    def reply(self, messages: Sequence[Message], options: Mapping[str, JSONValue]) -> Reply:
        """Return the reply to messages whose media are read.

        Raises:
            MMPromptError: an option is unknown, a medium cannot be decoded, or the model fails.
        """
        generation = generation_of(options)
        wire: list[Wire] = HFWriter(payload=Payload).write(messages)
        outcome = self._outcomes([self._decoded(wire)], generation)[0]
        if isinstance(outcome, Reply):
            return outcome
        raise outcome if isinstance(outcome, MMPromptError) else ServerError("the model gave no reply")

    def close(self) -> None:
        """End the decoding process and let go of the model."""
        self._decoder.close()
        self._model = None

    def _answers(
        self, requests: Sequence[Request], settings_of: Callable[[Request], Generation | None]
    ) -> list[Answer]:
        """Return the answers to requests. Those with the same settings run together, but draw their tokens alone."""
        begin = time.monotonic()
        outcomes: dict[int, _Outcome] = {}
        groups: dict[tuple[Generation | None, int], dict[int, _Messages]] = {}
        for number, request in enumerate(requests):
            try:
                settings = settings_of(request)
                group = number if settings is not None and settings.sampled else -1
                groups.setdefault((settings, group), {})[number] = self._decoded(request.unencoded["messages"])
            except MMPromptError as error:
                outcomes[number] = error
        for (settings, _), members in groups.items():
            outcomes.update(zip(members, self._outcomes(list(members.values()), settings), strict=True))
        seconds = time.monotonic() - begin
        return [_answer(outcomes[number], seconds) for number in range(len(requests))]

    def _decoded(self, messages: Any) -> _Messages:
        """Return messages with their media decoded, as the processor takes them."""
        if self._processor is self._tokenizer:
            return text_messages(messages)
        return decoded_messages(messages, HFDecoder(self._policy, self._rate, upright=True, shared=self._decoder))

    def _outcomes(self, batch: list[_Messages], settings: Generation | None) -> list[_Outcome]:
        """Return the replies, or without settings the perplexities. A batch that fails is run again one by one."""
        if not batch:
            return []
        try:
            with self._lock:
                return self._perplexities(batch) if settings is None else self._replies(batch, settings)
        except Exception as error:  # noqa: BLE001  # a model's code may raise anything, and memory may run out
            fault = _fault(error)
        if len(batch) == 1:
            return [fault]
        return [outcome for each in batch for outcome in self._outcomes([each], settings)]

    def _replies(self, batch: list[_Messages], generation: Generation) -> list[_Outcome]:
        import torch  # noqa: PLC0415  # an extra, and heavy

        tokenizer = self._tokenizer
        config = generation.config(self._model.generation_config, tokenizer.eos_token_id, tokenizer.pad_token_id)
        inputs = self._inputs(batch, side="left")
        stopper = {"tokenizer": tokenizer} if generation.stop else {}
        with torch.inference_mode(), torch.random.fork_rng(enabled=generation.sampled):
            if generation.sampled:
                torch.manual_seed(generation.seed)
            made = self._model.generate(**inputs, **stopper, generation_config=config)
        start = inputs["input_ids"].shape[1]
        lengths = inputs["attention_mask"].sum(1).tolist()
        rows = made[:, start:].tolist()
        return [self._reply(ids, config, length) for ids, length in zip(rows, lengths, strict=True)]

    def _reply(self, ids: list[int], config: Any, prompt: int) -> Reply:
        """Return the reply that generated tokens are; what follows its end is padding."""
        ends = config.eos_token_id or []
        end = next((at for at, token in enumerate(ids) if token in ends), None)
        while end is None and ids and ids[-1] == config.pad_token_id:  # a stop string ended it
            ids = ids[:-1]
        count = len(ids) if end is None else end + 1
        text = self._tokenizer.decode(ids[:end], skip_special_tokens=True)
        found = [at for at in map(text.find, config.stop_strings or ()) if at >= 0]
        reason = "length" if end is None and not found and count >= config.max_new_tokens else "stop"
        usage = {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}
        return Reply(text[: min(found)] if found else text, reason, usage)

    def _perplexities(self, batch: list[_Messages]) -> list[_Outcome]:
        import torch  # noqa: PLC0415  # an extra, and heavy

        inputs = self._inputs(batch, side="right")
        with torch.inference_mode():
            logits = self._model(**inputs, use_cache=False).logits
        ids, present = inputs["input_ids"], inputs["attention_mask"].bool()
        media = torch.tensor(sorted(self._media_ids), dtype=ids.dtype, device=ids.device)
        counted = (present & ~torch.isin(ids, media))[:, 1:]
        if logits.shape[:2] != ids.shape or not present[:, 0].all():
            raise ServerError("the model does not give one prediction for each token", "use another model for PPL")
        made: list[_Outcome] = []
        for row, chosen in enumerate(counted):
            losses = torch.nn.functional.cross_entropy(
                logits[row, :-1][chosen].float(), ids[row, 1:][chosen], reduction="none"
            )
            none = PromptError("the prompt has no token to predict", "give it more text")
            made.append(float(losses.double().mean().exp()) if len(losses) else none)
        return made

    def _inputs(self, batch: list[_Messages], *, side: str) -> dict[str, Any]:
        """Return the model's inputs, padded on one side: ``left`` for replies, ``right`` for predictions.

        Raises:
            PromptError: the chat template refuses the messages, or a prompt is longer than the model takes.
        """
        from jinja2 import TemplateError as JinjaError  # noqa: PLC0415  # only where a chat template is used

        self._tokenizer.padding_side = side
        padding: dict[str, Any] = {"padding": True}
        if self._processor is not self._tokenizer:
            padding = {"processor_kwargs": {**padding, "padding_side": side}}
        try:
            made = self._processor.apply_chat_template(
                batch,
                add_generation_prompt=side == "left",
                tokenize=True,
                return_dict=True,
                return_tensors="pt",
                **padding,
            )
        except JinjaError as error:
            said = shown(str(error) or type(error).__name__, _WORDS)
            hint = "change the roles of the prompt, or their order"
            raise PromptError(f"the chat template refuses the messages: {said}", hint) from None
        length, most = int(made["attention_mask"].sum(1).max()), self._longest
        if most is not None and length > most:
            hint = "leave out examples, or make the media smaller or fewer"
            raise PromptError(f"the prompt has {length} tokens, and the model takes {most}", hint)
        device, dtype = self._model.device, self._model.dtype
        return {
            key: value.to(device, dtype if value.is_floating_point() else None) if hasattr(value, "to") else value
            for key, value in made.items()
        }


def _answer(outcome: _Outcome, seconds: float) -> Answer:
    if isinstance(outcome, Reply):
        return Answer(reply=outcome, seconds=seconds)
    if isinstance(outcome, MMPromptError):
        return Answer(error=outcome, seconds=seconds)
    return Answer(perplexity=outcome, seconds=seconds)


def _fault(error: Exception) -> MMPromptError:
    """Return the error of a request on which the model failed."""
    if isinstance(error, MMPromptError):
        return error
    said = " ".join(str(error).split())
    what = f"the model failed ({type(error).__name__}{': ' if said else ''}{shown(said, _WORDS) if said else ''})"
    return ServerError(what, "make the media smaller or fewer, or ask for fewer tokens")


def decoded_messages(messages: list[Wire], media: HFDecoder) -> list[dict[str, Any]]:
    """Return messages with an object in place of each medium; other values are copied.

    Raises:
        TargetError: a medium was named and not read; a local model fetches nothing.
        MediaError: a medium cannot be decoded.
    """
    return [{key: _decoded(value, media) for key, value in message.items()} for message in messages]


def text_messages(messages: list[Wire]) -> list[dict[str, Any]]:
    """Return messages whose content is a string, as tokenizers take them.

    Raises:
        TargetError: a message holds a medium.
    """
    return [{**message, "content": _text(message["content"])} for message in messages]


def _decoded(value: WireValue, media: HFDecoder) -> Any:
    if isinstance(value, Payload):
        return media.decode(value.part)
    if isinstance(value, dict):
        for modality in MODALITIES:
            if value.get("type") == modality and isinstance(value.get(modality), str):
                raise TargetError(f"a local model fetches no {modality}", "leave out media: keep, so that it is read")
        return {key: _decoded(item, media) for key, item in value.items()}
    if isinstance(value, list):
        return [_decoded(item, media) for item in value]
    return value


def _text(content: WireValue) -> str:
    if not isinstance(content, list):
        return "" if content is None else str(content)
    texts = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(part, dict) or kind != "text":
            raise TargetError(f"the model takes no {kind}", "use the folder of a model that does")
        texts.append(str(part["text"]))
    return "".join(texts)
