"""Prompters: one instruction, compiled once, to a string for a language model or messages for a chat API."""

from __future__ import annotations

from mmprompt.prompters.alpaca import AlpacaPrompter
from mmprompt.prompters.chat import ChatPrompter
from mmprompt.prompters.empty import EmptyPrompter

__all__ = ["AlpacaPrompter", "ChatPrompter", "EmptyPrompter"]
