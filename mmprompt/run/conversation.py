"""Questions to a model: a single one, or a conversation of several turns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from mmprompt.errors import MMPromptError, PromptError
from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MODALITIES, Message
from mmprompt.render.request import Request
from mmprompt.run.builders import Content, assistant, read_caller_media, system, user
from mmprompt.run.client import ChatClient
from mmprompt.run.reply import Reply
from mmprompt.targets.json_values import JSONValue
from mmprompt.targets.openai import from_openai

_OTHER_WORDS = {"picture": "image", "photo": "image", "sound": "audio", "voice": "audio", "movie": "video"}
_NO_OPTIONS = {
    **{f"{name}s": f"{name}= takes a list too" for name in MODALITIES},
    **{name: f"media of messages that are sent go into them: user(…, {name}=…)" for name in MODALITIES},
    **dict.fromkeys(("prompt", "question"), "write the text first: ask('…')"),
    "system": "say it once, before the first turn: conversation(system=…)",
    "policy": "only send() takes one; a path written in the call needs none",
}

_NEAR = 0.75
"""How similar an option must be to the name of a medium, from 0 to 1, to be taken for a misspelling (``img``)."""


class Exchange(NamedTuple):
    """The messages that were sent, with their media read, and the reply; None without a reply."""

    messages: Sequence[Message]
    reply: Reply | None


class Asker:
    """Asks one model, and keeps all questions and replies in ``exchanges``.

    Args:
        client: asks the server.
        base: the folder where relative media paths begin; by default the working directory.
        policy: which media that samples name may be read; a path written in the call needs no policy.
    """

    def __init__(
        self, client: ChatClient, *, base: str | os.PathLike[str] = "", policy: MediaPolicy | None = None
    ) -> None:
        self.client = client
        self.exchanges: list[Exchange] = []
        self._base = base
        self._policy = policy

    def __repr__(self) -> str:
        """Show model and server; the report of a failed test shows this."""
        return f"<{self.client.model} at {self.client.base_url}>"

    def ask(
        self,
        *content: Content,
        image: object = None,
        audio: object = None,
        video: object = None,
        system: str = "",
        **options: JSONValue,
    ) -> Reply:
        """Ask one question and return the reply, which is a string.

        Args:
            content: texts and parts, as in ``builders.user``; so are ``image``, ``audio`` and ``video``.
            image: one image or several.
            audio: one sound or several.
            video: one video or several.
            system: the text of a system message before the question.
            options: go to the server: ``temperature``, ``max_tokens`` and so on.

        Raises:
            MMPromptError: a medium cannot be read or sent, or the server returns no usable reply.
        """
        return self.conversation(system).ask(*content, image=image, audio=audio, video=video, **options)

    def send(
        self,
        messages: Message | Iterable[Message] | Request,
        *,
        policy: MediaPolicy | None = None,
        **options: JSONValue,
    ) -> Reply:
        """Send one message or several as they are, and return the reply; errors as in ``ask``.

        Args:
            messages: a message or several, or a request of ``Task.requests``: its media have been read under the policy
                of the task, and its settings go along.
            policy: replaces the policy of this object, for messages of a task that names its own.
            options: go to the server, in place of a request's own settings.
        """
        reply = self.exchange(messages, policy, **options).reply
        return Reply("") if reply is None else reply

    def conversation(self, system: str = "") -> Conversation:
        """Return a new conversation, which begins with a system message if ``system`` is given."""
        return Conversation(self, system)

    def exchange(
        self, messages: Message | Iterable[Message] | Request, policy: MediaPolicy | None = None, **options: JSONValue
    ) -> Exchange:
        """Send messages, and return them as they were sent, with the reply; arguments and errors as in ``send``."""
        _check_options(options)
        if isinstance(messages, Request):
            options = {**messages.generation, **options}
            messages = _messages_of(messages)
        sent = [messages] if isinstance(messages, Message) else list(messages)
        try:
            sent = read_caller_media(sent, self._base, policy or self._policy)
            done = Exchange(sent, self.client.ask(sent, **options))
        except MMPromptError:
            self.exchanges.append(Exchange([message for message in sent if isinstance(message, Message)], None))
            raise
        self.exchanges.append(done)
        return done


def _messages_of(request: Request) -> list[Message]:
    """Return the messages of a request, their media as bytes."""
    wire = request.messages
    if wire is None:
        raise PromptError("the request is not in OpenAI's form", "make it for the target vllm or openai")
    return from_openai(wire)


def _check_options(options: Mapping[str, object]) -> None:
    """Refuse options that look like media: the server would ignore them, and the model would not see the media."""
    for name, value in options.items():
        if isinstance(value, Mapping):  # OpenAI's audio={"voice": …}
            continue
        near = get_close_matches(name, (*MODALITIES, *_OTHER_WORDS), n=1, cutoff=_NEAR)
        hint = _NO_OPTIONS.get(name) or (f"write {_OTHER_WORDS.get(near[0], near[0])}=" if near else "")
        if hint:
            raise PromptError(f"{name} would go to the server as an option", hint)


class Conversation:
    """Several turns with one model: each question is sent after all earlier ``messages``."""

    def __init__(self, asker: Asker, system_text: str = "") -> None:
        self.messages: list[Message] = [system(system_text)] if system_text else []
        self._asker = asker

    def __repr__(self) -> str:
        """Show model, server and length; the report of a failed test shows this."""
        return f"<conversation with {self._asker!r}, {len(self.messages)} messages>"

    def ask(
        self,
        *content: Content,
        image: object = None,
        audio: object = None,
        video: object = None,
        **options: JSONValue,
    ) -> Reply:
        """Ask the next question and return the reply; as ``Asker.ask``. A question without a reply is not kept."""
        _check_options(options)
        question = user(*content, image=image, audio=audio, video=video)
        if not question.parts:
            raise PromptError("the question is empty", "give text, or media as image=, audio=, video=")
        sent, reply = self._asker.exchange([*self.messages, question], None, **options)
        said = Reply("") if reply is None else reply
        self.messages = [*sent, assistant(said)]
        return said
