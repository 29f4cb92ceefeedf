"""What the writers of all wire forms share."""

from __future__ import annotations

import pytest
from sample_messages import JPEG

from mmprompt.errors import PolicyError, TargetError, Where
from mmprompt.messages import MediaPart, MediaRef, Message, TextPart
from mmprompt.targets.anthropic import AnthropicWriter
from mmprompt.targets.gemini import GeminiWriter
from mmprompt.targets.hf import HFWriter
from mmprompt.targets.openai import OpenAIWriter

WRITERS = [(OpenAIWriter, "openai"), (AnthropicWriter, "anthropic"), (GeminiWriter, "gemini"), (HFWriter, "hf")]
UNREAD = [
    Message("HUMAN", "a"),
    Message("BOT", "b"),
    Message("HUMAN", [TextPart("c"), JPEG, MediaRef("image", "a.jpg")]),
]


def refuse(ref: MediaRef) -> MediaPart:
    raise PolicyError(f"{ref.source} is outside the roots", "add a root", Where(file="rows.jsonl"))


@pytest.mark.parametrize(("writer", "target"), WRITERS)
class TestPlaces:
    def test_a_part_that_the_target_refuses(self, writer, target):
        with pytest.raises(TargetError) as raised:
            writer(target).write(UNREAD)
        assert raised.value.where == Where(message=3, part=3)
        assert raised.value.what == "image 'a.jpg' has not been read"

    def test_a_part_that_cannot_be_read(self, writer, target):
        with pytest.raises(PolicyError) as raised:
            writer(target, read=refuse).write(UNREAD)
        assert raised.value.where == Where("rows.jsonl", message=3, part=3)
        assert raised.value.what == "a.jpg is outside the roots"

    def test_something_else_than_a_message(self, writer, target):
        with pytest.raises(TargetError) as raised:
            writer(target).write([Message("HUMAN", "a"), {"role": "user"}])
        assert raised.value.where == Where(message=2)
