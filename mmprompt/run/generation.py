"""The settings of local generation, read from those of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mmprompt.errors import TargetError, shown
from mmprompt.targets.json_values import JSONValue

MAX_TOKENS = 1024
"""The most tokens of a reply where neither the request nor the model's ``generation_config`` says it."""

_LENGTHS = ("max_completion_tokens", "max_tokens", "max_new_tokens")
_SAMPLING: Mapping[str, float] = {"temperature": 1.0, "top_p": 1.0, "top_k": 50}
"""Settings that matter only where tokens are drawn, and the values at which transformers ignores them."""

_OTHERS = {"min_p": "min_p", "repetition_penalty": "repetition_penalty", "num_beams": "num_beams"} | {
    "min_tokens": "min_new_tokens",
    "no_repeat_ngram_size": "no_repeat_ngram_size",
    "length_penalty": "length_penalty",
}
"""Further settings by the names that servers have for them, and their names in transformers."""

_WHOLE = frozenset(("top_k", "num_beams", "min_tokens", "no_repeat_ngram_size"))
_READ = frozenset((*_LENGTHS, *_SAMPLING, *_OTHERS, "seed", "stop", "stop_token_ids", "do_sample"))
_NEUTRAL: Mapping[str, float] = {"n": 1, "presence_penalty": 0, "frequency_penalty": 0, "logprobs": 0, "stream": 0}
_NO_EFFECT = frozenset(("user", "metadata", "store", "service_tier", "stream_options", "skip_special_tokens"))


class Generation(NamedTuple):
    """The settings of one reply. Hashable, so that requests with the same settings make a batch.

    ``sampled`` says that tokens are drawn, by ``seed``; else each is the most probable one. ``named`` holds further
    settings by their names in transformers.
    """

    max_tokens: int | None
    sampled: bool
    seed: int
    stop: tuple[str, ...]
    stop_token_ids: tuple[int, ...]
    named: tuple[tuple[str, float], ...]

    def config(self, own: Any, eos: int | None, pad: int | None) -> Any:
        """Return a transformers ``GenerationConfig``: the model's ``own`` with these settings laid over it."""
        from copy import deepcopy  # noqa: PLC0415

        config = deepcopy(own)
        ends = own.eos_token_id if own.eos_token_id is not None else eos
        ids = [*(ends if isinstance(ends, (list, tuple)) else [ends]), *self.stop_token_ids]
        config.update(
            do_sample=self.sampled,
            max_new_tokens=self.max_tokens or own.max_new_tokens or MAX_TOKENS,
            max_length=None,
            eos_token_id=[each for each in ids if each is not None] or None,
            pad_token_id=pad if own.pad_token_id is None else own.pad_token_id,
            stop_strings=list(self.stop) or None,
            num_return_sequences=1,
            return_dict_in_generate=False,
            **({} if self.sampled else _SAMPLING),
        )
        config.update(**dict(self.named))
        return config


def generation_of(settings: Mapping[str, JSONValue]) -> Generation:
    """Return the settings of a reply from those of a request, which have OpenAI's and vLLM's names.

    Raises:
        TargetError: a setting is unknown, or its value is of the wrong type.
    """
    given = {key: value for key, value in settings.items() if value is not None and not _has_no_effect(key, value)}
    for key in given:
        if key not in _READ:
            raise TargetError(f"a local model has no setting {shown(key)}", "leave it out")
    lengths = [_number(given, key, 1, whole=True) for key in _LENGTHS if key in given]
    temperature = _number(given, "temperature", 0) if "temperature" in given else None
    asked = given.get("do_sample", bool(temperature))
    sampled = asked is True and temperature != 0
    names = {**({key: key for key in _SAMPLING} if sampled else {}), **_OTHERS}
    if given.get("top_k") == -1:  # vLLM's word for all tokens
        given["top_k"] = 0
    named = {name: _number(given, key, 0, whole=key in _WHOLE) for key, name in names.items() if key in given}
    return Generation(
        int(lengths[0]) if lengths else None,
        sampled,
        int(_number(given, "seed", -(2**63), whole=True)) if "seed" in given else 0,
        tuple(each for each in _several(given, "stop", str) if isinstance(each, str)),
        tuple(each for each in _several(given, "stop_token_ids", int) if isinstance(each, int)),
        tuple(sorted(named.items())),
    )


def _has_no_effect(key: str, value: JSONValue) -> bool:
    return key in _NO_EFFECT or (key in _NEUTRAL and value == _NEUTRAL[key])


def _number(given: Mapping[str, JSONValue], key: str, least: int, *, whole: bool = False) -> float:
    value = given[key]
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not value >= least:
        raise TargetError(f"{key} is {shown(value)}", f"give a {'whole ' if whole else ''}number from {least}")
    return value


def _several(given: Mapping[str, JSONValue], key: str, kind: type) -> list[JSONValue]:
    value = given.get(key, [])
    items = value if isinstance(value, list) else [value]
    if not all(type(item) is kind for item in items):
        raise TargetError(f"{key} is {shown(value)}", f"give a list of {'texts' if kind is str else 'numbers'}")
    return [item for item in items if item != ""]
