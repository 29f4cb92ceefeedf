"""``ChatTemplate``: a prompt through the chat template of a Hugging Face tokenizer or processor.

Chat templates differ in what they take: some want text, others a list of parts; some ignore media, others print the
list itself. So each form is tried once with a probe text, and a form is used only if its result shows the probe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from mmprompt.errors import PromptError, TemplateError, nearest, shown
from mmprompt.messages import MediaRef, Message, TextPart
from mmprompt.meta_template.meta_template import MetaTemplate
from mmprompt.meta_template.text import RenderedString, rendered_string
from mmprompt.targets.hf import media_part, text_part

SPECIAL_TOKENS = ("refuse", "allow")
_PROBE = "mmprompt probe"
_WORDS = 200


class ChatTemplate:
    """Renders prompts as ``apply_chat_template`` does; roles map as in ``MetaTemplate(None)``. Immutable.

    The template writes the special tokens at the head of the string itself: tokenize the string with
    ``add_special_tokens=False``.

    Args:
        tokenizer_or_processor: a Hugging Face tokenizer or processor. If a processor has no chat template, that of
            its tokenizer is used.
        special_tokens: ``"refuse"`` raises an error for sample text that holds one of the model's special tokens;
            ``"allow"`` renders it.
        variables: further variables of the template, such as ``enable_thinking`` or ``date_string``.

    Source: Hugging Face transformers, Chat templates.

    Raises:
        TemplateError: there is no chat template, or ``special_tokens`` is unknown.
    """

    def __init__(
        self,
        tokenizer_or_processor: Any,
        *,
        special_tokens: str = "refuse",
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        if special_tokens not in SPECIAL_TOKENS:
            raise TemplateError(
                f"unknown special_tokens {shown(special_tokens)}", nearest(special_tokens, SPECIAL_TOKENS)
            )
        self._given = tokenizer_or_processor
        self._special_tokens = special_tokens
        self._variables = dict(variables or {})
        tokenizer = _tokenizer_of(tokenizer_or_processor)
        self._is_processor = tokenizer is not tokenizer_or_processor
        self._apply = _applier(tokenizer_or_processor, tokenizer, with_variables=bool(variables))
        refused = special_tokens_of(tokenizer_or_processor, tokenizer) if special_tokens == "refuse" else ()
        self._tokens = SpecialTokens(refused)
        self._roles = MetaTemplate(None)
        self._takes_parts: dict[str, bool] = {}
        self._media_parts: dict[tuple[str, str], dict[str, str] | None] = {}

    def to_messages(self, prompt: Any, mode: str = "gen") -> Any:
        """Return the prompt as a list of messages; a plain list of prompts is a batch and gives a list of lists.

        Raises:
            PromptError: an unknown role, a special token in the text, or a prompt that gives no message.
        """
        messages = self._roles.to_messages(prompt, mode)
        for message in messages:
            for each in message if isinstance(message, list) else (message,):
                self._tokens.check(each)
        return messages

    def to_string(self, prompt: Any, mode: str = "gen") -> Any:
        """Return the prompt as the string of the chat template, with ``media`` beside it in order.

        In ``gen`` it ends with the template's generation prompt, in ``ppl`` it does not. A string is one user message;
        a plain list of prompts is a batch and gives a list.

        Raises:
            PromptError: as ``to_messages``; or the template refuses the messages or has no place for their media.
        """
        messages = self.to_messages(prompt, mode)
        if isinstance(messages[0], list):
            return [self._rendered(each, mode) for each in messages]
        return self._rendered(messages, mode)

    def _rendered(self, messages: list[Message], mode: str) -> RenderedString:
        text = self._render([self._wire(message) for message in messages], generate=mode == "gen")
        return rendered_string(text, [p for m in messages for p in m.parts if isinstance(p, MediaRef)])

    def _wire(self, message: Message) -> dict[str, Any]:
        return {"role": message.role, "content": self._content(message), **message.beside_content()}

    def _content(self, message: Message) -> str | list[dict[str, str]]:
        if all(isinstance(part, TextPart) for part in message.parts) and not self._wants_parts(message.role):
            return message.text
        return [
            text_part(part.text) if isinstance(part, TextPart) else self._media_part(message.role, part.modality)
            for part in message.parts
        ]

    def _wants_parts(self, role: str) -> bool:
        """Return True if the text of a role is given as parts.

        Processors usually take parts and tokenizers text; the other form is used if only that works.
        """
        if role not in self._takes_parts:
            usual = self._is_processor
            works = (form for form in (usual, not usual) if self._shows_probe(role, _probe(as_parts=form)))
            self._takes_parts[role] = next(works, usual)
        return self._takes_parts[role]

    def _media_part(self, role: str, modality: str) -> dict[str, str]:
        """Return the content part for which the template writes its placeholder of a medium."""
        key = role, modality
        if key not in self._media_parts:
            without = self._shows_probe(role, _probe(as_parts=True))
            forms = ({"type": modality}, media_part(modality, ""))
            shows = (
                form for form in forms if self._shows_probe(role, [dict(form), text_part(_PROBE)]) not in ("", without)
            )
            self._media_parts[key] = next(shows, None)
        part = self._media_parts[key]
        if part is None:
            raise PromptError(
                f"the chat template has no place for {modality} in a message of role {role}",
                f"use the processor of a model that takes {modality}, or use to_messages",
                code="MM605",
            )
        return dict(part)

    def _shows_probe(self, role: str, content: str | list[dict[str, str]]) -> str:
        """Return what the template writes for a message; empty if it refuses the message or leaves out its text."""
        conversation = [{"role": role, "content": content}]
        if role != "user":  # many templates want a user message before the assistant's, or after the system's
            user = {"role": "user", "content": [text_part("-")] if self._wants_parts("user") else "-"}
            conversation.insert(1 if role == "system" else 0, user)
        try:
            text = self._render(conversation, generate=False)
        except PromptError:
            return ""
        printed = not isinstance(content, str) and (f"'{_PROBE}'" in text or f'"{_PROBE}"' in text)
        return text if _PROBE in text and not printed else ""

    def _render(self, conversation: list[dict[str, Any]], *, generate: bool) -> str:
        from jinja2 import TemplateError as JinjaError  # noqa: PLC0415  # only where a chat template is used

        try:
            text = self._apply(conversation, tokenize=False, add_generation_prompt=generate, **self._variables)
        except (JinjaError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            said = shown(str(error) or type(error).__name__, _WORDS)
            raise PromptError(
                f"the chat template refuses the messages: {said}", "change the roles of the prompt, or their order"
            ) from None
        except ImportError as error:
            raise PromptError(
                f"the chat template cannot run: {shown(str(error), _WORDS)}", "install what it asks for"
            ) from None
        return str(text)

    def __reduce__(self) -> tuple[object, ...]:
        return (_remade, (self._given, self._special_tokens, self._variables))

    def __repr__(self) -> str:
        return f"ChatTemplate({type(self._given).__name__}, special_tokens={self._special_tokens!r})"


def _remade(given: Any, special_tokens: str, variables: Mapping[str, Any]) -> ChatTemplate:
    return ChatTemplate(given, special_tokens=special_tokens, variables=variables)


def _tokenizer_of(given: Any) -> Any:
    """Return the tokenizer of a processor; a tokenizer is returned as it is."""
    own = getattr(given, "tokenizer", None)
    return own if hasattr(own, "all_special_tokens") else given


def _applier(given: Any, tokenizer: Any, *, with_variables: bool) -> Callable[..., Any]:
    """Return the ``apply_chat_template`` method of the processor or tokenizer that has a chat template."""
    for owner in (given, tokenizer):
        apply: Callable[..., Any] | None = getattr(owner, "apply_chat_template", None)
        template = getattr(owner, "chat_template", "its own")
        if apply is None or template is None:
            continue
        if with_variables and owner is not tokenizer and isinstance(template, str):
            return partial(
                tokenizer.apply_chat_template, chat_template=template
            )  # transformers 4.51: processors drop them
        return apply
    raise TemplateError(
        f"{type(given).__name__} has no chat template", "set its chat_template, or use a meta template instead"
    )


def _probe(*, as_parts: bool) -> str | list[dict[str, str]]:
    return [text_part(_PROBE)] if as_parts else _PROBE


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
