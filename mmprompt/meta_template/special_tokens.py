"""Special tokens of a model, which sample text must not contain: it could otherwise end a turn or start another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mmprompt.errors import PromptError, shown
from mmprompt.messages import Message, TextPart


class SpecialTokens:
    """The special tokens of a model. A search takes time linear in the text, however many tokens there are."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self._tokens = frozenset(t for t in tokens if t)
        lengths: dict[str, set[int]] = {}
        for token in self._tokens:
            lengths.setdefault(token[0], set()).add(len(token))
        self._lengths = {head: sorted(each, reverse=True) for head, each in lengths.items()}

    def first_in(self, text: str) -> str:
        """Return a token that occurs in ``text``, or an empty string."""
        for head, lengths in self._lengths.items():
            at = text.find(head)
            while at >= 0:
                for length in lengths:
                    if text[at : at + length] in self._tokens:
                        return text[at : at + length]
                at = text.find(head, at + 1)
        return ""

    def check(self, message: Message) -> None:
        """Refuse special tokens in all of a message that a template may write. Text parts that touch are one text."""
        texts = [message.role, message.name or "", message.tool_call_id or "", *_strings(message.tool_calls)]
        run = ""
        for part in message.parts:
            if isinstance(part, TextPart):
                run += part.text
            else:
                texts.append(run)
                run = ""
        for text in (*texts, run):
            if found := self.first_in(text):
                raise PromptError(
                    f"the text holds {shown(found)}, a special token of the model",
                    'change the text, or give special_tokens="allow" if it is meant',
                    code="MM109",
                )


def special_tokens_of(given: Any, tokenizer: Any) -> Iterator[str]:
    """Yield the special tokens of a tokenizer, and the media placeholders of a processor."""
    yield from map(str, getattr(tokenizer, "all_special_tokens", ()))
    yield from (token.content for token in getattr(tokenizer, "added_tokens_decoder", {}).values() if token.special)
    for owner in (given, tokenizer):
        named = {k: v for k, v in getattr(owner, "__dict__", {}).items() if k.endswith("_token")}
        yield from (str(v) for v in named.values() if isinstance(v, str) or hasattr(v, "content"))


def _strings(value: object) -> Iterator[str]:
    """Yield all texts in plain data, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _strings(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings(item)
